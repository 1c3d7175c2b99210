//! `IndexBuilder`: writes an index over files.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::super::filter_bank::{FilterBank, check_modules};
use super::footer::FileVersion;
use super::names::{self, Entry};
use super::plan::{best_bank, plan, slots};
use crate::builder::FilterBuilder;
use crate::error::Error;
use crate::filter::BloomFilter;
use crate::footer::{self, UNKNOWN_KEYS, VERSION};
use crate::hash::Seed;
use crate::kind::StandaloneKind;
use crate::sizing::Sizing;
use crate::view::check_placing;

/// Collects the names and filters of files, then writes them as an index that answers for all files at once.
///
/// Has the filters in memory, and while it writes, one bank of them. Names need not be of files.
/// See [`IndexView`](super::IndexView) for an example.
///
/// The filters' sizes differ, so a filter lies in one of at most eight banks, in one slot or in several. The numbers of
/// blocks of the banks are chosen by the filters that there are. The index is 1.25 times as large as all filters, each
/// of the size that it needs alone. Below a hundred files, it can be half as large again.
#[derive(Clone)]
pub struct IndexBuilder {
    keys: FilterBuilder,
    fpr: f64,
    rule: String,
    /// In the order of their names.
    files: BTreeMap<Vec<u8>, (FileVersion, BloomFilter)>,
}

impl IndexBuilder {
    /// An index of filters with a false-positive rate of at most `fpr`. A lookup of an absent key finds this share of the
    /// files, so choose a rate below 1 ÷ the number of files if it should mostly find none.
    ///
    /// # Errors
    ///
    /// If `fpr` is not below 1 and at least 1.263e-8, the lowest of one module.
    pub fn with_fpr(fpr: f64) -> Result<Self, Error> {
        let keys = FilterBuilder::with_fpr(fpr)?.with_most_modules(1)?.in_steps();
        Ok(Self { keys, fpr, rule: String::new(), files: BTreeMap::new() })
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

    /// Adds a file, or replaces the file of this name. Any filter of one module and seed 0 can be added, but filters of
    /// other sizes than [`filter_builder`](Self::filter_builder) makes need more bytes.
    ///
    /// # Errors
    ///
    /// If the filter has several modules, another seed or more than 2^32 − 1 blocks, or the name more than 65,535 bytes.
    pub fn insert(
        &mut self,
        name: impl AsRef<[u8]>,
        version: FileVersion,
        filter: BloomFilter,
    ) -> Result<(), Error> {
        checked_len(name.as_ref())?;
        check_modules(filter.n_modules())?;
        check_placing([0; 2], [Seed::DEFAULT, filter.seed])?;
        if u32::try_from(filter.n_blocks()).is_err() {
            let text =
                "a filter of an index has at most {} blocks, not {}: split the file's keys over two names";
            return Err(Error::argument(text, [u32::MAX.into(), filter.n_blocks() as u64]));
        }
        self.files.insert(name.as_ref().to_owned(), (version, filter));
        Ok(())
    }

    /// Returns the standalone bytes of the index.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated, or there are more filters than the banks have room for, some 2^24 of a size.
    pub fn to_standalone(self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.encode(|part| {
            crate::memory::reserve(&mut bytes, part.len())?;
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
        let blocks_of =
            |filter: &BloomFilter| if filter.fill_ratio() == 0.0 { 0 } else { filter.n_blocks() as u32 };
        let files: Vec<_> = self
            .files
            .iter()
            .map(|(name, (version, filter))| (&name[..], *version, filter, blocks_of(filter)))
            .collect();
        // Banks of equal k, because the probes of a bank's filters are in the same rows.
        let mut sizes: BTreeMap<u32, BTreeMap<u32, u64>> = BTreeMap::new();
        for &(_, _, filter, n_blocks) in files.iter().filter(|(.., n_blocks)| *n_blocks > 0) {
            *sizes.entry(filter.k()).or_default().entry(n_blocks).or_default() += 1;
        }
        let mut banks: Vec<(u32, Vec<u64>, usize)> = Vec::new();
        let mut n_banks = 0;
        for (k, sizes) in sizes {
            let text = "an index of {} files has no room for more: split it";
            let planned = plan(&sizes).ok_or(Error::argument(text, [files.len() as u64]))?;
            let first = n_banks;
            n_banks += planned.len();
            banks.push((k, planned, first));
        }
        let entry = |filter: &BloomFilter, n_blocks: u32| {
            let of_k = banks.iter().find(|(k, ..)| *k == filter.k());
            let bank = of_k
                .filter(|_| n_blocks > 0)
                .map_or(0, |(_, banks, first)| first + best_bank(n_blocks, banks));
            Entry { bank: bank as u8, n_blocks }
        };
        let entries: Vec<_> = files.iter().map(|&(.., filter, n_blocks)| entry(filter, n_blocks)).collect();
        let mut end = Vec::new();
        let sizes = banks.iter().flat_map(|(k, banks, _)| banks.iter().map(move |&n_blocks| (*k, n_blocks)));
        for (number, (k, bank_blocks)) in sizes.enumerate() {
            let mut of_slots = Vec::new();
            for (&(.., filter, n_blocks), entry) in files.iter().zip(&entries) {
                let slots = slots(n_blocks, bank_blocks);
                if n_blocks > 0 && usize::from(entry.bank) == number {
                    of_slots.extend((0..slots as usize).map(|slot| (filter, slot, slots as usize)));
                }
            }
            let bank = FilterBank::from_blocks(
                Sizing::new(bank_blocks as usize, k)?,
                of_slots.len(),
                |slot, block| {
                    let (filter, part, slots) = of_slots[slot];
                    let repeats = slots * bank_blocks as usize / filter.n_blocks();
                    filter.as_view().folded_block((block * slots + part) / repeats, 1)
                },
            )?;
            end.extend(bank.encode_body(&mut write)?);
        }
        let mut stored = Vec::with_capacity(files.len() * 24);
        for &(_, FileVersion { size, modified }, filter, _) in &files {
            let keys = filter.known_keys().unwrap_or(UNKNOWN_KEYS);
            stored.extend([size, modified as u64, keys].map(u64::to_le_bytes).as_flattened());
        }
        write(&stored)?;
        end.extend_from_slice(self.rule.as_bytes());
        names::encode(files.iter().zip(&entries).map(|((name, ..), entry)| (*name, *entry)), &mut end);
        write(&end)?;
        let [a, b] = (self.rule.len() as u16).to_le_bytes();
        let last = u64::from_le_bytes([VERSION, n_banks as u8, a, b, 0, 0, 0, 0]);
        let checksums = [&stored, &end].map(|bytes| footer::checksum(bytes));
        let fields =
            [files.len() as u64, end.len() as u64, checksums[0], self.fpr.to_bits(), checksums[1], last];
        write(&footer::seal(fields, StandaloneKind::Index.magic()))
    }
}

fn checked_len(text: &[u8]) -> Result<(), Error> {
    let text_len = text.len() as u64;
    let text = "a name or rule in an index has at most {} bytes, not {}";
    if text_len <= u16::MAX.into() { Ok(()) } else { Err(Error::argument(text, [u16::MAX.into(), text_len])) }
}

impl fmt::Debug for IndexBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexBuilder")
            .field("files", &self.files.len())
            .field("fpr", &self.fpr)
            .field("rule", &self.rule)
            .finish_non_exhaustive()
    }
}
