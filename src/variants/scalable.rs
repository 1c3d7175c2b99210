//! `ScalableBloomFilter`: a series of filters that grows with an unknown number of keys.
#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::{fmt, iter, mem};

use crate::blocks::{BLOCK_BYTES, or_abort, reserve};
use crate::encoding::{self, StandaloneFooter, StandaloneKind, VERSION};
use crate::error::{DecodeError, MismatchError, OutOfMemory, SizingError};
use crate::filter::BloomFilter;
use crate::hash::Seed;
use crate::kernel::{self, Kernel};
use crate::key::Key;
use crate::limits::{MAX_BITS_PER_KEY, MIN_FPR, SCALABLE_MIN_FPR};
use crate::mask::ProbeCount;
use crate::sizing::{self, Sizing};
use crate::view::BloomView;

/// A filter that grows with its keys and keeps the requested false-positive rate, however many come.
///
/// It is a series of [`BloomFilter`]s: when one holds the keys that it was sized for, the next is added, twice as large
/// and with 0.85 times the false-positive rate. These rates form a geometric series whose sum is the requested rate
/// (Almeida, Baquero, Preguiça and Hutchison, "Scalable Bloom filters", 2007). The sum is an upper bound of the
/// false-positive rate of all filters together, 1 − Π(1 − rate). A lookup hashes the key once and probes all filters
/// with one mask.
///
/// # Or one filter, folded
///
/// If you know the most keys that may come, size a [`BloomFilter`] for them and
/// [`shrink_to_fpr`](BloomFilter::shrink_to_fpr) it when all are in. A power of two blocks is best: it folds to any
/// smaller power of two. A lookup still touches one cache line. All memory is allocated at once, but only until the
/// filter is folded. At 1 %, with memory relative to a filter made for exactly these keys, and false-positive rate
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
/// A scalable filter takes the most memory just after it has grown: 4.5 times that of one filter with one key over the
/// initial capacity, 3.3 to 3.7 times at later steps. At 100 times the initial capacity it takes 1.91 times at 0.1 %
/// and 1.81 times at 0.01 %.
///
/// At 1 %, a lookup in seven filters takes 2.1 times as long as in one filter if you look up by key, and 5.8 times if
/// by hash; at 0.1 %, 2.3 and 3.9 times. That holds for absent and present keys. Where the filters are larger than the
/// caches close to a core, it takes 2.7 and 7.2 times as long, at 2.2 MB; at 142 MB, 6.2 times by hash, and 3.5 times
/// with [`contains_batch`](Self::contains_batch). (Zen 4, keys of 16 bytes, two busy cores, 2026-11.)
///
/// Adding a filter takes as long as its allocation: 9 µs at 1 % and 42 µs at 0.01 %, in the median of the steps from
/// 1,000 keys to 255,000 (Zen 4, two busy cores, 2026-11).
///
/// An initial capacity that is far too low makes lookups slower, because each doubling adds a filter. One that is too
/// high costs its memory.
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
/// # Ok::<(), bloomline::SizingError>(())
/// ```
#[derive(Clone)]
pub struct ScalableBloomFilter {
    /// Oldest first, at least one. All have the same k, kernel and seed.
    filters: Vec<BloomFilter>,
    plan: Plan,
    /// How many more keys the newest filter takes.
    room: u64,
    seed: Seed,
}

/// The capacity and the false-positive rate of each filter.
#[derive(Clone, Copy, PartialEq)]
struct Plan {
    /// Keys of the first filter, at least 1.
    initial_capacity: u64,
    fpr: f64,
    growth: u8,
    tightening: f64,
    /// The same for all filters, so that a lookup computes one mask.
    k: ProbeCount,
}

