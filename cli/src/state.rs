//! States of `dedup`: a filter and what it was made for, as `docs/format.md` specifies in section 11.
#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::slice;

use anyhow::{Error, Result, anyhow, ensure};
use bloomline::variants::ScalableBloomFilter;
use bloomline::{BloomFilter, BloomView, ErrorKind, Sizing, StandaloneKind};
use xxhash_rust::xxh64::xxh64;

use crate::input::{Column, KeyRule};
use crate::numbers::percent;
use crate::output::typed;

/// The keys of the lines that `dedup` has printed so far.
pub struct State {
    pub filter: Filter,
    /// Keys that it was made for, at least 1. A growing state holds so many before it grows for the first time.
    pub capacity: u64,
    /// Keys put into the filter.
    pub keys: u64,
    /// The requested false-positive rate.
    pub fpr: f64,
    /// Which part of a line is its key, or `None` until dedup has used the state.
    pub rule: Option<KeyRule>,
}

/// A filter of fixed size, or one that grows.
pub enum Filter {
    Fixed(BloomFilter),
    Growing(ScalableBloomFilter),
}

pub enum FilterView<'a> {
    Fixed(BloomView<'a>),
    Growing(&'a ScalableBloomFilter),
}

impl FilterView<'_> {
    /// `None` if it grows.
    pub fn sizing(&self) -> Option<Sizing> {
        match self {
            Self::Fixed(view) => Some(view.sizing()),
            Self::Growing(_) => None,
        }
    }
}

impl Filter {
    pub fn as_view(&self) -> FilterView<'_> {
        match self {
            Self::Fixed(filter) => FilterView::Fixed(filter.as_view()),
            Self::Growing(filter) => FilterView::Growing(filter),
        }
    }

    pub fn seed(&self) -> u64 {
        match self {
            Self::Fixed(filter) => filter.seed(),
            Self::Growing(filter) => filter.seed(),
        }
    }

    pub fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
        match self {
            Self::Fixed(filter) => filter.contains_batch(hashes, found),
            Self::Growing(filter) => filter.contains_batch(hashes, found),
        }
    }

    pub fn estimated_fpr(&self) -> f64 {
        match self {
            Self::Fixed(filter) => filter.estimated_fpr(),
            Self::Growing(filter) => filter.estimated_fpr(),
        }
    }

    pub fn write_standalone(&self, out: impl Write) -> io::Result<()> {
        match self {
            Self::Fixed(filter) => filter.write_standalone(out),
            Self::Growing(filter) => filter.write_standalone(out),
        }
    }
}

/// For an unknown number of keys.
pub const INITIAL_CAPACITY: usize = 1_000_000;
pub const FPR: f64 = 1e-6;

const MAGIC: [u8; 8] = *b"\x89bldup\r\n";
/// Version 1 records no rule.
const VERSION: u8 = 2;
const FOOTER_BYTES: usize = 64;

impl State {
    /// Whether the bytes end as a state does. Nothing else is checked.
    pub fn is_state(bytes: &[u8]) -> bool {
        bytes.ends_with(&MAGIC)
    }

    /// Reads a state and verifies all its checksums. `name` is for errors.
    pub fn from_bytes(name: impl Display, bytes: &[u8]) -> Result<Self> {
        let wrong = |what: String| anyhow!("{name}: {what} (restore a copy of the state, or remove it)");
        ensure!(
            Self::is_state(bytes),
            "{name}: not a state of dedup, or cut short (name another file, or restore a copy)"
        );
        let (filter, footer) = bytes
            .split_last_chunk::<FOOTER_BYTES>()
            .ok_or_else(|| wrong(format!("a state cut to {} bytes", bytes.len())))?;
        let word = |at: usize| u64::from_le_bytes(footer.as_chunks::<8>().0[at]);
        let version = footer[40];
        ensure!(
            (1..=VERSION).contains(&version),
            "{name}: a state of version {version}, newer than {VERSION} (use the bloomline that wrote it)"
        );
        let (stored, computed) = (word(6), xxh64(&footer[..48], 0));
        if stored != computed {
            return Err(wrong(format!("damaged: the footer's checksum is {computed:#x}, not {stored:#x}")));
        }
        let (capacity, keys, fpr) = (word(0), word(1), f64::from_bits(word(2)));
        let rule = rule_of([word(3), word(4), word(5) >> 8], filter);
        let rule = rule.filter(|(rule, _)| version > 1 || rule.is_none());
        let Some((rule, filter)) = rule.filter(|_| capacity > 0 && fpr > 0.0 && fpr < 1.0) else {
            return Err(wrong("the footer holds values that no bloomline writes".into()));
        };
        let decoded = |error: bloomline::Error| match error.kind() {
            ErrorKind::OutOfMemory => Error::new(error).context(name.to_string()),
            _ => wrong(error.to_string()),
        };
        let filter = if StandaloneKind::of(filter) == Some(StandaloneKind::Scalable) {
            let filter = ScalableBloomFilter::from_standalone(filter).map_err(decoded)?;
            let held = filter.inserted_keys();
            if keys > held || filter.fpr() > fpr * (1.0 + 1e-9) {
                let rate = filter.fpr();
                return Err(wrong(format!(
                    "{keys} keys at a false-positive rate of {fpr:e}, in a filter of {held} at {rate:e}"
                )));
            }
            Filter::Growing(filter)
        } else {
            Filter::Fixed(BloomFilter::from_standalone(filter).map_err(decoded)?)
        };
        Ok(Self { filter, capacity, keys, fpr, rule })
    }

