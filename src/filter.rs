//! `BloomFilter`, which owns its bits and can change.

use alloc::vec::Vec;
use core::fmt;

use crate::blocks::{Block, Blocks, LANES, block_from_lanes, combined, lanes_of};
use crate::compact;
use crate::error::Error;
use crate::estimate::KeyEstimate;
use crate::extend::{are_many, in_batches};
use crate::hash::Seed;
use crate::kernel::{self, Changed, Inlined, Kernel};
use crate::key::Key;
use crate::lanes::Lanes;
use crate::mask::ProbeCount;
use crate::memory::OutOfMemory;
use crate::modules::{Modules, hash_of_next};
use crate::sizing::Sizing;
use crate::standalone;
use crate::view::{self, BloomView, repeats};

/// An approximate set of keys. A lookup returns "definitely absent" or "possibly present" and reads one cache line.
///
/// For low false-positive rates, the filter is divided into [modules](crate::sizing#modules), which must all have a key,
/// because it then needs fewer bits. A lookup still reads one cache line for nearly all absent keys, but one of each
/// module for present keys.
///
/// Keys cannot be listed or removed, but a [`CountingBloomFilter`](crate::variants::CountingBloomFilter) can remove
/// them. The filter never grows. With more keys than it was sized for, it still finds every key, but its false-positive
/// rate rises.
///
/// A [`Key`] is text, a byte string or an integer. Methods that end in `_hash` accept the key's 64-bit hash instead,
/// from [`hash_key`](Self::hash_key) or a function of yours whose 64 bits are all well mixed ([`mix`](crate::mix)
/// repairs weak hashes). Use one function for every insert and lookup.
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
/// # Ok::<(), bloomline::Error>(())
/// ```
#[derive(Clone)]
pub struct BloomFilter {
    pub(crate) blocks: Blocks,
    pub(crate) k: ProbeCount,
    pub(crate) inlined: Inlined,
    pub(crate) kernel: Kernel,
    pub(crate) seed: Seed,
    /// Number of distinct keys, if known. Inserts make it unknown, because repeats go unnoticed.
    pub(crate) keys: Option<u64>,
}

impl BloomFilter {
    /// An empty filter with a false-positive rate of at most `fpr` once it holds `expected_keys` distinct keys. 1%
    /// needs 9.9 bits per key.
    ///
    /// As the number of keys is usually a guess, the size is one that [can be folded](Sizing::rounded_to_fold), at most 1% or
    /// one block of each module larger than [`Sizing::for_fpr`] returns. For exactly that size, or a different number of
    /// modules, use [`with_sizing`](Self::with_sizing).
    ///
    /// # Errors
    ///
    /// If `fpr` is below [`sizing::MIN_FPR`](crate::sizing::MIN_FPR) or not below 1, the filter is larger than the
    /// address space, or memory for the filter cannot be allocated.
    pub fn with_fpr(expected_keys: u64, fpr: f64) -> Result<Self, Error> {
        Self::with_sizing(Sizing::for_fpr(expected_keys, fpr)?.rounded_to_fold())
    }

    /// An empty filter with `bits_per_key` bits for each of `expected_keys` distinct keys, rounded up to whole blocks
    /// of 64 bytes, and the best k for that size.
    ///
    /// # Errors
    ///
    /// If `bits_per_key` is not above 0 and at most [`sizing::MAX_BITS_PER_KEY`](crate::sizing::MAX_BITS_PER_KEY), the
    /// filter is larger than the address space, or memory for the filter cannot be allocated.
    pub fn with_bits_per_key(expected_keys: u64, bits_per_key: f64) -> Result<Self, Error> {
        Self::with_sizing(Sizing::for_bits_per_key(expected_keys, bits_per_key)?)
    }

    /// An empty filter of `n_blocks` blocks of 64 bytes in one module, with `k` probes per key, 1 to 16.
    ///
    /// # Errors
    ///
    /// If `n_blocks` is 0, the filter is larger than the address space, `k` is not 1 to 16, or memory for the filter
    /// cannot be allocated.
    pub fn with_blocks(n_blocks: usize, k: u32) -> Result<Self, Error> {
        Self::with_sizing(Sizing::new(n_blocks, k)?)
    }

