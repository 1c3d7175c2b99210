//! `AtomicBloomFilter`: concurrent inserts and lookups.
#![forbid(unsafe_code)]

use core::fmt;
use core::sync::atomic::Ordering;

use crate::blocks::{SharedBlocks, or_abort};
use crate::error::SizingError;
use crate::filter::BloomFilter;
use crate::hash::Seed;
use crate::kernel::{self, Kernel};
use crate::mask::ProbeCount;

/// A [`BloomFilter`] with lock-free concurrent inserts and lookups, for any number of threads.
///
/// An insert sets bits in lanes of 64, atomically, and writes only to lanes that lack some of the key's bits. So no
/// thread undoes another's bits, and inserting a key that is already present leaves its cache line shared among the
/// cores that read it. Once an insert has returned, lookups find its key: those of the same thread, and those of
/// threads that have synchronised with it since, through a channel, a lock or a join. Other threads may miss it for a
/// moment.
///
/// Converting from and to a [`BloomFilter`] does not copy. For methods that are missing here, such as those for bytes
/// and estimates, convert it to a filter, or take a [copy](Self::to_filter) while other threads continue.
///
/// # Examples
///
/// ```
/// use std::thread;
/// use bloomline::{AtomicBloomFilter, BloomFilter};
///
/// let seen = AtomicBloomFilter::with_fpr(4_000, 0.01)?;
/// thread::scope(|scope| {
///     for worker in 0..4 {
///         let seen = &seen;
///         scope.spawn(move || (0..1_000).for_each(|page| _ = seen.insert(format!("{worker}/{page}"))));
///     }
/// });
/// assert!(seen.contains("3/999"));
/// let filter = BloomFilter::from(seen);
/// assert!(filter.contains("0/0"));
/// # Ok::<(), bloomline::SizingError>(())
/// ```
pub struct AtomicBloomFilter {
    blocks: SharedBlocks,
    k: ProbeCount,
    kernel: Kernel,
    seed: Seed,
}

impl AtomicBloomFilter {
    /// An empty filter with the size and k of [`BloomFilter::with_fpr`].
    ///
    /// # Errors
    ///
    /// If `fpr` is not between [`MIN_FPR`](crate::sizing::MIN_FPR) and 1, or memory for the filter cannot be allocated.
    pub fn with_fpr(expected_keys: usize, fpr: f64) -> Result<Self, SizingError> {
        BloomFilter::with_fpr(expected_keys, fpr).map(Self::from)
    }

    /// An empty filter with the size and k of [`BloomFilter::with_bits_per_key`].
    ///
    /// # Errors
    ///
    /// If `bits_per_key` is not above 0 and at most [`MAX_BITS_PER_KEY`](crate::sizing::MAX_BITS_PER_KEY), or memory
    /// for the filter cannot be allocated.
    pub fn with_bits_per_key(expected_keys: usize, bits_per_key: f64) -> Result<Self, SizingError> {
        BloomFilter::with_bits_per_key(expected_keys, bits_per_key).map(Self::from)
    }

    /// An empty filter of `n_blocks` blocks of 64 bytes, with `k` probes per key, 1 to 16.
    ///
    /// # Errors
    ///
    /// If `n_blocks` or `k` is out of range, or memory for the filter cannot be allocated.
    pub fn with_blocks(n_blocks: usize, k: u32) -> Result<Self, SizingError> {
        BloomFilter::with_blocks(n_blocks, k).map(Self::from)
    }

    /// Inserts `key`. Returns whether a bit changed. If several threads insert the same new key at once, at least one
    /// of them gets `true`.
    #[inline]
    pub fn insert(&self, key: impl AsRef<[u8]>) -> bool {
        self.insert_hash(self.seed.hash(key.as_ref()))
    }

    /// [`insert`](Self::insert) by hash.
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> bool {
        self.kernel.insert_shared(self.blocks.block_of(hash), hash, self.k)
    }

