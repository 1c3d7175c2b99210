//! The kernel of wasm and of all other CPUs without a kernel of their own, such as x86-64 without SSE4.1.
//!
//! It uses `wide`, which chooses instructions at compile time. The kernels for NEON and SSE4.1 use its inserts, its
//! lookups in banks and its transposition.
#![forbid(unsafe_code)]

use wide::u64x8;

use super::bank::{self, Square};
use super::batch::{Changed, Inserts, Lookups};
use super::tables::{POSITIONS, PerWord, ROWS, Row, first_word, rotation, second_word};
use crate::blocks::{Block, BlockSlice, BlockSliceMut, LANES, block_from_lanes, lanes_of};
use crate::mask::ProbeCount;

#[inline]
pub(super) fn insert(block: &mut Block, hash: u64, k: ProbeCount) -> bool {
    insert_mask(block, mask(hash, PerWord::of(&ROWS, k)))
}

#[inline]
pub(super) fn contains(block: &Block, hash: u64, k: ProbeCount) -> bool {
    contains_mask(block, mask(hash, PerWord::of(&ROWS, k)))
}

pub(super) fn insert_batch<const L: usize>(
    blocks: BlockSliceMut<'_>,
    k: ProbeCount,
    batch: Inserts<'_, L, impl Changed>,
) {
    let rows = PerWord::of(&ROWS, k);
    batch.run(blocks, |block, hash| insert_mask(block, mask(hash, rows)));
}

// Not inlined, because it would be compiled once for each caller.
#[inline(never)]
pub(super) fn contains_batch(blocks: BlockSlice<'_>, k: ProbeCount, batch: impl Lookups) {
    let rows = PerWord::of(&ROWS, k);
    batch.run(blocks, |block, hash| contains_mask(block, mask(hash, rows)));
}

pub(super) fn find(region: &[u8], hash: u64, k: ProbeCount, found: &mut [u64]) {
    bank::find(region, hash, k, found);
}

pub(super) fn transpose(square: &mut Square) {
    bank::transpose(square);
}

#[inline]
fn insert_mask(block: &mut Block, mask: u64x8) -> bool {
    let old = u64x8::new(lanes_of(block));
    *block = block_from_lanes((old | mask).to_array());
    any(!old & mask)
}

#[inline]
fn contains_mask(block: &Block, mask: u64x8) -> bool {
    !any(!u64x8::new(lanes_of(block)) & mask)
}

/// Returns whether any bit is set. ORs the lanes, because `wide`'s `==` branches between its halves, and its `any`
/// accepts only masks.
#[inline]
fn any(lanes: u64x8) -> bool {
    lanes.to_array().into_iter().fold(0, |all, lane| all | lane) != 0
}

// Not by `PerWord::each`, because inserts with k above 8 would be slower.
#[inline]
fn mask(hash: u64, rows: PerWord<[Row; LANES]>) -> u64x8 {
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
    // WebAssembly cannot shift each lane by its own count. `wide` shifts in loops instead, which are not unrolled in a
    // build for size.
    if cfg!(target_arch = "wasm32") {
        let lane = |i: usize| row.0[i] << ((word >> POSITIONS[i]) & 63);
        return u64x8::new([lane(0), lane(1), lane(2), lane(3), lane(4), lane(5), lane(6), lane(7)]);
    }
    let positions = u64x8::splat(word) >> u64x8::new(POSITIONS);
    // No mask, because `wide` uses shift counts modulo 64.
    u64x8::new(row.0) << positions
}
