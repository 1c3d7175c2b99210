//! Reads keys in Arrow's memory, which the [C data interface](https://arrow.apache.org/docs/format/CDataInterface.html)
//! passes in capsules.
//!
//! Tried: the import of arrow-rs 59.3 panics or crashes on 13 of the tests' 47 forged structs, so its callers must
//! check the structs as thoroughly as this file does. It would add 51 crates, and make the wheel 54% larger.

use std::borrow::{Borrow, Cow};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt::Display;
use std::slice;

use pyo3::exceptions::{PyImportError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::PyCapsule;

use crate::column::{
    self, Batch, Column, Dictionary, Fixed, Integers, Nullable, Nulls, Offsets, Sink, Values, Views, integers,
};
use crate::errors::{cannot_be_keys, uuids_cannot_be_keys};
use crate::kinds::{INTEGERS, TEXT, UNKNOWN};

#[repr(C)]
#[derive(Default)]
struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *const *const ArrowSchema,
    dictionary: *const ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// The flag of a field that may be null.
const NULLABLE: i64 = 2;

#[repr(C)]
#[derive(Default)]
struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const c_void,
    children: *const *const ArrowArray,
    dictionary: *const ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

#[repr(C)]
#[derive(Default)]
struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

/// A struct of the interface that we own and release. All zeros until the producer fills it in.
#[derive(Default)]
struct Owned<T: Release>(T);

trait Release: Default {
    /// The producer's function, or `None` if the struct has been released.
    fn release(&self) -> Option<unsafe extern "C" fn(*mut Self)>;
}

macro_rules! release {
    ($($Struct:ident)*) => {$(
        impl Release for $Struct {
            fn release(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
                self.release
            }
        }
    )*};
}

release!(ArrowSchema ArrowArray ArrowArrayStream);

impl<T: Release> Owned<T> {
    fn is_released(&self) -> bool {
        self.0.release().is_none()
    }
}

impl<T: Release> Drop for Owned<T> {
    fn drop(&mut self) {
        if let Some(release) = self.0.release() {
            // SAFETY: `release` is set, so the struct has not been released. It is being dropped, so it is not used
            // again.
            unsafe { release(&mut self.0) }
        }
    }
}

// SAFETY: the interface allows a consumer to use and release a struct on any thread, one thread at a time, and only
// `Owned` has the struct.
unsafe impl<T: Release> Send for Owned<T> {}

/// Moves a struct out of its capsule, as the PyCapsule interface specifies.
fn take<T: Release>(capsule: &Bound<'_, PyCapsule>, name: &CStr) -> PyResult<Owned<T>> {
    let place = capsule.pointer_checked(Some(name))?.cast::<T>();
    // SAFETY: a capsule of this name holds a struct of this type, in memory that the capsule owns. The struct that
    // replaces it counts as released. No other thread moves it at the same time, because this one holds the GIL or,
    // without a GIL, the critical section.
    let taken = with_critical_section(capsule, || Owned(unsafe { place.replace(T::default()) }));
    if taken.is_released() { Err(malformed("it was released before")) } else { Ok(taken) }
}

fn malformed(what: impl Display) -> PyErr {
    PyValueError::new_err(format!("malformed Arrow data: {what}"))
}

pub fn not_one_column<Name: Borrow<str>>(names: &[Name]) -> PyErr {
    PyTypeError::new_err(match names.len() {
        0 => "a table without columns has no keys".into(),
        n => format!("{n} columns ({}) are not keys: select one of them", names.join(", ")),
    })
}

/// Returns the caller's name of a type, given Arrow's name, for errors. Called detached.
pub type Name<'a> = &'a (dyn Fn(&str) -> String + Sync);

/// What an object exported.
pub struct Exported(Source);

enum Source {
    Array(Owned<ArrowSchema>, Owned<ArrowArray>),
    Stream(Owned<ArrowArrayStream>),
}

/// Exports an object's keys. `None` if the object does not export Arrow data, or if the package that it needs for that
/// is not installed.
pub fn export(keys: &Bound<'_, PyAny>) -> PyResult<Option<Exported>> {
    if let Some(stream) = call(keys, "__arrow_c_stream__")? {
        return Ok(Some(Exported(Source::Stream(take(stream.cast()?, c"arrow_array_stream")?))));
    }
    let Some(both) = call(keys, "__arrow_c_array__")? else { return Ok(None) };
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = both.extract()?;
    Ok(Some(Exported(Source::Array(take(&schema, c"arrow_schema")?, take(&array, c"arrow_array")?))))
}

/// Calls a method without arguments. `None` if there is no such method, or if it needs a package that is not installed.
fn call<'py>(object: &Bound<'py, PyAny>, method: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(method) = object.getattr_opt(method)? else { return Ok(None) };
    match method.call0() {
        Err(error) if error.is_instance_of::<PyImportError>(object.py()) => Ok(None),
        result => result.map(Some),
    }
}

