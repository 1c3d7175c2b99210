//! `CountingBloomFilter`: keys can be taken out.
#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::fmt;

use crate::blocks::{BLOCK_BYTES, Block, BlockSlice, Blocks, LANES};
use crate::encoding::{self, StandaloneFooter, StandaloneKind};
use crate::error::{DecodeError, HashChanged, SizingError};
use crate::filter::BloomFilter;
use crate::hash::Seed;
use crate::kernel::{self, Kernel};
use crate::mask::{ProbeCount, block_index, words};

/// A [`BloomFilter`] from which keys can be taken out: it counts, in four bits for each bit, the keys that set it.
///
/// Lookups read a plain filter that is kept beside the counters, so they cost and answer what [`BloomFilter`]'s do,
/// and [`as_filter`](Self::as_filter) lends it. The price is memory and changes: five times the memory, 50 bits per
/// key at 1 %, and four cache lines of counters beside the one of bits for each insert and remove, which take about
/// ten times as long as a plain insert. Take it where keys come and go and a filter cannot be built anew; where it
/// can, as in an SSTable's compaction, that is smaller and faster.
///
/// What a caller must keep to, and what happens otherwise:
///
/// - *Remove what was inserted, as often as it was inserted.* Then no key that remains is ever lost, and the bits are
///   those of a filter of the remaining keys, but for counters at their end. A key that was never inserted is refused
///   where that can be seen, which is all but a share of [`estimated_fpr`](BloomFilter::estimated_fpr) of them. Such
///   a false positive takes one off the counters of other keys, about four of which are then lost at 10 bits per key:
///   answered "certainly not in".
/// - *Counters end at 15, and stay there.* How many more keys one has seen is not known, so it never counts down
///   again, and its bit stays set until [`clear`](Self::clear): no key is lost, some more false positives remain. The
///   same key 15 times over does that; distinct keys next to never, for a counter of them is Poisson, its mean k
///   divided by the bits per key: at 1 % one counter in 4·10^15 gets so far. Four bits are thus enough, as Fan, Cao,
///   Almeida and Broder found, who had the idea ("Summary cache", 2000).
///
/// The counters are those of `docs/format.md`, section 8.
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
/// assert!(!open.remove("session 17"), "certainly not in, so nothing was changed");
/// # Ok::<(), bloomline::SizingError>(())
/// ```
#[derive(Clone)]
pub struct CountingBloomFilter {
    /// A bit is set where its counter is not zero, and nowhere else.
    filter: BloomFilter,
    /// For each block of the filter, [`COUNTER_BLOCKS`].
    counters: Blocks,
}

/// Blocks of counters for each block of bits.
const COUNTER_BLOCKS: usize = 4;

/// The counters of a block, two to a byte: counter c is that of bit `c % 64` of lane `c / 64`, and lies in byte
/// `c / 2`, in the low half if c is even.
type Counters = [u8; COUNTER_BLOCKS * BLOCK_BYTES];

/// A counter that is this high stays so.
const SATURATED: u8 = 15;

fn counter(counters: &Counters, at: usize) -> u8 {
    (counters[at / 2] >> (4 * (at % 2))) & SATURATED
}

#[inline]
fn count_up(counters: &mut Counters, at: usize) {
    let one = u8::from(counter(counters, at) != SATURATED);
    counters[at / 2] += one << (4 * (at % 2));
}

/// Counts down what is above zero; whether it has become zero.
#[inline]
fn count_down(counters: &mut Counters, at: usize) -> bool {
    let count = counter(counters, at);
    counters[at / 2] -= u8::from(count != SATURATED) << (4 * (at % 2));
    count == 1
}

/// Calls `with` for each bit of [`mask`](crate::mask::mask), by the number of its counter.
// Tried: a walk over the set bits of the mask's lanes. An insert then takes 26 ns in place of 13, for which lanes
// have none is anyone's guess (16 KiB, k = 6; Zen 5, 2026-11).
#[inline(always)]
fn for_each_bit(hash: u64, k: u32, mut with: impl FnMut(usize)) {
    let (first, second) = words(hash);
    let rotation = first >> 61;
    // Of six bits each, from the lane of the first probe on, in a circle.
    let in_lanes = |word: u64| {
        let bits = (word >> 13) & ((1 << 48) - 1);
        (bits >> (6 * rotation)) | (bits << (48 - 6 * rotation))
    };
    let (mut first, mut second) = (in_lanes(first), in_lanes(second));
    let mut difference = first ^ second;
    let counter =
        |probe: u32, bit: u64| (rotation as usize + probe as usize) % LANES * 64 + bit as usize % 64;
    for probe in 0..k.min(8) {
        with(counter(probe, first));
        first >>= 6;
    }
    for probe in 8..k {
        // The two probes of a lane may be the same bit.
        if difference % 64 != 0 {
            with(counter(probe, second));
        }
        second >>= 6;
        difference >>= 6;
    }
}

