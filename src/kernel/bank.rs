//! Lookups in the rows of a bank, and the transposition of blocks to rows.
//!
//! Plain Rust, inlined into each kernel's functions, so that the compiler vectorizes it for the kernel's instructions.

use core::array;

use super::prefetch::prefetch_line;
use super::tables::for_each_probe;
use crate::blocks::{BLOCK_BYTES, LANES};
use crate::mask::ProbeCount;

/// Rows of a region, one for each bit of a block.
pub(crate) const ROWS: usize = 512;

/// ANDs the k rows of a hash in its region. Writes the first `found.len()` words of the result, at most a row's.
#[inline(always)]
pub(super) fn find(region: &[u8], hash: u64, k: ProbeCount, found: &mut [u64]) {
    let (lines, last) = found.as_chunks_mut::<8>();
    let mut offset = 0;
    for line in lines {
        and::<BLOCK_BYTES, 8>(region, offset, hash, k, line);
        offset += BLOCK_BYTES;
    }
    match (last.len(), region.len() / ROWS) {
        (0, _) => (),
        // WebAssembly is loaded before it runs, so less code is worth more than a lookup in one step.
        (2.., _) if cfg!(target_arch = "wasm32") => {
            for word in last.chunks_mut(1) {
                and::<8, 1>(region, offset, hash, k, word);
                offset += 8;
            }
        }
        (1, 1) => and::<1, 1>(region, 0, hash, k, last),
        (1, 2) => and::<2, 1>(region, 0, hash, k, last),
        (1, 4) => and::<4, 1>(region, 0, hash, k, last),
        (1, _) => and::<8, 1>(region, offset, hash, k, last),
        (2, _) => and::<16, 2>(region, offset, hash, k, last),
        (3, _) => and::<24, 3>(region, offset, hash, k, last),
        (4, _) => and::<32, 4>(region, offset, hash, k, last),
        (5, _) => and::<40, 5>(region, offset, hash, k, last),
        (6, _) => and::<48, 6>(region, offset, hash, k, last),
        _ => and::<56, 7>(region, offset, hash, k, last),
    }
}

/// ANDs `BYTES` bytes of the rows of a hash, from an offset on, which are `WORDS` words or a part of one.
#[inline(always)]
fn and<const BYTES: usize, const WORDS: usize>(
    region: &[u8],
    offset: usize,
    hash: u64,
    k: ProbeCount,
    found: &mut [u64],
) {
    let row_len = region.len() / ROWS;
    assert!(offset + BYTES <= row_len, "a part of each row");
    let mut all = [!0; WORDS];
    for_each_probe(hash, k, |row, _| {
        // SAFETY: The region has 512 rows of `row_len` bytes, `for_each_probe` passes numbers below 512, and each row
        // has `BYTES` bytes from `offset` on. An array of bytes needs no alignment.
        let part: &[u8; BYTES] = unsafe { &*region.as_ptr().add(row * row_len + offset).cast() };
        let mut words = [[0; 8]; WORDS];
        words.as_flattened_mut()[..BYTES].copy_from_slice(part);
        all = array::from_fn(|i| all[i] & u64::from_le_bytes(words[i]));
    });
    found.copy_from_slice(&all);
}

/// Starts loading the first bytes of the rows of a hash, for as many words as given.
#[inline]
pub(crate) fn prefetch(region: &[u8], hash: u64, k: ProbeCount, n_words: usize) {
    let row_len = region.len() / ROWS;
    let last = row_len.min(8 * n_words).saturating_sub(1);
    for_each_probe(hash, k, |row, _| {
        let row = region.as_ptr().wrapping_add(row * row_len);
        let mut line = row.wrapping_sub(row.addr() % BLOCK_BYTES);
        while line <= row.wrapping_add(last) {
            prefetch_line(line);
            line = line.wrapping_add(BLOCK_BYTES);
        }
    });
}

/// The lanes of one block of 64 filters. After [`transpose`], the word of row `64 * lane + bit` is at `[bit][lane]`.
pub(crate) type Square = [[u64; LANES]; 64];

/// Transposes, in each lane, 64 words of 64 bits, so that bit b of word w becomes bit w of word b. Its own inverse.
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
    let mut words: [[u64; LANES]; 8] = array::from_fn(|i| square[first + i * stride]);
    for (step, shift) in shifts.into_iter().enumerate() {
        let mask = !0 / ((1_u64 << shift) + 1);
        let distance = 4 >> step;
        for low in (0..8).filter(|low| low & distance == 0) {
            let (lower, upper) = (words[low], words[low + distance]);
            let exchanged: [u64; LANES] =
                array::from_fn(|lane| ((lower[lane] >> shift) ^ upper[lane]) & mask);
            words[low] = array::from_fn(|lane| lower[lane] ^ (exchanged[lane] << shift));
            words[low + distance] = array::from_fn(|lane| upper[lane] ^ exchanged[lane]);
        }
    }
    for (i, word) in words.into_iter().enumerate() {
        square[first + i * stride] = word;
    }
}
