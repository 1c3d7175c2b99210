//! Standalone bytes of all classes: read from buffers and files, written to bytes and files.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use bloomline::{DecodeError, StandaloneKind};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bank::FilterBank;
use crate::borrowed::bytes_of;
use crate::errors::{decode_error, os_error, out_of_memory};
use crate::filters::{BloomFilter, CountingBloomFilter, ScalableBloomFilter, StandardBloomFilter};

/// The filter or bank in a file, whatever its class: a BloomView that maps the file, or with mmap=False a BloomFilter; a
/// CountingBloomFilter, ScalableBloomFilter, StandardBloomFilter or FilterBank, which are always read and verified. See
/// `BloomFilter.open` for mmap and verify.
#[pyfunction]
#[pyo3(signature = (path, mmap=true, *, verify=true))]
pub fn open(py: Python<'_>, path: PathBuf, mmap: bool, verify: bool) -> PyResult<Py<PyAny>> {
    let kind = py.detach(|| kind_of(&path)).map_err(|error| os_error(error, &path))?;
    match kind {
        Some(StandaloneKind::Counting) => Ok(Py::new(py, CountingBloomFilter::open(py, path)?)?.into_any()),
        Some(StandaloneKind::Scalable) => Ok(Py::new(py, ScalableBloomFilter::open(py, path)?)?.into_any()),
        Some(StandaloneKind::Standard) => Ok(Py::new(py, StandardBloomFilter::open(py, path)?)?.into_any()),
        Some(StandaloneKind::Bank) => Ok(Py::new(py, FilterBank::open(py, path)?)?.into_any()),
        _ => BloomFilter::open(py, path, mmap, verify),
    }
}

fn kind_of(path: &Path) -> io::Result<Option<StandaloneKind>> {
    let mut file = open_regular(path)?;
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(8)))?;
    file.read_to_end(&mut end)?;
    Ok(StandaloneKind::of(&end))
}

/// Fails for directories and, without waiting for a writer, for pipes.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        // For the error that the system has for directories.
        fs::read(path)?;
    }
    if !metadata.is_file() {
        let text =
            "not a regular file, which cannot be mapped: read it with BloomFilter.open(path, mmap=False)";
        return Err(io::Error::new(ErrorKind::InvalidInput, text));
    }
    File::open(path)
}

/// What a file has, by the class's `from_standalone`.
pub fn read<T: Send>(
    py: Python<'_>,
    path: &Path,
    from_standalone: fn(&[u8]) -> Result<T, DecodeError>,
) -> PyResult<T> {
    py.detach(|| {
        let bytes = fs::read(path).map_err(|error| os_error(error, path))?;
        from_standalone(&bytes).map_err(|error| decode_error(error, &bytes, Some(path)))
    })
}

/// What a buffer has, by the class's `from_standalone`.
pub fn decode<T: Send>(
    buffer: &Bound<'_, PyAny>,
    from_standalone: fn(&[u8]) -> Result<T, DecodeError>,
) -> PyResult<T> {
    let bytes = bytes_of(buffer)?;
    let bytes = bytes.as_slice();
    buffer.py().detach(|| from_standalone(bytes)).map_err(|error| decode_error(error, bytes, None))
}

pub fn save(
    py: Python<'_>,
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()> + Send,
) -> PyResult<()> {
    py.detach(|| bloomline_replace::save(path, write)).map_err(|error| os_error(error, path))
}

/// What to do where there is no memory for bytes.
const NO_COPY: &str = "`save` needs no copy";

/// What `write` writes: at most `len` bytes.
pub fn encode(len: usize, write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> PyResult<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| out_of_memory(len, NO_COPY))?;
    write(&mut bytes)?;
    Ok(bytes)
}

/// A copy: Python has no bytes that are allocated elsewhere.
pub fn python_bytes<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, bytes.len(), |copy| {
        copy.copy_from_slice(bytes);
        Ok(())
    })
    // Python's has no text.
    .map_err(|_| out_of_memory(bytes.len(), NO_COPY))
}
