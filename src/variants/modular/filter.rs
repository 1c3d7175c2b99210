//! `ModularBloomFilter`: owned and mutable.
#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::fmt;

use super::modules::{CHUNK, Modules, SHORT, next};
use super::view::{CHECKSUM_BYTES, ModularView};
use crate::blocks::{Block, BlockSliceMut};
use crate::error::{BuildError, DecodeError, MismatchError};
use crate::estimate::KeyEstimate;
use crate::filter::BloomFilter;
use crate::footer::{StandaloneFooter, checksum};
use crate::kernel::Kernel;
use crate::key::Key;
use crate::kind::StandaloneKind;
use crate::memory::OutOfMemory;
use crate::sizing::{MAX_MODULES, MOST_MODULES, ModularSizing};
use crate::standalone;

/// Several filters of blocks, called **modules**, that must all have a key. They need hardly more bits than a
/// [`StandardBloomFilter`](crate::variants::StandardBloomFilter), and for absent keys hardly more time than a
/// [`BloomFilter`](crate::BloomFilter).
///
/// A filter of blocks needs more bits than a standard filter, because some blocks get more keys than the average. A
/// block that is too full in one module rarely is in the next. So a false-positive rate of 0.01% costs 22.1 bits per
/// key in one module, but 19.5 in three, where a standard filter needs 19.2. A lookup of an absent key reads one cache
/// line, and a second one only if the first module has the key by mistake, once in ten or more times. A lookup of a
/// present key reads one line of each module.
///
/// So use it for a rate of 0.1% or below, if most lookups are of absent keys. [`sizing`](crate::sizing#modules)
/// compares the costs.
///
/// Keys and their hashes are the same as in every filter. A module's hash is made from the key's hash, as
/// [`format`](mod@crate::format) specifies. The rates are computed with the model of Putze, Sanders and Singler
/// ("Cache-, hash- and space-efficient Bloom filters", 2007). ElasticBF (Zhang and others, 2018) and SHaMBa (2022)
/// divide filters into modules to keep only some of them in memory, which a [`ModularView`] supports, too.
///
/// # Examples
///
/// ```
/// use bloomline::variants::ModularBloomFilter;
///
/// let mut seen = ModularBloomFilter::with_fpr(1_000_000, 0.0001)?;
/// seen.insert("https://example.org/");
/// assert!(seen.contains("https://example.org/"));
/// assert!(!seen.contains("https://example.org/other"));
/// assert_eq!((seen.n_modules(), seen.k()), (3, 4));
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[derive(Clone)]
pub struct ModularBloomFilter {
    /// The blocks of all modules, in the order of the modules. Do not insert or look up keys in it, because each module
    /// has its own hash.
    pub(crate) all: BloomFilter,
    /// Blocks of each module.
    pub(crate) n_blocks: usize,
}

impl ModularBloomFilter {
    /// An empty filter with a false-positive rate of at most `fpr` once it holds `expected_keys` distinct keys, of up
    /// to [`MAX_MODULES`] modules.
    ///
    /// The size is one that [can be folded](ModularSizing::foldable), at most 1% or one block of each module larger
    /// than [`ModularSizing::for_fpr`] returns. For exactly that size, or fewer modules, pass it to
    /// [`with_sizing`](Self::with_sizing).
    ///
    /// # Errors
    ///
    /// If `fpr` is not below 1 or [too low](ModularSizing::for_fpr), or memory for the filter cannot be allocated.
    pub fn with_fpr(expected_keys: usize, fpr: f64) -> Result<Self, BuildError> {
        Self::with_sizing(ModularSizing::for_fpr(expected_keys, fpr, MAX_MODULES)?.foldable())
    }

    /// An empty filter with `bits_per_key` bits for each of `expected_keys` distinct keys, of up to [`MAX_MODULES`]
    /// modules, as [`ModularSizing::for_bits_per_key`] chooses them.
    ///
    /// # Errors
    ///
    /// If `bits_per_key` is not above 0 and at most [`sizing::MAX_BITS_PER_KEY`](crate::sizing::MAX_BITS_PER_KEY), or
    /// memory for the filter cannot be allocated.
    pub fn with_bits_per_key(expected_keys: usize, bits_per_key: f64) -> Result<Self, BuildError> {
        Self::with_sizing(ModularSizing::for_bits_per_key(expected_keys, bits_per_key, MAX_MODULES)?)
    }

