//! Lookups in the rows of a bank, and the transposition of blocks into rows.
#![forbid(unsafe_code)]

use core::array;

use wide::u64x2;

use super::prefetch::prefetch_line;
use crate::blocks::{Block, LANES, block_from_lanes, lanes};
use crate::mask::{ProbeCount, words};

/// Rows of a stripe: one for each bit of a block.
pub(crate) const ROWS: usize = 512;
/// Slots of a full stripe, whose rows are one cache line each.
pub(crate) const STRIPE_SLOTS: usize = 512;
const FULL_ROW: usize = STRIPE_SLOTS / 8;
/// Bytes of a full stripe.
pub(crate) const STRIPE_BYTES: usize = ROWS * FULL_ROW;

/// Calls `with` with the k rows of a hash in a stripe.
///
/// An iterator's code has twice the instructions, so that a CPU begins fewer lookups while it waits for the rows of the
/// first.
#[inline(always)]
pub(super) fn for_each_row(hash: u64, k: ProbeCount, mut with: impl FnMut(usize)) {
    let (first, second) = words(hash);
    let rotation = first >> 61;
    let mut each = |word: u64, probes: u32| {
        // The positions in the lanes, six bits each: lane 0 lowest, then rotated, so that the first probe's is lowest.
        let positions = (word >> 13) & !(!0 << 48);
        let mut positions = positions >> (6 * rotation) | positions << (48 - 6 * rotation);
        let mut lane = rotation;
        for _ in 0..probes {
            with((64 * lane | positions & 63) as usize);
            lane = (lane + 1) % 8;
            positions >>= 6;
        }
    };
    each(first, k.get().min(8));
    each(second, k.get().saturating_sub(8));
}

/// ANDs the rows of a hash in each stripe of a region: writes 8 words for each full stripe, by `and_full`, and one for
/// each 64 slots of the last. `found` has as many words.
#[inline(always)]
pub(super) fn find(
    region: &[u8],
    hash: u64,
    k: ProbeCount,
    found: &mut [u64],
    and_full: impl Fn(&[Block; ROWS], u64, ProbeCount) -> Block,
) {
    let (stripes, last) = region.split_at(region.len() / STRIPE_BYTES * STRIPE_BYTES);
    let (found, found_last) = found.as_chunks_mut();
    for (stripe, found) in stripes.as_chunks().0.as_chunks().0.iter().zip(found) {
        *found = lanes(&and_full(stripe, hash, k));
    }
    match last.len() / ROWS {
        0 => (),
        1 => and_last::<1, 1>(last, hash, k, found_last),
        2 => and_last::<2, 1>(last, hash, k, found_last),
        4 => and_last::<4, 1>(last, hash, k, found_last),
        8 => and_last::<8, 1>(last, hash, k, found_last),
        16 => and_last::<16, 1>(last, hash, k, found_last),
        24 => and_last::<24, 2>(last, hash, k, found_last),
        32 => and_last::<32, 2>(last, hash, k, found_last),
        40 => and_last::<40, 3>(last, hash, k, found_last),
        48 => and_last::<48, 3>(last, hash, k, found_last),
        _ => and_last::<56, 4>(last, hash, k, found_last),
    }
}

#[inline(always)]
pub(super) fn and_full(stripe: &[Block; ROWS], hash: u64, k: ProbeCount) -> Block {
    block_from_lanes(bytemuck::cast(and::<FULL_ROW, 4>(stripe, hash, k)))
}

#[inline(always)]
fn and_last<const BYTES: usize, const PAIRS: usize>(
    last: &[u8],
    hash: u64,
    k: ProbeCount,
    found: &mut [u64],
) {
    let stripe = last.as_chunks().0.try_into().expect("a stripe has 512 rows");
    let words = and::<BYTES, PAIRS>(stripe, hash, k);
    found.copy_from_slice(&words.as_flattened()[..found.len()]);
}

/// ANDs the rows of a hash in one stripe. Rows have `BYTES` bytes, `PAIRS` pairs of words or a part of them.
///
/// In vectors of 128 bits, which all CPUs with vectors have: of words, LLVM would gather several rows at once.
#[inline(always)]
pub(super) fn and<const BYTES: usize, const PAIRS: usize>(
    stripe: &[[u8; BYTES]; ROWS],
    hash: u64,
    k: ProbeCount,
) -> [[u64; 2]; PAIRS] {
    let mut all = [u64x2::splat(!0); PAIRS];
    for_each_row(hash, k, |row| {
        let mut words = [[[0; 8]; 2]; PAIRS];
        words.as_flattened_mut().as_flattened_mut()[..BYTES].copy_from_slice(&stripe[row % ROWS]);
        all = array::from_fn(|i| all[i] & u64x2::new(words[i].map(u64::from_le_bytes)));
    });
    all.map(u64x2::to_array)
}

/// Starts loading the rows of a hash.
#[inline]
pub(crate) fn prefetch(region: &[u8], hash: u64, k: ProbeCount) {
    for stripe in region.chunks(STRIPE_BYTES) {
        let len = stripe.len() / ROWS;
        for_each_row(hash, k, |row| {
            let first = stripe.as_ptr().wrapping_add(row * len);
            prefetch_line(first);
            // Narrow rows, and those of a stripe that starts inside a line, may straddle two lines.
            if first.addr() % 64 + len > 64 {
                prefetch_line(first.wrapping_add(len - 1));
            }
        });
    }
}

/// The lanes of one block of 64 filters; after [`transpose`], word `i` of row `64 * lane + bit` at `[bit][lane]`.
pub(crate) type Square = [[u64; LANES]; 64];

/// Transposes, in each lane, 64 words of 64 bits: bit b of word w becomes bit w of word b. Its own inverse.
///
/// The recursion of Warren, Hacker's Delight, 7-3, in two passes of three steps, so that a pass needs eight vectors.
#[inline(always)]
pub(super) fn transpose(square: &mut Square) {
    for first in 0..8 {
        eight(square, first, 8, [32, 16, 8]);
    }
    for first in 0..8 {
        eight(square, 8 * first, 1, [4, 2, 1]);
    }
}

/// Three steps for eight words, `stride` apart. A step of `shift` bits exchanges the higher half of a word's bits with
/// the lower half of the word `shift` places later, in each group of `2 * shift` bits.
#[inline(always)]
fn eight(square: &mut Square, first: usize, stride: usize, shifts: [u32; 3]) {
    let mut words: [[u64; LANES]; 8] = core::array::from_fn(|i| square[first + i * stride]);
    for (step, shift) in shifts.into_iter().enumerate() {
        let mask = !0 / ((1_u64 << shift) + 1);
        let distance = 4 >> step;
        for low in (0..8).filter(|low| low & distance == 0) {
            for lane in 0..LANES {
                let (a, b) = (words[low][lane], words[low + distance][lane]);
                let exchanged = ((a >> shift) ^ b) & mask;
                words[low][lane] = a ^ (exchanged << shift);
                words[low + distance][lane] = b ^ exchanged;
            }
        }
    }
    for (i, word) in words.into_iter().enumerate() {
        square[first + i * stride] = word;
    }
}
