//! `FilterBank`: a bank in memory, whose filters are pushed, replaced and cleared.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use super::bank_view::BankView;
use super::checksum::{self, Checksums};
use super::shape::{KEYS_BYTES, MOST_SLOTS, Shape, TRAILER_BYTES, copy_rows, rows_len};
use crate::aligned_bytes::AlignedBytes;
use crate::blocks::{BLOCK_BYTES, Block, LANES, lanes_of};
use crate::error::{Error, ErrorKind};
use crate::footer::{self, StandaloneFooter};
use crate::hash::Seed;
use crate::kernel::{Kernel, ROWS, Square};
use crate::kind::StandaloneKind;
use crate::mask::ProbeCount;
use crate::memory::{OutOfMemory, reserve};
use crate::sizing::Sizing;
use crate::standalone;
use crate::view::{BloomView, check_placing};

/// Many filters with equal number of blocks, k and seed, stored so that one lookup answers for all of them.
///
/// Each filter has a slot, numbered from 0. The bank has room for a number of slots, its [capacity](Self::capacity).
/// Lookups are the methods of a [`BankView`], which [`as_view`](Self::as_view) returns.
///
/// Needs 64 bytes for each block and slot, where the capacity is rounded up to 8, 16, 32 or a multiple of 64. See
/// [`embedding`](mod@crate::embedding#many-filters-of-one-size) for when to use one.
#[derive(Clone)]
pub struct FilterBank {
    /// The regions' rows, then the known keys of `capacity` slots.
    bytes: AlignedBytes,
    shape: Shape,
}

impl FilterBank {
    /// A bank without filters, with room for at least `capacity` of this size. A bank's filters have one module, so
    /// compute the size by [`Sizing::for_fpr_within`] for at most one.
    ///
    /// # Errors
    ///
    /// If the size has several modules, if `capacity` is above 2^24, or memory for the bank cannot be allocated.
    pub fn with_capacity(sizing: Sizing, capacity: usize) -> Result<Self, Error> {
        check_modules(sizing.n_modules())?;
        let (n_blocks, k) = (sizing.n_blocks(), sizing.probe_count());
        let (seed, kernel) = (Seed::DEFAULT, Kernel::active());
        let shape = Shape { n_blocks, slots: 0, rows_len: 0, stride: 0, k, seed, kernel };
        Self::checked(shape, capacity)
    }

    /// [`zeroed`](Self::zeroed) for a capacity that may exceed the format's limit.
    fn checked(shape: Shape, capacity: usize) -> Result<Self, Error> {
        if capacity > MOST_SLOTS {
            let text = "a bank has at most {} slots, not {}: split the filters over several banks";
            return Err(Error::argument(text, [MOST_SLOTS, capacity].map(|n| n as u64)));
        }
        Ok(Self::zeroed(shape, capacity)?)
    }

    /// A bank of this many slots. `block_of` returns a block of a slot, given its number.
    pub(super) fn from_blocks(
        sizing: Sizing,
        slots: usize,
        block_of: impl Fn(usize, usize) -> Block,
    ) -> Result<Self, Error> {
        let mut bank = Self::with_capacity(sizing, slots)?;
        bank.shape.slots = slots;
        (0..slots).for_each(|slot| bank.set_known_keys(slot, None));
        bank.write_blocks(0, slots, block_of);
        Ok(bank)
    }

    /// Empty rows of at least `capacity` slots.
    fn zeroed(shape: Shape, capacity: usize) -> Result<Self, OutOfMemory> {
        let rows_len = rows_len(capacity);
        let len = rows_len.checked_mul(shape.n_blocks);
        let len = len.and_then(|len| len.checked_add(rows_len / BLOCK_BYTES * KEYS_BYTES));
        let bytes = AlignedBytes::try_zeroed(len.ok_or(OutOfMemory { bytes: usize::MAX })?)?;
        let shape = Shape { rows_len, stride: rows_len, ..shape };
        Ok(Self { bytes, shape })
    }

