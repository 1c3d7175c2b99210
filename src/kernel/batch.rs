//! The batch loops of all kernels.
//!
//! A kernel's `#[target_feature]` function passes a closure, which inherits the function's features. The loop is
//! inlined into that function with the closure, so it is compiled for the kernel's instructions.
#![forbid(unsafe_code)]

use super::prefetch::{PREFETCHES, large, prefetch};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use super::tables::first_word;
use crate::bitmap::each_found;
use crate::blocks::{Block, BlockSlice, BlockSliceMut};
use crate::mask::block_index;
use crate::modules::hash_of_next;

/// Hashes per iteration of a loop that inserts or writes bools. With one hash, the loop is so short that its speed
/// depends on its address.
pub(super) const PAIR: usize = 2;

/// Hashes per iteration of a loop that writes a bitmap.
pub(super) const WORD: usize = 64;

/// The lookups of a batch. Running them writes the answers.
pub(super) trait Lookups: Sized {
    fn run(self, blocks: BlockSlice<'_>, contains: impl Fn(&Block, u64) -> bool);

    /// Like [`run`](Self::run), but answers for bitmaps come from three steps over 64 hashes. The first step computes
    /// the first words, the second calls `test` for each, and the third calls `answers` with eight words and tests at a
    /// time. The first and the last step use vectors of keys.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    #[inline(always)]
    fn run_in_steps(
        self,
        blocks: BlockSlice<'_>,
        contains: impl Fn(&Block, u64) -> bool,
        _test: impl Fn(&Block, u64) -> u8,
        _answers: impl Fn(&[u64; 8], &[u8; 8]) -> u8,
    ) {
        self.run(blocks, contains);
    }
}

/// How many keys ahead a batch prefetches. Zen 5 needs more than 64 to hide the latency of memory. Intel's cores are
/// slower with 128, probably because their first TLB, of 64 or 96 pages, has dropped a key's page by the key's turn.
pub(crate) const DISTANCE: usize = 96;

/// Hashes in groups of N. An iteration of a batch loop looks up or inserts the hashes of one group, and prefetches
/// `LINES` lines for each of the N hashes that are [`DISTANCE`] later.
struct Groups<'a, const LINES: usize, const N: usize> {
    hashes: &'a [[u64; N]],
    later: &'a [[u64; N]],
    start: *const Block,
    n_blocks: usize,
}

impl<'a, const LINES: usize, const N: usize> Groups<'a, LINES, N> {
    /// The groups, each with the hashes to [`prefetch`](Self::prefetch).
    #[inline(always)]
    fn iter(&self) -> impl Iterator<Item = (&'a [u64; N], &'a [u64; N])> + use<'a, LINES, N> {
        self.hashes.iter().zip(self.later)
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        let block = self.start.wrapping_add(block_index(hash, self.n_blocks));
        match LINES {
            0 => (),
            1 => prefetch::<false>(block),
            _ => prefetch::<true>(block),
        }
    }
}

/// Groups of hashes, and what is found for each.
pub(super) struct Batch<'a, const LINES: usize, const N: usize, A>(Groups<'a, LINES, N>, &'a mut [A]);

/// The hashes in two parts. A loop over the first part, which only [`large`] filters have, prefetches the
/// blocks of the hashes that are [`DISTANCE`] later. This function prefetches the blocks of the first [`DISTANCE`] hashes,
/// or of all if they are fewer, which halves the time of a batch of 64 in 16 MiB (Zen 5).
#[inline]
pub(super) fn split<'a, const LINES: usize, const N: usize, A>(
    blocks: BlockSlice<'_>,
    hashes: &'a [[u64; N]],
    found: &'a mut [A],
) -> (Option<Batch<'a, LINES, N, A>>, Batch<'a, 0, N, A>) {
    let (start, n_blocks) = (blocks.as_slice().as_ptr(), blocks.as_slice().len());
    let is_large = PREFETCHES && n_blocks >= large();
    let later = match hashes.as_flattened().get(DISTANCE..) {
        Some(later) if is_large => later.as_chunks().0,
        _ => &[],
    };
    let (early, late) = hashes.split_at(later.len());
    let (found_early, found_late) = found.split_at_mut(later.len());
    let groups = Groups { hashes: early, later, start, n_blocks };
    if is_large {
        hashes.as_flattened().iter().take(DISTANCE).for_each(|&hash| groups.prefetch(hash));
    }
    let early = (!early.is_empty()).then_some(Batch(groups, found_early));
    (early, Batch(Groups { hashes: late, later: late, start, n_blocks }, found_late))
}

impl<const LINES: usize> Lookups for Batch<'_, LINES, PAIR, [bool; PAIR]> {
    #[inline(always)]
    fn run(self, blocks: BlockSlice<'_>, contains: impl Fn(&Block, u64) -> bool) {
        for (found, (hashes, later)) in self.1.iter_mut().zip(self.0.iter()) {
            later.iter().for_each(|&later| self.0.prefetch(later));
            for (found, &hash) in found.iter_mut().zip(hashes) {
                *found = contains(blocks.block_of(hash), hash);
            }
        }
    }
}

