//! `CompactFilter`: compact bytes in memory of their own.
#![forbid(unsafe_code)]

use core::fmt;

use crate::blocks::Blocks;
use crate::error::DecodeError;
use crate::owned_view::OwnedView;
use crate::view::BloomView;

/// A filter that owns its compact bytes: for caches of filters, where a [`BloomView`] would need bytes that outlive it.
/// An [`OwnedView`] does not copy the bytes, and leaves them where they are.
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
    /// Its memory is the compact bytes, padded to whole blocks.
    view: OwnedView<Blocks>,
    n_bytes: usize,
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
        let view = BloomView::from_compact_with_seed(bytes, seed)?;
        Ok(Self { view: OwnedView::of_copy(view, Blocks::from_bytes(bytes)), n_bytes: bytes.len() })
    }

    /// Returns whether `key` is possibly present. `false` means definitely absent. See
    /// [`BloomFilter::contains`](crate::BloomFilter::contains).
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.view.contains(key)
    }

    /// [`contains`](Self::contains) by hash.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.view.contains_hash(hash)
    }

    /// Borrows the filter as a view, for batches of lookups and everything else that a view can do.
    #[inline]
    pub fn as_view(&self) -> BloomView<'_> {
        self.view.as_view()
    }

    /// The compact bytes, as they were copied. They start at a multiple of 64.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.view.get_ref().as_ref()[..self.n_bytes]
    }

    /// Bytes of memory that the filter takes, for the charge of a cache. With the feature `huge-pages`, a filter of 2 MiB
    /// or more takes whole huge pages.
    pub fn size_bytes(&self) -> usize {
        self.view.get_ref().as_ref().len()
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
