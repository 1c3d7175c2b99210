//! The classes of filters that own their memory.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use bloomline::sizing::standard::StandardSizing;
use bloomline::{Error, KeyEstimate, Sizing, variants};
use numpy::PyArray1;
use pyo3::PyClass;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::{PyBytes, PyType};

use crate::arguments::{
    self, bits_per_key, expected_keys, factor, fpr, initial_capacity, mmap, most_modules, nulls, path, seed,
    verify,
};
use crate::borrowed::{BloomView, view_of};
use crate::column::{Hashes, Inserts};
use crate::errors::{COPY, build_error, class_of, copy_error, mismatch_error, not_grown, out_of_memory};
use crate::input::{Input, input};
use crate::kinds::{Kinds, UNKNOWN};
use crate::lock::{Lock, Read};
use crate::{answers, files, keys};

/// The scalable filter's fallible inserts, for filters whose inserts do not allocate.
trait TryInsert {
    fn try_insert_hash(&mut self, hash: u64) -> Result<bool, Error>;
    fn try_insert_batch(&mut self, hashes: &[u64], each: fn(bool)) -> Result<(), Error>;
    /// Sets `new[i]` to whether the key of `hashes[i]` is new.
    fn try_insert_batch_new(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<(), Error> {
        for (new, &hash) in new.iter_mut().zip(hashes) {
            *new = self.try_insert_hash(hash)?;
        }
        Ok(())
    }
}

macro_rules! try_insert {
    ($($Filter:ty $(: $insert_batch_new:ident)?),*) => {$(
        impl TryInsert for $Filter {
            fn try_insert_hash(&mut self, hash: u64) -> Result<bool, Error> {
                Ok(self.insert_hash(hash))
            }

            fn try_insert_batch(&mut self, hashes: &[u64], _: fn(bool)) -> Result<(), Error> {
                self.insert_batch(hashes);
                Ok(())
            }

            $(
                fn try_insert_batch_new(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<(), Error> {
                    self.$insert_batch_new(hashes, new);
                    Ok(())
                }
            )?
        }
    )*};
}
try_insert!(
    bloomline::BloomFilter: insert_batch_new,
    variants::CountingBloomFilter: insert_batch_new,
    variants::StandardBloomFilter
);

impl TryInsert for variants::ScalableBloomFilter {
    fn try_insert_hash(&mut self, hash: u64) -> Result<bool, Error> {
        self.try_insert_hash(hash)
    }

    fn try_insert_batch(&mut self, hashes: &[u64], each: fn(bool)) -> Result<(), Error> {
        self.try_insert_batch(hashes, each)
    }

    fn try_insert_batch_new(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<(), Error> {
        let mut new = new.iter_mut();
        self.try_insert_batch(hashes, |is_new| new.next().into_iter().for_each(|new| *new = is_new))
    }
}

/// Fails if there is not enough memory for a copy, because `Clone` would end the process.
pub fn check_memory(bytes: usize) -> PyResult<()> {
    let allocated = std::hint::black_box(&mut Vec::<u8>::new()).try_reserve_exact(bytes);
    allocated.map_err(|_| out_of_memory(bytes, COPY))
}

/// The expected keys and the requested rate, if the filter was made for one. A scalable filter stores its rate itself.
type MadeFor = (Option<usize>, Option<f64>);

/// What a pickled filter has: bytes, expected keys, kinds of keys and false-positive rate.
type Restored<'py> = (Bound<'py, PyBytes>, Option<usize>, u8, Option<f64>);

/// A class over one of the crate's filters, with what all classes have in common and `$own` methods. `$bits` returns a
/// counting filter's bits, where other filters have the methods themselves. `opened by read_file` adds `open`, unless the
/// class has its own.
macro_rules! filter_class {
    (
        $(#[$doc:meta])*
        $Class:ident over $Filter:ty $(, read by $bits:ident)? $(, opened by $read_file:ident)?, { $($own:tt)* }
    ) => {
        $(#[$doc])*
        #[pyclass(frozen, weakref, module = "bloomline")]
        pub struct $Class {
            filter: Lock<$Filter>,
            /// The filter's seed, which never changes.
            seed: u64,
            /// Changes if the filter grows in a union.
            made_for: Mutex<MadeFor>,
            pub kinds: Kinds,
        }

        impl $Class {
            pub fn new_with(filter: $Filter, expected_keys: Option<usize>, kinds: u8) -> Self {
                Self::new_for(filter, expected_keys, None, kinds)
            }

            pub fn new_for(filter: $Filter, expected_keys: Option<usize>, fpr: Option<f64>, kinds: u8) -> Self {
                let (seed, made_for) = (filter$(.$bits())?.seed(), Mutex::new((expected_keys, fpr)));
                Self { seed, filter: Lock::new(filter), made_for, kinds: Kinds::new(kinds) }
            }

            fn made_for(&self) -> MadeFor {
                *self.made_for.lock().unwrap_or_else(PoisonError::into_inner)
            }

            fn read_file(py: Python<'_>, path: Input, mmap: bool, verify: bool) -> PyResult<Self> {
                let filter = files::read(py, &path, mmap, verify, <$Filter>::from_standalone)?;
                Ok(Self::new_with(filter, None, UNKNOWN))
            }

            pub fn read(&self) -> Read<'_, $Filter> {
                self.filter.read()
            }
        }

        #[pymethods]
        impl $Class {
            $($own)*

            $(
                /// Reads and verifies a file that `save` wrote. Never maps it. Raises DecodeError and OSError.
                #[staticmethod]
                #[pyo3(signature = (path, mmap=true, *, verify=true))]
                pub fn open(
                    py: Python<'_>,
                    #[pyo3(from_py_with = input)] path: Input,
                    #[pyo3(from_py_with = mmap)] mmap: bool,
                    #[pyo3(from_py_with = verify)] verify: bool,
                ) -> PyResult<Self> {
                    Self::$read_file(py, path, mmap, verify)
                }
            )?

            /// Adds a key (str, bytes or int). Returns True if the key is new, False if it was possibly present.
            fn add(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                let (hash, kind) = keys::hash(key, self.seed)?;
                Kinds::warn_of_added(key.py(), self.kinds.get(), kind)?;
                let inserted = self.filter.quickly_mut(key.py(), |filter| {
                    self.kinds.insert(kind);
                    filter.try_insert_hash(hash)
                });
                inserted.map_err(not_grown)
            }

            /// Adds many keys, given as an iterable of str, bytes and int, a numpy array of integers, S or U, or a
            /// column of integers, text or binary values (pandas, polars, pyarrow, DuckDB). Skips nulls.
            fn update(&self, keys: &Bound<'_, PyAny>) -> PyResult<()> {
                let before = self.kinds.get();
                let writer = self.filter.writer(keys.py());
                let mut inserts = Inserts(|hashes: &[u64], kinds| {
                    let mut filter = writer.write();
                    self.kinds.insert(kinds);
                    filter.try_insert_batch(hashes, |_| ())
                });
                let added = keys::read(keys, self.seed, &mut inserts)?;
                Kinds::warn_of_added(keys.py(), before, added)
            }

            /// Adds many keys, given as for `update`, and returns which of them were new, as `add` does for each. A key
            /// that repeats an earlier one is not new. The answers have the type that `contains_many` returns.
            ///
            /// nulls: the answer for nulls, which are not added. The default is False in numpy and null in Arrow.
            #[pyo3(signature = (keys, *, nulls=None))]
            fn add_many<'py>(
                &self,
                keys: &Bound<'py, PyAny>,
                #[pyo3(from_py_with = nulls)] nulls: Option<bool>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let before = self.kinds.get();
                let writer = self.filter.writer(keys.py());
                let (new, added) = answers::add_many(keys, self.seed, nulls, |hashes, kinds, new| {
                    let mut filter = writer.write();
                    self.kinds.insert(kinds);
                    filter.try_insert_batch_new(hashes, new)
                })?;
                Kinds::warn_of_added(keys.py(), before, added)?;
                Ok(new)
            }

            /// Whether a key is possibly present. False means definitely absent. Raises TypeError for text if the
            /// filter has only integers, and for integers if it has only text.
            fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                let (hash, kind) = keys::hash(key, self.seed)?;
                self.kinds.check_lookup(kind)?;
                Ok(self.filter.quickly(key.py(), |filter| filter.contains_hash(hash)))
            }

            /// Looks up many keys, given as for `update`. Returns a numpy array of bools, or a pyarrow.BooleanArray for
            /// pyarrow, DuckDB and other Arrow data, but not for pandas and polars.
            ///
            /// nulls: the answer for nulls. The default is False in numpy and null in Arrow.
            ///
            /// Raises TypeError if the filter has only integers and all keys are text, or the reverse, as all lookups
            /// do.
            #[pyo3(signature = (keys, *, nulls=None))]
            fn contains_many<'py>(
                &self,
                keys: &Bound<'py, PyAny>,
                #[pyo3(from_py_with = nulls)] nulls: Option<bool>,
            ) -> PyResult<Bound<'py, PyAny>> {
                answers::contains_many(
                    keys,
                    self.seed,
                    &self.kinds,
                    nulls,
                    |hashes, found| self.read()$(.$bits())?.contains_batch(hashes, found),
                    |hashes, found| self.read()$(.$bits())?.contains_bitmap(hashes, found),
                )
            }

            /// Returns the false-positive rate of the current bits. Reads the whole filter.
            fn estimated_fpr(&self, py: Python<'_>) -> f64 {
                self.filter.detached(py, |filter| filter$(.$bits())?.estimated_fpr())
            }

            /// Removes all keys.
            fn clear(&self, py: Python<'_>) {
                self.filter.detached_mut(py, |filter| {
                    filter.clear();
                    self.kinds.set(0);
                });
            }

            /// Copies the filter, with its keys, size and seed.
            fn copy(&self, py: Python<'_>) -> PyResult<Self> {
                check_memory(self.size_bytes(py))?;
                let (filter, (keys, fpr), kinds) =
                    self.filter.detached(py, |filter| (filter.clone(), self.made_for(), self.kinds.get()));
                Ok(Self::new_for(filter, keys, fpr, kinds))
            }

            fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
                self.copy(py)
            }

            fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
                self.copy(py)
            }

            fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                let py = other.py();
                let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
                let other = other.get();
                let equal = std::ptr::eq(self, other) || py.detach(|| {
                    let (first, second) = if std::ptr::from_ref(self) < other { (self, other) } else { (other, self) };
                    *first.read() == *second.read()
                });
                Ok(equal.into_pyobject(py)?.to_owned().into_any().unbind())
            }

            /// The seed that keys are hashed with.
            #[getter]
            fn seed(&self) -> u64 {
                self.seed
            }

            /// Bytes of memory.
            #[getter]
            fn size_bytes(&self, py: Python<'_>) -> usize {
                self.filter.quickly(py, |filter| filter.byte_len())
            }

            fn __sizeof__(&self, py: Python<'_>) -> usize {
                size_of::<Self>() + self.size_bytes(py)
            }

            /// Returns the bytes that `save` writes, with checksums. Rust and the command line read them too.
            fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                let bytes = self.filter.detached(py, |filter| {
                    files::encode(filter.standalone_len(), |bytes| filter.write_standalone(bytes))
                });
                files::python_bytes(py, &bytes?)
            }

            /// Returns the filter in the bytes of `to_bytes`. Raises DecodeError if they are damaged.
            #[staticmethod]
            fn from_bytes(buffer: &Bound<'_, PyAny>) -> PyResult<Self> {
                Ok(Self::new_with(files::decode(buffer, <$Filter>::from_standalone)?, None, UNKNOWN))
            }

            /// Writes the bytes of `to_bytes` to a file, which appears whole or not at all. Raises OSError.
            fn save(&self, py: Python<'_>, #[pyo3(from_py_with = path)] path: PathBuf) -> PyResult<()> {
                files::save(py, &path, |file| self.read().write_standalone(file))
            }

            #[staticmethod]
            #[pyo3(signature = (bytes, expected_keys, kinds=UNKNOWN, fpr=None))]
            fn _restore(
                bytes: &Bound<'_, PyAny>,
                expected_keys: Option<usize>,
                kinds: u8,
                fpr: Option<f64>,
            ) -> PyResult<Self> {
                Ok(Self {
                    made_for: Mutex::new((expected_keys, fpr)),
                    kinds: Kinds::new(kinds),
                    ..Self::from_bytes(bytes)?
                })
            }

            fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Restored<'py>)> {
                let restore = PyType::new::<Self>(py).getattr("_restore")?;
                let (kinds, (expected_keys, fpr)) = (self.kinds.get(), self.made_for());
                let bytes = self.to_bytes(py)?;
                // The kinds before and after, because other threads may have changed the filter in between.
                Ok((restore, (bytes, expected_keys, kinds | self.kinds.get(), fpr)))
            }
        }
    };
}

