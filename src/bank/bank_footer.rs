//! `BankFooter`: lookups in a bank that is elsewhere.

use core::fmt;
use core::ops::Range;

use super::bitmap::SlotBitmap;
use super::checksum::Checksums;
use super::shape::{MOST_SLOTS, Shape, TRAILER_BYTES, rows_len};
use crate::error::Error;
use crate::footer::{self, StandaloneFooter, split_filter};
use crate::hash::Seed;
use crate::kernel::Kernel;
use crate::key::Key;
use crate::kind::StandaloneKind;
use crate::mask::ProbeCount;

/// The footer of a bank's standalone bytes, enough to look up a key in a bank that is elsewhere by one read of a part.
///
/// Read the last 64 bytes once. For each lookup, read [`range`](Self::range) and pass its bytes to
/// [`find_in_range`](Self::find_in_range), which compares them with their checksum. The footer depends on all bits of
/// the bank, and each checksum on the footer, so a range of a different bank is an error.
///
/// # Examples
///
/// ```
/// use bloomline::BloomFilter;
/// use bloomline::bank::{BankFooter, FilterBank, SlotBitmap};
///
/// let mut table = BloomFilter::with_fpr(1_000, 0.01)?;
/// table.insert("ant");
/// let object = FilterBank::from_filters([&table])?.to_standalone();
///
/// let footer = BankFooter::read(&object[object.len() - 64..])?;
/// let hash = footer.hash_key("ant");
/// let range = footer.range(hash);
/// let bytes = &object[range.start as usize..range.end as usize]; // a GET of this range
/// let mut found = SlotBitmap::new();
/// assert!(footer.find_in_range(bytes, hash, &mut found)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct BankFooter {
    pub(super) shape: Shape,
    pub(super) checksums: Checksums,
}

impl BankFooter {
    /// Length of a footer, in bytes.
    pub const LEN: usize = StandaloneFooter::LEN;

    /// Reads the footer at the end of `bytes`, which may begin before the bank. The last 64 bytes are enough.
    ///
    /// # Errors
    ///
    /// If there are fewer than 64 bytes, if the last eight are not a bank's magic, if the footer is damaged, of a
    /// different version or has a field out of range, or if the keys were hashed by a different function than this
    /// build's.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let (before, footer) = split_filter(bytes, StandaloneKind::Bank)?;
        let k = footer.probe_count(ProbeCount::new)?;
        // Banks store the number of slots where filters store their known keys.
        let slots = footer.known_keys.unwrap_or(u64::MAX);
        if slots > MOST_SLOTS as u64 {
            return Err(Error::impossible("number of slots", slots));
        }
        let slots = slots as usize;
        let rows_len = rows_len(slots);
        let stride = rows_len + TRAILER_BYTES;
        let n_blocks = usize::try_from(footer.size).ok().filter(|&n_blocks| n_blocks != 0);
        // The length of the bank's bytes, with known keys and footer, must not overflow.
        let fits = |n_blocks: &_| u64::checked_mul(*n_blocks as u64, stride as u64 + 8).is_some();
        let n_blocks = n_blocks.filter(fits).ok_or_else(|| wrong_size(footer.size, before.len()))?;
        let (seed, kernel) = (Seed::new(footer.seed), Kernel::active());
        let shape = Shape { n_blocks, slots, rows_len, stride, k, seed, kernel };
        let checksums = Checksums::of_footer(bytes.last_chunk().expect("a footer"));
        Ok(Self { shape, checksums })
    }

    /// Length of the bank's standalone bytes, this footer included. Checked against nothing, so the file may be
    /// shorter.
    pub fn standalone_len(&self) -> u64 {
        self.shape.standalone_len()
    }

    /// Hashes `key` under the filters' seed.
    #[inline]
    #[must_use]
    pub fn hash_key(&self, key: impl Key) -> u64 {
        self.shape.seed.hash(key)
    }

    /// The bytes that a lookup of a hash needs, counted from the start of the bank's standalone bytes. Their number is
    /// 64 for each slot, with the number of slots rounded up to 8, 16, 32 or a multiple of 64, plus 64.
    pub fn range(&self, hash: u64) -> Range<u64> {
        let start = self.shape.block_of(hash) as u64 * self.shape.stride as u64;
        start..start + self.shape.stride as u64
    }

    /// Finds the slots that possibly have the key of a hash, in the bytes of its [`range`](Self::range), after
    /// comparing them with their checksum. Returns whether there are any.
    ///
    /// # Errors
    ///
    /// If the bytes have a wrong length, are damaged, or belong to a different range or bank. The key is then possibly
    /// present in all slots, and `found` has all of them.
    pub fn find_in_range(&self, bytes: &[u8], hash: u64, found: &mut SlotBitmap) -> Result<bool, Error> {
        let rows = self.checked_rows(bytes, hash);
        let any = self.shape.find(rows.ok(), hash, found);
        rows.map(|_| any)
    }

    pub(super) fn checked_rows<'a>(&self, bytes: &'a [u8], hash: u64) -> Result<&'a [u8], Error> {
        let expected = self.shape.stride;
        if bytes.len() != expected {
            return Err(footer::wrong_range(expected, bytes));
        }
        self.checksums.verify_region(bytes, self.shape.block_of(hash))?;
        Ok(&bytes[..self.shape.rows_len])
    }

    /// Compares the bank's bytes before the footer with their checksums. There may be more bytes behind them.
    pub(super) fn verify_body(&self, bytes: &[u8]) -> Result<(), Error> {
        let least = self.standalone_len() as usize;
        let body = bytes.get(..least - Self::LEN).ok_or(footer::too_short(bytes, least))?;
        let (regions, known_keys) = body.split_at(self.shape.regions_len());
        self.checksums.verify(regions.chunks(self.shape.stride), known_keys)
    }

    /// The seed that keys are hashed with.
    pub fn seed(&self) -> u64 {
        self.shape.seed.get()
    }

    /// Number of slots, each with a filter.
    pub fn slots(&self) -> usize {
        self.shape.slots
    }
}

pub(super) fn wrong_size(n_blocks: u64, found_bytes: usize) -> Error {
    Error::wrong_size("blocks of a bank", n_blocks, found_bytes)
}

impl fmt::Debug for BankFooter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shape.debug("BankFooter", f)
    }
}
