//! LevelDB's filter block: the filters of a table's data blocks, found by a data block's offset.
#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::error::Error;
use core::fmt;

use super::Policy;
use crate::error::DecodeError;

/// LevelDB's own: a filter for each 2 KiB of data.
const BASE_LOG2: u8 = 11;
/// The last bytes of a block: the offset of the offsets, and the log2.
const TAIL_BYTES: usize = 5;

/// Makes the filter block of a table as LevelDB does: a filter for the keys of the data blocks that start in the same
/// 2 KiB of the table.
///
/// ```text
/// +----------+-----+------------+----------------+-----+--------------+-------------------+-----------+
/// | filter 0 | ... | filter n-1 | offset of it 0 | ... | offset n-1   | offset of the     | log2 of   |
/// |          |     |            | u32            |     | u32          | first offset, u32 | range, u8 |
/// +----------+-----+------------+----------------+-----+--------------+-------------------+-----------+
/// ```
///
/// A range in which no data block starts has a filter of no bytes. Integers are little-endian
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
///     keys.iter().for_each(|key| filters.add_key(key));
/// }
/// let block = filters.finish()?;
///
/// let filters = FilterBlockReader::new(&policy, &block)?;
/// assert!(filters.key_may_match(4_150, "cat"));
/// assert!(!filters.key_may_match(4_150, "elk"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FilterBlockBuilder<'p, P: Policy> {
    policy: &'p P,
    base_log2: u8,
    keys: P::Keys,
    has_keys: bool,
    filters: Vec<u8>,
    starts: Vec<u32>,
}

impl<'p, P: Policy> FilterBlockBuilder<'p, P> {
    /// No filters yet: a filter for each 2 KiB of data, as all of LevelDB's tables have.
    pub fn new(policy: &'p P) -> Self {
        Self::with_base_log2(policy, BASE_LOG2)
    }

    /// A filter for each 2^`base_log2` bytes of data. Readers go by what the block says.
    ///
    /// # Panics
    ///
    /// If `base_log2` is above 63.
    pub fn with_base_log2(policy: &'p P, base_log2: u8) -> Self {
        assert!(base_log2 < 64, "2^{base_log2} bytes are more than an offset counts");
        let (filters, starts) = (Vec::new(), Vec::new());
        Self { policy, base_log2, keys: policy.keys(), has_keys: false, filters, starts }
    }

    /// The keys that follow are in the data block at this offset of the table. Takes memory for each range up to it: 4
    /// bytes in the block.
    ///
    /// # Panics
    ///
    /// If filters of later ranges have been made: the keys would not be found.
    pub fn start_block(&mut self, data_block_offset: u64) {
        let range = data_block_offset >> self.base_log2;
        let made = self.starts.len() as u64;
        assert!(made <= range, "data block {data_block_offset} follows one of filter {made}");
        (made..range).for_each(|_| self.make_filter());
    }

    /// Adds a key of the data block. Keys may repeat.
    pub fn add_key(&mut self, key: impl AsRef<[u8]>) {
        self.policy.add(&mut self.keys, key.as_ref());
        self.has_keys = true;
    }

    fn make_filter(&mut self) {
        // Cut off only where `finish` returns an error.
        self.starts.push(self.filters.len() as u32);
        if self.has_keys {
            self.policy.finish(&mut self.keys, &mut self.filters);
            self.has_keys = false;
        }
    }

    /// The filter block, to be stored in the table under `filter.` and the policy's [`name`](Policy::name).
    ///
    /// # Errors
    ///
    /// [`FilterBlockError::TooLarge`] if the filters take 4 GiB or more.
    pub fn finish(mut self) -> Result<Vec<u8>, FilterBlockError> {
        if self.has_keys {
            self.make_filter();
        }
        let bytes = self.filters.len() as u64;
        let end = u32::try_from(bytes).map_err(|_| FilterBlockError::TooLarge { bytes })?;
        let mut block = self.filters;
        block.extend(self.starts.into_iter().chain([end]).flat_map(u32::to_le_bytes));
        block.push(self.base_log2);
        Ok(block)
    }
}

/// Reads a filter block in place. Lookups don't allocate.
///
/// Damage that can be seen is an error in [`try_key_may_match`](Self::try_key_may_match) and "may match" in
/// [`key_may_match`](Self::key_may_match), never "absent". Flipped bits within a filter cannot be seen: they are for the
/// checksum that LevelDB's tables have for each block.
#[derive(Debug)]
pub struct FilterBlockReader<'a, P> {
    policy: &'a P,
    filters: &'a [u8],
    /// Of the filters, and last of the offsets themselves.
    offsets: &'a [[u8; 4]],
    base_log2: u8,
}

// Not derived: a copy of the reader borrows the policy and does not copy it.
impl<P> Copy for FilterBlockReader<'_, P> {}

