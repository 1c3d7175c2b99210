//! `StandardBloomFilter`: probes anywhere among m bits.

use alloc::vec::Vec;
use core::{array, fmt};

use crate::bitmap;
use crate::blocks::{BLOCK_BYTES, Blocks};
use crate::error::Error;
use crate::estimate::{self, KeyEstimate};
use crate::extend::{are_many, in_batches};
use crate::footer::{self, StandaloneFooter};
use crate::hash::Seed;
use crate::kernel;
use crate::key::Key;
use crate::kind::StandaloneKind;
use crate::lanes::LANE_BYTES;
use crate::mask::below;
use crate::math::{minus_ln_of_one_less, power};
use crate::sizing::standard::StandardSizing;
use crate::standalone;
use crate::view::{check_placing, check_same};

/// Bloom's filter of 1970, with k probes per key, anywhere among m bits.
///
/// It needs the fewest bits of all Bloom filters, 9.59 per key for 1%, 14.38 for 0.1%, 19.17 for 0.01%. But it is here
/// for completeness, because a [`BloomFilter`](crate::BloomFilter) of [modules](crate::sizing#modules) needs only 1 to 2% more,
/// 9.71, 14.66 and 19.54, and is faster. Use a standard filter only if 1 to 2% of the bits count, as in a filter that
/// is sent over a network.
///
/// A lookup of a present key reads k places, each a cache miss once the filter is larger than the caches. A lookup of
/// an absent key stops at the first clear bit, after 2 reads on average if the filter is half full. An insert writes k
/// places.
///
/// Keys cannot be removed. Clearing the bits of one key would clear bits that it shares with other keys, which would
/// then be reported as "definitely absent". [`CountingBloomFilter`](crate::variants::CountingBloomFilter) counts how
/// many keys set each bit and supports removal, at five times the memory. A standard filter cannot be folded either,
/// because its size is any number of bits, so two sizes are rarely multiples of each other.
///
/// The probes are specified in `docs/format.md`, section 7. The key's 64-bit hash gives two words, and probe i is
/// h1 + i·h2 (Kirsch and Mitzenmacher, "Less hashing, same performance", 2006), with a third term, a multiple of
/// (i³ − i)/6 (Dillinger and Manolios, "Bloom filters in probabilistic verification", 2004). The third term costs 0.7
/// of the 4.0 ns of an insert (k = 7, 16 KiB, Zen 5), but without it a small filter would miss a low rate. All
/// arithmetic is in 64 bits, so the false-positive rate holds for billions of keys.
///
/// # Examples
///
/// ```
/// use bloomline::variants::StandardBloomFilter;
///
/// let mut seen = StandardBloomFilter::with_fpr(1_000, 0.0001)?;
/// assert_eq!((seen.bit_len(), seen.k()), (19_179, 13));
/// seen.insert("https://example.org/");
/// assert!(seen.contains("https://example.org/"));
/// assert!(!seen.contains("https://example.org/other"));
/// # Ok::<(), bloomline::Error>(())
/// ```
#[derive(Clone)]
pub struct StandardBloomFilter {
    /// The bits of the filter, then zeros to the end of the last block.
    blocks: Blocks,
    sizing: StandardSizing,
    seed: Seed,
    /// As in [`BloomFilter`](crate::BloomFilter).
    keys: Option<u64>,
}

/// h2 is the hash times this, 2^64 · (√2 − 1). It is even, so 1 + i times it is odd, and each single probe is a
/// permutation of the hashes, as uniform as they are.
const SECOND: u64 = 0x6A09_E667_F3BC_C908;
/// The growth of the steps between probes, 2^64 ÷ the golden ratio, made odd.
const THIRD: u64 = 0x9E37_79B9_7F4A_7C15;

const BLOCK_BITS: u64 = 8 * BLOCK_BYTES as u64;

/// The most keys whose probes are tested in turns.
const BATCH: usize = 256;
/// The fewest keys for which that is faster than one lookup after the other.
const MANY: usize = 32;

