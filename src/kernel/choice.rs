//! A choice that is made once and then read. It may move later in the list, never earlier.
//!
//! `tests/loom.rs` compiles this file a second time, with loom's atomics, and tries every interleaving of threads.
#![forbid(unsafe_code)]

use super::atomic::{AtomicU8, Ordering};

/// One more than an index into the list to choose from, or [`UNMADE`].
pub(super) struct Choice(pub(super) AtomicU8);

pub(super) const UNMADE: u8 = 0;

impl Choice {
    /// The chosen item of `list`, by `choose` if nothing is chosen yet. Threads call `choose` until one call has
    /// returned, several of them if they arrive at the same time.
    #[inline]
    pub(super) fn get<T: Copy>(&self, list: &[T], choose: impl FnOnce() -> usize) -> T {
        // The index is the only shared data, so no ordering with other memory is needed.
        match list.get(usize::from(self.0.load(Ordering::Relaxed)).wrapping_sub(1)) {
            Some(item) => *item,
            None => self.make(list, choose),
        }
    }

    /// Chooses the item at the index that `choose` returns, unless a later one is chosen. Returns the chosen item.
    #[cold]
    pub(super) fn make<T: Copy>(&self, list: &[T], choose: impl FnOnce() -> usize) -> T {
        let ours = choose() as u8 + 1;
        // The highest counts, so that a thread that is still choosing cannot undo a limit.
        #[cfg(target_has_atomic = "8")]
        let theirs = self.0.fetch_max(ours, Ordering::Relaxed);
        // CPUs without such an operation have one core.
        #[cfg(not(target_has_atomic = "8"))]
        let theirs = {
            let theirs = self.0.load(Ordering::Relaxed);
            self.0.store(ours.max(theirs), Ordering::Relaxed);
            theirs
        };
        list[usize::from(ours.max(theirs)) - 1]
    }
}
