//! The native module of the Python package: classes over the crate's filters, and readers of keys.
#![deny(unsafe_op_in_unsafe_fn)]

mod answers;
mod arguments;
mod array;
mod arrow;
mod bank;
mod borrowed;
mod builder;
mod column;
mod errors;
mod file_index;
mod files;
mod filters;
mod input;
mod keys;
mod kinds;
mod lock;
mod open;
mod view;

#[pyo3::pymodule(gil_used = false)]
mod _native {
    use numpy::PyArray1;
    use pyo3::prelude::*;

    /// Imports numpy, because without it numpy's bindings would panic later, where this raises `ImportError`.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.py().import("numpy")?;
        PyArray1::<bool>::from_vec(module.py(), Vec::new());
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    #[pymodule_export]
    use super::{
        bank::FilterBank,
        borrowed::BloomView,
        builder::FilterBuilder,
        errors::DecodeError,
        file_index::FileIndex,
        filters::{BloomFilter, CountingBloomFilter, ScalableBloomFilter, StandardBloomFilter},
        kinds::KeyKindWarning,
        open::open,
    };
}
