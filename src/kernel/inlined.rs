//! Single lookups and inserts in inline assembly, for builds that do not set `target-cpu`.
//!
//! Such a build cannot inline a function that uses AVX2 or AVX-512, and a call costs as much as the lookup or the
//! insert. Assembly can be inlined anywhere.
//!
//! Each function has one piece of assembly for k up to 8 and one for k above 8, so that neither has a jump. The
//! assembly also finds the block, with BMI2's `mulx`, because the number of instructions limits a core that is four
//! wide.
//!
//! All constants are in one static, whose address is an operand. The address of a `sym` operand would be relative to
//! the code instead, and such code cannot be linked into a shared library that exports the symbol.
//!
//! `in_block!` makes a piece for one filter and `in_blocks!` for four. Each adds its own first lines to the lines that
//! it is given. In these lines, the operands hold:
//!
//! | operand | holds |
//! |---|---|
//! | `rdx` | the first word of the hash, until a line changes it |
//! | `{blocks}` | the address of the first block |
//! | `{answer}` | the offset of the hash's block from it, in bytes, until a line changes it, and at the end the result |
//! | `{a}`, `{b}`, `{c}`, `{d}` | the addresses of the hash's blocks in several filters |
//! | `{constants}` | the address of the `Constants`, whose fields are at `{positions}`, `{factors}` and others |
//! | `{word}`, of some pieces | the second word, where a line computes it |

use core::arch::asm;
use core::mem::offset_of;

use super::tables::{FIRST, POSITIONS, ROWS, Row, SECOND};
use super::{Probes, avx2, avx512};
use crate::blocks::{Block, LANES};
use crate::mask::ProbeCount;

/// Whether the AVX-512 assembly is used. Not under miri, which cannot run assembly, so it calls the vector instructions
/// of `avx512`.
pub(super) const AVX512: bool = !cfg!(miri);
/// Whether the AVX2 assembly is used. Not on Windows either, where a function must preserve `xmm6` to `xmm15`. The
/// assembly declares all of them because of `vzeroupper`, so a function that inlines it would save and restore ten
/// registers, whichever kernel it runs.
pub(super) const AVX2: bool = !cfg!(any(miri, windows));

/// The constants for one k. Aligned to 1024, so that their size is a power of two and the address of an
/// entry takes few instructions.
#[repr(C, align(1024))]
pub(super) struct Constants {
    /// Where in a word the position of each lane's bit starts.
    positions: [u64; LANES],
    six_bits: [u64; 4],
    ones: u64,
    /// The factors of the first and of the second word.
    factors: [u64; 2],
    /// For each rotation, a bit for each probed lane, in the order of [`avx512::PROBED`].
    probed: [u32; LANES],
    /// For each rotation, a bit for each lane that is not probed, in the order of [`avx2::PROBED`].
    ignored: [u32; LANES],
    /// For each rotation, of [`ROWS`].
    rows: [Row; LANES],
}

static CONSTANTS: [Constants; LANES] = {
    let mut all = [const {
        Constants {
            rows: [Row([0; LANES]); LANES],
            positions: POSITIONS,
            six_bits: [63; 4],
            ones: 1,
            factors: [FIRST, SECOND],
            probed: [0; LANES],
            ignored: [0; LANES],
        }
    }; LANES];
    let mut entry = 0;
    while entry < LANES * LANES {
        let (count, rotation) = (entry / LANES, entry % LANES);
        all[count].rows[rotation] = ROWS[count][rotation];
        all[count].probed[rotation] = avx512::PROBED[count][rotation] as u32;
        all[count].ignored[rotation] = !avx2::PROBED[count][rotation] as u32;
        entry += 1;
    }
    all
};

impl Constants {
    /// For the first word's probes if k is at most 8, else for the second word's.
    #[inline(always)]
    pub(super) fn of(k: ProbeCount) -> &'static Self {
        &CONSTANTS[(k.get() as usize - 1) % LANES]
    }
}

