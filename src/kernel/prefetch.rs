//! Prefetches of cache lines, and in which filters a loop over many keys needs them.

use core::sync::atomic::AtomicU8;

use super::choice::{Choice, UNMADE};
use crate::blocks::{Block, BlockSlice};
use crate::detect;

/// Whether [`prefetch_line`] does anything. Without prefetches, each batch loop is compiled once instead of three
/// times, which matters to WebAssembly, because its code is loaded before it runs.
pub(super) const PREFETCHES: bool =
    cfg!(any(all(target_arch = "x86_64", target_feature = "sse"), target_arch = "aarch64"));

/// Starts loading the line of a byte into the cache. Never faults, wherever it points.
#[inline]
pub(super) fn prefetch_line(byte: *const u8) {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse"))]
    // SAFETY: A prefetch is a hint, so it reads nothing and cannot fault. The target has SSE.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(byte.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: A prefetch is a hint, so it reads nothing, writes no register and no flag, and cannot fault.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) byte, options(nostack, readonly, preserves_flags));
    }
    #[cfg(not(any(all(target_arch = "x86_64", target_feature = "sse"), target_arch = "aarch64")))]
    let _ = byte;
}

/// Starts loading a block. With `STRADDLE`, loads the lines of its first and its last byte, because a block that is
/// read in place may straddle two.
#[inline]
pub(crate) fn prefetch<const STRADDLE: bool>(block: *const Block) {
    let first = block.cast::<u8>();
    prefetch_line(first);
    if STRADDLE {
        prefetch_line(first.wrapping_add(size_of::<Block>() - 1));
    }
}

/// Each hash, and the later hash whose lines to prefetch before the hash is looked up or inserted. For filters with
/// several lines per key, where distances from 16 to 128 perform alike.
#[inline]
pub(crate) fn with_later(hashes: &[u64]) -> impl Iterator<Item = (u64, Option<u64>)> {
    const AHEAD: usize = 16;
    hashes.iter().enumerate().map(|(i, &hash)| (hash, hashes.get(i + AHEAD).copied()))
}

/// Returns whether every block straddles two cache lines, as blocks that are read in place may. `false` without
/// prefetches.
#[inline]
pub(super) fn straddle(blocks: BlockSlice<'_>) -> bool {
    PREFETCHES && !blocks.as_slice().as_ptr().addr().is_multiple_of(size_of::<Block>())
}

/// Returns the number of blocks from which on batches prefetch, three quarters of the L2 cache. In smaller filters the CPU
/// overlaps the few waits for L3 itself, and prefetches cost up to a third (Emerald Rapids).
///
/// With keys that were not asked before, prefetching begins to help at 0.4 to 0.8 of L2 on Zen 5, at 0.6 to 1.0 on Zen 3,
/// and at 0.75 to 1.5 on Emerald Rapids, whichever the kernel.
#[inline]
pub(crate) fn large() -> usize {
    static L2: Choice = Choice(AtomicU8::new(UNMADE));
    const UNIT: usize = 64 << 10;
    let units = L2.get(|units| (units != UNMADE).then_some(units), || (detect::l2_cache() / UNIT) as u8);
    usize::from(units) * (UNIT * 3 / 4 / size_of::<Block>())
}
