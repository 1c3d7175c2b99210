//! Single lookups and inserts as assembly, for up to eight probes and builds that do not name the CPU.
//!
//! In such a build a function that uses AVX2 or AVX-512 cannot be inlined, and the call costs as much as the lookup:
//! 1.67 against 0.92 ns on AVX-512, 2.1 against 1.2 on AVX2 (Zen 5, 16 KiB filter, 2026-11). Assembly can be inlined
//! anywhere.

use core::arch::asm;

use super::rows::{LaneRows, Row, first_word, rotation};
use crate::blocks::{Block, BlockSlice, Blocks};
use crate::mask::block_index;

/// Where in a word the bits of each lane start.
static POSITIONS: Row = Row([13, 19, 25, 31, 37, 43, 49, 55]);
static SIX_BITS: Row = Row([63; 8]);

// Registers 16 to 31, which older instructions do not know, need no `vzeroupper` after use.

/// # Safety
///
/// The CPU has avx512f.
#[inline(always)]
pub(super) unsafe fn insert_avx512(blocks: &mut Blocks, hash: u64, rows: &'static LaneRows) -> bool {
    let first = first_word(hash);
    let changed: u32;
    // SAFETY: the caller promises avx512f. Reads 64 bytes each of the positions, of a row (there are eight, for the
    // rotation's three bits) and of the block (whose index is below their number, which is not zero: see
    // `BlockSlice`); writes those of the block; all that it changes is declared.
    unsafe {
        asm!(
            "vpbroadcastq zmm16, {word}",
            "vpsrlvq zmm16, zmm16, [rip + {positions}]",
            "vmovdqa64 zmm17, [{rows} + {row}]",
            "vprolvq zmm16, zmm17, zmm16",
            "vmovdqu64 zmm17, [{blocks} + {block}]",
            "vporq zmm16, zmm17, zmm16",
            "vmovdqu64 [{blocks} + {block}], zmm16",
            "vpcmpneqq k1, zmm16, zmm17",
            "kmovw {changed:e}, k1",
            word = in(reg) first,
            positions = sym POSITIONS,
            rows = in(reg) rows,
            row = in(reg) rotation(first) * size_of::<Row>(),
            blocks = in(reg) blocks.as_mut_slice().as_mut_ptr(),
            block = in(reg) block_index(hash, blocks.len()) * size_of::<Block>(),
            changed = lateout(reg) changed,
            out("zmm16") _, out("zmm17") _, out("k1") _,
            options(nostack, preserves_flags),
        );
    }
    changed != 0
}

