//! Reads Python keys: single objects, iterables, numpy arrays, and objects that export Arrow arrays.
#![forbid(unsafe_code)]

use bloomline::hash_key;
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyInt, PyMemoryView, PyString};

use crate::column::{Batch, Sink};
use crate::errors::{cannot_be_keys, check_not_table};
use crate::{array, arrow};

/// Objects of an iterable that are hashed before the filter is locked.
const BATCH: usize = 1024;

/// The hash of one key.
pub fn hash(key: &Bound<'_, PyAny>, seed: u64) -> PyResult<u64> {
    // A cast that fails costs as much as the hash.
    if key.is_instance_of::<PyString>() {
        Ok(hash_key(key.cast::<PyString>()?.to_str()?, seed))
    } else if key.is_instance_of::<PyBytes>() {
        Ok(hash_key(key.cast::<PyBytes>()?.as_bytes(), seed))
    } else {
        integer(key).map(|value| hash_key(value, seed))
    }
}

/// The value, or for a negative one its two's complement.
fn integer(key: &Bound<'_, PyAny>) -> PyResult<u64> {
    let refused = || match key.get_type().name() {
        Ok(name) => cannot_be_keys(format_args!("objects of type {name}")),
        Err(error) => error,
    };
    if key.is_instance_of::<PyBool>() {
        return Err(refused());
    }
    if key.is_instance_of::<PyInt>() {
        let value = key.extract::<i64>().map(|value| value as u64).or_else(|_| key.extract());
        let text = "integers below -2^63 or above 2^64 - 1 cannot be keys: turn them into text";
        return value.map_err(|_| PyOverflowError::new_err(text));
    }
    // numpy's integers have an index. So have its booleans before numpy 2.3, and others refuse to be one.
    let is_bool = || PyResult::Ok(key.getattr("dtype")?.getattr("kind")?.extract::<char>()? == 'b');
    let Some(index) = key.getattr_opt("__index__")?.filter(|_| !is_bool().unwrap_or(false)) else {
        return Err(refused());
    };
    match index.call0() {
        Err(error) if error.is_instance_of::<PyTypeError>(key.py()) => Err(refused()),
        index => integer(&index?.cast_into::<PyInt>()?.into_any()),
    }
}

/// Hashes all keys. Keys before an error have gone to `sink`.
pub fn read(keys: &Bound<'_, PyAny>, seed: u64, sink: &mut impl Sink) -> PyResult<()> {
    if keys.is_instance_of::<PyString>()
        || keys.is_instance_of::<PyBytes>()
        || keys.is_instance_of::<PyByteArray>()
        || keys.is_instance_of::<PyMemoryView>()
    {
        return Err(PyTypeError::new_err("keys must be an iterable of keys: put a single key in a list"));
    }
    if let Ok(array) = keys.cast::<PyUntypedArray>() {
        return read_array(array, seed, sink);
    }
    if let Some(exported) = arrow::export(keys)? {
        return exported.read(keys.py(), seed, sink);
    }
    check_not_table(keys)?;
    // Columns of pandas before version 3.
    if let Some(array) = keys.getattr_opt("array")?
        && let Some(array) = arrow::call(&array, "__arrow_array__")?
        && let Some(exported) = arrow::export(&array)?
    {
        return exported.read(keys.py(), seed, sink);
    }
    if keys.hasattr("__array__")? {
        let array = keys.py().import("numpy")?.call_method1("asanyarray", (keys,))?;
        return read_array(array.cast()?, seed, sink);
    }
    read_iterable(keys, seed, sink)
}

fn read_array(array: &Bound<'_, PyUntypedArray>, seed: u64, sink: &mut impl Sink) -> PyResult<()> {
    // Objects, and strings of any length, which only numpy reads.
    if array.ndim() == 1 && matches!(array.dtype().kind(), b'O' | b'T') {
        return read_iterable(array, seed, sink);
    }
    array::read(array, seed, sink)
}

/// Hashes the objects of any iterable.
fn read_iterable(keys: &Bound<'_, PyAny>, seed: u64, sink: &mut impl Sink) -> PyResult<()> {
    let py = keys.py();
    let mut batch = Batch::default();
    let mut objects = keys.try_iter()?;
    loop {
        batch.hashes.clear();
        let result = objects.by_ref().take(BATCH).try_for_each(|key| {
            batch.hashes.push(hash(&key?, seed)?);
            PyResult::Ok(())
        });
        let n = batch.hashes.len();
        if n > 0 {
            py.detach(|| sink.take(&mut batch))?;
        }
        result?;
        if n < BATCH {
            return Ok(());
        }
        py.check_signals()?;
    }
}
