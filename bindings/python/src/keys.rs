//! Reads keys from Python objects, which are single keys, iterables, numpy arrays, pandas objects, or exporters of
//! Arrow data.
#![forbid(unsafe_code)]

use bloomline::hash_key;
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyException, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    IntoPyDict, PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyList, PyMemoryView, PySlice, PyString, PyType,
};

use crate::column::{Batch, Sink};
use crate::errors::{cannot_be_keys, check_not_table, class_of, shown, uuids_cannot_be_keys};
use crate::kinds::{INTEGERS, TEXT, UNKNOWN};
use crate::{array, arrow};

/// Objects of an iterable that are hashed before the filter is locked.
const BATCH: usize = 1024;

/// The hash of one key, and its kind.
#[inline]
pub fn hash(key: &Bound<'_, PyAny>, seed: u64) -> PyResult<(u64, u8)> {
    with_bytes(key, |bytes| hash_key(bytes, seed))
}

/// Calls `read` with the bytes of one key, and returns its answer and the key's kind.
#[inline]
pub fn with_bytes<T>(key: &Bound<'_, PyAny>, read: impl FnOnce(&[u8]) -> T) -> PyResult<(T, u8)> {
    // A cast that fails costs as much as the hash.
    if key.is_exact_instance_of::<PyString>() {
        Ok((read(key.cast_exact::<PyString>()?.to_str()?.as_bytes()), TEXT))
    } else if key.is_exact_instance_of::<PyInt>() {
        integer(key).map(|value| (read(&value.to_le_bytes()), INTEGERS))
    } else {
        with_other_bytes(key, read)
    }
}

#[inline(never)]
fn with_other_bytes<T>(key: &Bound<'_, PyAny>, read: impl FnOnce(&[u8]) -> T) -> PyResult<(T, u8)> {
    if key.is_instance_of::<PyBytes>() {
        let bytes = key.cast::<PyBytes>()?.as_bytes();
        // The eight bytes may be an integer's.
        Ok((read(bytes), if bytes.len() == 8 { UNKNOWN } else { TEXT }))
    } else if key.is_instance_of::<PyString>() {
        Ok((read(key.cast::<PyString>()?.to_str()?.as_bytes()), TEXT))
    } else if is_bool(key)? {
        Err(refused(key))
    } else {
        integer(key).map(|value| (read(&value.to_le_bytes()), INTEGERS))
    }
}

/// Returns whether the key is a boolean. Booleans have `__index__`, and numpy's had it until version 2.3.
fn is_bool(key: &Bound<'_, PyAny>) -> PyResult<bool> {
    static NUMPY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    Ok(key.is_instance_of::<PyBool>() || key.get_type().is(NUMPY.import(key.py(), "numpy", "bool_")?))
}

/// The value of an object with `__index__`, in two's complement if it is negative.
#[inline]
fn integer(key: &Bound<'_, PyAny>) -> PyResult<u64> {
    match array::integer(key) {
        Ok(value) => Ok(value as u64),
        Err(sign) => other_integer(key, sign),
    }
}

#[inline(never)]
fn other_integer(key: &Bound<'_, PyAny>, sign: i32) -> PyResult<u64> {
    let py = key.py();
    let value = match PyErr::take(py) {
        Some(error) if error.is_instance_of::<PyTypeError>(py) => return Err(refused(key)),
        Some(error) => return Err(error),
        None if sign == 0 => Some(-1_i64 as u64),
        None if sign > 0 => key.extract().ok(),
        None => None,
    };
    value.ok_or_else(|| {
        let (range, key) = ("below -2^63 or above 2^64 - 1", shown(key));
        PyOverflowError::new_err(format!(
            "integers {range}, such as {key}, cannot be keys: turn them into text"
        ))
    })
}

fn refused(key: &Bound<'_, PyAny>) -> PyErr {
    if key.is_none() {
        return PyTypeError::new_err(
            "objects of type NoneType cannot be keys: drop None, or cast the keys to an Arrow column of integers or text",
        );
    }
    let what = format!("objects of type {}", class_of(key));
    if what.ends_with(" UUID") { uuids_cannot_be_keys(what) } else { cannot_be_keys(what) }
}

/// Returns whether lookups of `keys` are answered in Arrow, which depends on their type only.
pub fn are_arrow(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    if keys.cast::<PyUntypedArray>().is_ok() || keys.is_instance_of::<PyList>() {
        return Ok(false);
    }
    let exports = keys.hasattr("__arrow_c_stream__")? || keys.hasattr("__arrow_c_array__")?;
    Ok(exports && !is_of(&["pandas", "polars"], keys)?)
}

