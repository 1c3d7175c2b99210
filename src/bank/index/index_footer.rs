//! `IndexFooter`: the names of an index, and which of its bytes a lookup needs.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use super::names::{self, Entry};
use super::plan::slots;
use crate::bank::bank_footer::BankFooter;
use crate::bank::bitmap::SlotBitmap;
use crate::error::{Error, ErrorKind};
use crate::footer;
use crate::key::Key;
use crate::kind::StandaloneKind;
use crate::mask::below;
use crate::memory::reserve;

/// Bytes for each file that are not at the end: its version and number of keys.
pub(super) const FILE_BYTES: usize = 40;
/// Stored if a time is not known.
const UNKNOWN_TIME: i64 = i64::MIN;
/// The version of an index that this crate writes, and the only one that it reads.
pub(super) const LAYOUT: u8 = 1;

/// The size, times and inode of a file. If an equal version with a time is in the index, the file has not changed since.
///
/// For names that are not files, use the default, whose times are unknown. Make all other versions by
/// [`new`](Self::new), because a later release can add fields, then assign the fields that the system knows. Without
/// [`changed`](Self::changed) and [`inode`](Self::inode), you do not notice if `cp -p` or `mv s.2 s.3; mv s.1 s.2`
/// replaces a file by one of the same size and time.
///
/// # Examples
///
/// ```
/// use bloomline::bank::{FileVersion, IndexBuilder, IndexView};
///
/// let mut found = FileVersion::new(1_024, Some(1_795_651_200_123_456_789));
/// found.changed = Some(1_795_651_200_123_456_790);
/// found.inode = Some(1_234_567);
/// let mut builder = IndexBuilder::with_fpr(0.01)?;
/// let keys = builder.filter_builder().finish()?;
/// builder.insert("monday.log", found, keys)?;
///
/// let bytes = builder.to_standalone()?;
/// let old = IndexView::from_standalone(&bytes)?;
/// let is_unchanged = |now: FileVersion| now.modified.is_some() && old.version(0) == Some(now);
/// assert!(is_unchanged(found));
/// let mut replaced = found; // by another file with the same size and times
/// replaced.inode = Some(1_234_568);
/// assert!(!is_unchanged(replaced) && !is_unchanged(FileVersion::new(1_024, None)));
/// # Ok::<(), bloomline::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileVersion {
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change of the content, in nanoseconds since 1970. `None` if it is unknown. Then treat the file as
    /// changed.
    pub modified: Option<i64>,
    /// Time of the last change of the file's status, in nanoseconds since 1970, which is the ctime of POSIX. Unlike
    /// `modified`, programs cannot choose it, but `chmod` and `ln` also set it, after which the file counts as changed.
    /// `None` if it is unknown, as on systems without it. `i64::MIN` also counts as unknown.
    pub changed: Option<i64>,
    /// Number of the file in its file system. `None` if it is unknown. 0 also counts as unknown.
    pub inode: Option<u64>,
}

impl FileVersion {
    /// The version of a file of `size` bytes, last changed `modified` nanoseconds after 1970, or before if negative.
    ///
    /// Pass `None` if the time is unknown, out of the range of `i64`, which ends in 2262, or if the file or its status
    /// changed so recently that it may change again within the same tick of the clock. `i64::MIN` also counts as unknown.
    pub fn new(size: u64, modified: Option<i64>) -> Self {
        Self { size, modified: modified.filter(|&time| time != UNKNOWN_TIME), ..Self::default() }
    }

    /// As stored.
    pub(super) fn to_fields(self) -> [u64; 4] {
        let [modified, changed] =
            [self.modified, self.changed].map(|time| time.unwrap_or(UNKNOWN_TIME) as u64);
        [self.size, modified, changed, self.inode.unwrap_or(0)]
    }

    /// From what is stored of a file, and its number of distinct keys.
    pub(super) fn from_stored(file: &[u8; FILE_BYTES]) -> (Self, u64) {
        let (words, _) = file.as_chunks();
        let word = |i: usize| u64::from_le_bytes(words[i]);
        let [modified, changed] = [1, 2].map(|i| Some(word(i) as i64).filter(|&time| time != UNKNOWN_TIME));
        let inode = Some(word(3)).filter(|&inode| inode != 0);
        (Self { size: word(0), modified, changed, inode }, word(4))
    }
}

