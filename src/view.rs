//! `BloomView`, for lookups in bytes that someone else owns.

use core::{fmt, iter};

use crate::bitmap;
use crate::blocks::{BLOCK_BYTES, Block, BlockSlice, lanes_of};
use crate::compact;
use crate::error::{Error, ErrorKind};
use crate::estimate::{self, KeyEstimate};
use crate::footer;
use crate::hash::Seed;
use crate::kernel::{self, Inlined, Kernel};
use crate::key::Key;
use crate::lanes::{self, Lanes};
use crate::mask::ProbeCount;
use crate::modules::Modules;
use crate::sizing::{self, Sizing};
use crate::standalone::{self, ModuleChecksums};

/// A filter read in place from its bytes, at any alignment, without copying.
///
/// [`from_standalone`](Self::from_standalone) reads and checks all bytes. Opening compact bytes checks only their
/// length and last bytes, because they rely on the checksum of their container. Neither allocates.
///
/// # Fewer modules
///
/// The first modules of a filter are a filter of the same keys, with a higher false-positive rate. So a cache that is
/// short of memory can drop the last module of a table that is rarely asked, and load it again later. See
/// [`first_modules`](Self::first_modules). (ElasticBF by Zhang and others, 2018, and SHaMBa, 2022, divide filters for
/// this.)
///
/// # Examples
///
/// ```
/// use bloomline::{BloomFilter, BloomView};
///
/// let mut filter = BloomFilter::with_fpr(1_000, 0.01)?;
/// filter.insert("user4291");
///
/// let bytes = filter.to_standalone();
/// let view = BloomView::from_standalone(&bytes)?;
/// assert!(view.contains("user4291"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct BloomView<'a> {
    pub(crate) lanes: Lanes<'a>,
    pub(crate) k: ProbeCount,
    pub(crate) inlined: Inlined,
    pub(crate) kernel: Kernel,
    pub(crate) seed: Seed,
    pub(crate) keys: Option<u64>,
    /// A checksum of each module, including modules that were left out. None if the bytes contain no checksum.
    pub(crate) checksums: &'a ModuleChecksums,
}

impl<'a> BloomView<'a> {
    /// Opens compact bytes, as [`BloomFilter::to_compact`](crate::BloomFilter::to_compact) and
    /// [`FilterBuilder::finish_compact`](crate::FilterBuilder::finish_compact) write them, of a filter with seed 0.
    ///
    /// Compact bytes rely on the length and checksum of their container, because not every cut or flipped bit is
    /// detected here.
    ///
    /// # Errors
    ///
    /// If no filter has this length or last bytes. A caller that must answer treats the key as possibly present.
    #[inline(always)]
    pub fn from_compact(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::from_compact_with_seed(bytes, 0)
    }

    /// Opens compact bytes of a filter that was made with `seed`.
    ///
    /// # Errors
    ///
    /// See [`from_compact`](Self::from_compact). A wrong seed is not detected, and most lookups then return `false`,
    /// even for inserted keys. Store the seed where it cannot be lost, such as in the name of the filter policy.
    // Inlined for one module, because some caches keep blocks of bytes, and open a filter for each lookup.
    #[inline(always)]
    pub fn from_compact_with_seed(bytes: &'a [u8], seed: u64) -> Result<Self, Error> {
        let new = |lanes, k| Self::new(lanes, k, Kernel::active(), Seed::new(seed), None, &[]);
        match compact::one_module(bytes) {
            Some((blocks, k)) => Ok(new(Lanes::Blocks(Modules::one(blocks)), k)),
            None => compact::read_compact(bytes).map(|(lanes, k)| new(lanes, k)),
        }
    }

