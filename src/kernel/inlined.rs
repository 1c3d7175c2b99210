//! Single lookups and inserts in inline assembly, for builds that do not set `target-cpu`.
//!
//! Such a build cannot inline a function that uses AVX2 or AVX-512, and the call costs as much as the lookup: 1.67
//! against 0.92 ns on AVX-512, 2.1 against 1.2 on AVX2 (Zen 5, 16 KiB filter, 2026-11). Assembly can be inlined
//! anywhere.

use core::arch::asm;

use super::rows::{LaneRows, Row, Rows, SECOND, first_word, rotation};
use crate::blocks::{Block, BlockSlice, Blocks, SharedBlock};
use crate::mask::{ProbeCount, block_index};

/// Where in a word each lane's six bits start.
static POSITIONS: Row = Row([13, 19, 25, 31, 37, 43, 49, 55]);
static SIX_BITS: Row = Row([63; 8]);
static FACTOR_OF_SECOND: u64 = SECOND;

/// What the assembly needs to build the mask of a hash and to find its block.
struct Operands {
    word: u64,
    /// In bytes from the start of a [`LaneRows`].
    row: usize,
    /// For the first eight probes, and for those after the eighth, if there are any.
    rows: [&'static LaneRows; 2],
    k: u32,
    /// In bytes from the start of the blocks.
    block: usize,
}

impl Operands {
    #[inline(always)]
    fn of(hash: u64, k: ProbeCount, n_blocks: usize) -> Self {
        let word = first_word(hash);
        let Rows { first, second } = Rows::of(k);
        Self {
            word,
            row: rotation(word) * size_of::<Row>(),
            rows: [first, second.unwrap_or(first)],
            k: k.get(),
            block: block_index(hash, n_blocks) * size_of::<Block>(),
        }
    }
}

// A jump inside the assembly, which the compiler does not see, skips the probes after the eighth. If the compiler saw
// it, it would compile the caller's loop twice, for k up to 8 and for k > 8, or, if the loop is large, once for both;
// lookups with up to eight probes then take twice as long.
//
// The assembly reads the constants above; 64 bytes of one row in each of `rows` (there are eight rows, and a rotation
// has three bits); and the block's 64 bytes (its index is below the number of blocks, which is not zero: see
// `BlockSlice` and `Blocks`).

/// AVX-512: builds the mask in `zmm16`, then applies it to the block with `$apply`, which leaves the answer in
/// `{answer}`. Registers 16 to 31 do not exist for older instructions, so they need no `vzeroupper` after use.
macro_rules! avx512 {
    ($operands:expr, $blocks:expr, [$($apply:literal),*], options($($option:ident),*)) => {{
        let Operands { word, row, rows, k, block } = $operands;
        let answer: u64;
        asm!(
            "vpbroadcastq zmm16, {word}",
            "vpsrlvq zmm16, zmm16, [rip + {positions}]",
            "vmovdqa64 zmm17, [{first_rows} + {row}]",
            "vprolvq zmm16, zmm17, zmm16",
            "cmp {k:e}, 8",
            "jbe 2f",
            "mov {answer}, {word}",
            "shr {answer}, 32",
            "xor {answer}, {word}",
            "imul {answer}, [rip + {factor}]",
            "vpbroadcastq zmm17, {answer}",
            "vpsrlvq zmm17, zmm17, [rip + {positions}]",
            "vmovdqa64 zmm18, [{second_rows} + {row}]",
            "vprolvq zmm17, zmm18, zmm17",
            "vporq zmm16, zmm16, zmm17",
            "2:",
            $($apply,)*
            word = in(reg) word,
            positions = sym POSITIONS,
            factor = sym FACTOR_OF_SECOND,
            row = in(reg) row,
            first_rows = in(reg) rows[0],
            second_rows = in(reg) rows[1],
            k = in(reg) k,
            blocks = in(reg) $blocks,
            block = in(reg) block,
            answer = out(reg) answer,
            out("zmm16") _, out("zmm17") _, out("zmm18") _, out("k1") _,
            options($($option),*),
        );
        answer
    }};
}

/// AVX2: the same, with the mask in `ymm0` and `ymm1`. `vzeroupper` clears the upper halves of registers 0 to 15, so
/// all of these are declared: the caller may be code that uses them.
macro_rules! avx2 {
    ($operands:expr, $blocks:expr, [$($apply:literal),*], options($($option:ident),*)) => {{
        let Operands { word, row, rows, k, block } = $operands;
        let answer: u64;
        asm!(
            "vmovq xmm0, {word}",
            "vpbroadcastq ymm0, xmm0",
            "vpsrlvq ymm1, ymm0, [rip + {positions} + 32]",
            "vpsrlvq ymm0, ymm0, [rip + {positions}]",
            "vpand ymm1, ymm1, [rip + {six_bits}]",
            "vpand ymm0, ymm0, [rip + {six_bits}]",
            "vmovdqa ymm2, [{first_rows} + {row}]",
            "vmovdqa ymm3, [{first_rows} + {row} + 32]",
            "vpsllvq ymm0, ymm2, ymm0",
            "vpsllvq ymm1, ymm3, ymm1",
            "cmp {k:e}, 8",
            "jbe 2f",
            "mov {answer}, {word}",
            "shr {answer}, 32",
            "xor {answer}, {word}",
            "imul {answer}, [rip + {factor}]",
            "vmovq xmm2, {answer}",
            "vpbroadcastq ymm2, xmm2",
            "vpsrlvq ymm3, ymm2, [rip + {positions} + 32]",
            "vpsrlvq ymm2, ymm2, [rip + {positions}]",
            "vpand ymm3, ymm3, [rip + {six_bits}]",
            "vpand ymm2, ymm2, [rip + {six_bits}]",
            "vmovdqa ymm4, [{second_rows} + {row}]",
            "vmovdqa ymm5, [{second_rows} + {row} + 32]",
            "vpsllvq ymm2, ymm4, ymm2",
            "vpsllvq ymm3, ymm5, ymm3",
            "vpor ymm0, ymm0, ymm2",
            "vpor ymm1, ymm1, ymm3",
            "2:",
            "vmovdqu ymm2, [{blocks} + {block}]",
            "vmovdqu ymm3, [{blocks} + {block} + 32]",
            $($apply,)*
            "vpandn ymm0, ymm2, ymm0",
            "vpandn ymm1, ymm3, ymm1",
            "vpor ymm0, ymm0, ymm1",
            "xor {answer:e}, {answer:e}",
            "vptest ymm0, ymm0",
            "setne {answer:l}",
            "vzeroupper",
            word = in(reg) word,
            positions = sym POSITIONS,
            six_bits = sym SIX_BITS,
            factor = sym FACTOR_OF_SECOND,
            row = in(reg) row,
            first_rows = in(reg) rows[0],
            second_rows = in(reg) rows[1],
            k = in(reg) k,
            blocks = in(reg) $blocks,
            block = in(reg) block,
            answer = out(reg) answer,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options($($option),*),
        );
        answer
    }};
}

/// AVX-512: nonzero if a bit of the mask is clear in the block.
macro_rules! missing_avx512 {
    ($operands:expr, $blocks:expr, $options:tt) => {
        avx512!(
            $operands,
            $blocks,
            [
                // The bits of the second operand that are clear in the third.
                "vpternlogq zmm16, zmm16, [{blocks} + {block}], 0x50",
                "vptestmq k1, zmm16, zmm16",
                "kmovw {answer:e}, k1"
            ],
            options $options
        )
    };
}

/// # Safety
///
/// The CPU must have avx512f.
#[inline(always)]
pub(super) unsafe fn insert_avx512(blocks: &mut Blocks, hash: u64, k: ProbeCount) -> bool {
    let operands = Operands::of(hash, k, blocks.len());
    // SAFETY: the caller guarantees avx512f. Reads what the comment above `avx512!` lists, writes the block's 64 bytes,
    // which `blocks` borrows mutably, and declares all registers that it changes.
    let changed = unsafe {
        avx512!(
            operands,
            blocks.as_mut_slice().as_mut_ptr(),
            [
                "vmovdqu64 zmm17, [{blocks} + {block}]",
                "vporq zmm16, zmm17, zmm16",
                "vmovdqu64 [{blocks} + {block}], zmm16",
                "vpcmpneqq k1, zmm16, zmm17",
                "kmovw {answer:e}, k1"
            ],
            options(nostack)
        )
    };
    changed != 0
}

/// # Safety
///
/// The CPU must have avx512f.
#[inline(always)]
pub(super) unsafe fn contains_avx512(blocks: BlockSlice<'_>, hash: u64, k: ProbeCount) -> bool {
    let operands = Operands::of(hash, k, blocks.as_slice().len());
    // SAFETY: the caller guarantees avx512f. Reads what the comment above `avx512!` lists, and declares all registers
    // that it changes.
    let missing = unsafe { missing_avx512!(operands, blocks.as_slice().as_ptr(), (pure, readonly, nostack)) };
    missing == 0
}

/// # Safety
///
/// The CPU must have avx2.
#[inline(always)]
pub(super) unsafe fn insert_avx2(blocks: &mut Blocks, hash: u64, k: ProbeCount) -> bool {
    let operands = Operands::of(hash, k, blocks.len());
    // SAFETY: the caller guarantees avx2. Reads what the comment above `avx512!` lists, writes the block's 64 bytes,
    // which `blocks` borrows mutably, and declares all registers that it changes.
    let changed = unsafe {
        avx2!(
            operands,
            blocks.as_mut_slice().as_mut_ptr(),
            [
                "vpor ymm4, ymm2, ymm0",
                "vpor ymm5, ymm3, ymm1",
                "vmovdqu [{blocks} + {block}], ymm4",
                "vmovdqu [{blocks} + {block} + 32], ymm5"
            ],
            options(nostack)
        )
    };
    changed != 0
}

/// # Safety
///
/// The CPU must have avx2.
#[inline(always)]
pub(super) unsafe fn contains_avx2(blocks: BlockSlice<'_>, hash: u64, k: ProbeCount) -> bool {
    let operands = Operands::of(hash, k, blocks.as_slice().len());
    // SAFETY: the caller guarantees avx2. Reads what the comment above `avx512!` lists, and declares all registers that
    // it changes.
    let missing =
        unsafe { avx2!(operands, blocks.as_slice().as_ptr(), [], options(pure, readonly, nostack)) };
    missing == 0
}

// Other threads change these blocks with atomic instructions on 8 bytes. x86-64 CPUs read each aligned 8 bytes of a
// vector as a whole, so these lookups are equivalent to a relaxed load of each lane. `pure` is not among the options,
// so each lookup reads the block again, as such loads do.

/// # Safety
///
/// The CPU must have avx512f.
#[inline(always)]
pub(super) unsafe fn contains_shared_avx512(block: &SharedBlock, hash: u64, k: ProbeCount) -> bool {
    // SAFETY: the caller guarantees avx512f. Reads what the comment above `avx512!` lists, and declares all registers
    // that it changes. There is one block, at index 0.
    let missing = unsafe { missing_avx512!(Operands::of(hash, k, 1), block.as_ptr(), (readonly, nostack)) };
    missing == 0
}

/// # Safety
///
/// The CPU must have avx2.
#[inline(always)]
pub(super) unsafe fn contains_shared_avx2(block: &SharedBlock, hash: u64, k: ProbeCount) -> bool {
    // SAFETY: the caller guarantees avx2. Reads what the comment above `avx512!` lists, and declares all registers that
    // it changes. There is one block, at index 0.
    let missing = unsafe { avx2!(Operands::of(hash, k, 1), block.as_ptr(), [], options(readonly, nostack)) };
    missing == 0
}
