//! `SharedSlice`, a part of shared bytes.
#![forbid(unsafe_code)]

use alloc::sync::Arc;
use core::fmt;
use core::ops::Range;

use crate::error::Error;

/// A part of shared bytes, such as a file in an `Arc<Mmap>`, an `Arc<Vec<u8>>` or an `Arc<[u8]>`. It keeps all of them
/// in memory as long as it lives, and copies none.
///
/// Use it for an [`OwnedView`](crate::OwnedView) of a table's filter. `bytes::Bytes` needs no such type, because it has
/// slices of its own.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use bloomline::{FilterBuilder, OwnedView, SharedSlice};
///
/// struct Table {
///     file: Arc<Vec<u8>>, // or an `Arc<memmap2::Mmap>`
///     filter: OwnedView<SharedSlice<Vec<u8>>>,
/// }
///
/// let (mut file, mut builder) = (b"the data blocks".to_vec(), FilterBuilder::with_bits_per_key(10.0)?);
/// builder.extend(["ant", "bee"]);
/// file.resize(file.len().next_multiple_of(64), 0); // so that each block of the filter is one cache line
/// let start = file.len(); // store start and length in the table's footer
/// builder.finish_compact(&mut file)?;
///
/// let file = Arc::new(file);
/// let filter = SharedSlice::new(Arc::clone(&file), start..file.len())?;
/// let table = Table { filter: OwnedView::from_compact(filter)?, file };
/// assert!(table.filter.as_view().contains("ant"));
/// assert!(!table.filter.as_view().contains("cat"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SharedSlice<T: ?Sized> {
    bytes: Arc<T>,
    start: usize,
    len: usize,
}

impl<T: AsRef<[u8]> + ?Sized> SharedSlice<T> {
    /// The bytes in `range`.
    ///
    /// # Errors
    ///
    /// If there are fewer bytes, or the range ends before it starts.
    pub fn new(bytes: Arc<T>, range: Range<usize>) -> Result<Self, Error> {
        let Range { start, end } = range;
        match bytes.as_ref().as_ref().get(range) {
            Some(slice) => Ok(Self { len: slice.len(), bytes, start }),
            None => {
                let text = "bytes {} to {} of {} do not exist: the range is damaged, or of another file";
                Err(Error::damaged(text, [start, end, bytes.as_ref().as_ref().len()].map(|n| n as u64)))
            }
        }
    }
}

/// The bytes in the range, or none if the shared bytes have become fewer than the range needs.
impl<T: AsRef<[u8]> + ?Sized> AsRef<[u8]> for SharedSlice<T> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        let bytes = self.bytes.as_ref().as_ref().get(self.start..);
        bytes.and_then(|bytes| bytes.get(..self.len)).unwrap_or_default()
    }
}

// Not derived, because a derive would require `T: Clone`.
impl<T: ?Sized> Clone for SharedSlice<T> {
    fn clone(&self) -> Self {
        Self { bytes: Arc::clone(&self.bytes), ..*self }
    }
}

impl<T: ?Sized> fmt::Debug for SharedSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSlice")
            .field("start", &self.start)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
