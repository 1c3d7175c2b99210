//! Reads and writes standalone bytes, in memory and in files, for all classes.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;

use bloomline::Error;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::borrowed::bytes_of;
use crate::errors::{decode_error, os_error, out_of_memory};
use crate::input::Input;

/// Reads a whole file and decodes it with the class's `from_standalone`. `mmap` and `verify` are the arguments of `open`.
pub fn read<T: Send>(
    py: Python<'_>,
    input: &Input,
    mmap: bool,
    verify: bool,
    from_standalone: fn(&[u8]) -> Result<T, Error>,
) -> PyResult<T> {
    if !mmap && !verify {
        return Err(PyValueError::new_err("verify=False needs mmap=True: a copy is always verified"));
    }
    let bytes = input.read(py)?;
    py.detach(|| from_standalone(&bytes)).map_err(|error| decode_error(error, &bytes, input.name()))
}

/// Decodes a buffer with the class's `from_standalone`.
pub fn decode<T: Send>(
    buffer: &Bound<'_, PyAny>,
    from_standalone: fn(&[u8]) -> Result<T, Error>,
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

/// The remedy if there is no memory for the bytes.
const NO_COPY: &str = "`save` needs no copy";

/// Returns what `write` writes, which is at most `len` bytes.
pub fn encode(len: usize, write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> PyResult<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| out_of_memory(len, NO_COPY))?;
    write(&mut bytes)?;
    Ok(bytes)
}

/// Copies the bytes, because Python's `bytes` allocates its own memory.
pub fn python_bytes<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, bytes.len(), |copy| {
        copy.copy_from_slice(bytes);
        Ok(())
    })
    // Replaces Python's `MemoryError`, which has no text.
    .map_err(|_| out_of_memory(bytes.len(), NO_COPY))
}