/// The words of a hash, of which each places a probe.
// Tried: h1 + i·h2 alone. If h2 is almost 0, all probes hit one bit. That is the case, or nearly, for 1.5 keys in m,
// which is a large part of all false positives in a small filter of a low rate.
#[inline]
fn words(hash: u64, k: u32) -> impl Iterator<Item = u64> {
    let (mut word, mut step, mut growth) = (hash, hash.wrapping_mul(SECOND), THIRD);
    (0..k).map(move |_| {
        let this = word;
        word = word.wrapping_add(step);
        step = step.wrapping_add(growth);
        growth = growth.wrapping_add(THIRD);
        this
    })
}

/// The bits of a hash, below `size_bits`.
#[inline]
fn probes(hash: u64, size_bits: u64, k: u32) -> impl Iterator<Item = u64> {
    words(hash, k).map(move |word| below(size_bits, word))
}

/// The lane of a bit, and its mask in that lane. Lanes need an instruction less for each probe than bytes, which an
/// insert shows.
#[inline]
fn place(bit: u64) -> (usize, u64) {
    ((bit / 64) as usize, 1 << (bit % 64))
}

#[inline]
fn is_set(lanes: &[[u8; LANE_BYTES]], bit: u64) -> bool {
    let (lane, mask) = place(bit);
    u64::from_le_bytes(lanes[lane]) & mask != 0
}

impl StandardBloomFilter {
    /// An empty filter with a false-positive rate of at most `fpr` once it holds `expected_keys` distinct keys.
    /// [`StandardSizing::for_fpr`] returns the size.
    ///
    /// # Errors
    ///
    /// If `fpr` is not between [`MIN_FPR`](crate::sizing::standard::MIN_FPR) and 1, or memory for the filter cannot be
    /// allocated.
    pub fn with_fpr(expected_keys: u64, fpr: f64) -> Result<Self, Error> {
        Self::with_sizing(StandardSizing::for_fpr(expected_keys, fpr)?)
    }

    /// An empty filter of this size, computed from bits per key or given as a number of bits and k.
    ///
    /// # Errors
    ///
    /// If memory for the filter cannot be allocated.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::sizing::standard::StandardSizing;
    /// use bloomline::variants::StandardBloomFilter;
    ///
    /// let filter = StandardBloomFilter::with_sizing(StandardSizing::for_bits_per_key(1_000, 10.0)?)?;
    /// assert_eq!((filter.bit_len(), filter.k()), (10_000, 7));
    /// # Ok::<(), bloomline::Error>(())
    /// ```
    pub fn with_sizing(sizing: StandardSizing) -> Result<Self, Error> {
        Ok(Self { blocks: Blocks::zeroed(sizing.n_blocks())?, sizing, seed: Seed::DEFAULT, keys: Some(0) })
    }

    /// Sets the seed that keys are hashed with, 0 by default. Filters with different seeds place keys differently, so
    /// they rarely have a false positive in common, unless an attacker chose the key.
    ///
    /// # Errors
    ///
    /// If keys have been inserted.
    pub fn with_seed(self, seed: u64) -> Result<Self, Error> {
        let seed = Seed::of_empty(seed, self.keys == Some(0))?;
        Ok(Self { seed, ..self })
    }

    /// Hashes `key` under the filter's seed, for the `*_hash` methods.
    #[inline]
    #[must_use]
    pub fn hash_key(&self, key: impl Key) -> u64 {
        self.seed.hash(key)
    }

    /// Inserts `key`. Returns whether a bit changed. If not, [`contains`](Self::contains) was already `true`.
    #[doc(alias("add", "put"))]
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> bool {
        self.insert_hash(self.seed.hash(key))
    }

