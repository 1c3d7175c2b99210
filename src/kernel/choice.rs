//! A choice that is made once and then read.
//!
//! `tests/loom.rs` compiles this file once more, with loom's atomics, and tries every interleaving of threads.
#![forbid(unsafe_code)]

use super::sync::{AtomicU8, Ordering};

/// One more than an index into the list to choose from, or [`UNMADE`].
pub(super) struct Choice(pub(super) AtomicU8);

pub(super) const UNMADE: u8 = 0;

impl Choice {
    /// The chosen item of `list`, by `choose` if nothing is chosen yet. Several threads may call `choose` at the same
    /// time, so it must return the same index to all.
    #[inline]
    pub(super) fn get<T: Copy>(&self, list: &[T], choose: impl FnOnce() -> usize) -> T {
        // The index is the only shared data, so no ordering with other memory is needed.
        match list.get(usize::from(self.0.load(Ordering::Relaxed)).wrapping_sub(1)) {
            Some(item) => *item,
            None => self.make(list, choose),
        }
    }

    #[cold]
    fn make<T: Copy>(&self, list: &[T], choose: impl FnOnce() -> usize) -> T {
        let index = choose();
        self.0.store(index as u8 + 1, Ordering::Relaxed);
        list[index]
    }
}
