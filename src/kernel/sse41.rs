//! SSE4.1, for CPUs without AVX2. It cannot shift each lane by its own count, so this kernel uses byte tables
//! (`pshufb`).
//!
//! A block fills four registers of two lanes. The probes of a word fill one register of eight 16-bit elements: for each
//! lane the byte that is probed, and the bit in it. A lookup collects those eight bytes and ignores the other 56. It
//! takes 2.7 ns against 4.4 in the portable kernel (Zen 5, 16 KiB filter, 2026-11). An insert needs all 64 bytes, and
//! spreading the bits over them takes as long as the portable kernel, so inserts use that one.

use core::arch::x86_64::*;

use super::batch::{Inserts, Lookups, Pairs};
use super::portable;
use super::rows::{first_word, rotation, second_word};
use crate::blocks::{Block, BlockSlice, Blocks, LANES};
use crate::mask::ProbeCount;

#[inline]
#[target_feature(enable = "sse4.1")]
pub(super) fn insert(block: &mut Block, hash: u64, k: ProbeCount) -> bool {
    portable::insert(block, hash, k)
}

#[inline]
#[target_feature(enable = "sse4.1")]
pub(super) fn contains(block: &Block, hash: u64, k: ProbeCount) -> bool {
    let first = first_word(hash);
    let found = contains_probes(block, probes(first, rotation(first), k.get()));
    if k.get() <= LANES as u32 {
        return found;
    }
    contains_probes(block, probes(second_word(first), rotation(first), k.get() - LANES as u32)) & found
}

#[target_feature(enable = "sse4.1")]
pub(super) fn insert_batch(blocks: &mut Blocks, k: ProbeCount, batch: Inserts<impl Pairs, impl FnMut(u64)>) {
    portable::insert_batch(blocks, k, batch);
}

#[target_feature(enable = "sse4.1")]
pub(super) fn contains_batch(blocks: BlockSlice<'_>, k: ProbeCount, batch: Lookups<'_, impl Pairs>) {
    batch.run(blocks, |block, hash| contains(block, hash, k));
}

/// For each lane: the byte that is probed, 0 to 7, and the bit in it, or no bit if the lane is not probed.
#[derive(Clone, Copy)]
struct Probes {
    bytes: __m128i,
    bits: __m128i,
}

/// The probes of a word in `count` lanes from the rotation on. Eight or more means all lanes.
#[inline]
#[target_feature(enable = "sse4.1")]
fn probes(word: u64, rotation: usize, count: u32) -> Probes {
    // Lane i uses the six bits from 13 + 6i on. They lie in the two bytes from (13 + 6i) / 8 on, and the multiplication
    // moves them to the top.
    let bytes = _mm_setr_epi8(1, 2, 2, 3, 3, 4, 3, 4, 4, 5, 5, 6, 6, 7, 6, 7);
    let powers = _mm_setr_epi16(1 << 5, 1 << 7, 1 << 9, 1 << 3, 1 << 5, 1 << 7, 1 << 9, 1 << 3);
    let positions = _mm_mullo_epi16(_mm_shuffle_epi8(_mm_cvtsi64_si128(word as i64), bytes), powers);

    let in_byte = _mm_and_si128(_mm_srli_epi16::<10>(positions), _mm_set1_epi16(7));
    let bit = _mm_shuffle_epi8(_mm_setr_epi8(1, 2, 4, 8, 16, 32, 64, -128, 0, 0, 0, 0, 0, 0, 0, 0), in_byte);
    let probed = _mm_cmpgt_epi8(_mm_set1_epi8(count as i8), load(&FROM_ROTATION[rotation]));
    Probes { bytes: _mm_srli_epi16::<13>(positions), bits: _mm_and_si128(bit, probed) }
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn contains_probes(block: &Block, probes: Probes) -> bool {
    let mut probed = _mm_setzero_si128();
    for (pair, lanes) in block.as_chunks::<16>().0.iter().zip(&LANES_OF_PAIR) {
        let bytes = _mm_or_si128(probes.bytes, load(lanes));
        probed = _mm_or_si128(probed, _mm_shuffle_epi8(load(pair), bytes));
    }
    _mm_testc_si128(probed, probes.bits) != 0
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn load<T: bytemuck::NoUninit>(bytes: &T) -> __m128i {
    const { assert!(size_of::<T>() == size_of::<__m128i>()) };
    // SAFETY: the SSE2 load reads 16 bytes, the size of `T` (asserted above), all initialised (`NoUninit`). `loadu`
    // needs no alignment.
    unsafe { _mm_loadu_si128(core::ptr::from_ref(bytes).cast()) }
}

/// For each rotation, each lane's distance from it, modulo 8. The high byte of each element is above any count.
static FROM_ROTATION: [[i8; 16]; LANES] = {
    let mut table = [[i8::MAX; 16]; LANES];
    let mut rotation = 0;
    while rotation < LANES {
        let mut lane = 0;
        while lane < LANES {
            table[rotation][2 * lane] = ((lane + LANES - rotation) % LANES) as i8;
            lane += 1;
        }
        rotation += 1;
    }
    table
};

/// For each pair of lanes, where each lane's bytes start in the register. In the other elements, the high bit makes
/// `pshufb` return zero.
static LANES_OF_PAIR: [[u8; 16]; 4] = {
    let mut table = [[0x80; 16]; 4];
    let mut pair = 0;
    while pair < 4 {
        table[pair][4 * pair] = 0;
        table[pair][4 * pair + 2] = 8;
        pair += 1;
    }
    table
};
