//! `BloomFilter`: owned and mutable.
#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::fmt;

use crate::blocks::{Block, Blocks, LANES, block_from_lanes, combined, lanes};
use crate::encoding::{self, Lanes};
use crate::error::{DecodeError, HashChanged, MismatchError, SizingError};
use crate::estimate::{self, KeyEstimate};
use crate::hash::Seed;
use crate::kernel::{self, Kernel};
use crate::mask::ProbeCount;
use crate::sizing::{self, Sizing};
use crate::view::BloomView;

/// A set of keys that answers "certainly not in" or "may be in", with one cache line touched per lookup.
///
/// Keys cannot be listed, nor taken out; from a [`CountingBloomFilter`](crate::variants::CountingBloomFilter) they can.
/// Memory is fixed at construction: with more keys than it was sized for, the filter stays correct and answers "may
/// be in" more often. Methods that end in `_hash` take the key's hash from [`hash_key`](crate::hash_key) in place of
/// the key; any other 64-bit hash will do if all its bits are well mixed ([`mix`](crate::mix) repairs weak ones) and
/// it is the same for every insert and lookup.
///
/// # Examples
///
/// ```
/// use bloomline::BloomFilter;
///
/// let mut seen = BloomFilter::with_fpr(1_000, 0.01)?;
/// seen.insert("https://example.org/");
/// assert!(seen.contains("https://example.org/"));
/// assert!(!seen.contains("https://example.org/other"));
/// # Ok::<(), bloomline::SizingError>(())
/// ```
#[derive(Clone)]
pub struct BloomFilter {
    blocks: Blocks,
    k: ProbeCount,
    kernel: Kernel,
    seed: Seed,
    /// Distinct keys inserted, where known: not once keys are added one by one, as repeats then go unnoticed.
    keys: Option<u64>,
}

impl BloomFilter {
    /// An empty filter that answers "may be in" for at most a share `fpr` of missing keys, once it holds
    /// `expected_keys` distinct keys. [`Sizing::for_fpr`] says which size that is; 1 % takes 9.9 bits per key.
    ///
    /// # Errors
    ///
    /// If `fpr` is not between [`sizing::MIN_FPR`] and 1, or memory for the filter cannot be had.
    pub fn with_fpr(expected_keys: usize, fpr: f64) -> Result<Self, SizingError> {
        Self::with_sizing(Sizing::for_fpr(expected_keys, fpr)?)
    }

    /// An empty filter with `bits_per_key` for each of `expected_keys` distinct keys, rounded up to whole blocks of
    /// 64 bytes, and the k that is best for it.
    ///
    /// # Errors
    ///
    /// If `bits_per_key` is not above 0 and at most [`sizing::MAX_BITS_PER_KEY`], or memory for the filter cannot be
    /// had.
    pub fn with_bits_per_key(expected_keys: usize, bits_per_key: f64) -> Result<Self, SizingError> {
        Self::with_sizing(Sizing::for_bits_per_key(expected_keys, bits_per_key)?)
    }

    /// An empty filter of `n_blocks` blocks of 64 bytes, with `k` probes per key, 1 to 16.
    ///
    /// # Errors
    ///
    /// If `n_blocks` or `k` is out of range, or memory for the filter cannot be had.
    pub fn with_blocks(n_blocks: usize, k: u32) -> Result<Self, SizingError> {
        Self::with_sizing(Sizing::with_blocks(n_blocks, k)?)
    }

    /// A filter of its own from compact bytes, to be changed; [`BloomView::from_compact`] reads them in place.
    ///
    /// # Errors
    ///
    /// As [`BloomView::from_compact`].
    pub fn from_compact(bytes: &[u8]) -> Result<Self, DecodeError> {
        BloomView::from_compact(bytes).map(|view| view.to_filter())
    }

    /// [`from_compact`](Self::from_compact) of a filter that was made with `seed`.
    ///
    /// # Errors
    ///
    /// As [`BloomView::from_compact_with_seed`].
    pub fn from_compact_with_seed(bytes: &[u8], seed: u64) -> Result<Self, DecodeError> {
        BloomView::from_compact_with_seed(bytes, seed).map(|view| view.to_filter())
    }

