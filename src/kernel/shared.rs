//! Lanes that several threads set bits in at once.
//!
//! `tests/loom.rs` compiles this file a second time, against loom's atomics, and tries every order of events.
#![forbid(unsafe_code)]

use super::atomic::{AtomicU64, Ordering};

/// Sets bits; whether this thread has seen any of them clear.
///
/// Lanes that have them are left alone: to write to a line takes it from the caches of all others. What a lane was before
/// is not asked of the write itself, as x86 would then have to try again and again. No order with other memory is needed,
/// as bits are only ever set: who must see them has synchronised by other means.
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

/// The bits, of each lane as they are at some time during the call.
#[inline]
pub(super) fn load(lanes: &[AtomicU64; 8]) -> [u64; 8] {
    core::array::from_fn(|i| lanes[i].load(Ordering::Relaxed))
}
