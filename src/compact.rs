//! `CompactFilter`: compact bytes in memory of their own.
#![forbid(unsafe_code)]

use core::fmt;

use crate::blocks::Blocks;
use crate::encoding::{self, Lanes};
use crate::error::DecodeError;
use crate::hash::Seed;
use crate::kernel::Kernel;
use crate::mask::ProbeCount;
use crate::view::BloomView;

/// A filter that owns its compact bytes: for caches of filters, where a [`BloomView`] would need bytes that outlive it.
///
/// Copied once, into memory aligned to cache lines, and checked once. It takes as much memory as the bytes, rounded up
/// to 64; a [`BloomFilter`](crate::BloomFilter) takes up to eight times as much for a short filter. It cannot be
/// changed; [`to_filter`](BloomView::to_filter) of its view makes a filter that can.
///
/// # Examples
///
/// ```
/// use bloomline::{CompactFilter, FilterBuilder};
///
/// let mut builder = FilterBuilder::with_bits_per_key(10.0)?;
/// builder.extend(["ant", "bee"]);
/// let mut bytes = Vec::new();
/// builder.finish_compact(&mut bytes);
///
/// let filter = CompactFilter::from_compact(&bytes)?;
/// assert!(filter.contains("ant"));
/// assert_eq!(filter.as_bytes(), bytes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct CompactFilter {
    /// The compact bytes, padded to whole blocks.
    memory: Blocks,
    n_bytes: usize,
    k: ProbeCount,
    kernel: Kernel,
    seed: Seed,
}

impl CompactFilter {
    /// Copies compact bytes of a filter with seed 0.
    ///
    /// # Errors
    ///
    /// Those of [`BloomView::from_compact`].
    pub fn from_compact(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::from_compact_with_seed(bytes, 0)
    }

    /// Copies compact bytes of a filter that was made with `seed`.
    ///
    /// # Errors
    ///
    /// Those of [`BloomView::from_compact_with_seed`].
    pub fn from_compact_with_seed(bytes: &[u8], seed: u64) -> Result<Self, DecodeError> {
        let (_, k) = encoding::read_compact(bytes)?;
        let (memory, kernel, seed) = (Blocks::from_bytes(bytes), Kernel::active(), Seed::new(seed));
        Ok(Self { memory, n_bytes: bytes.len(), k, kernel, seed })
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
        self.as_view().contains_hash(hash)
    }

    /// Borrows the filter as a view, for batches of lookups and everything else that a view can do.
    #[inline]
    pub fn as_view(&self) -> BloomView<'_> {
        let Self { k, kernel, seed, .. } = *self;
        let lanes = &self.as_bytes()[..self.n_bytes - 1];
        let lanes = Lanes::new(lanes).expect("checked before it was copied");
        BloomView { lanes, k, kernel, seed, keys: None, lanes_checksum: None }
    }

    /// The compact bytes, as they were copied. They start at a multiple of 64.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.memory.as_slice().as_slice().as_flattened()[..self.n_bytes]
    }

    /// Bytes of memory that the filter takes, for the charge of a cache. With the feature `huge-pages`, a filter of 2 MiB
    /// or more takes whole huge pages.
    pub fn size_bytes(&self) -> usize {
        size_of_val(self.memory.as_slice().as_slice())
    }
}

impl fmt::Debug for CompactFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactFilter")
            .field("n_bytes", &self.n_bytes)
            .field("view", &self.as_view())
            .finish()
    }
}
