//! What the kernels have in common: the words of a hash, and lane selection by table.
#![forbid(unsafe_code)]

use crate::blocks::LANES;
use crate::mask::ProbeCount;

/// The word that gives the bits of the first eight probes and, in its highest three bits, the rotation.
#[inline(always)]
pub(super) fn first_word(hash: u64) -> u64 {
    hash.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

pub(super) const SECOND: u64 = 0xD6E8_FEB8_6659_FD93;

/// The word that gives the bits of the probes past the eighth.
#[inline(always)]
pub(super) fn second_word(first: u64) -> u64 {
    (first ^ (first >> 32)).wrapping_mul(SECOND)
}

#[inline(always)]
pub(super) fn rotation(first: u64) -> usize {
    (first >> 61) as usize
}

/// A lane-wise operand in a cache line of its own.
#[repr(align(64))]
pub(super) struct Row(pub(super) [u64; LANES]);

/// A row for each rotation.
pub(super) type LaneRows = [Row; LANES];

/// For each count of lanes and each rotation: one in the lanes that are probed, zero in the others.
///
/// Shifting the row in place of a constant one selects the lanes at the price of one load, with no compare and no
/// mask register; of the table's 4 KiB a filter touches the 512 bytes of its own k.
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

/// The rows of a probe count: for the probes from the first word and, past eight, for those from the second.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) first: &'static LaneRows,
    pub(super) second: Option<&'static LaneRows>,
}

impl Rows {
    #[inline(always)]
    pub(super) fn of(k: ProbeCount) -> Self {
        let k = k.get() as usize;
        // Indices modulo 8 change nothing, k being 1 to 16, but spare the check of the bounds.
        if k <= LANES {
            Self { first: &ROWS[(k - 1) % LANES], second: None }
        } else {
            Self { first: &ROWS[LANES - 1], second: Some(&ROWS[(k - 1) % LANES]) }
        }
    }

    /// The mask of a hash, from a kernel's `bits` of a word in a row and its `or`.
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

/// From the first lane of a short filter's block to each of the eight, less whole rounds of the circle of `n_lanes`.
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