    /// Looks up a hash in compact bytes without a view, for a cache that keeps raw blocks. The key must have been hashed
    /// under the filter's seed.
    ///
    /// It runs 1.2 to 1.6 times as long as [`contains_hash`](Self::contains_hash) in a view that you keep. Opening the
    /// bytes by [`from_compact`](Self::from_compact) for one lookup is slower.
    ///
    /// # Errors
    ///
    /// See [`from_compact`](Self::from_compact).
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::{BloomView, FilterBuilder, hash_key};
    ///
    /// let (mut builder, mut bytes) = (FilterBuilder::with_bits_per_key(10.0)?, Vec::new());
    /// builder.extend(["ant", "bee"]);
    /// builder.finish_compact(&mut bytes)?;
    /// assert!(BloomView::compact_contains_hash(&bytes, hash_key("bee", 0))?);
    /// # Ok::<(), bloomline::Error>(())
    /// ```
    #[inline]
    pub fn compact_contains_hash(bytes: &'a [u8], hash: u64) -> Result<bool, Error> {
        if let Some((blocks, k)) = compact::one_module(bytes) {
            if let Some(is_found) = Kernel::with_active(|kernel| kernel.contains_inlined(blocks, hash, k)) {
                return Ok(is_found);
            }
        } else if let Some((short, k)) = compact::short(bytes) {
            return Ok(Kernel::contains_short(short, hash, k, Kernel::active()));
        }
        // A `Result` is not returned in a register, so it costs time where the bytes are in order.
        match Self::other_compact_contains(bytes, hash) {
            Some(is_found) => Ok(is_found),
            None => Self::any_compact_contains(bytes, hash),
        }
    }

    #[inline(never)]
    fn other_compact_contains(bytes: &[u8], hash: u64) -> Option<bool> {
        let in_two = |kernel: Kernel| {
            let (first, both, k) = compact::two_modules(bytes)?;
            let is_found = kernel.contains_inlined(first, hash, k)?;
            Some(is_found && Kernel::second_contains(k, hash, both, kernel))
        };
        Kernel::with_active(in_two).or_else(|| Self::any_compact_contains(bytes, hash).ok())
    }

    #[inline(never)]
    fn any_compact_contains(bytes: &[u8], hash: u64) -> Result<bool, Error> {
        let (lanes, k) = compact::read_compact(bytes)?;
        Ok(Self::lanes_contain(lanes, hash, k, Kernel::active()))
    }

    #[inline]
    fn new(
        lanes: Lanes<'a>,
        k: ProbeCount,
        kernel: Kernel,
        seed: Seed,
        keys: Option<u64>,
        checksums: &'a ModuleChecksums,
    ) -> Self {
        let module_blocks = match lanes {
            Lanes::Blocks(modules) => modules.module_blocks,
            // A short filter has code of its own.
            Lanes::Short(_) => 0,
        };
        let inlined = Inlined::new(kernel, k, lanes.n_blocks(), module_blocks);
        Self { lanes, k, inlined, kernel, seed, keys, checksums }
    }

    /// Opens standalone bytes, as [`BloomFilter::to_standalone`](crate::BloomFilter::to_standalone) returns them. Pass
    /// exactly these bytes, such as a slice of a larger file. Compares all of them with their checksums, at about 10
    /// GB/s from cache.
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of a different version, or if the keys were hashed by a different function
    /// than this build's.
    #[doc(alias = "from_bytes")]
    pub fn from_standalone(bytes: &'a [u8]) -> Result<Self, Error> {
        let view = Self::from_standalone_unverified(bytes)?;
        view.verify().map(|()| view)
    }

    /// Opens standalone bytes without reading the filter's bits, for mapped files that are too large to read. Checks
    /// only the footer, the last 64 bytes, and the checksums of [modules](Self#fewer-modules) before it.
    ///
    /// **Damaged bits lose keys.** Lookups then return `false` for keys that were inserted, with no other sign. Call
    /// [`verify`](Self::verify) when there is time, or rely on a checksum of your own.
    ///
    /// # Errors
    ///
    /// If the bytes were cut, if their footer is damaged or of a different version, or if the keys were hashed by a
    /// different function than this build's.
    pub fn from_standalone_unverified(bytes: &'a [u8]) -> Result<Self, Error> {
        let (lanes, k, checksums, footer) = standalone::read_standalone(bytes)?;
        let (kernel, seed) = (Kernel::active(), Seed::new(footer.seed));
        Ok(Self::new(lanes, k, kernel, seed, footer.known_keys, checksums))
    }

