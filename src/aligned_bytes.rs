//! `AlignedBytes`, bytes that start at a cache line.

use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::blocks::{BLOCK_BYTES, Blocks};
use crate::error::Error;
use crate::memory::OutOfMemory;

/// Owned bytes that, unlike a `Vec`'s, start at a multiple of 64, so that each block of a filter in them is one cache
/// line. A cache of filters keeps them as an [`OwnedView`](crate::OwnedView).
///
/// To fill them, read a file into [`zeroed`](Self::zeroed) bytes, or make a [copy](Self::copy_of). They cost their
/// length in memory, rounded up to a multiple of 64, and 56 bytes more. With the feature `huge-pages`, 2 MiB and more are
/// in huge pages where Linux grants them.
///
/// # Examples
///
/// ```
/// use std::io::Read;
/// use bloomline::{AlignedBytes, FilterBuilder, OwnedView};
///
/// let mut builder = FilterBuilder::with_bits_per_key(10.0)?;
/// builder.extend(["ant", "bee"]);
/// let mut table = Vec::new();
/// builder.finish_compact(&mut table)?;
///
/// let mut bytes = AlignedBytes::zeroed(table.len())?;
/// table.as_slice().read_exact(&mut bytes)?; // or a file's `read_exact_at`
/// let filter = OwnedView::from_compact(bytes)?;
/// assert!(filter.as_view().contains("ant"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct AlignedBytes {
    blocks: Blocks,
    len: usize,
}

impl AlignedBytes {
    /// `len` zero bytes, to be overwritten.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub fn zeroed(len: usize) -> Result<Self, Error> {
        Ok(Self::try_zeroed(len)?)
    }

    pub(crate) fn try_zeroed(len: usize) -> Result<Self, OutOfMemory> {
        Ok(Self { blocks: Blocks::zeroed(len.div_ceil(BLOCK_BYTES).max(1))?, len })
    }

    /// A copy of `bytes`.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub fn copy_of(bytes: &[u8]) -> Result<Self, Error> {
        Ok(Self { blocks: Blocks::try_from_bytes(bytes)?, len: bytes.len() })
    }

    pub(crate) fn allocated_len(&self) -> usize {
        self.blocks.allocated_len()
    }
}

impl Deref for AlignedBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.blocks.as_slice().as_slice().as_flattened()[..self.len]
    }
}

impl DerefMut for AlignedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.blocks.as_mut_slice().as_flattened_mut()[..self.len]
    }
}

impl AsRef<[u8]> for AlignedBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for AlignedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBytes").field("len", &self.len).finish_non_exhaustive()
    }
}
