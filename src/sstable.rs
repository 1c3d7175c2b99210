//! Filters for databases with SSTables like LevelDB's: a [`FilterPolicy`] creates them when you write a table, and queries
//! them before you read a data block. [Embedding](crate::embedding) lists the mistakes that lose keys.

use alloc::vec::Vec;

use crate::builder::FilterBuilder;
use crate::error::Error;
use crate::hash::hash_key;
use crate::key::Key;
use crate::memory::or_abort;
use crate::view::BloomView;

/// Creates and queries the filters of a database, in the shape of LevelDB's `FilterPolicy`.
///
/// Filters are [compact bytes](crate::format) with seed 0. They are self-describing, so a policy with any bits per key
/// reads the filters of any other. A policy can be shared between threads.
///
/// At false-positive rates below 0.05%, which is from 17.46 bits per key on, filters have two
/// [modules](crate::sizing#modules), unless they are so small that whole blocks would waste what two modules save. They
/// save 7% of the bits at 0.05% and 10% at 0.01%, and an absent key still costs one cache line.
/// [`BloomView::from_compact`] opens both.
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
/// # Ok::<(), bloomline::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FilterPolicy {
    /// An empty builder with the policy's bits per key.
    builder: FilterBuilder,
}

impl FilterPolicy {
    /// The name that a database stores to identify the policy that created its filters. It changes whenever older code
    /// could not read newer filters.
    pub const NAME: &str = "bloomline.BlockedBloom2";

    /// A policy with `bits_per_key` bits for each distinct key of a filter, 10 for a false-positive rate of 1%.
    ///
    /// # Errors
    ///
    /// If `bits_per_key` is not above 0 and at most [`MAX_BITS_PER_KEY`](crate::sizing::MAX_BITS_PER_KEY).
    pub fn with_bits_per_key(bits_per_key: f64) -> Result<Self, Error> {
        Ok(Self { builder: FilterBuilder::with_bits_per_key(bits_per_key)? })
    }

    /// A policy whose filters have a false-positive rate of at most `fpr`. See [`FilterBuilder::with_fpr`].
    ///
    /// # Errors
    ///
    /// If `fpr` is not between [`MIN_FPR`](crate::sizing::MIN_FPR) and 1.
    pub fn with_fpr(fpr: f64) -> Result<Self, Error> {
        Ok(Self { builder: FilterBuilder::with_fpr(fpr)? })
    }

    /// This policy, but with filters of at most `most_modules` modules. Pass 1 for a database that mostly asks for keys
    /// that it has, so that each lookup reads one cache line. See [`FilterBuilder::with_most_modules`].
    ///
    /// # Errors
    ///
    /// If `most_modules` is not 1 to 16, or the requested false-positive rate is out of reach for as few modules.
    pub fn with_most_modules(self, most_modules: usize) -> Result<Self, Error> {
        Ok(Self { builder: self.builder.with_most_modules(most_modules)? })
    }

    /// A builder for a table's keys as they are written, with 8 bytes of memory each, and 9.3 at the peak.
    /// [`finish_compact`](FilterBuilder::finish_compact) makes the filter that [`create_filter`](Self::create_filter)
    /// would make of the same keys, and leaves the builder empty for the next table.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::sstable::FilterPolicy;
    ///
    /// let policy = FilterPolicy::with_bits_per_key(10.0)?;
    /// let (mut table, mut filter) = (Vec::new(), policy.builder());
    /// for (key, value) in [("ant", "6 legs"), ("bee", "6 legs"), ("cat", "4 legs")] {
    ///     table.extend([key, value].concat().bytes());
    ///     filter.insert(key);
    /// }
    /// let data_end = table.len();
    /// filter.finish_compact(&mut table)?;
    /// assert!(policy.key_may_match("cat", &table[data_end..]));
    /// # Ok::<(), bloomline::Error>(())
    /// ```
    pub fn builder(&self) -> FilterBuilder {
        self.builder.clone()
    }

    /// Appends the filter of `keys` to `filter`, at least one byte even without keys. Keys may repeat and come in any
    /// order. If a table's keys are not all in memory, use a [`builder`](Self::builder). Aborts if memory runs out, as
    /// `Vec` does. A builder can return an error.
    pub fn create_filter<K: Key>(&self, keys: impl IntoIterator<Item = K>, filter: &mut Vec<u8>) {
        let mut builder = self.builder();
        builder.extend(keys);
        or_abort(builder.write_compact(filter));
    }

    /// Bits for each distinct key of a filter of many keys, which has n modules, before rounding up.
    ///
    /// The bytes of any filter are at most (keys × bits per key / 8 + 64·n + 2) / 0.93^(n − 1). The 64·n + 2 bytes are
    /// for rounding up to whole blocks. The division is for requested false-positive rates, because a filter has fewer
    /// modules, and so needs more bits, where rounding would cost what further modules save. This happens for few keys,
    /// and just below 0.05% and 1.8e-8 also for many.
    pub fn bits_per_key(&self) -> f64 {
        self.builder.bits_per_key()
    }

    /// Returns whether `key` is possibly among the keys that `filter` was created from. `false` is certain.
    ///
    /// For bytes that are visibly not a filter it returns `true`, because needlessly reading a data block costs time,
    /// but skipping it loses data. Filters have no checksum, and bytes that were cut to the length of a filter, or
    /// whose bits flipped, can hide a key, so the table must store the filter's length and a checksum, as it does for
    /// its data blocks. Does not allocate, copy, or depend on alignment.
    #[inline]
    #[must_use]
    pub fn key_may_match(&self, key: impl Key, filter: &[u8]) -> bool {
        self.try_key_may_match(key, filter).unwrap_or(true)
    }

    /// [`key_may_match`](Self::key_may_match) that reports bytes that are not a filter. Count them, because without
    /// usable filters a database becomes slow with no other sign.
    ///
    /// # Errors
    ///
    /// If no filter has this length or last bytes. The key is then possibly present.
    #[inline]
    pub fn try_key_may_match(&self, key: impl Key, filter: &[u8]) -> Result<bool, Error> {
        BloomView::compact_contains_hash(filter, hash_key(key, 0))
    }

    /// [`key_may_match`](Self::key_may_match) by hash. If a get asks several tables, hash the key once, by [`hash_key`]
    /// with seed 0. [`BloomView::compact_contains_hash`] does the same, and reports bytes that are not a filter.
    #[inline]
    #[must_use]
    pub fn hash_may_match(&self, hash: u64, filter: &[u8]) -> bool {
        BloomView::compact_contains_hash(filter, hash).unwrap_or(true)
    }
}