    /// A filter of its own from standalone bytes, to be changed; [`BloomView::from_standalone`] reads them in place. Both
    /// checksums are compared before memory is allocated.
    ///
    /// # Errors
    ///
    /// As [`BloomView::from_standalone`] and [`BloomView::verify`].
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::BloomFilter;
    ///
    /// let mut filter = BloomFilter::with_fpr(1_000, 0.01)?;
    /// filter.insert("user4291");
    /// let mut copy = BloomFilter::from_standalone(&filter.to_standalone())?;
    /// copy.insert("user4292");
    /// assert!(copy.contains("user4291"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_standalone(bytes: &[u8]) -> Result<Self, DecodeError> {
        let view = BloomView::from_standalone(bytes)?;
        view.verify()?;
        Ok(view.to_filter())
    }

    fn with_sizing(sizing: Sizing) -> Result<Self, SizingError> {
        Ok(Self {
            k: ProbeCount::new(sizing.k)?,
            blocks: Blocks::zeroed(sizing.n_blocks)?,
            kernel: Kernel::active(),
            seed: Seed::DEFAULT,
            keys: Some(0),
        })
    }

    pub(crate) fn from_parts(
        blocks: Blocks,
        k: ProbeCount,
        kernel: Kernel,
        seed: Seed,
        keys: Option<u64>,
    ) -> Self {
        Self { blocks, k, kernel, seed, keys }
    }

    /// The hash by which this filter places a key.
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.seed.hash(key)
    }

    #[cfg(target_has_atomic = "64")]
    pub(crate) fn into_parts(self) -> (Blocks, ProbeCount, Kernel, Seed) {
        (self.blocks, self.k, self.kernel, self.seed)
    }

    /// An empty filter of another size for the same hashes. Aborts where memory is out, as `Vec` does.
    pub(crate) fn empty_or_abort(&self, n_blocks: usize) -> Self {
        let Self { k, kernel, seed, .. } = *self;
        Self { blocks: Blocks::zeroed_or_abort(n_blocks), k, kernel, seed, keys: Some(0) }
    }

    /// The filter with another seed than 0: keys are then placed differently, so that what one filter takes for
    /// present another does not.
    ///
    /// # Panics
    ///
    /// If keys have been inserted.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = bloomline::BloomFilter::with_fpr(1_000, 0.01)?.with_seed(0x5eed);
    /// assert_eq!(filter.seed(), 0x5eed);
    /// # Ok::<(), bloomline::SizingError>(())
    /// ```
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        assert!(self.keys == Some(0), "the seed of a filter is set before its first key");
        Self { seed: Seed::new(seed), ..self }
    }

    /// The filter with another kernel than the fastest: for tests and benchmarks. The bits stay the same.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self { kernel, ..self }
    }

    /// Adds `key`; whether that changed a bit. If not, [`contains`](Self::contains) was `true` already.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> bool {
        self.insert_hash(self.seed.hash(key.as_ref()))
    }

    /// [`insert`](Self::insert) by hash.
    // In a default build a call costs as much as the insert, and the compiler thinks it too large to inline.
    #[inline(always)]
    pub fn insert_hash(&mut self, hash: u64) -> bool {
        self.keys = None;
        self.kernel.insert(&mut self.blocks, hash, self.k)
    }

    /// Adds many keys by hash: faster than one by one.
    pub fn insert_batch(&mut self, hashes: &[u64]) {
        if !hashes.is_empty() {
            self.keys = None;
            self.kernel.insert_batch(&mut self.blocks, hashes, self.k, |_| ());
        }
    }

    /// Whether `key` may have been inserted: `false` is certain.
    ///
    /// For a key never inserted the answer is `true` with probability [`estimated_fpr`](Self::estimated_fpr).
    /// Hashes the key and reads one cache line; does not allocate.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.contains_hash(self.seed.hash(key.as_ref()))
    }

    /// [`contains`](Self::contains) by hash.
    // As for `insert_hash`.
    #[inline(always)]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.kernel.contains(self.blocks.as_slice(), hash, self.k)
    }

    /// Whether any of the filters, which have one k, contains the hash.
    #[inline]
    pub(crate) fn any_contains_hash(filters: &[Self], hash: u64) -> bool {
        match filters {
            [] => false,
            [only] => only.contains_hash(hash),
            [first, ..] => {
                let blocks = filters.iter().map(|filter| filter.blocks.as_slice());
                Kernel::contains_any(blocks, hash, first.k, first.kernel)
            }
        }
    }

    /// Looks up many keys by hash: `found[i]` becomes whether the key of `hashes[i]` may have been inserted.
    /// Faster than one by one from about eight keys on.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
        self.as_view().contains_batch(hashes, found);
    }

    /// Starts loading the cache line of a hash, to be looked up or inserted a little later: with many filters to
    /// probe, or work to do in between, the wait for memory overlaps.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        kernel::prefetch(self.blocks.as_slice().block_of(hash));
    }

    /// Adds all keys of `other`, bit for bit as if each had been inserted.
    ///
    /// # Errors
    ///
    /// If the filters differ in blocks, k or seed; nothing is changed then.
    ///
    /// # Examples
    ///
    /// A filter built by several threads, each with a part of the keys and a filter of its own:
    ///
    /// ```
    /// use std::thread;
    /// use bloomline::{BloomFilter, mix};
    ///
    /// let hashes: Vec<u64> = (0..1_000_000).map(mix).collect();
    /// let empty = BloomFilter::with_bits_per_key(hashes.len(), 10.0)?;
    /// let build = |hashes: &[u64]| {
    ///     let mut filter = empty.clone();
    ///     filter.insert_batch(hashes);
    ///     filter
    /// };
    /// let (first, second) = hashes.split_at(hashes.len() / 2);
    /// let filter = thread::scope(|scope| {
    ///     let other = scope.spawn(|| build(second));
    ///     let mut filter = build(first);
    ///     filter.union_with(&other.join().expect("no panic")).map(|()| filter)
    /// })?;
    /// assert!(filter == build(&hashes));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn union_with(&mut self, other: &Self) -> Result<(), MismatchError> {
        self.combine(other, |ours, theirs| ours | theirs)
    }

    /// Keeps what both filters may contain. Keys that are in both stay; the false-positive rate is at most that of
    /// either, but above that of a filter built of the common keys: bits stay that different keys have set in the two.
    /// [`estimated_keys`](Self::estimated_keys) takes them for keys and reads too high from then on; ask for
    /// [`estimated_intersection`](Self::estimated_intersection) before.
    ///
    /// # Errors
    ///
    /// If the filters differ in blocks, k or seed; nothing is changed then.
    pub fn intersect_with(&mut self, other: &Self) -> Result<(), MismatchError> {
        self.combine(other, |ours, theirs| ours & theirs)
    }

    fn check_match(&self, other: &Self) -> Result<(), MismatchError> {
        if self.n_blocks() != other.n_blocks() {
            return Err(MismatchError::Blocks { ours: self.n_blocks(), theirs: other.n_blocks() });
        }
        if self.k != other.k {
            return Err(MismatchError::Probes { ours: self.k(), theirs: other.k() });
        }
        if self.seed != other.seed {
            return Err(MismatchError::Seed { ours: self.seed(), theirs: other.seed() });
        }
        Ok(())
    }

    fn combine(&mut self, other: &Self, combine: impl Fn(u8, u8) -> u8) -> Result<(), MismatchError> {
        self.check_match(other)?;
        self.keys = None;
        for (ours, theirs) in self.blocks.as_mut_slice().iter_mut().zip(other.blocks.as_slice().as_slice()) {
            *ours = combined(ours, theirs, &combine);
        }
        Ok(())
    }

    /// Makes the filter `factor` times smaller: bit for bit the filter that would have been built with
    /// `n_blocks() / factor` blocks. Size for the worst case, then fold to what was needed.
    ///
    /// # Errors
    ///
    /// If `factor` does not divide the block count, or memory for the folded filter cannot be had; nothing is
    /// changed then.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::BloomFilter;
    ///
    /// let (mut large, mut small) = (BloomFilter::with_blocks(64, 6)?, BloomFilter::with_blocks(16, 6)?);
    /// for key in ["ant", "bee", "cat"] {
    ///     large.insert(key);
    ///     small.insert(key);
    /// }
    /// large.fold(4)?;
    /// assert!(large == small);
    /// # Ok::<(), bloomline::SizingError>(())
    /// ```
    pub fn fold(&mut self, factor: usize) -> Result<(), SizingError> {
        let n_blocks = self.n_blocks();
        if factor == 0 || !n_blocks.is_multiple_of(factor) {
            return Err(SizingError::FoldFactor { factor, n_blocks });
        }
        if factor != 1 {
            let mut folded = Blocks::zeroed(n_blocks / factor)?;
            for (block, group) in folded.as_mut_slice().iter_mut().zip(self.groups(factor)) {
                *block = group;
            }
            self.blocks = folded;
        }
        Ok(())
    }

    /// The blocks after folding, one by one: the union of each `factor` neighbours.
    fn groups(&self, factor: usize) -> impl Iterator<Item = Block> {
        self.blocks.as_slice().as_slice().chunks_exact(factor).map(|neighbours| {
            let united = |union: Block, block| combined(&union, block, |a, b| a | b);
            neighbours.iter().fold([0; size_of::<Block>()], united)
        })
    }

    /// Folds as far as the estimated false-positive rate stays at or below `fpr`: not at all if it is above that
    /// already. How far depends on the divisors of the block count; a power of two, or one times a small number,
    /// leaves the most choice. Reads the filter a few times.
    ///
    /// # Errors
    ///
    /// If `fpr` is not between 0 and 1, or memory for the folded filter cannot be had; nothing is changed then.
    pub fn shrink_to_fpr(&mut self, fpr: f64) -> Result<(), SizingError> {
        if !(fpr > 0.0 && fpr < 1.0) {
            return Err(SizingError::Fpr { value: fpr });
        }
        let n_blocks = self.n_blocks();
        let mut factors: Vec<usize> = (1..)
            .take_while(|divisor| divisor <= &(n_blocks / divisor))
            .filter(|divisor| n_blocks.is_multiple_of(*divisor))
            .flat_map(|divisor| [divisor, n_blocks / divisor])
            .collect();
        factors.sort_unstable();
        let rate = |factor| sizing::estimated_fpr(self.groups(factor).map(|block| lanes(&block)), self.k);
        let good = factors.partition_point(|&factor| rate(factor) <= fpr);
        self.fold(factors[good.saturating_sub(1)])
    }

    /// Clears bits in the block of `hash`, which the caller knows no key to have any more.
    pub(crate) fn clear_bits(&mut self, hash: u64, bits: [u64; LANES]) {
        self.keys = None;
        let block = self.blocks.block_of_mut(hash);
        let mut lanes = lanes(block);
        for (lane, bits) in lanes.iter_mut().zip(bits) {
            *lane &= !bits;
        }
        *block = block_from_lanes(lanes);
    }

    /// Takes out all keys; size, k and seed stay.
    pub fn clear(&mut self) {
        self.blocks.as_mut_slice().fill([0; size_of::<Block>()]);
        self.keys = Some(0);
    }

    /// Probes per key: bits set by an insert and tested by a lookup, 1 to 16.
    #[inline]
    pub fn k(&self) -> u32 {
        self.k.get()
    }

    /// Blocks of 64 bytes.
    #[inline]
    pub fn n_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Bytes that the blocks take in memory.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        self.blocks.as_slice().as_slice().as_flattened().len()
    }

    /// What keys are hashed with, 0 unless [`with_seed`](Self::with_seed) set it.
    #[inline]
    pub fn seed(&self) -> u64 {
        self.seed.get()
    }

    /// The kernel in use.
    #[inline]
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Distinct keys, where that is known exactly: of an empty filter, and of one that a
    /// [`FilterBuilder`](crate::FilterBuilder) has made. See [`estimated_keys`](Self::estimated_keys) for others.
    pub fn known_keys(&self) -> Option<u64> {
        self.keys
    }

    /// Share of bits that are set, 0 to 1. Best filters are a little below one half full. Reads the whole filter.
    pub fn fill_ratio(&self) -> f64 {
        let ones: u64 = self.lanes().flatten().map(|lane| u64::from(lane.count_ones())).sum();
        ones as f64 / (8 * self.size_bytes()) as f64
    }

    /// How many distinct keys were inserted, estimated from the bits. [`KeyEstimate`] says how good that is, and when
    /// there is none. It holds after [`union_with`](Self::union_with) and [`fold`](Self::fold) as well, not after
    /// [`intersect_with`](Self::intersect_with). Reads the whole filter.
    pub fn estimated_keys(&self) -> KeyEstimate {
        // Lanes that blocks share are counted once.
        encoding::with_fewest_lanes(self.blocks.as_slice(), |lanes| estimate::keys(lanes.iter(), self.k()))
    }

    /// How many distinct keys are in one of two filters or in both: the [`estimated_keys`](Self::estimated_keys) of
    /// their union, without making it. Reads both filters, does not allocate.
    ///
    /// # Errors
    ///
    /// If the filters differ in blocks, k or seed.
    pub fn estimated_union(&self, other: &Self) -> Result<KeyEstimate, MismatchError> {
        self.compare(other, |ours, theirs| {
            estimate::keys(ours.iter().zip(theirs.iter()).map(|(ours, theirs)| ours | theirs), self.k())
        })
    }

    /// How many distinct keys are in both of two filters, and 0 where the bits would say less. Two large filters with few
    /// keys in common leave [a large error](KeyEstimate#keys-that-two-filters-have-in-common). Reads both filters, does
    /// not allocate.
    ///
    /// # Errors
    ///
    /// If the filters differ in blocks, k or seed.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::{BloomFilter, mix};
    ///
    /// let mut monday = BloomFilter::with_bits_per_key(200_000, 10.0)?;
    /// let mut tuesday = monday.clone();
    /// for visitor in 0..200_000 {
    ///     monday.insert_hash(mix(visitor));
    ///     tuesday.insert_hash(mix(visitor + 150_000));
    /// }
    /// let both_days = monday.estimated_intersection(&tuesday)?;
    /// assert_eq!(both_days.to_string(), "about 50176 ± 150");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn estimated_intersection(&self, other: &Self) -> Result<KeyEstimate, MismatchError> {
        self.compare(other, |ours, theirs| estimate::common_keys(ours.iter().zip(theirs.iter()), self.k()))
    }

    fn compare<T>(
        &self,
        other: &Self,
        read: impl FnOnce(Lanes<'_>, Lanes<'_>) -> T,
    ) -> Result<T, MismatchError> {
        self.check_match(other)?;
        Ok(encoding::with_fewest_lanes_of_both(self.blocks.as_slice(), other.blocks.as_slice(), read))
    }

    /// The probability that a key never inserted is taken for present: exact for the bits as they are. Reads the
    /// whole filter.
    pub fn estimated_fpr(&self) -> f64 {
        sizing::estimated_fpr(self.lanes(), self.k)
    }

    /// The lanes of each block.
    fn lanes(&self) -> impl Iterator<Item = [u64; LANES]> {
        self.blocks.as_slice().as_slice().iter().map(lanes)
    }

    /// Appends the filter's compact bytes: its lanes and one byte, for use inside a container that has lengths and
    /// checksums of its own, as an SSTable has. [`BloomView::from_compact`] reads them in place. The seed is not
    /// among them.
    ///
    /// Blocks that share lanes, as those that [`BloomView::to_filter`] makes of a short filter's bytes, are written as
    /// the lanes that they share.
    pub fn write_compact(&self, out: &mut Vec<u8>) {
        encoding::write_compact(out, self.blocks.as_slice(), self.k);
    }

    /// Bytes that [`write_compact`](Self::write_compact) appends.
    pub fn compact_bytes(&self) -> usize {
        encoding::compact_bytes(self.blocks.as_slice())
    }

    /// Appends the filter's standalone bytes: its lanes and a footer of 64 bytes with version, k, seed, count of keys
    /// if known, and checksums. [`BloomView::from_standalone`] reads them in place.
    ///
    /// # Errors
    ///
    /// If the build's `wyhash` crate has changed its output: where another build reads them, the bytes would lie.
    /// Nothing is appended then.
    pub fn write_standalone(&self, out: &mut Vec<u8>) -> Result<(), HashChanged> {
        self.with_standalone(|lanes, footer| {
            out.reserve(lanes.len() + footer.len());
            out.extend_from_slice(lanes);
            out.extend_from_slice(footer);
        })
    }

    fn with_standalone<T>(&self, write: impl FnOnce(&[u8], &[u8]) -> T) -> Result<T, HashChanged> {
        encoding::with_standalone(self.blocks.as_slice(), self.k, self.seed, self.keys, write)
    }

    /// Writes the filter's standalone bytes to a file, a socket or the like, without a copy of them in memory. With the
    /// feature `std`.
    ///
    /// # Errors
    ///
    /// What the writer says, or [`HashChanged`], as [`write_standalone`](Self::write_standalone), as an error of kind
    /// [`Other`](std::io::ErrorKind::Other), before anything is written.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = bloomline::BloomFilter::with_fpr(1_000, 0.01)?;
    /// let mut file = Vec::new(); // a `std::fs::File`, say: what is written is large, so no `BufWriter` is needed
    /// filter.write_standalone_to(&mut file)?;
    /// assert_eq!(file, filter.to_standalone());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn write_standalone_to(&self, mut out: impl std::io::Write) -> std::io::Result<()> {
        self.with_standalone(|lanes, footer| out.write_all(lanes).and_then(|()| out.write_all(footer)))
            .unwrap_or_else(|changed| Err(std::io::Error::other(changed)))
    }

    /// The bytes of [`write_standalone`](Self::write_standalone).
    ///
    /// # Panics
    ///
    /// Where that is an error.
    pub fn to_standalone(&self) -> Vec<u8> {
        encoding::bytes_or_panic(|bytes| self.write_standalone(bytes))
    }

    /// The filter as borrowed bytes.
    pub fn as_view(&self) -> BloomView<'_> {
        let Self { ref blocks, k, kernel, seed, keys } = *self;
        BloomView { lanes: Lanes::Blocks(blocks.as_slice()), k, kernel, seed, keys, lanes_checksum: None }
    }
}

