//! Partitioned filters for large tables, so that a lookup needs one partition in memory and not all of them.
#![forbid(unsafe_code)]

use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::mem;
use core::ops::Range;

use xxhash_rust::xxh64::xxh64;

use super::FilterPolicy;
use crate::builder::FilterBuilder;
use crate::error::{BuildError, DecodeError};
use crate::memory::{OutOfMemory, reserve};

/// Builds the filters of a sorted table's keys, a new one after every `keys_per_partition` distinct keys.
///
/// One filter for 100 million keys needs 125 MB, too much for a cache to hold or a disk to read at once. With
/// partitions of 3,200 keys, at 10 bits per key, a lookup reads, and a cache keeps, one filter of 4 KB at a time. Only
/// the index of the partitions' first keys stays in memory, with about a hundredth of the size of the filters.
///
/// # Examples
///
/// ```
/// use bloomline::sstable::{Ended, FilterPolicy, PartitionIndex, PartitionIndexBuilder, PartitionedFilterBuilder};
///
/// let policy = FilterPolicy::with_bits_per_key(10.0)?;
/// let (mut table, mut index) = (Vec::new(), PartitionIndexBuilder::new()); // the table is a file, say
/// let (mut filters, mut filter) = (PartitionedFilterBuilder::new(&policy, 2)?, Vec::new());
/// let mut write = |first_key: &[u8], filter: &mut Vec<u8>| {
///     let place = index.add(first_key, table.len() as u64, filter.len() as u64);
///     table.append(filter); // leaves `filter` empty, for the next one
///     place
/// };
/// for key in ["ant", "bee", "cat", "dog", "elk"] {
///     if let Ended::Partition(first_key) = filters.insert(key, &mut filter)? {
///         write(first_key, &mut filter)?;
///     }
/// }
/// if let Ended::Partition(first_key) = filters.finish(&mut filter)? {
///     write(first_key, &mut filter)?;
/// }
///
/// let index = PartitionIndex::new(index.finish())?;
/// assert_eq!(index.len(), 3);
/// let may_match = |key| {
///     let place = index.partition_of(key).expect("partitions");
///     policy.key_may_match(key, &table[place.start as usize..place.end as usize])
/// };
/// assert!(may_match("bee"));
/// assert!(!may_match("gnu"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PartitionedFilterBuilder {
    keys_per_partition: usize,
    keys: FilterBuilder,
    /// Distinct keys in the current partition.
    n_keys: usize,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    /// First key of the previous partition.
    finished: Vec<u8>,
}

impl PartitionedFilterBuilder {
    /// An empty builder. Each partition but the last gets `keys_per_partition` distinct keys.
    ///
    /// # Errors
    ///
    /// If `keys_per_partition` is 0.
    pub fn new(policy: &FilterPolicy, keys_per_partition: usize) -> Result<Self, BuildError> {
        if keys_per_partition == 0 {
            return Err(BuildError::KeysPerPartition { value: keys_per_partition });
        }
        let [first_key, last_key, finished] = [const { Vec::new() }; 3];
        Ok(Self { keys_per_partition, keys: policy.builder(), n_keys: 0, first_key, last_key, finished })
    }

    /// Inserts a key. If a partition ends before it, appends the partition's filter to `filter` and returns the
    /// partition's first key. Write the filter to the table, and add its place to the index. Keys of a partition that
    /// is not in the index would be lost.
    ///
    /// Insert byte strings or text, in the order of their bytes. The bytes of an integer [`Key`](crate::Key) are not in
    /// its order. A key may repeat, once for each of its versions, which stay in one partition.
    ///
    /// # Errors
    ///
    /// If the key is less than the previous one, because lookups would probe the wrong partition for it, or if memory
    /// runs out. The key is then not inserted, so these filters would hide it. Write the table without them. The keys
    /// inserted before, and the bytes of `filter`, stay.
    #[doc(alias = "add_key")]
    pub fn insert(&mut self, key: impl AsRef<[u8]>, filter: &mut Vec<u8>) -> Result<Ended<'_>, BuildError> {
        let key = key.as_ref();
        if self.n_keys > 0 {
            match self.last_key.as_slice().cmp(key) {
                Ordering::Less => (),
                Ordering::Equal => return Ok(Ended::Nothing),
                Ordering::Greater => return Err(out_of_order(&self.last_key, key)),
            }
        }
        let is_full = self.n_keys == self.keys_per_partition;
        // All that can fail comes before the first change.
        reserve_len(&mut self.last_key, key.len())?;
        if is_full || self.n_keys == 0 {
            self.start(key, filter)?;
        }
        // Cannot fail after a partition was cut, which leaves room for a hash.
        self.keys.make_room_for_one()?;
        // Copied before the key is hashed, because the next key's comparison would wait for a later copy.
        key.clone_into(&mut self.last_key);
        self.keys.insert(key);
        self.n_keys += 1;
        Ok(if is_full { Ended::Partition(&self.finished) } else { Ended::Nothing })
    }

    /// Cuts the current partition, if it has keys, and starts the next one.
    #[cold]
    fn start(&mut self, first_key: &[u8], filter: &mut Vec<u8>) -> Result<(), OutOfMemory> {
        // Reserved in `finished`, because `cut` exchanges the two.
        reserve_len(&mut self.finished, first_key.len())?;
        self.cut(filter)?;
        first_key.clone_into(&mut self.first_key);
        Ok(())
    }

    fn cut(&mut self, filter: &mut Vec<u8>) -> Result<(), OutOfMemory> {
        if self.n_keys > 0 {
            self.keys.write_compact(filter)?;
        }
        self.n_keys = 0;
        mem::swap(&mut self.first_key, &mut self.finished);
        Ok(())
    }

    /// Appends the filter of the last partition to `filter` and returns its first key, or [`Ended::Nothing`] if the
    /// table has no keys. The builder is then empty, for the next table.
    ///
    /// # Errors
    ///
    /// If memory runs out. The builder then keeps its keys, and `filter` its bytes.
    pub fn finish(&mut self, filter: &mut Vec<u8>) -> Result<Ended<'_>, BuildError> {
        let has_keys = self.n_keys > 0;
        self.cut(filter)?;
        Ok(if has_keys { Ended::Partition(&self.finished) } else { Ended::Nothing })
    }
}

