//! Filter policies: what makes filters of keys, and asks them.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use crate::builder::FilterBuilder;
use crate::error::{DecodeError, SizingError};
use crate::hash::hash_key;
use crate::view::BloomView;

/// What the filters of a table are made and asked by: [`FilterPolicy`], or one of your own, to read tables with other
/// filters.
pub trait Policy {
    /// The keys of a filter that is being made, in the form that takes least.
    type Keys;

    /// By what name a table tells which policy made its filters. Other names, other filters: a reader leaves filters
    /// under a name that it does not know alone.
    fn name(&self) -> &str;

    /// No keys yet.
    fn keys(&self) -> Self::Keys;

    /// Adds a key. Keys may repeat.
    fn add(&self, keys: &mut Self::Keys, key: &[u8]);

    /// Appends the filter of the keys to `filter`, at least one byte, and takes the keys out.
    fn finish(&self, keys: &mut Self::Keys, filter: &mut Vec<u8>);

    /// Whether `key` may be among those that `filter` was created from: `false` is certain.
    ///
    /// # Errors
    ///
    /// If the bytes are no filter. The key may be there then.
    fn try_key_may_match(&self, key: &[u8], filter: &[u8]) -> Result<bool, DecodeError>;
}

/// A policy behind a pointer, to be shared.
macro_rules! policy_behind {
    ($pointer:ty) => {
        impl<P: Policy + ?Sized> Policy for $pointer {
            type Keys = P::Keys;

            fn name(&self) -> &str {
                (**self).name()
            }

            fn keys(&self) -> P::Keys {
                (**self).keys()
            }

            fn add(&self, keys: &mut P::Keys, key: &[u8]) {
                (**self).add(keys, key);
            }

            fn finish(&self, keys: &mut P::Keys, filter: &mut Vec<u8>) {
                (**self).finish(keys, filter);
            }

            fn try_key_may_match(&self, key: &[u8], filter: &[u8]) -> Result<bool, DecodeError> {
                (**self).try_key_may_match(key, filter)
            }
        }
    };
}

policy_behind!(&P);
#[cfg(target_has_atomic = "ptr")]
policy_behind!(alloc::sync::Arc<P>);

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
        self.try_key_may_match(key, filter).unwrap_or(true)
    }

    /// [`key_may_match`](Self::key_may_match) that tells of bytes that are no filter: count them, for a database whose
    /// filters cannot be used is slow and says nothing.
    ///
    /// # Errors
    ///
    /// If the bytes are no filter, or one of a newer version. The key may be there then.
    #[inline]
    pub fn try_key_may_match(&self, key: impl AsRef<[u8]>, filter: &[u8]) -> Result<bool, DecodeError> {
        // Before the filter is opened, so that nothing has to be kept over the call.
        let hash = hash_key(key, 0);
        BloomView::from_compact(filter).map(|view| view.contains_hash(hash))
    }
}

impl Policy for FilterPolicy {
    type Keys = FilterBuilder;

    fn name(&self) -> &str {
        Self::NAME
    }

    fn keys(&self) -> FilterBuilder {
        self.builder.clone()
    }

    fn add(&self, keys: &mut FilterBuilder, key: &[u8]) {
        keys.add(key);
    }

    fn finish(&self, keys: &mut FilterBuilder, filter: &mut Vec<u8>) {
        keys.finish_compact(filter);
    }

    fn try_key_may_match(&self, key: &[u8], filter: &[u8]) -> Result<bool, DecodeError> {
        self.try_key_may_match(key, filter)
    }
}
