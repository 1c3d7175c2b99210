//! `IndexBuilder`: writes an index over files.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::index_footer::{FileVersion, LAYOUT};
use super::names::{self, Entry};
use super::plan::{best_bank, plan, slots};
use crate::bank::filter_bank::{FilterBank, check_modules};
use crate::blocks::BLOCK_BYTES;
use crate::builder::FilterBuilder;
use crate::error::Error;
use crate::filter::BloomFilter;
use crate::footer::{self, UNKNOWN_KEYS, VERSION};
use crate::hash::Seed;
use crate::kind::StandaloneKind;
use crate::memory::reserve;
use crate::sizing::Sizing;
use crate::view::check_placing;

/// Collects the names and filters of files, then writes them as an index that answers for all files at once.
///
/// Keeps all filters in memory, and a copy of one bank while it writes. Names need not be of files.
/// See [`IndexView`](super::IndexView) for an example.
///
/// The filters' sizes differ, so each lies in one of at most eight banks, in one slot or in several. The banks' sizes
/// are chosen to suit the filters. From a hundred files on, the banks are mostly 1.1 to 1.4 times as large as the
/// filters that the files need alone, below a hundred files up to 2 times, and below ten up to 9 times. Each file also
/// needs 48 bytes, and those of its name that differ from the name before it.
#[derive(Clone)]
pub struct IndexBuilder {
    keys: FilterBuilder,
    fpr: f64,
    rule: String,
    /// Of all filters, because the probes of a bank's filters are in the same rows.
    k: u32,
    /// In the order of their names.
    files: BTreeMap<Vec<u8>, File>,
}

#[derive(Clone)]
struct File {
    version: FileVersion,
    filter: BloomFilter,
    /// 0 if it has no keys.
    n_blocks: u32,
}

impl IndexBuilder {
    /// An index of filters with a false-positive rate of at most `fpr`. A lookup of an absent key finds this share of the
    /// files, so choose a rate below 1 ÷ the number of files if it should mostly find none.
    ///
    /// # Errors
    ///
    /// If `fpr` is not below 1 and at least 1.263e-8, the lowest of one module.
    pub fn with_fpr(fpr: f64) -> Result<Self, Error> {
        let (keys, k) = FilterBuilder::with_fpr(fpr)?.with_most_modules(1)?.in_steps();
        Ok(Self { keys, fpr, rule: String::new(), k: k.get(), files: BTreeMap::new() })
    }

    /// Records the rule by which the keys of files are taken, such as "lines", so that readers can ask by the same rule.
    ///
    /// # Errors
    ///
    /// If it has more than 65,535 bytes.
    pub fn with_rule(self, rule: &str) -> Result<Self, Error> {
        checked_len(rule.as_bytes())?;
        Ok(Self { rule: rule.to_owned(), ..self })
    }

    /// A builder of filters for this index. Their numbers of blocks are 1, 2, 3, 4, 6, 8, 12 and so on, which fit into
    /// few banks. Their rate is therefore mostly below the requested one.
    pub fn filter_builder(&self) -> FilterBuilder {
        self.keys.clone()
    }

    /// Adds a file, or replaces the file of this name. The filter can have another number of blocks than those of
    /// [`filter_builder`](Self::filter_builder), but then it needs more bytes.
    ///
    /// Pass `None` as the filter of a file that could not be read. It possibly has every key, so each lookup finds it.
    /// Record its time as unknown, so that the next version of the index does not keep it as unchanged.
    ///
    /// # Errors
    ///
    /// If the filter has several modules, more than 2^32 − 1 blocks or a seed other than 0, if its k differs from that of
    /// [`filter_builder`](Self::filter_builder), or if the name has more than 65,535 bytes.
    pub fn insert(
        &mut self,
        name: impl AsRef<[u8]>,
        version: FileVersion,
        filter: impl Into<Option<BloomFilter>>,
    ) -> Result<(), Error> {
        checked_len(name.as_ref())?;
        let filter = filter.into().map_or_else(|| full(self.k), Ok)?;
        check_modules(filter.n_modules())?;
        check_placing([self.k, filter.k()], [Seed::DEFAULT, filter.seed])?;
        let n_blocks = u32::try_from(filter.n_blocks());
        let too_large =
            Error::argument("a filter of {} blocks is too large for an index", [filter.n_blocks() as u64]);
        let n_blocks = if filter.fill_ratio() == 0.0 { 0 } else { n_blocks.map_err(|_| too_large)? };
        self.files.insert(name.as_ref().to_owned(), File { version, filter, n_blocks });
        Ok(())
    }

