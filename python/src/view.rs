//! The methods of `BloomView`: lookups in bytes of a buffer or a mapped file.
#![forbid(unsafe_code)]

use pyo3::prelude::*;

use crate::answers;
use crate::borrowed::BloomView;
use crate::errors::{decode_error, sizing_error};
use crate::filters::BloomFilter;
use crate::keys;
use crate::kinds::{Kinds, UNKNOWN};

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
        Ok(self.view().contains_hash(keys::hash(key, self.view().seed())?.0))
    }

    /// Looks up many keys. See `BloomFilter.contains_many`.
    #[pyo3(signature = (keys, *, nulls=None))]
    fn contains_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        nulls: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let view = self.view();
        answers::contains_many(
            keys,
            view.seed(),
            &Kinds::new(UNKNOWN),
            nulls,
            |hashes, found| view.contains_batch(hashes, found),
            |hashes, found| view.contains_bitmap(hashes, found),
        )
    }

    /// Compares all bytes with their checksum. Raises DecodeError if they are damaged: keys may be lost then.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.view().verify()).map_err(decode_error)
    }

    /// A copy that can be changed. The bytes are verified first.
    fn to_filter(&self, py: Python<'_>) -> PyResult<BloomFilter> {
        self.verify(py)?;
        Ok(BloomFilter::new_with(py.detach(|| self.view().to_filter()).map_err(sizing_error)?, None, UNKNOWN))
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