/// Memory relative to one filter for the same keys at 1 %: at 10, 100 and 10,000 times the initial capacity, the mean
/// over that range with as many key counts in each power of ten, and the most:
///
/// | growth, tightening | 10 | 100 | 10,000 | mean | most |
/// |---|---|---|---|---|---|
/// | 2, 0.5 | 2.34 | 2.68 | 6.32 | 3.38 | 7.60 |
/// | 2, 0.8 | 2.28 | 2.14 | 3.49 | 2.59 | 4.19 |
/// | **2, 0.85** | 2.34 | 2.13 | 3.27 | 2.57 | 4.37 |
/// | 2, 0.9 | 2.45 | 2.17 | 3.14 | 2.61 | 4.66 |
/// | 2, the rates a/((i + a)(i + a + 1)), a = 5 | 2.42 | 2.26 | 3.40 | 2.68 | 4.38 |
/// | 4, 0.85 | 3.23 | 5.53 | 3.83 | 3.68 | 7.32 |
///
/// A growth of 1.5 takes a mean of 2.34, but ten filters instead of seven at 100 times the initial capacity. A growth of
/// 3 takes a mean of 3.03, and five filters.
const GROWTH: u8 = 2;
const TIGHTENING: f64 = 0.85;
/// Batches prefetch in filters of this size (128 KiB) or more: a quarter of that of a single filter, because all filters
/// share the caches. Lookups in seven filters then take 17.6 instead of 19.0 ns a key at 849 KiB together, and 18.5
/// instead of 21.5 at 2.1 MiB (Zen 4, 2026-11).
const LARGE_BLOCKS: usize = kernel::LARGE_BLOCKS / 4;
/// More filters than a process can have: the last would hold 2^63 keys.
const MOST_FILTERS: f64 = 64.0;
/// A union of few keys in many filters may grow by a filter for this many keys.
const SMALL_UNION: u64 = 1 << 16;

impl Plan {
    /// The plan of a filter with these parameters, of which `growth` and `tightening` are in range.
    fn new(initial_capacity: u64, fpr: f64, growth: u8, tightening: f64) -> Result<Self, SizingError> {
        sizing::checked_fpr(fpr, SCALABLE_MIN_FPR)?;
        // The textbook's k, −log2 of the false-positive rate, for the fifth filter. From one filter to twenty, the bits
        // that this takes are within 2 % of the bits that each filter's own best k would take.
        let fifth = (0..4).fold(fpr * (1.0 - tightening), |rate, _| rate * tightening);
        let k = (1..16).take_while(|&k| fifth * f64::from(2 << k) <= 1.0).count() as u32 + 1;
        let (initial_capacity, k) = (initial_capacity.max(1), ProbeCount::new(k)?);
        Ok(Self { initial_capacity, fpr, growth, tightening, k })
    }

    /// Keys of the filter with this index.
    fn capacity(&self, index: usize) -> u64 {
        (0..index).fold(self.initial_capacity, |capacity, _| capacity.saturating_mul(self.growth.into()))
    }

    /// Keys of the first `n_filters` filters.
    fn total_capacity(&self, n_filters: usize) -> u64 {
        (0..n_filters).fold(0, |total: u64, index| total.saturating_add(self.capacity(index)))
    }

    /// False-positive rate of the filter with this index. The rates of 64 filters add up to at most `fpr`: a geometric
    /// series, plus the lowest rate that k reaches for each filter.
    fn fpr(&self, index: usize) -> f64 {
        let lowest = sizing::lowest_fpr(self.k);
        // Below 0 where another writer chose a k that cannot reach the rate.
        let shared = (self.fpr - MOST_FILTERS * lowest).max(0.0) * (1.0 - self.tightening);
        lowest + (0..index).fold(shared, |share, _| share * self.tightening)
    }

    fn bits_per_key(&self, index: usize) -> f64 {
        sizing::bits_per_key_of(self.fpr(index), self.k)
    }

    fn n_blocks(&self, index: usize) -> Result<usize, SizingError> {
        let keys = usize::try_from(self.capacity(index)).unwrap_or(usize::MAX);
        Sizing::for_bits_per_key(keys, self.bits_per_key(index)).map(Sizing::n_blocks)
    }
}

impl ScalableBloomFilter {
    /// An empty filter with a false-positive rate of at most `fpr`, however many keys it holds. Takes memory for
    /// `initial_capacity` keys, and more as they come.
    ///
    /// # Errors
    ///
    /// If `fpr` is not between [`SCALABLE_MIN_FPR`] and 1, or memory for `initial_capacity` keys cannot be allocated.
    pub fn with_fpr(initial_capacity: usize, fpr: f64) -> Result<Self, SizingError> {
        let plan = Plan::new(initial_capacity as u64, fpr, GROWTH, TIGHTENING)?;
        Self::with_plan(plan)
    }