// What the assembly accesses. It reads fields of one `Constants`, and one of eight `Row`s of 64 bytes. The rotation,
// which has three bits, is the index of the row and of the entry of `probed` or `ignored`. It reads the 64 bytes of
// block number (hash × n_blocks) >> 64, which is below n_blocks for every hash when n_blocks ≥ 1. Inserts write the
// same 64 bytes. No access to a block needs alignment. It declares every register that it changes, because otherwise
// `tests` below would fail.
//
// Lookups beside inserts of other threads. In Rust's memory model, a lookup stands for eight relaxed loads, one for
// each lane, as in `shared::load`. The CPU may split the load of a vector, even within a lane, but the answer is still
// one that relaxed loads may give, because bits are only ever set. A bit that was seen is in the lane's newest value. A
// bit that was not seen is missing in the oldest value that a load may return. A key whose insert happened before is in
// both values.
//
// Lookups are not `pure`. Of two lookups with the same hash, only the second may find the key. With `pure`, the
// compiler could move a lookup out of a loop that waits for a key of a different thread, so the loop would never end.

/// Lines that several pieces have.
#[rustfmt::skip]
macro_rules! lines {
    // Register `$word` = the second word, made from the first word in `rdx`.
    (second_word $word:literal) => {
        concat!(
            "mov ", $word, ", rdx
            shr ", $word, ", 32
            xor ", $word, ", rdx
            imul ", $word, ", [{constants} + {factors} + 8]"
        )
    };
    // Registers `$low` and `$high` = the positions of the bits of `$word` in lanes 0 to 3 and 4 to 7. `$and` is
    // `vpand`, or `vpandn` for 63 minus each position.
    (positions $low:literal, $high:literal, $word:literal, $and:literal) => {
        concat!(
            "vmovq xmm", $low, ", ", $word, "
            vpbroadcastq ymm", $low, ", xmm", $low, "
            vpsrlvq ymm", $high, ", ymm", $low, ", [{constants} + {positions} + 32]
            vpsrlvq ymm", $low, ", ymm", $low, ", [{constants} + {positions}]
            ", $and, " ymm", $high, ", ymm", $high, ", [{constants} + {six_bits}]
            ", $and, " ymm", $low, ", ymm", $low, ", [{constants} + {six_bits}]"
        )
    };
    // `zmm16` = the mask of the first word, for k up to 8.
    (first_mask avx512) => {
        "vpbroadcastq zmm16, rdx
        vpsrlvq zmm16, zmm16, [{constants} + {positions}]
        shr rdx, 55
        and edx, -64
        vmovdqa64 zmm17, [{constants} + rdx + {rows}]
        vprolvq zmm16, zmm17, zmm16"
    };
    // `zmm16` = the mask of both words, for k above 8.
    (mask avx512 $word:literal) => {
        concat!(
            "vpbroadcastq zmm16, rdx
            vpsrlvq zmm16, zmm16, [{constants} + {positions}]
            vpbroadcastq zmm17, [{constants} + {ones}]
            vprolvq zmm16, zmm17, zmm16
            ", lines!(second_word $word), "
            vpbroadcastq zmm17, ", $word, "
            vpsrlvq zmm17, zmm17, [{constants} + {positions}]
            shr rdx, 55
            and edx, -64
            vmovdqa64 zmm18, [{constants} + rdx + {rows}]
            vprolvq zmm17, zmm18, zmm17
            vporq zmm16, zmm16, zmm17"
        )
    };
    // `ymm0` and `ymm1` = the mask of the first word, for k up to 8.
    (first_mask avx2) => {
        concat!(
            lines!(positions "0", "1", "rdx", "vpand"), "
            shr rdx, 55
            and edx, -64
            vmovdqa ymm2, [{constants} + rdx + {rows}]
            vmovdqa ymm3, [{constants} + rdx + {rows} + 32]
            vpsllvq ymm0, ymm2, ymm0
            vpsllvq ymm1, ymm3, ymm1"
        )
    };
    // `ymm0` and `ymm1` = the mask of both words, for k above 8.
    (mask avx2 $word:literal) => {
        concat!(
            lines!(positions "0", "1", "rdx", "vpand"), "
            vpbroadcastq ymm2, [{constants} + {ones}]
            vpsllvq ymm0, ymm2, ymm0
            vpsllvq ymm1, ymm2, ymm1
            ", lines!(second_word $word), "
            ", lines!(positions "2", "3", $word, "vpand"), "
            shr rdx, 55
            and edx, -64
            vmovdqa ymm4, [{constants} + rdx + {rows}]
            vmovdqa ymm5, [{constants} + rdx + {rows} + 32]
            vpsllvq ymm2, ymm4, ymm2
            vpsllvq ymm3, ymm5, ymm3
            vpor ymm0, ymm0, ymm2
            vpor ymm1, ymm1, ymm3"
        )
    };
    // Sets the bits of `zmm16`. `{answer}` = whether one of them was clear.
    (insert avx512) => {
        "vmovdqu64 zmm17, [{blocks} + {answer}]
        vporq zmm16, zmm17, zmm16
        vmovdqu64 [{blocks} + {answer}], zmm16
        vpcmpneqq k1, zmm16, zmm17
        kmovw {answer:e}, k1"
    };
    // Sets the bits of `ymm0` and `ymm1`. `{answer}` = whether one of them was clear.
    (insert avx2) => {
        "vmovdqu ymm2, [{blocks} + {answer}]
        vmovdqu ymm3, [{blocks} + {answer} + 32]
        vpor ymm0, ymm2, ymm0
        vpor ymm1, ymm3, ymm1
        vmovdqu [{blocks} + {answer}], ymm0
        vmovdqu [{blocks} + {answer} + 32], ymm1
        vpcmpeqd ymm0, ymm0, ymm2
        vpcmpeqd ymm1, ymm1, ymm3
        vpand ymm0, ymm0, ymm1
        vpmovmskb {answer:e}, ymm0"
    };
    (unchanged avx512) => { 0 };
    (unchanged avx2) => { 0xFFFF_FFFF };
    // `{answer}` = one bit for each of four blocks, the last one's lowest, set if the block has all bits of the mask.
    // Each test leaves its bit in the carry flag, and `adc` appends it.
    (test avx512) => {
        concat!(
            "xor {answer:e}, {answer:e}",
            lines!(test avx512 "a"), lines!(test avx512 "b"), lines!(test avx512 "c"), lines!(test avx512 "d")
        )
    };
    (test avx512 $block:literal) => {
        concat!("
            vpandq zmm17, zmm16, [{", $block, "}]
            vpcmpeqd k1, zmm17, zmm16
            kortestw k1, k1
            adc {answer:e}, {answer:e}"
        )
    };
    (test avx2) => {
        concat!("
            vpcmpeqd ymm2, ymm2, ymm2
            vpxor ymm0, ymm0, ymm2
            vpxor ymm1, ymm1, ymm2
            xor {answer:e}, {answer:e}",
            lines!(test avx2 "a"), lines!(test avx2 "b"), lines!(test avx2 "c"), lines!(test avx2 "d")
        )
    };
    (test avx2 $block:literal) => {
        concat!("
            vpor ymm3, ymm0, [{", $block, "}]
            vpor ymm4, ymm1, [{", $block, "} + 32]
            vpand ymm3, ymm3, ymm4
            vptest ymm3, ymm2
            adc {answer:e}, {answer:e}"
        )
    };
}

