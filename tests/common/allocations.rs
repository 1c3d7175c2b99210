//! Measures what a call allocates, or refuses it memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;

/// Counts the bytes that each thread allocates and frees.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
    static FREED: Cell<usize> = const { Cell::new(0) };
    /// Allocations until one is refused, and all after it.
    static ALLOWED: Cell<usize> = const { Cell::new(usize::MAX) };
}

fn is_refused(layout: Layout) -> bool {
    ALLOCATED.set(ALLOCATED.get() + layout.size());
    let allowed = ALLOWED.get();
    ALLOWED.set(if allowed == usize::MAX { allowed } else { allowed.saturating_sub(1) });
    allowed == 0
}

// SAFETY: Forwards every call unchanged to the system's allocator, or returns null, which means that memory ran out.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: The caller's guarantees are passed on.
        if is_refused(layout) { ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: The caller's guarantees are passed on.
        if is_refused(layout) { ptr::null_mut() } else { unsafe { System.alloc_zeroed(layout) } }
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

/// Calls `run`, in which this thread may allocate so many times.
#[allow(dead_code, reason = "the example `crawl` only measures")]
pub fn with_allowed<T>(allocations: usize, run: impl FnOnce() -> T) -> T {
    ALLOWED.set(allocations);
    let result = run();
    ALLOWED.set(usize::MAX);
    result
}