/// The end of an index over files. With it, a lookup in an index that is elsewhere, such as in an object store, reads one
/// range of each bank.
///
/// Read the last 64 bytes, then as many as [`read_len`](Self::read_len) returns, and keep the footer. For each lookup,
/// read its [`ranges`](Self::ranges) and pass them to [`find_in_ranges`](Self::find_in_ranges). A range that is damaged,
/// or of a different index, is an error.
///
/// # Examples
///
/// ```
/// use bloomline::bank::{FileVersion, IndexBuilder, IndexFooter, SlotBitmap};
///
/// let mut builder = IndexBuilder::with_fpr(0.001)?;
/// let mut keys = builder.filter_builder();
/// keys.extend(["ant", "bee"]);
/// builder.insert("monday.log", FileVersion::default(), keys.finish()?)?;
/// let object = builder.to_standalone()?;
///
/// let last = object.last_chunk::<64>().unwrap(); // a GET of the last bytes
/// let start = object.len() - IndexFooter::read_len(last)? as usize;
/// let footer = IndexFooter::read(&object[start..])?; // and of this range
///
/// let hash = footer.hash_key("ant");
/// let ranges = footer.ranges(hash).map(|range| &object[range.start as usize..range.end as usize]);
/// let mut found = SlotBitmap::new();
/// assert!(footer.find_in_ranges(hash, ranges, &mut found)?);
/// assert!(found.iter().filter_map(|file| footer.name(file)).eq(["monday.log".as_bytes()]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct IndexFooter {
    pub(super) banks: Vec<Bank>,
    names: Vec<Vec<u8>>,
    rule: String,
    fpr: f64,
    files_checksum: u64,
    pub(super) standalone_len: u64,
}

/// A bank of an index, and whose slots these are.
#[derive(Clone)]
pub(super) struct Bank {
    pub(super) footer: BankFooter,
    /// Where it begins in the index.
    pub(super) start: u64,
    pub(super) files: Vec<File>,
}

/// A file with keys.
#[derive(Clone, Copy)]
pub(super) struct File {
    pub(super) number: usize,
    pub(super) first_slot: usize,
    pub(super) n_blocks: u32,
    pub(super) slots: u64,
}

impl Bank {
    /// Length of the bank without its footer.
    pub(super) fn body_len(&self) -> u64 {
        self.footer.standalone_len() - BankFooter::LEN as u64
    }

    /// Number of slots that are those of files.
    fn taken(&self) -> usize {
        self.files.last().map_or(0, |file| file.first_slot + file.slots as usize)
    }
}

impl IndexFooter {
    /// How many bytes at the end of an index [`read`](Self::read) needs, by the last 64 of them. They are 16 to 30 for
    /// each file if names are like their neighbours.
    ///
    /// # Errors
    ///
    /// If there are fewer than 64 bytes, or these are not the end of an index, damaged or of a different version.
    pub fn read_len(end: &[u8]) -> Result<u64, Error> {
        let (_, [_, len, ..]) = split(end)?;
        Ok(len.saturating_add(BankFooter::LEN as u64))
    }

    /// Reads the end of an index. `end` may begin anywhere before it.
    ///
    /// # Errors
    ///
    /// If bytes are missing, or they are not the end of an index, damaged or of a different version, or if the keys
    /// were hashed by a different function than this build's.
    pub fn read(end: &[u8]) -> Result<Self, Error> {
        let (before, fields) = split(end)?;
        let [files, len, files_checksum, fpr, checksum, last] = fields;
        let [_, n_banks, rule_len @ .., _, _, _, _] = last.to_le_bytes();
        let (rule_len, fpr) = (usize::from(u16::from_le_bytes(rule_len)), f64::from_bits(fpr));
        if last >> 40 != 0 {
            return Err(Error::impossible("reserved bytes", last >> 40));
        }
        if !(fpr > 0.0 && fpr < 1.0) {
            return Err(Error::impossible("false-positive rate, in bits,", fpr.to_bits()));
        }
        let start = usize::try_from(len).ok().and_then(|len| before.len().checked_sub(len));
        let missing = || footer::too_short(end, len.saturating_add(BankFooter::LEN as u64) as usize);
        let listed = &before[start.ok_or_else(missing)?..];
        footer::verify(listed, checksum)?;
        let wrong = Error::impossible("number of files", files);
        let split = listed.split_at_checked(BankFooter::LEN * usize::from(n_banks));
        let (footers, listed) = split.ok_or(wrong)?;
        let (rule, listed) = listed.split_at_checked(rule_len).ok_or(wrong)?;
        let mut kept = Vec::new();
        reserve(&mut kept, rule_len)?;
        kept.extend_from_slice(rule);
        let wrong_rule = |_| Error::impossible("length of the rule", rule_len as u64);
        let rule = String::from_utf8(kept).map_err(wrong_rule)?;
        let (names, entries) = names::decode(listed, files)?;
        let (mut banks, mut start) = (Vec::<Bank>::new(), 0_u64);
        reserve(&mut banks, n_banks.into())?;
        for footer in footers.chunks(BankFooter::LEN) {
            let bank = Bank { footer: BankFooter::read(footer)?, start, files: Vec::new() };
            let seed = bank.footer.shape.seed;
            if banks.first().is_some_and(|first| first.footer.shape.seed != seed) {
                return Err(Error::impossible("seed of a bank", seed.get()));
            }
            start = start.checked_add(bank.body_len()).ok_or(wrong)?;
            banks.push(bank);
        }
        let behind = (names.len() * FILE_BYTES) as u64 + len + BankFooter::LEN as u64;
        let standalone_len = start.checked_add(behind).ok_or(wrong)?;
        let mut index = Self { banks, names, rule, fpr, files_checksum, standalone_len };
        index.take_slots(&entries)?;
        Ok(index)
    }