/// `asm!` of the `$line`s. Declares the registers of the kernel `$isa`, and returns `{answer}`.
macro_rules! piece {
    // Uses only registers 16 to 31, which older instructions cannot use, so it needs no `vzeroupper`.
    (avx512, $arguments:tt, [$($line:expr),*], $($operand:tt)*) => {
        piece!(
            $arguments, [$($line),*],
            out("zmm16") _, out("zmm17") _, out("zmm18") _, out("k1") _,
            $($operand)*
        )
    };
    // Declares all registers, because `vzeroupper` clears their upper halves, which the code around it may use.
    (avx2, $arguments:tt, [$($line:expr),*], $($operand:tt)*) => {
        piece!(
            $arguments, [$($line,)* "vzeroupper"],
            six_bits = const offset_of!(Constants, six_bits),
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            $($operand)*
        )
    };
    (($hash:expr, $constants:expr), [$($line:expr),*], $($operand:tt)*) => {{
        let answer: u64;
        asm!(
            $($line,)*
            inout("rdx") $hash => _,
            constants = in(reg) $constants,
            factors = const offset_of!(Constants, factors),
            positions = const offset_of!(Constants, positions),
            answer = out(reg) answer,
            $($operand)*
        );
        answer
    }};
}

/// A piece for one filter, which first computes the first word and finds the block.
macro_rules! in_block {
    ($isa:tt, ($blocks:expr, $hash:expr, $constants:expr), [$($line:expr),*], $($operand:tt)*) => {{
        let (blocks, n_blocks) = $blocks;
        piece!(
            $isa, ($hash, $constants),
            [
                "mulx {answer}, {answer}, {n_blocks}",
                "imul rdx, [{constants} + {factors}]",
                "shl {answer}, 6",
                $($line),*
            ],
            n_blocks = in(reg) n_blocks,
            blocks = in(reg) blocks,
            $($operand)*
        )
    }};
}