    /// Compares the filter's bits with the checksums of its standalone bytes. Reads all modules of the view.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Damaged`] if the bits do not match, so that lookups may return `false` for keys that were inserted.
    /// [`ErrorKind::NoChecksum`] if the view is of compact bytes or of a filter in memory.
    pub fn verify(&self) -> Result<(), Error> {
        if self.checksums.is_empty() {
            return Err(Error::no_checksum());
        }
        let stored = self.checksums.iter().map(|checksum| u64::from_le_bytes(*checksum));
        let mut both = stored.zip(standalone::computed_checksums(self.lanes));
        match both.find(|(stored, computed)| stored != computed) {
            Some((stored, computed)) => footer::compare(stored, computed),
            None => Ok(()),
        }
    }

    /// Returns the view of the first `n_modules` modules, or `None` if the filter does not have as many, or if that is
    /// 0. The view has every key, at a higher false-positive rate.
    ///
    /// It reads nothing else, so the bytes of the remaining modules can be dropped from memory, and loaded again later.
    /// **Insert nothing in between.** A key inserted into a copy of the first modules is missing in the remaining ones,
    /// so a lookup that asks all of them again loses it.
    ///
    /// To store the first modules as a separate filter, write `to_filter()?.to_standalone()`.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::{BloomFilter, BloomView, Sizing};
    ///
    /// let mut filter = BloomFilter::with_sizing(Sizing::new(75, 4)?.with_modules(3)?)?;
    /// filter.extend(0..1_000);
    /// let bytes = filter.to_standalone();
    ///
    /// let view = BloomView::from_standalone(&bytes)?;
    /// let cold = view.first_modules(2).ok_or("fewer modules")?;
    /// assert!((0..1_000).all(|key| cold.contains(key)));
    /// assert!(view.estimated_fpr() < cold.estimated_fpr());
    /// assert!(cold.to_filter()?.to_standalone().len() < bytes.len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn first_modules(self, n_modules: usize) -> Option<Self> {
        let lanes = match self.lanes {
            _ if n_modules > self.n_modules() => return None,
            Lanes::Blocks(Modules { blocks, module_blocks }) => {
                let blocks = BlockSlice::new(&blocks.as_slice()[..n_modules * module_blocks])?;
                Lanes::Blocks(Modules { blocks, module_blocks })
            }
            short => short,
        };
        let Self { k, kernel, seed, keys, checksums, .. } = self;
        (n_modules != 0).then_some(Self::new(lanes, k, kernel, seed, keys, checksums))
    }

    /// Returns a view that tests only the first `k` probes of a key in each module, or `None` if `k` is 0 or greater than
    /// the filter's. The view has every key, at a higher false-positive rate.
    ///
    /// Use it to unite filters that differ in k. The bits of the remaining probes stay set, so
    /// [`estimated_keys`](Self::estimated_keys) counts them as keys. For example, if you test 6 of 7 probes, the
    /// estimate is too high by a sixth. [`estimated_fpr`](Self::estimated_fpr) stays exact.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::BloomFilter;
    ///
    /// let (mut seven, mut six) = (BloomFilter::with_blocks(10, 7)?, BloomFilter::with_blocks(10, 6)?);
    /// seven.insert("ant");
    /// six.insert("bee");
    /// six.union_with(seven.as_view().first_probes(6).ok_or("fewer probes")?)?;
    /// assert!(six.contains("ant") && six.contains("bee"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn first_probes(self, k: u32) -> Option<Self> {
        let k = ProbeCount::new(k).ok().filter(|k| k.get() <= self.k())?;
        let Self { lanes, kernel, seed, keys, checksums, .. } = self;
        Some(Self::new(lanes, k, kernel, seed, keys, checksums))
    }

    /// Uses a given kernel, for tests and benchmarks. The answers stay the same.
    #[doc(hidden)]
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self::new(self.lanes, self.k, kernel, self.seed, self.keys, self.checksums)
    }

    /// Hashes `key` under the filter's seed, for the `*_hash` methods.
    #[inline]
    #[must_use]
    pub fn hash_key(&self, key: impl Key) -> u64 {
        self.seed.hash(key)
    }

    /// Returns whether `key` is possibly present. `false` means definitely absent. See
    /// [`BloomFilter::contains`](crate::BloomFilter::contains).
    #[doc(alias = "might_contain")]
    #[inline]
    #[must_use]
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_hash(self.seed.hash(key))
    }

    /// [`contains`](Self::contains) by hash.
    // Inlined as `BloomFilter::contains_hash` is.
    #[inline(always)]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        match self.lanes {
            Lanes::Blocks(Modules { blocks, module_blocks }) => {
                let Self { k, kernel, inlined, .. } = *self;
                if let Some(is_found) = inlined.one_module.contains_inlined(blocks, hash, inlined.probes(k)) {
                    return is_found;
                }
                let (first, _) = blocks.halves();
                if let Some(is_found) = inlined.two_modules.contains_inlined(first, hash, inlined.probes(k)) {
                    return is_found && Kernel::second_contains(k, hash, blocks, inlined.two_modules);
                }
                Kernel::modules_contain(k, hash, blocks, module_blocks, kernel)
            }
            Lanes::Short(short) => Kernel::contains_short(short, hash, self.k, self.kernel),
        }
    }

    /// Looks up many keys by hash, and sets `found[i]` to whether the key of `hashes[i]` is possibly present. See
    /// [`BloomFilter::contains_batch`](crate::BloomFilter::contains_batch).
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
        assert_eq!(hashes.len(), found.len(), "one answer per hash");
        match self.lanes {
            Lanes::Blocks(modules) => self.kernel.modules_contain_batch(modules, hashes, self.k, found),
            Lanes::Short(_) => {
                for (found, &hash) in found.iter_mut().zip(hashes) {
                    *found = self.contains_hash(hash);
                }
            }
        }
    }

    /// Returns the indices of the filters that possibly contain a key, by its hash, lowest first. All other filters
    /// definitely lack the key.
    ///
    /// Use it for the filters of all tables that a get asks. All filters must have the seed that the key was hashed
    /// with.
    ///
    /// Four filters of one module and the same k share a mask. So from three filters on, this is faster than a loop
    /// over [`contains_hash`](Self::contains_hash), or as fast. For 16 to 256 filters a default build runs it in 0.7 to
    /// 0.9 of the loop's time, in the caches and in 1 GiB. For two filters it needs 0.5 to 1.3 times as long as the loop
    /// (Intel Emerald Rapids).
    ///
    /// Filters are looked up in groups of four, which share the mask of the group's first filter. A filter with a different
    /// k in that group, a short filter, and a filter of several modules are looked up on their own. For such filters, use
    /// a loop, which needs between half and all of the time of this call.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::{BloomFilter, BloomView, hash_key};
    ///
    /// let mut newest = BloomFilter::with_fpr(1_000, 0.01)?;
    /// let mut oldest = BloomFilter::with_fpr(100_000, 0.01)?;
    /// newest.insert("ant");
    /// oldest.extend(["ant", "bee"]);
    ///
    /// let tables = [newest, oldest];
    /// assert!(BloomView::which_contain(&tables, hash_key("ant", 0)).eq([0, 1]));
    /// assert!(BloomView::which_contain(&tables, hash_key("bee", 0)).eq([1]));
    /// assert!(BloomView::which_contain(&tables, hash_key("cat", 0)).eq([]));
    /// # Ok::<(), bloomline::Error>(())
    /// ```
    #[inline]
    pub fn which_contain<F: Into<Self>>(
        filters: impl IntoIterator<Item = F>,
        hash: u64,
    ) -> impl Iterator<Item = usize> {
        WhichContain { filters: filters.into_iter().fuse(), hash, asked: 0, found: 0 }
    }

    /// [`contains_hash`](Self::contains_hash) without inlined code, for a filter that is short or has several modules.
    #[inline(always)]
    fn lanes_contain(lanes: Lanes<'_>, hash: u64, k: ProbeCount, kernel: Kernel) -> bool {
        match lanes {
            Lanes::Blocks(Modules { blocks, module_blocks }) => {
                Kernel::modules_contain(k, hash, blocks, module_blocks, kernel)
            }
            Lanes::Short(short) => Kernel::contains_short(short, hash, k, kernel),
        }
    }

    /// The block of a hash, to be tested with the mask of k probes. A filter that needs a different mask is asked at
    /// once instead, and the block that is returned has all bits set if the hash is possibly present, and otherwise
    /// none.
    #[inline(always)]
    fn block_of(&self, hash: u64, k: ProbeCount) -> &'a Block {
        match self.lanes {
            Lanes::Blocks(modules) if self.inlined.one_module_k == Some(k) => modules.blocks.block_of(hash),
            lanes => Self::all_or_no_bits(lanes, hash, self.k, self.kernel),
        }
    }

    // One call for all filters that need a different mask. If there were several calls, the compiler would load
    // their arguments before `block_of` has compared k.
    #[inline(never)]
    fn all_or_no_bits(lanes: Lanes<'_>, hash: u64, k: ProbeCount, kernel: Kernel) -> &'static Block {
        let filter = BloomView::new(lanes, k, kernel, Seed::new(0), None, &[]);
        if filter.contains_hash(hash) { &[0xff; BLOCK_BYTES] } else { NO_BITS }
    }

    /// [`contains_batch`](Self::contains_batch) into a bitmap. Sets bit `i % 8` of `found[i / 8]` to whether the key of
    /// `hashes[i]` is possibly present, and clears the bits after the last hash. Arrow's bitmaps have this layout.
    ///
    /// # Panics
    ///
    /// If `found` does not have `hashes.len().div_ceil(8)` bytes.
    pub fn contains_bitmap(&self, hashes: &[u64], found: &mut [u8]) {
        assert_eq!(hashes.len().div_ceil(8), found.len(), "a byte per eight hashes");
        match self.lanes {
            Lanes::Short(_) => bitmap::write(hashes, found, |hash| self.contains_hash(hash)),
            Lanes::Blocks(modules) if modules.is_one() => {
                self.kernel.contains_bitmap(modules.blocks, hashes, self.k, found);
            }
            Lanes::Blocks(_) => {
                bitmap::write_batches(hashes, found, |hashes, found| self.contains_batch(hashes, found));
            }
        }
    }

    /// Starts loading the first cache line of a hash that you will look up a little later. See
    /// [`BloomFilter::prefetch`](crate::BloomFilter::prefetch).
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        match self.lanes {
            Lanes::Blocks(modules) => kernel::prefetch::<true>(modules.first().block_of(hash)),
            // Prefetches only the first part of a block that wraps around.
            Lanes::Short(short) => {
                kernel::prefetch::<true>(short.as_slice()[short.first_lane_of(hash)..].as_ptr().cast())
            }
        }
    }

    /// Probes per key, 1 to 16, in each module.
    #[inline]
    pub fn k(&self) -> u32 {
        self.k.get()
    }

    /// The size, to compute a rate, or to make filters that can be united with this one.
    pub fn sizing(&self) -> Sizing {
        Sizing { n_blocks: self.n_blocks(), n_modules: self.n_modules(), k: self.k }
    }

    /// Number of modules, 1 to 16. See [`BloomFilter::n_modules`](crate::BloomFilter::n_modules).
    #[inline]
    pub fn n_modules(&self) -> usize {
        self.lanes.n_modules()
    }

    /// Number of blocks of 64 bytes, of all modules. The blocks of a short filter, which has fewer than 64 lanes of 8
    /// bytes, may overlap.
    #[inline]
    pub fn n_blocks(&self) -> usize {
        self.lanes.n_blocks()
    }

    /// Bytes of the lanes of all modules, without checksums, trailer or footer.
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.lanes.as_bytes().len()
    }

    /// The seed that keys are hashed with.
    #[inline]
    pub fn seed(&self) -> u64 {
        self.seed.get()
    }

    /// Number of distinct keys, if the bytes contain it. See
    /// [`BloomFilter::known_keys`](crate::BloomFilter::known_keys).
    pub fn known_keys(&self) -> Option<u64> {
        self.keys
    }

    /// Fraction of bits that are set, 0 to 1. The best filters are a little below one half full. Reads the whole
    /// filter.
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        let ones: u64 = self.lanes.iter().map(|lane| u64::from(lane.count_ones())).sum();
        ones as f64 / (8 * self.byte_len()) as f64
    }

    /// Estimates how many distinct keys were inserted, from the bits. See
    /// [`BloomFilter::estimated_keys`](crate::BloomFilter::estimated_keys). Reads the whole filter.
    #[must_use]
    pub fn estimated_keys(&self) -> Option<KeyEstimate> {
        self.estimated_union(self).ok()?
    }

    /// Estimates how many distinct keys are in at least one of two filters, as [`estimated_keys`](Self::estimated_keys)
    /// of their union does, without making it. Reads both filters. Does not allocate.
    ///
    /// # Errors
    ///
    /// If the filters differ in the number of blocks or modules, k or seed.
    pub fn estimated_union<'b>(&self, other: impl Into<BloomView<'b>>) -> Result<Option<KeyEstimate>, Error> {
        self.compare(&other.into(), |lanes| estimate::keys(lanes, self.k()))
    }

    /// Estimates how many distinct keys are in both of two filters. A negative result becomes 0. Two large filters with
    /// few keys in common leave [a large error](KeyEstimate#keys-that-two-filters-have-in-common). Reads both filters.
    /// Does not allocate.
    ///
    /// # Errors
    ///
    /// If the filters differ in the number of blocks or modules, k or seed.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::BloomFilter;
    ///
    /// let mut monday = BloomFilter::with_bits_per_key(200_000, 10.0)?;
    /// let mut tuesday = monday.clone();
    /// monday.extend(0..200_000);
    /// tuesday.extend(150_000..350_000);
    /// let both_days = monday.as_view().estimated_intersection(&tuesday)?.ok_or("too full")?;
    /// assert_eq!((both_days.keys, both_days.standard_error.round()), (50_082, 150.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn estimated_intersection<'b>(
        &self,
        other: impl Into<BloomView<'b>>,
    ) -> Result<Option<KeyEstimate>, Error> {
        self.compare(&other.into(), |lanes| estimate::common_keys(lanes, self.k()))
    }

    /// Calls `read` with the lanes of both filters, in the same form. Lanes that blocks share are counted once.
    fn compare<T>(&self, other: &BloomView<'_>, read: impl FnOnce([Lanes<'_>; 2]) -> T) -> Result<T, Error> {
        check_match(self.sizing(), self.seed, other)?;
        Ok(self.lanes.with_blocks(|ours| {
            other.lanes.with_blocks(|theirs| lanes::with_fewest_lanes([ours, theirs], read))
        }))
    }

    /// The probability that a key never inserted is reported as possibly present, exact for the bits as they are. It is
    /// the product of the modules' rates. Reads the whole filter.
    #[must_use]
    pub fn estimated_fpr(&self) -> f64 {
        let rate =
            |module: BlockSlice<'_>| sizing::estimated_fpr(module.as_slice().iter().map(lanes_of), self.k);
        self.lanes.with_blocks(|modules| modules.iter().map(rate).product())
    }
}

