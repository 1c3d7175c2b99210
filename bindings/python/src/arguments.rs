//! Reads arguments. Errors name the argument and show what was given.
#![forbid(unsafe_code)]

use std::fmt::Display;
use std::path::PathBuf;

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyIterator;

use crate::errors::shown;

macro_rules! arguments {
    ($T:ty, $needed:expr, $($name:ident)*) => {$(
        pub fn $name(value: &Bound<'_, PyAny>) -> PyResult<$T> {
            read(stringify!($name), $needed, value)
        }
    )*};
}

arguments!(usize, format_args!("an integer from 0 to {}", usize::MAX), additional capacity expected_keys factor initial_capacity);
arguments!(Option<usize>, "an integer from 1 to 16", most_modules);
arguments!(u64, format_args!("an integer from 0 to {}", u64::MAX), seed);
arguments!(f64, "a number", bits_per_key fpr);
arguments!(bool, "True or False", mmap packed verify);
arguments!(Option<bool>, "True, False or None", nulls);
arguments!(PathBuf, "a str or os.PathLike", path);

/// PyO3 raises `OverflowError` for integers out of range and `TypeError` for other types, and names the argument only
/// in a note. These errors name it in their text, and are `ValueError` if out of range.
pub fn read<'py, T: FromPyObjectOwned<'py>>(
    name: &str,
    needed: impl Display,
    value: &Bound<'py, PyAny>,
) -> PyResult<T> {
    value.extract().map_err(|error: T::Error| refused(error.into(), name, needed, value))
}

/// Iterates over an argument that must be an iterable of `classes`.
pub fn filters<'py>(value: &Bound<'py, PyAny>, classes: &str) -> PyResult<Bound<'py, PyIterator>> {
    let needed = format_args!("an iterable of {classes} objects");
    value.try_iter().map_err(|error| refused(error, "filters", needed, value))
}

fn refused(error: PyErr, name: &str, needed: impl Display, value: &Bound<'_, PyAny>) -> PyErr {
    let text = || format!("{name}: {needed} is needed, not {}", shown(value));
    if error.is_instance_of::<PyTypeError>(value.py()) {
        PyTypeError::new_err(text())
    } else if error.is_instance_of::<PyOverflowError>(value.py()) {
        PyValueError::new_err(text())
    } else {
        error
    }
}
