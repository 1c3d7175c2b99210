//! The definition of [`mask`](crate::mask) itself as a kernel. Tests compare all kernels with it.
#![forbid(unsafe_code)]

use super::bank::{ROWS, Square};
use super::batch::{Changed, Inserts, Lookups};
use crate::blocks::{Block, BlockSlice, BlockSliceMut, block_from_lanes, lanes_of};
use crate::mask::{ProbeCount, mask};

pub(super) fn insert(block: &mut Block, hash: u64, k: ProbeCount) -> bool {
    let mut lanes = lanes_of(block);
    let mut missing = 0;
    for (lane, bits) in lanes.iter_mut().zip(mask(hash, k)) {
        missing |= bits & !*lane;
        *lane |= bits;
    }
    *block = block_from_lanes(lanes);
    missing != 0
}

pub(super) fn contains(block: &Block, hash: u64, k: ProbeCount) -> bool {
    let mut missing = 0;
    for (lane, bits) in lanes_of(block).iter().zip(mask(hash, k)) {
        missing |= bits & !lane;
    }
    missing == 0
}

pub(super) fn insert_batch<const L: usize>(
    blocks: BlockSliceMut<'_>,
    k: ProbeCount,
    batch: Inserts<'_, L, impl Changed>,
) {
    batch.run(blocks, |block, hash| insert(block, hash, k));
}

// Not inlined, for the same reason as in `portable`.
#[inline(never)]
pub(super) fn contains_batch(blocks: BlockSlice<'_>, k: ProbeCount, batch: impl Lookups) {
    batch.run(blocks, |block, hash| contains(block, hash, k));
}

pub(super) fn find(region: &[u8], hash: u64, k: ProbeCount, found: &mut [u64]) {
    found.fill(!0);
    // `max`, because the rows of a bank without slots have no bytes.
    for (row, bytes) in region.chunks((region.len() / ROWS).max(1)).enumerate() {
        if mask(hash, k)[row / 64] >> (row % 64) & 1 == 1 {
            for slot in 0..64 * found.len() {
                let has = bytes.get(slot / 8).is_some_and(|byte| byte >> (slot % 8) & 1 == 1);
                found[slot / 64] &= !(u64::from(!has) << (slot % 64));
            }
        }
    }
}

pub(super) fn transpose(square: &mut Square) {
    let old = *square;
    for (bit, words) in square.iter_mut().enumerate() {
        for (lane, word) in words.iter_mut().enumerate() {
            *word = (0..64).map(|slot| (old[slot][lane] >> bit & 1) << slot).sum();
        }
    }
}