impl CountingBloomFilter {
    /// An empty filter that answers "may be in" for at most a share `fpr` of missing keys, while it holds no more
    /// than `expected_keys` distinct keys. [`Sizing::for_fpr`](crate::Sizing::for_fpr) says how many blocks that
    /// takes.
    ///
    /// # Errors
    ///
    /// If `fpr` is not between [`MIN_FPR`](crate::sizing::MIN_FPR) and 1, or memory for bits and counters cannot be
    /// had.
    pub fn with_fpr(expected_keys: usize, fpr: f64) -> Result<Self, SizingError> {
        Self::with_counters(BloomFilter::with_fpr(expected_keys, fpr)?)
    }

    /// An empty filter with `bits_per_key` for each of `expected_keys` distinct keys, as
    /// [`BloomFilter::with_bits_per_key`] has them. The counters take four times as many on top.
    ///
    /// # Errors
    ///
    /// If `bits_per_key` is not above 0 and at most [`MAX_BITS_PER_KEY`](crate::sizing::MAX_BITS_PER_KEY), or memory
    /// for bits and counters cannot be had.
    pub fn with_bits_per_key(expected_keys: usize, bits_per_key: f64) -> Result<Self, SizingError> {
        Self::with_counters(BloomFilter::with_bits_per_key(expected_keys, bits_per_key)?)
    }

    /// An empty filter of `n_blocks` blocks of 64 bytes and 256 bytes of counters for each, with `k` probes per key,
    /// 1 to 16.
    ///
    /// # Errors
    ///
    /// If `n_blocks` or `k` is out of range, or memory for bits and counters cannot be had.
    pub fn with_blocks(n_blocks: usize, k: u32) -> Result<Self, SizingError> {
        Self::with_counters(BloomFilter::with_blocks(n_blocks, k)?)
    }

    fn with_counters(filter: BloomFilter) -> Result<Self, SizingError> {
        let counters = Blocks::zeroed(COUNTER_BLOCKS * filter.n_blocks()).map_err(|error| match error {
            // In blocks of the filter, as they were asked for.
            SizingError::Blocks { n_blocks, most } => SizingError::Blocks {
                n_blocks: n_blocks / COUNTER_BLOCKS as u64,
                most: most / COUNTER_BLOCKS as u64,
            },
            other => other,
        })?;
        Ok(Self { counters, filter })
    }