impl Exported {
    /// Hashes all values. Runs detached, because the producer of a stream may need the interpreter in one of its
    /// threads.
    pub fn read(
        self,
        py: Python<'_>,
        name: Name,
        seed: u64,
        batch: &mut Batch,
        sink: &mut impl Sink,
    ) -> PyResult<()> {
        py.detach(|| match self.0 {
            Source::Array(schema, array) => {
                hash_array(&Type::of_keys(&schema.0, name)?, &array.0, seed, batch, sink)
            }
            Source::Stream(mut stream) => {
                let schema = stream.schema()?;
                let of = Type::of_keys(&schema.0, name)?;
                while let Some(array) = stream.next()? {
                    hash_array(&of, &array.0, seed, batch, sink)?;
                    batch.signals.check()?;
                }
                Ok(())
            }
        })
    }
}

impl Owned<ArrowArrayStream> {
    fn schema(&mut self) -> PyResult<Owned<ArrowSchema>> {
        self.call(self.0.get_schema)
    }

    fn next(&mut self) -> PyResult<Option<Owned<ArrowArray>>> {
        let array = self.call(self.0.get_next)?;
        Ok((!array.is_released()).then_some(array))
    }

    fn call<T: Release>(
        &mut self,
        function: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut T) -> c_int>,
    ) -> PyResult<Owned<T>> {
        let function = function.ok_or_else(|| malformed("a stream lacks a function"))?;
        let mut out = Owned::<T>::default();
        // SAFETY: the stream has not been released, and `out` has room for the struct that the function writes.
        if unsafe { function(&mut self.0, &mut out.0) } == 0 {
            return Ok(out);
        }
        // SAFETY: the stream has not been released, and its last call failed, as `get_last_error` requires.
        let text = self.0.get_last_error.map(|last_error| unsafe { last_error(&mut self.0) });
        // SAFETY: the text ends with a NUL and lives until the stream's next call.
        let text = text.filter(|text| !text.is_null()).map(|text| unsafe { CStr::from_ptr(text) });
        let text = text.map_or("no reason given".into(), CStr::to_string_lossy);
        Err(PyValueError::new_err(format!("the keys could not be read: {text}")))
    }
}

/// A type of keys.
enum Type {
    Null,
    Integers(IntegerType),
    Fixed(usize),
    Binary,
    LargeBinary,
    Views,
    Dictionary(IntegerType, Box<Type>),
    /// A table or a record batch whose only column has this type.
    Table(Box<Type>),
}

#[derive(Clone, Copy)]
struct IntegerType {
    kind: u8,
    width: usize,
}

impl IntegerType {
    fn of(format: &str) -> Option<Self> {
        let (kind, width) = match format {
            "c" => (b'i', 1),
            "C" => (b'u', 1),
            "s" => (b'i', 2),
            "S" => (b'u', 2),
            "i" => (b'i', 4),
            "I" => (b'u', 4),
            "l" => (b'i', 8),
            "L" => (b'u', 8),
            _ => return None,
        };
        Some(Self { kind, width })
    }
}

