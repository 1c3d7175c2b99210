//! Bytes of buffers and mapped files, and the filter in them.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::slice;

use bloomline::OwnedView;
use memmap2::Mmap;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors::{decode_error, os_error};
use crate::lock::{Lock, Read};

/// Bytes that stay in place.
pub enum Owner {
    Array {
        bytes: &'static [u8],
        /// Keeps them, and is dropped with them.
        _array: Py<PyUntypedArray>,
    },
    File(Mmap),
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Array { bytes, .. } => bytes,
            Self::File(map) => map,
        }
    }
}

/// Read-only lookups in a buffer of standalone bytes, such as shared memory, or in a mapped file, without a copy.
///
/// verify: with True, reads all bytes, and raises DecodeError if they are damaged. With False, checks only the last 64
/// bytes: damaged bits then lose keys without an error; `verify` finds them.
///
/// The end of a `with` statement, or `close`, releases the buffer or the file.
#[pyclass(frozen, weakref, module = "bloomline")]
pub struct BloomView {
    /// `None` once it is closed. The lock is held by lookups as by those of a filter: per batch, and never while the
    /// thread waits for the interpreter.
    view: Lock<Option<OwnedView<Owner>>>,
    /// That of the filter, which never changes.
    pub seed: u64,
    pub path: Option<PathBuf>,
}

/// The filter, which is not closed as long as this lives.
pub type Opened<'a> = Read<'a, Option<OwnedView<Owner>>>;

/// The bytes of a buffer, which stay in place as long as this lives.
///
/// By numpy, because the buffer protocol is a part of Python's stable interface only since 3.11.
pub struct Bytes<'py>(Bound<'py, PyUntypedArray>);

pub fn bytes_of<'py>(buffer: &Bound<'py, PyAny>) -> PyResult<Bytes<'py>> {
    let py = buffer.py();
    if buffer.is_instance_of::<PyString>() || buffer.hasattr("__fspath__")? {
        let text = "a buffer of bytes is needed, not a path: `open` takes a path";
        return Err(PyTypeError::new_err(text));
    }
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

impl BloomView {
    fn open(owner: Owner, verify: bool, path: Option<&Path>) -> PyResult<Self> {
        // Before `owner` moves into the view.
        let bytes = owner.as_ref();
        let checked = if verify {
            bloomline::BloomView::from_standalone(bytes)
        } else {
            bloomline::BloomView::from_standalone_unverified(bytes)
        };
        checked.map_err(|error| decode_error(error, bytes, path))?;
        let view =
            OwnedView::from_standalone_unverified(owner).map_err(|error| decode_error(error, &[], path))?;
        Ok(Self { seed: view.as_view().seed(), view: Lock::new(Some(view)), path: path.map(Path::to_owned) })
    }

    /// The filter in a buffer.
    pub fn over(buffer: &Bound<'_, PyAny>, verify: bool) -> PyResult<Self> {
        let array = bytes_of(buffer)?;
        let bytes = array.as_slice();
        // SAFETY: the array keeps the bytes in place, and is dropped with the only copy of this slice.
        let bytes = unsafe { slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
        let owner = Owner::Array { bytes, _array: array.0.unbind() };
        buffer.py().detach(|| Self::open(owner, verify, None))
    }

    /// The filter in a file, mapped.
    pub fn map(py: Python<'_>, path: &Path, verify: bool) -> PyResult<Self> {
        py.detach(|| {
            // SAFETY: nobody may shorten the file while it is mapped, which would end the process with SIGBUS; `save` does
            // not, and the documentation of `open` says so.
            let map = open_regular(path).and_then(|file| unsafe { Mmap::map(&file) });
            Self::open(Owner::File(map.map_err(|error| os_error(error, path))?), verify, Some(path))
        })
    }

    /// For what takes longer than a lookup: detached.
    pub fn opened(&self) -> Opened<'_> {
        self.view.read()
    }

    /// For what takes no longer than a lookup.
    pub fn quickly<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&bloomline::BloomView) -> T + Send,
    ) -> PyResult<T> {
        self.view.quickly(py, |opened| view_of(opened).map(|view| read(&view)))
    }

    /// Fails if the view is closed.
    pub fn check_open(&self, py: Python<'_>) -> PyResult<()> {
        self.quickly(py, |_| ())
    }

    /// Waits for lookups, which hold the lock for a batch at most.
    pub fn let_go(&self, py: Python<'_>) {
        let view = self.view.detached_mut(py, Option::take);
        // Attached, so that Python's buffer is released here, not later.
        drop(view);
    }
}

/// Fails if the view is closed.
pub fn view_of(opened: &Option<OwnedView<Owner>>) -> PyResult<bloomline::BloomView<'_>> {
    match opened {
        Some(view) => Ok(view.as_view()),
        None => Err(PyValueError::new_err("the view is closed: open it again")),
    }
}
