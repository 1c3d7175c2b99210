//! `BloomView`: lookups in bytes that someone else owns.
#![forbid(unsafe_code)]

use core::fmt;

use crate::blocks::lanes;
use crate::encoding::{self, Lanes};
use crate::error::DecodeError;
use crate::estimate::{self, KeyEstimate};
use crate::hash::Seed;
use crate::kernel::{self, Kernel};
use crate::mask::ProbeCount;
use crate::sizing;

/// A filter read in place from its bytes, at any alignment, without copying.
///
/// Opening compact bytes checks their length and last byte; opening standalone bytes checks their footer. Neither
/// allocates nor reads the lanes.
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
/// view.verify()?;
/// assert!(view.contains("user4291"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct BloomView<'a> {
    pub(crate) lanes: Lanes<'a>,
    pub(crate) k: ProbeCount,
    pub(crate) kernel: Kernel,
    pub(crate) seed: Seed,
    pub(crate) keys: Option<u64>,
    /// `None` if the bytes contain no checksum.
    pub(crate) lanes_checksum: Option<u64>,
}

impl<'a> BloomView<'a> {
    /// Opens compact bytes, as written by [`BloomFilter::write_compact`](crate::BloomFilter::write_compact), of a
    /// filter with seed 0.
    ///
    /// Compact bytes rely on the length and checksum of their container: not every cut or flipped bit is detected here.
    ///
    /// # Errors
    ///
    /// If no filter has this length, or the version is unknown. A caller that must answer treats the key as possibly
    /// present.
    #[inline]
    pub fn from_compact(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::from_compact_with_seed(bytes, 0)
    }

    /// Opens compact bytes of a filter that was made with `seed`.
    ///
    /// # Errors
    ///
    /// Those of [`from_compact`](Self::from_compact). A wrong seed is not detected, and most lookups then return
    /// `false`, even for inserted keys: store the seed where it cannot be lost, such as in the name of the filter
    /// policy.
    #[inline]
    pub fn from_compact_with_seed(bytes: &'a [u8], seed: u64) -> Result<Self, DecodeError> {
        let (lanes, k) = encoding::read_compact(bytes)?;
        let (kernel, seed) = (Kernel::active(), Seed::new(seed));
        Ok(Self { lanes, k, kernel, seed, keys: None, lanes_checksum: None })
    }

    /// Opens standalone bytes, as written by [`BloomFilter::to_standalone`](crate::BloomFilter::to_standalone). Checks
    /// the footer but not the lanes: see [`verify`](Self::verify).
    ///
    /// # Errors
    ///
    /// If the bytes were cut, if their footer is damaged or of another version, or if the keys were hashed by another
    /// function than this build's.
    pub fn from_standalone(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (lanes, k, footer) = encoding::read_standalone(bytes)?;
        let (kernel, seed) = (Kernel::active(), Seed::new(footer.seed));
        let (keys, lanes_checksum) = (footer.known_keys, Some(footer.body_checksum));
        Ok(Self { lanes, k, kernel, seed, keys, lanes_checksum })
    }

    /// Reads all lanes and compares them with their checksum. Returns `Ok` if there is none, as in compact bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError::BodyChecksum`] if the lanes are damaged: lookups may then return `false` for keys that were
    /// inserted.
    pub fn verify(&self) -> Result<(), DecodeError> {
        self.lanes_checksum.map_or(Ok(()), |stored| encoding::verify(self.lanes.as_bytes(), stored))
    }

    /// Uses another kernel than the fastest: for tests and benchmarks. The answers stay the same.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self { kernel, ..self }
    }

    /// Returns whether `key` is possibly present. `false` means definitely absent. See
    /// [`BloomFilter::contains`](crate::BloomFilter::contains).
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.contains_hash(self.seed.hash(key.as_ref()))
    }

    /// [`contains`](Self::contains) by hash.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        match self.lanes {
            Lanes::Blocks(blocks) => self.kernel.contains(blocks, hash, self.k),
            Lanes::Short(short) => Kernel::contains_short(short, hash, self.k, self.kernel),
        }
    }

    /// Looks up many keys by hash: sets `found[i]` to whether the key of `hashes[i]` is possibly present. Faster than
    /// one by one from about eight keys on.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
        assert_eq!(hashes.len(), found.len(), "one answer per hash");
        match self.lanes {
            Lanes::Blocks(blocks) => self.kernel.contains_batch(blocks, hashes, self.k, found),
            Lanes::Short(_) => {
                for (found, &hash) in found.iter_mut().zip(hashes) {
                    *found = self.contains_hash(hash);
                }
            }
        }
    }

    /// Starts loading the cache line of a hash that you will look up a little later. See
    /// [`BloomFilter::prefetch`](crate::BloomFilter::prefetch).
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        match self.lanes {
            Lanes::Blocks(blocks) => kernel::prefetch::<true>(blocks.block_of(hash)),
            // Prefetches only the first part of a block that wraps around; the rest is at the start of the lanes.
            Lanes::Short(short) => {
                kernel::prefetch::<true>(short.as_slice()[short.first_lane_of(hash)..].as_ptr().cast())
            }
        }
    }

    /// Probes per key, 1 to 16.
    #[inline]
    pub fn k(&self) -> u32 {
        self.k.get()
    }

    /// Number of blocks of 64 bytes. The blocks of a short filter, which has fewer than 64 lanes of 8 bytes, may
    /// overlap.
    #[inline]
    pub fn n_blocks(&self) -> usize {
        match self.lanes {
            Lanes::Blocks(blocks) => blocks.as_slice().len(),
            Lanes::Short(short) => short.n_blocks(),
        }
    }

    /// Bytes of the lanes: the filter's bytes without the trailer or footer.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        self.lanes.as_bytes().len()
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

    /// Number of distinct keys, if the bytes contain it. See
    /// [`BloomFilter::known_keys`](crate::BloomFilter::known_keys).
    pub fn known_keys(&self) -> Option<u64> {
        self.keys
    }

    /// Fraction of bits that are set, 0 to 1. The best filters are a little below one half full. Reads the whole
    /// filter.
    pub fn fill_ratio(&self) -> f64 {
        let ones: u64 = self.lanes.iter().map(|lane| u64::from(lane.count_ones())).sum();
        ones as f64 / (8 * self.size_bytes()) as f64
    }

    /// Estimates how many distinct keys were inserted, from the bits. See
    /// [`BloomFilter::estimated_keys`](crate::BloomFilter::estimated_keys). Reads the whole filter.
    pub fn estimated_keys(&self) -> KeyEstimate {
        // Lanes that blocks share are counted once.
        let keys = |lanes: Lanes<'_>| estimate::keys(lanes.iter(), self.k());
        self.lanes.with_blocks(|blocks| encoding::with_fewest_lanes(blocks, keys))
    }

    /// The probability that a key never inserted is reported as possibly present: exact for the bits as they are. Reads
    /// the whole filter.
    pub fn estimated_fpr(&self) -> f64 {
        self.lanes.with_blocks(|blocks| sizing::estimated_fpr(blocks.as_slice().iter().map(lanes), self.k))
    }
}

impl fmt::Debug for BloomView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BloomView")
            .field("n_blocks", &self.n_blocks())
            .field("k", &self.k())
            .field("seed", &self.seed())
            .field("kernel", &self.kernel)
            .finish_non_exhaustive()
    }
}
