//! Lanes in which several threads set bits at the same time.
//!
//! `tests/loom.rs` compiles this file a second time, with loom's atomics, and tries every interleaving of threads.
#![forbid(unsafe_code)]

use super::atomic::{AtomicU64, Ordering};

/// Sets the bits in each lane that `bits` lists. Returns whether this thread saw any of them clear, and writes nothing
/// otherwise: a write takes the line from the caches of all other cores.
///
/// If a bit is missing, writes to every lane. A branch on each lane waits for the cache line, cannot be predicted, and
/// keeps the next inserts waiting: without these branches, a new key takes 61 instead of 78 ns in a filter of 64 MiB, and
/// 31 instead of 29 in one of 64 KiB. Reading the line by the kernels' assembly takes 87 (Zen 5, 2026-11). Does not use
/// the old value that `fetch_or` returns, since x86 would need a retry loop for it. No ordering with other memory is
/// needed, because bits are only ever set: a thread that must see them has synchronised by other means.
#[inline]
pub(super) fn insert(lanes: &[AtomicU64; 8], bits: impl Iterator<Item = (usize, u64)> + Clone) -> bool {
    let missing =
        bits.clone().fold(0, |missing, (lane, bits)| missing | (bits & !lanes[lane].load(Ordering::Relaxed)));
    if missing != 0 {
        bits.for_each(|(lane, bits)| _ = lanes[lane].fetch_or(bits, Ordering::Relaxed));
    }
    missing != 0
}

/// The bits: each lane as it is at some time during the call.
#[inline]
pub(super) fn load(lanes: &[AtomicU64; 8]) -> [u64; 8] {
    core::array::from_fn(|i| lanes[i].load(Ordering::Relaxed))
}
