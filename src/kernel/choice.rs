//! A choice that is made once and then only read.
//!
//! `tests/loom.rs` compiles this file a second time, with loom's atomics, and tries every interleaving of threads.
#![forbid(unsafe_code)]

use super::atomic::{AtomicU8, Ordering};

/// An index into the list to choose from, or [`UNMADE`].
pub(super) struct Choice(pub(super) AtomicU8);

pub(super) const UNMADE: u8 = u8::MAX;

impl Choice {
    /// The item of `list` at the index that `choose` returns. Threads call `choose` until one call has returned,
    /// several of them if they arrive at the same time. So it must always return the same index, below [`UNMADE`].
    #[inline]
    pub(super) fn get<T: Copy>(&self, list: &[T], choose: impl FnOnce() -> usize) -> T {
        // The index is the only shared data, so no ordering with other memory is needed.
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