    /// A bank of these filters or views, in this order. Each slot has the size of the smallest filter, so larger
    /// filters are folded, which raises their false-positive rates. So one filter that is too small raises the rates of
    /// all.
    ///
    /// # Errors
    ///
    /// - if there is no filter, or more than 2^24;
    /// - if a filter's number of blocks is not a multiple of the smallest;
    /// - if the filters differ in k or seed, or have several modules;
    /// - if memory for the bank cannot be allocated.
    pub fn from_filters<'a>(
        filters: impl IntoIterator<Item = impl Into<BloomView<'a>>>,
    ) -> Result<Self, Error> {
        let filters = views(filters)?;
        let smallest = filters.iter().min_by_key(|filter| filter.n_blocks());
        let none = Error::argument("a bank needs at least one filter, which gives it its size", []);
        let smallest = smallest.ok_or(none)?;
        let BloomView { k, seed, kernel, .. } = *smallest;
        let n_blocks = smallest.n_blocks();
        let shape = Shape { n_blocks, slots: 0, rows_len: 0, stride: 0, k, seed, kernel };
        let mut bank = Self::checked(shape, filters.len())?;
        bank.write(0, &filters)?;
        Ok(bank)
    }

    /// Copies standalone bytes into a bank that you can change. [`BankView`] reads them in place. All bytes are
    /// compared with their checksums before memory is allocated. The capacity is the number of slots, rounded up. See
    /// [`try_reserve`](Self::try_reserve).
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of a different version, if the keys were hashed by a different function
    /// than this build's, or if memory for the copy cannot be allocated.
    #[doc(alias = "from_bytes")]
    pub fn from_standalone(bytes: &[u8]) -> Result<Self, Error> {
        let view = BankView::from_standalone(bytes)?;
        Ok(Self::zeroed(view.shape, view.slots())?.filled_from(view))
    }

    standalone::standalone_io!();

    /// Length of the standalone bytes.
    #[must_use]
    pub fn standalone_len(&self) -> usize {
        self.shape.standalone_len() as usize
    }

    fn encode<E>(&self, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let footer = self.encode_body(&mut write)?;
        write(&footer)
    }

    /// Writes the standalone bytes before the footer, and returns the footer.
    pub(super) fn encode_body<E>(
        &self,
        mut write: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<[u8; StandaloneFooter::LEN], E> {
        let Shape { n_blocks, slots, k, seed, .. } = self.shape;
        let mut keys = Vec::with_capacity(slots * KEYS_BYTES);
        for slot in 0..slots {
            keys.extend(self.as_view().known_keys(slot).unwrap_or(footer::UNKNOWN_KEYS).to_le_bytes());
        }
        let mut copy = alloc::vec![0; rows_len(slots)];
        let hash = |block| checksum::region_hash(self.stored_rows(block, &mut copy), block);
        let contents = checksum::contents((0..n_blocks).map(hash), &keys);
        let (size, slots) = (n_blocks as u64, Some(slots as u64));
        let footer = StandaloneFooter::new(StandaloneKind::Bank, size, k.get(), seed.get(), slots, contents);
        let footer = footer.to_bytes();
        let checksums = Checksums::of_footer(&footer);
        let mut region = Vec::with_capacity(copy.len() + TRAILER_BYTES);
        for block in 0..n_blocks {
            region.clear();
            region.extend_from_slice(self.stored_rows(block, &mut copy));
            region.extend(checksums.of_region(checksum::region_hash(&region, block)).to_le_bytes());
            region.resize(copy.len() + TRAILER_BYTES, 0);
            write(&region)?;
        }
        write(&keys)?;
        Ok(footer)
    }

    /// The rows of a region, as standalone bytes have them. Written to `copy` if the rows in memory are longer.
    fn stored_rows<'a>(&'a self, block: usize, copy: &'a mut [u8]) -> &'a [u8] {
        let rows = self.as_view().rows(block);
        if rows.len() == copy.len() {
            return rows;
        }
        copy_rows(rows, copy, self.shape.slots);
        copy
    }

    /// Copies the rows and known keys of a bank with as many slots.
    fn filled_from(mut self, view: BankView<'_>) -> Self {
        for block in 0..view.shape.n_blocks {
            copy_rows(view.rows(block), self.rows_mut(block), view.slots());
        }
        for slot in 0..view.slots() {
            self.set_known_keys(slot, view.known_keys(slot));
        }
        self
    }

    /// Makes room for `additional` more slots than there are now, if there is not enough. Copies the bank, so reserve
    /// for many at once.
    ///
    /// # Errors
    ///
    /// If that is more than 2^24 slots, or memory cannot be allocated. Then nothing is changed.
    pub fn try_reserve(&mut self, additional: usize) -> Result<(), Error> {
        let capacity = self.shape.slots.saturating_add(additional);
        if capacity > self.capacity() {
            let larger = Self::checked(self.shape, capacity)?;
            *self = larger.filled_from(self.as_view());
        }
        Ok(())
    }

    /// Sets the seed that keys are hashed with, 0 by default. Each filter must have the same.
    ///
    /// # Errors
    ///
    /// If the bank has filters.
    pub fn with_seed(mut self, seed: u64) -> Result<Self, Error> {
        self.shape.seed = Seed::of_empty(seed, self.shape.slots == 0)?;
        Ok(self)
    }

    /// Uses a given kernel, for tests and benchmarks. The bits stay the same.
    #[doc(hidden)]
    #[must_use]
    pub fn with_kernel(mut self, kernel: Kernel) -> Self {
        self.shape.kernel = kernel;
        self
    }

    /// The bank as a view, for lookups.
    #[inline]
    pub fn as_view(&self) -> BankView<'_> {
        BankView { bytes: &self.bytes, shape: self.shape, checksums: None }
    }

    /// Slots that the bank has room for.
    pub fn capacity(&self) -> usize {
        self.shape.rows_len / BLOCK_BYTES
    }

    /// Adds a filter, folded to the bank's number of blocks, and returns its slot, the number of slots before.
    ///
    /// Below 512 slots, rewrites the whole bank. From 512 on, writes one cache line for each of the filter's bits, in a
    /// few milliseconds for a filter of 64 KiB. To add many, use [`push_all`](Self::push_all).
    ///
    /// # Errors
    ///
    /// If the bank is full, if the filter's number of blocks is not a multiple of the bank's, if they differ in k or
    /// seed, or if the filter has several modules. Then nothing is changed.
    pub fn push<'a>(&mut self, filter: impl Into<BloomView<'a>>) -> Result<usize, Error> {
        Ok(self.push_views(&[filter.into()])?.start)
    }

    /// Adds filters, and returns their slots. 64 filters cost about as much as one [`push`](Self::push).
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push), and if memory for a list of the filters cannot be allocated. Then nothing is changed.
    pub fn push_all<'a>(
        &mut self,
        filters: impl IntoIterator<Item = impl Into<BloomView<'a>>>,
    ) -> Result<Range<usize>, Error> {
        self.push_views(&views(filters)?)
    }

    fn push_views(&mut self, filters: &[BloomView<'_>]) -> Result<Range<usize>, Error> {
        let (start, capacity) = (self.shape.slots, self.capacity());
        let slots = start + filters.len();
        if slots > capacity {
            let text = "the bank has room for {} slots, not {}: reserve more, or replace a filter";
            return Err(Error::argument(text, [capacity, slots].map(|n| n as u64)));
        }
        self.write(start, filters)?;
        Ok(start..slots)
    }

    /// Replaces the filter of a slot by this one, folded to the bank's number of blocks.
    ///
    /// # Errors
    ///
    /// If there is no such slot, or as [`push`](Self::push). Then nothing is changed.
    pub fn replace<'a>(&mut self, slot: usize, filter: impl Into<BloomView<'a>>) -> Result<(), Error> {
        self.as_view().check_slot(slot)?;
        self.write(slot, &[filter.into()])
    }

    /// Removes all keys of a slot. The slot stays, with an empty filter.
    ///
    /// # Errors
    ///
    /// If there is no such slot.
    pub fn clear_slot(&mut self, slot: usize) -> Result<(), Error> {
        self.as_view().check_slot(slot)?;
        self.set_known_keys(slot, Some(0));
        self.write_blocks(slot, 1, |_, _| [0; BLOCK_BYTES]);
        Ok(())
    }

    fn write(&mut self, first: usize, filters: &[BloomView<'_>]) -> Result<(), Error> {
        let Shape { n_blocks, k, seed, .. } = self.shape;
        for filter in filters {
            check_modules(filter.n_modules())?;
            // A filter of a multiple of the bank's blocks is folded.
            if !filter.n_blocks().is_multiple_of(n_blocks) {
                let text = "a filter of {} blocks does not fit into a bank of {}: build it with as many, or a multiple";
                let numbers = [filter.n_blocks(), n_blocks].map(|n| n as u64);
                return Err(Error::new(ErrorKind::Mismatch, text, numbers));
            }
            check_placing([k, filter.k].map(ProbeCount::get), [seed, filter.seed])?;
        }
        self.shape.slots = self.shape.slots.max(first + filters.len());
        for (slot, filter) in (first..).zip(filters) {
            self.set_known_keys(slot, filter.keys);
        }
        self.write_blocks(first, filters.len(), |filter, block| {
            let filter = &filters[filter];
            filter.folded_block(block, filter.n_blocks() / n_blocks)
        });
        Ok(())
    }

    /// Writes `count` slots from `first` on. `block_of` is called with a slot, counted from `first`, and the number of
    /// a block, and returns that block.
    fn write_blocks(&mut self, first: usize, count: usize, block_of: impl Fn(usize, usize) -> Block) {
        let kernel = self.shape.kernel;
        for block in 0..self.shape.n_blocks {
            let rows = self.rows_mut(block);
            let mut done = 0;
            while done < count {
                let slot = first + done;
                let (word, in_word) = (slot / 64, slot % 64);
                let now = (64 - in_word).min(count - done);
                let mut square: Square = [[0; LANES]; 64];
                for (i, words) in square[in_word..][..now].iter_mut().enumerate() {
                    *words = lanes_of(&block_of(done + i, block));
                }
                kernel.transpose(&mut square);
                let mask = (!0 >> (64 - now)) << in_word;
                match rows.len() / ROWS {
                    1 => merge::<1>(rows, word, &square, mask),
                    2 => merge::<2>(rows, word, &square, mask),
                    4 => merge::<4>(rows, word, &square, mask),
                    _ => merge::<8>(rows, word, &square, mask),
                }
                done += now;
            }
        }
    }

    fn rows_mut(&mut self, block: usize) -> &mut [u8] {
        let Shape { stride, rows_len, .. } = self.shape;
        &mut self.bytes[block * stride..][..rows_len]
    }

    fn set_known_keys(&mut self, slot: usize, keys: Option<u64>) {
        let start = self.shape.regions_len() + slot * KEYS_BYTES;
        let keys = keys.unwrap_or(footer::UNKNOWN_KEYS);
        self.bytes[start..][..KEYS_BYTES].copy_from_slice(&keys.to_le_bytes());
    }
}

