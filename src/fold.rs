//! Copies of filters, whole or folded. Each block of a folded filter is the union of neighbours.

use alloc::vec::Vec;

use crate::blocks::{Block, BlockSlice, Blocks, combined, lanes_of};
use crate::error::Error;
use crate::filter::BloomFilter;
use crate::kernel;
use crate::lanes::Lanes;
use crate::memory::{OutOfMemory, reserve};
use crate::modules::Modules;
use crate::sizing::{self, Sizing};
use crate::view::BloomView;

impl BloomFilter {
    /// Divides the number of blocks of each module by `factor`. Bit for bit, the result is the filter that would have
    /// been built with that many blocks. So you can size a filter for the worst case, then fold it to the size that you
    /// needed.
    ///
    /// # Errors
    ///
    /// If `factor` does not divide the number of blocks of each module, or memory for the folded filter cannot be allocated. Then
    /// nothing is changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::BloomFilter;
    ///
    /// let (mut large, mut small) = (BloomFilter::with_blocks(64, 6)?, BloomFilter::with_blocks(16, 6)?);
    /// for key in ["ant", "bee", "cat"] {
    ///     large.insert(key);
    ///     small.insert(key);
    /// }
    /// large.fold(4)?;
    /// assert!(large == small);
    /// # Ok::<(), bloomline::Error>(())
    /// ```
    pub fn fold(&mut self, factor: usize) -> Result<(), Error> {
        if factor != 1 {
            *self = self.as_view().to_folded(factor)?;
        }
        Ok(())
    }

    /// Folds the filter as far as its estimated false-positive rate stays at or below `fpr`, and not at all if it is
    /// already above. How far depends on the divisors of the number of a module's blocks, so a power of two, or a small multiple
    /// of one, leaves the most choice. Reads the filter a few times, because it searches the divisors by halves.
    ///
    /// # Errors
    ///
    /// If `fpr` is not between 0 and 1, both excluded, or memory for the folded filter cannot be allocated. Then
    /// nothing is changed.
    pub fn shrink_to_fpr(&mut self, fpr: f64) -> Result<(), Error> {
        let fpr = sizing::checked_fpr(fpr, 0.0, 0.0)?;
        let module_blocks = self.blocks.module_blocks();
        let mut factors = Vec::new();
        for divisor in (1..).take_while(|divisor| divisor <= &(module_blocks / divisor)) {
            if module_blocks.is_multiple_of(divisor) {
                reserve(&mut factors, 2)?;
                factors.extend([divisor, module_blocks / divisor]);
            }
        }
        factors.sort_unstable();
        let fpr_of = |factor| -> f64 {
            let rate =
                |module| sizing::estimated_fpr(groups(module, factor).map(|block| lanes_of(&block)), self.k);
            self.modules().iter().map(rate).product()
        };
        let good = factors.partition_point(|&factor| fpr_of(factor) <= fpr);
        self.fold(factors[good.saturating_sub(1)])
    }
}