/// A piece for the blocks of a hash in four filters, which first computes the first word.
macro_rules! in_blocks {
    ($isa:tt, ($blocks:expr, $hash:expr, $constants:expr), [$($line:expr),*], $($operand:tt)*) => {{
        let [a, b, c, d] = $blocks;
        piece!(
            $isa, ($hash, $constants),
            ["imul rdx, [{constants} + {factors}]", $($line),*],
            a = in(reg) a,
            b = in(reg) b,
            c = in(reg) c,
            d = in(reg) d,
            $($operand)*
        )
    }};
}

/// Returns whether all probes of the hash are set in its block.
///
/// # Safety
///
/// The CPU must have avx512f and bmi2, and `blocks` must be the address and the number of blocks, at least one. Other
/// threads may set bits in them.
#[inline(always)]
pub(super) unsafe fn contains_avx512(blocks: (*const Block, usize), hash: u64, k: Probes) -> bool {
    // Rotates each lane's bit to the lowest place. If it rotated a 1 to the bit instead, the test would read the block
    // from an indexed address, and Intel's cores split such an instruction in two.
    let Probes { k, constants } = k;
    let missing = match k.get() {
        // SAFETY: The caller guarantees the CPU and the blocks. "What the assembly accesses" above has the rest.
        ..=8 => unsafe {
            in_block!(
                avx512,
                (blocks, hash, constants),
                [
                    "vpbroadcastq zmm16, rdx",
                    "vpsrlvq zmm16, zmm16, [{constants} + {positions}]",
                    "vmovdqu64 zmm17, [{blocks} + {answer}]",
                    "vprorvq zmm16, zmm17, zmm16",
                    "shr rdx, 61",
                    "vptestnmq k1, zmm16, [{constants} + {ones}]{{1to8}}",
                    "kmovw {answer:e}, k1",
                    "and {answer:e}, [{constants} + 4 * rdx + {probed}]"
                ],
                ones = const offset_of!(Constants, ones),
                probed = const offset_of!(Constants, probed),
                options(readonly, nostack)
            )
        },
        // SAFETY: As above.
        _ => unsafe {
            in_block!(
                avx512,
                (blocks, hash, constants),
                [
                    "vpbroadcastq zmm16, rdx",
                    "vpsrlvq zmm16, zmm16, [{constants} + {positions}]",
                    "vmovdqu64 zmm17, [{blocks} + {answer}]",
                    "vprorvq zmm16, zmm17, zmm16",
                    lines!(second_word "{answer}"),
                    "vpbroadcastq zmm18, {answer}",
                    "vpsrlvq zmm18, zmm18, [{constants} + {positions}]",
                    "vprorvq zmm17, zmm17, zmm18",
                    "shr rdx, 55",
                    "and edx, -64",
                    // Sets the bits of lanes with a clear probe. Every lane has a probe of the first word, but only
                    // lanes with a 1 in the row have one of the second word.
                    "vpternlogq zmm16, zmm17, [{constants} + rdx + {rows}], 0x2f",
                    "vptestmq k1, zmm16, [{constants} + {ones}]{{1to8}}",
                    "kmovw {answer:e}, k1"
                ],
                ones = const offset_of!(Constants, ones),
                rows = const offset_of!(Constants, rows),
                options(readonly, nostack)
            )
        },
    };
    missing == 0
}

