//! The bytes of buffers and mapped files, and views of the filters in them.

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
        /// Keeps the bytes alive.
        _array: Py<PyUntypedArray>,
    },
    File(Mmap),
    Copy(Vec<u8>),
}

impl Owner {
    /// The bytes of a file, mapped or read.
    pub fn open(path: &Path, mmap: bool) -> PyResult<Self> {
        // SAFETY: nobody may truncate the file while it is mapped, because that would end the process with SIGBUS. The
        // documentation of `open` says so, and `save` replaces files instead.
        let map = |file| unsafe { Mmap::map(&file) };
        let opened = if mmap {
            open_regular(path).and_then(map).map(Self::File)
        } else {
            fs::read(path).map(Self::Copy)
        };
        opened.map_err(|error| os_error(error, path))
    }
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Array { bytes, .. } => bytes,
            Self::File(map) => map,
            Self::Copy(bytes) => bytes,
        }
    }
}

/// Read-only lookups in a buffer of standalone bytes, such as shared memory, or in a mapped file, without a copy.
///
/// verify: with True, reads all bytes, and raises DecodeError if they are damaged. With False, checks only the last 64
/// bytes. Damaged bits then lose keys without an error, until you call `verify`.
///
/// `close`, or the end of a `with` statement, releases the buffer or the file.
#[pyclass(frozen, weakref, module = "bloomline")]
pub struct BloomView {
    /// `None` once it is closed. As in a filter, lookups hold the lock for one batch at a time, and never while they
    /// wait for the interpreter.
    view: Lock<Option<OwnedView<Owner>>>,
    /// The filter's seed, which never changes.
    pub seed: u64,
    pub path: Option<PathBuf>,
}

/// Keeps the view from being closed.
pub type Opened<'a> = Read<'a, Option<OwnedView<Owner>>>;

/// The bytes of a buffer, kept in place.
///
/// Uses numpy, because the buffer protocol is part of Python's stable ABI only since 3.11.
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
        // SAFETY: `frombuffer` makes a contiguous array of bytes over a buffer, which it keeps from moving and
        // shrinking if the buffer's owner allows that. numpy's arrays do, except in `resize(refcheck=False)`. A thread
        // that writes to the buffer meanwhile changes answers, but no length.
        unsafe { slice::from_raw_parts((*self.0.as_array_ptr()).fields.data.cast::<u8>(), self.0.len()) }
    }
}

/// Opens a regular file. Fails for directories and pipes, because opening a pipe would wait for a writer.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        // Fails with the system's error for directories.
        fs::read(path)?;
    }
    if !metadata.is_file() {
        let text = "not a regular file, which cannot be mapped: call `open` of its class with mmap=False";
        return Err(io::Error::new(ErrorKind::InvalidInput, text));
    }
    File::open(path)
}

impl BloomView {
    fn open(owner: Owner, verify: bool, path: Option<&Path>) -> PyResult<Self> {
        // Checked before `owner` moves into the view, because errors describe the bytes.
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
        // SAFETY: the array keeps the bytes in place, and `owner` holds the array as long as this slice.
        let bytes = unsafe { slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
        let owner = Owner::Array { bytes, _array: array.0.unbind() };
        buffer.py().detach(|| Self::open(owner, verify, None))
    }

    /// The filter in a file.
    pub fn of_file(py: Python<'_>, bytes: Owner, verify: bool, name: Option<&Path>) -> PyResult<Self> {
        py.detach(|| Self::open(bytes, verify, name))
    }

    /// For reads longer than a lookup. Call it detached.
    pub fn opened(&self) -> Opened<'_> {
        self.view.read()
    }

    /// What is opened, once its bytes agree with their checksums.
    pub fn verified<'a>(&self, opened: &'a Opened<'_>) -> PyResult<bloomline::BloomView<'a>> {
        let view = view_of(opened)?;
        view.verify().map_err(|error| decode_error(error, &[], self.path.as_deref()))?;
        Ok(view)
    }

    /// For reads as short as a lookup.
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

    /// Closes the view. Waits for lookups, which hold the lock for one batch at most.
    pub fn let_go(&self, py: Python<'_>) {
        let view = self.view.detached_mut(py, Option::take);
        // Dropped while attached, so that Python's buffer is released now and not later.
        drop(view);
    }
}

/// Fails if the view is closed.
pub fn view_of(opened: &Option<OwnedView<Owner>>) -> PyResult<bloomline::BloomView<'_>> {
    match opened {
        Some(view) => Ok(*view.as_view()),
        None => Err(PyValueError::new_err("the view is closed: open it again")),
    }
}
