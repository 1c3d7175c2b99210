//! Lanes in which several threads set bits at the same time.
//!
//! `tests/loom.rs` compiles this file a second time, with loom's atomics, and tries every interleaving of threads.
#![forbid(unsafe_code)]

use super::atomic::{AtomicU64, Ordering};

/// Sets the bits of `mask`. Returns whether this thread saw any of them clear.
///
/// Does not write to lanes that have their bits already: a write takes the line from the caches of all other cores, and
/// each takes 5 ns. Collects these lanes first, because a branch for each, on which lanes a key has and which are full,
/// cannot be predicted: that takes 33 ns for a new key instead of 27 (Zen 5, 2026-11). Does not use the old value that
/// `fetch_or` returns, since x86 would need a retry loop for it. No ordering with other memory is needed, because bits
/// are only ever set: a thread that must see them has synchronised by other means.
///
/// Tried: `cmpxchg16b` for two lanes at once takes 24.5 ns, in assembly that neither loom nor the thread sanitizer sees.
#[inline]
pub(super) fn insert(lanes: &[AtomicU64; 8], mask: [u64; 8]) -> bool {
    let is_missing = |lane: usize| mask[lane] & !lanes[lane].load(Ordering::Relaxed) != 0;
    let missing = (0..8).fold(0_u8, |missing, lane| missing | u8::from(is_missing(lane)) << lane);
    let mut rest = missing;
    while rest != 0 {
        let lane = rest.trailing_zeros() as usize;
        lanes[lane].fetch_or(mask[lane], Ordering::Relaxed);
        rest &= rest - 1;
    }
    missing != 0
}

/// The bits, those of each lane as they are at some time during the call.
#[inline]
pub(super) fn load(lanes: &[AtomicU64; 8]) -> [u64; 8] {
    core::array::from_fn(|i| lanes[i].load(Ordering::Relaxed))
}
