//! `IndexView`: lookups in an index's bytes.

use super::super::bitmap::SlotBitmap;
use super::super::view::BankView;
use super::footer::{Bank, FILE_BYTES, File, FileVersion, IndexFooter};
use crate::blocks::Blocks;
use crate::error::Error;
use crate::filter::BloomFilter;
use crate::footer::{self, UNKNOWN_KEYS};
use crate::key::Key;

/// An index over files, read in place from its standalone bytes, such as a mapped file.
///
/// `as_ref` of `B` must return the same bytes each time.
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
/// let index = IndexView::from_standalone(builder.to_standalone()?)?;
/// let mut found = SlotBitmap::new();
/// index.find("bee", &mut found)?;
/// let names: Vec<_> = found.iter().map(|file| index.footer().name(file)).collect();
/// assert_eq!(names, [&b"monday.log"[..], b"tuesday.log"]);
/// assert!(!index.find("dog", &mut found)?); // definitely absent from all
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct IndexView<B> {
    bytes: B,
    footer: IndexFooter,
}

impl<B: AsRef<[u8]>> IndexView<B> {
    /// Opens standalone bytes, exactly the index's. Reads the names and the banks' footers, and compares these with
    /// their checksums. A lookup compares the bits that it reads.
    ///
    /// # Errors
    ///
    /// If the bytes were cut, if what is read is damaged or of a different version, or if the keys were hashed by a
    /// different function than this build's.
    pub fn from_standalone(bytes: B) -> Result<Self, Error> {
        let all = bytes.as_ref();
        let footer = IndexFooter::read(all)?;
        let (needed, found) = (footer.standalone_len(), all.len());
        if needed != found as u64 {
            let text = "the index has {} bytes, not {}: the bytes were cut or joined";
            return Err(Error::damaged(text, [needed, found as u64]));
        }
        let view = Self { bytes, footer };
        let files = view.part(view.files_start(), view.footer.files() * FILE_BYTES);
        view.footer.verify_files(files)?;
        Ok(view)
    }

    /// Compares all bytes with their checksums.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) if they do not match.
    pub fn verify(&self) -> Result<(), Error> {
        self.footer.banks.iter().try_for_each(|bank| {
            let Bank { footer, start, .. } = bank;
            let bytes = self.part(*start, footer.standalone_len() as usize - footer::StandaloneFooter::LEN);
            footer.verify_body(bytes)
        })
    }

    /// The names, the rule and the rate.
    pub fn footer(&self) -> &IndexFooter {
        &self.footer
    }

    /// Finds the files that possibly have `key`, and returns whether there are any. A file that is not found definitely
    /// does not have the key.
    ///
    /// # Errors
    ///
    /// If bits that the lookup reads are damaged. `found` then has all files that possibly have the key.
    pub fn find(&self, key: impl Key, found: &mut SlotBitmap) -> Result<bool, Error> {
        let hash = self.footer.hash_key(key);
        let ranges =
            self.footer.ranges(hash).map(|range| self.part(range.start, (range.end - range.start) as usize));
        self.footer.find_in_ranges(hash, ranges, found)
    }

    /// The version of a file, zeros if there is no such file.
    pub fn version(&self, file: usize) -> FileVersion {
        let [size, modified, _] = self.stored(file);
        FileVersion { size, modified: modified as i64 }
    }

    /// Number of distinct keys of a file, if known.
    pub fn known_keys(&self, file: usize) -> Option<u64> {
        let [_, _, keys] = self.stored(file);
        Some(keys).filter(|&keys| keys != UNKNOWN_KEYS && file < self.footer.files())
    }

    /// The filter of a file, bit for bit as it was inserted, for the next version of the index. `None` if the file has
    /// no keys, or there is no such file. Call [`verify`](Self::verify) before.
    ///
    /// # Errors
    ///
    /// If memory for the filter cannot be allocated.
    pub fn to_filter(&self, file: usize) -> Result<Option<BloomFilter>, Error> {
        for Bank { footer, start, files } in &self.footer.banks {
            let Ok(at) = files.binary_search_by_key(&file, |file| file.number) else { continue };
            let File { first_slot, n_blocks, slots, .. } = files[at];
            let bytes = self.part(*start, footer.standalone_len() as usize - footer::StandaloneFooter::LEN);
            let bank = BankView { bytes, shape: footer.shape, checksums: None };
            let mut blocks = Blocks::zeroed(n_blocks as usize)?;
            let repeats = slots as usize * footer.shape.n_blocks / n_blocks as usize;
            for (i, block) in blocks.as_mut_slice().iter_mut().enumerate() {
                let (of_bank, part) = (i * repeats / slots as usize, i * repeats % slots as usize);
                *block = bank.block(first_slot + part, of_bank);
            }
            let keys = blocks.known_keys(self.known_keys(file));
            let shape = footer.shape;
            return Ok(Some(BloomFilter::new(blocks, shape.k, shape.kernel, shape.seed, keys)));
        }
        Ok(None)
    }

    fn files_start(&self) -> u64 {
        let end =
            |bank: &Bank| bank.start + bank.footer.standalone_len() - footer::StandaloneFooter::LEN as u64;
        self.footer.banks.last().map_or(0, end)
    }

    fn stored(&self, file: usize) -> [u64; FILE_BYTES / 8] {
        let bytes = if file < self.footer.files() {
            self.part(self.files_start() + (file * FILE_BYTES) as u64, FILE_BYTES)
        } else {
            &[]
        };
        let (words, _) = bytes.as_chunks();
        core::array::from_fn(|i| words.get(i).map_or(0, |word| u64::from_le_bytes(*word)))
    }

    /// Bytes of the index, or none if they have become fewer.
    fn part(&self, start: u64, len: usize) -> &[u8] {
        let bytes = self.bytes.as_ref();
        usize::try_from(start).ok().and_then(|start| bytes.get(start..)?.get(..len)).unwrap_or_default()
    }
}
