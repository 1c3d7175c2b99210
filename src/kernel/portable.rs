//! `wide`, whose instructions are chosen when the crate is compiled: the kernel of aarch64 and wasm, and of x86
//! without AVX2.
#![forbid(unsafe_code)]

use wide::u64x8;

use super::prefetch::Pair;
use super::rows::{Row, Rows, first_word, rotation, second_word};
use crate::blocks::{Block, BlockSlice, Blocks, block_from_lanes, lanes};
use crate::mask::ProbeCount;

#[inline]
pub(super) fn insert(block: &mut Block, hash: u64, k: ProbeCount) -> bool {
    insert_mask(block, mask(hash, Rows::of(k)))
}

#[inline]
pub(super) fn contains(block: &Block, hash: u64, k: ProbeCount) -> bool {
    contains_mask(block, mask(hash, Rows::of(k)))
}

pub(super) fn insert_batch(
    blocks: &mut Blocks,
    hashes: impl Iterator<Item = Pair>,
    k: ProbeCount,
    mut on_unchanged: impl FnMut(u64),
) {
    let rows = Rows::of(k);
    for pair in hashes {
        for hash in pair {
            if !insert_mask(blocks.block_of_mut(hash), mask(hash, rows)) {
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
    let rows = Rows::of(k);
    for (found, pair) in found.iter_mut().zip(hashes) {
        for (found, hash) in found.iter_mut().zip(pair) {
            *found = contains_mask(blocks.block_of(hash), mask(hash, rows));
        }
    }
}

#[inline]
fn insert_mask(block: &mut Block, mask: u64x8) -> bool {
    let old = u64x8::new(lanes(block));
    *block = block_from_lanes((old | mask).to_array());
    any(!old & mask)
}

#[inline]
fn contains_mask(block: &Block, mask: u64x8) -> bool {
    !any(!u64x8::new(lanes(block)) & mask)
}

/// Whether any bit is set. An or-tree: `wide`'s `==` branches between its halves, and its `any` takes masks only.
#[inline]
fn any(lanes: u64x8) -> bool {
    lanes.to_array().into_iter().fold(0, |all, lane| all | lane) != 0
}

#[inline]
fn mask(hash: u64, rows: Rows) -> u64x8 {
    let first = first_word(hash);
    let mask = bits(first, &rows.first[rotation(first)]);
    match rows.second {
        None => mask,
        Some(rows) => mask | bits(second_word(first), &rows[rotation(first)]),
    }
}

/// One bit in each lane of the row that holds a one.
#[inline]
fn bits(word: u64, row: &Row) -> u64x8 {
    let positions = u64x8::splat(word) >> u64x8::new([13, 19, 25, 31, 37, 43, 49, 55]);
    // `wide` takes shift counts modulo 64.
    u64x8::new(row.0) << positions
}
