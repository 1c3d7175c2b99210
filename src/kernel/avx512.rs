//! The AVX-512 kernel, in which a block fills one register.
//!
//! Single lookups and inserts run this code only in builds for AVX-512. Other builds run the assembly of `inlined`
//! instead.

use core::arch::x86_64::*;

use super::bank::{self, Square};
use super::batch::{Changed, Inserts, Lookups};
use super::tables::{PerWord, ROWS, Row, Table, first_word, lane_bits, rotation, second_word, steps};
use crate::blocks::{Block, BlockSlice, BlockSliceMut, LANES};
use crate::lanes::{Lane, ShortLanes};
use crate::mask::ProbeCount;

#[inline]
#[target_feature(enable = "avx512f,bmi1,bmi2")]
pub(super) fn insert(block: &mut Block, hash: u64, k: ProbeCount) -> bool {
    insert_mask(block, mask(hash, PerWord::of(&ROWS, k)))
}

#[inline]
#[target_feature(enable = "avx512f,bmi1,bmi2")]
pub(super) fn contains(block: &Block, hash: u64, k: ProbeCount) -> bool {
    ProbedLanes::of(k).are_set(load(block), hash)
}

#[target_feature(enable = "avx512f,bmi1,bmi2")]
pub(super) fn insert_batch<const L: usize>(
    blocks: BlockSliceMut<'_>,
    k: ProbeCount,
    batch: Inserts<'_, L, impl Changed>,
) {
    let rows = PerWord::of(&ROWS, k);
    batch.run_in_registers(blocks, |block, hash| insert_mask(block, mask(hash, rows)));
}

#[target_feature(enable = "avx512f,bmi1,bmi2")]
pub(super) fn contains_batch(blocks: BlockSlice<'_>, k: ProbeCount, batch: impl Lookups) {
    let probed = ProbedLanes::of(k);
    let contains = |block: &Block, hash| probed.are_set(load(block), hash);
    let first = widen(probed.first);
    let answers = |words: &[u64; 8], missing: &[u8; 8]| answers(words, missing, first);
    match probed.second {
        None => {
            let one = _mm512_set1_epi64(1);
            let missing = |block: &Block, word| _mm512_testn_epi64_mask(bits(word, one), load(block));
            batch.run_in_steps(blocks, contains, missing, answers);
        }
        Some(rows) => {
            let missing = |block: &Block, word| both_words_missing(load(block), word, rows);
            batch.run_in_steps(blocks, contains, missing, answers);
        }
    }
}

#[target_feature(enable = "avx512f,bmi1,bmi2")]
pub(super) fn find(region: &[u8], hash: u64, k: ProbeCount, found: &mut [u64]) {
    bank::find(region, hash, k, found);
}

#[target_feature(enable = "avx512f,bmi1,bmi2")]
pub(super) fn transpose(square: &mut Square) {
    bank::transpose(square);
}

#[target_feature(enable = "avx512f,bmi1,bmi2")]
pub(super) fn contains_short(lanes: ShortLanes<'_>, hash: u64, k: ProbeCount) -> bool {
    let block = short_block(lanes.as_slice(), lanes.first_lane_of(hash));
    ProbedLanes::of(k).are_set(block, hash)
}

#[target_feature(enable = "avx512f,bmi1,bmi2")]
pub(super) fn fold_contains<'a>(
    filters: impl Iterator<Item = BlockSlice<'a>>,
    hash: u64,
    k: ProbeCount,
    add: impl Fn(u64, bool) -> u64,
) -> u64 {
    let mask = mask(hash, PerWord::of(&ROWS, k));
    let contains = |block| _mm512_cmpneq_epi64_mask(_mm512_and_si512(load(block), mask), mask) == 0;
    filters.fold(0, |found, blocks| add(found, contains(blocks.block_of(hash))))
}

/// The eight lanes from `first` on, wrapping around after the last.
///
/// Loads only lanes that exist. A masked load past the end would not fault, but it is twenty times slower if the next
/// page is not in memory.
#[inline]
#[target_feature(enable = "avx512f,bmi1,bmi2")]
fn short_block(lanes: &[Lane], first: usize) -> __m512i {
    let n_lanes = lanes.len();
    let start = lanes.as_ptr().cast::<i64>();
    if n_lanes >= LANES {
        let from = first.min(n_lanes - LANES);
        // SAFETY: The AVX-512 loads read eight lanes each, from lane 0 and from lane `from`, which is at most `n_lanes
        // - 8`. `loadu` needs no alignment.
        let [begin, near] =
            unsafe { [_mm512_loadu_si512(start.cast()), _mm512_loadu_si512(start.add(from).cast())] };
        // Indices of 8 and more, which occur if `first` is one of the last seven lanes, select from `begin`.
        let lane = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
        let lane = _mm512_add_epi64(lane, _mm512_set1_epi64((first - from) as i64));
        return _mm512_permutex2var_epi64(near, lane, begin);
    }
    // SAFETY: The AVX load reads the 32 bytes of eight `u32`, and `loadu` needs no alignment.
    let steps = unsafe { _mm256_loadu_si256(steps(n_lanes).as_ptr().cast()) };
    let lane = _mm512_add_epi64(_mm512_cvtepu32_epi64(steps), _mm512_set1_epi64(first as i64));
    // An index past the last lane wraps around, because it is less than one round too large. For an index in range, the
    // subtraction gives a huge number, so the unsigned minimum keeps the index.
    let lane = _mm512_min_epu64(lane, _mm512_sub_epi64(lane, _mm512_set1_epi64(n_lanes as i64)));
    if n_lanes >= 4 {
        // SAFETY: There are at least four lanes. The AVX loads read the first four and the last four. `loadu` needs no
        // alignment.
        let [begin, end] =
            unsafe { [_mm256_loadu_si256(start.cast()), _mm256_loadu_si256(start.add(n_lanes - 4).cast())] };
        let [begin, end] = [begin, end].map(|lanes| _mm512_castsi256_si512(lanes));
        // Lanes from index 4 on come from `end`. The permutation numbers the lanes of `end` from 8 on, so these indices
        // are shifted.
        let to_end = _mm512_set1_epi64((8 - (n_lanes - 4)) as i64);
        let is_of_end = _mm512_cmpge_epu64_mask(lane, _mm512_set1_epi64(4));
        _mm512_permutex2var_epi64(begin, _mm512_mask_add_epi64(lane, is_of_end, lane, to_end), end)
    } else {
        // SAFETY: The AVX-512 gather reads 8 bytes at each of these lanes, whose indices are all below `n_lanes`.
        unsafe { _mm512_i64gather_epi64::<8>(lane, start) }
    }
}

