//! Single lookups and inserts in inline assembly, for builds that do not set `target-cpu`.
//!
//! Such a build cannot inline a function that uses AVX2 or AVX-512, and the call costs as much as the lookup: 1.67
//! against 0.92 ns on AVX-512, 2.1 against 1.2 on AVX2 (Zen 5, 16 KiB filter, 2026-11). Assembly can be inlined
//! anywhere.
//!
//! There is one piece of assembly for k up to 8 and one for k > 8, so that neither has a jump. It also picks the block, with
//! BMI2's `mulx`, because each instruction counts: a core that is four wide spends its time on their number.
//!
//! All constants are in one static, whose address is an operand. The address of a `sym` operand would be relative to
//! the code, and such code cannot be linked into a shared library that exports the symbol.

use core::arch::asm;
use core::mem::offset_of;

use super::tables::{FIRST, POSITIONS, PerWord, ROWS, SECOND};
use super::{avx2, avx512};
use crate::blocks::{Block, Blocks, LANES};
use crate::mask::ProbeCount;

/// What a lookup reads besides the block, for one number of probes. Three cache lines.
#[repr(C, align(64))]
struct Constants {
    /// Where in a word each lane's six bits start.
    positions: [u64; LANES],
    six_bits: [u64; 4],
    ones: u64,
    /// What makes the first word of a hash, and the second of the first.
    factors: [u64; 2],
    /// For each rotation, a bit for each lane that is probed, in the order of `avx512`.
    probed: [u32; LANES],
    /// For each rotation, a bit for each lane that is not probed, in the order of `avx2`.
    ignored: [u32; LANES],
}

static CONSTANTS: [Constants; LANES] = {
    let mut all = [const {
        Constants {
            positions: POSITIONS,
            six_bits: [63; 4],
            ones: 1,
            factors: [FIRST, SECOND],
            probed: [0; LANES],
            ignored: [0; LANES],
        }
    }; LANES];
    let mut probes = 0;
    while probes < LANES {
        let mut rotation = 0;
        while rotation < LANES {
            all[probes].probed[rotation] = avx512::PROBED[probes][rotation] as u32;
            all[probes].ignored[rotation] = !avx2::PROBED[probes][rotation] as u32;
            rotation += 1;
        }
        probes += 1;
    }
    all
};

// All assembly below reads the constants of one number of probes: whole fields, and one entry of `probed` or `ignored`,
// which have eight, as a rotation has three bits; or one of eight rows of 64 bytes. Of the blocks it reads the 64 bytes of
// number (hash × n_blocks) >> 64, which is below n_blocks for every hash when n_blocks ≥ 1, and inserts write these. It
// declares all registers that it changes. The vectors that it reads from a block need no alignment.
//
// If other threads set bits in the block at the same time, it does not matter how much of that a vector sees, or whether a
// load is torn: bits are only ever set, so those of a key inserted before are in any mixture of old and new bytes.

/// Leaves the first word in `rdx`, and what is to be added to `blocks` in `{block}`; then runs the `$line`s.
macro_rules! with_block {
    (($blocks:expr, $hash:expr, $constants:expr), [$($line:expr),* $(,)?], $($operand:tt)*) => {{
        let (blocks, n_blocks) = $blocks;
        let answer: u64;
        asm!(
            "mulx {block}, {answer}, {n_blocks}",
            "imul rdx, [{constants} + {factors}]",
            "shl {block}, 6",
            $($line,)*
            inout("rdx") $hash => _,
            n_blocks = in(reg) n_blocks,
            blocks = in(reg) blocks,
            block = out(reg) _,
            constants = in(reg) $constants,
            factors = const offset_of!(Constants, factors),
            positions = const offset_of!(Constants, positions),
            answer = out(reg) answer,
            $($operand)*
        );
        answer
    }};
}

