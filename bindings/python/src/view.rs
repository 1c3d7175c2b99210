//! The methods of `BloomView`.
#![forbid(unsafe_code)]

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::answers;
use crate::arguments::{nulls, verify};
use crate::borrowed::{BloomView, view_of};
use crate::errors::not_pickled;
use crate::filters::{BloomFilter, Operand, Source, estimate_of_both, numbers, shape, with_filters};
use crate::keys;
use crate::kinds::{Kinds, UNKNOWN};

#[pymethods]
impl BloomView {
    #[new]
    #[pyo3(signature = (buffer, *, verify=true))]
    fn new(buffer: &Bound<'_, PyAny>, #[pyo3(from_py_with = verify)] verify: bool) -> PyResult<Self> {
        Self::over(buffer, verify)
    }

    /// Whether a key is possibly present. False means definitely absent.
    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = keys::hash(key, self.seed)?.0;
        self.quickly(key.py(), |view| view.contains_hash(hash))
    }

    /// Looks up many keys. See `BloomFilter.contains_many`.
    #[pyo3(signature = (keys, *, nulls=None))]
    fn contains_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = nulls)] nulls: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.check_open(keys.py())?;
        // If the view is closed meanwhile, these lookups do nothing, and the check below fails.
        let answers = answers::contains_many(
            keys,
            self.seed,
            &Kinds::new(UNKNOWN),
            nulls,
            |hashes, found| _ = view_of(&self.opened()).map(|view| view.contains_batch(hashes, found)),
            |hashes, found| _ = view_of(&self.opened()).map(|view| view.contains_bitmap(hashes, found)),
        );
        self.check_open(keys.py())?;
        answers
    }

    /// Compares all bytes with their checksum. Raises DecodeError if they are damaged.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.verified(&self.opened()).map(drop))
    }

    /// Copies the view into a BloomFilter that you can change. Verifies the bytes first.
    fn to_filter(&self, py: Python<'_>) -> PyResult<BloomFilter> {
        BloomFilter::of_view(py, self)
    }

    fn __or__(&self, py: Python<'_>, other: Source) -> PyResult<BloomFilter> {
        let union = BloomFilter::of_view(py, self)?;
        union.unite(py, other.into_filter(py)?.get())?;
        Ok(union)
    }

    fn __and__(&self, py: Python<'_>, other: Source) -> PyResult<BloomFilter> {
        let common = BloomFilter::of_view(py, self)?;
        common.intersect(py, other.into_filter(py)?.get())?;
        Ok(common)
    }

    /// Estimates the number of distinct keys. See `BloomFilter.estimated_keys`.
    fn estimated_keys(&self, py: Python<'_>) -> PyResult<(f64, f64)> {
        py.detach(|| Ok(numbers(view_of(&self.opened())?.estimated_keys())))
    }

    /// See `BloomFilter.estimated_union`.
    fn estimated_union(view: Py<Self>, other: &Bound<'_, PyAny>) -> PyResult<(f64, f64)> {
        estimate_of_both(Source::View(view), other, |ours, theirs| ours.estimated_union(theirs))
    }

    /// See `BloomFilter.estimated_intersection`.
    fn estimated_intersection(view: Py<Self>, other: &Bound<'_, PyAny>) -> PyResult<(f64, f64)> {
        estimate_of_both(Source::View(view), other, |ours, theirs| ours.estimated_intersection(theirs))
    }

    /// Returns the false-positive rate of the bits. Reads the whole filter.
    fn estimated_fpr(&self, py: Python<'_>) -> PyResult<f64> {
        py.detach(|| Ok(view_of(&self.opened())?.estimated_fpr()))
    }

    /// Fraction of bits that are set, 0 to 1. Reads the whole filter.
    #[getter]
    fn fill_ratio(&self, py: Python<'_>) -> PyResult<f64> {
        py.detach(|| Ok(view_of(&self.opened())?.fill_ratio()))
    }

    /// Compares the bits, seeds and sizes of views and BloomFilters. A closed view equals only itself.
    fn __eq__(view: Py<Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let (py, is_same) = (other.py(), view.is(other));
        let Ok(other) = other.extract() else { return Ok(py.NotImplemented()) };
        let read = |filters: &[bloomline::BloomView], _| Ok(filters[0] == filters[1]);
        let equal = is_same || with_filters(py, &[Source::View(view), other], false, read).unwrap_or(false);
        Ok(equal.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __reduce__(&self) -> PyResult<()> {
        not_pickled("BloomView", "open its file again there, or use its `to_filter()`")
    }

    /// Releases the buffer, or unmaps the file, as the end of `with` does. Waits for lookups in other threads. Later
    /// lookups raise ValueError.
    fn close(&self, py: Python<'_>) {
        self.let_go(py);
    }

    /// Whether `close` was called.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        self.check_open(py).is_err()
    }

    fn __enter__(view: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        view.get().check_open(view.py())?;
        Ok(view)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.let_go(py);
    }

    /// Probes per key, 1 to 16, in each module.
    #[getter]
    fn k(&self, py: Python<'_>) -> PyResult<u32> {
        self.quickly(py, |view| view.k())
    }

    /// Number of blocks of 64 bytes, of all modules.
    #[getter]
    fn n_blocks(&self, py: Python<'_>) -> PyResult<usize> {
        self.quickly(py, |view| view.n_blocks())
    }

    /// Number of modules, 1 to 16. All modules must have a key.
    #[getter]
    fn n_modules(&self, py: Python<'_>) -> PyResult<usize> {
        self.quickly(py, |view| view.n_modules())
    }

    /// Bytes of the filter, without its footer.
    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.quickly(py, |view| view.byte_len())
    }

    /// The seed that keys are hashed with.
    #[getter]
    fn seed(&self, py: Python<'_>) -> PyResult<u64> {
        self.check_open(py).map(|()| self.seed)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let sizing = self.quickly(py, |view| view.sizing());
        let shape = sizing.map_or("closed".into(), |sizing| shape(sizing, self.seed));
        format!("BloomView({shape})")
    }
}
