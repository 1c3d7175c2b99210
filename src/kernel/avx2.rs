//! AVX2: a block is two registers.

use core::arch::x86_64::*;

use super::batch::{Inserts, Lookups, Pairs};
use super::rows::{Row, Rows, steps};
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
    k: ProbeCount,
    inserts: Inserts<impl Pairs, impl FnMut(u64)>,
) {
    let rows = Rows::of(k);
    inserts.run_in_registers(blocks, |block, hash| insert_mask(block, mask(hash, rows)));
}

#[target_feature(enable = "avx2")]
pub(super) fn contains_batch(blocks: BlockSlice<'_>, k: ProbeCount, lookups: Lookups<'_, impl Pairs>) {
    let rows = Rows::of(k);
    lookups.run(blocks, |block, hash| contains_mask(block, mask(hash, rows)));
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
    filters.fold(false, |any, blocks| any | contains_mask(blocks.block_of(hash), mask))
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
    let changed = !lacks_none(old, mask);
    store(block, or(old, mask));
    changed
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
fn or(a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
    [_mm256_or_si256(a[0], b[0]), _mm256_or_si256(a[1], b[1])]
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
    rows.mask(hash, |word, row| bits(word, row), |first, second| or(first, second))
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
