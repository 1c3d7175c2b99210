//! `IndexView`: lookups in an index's bytes.

use core::fmt;

use super::index_footer::{Bank, FILE_BYTES, File, FileVersion, IndexFooter};
use crate::bank::bank_view::BankView;
use crate::bank::bitmap::SlotBitmap;
use crate::blocks::Blocks;
use crate::error::Error;
use crate::filter::BloomFilter;
use crate::footer::UNKNOWN_KEYS;
use crate::key::Key;

/// An index over files, read in place from its standalone bytes, such as a mapped file. An
/// [`Owned`](crate::Owned) view keeps its bytes.
///
/// # Examples
///
/// ```
/// use bloomline::bank::{FileVersion, IndexBuilder, IndexView, SlotBitmap};
///
/// let mut builder = IndexBuilder::with_fpr(0.001)?;
/// let mut keys = builder.filter_builder();
/// for (name, words) in [("monday.log", ["ant", "bee"]), ("tuesday.log", ["bee", "cat"])] {
///     keys.extend(words);
///     builder.insert(name, FileVersion::default(), keys.finish()?)?;
/// }
///
/// let bytes = builder.to_standalone()?;
/// let index = IndexView::from_standalone(&bytes)?;
/// let mut found = SlotBitmap::new();
/// index.find("bee", &mut found)?;
/// let names: Vec<_> = found.iter().filter_map(|file| index.footer().name(file)).collect();
/// assert_eq!(names, [&b"monday.log"[..], b"tuesday.log"]);
/// assert!(!index.find("dog", &mut found)?); // definitely absent from all
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct IndexView<'a> {
    bytes: &'a [u8],
    footer: IndexFooter,
    /// Whether all bytes were compared with their checksums, so that lookups need not.
    verified: bool,
}

impl<'a> IndexView<'a> {
    /// Opens standalone bytes, exactly the index's, and compares all of them with their checksums.
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of a different version, or if the keys were hashed by a different function
    /// than this build's.
    pub fn from_standalone(bytes: &'a [u8]) -> Result<Self, Error> {
        let view = Self::from_standalone_unverified(bytes)?;
        view.verify()?;
        Ok(Self { verified: true, ..view })
    }

    /// Opens standalone bytes without reading the filters' bits, for a few lookups in a large mapped file. Each lookup
    /// then compares the bits that it reads with their checksum, which is most of its time.
    ///
    /// # Errors
    ///
    /// As [`from_standalone`](Self::from_standalone), but for damaged bits.
    pub fn from_standalone_unverified(bytes: &'a [u8]) -> Result<Self, Error> {
        let footer = IndexFooter::read(bytes)?;
        let (needed, found) = (footer.standalone_len, bytes.len());
        if needed != found as u64 {
            let text = "the index has {} bytes, not {}: the bytes were cut or joined";
            return Err(Error::damaged(text, [needed, found as u64]));
        }
        let view = Self { bytes, footer, verified: false };
        let files = view.part(view.footer.versions_range().start, view.footer.files() * FILE_BYTES);
        view.footer.verify_files(files)?;
        Ok(view)
    }

    /// Compares all bytes with their checksums.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) if they do not match.
    pub fn verify(&self) -> Result<(), Error> {
        self.footer.banks.iter().try_for_each(|bank| bank.footer.verify_body(self.body(bank)))
    }

    /// The names, the rule and the rate.
    pub fn footer(&self) -> &IndexFooter {
        &self.footer
    }

    /// Finds the numbers of the files that possibly have `key`, and returns whether there are any. A file that is not
    /// found definitely does not have the key. A file that could not be read is always found.
    ///
    /// In an index that was opened unverified, each lookup compares the bits that it reads with their checksum. So this
    /// is a `Result`, unlike [`BankView::find`](crate::bank::BankView::find).
    ///
    /// # Errors
    ///
    /// If the index was opened unverified, and bits that the lookup reads are damaged. `found` then has all files that
    /// possibly have the key.
    pub fn find(&self, key: impl Key, found: &mut SlotBitmap) -> Result<bool, Error> {
        self.find_hash(self.footer.hash_key(key), found)
    }

    /// [`find`](Self::find) by hash, as [`IndexFooter::hash_key`] returns it. If indexes have the same
    /// [seed](IndexFooter::seed), hash the key once for all of them.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find).
    pub fn find_hash(&self, hash: u64, found: &mut SlotBitmap) -> Result<bool, Error> {
        if self.verified {
            return Ok(self.footer.find_by(hash, found, |bank, slots| {
                self.bank(bank).find_hash(hash, slots);
                true
            }));
        }
        let ranges = self.footer.ranges(hash);
        let ranges = ranges.map(|range| self.part(range.start, (range.end - range.start) as usize));
        self.footer.find_in_ranges(hash, ranges, found)
    }

    /// The version of a file, or `None` if there is no such file.
    pub fn version(&self, file: usize) -> Option<FileVersion> {
        self.stored(file).map(|(version, _)| version)
    }

    /// Number of distinct keys of a file, if known. `None` if there is no such file, or if it could not be read.
    pub fn known_keys(&self, file: usize) -> Option<u64> {
        let (_, keys) = self.stored(file)?;
        Some(keys).filter(|&keys| keys != UNKNOWN_KEYS)
    }

    /// The filter of a file, bit for bit as it was inserted, for the next version of the index. `None` if the file has
    /// no keys, or there is no such file. That of a file that could not be read has all bits set. Damaged bits are not
    /// noticed, so open the index by [`from_standalone`](Self::from_standalone), or call [`verify`](Self::verify) first.
    ///
    /// # Errors
    ///
    /// If memory for the filter cannot be allocated.
    pub fn to_filter(&self, file: usize) -> Result<Option<BloomFilter>, Error> {
        for bank in &self.footer.banks {
            let Ok(at) = bank.files.binary_search_by_key(&file, |file| file.number) else { continue };
            let File { first_slot, n_blocks, slots, .. } = bank.files[at];
            let (bank, n_blocks, slots) = (self.bank(bank), n_blocks as usize, slots as usize);
            let shape = bank.shape;
            let mut blocks = Blocks::zeroed(n_blocks)?;
            let repeats = slots * shape.n_blocks / n_blocks;
            for (i, block) in blocks.as_mut_slice().iter_mut().enumerate() {
                let repeated = i * repeats;
                *block = bank.block(first_slot + repeated % slots, repeated / slots);
            }
            let keys = blocks.known_keys(self.known_keys(file));
            return Ok(Some(BloomFilter::new(blocks, shape.k, shape.kernel, shape.seed, keys)));
        }
        Ok(None)
    }

    fn bank(&self, bank: &Bank) -> BankView<'a> {
        BankView { bytes: self.body(bank), shape: bank.footer.shape, checksums: None }
    }

    /// The bytes of a bank before its footer.
    fn body(&self, bank: &Bank) -> &'a [u8] {
        self.part(bank.start, bank.body_len() as usize)
    }

    fn stored(&self, file: usize) -> Option<(FileVersion, u64)> {
        let in_files = (file < self.footer.files()).then(|| (file * FILE_BYTES) as u64)?;
        let stored = self.part(self.footer.versions_range().start + in_files, FILE_BYTES);
        stored.first_chunk().map(FileVersion::from_stored)
    }

    fn part(&self, start: u64, len: usize) -> &'a [u8] {
        &self.bytes[start as usize..][..len]
    }
}

impl fmt::Debug for IndexView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.footer.fmt(f)
    }
}
