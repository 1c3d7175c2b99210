//! Lanes in which several threads set bits at the same time.
//!
//! `tests/loom.rs` compiles this file a second time, with loom's atomics, and tries every interleaving of threads.
#![forbid(unsafe_code)]

use super::atomic::{AtomicU64, Ordering};

/// Sets the bits of `mask`. Returns whether this thread saw any of them clear.
///
/// Does not write to lanes that have their bits already: a write takes the line from the caches of all other cores.
/// Does not use the old value that `fetch_or` returns, since x86 would need a retry loop for it. No ordering with other
/// memory is needed, because bits are only ever set: a thread that must see them has synchronised by other means.
#[inline]
pub(super) fn insert(lanes: &[AtomicU64; 8], mask: [u64; 8]) -> bool {
    let mut missing = 0;
    for (lane, bits) in lanes.iter().zip(mask) {
        let missing_here = bits & !lane.load(Ordering::Relaxed);
        if missing_here != 0 {
            lane.fetch_or(bits, Ordering::Relaxed);
        }
        missing |= missing_here;
    }
    missing != 0
}

/// The bits, those of each lane as they are at some time during the call.
#[inline]
pub(super) fn load(lanes: &[AtomicU64; 8]) -> [u64; 8] {
    core::array::from_fn(|i| lanes[i].load(Ordering::Relaxed))
}