/// Returns whether all probes of the hash are set in its block.
///
/// # Safety
///
/// The CPU must have avx2 and bmi2, and `blocks` must be the address and the number of blocks, at least one. Other
/// threads may set bits in them.
#[inline(always)]
pub(super) unsafe fn contains_avx2(blocks: (*const Block, usize), hash: u64, k: Probes) -> bool {
    // Shifts each lane's bit to the sign, by 63 minus its position, and collects the signs. Then `set` has a bit for
    // each lane whose probe is set, and for each lane that is not probed.
    let Probes { k, constants } = k;
    let set = match k.get() {
        // SAFETY: The caller guarantees the CPU and the blocks. "What the assembly accesses" above has the rest.
        ..=8 => unsafe {
            in_block!(
                avx2,
                (blocks, hash, constants),
                [
                    lines!(positions "0", "1", "rdx", "vpandn"),
                    "vmovdqu ymm2, [{blocks} + {answer}]",
                    "vmovdqu ymm3, [{blocks} + {answer} + 32]",
                    "vpsllvq ymm0, ymm2, ymm0",
                    "vpsllvq ymm1, ymm3, ymm1",
                    "vshufps ymm0, ymm0, ymm1, 0xdd",
                    "shr rdx, 61",
                    "vmovmskps {answer:e}, ymm0",
                    "or {answer:e}, [{constants} + 4 * rdx + {ignored}]"
                ],
                ignored = const offset_of!(Constants, ignored),
                options(readonly, nostack)
            )
        },
        // SAFETY: As above.
        _ => unsafe {
            in_block!(
                avx2,
                (blocks, hash, constants),
                [
                    lines!(positions "0", "1", "rdx", "vpandn"),
                    "vmovdqu ymm2, [{blocks} + {answer}]",
                    "vmovdqu ymm3, [{blocks} + {answer} + 32]",
                    "vpsllvq ymm0, ymm2, ymm0",
                    "vpsllvq ymm1, ymm3, ymm1",
                    "vshufps ymm0, ymm0, ymm1, 0xdd",
                    lines!(second_word "{answer}"),
                    lines!(positions "4", "5", "{answer}", "vpandn"),
                    "vpsllvq ymm4, ymm2, ymm4",
                    "vpsllvq ymm5, ymm3, ymm5",
                    "vshufps ymm4, ymm4, ymm5, 0xdd",
                    "shr rdx, 61",
                    "vmovmskps {answer:e}, ymm4",
                    "or {answer:e}, [{constants} + 4 * rdx + {ignored}]",
                    // The first word has a probe in every lane.
                    "vmovmskps edx, ymm0",
                    "and {answer:e}, edx"
                ],
                ignored = const offset_of!(Constants, ignored),
                options(readonly, nostack)
            )
        },
    };
    // Not `==`, with which a loop that counts hits needs two more instructions.
    set >= 0xff
}

/// Sets all probes of the hash in its block, by the kernel `$isa`. Returns whether one of them was clear.
macro_rules! insert {
    ($isa:tt, $blocks:expr, $hash:expr, $k:expr) => {{
        let Probes { k, constants } = $k;
        let changed = match k.get() {
            ..=8 => in_block!(
                $isa,
                ($blocks, $hash, constants),
                [lines!(first_mask $isa), lines!(insert $isa)],
                rows = const offset_of!(Constants, rows),
                options(nostack)
            ),
            _ => in_block!(
                $isa,
                ($blocks, $hash, constants),
                [lines!(mask $isa "{word}"), lines!(insert $isa)],
                word = out(reg) _,
                ones = const offset_of!(Constants, ones),
                rows = const offset_of!(Constants, rows),
                options(nostack)
            ),
        };
        changed as u32 != lines!(unchanged $isa)
    }};
}

/// Which of four blocks have all bits of a hash, by the kernel `$isa`. One bit for each, the last one's lowest.
macro_rules! contains_each {
    ($isa:tt, $blocks:expr, $hash:expr, $k:expr) => {{
        let Probes { k, constants } = $k;
        match k.get() {
            ..=8 => in_blocks!(
                $isa,
                ($blocks, $hash, constants),
                [lines!(first_mask $isa), lines!(test $isa)],
                rows = const offset_of!(Constants, rows),
                options(readonly, nostack)
            ),
            _ => in_blocks!(
                $isa,
                ($blocks, $hash, constants),
                [lines!(mask $isa "{answer}"), lines!(test $isa)],
                ones = const offset_of!(Constants, ones),
                rows = const offset_of!(Constants, rows),
                options(readonly, nostack)
            ),
        }
    }};
}

/// `insert!` for AVX-512.
///
/// # Safety
///
/// The CPU must have avx512f and bmi2, and `blocks` must be the address and the number of blocks, at least one, that
/// nothing else accesses.
#[inline(always)]
pub(super) unsafe fn insert_avx512(blocks: (*mut Block, usize), hash: u64, k: Probes) -> bool {
    // SAFETY: The caller guarantees the CPU and the blocks. "What the assembly accesses" above has the rest.
    unsafe { insert!(avx512, blocks, hash, k) }
}