/// # Safety
///
/// The CPU has avx512f.
#[inline(always)]
pub(super) unsafe fn contains_avx512(blocks: BlockSlice<'_>, hash: u64, rows: &'static LaneRows) -> bool {
    let first = first_word(hash);
    let missing: u32;
    // SAFETY: the caller promises avx512f. Reads as `insert_avx512` does; all that it changes is declared.
    unsafe {
        asm!(
            "vpbroadcastq zmm16, {word}",
            "vpsrlvq zmm16, zmm16, [rip + {positions}]",
            "vmovdqa64 zmm17, [{rows} + {row}]",
            "vprolvq zmm16, zmm17, zmm16",
            // The bits of the second operand that the third lacks.
            "vpternlogq zmm16, zmm16, [{blocks} + {block}], 0x50",
            "vptestmq k1, zmm16, zmm16",
            "kmovw {missing:e}, k1",
            word = in(reg) first,
            positions = sym POSITIONS,
            rows = in(reg) rows,
            row = in(reg) rotation(first) * size_of::<Row>(),
            blocks = in(reg) blocks.as_slice().as_ptr(),
            block = in(reg) block_index(hash, blocks.as_slice().len()) * size_of::<Block>(),
            missing = lateout(reg) missing,
            out("zmm16") _, out("zmm17") _, out("k1") _,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    missing == 0
}

// AVX2 has no such registers. `vzeroupper` clears the upper halves of all that it knows, so all are declared: the
// caller may be code that uses them.

/// # Safety
///
/// The CPU has avx2.
#[inline(always)]
pub(super) unsafe fn insert_avx2(blocks: &mut Blocks, hash: u64, rows: &'static LaneRows) -> bool {
    let first = first_word(hash);
    let changed: u8;
    // SAFETY: the caller promises avx2. Reads as `insert_avx512` does, and 32 bytes of the six bits; writes the block's
    // 64 bytes; all that it changes is declared.
    unsafe {
        asm!(
            "vmovq xmm0, {word}",
            "vpbroadcastq ymm0, xmm0",
            "vpsrlvq ymm1, ymm0, [rip + {positions} + 32]",
            "vpsrlvq ymm0, ymm0, [rip + {positions}]",
            "vpand ymm1, ymm1, [rip + {six_bits}]",
            "vpand ymm0, ymm0, [rip + {six_bits}]",
            "vmovdqa ymm2, [{rows} + {row}]",
            "vmovdqa ymm3, [{rows} + {row} + 32]",
            "vpsllvq ymm0, ymm2, ymm0",
            "vpsllvq ymm1, ymm3, ymm1",
            "vmovdqu ymm2, [{blocks} + {block}]",
            "vmovdqu ymm3, [{blocks} + {block} + 32]",
            "vpor ymm4, ymm2, ymm0",
            "vpor ymm5, ymm3, ymm1",
            "vmovdqu [{blocks} + {block}], ymm4",
            "vmovdqu [{blocks} + {block} + 32], ymm5",
            "vpandn ymm0, ymm2, ymm0",
            "vpandn ymm1, ymm3, ymm1",
            "vpor ymm0, ymm0, ymm1",
            "vptest ymm0, ymm0",
            "setne {changed}",
            "vzeroupper",
            word = in(reg) first,
            positions = sym POSITIONS,
            six_bits = sym SIX_BITS,
            rows = in(reg) rows,
            row = in(reg) rotation(first) * size_of::<Row>(),
            blocks = in(reg) blocks.as_mut_slice().as_mut_ptr(),
            block = in(reg) block_index(hash, blocks.len()) * size_of::<Block>(),
            changed = out(reg_byte) changed,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack),
        );
    }
    changed != 0
}

/// # Safety
///
/// The CPU has avx2.
#[inline(always)]
pub(super) unsafe fn contains_avx2(blocks: BlockSlice<'_>, hash: u64, rows: &'static LaneRows) -> bool {
    let first = first_word(hash);
    let found: u8;
    // SAFETY: the caller promises avx2. Reads as `insert_avx2` does; all that it changes is declared.
    unsafe {
        asm!(
            "vmovq xmm0, {word}",
            "vpbroadcastq ymm0, xmm0",
            "vpsrlvq ymm1, ymm0, [rip + {positions} + 32]",
            "vpsrlvq ymm0, ymm0, [rip + {positions}]",
            "vpand ymm1, ymm1, [rip + {six_bits}]",
            "vpand ymm0, ymm0, [rip + {six_bits}]",
            "vmovdqa ymm2, [{rows} + {row}]",
            "vmovdqa ymm3, [{rows} + {row} + 32]",
            "vpsllvq ymm0, ymm2, ymm0",
            "vpsllvq ymm1, ymm3, ymm1",
            "vmovdqu ymm2, [{blocks} + {block}]",
            "vmovdqu ymm3, [{blocks} + {block} + 32]",
            "vpandn ymm0, ymm2, ymm0",
            "vpandn ymm1, ymm3, ymm1",
            "vpor ymm0, ymm0, ymm1",
            "vptest ymm0, ymm0",
            "sete {found}",
            "vzeroupper",
            word = in(reg) first,
            positions = sym POSITIONS,
            six_bits = sym SIX_BITS,
            rows = in(reg) rows,
            row = in(reg) rotation(first) * size_of::<Row>(),
            blocks = in(reg) blocks.as_slice().as_ptr(),
            block = in(reg) block_index(hash, blocks.as_slice().len()) * size_of::<Block>(),
            found = out(reg_byte) found,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(pure, readonly, nostack),
        );
    }
    found != 0
}
