//! The native module of the Python package: classes over the crate's filters, and readers of keys.
#![deny(unsafe_op_in_unsafe_fn)]

mod array;
mod arrow;
mod column;
mod errors;
mod files;
mod filters;
mod keys;
mod view;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::{
        errors::DecodeError,
        filters::{BloomFilter, CountingBloomFilter, ScalableBloomFilter, StandardBloomFilter},
        view::BloomView,
    };
}
