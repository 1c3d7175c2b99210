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
    "A filter of integers got text, or a filter of text got integers, and the two never match: convert one side.\n\n\
     Turned into an error, it ends `add` before the key is added, and `update` after its keys are."
);

pub const INTEGERS: u8 = 1;
pub const TEXT: u8 = 2;
/// May match both: the keys of a filter that was read from bytes, and eight bytes, which an integer may have too.
pub const UNKNOWN: u8 = 4;

/// The kinds of a filter's keys; 0 if it has none. Changed only with the filter's lock, so that they fit its bits.
pub struct Kinds(AtomicU8);

impl Kinds {
    pub fn new(kinds: u8) -> Self {
        Self(AtomicU8::new(kinds))
    }

    #[inline]
    pub fn get(&self) -> u8 {
        self.0.load(Relaxed)
    }

    pub fn set(&self, kinds: u8) {
        self.0.store(kinds, Relaxed);
    }

    /// The kinds of keys that are handed on.
    pub fn take(&self) -> u8 {
        self.0.swap(0, Relaxed)
    }

    #[inline]
    pub fn insert(&self, kinds: u8) {
        if self.get() | kinds != self.get() {
            self.0.fetch_or(kinds, Relaxed);
        }
    }

    /// Leaves the kinds that `others` are too.
    pub fn intersect(&self, others: u8) {
        let (ours, all) = (self.get(), self.get() | others);
        self.set(if all & UNKNOWN == 0 { ours & others } else { all });
    }

    /// Warns of one key to look up, or to remove, of a kind that no key of the filter has.
    #[inline]
    pub fn warn_of_lookup(&self, py: Python<'_>, kind: u8) -> PyResult<()> {
        let kinds = self.get();
        if !are_apart(kinds, kind) {
            return Ok(());
        }
        let key = if kind == TEXT { "text" } else { "an integer" };
        warn(py, format!("the filter has only {}, and this key is {key}", name(kinds)))
    }

    /// For many keys, an error: all answers would be false positives.
    pub fn check_lookups(&self, asked: u8) -> PyResult<()> {
        let kinds = self.get();
        if !are_apart(kinds, asked) {
            return Ok(());
        }
        Err(PyTypeError::new_err(format!(
            "the filter has only {}, and these keys are {}, which never match them: convert one side",
            name(kinds),
            name(asked)
        )))
    }

    /// Warns of keys added to a filter that had, `before`, only keys of the other kind.
    #[inline]
    pub fn warn_of_added(py: Python<'_>, before: u8, added: u8) -> PyResult<()> {
        let new = added & !before & !UNKNOWN;
        if !are_apart(before, new) {
            return Ok(());
        }
        warn(py, format!("{} added to a filter of {}", name(new), name(before)))
    }
}

#[inline]
fn are_apart(kinds: u8, others: u8) -> bool {
    kinds & (others | UNKNOWN) == 0 && kinds != 0 && others != 0 && others & UNKNOWN == 0
}

#[cold]
fn warn(py: Python<'_>, what: String) -> PyResult<()> {
    let text = format!("{what}: integers and text never match, so convert one side");
    PyErr::warn(py, &py.get_type::<KeyKindWarning>(), &CString::new(text)?, 1)
}

fn name(kind: u8) -> &'static str {
    if kind == TEXT { "text" } else { "integers" }
}
