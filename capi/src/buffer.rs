//! Memory passed between C and Rust.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use core::slice;

use crate::error::Error;

#[inline]
pub(crate) fn not_null<T>(object: Option<T>, what: &'static str) -> Result<T, Error> {
    object.ok_or(Error::Null(what))
}

/// `length` bytes of the caller's. Null is allowed if `length` is 0.
///
/// # Safety
///
/// `start` is null, or `length` bytes from it on can be read and do not change for `'a`. Impossible lengths are an
/// error.
#[inline]
pub(crate) unsafe fn borrowed_bytes<'a>(
    start: *const c_void,
    length: usize,
    what: &'static str,
) -> Result<&'a [u8], Error> {
    // SAFETY: as for this function; bytes are aligned everywhere.
    unsafe { borrowed(start.cast(), length, what) }
}

/// `n` elements of the caller's, of a type for which any bits are a value. Null is allowed if `n` is 0.
///
/// # Safety
///
/// `T` has no invalid values. `start` is null, or `n` elements from it on can be read and do not change for `'a`.
/// Impossible lengths and misaligned pointers are errors.
#[inline]
pub(crate) unsafe fn borrowed<'a, T>(
    start: *const T,
    n: usize,
    what: &'static str,
) -> Result<&'a [T], Error> {
    if n == 0 {
        Ok(&[])
    } else if n > isize::MAX as usize / size_of::<T>() {
        Err(Error::TooLong(what))
    } else if start.is_null() {
        Err(Error::Null(what))
    } else if !start.is_aligned() {
        Err(Error::Misaligned(what))
    } else {
        // SAFETY: not null, aligned, of a possible size; readable and unchanged by this function's contract.
        Ok(unsafe { slice::from_raw_parts(start, n) })
    }
}

/// A copy from malloc, which the caller frees.
pub(crate) fn allocated(bytes: &[u8]) -> Result<NonNull<c_void>, Error> {
    // At least one byte: `malloc(0)` may return null.
    // SAFETY: malloc takes any size.
    let copy = NonNull::new(unsafe { libc::malloc(bytes.len().max(1)) });
    let copy = copy.ok_or(Error::OutOfMemory { bytes: bytes.len() })?;
    // SAFETY: the copy is at least as long as the bytes, and new, so it does not overlap them.
    unsafe { copy.cast::<u8>().copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
    Ok(copy)
}

/// A copy from malloc, which the caller frees, and its length; 0 on failure.
pub(crate) fn allocated_with_length(
    length: Option<&mut MaybeUninit<usize>>,
    work: impl FnOnce() -> Result<Vec<u8>, Error>,
) -> Result<*mut c_void, Error> {
    let length = not_null(length, "length")?.write(0);
    let bytes = work()?;
    let copy = allocated(&bytes)?;
    *length = bytes.len();
    Ok(copy.as_ptr())
}

/// Writes to the caller's buffer what `work` returns, if it fits. The length is set whether it fits or not; 0 if `work`
/// fails.
///
/// # Safety
///
/// `buffer` is null, or `capacity` bytes from it on can be written.
pub(crate) unsafe fn fill(
    buffer: *mut c_void,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
    work: impl FnOnce() -> Result<Vec<u8>, Error>,
) -> Result<(), Error> {
    let length = not_null(length, "length")?.write(0);
    if buffer.is_null() && capacity != 0 {
        return Err(Error::Null("buffer"));
    }
    let bytes = work()?;
    *length = bytes.len();
    if bytes.len() > capacity {
        return Err(Error::BufferTooSmall { needed: bytes.len(), capacity });
    }
    // SAFETY: the buffer has room for the bytes, and does not overlap them, as they are new. It is not null: a filter
    // has at least one byte, and a null buffer has no capacity.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), bytes.len()) };
    Ok(())
}
