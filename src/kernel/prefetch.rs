//! Prefetching of cache lines.
#![cfg_attr(
    not(any(all(target_arch = "x86_64", target_feature = "sse"), target_arch = "aarch64")),
    forbid(unsafe_code)
)]

#[cfg(all(target_arch = "x86_64", target_feature = "sse"))]
use super::choice::{Choice, UNMADE};
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

/// How many keys ahead a batch prefetches. Once the distance hides the memory latency, a larger one gains nothing, and
/// loses on Intel, probably because the first TLB does not hold the pages of more than 64 lines until their turn.
///
/// Time a key, distance 64 against 128. Intel Cascade Lake, ÷ a bare line read: 1.01 and 1.15 in 16 MiB, 1.06 and 1.26 in
/// 64 MiB, 1.10 and 1.16 in 256 MiB. Zen 5, in ns: 3.9 and 2.8 in 64 MiB, 6.2 and 6.2 in 1 GiB (2026-11).
fn distance() -> usize {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse"))]
    {
        /// An index into `DISTANCES`.
        static CHOICE: Choice = Choice(super::atomic::AtomicU8::new(UNMADE));
        const DISTANCES: [usize; 2] = [64, 128];
        CHOICE.get(&DISTANCES, || usize::from(!is_intel()))
    }
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse")))]
    128
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse"))]
fn cpuid_0() -> core::arch::x86_64::CpuidResult {
    // Safe in newer versions of Rust.
    #[allow(unused_unsafe)]
    // SAFETY: every x86-64 CPU has this instruction and its leaf 0.
    unsafe {
        core::arch::x86_64::__cpuid(0)
    }
}

/// Returns whether cpuid's leaf 7 has the CPU's features. On old CPUs, and where firmware limits the leaves, reading it
/// returns the content of another leaf.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(feature = "std")))]
pub(super) fn has_leaf_7() -> bool {
    cpuid_0().eax >= 7
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse"))]
fn is_intel() -> bool {
    let vendor = cpuid_0();
    [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).as_flattened() == b"GenuineIntel"
}

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
        if !PREFETCHES || n_blocks < LARGE_BLOCKS { hashes.len() } else { hashes.len().min(distance() / 2) };
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
    let distance = if !PREFETCHES || n_blocks < LARGE_BLOCKS {
        hashes.len()
    } else {
        hashes.len().min(distance() / WORD)
    };
    let (early, late) = hashes.split_at(hashes.len() - distance);
    if !early.is_empty() {
        hashes[..distance].as_flattened().iter().for_each(|&hash| prefetch(hash));
    }
    let early = early.iter().zip(&hashes[distance..]);
    let early = early.map(move |(hashes, later)| (hashes, move |i: usize| prefetch(later[i])));
    (early, late.iter().map(|hashes| (hashes, |_| ())))
}