    /// An empty filter of this size.
    ///
    /// # Errors
    ///
    /// If memory for the filter cannot be allocated.
    pub fn with_sizing(sizing: ModularSizing) -> Result<Self, BuildError> {
        Ok(Self { all: BloomFilter::with_sizing(sizing.of_all())?, n_blocks: sizing.n_blocks() })
    }

    /// Copies standalone bytes into a filter that you can change. [`ModularView::from_standalone`] reads them in place.
    /// All bytes are compared with their checksums before memory is allocated.
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of a different version, if the keys were hashed by a different function
    /// than this build's, or if memory for the copy cannot be allocated.
    #[doc(alias = "from_bytes")]
    pub fn from_standalone(bytes: &[u8]) -> Result<Self, DecodeError> {
        Ok(ModularView::from_standalone(bytes)?.copy()?)
    }

    /// A copy, with an error if memory runs out. `clone` aborts then, as `Vec`'s does.
    ///
    /// # Errors
    ///
    /// If memory for the copy cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        self.as_view().to_filter()
    }

    /// Sets the seed that keys are hashed with, 0 by default. See
    /// [`BloomFilter::with_seed`](crate::BloomFilter::with_seed).
    ///
    /// # Errors
    ///
    /// [`BuildError::SeedAfterKeys`] if keys have been inserted.
    pub fn with_seed(self, seed: u64) -> Result<Self, BuildError> {
        Ok(Self { all: self.all.with_seed(seed)?, ..self })
    }

    /// Uses a different kernel than the fastest, for tests and benchmarks. The bits stay the same.
    #[doc(hidden)]
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self { all: self.all.with_kernel(kernel), ..self }
    }

    /// Hashes `key` under the filter's seed, for the `*_hash` methods.
    #[inline]
    #[must_use]
    pub fn hash_key(&self, key: impl Key) -> u64 {
        self.all.hash_key(key)
    }

    /// Inserts `key`. Returns whether a bit changed. If not, [`contains`](Self::contains) already returned `true`.
    ///
    /// Writes one cache line of each module, and does not allocate.
    #[doc(alias("add", "put"))]
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> bool {
        self.insert_hash(self.hash_key(key))
    }

    /// [`insert`](Self::insert) by hash, from [`hash_key`](Self::hash_key) or any source of 64 well-mixed bits.
    #[inline]
    pub fn insert_hash(&mut self, mut hash: u64) -> bool {
        self.all.keys = None;
        let BloomFilter { blocks, k, kernel, .. } = &mut self.all;
        let (mut modules, mut changed) = (blocks.as_mut_slice(), false);
        // Not `chunks_exact_mut`, which would divide.
        while let Some((module, others)) = modules.split_at_mut_checked(self.n_blocks) {
            changed |= kernel.insert(as_module(module), hash, *k);
            (modules, hash) = (others, next(hash));
        }
        changed
    }

    /// Inserts many keys by hash, faster than one by one.
    pub fn insert_batch(&mut self, hashes: &[u64]) {
        self.insert_all(hashes, |_| ());
    }

    /// [`insert_batch`](Self::insert_batch) that calls `on_unchanged` with each hash that was inserted before. It may
    /// also call it with a hash that is new, if its bits in the first module were all set.
    pub(crate) fn insert_all(&mut self, hashes: &[u64], mut on_unchanged: impl FnMut(u64)) {
        let BloomFilter { blocks, k, kernel, keys, .. } = &mut self.all;
        if hashes.len() < SHORT && blocks.len() != self.n_blocks {
            hashes.iter().filter(|&&hash| !self.insert_hash(hash)).for_each(|&hash| on_unchanged(hash));
            return;
        }
        *keys = keys.filter(|_| hashes.is_empty());
        let (first, others) = blocks.as_mut_slice().split_at_mut(self.n_blocks);
        kernel.insert_batch(as_module(first), hashes, *k, on_unchanged);
        if others.is_empty() {
            return;
        }
        let mut of_module = [0; CHUNK];
        for hashes in hashes.chunks(CHUNK) {
            let of_module = &mut of_module[..hashes.len()];
            of_module.copy_from_slice(hashes);
            for module in others.chunks_exact_mut(self.n_blocks) {
                of_module.iter_mut().for_each(|hash| *hash = next(*hash));
                kernel.insert_batch(as_module(module), of_module, *k, |_| ());
            }
        }
    }

    /// Returns whether `key` is possibly present. `false` means definitely absent.
    ///
    /// For a key never inserted, the result is `true` with probability [`estimated_fpr`](Self::estimated_fpr). Hashes
    /// the key, and reads one cache line of the first module, then of each further module as long as all modules before
    /// it have the key. Does not allocate.
    #[doc(alias("might_contain", "may_contain"))]
    #[inline]
    #[must_use]
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_hash(self.hash_key(key))
    }

    /// [`contains`](Self::contains) by hash.
    // Inlined as `BloomFilter::contains_hash` is.
    #[inline(always)]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.modules().contain(hash)
    }

    /// Looks up many keys by hash, and sets `found[i]` to whether the key of `hashes[i]` is possibly present. Asks the
    /// first module for all keys, the second for the keys that the first has, and so on.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
        self.modules().contains_batch(hashes, found);
    }

    /// [`contains_batch`](Self::contains_batch) into a bitmap. Sets bit `i % 8` of `found[i / 8]` to whether the key of
    /// `hashes[i]` is possibly present, and clears the bits after the last hash. Arrow's bitmaps have this layout.
    ///
    /// # Panics
    ///
    /// If `found` does not have `hashes.len().div_ceil(8)` bytes.
    pub fn contains_bitmap(&self, hashes: &[u64], found: &mut [u8]) {
        self.as_view().contains_bitmap(hashes, found);
    }

    /// Starts loading the first module's cache line of a hash that you will look up a little later. See
    /// [`BloomFilter::prefetch`](crate::BloomFilter::prefetch).
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.modules().prefetch(hash);
    }

    /// Inserts all keys of `other`, which is a `ModularBloomFilter` or a view. The bits are the same as if each key had
    /// been inserted here.
    ///
    /// # Errors
    ///
    /// If the filters differ in the number of modules or blocks, k or seed. Then nothing is changed.
    #[doc(alias = "merge")]
    pub fn union_with<'a>(&mut self, other: impl Into<ModularView<'a>>) -> Result<(), MismatchError> {
        let other = other.into();
        for (ours, theirs, unit) in
            [(self.n_modules(), other.n_modules(), "modules"), (self.n_blocks, other.n_blocks(), "blocks")]
        {
            if ours != theirs {
                return Err(MismatchError::Size { ours: ours as u64, theirs: theirs as u64, unit });
            }
        }
        self.all.union_with(other.all())
    }

    /// Divides the number of blocks of each module by `factor`. Bit for bit, the result is the filter that would have
    /// been built with that many blocks.
    ///
    /// # Errors
    ///
    /// If `factor` does not divide the number of blocks of a module, or memory for the folded filter cannot be
    /// allocated. Then nothing is changed.
    pub fn fold(&mut self, factor: usize) -> Result<(), BuildError> {
        let n_blocks = self.n_blocks;
        if factor == 0 || !n_blocks.is_multiple_of(factor) {
            return Err(BuildError::FoldFactor { factor, n_blocks });
        }
        // Folding unites groups of neighbouring blocks, none of which spans two modules.
        self.all.fold(factor)?;
        self.n_blocks /= factor;
        Ok(())
    }

    /// Removes all keys. Size, k and seed stay.
    pub fn clear(&mut self) {
        self.all.clear();
    }

    /// Number of modules, 1 to 16.
    pub fn n_modules(&self) -> usize {
        self.modules().len()
    }

    /// Number of blocks of 64 bytes of each module.
    #[inline]
    pub fn n_blocks(&self) -> usize {
        self.n_blocks
    }

    /// Probes per key in each module, 1 to 16.
    #[inline]
    pub fn k(&self) -> u32 {
        self.all.k()
    }

    /// Bytes of memory that the blocks of all modules need.
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.all.byte_len()
    }

    /// The seed that keys are hashed with, 0 unless set by [`with_seed`](Self::with_seed).
    #[inline]
    pub fn seed(&self) -> u64 {
        self.all.seed()
    }

    /// Number of distinct keys, if it is known exactly, as for an empty filter and for a filter read from standalone
    /// bytes that store it. For other filters see [`estimated_keys`](Self::estimated_keys).
    pub fn known_keys(&self) -> Option<u64> {
        self.all.known_keys()
    }

    /// Estimates how many distinct keys were inserted, from the bits of all modules, and so more exactly than a
    /// [`BloomFilter`](crate::BloomFilter) of the same size. Reads the whole filter.
    #[must_use]
    pub fn estimated_keys(&self) -> Option<KeyEstimate> {
        self.as_view().estimated_keys()
    }

    /// The probability that a key never inserted is reported as possibly present. It is the product of the modules'
    /// rates, and exact for their bits. Reads the whole filter.
    #[must_use]
    pub fn estimated_fpr(&self) -> f64 {
        self.as_view().estimated_fpr()
    }

    /// Length of the standalone bytes, which are the modules, a checksum of 8 bytes for each, and a footer of 64 bytes.
    pub fn standalone_len(&self) -> usize {
        self.byte_len() + CHECKSUM_BYTES * self.n_modules() + StandaloneFooter::LEN
    }

    standalone::standalone_io!();

    /// Calls `write` with the parts of the standalone bytes, one by one.
    fn encode<E>(&self, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let (view, n_modules) = (self.as_view(), self.n_modules());
        let mut checksums = [[0; CHECKSUM_BYTES]; MOST_MODULES];
        for (checksum, computed) in checksums.iter_mut().zip(view.computed_checksums()) {
            *checksum = computed.to_le_bytes();
        }
        let checksums = checksums[..n_modules].as_flattened();
        let (size, contents) = (self.n_blocks as u64, checksum(checksums));
        let footer = StandaloneFooter::new(
            StandaloneKind::Modular,
            size,
            self.k(),
            self.seed(),
            self.known_keys(),
            contents,
        );
        write(self.all.blocks.as_slice().as_slice().as_flattened())?;
        write(checksums)?;
        write(&footer.to_bytes_with_reserved(n_modules as u8))
    }

    /// Borrows the filter as a view.
    pub fn as_view(&self) -> ModularView<'_> {
        let (modules, seed, keys) = (self.modules(), self.all.seed, self.all.keys);
        ModularView { modules, seed, keys, checksums: &[] }
    }

    #[inline(always)]
    fn modules(&self) -> Modules<'_> {
        let BloomFilter { blocks, k, kernel, .. } = &self.all;
        Modules { blocks: blocks.as_slice(), n_blocks: self.n_blocks, k: *k, kernel: *kernel }
    }
}

