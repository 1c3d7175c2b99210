//! The function `open`.
#![forbid(unsafe_code)]

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use bloomline::StandaloneKind;
use pyo3::prelude::*;
use pyo3::{PyClass, PyClassInitializer};

use crate::arguments::{mmap, verify};
use crate::bank::FilterBank;
use crate::borrowed::open_regular;
use crate::errors::os_error;
use crate::file_index::FileIndex;
use crate::filters::{BloomFilter, CountingBloomFilter, ScalableBloomFilter, StandardBloomFilter};
use crate::input::{Input, input};

/// Opens a file of any class, by its path or as an open binary file, such as fsspec's. A BloomFilter's file becomes a
/// BloomView, or with mmap=False a BloomFilter. See `BloomFilter.open` and `FileIndex.open`, which may leave the file
/// where it is. Files of all other classes are read and verified. Only a BloomView and a FileIndex can be used in `with`.
#[pyfunction]
#[pyo3(signature = (path, mmap=true, *, verify=true))]
pub fn open(
    py: Python<'_>,
    #[pyo3(from_py_with = input)] path: Input,
    #[pyo3(from_py_with = mmap)] mmap: bool,
    #[pyo3(from_py_with = verify)] verify: bool,
) -> PyResult<Py<PyAny>> {
    let kind = match &path {
        Input::Path(path) => py.detach(|| kind_of(path)).map_err(|error| os_error(error, path))?,
        Input::File(file) => StandaloneKind::of(file.tail()),
    };
    match kind {
        Some(StandaloneKind::Counting) => object(py, CountingBloomFilter::open(py, path, mmap, verify)),
        Some(StandaloneKind::Scalable) => object(py, ScalableBloomFilter::open(py, path, mmap, verify)),
        Some(StandaloneKind::Standard) => object(py, StandardBloomFilter::open(py, path, mmap, verify)),
        Some(StandaloneKind::Bank) => object(py, FilterBank::open(py, path, mmap, verify)),
        Some(StandaloneKind::Index) => object(py, FileIndex::open(py, path, mmap, verify)),
        _ => BloomFilter::open(py, path, mmap, verify),
    }
}

fn object<T: PyClass + Into<PyClassInitializer<T>>>(
    py: Python<'_>,
    opened: PyResult<T>,
) -> PyResult<Py<PyAny>> {
    Ok(Py::new(py, opened?)?.into_any())
}

fn kind_of(path: &Path) -> io::Result<Option<StandaloneKind>> {
    let mut file = open_regular(path)?;
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(8)))?;
    file.read_to_end(&mut end)?;
    Ok(StandaloneKind::of(&end))
}