    fn with_plan(plan: Plan) -> Result<Self, SizingError> {
        let filters = alloc::vec![BloomFilter::with_blocks(plan.n_blocks(0)?, plan.k.get())?];
        Ok(Self { filters, plan, room: plan.capacity(0), seed: Seed::DEFAULT })
    }

    /// Continues from a filter of fixed size that holds `keys` distinct keys: new keys go into a second filter, which
    /// takes twice as many and is allocated here, and so on. All filters together keep a false-positive rate of at most
    /// `fpr`. k and seed are taken from `filter`.
    ///
    /// The newer filters share what `filter` leaves of `fpr`, so they need fewer bits if `fpr` is well above the
    /// filter's rate: twice that, say. [`fpr`](Self::fpr) returns the rate that their sizes follow from, which is lower
    /// than the requested one if `filter` takes more than 0.15 times that. Reads `filter` once.
    ///
    /// # Errors
    ///
    /// If `fpr` is not between 0 and 1, or too close to the filter's [`estimated_fpr`](BloomFilter::estimated_fpr) or
    /// below it, or if memory for the second filter cannot be allocated.
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
    /// # Ok::<(), bloomline::SizingError>(())
    /// ```
    pub fn from_filter(filter: BloomFilter, keys: u64, fpr: f64) -> Result<Self, SizingError> {
        sizing::checked_fpr(fpr, 0.0)?;
        let k = ProbeCount::new(filter.k())?;
        let (taken, lowest_of_k) = (filter.estimated_fpr(), sizing::lowest_fpr(k).max(MIN_FPR));
        sizing::checked_fpr(fpr, taken + MOST_FILTERS * lowest_of_k)?;
        // A plan of this rate leaves `fpr - taken` to the filters from index 1 on.
        let shared = (fpr - taken - (MOST_FILTERS - 1.0) * lowest_of_k) / TIGHTENING;
        let fpr = fpr.min(shared + MOST_FILTERS * lowest_of_k);
        let plan = Plan { k, ..Plan::new(keys, fpr, GROWTH, TIGHTENING)? };
        let seed = Seed::new(filter.seed());
        let mut filters = Vec::new();
        reserve(&mut filters, 2)?;
        filters.push(filter);
        let mut growing = Self { filters, plan, room: 0, seed };
        growing.try_grow()?;
        Ok(growing)
    }

    /// Sets the seed that keys are hashed with, 0 by default. See [`BloomFilter::with_seed`].
    ///
    /// # Errors
    ///
    /// [`SizingError::SeedAfterKeys`] if keys have been inserted.
    pub fn with_seed(self, seed: u64) -> Result<Self, SizingError> {
        let filters =
            self.filters.into_iter().map(|filter| filter.with_seed(seed)).collect::<Result<_, _>>()?;
        Ok(Self { filters, seed: Seed::new(seed), ..self })
    }

    /// Uses another kernel than the fastest: for tests and benchmarks. The bits stay the same.
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

    /// Inserts `key`. Returns whether it was new; if not, [`contains`](Self::contains) was already `true`, and nothing
    /// changes.
    ///
    /// If the newest filter is full, allocates a larger one. Aborts if out of memory, as `Vec` does;
    /// [`try_insert_hash`](Self::try_insert_hash) does not.
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

    /// [`insert_hash`](Self::insert_hash), with an error if memory runs out.
    ///
    /// # Errors
    ///
    /// If the newest filter is full and memory for a larger one cannot be allocated. Nothing is changed then.
    #[inline]
    pub fn try_insert_hash(&mut self, hash: u64) -> Result<bool, SizingError> {
        Ok(self.add(hash)?)
    }

    #[inline]
    fn add(&mut self, hash: u64) -> Result<bool, OutOfMemory> {
        if self.room == 0 {
            if self.contains_hash(hash) {
                return Ok(false);
            }
            self.try_grow()?;
        }
        let is_new = match &mut self.filters[..] {
            [older @ .., newest] => !BloomFilter::any_contains_hash(older, hash) && newest.insert_hash(hash),
            [] => false,
        };
        self.room -= u64::from(is_new);
        Ok(is_new)
    }

