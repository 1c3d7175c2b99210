//! The definition itself as a kernel. Tests compare the other kernels with it.
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

pub(super) fn insert_batch(blocks: &mut Blocks, k: ProbeCount, batch: Inserts<impl Pairs, impl FnMut(u64)>) {
    batch.run(blocks, |block, hash| insert(block, hash, k));
}

pub(super) fn contains_batch(blocks: BlockSlice<'_>, k: ProbeCount, batch: Lookups<'_, impl Pairs>) {
    batch.run(blocks, |block, hash| contains(block, hash, k));
}