    /// An empty filter of a size that [`Sizing`] computed or checked.
    ///
    /// # Errors
    ///
    /// If memory for the filter cannot be allocated.
    pub fn with_sizing(sizing: Sizing) -> Result<Self, Error> {
        let blocks = Blocks::zeroed(sizing.n_blocks())?.in_modules(sizing.n_modules());
        Ok(Self::new(blocks, sizing.probe_count(), Kernel::active(), Seed::DEFAULT, Some(0)))
    }

    pub(crate) fn new(blocks: Blocks, k: ProbeCount, kernel: Kernel, seed: Seed, keys: Option<u64>) -> Self {
        let inlined = Inlined::new(kernel, k, blocks.len(), blocks.module_blocks());
        Self { blocks, k, inlined, kernel, seed, keys }
    }

    /// Copies compact bytes, of a filter with seed 0, into a filter that you can change. [`BloomView::from_compact`]
    /// reads them in place. For a different seed, use `BloomView::from_compact_with_seed(bytes, seed)?.to_filter()?`.
    ///
    /// # Errors
    ///
    /// If no filter has this length or last bytes, or memory for the copy cannot be allocated. Compact bytes rely on the
    /// length and checksum of their container, because not every cut or flipped bit is detected here.
    pub fn from_compact(bytes: &[u8]) -> Result<Self, Error> {
        Ok(BloomView::from_compact(bytes)?.copy()?)
    }

    /// Copies standalone bytes into a filter that you can change. [`BloomView::from_standalone`] reads them in place.
    /// All bytes are compared with their checksums before memory is allocated.
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of a different version, if the keys were hashed by a different function
    /// than this build's, or if memory for the copy cannot be allocated.
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
    #[doc(alias = "from_bytes")]
    pub fn from_standalone(bytes: &[u8]) -> Result<Self, Error> {
        Ok(BloomView::from_standalone(bytes)?.copy()?)
    }

    /// An empty filter of `module_blocks` blocks in each module, with this filter's number of modules, k, kernel and
    /// seed.
    pub(crate) fn try_empty(&self, module_blocks: usize) -> Result<Self, OutOfMemory> {
        let Self { k, kernel, seed, .. } = *self;
        let blocks = Blocks::zeroed(module_blocks.saturating_mul(self.n_modules()))?;
        Ok(Self::new(blocks.in_modules(self.n_modules()), k, kernel, seed, Some(0)))
    }

    /// Sets the seed that keys are hashed with, 0 by default. Filters with different seeds place keys differently, so
    /// they rarely have a false positive in common, unless an attacker chose the key.
    ///
    /// # Errors
    ///
    /// If keys have been inserted.
    ///
    /// # Examples
    ///
    /// ```
    /// let filter = bloomline::BloomFilter::with_fpr(1_000, 0.01)?.with_seed(0x5eed)?;
    /// assert_eq!(filter.seed(), 0x5eed);
    /// # Ok::<(), bloomline::Error>(())
    /// ```
    pub fn with_seed(self, seed: u64) -> Result<Self, Error> {
        let seed = Seed::of_empty(seed, self.keys == Some(0))?;
        Ok(Self { seed, ..self })
    }