    /// Inserts many keys by hash. Faster than single inserts once the filters are large.
    pub fn insert_batch(&mut self, hashes: &[u64]) {
        or_abort(self.add_batch(hashes));
    }

    /// [`insert_batch`](Self::insert_batch), with an error if memory runs out.
    ///
    /// # Errors
    ///
    /// If the newest filter is full and memory for a larger one cannot be allocated. The keys before are inserted then.
    pub fn try_insert_batch(&mut self, hashes: &[u64]) -> Result<(), SizingError> {
        Ok(self.add_batch(hashes)?)
    }

    fn add_batch(&mut self, hashes: &[u64]) -> Result<(), OutOfMemory> {
        for (hash, later) in kernel::with_later(hashes) {
            later.into_iter().for_each(|later| self.prefetch_large(later));
            self.add(hash)?;
        }
        Ok(())
    }

    #[cold]
    fn try_grow(&mut self) -> Result<(), OutOfMemory> {
        let index = self.filters.len();
        reserve(&mut self.filters, 1)?;
        // A filter that exceeds the address space is refused as one that exceeds the memory.
        let n_blocks = self.plan.n_blocks(index).unwrap_or(usize::MAX);
        let next = self.filters[0].try_empty(n_blocks)?;
        self.filters.push(next);
        self.room = self.plan.capacity(index);
        Ok(())
    }

    /// Adds the filters of `other`: what is possibly present in either is possibly present then. The filter keeps
    /// growing, and its false-positive rate stays below the sum of the rates that both were to keep; [`fpr`](Self::fpr)
    /// adds up as well. Both must have the same k and seed, as filters made with the same arguments have.
    ///
    /// Lookups probe the filters of both, so unite few. Keys inserted into both count twice in
    /// [`inserted_keys`](Self::inserted_keys). Copies the filters of `other`, and allocates one for about as many keys
    /// as both hold; aborts if out of memory, as `Vec` does. If `other` is empty, nothing is changed.
    ///
    /// # Errors
    ///
    /// If the filters differ in k or seed, or if n filters hold fewer than 2^n − 1 keys together, and n is above 16: the
    /// next would take 2^n keys. (With a higher growth, that in place of 2.) Nothing is changed then.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::variants::ScalableBloomFilter;
    ///
    /// let mut monday = ScalableBloomFilter::with_fpr(1_000, 0.01)?;
    /// let mut tuesday = monday.clone();
    /// monday.insert("ant");
    /// tuesday.insert("bee");
    /// monday.union_with(&tuesday)?;
    /// assert!(monday.contains("ant") && monday.contains("bee"));
    /// assert_eq!(monday.fpr(), 0.02);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    // Why the sum of both rates is kept: let R be the rate that n filters keep, P the plan's, t its tightening and l the
    // lowest of k. Their own rates add up to at most
    //     R − (64 − n)·l − (P − 64·l)·tⁿ
    // so the filters to come, up to 64, may have l + (P − 64·l)·(1 − t)·tⁱ each. (R is P; after `from_filter`,
    // P follows from this for n = 1.) For two, R, n and P add up. The union leaves them (64 − n)·l + (P − 64·l)·tⁿ, with
    // P − 64·l = (P₁ − 64·l) + (P₂ − 64·l) + 64·l. The two leave more than that together, because tⁿ is at most t₁ⁿ¹,
    // t₂ⁿ² and 1. A filter that is left out, because it is empty, has no rate.
    #[doc(alias = "merge")]
    pub fn union_with(&mut self, other: &Self) -> Result<(), MismatchError> {
        let (ours, theirs) = (self.plan.k.get(), other.plan.k.get());
        if ours != theirs {
            return Err(MismatchError::Probes { ours, theirs });
        }
        if self.seed != other.seed {
            return Err(MismatchError::Seed { ours: self.seed(), theirs: other.seed() });
        }
        let has_keys = |filter: &&BloomFilter| filter.known_keys() != Some(0);
        if !other.filters.iter().any(|filter| has_keys(&filter)) {
            return Ok(());
        }
        let n_filters = self.filters.iter().chain(&other.filters).filter(has_keys).count();
        let keys = self.inserted_keys().saturating_add(other.inserted_keys());
        let mut plan = Plan {
            initial_capacity: 1,
            // A rate is below 1.
            fpr: (self.plan.fpr + other.plan.fpr).min(1.0 - f64::EPSILON),
            tightening: self.plan.tightening.min(other.plan.tightening),
            ..self.plan
        };
        // By the number of keys, a reader of the bytes expects all filters but the newest to be full.
        plan.initial_capacity = (keys / plan.total_capacity(n_filters)).max(1);
        let (total, next) = (plan.total_capacity(n_filters), plan.capacity(n_filters));
        if total > keys && next > SMALL_UNION {
            return Err(MismatchError::Filters { n_filters, keys });
        }
        let kernel = self.filters[0].kernel();
        self.filters.retain(|filter| has_keys(&filter));
        let theirs = other.filters.iter().filter(has_keys);
        self.filters.extend(theirs.map(|filter| filter.clone().with_kernel(kernel)));
        self.filters.sort_by_key(BloomFilter::n_blocks);
        self.plan = plan;
        or_abort(self.try_grow());
        self.room = next - keys.saturating_sub(total);
        Ok(())
    }

