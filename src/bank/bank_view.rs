//! `BankView`: lookups in a bank's bytes.

use core::fmt;

use super::bank_footer::{BankFooter, wrong_size};
use super::bitmap::{SlotBitmap, fill};
use super::checksum::Checksums;
use super::shape::{KEYS_BYTES, Shape};
use crate::blocks::{Block, Blocks};
use crate::error::Error;
use crate::filter::BloomFilter;
use crate::footer::{self, StandaloneFooter};
use crate::kernel::{self, Kernel, ROWS};
use crate::key::Key;
use crate::sizing::Sizing;

/// A bank read in place from its standalone bytes, without copying, or a [`FilterBank`](crate::bank::FilterBank)
/// borrowed.
///
/// An [`Owned`](crate::Owned) view keeps its bytes.
///
/// # Examples
///
/// ```
/// use bloomline::BloomFilter;
/// use bloomline::bank::{BankView, FilterBank, SlotBitmap};
///
/// let mut table = BloomFilter::with_fpr(1_000, 0.01)?;
/// table.insert("ant");
/// let bytes = FilterBank::from_filters([&table])?.to_standalone();
///
/// let bank = BankView::from_standalone(&bytes)?;
/// let mut found = SlotBitmap::new();
/// assert!(bank.find("ant", &mut found));
/// assert!(bank.to_filter(0)? == table);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct BankView<'a> {
    /// The regions, then the known keys, and a footer if they are standalone bytes.
    pub(super) bytes: &'a [u8],
    pub(super) shape: Shape,
    /// `None` for a bank in memory.
    pub(super) checksums: Option<Checksums>,
}

impl<'a> BankView<'a> {
    /// Opens standalone bytes, exactly the bank's, and compares all of them with their checksums.
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of a different version, or if the keys were hashed by a different function
    /// than this build's.
    #[doc(alias = "from_bytes")]
    pub fn from_standalone(bytes: &'a [u8]) -> Result<Self, Error> {
        let view = Self::from_standalone_unverified(bytes)?;
        view.verify().map(|()| view)
    }

    /// Opens standalone bytes without reading the filters' bits, for mapped files that are too large to read. Checks
    /// only the footer, the last 64 bytes.
    ///
    /// **Damaged bits lose keys.** Lookups then miss slots, with no other sign. Call [`verify`](Self::verify) when
    /// there is time, or rely on a checksum of your own.
    ///
    /// # Errors
    ///
    /// If the bytes were cut, if their footer is damaged or of a different version, or if the keys were hashed by a
    /// different function than this build's.
    pub fn from_standalone_unverified(bytes: &'a [u8]) -> Result<Self, Error> {
        let footer = BankFooter::read(bytes)?;
        if footer.standalone_len() != bytes.len() as u64 {
            return Err(wrong_size(footer.shape.n_blocks as u64, bytes.len() - StandaloneFooter::LEN));
        }
        Ok(Self { shape: footer.shape, checksums: Some(footer.checksums), bytes })
    }

    /// Compares the bytes with their checksums, and reads all of them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) if they do not match, so that lookups may miss slots.
    /// [`ErrorKind::NoChecksum`](crate::ErrorKind::NoChecksum) if this is the view of a
    /// [`FilterBank`](crate::bank::FilterBank), which has no checksums.
    pub fn verify(&self) -> Result<(), Error> {
        let (shape, checksums) = (self.shape, self.checksums.ok_or(Error::no_checksum())?);
        BankFooter { shape, checksums }.verify_body(self.bytes)
    }

    /// Hashes `key` under the filters' seed, for the methods that accept hashes.
    #[inline]
    #[must_use]
    pub fn hash_key(&self, key: impl Key) -> u64 {
        self.shape.seed.hash(key)
    }

    /// Finds the slots that possibly have `key`, and returns whether there are any. A slot that is not found definitely
    /// does not have the key.
    ///
    /// For an absent key, each slot is found with the false-positive rate of its filter. Reads k rows, for up to 512
    /// slots mostly of one cache line each. Does not compare them with checksums, which would be
    /// most of the time, so there is no error to return. [`IndexView::find`](crate::bank::IndexView::find) does, if the
    /// index was opened unverified.
    #[doc(alias("contains", "might_contain"))]
    #[inline]
    pub fn find(&self, key: impl Key, found: &mut SlotBitmap) -> bool {
        self.find_hash(self.hash_key(key), found)
    }

    /// [`find`](Self::find) by hash.
    #[inline]
    pub fn find_hash(&self, hash: u64, found: &mut SlotBitmap) -> bool {
        self.shape.find(Some(self.rows(self.shape.block_of(hash))), hash, found)
    }

    /// [`find_hash`](Self::find_hash) without an allocation, for bindings. The words must be as many as the slots need.
    #[doc(hidden)]
    #[inline]
    pub fn find_hash_in(&self, hash: u64, found: &mut [u64]) {
        let (rows, Shape { slots, k, kernel, .. }) = (self.rows(self.shape.block_of(hash)), self.shape);
        assert_eq!(found.len(), slots.div_ceil(64));
        fill(found, slots, |words| kernel.find(rows, hash, k, words));
    }

