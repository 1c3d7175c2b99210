//! Rust's errors as Python's exceptions, with the same texts.
#![forbid(unsafe_code)]

use std::io::{self, ErrorKind};
use std::path::Path;

use bloomline::bank::BankError;
use bloomline::{MismatchError, SizingError};
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    bloomline,
    DecodeError,
    PyValueError,
    "The bytes are not a filter of this kind, or are damaged: rebuild the filter from its keys."
);

pub fn sizing_error(error: SizingError) -> PyErr {
    match error {
        SizingError::OutOfMemory { .. } => PyMemoryError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

pub fn mismatch_error(error: MismatchError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub fn bank_error(error: BankError) -> PyErr {
    match error {
        BankError::OutOfMemory { .. } => PyMemoryError::new_err(error.to_string()),
        BankError::Slot { .. } => PyIndexError::new_err(error.to_string()),
        // The crate's text names a function that this package does not have.
        BankError::NoFilters => PyValueError::new_err("a bank needs at least one filter"),
        _ => PyValueError::new_err(error.to_string()),
    }
}

pub fn decode_error(error: bloomline::DecodeError) -> PyErr {
    match error {
        bloomline::DecodeError::OutOfMemory { .. } => PyMemoryError::new_err(error.to_string()),
        _ => DecodeError::new_err(error.to_string()),
    }
}

/// For allocations of this package, with the crate's text.
pub fn out_of_memory(bytes: usize) -> PyErr {
    PyMemoryError::new_err(format!("out of memory: cannot allocate {bytes} bytes"))
}

/// Python chooses the subclass of `OSError` by the number.
pub fn os_error(error: io::Error, path: &Path) -> PyErr {
    match error.raw_os_error() {
        Some(number) => {
            let text = error.to_string();
            let what = text.split(" (os error").next().unwrap_or_default().to_owned();
            let path = path.as_os_str().to_owned();
            if cfg!(windows) {
                PyOSError::new_err((0, what, path, number))
            } else {
                PyOSError::new_err((number, what, path))
            }
        }
        None if error.kind() == ErrorKind::OutOfMemory => PyMemoryError::new_err(error.to_string()),
        None => io::Error::new(error.kind(), format!("{error}: {path:?}")).into(),
    }
}

pub fn cannot_be_keys(what: impl std::fmt::Display) -> PyErr {
    PyTypeError::new_err(format!(
        "{what} cannot be keys: cast them to integers or text first (keys are str, bytes and integers)"
    ))
}
