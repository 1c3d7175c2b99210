//! The words of a hash, and tables that select lanes, for several kernels. A table of one kernel is in the kernel's
//! file.
#![forbid(unsafe_code)]

use crate::blocks::LANES;
use crate::mask::ProbeCount;

pub(super) const FIRST: u64 = 0x9E37_79B9_7F4A_7C15;
pub(super) const SECOND: u64 = 0xD6E8_FEB8_6659_FD93;

/// Where in a word each lane's six bits start.
pub(super) const POSITIONS: [u64; LANES] = [13, 19, 25, 31, 37, 43, 49, 55];

/// The word that contains the positions of the first eight probes and, in its highest three bits, the rotation.
#[inline(always)]
pub(super) fn first_word(hash: u64) -> u64 {
    hash.wrapping_mul(FIRST)
}

/// The word that contains the positions of the probes after the eighth, made from the first word.
#[inline(always)]
pub(super) fn second_word(first: u64) -> u64 {
    (first ^ (first >> 32)).wrapping_mul(SECOND)
}

#[inline(always)]
pub(super) fn rotation(first: u64) -> usize {
    (first >> 61) as usize
}

/// Calls `with` with the bit of each of the k probes in its block, a number below 512, and with whether an earlier probe
/// has the same bit.
///
/// Not an iterator, because its code has twice the instructions, so a CPU would begin fewer lookups in a bank while it
/// waits for the rows of the first.
// Tried: a walk over the set bits of the mask's lanes. Inserts into counting filters are then twice as slow, because
// which lanes are empty is unpredictable. As `mask` computes it, probe by probe, they are slower by a tenth, and by a
// quarter for k above 8.
#[inline(always)]
pub(crate) fn for_each_probe(hash: u64, k: ProbeCount, mut with: impl FnMut(usize, bool)) {
    let first = first_word(hash);
    let (second, rotation, k) = (second_word(first), rotation(first), k.get());
    // Six bits per lane, rotated so that the lane of the first probe comes first.
    let in_lanes = |word: u64| {
        let bits = (word >> 13) & ((1 << 48) - 1);
        (bits >> (6 * rotation)) | (bits << (48 - 6 * rotation))
    };
    let (mut first, mut second) = (in_lanes(first), in_lanes(second));
    let mut difference = first ^ second;
    let bit = |probe: u32, positions: u64| (rotation + probe as usize) % LANES * 64 + positions as usize % 64;
    for probe in 0..k.min(8) {
        with(bit(probe, first), false);
        first >>= 6;
    }
    for probe in 8..k {
        // Both probes of a lane may have the same bit.
        with(bit(probe, second), difference % 64 == 0);
        second >>= 6;
        difference >>= 6;
    }
}

/// For each number of probed lanes, an entry for each rotation.
pub(super) type Table<T> = [[T; LANES]; LANES];

/// A [`Table`] whose entry for a number of probed lanes and a rotation is `$entry`.
macro_rules! table {
    ($zero:expr, |$count:ident, $rotation:ident| $entry:expr) => {{
        let mut table = [[$zero; LANES]; LANES];
        let mut at = 0;
        while at < LANES * LANES {
            let ($count, $rotation) = (at / LANES + 1, at % LANES);
            table[at / LANES][at % LANES] = $entry;
            at += 1;
        }
        table
    }};
}
#[allow(unused_imports, reason = "kernels without vectors have no table of their own")]
pub(super) use table;

/// What a kernel needs for the probes of the first word and, if k is above 8, of the second.
#[derive(Clone, Copy)]
pub(super) struct PerWord<E: 'static> {
    pub(super) first: &'static E,
    pub(super) second: Option<&'static E>,
}

impl<E> PerWord<E> {
    /// From a table with an entry for each number of probes.
    #[inline(always)]
    pub(super) fn of(table: &'static [E; LANES], k: ProbeCount) -> Self {
        let k = k.get() as usize;
        // k is 1 to 16. The remainder subtracts 8 from k above 8 and changes no smaller k, and it lets the compiler
        // omit the bounds checks.
        if k <= LANES {
            Self { first: &table[(k - 1) % LANES], second: None }
        } else {
            Self { first: &table[LANES - 1], second: Some(&table[(k - 1) % LANES]) }
        }
    }
}

#[cfg(any(
    all(target_arch = "x86_64", target_feature = "sse2"),
    all(target_arch = "aarch64", target_feature = "neon")
))]
impl<T> PerWord<[T; LANES]> {
    /// Calls `with` for each word of a hash and its rotation's entry, and combines what that returns.
    #[inline(always)]
    pub(super) fn each<R>(self, hash: u64, with: impl Fn(u64, &T) -> R, or: impl Fn(R, R) -> R) -> R {
        let first = first_word(hash);
        let result = with(first, &self.first[rotation(first)]);
        match self.second {
            None => result,
            Some(second) => or(result, with(second_word(first), &second[rotation(first)])),
        }
    }
}

/// A bit for each probed lane, where `order[i]` is the lane of bit i.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(super) const fn lane_bits(order: [usize; LANES]) -> Table<u8> {
    table!(0, |count, rotation| {
        let (mut bits, mut bit) = (0, 0);
        while bit < LANES {
            let is_probed = (order[bit] + LANES - rotation) % LANES < count;
            bits |= (is_probed as u8) << bit;
            bit += 1;
        }
        bits
    })
}

/// A value for each lane, in a cache line of its own.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Row(pub(super) [u64; LANES]);

/// 1 in the lanes that are probed, 0 in all other lanes.
///
/// A kernel shifts the row instead of a constant 1, which selects the lanes for the cost of one load, without a compare
/// or a mask register. Of the table's 4 KiB, a filter touches only the 512 bytes for its k.
pub(super) static ROWS: Table<Row> = table!(Row([0; LANES]), |count, rotation| {
    let (mut row, mut probe) = ([0; LANES], 0);
    while probe < count {
        row[(rotation + probe) % LANES] = 1;
        probe += 1;
    }
    Row(row)
});

/// The distances from the first lane of a short filter's block to each of its eight lanes, modulo `n_lanes`.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline]
pub(super) fn steps(n_lanes: usize) -> &'static [u32; LANES] {
    static STEPS: [[u32; LANES]; LANES + 1] = {
        let mut steps = [[0; LANES]; LANES + 1];
        let mut entry = LANES;
        while entry < LANES * (LANES + 1) {
            let (n_lanes, lane) = (entry / LANES, entry % LANES);
            steps[n_lanes][lane] = (lane % n_lanes) as u32;
            entry += 1;
        }
        steps
    };
    &STEPS[if n_lanes < LANES { n_lanes } else { LANES }]
}
