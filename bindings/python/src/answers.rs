//! Lookups and inserts of many keys, answered as numpy or Arrow arrays.
#![forbid(unsafe_code)]

use bloomline::Error;
use numpy::PyArray1;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;

use crate::column::{Batch, Sink};
use crate::errors::{no_room, not_grown};
use crate::keys;
use crate::kinds::Kinds;

/// Looks up all keys, by `look_up_bits` if the type of `keys` is Arrow's.
pub fn contains_many<'py>(
    keys: &Bound<'py, PyAny>,
    seed: u64,
    kinds: &Kinds,
    nulls: Option<bool>,
    look_up: impl Fn(&[u64], &mut [bool]) + Send,
    look_up_bits: impl Fn(&[u64], &mut [u8]) + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let (found, asked) = if keys::are_arrow(keys)? {
        in_arrow(keys, seed, nulls, move |batch, found| {
            look_up_bits(&batch.hashes, found);
            Ok(())
        })
    } else {
        in_numpy(keys, seed, nulls, move |batch, found| {
            look_up(&batch.hashes, found);
            Ok(())
        })
    }?;
    kinds.check_lookup(asked)?;
    Ok(found)
}

/// Inserts all keys that are not null, and returns which of them were new, and their kinds. `insert` is called with
/// hashes, their kinds and the places of their answers.
pub fn add_many<'py>(
    keys: &Bound<'py, PyAny>,
    seed: u64,
    nulls: Option<bool>,
    mut insert: impl FnMut(&[u64], u8, &mut [bool]) -> Result<(), Error> + Send,
) -> PyResult<(Bound<'py, PyAny>, u8)> {
    let mut insert = |Batch { hashes, nulls, kinds, .. }: &mut Batch, new: &mut [bool]| {
        // The keys keep their order, because a key that repeats an earlier one is not new.
        let n = hashes.len();
        let after = |i: usize| nulls[i] + 1..nulls.get(i + 1).map_or(n, |null| *null);
        for (i, &null) in nulls.iter().enumerate() {
            hashes.copy_within(after(i), null - i);
        }
        hashes.truncate(n - nulls.len());
        insert(hashes, *kinds, &mut new[..hashes.len()]).map_err(not_grown)?;
        for i in (0..nulls.len()).rev() {
            let keys = after(i);
            new.copy_within(keys.start - i - 1..keys.end - i - 1, keys.start);
        }
        Ok(())
    };
    if !keys::are_arrow(keys)? {
        return in_numpy(keys, seed, nulls, insert);
    }
    let mut new = Vec::new();
    in_arrow(keys, seed, nulls, |batch, bits| {
        let n = batch.hashes.len();
        new.clear();
        new.resize(n.next_multiple_of(8), false);
        insert(batch, &mut new[..n])?;
        for (byte, new) in bits.iter_mut().zip(new.as_chunks::<8>().0) {
            *byte = new.iter().rev().fold(0, |byte, &new| byte << 1 | u8::from(new));
        }
        Ok(())
    })
}

/// A numpy array of the answers that `answer` writes, and the kinds of the keys.
fn in_numpy<'py>(
    keys: &Bound<'py, PyAny>,
    seed: u64,
    nulls: Option<bool>,
    answer: impl FnMut(&mut Batch, &mut [bool]) -> PyResult<()> + Send,
) -> PyResult<(Bound<'py, PyAny>, u8)> {
    let mut bools = Bools { answer, answers: Vec::new(), null: nulls.unwrap_or(false) };
    let kinds = keys::read(keys, seed, &mut bools)?;
    Ok((PyArray1::from_vec(keys.py(), bools.answers).into_any(), kinds))
}

/// [`in_numpy`] as a pyarrow array. `answer` writes a bitmap.
fn in_arrow<'py>(
    keys: &Bound<'py, PyAny>,
    seed: u64,
    nulls: Option<bool>,
    answer: impl FnMut(&mut Batch, &mut [u8]) -> PyResult<()> + Send,
) -> PyResult<(Bound<'py, PyAny>, u8)> {
    let py = keys.py();
    let pyarrow = Pyarrow::get(py)?;
    let mut bits = Bits { answer, len: 0, answers: Vec::new(), valid: Vec::new(), nulls };
    let kinds = keys::read(keys, seed, &mut bits)?;
    let buffer = |bits: &[u8]| {
        let bytes = PyBytes::new_with(py, bits.len(), |bytes| {
            bytes.copy_from_slice(bits);
            Ok(())
        })?;
        pyarrow.py_buffer.bind(py).call1((bytes,))
    };
    let valid = if bits.valid.is_empty() { None } else { Some(buffer(&bits.valid)?) };
    let buffers = [valid, Some(buffer(&bits.answers)?)];
    Ok((pyarrow.from_buffers.bind(py).call1((&pyarrow.bool_, bits.len, buffers))?, kinds))
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
    answer: F,
    answers: Vec<bool>,
    /// The answer for null.
    null: bool,
}

impl<F: FnMut(&mut Batch, &mut [bool]) -> PyResult<()> + Send> Sink for Bools<F> {
    fn reserve(&mut self, additional: usize) -> PyResult<()> {
        self.answers.try_reserve(additional).map_err(|_| no_room(self.answers.len() + additional))
    }

    fn take(&mut self, batch: &mut Batch) -> PyResult<()> {
        let before = self.answers.len();
        self.reserve(batch.hashes.len())?;
        self.answers.resize(before + batch.hashes.len(), false);
        (self.answer)(batch, &mut self.answers[before..])?;
        for null in &batch.nulls {
            self.answers[before + *null] = self.null;
        }
        Ok(())
    }
}

/// A bit for each key, as in Arrow's bitmaps.
struct Bits<F> {
    answer: F,
    len: usize,
    answers: Vec<u8>,
    /// The bits of keys that are not null. Empty as long as no key is null, or if `nulls` is the answer for nulls.
    valid: Vec<u8>,
    nulls: Option<bool>,
}

impl<F: FnMut(&mut Batch, &mut [u8]) -> PyResult<()> + Send> Sink for Bits<F> {
    fn reserve(&mut self, additional: usize) -> PyResult<()> {
        // One byte more, because `take` appends whole bytes before it shifts them.
        let bytes = (self.len + additional) / 8 + 2;
        self.answers.try_reserve(bytes - self.answers.len()).map_err(|_| no_room(bytes))
    }

    fn take(&mut self, batch: &mut Batch) -> PyResult<()> {
        let (start, bytes, n) = (self.len, self.answers.len(), batch.hashes.len());
        self.reserve(n)?;
        self.len += n;
        self.answers.resize(bytes + n.div_ceil(8), 0);
        (self.answer)(batch, &mut self.answers[bytes..])?;
        let shift = start % 8;
        if shift > 0 {
            // The previous chunk ended within a byte.
            for i in bytes..self.answers.len() {
                let byte = self.answers[i];
                self.answers[i - 1] |= byte << shift;
                self.answers[i] = byte >> (8 - shift);
            }
        }
        self.answers.truncate(self.len.div_ceil(8));
        let masked = self.nulls.is_none() && !(batch.nulls.is_empty() && self.valid.is_empty());
        if masked {
            let bytes = self.answers.len();
            self.valid.try_reserve(bytes - self.valid.len()).map_err(|_| no_room(bytes))?;
            self.valid.resize(bytes, !0);
        }
        for null in batch.nulls.iter().map(|null| start + *null) {
            // The bit of a null is set, so that a caller that ignores the mask loses no row.
            set(&mut self.answers, null, self.nulls.unwrap_or(true));
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