const NO_BITS: &Block = &[0; BLOCK_BYTES];

/// The iterator of [`BloomView::which_contain`].
struct WhichContain<I> {
    filters: iter::Fuse<I>,
    hash: u64,
    /// How many filters were asked.
    asked: usize,
    /// The filters asked last that are to be returned, one bit each. The last one's bit is the lowest.
    found: u64,
}

impl<'a, I: Iterator<Item: Into<BloomView<'a>>>> Iterator for WhichContain<I> {
    type Item = usize;

    // Inlined, because a call and a state in memory cost as much as a lookup. The compiler does not inline a closure of
    // this size.
    //
    // Tried: prefetch the blocks of the next four filters. In 48 MiB this saves up to a tenth of the time, but in L2 it
    // costs a fifth (Intel Emerald Rapids). Groups of 8 and 16, with a called function or with the mask in memory, cost
    // a fifth, too.
    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let hash = self.hash;
        while self.found == 0 {
            let first: BloomView<'a> = self.filters.next()?.into();
            if first.inlined.one_module_k.is_none() {
                let BloomView { lanes, k, kernel, .. } = first;
                self.found = BloomView::lanes_contain(lanes, hash, k, kernel).into();
                self.asked += 1;
                continue;
            }
            let mut next =
                || self.filters.next().map_or(NO_BITS, |filter| filter.into().block_of(hash, first.k));
            let blocks = [first.block_of(hash, first.k), next(), next(), next()];
            self.found = first.kernel.contains_each(blocks, hash, first.k);
            self.asked += 4;
        }
        let last = self.found.ilog2();
        self.found ^= 1 << last;
        Some(self.asked - 1 - last as usize)
    }
}