    /// Returns the standalone bytes of the index.
    ///
    /// # Errors
    ///
    /// If memory for a bank or for the bytes cannot be allocated, or there are more filters than the banks have room for, some 2^24 of a size.
    pub fn to_standalone(self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.encode(|part| {
            reserve(&mut bytes, part.len())?;
            bytes.extend_from_slice(part);
            Ok::<_, Error>(())
        })?;
        Ok(bytes)
    }

    /// Writes the standalone bytes to a writer, and flushes it. Requires the feature `std`.
    ///
    /// # Errors
    ///
    /// As [`to_standalone`](Self::to_standalone), and the writer's errors.
    #[cfg(feature = "std")]
    pub fn write_standalone(self, mut out: impl std::io::Write) -> std::io::Result<()> {
        self.encode(|part| out.write_all(part))?;
        out.flush()
    }

    fn encode<E: From<Error>>(self, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut sizes = BTreeMap::new();
        for file in self.files.values().filter(|file| file.n_blocks > 0) {
            *sizes.entry(file.n_blocks).or_default() += 1;
        }
        let text = "an index has no room for {} files: make several";
        let banks = plan(&sizes).ok_or(Error::argument(text, [self.files.len() as u64]))?;
        let in_banks =
            self.files.iter().map(|(name, file)| (&name[..], file, best_bank(file.n_blocks, &banks)));
        let mut end = Vec::new();
        for (number, &bank_blocks) in banks.iter().enumerate() {
            let in_this = in_banks.clone().filter(|&(.., bank)| bank == number);
            let parts = in_this.flat_map(|(_, file, _)| {
                let slots = slots(file.n_blocks, bank_blocks) as usize;
                (0..slots).map(move |part| (&file.filter, part, slots))
            });
            let parts: Vec<_> = parts.collect();
            let sizing = Sizing::new(bank_blocks as usize, self.k)?;
            let bank = FilterBank::from_blocks(sizing, parts.len(), |slot, block| {
                let (filter, part, slots) = parts[slot];
                let repeats = slots * bank_blocks as usize / filter.n_blocks();
                filter.as_view().folded_block((block * slots + part) / repeats, 1)
            })?;
            end.extend(bank.encode_body(&mut write)?);
        }
        let mut stored = Vec::new();
        for File { version, filter, .. } in self.files.values() {
            let keys = filter.known_keys().unwrap_or(UNKNOWN_KEYS);
            stored.extend(version.to_fields().map(u64::to_le_bytes).as_flattened());
            stored.extend(keys.to_le_bytes());
        }
        write(&stored)?;
        end.extend_from_slice(self.rule.as_bytes());
        let entries =
            in_banks.map(|(name, &File { n_blocks, .. }, bank)| (name, Entry { bank: bank as u8, n_blocks }));
        names::encode(entries, &mut end);
        write(&end)?;
        let [a, b] = (self.rule.len() as u16).to_le_bytes();
        let last = u64::from_le_bytes([VERSION, banks.len() as u8, a, b, LAYOUT, 0, 0, 0]);
        let [files, len] = [self.files.len(), end.len()].map(|n| n as u64);
        let fields =
            [files, len, footer::checksum(&stored), self.fpr.to_bits(), footer::checksum(&end), last];
        write(&footer::seal(fields, StandaloneKind::Index.magic()))
    }
}

/// Possibly has every key.
fn full(k: u32) -> Result<BloomFilter, Error> {
    let mut filter = BloomFilter::with_blocks(1, k)?;
    filter.blocks.as_mut_slice().fill([u8::MAX; BLOCK_BYTES]);
    Ok(BloomFilter { keys: None, ..filter })
}

fn checked_len(name: &[u8]) -> Result<(), Error> {
    let text = "a name or rule in an index has at most 65,535 bytes, not {}";
    if name.len() <= u16::MAX.into() { Ok(()) } else { Err(Error::argument(text, [name.len() as u64])) }
}

impl fmt::Debug for IndexBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexBuilder").field("files", &self.files.len()).finish_non_exhaustive()
    }
}
