//! Block storage, the only memory that a lookup touches.
//!
//! A block is stored as the 64 bytes of the format, lanes little-endian, so the same kernels serve owned blocks and
//! bytes read in place from a file, on every CPU.

use alloc::alloc::{alloc_zeroed, dealloc};
use core::alloc::Layout;
use core::array;
use core::ptr::NonNull;
#[cfg(target_has_atomic = "64")]
use core::sync::atomic::{AtomicU64, Ordering};

#[cfg(all(target_os = "linux", feature = "huge-pages"))]
use memmap2::{Advice, MmapMut};

use crate::mask::block_index;
use crate::memory::{OutOfMemory, or_abort};

/// Bytes in a block, which is one cache line.
pub(crate) const BLOCK_BYTES: usize = 64;
/// 64-bit lanes in a block.
pub(crate) const LANES: usize = 8;

/// 512 bits as in the format, in eight little-endian lanes. At any alignment.
pub(crate) type Block = [u8; BLOCK_BYTES];

#[inline]
pub(crate) fn lanes_of(block: &Block) -> [u64; LANES] {
    bytemuck::cast::<Block, [u64; LANES]>(*block).map(u64::from_le)
}

#[inline]
pub(crate) fn block_from_lanes(lanes: [u64; LANES]) -> Block {
    bytemuck::cast(lanes.map(u64::to_le))
}

#[inline]
pub(crate) fn combined(ours: &Block, theirs: &Block, combine: impl Fn(u8, u8) -> u8) -> Block {
    array::from_fn(|i| combine(ours[i], theirs[i]))
}

/// Borrowed blocks, at least one.
#[derive(Clone, Copy)]
pub(crate) struct BlockSlice<'a>(&'a [Block]);

impl<'a> BlockSlice<'a> {
    /// `None` for an empty slice.
    #[inline]
    pub(crate) fn new(blocks: &'a [Block]) -> Option<Self> {
        (!blocks.is_empty()).then_some(Self(blocks))
    }

    #[inline]
    pub(crate) fn as_slice(self) -> &'a [Block] {
        self.0
    }

    /// The first `n` blocks and the rest, or all blocks if that is 0 or there are fewer.
    #[inline]
    pub(crate) fn split(self, n: usize) -> (Self, &'a [Block]) {
        match self.0.split_at_checked(n) {
            Some((first, rest)) if n != 0 => (Self(first), rest),
            _ => (self, &[]),
        }
    }

    /// The first half of the blocks, and the second half. If the number is odd, the second half has one block less. The
    /// second half of a single block is `None`.
    #[inline]
    pub(crate) fn halves(self) -> (Self, Option<Self>) {
        let (first, second) = self.0.split_at(self.0.len() - self.0.len() / 2);
        (Self(first), Self::new(second))
    }

    #[inline]
    pub(crate) fn block_of(self, hash: u64) -> &'a Block {
        let index = block_index(hash, self.0.len());
        // SAFETY: `block_index` is (hash × n) >> 64, below n for every hash when n ≥ 1, and `new` makes no
        // empty slice.
        unsafe { self.0.get_unchecked(index) }
    }
}

/// Blocks borrowed to be changed, at least one.
pub(crate) struct BlockSliceMut<'a>(&'a mut [Block]);

impl<'a> BlockSliceMut<'a> {
    /// `None` for an empty slice.
    #[inline]
    pub(crate) fn new(blocks: &'a mut [Block]) -> Option<Self> {
        (!blocks.is_empty()).then_some(Self(blocks))
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> BlockSlice<'_> {
        BlockSlice(self.0)
    }

    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [Block] {
        self.0
    }

    #[inline]
    pub(crate) fn reborrow(&mut self) -> BlockSliceMut<'_> {
        BlockSliceMut(self.0)
    }

    #[inline]
    pub(crate) fn block_of(&mut self, hash: u64) -> &mut Block {
        let index = block_index(hash, self.0.len());
        // SAFETY: `block_index` is (hash × n) >> 64, below n for every hash when n ≥ 1, and `new` makes no
        // empty slice.
        unsafe { self.0.get_unchecked_mut(index) }
    }
}

