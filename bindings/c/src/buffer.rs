//! Memory passed between C and Rust.

use core::alloc::Layout;
use core::ffi::c_void;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr;
use core::slice;
use std::alloc::alloc;

use crate::error::{Error, or_record};

#[inline]
pub(crate) fn not_null<T>(object: Option<T>, what: &'static str) -> Result<T, Error> {
    match object {
        Some(object) => Ok(object),
        // `ok_or` would make an error in every lookup, and call a function to drop it.
        None => Err(Error::Null(what)),
    }
}

/// Borrows `length` bytes of the caller. `start` may be null if `length` is 0.
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
    // SAFETY: this function's contract is the same, and any bits are a valid byte.
    unsafe { borrowed(start.cast(), length, what) }
}

/// Sets `n` elements of the caller to `value`, and borrows them. `start` may be null if `n` is 0.
///
/// # Safety
///
/// `start` is null, or has room for `n` elements, to which nothing else refers for `'a`. Impossible lengths and
/// misaligned pointers are errors.
pub(crate) unsafe fn overwritten<'a, T: Copy>(
    start: *mut T,
    n: usize,
    value: T,
    what: &'static str,
) -> Result<&'a mut [T], Error> {
    // SAFETY: any bits are a valid `MaybeUninit`.
    unsafe { borrowed(start.cast::<MaybeUninit<T>>().cast_const(), n, what) }?;
    if n == 0 {
        return Ok(&mut []);
    }
    // SAFETY: checked above, and there is room by this function's contract.
    (0..n).for_each(|i| unsafe { start.add(i).write(value) });
    // SAFETY: checked above, just initialized, and nothing else refers to them by this function's contract.
    Ok(unsafe { slice::from_raw_parts_mut(start, n) })
}

/// Borrows `n` elements of the caller. `start` may be null if `n` is 0.
///
/// # Safety
///
/// Any bits are a valid `T`. `start` is null, or `n` elements from it on can be read and do not change for `'a`.
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
        // SAFETY: not null, aligned and of a possible size, as checked above. Readable and unchanged by this function's
        // contract.
        Ok(unsafe { slice::from_raw_parts(start, n) })
    }
}

/// Calls `work` with the key of `length` bytes. Returns `otherwise`, and records the error, if that fails.
///
/// # Safety
///
/// `key` is null, or `length` bytes from it on can be read and do not change during the call.
#[inline]
pub(crate) unsafe fn with_key<T>(
    otherwise: T,
    key: *const c_void,
    length: usize,
    work: impl FnOnce(&[u8]) -> Result<T, Error>,
) -> T {
    // SAFETY: this function's contract is the same.
    or_record(otherwise, || work(unsafe { borrowed_bytes(key, length, "key") }?))
}

/// Boxes what `make` returns. Allocates the memory before it calls `make`, so that a failed allocation changes nothing.
/// `Box::new` would abort the process if memory runs out. Never returns `Ok(None)`, which is C's null.
pub(crate) fn boxed<T>(make: impl FnOnce() -> Result<T, Error>) -> Result<Option<Box<T>>, Error> {
    const { assert!(size_of::<T>() != 0) };
    // SAFETY: the size is not 0.
    let memory = unsafe { alloc(Layout::new::<T>()) }.cast::<MaybeUninit<T>>();
    if memory.is_null() {
        return Err(Error::OutOfMemory { bytes: size_of::<T>() });
    }
    // SAFETY: it comes from the global allocator, with the layout of a `T`.
    let memory = unsafe { Box::from_raw(memory) };
    Ok(Some(Box::write(memory, make()?)))
}

/// Copies what `work` returns into memory that the caller frees with [`bloomline_free`]. Sets `length` to its length,
/// or to 0 on failure.
pub(crate) fn allocated_with_length(
    length: Option<&mut MaybeUninit<usize>>,
    work: impl FnOnce() -> Result<Vec<u8>, Error>,
) -> Result<*mut c_void, Error> {
    let length = not_null(length, "length")?.write(0);
    let bytes = work()?;
    let memory = Allocated::new(bytes.len())?;
    *length = bytes.len();
    Ok(memory.with_copy_of(&bytes))
}

/// Memory for the caller, who frees it with [`bloomline_free`].
pub(crate) struct Allocated {
    start: *mut c_void,
    capacity: usize,
}

impl Allocated {
    pub(crate) fn new(bytes: usize) -> Result<Self, Error> {
        // `malloc(0)` may return null.
        let capacity = bytes.max(1);
        // SAFETY: malloc accepts any size.
        let start = unsafe { libc::malloc(capacity) };
        if start.is_null() { Err(Error::OutOfMemory { bytes }) } else { Ok(Self { start, capacity }) }
    }

    /// Shrinks the memory to the bytes.
    pub(crate) fn with_copy_of(self, bytes: &[u8]) -> *mut c_void {
        assert!(bytes.len() <= self.capacity);
        let start = ManuallyDrop::new(self).start;
        // SAFETY: the memory has room for the bytes, and is new, so it does not overlap them.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), start.cast(), bytes.len()) };
        // SAFETY: from malloc, and no longer used if realloc returns other memory.
        let shorter = unsafe { libc::realloc(start, bytes.len().max(1)) };
        if shorter.is_null() { start } else { shorter }
    }
}

impl Drop for Allocated {
    fn drop(&mut self) {
        // SAFETY: from malloc, and not given to the caller.
        unsafe { libc::free(self.start) };
    }
}

/// Writes what `work` returns to the caller's buffer, if it fits. Sets `length` even if it does not fit, and to 0 if
/// `work` fails.
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
    // SAFETY: the buffer has room for the bytes, and does not overlap them, because they are new. It is not null,
    // because a filter has at least one byte and a null buffer has no capacity.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), bytes.len()) };
    Ok(())
}

/// Frees memory that a function of this library returned for you to free, such as the bytes of a filter. To free an
/// object, such as a filter, call its own `_free` function instead. Does nothing if `memory` is null.
///
/// The memory is from malloc, so `free` does the same, unless your program and this library use different mallocs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_free(memory: *mut c_void) {
    // SAFETY: the caller passes null, or memory from `Allocated` that has not been freed.
    unsafe { libc::free(memory) };
}
