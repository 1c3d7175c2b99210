//! `AtomicBloomFilter`, a filter with concurrent inserts and lookups.
//!
//! It has no `BloomView`, because the bytes of a view must not change. So standalone bytes are of copies of its lanes.

use alloc::vec::Vec;
use core::{fmt, iter};

use xxhash_rust::xxh64::Xxh64;

use crate::blocks::{BLOCK_BYTES, Block, BlockSlice, Blocks, SharedBlocks, SharedSlice};
use crate::error::Error;
use crate::filter::BloomFilter;
use crate::hash::Seed;
use crate::kernel::{self, Inlined, Kernel};
use crate::key::Key;
use crate::lanes::MOST_LANES;
use crate::mask::{ProbeCount, block_index};
use crate::modules::{MOST_MODULES, Modules, hash_of_next};
use crate::sizing::Sizing;
use crate::standalone;
use crate::view::{self, BloomView, repeats};

/// A [`BloomFilter`] with lock-free concurrent inserts and lookups, for any number of threads.
///
/// An insert sets bits atomically, and writes only if some of the key's bits are missing. So no bit is lost, and
/// inserting a key that is already present leaves its cache line shared among the cores that read it.
///
/// Once an insert has returned, lookups find its key in the same thread, and in threads that have synchronised with it
/// since, for example through a channel, a lock or a join. All other threads may miss the key for a moment.
///
/// Estimates and bytes include every insert that this thread has synchronised with. They may include a part of the
/// inserts that run at the same time.
///
/// Converting from and to a [`BloomFilter`] does not copy, so use `BloomFilter`'s constructors for sizes, seeds and
/// bytes, as in `AtomicBloomFilter::from(BloomFilter::with_blocks(64, 6)?.with_seed(1)?)` or
/// `AtomicBloomFilter::from(BloomFilter::from_standalone(&bytes)?)`.
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
/// let file = seen.to_standalone();
/// assert!(AtomicBloomFilter::from(BloomFilter::from_standalone(&file)?).contains("0/0"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AtomicBloomFilter {
    blocks: SharedBlocks,
    k: ProbeCount,
    inlined: Inlined,
    kernel: Kernel,
    seed: Seed,
}

impl AtomicBloomFilter {
    /// An empty filter with the size and k of [`BloomFilter::with_fpr`].
    ///
    /// # Errors
    ///
    /// If `fpr` is not between [`MIN_FPR`](crate::sizing::MIN_FPR) and 1, or memory for the filter cannot be allocated.
    pub fn with_fpr(expected_keys: u64, fpr: f64) -> Result<Self, Error> {
        BloomFilter::with_fpr(expected_keys, fpr).map(Self::from)
    }

    /// Hashes `key` under the filter's seed, for the `*_hash` methods.
    #[inline]
    #[must_use]
    pub fn hash_key(&self, key: impl Key) -> u64 {
        self.seed.hash(key)
    }

    /// Inserts `key`. Returns whether a bit changed. If several threads insert the same new key at once, at least one
    /// of them gets `true`.
    #[doc(alias("add", "put"))]
    #[inline]
    pub fn insert(&self, key: impl Key) -> bool {
        self.insert_hash(self.seed.hash(key))
    }

    /// [`insert`](Self::insert) by hash.
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> bool {
        match self.inlined.one_module_k {
            Some(k) => kernel::insert_shared(self.blocks.as_slice().block_of(hash), hash, k),
            None => self.insert_into_modules(hash),
        }
    }