/// Returns whether the object's class, or a class that it inherits from, is from one of these packages.
fn is_of(packages: &[&str], object: &Bound<'_, PyAny>) -> PyResult<bool> {
    for class in object.get_type().mro() {
        // A class may have any object as its module, such as None.
        let Ok(module) = class.cast::<PyType>()?.module() else { continue };
        let package = module.to_str()?.split('.').next().unwrap_or_default();
        if packages.contains(&package) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Hashes all keys and returns their kinds. If there is an error, the keys before it have been passed to `sink`.
pub fn read(keys: &Bound<'_, PyAny>, seed: u64, sink: &mut impl Sink) -> PyResult<u8> {
    let mut batch = Batch::new();
    read_into(keys, seed, &mut batch, sink)?;
    Ok(batch.all_kinds)
}

fn read_into(keys: &Bound<'_, PyAny>, seed: u64, batch: &mut Batch, sink: &mut impl Sink) -> PyResult<()> {
    if keys.is_instance_of::<PyString>()
        || keys.is_instance_of::<PyBytes>()
        || keys.is_instance_of::<PyByteArray>()
        || keys.is_instance_of::<PyMemoryView>()
    {
        return Err(not_iterable(keys));
    }
    if let Ok(array) = keys.cast::<PyUntypedArray>() {
        return read_array(array, "numpy arrays", seed, batch, sink);
    }
    check_not_table(keys)?;
    if is_of(&["pandas"], keys)? && keys.hasattr("ndim")? {
        return read_pandas(keys, seed, batch, sink);
    }
    if let Some(exported) = arrow::export(keys)? {
        // polars exports the addresses of the objects, and DuckDB exports text.
        if is_of(&["polars", "duckdb", "_duckdb"], keys)? {
            match type_of(keys).as_deref() {
                Ok("Object") => return Err(cannot_be_keys("columns of Object")),
                Ok("UUID") => return Err(uuids_cannot_be_keys("columns of UUID")),
                _ => (),
            }
        }
        let unbound = keys.clone().unbind();
        let name = |words: &str| match Python::attach(|py| type_of(unbound.bind(py))) {
            Ok(of) => format!("columns of {of} ({words} in Arrow)"),
            Err(_) => words.into(),
        };
        return exported.read(keys.py(), &name, seed, batch, sink);
    }
    if keys.hasattr("__array__")? {
        let array = keys.py().import("numpy")?.call_method1("asanyarray", (keys,))?;
        return read_array(array.cast()?, "arrays", seed, batch, sink);
    }
    if keys.hasattr("readline")? && keys.hasattr("read")? {
        let remedy = "pass (line.rstrip(\"\\n\") for line in file), because its lines have their ends";
        return Err(PyTypeError::new_err(format!("a file ({}) is no keys: {remedy}", class_of(keys))));
    }
    read_iterable(keys, |_| Ok(false), seed, batch, sink)
}

fn not_iterable(keys: &Bound<'_, PyAny>) -> PyErr {
    let class = class_of(keys);
    PyTypeError::new_err(format!("an iterable of keys is needed, not {class}: put a single key in a list"))
}

/// The type of a column, or of a table's first column, as its library calls it, for errors.
fn type_of(keys: &Bound<'_, PyAny>) -> PyResult<String> {
    let table = match keys.getattr_opt("dtypes")? {
        None => keys.getattr_opt("schema")?.map(|schema| schema.getattr("types")).transpose()?,
        types => types,
    };
    let of = match (table, keys.getattr_opt("dtype")?) {
        (Some(types), _) => types.get_item(0)?,
        (_, Some(dtype)) => dtype,
        _ => keys.getattr("type")?,
    };
    Ok(of.str()?.to_string())
}

fn read_array(
    array: &Bound<'_, PyUntypedArray>,
    what: &str,
    seed: u64,
    batch: &mut Batch,
    sink: &mut impl Sink,
) -> PyResult<()> {
    // Objects, and strings of variable length, whose memory only numpy can read.
    if array.ndim() == 1 && matches!(array.dtype().kind(), b'O' | b'T') {
        return read_iterable(array, |_| Ok(false), seed, batch, sink);
    }
    array::read(array, what, seed, batch, sink)
}

/// Hashes the values of a column, index, array, or frame of one column. Missing values are nulls. An empty column
/// has no keys, whatever its type, because pandas chooses one.
fn read_pandas(keys: &Bound<'_, PyAny>, seed: u64, batch: &mut Batch, sink: &mut impl Sink) -> PyResult<()> {
    let py = keys.py();
    // Not by `columns`, which a series has, too, if one of its rows has this label.
    if keys.getattr("ndim")?.extract::<usize>()? == 2 {
        let columns = keys.getattr("columns")?;
        if columns.len()? != 1 {
            let names = columns.call_method1("map", (py.get_type::<PyString>(),))?.call_method0("tolist")?;
            return Err(arrow::not_one_column(&names.extract::<Vec<String>>()?));
        }
        let column = keys.getattr("iloc")?.get_item((PySlice::full(py), 0))?;
        return read_pandas(&column, seed, batch, sink);
    }
    if keys.len()? == 0 {
        return Ok(());
    }
    let (numpy, pandas) = (py.import("numpy")?, py.import("pandas")?);
    // An array's dtype may not be its column's, even if the array only wraps numpy's.
    let (column, array) = match keys.getattr_opt("array")? {
        Some(array) => (keys.clone(), array),
        None => {
            let in_place = [("copy", false)].into_py_dict(py)?;
            (pandas.call_method("Series", (keys,), Some(&in_place))?, keys.clone())
        }
    };
    let of = column.getattr("dtype")?;
    let dtype = of.cast::<PyArrayDescr>();
    if let Ok(dtype) = dtype
        && dtype.kind() != b'O'
    {
        if dtype.kind() == b'f' {
            // Mostly integers with missing values, which pandas stores as floats.
            return Err(PyTypeError::new_err(format!(
                "pandas columns of {dtype} cannot be keys: cast integers with missing values with .astype(\"Int64\")"
            )));
        }
        let array = numpy.call_method1("asarray", (column,))?;
        return read_array(array.cast()?, "pandas columns", seed, batch, sink);
    }
    if dtype.is_err()
        && let Some(array) = arrow_of_pandas(&array)?
        && let Some(exported) = arrow::export(&array)?
    {
        let of = of.str()?.to_string();
        let name = |words: &str| format!("pandas columns of {of} ({words} in Arrow)");
        return exported.read(py, &name, seed, batch, sink);
    }
    let objects = numpy.call_method1("asarray", (array, "O"))?;
    let isna = pandas.getattr("isna")?;
    let is_null = |key: &Bound<'_, PyAny>| {
        if let Ok(float) = key.cast_exact::<PyFloat>() {
            return Ok(float.value().is_nan());
        }
        Ok(key.is_none() || isna.call1((key,))?.is(PyBool::new(py, true)))
    };
    read_iterable(&objects, is_null, seed, batch, sink)
}

/// Converts an extension array to Arrow. `None` if pyarrow cannot.
fn arrow_of_pandas<'py>(values: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = values.py();
    let array = py.import("pyarrow").and_then(|pyarrow| {
        pyarrow.call_method("array", (values,), Some(&[("from_pandas", true)].into_py_dict(py)?))
    });
    match array {
        // For example, sparse arrays and categories of several types.
        Err(error) if error.is_instance_of::<PyException>(py) => Ok(None),
        array => array.map(Some),
    }
}

