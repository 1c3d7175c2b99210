//! Standalone filters in files.

use core::ffi::{CStr, c_char};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use bloomline_core::{BloomFilter, BloomView, StandaloneFooter};
use memmap2::Mmap;

use crate::buffer::{boxed, not_null};
use crate::error::{Error, Status, or_record, status_of};
use crate::filter::{Filter, with_room};
use crate::view::View;

/// Writes the filter's standalone form to a file, as `bloomline_filter_write_standalone` writes it to a buffer.
///
/// When this returns BLOOMLINE_OK, the file is complete and on disk, because it is written under a temporary name in
/// the same directory, synced and renamed. Until then the old file, if there is one, stays as it is. Programs that have
/// the old file open or mapped keep it. If the process is killed, a file whose name ends in .tmp may stay beside it.
///
/// Returns BLOOMLINE_INVALID_ARGUMENT if a pointer is null. Returns BLOOMLINE_IO if the file cannot be written.
/// `bloomline_last_error` is then the system's message and the path.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_filter_write_file(filter: Option<&Filter>, path: *const c_char) -> Status {
    status_of(|| {
        let Filter(filter) = not_null(filter, "filter")?;
        // SAFETY: this function's contract is the same.
        on_file(unsafe { path_of(path) }?, |path| {
            Ok(bloomline_replace::save(path, |file| filter.write_standalone(file))?)
        })
    })
}

/// Reads a filter from a file in standalone form, and verifies its checksums. You can change the filter and must free
/// it. While it reads, this function needs twice the filter's memory.
///
/// Returns null if the file cannot be read (BLOOMLINE_IO), or if it is not a filter or is damaged (BLOOMLINE_DECODE).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_filter_from_file(path: *const c_char) -> Option<Box<Filter>> {
    or_record(None, || {
        // SAFETY: this function's contract is the same.
        on_file(unsafe { path_of(path) }?, |path| {
            let bytes = read(path)?;
            boxed(|| Ok(Filter(BloomFilter::from_standalone(&bytes)?)))
        })
    })
}

/// Fails for what is not a regular file, because opening a pipe could wait forever.
fn open(path: &Path) -> Result<File, Error> {
    if fs::metadata(path)?.is_file() {
        Ok(File::open(path)?)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file").into())
    }
}

/// Reads a file, but only if it ends with a footer, because a file of something else may be large.
fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let mut file = open(path)?;
    let length = file.metadata()?.len();
    if length >= StandaloneFooter::LEN as u64 {
        let mut footer = [0; StandaloneFooter::LEN];
        file.seek(SeekFrom::End(-(StandaloneFooter::LEN as i64)))?;
        file.read_exact(&mut footer)?;
        StandaloneFooter::read(&footer)?;
        file.rewind()?;
    }
    let mut bytes = with_room(usize::try_from(length).unwrap_or(usize::MAX))?;
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Maps a file in standalone form into memory, and compares all of it with its checksums. Programs that map the same
/// file share the memory.
///
/// The file must not be changed or cut short while the view exists. Lookups would return wrong answers, or the process
/// would get SIGBUS. It may be deleted, or replaced as `bloomline_filter_write_file` does, because the view then keeps
/// the old file.
///
/// Returns null if the file cannot be mapped (BLOOMLINE_IO), or if it is not a filter or is damaged (BLOOMLINE_DECODE).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_view_from_file(path: *const c_char) -> Option<Box<View>> {
    // SAFETY: this function's contract is the same.
    unsafe { map(path, BloomView::from_standalone) }
}

/// `bloomline_view_from_file` without reading the filter's bits, for files that are too large to read. Checks only what
/// `bloomline_view_from_standalone_unverified` does. Lookups read what they need of the file.
///
/// If bits are damaged, lookups return false for keys that were inserted, and nothing reports it. Call
/// `bloomline_view_verify` when there is time, or rely on a checksum of your own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bloomline_view_from_file_unverified(path: *const c_char) -> Option<Box<View>> {
    // SAFETY: this function's contract is the same.
    unsafe { map(path, BloomView::from_standalone_unverified) }
}

/// # Safety
///
/// `path` is null, or points to bytes that end with NUL. The file does not change while the view exists.
unsafe fn map(
    path: *const c_char,
    open_bytes: impl FnOnce(&'static [u8]) -> Result<BloomView<'static>, bloomline_core::Error>,
) -> Option<Box<View>> {
    or_record(None, || {
        // SAFETY: this function's contract is the same.
        on_file(unsafe { path_of(path) }?, |path| {
            let file = open(path)?;
            // SAFETY: by this function's contract, the file does not change while the view exists.
            let map = unsafe { Mmap::map(&file) }?;
            boxed(|| View::mapped(map, open_bytes))
        })
    })
}

/// # Safety
///
/// `path` is null, or points to bytes that end with NUL and do not change for `'a`.
unsafe fn path_of<'a>(path: *const c_char) -> Result<&'a Path, Error> {
    if path.is_null() {
        return Err(Error::Null("path"));
    }
    // SAFETY: not null. The bytes end with NUL, and do not change, by this function's contract.
    let path = unsafe { CStr::from_ptr(path) };
    #[cfg(unix)]
    let path: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(path.to_bytes());
    #[cfg(not(unix))]
    let path: &OsStr = path
        .to_str()
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the path is not UTF-8"))?
        .as_ref();
    Ok(Path::new(path))
}

fn on_file<T>(path: &Path, work: impl FnOnce(&Path) -> Result<T, Error>) -> Result<T, Error> {
    work(path).map_err(|error| Error::File { path: path.to_owned(), error: Box::new(error) })
}
