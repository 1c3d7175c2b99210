//! What `open` reads: the file of a path, or a file object, such as fsspec's for an object in `s3://…`.
#![forbid(unsafe_code)]

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use bloomline::Error;
use bloomline::bank::IndexFooter;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use crate::arguments;
use crate::borrowed::{Owner, bytes_of};
use crate::errors::{decode_error, os_error, out_of_memory, shown};

/// Bytes of a file's end that are read at once. Enough to know its class, and for the names of 2,000 files of an index.
const TAIL: u64 = 1 << 16;
/// At most so many bytes are asked for at once, because Python allocates them before it reads.
const AT_ONCE: usize = 1 << 26;

pub enum Input {
    Path(PathBuf),
    File(FileObject),
}

/// A binary file object that can seek, and its end.
pub struct FileObject {
    file: Py<PyAny>,
    /// Between a `seek` and its `read`. Reentrant, so that a signal handler that uses the file does not wait for itself,
    /// but may move it, so that checksums then differ.
    lock: Py<PyAny>,
    name: Option<PathBuf>,
    size: u64,
    /// The bytes from `tail_start` on.
    tail: Vec<u8>,
    tail_start: u64,
}

/// The argument `path` of `open`.
pub fn input(value: &Bound<'_, PyAny>) -> PyResult<Input> {
    // Some file objects are paths too, by `__fspath__`, but of bytes that they decompress.
    if !value.hasattr("seek")? {
        let needed = "a str, os.PathLike or open binary file that can seek";
        return arguments::read("path", needed, value).map(Input::Path);
    }
    FileObject::new(value).map(Input::File)
}

impl Input {
    /// For errors.
    pub fn name(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::File(file) => file.name.as_deref(),
        }
    }

    /// All bytes.
    pub fn read(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        match self {
            Self::Path(path) => py.detach(|| fs::read(path)).map_err(|error| os_error(error, path)),
            Self::File(file) => file.read(py, 0..file.size),
        }
    }

    /// All bytes, mapped or read.
    pub fn owner(&self, py: Python<'_>, mmap: bool) -> PyResult<Owner> {
        match self {
            Self::Path(path) => py.detach(|| Owner::open(path, mmap)),
            Self::File(_) => self.read(py).map(Owner::Copy),
        }
    }
}

impl FileObject {
    fn new(file: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = file.py();
        let refused = |needed, remedy| {
            let text = format!("path: a file {needed} is needed, not {}: {remedy}", shown(file));
            Err(PyTypeError::new_err(text))
        };
        if let Some(seekable) = file.getattr_opt("seekable")?
            && !seekable.call0()?.is_truthy()?
        {
            return refused("that can seek", "pass io.BytesIO(file.read())");
        }
        // Text would only fail at the first character that is not UTF-8.
        if PyMemoryView::from(&file.call_method1("read", (0,))?).is_err() {
            return refused("whose `read` returns bytes", "open it with mode \"rb\"");
        }
        file.call_method1("seek", (0, 2))?;
        let size = file.call_method0("tell")?.extract()?;
        let names = ["name", "path"].map(|name| file.getattr_opt(name).ok()??.extract().ok());
        let mut opened = Self {
            file: file.clone().unbind(),
            lock: py.import("threading")?.call_method0("RLock")?.unbind(),
            name: names.into_iter().flatten().next(),
            size,
            tail: Vec::new(),
            tail_start: size,
        };
        let start = size.saturating_sub(TAIL);
        (opened.tail, opened.tail_start) = (opened.read(py, start..size)?, start);
        Ok(opened)
    }

    /// The last bytes, or all.
    pub fn tail(&self) -> &[u8] {
        &self.tail
    }

    /// The bytes of a range, or up to the end of the file if that is nearer. A file that has fewer bytes than it had
    /// leaves it to the caller to find what is missing.
    pub fn read(&self, py: Python<'_>, range: Range<u64>) -> PyResult<Vec<u8>> {
        // So forged lengths cannot allocate more than the file has.
        let (start, end) = (range.start, range.end.min(self.size));
        let len = end.saturating_sub(start) as usize;
        if start >= self.tail_start {
            let in_tail = self.tail.get((start - self.tail_start) as usize..).unwrap_or_default();
            return Ok(in_tail[..len.min(in_tail.len())].to_vec());
        }
        let lock = self.lock.bind(py);
        lock.call_method0("acquire")?;
        let read = self.read_at(py, start, len);
        lock.call_method0("release")?;
        read
    }

    fn read_at(&self, py: Python<'_>, start: u64, len: usize) -> PyResult<Vec<u8>> {
        let (file, mut bytes) = (self.file.bind(py), Vec::new());
        while bytes.len() < len {
            file.call_method1("seek", (start + bytes.len() as u64,))?;
            let read = file.call_method1("read", ((len - bytes.len()).min(AT_ONCE),))?;
            let held;
            let piece = if let Ok(piece) = read.cast::<PyBytes>() {
                piece.as_bytes()
            } else {
                held = bytes_of(&read)?;
                held.as_slice()
            };
            if piece.is_empty() {
                break;
            }
            let no_memory = |_| out_of_memory(len, "a file object is read into memory");
            bytes.try_reserve(piece.len()).map_err(no_memory)?;
            bytes.extend(piece.iter().take(len - bytes.len()));
        }
        Ok(bytes)
    }

    /// The end of an index, with the names of its files.
    pub fn index_footer(&self, py: Python<'_>) -> PyResult<IndexFooter> {
        let wrong = |error: Error| decode_error(error, &self.tail, self.name.as_deref());
        let len = IndexFooter::read_len(&self.tail).map_err(wrong)?;
        // If it claims more bytes than there are, the error says so.
        let end = self.read(py, self.size.saturating_sub(len)..self.size)?;
        IndexFooter::read(&end).map_err(wrong)
    }
}
