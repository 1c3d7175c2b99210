//! `CountingBloomFilter`: a filter that supports removal.

use alloc::vec::Vec;
use core::fmt;

use crate::blocks::{BLOCK_BYTES, Block, Blocks, LANES};
use crate::error::Error;
use crate::filter::BloomFilter;
use crate::footer::{self, StandaloneFooter};
use crate::hash::Seed;
use crate::kernel::{self, Kernel};
use crate::key::Key;
use crate::kind::StandaloneKind;
use crate::mask::{ProbeCount, block_index};
use crate::sizing::Sizing;
use crate::standalone;

/// A [`BloomFilter`] that supports removal. For each bit, a counter of four bits counts the keys that set it.
///
/// Lookups read a plain filter that is kept beside the counters, so they cost as much as in a [`BloomFilter`] and have
/// the same answers. [`as_filter`](Self::as_filter) borrows it. You pay with five times the memory, 50 bits per key at
/// 1%, and in updates. Each insert and remove touches four cache lines of counters and one of bits, and is about ten
/// times slower than a plain insert. Use it where keys come and go and the filter cannot be rebuilt. Where it can, as
/// in an SSTable's compaction, rebuilding a plain filter is smaller and faster.
///
/// Two rules, and what happens if you break them:
///
/// - *Remove only keys that were inserted, and as often as they were inserted.* Then no remaining key is ever lost, and
///   the bits equal a filter of the remaining keys, except where counters are saturated. Removing a key that was never
///   inserted changes nothing, except with probability [`estimated_fpr`](BloomFilter::estimated_fpr). Such a false
///   positive decrements the counters of other keys. At 10 bits per key about four of them are lost, which means
///   reported as "definitely absent".
/// - *Counters saturate at 15.* How many more keys a saturated counter has seen is unknown, so it is never decremented,
///   and its bit stays set until [`clear`](Self::clear). No key is lost, but some more false positives remain.
///   Inserting the same key 15 times saturates its counters. Distinct keys almost never do, because their number in a
///   counter is Poisson with mean k divided by the bits per key, and at 1% one counter in 4·10^15 gets that far. Four
///   bits are therefore enough, as Fan, Cao, Almeida and Broder found, who introduced counting filters ("Summary
///   cache", 2000).
///
/// The counters are specified in `docs/format.md`, section 8.
///
/// # Examples
///
/// ```
/// use bloomline::variants::CountingBloomFilter;
///
/// let mut open = CountingBloomFilter::with_fpr(1_000, 0.01)?;
/// open.insert("session 17");
/// open.insert("session 18");
/// assert!(open.remove("session 17"));
/// assert!(!open.contains("session 17") && open.contains("session 18"));
/// assert!(!open.remove("session 17"), "definitely absent, so nothing changed");
/// # Ok::<(), bloomline::Error>(())
/// ```
#[derive(Clone)]
pub struct CountingBloomFilter {
    /// A bit is set if and only if its counter is not zero.
    filter: BloomFilter,
    /// [`COUNTER_BLOCKS`] for each block of the filter.
    counters: Blocks,
}

/// Blocks of counters per block of bits.
const COUNTER_BLOCKS: usize = 4;

/// The counters of a block, two to a byte. Counter c counts bit `c % 64` of lane `c / 64`. It is in byte `c / 2`, in
/// the low half if c is even.
type Counters = [u8; COUNTER_BLOCKS * BLOCK_BYTES];

/// A counter that reaches this value stays there.
const SATURATED: u8 = 15;

fn counter(counters: &Counters, at: usize) -> u8 {
    (counters[at / 2] >> (4 * (at % 2))) & SATURATED
}

#[inline]
fn count_up(counters: &mut Counters, at: usize) {
    let one = u8::from(counter(counters, at) != SATURATED);
    counters[at / 2] += one << (4 * (at % 2));
}

/// Decrements a counter that is above zero. Returns whether it is now zero.
#[inline]
fn count_down(counters: &mut Counters, at: usize) -> bool {
    let count = counter(counters, at);
    counters[at / 2] -= u8::from(count != SATURATED) << (4 * (at % 2));
    count == 1
}

