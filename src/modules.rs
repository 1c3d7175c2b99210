//! The modules of a filter (section 3 of the format), which are filters of blocks that must all have a key.

use crate::blocks::{Block, BlockSlice};

/// The most modules that the format has room for.
pub(crate) const MOST_MODULES: usize = 16;

/// The multiplier of MurmurHash3's last step.
const MULTIPLIER: u64 = 0xC4CE_B9FE_1A85_EC53;

/// A key's hash in the next module. A bijection, so that keys whose hashes differ have different hashes in all modules.
// Tried: one step. It is linear on hashes below 2^32 and on multiples of 2^32, and on the multiples module 1 has 1.25
// times the model's rate. With two steps, every pattern that we tried has the model's rate.
#[inline]
pub(crate) fn hash_of_next(hash: u64) -> u64 {
    let step = |hash: u64| (hash ^ (hash >> 32)).wrapping_mul(MULTIPLIER);
    step(step(hash))
}

/// The blocks of all modules, one module after the other.
#[derive(Clone, Copy)]
pub(crate) struct Modules<'a> {
    pub(crate) blocks: BlockSlice<'a>,
    /// Blocks of each module. At least 1, and divides the number of all blocks.
    pub(crate) module_blocks: usize,
}

impl<'a> Modules<'a> {
    /// `n_modules` modules, if they can have equal numbers of blocks.
    pub(crate) fn new(blocks: BlockSlice<'a>, n_modules: usize) -> Option<Self> {
        let n_blocks = blocks.as_slice().len();
        let module_blocks =
            n_blocks.checked_div(n_modules).filter(|&of_each| of_each * n_modules == n_blocks)?;
        (module_blocks != 0).then_some(Self { blocks, module_blocks })
    }

    pub(crate) fn one(blocks: BlockSlice<'a>) -> Self {
        Self { blocks, module_blocks: blocks.as_slice().len() }
    }

    #[inline]
    pub(crate) fn first(self) -> BlockSlice<'a> {
        self.blocks.split(self.module_blocks).0
    }

    /// The modules but the first, if there are others.
    #[inline]
    pub(crate) fn others(self) -> Option<BlockSlice<'a>> {
        self.blocks.as_slice().get(self.module_blocks..).and_then(BlockSlice::new)
    }

    /// Divides, so not for hot paths.
    pub(crate) fn len(self) -> usize {
        self.blocks.as_slice().len() / self.module_blocks
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = BlockSlice<'a>> {
        let modules = self.blocks.as_slice().chunks_exact(self.module_blocks);
        modules.filter_map(|module: &[Block]| BlockSlice::new(module))
    }
}