/// Reserves memory for `len` bytes in all.
#[inline]
fn reserve_len(bytes: &mut Vec<u8>, len: usize) -> Result<(), OutOfMemory> {
    // Written so that a copy into `bytes` need not check the capacity again.
    if len > bytes.capacity() { reserve(bytes, len - bytes.len()) } else { Ok(()) }
}

impl fmt::Debug for PartitionedFilterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionedFilterBuilder").field("keys", &self.keys).finish_non_exhaustive()
    }
}

#[cold]
fn out_of_order(previous: &[u8], key: &[u8]) -> BuildError {
    BuildError::KeyOrder {
        at: previous.iter().zip(key).take_while(|(previous, key)| previous == key).count(),
    }
}

/// Whether a partition ended, and so has to be added to the index.
#[must_use = "keys of a partition that is not in the index are lost"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended<'a> {
    /// No partition ended, so there is nothing to write yet.
    Nothing,
    /// A partition with this first key ended. Its filter was appended to the buffer.
    Partition(&'a [u8]),
}

/// Bytes of an entry, which has three numbers, where the key ends, where the filter starts, and where the filter ends.
const ENTRY_BYTES: usize = 24;
/// Bytes of the footer, which has the number of entries, the version and the checksum.
const FOOTER_BYTES: usize = 24;
const VERSION: u64 = 1;

/// Builds the index of a table's partitions.
///
/// ```text
/// +-------------+--------------------------------------------------+---+---------+---------------+
/// | first keys, | n entries: where in them the key ends, where in  | n | version | XXH64, seed 0,|
/// | end to end  | the table the filter starts, and where it ends   |   | 1       | of all before |
/// +-------------+--------------------------------------------------+---+---------+---------------+
/// ```
///
/// All numbers are 8 bytes, little-endian.
#[derive(Clone, Default)]
pub struct PartitionIndexBuilder {
    keys: Vec<u8>,
    entries: Vec<[u64; 3]>,
}

impl PartitionIndexBuilder {
    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a partition with its first key, and where in the table its filter is.
    ///
    /// # Errors
    ///
    /// If the key is not greater than the previous one, because lookups would probe the wrong partition, or if
    /// `filter_offset + filter_bytes` exceeds `u64::MAX`. The index is then unchanged.
    pub fn add(
        &mut self,
        first_key: impl AsRef<[u8]>,
        filter_offset: u64,
        filter_bytes: u64,
    ) -> Result<(), BuildError> {
        let first_key = first_key.as_ref();
        let filter_end = filter_offset
            .checked_add(filter_bytes)
            .ok_or(BuildError::FilterEnd { offset: filter_offset, bytes: filter_bytes })?;
        let last_start = self.entries.iter().nth_back(1).map_or(0, |[key_end, ..]| *key_end as usize);
        let last_key = &self.keys[last_start..];
        if !self.entries.is_empty() && last_key >= first_key {
            return Err(out_of_order(last_key, first_key));
        }
        self.keys.extend_from_slice(first_key);
        self.entries.push([self.keys.len() as u64, filter_offset, filter_end]);
        Ok(())
    }

    /// Returns the bytes of the index, and leaves the builder empty, for the next table.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut index = mem::take(&mut self.keys);
        let footer = [self.entries.len() as u64, VERSION];
        index.extend(self.entries.drain(..).flatten().chain(footer).flat_map(u64::to_le_bytes));
        let checksum = xxh64(&index, 0);
        index.extend(checksum.to_le_bytes());
        index
    }
}

impl fmt::Debug for PartitionIndexBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionIndexBuilder").field("len", &self.entries.len()).finish_non_exhaustive()
    }
}