    /// Writes the filter's standalone bytes, then the name of the column or the options of keys, if the footer needs them,
    /// and the footer.
    pub fn write_to(&self, mut out: impl Write) -> io::Result<()> {
        self.filter.write_standalone(&mut out)?;
        out.write_all(text_of(self.rule.as_ref()).as_bytes())?;
        let [column, length, flags] = words_of(self.rule.as_ref());
        let flags = flags << 8 | u64::from(VERSION);
        let words = [self.capacity, self.keys, self.fpr.to_bits(), column, length, flags];
        let signed = words.map(u64::to_le_bytes);
        let checksum = xxh64(signed.as_flattened(), 0).to_le_bytes();
        out.write_all([signed.as_flattened(), &checksum, &MAGIC].concat().as_slice())
    }

    /// Bytes after the filter.
    pub fn footer_len(&self) -> usize {
        text_of(self.rule.as_ref()).len() + FOOTER_BYTES
    }

    /// Whether `fpr` prints like the requested rate, so that users can type what a message shows.
    pub fn requests(&self, fpr: f64) -> bool {
        percent(fpr) == percent(self.fpr)
    }

    /// The most keys that keep the requested rate by the model, or `None` if the filter grows. Runs for up to 30 ms.
    ///
    /// The model is the mean over all sets of keys, because a small filter's own rate is above it by chance half the
    /// time.
    pub fn most_keys(&self) -> Option<u64> {
        // At the lowest rates the model is off by 1/5,000, but a filter must hold the keys that it was sized for.
        const ROUNDING: f64 = 1.001;
        const STEPS: u64 = 16;
        let Filter::Fixed(filter) = &self.filter else { return None };
        let sizing = filter.sizing();
        let rate = |keys| sizing.expected_fpr(keys);
        let takes = |keys| rate(keys) <= self.fpr * ROUNDING;
        // With 512 keys for each bit, every block is full.
        let mut too_many = 512 * 512 * filter.n_blocks() as u64;
        let mut enough = if self.capacity < too_many && takes(self.capacity) { self.capacity } else { 0 };
        while too_many - enough > 1 + enough / 1_000_000 {
            let middle = enough + (too_many - enough) / 2;
            (enough, too_many) = if takes(middle) { (middle, too_many) } else { (enough, middle) };
        }
        // Some of these keys are dropped instead of put in. Their share is the mean of the rate while the filter fills.
        // Four standard errors are subtracted, so that nobody is told by chance that there are too many.
        let rates = (0..STEPS).map(|step| rate(enough / STEPS * step + enough / (2 * STEPS)));
        let dropped = rates.sum::<f64>() / STEPS as f64 * enough as f64;
        Some(enough - (dropped - 4.0 * dropped.sqrt()).max(0.0) as u64)
    }

    /// An upper bound, by the model, of how many new keys are dropped on average while the last `printed` ones are
    /// inserted.
    pub fn expected_drops(&self, printed: u64) -> f64 {
        let filters = match &self.filter {
            Filter::Fixed(filter) => slice::from_ref(filter),
            Filter::Growing(filter) => filter.filters(),
        };
        let same_hash = self.keys as f64 / 2_f64.powi(64);
        let (mut left, mut drops, step) = (printed as f64, 0.0, printed as f64 / 64.0);
        // Back from now. The rate was lower before, so that its value at the end of each step is an upper bound.
        for (i, filter) in filters.iter().enumerate().rev() {
            if left <= 0.0 {
                break;
            }
            let Some(estimate) = filter.estimated_keys() else { return f64::INFINITY };
            let of_older: f64 = filters[..i].iter().map(BloomFilter::estimated_fpr).sum();
            // The bits are those of the dropped keys as well.
            let mut keys = estimate.keys as f64;
            while keys > 0.0 && left > 0.0 {
                let rate = (of_older + same_hash + filter.sizing().expected_fpr(keys as u64)).min(1.0);
                let dropped = step * rate / (1.0 - rate);
                drops += dropped;
                keys -= step + dropped;
                left -= step;
            }
        }
        drops
    }

    /// The rate at which it can grow. This is the requested rate, unless the filter has used up too much of it. `None`
    /// if the filter is too full, or has too many modules.
    pub fn enough_to_grow(&self) -> Option<f64> {
        let Filter::Fixed(filter) = &self.filter else { return Some(self.fpr) };
        if filter.n_modules() > 2 {
            return None;
        }
        let (rate, lowest) = (filter.estimated_fpr(), ScalableBloomFilter::min_fpr_from(filter));
        let is_enough = rate <= 0.15 * self.fpr && lowest <= self.fpr;
        let twice = 2.0 * self.fpr.max(rate);
        let fpr = if is_enough { self.fpr } else { twice.max(1.1 * lowest) };
        (fpr <= 0.5).then_some(fpr)
    }

