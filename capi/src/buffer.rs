//! Memory that passes between C and Rust.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use core::slice;

use crate::error::Error;

/// What a caller may leave out, but did not.
#[inline]
pub(crate) fn given<T>(object: Option<T>, what: &'static str) -> Result<T, Error> {
    object.ok_or(Error::Null(what))
}

/// `length` bytes that C lends. Null is no bytes.
///
/// # Safety
///
/// `start` is null, or `length` bytes from it on can be read and do not change for `'a`. A length that no object has
/// is refused.
#[inline]
pub(crate) unsafe fn lent_bytes<'a>(
    start: *const c_void,
    length: usize,
    what: &'static str,
) -> Result<&'a [u8], Error> {
    // SAFETY: as for this function; bytes are aligned everywhere.
    unsafe { lent(start.cast(), length, what) }
}

/// `n` elements that C lends, of a type for which any bits are a value. Null is none.
///
/// # Safety
///
/// `T` has no invalid values. `start` is null, or `n` elements from it on can be read and do not change for `'a`. More
/// than any object holds are refused, and so are misaligned ones.
#[inline]
pub(crate) unsafe fn lent<'a, T>(start: *const T, n: usize, what: &'static str) -> Result<&'a [T], Error> {
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

/// A copy for C, which frees it.
pub(crate) fn allocated(bytes: &[u8]) -> Result<NonNull<c_void>, Error> {
    // One byte at least: C may give null for none.
    // SAFETY: any size may be asked for.
    let copy = NonNull::new(unsafe { libc::malloc(bytes.len().max(1)) });
    let copy = copy.ok_or(Error::OutOfMemory { bytes: bytes.len() })?;
    // SAFETY: the copy is as long, new, and so apart from the bytes.
    unsafe { copy.cast::<u8>().copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
    Ok(copy)
}

/// For a caller who frees the result. The length is 0 where there is none.
pub(crate) fn allocated_with_length(
    length: Option<&mut MaybeUninit<usize>>,
    work: impl FnOnce() -> Result<Vec<u8>, Error>,
) -> Result<*mut c_void, Error> {
    let length = given(length, "length")?.write(0);
    let bytes = work()?;
    let copy = allocated(&bytes)?;
    *length = bytes.len();
    Ok(copy.as_ptr())
}

/// To the caller's buffer, if all has room, and how many bytes that are, in any case.
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
    let length = given(length, "length")?.write(0);
    if buffer.is_null() && capacity != 0 {
        return Err(Error::Null("buffer"));
    }
    let bytes = work()?;
    *length = bytes.len();
    if bytes.len() > capacity {
        return Err(Error::BufferTooSmall { needed: bytes.len(), capacity });
    }
    // SAFETY: the buffer has room for them, and the bytes are new, so the buffer is apart from them. It is not null, as
    // a filter has bytes and null has no capacity.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), bytes.len()) };
    Ok(())
}