/// Finds the partition of a key, in the bytes that a [`PartitionIndexBuilder`] made.
///
/// The bytes can be a `&[u8]`, or a `Vec<u8>`, an `Arc<[u8]>`, a `Bytes` or a memory map. An index that owns its bytes
/// can live beside its table. The bytes are checked once. Lookups don't allocate, and compare at most as many keys as
/// the number of partitions has binary digits.
///
/// `as_ref` must return the same bytes each time. If it does not, lookups return wrong places, but nothing panics and
/// nothing else is read.
#[derive(Clone, Copy)]
pub struct PartitionIndex<B> {
    bytes: B,
    /// Where the keys end and the entries start.
    keys_end: usize,
    n_entries: usize,
}

/// The parts of an index. Checked parts are consistent, and others don't panic.
#[derive(Clone, Copy)]
struct Entries<'a> {
    keys: &'a [u8],
    entries: &'a [[u8; ENTRY_BYTES]],
}

impl<B: AsRef<[u8]>> PartitionIndex<B> {
    /// Opens an index and checks all of its bytes. Do this once per table, and keep the index.
    ///
    /// # Errors
    ///
    /// If the bytes are not an index, or are damaged. Then read the table without filters.
    pub fn new(bytes: B) -> Result<Self, DecodeError> {
        let Entries { keys, entries } = Entries::checked(bytes.as_ref())?;
        let (keys_end, n_entries) = (keys.len(), entries.len());
        Ok(Self { bytes, keys_end, n_entries })
    }

    /// Where in the table the filter for `key` is, or `None` if there are no partitions, as in a table without keys.
    ///
    /// A key less than all first keys gets the first partition, whose filter then answers the query.
    #[must_use]
    pub fn partition_of(&self, key: impl AsRef<[u8]>) -> Option<Range<u64>> {
        let (keys, entries) = self.bytes.as_ref().split_at_checked(self.keys_end)?;
        let (entries, _) = entries.as_chunks();
        Entries { keys, entries: entries.get(..self.n_entries)? }.partition_of(key.as_ref())
    }

    /// The number of partitions.
    pub fn len(&self) -> usize {
        self.n_entries
    }

    /// Returns whether there are no partitions.
    pub fn is_empty(&self) -> bool {
        self.n_entries == 0
    }
}

impl<'a> Entries<'a> {
    fn checked(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (body, footer) = bytes
            .split_last_chunk::<FOOTER_BYTES>()
            .ok_or(DecodeError::TooShort { found: bytes.len(), least: FOOTER_BYTES })?;
        let [n_entries, version, stored] = fields(footer);
        if version != VERSION {
            return Err(DecodeError::Footer { field: "version", found: version });
        }
        let computed = xxh64(&bytes[..bytes.len() - 8], 0);
        if stored != computed {
            return Err(DecodeError::BodyChecksum { stored, computed });
        }
        let damaged = DecodeError::Footer { field: "number of entries", found: n_entries };
        let entry_bytes = usize::try_from(n_entries).ok().and_then(|n| n.checked_mul(ENTRY_BYTES));
        let keys_end = entry_bytes.and_then(|bytes| body.len().checked_sub(bytes)).ok_or(damaged)?;
        let (keys, entries) = body.split_at(keys_end);
        let (entries, _) = entries.as_chunks();
        let index = Self { keys, entries };
        let ends = || entries.iter().map(|entry| fields(entry)[0]);
        let is_sorted = ends().is_sorted() && ends().next_back().unwrap_or(0) == keys.len() as u64;
        let are_places = entries.iter().map(fields).all(|[_, start, end]| start <= end);
        if are_places && is_sorted && (1..entries.len()).all(|i| index.key(i - 1) < index.key(i)) {
            Ok(index)
        } else {
            Err(damaged)
        }
    }

    fn partition_of(self, key: &[u8]) -> Option<Range<u64>> {
        // Like `slice::partition_point`, but over indices, because a key starts where the previous entry's key ends.
        let (mut low, mut high) = (0, self.entries.len());
        while low < high {
            let middle = low + (high - low) / 2;
            (low, high) = if self.key(middle) <= key { (middle + 1, high) } else { (low, middle) };
        }
        let [_, start, end] = fields(self.entries.get(low.saturating_sub(1))?);
        Some(start..end)
    }

    fn key(self, partition: usize) -> &'a [u8] {
        let end = |partition: usize| fields(&self.entries[partition])[0] as usize;
        let start = if partition == 0 { 0 } else { end(partition - 1) };
        self.keys.get(start..end(partition)).unwrap_or_default()
    }
}

impl<B> fmt::Debug for PartitionIndex<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionIndex").field("len", &self.n_entries).finish_non_exhaustive()
    }
}

fn fields(bytes: &[u8; 24]) -> [u64; 3] {
    let (fields, _) = bytes.as_chunks();
    core::array::from_fn(|i| u64::from_le_bytes(fields[i]))
}
