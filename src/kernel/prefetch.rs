//! Prefetching of cache lines.
#![cfg_attr(
    not(any(all(target_arch = "x86_64", target_feature = "sse"), target_arch = "aarch64")),
    forbid(unsafe_code)
)]

use crate::blocks::{Block, BlockSlice};
use crate::mask::block_index;

/// Whether [`prefetch_line`] does anything: on x86-64, but for bare metal, a target without SSE, and on aarch64. On other
/// CPUs each loop is compiled once, not four times: WebAssembly is 9 % smaller.
const PREFETCHES: bool =
    cfg!(any(all(target_arch = "x86_64", target_feature = "sse"), target_arch = "aarch64"));

/// Starts loading the line of a byte into the cache. Never faults, wherever it points.
#[inline]
pub(super) fn prefetch_line(byte: *const u8) {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse"))]
    // SAFETY: a prefetch is a hint: it reads nothing and cannot fault. The target has SSE.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(byte.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch is a hint: it reads nothing, writes no register and no flag, and cannot fault.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) byte, options(nostack, readonly, preserves_flags));
    }
    #[cfg(not(any(all(target_arch = "x86_64", target_feature = "sse"), target_arch = "aarch64")))]
    let _ = byte;
}

/// Starts loading a block: both of its lines if it may straddle two, as blocks read in place may.
#[inline]
pub(crate) fn prefetch<const STRADDLE: bool>(block: *const Block) {
    let first = block.cast::<u8>();
    prefetch_line(first);
    if STRADDLE {
        prefetch_line(first.wrapping_add(size_of::<Block>() - 1));
    }
}

/// How many keys ahead [`each_ahead`] prefetches. Distances from 16 to 128 perform alike in filters with several lines
/// per key.
pub(crate) const AHEAD: usize = 16;

/// Calls `with` for each hash, and `prefetch` for the hash [`AHEAD`] places after it.
#[cfg(target_has_atomic = "64")]
#[inline]
pub(crate) fn each_ahead(hashes: &[u64], prefetch: impl Fn(u64), mut with: impl FnMut(u64)) {
    for (i, &hash) in hashes.iter().enumerate() {
        if let Some(&later) = hashes.get(i + AHEAD) {
            prefetch(later);
        }
        with(hash);
    }
}

/// Returns whether each block straddles two cache lines, as blocks read in place may.
#[inline]
pub(super) fn straddle(blocks: BlockSlice<'_>) -> bool {
    PREFETCHES && !blocks.as_slice().as_ptr().addr().is_multiple_of(size_of::<Block>())
}

/// Batches prefetch in filters of this size (512 KiB) or more, which the caches close to a core may not hold. At 2 MiB
/// that still costs a little (1.64 against 1.52 ns a key), at 8 MiB it helps (1.65 against 2.39; Zen 5, 2026-11).
pub(crate) const LARGE_BLOCKS: usize = (512 << 10) / size_of::<Block>();

/// How many keys ahead a batch prefetches. Zen 5 needs more than 64 to hide the latency of memory. Intel's cores lose with
/// 128, probably because their first TLB, of 64 or 96 pages, no longer holds the pages of the first lines at their turn.
const DISTANCE: usize = 96;

/// The hashes of one iteration of a batch loop. With one hash, the loop is so short that its speed depends on its
/// address (AVX-512: 0.76 or 0.98 ns a key; with two, 0.72 at any address; Zen 5, 2026-11).
pub(super) type Pair = [u64; 2];

/// The hashes in two parts. Iterating over the first prefetches the blocks of later hashes.
#[inline]
pub(super) fn split<'a, const STRADDLE: bool>(
    blocks: BlockSlice<'_>,
    hashes: &'a [Pair],
) -> (
    impl ExactSizeIterator<Item = Pair> + use<'a, STRADDLE>,
    impl ExactSizeIterator<Item = Pair> + use<'a, STRADDLE>,
) {
    let (start, n_blocks) = (blocks.as_slice().as_ptr(), blocks.as_slice().len());
    let prefetch = move |hash| prefetch::<STRADDLE>(start.wrapping_add(block_index(hash, n_blocks)));
    let distance =
        if !PREFETCHES || n_blocks < LARGE_BLOCKS { hashes.len() } else { hashes.len().min(DISTANCE / 2) };
    let (early, late) = hashes.split_at(hashes.len() - distance);
    if !early.is_empty() {
        hashes[..distance].as_flattened().iter().for_each(|&hash| prefetch(hash));
    }
    let early = early.iter().zip(&hashes[distance..]).map(move |(&pair, &later)| {
        later.into_iter().for_each(prefetch);
        pair
    });
    (early, late.iter().copied())
}

/// How many hashes one iteration of a bitmap's loop takes.
pub(super) const WORD: usize = 64;

/// Hashes, each group with a function that prefetches for a later group, hash by hash.
pub(super) trait Words<'a>: Iterator<Item = (&'a [u64; WORD], Self::Prefetch)> {
    type Prefetch: Fn(usize);
}
impl<'a, P: Fn(usize), I: Iterator<Item = (&'a [u64; WORD], P)>> Words<'a> for I {
    type Prefetch = P;
}

/// [`split`] for bitmaps, whose loops prefetch by themselves.
#[inline]
pub(super) fn split_words<'a, const STRADDLE: bool>(
    blocks: BlockSlice<'_>,
    hashes: &'a [[u64; WORD]],
) -> (
    impl Words<'a> + ExactSizeIterator + use<'a, STRADDLE>,
    impl Words<'a> + ExactSizeIterator + use<'a, STRADDLE>,
) {
    let (start, n_blocks) = (blocks.as_slice().as_ptr(), blocks.as_slice().len());
    let prefetch = move |hash| prefetch::<STRADDLE>(start.wrapping_add(block_index(hash, n_blocks)));
    let distance =
        if !PREFETCHES || n_blocks < LARGE_BLOCKS { hashes.len() } else { hashes.len().min(DISTANCE / WORD) };
    let (early, late) = hashes.split_at(hashes.len() - distance);
    if !early.is_empty() {
        hashes[..distance].as_flattened().iter().for_each(|&hash| prefetch(hash));
    }
    let early = early.iter().zip(&hashes[distance..]);
    let early = early.map(move |(hashes, later)| (hashes, move |i: usize| prefetch(later[i])));
    (early, late.iter().map(|hashes| (hashes, |_| ())))
}