/// How often each block of `other` is repeated in a filter of this size and seed that it is combined with. The keys of
/// a block fall in as many neighbours there, which [`BloomFilter::fold`](crate::BloomFilter::fold) would unite.
pub(crate) fn repeats(ours: Sizing, seed: Seed, other: &BloomView<'_>) -> Result<usize, Error> {
    let (n_blocks, theirs) = (ours.n_blocks(), other.n_blocks());
    let n_blocks = if n_blocks.is_multiple_of(theirs) { theirs } else { n_blocks };
    check_match(Sizing { n_blocks, ..ours }, seed, other)?;
    Ok(ours.n_blocks() / theirs)
}

/// Fails if a filter of this size and seed and `other` place keys differently.
pub(crate) fn check_match(ours: Sizing, seed: Seed, other: &BloomView<'_>) -> Result<(), Error> {
    check_modules([ours.n_modules, other.n_modules()])?;
    // First, because folding does not help if these differ.
    check_placing([ours.k, other.k].map(ProbeCount::get), [seed, other.seed])?;
    let [ours_blocks, theirs_blocks] = [ours.n_blocks, other.n_blocks()].map(|n| n as u64);
    let (more, fewer) = (ours_blocks.max(theirs_blocks), ours_blocks.min(theirs_blocks));
    if more != fewer {
        let text = match more.checked_rem(fewer) {
            Some(0) => "filters of {} and {} blocks cannot be combined: fold the larger one by {}",
            _ => "filters of {} and {} blocks cannot be combined: build both with one size",
        };
        let numbers = [ours_blocks, theirs_blocks, more / fewer];
        return Err(Error::new(ErrorKind::Mismatch, text, numbers));
    }
    Ok(())
}

