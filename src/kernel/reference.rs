//! The definition itself as a kernel: the oracle of the others.
#![forbid(unsafe_code)]

use super::prefetch::Pair;
use crate::blocks::{Block, BlockSlice, Blocks, block_from_lanes, lanes};
use crate::mask::{ProbeCount, mask};

pub(super) fn insert(block: &mut Block, hash: u64, k: ProbeCount) -> bool {
    let mut lanes = lanes(block);
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
    for (lane, bits) in lanes(block).iter().zip(mask(hash, k)) {
        missing |= bits & !lane;
    }
    missing == 0
}

pub(super) fn insert_batch(
    blocks: &mut Blocks,
    hashes: impl Iterator<Item = Pair>,
    k: ProbeCount,
    mut on_unchanged: impl FnMut(u64),
) {
    for pair in hashes {
        for hash in pair {
            if !insert(blocks.block_of_mut(hash), hash, k) {
                on_unchanged(hash);
            }
        }
    }
}

pub(super) fn contains_batch(
    blocks: BlockSlice<'_>,
    hashes: impl Iterator<Item = Pair>,
    k: ProbeCount,
    found: &mut [[bool; 2]],
) {
    for (found, pair) in found.iter_mut().zip(hashes) {
        for (found, hash) in found.iter_mut().zip(pair) {
            *found = contains(blocks.block_of(hash), hash, k);
        }
    }
}