#[inline(always)]
fn as_module(blocks: &mut [Block]) -> BlockSliceMut<'_> {
    BlockSliceMut::new(blocks).expect("at least one block")
}

impl ModularView<'_> {
    /// Copies the view's modules into a filter that you can change. The copy uses as much memory as the modules.
    ///
    /// # Errors
    ///
    /// If memory for the copy cannot be allocated.
    pub fn to_filter(&self) -> Result<ModularBloomFilter, BuildError> {
        Ok(self.copy()?)
    }

    fn copy(&self) -> Result<ModularBloomFilter, OutOfMemory> {
        Ok(ModularBloomFilter { all: self.all().copy()?, n_blocks: self.n_blocks() })
    }
}

impl<'a> From<&'a ModularBloomFilter> for ModularView<'a> {
    fn from(filter: &'a ModularBloomFilter) -> Self {
        filter.as_view()
    }
}

/// Equal filters have the same modules, bits, k and seed, and return the same answers.
impl PartialEq for ModularBloomFilter {
    fn eq(&self, other: &Self) -> bool {
        self.as_view() == other.as_view()
    }
}

impl Eq for ModularBloomFilter {}

impl<K: Key> Extend<K> for ModularBloomFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| _ = self.insert(key));
    }
}

impl fmt::Debug for ModularBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_view().debug("ModularBloomFilter", f)
    }
}