    /// The filter with another seed than 0: keys are then placed differently, so that what one filter takes for
    /// present another does not.
    ///
    /// # Panics
    ///
    /// If keys have been inserted since the filter was made or cleared, also if they have been removed again.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { filter: self.filter.with_seed(seed), ..self }
    }

    /// The filter with another kernel than the fastest: for tests and benchmarks. Bits and counters stay the same.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self { filter: self.filter.with_kernel(kernel), ..self }
    }

    /// Adds `key`, once more if it is in already; whether that changed a bit. If not, [`contains`](Self::contains)
    /// was `true` already.
    ///
    /// Reads and writes one cache line of bits and up to four of counters; does not allocate.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> bool {
        self.insert_hash(self.filter.hash(key.as_ref()))
    }

    /// [`insert`](Self::insert) by hash, that of [`hash_key`](crate::hash_key) or another of 64 well-mixed bits.
    pub fn insert_hash(&mut self, hash: u64) -> bool {
        self.raise_counters(hash);
        self.filter.insert_hash(hash)
    }

    /// Adds many keys by hash: faster than one by one where the counters are larger than the caches.
    pub fn insert_batch(&mut self, hashes: &[u64]) {
        // Lines on their way are four times as many as in a plain filter: at 64 keys ahead, for 1 MiB of bits, they push
        // each other out of the first cache.
        self.filter.insert_batch(hashes);
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&later) = hashes.get(i + kernel::AHEAD) {
                let (lines, _) = self.counters_of(later).as_chunks();
                lines.iter().for_each(|line| kernel::prefetch(line));
            }
            self.raise_counters(hash);
        }
    }

    #[inline]
    fn raise_counters(&mut self, hash: u64) {
        let (k, counters) = (self.k(), self.counters_of_mut(hash));
        for_each_bit(hash, k, |at| count_up(counters, at));
    }

    /// Takes out `key`, once: whether it may have been in, and is in once less. `false` is certain, and then nothing
    /// is changed.
    ///
    /// Of a key that was never inserted, or removed as often, this must not be asked: see
    /// [what happens otherwise](Self). Costs what an insert costs.
    #[inline]
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> bool {
        self.remove_hash(self.filter.hash(key.as_ref()))
    }

    /// [`remove`](Self::remove) by hash.
    pub fn remove_hash(&mut self, hash: u64) -> bool {
        if !self.contains_hash(hash) {
            return false;
        }
        let (k, counters) = (self.k(), self.counters_of_mut(hash));
        let mut unused = [0; LANES];
        for_each_bit(hash, k, |at| unused[at / 64] |= u64::from(count_down(counters, at)) << (at % 64));
        self.filter.clear_bits(hash, unused);
        true
    }

    /// How often `key` may have been inserted and not been removed: at least as often as it was, or 15 for 15 times
    /// and more. 0 is certain, and is where [`contains`](Self::contains) is `false`.
    ///
    /// It is the least of the key's counters, as in a count-min sketch (Cormode and Muthukrishnan, 2005): other keys can
    /// make it higher than the truth, but not lower. For a key never inserted it is 0, but for a share of
    /// [`estimated_fpr`](BloomFilter::estimated_fpr).
    #[inline]
    pub fn count(&self, key: impl AsRef<[u8]>) -> u32 {
        self.count_hash(self.filter.hash(key.as_ref()))
    }

    /// [`count`](Self::count) by hash.
    pub fn count_hash(&self, hash: u64) -> u32 {
        let counters = self.counters_of(hash);
        let mut least = SATURATED;
        for_each_bit(hash, self.k(), |at| least = least.min(counter(counters, at)));
        least.into()
    }

    /// Whether `key` may be in: `false` is certain.
    ///
    /// For a key never inserted the answer is `true` with probability [`estimated_fpr`](BloomFilter::estimated_fpr).
    /// Hashes the key and reads one cache line; does not allocate.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.filter.contains(key)
    }

    /// [`contains`](Self::contains) by hash.
    // As for `BloomFilter::contains_hash`.
    #[inline(always)]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.filter.contains_hash(hash)
    }

    /// Looks up many keys by hash: `found[i]` becomes whether the key of `hashes[i]` may be in. Faster than one by
    /// one from about eight keys on.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
        self.filter.contains_batch(hashes, found);
    }

    /// The bits as a plain filter: for estimates, for lookups by other code, and to write bytes of a fifth of the
    /// size where keys need not be taken out any more.
    #[inline]
    pub fn as_filter(&self) -> &BloomFilter {
        &self.filter
    }

    /// Takes out all keys; size, k and seed stay. Saturated counters start anew as well.
    pub fn clear(&mut self) {
        self.filter.clear();
        self.counters.as_mut_slice().fill([0; BLOCK_BYTES]);
    }

    /// Counters that have come to 15, and stay there: their bits are not cleared any more. Where they are many, the
    /// filter takes more and more missing keys for present, and should be cleared or built anew. Reads all counters.
    pub fn saturated_counters(&self) -> u64 {
        let halves =
            self.counters.as_slice().as_slice().as_flattened().iter().flat_map(|byte| [byte % 16, byte / 16]);
        halves.map(|count| u64::from(count == SATURATED)).sum()
    }

    /// Probes per key, 1 to 16.
    #[inline]
    pub fn k(&self) -> u32 {
        self.filter.k()
    }

    /// Blocks of 64 bytes, for each of which there are 256 bytes of counters.
    #[inline]
    pub fn n_blocks(&self) -> usize {
        self.filter.n_blocks()
    }

    /// Bytes that bits and counters take in memory.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        self.filter.size_bytes() + size_of_val(self.counters.as_slice().as_slice())
    }

    /// What keys are hashed with, 0 unless [`with_seed`](Self::with_seed) set it.
    #[inline]
    pub fn seed(&self) -> u64 {
        self.filter.seed()
    }

    #[inline]
    fn counters_of(&self, hash: u64) -> &Counters {
        let (counters, _) = self.counters.as_slice().as_slice().as_flattened().as_chunks();
        &counters[block_index(hash, self.n_blocks())]
    }

    #[inline]
    fn counters_of_mut(&mut self, hash: u64) -> &mut Counters {
        let index = block_index(hash, self.n_blocks());
        let (counters, _) = self.counters.as_mut_slice().as_flattened_mut().as_chunks_mut();
        &mut counters[index]
    }

    /// Appends the filter's standalone bytes: its counters, 256 bytes for each block, and a footer of 64 bytes with
    /// version, size, k, seed and checksums. The bits follow from the counters.
    ///
    /// # Errors
    ///
    /// If the build's `wyhash` crate has changed its output: where another build reads them, the bytes would lie.
    /// Nothing is appended then.
    pub fn write_standalone(&self, out: &mut Vec<u8>) -> Result<(), HashChanged> {
        let counters = self.counters.as_slice().as_slice().as_flattened();
        let (n_blocks, keys) = (self.n_blocks() as u64, self.filter.known_keys());
        let footer =
            StandaloneFooter::new(StandaloneKind::Counting, n_blocks, self.k(), self.seed(), keys, counters);
        encoding::write_filter(out, counters, footer)
    }

    /// The bytes of [`write_standalone`](Self::write_standalone).
    ///
    /// # Panics
    ///
    /// Where that is an error.
    pub fn to_standalone(&self) -> Vec<u8> {
        encoding::bytes_or_panic(|bytes| self.write_standalone(bytes))
    }

    /// The filter of standalone bytes: those of [`to_standalone`](Self::to_standalone). Both checksums are compared,
    /// and memory is taken after that: a quarter more than the bytes.
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of a newer version, or their keys were hashed by another function than
    /// this build's.
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
    pub fn from_standalone(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (body, footer) = encoding::split_filter(bytes, StandaloneKind::Counting)?;
        let k = footer.probe_count(ProbeCount::new)?;
        footer.check_size(footer.size.checked_mul(size_of::<Counters>() as u64), body)?;
        footer.verify(body)?;
        let (counters, _) = body.as_chunks();
        let counters = BlockSlice::new(counters).ok_or(footer.wrong_size(body))?;
        let (groups, _) = body.as_chunks();
        let mut blocks = Blocks::zeroed_or_abort(groups.len());
        for (block, counters) in blocks.as_mut_slice().iter_mut().zip(groups) {
            *block = bits(counters);
        }
        // Without keys a filter may be given another seed, so forged bytes must not say so.
        let keys = footer.known_keys.filter(|&keys| keys != 0 || counters.is_zero());
        let filter = BloomFilter::from_parts(blocks, k, Kernel::active(), Seed::new(footer.seed), keys);
        Ok(Self { filter, counters: Blocks::from_slice(counters) })
    }
}

