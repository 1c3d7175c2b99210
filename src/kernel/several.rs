//! Inserts and lookups in filters of several modules, of which callers inline only what most keys need.
#![forbid(unsafe_code)]

use super::batch::Further;
use super::{Changed, Kernel, KernelId, Probes};
use crate::blocks::{Block, BlockSlice, BlockSliceMut};
use crate::mask::ProbeCount;
use crate::modules::{Modules, hash_of_next};

/// Hashes of a batch of inserts that are passed to a module at a time. They are copied to the stack.
const CHUNK: usize = 1024;

/// Shorter batches are inserted one by one, because clearing the arrays of a chunk would cost as much.
const SHORT: usize = 64;

/// What single lookups and inserts branch on, because they inline code for one and two modules. Made once, with a filter
/// or view. Of the first three fields, each is one byte that tells whether there are that many modules, and the kernel or
/// k, so one comparison is enough.
#[derive(Clone, Copy)]
pub(crate) struct Inlined {
    /// The kernel, or `reference` if there is not one module. Nothing is inlined of `reference`.
    pub(crate) one_module: Kernel,
    /// The kernel, or `reference` if there are not two modules.
    // Tried: options of kernels. For x86-64-v4, a loop over lookups in two modules runs up to 1.34 times as long.
    pub(crate) two_modules: Kernel,
    /// k, if there is one module. Filters for which it is equal can be asked with one mask.
    // Tried: compare k and the number of modules. `which_contain` runs up to 1.09 times as long.
    pub(crate) one_module_k: Option<ProbeCount>,
    /// Kept, because its address would cost a lookup by a call four instructions.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
    constants: &'static super::inlined::Constants,
}

impl Inlined {
    pub(crate) fn new(kernel: Kernel, k: ProbeCount, n_blocks: usize, module_blocks: usize) -> Self {
        let only_if = |holds| if holds { kernel } else { Kernel(KernelId::Reference) };
        Self {
            one_module: only_if(n_blocks == module_blocks),
            two_modules: only_if(n_blocks == 2 * module_blocks),
            one_module_k: (n_blocks == module_blocks).then_some(k),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
            constants: super::inlined::Constants::of(k),
        }
    }

    #[inline(always)]
    pub(crate) fn probes(self, k: ProbeCount) -> Probes {
        Probes {
            k,
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_pointer_width = "64"))]
            constants: self.constants,
        }
    }
}

impl Kernel {
    /// Returns whether all modules have the key, whose hash in the first is given. Modules have `module_blocks` blocks
    /// each.
    // Not inlined. The arguments are separate, so that they are in registers. Both calls pass them on in the same registers,
    // so they become jumps. The hash is second, because it comes to the callers in the second register.
    #[inline(never)]
    pub(crate) fn modules_contain(
        k: ProbeCount,
        hash: u64,
        blocks: BlockSlice<'_>,
        module_blocks: usize,
        kernel: Self,
    ) -> bool {
        // One module, or the last one of several.
        if blocks.as_slice().len() == module_blocks {
            return kernel.contains_by_kernel(blocks, hash, k);
        }
        Self::any_modules_contain(k, hash, blocks, module_blocks, kernel)
    }

    /// [`modules_contain`](Self::modules_contain) for any number of modules and any kernel.
    #[inline(never)]
    fn any_modules_contain(
        k: ProbeCount,
        mut hash: u64,
        blocks: BlockSlice<'_>,
        module_blocks: usize,
        kernel: Self,
    ) -> bool {
        let mut rest = blocks.as_slice();
        while let Some(blocks) = BlockSlice::new(rest) {
            let module;
            (module, rest) = blocks.split(module_blocks);
            if !kernel.contains(module, hash, k) {
                return false;
            }
            hash = hash_of_next(hash);
        }
        true
    }

    /// Returns whether the second of two modules has the key, whose hash in the first is given.
    #[inline(never)]
    pub(crate) fn second_contains(k: ProbeCount, hash: u64, both: BlockSlice<'_>, kernel: Self) -> bool {
        let (_, Some(second)) = both.halves() else { return true };
        let hash = hash_of_next(hash);
        // A kernel without inlined code is called, so that no register is saved for all kernels.
        let answer = kernel.contains_inlined(second, hash, k);
        answer.unwrap_or_else(|| Self::modules_contain(k, hash, second, second.as_slice().len(), kernel))
    }

