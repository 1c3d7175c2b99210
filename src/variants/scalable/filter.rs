//! `ScalableBloomFilter`: filters, of which the last gets new keys.

use alloc::vec::Vec;
use core::{fmt, mem};

use super::lookups::{contain, modules_contain};
use super::series::{GROWTH, MOST_FILTERS, MOST_IN_SERIES, Series, TIGHTENING};
use crate::error::Error;
use crate::extend::{are_many, in_batches};
use crate::filter::BloomFilter;
use crate::hash::Seed;
use crate::kernel::Kernel;
use crate::key::Key;
use crate::limits::ONE_MODULE_MIN_FPR;
use crate::math::power;
use crate::memory::{OutOfMemory, or_abort, reserve};
use crate::sizing::{self, Sizing};

/// A filter that grows with its keys and keeps the requested false-positive rate, however many come.
///
/// It is a series of [`BloomFilter`]s. When one holds the keys that it was sized for, the next is added, twice as large
/// and with 0.85 times the false-positive rate. These rates form a geometric series whose sum is the requested rate
/// (Almeida, Baquero, Preguiça and Hutchison, "Scalable Bloom filters", 2007). The sum is an upper bound of the
/// false-positive rate of all filters together, 1 − Π(1 − rate). A lookup hashes the key once and probes all filters
/// with one mask.
///
/// # Or one filter, folded
///
/// If you know the most keys that may come, size a [`BloomFilter`] for them and
/// [`shrink_to_fpr`](BloomFilter::shrink_to_fpr) it when all are in. A power of two blocks is best, because it folds to
/// any smaller power of two. A lookup still touches one cache line. All memory is allocated at once, but only until the
/// filter is folded. At 1%, with memory relative to a filter made for exactly these keys, and false-positive rate
/// (FPR) relative to the requested one:
///
/// | keys, as a multiple of the initial capacity | 1 | 10 | 100 |
/// |---|---|---|---|
/// | scalable: filters, that is cache lines per lookup | 1 | 4 | 7 |
/// | scalable: memory | 1.46 | 2.35 | 2.14 |
/// | scalable: FPR | 0.15 | 0.38 | 0.61 |
/// | one filter, sized for 100 times the initial capacity: memory | 100 | 10 | 1 |
/// | the same with a power of two blocks, then folded: memory | 1.3 | 1.1 | 1.7 |
/// | the same with a power of two blocks, then folded: FPR | 0.31 | 0.79 | 0.10 |
///
/// A scalable filter needs the most memory just after it has grown, 4.5 times as much as one filter with one key over
/// the initial capacity, and 3.3 to 3.7 times at later steps. At 0.01% and 100 times the initial capacity it needs 1.53
/// times as much as one filter of one module, because at rates below 0.05% each filter has [two
/// modules](crate::sizing#modules).
///
/// A lookup probes all filters, so it is slower the more there are. In seven, it is two to three times slower than in
/// one if you look up by key, and four to seven times if by hash. [`contains_batch`](Self::contains_batch) overlaps the
/// waits for memory. So an initial capacity that is far too low makes lookups slower, and one that is too high costs its
/// memory.
///
/// # Examples
///
/// ```
/// use bloomline::variants::ScalableBloomFilter;
///
/// let mut seen = ScalableBloomFilter::with_fpr(1_000, 0.01)?;
/// seen.extend(0..100_000);
/// assert_eq!(seen.filters().len(), 7);
/// assert!(seen.contains(99_999));
/// assert!(seen.estimated_fpr() < 0.01);
/// # Ok::<(), bloomline::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct ScalableBloomFilter {
    /// At least one. The last gets new keys. All have the same number of modules, k, kernel and seed.
    pub(super) filters: Vec<BloomFilter>,
    /// Loads of all filters but the last.
    pub(super) older: Vec<Load>,
    /// Load of the last filter. Stored here, so that an insert finds it without a second cache line.
    pub(super) newest: Load,
    pub(super) series: Series,
    /// Index in the series of the filter that is added next, at least 1.
    pub(super) next: usize,
    /// The rate that all filters together keep, including filters that will be added. It is `series.fpr` until a union
    /// adds filters of a different series.
    pub(super) fpr: f64,
    pub(super) seed: Seed,
}

/// How many keys a filter has, and how many it has room for.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Load {
    pub(super) keys: u64,
    pub(super) capacity: u64,
}

impl Load {
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.keys >= self.capacity
    }

    pub(super) fn room(&self) -> u64 {
        self.capacity.saturating_sub(self.keys)
    }
}

/// The lowest rate of a filter with the modules and the k of this one.
fn lowest_of_k(filter: &BloomFilter) -> f64 {
    power(sizing::lowest_fpr(filter.k), filter.n_modules() as u32).max(ONE_MODULE_MIN_FPR)
}