    #[inline(never)]
    fn insert_into_modules(&self, hash: u64) -> bool {
        let modules = Self::modules_of(self.blocks.as_slice(), self.blocks.module_blocks(), hash);
        let insert =
            |(module, hash): (SharedSlice<'_>, _)| kernel::insert_shared(module.block_of(hash), hash, self.k);
        modules.fold(false, |changed, in_module| changed | insert(in_module))
    }

    /// The modules, and a key's hash in each.
    #[inline]
    fn modules_of(
        blocks: SharedSlice<'_>,
        module_blocks: usize,
        mut hash: u64,
    ) -> impl Iterator<Item = (SharedSlice<'_>, u64)> {
        let mut rest = blocks.as_slice();
        iter::from_fn(move || {
            let (module, others) = rest.split_at_checked(module_blocks)?;
            let in_module = (SharedSlice::new(module)?, hash);
            (rest, hash) = (others, hash_of_next(hash));
            Some(in_module)
        })
    }

    /// Inserts many keys by hash, faster than one by one if the filter is larger than the caches.
    pub fn insert_batch(&self, hashes: &[u64]) {
        for (hash, later) in kernel::with_later(hashes) {
            later.into_iter().for_each(|later| self.prefetch(later));
            self.insert_hash(hash);
        }
    }

    /// Returns whether `key` is possibly present. `false` means definitely absent, unless a different thread inserted
    /// the key and this thread has not synchronised with it since. See [`BloomFilter::contains`].
    #[doc(alias("might_contain", "may_contain"))]
    #[inline]
    #[must_use]
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_hash(self.seed.hash(key))
    }