/// Calls `with` for each bit of [`mask`](crate::mask::mask), with the index of its counter.
#[inline(always)]
fn for_each_bit(hash: u64, k: ProbeCount, mut with: impl FnMut(usize)) {
    kernel::for_each_probe(hash, k, |bit, is_repeated| {
        if !is_repeated {
            with(bit);
        }
    });
}

impl CountingBloomFilter {
    /// An empty filter with a false-positive rate of at most `fpr`, while it holds no more than `expected_keys`
    /// distinct keys. It has the size of [`BloomFilter::with_fpr`] in one module, and four times as much memory for the
    /// counters.
    ///
    /// # Errors
    ///
    /// If `fpr` is not between 1.263e-8 and 1, or memory for bits and counters cannot be allocated.
    pub fn with_fpr(expected_keys: u64, fpr: f64) -> Result<Self, Error> {
        Self::with_sizing(Sizing::for_fpr_within(expected_keys, fpr, 1)?.rounded_to_fold())
    }

    /// An empty filter of this size, computed from bits per key or given as a number of blocks and k. The counters need
    /// four times as much memory on top.
    ///
    /// # Errors
    ///
    /// If the size has several modules, or memory for bits and counters cannot be allocated.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::Sizing;
    /// use bloomline::variants::CountingBloomFilter;
    ///
    /// let filter = CountingBloomFilter::with_sizing(Sizing::for_bits_per_key_within(1_000, 10.0, 1)?)?;
    /// assert_eq!((filter.as_filter().byte_len(), filter.byte_len()), (1_280, 6_400));
    /// # Ok::<(), bloomline::Error>(())
    /// ```
    pub fn with_sizing(sizing: Sizing) -> Result<Self, Error> {
        if sizing.n_modules() != 1 {
            let text = "a counting filter has one module, not {}: compute the size for at most one module";
            return Err(Error::argument(text, [sizing.n_modules() as u64]));
        }
        let counters = Blocks::zeroed(sizing.n_blocks().saturating_mul(COUNTER_BLOCKS))?;
        Ok(Self { filter: BloomFilter::with_sizing(sizing)?, counters })
    }

    /// Sets the seed that keys are hashed with, 0 by default. Filters with different seeds place keys differently, so
    /// they rarely have a false positive in common, unless an attacker chose the key.
    ///
    /// # Errors
    ///
    /// If keys have been inserted since the filter was created or cleared, even if they
    /// have been removed again.
    pub fn with_seed(self, seed: u64) -> Result<Self, Error> {
        Ok(Self { filter: self.filter.with_seed(seed)?, ..self })
    }

