//! What the kernels share: the words of a hash, and tables that select lanes.
#![forbid(unsafe_code)]

use crate::blocks::LANES;
use crate::mask::ProbeCount;

/// The word that contains the positions of the first eight probes and, in its highest three bits, the rotation.
#[inline(always)]
pub(super) fn first_word(hash: u64) -> u64 {
    hash.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

pub(super) const SECOND: u64 = 0xD6E8_FEB8_6659_FD93;

/// The word that contains the positions of the probes after the eighth.
#[inline(always)]
pub(super) fn second_word(first: u64) -> u64 {
    (first ^ (first >> 32)).wrapping_mul(SECOND)
}

#[inline(always)]
pub(super) fn rotation(first: u64) -> usize {
    (first >> 61) as usize
}

/// An operand with a value for each lane, in a cache line of its own.
#[repr(align(64))]
pub(super) struct Row(pub(super) [u64; LANES]);

/// A row for each rotation.
pub(super) type LaneRows = [Row; LANES];

/// For each number of probed lanes and each rotation: 1 in the lanes that are probed, 0 in the others.
///
/// Shifting the row instead of a constant 1 selects the lanes for the cost of one load, without a compare or a mask
/// register. Of the table's 4 KiB, a filter touches the 512 bytes of its own k.
static ROWS: [LaneRows; LANES] = {
    let mut rows = [const { [const { Row([0; LANES]) }; LANES] }; LANES];
    let mut count = 1;
    while count <= LANES {
        let mut rotation = 0;
        while rotation < LANES {
            let mut probe = 0;
            while probe < count {
                rows[count - 1][rotation].0[(rotation + probe) % LANES] = 1;
                probe += 1;
            }
            rotation += 1;
        }
        count += 1;
    }
    rows
};

/// The rows of a k: for the probes from the first word and, if k is above 8, for those from the second.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) first: &'static LaneRows,
    pub(super) second: Option<&'static LaneRows>,
}

impl Rows {
    #[inline(always)]
    pub(super) fn of(k: ProbeCount) -> Self {
        let k = k.get() as usize;
        // k is 1 to 16. For k up to 8 the remainder changes nothing, above 8 it subtracts 8. Either way the compiler
        // omits the bounds check.
        if k <= LANES {
            Self { first: &ROWS[(k - 1) % LANES], second: None }
        } else {
            Self { first: &ROWS[LANES - 1], second: Some(&ROWS[(k - 1) % LANES]) }
        }
    }

    /// The mask of a hash, made by a kernel's own `bits`, from a word and its row, and `or`.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn mask<M>(self, hash: u64, bits: impl Fn(u64, &Row) -> M, or: impl Fn(M, M) -> M) -> M {
        let first = first_word(hash);
        let mask = bits(first, &self.first[rotation(first)]);
        match self.second {
            None => mask,
            Some(rows) => or(mask, bits(second_word(first), &rows[rotation(first)])),
        }
    }
}

/// The distance from the first lane of a short filter's block to each of its eight lanes, modulo `n_lanes`.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn steps(n_lanes: usize) -> &'static [u32; LANES] {
    static STEPS: [[u32; LANES]; LANES + 1] = {
        let mut steps = [[0; LANES]; LANES + 1];
        let mut n_lanes = 1;
        while n_lanes <= LANES {
            let mut lane = 0;
            while lane < LANES {
                steps[n_lanes][lane] = (lane % n_lanes) as u32;
                lane += 1;
            }
            n_lanes += 1;
        }
        steps
    };
    &STEPS[if n_lanes < LANES { n_lanes } else { LANES }]
}
