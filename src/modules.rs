//! The modules of a filter (section 3 of the format), which are filters of blocks that must all have a key.
//!
//! The number of modules, from a rate to a lookup:
//!
//! 1. `Sizing::for_fpr` chooses `n_modules`, by `PerKey::best` in `sizing/per_key.rs`. Builders, compact bytes and footers
//!    have it in this form, too.
//! 2. `Blocks::in_modules` divides a filter's blocks by it. From here on the number is `module_blocks`, the blocks of
//!    each module, because a lookup multiplies the hash by it. Methods of filters and views called `n_modules` divide back.
//! 3. [`Modules`] has borrowed blocks and their `module_blocks`. A view keeps it, and a filter makes one for batches and
//!    bytes. For bytes read in place, [`Modules::new`] divides.
//! 4. `Inlined` in `kernel/several.rs` is made once, with a filter or view. It tells whether there is one module, or two.
//! 5. `contains_hash` inlines the lookup in the only module, or in the first of two. `Kernel::modules_contain` has all
//!    others. Kernels see one module at a time, and their `n_blocks` is its length.

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
        // Never of 0, because there is at least one block.
        n_blocks.is_multiple_of(n_modules).then(|| Self { blocks, module_blocks: n_blocks / n_modules })
    }

    pub(crate) fn one(blocks: BlockSlice<'a>) -> Self {
        Self { blocks, module_blocks: blocks.as_slice().len() }
    }

    #[inline]
    pub(crate) fn is_one(self) -> bool {
        self.blocks.as_slice().len() == self.module_blocks
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
    #[inline]
    pub(crate) fn n_modules(self) -> usize {
        self.blocks.as_slice().len() / self.module_blocks
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = BlockSlice<'a>> {
        let modules = self.blocks.as_slice().chunks_exact(self.module_blocks);
        modules.filter_map(|module: &[Block]| BlockSlice::new(module))
    }
}
