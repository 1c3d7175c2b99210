//! Turns Rust's errors into Python's exceptions, with the same texts.
#![forbid(unsafe_code)]

use std::io;
use std::path::Path;

use bloomline::{Error, ErrorKind, StandaloneFooter, StandaloneKind};
use pyo3::exceptions::{PyMemoryError, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;

pyo3::create_exception!(
    bloomline,
    DecodeError,
    PyValueError,
    "The bytes belong to a different class or are damaged. Rebuild the filter from its keys."
);

/// The crate's text, with what to do if memory ran out.
fn exception(error: Error, no_memory: &str) -> PyErr {
    match error.kind() {
        ErrorKind::OutOfMemory => PyMemoryError::new_err(format!("{error}: {no_memory}")),
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// For constructors.
pub fn build_error(error: Error) -> PyErr {
    exception(error, "expect fewer keys, or allow a higher fpr")
}

/// The remedy if there is no memory for a copy.
pub const COPY: &str = "a copy takes as much memory as the filter";

/// For copies, which fail only for lack of memory.
pub fn copy_error(error: Error) -> PyErr {
    exception(error, COPY)
}

pub fn mismatch_error(error: Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub fn bank_error(error: Error) -> PyErr {
    exception(error, "split the filters over several banks")
}

/// For the bytes of a buffer or a file.
pub fn decode_error(error: Error, bytes: &[u8], path: Option<&Path>) -> PyErr {
    let text = match error.kind() {
        ErrorKind::OutOfMemory => {
            return exception(error, "BloomView and BloomFilter.open read filters in place");
        }
        ErrorKind::Unrecognized => format!("{error}{}", other_bytes(bytes, path.is_some())),
        _ => error.to_string(),
    };
    DecodeError::new_err(match path {
        Some(path) => format!("{}: {text}", path.display()),
        None => text,
    })
}

/// Describes bytes that are not a filter of the requested class, with a remedy.
fn other_bytes(bytes: &[u8], is_file: bool) -> String {
    let class = match StandaloneKind::of(bytes) {
        Some(StandaloneKind::Blocked) => "BloomFilter",
        Some(StandaloneKind::Standard) => "StandardBloomFilter",
        Some(StandaloneKind::Counting) => "CountingBloomFilter",
        Some(StandaloneKind::Scalable) => "ScalableBloomFilter",
        Some(StandaloneKind::Bank) => "FilterBank",
        Some(StandaloneKind::Index) => return ", a FileIndex, with bloomline.open".into(),
        Some(_) => return ", which only Rust reads".into(),
        None => return not_standalone(bytes).into(),
    };
    let has_footer = bytes.len() > StandaloneFooter::LEN;
    match (has_footer, is_file) {
        (false, _) => String::new(),
        (true, true) => format!(", with {class}.open or bloomline.open"),
        (true, false) => format!(", with {class}.from_bytes"),
    }
}

/// Describes bytes without a footer.
fn not_standalone(bytes: &[u8]) -> &'static str {
    // The last 64 bytes may begin in the middle of a character.
    let end = bytes.iter().rev().take(64).rev();
    let is_text = |&byte: &u8| byte >= 0x80 || byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    if bytes.ends_with(b"\x89bldup\r\n") {
        "; this is a state of `bloomline dedup`, which only the command line reads"
    } else if bytes.is_empty() {
        ""
    } else if end.clone().all(is_text) && end.clone().any(u8::is_ascii) {
        "; this looks like text: pass its lines to `update`, without their ends"
    } else if bloomline::BloomView::from_compact(bytes).is_ok() {
        "; this may be a compact filter, which Python does not read: write standalone bytes instead"
    } else {
        ""
    }
}

/// The crate's text, with a remedy.
pub fn out_of_memory(bytes: usize, remedy: &str) -> PyErr {
    PyMemoryError::new_err(format!("out of memory: cannot allocate {bytes} bytes: {remedy}"))
}

/// For answers that need this many bytes.
pub fn no_room(bytes: usize) -> PyErr {
    PyMemoryError::new_err(format!(
        "cannot allocate {bytes} bytes for the answers: look up fewer keys at once"
    ))
}

/// For inserts that ran out of memory.
pub fn not_grown(error: Error) -> PyErr {
    PyMemoryError::new_err(format!("{error}: the filter keeps the keys before"))
}

/// With a number, Python chooses the subclass of `OSError`.
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
        None if error.kind() == io::ErrorKind::OutOfMemory => {
            PyMemoryError::new_err(format!("{error}: {} is too large to read", path.display()))
        }
        None => io::Error::new(error.kind(), format!("{error}: {path:?}")).into(),
    }
}

/// For classes whose objects `pickle`, `copy` and processes cannot copy.
pub fn not_pickled(class: &str, remedy: &str) -> PyResult<()> {
    Err(PyTypeError::new_err(format!("a {class} cannot be pickled or copied: {remedy}")))
}

/// The name of an object's class.
pub fn class_of(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or("object".into(), |name| name.to_string())
}

/// A caller's value, as Python shows it, or only its type if that is longer than 40 bytes.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    match value.repr().map(|repr| repr.to_string()) {
        Ok(repr) if repr.len() <= 40 && !repr.contains('\n') => repr,
        _ => format!("an object of type {}", class_of(value)),
    }
}

pub fn cannot_be_keys(what: impl std::fmt::Display) -> PyErr {
    PyTypeError::new_err(format!(
        "{what} cannot be keys: cast them to text, bytes or integers of at most 64 bits"
    ))
}

/// Some libraries have them as bytes, others as text, so both could be made from one column.
pub fn uuids_cannot_be_keys(what: impl std::fmt::Display) -> PyErr {
    PyTypeError::new_err(format!(
        "{what} cannot be keys: cast them to text on both sides, or on both to 16 bytes, which are other keys"
    ))
}

/// Fails for tables and queries that are iterable but have no keys, and says what to do.
pub fn check_not_table(keys: &Bound<'_, PyAny>) -> PyResult<()> {
    if keys.is_exact_instance_of::<PyList>() {
        return Ok(());
    }
    let class = keys.get_type();
    let Ok(module) = class.module() else { return Ok(()) };
    let library = module.to_str()?.split('.').next().unwrap_or_default();
    if !matches!(library, "pandas" | "polars" | "duckdb" | "_duckdb") {
        return Ok(());
    }
    let name = class.name()?;
    let remedy = match name.to_str()? {
        "LazyFrame" => "call .collect() and select one column",
        "Expr" => "put the call into .map_batches(), or pass a column of a DataFrame",
        name if name.ends_with("GroupBy") => "pass one column of the DataFrame that was grouped",
        "DuckDBPyConnection" => "pass con.sql(query), not con.execute(query)",
        "MultiIndex" => "join its levels to text first, with a separator that neither contains",
        _ => return Ok(()),
    };
    Err(PyTypeError::new_err(format!("a {} {name} has no keys: {remedy}", library.trim_start_matches('_'))))
}