impl<P> Clone for FilterBlockReader<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<'a, P: Policy> FilterBlockReader<'a, P> {
    /// Looks at the last bytes alone.
    ///
    /// # Errors
    ///
    /// If the bytes are no filter block. A table then is read without filters.
    pub fn new(policy: &'a P, block: &'a [u8]) -> Result<Self, FilterBlockError> {
        let too_short = FilterBlockError::TooShort { found: block.len() };
        let (&base_log2, rest) = block.split_last().ok_or(too_short)?;
        let end = u32::from_le_bytes(*rest.last_chunk().ok_or(too_short)?);
        if base_log2 >= 64 {
            return Err(FilterBlockError::BaseLog2 { found: base_log2 });
        }
        let wrong = FilterBlockError::Offsets { start: end, end: block.len() - TAIL_BYTES };
        let (filters, offsets) = rest.split_at_checked(end as usize).ok_or(wrong)?;
        match offsets.as_chunks() {
            (offsets @ [_, ..], []) => Ok(Self { policy, filters, offsets, base_log2 }),
            _ => Err(wrong),
        }
    }

    /// Whether `key` may be in the data block at this offset: `false` is certain.
    #[inline]
    pub fn key_may_match(&self, data_block_offset: u64, key: impl AsRef<[u8]>) -> bool {
        self.try_key_may_match(data_block_offset, key).unwrap_or(true)
    }

    /// [`key_may_match`](Self::key_may_match) that tells of filters that cannot be used: count them, for a database
    /// without its filters is slow and says nothing.
    ///
    /// # Errors
    ///
    /// If there is no filter for this data block, or it is damaged. The key may be there then.
    #[inline]
    pub fn try_key_may_match(
        &self,
        data_block_offset: u64,
        key: impl AsRef<[u8]>,
    ) -> Result<bool, FilterBlockError> {
        let filter = self.filter_of(data_block_offset)?;
        self.policy.try_key_may_match(key.as_ref(), filter).map_err(FilterBlockError::Filter)
    }

    /// The bytes of the filter for the data block at this offset: to be asked by hash, say.
    ///
    /// # Errors
    ///
    /// If there is none, or the block is damaged.
    pub fn filter_of(&self, data_block_offset: u64) -> Result<&'a [u8], FilterBlockError> {
        let range = data_block_offset >> self.base_log2;
        let n_filters = self.n_filters();
        let offsets = usize::try_from(range).ok().and_then(|range| self.offsets.get(range..)?.first_chunk());
        let [start, end] = offsets.ok_or(FilterBlockError::NoFilter { range, n_filters })?;
        let [start, end] = [start, end].map(|offset| u32::from_le_bytes(*offset));
        match self.filters.get(start as usize..end as usize) {
            // No data block starts there, so none is asked for, unless something is damaged.
            Some([]) => Err(FilterBlockError::NoKeys { range }),
            Some(filter) => Ok(filter),
            None => Err(FilterBlockError::Filters { start, end, bytes: self.filters.len() }),
        }
    }

    /// Filters, those of no bytes included.
    pub fn n_filters(&self) -> usize {
        self.offsets.len() - 1
    }
}

/// A filter block that cannot be made or used. When reading, take the key for present, and count these: a table
/// without its filters is slow. Rewriting the table, as a compaction does, makes them anew.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterBlockError {
    /// The filters take more bytes than the format can count. Make smaller tables, or partition their filters.
    TooLarge {
        /// Bytes of the filters.
        bytes: u64,
    },
    /// Too few bytes for a filter block.
    TooShort {
        /// Bytes given.
        found: usize,
    },
    /// The block's last byte is no log2 of a range.
    BaseLog2 {
        /// The byte.
        found: u8,
    },
    /// The offsets of the filters do not lie where the block says: it was cut or damaged.
    Offsets {
        /// Where they start by the block.
        start: u32,
        /// Where they must end.
        end: usize,
    },
    /// The block has no filter for a data block so far into the table: it is of another table, or damaged.
    NoFilter {
        /// Index of the filter that the data block should have.
        range: u64,
        /// Filters in the block.
        n_filters: usize,
    },
    /// The block's filter for this data block is that of no keys at all: it is of another table, or damaged.
    NoKeys {
        /// Index of the filter.
        range: u64,
    },
    /// A filter does not lie within the block: it is damaged.
    Filters {
        /// Where the filter starts by the block.
        start: u32,
        /// Where it ends by the block.
        end: u32,
        /// Bytes of all filters.
        bytes: usize,
    },
    /// The policy cannot read the filter.
    Filter(DecodeError),
}

impl fmt::Display for FilterBlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooLarge { bytes } => {
                return write!(
                    f,
                    "the filters take {bytes} bytes, the limit is {}: make smaller tables, or partition the filters",
                    u32::MAX
                );
            }
            Self::TooShort { found } => write!(f, "a filter block has at least 5 bytes, not {found}"),
            Self::BaseLog2 { found } => write!(f, "a filter block cannot have ranges of 2^{found} bytes"),
            Self::Offsets { start, end } => write!(f, "filter offsets cannot lie at {start}..{end}"),
            Self::NoFilter { range, n_filters } => write!(f, "filter {range} of {n_filters} does not exist"),
            Self::NoKeys { range } => write!(f, "filter {range} is empty"),
            Self::Filters { start, end, bytes } => write!(f, "a filter at {start}..{end} of {bytes} bytes"),
            Self::Filter(error) => return error.fmt(f),
        }?;
        f.write_str(": the filter block is damaged or of another table; rewrite the table")
    }
}

impl Error for FilterBlockError {}
