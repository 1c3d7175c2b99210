//! `FilterBuilder`, for filters of keys whose number is not known in advance.

use alloc::vec::Vec;
use core::{fmt, mem};

use crate::bitmap::each_found;
use crate::blocks::Blocks;
use crate::compact;
use crate::error::Error;
use crate::filter::BloomFilter;
use crate::hash::Seed;
use crate::kernel::Kernel;
use crate::key::Key;
use crate::lanes;
use crate::mask::ProbeCount;
use crate::memory::{OutOfMemory, or_abort, reserve};
use crate::sizing::{CompactSize, PerKey, Request, Sizing, best_probe_count};

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
    request: Request,
    /// What `request` comes to, computed once for all filters.
    per_key: PerKey,
    /// The k of filters for an index, see [`Sizing::in_steps`].
    in_steps: Option<ProbeCount>,
    seed: Seed,
    kernel: Kernel,
}

/// Hashes per piece. A full piece is kept, and a new one begun.
const PIECE: usize = 8192;

impl FilterBuilder {
    /// A builder of filters with `bits_per_key` bits for each distinct key, rounded up to whole lanes of 64 bits or
    /// blocks of 512. From 17.46 bits on, large filters have two modules, as [`Sizing::for_bits_per_key`] chooses them.
    ///
    /// # Errors
    ///
    /// If `bits_per_key` is not above 0 and at most [`sizing::MAX_BITS_PER_KEY`](crate::sizing::MAX_BITS_PER_KEY).
    pub fn with_bits_per_key(bits_per_key: f64) -> Result<Self, Error> {
        Self::new(Request::BitsPerKey(bits_per_key))
    }

    /// A builder of filters with a false-positive rate of at most `fpr`, in as many modules as [`Sizing::for_fpr`]
    /// chooses. For a rate of 10⁻⁹ or below, add the number of keys ÷ 2^64 to it, the probability that an absent key
    /// has the same hash as one of them.
    ///
    /// # Errors
    ///
    /// If `fpr` is not between [`sizing::MIN_FPR`](crate::sizing::MIN_FPR) and 1.
    pub fn with_fpr(fpr: f64) -> Result<Self, Error> {
        Self::new(Request::Fpr(fpr))
    }

    fn new(request: Request) -> Result<Self, Error> {
        let (pieces, hashes, per_key) = (Vec::new(), Vec::new(), request.per_key(0, None)?);
        let (seed, kernel) = (Seed::DEFAULT, Kernel::active());
        Ok(Self { pieces, n_in_pieces: 0, hashes, request, per_key, in_steps: None, seed, kernel })
    }

    /// Makes filters of at most `most_modules` modules, 1 to 16, as [`Sizing::for_fpr_within`] and
    /// [`Sizing::for_bits_per_key_within`] do. Pass 1 if most lookups are of present keys.
    ///
    /// # Errors
    ///
    /// If `most_modules` is not 1 to 16, or the requested false-positive rate is out of reach for as few modules.
    pub fn with_most_modules(self, most_modules: usize) -> Result<Self, Error> {
        let per_key = self.request.per_key(0, Some(most_modules))?;
        Ok(Self { per_key, in_steps: None, ..self })
    }

    /// Makes filters of few different sizes, and of the k that it returns, for an index.
    pub(crate) fn in_steps(self) -> (Self, ProbeCount) {
        let k = best_probe_count(self.bits_per_key());
        (Self { in_steps: Some(k), ..self }, k)
    }

    /// Bits for each distinct key of a filter of many keys, before
    /// [rounding](crate::sstable::FilterPolicy::bits_per_key). A filter of 8 · n ÷ this number of keys has about n bytes, so
    /// a writer can end partitions at a size. It has a byte or two more, and up to a tenth more if a rate was requested.
    pub fn bits_per_key(&self) -> f64 {
        self.per_key.of_many()
    }

    /// Sets the seed that keys are hashed with, 0 by default. See [`BloomFilter::with_seed`].
    ///
    /// # Errors
    ///
    /// If keys have been inserted.
    pub fn with_seed(self, seed: u64) -> Result<Self, Error> {
        let seed = Seed::of_empty(seed, self.is_empty())?;
        Ok(Self { seed, ..self })
    }

