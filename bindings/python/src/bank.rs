//! The class `FilterBank`.
#![forbid(unsafe_code)]

use std::mem;
use std::path::PathBuf;
use std::ptr;

use bloomline::bank::{self, SlotBitmap};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};

use crate::arguments::{self, additional, mmap, packed, path, verify};
use crate::column::{self, Batch, Hashes, Signals, Sink};
use crate::errors::{bank_error, class_of, no_room};
use crate::filters::{BloomFilter, Source, check_memory, with_filters};
use crate::input::{Input, input};
use crate::kinds::{Kinds, UNKNOWN};
use crate::lock::Lock;
use crate::{files, keys};

/// Bytes of answers that `find_many` writes between checks for Ctrl-C.
const AT_ONCE: usize = 1 << 22;

/// Many filters stored side by side, so that one lookup finds which of them possibly have a key.
///
/// filters: BloomFilters or BloomViews, at least one, best made with the same expected_keys, fpr and seed. If sizes
/// differ, filters are folded to the n_blocks of the smallest, which must divide their n_blocks. All must have the same
/// k and seed, and one module, so pass most_modules=1 for rates below 0.05%. capacity: room for at least this many
/// slots. `reserve` makes more.
///
///     >>> from bloomline import BloomFilter, FilterBank
///     >>> tables = [BloomFilter(1_000) for _ in range(3)]
///     >>> tables[0].update(["ant", "bee"])
///     >>> tables[2].update(["bee", "cat"])
///     >>> bank = FilterBank(tables)
///     >>> bank.find("bee").tolist()
///     [0, 2]
///     >>> bank.find_many(["ant", "dog"]).tolist()
///     [[True, False, False], [False, False, False]]
///
/// Each filter has a slot, numbered from 0. The bank copies the filters' bits, so after you change a filter, call
/// `replace`. Needs as much memory as 8, 16, 32 or a multiple of 64 filters.
#[pyclass(frozen, weakref, module = "bloomline")]
pub struct FilterBank {
    bank: Lock<bank::FilterBank>,
    /// The bank's seed, which never changes.
    seed: u64,
    /// The kinds of the keys of all filters together.
    kinds: Kinds,
}

