//! Standalone filters in files.

use core::ffi::{CStr, c_char};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use bloomline_core::BloomView;
use memmap2::Mmap;

use crate::buffer::{boxed, not_null};
use crate::error::{Error, Status, or_record, status_of};
use crate::filter::Filter;
use crate::replace;
use crate::view::View;

/// Writes the filter's standalone form to a file, as `bloomline_filter_write_standalone` writes it to a buffer.
///
/// The file is complete, and on disk, when this returns BLOOMLINE_OK: it is written under another name in the same
/// directory, synced and renamed. Until then the old file, if there is one, stays as it is; programs that have it open
/// or mapped keep it. If the process is killed, a file with a name in .tmp may stay beside it.
///
/// Returns BLOOMLINE_INVALID_ARGUMENT if a pointer is null, BLOOMLINE_IO if the file cannot be written;
/// `bloomline_last_error` is then the system's message and the path.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_filter_write_file(filter: Option<&Filter>, path: *const c_char) -> Status {
    status_of(|| {
        let Filter(filter) = not_null(filter, "filter")?;
        // SAFETY: this function's contract is the same.
        on_file(unsafe { path_of(path) }?, |path| {
            replace::save(path, |file| filter.write_standalone_to(file))
        })
    })
}

/// Reads a filter from a file in standalone form, and verifies its checksums. You can change it and must free it.
///
/// Returns null if `path` is null (BLOOMLINE_INVALID_ARGUMENT), if the file cannot be read (BLOOMLINE_IO), if it is not
/// a filter or is damaged (BLOOMLINE_DECODE), or if memory cannot be allocated (BLOOMLINE_OUT_OF_MEMORY).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_filter_from_file(path: *const c_char) -> Option<Box<Filter>> {
    or_record(None, || {
        // SAFETY: this function's contract is the same.
        let bytes = on_file(unsafe { path_of(path) }?, |path| fs::read(path))?;
        let view = BloomView::from_standalone(&bytes)?;
        view.verify()?;
        boxed(|| Ok(Filter(view.try_to_filter()?)))
    })
}

/// Maps a file in standalone form into memory: lookups read what they need of it, and programs that map the same file
/// share the memory. Checks the footer but not the blocks: `bloomline_view_verify` does.
///
/// The file must not be changed or cut short while the view exists: lookups would return wrong answers, or the process
/// would get SIGBUS. It may be deleted, or replaced as `bloomline_filter_write_file` does; the view then keeps the old
/// one.
///
/// Returns null if `path` is null (BLOOMLINE_INVALID_ARGUMENT), if the file cannot be mapped (BLOOMLINE_IO), if it is
/// not a filter (BLOOMLINE_DECODE), or if a little memory cannot be allocated (BLOOMLINE_OUT_OF_MEMORY).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_view_from_file(path: *const c_char) -> Option<Box<View>> {
    or_record(None, || {
        // SAFETY: this function's contract is the same.
        let path = unsafe { path_of(path) }?;
        // SAFETY: the caller keeps the file as it is for as long as the view.
        let map = on_file(path, |path| File::open(path).and_then(|file| unsafe { Mmap::map(&file) }))?;
        boxed(|| View::mapped(map))
    })
}

/// # Safety
///
/// `path` is null, or points to bytes that end with NUL and do not change for `'a`.
unsafe fn path_of<'a>(path: *const c_char) -> Result<&'a Path, Error> {
    if path.is_null() {
        return Err(Error::Null("path"));
    }
    // SAFETY: not null; the rest is this function's contract.
    let path = unsafe { CStr::from_ptr(path) };
    #[cfg(unix)]
    let path: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(path.to_bytes());
    #[cfg(not(unix))]
    let path: &OsStr = path
        .to_str()
        .map_err(|_| Error::Io {
            path: path.to_string_lossy().into_owned().into(),
            error: io::ErrorKind::InvalidInput.into(),
        })?
        .as_ref();
    Ok(Path::new(path))
}

fn on_file<T>(path: &Path, work: impl FnOnce(&Path) -> io::Result<T>) -> Result<T, Error> {
    work(path).map_err(|error| Error::Io { path: path.to_owned(), error })
}