    /// Whether more keys were put in than keep the requested rate.
    pub fn is_overfull(&self) -> bool {
        self.most_keys().is_some_and(|most| self.keys > most)
    }
}

/// The command that makes a state or a filter grow, as it is typed.
pub fn grow_command(source: &Path, output: Option<&Path>, fpr: Option<f64>) -> String {
    let output = output.map_or(String::new(), |output| format!("-o {} ", typed(output)));
    let fpr = fpr.map_or(String::new(), |fpr| format!("--fpr {} ", percent(fpr)));
    format!("bloomline grow {output}{fpr}{}", typed(source))
}

const IS_RECORDED: u64 = 1;
const IS_NULL: u64 = 1 << 1;
const IS_CRLF: u64 = 1 << 2;
const IS_INTEGERS: u64 = 1 << 3;
const IS_CSV: u64 = 1 << 4;
const IS_NAMED: u64 = 1 << 5;
const IS_OF_OPTIONS: u64 = 1 << 6;
const DELIMITER_SHIFT: u32 = 8;

/// The name of the column, or nothing. All options if the footer has no place for some.
fn text_of(rule: Option<&KeyRule>) -> Cow<'_, str> {
    match rule {
        Some(rule) if rule.is_of_texts() => rule.options().into(),
        Some(KeyRule { column: Some(Column::Name(name)), .. }) => name.into(),
        _ => "".into(),
    }
}

/// Column, length and flags in a footer. Of a text before it, the checksum and the length.
fn words_of(rule: Option<&KeyRule>) -> [u64; 3] {
    let Some(rule) = rule else { return [0; 3] };
    let text = text_of(Some(rule));
    let bits = [
        (rule.null, IS_NULL),
        (rule.crlf, IS_CRLF),
        (rule.integers, IS_INTEGERS),
        (rule.csv, IS_CSV),
        (!text.is_empty(), IS_NAMED),
    ];
    let flags = bits.iter().filter(|(is_set, _)| *is_set).fold(IS_RECORDED, |flags, (_, bit)| flags | bit);
    let flags = match rule.is_of_texts() {
        true => IS_RECORDED | IS_OF_OPTIONS,
        false => flags | u64::from(rule.delimiter.unwrap_or(0)) << DELIMITER_SHIFT,
    };
    if !text.is_empty() {
        return [xxh64(text.as_bytes(), 0), text.len() as u64, flags];
    }
    [rule.number() as u64, rule.length.map_or(0, |length| length.get() as u64), flags]
}

/// The rule if one was recorded, and the filter from the bytes before the footer. `None` if no options have these words.
fn rule_of(words: [u64; 3], mut filter: &[u8]) -> Option<(Option<KeyRule>, &[u8])> {
    let [column, mut length, flags] = words;
    if words == [0; 3] {
        return Some((None, filter));
    }
    let number = |word: u64| usize::try_from(word).ok().map(NonZeroUsize::new);
    let mut text = "";
    if flags & (IS_NAMED | IS_OF_OPTIONS) != 0 {
        let (before, found) =
            filter.split_at_checked(filter.len().checked_sub(usize::try_from(length).ok()?)?)?;
        (filter, length, text) = (before, 0, str::from_utf8(found).ok()?);
    }
    if flags & IS_OF_OPTIONS != 0 {
        let is_whole = xxh64(text.as_bytes(), 0) == words[0] && flags == IS_RECORDED | IS_OF_OPTIONS;
        let rule = KeyRule::of_options(text).filter(|rule| is_whole && rule.is_of_texts())?;
        return Some((Some(rule), filter));
    }
    let column = match text {
        "" => number(column)?.map(Column::Number),
        name => Some(Column::Name(name.into())),
    };
    let delimiter = (flags >> DELIMITER_SHIFT) as u8;
    let rule = KeyRule {
        null: flags & IS_NULL != 0,
        length: number(length)?,
        crlf: flags & IS_CRLF != 0,
        integers: flags & IS_INTEGERS != 0,
        csv: flags & IS_CSV != 0,
        column,
        delimiter: (delimiter != 0).then_some(delimiter),
        ..KeyRule::default()
    };
    let is_possible = !(rule.null && rule.crlf)
        && (rule.length.is_none() || !(rule.null || rule.crlf || rule.integers || rule.column.is_some()))
        && (rule.delimiter.is_none() || rule.column.is_some())
        && (!rule.csv || rule.column.is_some() && !(rule.null || rule.crlf))
        && (rule.csv || !matches!(rule.column, Some(Column::Name(_))));
    (is_possible && words_of(Some(&rule)) == words).then_some((Some(rule), filter))
}