impl ScalableBloomFilter {
    /// An empty filter with a false-positive rate of at most `fpr`, however many keys it holds. Allocates memory for
    /// `initial_capacity` keys, and more as they come.
    ///
    /// # Errors
    ///
    /// If `fpr` is not between [`SCALABLE_MIN_FPR`](crate::sizing::SCALABLE_MIN_FPR) and 1, or memory for
    /// `initial_capacity` keys cannot be allocated.
    pub fn with_fpr(initial_capacity: u64, fpr: f64) -> Result<Self, Error> {
        Self::with_series(Series::new(initial_capacity, fpr, GROWTH, TIGHTENING)?)
    }

    pub(super) fn with_series(series: Series) -> Result<Self, Error> {
        let n_blocks = series.module_blocks(0)?.saturating_mul(series.n_modules);
        let sizing = Sizing::new(n_blocks, series.k.get())?.with_modules(series.n_modules)?;
        let (filters, older) = (alloc::vec![BloomFilter::with_sizing(sizing)?], Vec::new());
        let newest = Load { keys: 0, capacity: series.capacity(0) };
        Ok(Self { filters, older, newest, series, next: 1, fpr: series.fpr, seed: Seed::DEFAULT })
    }

    /// Continues from a filter of fixed size that holds `keys` distinct keys. New keys go into a second filter, which
    /// has room for twice as many and is allocated here, and so on. All filters together keep a false-positive rate of
    /// at most `fpr`. They have the number of modules, the k and the seed of `filter`.
    ///
    /// The newer filters share what `filter` leaves of `fpr`, so they need fewer bits if `fpr` is well above the
    /// filter's rate, such as twice as high. Reads `filter` once.
    ///
    /// # Errors
    ///
    /// If `fpr` is not between 0 and 1, or too close to the filter's [`estimated_fpr`](BloomFilter::estimated_fpr) or
    /// below it, if `filter` has more than two modules, or if memory for the second filter cannot be allocated.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::BloomFilter;
    /// use bloomline::variants::ScalableBloomFilter;
    ///
    /// let mut filter = BloomFilter::with_fpr(1_000, 0.01)?;
    /// filter.extend(0..1_000);
    /// let mut growing = ScalableBloomFilter::from_filter(filter, 1_000, 0.02)?;
    /// growing.extend(0..100_000);
    /// assert!(growing.contains(7) && growing.estimated_fpr() < 0.02);
    /// # Ok::<(), bloomline::Error>(())
    /// ```
    pub fn from_filter(filter: BloomFilter, keys: u64, fpr: f64) -> Result<Self, Error> {
        sizing::checked_fpr(fpr, 0.0, 0.0)?;
        let (k, n_modules, seed) = (filter.k, filter.n_modules(), filter.seed);
        if n_modules > MOST_IN_SERIES {
            let text = "a filter that grows has at most {} modules, not {}: rebuild the filter with a size for so many";
            return Err(Error::argument(text, [MOST_IN_SERIES, n_modules].map(|n| n as u64)));
        }
        let lowest_of_k = lowest_of_k(&filter);
        let taken = filter.estimated_fpr();
        sizing::checked_fpr(fpr, taken, MOST_FILTERS * lowest_of_k)?;
        // A series of this rate leaves `fpr - taken` to the filters from index 1 on.
        let shared = (fpr - taken - (MOST_FILTERS - 1.0) * lowest_of_k) / TIGHTENING;
        let of_series = fpr.min(shared + MOST_FILTERS * lowest_of_k);
        let series = Series::new(keys, of_series, GROWTH, TIGHTENING)?.with_shape(k, n_modules);
        let mut filters = Vec::new();
        reserve(&mut filters, 2)?;
        filters.push(filter);
        let newest = Load { keys, capacity: keys };
        let mut growing = Self { filters, older: Vec::new(), newest, series, next: 1, fpr, seed };
        growing.try_grow()?;
        Ok(growing)
    }

    /// The lowest `fpr` with which [`from_filter`](Self::from_filter) continues from this filter, if it is below 1. Reads
    /// the whole filter.
    #[must_use]
    pub fn min_fpr_from(filter: &BloomFilter) -> f64 {
        filter.estimated_fpr() + MOST_FILTERS * lowest_of_k(filter)
    }

    /// Sets the seed that keys are hashed with, 0 by default. See [`BloomFilter::with_seed`].
    ///
    /// # Errors
    ///
    /// If keys have been inserted.
    pub fn with_seed(self, seed: u64) -> Result<Self, Error> {
        let filters =
            self.filters.into_iter().map(|filter| filter.with_seed(seed)).collect::<Result<_, _>>()?;
        Ok(Self { filters, seed: Seed::new(seed), ..self })
    }