    /// Returns whether `key` is possibly present. `false` means definitely absent.
    ///
    /// For a key never inserted, returns `true` with probability [`estimated_fpr`](Self::estimated_fpr). Hashes the key
    /// and reads one cache line of each filter; does not allocate.
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
        BloomFilter::any_contains_hash(&self.filters, hash)
    }

    /// Looks up many keys by hash: sets `found[i]` to whether the key of `hashes[i]` is possibly present. Faster than
    /// single lookups once the filters are large.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
        assert_eq!(hashes.len(), found.len(), "one answer per hash");
        for ((hash, later), found) in kernel::with_later(hashes).zip(found) {
            later.into_iter().for_each(|later| self.prefetch_large(later));
            *found = self.contains_hash(hash);
        }
    }

    /// Starts loading the cache lines of a hash, one of each filter. See [`BloomFilter::prefetch`].
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.filters.iter().for_each(|filter| filter.prefetch(hash));
    }

    /// [`prefetch`](Self::prefetch) in the filters that the caches close to a core may not hold.
    #[inline]
    fn prefetch_large(&self, hash: u64) {
        let is_large = |filter: &&BloomFilter| filter.n_blocks() >= LARGE_BLOCKS;
        self.filters.iter().rev().take_while(is_large).for_each(|filter| filter.prefetch(hash));
    }

    /// Removes all keys and frees the memory of all filters but the first. After [`from_filter`](Self::from_filter) and
    /// [`union_with`](Self::union_with), the first is made anew if it is too small for the initial capacity.
    pub fn clear(&mut self) {
        self.filters.truncate(1);
        let n_blocks = self.plan.n_blocks(0).unwrap_or(usize::MAX);
        for filter in &mut self.filters {
            filter.clear();
            if filter.n_blocks() < n_blocks {
                *filter = or_abort(filter.try_empty(n_blocks));
            }
        }
        self.room = self.plan.capacity(0);
    }

    /// Keys that were new when they were inserted: the distinct keys, less the false positives among them.
    pub fn inserted_keys(&self) -> u64 {
        self.plan.total_capacity(self.filters.len()) - self.room
    }

    /// Keys that the first filter takes. Each further filter takes twice as many as the one before, or what the bytes say
    /// that it was read from.
    pub fn initial_capacity(&self) -> u64 {
        self.plan.initial_capacity
    }

    /// The filters, oldest first; after [`union_with`](Self::union_with), smallest first. New keys go into the last one.
    pub fn filters(&self) -> &[BloomFilter] {
        &self.filters
    }

    /// Bytes of memory that the blocks of all filters take.
    pub fn byte_len(&self) -> usize {
        self.filters.iter().map(BloomFilter::byte_len).sum()
    }

    /// The seed that keys are hashed with: 0 unless set by [`with_seed`](Self::with_seed).
    #[inline]
    pub fn seed(&self) -> u64 {
        self.seed.get()
    }

    /// The requested false-positive rate.
    pub fn fpr(&self) -> f64 {
        self.plan.fpr
    }

    /// The probability that a lookup of a key never inserted returns `true`: 1 − Π(1 −
    /// [FPR](BloomFilter::estimated_fpr) of each filter), for the current bits. Reads all filters.
    #[must_use]
    pub fn estimated_fpr(&self) -> f64 {
        1.0 - self.filters.iter().map(|filter| 1.0 - filter.estimated_fpr()).product::<f64>()
    }

    /// Length of the standalone bytes: the filters', oldest first, and a footer of 64 bytes with their number,
    /// the number of keys, the requested parameters and a checksum.
    pub(crate) fn standalone_len(&self) -> usize {
        self.filters.iter().map(BloomFilter::standalone_len).sum::<usize>() + StandaloneFooter::LEN
    }

    encoding::standalone_io!(write);

    /// Calls `write` with the parts of the standalone bytes, one after the other.
    pub(super) fn encode<E>(&self, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        self.filters.iter().try_for_each(|filter| filter.encode(&mut write))?;
        let Plan { initial_capacity, fpr, growth, tightening, .. } = self.plan;
        let (n_filters, keys) = (self.filters.len() as u64, self.inserted_keys());
        let last = u64::from_le_bytes([VERSION, growth, 0, 0, 0, 0, 0, 0]);
        let fields = [n_filters, keys, initial_capacity, fpr.to_bits(), tightening.to_bits(), last];
        write(&encoding::seal(fields, StandaloneKind::Scalable))
    }

    /// Reads a filter from the standalone bytes of [`to_standalone`](Self::to_standalone). Compares all checksums. The
    /// filter keeps growing as if it had never been written.
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of another version, if their keys were hashed by another function than this
    /// build's, or if memory cannot be allocated.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::variants::ScalableBloomFilter;
    ///
    /// let mut filter = ScalableBloomFilter::with_fpr(1_000, 0.01)?;
    /// filter.insert("user4291");
    /// let bytes = filter.to_standalone();
    /// assert!(ScalableBloomFilter::from_standalone(&bytes)?.contains("user4291"));
    /// assert!(ScalableBloomFilter::from_standalone(&bytes[1..]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_standalone(bytes: &[u8]) -> Result<Self, DecodeError> {
        let wrong = |field, found| DecodeError::Footer { field, found };
        let check = |is_right: bool, field, found| is_right.then_some(()).ok_or(wrong(field, found));
        let (filters, fields) = encoding::split(bytes, StandaloneKind::Scalable)?;
        let [n_filters, keys, initial_capacity, fpr, tightening, last] = fields;
        let (fpr, tightening) = (f64::from_bits(fpr), f64::from_bits(tightening));
        let [_, growth, reserved @ ..] = last.to_le_bytes();
        check(reserved == [0; 6], "reserved bytes", last >> 16)?;
        check((2..=16).contains(&growth), "growth", growth.into())?;
        check((0.5..1.0).contains(&tightening), "tightening, in bits,", tightening.to_bits())?;
        let mut plan = Plan::new(initial_capacity, fpr, growth, tightening)
            .map_err(|_| wrong("false-positive rate, in bits,", fpr.to_bits()))?;
        // Everything is checked before memory is allocated for the first filter.
        let newest = newest_first(filters).next().unwrap_or(Err(wrong("number of filters", n_filters)))?;
        // One hash and one mask serve all filters: a filter with another k or seed would lose keys.
        let (k, seed) = (newest.k(), newest.seed());
        let mut found = 0;
        for filter in newest_first(filters) {
            let filter = filter?;
            check(filter.k() == k, "k", filter.k().into())?;
            check(filter.seed() == seed, "seed", filter.seed())?;
            filter.verify()?;
            found += 1;
        }
        check(found as u64 == n_filters, "number of filters", n_filters)?;
        plan.k = ProbeCount::new(k).map_err(|_| wrong("k", k.into()))?;
        // The size of the next filter follows from this: forged bytes must not make it large relative to the newest.
        let last = found - 1;
        let bits_per_key = (newest.n_blocks() * BLOCK_BYTES) as f64 * 8.0 / plan.capacity(last) as f64;
        let reaches =
            |fpr| sizing::fpr((1.01 * bits_per_key).min(MAX_BITS_PER_KEY), k).is_ok_and(|rate| rate <= fpr);
        check(initial_capacity != 0 && reaches(plan.fpr(last)), "initial capacity", initial_capacity)?;
        let room = plan.total_capacity(found).checked_sub(keys);
        let room = room.filter(|&room| room <= plan.capacity(last)).ok_or(wrong("number of keys", keys))?;
        let mut copies = Vec::new();
        reserve(&mut copies, found)?;
        for filter in newest_first(filters) {
            copies.push(filter?.copy()?);
        }
        copies.reverse();
        Ok(Self { filters: copies, plan, room, seed: Seed::new(seed) })
    }

    encoding::standalone_io!(read);
}

