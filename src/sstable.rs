//! For databases with SSTables in LevelDB's manner: a filter policy creates a filter for the keys of some data
//! blocks when a table is written, and is asked before a data block is read.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use crate::builder::FilterBuilder;
use crate::error::SizingError;
use crate::view::BloomView;

/// Creates and queries the filters of a database, in the shape of LevelDB's `FilterPolicy`.
///
/// Filters are [compact bytes](crate::format) with seed 0; they say by themselves how to read them, so a policy of
/// any bits per key reads those of any other. May be shared between threads.
///
/// # Examples
///
/// ```
/// use bloomline::sstable::FilterPolicy;
///
/// let policy = FilterPolicy::with_bits_per_key(10.0)?;
/// let mut table = Vec::new();
/// policy.create_filter(["ant", "bee", "bee"], &mut table);
/// assert!(policy.key_may_match("bee", &table));
/// assert!(!policy.key_may_match("elk", &table));
/// # Ok::<(), bloomline::SizingError>(())
/// ```
#[derive(Clone, Debug)]
pub struct FilterPolicy {
    /// Empty, of the policy's bits per key.
    builder: FilterBuilder,
}

impl FilterPolicy {
    /// The name by which a database remembers what made its filters. It changes whenever older code could not read
    /// newer filters.
    pub const NAME: &str = "bloomline.BlockedBloom1";

    /// A policy of `bits_per_key` for each distinct key of a filter: 10 for 1 % false positives.
    ///
    /// # Errors
    ///
    /// If `bits_per_key` is not above 0 and at most [`MAX_BITS_PER_KEY`](crate::sizing::MAX_BITS_PER_KEY).
    pub fn with_bits_per_key(bits_per_key: f64) -> Result<Self, SizingError> {
        FilterBuilder::with_bits_per_key(bits_per_key).map(|builder| Self { builder })
    }

    /// A policy whose filters answer `true` for at most a share `fpr` of missing keys.
    ///
    /// # Errors
    ///
    /// If `fpr` is not between [`MIN_FPR`](crate::sizing::MIN_FPR) and 1.
    pub fn with_fpr(fpr: f64) -> Result<Self, SizingError> {
        FilterBuilder::with_fpr(fpr).map(|builder| Self { builder })
    }

    /// Appends the filter of `keys` to `filter`, never empty. Keys may repeat and come in any order.
    pub fn create_filter<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>, filter: &mut Vec<u8>) {
        let mut builder = self.builder.clone();
        builder.extend(keys);
        builder.finish_compact(filter);
    }

    /// Whether `key` may be among those that `filter` was created from: `false` is certain.
    ///
    /// Bytes that are no filter answer `true`: to read a data block in vain costs time, to skip it loses data. Does
    /// not allocate, copy, or depend on alignment.
    #[inline]
    pub fn key_may_match(&self, key: impl AsRef<[u8]>, filter: &[u8]) -> bool {
        BloomView::from_compact(filter).map_or(true, |view| view.contains(key))
    }
}