impl Type {
    /// The type of a column of keys, or of a table whose only column has keys.
    fn of_keys(schema: &ArrowSchema, name: Name) -> PyResult<Self> {
        // A table looks like a column of structs, except that it cannot be null.
        if text(schema.format) != "+s" || schema.flags & NULLABLE != 0 {
            return Self::of(schema, name);
        }
        let columns = children(schema.children, schema.n_children)?;
        if let [column] = columns[..] {
            return Ok(Self::Table(Box::new(Self::of(column, name)?)));
        }
        Err(not_one_column(&columns.iter().map(|column| text(column.name)).collect::<Vec<_>>()))
    }

    fn of(schema: &ArrowSchema, name: Name) -> PyResult<Self> {
        let format = text(schema.format);
        // These are stored as numbers or bytes that are not their values, or not the same in all libraries. All other
        // extension types have the keys of their storage.
        match schema.extension() {
            Some(b"arrow.bool8") => return Err(cannot_be_keys(name("booleans"))),
            Some(b"pandas.period") => return Err(cannot_be_keys(name("periods"))),
            Some(b"arrow.opaque") => return Err(cannot_be_keys(name("opaque values"))),
            Some(b"arrow.uuid") => return Err(uuids_cannot_be_keys(name("UUIDs"))),
            _ => (),
        }
        if let Some(values) = reference(schema.dictionary) {
            let indices =
                IntegerType::of(&format).ok_or_else(|| malformed("indices that are not integers"))?;
            return Ok(Self::Dictionary(indices, Box::new(Self::of(values, name)?)));
        }
        if let Some(integers) = IntegerType::of(&format) {
            return Ok(Self::Integers(integers));
        }
        let what = match &*format {
            "n" => return Ok(Self::Null),
            "z" | "u" => return Ok(Self::Binary),
            "Z" | "U" => return Ok(Self::LargeBinary),
            "vz" | "vu" => return Ok(Self::Views),
            "+s" => {
                let remedy = "select one of their fields, or if this is a table, pass pyarrow.table(keys)";
                return Err(PyTypeError::new_err(format!("{} cannot be keys: {remedy}", name("structs"))));
            }
            "b" => "booleans",
            "e" | "f" | "g" => "floats",
            "tdD" | "tdm" => "dates",
            format => match (format.get(..2), format.get(2..)) {
                (Some("w:"), Some(width)) => {
                    let width = width.parse().map_err(|_| malformed(format_args!("the type {format:?}")))?;
                    return Ok(Self::Fixed(width));
                }
                (Some("d:"), _) => "decimals",
                (Some("tt"), _) => "times",
                (Some("ts"), _) => "timestamps",
                (Some("tD"), _) => "durations",
                (Some("ti"), _) => "intervals",
                (Some("+r"), _) => "run-end encoded arrays",
                (Some("+l" | "+L" | "+v" | "+w"), _) => "lists",
                (Some("+m"), _) => "maps",
                (Some("+u"), _) => "unions",
                _ => &*format!("values of type {format:?}"),
            },
        };
        Err(cannot_be_keys(name(what)))
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Integers(_) => INTEGERS,
            // An integer's key has eight bytes, too.
            Self::Fixed(8) => UNKNOWN,
            Self::Fixed(_) | Self::Binary | Self::LargeBinary | Self::Views => TEXT,
            Self::Dictionary(_, of) | Self::Table(of) => of.kind(),
        }
    }

    /// The values `start..start + len` of an array, where `start` includes the array's own offset.
    fn column<'a>(
        &self,
        array: &'a ArrowArray,
        start: usize,
        len: usize,
        seed: u64,
        batch: &mut Batch,
    ) -> PyResult<Box<dyn Column + 'a>> {
        if len == 0 {
            return Ok(Box::new(Nulls(0)));
        }
        match *self {
            Self::Null => Ok(Box::new(Nulls(len))),
            Self::Integers(IntegerType { kind, width }) => {
                let bytes = array.items(1, start, len, width)?;
                integers!(kind, width, bytes, |values, widen| array
                    .nullable(Integers { values, widen }, start))
            }
            Self::Fixed(width) => {
                let bytes = array.items(1, start, len, width)?;
                array.nullable(Fixed { bytes, width, len, ends_at_zeros: false }, start)
            }
            Self::Binary => array.offsets(start, len, |offset| i32::from_ne_bytes(offset) as usize),
            Self::LargeBinary => array
                .offsets(start, len, |offset| i64::from_ne_bytes(offset).try_into().unwrap_or(usize::MAX)),
            Self::Views => {
                let views = array.items(1, start, len, 16)?.as_chunks().0;
                // The last buffer has the lengths of the data buffers, which lie between it and the views.
                let n_buffers =
                    usize::try_from(array.n_buffers - 3).map_err(|_| malformed("views without buffers"))?;
                let lengths = array.items(n_buffers + 2, 0, n_buffers, 8)?.as_chunks().0;
                let buffers = lengths
                    .iter()
                    .zip(2..)
                    .map(|(&len, i)| array.items(i, 0, i64::from_ne_bytes(len) as usize, 1));
                array.nullable(Views { views, buffers: buffers.collect::<PyResult<_>>()? }, start)
            }
            Self::Dictionary(IntegerType { kind, width }, ref of) => {
                let dictionary =
                    reference(array.dictionary).ok_or_else(|| malformed("indices without values"))?;
                let (first, n_values) = dictionary.range()?;
                let values = of.column(dictionary, first, n_values, seed, batch)?;
                let values = Values::new(values, len, seed, batch)?;
                let bytes = array.items(1, start, len, width)?;
                integers!(kind, width, bytes, |indices, widen| {
                    array.nullable(Dictionary { indices: Integers { values: indices, widen }, values }, start)
                })
            }
            Self::Table(ref of) => {
                let is_valid =
                    |validity: &[u8]| (start..start + len).all(|i| validity[i / 8] >> (i % 8) & 1 == 1);
                if !array.validity(start, len)?.is_none_or(is_valid) {
                    return Err(malformed("a table with rows that are null"));
                }
                let [column] = children(array.children, array.n_children)?[..] else {
                    return Err(malformed("a table whose arrays do not match its schema"));
                };
                let (first, n_values) = column.range()?;
                if start.checked_add(len).is_none_or(|end| end > n_values) {
                    return Err(malformed(format_args!("a column of {n_values} values in a table of more")));
                }
                let start = first.checked_add(start).ok_or_else(|| malformed("an offset"))?;
                of.column(column, start, len, seed, batch)
            }
        }
    }
}

