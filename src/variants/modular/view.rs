//! `ModularView`: lookups in the bytes of a modular filter, or in its first modules.
#![forbid(unsafe_code)]

use core::fmt;

use xxhash_rust::xxh64::xxh64;

use super::modules::Modules;
use crate::bitmap;
use crate::blocks::{BLOCK_BYTES, BlockSlice, lanes};
use crate::compact::read_compact_modules;
use crate::error::{BuildError, DecodeError};
use crate::estimate::KeyEstimate;
use crate::footer::{self, split_with_reserved};
use crate::hash::Seed;
use crate::kernel::Kernel;
use crate::key::Key;
use crate::kind::StandaloneKind;
use crate::lanes::Lanes;
use crate::mask::ProbeCount;
use crate::math::square_root;
use crate::sizing::{self, MOST_MODULES};
use crate::view::BloomView;

/// The checksum of a module.
pub(super) const CHECKSUM_BYTES: usize = size_of::<u64>();

/// A [`ModularBloomFilter`](crate::variants::ModularBloomFilter) read in place from its standalone bytes, at any
/// alignment, without copying.
///
/// # Fewer modules
///
/// The first modules of a filter are a filter of the same keys, with a higher false-positive rate. So a cache that is
/// short of memory can drop the last module of a table that is rarely asked, and load it again later. See
/// [`truncated`](Self::truncated).
///
/// # Examples
///
/// ```
/// use bloomline::variants::{ModularBloomFilter, ModularView};
///
/// let mut filter = ModularBloomFilter::with_fpr(1_000, 0.0001)?;
/// filter.insert("user4291");
///
/// let bytes = filter.to_standalone();
/// let view = ModularView::from_standalone(&bytes)?;
/// assert!(view.contains("user4291"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct ModularView<'a> {
    pub(super) modules: Modules<'a>,
    pub(super) seed: Seed,
    pub(super) keys: Option<u64>,
    /// A checksum for each module, including modules that were left out. None if the view is of a filter in memory.
    pub(super) checksums: &'a [[u8; CHECKSUM_BYTES]],
}

impl<'a> ModularView<'a> {
    /// Opens standalone bytes, as written by
    /// [`ModularBloomFilter::to_standalone`](crate::variants::ModularBloomFilter::to_standalone). Compares all of them
    /// with their checksums, and does not allocate.
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of a different version, or if the keys were hashed by a different function
    /// than this build's.
    #[doc(alias = "from_bytes")]
    pub fn from_standalone(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let view = Self::from_standalone_unverified(bytes)?;
        view.verify().map(|()| view)
    }

    /// Opens standalone bytes without reading the modules, for mapped files that are too large to read, or of which
    /// only the first modules will be asked. Checks only the footer, and the modules' checksums against it.
    ///
    /// **Damaged bits lose keys.** Lookups then return `false` for keys that were inserted, with no other sign. Call
    /// [`verify`](Self::verify) when there is time, or rely on a checksum of your own.
    ///
    /// # Errors
    ///
    /// As [`from_standalone`](Self::from_standalone), but for damaged modules.
    pub fn from_standalone_unverified(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (body, footer, reserved) = split_with_reserved(bytes, StandaloneKind::Modular)?;
        let k = footer.probe_count(ProbeCount::new)?;
        if !(1..=MOST_MODULES as u64).contains(&reserved) {
            return Err(DecodeError::Footer { field: "number of modules", found: reserved });
        }
        let n_modules = reserved as usize;
        let wrong_size =
            DecodeError::Size { stored: footer.size, unit: "blocks per module", found_bytes: body.len() };
        // Sizes are computed from the bytes that are there. The stored size, which may be forged, is only compared.
        let end = body.len().checked_sub(CHECKSUM_BYTES * n_modules).ok_or(wrong_size)?;
        let (blocks, rest) = body[..end].as_chunks::<BLOCK_BYTES>();
        let n_blocks = blocks.len() / n_modules;
        let fits =
            rest.is_empty() && blocks.len().is_multiple_of(n_modules) && n_blocks as u64 == footer.size;
        let blocks = BlockSlice::new(blocks).filter(|_| fits).ok_or(wrong_size)?;
        let (checksums, _) = body[end..].as_chunks();
        footer::verify(&body[end..], footer.body_checksum)?;
        let modules = Modules { blocks, n_blocks, k, kernel: Kernel::active() };
        Ok(Self { modules, seed: Seed::new(footer.seed), keys: footer.known_keys, checksums })
    }

