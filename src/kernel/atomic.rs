//! Inserts into blocks that other threads may change at the same time.
#![forbid(unsafe_code)]

use super::shared;
use super::tables::{first_word, rotation, second_word};
use crate::blocks::{Block, SharedBlock};
use crate::mask::ProbeCount;

/// Sets the bits of `mask` in a block that other threads may change at the same time.
pub(crate) fn set_shared(block: &SharedBlock, mask: &Block) {
    let mask: [u64; 8] = bytemuck::cast(*mask);
    shared::insert(block, mask.into_iter().enumerate().filter(|(_, bits)| *bits != 0));
}

/// [`Kernel::insert`] into a block that other threads may change at the same time. Atomic instructions change one lane
/// each, so there is one function for all kernels.
///
/// There is one function for each k, so that its loops are unrolled. With fewer instructions, a CPU begins more inserts
/// while it waits for the lines of the first, which saves a third of the time of a new key in a filter of 64 MiB.
pub(crate) fn insert_shared(block: &SharedBlock, hash: u64, k: ProbeCount) -> bool {
    const OF_K: [fn(&SharedBlock, u64) -> bool; 16] = [
        of::<1>, of::<2>, of::<3>, of::<4>, of::<5>, of::<6>, of::<7>, of::<8>, of::<9>, of::<10>, of::<11>,
        of::<12>, of::<13>, of::<14>, of::<15>, of::<16>,
    ];
    OF_K[k.get() as usize - 1](block, hash)
}

fn of<const K: u32>(block: &SharedBlock, hash: u64) -> bool {
    let first = first_word(hash);
    let second = second_word(first);
    let bits = (0..K.min(8)).map(|probe| {
        let lane = (rotation(first) as u32 + probe) % 8;
        let bit = |word: u64| 1_u64 << ((word >> (13 + 6 * lane)) & 63);
        (lane as usize, (bit(first) | if probe + 8 < K { bit(second) } else { 0 }).to_le())
    });
    shared::insert(block, bits)
}
