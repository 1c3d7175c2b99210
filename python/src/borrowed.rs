//! Bytes of buffers and mapped files, and the filter in them.

use std::fs::File;
use std::path::Path;
use std::slice;

use memmap2::Mmap;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors::{decode_error, os_error};

/// What keeps the bytes in place.
#[expect(dead_code, reason = "dropped last")]
enum Owner {
    Array(Py<PyUntypedArray>),
    File(Mmap),
}

/// A filter in the bytes of a buffer or a mapped file, for lookups without a copy of it.
#[pyclass(frozen, module = "bloomline")]
pub struct BloomView {
    view: bloomline::BloomView<'static>,
    _owner: Owner,
}

/// The bytes of a buffer, which stay in place as long as this lives.
///
/// By numpy, because the buffer protocol is a part of Python's stable interface only since 3.11.
pub struct Bytes<'py>(Bound<'py, PyUntypedArray>);

pub fn bytes_of<'py>(buffer: &Bound<'py, PyAny>) -> PyResult<Bytes<'py>> {
    let py = buffer.py();
    Ok(Bytes(py.import("numpy")?.call_method1("frombuffer", (buffer, "u1"))?.cast_into()?))
}

impl Bytes<'_> {
    pub fn as_slice(&self) -> &[u8] {
        if self.0.is_empty() {
            return &[];
        }
        // SAFETY: `frombuffer` makes a contiguous array of bytes over a buffer that it keeps from moving and shrinking, if the
        // buffer's object lets itself be kept: numpy's own arrays do, but for `resize(refcheck=False)`. Whoever writes into
        // the buffer meanwhile changes answers, but no length.
        unsafe { slice::from_raw_parts((*self.0.as_array_ptr()).fields.data.cast::<u8>(), self.0.len()) }
    }
}

fn open(bytes: &[u8], verify: bool) -> PyResult<bloomline::BloomView<'_>> {
    let view = if verify {
        bloomline::BloomView::from_standalone(bytes)
    } else {
        bloomline::BloomView::from_standalone_unverified(bytes)
    };
    view.map_err(decode_error)
}

impl BloomView {
    /// The filter, for no longer than its bytes are kept in place.
    pub fn view(&self) -> &bloomline::BloomView<'_> {
        &self.view
    }

    /// The filter in a buffer.
    pub fn over(buffer: &Bound<'_, PyAny>, verify: bool) -> PyResult<Self> {
        let py = buffer.py();
        let buffer = bytes_of(buffer)?;
        let bytes = buffer.as_slice();
        // SAFETY: the buffer's array keeps the bytes in place, and is dropped with or after the view.
        let bytes = unsafe { slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
        Ok(Self { view: py.detach(|| open(bytes, verify))?, _owner: Owner::Array(buffer.0.unbind()) })
    }

    /// The filter in a file, mapped.
    pub fn map(py: Python<'_>, path: &Path, verify: bool) -> PyResult<Self> {
        py.detach(|| {
            // SAFETY: nobody may shorten the file while it is mapped, which would end the process with SIGBUS; `save` does
            // not, and the documentation of `open` says so.
            let map = File::open(path).and_then(|file| unsafe { Mmap::map(&file) });
            let map = map.map_err(|error| os_error(error, path))?;
            // SAFETY: the bytes of a mapping stay in place until it is dropped, with or after the view.
            let bytes = unsafe { slice::from_raw_parts(map.as_ptr(), map.len()) };
            Ok(Self { view: open(bytes, verify)?, _owner: Owner::File(map) })
        })
    }
}