    /// [`contains`](Self::contains) by hash.
    // Inlined for the same reason as `BloomFilter::contains_hash`.
    #[inline(always)]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        match self.inlined.one_module_k {
            Some(k) => self.kernel.contains_shared(self.blocks.as_slice(), hash, self.inlined.probes(k)),
            None => {
                let Self { ref blocks, k, kernel, .. } = *self;
                Self::modules_contain(blocks.as_slice(), blocks.module_blocks(), hash, k, kernel)
            }
        }
    }

    #[inline(never)]
    fn modules_contain(
        blocks: SharedSlice<'_>,
        module_blocks: usize,
        hash: u64,
        k: ProbeCount,
        kernel: Kernel,
    ) -> bool {
        Self::modules_of(blocks, module_blocks, hash)
            .all(|(module, hash)| kernel.contains_shared(module, hash, k))
    }

    /// Looks up many keys by hash, and sets `found[i]` to whether the key of `hashes[i]` is possibly present.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
        assert_eq!(hashes.len(), found.len(), "one answer per hash");
        // From twice the size on, because a prefetch adds more to this loop than to a kernel's.
        let is_large = self.blocks.len() >= 2 * kernel::large();
        let later = if is_large { hashes.get(kernel::DISTANCE..).unwrap_or_default() } else { &[] };
        if is_large {
            hashes.iter().take(kernel::DISTANCE).for_each(|&hash| self.prefetch(hash));
        }
        let (found, found_late) = found.split_at_mut(later.len());
        for ((&hash, &later), found) in hashes.iter().zip(later).zip(found) {
            self.prefetch(later);
            *found = self.contains_hash(hash);
        }
        for (&hash, found) in hashes[later.len()..].iter().zip(found_late) {
            *found = self.contains_hash(hash);
        }
    }

    /// Starts loading the cache line of a hash in the first module. See [`BloomFilter::prefetch`].
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        let first = self.blocks.as_slice().as_slice().as_ptr();
        kernel::prefetch::<false>(first.wrapping_add(block_index(hash, self.blocks.module_blocks())).cast());
    }

    /// Inserts all keys of `other`, which is a `BloomFilter`, a view or an owned view. Other threads may insert and
    /// look up meanwhile. If `other` has fewer blocks, they are repeated as in [`BloomFilter::union_with`].
    ///
    /// # Errors
    ///
    /// As [`BloomFilter::union_with`].
    #[doc(alias = "merge")]
    pub fn union_with<'a>(&self, other: impl Into<BloomView<'a>>) -> Result<(), Error> {
        let other = other.into();
        let repeats = repeats(self.sizing(), self.seed, &other)?;
        other.lanes.with_blocks(|theirs| {
            for (ours, theirs) in
                self.blocks.as_slice().as_slice().chunks_exact(repeats).zip(theirs.blocks.as_slice())
            {
                ours.iter().for_each(|ours| kernel::set_shared(ours, theirs));
            }
        });
        Ok(())
    }

    /// Removes all keys. Size, k and seed stay.
    pub fn clear(&mut self) {
        self.blocks.get_mut().as_mut_slice().fill([0; BLOCK_BYTES]);
    }

    /// Copies the filter, while other threads may continue to insert.
    ///
    /// # Errors
    ///
    /// If memory for the copy cannot be allocated.
    pub fn to_filter(&self) -> Result<BloomFilter, Error> {
        let Sizing { n_blocks, n_modules, k } = self.sizing();
        let mut blocks = Blocks::zeroed(n_blocks)?;
        self.blocks.copy_to(0, blocks.as_mut_slice());
        Ok(BloomFilter::new(blocks.in_modules(n_modules), k, self.kernel, self.seed, None))
    }

    /// The filter's size: its blocks of all modules, its modules and k.
    #[doc(alias("k", "n_blocks", "n_modules", "byte_len"))]
    pub fn sizing(&self) -> Sizing {
        let n_blocks = self.blocks.len();
        Sizing { n_blocks, n_modules: n_blocks / self.blocks.module_blocks(), k: self.k }
    }

    /// The seed that keys are hashed with.
    #[inline]
    pub fn seed(&self) -> u64 {
        self.seed.get()
    }

    /// Copies the blocks to `scratch` if they are so few that they may share lanes, as in a short filter.
    fn few<'r>(&self, scratch: &'r mut [Block; MOST_LANES]) -> Option<Modules<'r>> {
        let copies = scratch.get_mut(..self.blocks.len())?;
        self.blocks.copy_to(0, copies);
        Some(Modules { blocks: BlockSlice::new(copies)?, module_blocks: self.blocks.module_blocks() })
    }

    /// Length of the standalone bytes. Inserts of other threads may change it if the filter has fewer than 64 blocks,
    /// because blocks that could share lanes are written as these lanes.
    fn standalone_len(&self) -> usize {
        let scratch = &mut [[0; BLOCK_BYTES]; MOST_LANES];
        match self.few(scratch) {
            Some(few) => standalone::len(few),
            None => self.sizing().byte_len() + standalone::tail_len(self.sizing().n_modules),
        }
    }

    standalone::standalone_io!();

    /// Calls `write` with the parts of the standalone bytes, in order. The checksums are computed from the copies that
    /// are written, so they are right whatever other threads insert meanwhile.
    fn encode<E>(&self, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let scratch = &mut [[0; BLOCK_BYTES]; MOST_LANES];
        if let Some(few) = self.few(scratch) {
            return standalone::encode(few, self.k, self.seed, None, write);
        }
        let (module_blocks, mut checksums) = (self.blocks.module_blocks(), [0; MOST_MODULES]);
        for (checksum, module) in checksums.iter_mut().zip(0..self.sizing().n_modules) {
            let mut hash = Xxh64::new(module as u64);
            let blocks = module * module_blocks..(module + 1) * module_blocks;
            for start in blocks.clone().step_by(MOST_LANES) {
                let copies = &mut scratch[..MOST_LANES.min(blocks.end - start)];
                self.blocks.copy_to(start, copies);
                let copied = copies.as_flattened();
                hash.update(copied);
                write(copied)?;
            }
            *checksum = hash.digest();
        }
        let checksums = checksums.into_iter().take(self.sizing().n_modules);
        standalone::write_tail(self.sizing().byte_len(), checksums, self.k, self.seed, None, write)
    }
}

/// Moves the filter's memory without copying it, with its keys, seed and kernel.
impl From<BloomFilter> for AtomicBloomFilter {
    fn from(filter: BloomFilter) -> Self {
        let BloomFilter { blocks, k, inlined, kernel, seed, .. } = filter;
        Self { blocks: SharedBlocks::new(blocks), k, inlined, kernel, seed }
    }
}

/// Moves the filter's memory without copying it.
impl From<AtomicBloomFilter> for BloomFilter {
    fn from(filter: AtomicBloomFilter) -> Self {
        let AtomicBloomFilter { blocks, k, kernel, seed, .. } = filter;
        Self::new(blocks.into_inner(), k, kernel, seed, None)
    }
}

impl fmt::Debug for AtomicBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        view::debug(f, "AtomicBloomFilter", self.sizing(), self.seed, self.kernel)
    }
}
