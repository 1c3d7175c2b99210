//! The session's options `bloomline.join_filters.…`.

use std::any::Any;

use bloomline::{Error, Sizing};
use datafusion_common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion_common::{DataFusionError, Result, config_datafusion_err, config_err, extensions_options};

/// The options of this crate in a session, for example `SET bloomline.join_filters.enabled = false`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct BloomlineOptions {
    /// When a join filters itself.
    pub join_filters: JoinFilterOptions,
}

impl ConfigExtension for BloomlineOptions {
    const PREFIX: &'static str = "bloomline";
}

// Written out, because the macro's `entries` lack the prefix, so that Ballista would not pass the options on.
impl ExtensionOptions for BloomlineOptions {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let entry =
            self.entries().into_iter().find(|entry| entry.key.strip_prefix("bloomline.") == Some(key));
        let Some((entry, option)) = entry.zip(key.strip_prefix("join_filters.")) else {
            return config_err!("there is no option bloomline.{key}");
        };
        let (default, mut changed) = (JoinFilterOptions::default(), self.join_filters.clone());
        let default = default.entries().into_iter().find(|default| default.key == option);
        let meant = match value {
            "default" => default.and_then(|default| default.value).unwrap_or_default(),
            _ if option == "max_bytes" => bytes(value).map_or(value.to_owned(), |bytes| bytes.to_string()),
            _ => value.to_owned(),
        };
        let refused = |error: DataFusionError| {
            config_datafusion_err!("{} cannot be '{value}': {}", entry.key, error.strip_backtrace())
        };
        changed.set(option, &meant).map_err(refused)?;
        changed.check()?;
        self.join_filters = changed;
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let mut entries = self.join_filters.entries();
        entries.iter_mut().for_each(|entry| entry.key.insert_str(0, "bloomline.join_filters."));
        entries
    }
}

/// A number of bytes with a unit, such as `4MB`, `4 MiB` or `512K`, each a power of 1024 as in DataFusion's own options.
fn bytes(text: &str) -> Option<usize> {
    let start = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(start);
    let power = "KMG".find(unit.chars().next()?.to_ascii_uppercase())? + 1;
    let is_unit = matches!(&*unit[1..].to_ascii_uppercase(), "" | "B" | "IB");
    is_unit.then_some(())?;
    number.trim_end().parse::<usize>().ok()?.checked_mul(1 << (10 * power))
}

extensions_options! {
    /// When a join filters itself, as in `SET bloomline.join_filters.min_saved_ms = 50`.
    pub struct JoinFilterOptions {
        /// Whether joins filter themselves
        pub enabled: bool, default = true
        /// Milliseconds of one core that a filter is expected to save, at least
        pub min_saved_ms: usize, default = 100
        /// Largest share of rows that a filter may be expected to keep
        pub expected_share: f64, default = 0.5
        /// A filter that keeps more than this share of `sample_rows` rows is not asked again in that partition
        pub max_share: f64, default = 0.95
        /// Rows of a partition after which the kept share is compared with `max_share`, and counting starts again
        pub sample_rows: usize, default = 65_536
        /// Largest filter in bytes. If the keys need more, all rows are kept. A key counts once in each partition
        pub max_bytes: usize, default = 4 << 20
        /// False-positive rate of the filters
        pub fpr: f64, default = 0.01
        /// Acts wherever the result stays the same, whether it pays or not: for tests
        pub force: bool, default = false
    }
}

impl JoinFilterOptions {
    /// Those of a session, or the defaults.
    pub(super) fn of(config: &ConfigOptions) -> Self {
        config.extensions.get::<BloomlineOptions>().cloned().unwrap_or_default().join_filters
    }

    /// Refuses values by which no filter could be made.
    pub(super) fn check(&self) -> Result<()> {
        for (name, share) in [("expected_share", self.expected_share), ("max_share", self.max_share)] {
            if !(0.0..=1.0).contains(&share) {
                return config_err!("bloomline.join_filters.{name} must be from 0 to 1, not {share}");
            }
        }
        match self.sizing(1) {
            Ok(_) => Ok(()),
            Err(error) => config_err!("bloomline.join_filters.fpr: {error}"),
        }
    }

    /// The size of the filter of `keys` keys. It has one module at every rate, because many of the rows that are looked
    /// up may have a partner.
    pub(super) fn sizing(&self, keys: usize) -> Result<Sizing, Error> {
        Sizing::for_fpr_within(keys as u64, self.fpr, 1)
    }

    /// The most keys for which a filter of `max_bytes` has the rate `fpr`.
    pub(super) fn max_keys(&self) -> usize {
        let bits_per_key =
            self.sizing(1 << 20).map_or(16.0, |sizing| sizing.byte_len() as f64 * 8.0 / f64::from(1 << 20));
        (self.max_bytes as f64 * 8.0 / bits_per_key) as usize
    }
}