/// An error that names the position of its key.
fn at(py: Python<'_>, position: usize, error: PyErr) -> PyErr {
    let class = error.get_type(py);
    if class.is(py.get_type::<PyTypeError>()) || class.is(py.get_type::<PyOverflowError>()) {
        return PyErr::from_type(class, format!("keys[{position}]: {}", error.value(py)));
    }
    // An error that is not this module's stays as it is, with a note, which Python 3.10 does not have.
    _ = error.value(py).call_method1("add_note", (format!("keys[{position}]"),));
    error
}

/// Hashes the objects of any iterable.
fn read_iterable<'py>(
    keys: &Bound<'py, PyAny>,
    is_null: impl Fn(&Bound<'py, PyAny>) -> PyResult<bool>,
    seed: u64,
    batch: &mut Batch,
    sink: &mut impl Sink,
) -> PyResult<()> {
    let py = keys.py();
    let mut objects = keys.try_iter().map_err(|error| match keys.hasattr("__iter__") {
        Ok(false) => not_iterable(keys),
        _ => error,
    })?;
    // An iterable without a length grows the answers as it goes.
    if let Ok(len) = keys.len() {
        sink.reserve(len)?;
    }
    loop {
        let Batch { hashes, nulls, kinds, n_before, .. } = &mut *batch;
        hashes.clear();
        nulls.clear();
        *kinds = 0;
        let result = objects.by_ref().take(BATCH).try_for_each(|key| {
            let key = key?;
            match hash(&key, seed) {
                Ok((hash, kind)) => {
                    hashes.push(hash);
                    *kinds |= kind;
                }
                Err(error) => {
                    if !is_null(&key)? {
                        return Err(at(py, *n_before + hashes.len(), error));
                    }
                    nulls.push(hashes.len());
                    hashes.push(0);
                }
            }
            PyResult::Ok(())
        });
        let n = hashes.len();
        if n > 0 {
            py.detach(|| sink.take(batch))?;
            batch.all_kinds |= batch.kinds;
            batch.n_before += n;
        }
        result?;
        if n < BATCH {
            return Ok(());
        }
        batch.signals.check()?;
    }
}