    /// Inserts many keys by hash: faster than one by one if the filter is larger than the caches.
    pub fn insert_batch(&self, hashes: &[u64]) {
        kernel::each_ahead(hashes, |hash| self.prefetch(hash), |hash| _ = self.insert_hash(hash));
    }

    /// Returns whether `key` is possibly present. `false` means definitely absent, unless another thread inserted the
    /// key and this thread has not synchronised with it since. See [`BloomFilter::contains`].
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.contains_hash(self.seed.hash(key.as_ref()))
    }

    /// [`contains`](Self::contains) by hash.
    // Inlined for the same reason as `BloomFilter::contains_hash`.
    #[inline(always)]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.kernel.contains_shared(self.blocks.block_of(hash), hash, self.k)
    }

    /// Looks up many keys by hash: sets `found[i]` to whether the key of `hashes[i]` is possibly present.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
        assert_eq!(hashes.len(), found.len(), "one answer per hash");
        let mut found = found.iter_mut();
        let look_up = |hash| {
            if let Some(found) = found.next() {
                *found = self.contains_hash(hash);
            }
        };
        kernel::each_ahead(hashes, |hash| self.prefetch(hash), look_up);
    }

    /// Starts loading the cache line of a hash. See [`BloomFilter::prefetch`].
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        kernel::prefetch::<false>(self.blocks.block_of(hash).as_ptr().cast());
    }

    /// Copies the filter: the copy has all keys of inserts that this thread has synchronised with, and perhaps some
    /// bits of inserts that run at the same time.
    pub fn to_filter(&self) -> BloomFilter {
        or_abort(self.try_to_filter())
    }

    /// [`to_filter`](Self::to_filter), with an error if memory runs out.
    ///
    /// # Errors
    ///
    /// If memory for the copy cannot be allocated.
    pub fn try_to_filter(&self) -> Result<BloomFilter, SizingError> {
        Ok(BloomFilter::from_parts(self.blocks.try_copy()?, self.k, self.kernel, self.seed, None))
    }

    /// Probes per key, 1 to 16.
    #[inline]
    pub fn k(&self) -> u32 {
        self.k.get()
    }

    /// Number of blocks of 64 bytes.
    #[inline]
    pub fn n_blocks(&self) -> usize {
        self.blocks.as_slice().len()
    }

    /// Bytes of memory that the blocks take.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        size_of_val(self.blocks.as_slice())
    }

    /// The seed that keys are hashed with.
    #[inline]
    pub fn seed(&self) -> u64 {
        self.seed.get()
    }

    /// The kernel in use.
    #[inline]
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Fraction of bits that are set, 0 to 1. Each lane is read at some time during the call. The best filters are a
    /// little below one half full. Reads the whole filter.
    pub fn fill_ratio(&self) -> f64 {
        let lanes = self.blocks.as_slice().as_flattened();
        let ones: u64 = lanes.iter().map(|lane| u64::from(lane.load(Ordering::Relaxed).count_ones())).sum();
        ones as f64 / (8 * self.size_bytes()) as f64
    }
}

/// Takes over the filter's memory without copying, with its keys, seed and kernel.
impl From<BloomFilter> for AtomicBloomFilter {
    fn from(filter: BloomFilter) -> Self {
        let (blocks, k, kernel, seed) = filter.into_parts();
        Self { blocks: SharedBlocks::new(blocks), k, kernel, seed }
    }
}

/// Takes over the memory without copying.
impl From<AtomicBloomFilter> for BloomFilter {
    fn from(filter: AtomicBloomFilter) -> Self {
        let AtomicBloomFilter { blocks, k, kernel, seed } = filter;
        Self::from_parts(blocks.into_inner(), k, kernel, seed, None)
    }
}

impl fmt::Debug for AtomicBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicBloomFilter")
            .field("n_blocks", &self.n_blocks())
            .field("k", &self.k())
            .field("seed", &self.seed())
            .field("kernel", &self.kernel)
            .field("fill_ratio", &self.fill_ratio())
            .finish_non_exhaustive()
    }
}