    /// Gives each file the next slots of its bank.
    fn take_slots(&mut self, entries: &[Entry]) -> Result<(), Error> {
        for (number, &Entry { bank, n_blocks }) in
            entries.iter().enumerate().filter(|(_, file)| file.n_blocks > 0)
        {
            let wrong = Error::impossible("bank of file", number as u64);
            let bank = self.banks.get_mut(usize::from(bank)).ok_or(wrong)?;
            let slots = slots(n_blocks, bank.footer.shape.n_blocks as u64);
            let first_slot = bank.taken();
            // So the number of blocks with repetition does not overflow, because the bank's length does not.
            if slots > (bank.footer.slots() - first_slot) as u64 {
                return Err(wrong);
            }
            reserve(&mut bank.files, 1)?;
            bank.files.push(File { number, first_slot, n_blocks, slots });
        }
        let all_taken = self.banks.iter().all(|bank| bank.taken() == bank.footer.slots());
        if all_taken { Ok(()) } else { Err(Error::impossible("number of files", entries.len() as u64)) }
    }

    /// Hashes `key` under the filters' seed.
    #[inline]
    #[must_use]
    pub fn hash_key(&self, key: impl Key) -> u64 {
        self.banks.first().map_or(0, |bank| bank.footer.hash_key(key))
    }

    /// The seed that keys are hashed with. If no file has keys, it is 0, and hashes are not needed.
    pub fn seed(&self) -> u64 {
        self.banks.first().map_or(0, |bank| bank.footer.seed())
    }

    /// The bytes that a lookup of a hash needs, counted from the start of the index, one range for each bank. bloomline
    /// writes at most eight banks. Ask the store for all ranges at once.
    pub fn ranges(&self, hash: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        self.banks.iter().map(move |bank| {
            let Range { start, end } = bank.footer.range(hash);
            bank.start + start..bank.start + end
        })
    }

    /// Finds the files that possibly have the key of a hash, in the bytes of its [`ranges`](Self::ranges), in the same
    /// order, after comparing them with their checksums. Returns whether there are any.
    ///
    /// # Errors
    ///
    /// If a range is missing, has a wrong length, is damaged, or belongs to a different hash or index. The key is then
    /// possibly present in all files of its bank, and `found` has all of them.
    pub fn find_in_ranges<R: AsRef<[u8]>>(
        &self,
        hash: u64,
        ranges: impl IntoIterator<Item = R>,
        found: &mut SlotBitmap,
    ) -> Result<bool, Error> {
        let mut ranges = ranges.into_iter();
        let mut checked = Ok(());
        let any = self.find_by(hash, found, |bank, slots| {
            let bytes = ranges.next();
            let rows = bank.footer.checked_rows(bytes.as_ref().map_or(&[][..], AsRef::as_ref), hash);
            checked = checked.and(rows.map(drop));
            rows.map(|rows| bank.footer.shape.find(Some(rows), hash, slots)).is_ok()
        });
        checked.map(|()| any)
    }

