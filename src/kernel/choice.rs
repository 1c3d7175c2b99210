//! A choice that is made once and then only read.
//!
//! `tests/loom.rs` compiles this file a second time, against loom's atomics, and tries every order of events.
#![forbid(unsafe_code)]

use super::atomic::{AtomicU8, Ordering};

/// An index in the list that is chosen from, or [`UNMADE`].
pub(super) struct Choice(pub(super) AtomicU8);

pub(super) const UNMADE: u8 = u8::MAX;

impl Choice {
    /// The item of `list` whose index `choose` gives. It is called until one call of it has returned, by several threads
    /// if they come at once, so it must always give the same index, below [`UNMADE`].
    #[inline]
    pub(super) fn get<T: Copy>(&self, list: &[T], choose: impl FnOnce() -> usize) -> T {
        // The index is all there is to see, so no order with other memory is needed.
        match list.get(usize::from(self.0.load(Ordering::Relaxed))) {
            Some(item) => *item,
            None => self.make(list, choose),
        }
    }

    #[cold]
    fn make<T: Copy>(&self, list: &[T], choose: impl FnOnce() -> usize) -> T {
        let index = choose();
        self.0.store(index as u8, Ordering::Relaxed);
        list[index]
    }
}
