//! Lookups of many keys, answered as numpy or Arrow arrays.
#![forbid(unsafe_code)]

use numpy::PyArray1;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;

use crate::column::{Batch, Sink};
use crate::errors::no_room;
use crate::keys;
use crate::kinds::Kinds;

/// Looks up all keys. If the type of `keys` is Arrow's, calls `look_up_bits` and returns a pyarrow array. Otherwise
/// calls `look_up` and returns a numpy array.
pub fn contains_many<'py>(
    keys: &Bound<'py, PyAny>,
    seed: u64,
    kinds: &Kinds,
    nulls: Option<bool>,
    look_up: impl Fn(&[u64], &mut [bool]) + Send,
    look_up_bits: impl Fn(&[u64], &mut [u8]) + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    if !keys::are_arrow(keys)? {
        let mut bools = Bools { look_up, found: Vec::new(), null: nulls.unwrap_or(false) };
        kinds.check_lookup(keys::read(keys, seed, &mut bools)?)?;
        return Ok(PyArray1::from_vec(py, bools.found).into_any());
    }
    let pyarrow = Pyarrow::get(py)?;
    let mut bits = Bits { look_up: look_up_bits, len: 0, found: Vec::new(), valid: Vec::new(), nulls };
    kinds.check_lookup(keys::read(keys, seed, &mut bits)?)?;
    let buffer = |bits: &[u8]| {
        let bytes = PyBytes::new_with(py, bits.len(), |bytes| {
            bytes.copy_from_slice(bits);
            Ok(())
        })?;
        pyarrow.py_buffer.bind(py).call1((bytes,))
    };
    let valid = if bits.valid.is_empty() { None } else { Some(buffer(&bits.valid)?) };
    let buffers = [valid, Some(buffer(&bits.found)?)];
    pyarrow.from_buffers.bind(py).call1((&pyarrow.bool_, bits.len, buffers))
}

/// The parts of pyarrow that make answers, kept because each import costs as much time as thousands of lookups.
struct Pyarrow {
    py_buffer: Py<PyAny>,
    from_buffers: Py<PyAny>,
    bool_: Py<PyAny>,
}

impl Pyarrow {
    fn get(py: Python<'_>) -> PyResult<&Self> {
        static PYARROW: PyOnceLock<Pyarrow> = PyOnceLock::new();
        PYARROW.get_or_try_init(py, || {
            let pyarrow = py.import("pyarrow").map_err(|error| {
                let text =
                    "the answers for Arrow data need pyarrow: install pyarrow, or convert the keys to numpy";
                if error.is_instance_of::<PyImportError>(py) { PyImportError::new_err(text) } else { error }
            })?;
            Ok(Self {
                py_buffer: pyarrow.getattr("py_buffer")?.unbind(),
                from_buffers: pyarrow.getattr("BooleanArray")?.getattr("from_buffers")?.unbind(),
                bool_: pyarrow.call_method0("bool_")?.unbind(),
            })
        })
    }
}

/// A bool for each key.
struct Bools<F> {
    look_up: F,
    found: Vec<bool>,
    /// The answer for null.
    null: bool,
}

impl<F: Fn(&[u64], &mut [bool]) + Send> Sink for Bools<F> {
    fn reserve(&mut self, additional: usize) -> PyResult<()> {
        self.found.try_reserve(additional).map_err(|_| no_room(self.found.len() + additional))
    }

    fn take(&mut self, Batch { hashes, nulls, .. }: &mut Batch) -> PyResult<()> {
        let before = self.found.len();
        self.reserve(hashes.len())?;
        self.found.resize(before + hashes.len(), false);
        (self.look_up)(hashes, &mut self.found[before..]);
        for null in nulls {
            self.found[before + *null] = self.null;
        }
        Ok(())
    }
}

/// A bit for each key, as in Arrow's bitmaps.
struct Bits<F> {
    look_up: F,
    len: usize,
    found: Vec<u8>,
    /// The bits of keys that are not null. Empty as long as no key is null, or if `nulls` is the answer for nulls.
    valid: Vec<u8>,
    nulls: Option<bool>,
}

impl<F: Fn(&[u64], &mut [u8]) + Send> Sink for Bits<F> {
    fn reserve(&mut self, additional: usize) -> PyResult<()> {
        // One byte more, because `take` appends whole bytes before it shifts them.
        let bytes = (self.len + additional) / 8 + 2;
        self.found.try_reserve(bytes - self.found.len()).map_err(|_| no_room(bytes))
    }

    fn take(&mut self, Batch { hashes, nulls, .. }: &mut Batch) -> PyResult<()> {
        let (start, bytes) = (self.len, self.found.len());
        self.reserve(hashes.len())?;
        self.len += hashes.len();
        self.found.resize(bytes + hashes.len().div_ceil(8), 0);
        (self.look_up)(hashes, &mut self.found[bytes..]);
        let shift = start % 8;
        if shift > 0 {
            // The previous chunk ended within a byte.
            for i in bytes..self.found.len() {
                let byte = self.found[i];
                self.found[i - 1] |= byte << shift;
                self.found[i] = byte >> (8 - shift);
            }
        }
        self.found.truncate(self.len.div_ceil(8));
        let masked = self.nulls.is_none() && !(nulls.is_empty() && self.valid.is_empty());
        if masked {
            let bytes = self.found.len();
            self.valid.try_reserve(bytes - self.valid.len()).map_err(|_| no_room(bytes))?;
            self.valid.resize(bytes, !0);
        }
        for null in nulls.iter().map(|null| start + *null) {
            // The bit of a null is set, so that a caller that ignores the mask loses no row.
            set(&mut self.found, null, self.nulls.unwrap_or(true));
            if masked {
                set(&mut self.valid, null, false);
            }
        }
        Ok(())
    }
}

fn set(bitmap: &mut [u8], i: usize, bit: bool) {
    bitmap[i / 8] = bitmap[i / 8] & !(1 << (i % 8)) | u8::from(bit) << (i % 8);
}
