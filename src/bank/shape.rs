//! Where the bits of a bank are, in memory and in its standalone bytes.

use core::fmt;

use super::bitmap::SlotBitmap;
use crate::footer::StandaloneFooter;
use crate::hash::Seed;
use crate::kernel::{Kernel, ROWS};
use crate::mask::{ProbeCount, block_index};

/// Bytes of the checksum and the zeros behind the rows of a region, in standalone bytes.
pub(super) const TRAILER_BYTES: usize = 64;
/// Bytes of a number of known keys.
pub(super) const KEYS_BYTES: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) n_blocks: usize,
    pub(super) slots: usize,
    /// Bytes of a region's rows.
    pub(super) rows_len: usize,
    /// Bytes from the start of a region to the start of the next.
    pub(super) stride: usize,
    pub(super) k: ProbeCount,
    pub(super) seed: Seed,
    pub(super) kernel: Kernel,
}

impl Shape {
    #[inline]
    pub(super) fn block_of(&self, hash: u64) -> usize {
        block_index(hash, self.n_blocks)
    }

    pub(super) fn regions_len(&self) -> usize {
        self.n_blocks * self.stride
    }

    pub(super) fn standalone_len(&self) -> u64 {
        let region_len = rows_len(self.slots) + TRAILER_BYTES;
        let behind = self.slots * KEYS_BYTES + StandaloneFooter::LEN;
        self.n_blocks as u64 * region_len as u64 + behind as u64
    }

    /// Looks up a hash in the rows of its region. Without them, every slot possibly has the key.
    #[inline]
    pub(super) fn find(&self, rows: Option<&[u8]>, hash: u64, found: &mut SlotBitmap) -> bool {
        found.fill(self.slots, |words| match rows {
            Some(rows) => self.kernel.find(rows, hash, self.k, words),
            None => words.fill(!0),
        })
    }

    pub(super) fn debug(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("slots", &self.slots)
            .field("n_blocks", &self.n_blocks)
            .field("k", &self.k.get())
            .field("seed", &self.seed.get())
            .field("kernel", &self.kernel)
            .finish_non_exhaustive()
    }
}

/// The most slots that the format allows, so that no footer can request a large bitmap.
pub(super) const MOST_SLOTS: usize = 1 << 24;

/// Bytes of a region's rows, of at most [`MOST_SLOTS`] slots.
pub(super) fn rows_len(slots: usize) -> usize {
    let row_len = match slots {
        0 => 0,
        1..=32 => slots.div_ceil(8).next_power_of_two(),
        _ => slots.div_ceil(64) * 8,
    };
    ROWS * row_len
}

/// Copies the slots' bits to rows of zeros, which may be longer or shorter.
pub(super) fn copy_rows(from: &[u8], to: &mut [u8], slots: usize) {
    if slots == 0 {
        return;
    }
    let (from_len, to_len, len) = (from.len() / ROWS, to.len() / ROWS, slots.div_ceil(8));
    for (from, to) in from.chunks(from_len).zip(to.chunks_mut(to_len)) {
        to[..len].copy_from_slice(&from[..len]);
        // Bits of no slot may be set in forged bytes.
        to[len - 1] &= 0xff >> (8 * len - slots);
    }
}