/// Owned blocks of one module or more, at least one, each aligned to a cache line.
pub(crate) struct Blocks {
    /// The first block, aligned, inside the memory.
    start: NonNull<Block>,
    n_blocks: usize,
    /// Blocks of each module. At least 1, and divides `n_blocks`.
    module_blocks: usize,
    memory: Memory,
}

enum Memory {
    Allocated(NonNull<u8>),
    #[cfg(all(target_os = "linux", feature = "huge-pages"))]
    Mapped(#[expect(dead_code, reason = "unmaps when it is dropped")] MmapMut),
}

/// Requested instead of 64, because for an alignment above the allocator's own, `alloc_zeroed` writes the zeros itself,
/// and so touches every page of a large filter.
const ALLOCATION_ALIGN: usize = align_of::<u64>();
const SLACK: usize = BLOCK_BYTES - ALLOCATION_ALIGN;

/// Bytes in a huge page of x86-64 and of most aarch64 systems.
#[cfg(all(target_os = "linux", feature = "huge-pages"))]
const HUGE_PAGE: usize = 2 << 20;

/// The most blocks that the address space can hold.
pub(crate) const MAX_BLOCKS: usize = (isize::MAX as usize - BLOCK_BYTES - SLACK) / BLOCK_BYTES;

fn layout(n_blocks: usize) -> Option<Layout> {
    if !(1..=MAX_BLOCKS).contains(&n_blocks) {
        return None;
    }
    Layout::from_size_align(n_blocks * BLOCK_BYTES + SLACK, ALLOCATION_ALIGN).ok()
}

impl Blocks {
    /// `n_blocks` blocks of zeros, of one module. If the system provides zeroed pages, the pages of a large filter stay
    /// untouched until a key is inserted.
    pub(crate) fn zeroed(n_blocks: usize) -> Result<Self, OutOfMemory> {
        let layout = layout(n_blocks).ok_or(OutOfMemory { bytes: n_blocks.saturating_mul(BLOCK_BYTES) })?;
        #[cfg(all(target_os = "linux", feature = "huge-pages"))]
        if n_blocks * BLOCK_BYTES >= HUGE_PAGE {
            return Self::mapped(n_blocks);
        }
        // SAFETY: `layout` gives sizes of at least one block, never zero.
        let Some(allocation) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            return Err(OutOfMemory { bytes: layout.size() });
        };
        let offset = allocation.as_ptr().align_offset(BLOCK_BYTES);
        // SAFETY: The address is a multiple of ALLOCATION_ALIGN, so the offset is at most SLACK, which `layout` added
        // to the size.
        let start = unsafe { allocation.add(offset) }.cast();
        Ok(Self { start, n_blocks, module_blocks: n_blocks, memory: Memory::Allocated(allocation) })
    }

    /// Blocks of zeros in huge pages if the system grants them, else in normal pages.
    #[cfg(all(target_os = "linux", feature = "huge-pages"))]
    fn mapped(n_blocks: usize) -> Result<Self, OutOfMemory> {
        // Only whole, aligned ranges get huge pages.
        let bytes = (n_blocks * BLOCK_BYTES).saturating_add(HUGE_PAGE);
        let mut map = MmapMut::map_anon(bytes).map_err(|_| OutOfMemory { bytes })?;
        // Advised before the first access, because pages that exist already stay small. A refusal only costs speed.
        let _ = map.advise(Advice::HugePage);
        let first = NonNull::from(&mut map[..]).cast::<u8>();
        let offset = first.as_ptr().align_offset(HUGE_PAGE);
        // SAFETY: The offset is less than HUGE_PAGE, which was added to the size. The map is moved below, but its pages
        // stay, and nothing else uses it before it is dropped.
        let start = unsafe { first.add(offset) }.cast();
        Ok(Self { start, n_blocks, module_blocks: n_blocks, memory: Memory::Mapped(map) })
    }

