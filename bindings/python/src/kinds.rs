//! Which kinds of keys a filter has, integers or text. They never match, so a lookup of the wrong kind is a mistake.
#![forbid(unsafe_code)]

use std::ffi::CString;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use pyo3::exceptions::{PyTypeError, PyUserWarning};
use pyo3::prelude::*;

pyo3::create_exception!(
    bloomline,
    KeyKindWarning,
    PyUserWarning,
    "Text was added to a filter of integers, or integers to a filter of text. The two never match, so convert one side.\n\n\
     If you turn it into an error, `add` raises it before the key is added, and `update` and `add_many` after their \
     keys are added. Lookups of a kind that the filter lacks raise TypeError."
);

pub const INTEGERS: u8 = 1;
pub const TEXT: u8 = 2;
/// May match both, because a filter that was read from bytes has keys of unknown kind, and a key of eight bytes may be
/// an integer.
pub const UNKNOWN: u8 = 4;

/// The kinds of a filter's keys, ORed, or 0 if it has no keys. Changed only while the filter's lock is held, so that
/// they match its bits.
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

    /// Returns the kinds and resets them, for keys that are handed on.
    pub fn take(&self) -> u8 {
        self.0.swap(0, Relaxed)
    }

    #[inline]
    pub fn insert(&self, kinds: u8) {
        if self.get() | kinds != self.get() {
            self.0.fetch_or(kinds, Relaxed);
        }
    }

    /// Keeps the kinds that are also in `others`.
    pub fn intersect(&self, others: u8) {
        let (ours, all) = (self.get(), self.get() | others);
        self.set(if all & UNKNOWN == 0 { ours & others } else { all });
    }

    /// Fails for keys to look up or to remove, if the filter has no key of their kind. This is an error and not a
    /// warning, because on a cluster nobody would see a warning, and a join would silently drop the rows.
    #[inline]
    pub fn check_lookup(&self, asked: u8) -> PyResult<()> {
        let kinds = self.get();
        if !are_apart(kinds, asked) {
            return Ok(());
        }
        Err(PyTypeError::new_err(never_match(asked, "looked up in", kinds)))
    }

    /// Warns if keys were added to a filter that had only keys of a different kind `before`.
    #[inline]
    pub fn warn_of_added(py: Python<'_>, before: u8, added: u8) -> PyResult<()> {
        let new = added & !before & !UNKNOWN;
        if !are_apart(before, new) {
            return Ok(());
        }
        let text = CString::new(never_match(new, "added to", before))?;
        PyErr::warn(py, &py.get_type::<KeyKindWarning>(), &text, 1)
    }
}

#[inline]
fn are_apart(kinds: u8, others: u8) -> bool {
    kinds & (others | UNKNOWN) == 0 && kinds != 0 && others != 0 && others & UNKNOWN == 0
}

#[cold]
fn never_match(keys: u8, done: &str, kinds: u8) -> String {
    let (keys, filter) = (name(keys), name(kinds));
    format!("{keys} {done} a filter of {filter}: integers and text never match, so convert one side")
}

fn name(kind: u8) -> &'static str {
    if kind == TEXT { "text" } else { "integers" }
}
