//! The class `FilterBuilder`.
#![forbid(unsafe_code)]

use bloomline::bank::IndexBuilder;
use pyo3::prelude::*;

use crate::arguments::{bits_per_key, fpr, most_modules, seed};
use crate::column::Inserts;
use crate::errors::{build_error, not_grown, not_pickled};
use crate::filters::BloomFilter;
use crate::keys;
use crate::kinds::Kinds;
use crate::lock::Lock;

/// Collects keys of unknown number, then makes a BloomFilter of the right size.
///
/// fpr: the false-positive rate of the filter.
/// most_modules: see BloomFilter.
/// seed: filters with the same seed and size can be combined.
///
///     >>> from bloomline import FilterBuilder
///     >>> builder = FilterBuilder(0.01)
///     >>> builder.update(["ant", "bee", "bee"])
///     >>> filter = builder.finish()
///     >>> "ant" in filter, filter.expected_keys
///     (True, 2)
///
/// Needs 8 bytes for each key added, and 9.3 while `finish` runs. A key that repeats the key before it needs none. A
/// builder answers no lookups.
#[pyclass(frozen, weakref, module = "bloomline")]
pub struct FilterBuilder {
    builder: Lock<bloomline::FilterBuilder>,
    seed: u64,
    fpr: Option<f64>,
    kinds: Kinds,
}

impl FilterBuilder {
    fn new_with(
        builder: Result<bloomline::FilterBuilder, bloomline::Error>,
        fpr: Option<f64>,
        most_modules: Option<usize>,
        seed: u64,
    ) -> PyResult<Self> {
        let builder = builder.and_then(|builder| match most_modules {
            None => Ok(builder),
            Some(most) => builder.with_most_modules(most),
        });
        let builder = builder.and_then(|builder| builder.with_seed(seed)).map_err(build_error)?;
        Ok(Self { builder: Lock::new(builder), seed, fpr, kinds: Kinds::new(0) })
    }
}

#[pymethods]
impl FilterBuilder {
    #[new]
    #[pyo3(signature = (fpr=0.01, *, most_modules=None, seed=0))]
    fn new(
        #[pyo3(from_py_with = fpr)] fpr: f64,
        #[pyo3(from_py_with = most_modules)] most_modules: Option<usize>,
        #[pyo3(from_py_with = seed)] seed: u64,
    ) -> PyResult<Self> {
        Self::new_with(bloomline::FilterBuilder::with_fpr(fpr), Some(fpr), most_modules, seed)
    }

    /// Makes a builder of filters of a chosen size instead of a false-positive rate.
    #[staticmethod]
    #[pyo3(signature = (bits_per_key, *, most_modules=None, seed=0))]
    fn with_bits_per_key(
        #[pyo3(from_py_with = bits_per_key)] bits_per_key: f64,
        #[pyo3(from_py_with = most_modules)] most_modules: Option<usize>,
        #[pyo3(from_py_with = seed)] seed: u64,
    ) -> PyResult<Self> {
        Self::new_with(bloomline::FilterBuilder::with_bits_per_key(bits_per_key), None, most_modules, seed)
    }

    /// Makes a builder of filters for a FileIndex of this fpr, in which other filters may not fit.
    #[staticmethod]
    fn for_index(#[pyo3(from_py_with = fpr)] fpr: f64) -> PyResult<Self> {
        let builder = IndexBuilder::with_fpr(fpr).map(|index| index.filter_builder());
        Self::new_with(builder, Some(fpr), None, 0)
    }

    /// Adds a key (str, bytes or int). Keys may repeat.
    fn add(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let (hash, kind) = keys::hash(key, self.seed)?;
        Kinds::warn_of_added(key.py(), self.kinds.get(), kind)?;
        let added = self.builder.quickly_mut(key.py(), |builder| {
            self.kinds.insert(kind);
            builder.try_reserve(1).map(|()| builder.insert_hash(hash))
        });
        added.map_err(not_grown)
    }

    /// Adds many keys, given as for `BloomFilter.update`.
    fn update(&self, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        let before = self.kinds.get();
        let writer = self.builder.writer(keys.py());
        let mut inserts = Inserts(|hashes: &[u64], kinds| {
            let mut builder = writer.write();
            self.kinds.insert(kinds);
            // One by one, because they are in pieces then.
            hashes.iter().try_for_each(|&hash| builder.try_reserve(1).map(|()| builder.insert_hash(hash)))
        });
        let added = keys::read(keys, self.seed, &mut inserts)?;
        Kinds::warn_of_added(keys.py(), before, added)
    }

    /// Returns a BloomFilter sized for the number of distinct keys, and empties the builder.
    ///
    /// Needs the filter's memory in addition and, while it runs, some 40 bytes for each key that repeats an earlier
    /// one. If memory runs out, raises MemoryError and keeps the keys.
    fn finish(&self, py: Python<'_>) -> PyResult<BloomFilter> {
        let finished = self
            .builder
            .detached_mut(py, |builder| builder.finish().map(|filter| (filter, self.kinds.take())));
        let (filter, kinds) = finished.map_err(build_error)?;
        let keys = filter.known_keys().and_then(|keys| usize::try_from(keys).ok());
        Ok(BloomFilter::new_for(filter, keys, self.fpr, kinds))
    }

    /// Removes all keys.
    fn clear(&self, py: Python<'_>) {
        self.builder.detached_mut(py, |builder| {
            builder.clear();
            self.kinds.take();
        });
    }

    /// Number of keys added. Repeated keys may count more than once.
    fn __len__(&self, py: Python<'_>) -> usize {
        self.builder.quickly(py, |builder| builder.len())
    }

    /// The false-positive rate that was requested, or None if bits per key were given.
    #[getter]
    fn fpr(&self) -> Option<f64> {
        self.fpr
    }

    /// The seed that keys are hashed with.
    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }

    /// Bytes of memory.
    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> usize {
        size_of::<u64>() * self.__len__(py)
    }

    fn __sizeof__(&self, py: Python<'_>) -> usize {
        size_of::<Self>() + self.size_bytes(py)
    }

    fn __reduce__(&self) -> PyResult<()> {
        not_pickled("FilterBuilder", "call `finish()`, and pickle or copy its filter")
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let fpr = self.fpr.map_or(String::new(), |fpr| format!(", fpr={fpr}"));
        format!("FilterBuilder(len={}{fpr}, seed={})", self.__len__(py), self.seed)
    }
}
