//! AVX2: a block is two registers.

use core::arch::x86_64::*;

use super::prefetch::Pair;
use super::rows::{Row, Rows, first_word, rotation, second_word, steps};
use crate::blocks::{Block, BlockSlice, Blocks, LANES};
use crate::mask::ProbeCount;
use crate::short::{Lane, ShortLanes};

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn insert(block: &mut Block, hash: u64, k: ProbeCount) -> bool {
    insert_mask(block, mask(hash, Rows::of(k)))
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn contains(block: &Block, hash: u64, k: ProbeCount) -> bool {
    contains_mask(block, mask(hash, Rows::of(k)))
}

#[target_feature(enable = "avx2")]
pub(super) fn insert_batch(
    blocks: &mut Blocks,
    hashes: impl Iterator<Item = Pair>,
    k: ProbeCount,
    mut on_unchanged: impl FnMut(u64),
) {
    let rows = Rows::of(k);
    if let [block] = blocks.as_mut_slice() {
        // In memory each insert would wait for the one before it.
        let mut bits = load(block);
        for hash in hashes.flatten() {
            let mask = mask(hash, rows);
            if lacks_none(bits, mask) {
                on_unchanged(hash);
            }
            bits = [_mm256_or_si256(bits[0], mask[0]), _mm256_or_si256(bits[1], mask[1])];
        }
        store(block, bits);
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

#[target_feature(enable = "avx2")]
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

#[target_feature(enable = "avx2")]
pub(super) fn contains_short(lanes: ShortLanes<'_>, hash: u64, k: ProbeCount) -> bool {
    lacks_none(short_block(lanes.as_slice(), lanes.first_lane_of(hash)), mask(hash, Rows::of(k)))
}

#[target_feature(enable = "avx2")]
pub(super) fn contains_any<'a>(
    filters: impl Iterator<Item = BlockSlice<'a>>,
    hash: u64,
    k: ProbeCount,
) -> bool {
    let mask = mask(hash, Rows::of(k));
    let found = filters.map(|blocks| contains_mask(blocks.block_of(hash), mask));
    found.fold(false, |any, found| any | found)
}

/// Eight lanes from `first` on, in a circle.
#[inline]
#[target_feature(enable = "avx2")]
fn short_block(lanes: &[Lane], first: usize) -> [__m256i; 2] {
    // SAFETY: steps are 32 readable bytes.
    let steps = unsafe { _mm256_loadu_si256(steps(lanes.len()).as_ptr().cast()) };
    let lane = _mm256_add_epi32(_mm256_set1_epi32(first as i32), steps);
    // Beyond the last by less than a round: the lesser, as numbers without sign, is the one in the circle.
    let lane = _mm256_min_epu32(lane, _mm256_sub_epi32(lane, _mm256_set1_epi32(lanes.len() as i32)));
    let start = lanes.as_ptr().cast();
    // SAFETY: reads 8 bytes at each of these lanes, all below the number of lanes.
    unsafe {
        [
            _mm256_i32gather_epi64::<8>(start, _mm256_castsi256_si128(lane)),
            _mm256_i32gather_epi64::<8>(start, _mm256_extracti128_si256::<1>(lane)),
        ]
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn insert_mask(block: &mut Block, mask: [__m256i; 2]) -> bool {
    let old = load(block);
    store(block, [_mm256_or_si256(old[0], mask[0]), _mm256_or_si256(old[1], mask[1])]);
    !lacks_none(old, mask)
}

#[inline]
#[target_feature(enable = "avx2")]
fn contains_mask(block: &Block, mask: [__m256i; 2]) -> bool {
    lacks_none(load(block), mask)
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(block: &Block) -> [__m256i; 2] {
    let halves = block.as_ptr().cast::<__m256i>();
    // SAFETY: a block is 64 readable bytes, and `loadu` needs no alignment.
    unsafe { [_mm256_loadu_si256(halves), _mm256_loadu_si256(halves.add(1))] }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(block: &mut Block, bits: [__m256i; 2]) {
    let halves = block.as_mut_ptr().cast::<__m256i>();
    // SAFETY: a borrowed block is 64 writable bytes, and `storeu` needs no alignment.
    unsafe {
        _mm256_storeu_si256(halves, bits[0]);
        _mm256_storeu_si256(halves.add(1), bits[1]);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn lacks_none(block: [__m256i; 2], mask: [__m256i; 2]) -> bool {
    let missing =
        _mm256_or_si256(_mm256_andnot_si256(block[0], mask[0]), _mm256_andnot_si256(block[1], mask[1]));
    _mm256_testz_si256(missing, missing) != 0
}

#[inline]
#[target_feature(enable = "avx2")]
fn mask(hash: u64, rows: Rows) -> [__m256i; 2] {
    let first = first_word(hash);
    let mask = bits(first, &rows.first[rotation(first)]);
    match rows.second {
        None => mask,
        Some(rows) => {
            let again = bits(second_word(first), &rows[rotation(first)]);
            [_mm256_or_si256(mask[0], again[0]), _mm256_or_si256(mask[1], again[1])]
        }
    }
}

/// One bit in each lane of the row that holds a one.
#[inline]
#[target_feature(enable = "avx2")]
fn bits(word: u64, row: &Row) -> [__m256i; 2] {
    let word = _mm256_set1_epi64x(word as i64);
    // A shift by 64 or more gives zero, so the counts are cut to six bits first.
    let six_bits = _mm256_set1_epi64x(63);
    let positions = [
        _mm256_and_si256(_mm256_srlv_epi64(word, _mm256_setr_epi64x(13, 19, 25, 31)), six_bits),
        _mm256_and_si256(_mm256_srlv_epi64(word, _mm256_setr_epi64x(37, 43, 49, 55)), six_bits),
    ];
    let halves = row.0.as_ptr().cast::<__m256i>();
    const { assert!(size_of::<Row>() == 8 * LANES) };
    // SAFETY: a row is 64 readable bytes, aligned to 64.
    let row = unsafe { [_mm256_load_si256(halves), _mm256_load_si256(halves.add(1))] };
    [_mm256_sllv_epi64(row[0], positions[0]), _mm256_sllv_epi64(row[1], positions[1])]
}