/// Leaves the second word in `{answer}`.
macro_rules! second_word {
    () => {
        "mov {answer}, rdx
        shr {answer}, 32
        xor {answer}, rdx
        imul {answer}, [{constants} + {factors} + 8]"
    };
}

/// AVX-512. Registers 16 to 31 do not exist for older instructions, so they need no `vzeroupper` after use.
macro_rules! avx512 {
    ($arguments:tt, $lines:tt, $($operand:tt)*) => {
        with_block!(
            $arguments, $lines,
            out("zmm16") _, out("zmm17") _, out("zmm18") _, out("k1") _,
            $($operand)*
        )
    };
}

#[rustfmt::skip]
macro_rules! positions_avx512 {
    ($register:literal, $word:literal) => {
        concat!(
            "vpbroadcastq ", $register, ", ", $word, "
            vpsrlvq ", $register, ", ", $register, ", [{constants} + {positions}]"
        )
    };
}

/// AVX2. `vzeroupper` clears the upper halves of registers 0 to 15, so all of these are declared: the caller may be code
/// that uses them.
macro_rules! avx2 {
    ($arguments:tt, [$($line:expr),* $(,)?], $($operand:tt)*) => {
        with_block!(
            $arguments, [$($line,)* "vzeroupper"],
            six_bits = const offset_of!(Constants, six_bits),
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            $($operand)*
        )
    };
}

/// `$and` is `vpand`, or `vpandn` for 63 minus each position.
#[rustfmt::skip]
macro_rules! positions_avx2 {
    ($low:literal, $high:literal, $word:literal, $and:literal) => {
        concat!(
            "vmovq xmm", $low, ", ", $word, "
            vpbroadcastq ymm", $low, ", xmm", $low, "
            vpsrlvq ymm", $high, ", ymm", $low, ", [{constants} + {positions} + 32]
            vpsrlvq ymm", $low, ", ymm", $low, ", [{constants} + {positions}]
            ", $and, " ymm", $high, ", ymm", $high, ", [{constants} + {six_bits}]
            ", $and, " ymm", $low, ", ymm", $low, ", [{constants} + {six_bits}]"
        )
    };
}

/// Returns whether all probes are set.
///
/// # Safety
///
/// The CPU must have avx512f and bmi2, and `blocks` must be the address and the number of blocks, at least one. Other
/// threads may set bits in them.
#[inline(always)]
pub(super) unsafe fn contains_avx512(blocks: (*const Block, usize), hash: u64, k: ProbeCount) -> bool {
    // Rotates the block, not the ones, so that no instruction but a load has an index: Intel's cores split others in two.
    macro_rules! missing {
        ($constants:expr, [$($line:expr),*], $($operand:tt)*) => {
            avx512!(
                (blocks, hash, $constants),
                [
                    positions_avx512!("zmm16", "rdx"),
                    "vmovdqu64 zmm17, [{blocks} + {block}]",
                    "vprorvq zmm16, zmm17, zmm16",
                    $($line),*
                ],
                ones = const offset_of!(Constants, ones),
                $($operand)*
                options(readonly, nostack)
            )
        };
    }
    let missing = match PerWord::of(&ROWS, k).second {
        // SAFETY: the caller guarantees the CPU and the blocks; the comment above the macros lists what is read.
        None => unsafe {
            missing!(
                PerWord::of(&CONSTANTS, k).first,
                [
                    "shr rdx, 61",
                    "vptestnmq k1, zmm16, [{constants} + {ones}]{{1to8}}",
                    "kmovw {answer:e}, k1",
                    "and {answer:e}, [{constants} + 4 * rdx + {probed}]"
                ],
                probed = const offset_of!(Constants, probed),
            )
        },
        // SAFETY: as above.
        Some(rows) => unsafe {
            missing!(
                &CONSTANTS[0],
                [
                    second_word!(),
                    positions_avx512!("zmm18", "{answer}"),
                    "vprorvq zmm17, zmm17, zmm18",
                    "shr rdx, 55",
                    "and edx, -64",
                    // The first word has a probe in every lane: clear there, or clear here in a lane that has a second.
                    "vpternlogq zmm16, zmm17, [{rows} + rdx], 0x2f",
                    "vptestmq k1, zmm16, [{constants} + {ones}]{{1to8}}",
                    "kmovw {answer:e}, k1"
                ],
                rows = in(reg) rows,
            )
        },
    };
    missing == 0
}

