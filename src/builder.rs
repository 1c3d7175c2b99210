//! `FilterBuilder`, for filters of keys whose number is not known in advance.
#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::{fmt, mem};

use crate::blocks::{Blocks, LANES};
use crate::compact;
use crate::error::BuildError;
use crate::filter::BloomFilter;
use crate::hash::Seed;
use crate::kernel::Kernel;
use crate::key::Key;
use crate::lanes::{self, LANE_BYTES};
use crate::mask::ProbeCount;
use crate::memory::{OutOfMemory, or_abort, reserve};
use crate::sizing::{self, Sizing};
use crate::variants::ModularBloomFilter;

/// Collects keys, then makes a filter of the right size, for writers of SSTables.
///
/// Uses 8 bytes per key until it is finished, and 9.3 at the peak, beyond the filter. You may insert a key any number
/// of times, because the size depends on the distinct keys only. Repeats in a row are free, but all other repeats cost
/// some 40 bytes each while the filter is made. A finished builder is empty, so you can use it again.
///
/// If memory runs out, `insert`, `insert_hash`, `insert_batch` and `extend` abort the process, as `Vec` does. The
/// methods that return a `Result` leave the builder as it was, but for the first keys of a batch.
///
/// Filters of two builders mostly differ in size, so they cannot be united. To unite filters, make them with one
/// [`Sizing`](crate::Sizing) instead, and pass [`hashes`](Self::hashes) to their `insert_batch`.
///
/// # Examples
///
/// ```
/// use bloomline::{BloomView, FilterBuilder};
///
/// let mut builder = FilterBuilder::with_bits_per_key(10.0)?;
/// for key in ["ant", "bee", "bee", "cat"] {
///     builder.insert(key);
/// }
/// let mut table = Vec::new();
/// builder.finish_compact(&mut table)?;
/// assert_eq!(table.len(), 9);
/// assert!(BloomView::from_compact(&table)?.contains("bee"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct FilterBuilder {
    /// Full pieces of [`PIECE`] hashes or more, because a single vector would need twice its memory just after it has
    /// grown.
    pieces: Vec<Vec<u64>>,
    n_in_pieces: usize,
    hashes: Vec<u64>,
    /// Of each distinct key, before rounding.
    pub(crate) bits_per_key: f64,
    /// The number of modules of large filters, if there are several, and the bits per key of all modules together, at
    /// most `bits_per_key`.
    pub(crate) modules: Option<(usize, f64)>,
    seed: Seed,
    kernel: Kernel,
}

/// Hashes per piece. A full piece is kept, and a new one begun.
const PIECE: usize = 8192;

impl FilterBuilder {
    /// A builder of filters with `bits_per_key` bits for each distinct key, rounded up to whole lanes of 64 bits or
    /// blocks of 512.
    ///
    /// # Errors
    ///
    /// If `bits_per_key` is not above 0 and at most [`sizing::MAX_BITS_PER_KEY`].
    pub fn with_bits_per_key(bits_per_key: f64) -> Result<Self, BuildError> {
        let bits_per_key = sizing::checked_bits_per_key(bits_per_key)?;
        let (seed, kernel) = (Seed::DEFAULT, Kernel::active());
        let (pieces, hashes) = (Vec::new(), Vec::new());
        Ok(Self { pieces, n_in_pieces: 0, hashes, bits_per_key, modules: None, seed, kernel })
    }

    /// A builder of filters with a false-positive rate of at most `fpr`.
    ///
    /// # Errors
    ///
    /// If `fpr` is not between [`sizing::MIN_FPR`] and 1.
    pub fn with_fpr(fpr: f64) -> Result<Self, BuildError> {
        Self::with_bits_per_key(sizing::bits_per_key(fpr)?)
    }

    /// Sets the seed that keys are hashed with, 0 by default. See [`BloomFilter::with_seed`].
    ///
    /// # Errors
    ///
    /// [`BuildError::SeedAfterKeys`] if keys have been inserted.
    pub fn with_seed(self, seed: u64) -> Result<Self, BuildError> {
        let seed = Seed::of_empty(seed, self.is_empty())?;
        Ok(Self { seed, ..self })
    }

