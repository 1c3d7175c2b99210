//! Lookups in contiguous modules, and the hash of each module.
#![forbid(unsafe_code)]

use crate::blocks::{Block, BlockSlice};
use crate::kernel::{self, Kernel};
use crate::mask::ProbeCount;

/// The multiplier of MurmurHash3's last step.
const MULTIPLIER: u64 = 0xC4CE_B9FE_1A85_EC53;

/// A key's hash in the next module. A bijection, so that keys whose hashes differ have different hashes in all modules.
// Tried: one step. It is linear on hashes below 2^32 and on multiples of 2^32, and on the multiples module 1 has 1.25
// times the model's rate. With two steps, every pattern that we tried has the model's rate.
#[inline]
pub(in crate::variants) fn next(hash: u64) -> u64 {
    let step = |hash: u64| (hash ^ (hash >> 32)).wrapping_mul(MULTIPLIER);
    step(step(hash))
}

/// Hashes of a batch that are passed to a module at a time. They are copied to the stack.
pub(super) const CHUNK: usize = 1024;

/// Shorter batches go one by one, because clearing the arrays of a chunk would cost as much.
pub(super) const SHORT: usize = 64;

/// The blocks of all modules, in the order of the modules.
#[derive(Clone, Copy)]
pub(super) struct Modules<'a> {
    pub(super) blocks: BlockSlice<'a>,
    /// Blocks of each module. At least 1, and divides the number of all blocks.
    pub(super) n_blocks: usize,
    pub(super) k: ProbeCount,
    pub(super) kernel: Kernel,
}

impl<'a> Modules<'a> {
    /// The number of modules. Divides, so not for hot paths.
    pub(super) fn len(self) -> usize {
        self.blocks.as_slice().len() / self.n_blocks
    }

    pub(super) fn bytes(self) -> &'a [u8] {
        self.blocks.as_slice().as_flattened()
    }

    /// The first `n_modules` modules, at least 1 and no more than there are.
    pub(super) fn truncated(self, n_modules: usize) -> Self {
        let blocks = BlockSlice::new(&self.blocks.as_slice()[..n_modules * self.n_blocks]);
        Self { blocks: blocks.expect("at least one module"), ..self }
    }

    #[inline(always)]
    fn split(self) -> (BlockSlice<'a>, Others<'a>) {
        let (first, blocks) = self.blocks.as_slice().split_at(self.n_blocks);
        (BlockSlice::new(first).expect("at least one block"), Others { blocks, n_blocks: self.n_blocks })
    }

    /// The modules, one by one.
    pub(super) fn iter(self) -> impl Iterator<Item = BlockSlice<'a>> {
        Others { blocks: self.blocks.as_slice(), n_blocks: self.n_blocks }
    }

    /// Returns whether all modules have the key, whose hash in the first is given.
    // Two modules are inlined, because with a call for the second, lookups of present keys are 1.4 times slower.
    #[inline(always)]
    pub(super) fn contain(self, hash: u64) -> bool {
        let Self { k, kernel, .. } = self;
        let (first, mut others) = self.split();
        if !kernel.contains(first, hash, k) {
            return false;
        }
        let Some(second) = others.next() else { return true };
        let hash = next(hash);
        kernel.contains(second, hash, k) && (others.blocks.is_empty() || others.contain(hash, k, kernel))
    }

    #[inline]
    pub(super) fn prefetch(self, hash: u64) {
        // Blocks read in place may straddle two lines.
        kernel::prefetch::<true>(self.split().0.block_of(hash));
    }

    /// Asks the first module for all hashes, the second for the hashes that the first has, and so on.
    pub(super) fn contains_batch(self, hashes: &[u64], found: &mut [bool]) {
        assert_eq!(hashes.len(), found.len(), "one answer per hash");
        let Self { k, kernel, .. } = self;
        let (first, others) = self.split();
        if hashes.len() < SHORT {
            for (found, &hash) in found.iter_mut().zip(hashes) {
                *found = self.contain(hash);
            }
            return;
        }
        // The hashes that all modules so far have, their places in the chunk, and a module's answers.
        let (mut left, mut places, mut answers) = ([0; CHUNK], [0_u16; CHUNK], [false; CHUNK]);
        for (hashes, found) in hashes.chunks(CHUNK).zip(found.chunks_mut(CHUNK)) {
            kernel.contains_batch(first, hashes, k, found);
            let mut n_left = 0;
            for (place, (&hash, &found)) in hashes.iter().zip(&*found).enumerate() {
                // Without a branch, which would be mispredicted where present and absent keys are mixed.
                (left[n_left], places[n_left]) = (hash, place as u16);
                n_left += usize::from(found);
            }
            for module in others {
                left[..n_left].iter_mut().for_each(|hash| *hash = next(*hash));
                // The kernel prefetches in longer batches itself, and all of their lines at once would not fit in the
                // L1 cache.
                if self.n_blocks >= kernel::LARGE_BLOCKS && n_left < 256 {
                    left[..n_left].iter().for_each(|&hash| kernel::prefetch::<true>(module.block_of(hash)));
                }
                let answers = &mut answers[..n_left];
                kernel.contains_batch(module, &left[..n_left], k, answers);
                n_left = 0;
                for (at, &answer) in answers.iter().enumerate() {
                    found[usize::from(places[at])] = answer;
                    (left[n_left], places[n_left]) = (left[at], places[at]);
                    n_left += usize::from(answer);
                }
            }
        }
    }
}

/// Iterates over the remaining modules. Does not divide, as `chunks_exact` would.
#[derive(Clone, Copy)]
struct Others<'a> {
    blocks: &'a [Block],
    n_blocks: usize,
}

impl Others<'_> {
    /// Returns whether all of these modules have the key, whose hash in the module before them is given.
    #[inline(never)]
    fn contain(mut self, mut hash: u64, k: ProbeCount, kernel: Kernel) -> bool {
        self.all(|module| {
            hash = next(hash);
            kernel.contains(module, hash, k)
        })
    }
}

impl<'a> Iterator for Others<'a> {
    type Item = BlockSlice<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<BlockSlice<'a>> {
        let (module, blocks) = self.blocks.split_at_checked(self.n_blocks)?;
        self.blocks = blocks;
        BlockSlice::new(module)
    }
}