    /// Uses a given kernel, for tests and benchmarks. The bits stay the same.
    #[doc(hidden)]
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self { kernel, ..self }
    }

    /// Reserves memory for `additional` more keys. Inserting as many cannot fail then. Without it, a new builder grows step
    /// by step, which is a third of the cost of a filter of few keys. A builder that is used again keeps up to 128 KiB.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    #[inline]
    pub fn try_reserve(&mut self, additional: usize) -> Result<(), Error> {
        if self.hashes.capacity() - self.hashes.len() >= additional {
            Ok(())
        } else {
            Ok(self.make_room(additional)?)
        }
    }

    #[cold]
    fn make_room(&mut self, additional: usize) -> Result<(), OutOfMemory> {
        let n = self.hashes.len();
        // A piece is kept only if it is at least half full, because some writers reserve far more than they insert.
        if n <= self.hashes.capacity() / 2 || n.saturating_add(additional) <= PIECE {
            return reserve(&mut self.hashes, additional);
        }
        let mut next = Vec::new();
        reserve(&mut next, additional.max(PIECE))?;
        reserve(&mut self.pieces, 1)?;
        self.pieces.push(mem::replace(&mut self.hashes, next));
        self.n_in_pieces += n;
        Ok(())
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

    /// [`insert`](Self::insert) by hash.
    #[doc(alias = "add_hash")]
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) {
        // Databases insert keys in sorted order, each as often as it has versions.
        if self.hashes.last() != Some(&hash) {
            if self.hashes.len() == self.hashes.capacity() {
                or_abort(self.make_room(1));
            }
            self.hashes.push(hash);
        }
    }

    /// Inserts many keys by hash.
    pub fn insert_batch(&mut self, hashes: &[u64]) {
        hashes.iter().for_each(|&hash| self.insert_hash(hash));
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
    /// Makes two passes over the keys, and a third pass if some keys were inserted more than once. The second pass
    /// counts the distinct keys exactly. So 100,000 distinct keys cost 2.5 ns each, but `insert_batch` into a filter
    /// only 0.7 ns (Zen 5). If a tenth are repeats, they cost 6 ns.
    ///
    /// # Errors
    ///
    /// If memory for the filter, or to count its distinct keys, cannot be allocated. The builder then keeps its keys.
    #[doc(alias = "build")]
    pub fn finish(&mut self) -> Result<BloomFilter, Error> {
        let (filter, _) = self.build(|keys| {
            let sizing = Sizing::of_keys(keys, &self.per_key)?;
            Ok(self.in_steps.map_or(sizing, |k| sizing.in_steps(k)).into())
        })?;
        self.clear();
        Ok(filter)
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
    pub fn finish_compact(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        Ok(self.write_compact(out)?)
    }

    /// Bytes that [`finish_compact`](Self::finish_compact) would append now, for a writer that ends a table or a
    /// partition at a size. Exact if no key was inserted twice. Otherwise it is mostly too high, because repeats can
    /// count as keys, but a few bytes too low where more keys need fewer bytes, in more modules. Runs in some tens of
    /// nanoseconds.
    #[must_use]
    pub fn compact_len(&self) -> usize {
        let size = CompactSize::new(self.len() as u64, &self.per_key);
        size.map_or(usize::MAX, |size| compact::len(size.n_lanes, size.n_modules))
    }

    pub(crate) fn write_compact(&mut self, out: &mut Vec<u8>) -> Result<(), OutOfMemory> {
        let (filter, n_lanes) = self.build(|keys| CompactSize::new(keys, &self.per_key))?;
        reserve(out, compact::len(n_lanes, filter.n_modules()))?;
        // Cleared before the bytes are written, so that hashes and bytes are not in memory at once.
        self.clear();
        compact::write_compact_lanes(out, filter.modules(), n_lanes, filter.k);
        Ok(())
    }

    /// Removes all keys. Keeps at most 128 KiB of memory.
    pub fn clear(&mut self) {
        self.pieces = Vec::new();
        self.n_in_pieces = 0;
        self.hashes.clear();
        // Not shrunk, because that could run out of memory.
        if self.hashes.capacity() > 2 * PIECE {
            self.hashes = Vec::new();
        }
    }

    /// The hashes of the keys inserted, in slices, for other filters of the same keys.
    pub fn hashes(&self) -> impl Iterator<Item = &[u64]> {
        self.pieces.iter().chain([&self.hashes]).map(Vec::as_slice)
    }

    /// Makes the filter, of the size that `size` returns for a number of keys. Returns the number of lanes too, because
    /// a short filter's blocks still have to be merged into its lanes.
    fn build(
        &self,
        size: impl Fn(u64) -> Result<CompactSize, Error>,
    ) -> Result<(BloomFilter, usize), OutOfMemory> {
        // No larger than the hashes, so only rounding could make it larger than the address space.
        let size = |keys| size(keys as u64).map_err(|_| OutOfMemory { bytes: usize::MAX });
        let mut of_keys = size(self.len())?;
        let mut filter = self.empty(of_keys)?;
        let mut unchanged = Vec::new();
        // A large filter is filled by long batches, which prefetch. For a small one, their answers alone would cost a fifth.
        let (mut few, mut many);
        let answers: &mut [bool] = if self.len() <= PIECE {
            few = [false; 512];
            &mut few
        } else {
            many = [false; PIECE];
            &mut many
        };
        let most = answers.len();
        for hashes in self.hashes().flat_map(|hashes| hashes.chunks(most)) {
            let new = &mut answers[..hashes.len()];
            filter.insert_batch_new(hashes, new);
            for (hashes, new) in hashes.chunks(64).zip(new.chunks(64)) {
                if !new.iter().fold(true, |all, new| all & new) {
                    reserve(&mut unchanged, hashes.len())?;
                    unchanged.extend(hashes.iter().zip(new).filter(|(_, new)| !**new).map(|(hash, _)| hash));
                }
            }
        }
        let repeats = self.count_repeats(unchanged)?;
        let keys = self.len() - repeats;
        if repeats != 0 {
            of_keys = size(keys)?;
            filter = self.empty(of_keys)?;
            self.hashes().for_each(|hashes| filter.insert_batch(hashes));
        }
        filter.keys = Some(keys as u64);
        Ok((filter, of_keys.n_lanes))
    }

    /// Uses at most eight times the memory of the hashes.
    fn empty(&self, CompactSize { n_lanes, n_modules, k }: CompactSize) -> Result<BloomFilter, OutOfMemory> {
        let blocks = Blocks::zeroed(lanes::n_blocks(n_lanes))?;
        Ok(BloomFilter::new(blocks.in_modules(n_modules), k, self.kernel, self.seed, Some(0)))
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
        let size = Sizing::of_modules(1, unchanged.len() as u64, 12.0);
        let size = size.map_err(|_| OutOfMemory { bytes: usize::MAX })?;
        let mut suspects = self.empty(size.into())?;
        suspects.insert_batch(&unchanged);
        let mut candidates = unchanged;
        candidates.clear();
        let mut found = [[false; 8]; 128];
        for hashes in self.hashes().flat_map(|hashes| hashes.chunks(1024)) {
            suspects.contains_batch(hashes, &mut found.as_flattened_mut()[..hashes.len()]);
            reserve(&mut candidates, hashes.len())?;
            for (hashes, &found) in hashes.chunks(8).zip(&found) {
                each_found(found, |i| candidates.extend(hashes.get(i)));
            }
        }
        let n_candidates = candidates.len();
        candidates.sort_unstable();
        candidates.dedup();
        Ok(n_candidates - candidates.len())
    }
}

impl<K: Key> Extend<K> for FilterBuilder {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        let keys = keys.into_iter();
        let room = PIECE.saturating_sub(self.hashes.len());
        or_abort(reserve(&mut self.hashes, keys.size_hint().0.min(room)));
        keys.for_each(|key| self.insert(key));
    }
}

impl fmt::Debug for FilterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterBuilder")
            .field("len", &self.len())
            .field("bits_per_key", &self.bits_per_key())
            .field("seed", &self.seed.get())
            .finish_non_exhaustive()
    }
}