impl BloomView<'_> {
    /// A filter of its own, to be changed: a copy that takes as much memory as the bytes.
    ///
    /// Or up to eight times as much if they are fewer than 513, of a short filter, whose blocks overlap: in the copy they
    /// lie side by side. Once it is changed, it is written in that size, and its
    /// [`estimated_keys`](BloomFilter::estimated_keys) are too many by as much.
    #[must_use]
    pub fn to_filter(&self) -> BloomFilter {
        let Self { lanes, k, kernel, seed, keys, .. } = *self;
        let blocks = match lanes {
            Lanes::Blocks(blocks) => Blocks::from_slice(blocks),
            Lanes::Short(short) => short.to_blocks(),
        };
        // Without keys a filter may be given another seed, so damaged bytes must not say so.
        let keys = keys.filter(|&keys| keys != 0 || blocks.as_slice().is_zero());
        BloomFilter::from_parts(blocks, k, kernel, seed, keys)
    }
}

/// Whether the filters answer alike: same blocks, bits, k and seed.
impl PartialEq for BloomFilter {
    fn eq(&self, other: &Self) -> bool {
        self.k == other.k
            && self.seed == other.seed
            && self.blocks.as_slice().as_slice() == other.blocks.as_slice().as_slice()
    }
}

impl Eq for BloomFilter {}

impl<K: AsRef<[u8]>> Extend<K> for BloomFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            self.insert(key);
        }
    }
}

impl fmt::Debug for BloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BloomFilter")
            .field("n_blocks", &self.n_blocks())
            .field("k", &self.k())
            .field("seed", &self.seed())
            .field("kernel", &self.kernel)
            .field("fill_ratio", &self.fill_ratio())
            .finish_non_exhaustive()
    }
}