    /// Uses a given kernel, for tests and benchmarks. The bits stay the same.
    #[doc(hidden)]
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self::new(self.blocks, self.k, kernel, self.seed, self.keys)
    }

    /// Hashes `key` under the filter's seed, for the `*_hash` methods.
    #[inline]
    #[must_use]
    pub fn hash_key(&self, key: impl Key) -> u64 {
        self.seed.hash(key)
    }

    /// Inserts `key`. Returns whether a bit changed. If not, [`contains`](Self::contains) already returned `true`.
    #[doc(alias("add", "put"))]
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> bool {
        self.insert_hash(self.seed.hash(key))
    }

    /// [`insert`](Self::insert) by hash.
    // Inlined, because in a default build a call costs as much as the insert, and the compiler would not inline it.
    #[inline(always)]
    pub fn insert_hash(&mut self, hash: u64) -> bool {
        self.keys = None;
        let Self { ref mut blocks, k, kernel, inlined, .. } = *self;
        let changed = inlined.one_module.insert_inlined(blocks.as_mut(), hash, inlined.probes(k));
        changed.unwrap_or_else(|| {
            let module_blocks = blocks.module_blocks();
            Kernel::insert_into_modules(blocks.as_mut_slice(), module_blocks, hash, k, kernel)
        })
    }

    /// Inserts many keys by hash, faster than one by one.
    pub fn insert_batch(&mut self, hashes: &[u64]) {
        // As many as there are hashes, in no memory.
        self.insert_all(hashes, &mut [(); usize::MAX][..hashes.len()]);
    }

    /// [`insert_batch`](Self::insert_batch) that sets `new[i]` to whether the key of `hashes[i]` changed a bit, as
    /// [`insert_hash`](Self::insert_hash) returns it. A key that repeats an earlier one of the batch is not new.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::{BloomFilter, hash_key};
    ///
    /// let mut seen = BloomFilter::with_fpr(1_000, 0.01)?;
    /// let hashes = ["ant", "bee", "ant"].map(|line| hash_key(line, seen.seed()));
    /// let mut new = [false; 3];
    /// seen.insert_batch_new(&hashes, &mut new);
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), bloomline::Error>(())
    /// ```
    pub fn insert_batch_new(&mut self, hashes: &[u64], new: &mut [bool]) {
        assert_eq!(hashes.len(), new.len(), "one answer per hash");
        self.insert_all(hashes, new);
    }

    fn insert_all(&mut self, hashes: &[u64], changed: &mut [impl Changed]) {
        if !hashes.is_empty() {
            self.keys = None;
            let Self { ref mut blocks, k, kernel, .. } = *self;
            let module_blocks = blocks.module_blocks();
            kernel.insert_batch_into_modules(blocks.as_mut_slice(), module_blocks, hashes, k, changed);
        }
    }

    /// Returns whether `key` is possibly present. `false` means definitely absent.
    ///
    /// For a key never inserted, the result is `true` with probability [`estimated_fpr`](Self::estimated_fpr). Hashes
    /// the key and reads one cache line, of the first module, and then of each further module as long as all modules
    /// before it have the key. Does not allocate.
    #[doc(alias("might_contain", "may_contain"))]
    #[inline]
    #[must_use]
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_hash(self.seed.hash(key))
    }

    /// [`contains`](Self::contains) by hash.
    ///
    /// To keep the answers, call [`contains_batch`](Self::contains_batch). A loop that writes or collects each answer runs
    /// 1.3 to 1.5 times as long as a loop that counts, because the compiler reads the filter's fields again after each
    /// write. A batch runs in 0.8 of the counting loop's time (Zen 5, 16 KiB).
    // Inlined for the same reason as `insert_hash`. All that it calls gets copies of the fields. If it got `self`, the
    // compiler would assume that the fields change, and a loop would read them and choose the kernel again for each
    // lookup. The view repeats this body, because with a shared function the compiler would assume it again.
    #[inline(always)]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let Self { ref blocks, k, kernel, inlined, .. } = *self;
        let (all, first) = (blocks.as_slice(), blocks.first_module());
        if let Some(is_found) = inlined.one_module.contains_inlined(all, hash, inlined.probes(k)) {
            return is_found;
        }
        // The first of two modules decides for nearly all absent keys.
        if let Some(is_found) = inlined.two_modules.contains_inlined(first, hash, inlined.probes(k)) {
            return is_found && Kernel::second_contains(k, hash, all, inlined.two_modules);
        }
        Kernel::modules_contain(k, hash, all, blocks.module_blocks(), kernel)
    }

    /// Returns whether all modules but the first have the key, whose hash in the first is given.
    pub(crate) fn others_contain(&self, hash: u64) -> bool {
        self.kernel.others_contain(self.modules(), hash, self.k)
    }

    /// Returns whether the hash is possibly present in the first module of any of the filters. All filters must have
    /// the same k.
    #[inline(always)]
    pub(crate) fn any_first_contains(filters: &[Self], hash: u64) -> bool {
        match filters {
            [] => false,
            [only] => only.kernel.contains(only.blocks.first_module(), hash, only.k),
            [first, ..] => {
                let blocks = filters.iter().map(|filter| filter.blocks.first_module());
                // Which filters they are would cost up to a tenth more.
                let add = |hits, contains| hits + u64::from(contains);
                Kernel::fold_contains(blocks, hash, first.k, first.kernel, add) != 0
            }
        }
    }

    /// Which of at most 64 filters possibly have the hash in their first module, one bit each. The last filter's bit is
    /// the lowest. All filters must have the same k.
    pub(crate) fn which_first_contain(filters: &[Self], hash: u64) -> u64 {
        let Some(Self { k, kernel, .. }) = filters.first() else { return 0 };
        let add = |found, contains| 2 * found + u64::from(contains);
        Kernel::fold_contains(
            filters.iter().map(|filter| filter.blocks.first_module()),
            hash,
            *k,
            *kernel,
            add,
        )
    }

    /// Looks up many keys by hash, and sets `found[i]` to whether the key of `hashes[i]` is possibly present.
    ///
    /// From about 64 keys on, it needs 0.8 to 1.1 of the time of a loop that counts what
    /// [`contains_hash`](Self::contains_hash) finds. If the filter is larger than a core's L2 cache, the waits for memory
    /// overlap, so in 16 MiB a key costs 2.5 ns instead of 8 (Zen 5).
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::BloomFilter;
    ///
    /// let mut filter = BloomFilter::with_fpr(1_000, 0.01)?;
    /// filter.extend(["ant", "bee"]); // hashes in batches itself
    /// let (mut hashes, mut found) = (Vec::new(), Vec::new()); // kept, so that a further batch allocates nothing
    /// for keys in [["ant", "bee", "cat"], ["bee", "cow", "dog"]] {
    ///     hashes.clear();
    ///     hashes.extend(keys.map(|key| filter.hash_key(key)));
    ///     found.resize(hashes.len(), false);
    ///     filter.contains_batch(&hashes, &mut found);
    /// }
    /// assert_eq!(found, [true, false, false]); // of the second batch
    /// # Ok::<(), bloomline::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
        self.as_view().contains_batch(hashes, found);
    }

    /// [`contains_batch`](Self::contains_batch) into a bitmap. Sets bit `i % 8` of `found[i / 8]` to whether the key of
    /// `hashes[i]` is possibly present, and clears the bits after the last hash. Arrow's bitmaps have this layout.
    ///
    /// # Panics
    ///
    /// If `found` does not have `hashes.len().div_ceil(8)` bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::{BloomFilter, hash_key};
    ///
    /// let mut filter = BloomFilter::with_fpr(1_000, 0.01)?;
    /// filter.insert("ant");
    /// filter.insert("cat");
    /// let hashes = ["ant", "bee", "cat"].map(|key| hash_key(key, 0));
    /// let mut found = [0];
    /// filter.contains_bitmap(&hashes, &mut found);
    /// assert_eq!(found, [0b101]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_bitmap(&self, hashes: &[u64], found: &mut [u8]) {
        self.as_view().contains_bitmap(hashes, found);
    }

    /// Starts loading the cache line of a hash, in the first module, that you will look up or insert a little later.
    /// With many filters to probe, or other work to do in between, the waits for memory overlap.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        kernel::prefetch::<false>(self.blocks.first_module().block_of(hash));
    }

    /// [`prefetch`](Self::prefetch) in the first two modules, for a hash that you will insert. An insert sets bits in
    /// every module, but a lookup of an absent key mostly reads only the first.
    #[inline]
    pub fn prefetch_insert(&self, hash: u64) {
        self.prefetch(hash);
        self.prefetch_second(hash);
    }

    /// [`prefetch`](Self::prefetch) in the second module, if there is one.
    #[inline]
    pub(crate) fn prefetch_second(&self, hash: u64) {
        if let Some(others) = self.modules().others() {
            let (second, _) = others.split(self.blocks.module_blocks());
            kernel::prefetch::<false>(second.block_of(hash_of_next(hash)));
        }
    }

    /// Inserts all keys of `other`, which is a `BloomFilter`, a view or an owned view. Copies nothing. For an
    /// `AtomicBloomFilter`, pass its `to_filter`.
    ///
    /// If both have as many blocks, the bits are the same as if each key had been inserted here. If `other` has fewer,
    /// each of them is repeated, because its bits do not show in which of the larger filter's blocks a key falls. So
    /// its keys fill this filter as many times as this filter is larger. To unite with a larger filter, swap the two,
    /// or [fold](Self::fold) it. If neither size divides the other, [resize](BloomView::to_resized) one of them.
    ///
    /// There is no `|`, because filters of some sizes have no union, and an operator cannot return an error.
    ///
    /// # Errors
    ///
    /// If the blocks of `other` do not divide this filter's, or the filters differ in the number of modules, k or seed.
    /// Then nothing is changed.
    ///
    /// # Examples
    ///
    /// Each thread inserts a part of the keys into a filter of its own.
    ///
    /// ```
    /// use std::thread;
    /// use bloomline::{BloomFilter, mix};
    ///
    /// let hashes: Vec<u64> = (0..1_000_000).map(mix).collect();
    /// let empty = BloomFilter::with_bits_per_key(hashes.len() as u64, 10.0)?;
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
    #[doc(alias = "merge")]
    pub fn union_with<'a>(&mut self, other: impl Into<BloomView<'a>>) -> Result<(), Error> {
        self.combine(other.into(), |ours, theirs| ours | theirs)
    }

    /// Keeps the bits that are set in both filters, so keys that are in both stay possibly present. `other` is a
    /// `BloomFilter`, a view or an owned view, with as many blocks or a divisor of them, as in
    /// [`union_with`](Self::union_with).
    ///
    /// The false-positive rate is at most either filter's, but above the rate of a filter built from the common keys
    /// alone, because bits that different keys set in the two filters stay too.
    /// [`estimated_keys`](Self::estimated_keys) counts these bits as keys, so it is too high from then on. If you need
    /// an estimate, first call [`estimated_intersection`](BloomView::estimated_intersection) of the
    /// [view](Self::as_view).
    ///
    /// # Errors
    ///
    /// As [`union_with`](Self::union_with).
    pub fn intersect_with<'a>(&mut self, other: impl Into<BloomView<'a>>) -> Result<(), Error> {
        self.combine(other.into(), |ours, theirs| ours & theirs)
    }

    fn combine(&mut self, other: BloomView<'_>, combine: impl Fn(u8, u8) -> u8) -> Result<(), Error> {
        let repeats = repeats(self.sizing(), self.seed, &other)?;
        self.keys = None;
        other.lanes.with_blocks(|theirs| {
            let ours = self.blocks.as_mut_slice().chunks_exact_mut(repeats);
            for (ours, theirs) in ours.zip(theirs.blocks.as_slice()) {
                ours.iter_mut().for_each(|ours| *ours = combined(ours, theirs, &combine));
            }
        });
        Ok(())
    }

    /// Clears bits in the block of `hash`, in a filter of one module. The caller must know that no key has them any more.
    pub(crate) fn clear_bits(&mut self, hash: u64, bits: [u64; LANES]) {
        self.keys = None;
        let mut blocks = self.blocks.as_mut();
        let block = blocks.block_of(hash);
        let mut lanes = lanes_of(block);
        for (lane, bits) in lanes.iter_mut().zip(bits) {
            *lane &= !bits;
        }
        *block = block_from_lanes(lanes);
    }

    /// Removes all keys. Size, k and seed stay.
    pub fn clear(&mut self) {
        self.blocks.as_mut_slice().fill([0; size_of::<Block>()]);
        self.keys = Some(0);
    }

    /// The size, to compute a rate, or to make filters that can be united with this one.
    pub fn sizing(&self) -> Sizing {
        Sizing { n_blocks: self.n_blocks(), n_modules: self.n_modules(), k: self.k }
    }

    /// Probes per key, bits set by an insert and tested by a lookup, 1 to 16, in each module.
    #[inline]
    pub fn k(&self) -> u32 {
        self.k.get()
    }

    /// Number of modules, 1 to 16, which must all have a key. [`sizing`](crate::sizing#modules) compares their costs.
    #[inline]
    pub fn n_modules(&self) -> usize {
        self.modules().n_modules()
    }

    /// Number of blocks of 64 bytes, of all modules. See [`Sizing::n_blocks`].
    #[inline]
    pub fn n_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Bytes of memory of the blocks.
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.blocks.as_slice().as_slice().as_flattened().len()
    }

    /// The seed that keys are hashed with, 0 unless set by [`with_seed`](Self::with_seed).
    #[inline]
    pub fn seed(&self) -> u64 {
        self.seed.get()
    }

    /// The kernel in use, for tests and benchmarks.
    #[doc(hidden)]
    #[inline]
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Number of distinct keys, if it is known exactly. It is known for an empty filter, for a filter that a
    /// [`FilterBuilder`](crate::FilterBuilder) made, and for a filter read from standalone bytes that store it. Any
    /// insert, union or intersection makes it unknown, because repeats go unnoticed. For such filters, see
    /// [`estimated_keys`](Self::estimated_keys).
    pub fn known_keys(&self) -> Option<u64> {
        self.keys
    }

    /// Fraction of bits that are set, 0 to 1. The best filters are a little below one half full. Reads the whole
    /// filter.
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        self.as_view().fill_ratio()
    }

    /// Estimates how many distinct keys were inserted, from the bits. [`KeyEstimate`] describes the error, and when
    /// there is no estimate. Also valid after [`fold`](Self::fold) and [`union_with`](Self::union_with), but not after
    /// [`intersect_with`](Self::intersect_with) or [`first_probes`](BloomView::first_probes). Reads the whole filter.
    #[must_use]
    pub fn estimated_keys(&self) -> Option<KeyEstimate> {
        self.as_view().estimated_keys()
    }

    /// The probability that a key never inserted is reported as possibly present, exact for the bits as they are. Reads
    /// the whole filter, which is 8 ns per block (Zen 5), about twice the time of counting the ones.
    #[must_use]
    pub fn estimated_fpr(&self) -> f64 {
        self.as_view().estimated_fpr()
    }

    /// Returns the filter's compact bytes, its lanes and one or two more bytes, for containers with lengths and checksums
    /// of their own, such as SSTables. [`BloomView::from_compact`] reads them in place. The seed is not stored, so the
    /// reader must supply it.
    ///
    /// Blocks that share lanes, as [`BloomView::to_filter`] makes them from a short filter, are written as the lanes
    /// that they share. The blocks of an empty filter share lanes too, so if there is one module of an odd number of
    /// blocks below 64, the length depends on the bits. Three blocks have 25 bytes while they are empty, and 193 after
    /// an insert.
    #[must_use]
    pub fn to_compact(&self) -> Vec<u8> {
        compact::with_compact(self.modules(), self.k, |lanes, trailer| [lanes, trailer].concat())
    }

    /// Writes the [compact bytes](Self::to_compact) to a file, a `Vec` or any other writer, without copying them in
    /// memory, and flushes it. Requires the feature `std`.
    ///
    /// # Errors
    ///
    /// The writer's errors.
    #[cfg(feature = "std")]
    pub fn write_compact(&self, mut out: impl std::io::Write) -> std::io::Result<()> {
        compact::with_compact(self.modules(), self.k, |lanes, tail| {
            out.write_all(lanes)?;
            out.write_all(tail)?;
            out.flush()
        })
    }

    /// Length of the [compact bytes](Self::to_compact), which in small filters depends on the bits.
    pub fn compact_len(&self) -> usize {
        compact::with_compact(self.modules(), self.k, |lanes, tail| lanes.len() + tail.len())
    }

    /// Length of the standalone bytes, which are the lanes, with several modules a checksum of 8 bytes for each, and a
    /// footer of 64 bytes with version, k, seed, number of keys if known, and checksums. In small filters the number of
    /// lanes [depends on the bits](Self::to_compact).
    pub fn standalone_len(&self) -> usize {
        standalone::len(self.modules())
    }

    standalone::standalone_io!();

    pub(crate) fn encode<E>(&self, write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        standalone::encode(self.modules(), self.k, self.seed, self.keys, write)
    }

    #[inline]
    pub(crate) fn modules(&self) -> Modules<'_> {
        Modules { blocks: self.blocks.as_slice(), module_blocks: self.blocks.module_blocks() }
    }

    /// Borrows the filter as a view, which has further methods that only read.
    #[inline]
    pub fn as_view(&self) -> BloomView<'_> {
        let Self { k, inlined, kernel, seed, keys, .. } = *self;
        let lanes = Lanes::Blocks(self.modules());
        BloomView { lanes, k, inlined, kernel, seed, keys, checksums: &[] }
    }
}

impl<'a> From<&'a BloomFilter> for BloomView<'a> {
    #[inline]
    fn from(filter: &'a BloomFilter) -> Self {
        filter.as_view()
    }
}

/// Equal filters have the same modules, blocks, bits, k and seed, and return the same answers.
impl PartialEq for BloomFilter {
    fn eq(&self, other: &Self) -> bool {
        self.as_view() == other.as_view()
    }
}

impl Eq for BloomFilter {}

impl<K: Key> Extend<K> for BloomFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        let (seed, keys) = (self.seed, keys.into_iter());
        if (self.n_blocks() >= kernel::large() || self.kernel.is_called()) && are_many(&keys) {
            in_batches(keys.map(|key| seed.hash(key)), |hashes| self.insert_batch(hashes));
        } else {
            keys.for_each(|key| _ = self.insert(key));
        }
    }
}

impl fmt::Debug for BloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        view::debug(f, "BloomFilter", self.sizing(), self.seed, self.kernel)
    }
}
