//! Which kinds of keys a filter has. Integers and text never match, so a lookup of the wrong kind is a mistake.
#![forbid(unsafe_code)]

use std::ffi::CString;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use pyo3::exceptions::{PyTypeError, PyUserWarning};
use pyo3::prelude::*;

pyo3::create_exception!(
    bloomline,
    KeyKindWarning,
    PyUserWarning,
    "A filter of integers got text, or a filter of text got integers, and the two never match: convert one side."
);

pub const INTEGERS: u8 = 1;
pub const TEXT: u8 = 2;
/// Both, or unknown: the kinds of a filter that was read from bytes.
pub const ANY: u8 = INTEGERS | TEXT;

/// The kinds of a filter's keys; 0 if it has none. Changed only with the filter's lock, so that they fit its bits.
pub struct Kinds(AtomicU8);

impl Kinds {
    pub fn new(kinds: u8) -> Self {
        Self(AtomicU8::new(kinds))
    }

    pub fn get(&self) -> u8 {
        self.0.load(Relaxed)
    }

    pub fn set(&self, kinds: u8) {
        self.0.store(kinds, Relaxed);
    }

    pub fn insert(&self, kinds: u8) {
        if self.get() | kinds != self.get() {
            self.0.fetch_or(kinds, Relaxed);
        }
    }

    /// Warns of one key to look up, or to remove, of a kind that no key of the filter has.
    pub fn warn_of_lookup(&self, py: Python<'_>, kind: u8) -> PyResult<()> {
        let kinds = self.get();
        if kinds & kind == 0 && kinds != 0 {
            return warn(py, format!("the filter has only {}, and this key is {}", name(kinds), name(kind)));
        }
        Ok(())
    }

    /// For many keys, an error: all answers would be false positives.
    pub fn check_lookups(&self, asked: u8) -> PyResult<()> {
        let kinds = self.get();
        if kinds & asked != 0 || kinds == 0 || asked == 0 {
            return Ok(());
        }
        Err(PyTypeError::new_err(format!(
            "the filter has only {}, and these keys are {}, which never match them: convert one side",
            name(kinds),
            name(asked)
        )))
    }
}

/// Warns of keys added to a filter that had keys of the other kind only.
pub fn warn_of_added(py: Python<'_>, before: u8, added: u8) -> PyResult<()> {
    if before == 0 || added & !before == 0 {
        return Ok(());
    }
    warn(py, format!("{} added to a filter of {}", name(added & !before), name(before)))
}

#[cold]
fn warn(py: Python<'_>, what: String) -> PyResult<()> {
    let text = format!("{what}: integers and text never match, so convert one side");
    PyErr::warn(py, &py.get_type::<KeyKindWarning>(), &CString::new(text)?, 1)
}

fn name(kinds: u8) -> &'static str {
    if kinds == TEXT { "text" } else { "integers" }
}
