//! The SSE4.1 kernel, for CPUs without AVX2. SSE4.1 cannot shift each lane by its own count, so this kernel uses byte
//! tables (`pshufb`).
//!
//! A block fills four registers of two lanes. The probes of a word fill one register of eight 16-bit elements, which
//! hold the byte that is probed in each lane, and the bit in it. A lookup collects these eight bytes and ignores 56
//! bytes, which is about twice as fast as the portable kernel. An insert needs all 64 bytes, and spreading the bits
//! over them is no faster than the portable kernel, so inserts use the portable kernel.
#![forbid(unsafe_code)]

use core::arch::x86_64::*;

use super::batch::Lookups;
pub(super) use super::portable::{find, insert, insert_batch, transpose};
use super::tables::{PerWord, Table, table};
use crate::blocks::{Block, BlockSlice, LANES};
use crate::mask::ProbeCount;

#[inline]
#[target_feature(enable = "sse4.1")]
pub(super) fn contains(block: &Block, hash: u64, k: ProbeCount) -> bool {
    contains_probes(block, hash, PerWord::of(&PROBED, k))
}

#[target_feature(enable = "sse4.1")]
pub(super) fn contains_batch(blocks: BlockSlice<'_>, k: ProbeCount, batch: impl Lookups) {
    let probed = PerWord::of(&PROBED, k);
    batch.run(blocks, |block, hash| contains_probes(block, hash, probed));
}

/// For each lane that is probed, the lower of its two bits in a mask of 16 bytes, because a lane has two bytes there.
static PROBED: Table<u16> =
    table!(0, |count, rotation| (0x5555_u16 >> (16 - 2 * count)).rotate_left(2 * rotation as u32));

/// Tests a probe in every lane, then ignores the lanes that are not probed.
#[inline]
#[target_feature(enable = "sse4.1")]
fn contains_probes(block: &Block, hash: u64, probed: PerWord<[u16; LANES]>) -> bool {
    let clear = |word: u64| {
        // Lane i uses six bits of the word from bit 13 + 6i on. They lie in the two bytes from (13 + 6i) / 8 on, and
        // the multiplication moves them to the top.
        let bytes = _mm_setr_epi8(1, 2, 2, 3, 3, 4, 3, 4, 4, 5, 5, 6, 6, 7, 6, 7);
        let powers = _mm_setr_epi16(1 << 5, 1 << 7, 1 << 9, 1 << 3, 1 << 5, 1 << 7, 1 << 9, 1 << 3);
        let positions = _mm_mullo_epi16(_mm_shuffle_epi8(_mm_cvtsi64_si128(word as i64), bytes), powers);

        // `pshufb` uses four bits of an index. The fourth is the lowest bit of the byte's number, so the table repeats
        // its eight entries.
        let bits = _mm_setr_epi8(1, 2, 4, 8, 16, 32, 64, -128, 1, 2, 4, 8, 16, 32, 64, -128);
        let bits = _mm_shuffle_epi8(bits, _mm_srli_epi16::<10>(positions));

        // In a register of two lanes, the second lane's bytes start at 8. All four registers are shuffled for all
        // lanes, but each provides only its own two lanes.
        let bytes = _mm_or_si128(_mm_srli_epi16::<13>(positions), _mm_setr_epi16(0, 8, 0, 8, 0, 8, 0, 8));
        // Loaded here because loads before the multiplications delay them on an Atom.
        let [a, b, c, d] =
            bytemuck::cast::<_, [__m128i; 4]>(*block).map(|pair| _mm_shuffle_epi8(pair, bytes));
        let (low, high) = (_mm_blend_epi16::<0x0c>(a, b), _mm_blend_epi16::<0xc0>(c, d));
        let set = _mm_and_si128(_mm_blend_epi16::<0xf0>(low, high), bits);
        _mm_movemask_epi8(_mm_cmpeq_epi8(set, _mm_setzero_si128())) as u16
    };
    probed.each(hash, |word, probed| clear(word) & probed, |first, second| first | second) == 0
}
