//! Running out of memory, which is an error in functions that return a `Result`, and otherwise an abort.

use alloc::alloc::handle_alloc_error;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::fmt;

/// The allocator refused this many bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutOfMemory {
    pub(crate) bytes: usize,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out of memory: cannot allocate {} bytes", self.bytes)
    }
}

/// Aborts if memory could not be allocated, as `Vec` does.
#[inline]
pub(crate) fn or_abort<T>(allocated: Result<T, OutOfMemory>) -> T {
    allocated.unwrap_or_else(|error| abort(error))
}

#[cold]
fn abort(OutOfMemory { bytes }: OutOfMemory) -> ! {
    handle_alloc_error(Layout::array::<u8>(bytes).unwrap_or(Layout::new::<u64>()))
}

#[inline]
pub(crate) fn reserve<T>(items: &mut Vec<T>, n: usize) -> Result<(), OutOfMemory> {
    let bytes = items.len().saturating_add(n).saturating_mul(size_of::<T>());
    items.try_reserve(n).map_err(|_| OutOfMemory { bytes })
}