    /// [`insert`](Self::insert) by hash, from [`hash_key`](Self::hash_key) or any other 64 well-mixed bits.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> bool {
        self.keys = None;
        let probes = probes(hash, self.bit_len(), self.k());
        let (lanes, _) = self.blocks.as_mut_slice().as_flattened_mut().as_chunks_mut();
        let mut changed = 0;
        for bit in probes {
            let (at, mask) = place(bit);
            let lane = u64::from_le_bytes(lanes[at]);
            changed |= !lane & mask;
            lanes[at] = (lane | mask).to_le_bytes();
        }
        changed != 0
    }

    /// Inserts many keys by hash. Faster than one by one if the filter is larger than the caches.
    pub fn insert_batch(&mut self, hashes: &[u64]) {
        if !self.is_large() {
            return hashes.iter().for_each(|&hash| _ = self.insert_hash(hash));
        }
        for (hash, later) in kernel::with_later(hashes) {
            let probes = |later| probes(later, self.bit_len(), self.k());
            later.into_iter().flat_map(probes).for_each(|bit| self.prefetch(bit));
            self.insert_hash(hash);
        }
    }

    /// Whether batches prefetch. A key has up to k lines, so prefetches cost more than in a blocked filter.
    fn is_large(&self) -> bool {
        self.blocks.len() >= 4 * kernel::large()
    }

    #[inline]
    fn prefetch(&self, bit: u64) {
        let blocks = self.blocks.as_slice().as_slice().as_ptr();
        kernel::prefetch::<false>(blocks.wrapping_add((bit / BLOCK_BITS) as usize));
    }

    /// Returns whether `key` is possibly present. `false` means definitely absent.
    ///
    /// For a key never inserted, returns `true` with probability [`estimated_fpr`](Self::estimated_fpr). Hashes the key
    /// and reads up to k cache lines. Does not allocate.
    #[doc(alias("might_contain", "may_contain"))]
    #[inline]
    #[must_use]
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_hash(self.seed.hash(key))
    }

    /// [`contains`](Self::contains) by hash.
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let lanes = self.lanes();
        probes(hash, self.bit_len(), self.k()).all(|bit| is_set(lanes, bit))
    }

    /// Looks up many keys by hash, and sets `found[i]` to whether the key of `hashes[i]` is possibly present.
    ///
    /// With hundreds of keys, runs in a quarter of the time of single lookups if the keys are absent, or if the filter
    /// is larger than the caches. Present keys in a smaller filter need up to 1.5 times as long (Zen 5).
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
        assert_eq!(hashes.len(), found.len(), "one answer per hash");
        for (hashes, found) in hashes.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            if hashes.len() >= MANY {
                self.contains_many(hashes, found);
            } else {
                found.iter_mut().zip(hashes).for_each(|(found, &hash)| *found = self.contains_hash(hash));
            }
        }
    }

    /// Looks up at most [`BATCH`] keys. Tests the first probe of all keys, then the second probe of those that are
    /// left, and so on, because the end of a single lookup is mostly mispredicted.
    fn contains_many(&self, hashes: &[u64], found: &mut [bool]) {
        let (lanes, size_bits, k) = (self.lanes(), self.bit_len(), self.k());
        let is_large = self.is_large();
        // A copy of this length, and places in bytes, because the compiler then sees that no index is out of bounds.
        let (mut batch, mut bits) = ([0; BATCH], [0; BATCH]);
        batch[..hashes.len()].copy_from_slice(hashes);
        let mut left: [u8; BATCH] = array::from_fn(|at| at as u8);
        let mut n_left = hashes.len();
        // The word of a probe is a multiple of the hash, plus the word of hash 0.
        for (of_one, of_zero) in words(1, k).zip(words(0, k)) {
            let factor = of_one.wrapping_sub(of_zero);
            for (bit, &at) in bits.iter_mut().zip(&left[..n_left]) {
                *bit = below(size_bits, batch[usize::from(at)].wrapping_mul(factor).wrapping_add(of_zero));
                if is_large {
                    self.prefetch(*bit);
                }
            }
            let mut n_kept = 0;
            for i in 0..n_left {
                left[n_kept % BATCH] = left[i];
                n_kept += usize::from(is_set(lanes, bits[i]));
            }
            n_left = n_kept;
        }
        found.fill(false);
        left[..n_left].iter().for_each(|&at| found[usize::from(at)] = true);
    }

    /// [`contains_batch`](Self::contains_batch) into a bitmap, as
    /// [`BloomFilter::contains_bitmap`](crate::BloomFilter::contains_bitmap) does.
    ///
    /// # Panics
    ///
    /// If `found` does not have `hashes.len().div_ceil(8)` bytes.
    pub fn contains_bitmap(&self, hashes: &[u64], found: &mut [u8]) {
        bitmap::write_batches(hashes, found, |hashes, found| self.contains_batch(hashes, found));
    }

    /// Inserts all keys of `other`, bit for bit as if each had been inserted. There is no `|`, because filters of two
    /// sizes have no union, and an operator cannot return an error.
    ///
    /// # Errors
    ///
    /// If the filters differ in size, k or seed. Then nothing is changed.
    #[doc(alias = "merge")]
    pub fn union_with(&mut self, other: &Self) -> Result<(), Error> {
        self.combine(other, |ours, theirs| *ours |= theirs)
    }

    /// Keeps what is possibly present in both filters. Keys inserted into both stay.
    ///
    /// The false-positive rate is at most either filter's, but above the rate of a filter built from the common keys.
    /// [`estimated_keys`](Self::estimated_keys) is too high from then on.
    ///
    /// # Errors
    ///
    /// If the filters differ in size, k or seed. Then nothing is changed.
    pub fn intersect_with(&mut self, other: &Self) -> Result<(), Error> {
        self.combine(other, |ours, theirs| *ours &= theirs)
    }

    fn check_match(&self, other: &Self) -> Result<(), Error> {
        let text = "filters of {} and {} bits cannot be combined: build both with one size";
        check_same([self.bit_len(), other.bit_len()], text)?;
        check_placing([self.k(), other.k()], [self.seed, other.seed])
    }

    fn combine(&mut self, other: &Self, combine: impl Fn(&mut u8, u8)) -> Result<(), Error> {
        self.check_match(other)?;
        self.keys = None;
        for (ours, theirs) in self.blocks.as_mut_slice().as_flattened_mut().iter_mut().zip(other.bytes()) {
            combine(ours, *theirs);
        }
        Ok(())
    }

    /// Removes all keys. Size, k and seed stay.
    pub fn clear(&mut self) {
        self.blocks.as_mut_slice().fill([0; BLOCK_BYTES]);
        self.keys = Some(0);
    }

    /// Probes per key, bits set by an insert and tested by a lookup, 1 to [`MAX_K`](crate::sizing::standard::MAX_K).
    #[inline]
    pub fn k(&self) -> u32 {
        self.sizing.k()
    }

    /// The number of bits that keys are placed in, m in the formulas.
    #[inline]
    pub fn bit_len(&self) -> u64 {
        self.sizing.bit_len()
    }

    /// Bytes of memory of the bits, in whole cache lines.
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.bytes().len()
    }

    /// The seed that keys are hashed with, 0 unless set by [`with_seed`](Self::with_seed).
    #[inline]
    pub fn seed(&self) -> u64 {
        self.seed.get()
    }

    /// The number of distinct keys, if it is known exactly, as for an empty filter, and where the bytes given to
    /// [`from_standalone`](Self::from_standalone) store it. For other filters see
    /// [`estimated_keys`](Self::estimated_keys).
    pub fn known_keys(&self) -> Option<u64> {
        self.keys
    }

    /// Fraction of bits that are set, 0 to 1, about one half at the best k. Reads the whole filter.
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        self.ones() as f64 / self.bit_len() as f64
    }

    /// Estimates from the bits how many distinct keys were inserted, by −m/k · ln(1 − fill ratio). [`KeyEstimate`]
    /// describes how accurate that is, and when there is no estimate. Also valid after
    /// [`union_with`](Self::union_with), but not after [`intersect_with`](Self::intersect_with). Reads the whole
    /// filter.
    #[must_use]
    pub fn estimated_keys(&self) -> Option<KeyEstimate> {
        estimate::standard_keys(self.ones(), self.bit_len(), self.k())
    }

    /// The probability that a lookup of a key never inserted returns `true`. This is the fill ratio to the power of k,
    /// and for few keys more, as in [`StandardSizing::expected_fpr`]. Reads the whole filter.
    #[must_use]
    pub fn estimated_fpr(&self) -> f64 {
        let fill = self.fill_ratio();
        let keys = self.bit_len() as f64 / f64::from(self.k()) * minus_ln_of_one_less(fill);
        (power(fill, self.k()) + self.sizing.fpr_of_related_hashes(keys, fill)).min(1.0)
    }

    fn ones(&self) -> u64 {
        self.lanes().iter().map(|lane| u64::from(u64::from_ne_bytes(*lane).count_ones())).sum()
    }

    #[inline]
    fn lanes(&self) -> &[[u8; LANE_BYTES]] {
        self.bytes().as_chunks().0
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.blocks.as_slice().as_slice().as_flattened()
    }

    /// The bytes of the lanes that have bits of the filter.
    fn body(&self) -> &[u8] {
        &self.bytes()[..self.bit_len().div_ceil(64) as usize * LANE_BYTES]
    }

    /// Length of the standalone bytes, which are the bits in lanes of 8 bytes and a footer of 64 bytes with version,
    /// size, k, seed, number of keys if known, and checksums.
    pub fn standalone_len(&self) -> usize {
        self.body().len() + StandaloneFooter::LEN
    }

    standalone::standalone_io!();

    fn encode<E>(&self, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let (bit_len, k, seed, checksum) =
            (self.bit_len(), self.k(), self.seed(), footer::checksum(self.body()));
        let footer = StandaloneFooter::new(StandaloneKind::Standard, bit_len, k, seed, self.keys, checksum);
        write(self.body())?;
        write(&footer.to_bytes())
    }

    /// Reads a filter from the standalone bytes of [`to_standalone`](Self::to_standalone). Compares both checksums,
    /// then allocates as much memory as the bytes, in whole cache lines.
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of a different version, if their keys were hashed by a different function
    /// than this build's, or if memory cannot be allocated.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::variants::StandardBloomFilter;
    ///
    /// let mut filter = StandardBloomFilter::with_fpr(1_000, 0.01)?;
    /// filter.insert("user4291");
    /// let bytes = filter.to_standalone();
    /// assert!(StandardBloomFilter::from_standalone(&bytes)?.contains("user4291"));
    /// assert!(StandardBloomFilter::from_standalone(&bytes[1..]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_standalone(bytes: &[u8]) -> Result<Self, Error> {
        let (lanes, footer) = footer::split_filter(bytes, StandaloneKind::Standard)?;
        let bit_len = footer.size;
        footer.check_size(lanes)?;
        let sizing = footer.probe_count(|k| StandardSizing::new(bit_len, k))?;
        footer::verify(lanes, footer.body_checksum)?;
        let last_lane = lanes.last_chunk().map_or(0, |lane| u64::from_le_bytes(*lane));
        if !bit_len.is_multiple_of(64) && last_lane >> (bit_len % 64) != 0 {
            return Err(Error::impossible("number of bits", bit_len));
        }
        let blocks = Blocks::try_from_bytes(lanes)?;
        let keys = blocks.known_keys(footer.known_keys);
        Ok(Self { blocks, sizing, seed: Seed::new(footer.seed), keys })
    }
}

