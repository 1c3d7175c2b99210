//! Lanes in which several threads set bits at the same time.
//!
//! `tests/loom.rs` compiles this file once more, with loom's atomics, and tries every interleaving of threads.
#![forbid(unsafe_code)]

use super::sync::{AtomicU64, Ordering};

/// Sets the bits in each lane that `bits` lists. Returns whether this thread saw any of them clear, and writes nothing
/// otherwise, because a write removes the line from the caches of all other cores.
///
/// If a bit is missing, writes to every listed lane. A branch for each lane would wait for the cache line, could not be
/// predicted, and would keep the next inserts waiting, which costs far more in large filters than the writes do in
/// small ones. Reading the line by the kernels' assembly is slower still. Does not use the old value that `fetch_or`
/// returns, because x86 would need a retry loop for it. No ordering with other memory is needed, because bits are only
/// ever set, and a thread that must see them has synchronised by other means.
#[inline]
pub(super) fn insert(lanes: &[AtomicU64; 8], bits: impl Iterator<Item = (usize, u64)> + Clone) -> bool {
    let missing =
        bits.clone().fold(0, |missing, (lane, bits)| missing | (bits & !lanes[lane].load(Ordering::Relaxed)));
    if missing != 0 {
        bits.for_each(|(lane, bits)| _ = lanes[lane].fetch_or(bits, Ordering::Relaxed));
    }
    missing != 0
}

/// The lanes, each as it is at some time during the call.
#[inline]
pub(super) fn load(lanes: &[AtomicU64; 8]) -> [u64; 8] {
    core::array::from_fn(|i| lanes[i].load(Ordering::Relaxed))
}