/// Returns whether all probes are set.
///
/// # Safety
///
/// The CPU must have avx2 and bmi2, and `blocks` must be the address and the number of blocks, at least one. Other
/// threads may set bits in them.
#[inline(always)]
pub(super) unsafe fn contains_avx2(blocks: (*const Block, usize), hash: u64, k: ProbeCount) -> bool {
    // Each lane's probe becomes its sign. Gives a bit for each lane that is set or not probed.
    macro_rules! set {
        ($constants:expr, [$($line:expr),*]) => {
            avx2!(
                (blocks, hash, $constants),
                [
                    positions_avx2!("0", "1", "rdx", "vpandn"),
                    "vmovdqu ymm2, [{blocks} + {block}]",
                    "vmovdqu ymm3, [{blocks} + {block} + 32]",
                    "vpsllvq ymm0, ymm2, ymm0",
                    "vpsllvq ymm1, ymm3, ymm1",
                    "vshufps ymm0, ymm0, ymm1, 0xdd",
                    $($line),*
                ],
                ignored = const offset_of!(Constants, ignored),
                options(readonly, nostack)
            )
        };
    }
    let PerWord { first, second } = PerWord::of(&CONSTANTS, k);
    // SAFETY: the caller guarantees the CPU and the blocks; the comment above the macros lists what is read.
    let set = unsafe {
        match second {
            None => set!(
                first,
                [
                    "shr rdx, 61",
                    "vmovmskps {answer:e}, ymm0",
                    "or {answer:e}, [{constants} + 4 * rdx + {ignored}]"
                ]
            ),
            // The first word has a probe in every lane.
            Some(second) => set!(
                second,
                [
                    second_word!(),
                    positions_avx2!("4", "5", "{answer}", "vpandn"),
                    "vpsllvq ymm4, ymm2, ymm4",
                    "vpsllvq ymm5, ymm3, ymm5",
                    "vshufps ymm4, ymm4, ymm5, 0xdd",
                    "shr rdx, 61",
                    "vmovmskps {answer:e}, ymm4",
                    "or {answer:e}, [{constants} + 4 * rdx + {ignored}]",
                    "vmovmskps edx, ymm0",
                    "and {answer:e}, edx"
                ]
            ),
        }
    };
    // Not `==`, for which a loop that counts needs two more instructions.
    set >= 0xff
}

/// Sets all probes. Returns whether one of them was clear.
///
/// # Safety
///
/// The CPU must have avx512f and bmi2.
#[inline(always)]
pub(super) unsafe fn insert_avx512(blocks: &mut Blocks, hash: u64, k: ProbeCount) -> bool {
    let n_blocks = blocks.len();
    let blocks = blocks.as_mut_slice().as_mut_ptr();
    macro_rules! changed {
        ($rows:expr, [$($line:expr),*], $($operand:tt)*) => {
            avx512!(
                ((blocks, n_blocks), hash, &CONSTANTS[0]),
                [
                    positions_avx512!("zmm16", "rdx"),
                    $($line,)*
                    "vmovdqu64 zmm17, [{blocks} + {block}]",
                    "vporq zmm16, zmm17, zmm16",
                    "vmovdqu64 [{blocks} + {block}], zmm16",
                    "vpcmpneqq k1, zmm16, zmm17",
                    "kmovw {answer:e}, k1"
                ],
                rows = in(reg) $rows,
                $($operand)*
                options(nostack)
            )
        };
    }
    let PerWord { first, second } = PerWord::of(&ROWS, k);
    // SAFETY: the caller guarantees the CPU; the comment above the macros lists what is read and written.
    let changed = unsafe {
        match second {
            None => changed!(
                first,
                [
                    "shr rdx, 55",
                    "and edx, -64",
                    "vmovdqa64 zmm17, [{rows} + rdx]",
                    "vprolvq zmm16, zmm17, zmm16"
                ],
            ),
            Some(second) => changed!(
                second,
                [
                    "vpbroadcastq zmm17, [{constants} + {ones}]",
                    "vprolvq zmm16, zmm17, zmm16",
                    second_word!(),
                    positions_avx512!("zmm17", "{answer}"),
                    "shr rdx, 55",
                    "and edx, -64",
                    "vmovdqa64 zmm18, [{rows} + rdx]",
                    "vprolvq zmm17, zmm18, zmm17",
                    "vporq zmm16, zmm16, zmm17"
                ],
                ones = const offset_of!(Constants, ones),
            ),
        }
    };
    changed != 0
}

