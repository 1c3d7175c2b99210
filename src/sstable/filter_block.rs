//! LevelDB's filter block, which has the filters of a table's data blocks and finds them by a data block's offset.
#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::{fmt, mem};

use super::FilterPolicy;
use super::policy::compact_contains;
use crate::builder::FilterBuilder;
use crate::error::{BuildError, DecodeError};
use crate::key::Key;
use crate::memory::or_abort;

/// LevelDB's value, a filter for each 2 KiB of data.
const BASE_LOG2: u8 = 11;
/// Bytes of the offset of the first offset, and of the log2 of the range.
const TAIL_BYTES: usize = 5;

/// Builds the filter block of a table as LevelDB does. The data blocks that start in the same 2 KiB of the table share
/// a filter.
///
/// ```text
/// +----------+-----+------------+----------------+-----+--------------+-------------------+-----------+
/// | filter 0 | ... | filter n-1 | offset of it 0 | ... | offset n-1   | offset of the     | log2 of   |
/// |          |     |            | u32            |     | u32          | first offset, u32 | range, u8 |
/// +----------+-----+------------+----------------+-----+--------------+-------------------+-----------+
/// ```
///
/// A range in which no data block starts has an empty filter, of 0 bytes. Integers are little-endian
/// ([LevelDB, "Table format"](https://github.com/google/leveldb/blob/main/doc/table_format.md)).
///
/// # Examples
///
/// ```
/// use bloomline::sstable::{FilterBlockBuilder, FilterBlockReader, FilterPolicy};
///
/// let policy = FilterPolicy::with_bits_per_key(10.0)?;
/// let mut filters = FilterBlockBuilder::new(&policy);
/// for (data_block, keys) in [(0, ["ant", "bee"]), (4_150, ["cat", "dog"]), (8_222, ["elk", "fox"])] {
///     filters.start_block(data_block);
///     keys.iter().for_each(|key| filters.insert(key));
/// }
/// let block = filters.finish()?;
///
/// let filters = FilterBlockReader::new(&block)?;
/// assert!(filters.key_may_match(4_150, "cat"));
/// assert!(!filters.key_may_match(4_150, "elk"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FilterBlockBuilder {
    keys: FilterBuilder,
    filters: Vec<u8>,
    starts: Vec<u32>,
}

impl FilterBlockBuilder {
    /// An empty builder of filters with the policy's bits per key, one for each 2 KiB of data, as in all of LevelDB's
    /// tables.
    pub fn new(policy: &FilterPolicy) -> Self {
        Self { keys: policy.builder(), filters: Vec::new(), starts: Vec::new() }
    }

    /// Starts a data block at this offset of the table. The keys inserted from here on are in it.
    ///
    /// Each 2 KiB up to this offset costs 4 bytes of the filter block.
    ///
    /// # Panics
    ///
    /// If the filter of its range is already made, because lookups would then miss the keys. Start data blocks in the
    /// order of their offsets.
    pub fn start_block(&mut self, data_block_offset: u64) {
        let range = data_block_offset >> BASE_LOG2;
        let made = self.starts.len() as u64;
        assert!(made <= range, "data block {data_block_offset} is out of order: filter {range} exists");
        (made..range).for_each(|_| self.make_filter());
    }

    /// Inserts a key of the current data block. Keys may repeat.
    #[doc(alias = "add_key")]
    pub fn insert(&mut self, key: impl Key) {
        self.keys.insert(key);
    }

    fn make_filter(&mut self) {
        // Truncated only if the filters are so large that `finish` returns an error.
        self.starts.push(self.filters.len() as u32);
        if !self.keys.is_empty() {
            or_abort(self.keys.write_compact(&mut self.filters));
        }
    }

    /// Returns the filter block, and leaves the builder empty, for the next table. Store the block in the table under
    /// the name `filter.` followed by [`FilterPolicy::NAME`].
    ///
    /// # Errors
    ///
    /// [`BuildError::FilterBlock`] if the filters have 4 GiB or more.
    pub fn finish(&mut self) -> Result<Vec<u8>, BuildError> {
        if !self.keys.is_empty() {
            self.make_filter();
        }
        let bytes = self.filters.len() as u64;
        let end = u32::try_from(bytes).map_err(|_| BuildError::FilterBlock { bytes })?;
        let mut block = mem::take(&mut self.filters);
        block.extend(self.starts.drain(..).chain([end]).flat_map(u32::to_le_bytes));
        block.push(BASE_LOG2);
        Ok(block)
    }
}