    /// [`find_hash`](Self::find_hash) for many keys. Calls `each` with the index of each hash, in order, and the slots
    /// that possibly have the key. Overlaps the waits for memory of several keys.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bloomline::BloomFilter;
    /// # use bloomline::bank::FilterBank;
    /// # let mut table = BloomFilter::with_fpr(1_000, 0.01)?;
    /// # table.insert("ant");
    /// # let bank = FilterBank::from_filters([&table])?;
    /// # let bank = bank.as_view();
    /// let hashes = ["ant", "bee"].map(|key| bank.hash_key(key));
    /// bank.find_batch(&hashes, |key, slots| {
    ///     for slot in slots {
    ///         println!("read table {slot} for key {key}");
    ///     }
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn find_batch(&self, hashes: &[u64], mut each: impl FnMut(usize, &SlotBitmap)) {
        /// Hashes ahead. As fast as 4 and 16, or faster, in banks of any size.
        const AHEAD: usize = 8;
        /// In smaller banks, even beyond the caches of one core, prefetching costs more than it saves. Up to 8 MiB it
        /// costs a little while the shared cache holds the bank, and saves more when other work has displaced it.
        const LARGE: usize = 4 << 20;
        let ahead = if self.shape.regions_len() < LARGE { hashes.len() } else { AHEAD };
        let mut found = SlotBitmap::new();
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&later) = hashes.get(i + ahead) {
                self.prefetch(later);
            }
            self.find_hash(hash, &mut found);
            each(i, &found);
        }
    }

    /// Starts loading the rows of a hash that you will look up a little later.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        let rows = self.rows(self.shape.block_of(hash));
        kernel::prefetch_rows(rows, hash, self.shape.k, self.shape.slots.div_ceil(64).min(64));
    }

    /// The filter of a slot, bit for bit as it was put in, or as it was after folding. Costs about as much as
    /// [`push`](crate::bank::FilterBank::push).
    ///
    /// # Errors
    ///
    /// If there is no such slot, or memory for the filter cannot be allocated.
    pub fn to_filter(&self, slot: usize) -> Result<BloomFilter, Error> {
        self.check_slot(slot)?;
        let Shape { n_blocks, k, seed, kernel, .. } = self.shape;
        let mut blocks = Blocks::zeroed(n_blocks)?;
        for (i, block) in blocks.as_mut_slice().iter_mut().enumerate() {
            *block = self.block(slot, i);
        }
        let keys = blocks.known_keys(self.known_keys(slot));
        Ok(BloomFilter::new(blocks, k, kernel, seed, keys))
    }

    /// A block of a slot.
    pub(super) fn block(&self, slot: usize, number: usize) -> Block {
        column(self.rows(number), slot)
    }

    pub(super) fn check_slot(&self, slot: usize) -> Result<(), Error> {
        let slots = self.slots();
        let text = "slot {} does not exist: the bank has {}";
        if slot < slots { Ok(()) } else { Err(Error::argument(text, [slot, slots].map(|n| n as u64))) }
    }

    #[inline]
    pub(super) fn rows(&self, block: usize) -> &'a [u8] {
        &self.bytes[block * self.shape.stride..][..self.shape.rows_len]
    }

    /// Number of distinct keys in a slot's filter, if known. See
    /// [`BloomFilter::known_keys`](crate::BloomFilter::known_keys). `None` if there is no such slot.
    pub fn known_keys(&self, slot: usize) -> Option<u64> {
        self.check_slot(slot).ok()?;
        let keys = self.bytes.get(self.shape.regions_len() + slot * KEYS_BYTES..)?.first_chunk()?;
        Some(u64::from_le_bytes(*keys)).filter(|&keys| keys != footer::UNKNOWN_KEYS)
    }

    /// Number of slots, each with a filter.
    #[inline]
    pub fn slots(&self) -> usize {
        self.shape.slots
    }

    /// The size of each filter.
    pub fn sizing(&self) -> Sizing {
        Sizing { n_blocks: self.shape.n_blocks, n_modules: 1, k: self.shape.k }
    }

    /// The seed that keys are hashed with.
    #[inline]
    pub fn seed(&self) -> u64 {
        self.shape.seed.get()
    }

    /// The kernel in use, for tests and benchmarks.
    #[doc(hidden)]
    #[inline]
    pub fn kernel(&self) -> Kernel {
        self.shape.kernel
    }

    /// Uses a given kernel, for tests and benchmarks. The answers stay the same.
    #[doc(hidden)]
    #[must_use]
    pub fn with_kernel(mut self, kernel: Kernel) -> Self {
        self.shape.kernel = kernel;
        self
    }

    /// Bytes of the view, or memory of the [`FilterBank`](crate::bank::FilterBank).
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }
}

/// The block of one slot.
fn column(rows: &[u8], slot: usize) -> Block {
    let mut block = [0; size_of::<Block>()];
    let rows = rows.chunks(rows.len() / ROWS).map(|row| row[slot / 8] >> (slot % 8) & 1);
    for (row, bit) in rows.enumerate() {
        block[row / 8] |= bit << (row % 8);
    }
    block
}

impl fmt::Debug for BankView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shape.debug("BankView", f)
    }
}
