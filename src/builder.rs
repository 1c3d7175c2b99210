//! `FilterBuilder`: from an unknown number of keys to a filter that fits them.
#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::mem;

use crate::blocks::{Blocks, LANES};
use crate::encoding;
use crate::error::SizingError;
use crate::filter::BloomFilter;
use crate::hash::Seed;
use crate::kernel::Kernel;
use crate::mask::ProbeCount;
use crate::short;
use crate::sizing::{self, Sizing};

/// Collects keys, then makes a filter of the right size: for writers of SSTables.
///
/// Uses 8 bytes per key until it is finished. You may add a key any number of times: the size depends on the distinct
/// keys. Repeats in a row are free; other repeats take some 40 bytes each while the filter is made. A finished builder
/// is empty and can be used again.
///
/// # Examples
///
/// ```
/// use bloomline::{BloomView, FilterBuilder};
///
/// let mut builder = FilterBuilder::with_bits_per_key(10.0)?;
/// for key in ["ant", "bee", "bee", "cat"] {
///     builder.add(key);
/// }
/// let mut table = Vec::new();
/// builder.finish_compact(&mut table);
/// assert_eq!(table.len(), 9);
/// assert!(BloomView::from_compact(&table)?.contains("bee"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FilterBuilder {
    /// In pieces, because a single vector would take twice its memory just after it has grown.
    full: Vec<Vec<u64>>,
    hashes: Vec<u64>,
    bits_per_key: f64,
    seed: Seed,
    kernel: Kernel,
}

/// Hashes in a full piece: 64 KiB.
const PIECE: usize = 8192;

impl FilterBuilder {
    /// A builder of filters with `bits_per_key` bits for each distinct key, rounded up to whole lanes of 64 bits or
    /// blocks of 512.
    ///
    /// # Errors
    ///
    /// If `bits_per_key` is not above 0 and at most [`sizing::MAX_BITS_PER_KEY`].
    pub fn with_bits_per_key(bits_per_key: f64) -> Result<Self, SizingError> {
        let bits_per_key = sizing::checked_bits_per_key(bits_per_key)?;
        let (full, hashes) = (Vec::new(), Vec::new());
        Ok(Self { full, hashes, bits_per_key, seed: Seed::DEFAULT, kernel: Kernel::active() })
    }

    /// A builder of filters with a false-positive rate of at most `fpr`.
    ///
    /// # Errors
    ///
    /// If `fpr` is not between [`sizing::MIN_FPR`] and 1.
    pub fn with_fpr(fpr: f64) -> Result<Self, SizingError> {
        Self::with_bits_per_key(sizing::bits_per_key(fpr)?)
    }