    /// Returns whether all modules but the first have the key, whose hash in the first is given.
    pub(crate) fn others_contain(self, modules: Modules<'_>, hash: u64, k: ProbeCount) -> bool {
        let contain =
            |others| Self::modules_contain(k, hash_of_next(hash), others, modules.module_blocks, self);
        modules.others().is_none_or(contain)
    }

    /// Sets the bits of the key in all modules. Returns whether any of them was clear.
    // Inlined with two modules, because a call costs a quarter of the insert, but only by assembly, because the compiler
    // would call compiled code that is used so often, also for one module.
    #[inline(always)]
    pub(crate) fn insert_into_modules(
        blocks: &mut [Block],
        module_blocks: usize,
        hash: u64,
        k: ProbeCount,
        kernel: Self,
    ) -> bool {
        if let Some((first, second)) = blocks.split_at_mut_checked(module_blocks)
            && second.len() == module_blocks
            && let (Some(first), Some(second)) = (BlockSliceMut::new(first), BlockSliceMut::new(second))
            && let Some(changed) = kernel.insert_by_assembly(first, hash, k.into())
        {
            return changed | (kernel.insert_by_assembly(second, hash_of_next(hash), k.into()) == Some(true));
        }
        Self::insert_into_any_modules(blocks, module_blocks, hash, k, kernel)
    }

    /// [`insert_into_modules`](Self::insert_into_modules) for any number of modules and any kernel.
    #[inline(never)]
    fn insert_into_any_modules(
        blocks: &mut [Block],
        module_blocks: usize,
        mut hash: u64,
        k: ProbeCount,
        kernel: Self,
    ) -> bool {
        let (mut rest, mut changed) = (blocks, false);
        while let Some((module, others)) = rest.split_at_mut_checked(module_blocks) {
            let Some(module) = BlockSliceMut::new(module) else { break };
            changed |= kernel.insert(module, hash, k);
            (rest, hash) = (others, hash_of_next(hash));
        }
        changed
    }

    /// [`insert_into_modules`](Self::insert_into_modules) for each hash. Writes whether it changed a bit to `changed`,
    /// which is as long as `hashes`.
    pub(crate) fn insert_batch_into_modules<C: Changed>(
        self,
        blocks: &mut [Block],
        module_blocks: usize,
        hashes: &[u64],
        k: ProbeCount,
        changed: &mut [C],
    ) {
        if hashes.len() < SHORT && blocks.len() != module_blocks {
            for (changed, &hash) in changed.iter_mut().zip(hashes) {
                *changed = C::of(Self::insert_into_modules(blocks, module_blocks, hash, k, self));
            }
            return;
        }
        let (first, others) = blocks.split_at_mut(module_blocks);
        let Some(first) = BlockSliceMut::new(first) else { return };
        self.insert_batch(first, hashes, k, changed);
        if others.is_empty() {
            return;
        }
        let (mut of_module, mut in_module) = ([0; CHUNK], [C::default(); CHUNK]);
        for (hashes, changed) in hashes.chunks(CHUNK).zip(changed.chunks_mut(CHUNK)) {
            let (of_module, in_module) = (&mut of_module[..hashes.len()], &mut in_module[..hashes.len()]);
            of_module.copy_from_slice(hashes);
            for module in others.chunks_exact_mut(module_blocks).filter_map(BlockSliceMut::new) {
                of_module.iter_mut().for_each(|hash| *hash = hash_of_next(*hash));
                self.insert_batch(module, of_module, k, in_module);
                changed.iter_mut().zip(&*in_module).for_each(|(all, one)| *all = all.or(*one));
            }
        }
    }

    /// Asks the first module for all hashes, the second for the hashes that the first has, and so on. `found` is as long
    /// as `hashes`.
    pub(crate) fn modules_contain_batch(
        self,
        modules: Modules<'_>,
        hashes: &[u64],
        k: ProbeCount,
        found: &mut [bool],
    ) {
        self.contains_batch(modules.first(), hashes, k, found);
        if modules.is_one() {
            return;
        }
        let (hashes, rest) = hashes.as_chunks();
        let (found, found_rest) = found.as_chunks_mut();
        for (index, module) in modules.iter().enumerate().skip(1) {
            self.look_up(module, k, (None::<Further<'_>>, Further { index, hashes, found }));
        }
        for (found, &hash) in found_rest.iter_mut().zip(rest) {
            *found = *found && self.others_contain(modules, hash, k);
        }
    }
}