/// Equal filters have the same size, bits, k and seed.
impl PartialEq for StandardBloomFilter {
    fn eq(&self, other: &Self) -> bool {
        self.check_match(other).is_ok() && self.bytes() == other.bytes()
    }
}

impl Eq for StandardBloomFilter {}

impl<K: Key> Extend<K> for StandardBloomFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        let (seed, keys) = (self.seed, keys.into_iter());
        if self.is_large() && are_many(&keys) {
            in_batches(keys.map(|key| seed.hash(key)), |hashes| self.insert_batch(hashes));
        } else {
            keys.for_each(|key| _ = self.insert(key));
        }
    }
}

impl fmt::Debug for StandardBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StandardBloomFilter")
            .field("bit_len", &self.bit_len())
            .field("k", &self.k())
            .field("seed", &self.seed())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;
    use crate::math::exp_of_minus;

    const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

    /// Random numbers in a fixed order.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 += 1;
            mix(self.0)
        }

        fn below(&mut self, limit: u64) -> u64 {
            ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
        }

        /// By inversion. `none` is e to the power of minus the mean.
        fn poisson(&mut self, mean: f64, none: f64) -> u64 {
            let uniform = self.next() as f64 / TWO_TO_64;
            let (mut count, mut term, mut sum) = (0, none, none);
            while uniform > sum && count < 100 {
                count += 1;
                term *= mean / count as f64;
                sum += term;
            }
            count
        }
    }

    /// The hash whose probe number `probe` is made from this word. There is one, because each probe is a permutation of
    /// the hashes.
    fn hash_of(word: u64, probe: u64) -> u64 {
        let factor = probe.wrapping_mul(SECOND).wrapping_add(1);
        // Newton's iteration, which doubles the correct bits: 3, 6, 12, 24, 48, 96.
        let inverse = (0..5).fold(factor, |inverse, _| {
            inverse.wrapping_mul(2_u64.wrapping_sub(factor.wrapping_mul(inverse)))
        });
        let growth = (probe.pow(3) - probe) / 6;
        word.wrapping_sub(growth.wrapping_mul(THIRD)).wrapping_mul(inverse)
    }

    /// The lowest word that gives this bit.
    fn first_word(bit: u64, size_bits: u64) -> u128 {
        (u128::from(bit) << 64).div_ceil(u128::from(size_bits))
    }

    /// Returns whether a filter of `keys` random keys reports an absent key as possibly present. Only keys that set a
    /// bit probed by the lookup are drawn, as many as in the whole filter, and with all their probes.
    fn is_false_positive(random: &mut Random, size_bits: u64, keys: f64, k: u32) -> bool {
        let mut wanted: Vec<u64> = probes(random.next(), size_bits, k).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut is_set = alloc::vec![false; wanted.len()];
        let width = (first_word(wanted[0] + 1, size_bits) - first_word(wanted[0], size_bits)) as f64;
        let mut mean = keys * width / TWO_TO_64;
        let mut none = exp_of_minus(mean);
        for at in 0..wanted.len() {
            let first = first_word(wanted[at], size_bits);
            let n_words = (first_word(wanted[at] + 1, size_bits) - first) as u64;
            if n_words as f64 != width {
                mean = keys * n_words as f64 / TWO_TO_64;
                none = exp_of_minus(mean);
            }
            for probe in 0..k {
                for _ in 0..random.poisson(mean, none) {
                    let hash = hash_of(first as u64 + random.below(n_words), probe.into());
                    let seen: Vec<(u32, usize)> = (0..)
                        .zip(probes(hash, size_bits, k))
                        .filter_map(|(probe, bit)| wanted.binary_search(&bit).ok().map(|at| (probe, at)))
                        .collect();
                    assert!(seen.contains(&(probe, at)), "drawn to set this bit by this probe");
                    // A key that sets several of the bits would be drawn for each of them.
                    if seen[0] == (probe, at) {
                        seen.iter().for_each(|&(_, at)| is_set[at] = true);
                    }
                }
            }
        }
        is_set.iter().all(|is_set| *is_set)
    }

    /// The whole filter would need 1 GiB to 640 TiB. A lookup sees only the windows of one bit that it probes, and the
    /// keys that fall in them. Beyond that size, keys of equal hash show, in 2^60 bits in a hundredth of all lookups.
    #[test]
    #[cfg_attr(miri, ignore = "hours under miri")]
    fn the_rate_holds_in_the_windows_of_a_filter_of_any_size() {
        for log2_bits in [33, 52] {
            // Also a size that is not a power of two.
            for size_bits in [1 << log2_bits, (1 << log2_bits) + (1 << (log2_bits - 2)) + 12_345] {
                for (bits_per_key, k, lookups) in [(6, 4, 60_000), (10, 7, 150_000)] {
                    let keys = size_bits / bits_per_key;
                    let model = StandardSizing::new(size_bits, k).unwrap().expected_fpr(keys);
                    let mut random = Random(size_bits ^ (bits_per_key << 62));
                    let positives = (0..lookups)
                        .filter(|_| is_false_positive(&mut random, size_bits, keys as f64, k))
                        .count();
                    let ratio = positives as f64 / lookups as f64 / model;
                    #[cfg(feature = "std")]
                    std::println!("{size_bits} bits, {keys} keys, k {}: {ratio:.4} of the model", k);
                    assert!(
                        (0.95..=1.05).contains(&ratio),
                        "{size_bits} bits, k {}: {ratio:.4} of the model's rate",
                        k
                    );
                }
            }
        }
    }

    /// [`probes`] adds up. This is the formula of `docs/format.md`.
    #[test]
    fn probes_are_those_of_the_formula() {
        for hash in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
            let expected = (0..64_u64).map(|j| {
                let word = hash
                    .wrapping_add(j.wrapping_mul(hash.wrapping_mul(SECOND)))
                    .wrapping_add(((j.pow(3) - j) / 6).wrapping_mul(THIRD));
                assert_eq!(hash_of(word, j), hash);
                ((u128::from(word) * 1_000_003) >> 64) as u64
            });
            assert!(probes(hash, 1_000_003, 64).eq(expected));
        }
    }
}