/// `insert!` for AVX2.
///
/// # Safety
///
/// The CPU must have avx2 and bmi2, and `blocks` must be the address and the number of blocks, at least one, that
/// nothing else accesses.
#[inline(always)]
pub(super) unsafe fn insert_avx2(blocks: (*mut Block, usize), hash: u64, k: Probes) -> bool {
    // SAFETY: The caller guarantees the CPU and the blocks. "What the assembly accesses" above has the rest.
    unsafe { insert!(avx2, blocks, hash, k) }
}

/// `contains_each!` for AVX-512.
///
/// # Safety
///
/// The CPU must have avx512f and bmi2.
#[inline(always)]
pub(super) unsafe fn contains_each_avx512(blocks: [&Block; 4], hash: u64, k: Probes) -> u64 {
    // SAFETY: The caller guarantees the CPU. "What the assembly accesses" above has the rest.
    unsafe { contains_each!(avx512, blocks, hash, k) }
}

/// `contains_each!` for AVX2.
///
/// # Safety
///
/// The CPU must have avx2 and bmi2.
#[inline(always)]
pub(super) unsafe fn contains_each_avx2(blocks: [&Block; 4], hash: u64, k: Probes) -> u64 {
    // SAFETY: The caller guarantees the CPU. "What the assembly accesses" above has the rest.
    unsafe { contains_each!(avx2, blocks, hash, k) }
}

/// The assembly must declare every register that it changes, because otherwise values of the code around it would be
/// silently wrong. These tests fail if one `out("…") _` is missing.
#[cfg(all(test, feature = "std", not(miri)))]
mod tests {
    use alloc::vec::Vec;
    use core::array;
    use core::mem::transmute;

    use super::*;
    use crate::blocks::Blocks;
    use crate::hash::mix;
    use crate::mask::block_index;

    /// Makes a function that inserts and looks up while all vector registers, and all mask registers that an operand
    /// can name, hold values. It returns the answers and the values. The empty assembly has all registers as operands,
    /// so the compiler moves a value out of its register and back only if the assembly in between declares the
    /// register.
    macro_rules! with_values_in_registers {
        (
            $name:ident, $features:literal, $numbers:ty, $vector:ty, $vectors:literal, $masks:literal,
            [$($v:ident $register:tt)*], [$($m:ident $mask_register:tt)*]
        ) => {
            #[target_feature(enable = $features)]
            fn $name<const AVX512: bool>(
                blocks: (*mut Block, usize),
                hash: u64,
                k: Probes,
                vectors: [$numbers; $vectors],
                masks: [u16; $masks],
            ) -> ([bool; 2], u64, [$numbers; $vectors], [u16; $masks]) {
                // SAFETY: Both types have the same size and no invalid values.
                let [$(mut $v),*] = unsafe { transmute::<[$numbers; $vectors], [$vector; $vectors]>(vectors) };
                let [$(mut $m),*] = masks;
                // SAFETY: It has no instructions.
                unsafe { asm!("", $(inout($register) $v,)* $(inout($mask_register) $m,)*) };
                let is_new =
                    // SAFETY: The tests below ask for the CPU's features, and nothing else accesses their blocks.
                    unsafe { if AVX512 { insert_avx512(blocks, hash, k) } else { insert_avx2(blocks, hash, k) } };
                // SAFETY: As above.
                unsafe { asm!("", $(inout($register) $v,)* $(inout($mask_register) $m,)*) };
                let blocks = (blocks.0.cast_const(), blocks.1);
                let is_found =
                    // SAFETY: As above.
                    unsafe { if AVX512 { contains_avx512(blocks, hash, k) } else { contains_avx2(blocks, hash, k) } };
                // SAFETY: As above.
                unsafe { asm!("", $(inout($register) $v,)* $(inout($mask_register) $m,)*) };
                // SAFETY: The index is below the number of blocks.
                let block = unsafe { &*blocks.0.add(block_index(hash, blocks.1)) };
                let blocks = [block, &[0; 64], block, &[0; 64]];
                let found =
                    // SAFETY: As above.
                    unsafe { if AVX512 { contains_each_avx512(blocks, hash, k) } else { contains_each_avx2(blocks, hash, k) } };
                // SAFETY: As above.
                unsafe { asm!("", $(inout($register) $v,)* $(inout($mask_register) $m,)*) };
                // SAFETY: As above.
                let vectors = unsafe { transmute::<[$vector; $vectors], [$numbers; $vectors]>([$($v),*]) };
                ([is_new, is_found], found, vectors, [$($m),*])
            }
        };
    }