    /// Sets the seed that keys are hashed with, 0 by default. See [`BloomFilter::with_seed`].
    ///
    /// # Panics
    ///
    /// If keys have been added.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        assert!(self.is_empty(), "the seed of a filter is set before its first key");
        Self { seed: Seed::new(seed), ..self }
    }

    /// Uses another kernel than the fastest: for tests and benchmarks. The bits stay the same.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self { kernel, ..self }
    }

    /// Reserves memory for `keys` more keys, or for the first of them. Without it, a new builder grows step by step,
    /// which is a third of the cost of a filter of 20 to 34 keys (Zen 4, 2026-11). A builder that is used again keeps
    /// its memory.
    pub fn reserve(&mut self, keys: usize) {
        self.hashes.reserve(keys.min(PIECE - self.hashes.len()));
    }

    /// Adds a key. Keys may repeat.
    #[inline]
    pub fn add(&mut self, key: impl AsRef<[u8]>) {
        self.add_hash(self.seed.hash(key.as_ref()));
    }

    /// [`add`](Self::add) by hash.
    #[inline]
    pub fn add_hash(&mut self, hash: u64) {
        // Databases add keys in sorted order, each as often as it has versions.
        if self.hashes.last() != Some(&hash) {
            if self.hashes.len() == PIECE {
                self.full.push(mem::replace(&mut self.hashes, Vec::with_capacity(PIECE)));
            }
            self.hashes.push(hash);
        }
    }

    /// Number of keys added. A key that was added several times may count more than once.
    pub fn len(&self) -> usize {
        self.full.len() * PIECE + self.hashes.len()
    }

    /// Returns whether no key has been added.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Makes a filter of the added keys, in whole blocks, and empties the builder. For few keys,
    /// [`finish_compact`](Self::finish_compact) makes a shorter one.
    ///
    /// Takes two passes over the keys, and a third if some were added more than once.
    pub fn finish(&mut self) -> BloomFilter {
        let (kernel, seed) = (self.kernel, self.seed);
        let made = self.make(|keys, bits_per_key| {
            let sizing = Sizing::for_bits_per_key(keys, bits_per_key).expect("no larger than the hashes");
            (sizing.n_blocks * LANES, ProbeCount::new(sizing.k).expect("valid"))
        });
        BloomFilter::from_parts(made.blocks, made.k, kernel, seed, Some(made.keys as u64))
    }

    /// Makes the filter, appends its compact bytes and empties the builder. Appends at most 1.25 × keys + 65 bytes at
    /// 10 bits per key. [`BloomView::from_compact`](crate::BloomView::from_compact) reads them, or
    /// [`from_compact_with_seed`](crate::BloomView::from_compact_with_seed) if this builder's seed is not 0.
    ///
    /// A filter of fewer than 64 lanes of 8 bytes has just as many lanes as it needs, in blocks that overlap. A larger
    /// one is rounded up to whole blocks.
    pub fn finish_compact(&mut self, out: &mut Vec<u8>) {
        let Made { blocks, n_lanes, k, .. } = self.make(sizing::lanes_for);
        encoding::write_compact_lanes(out, blocks.as_slice(), n_lanes, k);
    }

    /// The most distinct keys whose compact bytes are at most `compact_bytes` long.
    pub(crate) fn max_keys(&self, compact_bytes: usize) -> usize {
        sizing::max_keys_for(compact_bytes.saturating_sub(1) / size_of::<short::Lane>(), self.bits_per_key)
    }

    /// Makes the blocks, with the number of lanes and the k that `shape` returns for a number of keys and the builder's
    /// bits per key.
    fn make(&mut self, shape: impl Fn(usize, f64) -> (usize, ProbeCount)) -> Made {
        let (mut n_lanes, mut k) = shape(self.len(), self.bits_per_key);
        let mut unchanged = Vec::new();
        let mut blocks = self.build(n_lanes, k, |hash| unchanged.push(hash));
        let repeats = self.count_repeats(unchanged);
        let keys = self.len() - repeats;
        if repeats != 0 {
            (n_lanes, k) = shape(keys, self.bits_per_key);
            blocks = self.build(n_lanes, k, |_| ());
        }
        self.full.clear();
        self.hashes.clear();
        Made { blocks, n_lanes, k, keys }
    }

    fn build(&self, n_lanes: usize, k: ProbeCount, mut on_unchanged: impl FnMut(u64)) -> Blocks {
        // Takes at most eight times the memory of the hashes.
        let mut blocks = Blocks::zeroed_or_abort(short::n_blocks(n_lanes));
        for hashes in self.pieces() {
            self.kernel.insert_batch(&mut blocks, hashes, k, &mut on_unchanged);
        }
        blocks
    }

    /// Counts the repeats among the added keys, given the hashes whose insert changed no bit. Those include all
    /// repeats, and some keys that were false positives at the time.
    ///
    /// It is enough to sort the keys whose hash is among the unchanged ones, which are few: sorting all keys takes
    /// twice as long as everything else. A filter selects them. It misses none, and a key that it selects wrongly is
    /// selected each time that it occurs.
    fn count_repeats(&self, unchanged: Vec<u64>) -> usize {
        if unchanged.is_empty() {
            return 0;
        }
        let mut suspects =
            BloomFilter::with_bits_per_key(unchanged.len(), 12.0).expect("as the filter itself");
        suspects.insert_batch(&unchanged);
        let mut candidates = unchanged;
        candidates.clear();
        let mut found = [false; 1024];
        for hashes in self.pieces().flat_map(|hashes| hashes.chunks(1024)) {
            let found = &mut found[..hashes.len()];
            suspects.contains_batch(hashes, found);
            candidates.extend(hashes.iter().zip(found).filter(|(_, found)| **found).map(|(hash, _)| hash));
        }
        let n_candidates = candidates.len();
        candidates.sort_unstable();
        candidates.dedup();
        n_candidates - candidates.len()
    }

    fn pieces(&self) -> impl Iterator<Item = &[u64]> {
        self.full.iter().chain([&self.hashes]).map(Vec::as_slice)
    }
}

/// Blocks with the keys of a builder. Those of a short filter still have to be merged into its lanes.
struct Made {
    blocks: Blocks,
    n_lanes: usize,
    k: ProbeCount,
    /// Number of distinct keys.
    keys: usize,
}

impl<K: AsRef<[u8]>> Extend<K> for FilterBuilder {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        let keys = keys.into_iter();
        self.reserve(keys.size_hint().0);
        for key in keys {
            self.add(key);
        }
    }
}
