//! The AVX2 kernel, in which a block fills two registers.
//!
//! Single lookups and inserts run this code only in builds for AVX2, and on Windows. Other builds run the assembly of
//! `inlined` instead.

use core::arch::x86_64::*;

use super::bank::{self, Square};
use super::batch::{Changed, Inserts, Lookups};
use super::tables::{PerWord, ROWS, Row, Table, lane_bits, rotation, second_word, steps};
use crate::blocks::{Block, BlockSlice, BlockSliceMut, LANES};
use crate::lanes::{Lane, ShortLanes};
use crate::mask::ProbeCount;

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn insert(block: &mut Block, hash: u64, k: ProbeCount) -> bool {
    insert_mask(block, mask(hash, PerWord::of(&ROWS, k)))
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn contains(block: &Block, hash: u64, k: ProbeCount) -> bool {
    contains_probes(load(block), hash, PerWord::of(&PROBED, k))
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn insert_batch<const L: usize>(
    blocks: BlockSliceMut<'_>,
    k: ProbeCount,
    batch: Inserts<'_, L, impl Changed>,
) {
    let rows = PerWord::of(&ROWS, k);
    batch.run_in_registers(blocks, |block, hash| insert_mask(block, mask(hash, rows)));
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn contains_batch(blocks: BlockSlice<'_>, k: ProbeCount, batch: impl Lookups) {
    let probed = PerWord::of(&PROBED, k);
    let contains = |block: &Block, hash| contains_probes(load(block), hash, probed);
    let first = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(i64::from_le_bytes(*probed.first)));
    let answers = |words: &[u64; 8], set: &[u8; 8]| answers(words, set, first);
    match probed.second {
        None => {
            batch.run_in_steps(blocks, contains, |block, word| set_probes(load(block), word), answers);
        }
        Some(second) => {
            let set = |block: &Block, word| {
                let block = load(block);
                set_probes(block, word) & (set_probes(block, second_word(word)) | !second[rotation(word)])
            };
            batch.run_in_steps(blocks, contains, set, answers);
        }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn find(region: &[u8], hash: u64, k: ProbeCount, found: &mut [u64]) {
    bank::find(region, hash, k, found);
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn transpose(square: &mut Square) {
    bank::transpose(square);
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn contains_short(lanes: ShortLanes<'_>, hash: u64, k: ProbeCount) -> bool {
    let block = short_block(lanes.as_slice(), lanes.first_lane_of(hash));
    contains_probes(block, hash, PerWord::of(&PROBED, k))
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn fold_contains<'a>(
    filters: impl Iterator<Item = BlockSlice<'a>>,
    hash: u64,
    k: ProbeCount,
    add: impl Fn(u64, bool) -> u64,
) -> u64 {
    // One mask serves all filters. A block that has all bits of the mask is all ones once the bits outside the mask are
    // set too. The test for that leaves its result in the carry flag, so one instruction adds it to what was found.
    let ones = _mm256_set1_epi64x(-1);
    let outside = mask(hash, PerWord::of(&ROWS, k)).map(|half| _mm256_xor_si256(half, ones));
    filters.fold(0, |found, blocks| {
        let block = or(load(blocks.block_of(hash)), outside);
        add(found, _mm256_testc_si256(_mm256_and_si256(block[0], block[1]), ones) != 0)
    })
}

/// The eight lanes from `first` on, wrapping around after the last.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn short_block(lanes: &[Lane], first: usize) -> [__m256i; 2] {
    // SAFETY: The AVX load reads the 32 bytes of eight `u32`, and `loadu` needs no alignment.
    let steps = unsafe { _mm256_loadu_si256(steps(lanes.len()).as_ptr().cast()) };
    let lane = _mm256_add_epi32(_mm256_set1_epi32(first as i32), steps);
    // An index past the last lane wraps around, because it is less than one round too large. For an index in range, the
    // subtraction gives a huge number, so the unsigned minimum keeps the index.
    let lane = _mm256_min_epu32(lane, _mm256_sub_epi32(lane, _mm256_set1_epi32(lanes.len() as i32)));
    let start = lanes.as_ptr().cast();
    // SAFETY: The AVX2 gathers read 8 bytes at each of these lanes, whose indices are all below `lanes.len()`.
    unsafe {
        [
            _mm256_i32gather_epi64::<8>(start, _mm256_castsi256_si128(lane)),
            _mm256_i32gather_epi64::<8>(start, _mm256_extracti128_si256::<1>(lane)),
        ]
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn insert_mask(block: &mut Block, mask: [__m256i; 2]) -> bool {
    let old = load(block);
    let missing = _mm256_or_si256(_mm256_andnot_si256(old[0], mask[0]), _mm256_andnot_si256(old[1], mask[1]));
    store(block, or(old, mask));
    _mm256_testz_si256(missing, missing) == 0
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn load(block: &Block) -> [__m256i; 2] {
    let halves = block.as_ptr().cast::<__m256i>();
    // SAFETY: The AVX loads read 32 bytes each of a block's 64, and `loadu` needs no alignment.
    unsafe { [_mm256_loadu_si256(halves), _mm256_loadu_si256(halves.add(1))] }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn store(block: &mut Block, bits: [__m256i; 2]) {
    let halves = block.as_mut_ptr().cast::<__m256i>();
    // SAFETY: The AVX stores write 32 bytes each of a mutably borrowed block's 64, and `storeu` needs no alignment.
    unsafe {
        _mm256_storeu_si256(halves, bits[0]);
        _mm256_storeu_si256(halves.add(1), bits[1]);
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn or(a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
    [_mm256_or_si256(a[0], b[0]), _mm256_or_si256(a[1], b[1])]
}

/// A bit for each probed lane, in the order in which [`set_probes`] collects them.
pub(super) static PROBED: Table<u8> = lane_bits([0, 1, 4, 5, 2, 3, 6, 7]);

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn contains_probes(block: [__m256i; 2], hash: u64, probed: PerWord<[u8; LANES]>) -> bool {
    let missing = |word, probed: &u8| !set_probes(block, word) & probed;
    probed.each(hash, missing, |first, second| first | second) == 0
}

/// One bit per lane, set if the lane's probe is. Shifts each lane's probe to the sign, and collects the signs. Includes
/// lanes that are not probed, so the caller must ignore them.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn set_probes(block: [__m256i; 2], word: u64) -> u8 {
    let [low, high] = positions(word).map(|positions| _mm256_andnot_si256(positions, _mm256_set1_epi64x(63)));
    let [low, high] = [_mm256_sllv_epi64(block[0], low), _mm256_sllv_epi64(block[1], high)];
    // 0xdd selects the high half of each lane.
    let signs = _mm256_shuffle_ps::<0xdd>(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high));
    _mm256_movemask_ps(signs) as u8
}

/// One bit per key, set if all lanes that its first word probes are `set`.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn answers(first_words: &[u64; 8], set: &[u8; 8], probed: __m256i) -> u8 {
    let four = |words: &[u64; 4], set: &[u8; 4]| {
        // SAFETY: The AVX load reads the 32 bytes of four words, and `loadu` needs no alignment.
        let words = unsafe { _mm256_loadu_si256(words.as_ptr().cast()) };
        let probed = _mm256_permutevar8x32_epi32(probed, _mm256_srli_epi64::<61>(words));
        // Keeps the byte that the rotation selected. In the high half of each lane, the index was 0.
        let probed = _mm256_and_si256(probed, _mm256_set1_epi64x(0xff));
        let set = _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(i32::from_le_bytes(*set)));
        let missing = _mm256_andnot_si256(set, probed);
        let present = _mm256_cmpeq_epi64(missing, _mm256_setzero_si256());
        _mm256_movemask_pd(_mm256_castsi256_pd(present)) as u8
    };
    let (words, set) = (first_words.as_chunks().0, set.as_chunks().0);
    four(&words[0], &set[0]) | four(&words[1], &set[1]) << 4
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn mask(hash: u64, rows: PerWord<[Row; LANES]>) -> [__m256i; 2] {
    rows.each(hash, |word, row| bits(word, row), |first, second| or(first, second))
}

/// One bit in each lane in which the row has a 1.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn bits(word: u64, row: &Row) -> [__m256i; 2] {
    // Masked to six bits, because a shift by 64 or more returns zero.
    let [low, high] = positions(word).map(|positions| _mm256_and_si256(positions, _mm256_set1_epi64x(63)));
    let halves = row.0.as_ptr().cast::<__m256i>();
    const { assert!(size_of::<Row>() == 8 * LANES) };
    // SAFETY: The AVX loads read 32 bytes each of a row's 64, which are aligned to 64.
    let row = unsafe { [_mm256_load_si256(halves), _mm256_load_si256(halves.add(1))] };
    [_mm256_sllv_epi64(row[0], low), _mm256_sllv_epi64(row[1], high)]
}

/// Each lane's position, in the six lowest bits. The bits above them are not cleared.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn positions(word: u64) -> [__m256i; 2] {
    let word = _mm256_set1_epi64x(word as i64);
    [
        _mm256_srlv_epi64(word, _mm256_setr_epi64x(13, 19, 25, 31)),
        _mm256_srlv_epi64(word, _mm256_setr_epi64x(37, 43, 49, 55)),
    ]
}