impl fmt::Debug for FilterBlockBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterBlockBuilder").field("n_filters", &self.starts.len()).finish_non_exhaustive()
    }
}

/// Reads a filter block in place. Lookups don't allocate.
///
/// Detected damage is an error in [`try_key_may_match`](Self::try_key_may_match) and `true` (possibly present) in
/// [`key_may_match`](Self::key_may_match), never "definitely absent". Flipped bits inside a filter cannot be detected
/// here, but by the checksum that LevelDB's tables store for each block.
#[derive(Clone, Copy)]
pub struct FilterBlockReader<'a> {
    filters: &'a [u8],
    /// The start of each filter, then the start of the offsets themselves.
    offsets: &'a [[u8; 4]],
    base_log2: u8,
}

impl<'a> FilterBlockReader<'a> {
    /// Opens a filter block. Reads only its last 5 bytes.
    ///
    /// # Errors
    ///
    /// If the bytes are not a filter block. Then read the table without filters.
    pub fn new(block: &'a [u8]) -> Result<Self, DecodeError> {
        let too_short = DecodeError::TooShort { found: block.len(), least: TAIL_BYTES };
        let (&base_log2, rest) = block.split_last().ok_or(too_short)?;
        let end = u32::from_le_bytes(*rest.last_chunk().ok_or(too_short)?);
        if base_log2 >= 64 {
            return Err(DecodeError::Footer { field: "log2 of a range", found: base_log2.into() });
        }
        let found_bytes = block.len() - TAIL_BYTES;
        let wrong = DecodeError::Size { stored: end.into(), unit: "bytes of filters", found_bytes };
        let (filters, offsets) = rest.split_at_checked(end as usize).ok_or(wrong)?;
        match offsets.as_chunks() {
            (offsets @ [_, ..], []) => Ok(Self { filters, offsets, base_log2 }),
            _ => Err(wrong),
        }
    }

    /// Returns whether `key` is possibly in the data block at this offset. `false` is certain.
    ///
    /// Returns `true` if the filter cannot be used, so that no key is lost.
    #[inline]
    #[must_use]
    pub fn key_may_match(&self, data_block_offset: u64, key: impl Key) -> bool {
        self.try_key_may_match(data_block_offset, key).unwrap_or(true)
    }

    /// [`key_may_match`](Self::key_may_match) that reports filters that cannot be used. Count them, because without its
    /// filters a database becomes slow with no other sign.
    ///
    /// # Errors
    ///
    /// If there is no filter for this data block, or it is damaged. The key is then possibly present.
    #[inline]
    pub fn try_key_may_match(&self, data_block_offset: u64, key: impl Key) -> Result<bool, DecodeError> {
        compact_contains(self.filter_of(data_block_offset)?, key)
    }

    /// The bytes of the filter for the data block at this offset, for example to look up hashes in it.
    ///
    /// # Errors
    ///
    /// If there is none, or the filter block is damaged.
    pub fn filter_of(&self, data_block_offset: u64) -> Result<&'a [u8], DecodeError> {
        let range = data_block_offset >> self.base_log2;
        let n_filters = self.n_filters();
        let offsets = usize::try_from(range).ok().and_then(|range| self.offsets.get(range..)?.first_chunk());
        let [start, end] = offsets.ok_or(DecodeError::NoFilter { range, n_filters })?;
        let [start, end] = [start, end].map(|offset| u32::from_le_bytes(*offset));
        match self.filters.get(start as usize..end as usize) {
            // No data block starts there, so a query for one means damage or the filter block of a different table.
            Some([]) => Err(DecodeError::NoFilter { range, n_filters }),
            Some(filter) => Ok(filter),
            None => {
                let (start, end, found) = (start as usize, end as usize, self.filters.len());
                Err(DecodeError::Slice { start, end, found })
            }
        }
    }

    /// The number of filters, empty ones included.
    pub fn n_filters(&self) -> usize {
        self.offsets.len() - 1
    }
}

impl fmt::Debug for FilterBlockReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterBlockReader").field("n_filters", &self.n_filters()).finish_non_exhaustive()
    }
}
