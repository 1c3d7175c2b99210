//! The class `FileIndex`.
#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bloomline::bank::{FileVersion, IndexBuilder, IndexFooter, IndexView, SlotBitmap};
use bloomline::{Owned, StandaloneKind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::arguments::{fpr, mmap, path, verify};
use crate::bank::source;
use crate::borrowed::Owner;
use crate::column::{Hashes, Signals};
use crate::errors::{build_error, copy_error, decode_error, not_pickled};
use crate::filters::with_filters;
use crate::input::{FileObject, Input, input};
use crate::kinds::{INTEGERS, Kinds, TEXT, UNKNOWN};
use crate::{files, keys};

/// An index over files, which finds those that possibly have a key. The command line makes one with `bloomline index`.
///
/// files: a mapping of names to BloomFilters or BloomViews, or pairs of these, made by FilterBuilder.for_index(fpr). None
/// stands for a file that could not be read, which each lookup finds.
/// fpr: an absent key finds this share of the files.
/// rule: how keys were taken, such as "lines", by which the command line looks them up.
///
///     >>> from bloomline import FileIndex, FilterBuilder
///     >>> builder, files = FilterBuilder.for_index(0.001), {}
///     >>> for name, keys in {"monday.log": ["ant", "bee"], "tuesday.log": ["bee"]}.items():
///     ...     builder.update(keys)
///     ...     files[name] = builder.finish()
///     >>> FileIndex(files, 0.001).find("bee")
///     ['monday.log', 'tuesday.log']
///
/// `close`, or the end of a `with` statement, releases the file.
#[pyclass(frozen, weakref, module = "bloomline")]
pub struct FileIndex {
    /// `None` once it is closed. Locked only to copy the `Arc`.
    index: Mutex<Option<Arc<Index>>>,
    kinds: Kinds,
    path: Option<PathBuf>,
}

enum Index {
    Bytes(Owned<IndexView<'static>, Owner>),
    /// Of a file object. A lookup reads its ranges.
    Ranges(IndexFooter, FileObject),
}

impl Index {
    fn footer(&self) -> &IndexFooter {
        match self {
            Self::Bytes(index) => index.as_view().footer(),
            Self::Ranges(footer, _) => footer,
        }
    }

    /// All bytes. Those of a file object are verified, because the file may have changed.
    fn bytes(&self, py: Python<'_>, path: Option<&Path>) -> PyResult<Cow<'_, [u8]>> {
        match self {
            Self::Bytes(index) => Ok(Cow::Borrowed(index.get_ref().as_ref())),
            Self::Ranges(_, file) => {
                let bytes = file.read(py, 0..u64::MAX)?;
                let verified = py.detach(|| IndexView::from_standalone(&bytes).map(drop));
                verified.map_err(|error| decode_error(error, &bytes, path))?;
                Ok(Cow::Owned(bytes))
            }
        }
    }

    /// Finds the files that possibly have the key of a hash.
    fn find(&self, py: Python<'_>, hash: u64, found: &mut SlotBitmap, path: Option<&Path>) -> PyResult<()> {
        let any = match self {
            Self::Bytes(index) => py.detach(|| index.as_view().find_hash(hash, found)),
            Self::Ranges(footer, file) => {
                let ranges = footer.ranges(hash).map(|range| file.read(py, range));
                footer.find_in_ranges(hash, ranges.collect::<PyResult<Vec<_>>>()?, found)
            }
        };
        any.map(drop).map_err(|error| decode_error(error, &[], path))
    }
}

/// The kinds of keys that an index can have, by the rule that the command line recorded.
fn kinds_of(rule: &str) -> u8 {
    let mut parts = options(rule);
    match parts.next() {
        Some("words") => TEXT,
        // A record of eight bytes may be an integer.
        Some("lines") if parts.clone().any(|option| option == "--length") => UNKNOWN,
        Some("lines") if parts.any(|option| option == "--integers") => INTEGERS,
        Some("lines") => TEXT,
        _ => UNKNOWN,
    }
}

/// What a rule says before the name of a column, which could be anything.
fn options(rule: &str) -> impl Iterator<Item = &str> + Clone {
    rule.split(" --column").next().unwrap_or_default().split(' ')
}

/// Why no file can have these bytes as a key.
fn excluded(rule: &str, key: &[u8]) -> Option<&'static str> {
    let has = |option| options(rule).any(|of| of == option);
    let kind = options(rule).next();
    if kind == Some("words") {
        // The keys with spaces that section 14 of the format defines.
        if key == b"an IPv4 address" || key == b"a UUID" {
            return None;
        }
        if !may_be_word(key) {
            return Some("is not one word: look up each of its words, and keep the files that have all");
        }
        if has("--ignore-case") && key.iter().any(u8::is_ascii_uppercase) {
            return Some("has capital letters, which the index made small: look up its lower case");
        }
    } else if kind == Some("lines") && !has("--csv") && !has("--length") {
        let end = if has("--null") { 0 } else { b'\n' };
        if key.contains(&end) {
            return Some("has an end of line, and no key has one: look up one line, without its end");
        }
    }
    None
}

/// Whether the ASCII characters of a text let it be one word, by section 14 of the format.
fn may_be_word(text: &[u8]) -> bool {
    let is_of_runs = |byte: &u8| !byte.is_ascii() || byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
    let is_cut = [text.first(), text.last()].iter().any(|end| matches!(end, None | Some(b'.' | b'-' | b':')));
    let numbers = text.split(|&byte| byte == b':').count();
    let has_letter = text.iter().any(u8::is_ascii_alphabetic);
    let is_joined = text.iter().all(|&byte| byte == b':' || byte.is_ascii_hexdigit())
        && (numbers >= if has_letter { 3 } else { 6 } || text.windows(2).any(|two| two == b"::"));
    !is_cut && (text.iter().all(is_of_runs) || is_joined)
}

impl FileIndex {
    fn new_with(index: Index, kinds: u8, path: Option<PathBuf>) -> Self {
        Self { index: Mutex::new(Some(Arc::new(index))), kinds: Kinds::new(kinds), path }
    }

    fn opened(&self) -> PyResult<Arc<Index>> {
        let index = self.index.lock().unwrap_or_else(PoisonError::into_inner).clone();
        index.ok_or_else(|| PyValueError::new_err("the index is closed: open it again"))
    }
}

/// Names as `os` gives them.
fn decoded<'py>(
    py: Python<'py>,
    footer: &IndexFooter,
    files: impl Iterator<Item = usize>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let decode = py.import("os")?.getattr("fsdecode")?;
    files.filter_map(|file| footer.name(file)).map(|name| decode.call1((name,))).collect()
}

#[pymethods]
impl FileIndex {
    #[new]
    #[pyo3(signature = (files, fpr, *, rule=""))]
    fn new(files: &Bound<'_, PyAny>, #[pyo3(from_py_with = fpr)] fpr: f64, rule: &str) -> PyResult<Self> {
        let py = files.py();
        let builder = IndexBuilder::with_fpr(fpr).and_then(|builder| builder.with_rule(rule));
        let (mut builder, mut kinds) = (builder.map_err(build_error)?, 0);
        let encode = py.import("os")?.getattr("fsencode")?;
        let pairs = match files.getattr_opt("items")? {
            Some(items) => items.call0()?,
            None => files.clone(),
        };
        for pair in pairs.try_iter()? {
            let (name, filter): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
            let (encoded, version) = (encode.call1((&name,))?, FileVersion::default());
            let encoded = encoded.cast::<PyBytes>()?.as_bytes();
            let inserted = if filter.is_none() {
                builder.insert(encoded, version, None)
            } else {
                with_filters(py, &[source(&filter, "an index")?], true, |filters, of_keys| {
                    kinds |= of_keys;
                    let copy = filters[0].to_filter().map_err(copy_error)?;
                    Ok(builder.insert(encoded, version, copy))
                })?
            };
            inserted.map_err(|error| {
                PyValueError::new_err(format!("the filter of {name}: {error} (see FilterBuilder.for_index)"))
            })?;
        }
        let bytes = py.detach(|| builder.to_standalone()).map_err(copy_error)?;
        let index =
            Owned::from_standalone(Owner::Copy(bytes)).map_err(|error| decode_error(error, &[], None))?;
        Ok(Self::new_with(Index::Bytes(index), kinds, None))
    }

    /// Opens the file of an index, by its path or as an open binary file.
    ///
    /// mmap: with True, maps the file of a path. Of a file object, such as fsspec's, it then reads only the end, with the
    /// files' names, and each lookup reads one range of each of the index's one to eight banks. The file object must stay
    /// open, and `close` does not close it. With False, reads the whole file into memory.
    /// verify: with True, reads the whole file, unless lookups read ranges, and raises DecodeError if it is damaged. With
    /// False, for few lookups in a large index, and in ranges, each lookup compares the bytes that it reads with their
    /// checksums. So damage raises an error, and hides no key.
    #[staticmethod]
    #[pyo3(signature = (path, mmap=true, *, verify=true))]
    pub fn open(
        py: Python<'_>,
        #[pyo3(from_py_with = input)] path: Input,
        #[pyo3(from_py_with = mmap)] mmap: bool,
        #[pyo3(from_py_with = verify)] verify: bool,
    ) -> PyResult<Self> {
        let name = path.name().map(Path::to_owned);
        let index = match path {
            Input::File(file) if mmap => Index::Ranges(file.index_footer(py)?, file),
            path => {
                let owner = path.owner(py, mmap)?;
                let wrong = |error, bytes: &[u8]| decode_error(error, bytes, name.as_deref());
                if StandaloneKind::of(owner.as_ref()) != Some(StandaloneKind::Index) {
                    // Before `owner` moves, because the error describes the bytes.
                    IndexFooter::read(owner.as_ref()).map_err(|error| wrong(error, owner.as_ref()))?;
                }
                let from = if verify { Owned::from_standalone } else { Owned::from_standalone_unverified };
                Index::Bytes(py.detach(|| from(owner)).map_err(|error| wrong(error, &[]))?)
            }
        };
        let kinds = kinds_of(index.footer().rule());
        Ok(Self::new_with(index, kinds, name))
    }

    /// Returns the names of the files that possibly have a key (str, bytes or int) or could not be read, sorted by their
    /// bytes and decoded by os.fsdecode. When they were indexed, all other files definitely did not have it. Raises
    /// DecodeError if the bytes that it reads are damaged.
    ///
    /// Raises TypeError for an integer in an index of text and the reverse, and ValueError for a text whose ASCII
    /// characters show that it cannot be a key by the rule, such as a line with its end, or two words. Otherwise the key
    /// is looked up as it is. So of a column, pass the field alone, and in an index of words, look up each run of a text,
    /// as section 14 of docs/format.md defines it, and keep the files that have all of them.
    fn find<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (py, index) = (key.py(), self.opened()?);
        let footer = index.footer();
        let ((hash, excluded), kind) =
            keys::with_bytes(key, |key| (footer.hash_key(key), excluded(footer.rule(), key)))?;
        self.kinds.check_lookup(kind)?;
        if let (Some(why), true) = (excluded, kind != INTEGERS) {
            return Err(PyValueError::new_err(format!("{} {why} (rule {:?})", key.repr()?, footer.rule())));
        }
        let mut found = SlotBitmap::new();
        index.find(py, hash, &mut found, self.path.as_deref())?;
        decoded(py, footer, found.iter())
    }

    /// Looks up many keys, given as for `BloomFilter.update`, and returns for each a list as `find` does. Nulls raise
    /// TypeError. Does not compare the keys with the rule, but for integers and text.
    fn find_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Vec<Vec<Bound<'py, PyAny>>>> {
        let (py, index, mut hashes) = (keys.py(), self.opened()?, Hashes::default());
        self.kinds.check_lookup(keys::read(keys, index.footer().seed(), &mut hashes)?)?;
        let names = decoded(py, index.footer(), 0..index.footer().files())?;
        let (mut found, mut signals) = (SlotBitmap::new(), Signals::new());
        let find = |hash| {
            index.find(py, hash, &mut found, self.path.as_deref())?;
            py.detach(|| signals.check())?;
            Ok(found.iter().map(|file| names[file].clone()).collect())
        };
        hashes.0.into_iter().map(find).collect()
    }

    /// The names of all files, in the order of `find`, with folders that the command line listed, which end in "/".
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let index = self.opened()?;
        decoded(py, index.footer(), 0..index.footer().files())
    }

    /// How the keys of the files were taken, such as "words", or "" if that is unknown.
    #[getter]
    fn rule(&self) -> PyResult<String> {
        Ok(self.opened()?.footer().rule().to_owned())
    }

    /// The false-positive rate that was requested for each file.
    #[getter]
    fn fpr(&self) -> PyResult<f64> {
        Ok(self.opened()?.footer().fpr())
    }

    /// Returns the bytes that `save` writes, with checksums. Rust and the command line read them too.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        files::python_bytes(py, &self.opened()?.bytes(py, self.path.as_deref())?)
    }

    /// Writes the bytes of `to_bytes` to a file, which appears whole or not at all. Raises OSError.
    fn save(&self, py: Python<'_>, #[pyo3(from_py_with = path)] path: PathBuf) -> PyResult<()> {
        let index = self.opened()?;
        let bytes = index.bytes(py, self.path.as_deref())?;
        files::save(py, &path, |file| file.write_all(&bytes))
    }

    /// Unmaps the file, or lets go of the file object, as the end of `with` does. Later calls raise ValueError.
    fn close(&self) {
        let index = self.index.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Dropped while unlocked, because the end of a file object may run any code.
        drop(index);
    }

    /// Whether `close` was called.
    #[getter]
    fn closed(&self) -> bool {
        self.opened().is_err()
    }

    fn __enter__(index: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        index.get().opened()?;
        Ok(index)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        self.close();
    }

    /// Number of files.
    fn __len__(&self) -> PyResult<usize> {
        Ok(self.opened()?.footer().files())
    }

    fn __reduce__(&self) -> PyResult<()> {
        not_pickled("FileIndex", "open its file again there")
    }

    fn __repr__(&self) -> String {
        match self.opened() {
            Ok(index) => {
                let footer = index.footer();
                let (files, fpr, rule) = (footer.files(), footer.fpr(), footer.rule());
                format!("FileIndex(files={files}, fpr={fpr}, rule={rule:?})")
            }
            Err(_) => "FileIndex(closed)".into(),
        }
    }
}