/// Fails if two filters differ in their number of modules.
pub(crate) fn check_modules(modules: [usize; 2]) -> Result<(), Error> {
    let text = "filters of {} and {} modules cannot be combined: build both with one size";
    check_same(modules.map(|n| n as u64), text)
}

/// Fails if two filters differ in k or seed.
pub(crate) fn check_placing(k: [u32; 2], seeds: [Seed; 2]) -> Result<(), Error> {
    check_same(
        k.map(u64::from),
        "filters with k = {} and k = {} cannot be combined: build both with one size",
    )?;
    let text = "filters with seeds {hex} and {hex} cannot be combined: build both with one seed";
    check_same(seeds.map(Seed::get), text)
}

/// Fails with this text if two filters have different numbers.
pub(crate) fn check_same(numbers: [u64; 2], text: &'static str) -> Result<(), Error> {
    if numbers[0] == numbers[1] { Ok(()) } else { Err(Error::new(ErrorKind::Mismatch, text, numbers)) }
}

/// Equal filters have the same modules, blocks, bits, k and seed, and return the same answers.
impl PartialEq for BloomView<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other, |[ours, theirs]| ours.as_bytes() == theirs.as_bytes()) == Ok(true)
    }
}

impl Eq for BloomView<'_> {}

impl<'a> From<&BloomView<'a>> for BloomView<'a> {
    #[inline]
    fn from(view: &BloomView<'a>) -> Self {
        *view
    }
}

impl fmt::Debug for BloomView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(f, "BloomView", self.sizing(), self.seed, self.kernel)
    }
}

/// `Debug` of a filter, with its shape in place of its bits.
pub(crate) fn debug(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    sizing: Sizing,
    seed: Seed,
    kernel: Kernel,
) -> fmt::Result {
    f.debug_struct(name)
        .field("n_blocks", &sizing.n_blocks())
        .field("n_modules", &sizing.n_modules())
        .field("k", &sizing.k())
        .field("seed", &seed.get())
        .field("kernel", &kernel)
        .finish_non_exhaustive()
}