/// A filter of which `what` is made.
pub fn source(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Source> {
    object.extract().map_err(|_| {
        let (classes, class) = (Source::CLASSES, class_of(object));
        PyTypeError::new_err(format!("{what} is made of {classes} objects, not {class}"))
    })
}

/// The hashes of keys, and memory for their answers.
struct Asked {
    slots: usize,
    packed: bool,
    rows: Vec<u8>,
    hashes: Hashes,
}

impl Asked {
    /// Bytes of the answers for a key, one for each slot, or one for eight slots if packed.
    fn row_len(&self) -> usize {
        if self.packed { self.slots.div_ceil(8) } else { self.slots }
    }
}

impl Sink for Asked {
    /// Allocates before the first key is hashed, so that a lack of memory shows at once.
    fn reserve(&mut self, additional: usize) -> PyResult<()> {
        let bytes = self.hashes.0.len().saturating_add(additional).saturating_mul(self.row_len());
        self.rows.try_reserve_exact(bytes).map_err(|_| no_room(bytes))?;
        self.hashes.reserve(additional)
    }

    fn take(&mut self, batch: &mut Batch) -> PyResult<()> {
        self.hashes.take(batch)
    }
}

/// A bank of the filters, with room for `capacity` slots if there are fewer filters.
fn bank_of(filters: &[bloomline::BloomView], capacity: usize) -> Result<bank::FilterBank, bloomline::Error> {
    let mut bank = bank::FilterBank::from_filters(filters)?;
    bank.try_reserve(capacity.saturating_sub(filters.len()))?;
    Ok(bank)
}

impl FilterBank {
    fn new_with(bank: bank::FilterBank, kinds: u8) -> Self {
        Self { seed: bank.as_view().seed(), bank: Lock::new(bank), kinds: Kinds::new(kinds) }
    }

    /// A row of answers for each key.
    fn rows_of(&self, asked: &mut Asked) -> PyResult<Vec<u8>> {
        // Filters may have been pushed since.
        asked.slots = self.bank.read().as_view().slots();
        asked.reserve(0)?;
        let (slots, row_len, mut rows) = (asked.slots, asked.row_len(), mem::take(&mut asked.rows));
        let mut signals = Signals::new();
        for hashes in asked.hashes.0.chunks((AT_ONCE / row_len.max(1)).clamp(1, column::BATCH)) {
            let start = rows.len();
            rows.resize(start + hashes.len() * row_len, 0);
            // Unlocked between batches, so that a signal handler may use the bank. Ignores filters that are pushed
            // meanwhile.
            self.bank.read().as_view().find_batch(hashes, |i, found| {
                let row = &mut rows[start + i * row_len..][..row_len];
                if asked.packed {
                    for (bytes, word) in row.chunks_mut(8).zip(found.as_words()) {
                        bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
                    }
                    if let Some(last) = row.last_mut() {
                        *last &= !0 >> (slots.wrapping_neg() % 8);
                    }
                } else {
                    found.iter().take_while(|slot| *slot < slots).for_each(|slot| row[slot] = 1);
                }
            });
            signals.check()?;
        }
        Ok(rows)
    }

    fn standalone(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        self.bank
            .detached(py, |bank| files::encode(bank.standalone_len(), |bytes| bank.write_standalone(bytes)))
    }

    fn slot(&self, slot: &Bound<'_, PyAny>) -> PyResult<usize> {
        let slots = self.__len__(slot.py());
        match arguments::read("slot", "an integer", slot) {
            Ok(number) if number < slots => Ok(number),
            Err(error) if !error.is_instance_of::<PyValueError>(slot.py()) => Err(error),
            _ => Err(PyIndexError::new_err(format!("slot {slot} does not exist: the bank has {slots}"))),
        }
    }
}

#[pymethods]
impl FilterBank {
    #[new]
    #[pyo3(signature = (filters, capacity=None))]
    fn new(filters: &Bound<'_, PyAny>, capacity: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let capacity = capacity.map_or(Ok(0), arguments::capacity)?;
        let sources = arguments::filters(filters, Source::CLASSES)?
            .map(|filter| source(&filter?, "a bank"))
            .collect::<PyResult<Vec<_>>>()?;
        with_filters(filters.py(), &sources, true, |filters, kinds| {
            Ok(Self::new_with(bank_of(filters, capacity).map_err(bank_error)?, kinds))
        })
    }

    /// Finds the slots that possibly have a key (str, bytes or int), and returns their numbers in a numpy array,
    /// ascending. Raises TypeError for text if all filters have only integers, and the reverse.
    fn find<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<isize>>> {
        let (hash, kind) = keys::hash(key, self.seed)?;
        self.kinds.check_lookup(kind)?;
        let slots = self.bank.quickly(key.py(), |bank| {
            let mut found = SlotBitmap::new();
            bank.as_view().find_hash(hash, &mut found);
            found.iter().map(|slot| slot as isize).collect()
        });
        Ok(PyArray1::from_vec(key.py(), slots))
    }

    /// Looks up many keys, given as for `BloomFilter.update`. Returns a numpy array of bools, with a row for each key
    /// and a column for each slot. Nulls raise TypeError.
    ///
    /// packed: with True, returns bits in an array of uint8, as np.packbits(..., axis=1, bitorder="little") does. This
    /// is faster and needs an eighth of the memory.
    #[pyo3(signature = (keys, *, packed=false))]
    fn find_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = packed)] packed: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = keys.py();
        let slots = self.__len__(py);
        let mut asked = Asked { slots, packed, rows: Vec::new(), hashes: Hashes::default() };
        self.kinds.check_lookup(keys::read(keys, self.seed, &mut asked)?)?;
        let rows = py.detach(|| self.rows_of(&mut asked))?;
        let rows = PyArray1::from_vec(py, rows).reshape([asked.hashes.0.len(), asked.row_len()])?.into_any();
        if packed { Ok(rows) } else { rows.call_method1("view", ("?",)) }
    }

    /// Adds a BloomFilter or BloomView, folded to the bank's n_blocks, and returns its slot. A filter of 64 KiB costs a
    /// few milliseconds. Raises ValueError if the bank is full, so `reserve` first.
    fn push(&self, filter: &Bound<'_, PyAny>) -> PyResult<usize> {
        let writer = self.bank.writer(filter.py());
        with_filters(filter.py(), &[source(filter, "a bank")?], true, |filters, kinds| {
            let mut bank = writer.write();
            let slot = bank.push_all(filters).map_err(bank_error)?.start;
            self.kinds.insert(kinds);
            Ok(slot)
        })
    }

    /// Replaces a slot's filter by a BloomFilter or BloomView, folded to the bank's n_blocks.
    fn replace(&self, slot: &Bound<'_, PyAny>, filter: &Bound<'_, PyAny>) -> PyResult<()> {
        let slot = self.slot(slot)?;
        let writer = self.bank.writer(filter.py());
        with_filters(filter.py(), &[source(filter, "a bank")?], true, |filters, kinds| {
            let mut bank = writer.write();
            bank.replace(slot, filters[0]).map_err(bank_error)?;
            self.kinds.insert(kinds);
            Ok(())
        })
    }

    /// Removes all keys of a slot. The slot stays, with an empty filter.
    fn clear(&self, slot: &Bound<'_, PyAny>) -> PyResult<()> {
        let n = self.slot(slot)?;
        self.bank.detached_mut(slot.py(), |bank| bank.clear_slot(n)).map_err(bank_error)
    }

    /// Copies the filter of a slot, bit for bit as it was put in or folded. Reads the whole bank.
    fn get(&self, slot: &Bound<'_, PyAny>) -> PyResult<BloomFilter> {
        let n = self.slot(slot)?;
        self.bank.detached(slot.py(), |bank| {
            let filter = bank.as_view().to_filter(n).map_err(bank_error)?;
            let kinds = if filter.fill_ratio() == 0.0 { 0 } else { self.kinds.get() };
            Ok(BloomFilter::new_with(filter, None, kinds))
        })
    }

    /// Makes room for `additional` more slots. Copies the bank, unless it has enough room.
    fn reserve(&self, py: Python<'_>, #[pyo3(from_py_with = additional)] additional: usize) -> PyResult<()> {
        self.bank.detached_mut(py, |bank| bank.try_reserve(additional)).map_err(bank_error)
    }

    /// Number of slots.
    fn __len__(&self, py: Python<'_>) -> usize {
        self.bank.quickly(py, |bank| bank.as_view().slots())
    }

    /// Number of slots that the bank has room for.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> usize {
        self.bank.quickly(py, bank::FilterBank::capacity)
    }

    /// Number of blocks of 64 bytes of each filter.
    #[getter]
    fn n_blocks(&self, py: Python<'_>) -> usize {
        self.bank.quickly(py, |bank| bank.as_view().sizing().n_blocks())
    }

    /// Probes per key, 1 to 16.
    #[getter]
    fn k(&self, py: Python<'_>) -> u32 {
        self.bank.quickly(py, |bank| bank.as_view().sizing().k())
    }

    /// The seed that keys are hashed with.
    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }

    /// Bytes of memory.
    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> usize {
        self.bank.quickly(py, |bank| bank.as_view().byte_len())
    }

    /// Copies the bank, with the same filters and capacity.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        check_memory(self.size_bytes(py))?;
        Ok(self.bank.detached(py, |bank| Self::new_with(bank.clone(), self.kinds.get())))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __sizeof__(&self, py: Python<'_>) -> usize {
        size_of::<Self>() + self.size_bytes(py)
    }

    /// Returns the bytes that `save` writes, with checksums. Rust and the command line read them too.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        files::python_bytes(py, &self.standalone(py)?)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
        let other = other.get();
        let equal = ptr::eq(self, other) || self.standalone(py)? == other.standalone(py)?;
        Ok(equal.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    /// Returns the bank in the bytes of `to_bytes`, without spare slots. Raises DecodeError if they are damaged.
    #[staticmethod]
    fn from_bytes(buffer: &Bound<'_, PyAny>) -> PyResult<Self> {
        let bank = files::decode(buffer, bank::FilterBank::from_standalone)?;
        Ok(Self::new_with(bank, UNKNOWN))
    }

    #[staticmethod]
    fn _restore(bytes: &Bound<'_, PyAny>, kinds: u8) -> PyResult<Self> {
        Ok(Self { kinds: Kinds::new(kinds), ..Self::from_bytes(bytes)? })
    }

    /// Writes the bytes of `to_bytes` to a file, which appears whole or not at all. Raises OSError.
    fn save(&self, py: Python<'_>, #[pyo3(from_py_with = path)] path: PathBuf) -> PyResult<()> {
        files::save(py, &path, |file| self.bank.read().write_standalone(file))
    }

    /// Reads and verifies a file that `save` wrote. Never maps it. Raises DecodeError and OSError.
    #[staticmethod]
    #[pyo3(signature = (path, mmap=true, *, verify=true))]
    pub fn open(
        py: Python<'_>,
        #[pyo3(from_py_with = input)] path: Input,
        #[pyo3(from_py_with = mmap)] mmap: bool,
        #[pyo3(from_py_with = verify)] verify: bool,
    ) -> PyResult<Self> {
        let bank = files::read(py, &path, mmap, verify, bank::FilterBank::from_standalone)?;
        Ok(Self::new_with(bank, UNKNOWN))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let bytes = self.to_bytes(py)?;
        (PyType::new::<Self>(py).getattr("_restore")?, (bytes, self.kinds.get())).into_pyobject(py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        self.bank.quickly(py, |bank| {
            let (view, capacity, seed) = (bank.as_view(), bank.capacity(), self.seed);
            let (slots, size, k) = (view.slots(), view.sizing().n_blocks(), view.sizing().k());
            format!("FilterBank(slots={slots}, capacity={capacity}, n_blocks={size}, k={k}, seed={seed})")
        })
    }
}