    /// Uses a given kernel, for tests and benchmarks. The bits stay the same.
    #[doc(hidden)]
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self { kernel, ..self }
    }

    /// Reserves memory for `keys` more keys, at most 8,192. Otherwise a new builder grows step by step, which is a
    /// third of the cost of a filter of few keys. A builder that is used again keeps its memory.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub fn reserve(&mut self, keys: usize) -> Result<(), BuildError> {
        Ok(self.make_room(keys)?)
    }

    fn make_room(&mut self, keys: usize) -> Result<(), OutOfMemory> {
        let room = PIECE.saturating_sub(self.hashes.len());
        reserve(&mut self.hashes, keys.min(room))
    }

    /// Hashes `key` under the builder's seed, for the `*_hash` methods.
    #[inline]
    #[must_use]
    pub fn hash_key(&self, key: impl Key) -> u64 {
        self.seed.hash(key)
    }

    /// Inserts a key. Keys may repeat.
    #[doc(alias("add", "add_key"))]
    #[inline]
    pub fn insert(&mut self, key: impl Key) {
        self.insert_hash(self.seed.hash(key));
    }

    /// [`insert`](Self::insert), with an error if memory runs out.
    ///
    /// # Errors
    ///
    /// If memory for the hash cannot be allocated.
    #[inline]
    pub fn try_insert(&mut self, key: impl Key) -> Result<(), BuildError> {
        self.try_insert_hash(self.seed.hash(key))
    }

    /// [`insert`](Self::insert) by hash.
    #[doc(alias = "add_hash")]
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) {
        or_abort(self.push(hash));
    }

    /// [`try_insert`](Self::try_insert) by hash.
    ///
    /// # Errors
    ///
    /// If memory for the hash cannot be allocated.
    #[inline]
    pub fn try_insert_hash(&mut self, hash: u64) -> Result<(), BuildError> {
        Ok(self.push(hash)?)
    }

    /// Inserts many keys by hash.
    pub fn insert_batch(&mut self, hashes: &[u64]) {
        hashes.iter().for_each(|&hash| self.insert_hash(hash));
    }

    /// [`insert_batch`](Self::insert_batch), with an error if memory runs out.
    ///
    /// # Errors
    ///
    /// If memory for the hashes cannot be allocated. The first of them may be inserted then.
    pub fn try_insert_batch(&mut self, hashes: &[u64]) -> Result<(), BuildError> {
        hashes.iter().try_for_each(|&hash| self.try_insert_hash(hash))
    }

    #[inline]
    fn push(&mut self, hash: u64) -> Result<(), OutOfMemory> {
        // Databases insert keys in sorted order, each as often as it has versions.
        if self.hashes.last() != Some(&hash) {
            self.make_room_for_one()?;
            self.hashes.push(hash);
        }
        Ok(())
    }

    /// Makes room for one hash, so that the next insert cannot run out of memory.
    #[inline]
    pub(crate) fn make_room_for_one(&mut self) -> Result<(), OutOfMemory> {
        if self.hashes.len() == self.hashes.capacity() { self.grow() } else { Ok(()) }
    }

    #[cold]
    fn grow(&mut self) -> Result<(), OutOfMemory> {
        let n = self.hashes.len();
        if n < PIECE {
            return self.make_room(n.max(4));
        }
        let mut next = Vec::new();
        reserve(&mut next, PIECE)?;
        reserve(&mut self.pieces, 1)?;
        self.pieces.push(mem::replace(&mut self.hashes, next));
        self.n_in_pieces += n;
        Ok(())
    }

    /// Number of keys inserted. A key that was inserted several times may count more than once.
    pub fn len(&self) -> usize {
        self.n_in_pieces + self.hashes.len()
    }

    /// Returns whether no key has been inserted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes a filter of the inserted keys, in whole blocks, and empties the builder. For few keys,
    /// [`finish_compact`](Self::finish_compact) makes a shorter one. For a file without checksums of its own,
    /// write the filter's standalone bytes.
    ///
    /// Makes two passes over the keys, and a third pass if some keys were inserted more than once.
    ///
    /// # Errors
    ///
    /// If memory for the filter, or to count its distinct keys, cannot be allocated. The builder then keeps its keys.
    #[doc(alias = "build")]
    pub fn finish(&mut self) -> Result<BloomFilter, BuildError> {
        let (filter, _) = self.build(|keys| Shape::whole_blocks(keys, self.bits_per_key, 1))?;
        self.clear();
        Ok(filter.all)
    }

    /// Makes the filter, appends its compact bytes to `out` and empties the builder. Appends at most 1.25 × keys + 65
    /// bytes at 10 bits per key. [`BloomView::from_compact`](crate::BloomView::from_compact) reads them, or
    /// [`from_compact_with_seed`](crate::BloomView::from_compact_with_seed) if this builder's seed is not 0.
    ///
    /// A filter of fewer than 64 lanes of 8 bytes has just as many lanes as it needs, in blocks that overlap. A larger
    /// filter is rounded up to whole blocks of 64 bytes.
    ///
    /// # Errors
    ///
    /// As [`finish`](Self::finish), or if `out` cannot grow. The builder then keeps its keys, and `out` its bytes.
    pub fn finish_compact(&mut self, out: &mut Vec<u8>) -> Result<(), BuildError> {
        Ok(self.write_compact(out)?)
    }

    pub(crate) fn write_compact(&mut self, out: &mut Vec<u8>) -> Result<(), OutOfMemory> {
        let (filter, Shape { n_lanes, n_modules, k }) = self.build(|keys| self.compact_shape(keys))?;
        reserve(out, n_lanes * LANE_BYTES + compact::MODULES_TAIL)?;
        // Cleared before the bytes are written, so that hashes and bytes are not in memory at once.
        self.clear();
        let blocks = filter.all.blocks.as_slice();
        match n_modules {
            1 => compact::write_compact_lanes(out, blocks, n_lanes, k),
            _ => compact::write_compact_modules(out, blocks, n_modules, k),
        }
        Ok(())
    }

    /// Removes all keys. Keeps at most 128 KiB of memory.
    pub fn clear(&mut self) {
        self.pieces = Vec::new();
        self.n_in_pieces = 0;
        self.hashes.clear();
    }

    /// The hashes of the keys inserted, in slices, for other filters of the same keys.
    pub fn hashes(&self) -> impl Iterator<Item = &[u64]> {
        self.pieces.iter().chain([&self.hashes]).map(Vec::as_slice)
    }

    /// Several modules, unless rounding each up to whole blocks makes them more than 1% larger than one filter.
    fn compact_shape(&self, keys: usize) -> Shape {
        let (n_lanes, k) = sizing::lanes_for(keys, self.bits_per_key);
        let modules = self.modules.map(|(n_modules, bits)| Shape::whole_blocks(keys, bits, n_modules));
        let small = modules.filter(|modules| modules.n_lanes <= n_lanes + n_lanes / 100);
        small.unwrap_or(Shape { n_lanes, n_modules: 1, k })
    }

    /// Makes the filter, with the shape that `shape` returns for a number of keys. Returns the shape too, because a
    /// short filter's blocks still have to be merged into its lanes.
    fn build(&self, shape: impl Fn(usize) -> Shape) -> Result<(ModularBloomFilter, Shape), OutOfMemory> {
        let mut shape_of_keys = shape(self.len());
        let (mut unchanged, mut reserved) = (Vec::new(), Ok(()));
        let mut filter = self.fill(shape_of_keys, |hash| {
            if unchanged.len() == unchanged.capacity() {
                reserved = reserved.and_then(|()| reserve(&mut unchanged, 1));
            }
            if reserved.is_ok() {
                unchanged.push(hash);
            }
        })?;
        reserved?;
        let repeats = self.count_repeats(unchanged)?;
        let keys = self.len() - repeats;
        if repeats != 0 {
            shape_of_keys = shape(keys);
            filter = self.fill(shape_of_keys, |_| ())?;
        }
        filter.all.keys = Some(keys as u64);
        Ok((filter, shape_of_keys))
    }

    fn fill(
        &self,
        shape: Shape,
        mut on_unchanged: impl FnMut(u64),
    ) -> Result<ModularBloomFilter, OutOfMemory> {
        let all = self.empty(shape)?;
        let n_blocks = all.blocks.len() / shape.n_modules;
        let mut filter = ModularBloomFilter { all, n_blocks };
        for hashes in self.hashes() {
            filter.insert_all(hashes, &mut on_unchanged);
        }
        Ok(filter)
    }

    /// Uses at most eight times the memory of the hashes.
    fn empty(&self, Shape { n_lanes, k, .. }: Shape) -> Result<BloomFilter, OutOfMemory> {
        let (blocks, kernel, seed) = (Blocks::zeroed(lanes::n_blocks(n_lanes))?, self.kernel, self.seed);
        Ok(BloomFilter { blocks, k, kernel, seed, keys: Some(0) })
    }

    /// Counts the repeats among the inserted keys, given the hashes whose insert changed no bit. These are all repeats,
    /// and some keys that were false positives at the time.
    ///
    /// Sorts only the keys whose hash is among the unchanged hashes, because sorting all keys would run twice as long
    /// as everything else. A filter selects these keys. It misses none, and it selects a wrong key each time that the
    /// key occurs, so the count stays exact.
    fn count_repeats(&self, unchanged: Vec<u64>) -> Result<usize, OutOfMemory> {
        if unchanged.is_empty() {
            return Ok(0);
        }
        let mut suspects = self.empty(Shape::whole_blocks(unchanged.len(), 12.0, 1))?;
        suspects.insert_batch(&unchanged);
        let mut candidates = unchanged;
        candidates.clear();
        let mut found = [false; 1024];
        for hashes in self.hashes().flat_map(|hashes| hashes.chunks(1024)) {
            let found = &mut found[..hashes.len()];
            suspects.contains_batch(hashes, found);
            reserve(&mut candidates, hashes.len())?;
            candidates.extend(hashes.iter().zip(found).filter(|(_, found)| **found).map(|(hash, _)| hash));
        }
        let n_candidates = candidates.len();
        candidates.sort_unstable();
        candidates.dedup();
        Ok(n_candidates - candidates.len())
    }
}