    /// Uses a given kernel, for tests and benchmarks. Bits and counters stay the same.
    #[doc(hidden)]
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self { filter: self.filter.with_kernel(kernel), ..self }
    }

    /// Hashes `key` under the filter's seed, for the `*_hash` methods.
    #[inline]
    #[must_use]
    pub fn hash_key(&self, key: impl Key) -> u64 {
        self.filter.hash_key(key)
    }

    /// Inserts `key`, once more if it is present already. Returns whether a bit changed. If not,
    /// [`contains`](Self::contains) was already `true`.
    ///
    /// Reads and writes one cache line of bits and up to four of counters. Does not allocate.
    #[doc(alias("add", "put"))]
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> bool {
        self.insert_hash(self.hash_key(key))
    }

    /// [`insert`](Self::insert) by hash, from [`hash_key`](Self::hash_key) or any other 64 well-mixed bits.
    pub fn insert_hash(&mut self, hash: u64) -> bool {
        self.raise_counters(hash);
        self.filter.insert_hash(hash)
    }

    /// Inserts many keys by hash. Faster than single inserts where the counters are larger than the caches.
    pub fn insert_batch(&mut self, hashes: &[u64]) {
        self.filter.insert_batch(hashes);
        self.raise_all(hashes);
    }

    /// [`insert_batch`](Self::insert_batch) that reports which keys were new, as
    /// [`BloomFilter::insert_batch_new`](crate::BloomFilter::insert_batch_new) does.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn insert_batch_new(&mut self, hashes: &[u64], new: &mut [bool]) {
        self.filter.insert_batch_new(hashes, new);
        self.raise_all(hashes);
    }

    fn raise_all(&mut self, hashes: &[u64]) {
        // A key has four lines of counters. Prefetched as far ahead as the plain filter's, they would evict each other
        // from the L1 cache.
        for (hash, later) in kernel::with_later(hashes) {
            if let Some(later) = later {
                let (lines, _) = self.counters_of(later).as_chunks();
                lines.iter().for_each(|line| kernel::prefetch::<false>(line));
            }
            self.raise_counters(hash);
        }
    }

    #[inline]
    fn raise_counters(&mut self, hash: u64) {
        let (k, counters) = (self.filter.k, self.counters_of_mut(hash));
        for_each_bit(hash, k, |at| count_up(counters, at));
    }

    /// Removes `key` once. Returns whether it was possibly present. `false` means definitely absent, and nothing is
    /// changed then.
    ///
    /// Do not remove a key that was never inserted, or that was removed as often as it was inserted. See [what happens
    /// otherwise](Self). Costs as much as an insert.
    #[inline]
    pub fn remove(&mut self, key: impl Key) -> bool {
        self.remove_hash(self.hash_key(key))
    }

    /// [`remove`](Self::remove) by hash.
    pub fn remove_hash(&mut self, hash: u64) -> bool {
        if !self.contains_hash(hash) {
            return false;
        }
        let (k, counters) = (self.filter.k, self.counters_of_mut(hash));
        let mut unused = [0; LANES];
        for_each_bit(hash, k, |at| unused[at / 64] |= u64::from(count_down(counters, at)) << (at % 64));
        self.filter.clear_bits(hash, unused);
        true
    }

    /// How often `key` is in the filter, the true count or more, never less, but at most 15. 0 means definitely absent,
    /// and is returned exactly when [`contains`](Self::contains) returns `false`.
    ///
    /// The result is the least of the key's counters, as in a count-min sketch (Cormode and Muthukrishnan, 2005). Other
    /// keys can make it too high, but not too low. For a key never inserted it is 0, except with probability
    /// [`estimated_fpr`](BloomFilter::estimated_fpr).
    #[inline]
    #[must_use]
    pub fn count(&self, key: impl Key) -> u32 {
        self.count_hash(self.hash_key(key))
    }

    /// [`count`](Self::count) by hash.
    #[must_use]
    pub fn count_hash(&self, hash: u64) -> u32 {
        let counters = self.counters_of(hash);
        let mut least = SATURATED;
        for_each_bit(hash, self.filter.k, |at| least = least.min(counter(counters, at)));
        least.into()
    }

    /// Returns whether `key` is possibly present. `false` means definitely absent.
    ///
    /// For a key never inserted, returns `true` with probability [`estimated_fpr`](BloomFilter::estimated_fpr). Hashes
    /// the key and reads one cache line. Does not allocate.
    #[doc(alias("might_contain", "may_contain"))]
    #[inline]
    #[must_use]
    pub fn contains(&self, key: impl Key) -> bool {
        self.filter.contains(key)
    }

    /// [`contains`](Self::contains) by hash.
    // Inlined for the same reason as `BloomFilter::insert_hash`.
    #[inline(always)]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.filter.contains_hash(hash)
    }

    /// Borrows the bits as a plain filter, for its size, k and seed, for estimates, for lookups in batches or by other
    /// code, and to write bytes of a fifth of the size where keys need not be removed any more.
    #[inline]
    pub fn as_filter(&self) -> &BloomFilter {
        &self.filter
    }

    /// Removes all keys and resets saturated counters. Size, k and seed stay.
    pub fn clear(&mut self) {
        self.filter.clear();
        self.counters.as_mut_slice().fill([0; BLOCK_BYTES]);
    }

    /// Number of counters that have reached 15 and stay there, so their bits are no longer cleared. With many of them
    /// the false-positive rate keeps rising, so clear or rebuild the filter. Reads all counters.
    #[must_use]
    pub fn saturated_counters(&self) -> u64 {
        let halves = self.counters().as_flattened().iter().flat_map(|byte| [byte % 16, byte / 16]);
        halves.map(|count| u64::from(count == SATURATED)).sum()
    }

    /// Bytes of memory of bits and counters.
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.filter.byte_len() + size_of_val(self.counters())
    }

    #[inline]
    fn counters(&self) -> &[Counters] {
        self.counters.as_slice().as_slice().as_flattened().as_chunks().0
    }

    #[inline]
    fn counters_of(&self, hash: u64) -> &Counters {
        &self.counters()[block_index(hash, self.filter.n_blocks())]
    }

    #[inline]
    fn counters_of_mut(&mut self, hash: u64) -> &mut Counters {
        let index = block_index(hash, self.filter.n_blocks());
        let (counters, _) = self.counters.as_mut_slice().as_flattened_mut().as_chunks_mut();
        &mut counters[index]
    }

    /// Length of the standalone bytes, which are the counters, 256 bytes per block, and a footer of 64 bytes with
    /// version, size, k, seed and checksums. The bits follow from the counters.
    pub fn standalone_len(&self) -> usize {
        size_of_val(self.counters()) + StandaloneFooter::LEN
    }

    standalone::standalone_io!();

    fn encode<E>(&self, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let counters = self.counters().as_flattened();
        let (n_blocks, keys) = (self.filter.n_blocks() as u64, self.filter.known_keys());
        let (k, seed, checksum) = (self.filter.k(), self.filter.seed(), footer::checksum(counters));
        let footer = StandaloneFooter::new(StandaloneKind::Counting, n_blocks, k, seed, keys, checksum);
        write(counters)?;
        write(&footer.to_bytes())
    }

    /// Reads a filter from the standalone bytes of [`to_standalone`](Self::to_standalone). Compares both checksums,
    /// then allocates a quarter more memory than the bytes.
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of a different version, if their keys were hashed by a different function
    /// than this build's, or if memory cannot be allocated.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::variants::CountingBloomFilter;
    ///
    /// let mut filter = CountingBloomFilter::with_fpr(1_000, 0.01)?;
    /// filter.insert("user4291");
    /// let mut copy = CountingBloomFilter::from_standalone(&filter.to_standalone())?;
    /// assert!(copy.remove("user4291"));
    /// assert_eq!((filter.count("user4291"), copy.count("user4291")), (1, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_standalone(bytes: &[u8]) -> Result<Self, Error> {
        let (body, footer) = footer::split_filter(bytes, StandaloneKind::Counting)?;
        let k = footer.probe_count(ProbeCount::new)?;
        footer.check_size(body)?;
        footer::verify(body, footer.body_checksum)?;
        let counters = Blocks::try_from_bytes(body)?;
        let mut blocks = Blocks::zeroed(counters.len() / COUNTER_BLOCKS)?;
        for (block, counters) in blocks.as_mut_slice().iter_mut().zip(body.as_chunks().0) {
            *block = bits(counters);
        }
        let keys = counters.known_keys(footer.known_keys);
        let (kernel, seed) = (Kernel::active(), Seed::new(footer.seed));
        let filter = BloomFilter::new(blocks, k, kernel, seed, keys);
        Ok(Self { filter, counters })
    }
}

/// The bits of a block. A bit is set if its counter is not zero.
fn bits(counters: &Counters) -> Block {
    let (of_bytes, _) = counters.as_chunks::<4>();
    core::array::from_fn(|byte| {
        let halves = of_bytes[byte].into_iter().flat_map(|pair| [pair % 16, pair / 16]);
        halves.zip(0..).fold(0, |bits, (count, bit)| bits | u8::from(count != 0) << bit)
    })
}

/// Keeps the bits alone, in the same memory, as a filter from which keys cannot be removed.
impl From<CountingBloomFilter> for BloomFilter {
    fn from(counting: CountingBloomFilter) -> Self {
        counting.filter
    }
}

/// Equal filters return the same answers, now and after the same inserts and removes.
impl PartialEq for CountingBloomFilter {
    fn eq(&self, other: &Self) -> bool {
        self.filter == other.filter && self.counters() == other.counters()
    }
}

impl Eq for CountingBloomFilter {}

impl<K: Key> Extend<K> for CountingBloomFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| _ = self.insert(key));
    }
}

impl fmt::Debug for CountingBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counting")?;
        self.filter.fmt(f)
    }
}