/// The bits whose counters are not zero.
fn bits(counters: &Counters) -> Block {
    let (of_bytes, _) = counters.as_chunks::<4>();
    core::array::from_fn(|byte| {
        let halves = of_bytes[byte].into_iter().flat_map(|pair| [pair % 16, pair / 16]);
        halves.zip(0..).fold(0, |bits, (count, bit)| bits | u8::from(count != 0) << bit)
    })
}

/// The bits alone, in the same memory: a filter from which keys cannot be taken out.
impl From<CountingBloomFilter> for BloomFilter {
    fn from(counting: CountingBloomFilter) -> Self {
        counting.filter
    }
}

/// Whether the filters answer alike, and will after the same inserts and removes: same blocks, counters, k and seed.
impl PartialEq for CountingBloomFilter {
    fn eq(&self, other: &Self) -> bool {
        self.k() == other.k()
            && self.seed() == other.seed()
            && self.counters.as_slice().as_slice() == other.counters.as_slice().as_slice()
    }
}

impl Eq for CountingBloomFilter {}

impl<K: AsRef<[u8]>> Extend<K> for CountingBloomFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            self.insert(key);
        }
    }
}

impl fmt::Debug for CountingBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountingBloomFilter")
            .field("n_blocks", &self.n_blocks())
            .field("k", &self.k())
            .field("seed", &self.seed())
            .field("kernel", &self.filter.kernel())
            .field("fill_ratio", &self.filter.fill_ratio())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;
    use crate::mask::mask;

    #[test]
    fn the_walk_meets_each_bit_of_the_mask_once() {
        // In one of 64 hashes and more, two probes of a lane are the same bit.
        for hash in (0..2_000).map(mix).chain([0, 1, u64::MAX]) {
            for k in 1..=16 {
                let mut lanes = [0; LANES];
                for_each_bit(hash, k, |at| {
                    assert_eq!(lanes[at / 64] & 1 << (at % 64), 0, "{hash:#x}, k {k}: bit {at} twice");
                    lanes[at / 64] |= 1 << (at % 64);
                });
                assert_eq!(lanes, mask(hash, ProbeCount::new(k).unwrap()), "{hash:#x}, k {k}");
            }
        }
    }
}
