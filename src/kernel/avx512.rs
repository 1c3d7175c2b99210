//! AVX-512: a block is one register.

use core::arch::x86_64::*;

use super::prefetch::Pair;
use super::rows::{Row, Rows, first_word, rotation, second_word, steps};
use crate::blocks::{Block, BlockSlice, Blocks, LANES};
use crate::mask::ProbeCount;
use crate::short::{Lane, ShortLanes};

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn insert(block: &mut Block, hash: u64, k: ProbeCount) -> bool {
    insert_mask(block, mask(hash, Rows::of(k)))
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn contains(block: &Block, hash: u64, k: ProbeCount) -> bool {
    contains_mask(block, mask(hash, Rows::of(k)))
}

#[target_feature(enable = "avx512f")]
pub(super) fn insert_batch(
    blocks: &mut Blocks,
    hashes: impl Iterator<Item = Pair>,
    k: ProbeCount,
    mut on_unchanged: impl FnMut(u64),
) {
    let rows = Rows::of(k);
    if let [block] = blocks.as_mut_slice() {
        // In memory each insert would wait for the one before it.
        let mut old = load(block);
        for hash in hashes.flatten() {
            let new = _mm512_or_si512(old, mask(hash, rows));
            if _mm512_cmpneq_epi64_mask(old, new) == 0 {
                on_unchanged(hash);
            }
            old = new;
        }
        store(block, old);
        return;
    }
    for pair in hashes {
        for hash in pair {
            if !insert_mask(blocks.block_of_mut(hash), mask(hash, rows)) {
                on_unchanged(hash);
            }
        }
    }
}

#[target_feature(enable = "avx512f")]
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

#[target_feature(enable = "avx512f")]
pub(super) fn contains_short(lanes: ShortLanes<'_>, hash: u64, k: ProbeCount) -> bool {
    let mask = mask(hash, Rows::of(k));
    let block = short_block(lanes.as_slice(), lanes.first_lane_of(hash));
    _mm512_cmpneq_epi64_mask(_mm512_and_si512(block, mask), mask) == 0
}

/// Eight lanes from `first` on, in a circle.
#[inline]
#[target_feature(enable = "avx512f")]
fn short_block(lanes: &[Lane], first: usize) -> __m512i {
    let start = lanes.as_ptr().cast::<i64>();
    if lanes.len() < LANES {
        // SAFETY: reads as many lanes as there are, each 8 bytes.
        let lanes_once = unsafe { _mm512_maskz_loadu_epi64((1 << lanes.len()) - 1, start) };
        // SAFETY: steps are 32 readable bytes.
        let steps = unsafe { _mm256_loadu_si256(steps(lanes.len()).as_ptr().cast()) };
        let lane = _mm512_add_epi64(_mm512_cvtepu32_epi64(steps), _mm512_set1_epi64(first as i64));
        // Beyond the last by less than a round: the lesser, as numbers without sign, is the one in the circle.
        let lane = _mm512_min_epu64(lane, _mm512_sub_epi64(lane, _mm512_set1_epi64(lanes.len() as i64)));
        _mm512_permutexvar_epi64(lane, lanes_once)
    } else {
        let before_end = (lanes.len() - first).min(LANES);
        let is_before_end = ((1_u32 << before_end) - 1) as u8;
        // SAFETY: `first` is one of the lanes, and of the eight that follow those before the end are read.
        let block = unsafe { _mm512_maskz_loadu_epi64(is_before_end, start.add(first)) };
        // SAFETY: the others are read from the first lane on, fewer than eight, and there are eight or more.
        unsafe { _mm512_mask_loadu_epi64(block, !is_before_end, start.wrapping_sub(before_end)) }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn insert_mask(block: &mut Block, mask: __m512i) -> bool {
    let old = load(block);
    let new = _mm512_or_si512(old, mask);
    store(block, new);
    _mm512_cmpneq_epi64_mask(old, new) != 0
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(block: &Block) -> __m512i {
    // SAFETY: a block is 64 readable bytes, and `loadu` needs no alignment.
    unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(block: &mut Block, bits: __m512i) {
    // SAFETY: a borrowed block is 64 writable bytes, and `storeu` needs no alignment.
    unsafe { _mm512_storeu_si512(block.as_mut_ptr().cast(), bits) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn contains_mask(block: &Block, mask: __m512i) -> bool {
    _mm512_cmpneq_epi64_mask(_mm512_and_si512(load(block), mask), mask) == 0
}

#[inline]
#[target_feature(enable = "avx512f")]
fn mask(hash: u64, rows: Rows) -> __m512i {
    let first = first_word(hash);
    let mask = bits(first, &rows.first[rotation(first)]);
    match rows.second {
        None => mask,
        Some(rows) => _mm512_or_si512(mask, bits(second_word(first), &rows[rotation(first)])),
    }
}

/// One bit in each lane of the row that holds a one.
#[inline]
#[target_feature(enable = "avx512f")]
fn bits(word: u64, row: &Row) -> __m512i {
    let positions = _mm512_setr_epi64(13, 19, 25, 31, 37, 43, 49, 55);
    // SAFETY: a row is 64 readable bytes, aligned to 64.
    let row = unsafe { _mm512_load_si512(row.0.as_ptr().cast()) };
    // A rotation takes its count modulo 64 by itself, which a shift does not.
    _mm512_rolv_epi64(row, _mm512_srlv_epi64(_mm512_set1_epi64(word as i64), positions))
}