impl<const LINES: usize> Lookups for Batch<'_, LINES, WORD, [u8; WORD / 8]> {
    #[inline(always)]
    fn run(self, blocks: BlockSlice<'_>, contains: impl Fn(&Block, u64) -> bool) {
        let mut answers = [[0; 8]; WORD / 8];
        for (found, (hashes, later)) in self.1.iter_mut().zip(self.0.iter()) {
            for (i, answer) in answers.as_flattened_mut().iter_mut().enumerate() {
                self.0.prefetch(later[i]);
                *answer = u8::from(contains(blocks.block_of(hashes[i]), hashes[i]));
            }
            // Byte i of eight moves to bit i of the highest byte.
            let pack =
                |answers| (u64::from_le_bytes(answers).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
            *found = answers.map(pack);
        }
    }

    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    #[inline(always)]
    fn run_in_steps(
        self,
        blocks: BlockSlice<'_>,
        _contains: impl Fn(&Block, u64) -> bool,
        test: impl Fn(&Block, u64) -> u8,
        answers: impl Fn(&[u64; 8], &[u8; 8]) -> u8,
    ) {
        let (mut words, mut tests) = (Aligned([[0; 8]; WORD / 8]), [[0; 8]; WORD / 8]);
        for (found, (hashes, later)) in self.1.iter_mut().zip(self.0.iter()) {
            for (word, &hash) in words.0.as_flattened_mut().iter_mut().zip(hashes) {
                *word = first_word(hash);
            }
            for (at, tests) in tests.iter_mut().enumerate() {
                for (i, test_of) in tests.iter_mut().enumerate() {
                    self.0.prefetch(later[8 * at + i]);
                    *test_of = test(blocks.block_of(hashes[8 * at + i]), words.0[at][i]);
                }
            }
            for (found, (words, tests)) in found.iter_mut().zip(words.0.iter().zip(&tests)) {
                *found = answers(words, tests);
            }
        }
    }
}

/// Lookups in module `index` of the hashes that are `found` in all modules before it.
pub(super) struct Further<'a> {
    pub(super) index: usize,
    pub(super) hashes: &'a [[u64; 8]],
    pub(super) found: &'a mut [[bool; 8]],
}

impl Lookups for Further<'_> {
    #[inline(always)]
    fn run(self, blocks: BlockSlice<'_>, contains: impl Fn(&Block, u64) -> bool) {
        let Self { index, hashes, found } = self;
        let in_module = |hash: u64| (0..index).fold(hash, |hash, _| hash_of_next(hash));
        let answer = |hash| {
            let hash = in_module(hash);
            contains(blocks.block_of(hash), hash)
        };
        if PREFETCHES && blocks.as_slice().len() >= large() {
            let mut places = [0; 512];
            for (hashes, found) in hashes.chunks(64).zip(found.chunks_mut(64)) {
                let (hashes, found) = (hashes.as_flattened(), found.as_flattened_mut());
                let mut n = 0;
                for (at, eight) in found.chunks(8).enumerate() {
                    // Usually all eight are absent.
                    if eight == [false; 8] {
                        continue;
                    }
                    for (i, found) in eight.iter().enumerate() {
                        // Without a branch, which would be mispredicted where absent and present keys are mixed.
                        places[n % 512] = (8 * at + i) as u16;
                        n += usize::from(*found);
                    }
                }
                let places = places.iter().take(n).map(|&place| usize::from(place));
                for &hash in places.clone().filter_map(|place| hashes.get(place)) {
                    prefetch::<true>(blocks.block_of(in_module(hash)));
                }
                for place in places {
                    if let (Some(&hash), Some(found)) = (hashes.get(place), found.get_mut(place)) {
                        *found = answer(hash);
                    }
                }
            }
        } else {
            for (hashes, found) in hashes.iter().zip(found) {
                each_found(*found, |i| found[i] = answer(hashes[i]));
            }
        }
    }
}

/// Vectors that do not straddle cache lines.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[repr(align(64))]
struct Aligned<T>(T);

/// What is kept of whether an insert changed a bit, which is the answer itself or nothing.
pub(crate) trait Changed: Copy + Default {
    fn of(changed: bool) -> Self;
    fn or(self, other: Self) -> Self;
}

impl Changed for bool {
    #[inline(always)]
    fn of(changed: bool) -> Self {
        changed
    }

    fn or(self, other: Self) -> Self {
        self | other
    }
}

impl Changed for () {
    #[inline(always)]
    fn of(_: bool) {}

    fn or(self, (): Self) {}
}

pub(super) type Inserts<'a, const LINES: usize, C> = Batch<'a, LINES, PAIR, [C; PAIR]>;

impl<const LINES: usize, C: Changed> Inserts<'_, LINES, C> {
    /// `insert` returns whether it changed the block.
    #[inline(always)]
    pub(super) fn run(self, mut blocks: BlockSliceMut<'_>, insert: impl Fn(&mut Block, u64) -> bool) {
        // Destructured, because LLVM optimises the loop less if the groups stay a part of `self`.
        let Self(groups, changed) = self;
        for (changed, (hashes, later)) in changed.iter_mut().zip(groups.iter()) {
            (0..PAIR).for_each(|i| groups.prefetch(later[i]));
            for (changed, &hash) in changed.iter_mut().zip(hashes) {
                *changed = C::of(insert(blocks.block_of(hash), hash));
            }
        }
    }

    /// [`run`](Self::run) for kernels that hold a block in registers. If there is only one block, it stays there for
    /// the whole batch, because in memory each insert would wait for the insert before it.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    #[inline(always)]
    pub(super) fn run_in_registers(
        self,
        mut blocks: BlockSliceMut<'_>,
        insert: impl Fn(&mut Block, u64) -> bool,
    ) {
        let [block] = blocks.as_mut_slice() else {
            return self.run(blocks, insert);
        };
        let mut copy = *block;
        for (changed, (hashes, _)) in self.1.iter_mut().zip(self.0.iter()) {
            for (changed, &hash) in changed.iter_mut().zip(hashes) {
                *changed = C::of(insert(&mut copy, hash));
            }
        }
        *block = copy;
    }
}