    with_values_in_registers! {
        in_avx512_code, "avx512f,bmi2", [u64; 8], core::arch::x86_64::__m512i, 32, 7,
        [
            v0 "zmm0" v1 "zmm1" v2 "zmm2" v3 "zmm3" v4 "zmm4" v5 "zmm5" v6 "zmm6" v7 "zmm7" v8 "zmm8" v9 "zmm9"
            v10 "zmm10" v11 "zmm11" v12 "zmm12" v13 "zmm13" v14 "zmm14" v15 "zmm15" v16 "zmm16" v17 "zmm17"
            v18 "zmm18" v19 "zmm19" v20 "zmm20" v21 "zmm21" v22 "zmm22" v23 "zmm23" v24 "zmm24" v25 "zmm25"
            v26 "zmm26" v27 "zmm27" v28 "zmm28" v29 "zmm29" v30 "zmm30" v31 "zmm31"
        ],
        [m1 "k1" m2 "k2" m3 "k3" m4 "k4" m5 "k5" m6 "k6" m7 "k7"]
    }

    with_values_in_registers! {
        in_avx2_code, "avx2,bmi2", [u64; 4], core::arch::x86_64::__m256i, 16, 0,
        [
            v0 "ymm0" v1 "ymm1" v2 "ymm2" v3 "ymm3" v4 "ymm4" v5 "ymm5" v6 "ymm6" v7 "ymm7" v8 "ymm8" v9 "ymm9"
            v10 "ymm10" v11 "ymm11" v12 "ymm12" v13 "ymm13" v14 "ymm14" v15 "ymm15"
        ],
        []
    }

    /// Calls `each` with filters of k = 6 and k = 16, because k up to 8 and k above 8 have different assembly.
    fn each_filter(mut each: impl FnMut((*mut Block, usize), u64, Probes)) {
        for k in [6, 16] {
            // As many blocks as an `AtomicBloomFilter` passes, and more.
            for n_blocks in [1, 100] {
                let mut blocks = Blocks::zeroed(n_blocks).unwrap();
                each(
                    (blocks.as_mut_slice().as_mut_ptr(), n_blocks),
                    mix(k.into()),
                    ProbeCount::new(k).unwrap().into(),
                );
            }
        }
    }

    /// LLVM moves a `pure` lookup out of a loop that waits for a key of a different thread, but not in every build, so
    /// this test reads the options instead.
    #[test]
    fn no_lookup_is_pure() {
        let (code, _) = include_str!("inlined.rs").split_once("mod tests").unwrap();
        let options: Vec<_> = code.split("options(").skip(1).map(|rest| rest.split(')').next()).collect();
        let (lookup, insert) = (Some("readonly, nostack"), Some("nostack"));
        assert_eq!(options, [lookup, lookup, lookup, lookup, insert, insert, lookup, lookup]);
    }

    #[test]
    fn avx512_code_keeps_its_registers() {
        if !std::is_x86_feature_detected!("avx512f") || !std::is_x86_feature_detected!("bmi2") {
            return std::println!("skipped: this CPU has no AVX-512");
        }
        let vectors = array::from_fn(|i| array::from_fn(|j| mix((8 * i + j) as u64)));
        let masks = array::from_fn(|i| mix(i as u64) as u16);
        for kernel in [in_avx512_code::<true>, in_avx512_code::<false>] {
            each_filter(|blocks, hash, k| {
                // SAFETY: The CPU has AVX-512 and BMI2, and so AVX2.
                let kept = unsafe { kernel(blocks, hash, k, vectors, masks) };
                assert_eq!(kept, ([true; 2], 0b1010, vectors, masks), "k = {}", k.k.get());
            });
        }
    }

    #[test]
    fn avx2_code_keeps_its_registers() {
        if !std::is_x86_feature_detected!("avx2") || !std::is_x86_feature_detected!("bmi2") {
            return std::println!("skipped: this CPU has no AVX2");
        }
        let vectors = array::from_fn(|i| array::from_fn(|j| mix((4 * i + j) as u64)));
        each_filter(|blocks, hash, k| {
            // SAFETY: The CPU has AVX2 and BMI2.
            let kept = unsafe { in_avx2_code::<false>(blocks, hash, k, vectors, []) };
            assert_eq!(kept, ([true; 2], 0b1010, vectors, []), "k = {}", k.k.get());
        });
    }
}