#[derive(Clone, Copy)]
struct Shape {
    /// Of all modules.
    n_lanes: usize,
    n_modules: usize,
    /// Of each module.
    k: ProbeCount,
}

impl Shape {
    fn whole_blocks(keys: usize, bits_per_key: f64, n_modules: usize) -> Self {
        let module = Sizing::for_bits_per_key(keys, bits_per_key / n_modules as f64);
        let module = module.expect("no larger than the hashes");
        Self { n_lanes: n_modules * module.n_blocks() * LANES, n_modules, k: module.probe_count() }
    }
}

impl<K: Key> Extend<K> for FilterBuilder {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        let keys = keys.into_iter();
        or_abort(self.make_room(keys.size_hint().0));
        keys.for_each(|key| self.insert(key));
    }
}

impl fmt::Debug for FilterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterBuilder")
            .field("len", &self.len())
            .field("bits_per_key", &self.bits_per_key)
            .field("seed", &self.seed.get())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Just after a piece is full, all hashes are in pieces.
    #[test]
    fn a_builder_whose_hashes_are_all_in_pieces_is_not_empty() {
        let mut builder = FilterBuilder::with_bits_per_key(10.0).unwrap();
        builder.extend(0..PIECE as u64);
        builder.make_room_for_one().unwrap();
        assert_eq!((builder.is_empty(), builder.len()), (false, PIECE));
        assert!(builder.with_seed(1).is_err(), "its keys would be lost");
    }
}