/// Sets all probes. Returns whether one of them was clear.
///
/// # Safety
///
/// The CPU must have avx2 and bmi2.
#[inline(always)]
pub(super) unsafe fn insert_avx2(blocks: &mut Blocks, hash: u64, k: ProbeCount) -> bool {
    let n_blocks = blocks.len();
    let blocks = blocks.as_mut_slice().as_mut_ptr();
    macro_rules! changed {
        ($rows:expr, [$($line:expr),*], $($operand:tt)*) => {
            avx2!(
                ((blocks, n_blocks), hash, &CONSTANTS[0]),
                [
                    positions_avx2!("0", "1", "rdx", "vpand"),
                    $($line,)*
                    "vmovdqu ymm2, [{blocks} + {block}]",
                    "vmovdqu ymm3, [{blocks} + {block} + 32]",
                    "vpor ymm4, ymm2, ymm0",
                    "vpor ymm5, ymm3, ymm1",
                    "vmovdqu [{blocks} + {block}], ymm4",
                    "vmovdqu [{blocks} + {block} + 32], ymm5",
                    "vpandn ymm0, ymm2, ymm0",
                    "vpandn ymm1, ymm3, ymm1",
                    "vpor ymm0, ymm0, ymm1",
                    "xor {answer:e}, {answer:e}",
                    "vptest ymm0, ymm0",
                    "setne {answer:l}"
                ],
                rows = in(reg) $rows,
                $($operand)*
                options(nostack)
            )
        };
    }
    let PerWord { first, second } = PerWord::of(&ROWS, k);
    // SAFETY: the caller guarantees the CPU; the comment above the macros lists what is read and written.
    let changed = unsafe {
        match second {
            None => changed!(
                first,
                [
                    "shr rdx, 55",
                    "and edx, -64",
                    "vmovdqa ymm2, [{rows} + rdx]",
                    "vmovdqa ymm3, [{rows} + rdx + 32]",
                    "vpsllvq ymm0, ymm2, ymm0",
                    "vpsllvq ymm1, ymm3, ymm1"
                ],
            ),
            Some(second) => changed!(
                second,
                [
                    "vpbroadcastq ymm2, [{constants} + {ones}]",
                    "vpsllvq ymm0, ymm2, ymm0",
                    "vpsllvq ymm1, ymm2, ymm1",
                    second_word!(),
                    positions_avx2!("2", "3", "{answer}", "vpand"),
                    "shr rdx, 55",
                    "and edx, -64",
                    "vmovdqa ymm4, [{rows} + rdx]",
                    "vmovdqa ymm5, [{rows} + rdx + 32]",
                    "vpsllvq ymm2, ymm4, ymm2",
                    "vpsllvq ymm3, ymm5, ymm3",
                    "vpor ymm0, ymm0, ymm2",
                    "vpor ymm1, ymm1, ymm3"
                ],
                ones = const offset_of!(Constants, ones),
            ),
        }
    };
    changed != 0
}