/// A class over a filter that is made for a number of keys. Its sizes are computed with a keyword for the number of
/// modules, or with the number after `;`.
macro_rules! sized_filter_class {
    (
        $(#[$doc:meta])*
        $Class:ident over $Filter:ty $(, read by $bits:ident)? $(, opened by $read_file:ident)?,
        sized by ($for_fpr:expr, $for_bits_per_key:expr $(, $modules:ident)? $(; $most:expr)?),
        { $($own:tt)* }
    ) => {
        filter_class! {
            $(#[$doc])*
            $Class over $Filter $(, read by $bits)? $(, opened by $read_file)?, {
                #[new]
                #[pyo3(signature = (expected_keys, fpr=0.01, *, $($modules=None,)? seed=0))]
                fn new(
                    #[pyo3(from_py_with = expected_keys)] expected_keys: usize,
                    #[pyo3(from_py_with = fpr)] fpr: f64,
                    $(#[pyo3(from_py_with = $modules)] $modules: Option<usize>,)?
                    #[pyo3(from_py_with = seed)] seed: u64,
                ) -> PyResult<Self> {
                    let sizing = $for_fpr(expected_keys as u64, fpr $(, $modules)? $(, $most)?);
                    let filter = sizing.and_then(<$Filter>::with_sizing);
                    let filter = filter.and_then(|filter| filter.with_seed(seed)).map_err(build_error)?;
                    Ok(Self::new_for(filter, Some(expected_keys), Some(fpr), 0))
                }

                /// Makes a filter of a chosen size instead of a false-positive rate.
                #[staticmethod]
                #[pyo3(signature = (expected_keys, bits_per_key, *, $($modules=None,)? seed=0))]
                fn with_bits_per_key(
                    #[pyo3(from_py_with = expected_keys)] expected_keys: usize,
                    #[pyo3(from_py_with = bits_per_key)] bits_per_key: f64,
                    $(#[pyo3(from_py_with = $modules)] $modules: Option<usize>,)?
                    #[pyo3(from_py_with = seed)] seed: u64,
                ) -> PyResult<Self> {
                    let sizing = $for_bits_per_key(expected_keys as u64, bits_per_key $(, $modules)? $(, $most)?);
                    let filter = sizing.and_then(<$Filter>::with_sizing);
                    let filter = filter.and_then(|filter| filter.with_seed(seed)).map_err(build_error)?;
                    Ok(Self::new_with(filter, Some(expected_keys), 0))
                }

                /// Probes per key.
                #[getter]
                fn k(&self, py: Python<'_>) -> u32 {
                    self.filter.quickly(py, |filter| filter$(.$bits())?.k())
                }

                /// The number of keys that the filter was made for, or None if it was read from bytes.
                #[getter]
                fn expected_keys(&self) -> Option<usize> {
                    self.made_for().0
                }

                /// The false-positive rate that was requested for `expected_keys` keys, or None if bits per key were
                /// given or the filter was read from bytes. `estimated_fpr` returns the rate of the current bits.
                #[getter]
                fn fpr(&self) -> Option<f64> {
                    self.made_for().1
                }

                /// Estimates the number of distinct keys. Returns the estimate and its standard error, both infinite if
                /// the filter is too full. The estimate of an intersection is too high.
                fn estimated_keys(&self, py: Python<'_>) -> (f64, f64) {
                    numbers(self.filter.detached(py, |filter| filter$(.$bits())?.estimated_keys()))
                }

                $($own)*
            }
        }
    };
}

/// A class over a filter that can be united and intersected with `$Other` of its size, and if the crate's filter can, of
/// sizes that divide it or are multiples of it.
macro_rules! combining_filter_class {
    (
        $(#[$doc:meta])*
        $Class:ident over $Filter:ty $(, opened by $read_file:ident)?, sized by $size:tt, combined with $Other:ty,
        { $($own:tt)* }
    ) => {
        sized_filter_class! {
            $(#[$doc])*
            $Class over $Filter $(, opened by $read_file)?, sized by $size, {
                fn __or__(&self, py: Python<'_>, other: $Other) -> PyResult<Self> {
                    self.combined(py, other, Self::unite)
                }

                fn __ior__(&self, py: Python<'_>, other: $Other) -> PyResult<()> {
                    self.unite(py, other.into_filter(py)?.get())
                }

                /// Returns the union of one or more filters. If all have one size, it has the bits of one filter to
                /// which all their keys were added. BloomFilters may have several sizes, of which the union has the
                /// largest, if it is a multiple of the smaller ones.
                #[staticmethod]
                fn union(filters: &Bound<'_, PyAny>) -> PyResult<Self> {
                    let waits = |union: &Self, py: Python<'_>, other: &Self| {
                        let [ours, theirs] = [union, other].map(|it| it.size_bytes(py));
                        !ours.is_multiple_of(theirs) && !theirs.is_multiple_of(ours)
                    };
                    union_of::<Self, $Other>(filters, Self::copy, Self::unite, waits)
                }

                fn __and__(&self, py: Python<'_>, other: $Other) -> PyResult<Self> {
                    self.combined(py, other, Self::intersect)
                }

                fn __iand__(&self, py: Python<'_>, other: $Other) -> PyResult<()> {
                    self.intersect(py, other.into_filter(py)?.get())
                }

                /// Fraction of bits that are set, 0 to 1. Reads the whole filter.
                #[getter]
                fn fill_ratio(&self, py: Python<'_>) -> f64 {
                    self.filter.detached(py, <$Filter>::fill_ratio)
                }

                $($own)*
            }
        }

        impl $Class {
            /// A copy of this filter combined with the other, or if that has a multiple of the blocks, a copy of that.
            fn combined(
                &self,
                py: Python<'_>,
                other: $Other,
                combine: fn(&Self, Python<'_>, &Self) -> PyResult<()>,
            ) -> PyResult<Self> {
                let other = other.into_filter(py)?;
                let [ours, theirs] = [self, other.get()].map(|it| it.filter.quickly(py, <$Filter>::byte_len));
                let (larger, smaller) =
                    if is_multiple(theirs, ours) { (other.get(), self) } else { (self, other.get()) };
                let combined = larger.copy(py)?;
                combine(&combined, py, smaller)?;
                Ok(combined)
            }

            pub fn unite(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
                self.combine(py, other, |ours, theirs| ours.union_with(theirs), Kinds::insert)
            }

            pub fn intersect(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
                self.combine(py, other, |ours, theirs| ours.intersect_with(theirs), Kinds::intersect)
            }

            /// Combines this filter with the other, in the larger of the two sizes.
            fn combine(
                &self,
                py: Python<'_>,
                other: &Self,
                combine: fn(&mut $Filter, &$Filter) -> Result<(), Error>,
                combine_kinds: fn(&Kinds, u8),
            ) -> PyResult<()> {
                self.filter.combine(py, &other.filter, |ours, theirs| {
                    if is_multiple(theirs.byte_len(), ours.byte_len()) {
                        check_memory(theirs.byte_len())?;
                        let mut combined = theirs.clone();
                        combine(&mut combined, ours).map_err(mismatch_error)?;
                        *ours = combined;
                        *self.made_for.lock().unwrap_or_else(PoisonError::into_inner) = other.made_for();
                    } else {
                        combine(ours, theirs).map_err(mismatch_error)?;
                    }
                    combine_kinds(&self.kinds, other.kinds.get());
                    Ok(())
                })
            }
        }
    };
}

combining_filter_class! {
    /// A set of keys that answers "definitely absent" or "possibly present". A lookup reads one cache line.
    ///
    /// expected_keys: number of distinct keys. With more, no key is lost, but the false-positive rate rises.
    /// fpr: the false-positive rate with that many keys. 1% needs 9.9 bits per key. The size is rounded up, by at most
    /// 1% or one block of each module, so that the filter can be folded.
    /// most_modules: the filter is divided into up to this many modules, which must all have a key. By default, it has
    /// one module for rates down to about 0.05%, and two below, which need fewer bits. Pass 1 if most lookups are of
    /// present keys, because these read a cache line of each module, or 4 to save the last percent of memory.
    /// seed: filters with the same seed and size can be combined.
    BloomFilter over bloomline::BloomFilter, sized by (for_fpr, for_bits_per_key, most_modules),
    combined with Source, {
        /// Opens a file that `save` or the command line wrote, by its path or as an open binary file, which is read into
        /// memory.
        ///
        /// mmap: with True, returns a read-only BloomView that maps the file. Truncating the file meanwhile ends the
        /// process with SIGBUS (`save` replaces files instead). With False, returns a BloomFilter, a copy that you can
        /// change.
        /// verify: with True, reads the whole file, and raises DecodeError if it is damaged. With False, for mapped
        /// files that are too large to read, checks only the last 64 bytes. Damaged bits then lose keys without an
        /// error, until you call the view's `verify`.
        #[staticmethod]
        #[pyo3(signature = (path, mmap=true, *, verify=true))]
        pub fn open(
            py: Python<'_>,
            #[pyo3(from_py_with = input)] path: Input,
            #[pyo3(from_py_with = mmap)] mmap: bool,
            #[pyo3(from_py_with = verify)] verify: bool,
        ) -> PyResult<Py<PyAny>> {
            if mmap {
                let view = BloomView::of_file(py, path.owner(py, true)?, verify, path.name())?;
                return Ok(Py::new(py, view)?.into_any());
            }
            Ok(Py::new(py, Self::read_file(py, path, mmap, verify)?)?.into_any())
        }

        /// Divides the size by `factor`, which must divide the number of blocks of each module. The filter is then, bit
        /// for bit, the filter that would have been made in the smaller size.
        fn fold(&self, py: Python<'_>, #[pyo3(from_py_with = factor)] factor: usize) -> PyResult<()> {
            self.filter.detached_mut(py, |filter| filter.fold(factor)).map_err(build_error)
        }

        /// Folds the filter as far as its estimated false-positive rate stays at or below `fpr`.
        fn shrink_to_fpr(&self, py: Python<'_>, #[pyo3(from_py_with = fpr)] fpr: f64) -> PyResult<()> {
            self.filter.detached_mut(py, |filter| filter.shrink_to_fpr(fpr)).map_err(build_error)
        }

        /// Estimates the number of distinct keys that are in this filter or in another BloomFilter or BloomView of its
        /// size. Returns the estimate and its standard error, as `estimated_keys` does.
        fn estimated_union(filter: Py<Self>, other: &Bound<'_, PyAny>) -> PyResult<(f64, f64)> {
            estimate_of_both(Source::Filter(filter), other, |ours, theirs| ours.estimated_union(theirs))
        }

        /// Estimates the number of distinct keys that are in both this filter and another BloomFilter or BloomView of
        /// its size. Returns the estimate and its standard error, as `estimated_keys` does. The error is large if the
        /// two have few keys in common.
        fn estimated_intersection(filter: Py<Self>, other: &Bound<'_, PyAny>) -> PyResult<(f64, f64)> {
            estimate_of_both(Source::Filter(filter), other, |ours, theirs| ours.estimated_intersection(theirs))
        }

        /// Number of blocks of 64 bytes, of all modules.
        #[getter]
        fn n_blocks(&self, py: Python<'_>) -> usize {
            self.filter.quickly(py, |filter| filter.n_blocks())
        }

        /// Number of modules, 1 to 16. All modules must have a key.
        #[getter]
        fn n_modules(&self, py: Python<'_>) -> usize {
            self.filter.quickly(py, |filter| filter.n_modules())
        }

        fn __repr__(&self, py: Python<'_>) -> String {
            let keys = describe(self.made_for().0);
            format!("BloomFilter({keys}{})", shape(self.filter.quickly(py, |filter| filter.sizing()), self.seed))
        }
    }
}

sized_filter_class! {
    /// A Bloom filter that counts, so that keys can be removed. Needs five times the memory of a BloomFilter. There
    /// is no union, which would have to count a key of both filters twice or once. Unite the filters of `to_filter`
    /// instead.
    CountingBloomFilter over variants::CountingBloomFilter, read by as_filter, opened by read_file,
    sized by (for_fpr, for_bits_per_key; Some(1)), {
        /// Removes a key once. Returns False, and changes nothing, if the key is definitely absent. Remove only keys
        /// that were added, because removing any other key may lose keys.
        ///
        /// Counters end at 15. A key whose `count` is 15 stays present until `clear`, although this returns True.
        fn remove(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
            let (hash, kind) = keys::hash(key, self.seed)?;
            self.kinds.check_lookup(kind)?;
            Ok(self.filter.quickly_mut(key.py(), |filter| filter.remove_hash(hash)))
        }

        /// Removes many keys, given as for `update`, and returns a numpy array of which were possibly present, as `remove`
        /// does for each. If it raises an error, as for nulls, no key has been removed.
        fn remove_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<bool>>> {
            // All are read first, because to remove keys again, after an error, could remove those of others.
            let (py, mut hashes) = (keys.py(), Hashes::default());
            self.kinds.check_lookup(keys::read(keys, self.seed, &mut hashes)?)?;
            let removed = self.filter.detached_mut(py, |filter| {
                hashes.0.iter().map(|&hash| filter.remove_hash(hash)).collect()
            });
            Ok(PyArray1::from_vec(py, removed))
        }

        /// Returns an upper bound of how often a key was added. 15 stands for 15 and more.
        fn count(&self, key: &Bound<'_, PyAny>) -> PyResult<u32> {
            let (hash, kind) = keys::hash(key, self.seed)?;
            self.kinds.check_lookup(kind)?;
            Ok(self.filter.quickly(key.py(), |filter| filter.count_hash(hash)))
        }

        /// Copies the keys into a BloomFilter, which needs a fifth of the memory.
        fn to_filter(&self, py: Python<'_>) -> PyResult<BloomFilter> {
            let copy = |filter: &variants::CountingBloomFilter| {
                Ok((filter.as_filter().as_view().to_filter()?, self.kinds.get()))
            };
            let (filter, kinds) = self.filter.detached(py, copy).map_err(copy_error)?;
            let (keys, fpr) = self.made_for();
            Ok(BloomFilter::new_for(filter, keys, fpr, kinds))
        }

        /// Number of blocks of 512 counters, each with a bit.
        #[getter]
        fn n_blocks(&self, py: Python<'_>) -> usize {
            self.filter.quickly(py, |filter| filter.as_filter().n_blocks())
        }

        /// Fraction of counters above zero, 0 to 1. Reads all bits.
        #[getter]
        fn fill_ratio(&self, py: Python<'_>) -> f64 {
            self.filter.detached(py, |filter| filter.as_filter().fill_ratio())
        }

        fn __repr__(&self, py: Python<'_>) -> String {
            let (size, k) = self.filter.quickly(py, |filter| (filter.as_filter().n_blocks(), filter.as_filter().k()));
            format!("CountingBloomFilter({}n_blocks={size}, k={k}, seed={})", describe(self.made_for().0), self.seed)
        }
    }
}

combining_filter_class! {
    /// A Bloom filter without blocks. Needs fewer bits for the same false-positive rate, but a lookup may cost k cache
    /// misses.
    StandardBloomFilter over variants::StandardBloomFilter, opened by read_file,
    sized by (StandardSizing::for_fpr, StandardSizing::for_bits_per_key), combined with Py<Self>, {
        /// Number of bits that keys are placed in.
        #[getter]
        fn size_bits(&self, py: Python<'_>) -> u64 {
            self.filter.quickly(py, |filter| filter.bit_len())
        }

        fn __repr__(&self, py: Python<'_>) -> String {
            let (size, k) = self.filter.quickly(py, |filter| (filter.bit_len(), filter.k()));
            format!("StandardBloomFilter({}size_bits={size}, k={k}, seed={})", describe(self.made_for().0), self.seed)
        }
    }
}

filter_class! {
    /// A Bloom filter that grows, for keys of unknown number, added between lookups. With an `initial_capacity` that is
    /// 5,000 times too low, it needs 3.2 times the memory of a BloomFilter and is 9 times slower. If all keys are added
    /// before the first lookup, use a FilterBuilder instead.
    ScalableBloomFilter over variants::ScalableBloomFilter, opened by read_file, {
        #[new]
        #[pyo3(signature = (initial_capacity, fpr=0.01, *, seed=0))]
        fn new(
            #[pyo3(from_py_with = initial_capacity)] initial_capacity: usize,
            #[pyo3(from_py_with = fpr)] fpr: f64,
            #[pyo3(from_py_with = seed)] seed: u64,
        ) -> PyResult<Self> {
            let filter = variants::ScalableBloomFilter::with_fpr(initial_capacity as u64, fpr);
            let filter = filter.and_then(|filter| filter.with_seed(seed)).map_err(build_error)?;
            Ok(Self::new_with(filter, None, 0))
        }

        /// Returns the union of one or more filters with the same fpr and seed. Filters with few keys become one. Full
        /// filters stay as they are, so a lookup then probes the parts of all, and fpr is up to the sum of their rates.
        #[staticmethod]
        fn union(filters: &Bound<'_, PyAny>) -> PyResult<Self> {
            union_of::<Self, Py<Self>>(filters, Self::copy, Self::unite, |_, _, _| false)
        }

        /// Number of keys that were new when they were added. May be too high after `union`.
        #[getter]
        fn inserted_keys(&self, py: Python<'_>) -> u64 {
            self.filter.quickly(py, |filter| filter.inserted_keys())
        }

        /// The false-positive rate that was requested, or more after `union`.
        #[getter]
        fn fpr(&self, py: Python<'_>) -> f64 {
            self.filter.quickly(py, |filter| filter.fpr())
        }

        fn __repr__(&self, py: Python<'_>) -> String {
            let (keys, fpr) = self.filter.quickly(py, |filter| (filter.inserted_keys(), filter.fpr()));
            format!("ScalableBloomFilter(inserted_keys={keys}, fpr={fpr}, seed={})", self.seed)
        }
    }
}

impl ScalableBloomFilter {
    fn unite(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        self.filter.combine(py, &other.filter, |ours, theirs| {
            check_memory(theirs.byte_len())?;
            ours.union_with(theirs).map_err(|error| match ours.seed() == theirs.seed() {
                // Other rates have another k or number of modules. Capacities may differ, and there is no bits_per_key.
                true => PyValueError::new_err(format!(
                    "filters with fpr = {} and fpr = {} cannot be combined: make both with the same fpr",
                    ours.fpr(),
                    theirs.fpr()
                )),
                false => mismatch_error(error),
            })?;
            self.kinds.insert(other.kinds.get());
            Ok(())
        })
    }
}

/// What filters of a class are combined with.
pub trait Operand<C>: for<'py> FromPyObjectOwned<'py> {
    const CLASSES: &str;
    fn into_filter(self, py: Python<'_>) -> PyResult<Py<C>>;
}

impl<C: PyClass> Operand<C> for Py<C> {
    const CLASSES: &str = C::NAME;

    fn into_filter(self, _: Python<'_>) -> PyResult<Self> {
        Ok(self)
    }
}

impl Operand<BloomFilter> for Source {
    const CLASSES: &str = Source::CLASSES;

    fn into_filter(self, py: Python<'_>) -> PyResult<Py<BloomFilter>> {
        match self {
            Self::Filter(filter) => Ok(filter),
            Self::View(view) => Py::new(py, BloomFilter::of_view(py, view.get())?),
        }
    }
}

/// The union of an iterable of filters. Filters that `waits` of are united last, because their size may divide the size
/// that the union has by then.
fn union_of<C: PyClass<Frozen = True> + Sync, O: Operand<C>>(
    filters: &Bound<'_, PyAny>,
    copy: fn(&C, Python<'_>) -> PyResult<C>,
    unite: fn(&C, Python<'_>, &C) -> PyResult<()>,
    waits: fn(&C, Python<'_>, &C) -> bool,
) -> PyResult<C> {
    let (py, mut union, mut waiting) = (filters.py(), None, Vec::new());
    for filter in arguments::filters(filters, O::CLASSES)? {
        let filter = filter?;
        let Ok(operand) = filter.extract::<O>() else {
            let (classes, name) = (O::CLASSES, class_of(&filter));
            return Err(PyTypeError::new_err(format!("a union is made of {classes} objects, not {name}")));
        };
        let filter = operand.into_filter(py)?;
        match &union {
            None => union = Some(copy(filter.get(), py)?),
            Some(union) if waits(union, py, filter.get()) => waiting.push(filter),
            Some(union) => unite(union, py, filter.get())?,
        }
    }
    let union = union.ok_or_else(|| PyValueError::new_err("a union needs at least one filter"))?;
    waiting.iter().try_for_each(|filter| unite(&union, py, filter.get()))?;
    Ok(union)
}

/// Whether a filter of `ours` bytes grows when it is combined with one of `theirs`.
fn is_multiple(theirs: usize, ours: usize) -> bool {
    theirs > ours && theirs.is_multiple_of(ours)
}

/// A filter to be read.
#[derive(FromPyObject)]
pub enum Source {
    Filter(Py<BloomFilter>),
    View(Py<BloomView>),
}

impl Source {
    /// The classes of sources.
    pub const CLASSES: &str = "BloomFilter and BloomView";
}

/// Calls `read` with the filters and the kinds of their keys, detached and with the filters locked. With `verify`,
/// verifies views first, because their damaged bits would get a valid checksum in what they become part of.
pub fn with_filters<T: Send>(
    py: Python<'_>,
    sources: &[Source],
    verify: bool,
    read: impl FnOnce(&[bloomline::BloomView], u8) -> PyResult<T> + Send,
) -> PyResult<T> {
    py.detach(|| {
        // Locks each filter and each view once, and the filters in the order of their addresses, as unions do.
        let (mut filters, mut views) = (BTreeMap::new(), BTreeMap::new());
        for source in sources {
            match source {
                Source::Filter(filter) => _ = filters.insert(ptr::from_ref(filter.get()), filter.get()),
                Source::View(view) => _ = views.insert(ptr::from_ref(view.get()), view.get()),
            }
        }
        let mut opened = BTreeMap::new();
        for (at, view) in views {
            let guard = view.opened();
            if verify {
                view.verified(&guard)?;
            }
            opened.insert(at, guard);
        }
        let locked: BTreeMap<_, _> = filters.into_iter().map(|(at, filter)| (at, filter.read())).collect();
        let views = sources.iter().map(|source| match source {
            Source::Filter(filter) => {
                Ok((locked[&ptr::from_ref(filter.get())].as_view(), filter.get().kinds.get()))
            }
            Source::View(view) => Ok((view_of(&opened[&ptr::from_ref(view.get())])?, UNKNOWN)),
        });
        let (views, kinds): (Vec<_>, Vec<_>) = views.collect::<PyResult<Vec<_>>>()?.into_iter().unzip();
        read(&views, kinds.into_iter().fold(0, |all, kinds| all | kinds))
    })
}

/// An estimate of `ours` and `other`, which are locked meanwhile.
pub fn estimate_of_both(
    ours: Source,
    other: &Bound<'_, PyAny>,
    estimate: fn(&bloomline::BloomView, bloomline::BloomView) -> Result<Option<KeyEstimate>, Error>,
) -> PyResult<(f64, f64)> {
    let both = [ours, arguments::read("other", "a BloomFilter or a BloomView", other)?];
    with_filters(other.py(), &both, false, |filters, _| {
        estimate(&filters[0], filters[1]).map(numbers).map_err(mismatch_error)
    })
}

/// An estimate and its standard error.
pub fn numbers(estimate: Option<KeyEstimate>) -> (f64, f64) {
    estimate.map_or((f64::INFINITY, f64::INFINITY), |found| (found.keys as f64, found.standard_error))
}

impl BloomFilter {
    /// Copies a view. Verifies the bytes first.
    pub fn of_view(py: Python<'_>, view: &BloomView) -> PyResult<Self> {
        py.detach(|| {
            let copy = view.verified(&view.opened())?.to_filter();
            Ok(Self::new_with(copy.map_err(copy_error)?, None, UNKNOWN))
        })
    }
}

/// The size by the rule, or with at most `most_modules` modules. Foldable, because the number of keys is often a guess.
fn for_fpr(keys: u64, fpr: f64, most_modules: Option<usize>) -> Result<Sizing, Error> {
    let sizing = match most_modules {
        None => Sizing::for_fpr(keys, fpr),
        Some(most) => Sizing::for_fpr_within(keys, fpr, most),
    };
    sizing.map(Sizing::rounded_to_fold)
}

fn for_bits_per_key(keys: u64, bits: f64, most_modules: Option<usize>) -> Result<Sizing, Error> {
    match most_modules {
        None => Sizing::for_bits_per_key(keys, bits),
        Some(most) => Sizing::for_bits_per_key_within(keys, bits, most),
    }
}

/// The end of what `repr` shows of a filter and of a view.
pub fn shape(sizing: Sizing, seed: u64) -> String {
    let (n_blocks, n_modules, k) = (sizing.n_blocks(), sizing.n_modules(), sizing.k());
    format!("n_blocks={n_blocks}, n_modules={n_modules}, k={k}, seed={seed}")
}

fn describe(expected_keys: Option<usize>) -> String {
    expected_keys.map_or(String::new(), |keys| format!("expected_keys={keys}, "))
}
