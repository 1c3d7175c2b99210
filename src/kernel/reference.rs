//! The definition itself as a kernel: the oracle of the others.
#![forbid(unsafe_code)]

use super::batch::{Inserts, Lookups, Pairs};
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
    k: ProbeCount,
    inserts: Inserts<impl Pairs, impl FnMut(u64)>,
) {
    inserts.run(blocks, |block, hash| insert(block, hash, k));
}

pub(super) fn contains_batch(blocks: BlockSlice<'_>, k: ProbeCount, lookups: Lookups<'_, impl Pairs>) {
    lookups.run(blocks, |block, hash| contains(block, hash, k));
}
