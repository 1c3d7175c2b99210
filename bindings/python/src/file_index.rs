//! The class `FileIndex`.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use bloomline::Owned;
use bloomline::bank::{IndexView, SlotBitmap};
use pyo3::prelude::*;

use crate::borrowed::Owner;
use crate::errors::{decode_error, not_pickled};
use crate::keys;

/// An index over files, which the command line or Rust wrote. It finds which of the files possibly have a key.
///
/// `bloomline.open` maps it, or with mmap=False reads it into memory. With verify=True, it reads the whole file, and
/// raises DecodeError if it is damaged. With verify=False, for few lookups in a large index, each lookup compares the
/// bytes that it reads with their checksums. So damage raises an error, and hides no key.
#[pyclass(frozen, weakref, module = "bloomline")]
pub struct FileIndex {
    index: Owned<IndexView<'static>, Owner>,
    path: PathBuf,
}

impl FileIndex {
    pub fn open(py: Python<'_>, path: PathBuf, mmap: bool, verify: bool) -> PyResult<Self> {
        let from = if verify { Owned::from_standalone } else { Owned::from_standalone_unverified };
        py.detach(|| {
            let index = from(Owner::open(&path, mmap)?);
            let index = index.map_err(|error| decode_error(error, &[], Some(&path)))?;
            Ok(Self { index, path })
        })
    }
}

#[pymethods]
impl FileIndex {
    /// Returns the names of the files that possibly have a key (str, bytes or int) or could not be read, sorted by their
    /// bytes and decoded by os.fsdecode. All other files definitely do not have it. Raises DecodeError if the index was
    /// opened with verify=False, and the bytes that it reads are damaged.
    ///
    /// The key is looked up as it is, whatever `rule` says. In an index of words, look up each run of a text, as section
    /// 14 of docs/format.md defines it, and keep the files that have all of them.
    fn find<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let py = key.py();
        let mut found = SlotBitmap::new();
        let (checked, _) =
            keys::with_bytes(key, |key| py.detach(|| self.index.as_view().find(key, &mut found)))?;
        checked.map_err(|error| decode_error(error, &[], Some(&self.path)))?;
        let decode = py.import("os")?.getattr("fsdecode")?;
        let names = found.iter().filter_map(|file| self.index.as_view().footer().name(file));
        names.map(|name| decode.call1((name,))).collect()
    }

    /// How the keys of the files were taken, such as "words", or "" if that is unknown.
    #[getter]
    fn rule(&self) -> &str {
        self.index.as_view().footer().rule()
    }

    /// The false-positive rate that was requested for each file.
    #[getter]
    fn fpr(&self) -> f64 {
        self.index.as_view().footer().fpr()
    }

    /// Number of files.
    fn __len__(&self) -> usize {
        self.index.as_view().footer().files()
    }

    fn __reduce__(&self) -> PyResult<()> {
        not_pickled("FileIndex", "open its file again there")
    }

    fn __repr__(&self) -> String {
        format!("FileIndex(files={}, fpr={}, rule={:?})", self.__len__(), self.fpr(), self.rule())
    }
}