impl BloomView<'_> {
    /// Copies the bytes into a filter that you can change. The copy needs as much memory as the bytes.
    ///
    /// Only the copy of a short filter, which has fewer than 64 lanes of 8 bytes, needs up to eight times as much,
    /// because blocks that overlap lie side by side in the copy. Once the copy is changed, it is written in its larger
    /// size.
    ///
    /// # Errors
    ///
    /// If memory for the copy cannot be allocated.
    pub fn to_filter(&self) -> Result<BloomFilter, Error> {
        Ok(self.copy()?)
    }

    pub(crate) fn copy(&self) -> Result<BloomFilter, OutOfMemory> {
        self.lanes.with_blocks(|modules| {
            let copy = Blocks::try_from_bytes(modules.blocks.as_slice().as_flattened())?;
            Ok(self.filter_of(copy.in_modules(modules.n_modules())))
        })
    }

    /// A copy of this filter of one module and, if there is one, of a second module with as many blocks.
    pub(crate) fn copy_with(&self, second: Option<BloomView<'_>>) -> Result<BloomFilter, OutOfMemory> {
        let Some(second) = second else { return self.copy() };
        let module_blocks = self.n_blocks();
        let mut blocks = Blocks::zeroed(module_blocks.saturating_mul(2))?;
        for (copy, module) in blocks.as_mut_slice().chunks_exact_mut(module_blocks).zip([*self, second]) {
            module.lanes.with_blocks(|module| copy.copy_from_slice(module.blocks.as_slice()));
        }
        Ok(self.filter_of(blocks.in_modules(2)))
    }

    /// [`to_filter`](Self::to_filter) with the number of a module's blocks divided by `factor`. Allocates only the folded
    /// filter.
    /// See [`BloomFilter::fold`].
    ///
    /// # Errors
    ///
    /// If `factor` does not divide the number of blocks of each module, or memory for the folded filter cannot be
    /// allocated.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::{BloomFilter, BloomView};
    ///
    /// let mut filter = BloomFilter::with_blocks(1_000, 6)?;
    /// filter.insert("ant");
    /// let file = filter.to_standalone(); // a mapped file, say
    /// let folded = BloomView::from_standalone(&file)?.to_folded(10)?;
    /// assert!(folded.n_blocks() == 100 && folded.contains("ant"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_folded(&self, factor: usize) -> Result<BloomFilter, Error> {
        self.lanes.with_blocks(|modules @ Modules { blocks, module_blocks }| {
            if factor == 0 || !module_blocks.is_multiple_of(factor) {
                let text = "{} blocks cannot be folded by {}: use a factor that divides {}";
                return Err(Error::argument(text, [module_blocks, factor, module_blocks].map(|n| n as u64)));
            }
            // No group of neighbours spans two modules.
            let mut folded = Blocks::zeroed(blocks.as_slice().len() / factor)?;
            for (block, group) in folded.as_mut_slice().iter_mut().zip(groups(blocks, factor)) {
                *block = group;
            }
            Ok(self.filter_of(folded.in_modules(modules.n_modules())))
        })
    }

    /// A filter of the same keys with `n_blocks` blocks, whatever this filter has, to unite filters of different sizes.
    ///
    /// If `n_blocks` divides this filter's number, the copy is [folded](Self::to_folded). If it is a multiple, each
    /// block is repeated, which keeps the false-positive rate. Otherwise each block is the union of all blocks that may
    /// have its keys, which is up to twice as full, so the rate is higher. Build filters with one size if you can.
    ///
    /// # Errors
    ///
    /// If `n_blocks` is 0, cannot be divided among the modules, or memory for the new filter cannot be allocated.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::BloomFilter;
    ///
    /// let (mut monday, mut tuesday) = (BloomFilter::with_blocks(10, 6)?, BloomFilter::with_blocks(12, 6)?);
    /// monday.insert("ant");
    /// tuesday.insert("bee");
    /// tuesday.union_with(&monday.as_view().to_resized(tuesday.n_blocks())?)?;
    /// assert!(tuesday.contains("ant") && tuesday.contains("bee"));
    /// # Ok::<(), bloomline::Error>(())
    /// ```
    pub fn to_resized(&self, n_blocks: usize) -> Result<BloomFilter, Error> {
        let new_blocks = Sizing::new(n_blocks, self.k())?.with_modules(self.n_modules())?.module_blocks();
        self.lanes.with_blocks(|modules @ Modules { blocks, module_blocks }| {
            let mut resized = Blocks::zeroed(n_blocks)?;
            let new_modules = resized.as_mut_slice().chunks_exact_mut(new_blocks);
            for (new, old) in new_modules.zip(blocks.as_slice().chunks_exact(module_blocks)) {
                // The hashes of block i are from i to i + 1, in units of 2^64 / new_blocks.
                let start = |i| i as u128 * module_blocks as u128;
                for (i, block) in new.iter_mut().enumerate() {
                    let first = (start(i) / new_blocks as u128) as usize;
                    let end = start(i + 1).div_ceil(new_blocks as u128) as usize;
                    *block = united(old[first..end].iter().copied());
                }
            }
            Ok(Self { keys: None, ..*self }.filter_of(resized.in_modules(modules.n_modules())))
        })
    }

    fn filter_of(&self, blocks: Blocks) -> BloomFilter {
        let Self { k, kernel, seed, keys, .. } = *self;
        let keys = blocks.known_keys(keys);
        BloomFilter::new(blocks, k, kernel, seed, keys)
    }

    /// Block `index` of the filter after folding by `factor`, which is the union of `factor` neighbours. Of one module.
    #[inline]
    pub(crate) fn folded_block(&self, index: usize, factor: usize) -> Block {
        let neighbours = index * factor..(index + 1) * factor;
        match self.lanes {
            Lanes::Blocks(Modules { blocks, .. }) if factor == 1 => {
                kernel::prefetch::<false>(blocks.as_slice().as_ptr().wrapping_add(index + 16));
                blocks.as_slice()[index]
            }
            Lanes::Blocks(Modules { blocks, .. }) => united(blocks.as_slice()[neighbours].iter().copied()),
            Lanes::Short(short) => united(neighbours.map(|block| short.block(block))),
        }
    }
}

/// The blocks after folding, each the union of `factor` neighbours.
fn groups(blocks: BlockSlice<'_>, factor: usize) -> impl Iterator<Item = Block> {
    blocks.as_slice().chunks_exact(factor).map(|neighbours| united(neighbours.iter().copied()))
}

fn united(blocks: impl Iterator<Item = Block>) -> Block {
    blocks.fold([0; size_of::<Block>()], |union, block| combined(&union, &block, |a, b| a | b))
}
