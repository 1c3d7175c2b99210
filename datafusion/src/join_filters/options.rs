//! The session's options `bloomline.join_filters.…`.

use datafusion::config::ConfigOptions;
use datafusion_common::config::ConfigExtension;
use datafusion_common::{config_namespace, extensions_options};

extensions_options! {
    /// The options of this crate in a session: `SET bloomline.…`.
    pub struct BloomlineOptions {
        /// Bloom filters in front of joins
        pub join_filters: JoinFilterOptions, default = JoinFilterOptions::default()
    }
}

impl ConfigExtension for BloomlineOptions {
    const PREFIX: &'static str = "bloomline";
}

config_namespace! {
    /// When a join filters itself: `SET bloomline.join_filters.…`.
    pub struct JoinFilterOptions {
        /// Whether joins filter themselves
        pub enabled: bool, default = true
        /// Rows that a filter is expected to drop, at least
        pub min_dropped_rows: usize, default = 500_000
        /// Largest share of rows that a filter may be expected to keep
        pub expected_share: f64, default = 0.5
        /// A filter that keeps more than this share of `sample_rows` rows is not asked again in that partition
        pub max_share: f64, default = 0.95
        /// Rows of a partition after which `max_share` is compared, again and again
        pub sample_rows: usize, default = 65_536
        /// Largest filter in bytes. A filter of more keys keeps all rows
        pub max_bytes: usize, default = 4 << 20
        /// False-positive rate of the filters
        pub fpr: f64, default = 0.01
        /// Acts wherever the result stays the same, whether it pays or not: for tests
        pub force: bool, default = false
    }
}

impl JoinFilterOptions {
    /// The options of a session, or the defaults.
    pub(super) fn of(config: &ConfigOptions) -> Self {
        config
            .extensions
            .get::<BloomlineOptions>()
            .map(|options| options.join_filters.clone())
            .unwrap_or_default()
    }

    /// The keys for which a filter of `max_bytes` is made.
    pub(super) fn max_keys(&self) -> usize {
        let bits_per_key = bloomline::Sizing::for_fpr(1 << 20, self.fpr)
            .map_or(16.0, |sizing| sizing.byte_len() as f64 * 8.0 / f64::from(1 << 20));
        (self.max_bytes as f64 * 8.0 / bits_per_key) as usize
    }
}
