//! The methods of `BloomView`: lookups in bytes of a buffer or a mapped file.
#![forbid(unsafe_code)]

use pyo3::prelude::*;

use crate::borrowed::BloomView;
use crate::column::Lookups;
use crate::errors::{decode_error, sizing_error};
use crate::filters::{BloomFilter, answers};
use crate::keys;

#[pymethods]
impl BloomView {
    /// A view of the filter in `buffer`, which has standalone bytes.
    ///
    /// Reads all of them, and raises DecodeError if they are damaged. verify=False, for mapped files that are too large
    /// to read, checks only their footer: damaged bits then lose keys, with no other sign. The method `verify` checks
    /// the rest later.
    #[new]
    #[pyo3(signature = (buffer, *, verify=true))]
    fn new(buffer: &Bound<'_, PyAny>, verify: bool) -> PyResult<Self> {
        Self::over(buffer, verify)
    }

    /// Whether a key is possibly present. False means definitely absent.
    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.view().contains_hash(keys::hash(key, self.view().seed())?))
    }

    /// Looks up many keys: a numpy array of bools. See `BloomFilter.contains_many`.
    fn contains_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let mut lookups =
            Lookups::new(|hashes: &[u64], found: &mut [bool]| self.view().contains_batch(hashes, found));
        keys::read(keys, self.view().seed(), &mut lookups)?;
        answers(keys.py(), lookups.found, lookups.is_null)
    }

    /// Compares all bytes with their checksum. Raises DecodeError if they are damaged: keys may be lost then.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.view().verify()).map_err(decode_error)
    }

    /// A copy that can be changed. The bytes are verified first.
    fn to_filter(&self, py: Python<'_>) -> PyResult<BloomFilter> {
        self.verify(py)?;
        Ok(BloomFilter::new_with(py.detach(|| self.view().to_filter()).map_err(sizing_error)?, None))
    }

    /// Probes of each key.
    #[getter]
    fn k(&self) -> u32 {
        self.view().k()
    }

    /// Blocks of 64 bytes.
    #[getter]
    fn n_blocks(&self) -> usize {
        self.view().n_blocks()
    }

    /// Bytes of the filter, without its footer.
    #[getter]
    fn size_bytes(&self) -> usize {
        self.view().byte_len()
    }

    /// The seed that keys are hashed with.
    #[getter]
    fn seed(&self) -> u64 {
        self.view().seed()
    }

    fn __repr__(&self) -> String {
        format!("BloomView(n_blocks={}, k={}, seed={})", self.n_blocks(), self.k(), self.seed())
    }
}