    /// Uses a given kernel, for tests and benchmarks. The bits stay the same.
    #[doc(hidden)]
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        let filters = self.filters.into_iter().map(|filter| filter.with_kernel(kernel)).collect();
        Self { filters, ..self }
    }

    /// Hashes `key` under the filter's seed, for the `*_hash` methods.
    #[inline]
    #[must_use]
    pub fn hash_key(&self, key: impl Key) -> u64 {
        self.seed.hash(key)
    }

    /// Inserts `key`. Returns whether it was new. If not, [`contains`](Self::contains) was already `true`, and nothing
    /// changes.
    ///
    /// If all filters are full, allocates a larger one. Aborts if out of memory, as `Vec` does, but
    /// [`try_insert`](Self::try_insert) does not.
    #[doc(alias("add", "put"))]
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> bool {
        self.insert_hash(self.seed.hash(key))
    }

    /// [`insert`](Self::insert) by hash.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> bool {
        or_abort(self.add(hash))
    }

    /// [`insert`](Self::insert), with an error if memory runs out.
    ///
    /// # Errors
    ///
    /// If all filters are full and memory for a larger one cannot be allocated. Then nothing is changed.
    #[inline]
    pub fn try_insert(&mut self, key: impl Key) -> Result<bool, Error> {
        self.try_insert_hash(self.seed.hash(key))
    }

    /// [`try_insert`](Self::try_insert) by hash.
    ///
    /// # Errors
    ///
    /// As [`try_insert`](Self::try_insert).
    #[inline]
    pub fn try_insert_hash(&mut self, hash: u64) -> Result<bool, Error> {
        Ok(self.add(hash)?)
    }

    #[inline]
    pub(in crate::variants) fn add(&mut self, hash: u64) -> Result<bool, OutOfMemory> {
        if self.newest.is_full() {
            if self.contains_hash(hash) {
                return Ok(false);
            }
            self.try_make_room()?;
        }
        let is_new = match &mut self.filters[..] {
            [older @ .., newest] if self.series.n_modules == 1 => {
                !BloomFilter::any_first_contains(older, hash) && newest.insert_hash(hash)
            }
            _ => self.add_to_modules(hash),
        };
        self.newest.keys += u64::from(is_new);
        Ok(is_new)
    }

    #[inline(never)]
    fn add_to_modules(&mut self, hash: u64) -> bool {
        match &mut self.filters[..] {
            [older @ .., newest] => !modules_contain(older, hash) && newest.insert_hash(hash),
            [] => false,
        }
    }

    /// Puts a filter that is not full last. There is one only after a union, so mostly adds one.
    #[cold]
    fn try_make_room(&mut self) -> Result<(), OutOfMemory> {
        let Some(at) = self.older.iter().position(|load| !load.is_full()) else { return self.try_grow() };
        let (filter, load) = (self.filters.remove(at), self.older.remove(at));
        self.put_last(filter, load);
        Ok(())
    }

    fn try_grow(&mut self) -> Result<(), OutOfMemory> {
        reserve(&mut self.filters, 1)?;
        reserve(&mut self.older, 1)?;
        // A filter that exceeds the address space is refused as one that exceeds the memory.
        let module_blocks = self.series.module_blocks(self.next).unwrap_or(usize::MAX);
        let filter = self.filters[0].try_empty(module_blocks)?;
        self.put_last(filter, Load { keys: 0, capacity: self.series.capacity(self.next) });
        self.next += 1;
        Ok(())
    }

    /// Puts a filter last, and the last filter among the older ones, which are sorted by size.
    fn put_last(&mut self, filter: BloomFilter, load: Load) {
        let last = self.older.len();
        let n_blocks = self.filters[last].n_blocks();
        let at = self.filters[..last].partition_point(|older| older.n_blocks() <= n_blocks);
        self.filters[at..].rotate_right(1);
        self.filters.push(filter);
        self.older.insert(at, mem::replace(&mut self.newest, load));
    }

    pub(super) fn loads(&self) -> impl Iterator<Item = &Load> {
        self.older.iter().chain([&self.newest])
    }

    /// Returns whether `key` is possibly present. `false` means definitely absent.
    ///
    /// For a key never inserted, returns `true` with probability [`estimated_fpr`](Self::estimated_fpr). Hashes the key
    /// and reads one cache line of each filter, and one of its second module where the first has the key. Does not
    /// allocate.
    #[doc(alias("might_contain", "may_contain"))]
    #[inline]
    #[must_use]
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_hash(self.seed.hash(key))
    }

    /// [`contains`](Self::contains) by hash.
    #[inline(always)]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        contain(&self.filters, self.series.n_modules, hash)
    }

    /// Starts loading the cache lines that an insert of a new hash needs, one of each filter and both of the last one's
    /// modules. See [`BloomFilter::prefetch`].
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.filters.iter().for_each(|filter| filter.prefetch(hash));
        self.filters.last().into_iter().for_each(|newest| newest.prefetch_second(hash));
    }

    /// Removes all keys and frees the memory of all filters but the first. After [`from_filter`](Self::from_filter) and
    /// [`union_with`](Self::union_with), the first is made anew if it is too small for the initial capacity.
    pub fn clear(&mut self) {
        self.filters.truncate(1);
        self.older.clear();
        let module_blocks = self.series.module_blocks(0).unwrap_or(usize::MAX);
        for first in &mut self.filters {
            if first.blocks.module_blocks() < module_blocks {
                *first = or_abort(first.try_empty(module_blocks));
            } else {
                first.clear();
            }
        }
        self.newest = Load { keys: 0, capacity: self.series.capacity(0) };
        (self.next, self.fpr) = (1, self.series.fpr);
    }

    /// Keys that were new when they were inserted, which are the distinct keys less the false positives among them.
    /// After [`union_with`](Self::union_with), keys of both count twice, so it is an upper bound.
    pub fn inserted_keys(&self) -> u64 {
        self.loads().fold(0, |keys, load| keys.saturating_add(load.keys))
    }

    /// Keys that the first filter has room for. Each further filter has room for twice as many, or for the multiple in
    /// the bytes that it was read from.
    pub fn initial_capacity(&self) -> u64 {
        self.series.initial_capacity
    }

    /// The filters, oldest first, or smallest first after [`union_with`](Self::union_with), except for the last, which
    /// gets new keys.
    pub fn filters(&self) -> &[BloomFilter] {
        &self.filters
    }

    /// Number of [modules](crate::sizing#modules) of each filter, 2 at false-positive rates below 0.05%, else 1.
    pub(super) fn n_modules(&self) -> usize {
        self.series.n_modules
    }

    /// Bytes of memory of the blocks of all filters.
    pub fn byte_len(&self) -> usize {
        self.filters.iter().map(BloomFilter::byte_len).sum()
    }

    /// The seed that keys are hashed with, 0 unless set by [`with_seed`](Self::with_seed).
    #[inline]
    pub fn seed(&self) -> u64 {
        self.seed.get()
    }

    /// The false-positive rate that the filter keeps, however many keys come, which is the requested one until
    /// [`union_with`](Self::union_with) adds filters. It then rises by their rates, and falls by the rates of the
    /// filters that will not come, because larger ones are there.
    pub fn fpr(&self) -> f64 {
        // A rate is below 1, but a sum of rates may not be.
        self.fpr.min(1.0 - f64::EPSILON)
    }

    /// The probability that a lookup of a key never inserted returns `true`, 1 − Π(1 −
    /// [FPR](BloomFilter::estimated_fpr) of each filter), for the current bits. Reads all filters.
    #[must_use]
    pub fn estimated_fpr(&self) -> f64 {
        let rates = self.filters.iter().map(BloomFilter::estimated_fpr);
        // Not as one minus a product, which would round a tiny rate to 0.
        rates.fold(0.0, |all, rate| all + rate * (1.0 - all))
    }
}

