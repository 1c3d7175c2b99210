//! The batch loops of all kernels.
//!
//! A kernel's `#[target_feature]` function passes a closure, which inherits the function's features. The loop is
//! inlined into that function with the closure, so it is compiled for the kernel's instructions.
#![forbid(unsafe_code)]

use super::prefetch::{Pair, WORD, Words};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use super::tables::first_word;
use crate::blocks::{Block, BlockSlice, Blocks};

/// The hashes of a batch, two at a time.
pub(super) trait Pairs: Iterator<Item = Pair> {}
impl<I: Iterator<Item = Pair>> Pairs for I {}

pub(super) struct Lookups<'a, H> {
    pub(super) hashes: H,
    pub(super) found: &'a mut [[bool; 2]],
}

impl<H: Pairs> Lookups<'_, H> {
    #[inline(always)]
    pub(super) fn run(self, blocks: BlockSlice<'_>, contains: impl Fn(&Block, u64) -> bool) {
        for (found, pair) in self.found.iter_mut().zip(self.hashes) {
            for (found, hash) in found.iter_mut().zip(pair) {
                *found = contains(blocks.block_of(hash), hash);
            }
        }
    }
}

pub(super) struct BitLookups<'a, H> {
    pub(super) hashes: H,
    /// A bit for each hash of a group.
    pub(super) found: &'a mut [[u8; WORD / 8]],
}

impl<'a, H: Words<'a>> BitLookups<'_, H> {
    #[inline(always)]
    pub(super) fn run(self, blocks: BlockSlice<'_>, contains: impl Fn(&Block, u64) -> bool) {
        let mut answers = [[0; 8]; WORD / 8];
        for (found, (hashes, prefetch)) in self.found.iter_mut().zip(self.hashes) {
            for (at, answers) in answers.iter_mut().enumerate() {
                for (i, answer) in answers.iter_mut().enumerate() {
                    let hash = hashes[8 * at + i];
                    prefetch(8 * at + i);
                    *answer = u8::from(contains(blocks.block_of(hash), hash));
                }
            }
            // Byte i of eight moves to bit i of the highest byte.
            let pack =
                |answers| (u64::from_le_bytes(answers).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
            *found = answers.map(pack);
        }
    }

    /// [`run`](Self::run) in three steps, of which the first and the last use vectors of keys: the first words of the
    /// hashes; the `test` of each; and, from eight words and tests at a time, the `answers`.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    #[inline(always)]
    pub(super) fn run_in_steps(
        self,
        blocks: BlockSlice<'_>,
        test: impl Fn(&Block, u64) -> u8,
        answers: impl Fn(&[u64; 8], &[u8; 8]) -> u8,
    ) {
        let (mut words, mut tests) = (Aligned([[0; 8]; WORD / 8]), [[0; 8]; WORD / 8]);
        for (found, (hashes, prefetch)) in self.found.iter_mut().zip(self.hashes) {
            for (word, &hash) in words.0.as_flattened_mut().iter_mut().zip(hashes) {
                *word = first_word(hash);
            }
            for (at, tests) in tests.iter_mut().enumerate() {
                for (i, test_of) in tests.iter_mut().enumerate() {
                    prefetch(8 * at + i);
                    *test_of = test(blocks.block_of(hashes[8 * at + i]), words.0[at][i]);
                }
            }
            for (found, (words, tests)) in found.iter_mut().zip(words.0.iter().zip(&tests)) {
                *found = answers(words, tests);
            }
        }
    }
}

/// Vectors that do not straddle cache lines.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[repr(align(64))]
struct Aligned<T>(T);

pub(super) struct Inserts<H, F> {
    pub(super) hashes: H,
    /// Called with each hash whose bits were all set already.
    pub(super) on_unchanged: F,
}

impl<H: Pairs, F: FnMut(u64)> Inserts<H, F> {
    /// `insert` returns whether it changed the block.
    #[inline(always)]
    pub(super) fn run(mut self, blocks: &mut Blocks, insert: impl Fn(&mut Block, u64) -> bool) {
        for pair in self.hashes {
            // By reference: if the array is moved, LLVM 22 keeps the test for k > 8 inside the prefetching loop, and
            // AVX2 and AVX-512 inserts into 1 MiB take 7 to 14 % longer (Zen 4, 2026-11).
            pair.iter().for_each(|&hash| {
                if !insert(blocks.block_of_mut(hash), hash) {
                    (self.on_unchanged)(hash);
                }
            });
        }
    }

    /// [`run`](Self::run) for kernels that hold a block in registers. If there is only one block, it stays there for
    /// the whole batch; in memory, each insert would wait for the one before it.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    #[inline(always)]
    pub(super) fn run_in_registers(mut self, blocks: &mut Blocks, insert: impl Fn(&mut Block, u64) -> bool) {
        let [block] = blocks.as_mut_slice() else {
            return self.run(blocks, insert);
        };
        let mut copy = *block;
        for hash in self.hashes.flatten() {
            if !insert(&mut copy, hash) {
                (self.on_unchanged)(hash);
            }
        }
        *block = copy;
    }
}
