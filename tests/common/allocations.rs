//! Measures what a call allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts the bytes that each thread allocates and frees.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
    static FREED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: Forwards every call unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + layout.size());
        // SAFETY: The caller's guarantees are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + layout.size());
        // SAFETY: The caller's guarantees are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        FREED.set(FREED.get() + layout.size());
        // SAFETY: The caller's guarantees are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the bytes that `run` allocates on this thread, and the result of `run`.
pub fn allocated<T>(run: impl FnOnce() -> T) -> (usize, T) {
    let before = ALLOCATED.get();
    let result = run();
    (ALLOCATED.get() - before, result)
}

/// Returns the bytes that `run` allocates on this thread and does not free.
pub fn kept(run: impl FnOnce()) -> usize {
    let before = FREED.get();
    let (allocated, ()) = allocated(run);
    allocated - (FREED.get() - before)
}