/// Fails for a filter of several modules, because a slot is one module.
pub(super) fn check_modules(n_modules: usize) -> Result<(), Error> {
    let text = "a bank's filters have one module, not {}: rebuild the filter by with_most_modules(1) or for_fpr_within(.., 1)";
    if n_modules == 1 { Ok(()) } else { Err(Error::argument(text, [n_modules as u64])) }
}

fn views<'a>(
    filters: impl IntoIterator<Item = impl Into<BloomView<'a>>>,
) -> Result<Vec<BloomView<'a>>, OutOfMemory> {
    let mut views = Vec::new();
    for filter in filters {
        reserve(&mut views, 1)?;
        views.push(filter.into());
    }
    Ok(views)
}

/// Writes the bits of `mask` in one word of each row. Words have `BYTES` bytes. The square has no bits outside of
/// `mask`.
fn merge<const BYTES: usize>(rows: &mut [u8], word: usize, square: &Square, mask: u64) {
    let (words, _) = rows.as_chunks_mut::<BYTES>();
    let per_row = words.len() / ROWS;
    for (lane, rows) in words.chunks_mut(64 * per_row).enumerate() {
        for (row, bits) in rows.chunks_mut(per_row).zip(square) {
            let mut old = [0; 8];
            // Reading first would cause two page faults for each page of a new bank.
            if mask != !0 {
                old[..BYTES].copy_from_slice(&row[word]);
            }
            let new = (u64::from_le_bytes(old) & !mask | bits[lane]).to_le_bytes();
            row[word].copy_from_slice(&new[..BYTES]);
        }
    }
}

impl fmt::Debug for FilterBank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shape.debug("FilterBank", f)
    }
}