/// Equal filters give the same answers and grow alike. No float in them is NaN.
impl Eq for ScalableBloomFilter {}

impl<K: Key> Extend<K> for ScalableBloomFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        let (seed, keys) = (self.seed, keys.into_iter());
        if are_many(&keys) {
            in_batches(keys.map(|key| seed.hash(key)), |hashes| self.insert_batch(hashes));
        } else {
            keys.for_each(|key| _ = self.insert(key));
        }
    }
}

impl fmt::Debug for ScalableBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScalableBloomFilter")
            .field("n_filters", &self.filters.len())
            .field("inserted_keys", &self.inserted_keys())
            .field("fpr", &self.fpr())
            .field("seed", &self.seed())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    #[test]
    fn the_rates_after_a_fixed_filter_add_up_to_the_requested_rate_at_most() {
        // With a k of 2, the lowest rates of 64 filters are a large part of the whole.
        for (k, keys, more) in [(2, 1_000, 0.09), (6, 500, 0.01), (16, 500, 1e-5)] {
            let mut filter = BloomFilter::with_blocks(10, k).unwrap();
            filter.insert_batch(&(0..keys).map(mix).collect::<Vec<_>>());
            let (taken, fpr) = (filter.estimated_fpr(), filter.estimated_fpr() + more);
            let growing = ScalableBloomFilter::from_filter(filter, keys, fpr).unwrap();
            assert!(growing.series.fpr < fpr, "k {k}: the filter takes {taken}");
            let all = taken + (1..64).map(|index| growing.series.fpr(index)).sum::<f64>();
            assert!((0.99 * fpr..=fpr * (1.0 + 1e-12)).contains(&all), "k {k}: {all}, requested {fpr}");
        }
    }
}
