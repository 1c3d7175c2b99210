//! The NEON kernel, whose lookups collect the eight probed bytes with a table lookup (`tbl`), instead of building a
//! mask of the whole block.
//!
//! Bit `p` of lane `i` is bit `p & 7` of byte `8 × i + (p >> 3)`. One table lookup in four registers puts these bytes
//! into half a register. So each later step is one instruction, where whole lanes need four, and there is no reduction
//! over the block. Inserts need the mask, so they use the portable kernel.

use core::arch::aarch64::*;

use super::batch::Lookups;
pub(super) use super::portable::{find, insert, insert_batch, transpose};
use super::tables::{PerWord, Table, table};
use crate::blocks::{Block, BlockSlice, LANES};
use crate::mask::ProbeCount;

#[inline]
pub(super) fn contains(block: &Block, hash: u64, k: ProbeCount) -> bool {
    contains_rows(block, hash, PerWord::of(&ROWS.0, k))
}

pub(super) fn contains_batch(blocks: BlockSlice<'_>, k: ProbeCount, batch: impl Lookups) {
    let rows = PerWord::of(&ROWS.0, k);
    batch.run(blocks, |block, hash| contains_rows(block, hash, rows));
}

/// A byte for each lane, which is 1 if the lane is probed. The rows of x86-64 kernels have eight times the bytes. Of
/// this table, a filter touches only one cache line per word.
static ROWS: Aligned = Aligned(table!(0, |count, rotation| {
    (0x0101_0101_0101_0101_u64 >> (8 * (LANES - count))).rotate_left(8 * rotation as u32)
}));

#[repr(align(64))]
struct Aligned(Table<u64>);

#[inline]
fn contains_rows(block: &Block, hash: u64, rows: PerWord<[u64; LANES]>) -> bool {
    let bytes = block.as_ptr();
    // SAFETY: The NEON loads read 16 bytes each of a block's 64, and this file is compiled only for targets that have
    // NEON.
    let block = unsafe {
        uint8x16x4_t(
            vld1q_u8(bytes),
            vld1q_u8(bytes.add(16)),
            vld1q_u8(bytes.add(32)),
            vld1q_u8(bytes.add(48)),
        )
    };
    rows.each(hash, |word, row| missing(block, word, *row), |first, second| first | second) == 0
}

/// Nonzero in the bytes of the lanes whose probed bit is clear.
#[inline]
fn missing(block: uint8x16x4_t, word: u64, row: u64) -> u64 {
    // Lane i's six bits start at bit 13 + 6 × i of the word. These are, for each lane, the two bytes that hold the six
    // bits, and the shift that moves these bits to the top.
    const WINDOWS: [u8; 16] = [1, 2, 2, 3, 3, 4, 3, 4, 4, 5, 5, 6, 6, 7, 6, 7];
    const SHIFTS: [i16; 8] = [5, 7, 9, 3, 5, 7, 9, 3];
    // SAFETY: The NEON loads read the 16 bytes of each array, and this file is compiled only for targets that have
    // NEON.
    unsafe {
        let windows = vqtbl1q_u8(vreinterpretq_u8_u64(vdupq_n_u64(word)), vld1q_u8(WINDOWS.as_ptr()));
        let top = vshlq_u16(vreinterpretq_u16_u8(windows), vld1q_s16(SHIFTS.as_ptr()));
        // The position, above two bits to ignore. It fits in a byte, so the saturating shift does not change it. LLVM
        // 22 would merge a plain narrowing shift with the shifts below, and then narrow twice.
        let position = vqshrn_n_u16::<8>(top);
        let index = vsra_n_u8::<5>(vcreate_u8(0x3830_2820_1810_0800), position);
        let bit = vand_u8(vshr_n_u8::<2>(position), vdup_n_u8(7));
        let mask = vshl_u8(vcreate_u8(row), vreinterpret_s8_u8(bit));
        vget_lane_u64::<0>(vreinterpret_u64_u8(vbic_u8(mask, vqtbl4_u8(block, index))))
    }
}
