//! A choice that is made once and then read.
//!
//! `tests/loom.rs` compiles this file once more, with loom's atomics, and tries every interleaving of threads.
#![forbid(unsafe_code)]

use super::sync::{AtomicU8, Ordering};

/// The number of what was chosen, or [`UNMADE`].
pub(super) struct Choice(pub(super) AtomicU8);

pub(super) const UNMADE: u8 = u8::MAX;

impl Choice {
    /// What was chosen, whose number `item` returns it for, by `choose` if nothing is chosen yet. Several threads may call
    /// `choose` at the same time, so it must return the same to all, unless each choice is right.
    #[inline]
    pub(super) fn get<T>(&self, item: impl Fn(u8) -> Option<T>, choose: impl FnOnce() -> u8) -> T {
        match self.made(&item) {
            Some(item) => item,
            None => self.make(item, choose),
        }
    }

    /// What was chosen, if it was.
    #[inline(always)]
    pub(super) fn made<T>(&self, item: impl Fn(u8) -> Option<T>) -> Option<T> {
        // The number is the only shared data, so no ordering with other memory is needed.
        item(self.0.load(Ordering::Relaxed))
    }

    #[cold]
    fn make<T>(&self, item: impl Fn(u8) -> Option<T>, choose: impl FnOnce() -> u8) -> T {
        let number = choose();
        self.0.store(number, Ordering::Relaxed);
        item(number).expect("the number of an item")
    }
}
