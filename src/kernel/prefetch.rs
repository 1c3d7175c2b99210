//! Asking for a block's cache line ahead of its lookup.

use crate::blocks::Block;

/// Starts loading the block into the cache; never faults, and does nothing where the CPU has no such hint here.
#[inline]
pub(crate) fn prefetch(block: &Block) {
    let first = block.as_ptr();
    // Bytes read in place may straddle two lines. For aligned blocks the second hint finds the line on its way.
    let last = first.wrapping_add(block.len() - 1);
    for byte in [first, last] {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch is a hint: it reads nothing and cannot fault. SSE is in every x86-64 CPU.
        unsafe {
            core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(byte.cast());
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a prefetch is a hint: it reads nothing, writes no register and no flag, and cannot fault.
        unsafe {
            core::arch::asm!("prfm pldl1keep, [{}]", in(reg) byte, options(nostack, readonly, preserves_flags));
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let _ = byte;
    }
}
