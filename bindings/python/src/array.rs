//! Reads keys in numpy arrays.

use std::slice;

use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PySlice;

use crate::column::{self, Batch, Column, Fixed, Integers, Sink, Utf32, integers};
use crate::errors::cannot_be_keys;
use crate::kinds::{INTEGERS, TEXT};

/// Elements that are copied at a time, if they cannot be read in place.
const COPIED: usize = 1 << 16;

/// The value of an object with `__index__`. `Err` if the value is -1, if `__index__` raises, which sets Python's
/// exception, or if the value does not fit in an `i64`. The error is the sign of a value that does not fit, else 0.
/// With an exception for each integer from 2^63 on, which half of all 64-bit hashes are, a lookup would be five times
/// slower.
#[inline]
pub fn integer(key: &Bound<'_, PyAny>) -> Result<i64, i32> {
    let mut sign = 0;
    // SAFETY: the function accepts any object, `key` keeps it alive, and it writes to `sign` only.
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(key.as_ptr(), &mut sign) };
    if value == -1 { Err(sign) } else { Ok(value) }
}

/// Hashes all values. Errors call the array `what`.
pub fn read(
    array: &Bound<'_, PyUntypedArray>,
    what: &str,
    seed: u64,
    batch: &mut Batch,
    sink: &mut impl Sink,
) -> PyResult<()> {
    let dtype = array.dtype();
    if array.ndim() != 1 {
        let message =
            format!("keys must have one dimension, not {}: flatten the array with .ravel()", array.ndim());
        return Err(PyValueError::new_err(message));
    }
    // An empty array has no keys, whatever its type, because numpy chooses float64.
    if array.is_empty() {
        return Ok(());
    }
    match dtype.kind() {
        b'i' | b'u' | b'S' | b'U' => (),
        _ => return Err(cannot_be_keys(format_args!("{what} of {dtype}"))),
    }
    if array.hasattr("mask")? {
        let message = "masked arrays cannot be keys: drop the masked values with .compressed()";
        return Err(PyTypeError::new_err(message));
    }
    if array.is_contiguous() && dtype.is_native_byteorder() != Some(false) {
        return read_in_place(array, seed, batch, sink);
    }
    let (py, native) = (array.py(), dtype.call_method1("newbyteorder", ("=",))?);
    let contiguous = py.import("numpy")?.getattr("ascontiguousarray")?;
    sink.reserve(array.len())?;
    for start in (0..array.len()).step_by(COPIED) {
        let some = PySlice::new(py, start as isize, array.len().min(start + COPIED) as isize, 1);
        read_in_place(contiguous.call1((array.get_item(some)?, &native))?.cast()?, seed, batch, sink)?;
    }
    Ok(())
}

fn read_in_place(
    array: &Bound<'_, PyUntypedArray>,
    seed: u64,
    batch: &mut Batch,
    sink: &mut impl Sink,
) -> PyResult<()> {
    let (dtype, len) = (array.dtype(), array.len());
    let width = dtype.itemsize();
    let bytes = if width == 0 {
        &[]
    } else {
        // SAFETY: the data of a contiguous array are `len` items of `width` bytes from its data pointer on, which is
        // not null. They live as long as `array`, which the caller holds. A thread that writes to the array meanwhile
        // races with this code, as it does with numpy's own loops, but any bytes are valid numbers here.
        unsafe { slice::from_raw_parts((*array.as_array_ptr()).fields.data.cast::<u8>(), len * width) }
    };
    let column: Box<dyn Column> = match dtype.kind() {
        b'S' => Box::new(Fixed { bytes, width, len, ends_at_zeros: true }),
        b'U' => Box::new(Utf32 { characters: bytes.as_chunks().0, width: width / 4, len }),
        kind => integers!(kind, width, bytes, |values, widen| Box::new(Integers { values, widen })),
    };
    let kind = if matches!(dtype.kind(), b'S' | b'U') { TEXT } else { INTEGERS };
    array.py().detach(|| column::hash_all(&*column, kind, seed, batch, sink))
}
