//! `OwnedView`: a view that owns the bytes that it reads, or shares them.
#![forbid(unsafe_code)]

use core::fmt;

use crate::encoding::Lanes;
use crate::error::DecodeError;
use crate::view::BloomView;

/// A [`BloomView`] that keeps its bytes: for a table that holds its file in an `Arc<[u8]>`, a `Bytes` or a memory map,
/// beside which a view that borrows from it could not live.
///
/// The bytes are checked once and not copied. A lookup in an `Arc<[u8]>` takes 0.2 ns longer than one by a view (Zen 4,
/// 2026-11). If the bytes are not aligned to 64, a [`CompactFilter`](crate::CompactFilter), which copies them, may be
/// faster.
///
/// `as_ref` must return the same bytes each time. If it does not, lookups return wrong answers, but nothing panics and
/// nothing else is read. If it returns fewer bytes than the filter has, every key is possibly present.
///
/// # Examples
///
/// The filter is a part of a file. A type of yours says which part:
///
/// ```
/// use std::{ops::Range, sync::Arc};
/// use bloomline::{FilterBuilder, OwnedView};
///
/// /// A part of a file, which stays in memory as long as this does.
/// struct Part {
///     file: Arc<[u8]>, // or an `Arc<memmap2::Mmap>`; a `bytes::Bytes` needs no such type
///     range: Range<usize>,
/// }
///
/// impl AsRef<[u8]> for Part {
///     fn as_ref(&self) -> &[u8] {
///         &self.file[self.range.clone()]
///     }
/// }
///
/// struct Table {
///     filter: OwnedView<Part>,
/// }
///
/// let (mut file, mut builder) = (b"data".to_vec(), FilterBuilder::with_bits_per_key(10.0)?);
/// builder.extend(["ant", "bee"]);
/// builder.finish_compact(&mut file);
///
/// let part = Part { range: 4..file.len(), file: file.into() };
/// let table = Table { filter: OwnedView::from_compact(part)? };
/// assert!(table.filter.contains("ant"));
/// assert!(!table.filter.contains("cat"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct OwnedView<B> {
    bytes: B,
    /// The lanes are these first bytes.
    lane_bytes: usize,
    /// The view, but with lanes that contain every key: the answer if `bytes` no longer has as many bytes.
    full: BloomView<'static>,
}

impl<B: AsRef<[u8]>> OwnedView<B> {
    /// Opens compact bytes of a filter with seed 0.
    ///
    /// # Errors
    ///
    /// Those of [`BloomView::from_compact`].
    pub fn from_compact(bytes: B) -> Result<Self, DecodeError> {
        Self::from_compact_with_seed(bytes, 0)
    }

    /// Opens compact bytes of a filter that was made with `seed`.
    ///
    /// # Errors
    ///
    /// Those of [`BloomView::from_compact_with_seed`].
    pub fn from_compact_with_seed(bytes: B, seed: u64) -> Result<Self, DecodeError> {
        Self::open(bytes, |bytes| BloomView::from_compact_with_seed(bytes, seed))
    }

    /// Opens standalone bytes. Checks the footer but not the lanes: [`verify`](BloomView::verify) of the view does.
    ///
    /// # Errors
    ///
    /// Those of [`BloomView::from_standalone`].
    pub fn from_standalone(bytes: B) -> Result<Self, DecodeError> {
        Self::open(bytes, |bytes| BloomView::from_standalone(bytes))
    }

    fn open(
        bytes: B,
        open: impl FnOnce(&[u8]) -> Result<BloomView<'_>, DecodeError>,
    ) -> Result<Self, DecodeError> {
        let (lane_bytes, full) = without_bytes(open(bytes.as_ref())?);
        Ok(Self { bytes, lane_bytes, full })
    }

    /// A view of a copy of the view's lanes, which `bytes` starts with.
    pub(crate) fn of_copy(view: BloomView<'_>, bytes: B) -> Self {
        let (lane_bytes, full) = without_bytes(view);
        Self { bytes, lane_bytes, full }
    }

    /// Returns whether `key` is possibly present. `false` means definitely absent. See
    /// [`BloomFilter::contains`](crate::BloomFilter::contains).
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.contains_hash(self.full.seed.hash(key.as_ref()))
    }

    /// [`contains`](Self::contains) by hash.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.as_view().contains_hash(hash)
    }

    /// Borrows the filter as a view, for batches of lookups and everything else that a view can do.
    #[inline]
    pub fn as_view(&self) -> BloomView<'_> {
        let lanes = self.bytes.as_ref().get(..self.lane_bytes).and_then(Lanes::new);
        BloomView { lanes: lanes.unwrap_or(self.full.lanes), ..self.full }
    }

    /// The bytes that were given.
    #[inline]
    pub fn get_ref(&self) -> &B {
        &self.bytes
    }
}

/// The number of bytes of the view's lanes, and the view with full lanes in their place.
fn without_bytes(view: BloomView<'_>) -> (usize, BloomView<'static>) {
    let BloomView { k, kernel, seed, keys, lanes_checksum, .. } = view;
    let lanes = Lanes::new(&[0xff; 64]).expect("one block");
    (view.size_bytes(), BloomView { lanes, k, kernel, seed, keys, lanes_checksum })
}

impl<B: AsRef<[u8]>> fmt::Debug for OwnedView<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedView").field(&self.as_view()).finish()
    }
}