#[inline]
#[target_feature(enable = "avx512f,bmi1,bmi2")]
fn insert_mask(block: &mut Block, mask: __m512i) -> bool {
    let old = load(block);
    let new = _mm512_or_si512(old, mask);
    store(block, new);
    _mm512_cmpneq_epi64_mask(old, new) != 0
}

#[inline]
#[target_feature(enable = "avx512f,bmi1,bmi2")]
fn load(block: &Block) -> __m512i {
    // SAFETY: The AVX-512 load reads a block's 64 bytes, and `loadu` needs no alignment.
    unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,bmi1,bmi2")]
fn store(block: &mut Block, bits: __m512i) {
    // SAFETY: The AVX-512 store writes a mutably borrowed block's 64 bytes, and `storeu` needs no alignment.
    unsafe { _mm512_storeu_si512(block.as_mut_ptr().cast(), bits) }
}

/// A bit for each probed lane.
pub(super) static PROBED: Table<u8> = lane_bits([0, 1, 2, 3, 4, 5, 6, 7]);

/// Selects the lanes that are probed by the first word and, if k is above 8, by the second.
#[derive(Clone, Copy)]
struct ProbedLanes {
    first: &'static [u8; LANES],
    second: Option<&'static [Row; LANES]>,
}

impl ProbedLanes {
    #[inline(always)]
    fn of(k: ProbeCount) -> Self {
        Self { first: PerWord::of(&PROBED, k).first, second: PerWord::of(&ROWS, k).second }
    }

    #[inline]
    #[target_feature(enable = "avx512f,bmi1,bmi2")]
    fn are_set(self, block: __m512i, hash: u64) -> bool {
        let word = first_word(hash);
        let missing = match self.second {
            // Tests every lane, then ignores the lanes that are not probed, because a table of bytes costs less than a
            // table of rows.
            None => {
                let first = bits(word, _mm512_set1_epi64(1));
                _mm512_testn_epi64_mask(first, block) & self.first[rotation(word)]
            }
            Some(rows) => both_words_missing(block, word, rows),
        };
        missing == 0
    }
}

/// The lanes that lack a bit if k is above 8, so that the first word has a probe in every lane. One test for both words
/// is faster than two.
#[inline]
#[target_feature(enable = "avx512f,bmi1,bmi2")]
fn both_words_missing(block: __m512i, first: u64, rows: &[Row; LANES]) -> u8 {
    let second = bits_of_row(second_word(first), &rows[rotation(first)]);
    let mask = _mm512_or_si512(bits(first, _mm512_set1_epi64(1)), second);
    _mm512_cmpneq_epi64_mask(_mm512_and_si512(block, mask), mask)
}

/// One bit per key, set if none of the lanes that its first word probes is `missing`.
#[inline]
#[target_feature(enable = "avx512f,bmi1,bmi2")]
fn answers(first_words: &[u64; 8], missing: &[u8; 8], probed: __m512i) -> u8 {
    // SAFETY: The AVX-512 load reads the 64 bytes of eight words, and `loadu` needs no alignment.
    let words = unsafe { _mm512_loadu_si512(first_words.as_ptr().cast()) };
    let probed = _mm512_permutexvar_epi64(_mm512_srli_epi64::<61>(words), probed);
    _mm512_testn_epi64_mask(widen(missing), probed)
}

#[inline]
#[target_feature(enable = "avx512f,bmi1,bmi2")]
fn widen(bytes: &[u8; 8]) -> __m512i {
    _mm512_cvtepu8_epi64(_mm_cvtsi64_si128(i64::from_le_bytes(*bytes)))
}

#[inline]
#[target_feature(enable = "avx512f,bmi1,bmi2")]
fn mask(hash: u64, rows: PerWord<[Row; LANES]>) -> __m512i {
    rows.each(hash, |word, row| bits_of_row(word, row), |first, second| _mm512_or_si512(first, second))
}

#[inline]
#[target_feature(enable = "avx512f,bmi1,bmi2")]
fn bits_of_row(word: u64, row: &Row) -> __m512i {
    // SAFETY: The AVX-512 load reads a row's 64 bytes, which are aligned to 64.
    bits(word, unsafe { _mm512_load_si512(row.0.as_ptr().cast()) })
}

/// One bit in each lane in which `ones` has a 1.
#[inline]
#[target_feature(enable = "avx512f,bmi1,bmi2")]
fn bits(word: u64, ones: __m512i) -> __m512i {
    let positions = _mm512_setr_epi64(13, 19, 25, 31, 37, 43, 49, 55);
    // A rotation, unlike a shift, needs no mask, because it uses its count modulo 64.
    _mm512_rolv_epi64(ones, _mm512_srlv_epi64(_mm512_set1_epi64(word as i64), positions))
}