    /// A copy, padded with zeros to whole blocks, at least one.
    pub(crate) fn try_from_bytes(bytes: &[u8]) -> Result<Self, OutOfMemory> {
        let mut copy = Self::zeroed(bytes.len().div_ceil(BLOCK_BYTES).max(1))?;
        copy.as_mut_slice().as_flattened_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok(copy)
    }

    /// The same blocks, in so many modules, which must divide their number.
    pub(crate) fn in_modules(mut self, n_modules: usize) -> Self {
        assert!(self.n_blocks.is_multiple_of(n_modules), "modules of equal size");
        self.module_blocks = self.n_blocks / n_modules;
        self
    }

    #[inline]
    pub(crate) fn module_blocks(&self) -> usize {
        self.module_blocks
    }

    #[inline]
    pub(crate) fn first_module(&self) -> BlockSlice<'_> {
        // SAFETY: As in `as_slice`, and `module_blocks` is at least 1 and at most `n_blocks`.
        BlockSlice(unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.module_blocks) })
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> BlockSlice<'_> {
        // SAFETY: `zeroed` and `mapped` made n_blocks blocks from `start` on, zeroed, owned by `self`.
        BlockSlice(unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.n_blocks) })
    }

    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [Block] {
        // SAFETY: As in `as_slice`, and `&mut self` makes the borrow the only one.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.n_blocks) }
    }

    #[inline]
    pub(crate) fn as_mut(&mut self) -> BlockSliceMut<'_> {
        BlockSliceMut(self.as_mut_slice())
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.n_blocks
    }

    /// Bytes of memory, of which huge pages leave some unused at both ends.
    pub(crate) fn allocated_len(&self) -> usize {
        self.n_blocks * BLOCK_BYTES + SLACK
    }

    /// The stored number of keys, but `None` if it is 0 although a bit is set, because an empty filter accepts a new
    /// seed, which would lose the keys of forged bytes.
    pub(crate) fn known_keys(&self, stored: Option<u64>) -> Option<u64> {
        stored.filter(|&keys| keys != 0 || self.as_slice().0.iter().all(|block| *block == [0; BLOCK_BYTES]))
    }
}

/// A block's lanes, each read and changed atomically, with its bytes in the format's order.
#[cfg(target_has_atomic = "64")]
pub(crate) type SharedBlock = [AtomicU64; LANES];

/// Blocks that several threads may change at once.
#[cfg(target_has_atomic = "64")]
pub(crate) struct SharedBlocks(Blocks);

#[cfg(target_has_atomic = "64")]
impl SharedBlocks {
    pub(crate) fn new(blocks: Blocks) -> Self {
        Self(blocks)
    }

    pub(crate) fn into_inner(self) -> Blocks {
        self.0
    }

    pub(crate) fn get_mut(&mut self) -> &mut Blocks {
        &mut self.0
    }

    pub(crate) fn module_blocks(&self) -> usize {
        self.0.module_blocks
    }

    pub(crate) fn len(&self) -> usize {
        self.0.n_blocks
    }

    /// Copies the blocks from `start` on. Each lane is read at some time during the call.
    pub(crate) fn copy_to(&self, start: usize, copies: &mut [Block]) {
        for (copy, block) in copies.iter_mut().zip(&self.as_slice().0[start..]) {
            *copy = bytemuck::cast(block.each_ref().map(|lane| lane.load(Ordering::Relaxed)));
        }
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> SharedSlice<'_> {
        const { assert!(size_of::<SharedBlock>() == BLOCK_BYTES) };
        // SAFETY: `zeroed` made n_blocks blocks from `start` on, zeroed, owned by `self` and aligned to 64. While they
        // are shared, this is the only access to them, so all reads and writes of them are atomic, except the loads of
        // the kernels' assembly, which stand for relaxed loads (`kernel/inlined.rs`).
        SharedSlice(unsafe { core::slice::from_raw_parts(self.0.start.as_ptr().cast(), self.0.n_blocks) })
    }
}