    /// Opens compact bytes of two modules or more, as a [`FilterPolicy`](crate::sstable::FilterPolicy) writes them at
    /// low false-positive rates. [`BloomView::from_compact`] opens filters of one module.
    ///
    /// # Errors
    ///
    /// If no modular filter has this length or these last two bytes.
    #[inline]
    pub fn from_compact(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (blocks, n_modules, k) = read_compact_modules(bytes)?;
        let n_blocks = blocks.as_slice().len() / n_modules;
        let modules = Modules { blocks, n_blocks, k, kernel: Kernel::active() };
        Ok(Self { modules, seed: Seed::DEFAULT, keys: None, checksums: &[] })
    }

    /// Compares each module with its checksum. Reads all modules of the view.
    ///
    /// # Errors
    ///
    /// [`DecodeError::BodyChecksum`] if a module is damaged, so that lookups may return `false` for keys that were
    /// inserted. [`DecodeError::NoChecksum`] if the view is of a filter in memory.
    pub fn verify(&self) -> Result<(), DecodeError> {
        if self.checksums.is_empty() {
            return Err(DecodeError::NoChecksum);
        }
        let stored = self.checksums.iter().map(|checksum| u64::from_le_bytes(*checksum));
        for (stored, computed) in stored.zip(self.computed_checksums()) {
            if stored != computed {
                return Err(DecodeError::BodyChecksum { stored, computed });
            }
        }
        Ok(())
    }

    pub(super) fn computed_checksums(self) -> impl Iterator<Item = u64> {
        let modules = self.modules.iter().zip(0..);
        modules.map(|(module, number)| xxh64(module.as_slice().as_flattened(), number))
    }