impl ArrowSchema {
    /// The name of an extension type.
    fn extension(&self) -> Option<&[u8]> {
        let mut rest = self.metadata.cast::<u8>();
        if rest.is_null() {
            return None;
        }
        let mut take = |n: usize| {
            // SAFETY: the metadata are the number of pairs, then for each pair the length and the bytes of its key and
            // of its value, in this order. They live until the schema is released, and the loop below reads no further.
            let bytes = unsafe { slice::from_raw_parts(rest, n) };
            rest = rest.wrapping_add(n);
            bytes
        };
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, i32::from_ne_bytes).max(0) as usize;
        for _ in 0..number(take(4)) {
            let [key, value] = [(); 2].map(|()| {
                let length = number(take(4));
                take(length)
            });
            if key == b"ARROW:extension:name" {
                return Some(value);
            }
        }
        None
    }
}

impl ArrowArray {
    /// Offset and length of the array.
    fn range(&self) -> PyResult<(usize, usize)> {
        match (self.offset.try_into(), self.length.try_into()) {
            (Ok(offset), Ok(length)) => Ok((offset, length)),
            _ => Err(malformed(format_args!("offset {}, length {}", self.offset, self.length))),
        }
    }

    /// The items `start..start + len` of buffer `i`, `width` bytes each.
    fn items(&self, i: usize, start: usize, len: usize, width: usize) -> PyResult<&[u8]> {
        let no_buffer = || malformed(format_args!("buffer {i} is missing or too large"));
        let n_buffers = usize::try_from(self.n_buffers).map_err(|_| no_buffer())?;
        let end = start
            .checked_add(len)
            .and_then(|end| end.checked_mul(width))
            .filter(|end| *end <= isize::MAX as usize);
        let end = end.filter(|_| i < n_buffers && !self.buffers.is_null()).ok_or_else(no_buffer)?;
        // SAFETY: `buffers` points to `n_buffers` pointers, and `i` is below that.
        let buffer = unsafe { *self.buffers.add(i) }.cast::<u8>();
        if len * width == 0 {
            return Ok(&[]);
        }
        if buffer.is_null() {
            return Err(no_buffer());
        }
        // SAFETY: the interface requires that the buffer has as many items as the array's offset and length demand,
        // unchanged until the array is released, which needs the exclusive reference that `Owned` has. The interface
        // passes no length of the buffer to check against, so a producer that lies crashes any consumer.
        Ok(unsafe { slice::from_raw_parts(buffer, end) }.split_at(start * width).1)
    }

