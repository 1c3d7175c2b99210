//! `BloomView`: the lookups of a filter over bytes that someone else owns.
#![forbid(unsafe_code)]

use core::fmt;

use crate::encoding::{self, Lanes};
use crate::error::DecodeError;
use crate::hash::Seed;
use crate::kernel::{self, Kernel};
use crate::mask::ProbeCount;

/// A filter read in place from its bytes, at any alignment, without copying.
///
/// Opening compact bytes looks at their length and last byte; opening standalone bytes checks their footer. Neither
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
    /// `None` where the bytes carry none.
    pub(crate) lanes_checksum: Option<u64>,
}

impl<'a> BloomView<'a> {
    /// Opens compact bytes: those of [`BloomFilter::write_compact`](crate::BloomFilter::write_compact), from a filter of seed 0.
    ///
    /// Compact bytes lean on the length and checksum of what contains them: not every cut or flipped bit can be
    /// seen here.
    ///
    /// # Errors
    ///
    /// If no filter has this length, or the version is unknown. A caller that must answer takes that for "may be
    /// in".
    #[inline]
    pub fn from_compact(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::from_compact_with_seed(bytes, 0)
    }

    /// Opens compact bytes of a filter that was made with `seed`.
    ///
    /// # Errors
    ///
    /// As [`from_compact`](Self::from_compact). A wrong seed goes unnoticed, and most lookups then answer `false`:
    /// keep the seed where it cannot be lost, as in the name of the filter policy.
    #[inline]
    pub fn from_compact_with_seed(bytes: &'a [u8], seed: u64) -> Result<Self, DecodeError> {
        let (lanes, k) = encoding::read_compact(bytes)?;
        let (kernel, seed) = (Kernel::active(), Seed::new(seed));
        Ok(Self { lanes, k, kernel, seed, keys: None, lanes_checksum: None })
    }

    /// Opens standalone bytes: those of [`BloomFilter::to_standalone`](crate::BloomFilter::to_standalone). The footer is checked, the lanes are not:
    /// see [`verify`](Self::verify).
    ///
    /// # Errors
    ///
    /// If the bytes were cut, their footer is damaged or of a newer version, or their keys were hashed by another
    /// function than this build's.
    pub fn from_standalone(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (lanes, k, footer) = encoding::read_standalone(bytes)?;
        let (kernel, seed) = (Kernel::active(), Seed::new(footer.seed));
        let (keys, lanes_checksum) = (footer.known_keys, Some(footer.body_checksum));
        Ok(Self { lanes, k, kernel, seed, keys, lanes_checksum })
    }

    /// Reads all lanes and compares them with their checksum. Without one, in compact bytes, there is nothing to
    /// compare: `Ok`.
    ///
    /// # Errors
    ///
    /// [`DecodeError::BodyChecksum`] if the lanes are damaged: the filter may then answer `false` for keys that
    /// were inserted.
    pub fn verify(&self) -> Result<(), DecodeError> {
        self.lanes_checksum.map_or(Ok(()), |stored| encoding::verify(self.lanes.as_bytes(), stored))
    }

    /// The view with another kernel than the fastest: for tests and benchmarks. The answers stay the same.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self { kernel, ..self }
    }

    /// Whether `key` may have been inserted: `false` is certain. See [`BloomFilter::contains`](crate::BloomFilter::contains).
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

    /// Looks up many keys by hash: `found[i]` becomes whether the key of `hashes[i]` may have been inserted.
    /// Faster than one by one from about eight keys on.
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

    /// Starts loading the cache line of a hash, to be looked up a little later. See [`BloomFilter::prefetch`](crate::BloomFilter::prefetch).
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        match self.lanes {
            Lanes::Blocks(blocks) => kernel::prefetch(blocks.block_of(hash)),
            // Those at the circle's end are with the trailer, which opening has read, and at its start.
            Lanes::Short(short) => {
                kernel::prefetch(short.as_slice()[short.first_lane_of(hash)..].as_ptr().cast())
            }
        }
    }

    /// Probes per key, 1 to 16.
    #[inline]
    pub fn k(&self) -> u32 {
        self.k.get()
    }

    /// Blocks of 64 bytes. Those of a short filter, of fewer than 64 lanes of 8 bytes, may overlap.
    #[inline]
    pub fn n_blocks(&self) -> usize {
        match self.lanes {
            Lanes::Blocks(blocks) => blocks.as_slice().len(),
            Lanes::Short(short) => short.n_blocks(),
        }
    }

    /// What keys are hashed with.
    #[inline]
    pub fn seed(&self) -> u64 {
        self.seed.get()
    }

    /// The kernel in use.
    #[inline]
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Distinct keys, where the bytes say so. See [`BloomFilter::known_keys`](crate::BloomFilter::known_keys).
    pub fn known_keys(&self) -> Option<u64> {
        self.keys
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