    /// Returns the view of the first `n_modules` modules. It has every key, at a higher false-positive rate.
    ///
    /// The view reads nothing else, so the bytes of the remaining modules can be dropped from memory, and loaded again
    /// later. **Insert nothing in between.** A key inserted into a copy of the first modules is missing in the
    /// remaining modules, so a lookup that asks all of them again loses it.
    ///
    /// To store the first modules as a separate filter, write `to_filter()?.to_standalone()`.
    ///
    /// # Errors
    ///
    /// [`BuildError::Modules`] if `n_modules` is 0, or above the number that the view has.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::sizing::ModularSizing;
    /// use bloomline::variants::{ModularBloomFilter, ModularView};
    ///
    /// let mut filter = ModularBloomFilter::with_sizing(ModularSizing::new(3, 25, 4)?)?;
    /// filter.extend(0..1_000);
    /// let bytes = filter.to_standalone();
    ///
    /// let view = ModularView::from_standalone(&bytes)?;
    /// let cold = view.truncated(2)?;
    /// assert!((0..1_000).all(|key| cold.contains(key)));
    /// assert!(view.estimated_fpr() < cold.estimated_fpr());
    /// assert!(cold.to_filter()?.to_standalone().len() < bytes.len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn truncated(self, n_modules: usize) -> Result<Self, BuildError> {
        let most = self.n_modules();
        if !(1..=most).contains(&n_modules) {
            return Err(BuildError::Modules { n_modules, most });
        }
        Ok(Self { modules: self.modules.truncated(n_modules), ..self })
    }

    /// Uses a different kernel than the fastest, for tests and benchmarks. The answers stay the same.
    #[doc(hidden)]
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self { modules: Modules { kernel, ..self.modules }, ..self }
    }

    /// Hashes `key` under the filter's seed, for the `*_hash` methods.
    #[inline]
    #[must_use]
    pub fn hash_key(&self, key: impl Key) -> u64 {
        self.seed.hash(key)
    }

    /// Returns whether `key` is possibly present. `false` means definitely absent. See
    /// [`ModularBloomFilter::contains`](crate::variants::ModularBloomFilter::contains).
    #[doc(alias = "might_contain")]
    #[inline]
    #[must_use]
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_hash(self.seed.hash(key))
    }

    /// [`contains`](Self::contains) by hash.
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.modules.contain(hash)
    }

    /// Looks up many keys by hash, and sets `found[i]` to whether the key of `hashes[i]` is possibly present. See
    /// [`ModularBloomFilter::contains_batch`](crate::variants::ModularBloomFilter::contains_batch).
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
        self.modules.contains_batch(hashes, found);
    }

    /// [`contains_batch`](Self::contains_batch) into a bitmap. Sets bit `i % 8` of `found[i / 8]` to whether the key of
    /// `hashes[i]` is possibly present, and clears the bits after the last hash. Arrow's bitmaps have this layout.
    ///
    /// # Panics
    ///
    /// If `found` does not have `hashes.len().div_ceil(8)` bytes.
    pub fn contains_bitmap(&self, hashes: &[u64], found: &mut [u8]) {
        bitmap::write_batches(hashes, found, |hashes, found| self.contains_batch(hashes, found));
    }

    /// Starts loading the first module's cache line of a hash that you will look up a little later. See
    /// [`BloomFilter::prefetch`](crate::BloomFilter::prefetch).
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.modules.prefetch(hash);
    }

    /// Number of modules, 1 to 16.
    pub fn n_modules(&self) -> usize {
        self.modules.len()
    }

    /// Number of blocks of 64 bytes of each module.
    #[inline]
    pub fn n_blocks(&self) -> usize {
        self.modules.n_blocks
    }

    /// Probes per key in each module, 1 to 16.
    #[inline]
    pub fn k(&self) -> u32 {
        self.modules.k.get()
    }

    /// Bytes of the modules, without checksums and footer.
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.modules.bytes().len()
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

    /// Estimates how many distinct keys were inserted, from the bits of all modules. Reads all of them. See
    /// [`KeyEstimate`].
    #[must_use]
    pub fn estimated_keys(&self) -> Option<KeyEstimate> {
        // Each key was counted once for each module, and the modules' errors are independent.
        let KeyEstimate { keys, standard_error } = self.all().estimated_keys()?;
        let (n_modules, error) = (self.n_modules() as u64, standard_error / self.n_modules() as f64);
        let keys = keys.saturating_add(n_modules / 2) / n_modules;
        Some(KeyEstimate { keys, standard_error: square_root(error * error + 1.0 / 12.0) })
    }

    /// The probability that a key never inserted is reported as possibly present. It is the product of the modules'
    /// rates, and exact for their bits. Reads all modules.
    #[must_use]
    pub fn estimated_fpr(&self) -> f64 {
        let rate = |module: BlockSlice<'_>| {
            sizing::estimated_fpr(module.as_slice().iter().map(lanes), self.modules.k)
        };
        self.modules.iter().map(rate).product()
    }

    pub(super) fn debug(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("n_modules", &self.n_modules())
            .field("n_blocks", &self.n_blocks())
            .field("k", &self.k())
            .field("seed", &self.seed())
            .finish_non_exhaustive()
    }

    /// All modules as one filter, to read or combine bits. Do not look up keys in it.
    pub(super) fn all(&self) -> BloomView<'a> {
        let Modules { blocks, k, kernel, .. } = self.modules;
        let (lanes, seed, keys) = (Lanes::Blocks(blocks), self.seed, self.keys);
        BloomView { lanes, k, kernel, seed, keys, lanes_checksum: None }
    }
}

/// Equal filters have the same modules, bits, k and seed, and return the same answers.
impl PartialEq for ModularView<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.n_blocks() == other.n_blocks() && self.all() == other.all()
    }
}

impl Eq for ModularView<'_> {}

impl<'a> From<&ModularView<'a>> for ModularView<'a> {
    fn from(view: &ModularView<'a>) -> Self {
        *view
    }
}

impl fmt::Debug for ModularView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.debug("ModularView", f)
    }
}