    /// Calls `find` with each bank, to find the slots that possibly have the key of a hash, then finds their files. If
    /// it returns `false`, these are all of the bank. Then it must not write the slots, of which forged bytes can claim
    /// many.
    pub(super) fn find_by(
        &self,
        hash: u64,
        found: &mut SlotBitmap,
        mut find: impl FnMut(&Bank, &mut SlotBitmap) -> bool,
    ) -> bool {
        found.fill_by(self.files(), |words, slots| {
            words.fill(0);
            for bank in &self.banks {
                if !find(bank, slots) {
                    bank.files.iter().for_each(|file| words[file.number / 64] |= 1 << (file.number % 64));
                    continue;
                }
                let (mut last, mut at) = (0, 0);
                for slot in slots.iter() {
                    let is_before = |file: &File| file.first_slot <= slot;
                    // Few steps from the last one, if many files have the key, or else a search that waits for no other.
                    at = if slot - last < 8 {
                        at + bank.files[at + 1..].iter().take_while(|file| is_before(file)).count()
                    } else {
                        bank.files.partition_point(is_before) - 1
                    };
                    last = slot;
                    let file = bank.files[at];
                    // Each slot of a file has the keys of other blocks, so only one of them can have this key.
                    let block = below(file.slots * bank.footer.shape.n_blocks as u64, hash);
                    if file.first_slot as u64 + block % file.slots == slot as u64 {
                        words[file.number / 64] |= 1 << (file.number % 64);
                    }
                }
            }
        })
    }

    /// The bytes that [`versions`](Self::versions) needs, counted from the start of the index. They lie just before
    /// those of [`read`](Self::read), so read both at once.
    pub fn versions_range(&self) -> Range<u64> {
        let start = self.banks.last().map_or(0, |bank| bank.start + bank.body_len());
        start..start + (self.files() * FILE_BYTES) as u64
    }

    /// The version of each file, in the bytes of [`versions_range`](Self::versions_range), after comparing them with
    /// their checksum.
    ///
    /// # Errors
    ///
    /// If bytes are missing or damaged, or memory for the versions cannot be allocated.
    pub fn versions(&self, bytes: &[u8]) -> Result<Vec<FileVersion>, Error> {
        if bytes.len() != self.files() * FILE_BYTES {
            let text = "the versions of the files have {} bytes, not {}: pass those of the range, no more and no fewer";
            return Err(Error::argument(text, [self.files() * FILE_BYTES, bytes.len()].map(|n| n as u64)));
        }
        self.verify_files(bytes)?;
        let mut versions = Vec::new();
        reserve(&mut versions, self.files())?;
        let (files, _) = bytes.as_chunks::<FILE_BYTES>();
        versions.extend(files.iter().map(|file| FileVersion::from_stored(file).0));
        Ok(versions)
    }

    /// Number of files. They are numbered in the order of their names' bytes.
    pub fn files(&self) -> usize {
        self.names.len()
    }

    /// The name of a file, or `None` if there is no such file.
    pub fn name(&self, file: usize) -> Option<&[u8]> {
        self.names.get(file).map(Vec::as_slice)
    }

    /// The rule by which the keys of files were taken, as [`IndexBuilder::with_rule`](super::IndexBuilder::with_rule)
    /// recorded it.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// The false-positive rate that was requested for each file.
    pub fn fpr(&self) -> f64 {
        self.fpr
    }

    /// Compares what is stored of files with its checksum.
    pub(super) fn verify_files(&self, bytes: &[u8]) -> Result<(), Error> {
        footer::verify(bytes, self.files_checksum)
    }
}

/// The bytes before the footer, and its fields if this crate reads the rest.
fn split(end: &[u8]) -> Result<(&[u8], [u64; 6]), Error> {
    let (before, fields) = footer::split(end, StandaloneKind::Index)?;
    let [.., found, _, _, _] = fields[5].to_le_bytes();
    if found != LAYOUT {
        let text =
            "the index is of layout {}, and this release reads layout {}: make it again with this release";
        return Err(Error::new(ErrorKind::Unsupported, text, [found, LAYOUT].map(u64::from)));
    }
    Ok((before, fields))
}

impl fmt::Debug for IndexFooter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let banks: Vec<_> = self.banks.iter().map(|bank| bank.footer).collect();
        f.debug_struct("IndexFooter")
            .field("files", &self.files())
            .field("banks", &banks)
            .finish_non_exhaustive()
    }
}