    /// The bitmap of values that are not null. `None` if there are no nulls.
    fn validity(&self, start: usize, len: usize) -> PyResult<Option<&[u8]>> {
        let has_buffers = self.null_count != 0 && self.n_buffers > 0 && !self.buffers.is_null();
        // SAFETY: `buffers` points to at least one pointer.
        if !has_buffers || unsafe { *self.buffers }.is_null() {
            return Ok(None);
        }
        let bytes = start.checked_add(len).ok_or_else(|| malformed("a length"))?.div_ceil(8);
        self.items(0, 0, bytes, 1).map(Some)
    }

    fn nullable<'a>(&'a self, column: impl Column + 'a, start: usize) -> PyResult<Box<dyn Column + 'a>> {
        Ok(match self.validity(start, column.len())? {
            Some(validity) => Box::new(Nullable { column, validity, offset: start }),
            None => Box::new(column),
        })
    }

    fn offsets<'a, const N: usize>(
        &'a self,
        start: usize,
        len: usize,
        widen: impl Fn([u8; N]) -> usize + Sync + 'a,
    ) -> PyResult<Box<dyn Column + 'a>> {
        let (offsets, _) =
            self.items(1, start, len.checked_add(1).ok_or_else(|| malformed("a length"))?, N)?.as_chunks();
        let data = self.items(2, 0, widen(offsets[len]), 1)?;
        self.nullable(Offsets { offsets, data, widen }, start)
    }
}

fn hash_array(
    of: &Type,
    array: &ArrowArray,
    seed: u64,
    batch: &mut Batch,
    sink: &mut impl Sink,
) -> PyResult<()> {
    let (start, len) = array.range()?;
    let column = of.column(array, start, len, seed, batch)?;
    column::hash_all(&*column, of.kind(), seed, batch, sink)
}

fn text<'a>(pointer: *const c_char) -> Cow<'a, str> {
    if pointer.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: formats and names end with a NUL, and live until the schema is released.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy()
}

fn reference<'a, T>(pointer: *const T) -> Option<&'a T> {
    // SAFETY: if a pointer to a child is not null, its struct lives until the parent is released.
    unsafe { pointer.as_ref() }
}

fn children<'a, T>(pointers: *const *const T, n: i64) -> PyResult<Vec<&'a T>> {
    let n = usize::try_from(n).map_err(|_| malformed(format_args!("{n} children")))?;
    if n > 0 && pointers.is_null() {
        return Err(malformed("children are missing"));
    }
    // SAFETY: the interface requires that there are `n` pointers.
    (0..n)
        .map(|i| reference(unsafe { *pointers.add(i) }).ok_or_else(|| malformed("a child is missing")))
        .collect()
}