/// The filters in these bytes, last first, up to the first that cannot be read.
fn newest_first(mut bytes: &[u8]) -> impl Iterator<Item = Result<BloomView<'_>, DecodeError>> {
    iter::from_fn(move || {
        let all = mem::take(&mut bytes);
        (!all.is_empty()).then(|| {
            let (before, last) = encoding::split_last_standalone(all)?;
            bytes = before;
            BloomView::from_standalone_unverified(last)
        })
    })
}

/// Equal if both give the same answers and grow alike: same filters, number of keys and requested parameters.
impl PartialEq for ScalableBloomFilter {
    fn eq(&self, other: &Self) -> bool {
        self.filters == other.filters && self.plan == other.plan && self.room == other.room
    }
}

/// No float in it is NaN.
impl Eq for ScalableBloomFilter {}

impl<K: Key> Extend<K> for ScalableBloomFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| _ = self.insert(key));
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
    use crate::mask::mask;

    fn with_filters(n_filters: u32, fpr: f64, tightening: f64) -> ScalableBloomFilter {
        let mut filter = ScalableBloomFilter::with_plan(Plan::new(1, fpr, 2, tightening).unwrap()).unwrap();
        for number in 0.. {
            filter.insert_hash(mix(number));
            if filter.filters.len() as u32 == n_filters {
                break;
            }
        }
        filter
    }

    /// The rates of the existing filters, and of all that a process can have.
    #[test]
    fn the_rates_of_a_union_add_up_to_the_requested_rate_at_most() {
        let mut united = 0;
        for rates in [[0.6, 0.3], [0.02, 0.01], [0.01, 0.01], [1e-5, 1.1e-5], [SCALABLE_MIN_FPR; 2]] {
            for tightenings in [[0.5, 0.5], [0.85, 0.85], [0.5, 0.85], [0.85, 0.8], [0.98, 0.999]] {
                for numbers in [[1, 1], [1, 5], [5, 1], [3, 4]] {
                    let [mut filter, other] =
                        [0, 1].map(|i| with_filters(numbers[i], rates[i], tightenings[i]));
                    let sum = |plan: &Plan, indices: core::ops::Range<usize>| -> f64 {
                        indices.map(|index| plan.fpr(index)).sum()
                    };
                    let existing =
                        sum(&filter.plan, 0..filter.filters.len()) + sum(&other.plan, 0..other.filters.len());
                    let n_filters = filter.filters.len() + other.filters.len();
                    if filter.union_with(&other).is_ok() {
                        let all = existing + sum(&filter.plan, n_filters..64);
                        let requested = rates[0] + rates[1];
                        assert!(
                            all <= requested * (1.0 + 1e-12),
                            "{rates:?}, {tightenings:?}, {numbers:?}: {all}"
                        );
                        united += 1;
                    }
                }
            }
        }
        assert!(united >= 60, "{united}");
    }

    #[test]
    fn the_rates_after_a_fixed_filter_add_up_to_the_requested_rate_at_most() {
        // With a k of 2, the lowest rates of 64 filters are a large part of the whole.
        for (k, keys, more) in [(2, 1_000, 0.09), (6, 500, 0.01), (16, 500, 1e-5)] {
            let mut filter = BloomFilter::with_blocks(10, k).unwrap();
            filter.insert_batch(&(0..keys).map(mix).collect::<Vec<_>>());
            let (taken, fpr) = (filter.estimated_fpr(), filter.estimated_fpr() + more);
            let growing = ScalableBloomFilter::from_filter(filter, keys, fpr).unwrap();
            assert!(growing.plan.fpr < fpr, "k {k}: the filter takes {taken}");
            let all = taken + (1..64).map(|index| growing.plan.fpr(index)).sum::<f64>();
            assert!((0.99 * fpr..=fpr * (1.0 + 1e-12)).contains(&all), "k {k}: {all}, requested {fpr}");
        }
    }

    const KEYS: u64 = 1_000_000_000;
    /// Number of windows in a filter.
    const WINDOWS: u64 = 4_000;

    /// The blocks of a filter that a window's worth of hashes, from `first` on, fall in.
    struct Window {
        n_blocks: u64,
        first_block: u64,
        blocks: Vec<[u64; 8]>,
    }

    impl Window {
        fn block_of(&mut self, hash: u64) -> &mut [u64; 8] {
            let index = (u128::from(hash) * u128::from(self.n_blocks)) >> 64;
            &mut self.blocks[(index as u64 - self.first_block) as usize]
        }
    }

    /// The whole filter would take 2.6 GB. A hash falls in the same part of each of its filters, so a window of all of
    /// them shows what lookups there see.
    #[test]
    #[cfg(target_pointer_width = "64")]
    #[cfg_attr(miri, ignore = "hours under miri")]
    fn the_rate_holds_in_a_window_of_a_billion_keys() {
        let plan = Plan::new(KEYS / 63, 0.01, GROWTH, TIGHTENING).unwrap();
        let sizes: Vec<u64> = (0..6).map(|index| plan.n_blocks(index).unwrap() as u64).collect();
        let none: f64 = (0..6)
            .map(|index| {
                let bits_per_key = sizes[index] as f64 * 512.0 / plan.capacity(index) as f64;
                1.0 - sizing::fpr(bits_per_key, plan.k.get()).unwrap()
            })
            .product();
        let model = 1.0 - none;
        assert!(model < plan.fpr && plan.total_capacity(6) > KEYS - 63);

        let span = u64::MAX / WINDOWS;
        let (mut positives, mut lookups) = (0_u64, 0_u64);
        for round in 0..8 {
            let first = mix(round) % (u64::MAX - span);
            let mut windows: Vec<Window> = sizes
                .iter()
                .map(|&n_blocks| {
                    let block = |hash: u64| ((u128::from(hash) * u128::from(n_blocks)) >> 64) as u64;
                    let first_block = block(first);
                    let count = block(first + span) - first_block + 1;
                    Window { n_blocks, first_block, blocks: alloc::vec![[0; 8]; count as usize] }
                })
                .collect();
            let mut number = round << 40;
            let mut next = || {
                number += 1;
                mix(number) % span
            };
            for (index, window) in windows.iter_mut().enumerate() {
                for _ in 0..plan.capacity(index) / WINDOWS {
                    let hash = first + next();
                    for (lane, bits) in window.block_of(hash).iter_mut().zip(mask(hash, plan.k)) {
                        *lane |= bits;
                    }
                }
            }
            // The blocks at the window's ends lack the keys beyond them.
            let margin = u64::MAX / sizes[0];
            for _ in 0..120_000 {
                let hash = first + margin + next() % (span - 2 * margin);
                let bits = mask(hash, plan.k);
                let is_in = |window: &mut Window| {
                    window.block_of(hash).iter().zip(bits).all(|(lane, bits)| lane & bits == bits)
                };
                positives += u64::from(windows.iter_mut().any(is_in));
                lookups += 1;
            }
        }
        let ratio = positives as f64 / lookups as f64 / model;
        #[cfg(feature = "std")]
        std::println!(
            "{KEYS} keys in 6 filters: {ratio:.4} of the model, {:.3} of the requested rate",
            model / plan.fpr
        );
        assert!((0.95..=1.05).contains(&ratio), "{ratio:.4} of the model's rate");
    }
}