/// Borrowed blocks that several threads may change at once, at least one.
#[cfg(target_has_atomic = "64")]
#[derive(Clone, Copy)]
pub(crate) struct SharedSlice<'a>(&'a [SharedBlock]);

#[cfg(target_has_atomic = "64")]
impl<'a> SharedSlice<'a> {
    /// `None` for an empty slice.
    #[inline]
    pub(crate) fn new(blocks: &'a [SharedBlock]) -> Option<Self> {
        (!blocks.is_empty()).then_some(Self(blocks))
    }

    #[inline]
    pub(crate) fn as_slice(self) -> &'a [SharedBlock] {
        self.0
    }

    #[inline]
    pub(crate) fn block_of(self, hash: u64) -> &'a SharedBlock {
        let index = block_index(hash, self.0.len());
        // SAFETY: `block_index` is (hash × n) >> 64, below n for every hash when n ≥ 1, and neither `new` nor
        // `SharedBlocks` makes an empty slice.
        unsafe { self.0.get_unchecked(index) }
    }
}

impl Clone for Blocks {
    fn clone(&self) -> Self {
        let copy = or_abort(Self::try_from_bytes(self.as_slice().as_slice().as_flattened()));
        copy.in_modules(self.n_blocks / self.module_blocks)
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        match &self.memory {
            Memory::Allocated(allocation) => {
                let layout = layout(self.n_blocks).expect("a layout that was allocated");
                // SAFETY: It came from `alloc_zeroed` with this layout, because `n_blocks` never changes.
                unsafe { dealloc(allocation.as_ptr(), layout) }
            }
            #[cfg(all(target_os = "linux", feature = "huge-pages"))]
            Memory::Mapped(_) => (),
        }
    }
}

// SAFETY: `Blocks` owns its memory alone, as `Box<[Block]>` would, and neither its allocator nor a map asks which thread
// frees it.
unsafe impl Send for Blocks {}
// SAFETY: The methods of `&Blocks` only read. `SharedBlocks` also writes, but it owns its `Blocks`, uses only their
// fields while it is shared, and accesses the memory as atomics.
unsafe impl Sync for Blocks {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_block_straddles_two_cache_lines() {
        // Kept alive together, so that the allocator returns a different place for each.
        let most = if cfg!(miri) { 20 } else { 200 };
        let filters: alloc::vec::Vec<Blocks> =
            (1..most).map(|n_blocks| Blocks::zeroed(n_blocks).unwrap()).collect();
        for blocks in filters.iter().chain(&filters.clone()) {
            assert!(blocks.start.as_ptr().addr().is_multiple_of(BLOCK_BYTES));
            assert_eq!(blocks.as_slice().as_slice(), [[0; BLOCK_BYTES]].repeat(blocks.len()));
        }
    }

    #[test]
    #[cfg(all(target_os = "linux", feature = "huge-pages"))]
    fn large_filters_start_at_a_huge_page() {
        for n_blocks in [HUGE_PAGE / BLOCK_BYTES, HUGE_PAGE / BLOCK_BYTES + 1, 3 * HUGE_PAGE / BLOCK_BYTES] {
            let mut blocks = Blocks::zeroed(n_blocks).unwrap();
            assert!(blocks.start.as_ptr().addr().is_multiple_of(HUGE_PAGE));
            assert!(blocks.as_slice().as_slice().iter().all(|block| *block == [0; BLOCK_BYTES]));
            blocks.as_mut_slice().fill([1; BLOCK_BYTES]);
            assert!(blocks.clone().as_slice().as_slice().iter().all(|block| *block == [1; BLOCK_BYTES]));
        }
        assert!(matches!(Blocks::zeroed(MAX_BLOCKS), Err(OutOfMemory { .. })));
    }
}
