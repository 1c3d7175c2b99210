//! A table: sorted entries in a file that is written once and read block by block, with a filter of all its keys.
//!
//! ```text
//! file:         data blocks, filter block, index block, start of the index block
//! block:        content, XXH64 of the content with the block's start as seed
//! data block:   entries (length of key, key, length of value, value)
//! index block:  entries (name of the filter policy, start of the filter block), then for each data block (its first
//!               key, its end in the file)
//! ```
//!
//! Numbers are 8 bytes, little-endian. Without its checksum, a flipped bit in the filter could hide a key. The filter has
//! one of its own, because a table whose filter is damaged can still be read.

use std::cell::Cell;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::Path;
use std::{iter, mem};

use bloomline::sstable::FilterPolicy;
use bloomline::{AlignedBytes, OwnedView};
use xxhash_rust::xxh64::xxh64;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Writes sorted entries. A database writes deleted keys as well, and inserts them into the filter: a get that misses
/// the deletion would find the key in an older table.
pub fn write(path: &Path, entries: &[(&[u8], &[u8])], policy: &FilterPolicy) -> Result<()> {
    let (mut table, mut index, mut keys) = (Vec::new(), Vec::new(), policy.builder());
    for block in entries.chunks(32) {
        let start = table.len() as u64;
        for (key, value) in block {
            keys.insert(key);
            put(key, value, &mut table);
        }
        end_block(&mut table, start);
        put(block[0].0, &(table.len() as u64).to_le_bytes(), &mut index);
    }
    let filter_start = table.len() as u64;
    keys.finish_compact(&mut table)?;
    end_block(&mut table, filter_start);
    let index_start = table.len() as u64;
    put(FilterPolicy::NAME.as_bytes(), &filter_start.to_le_bytes(), &mut table);
    table.extend(index);
    end_block(&mut table, index_start);
    table.extend(index_start.to_le_bytes());
    let written = File::create_new(path).and_then(|mut file| file.write_all(&table));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

pub struct Table {
    file: File,
    /// Of each data block, the first key and the place in the file.
    index: Vec<(Vec<u8>, Range<u64>)>,
    /// Or why there is none. Gets then read a block of the table, so a database counts such tables.
    pub filter: Result<OwnedView<AlignedBytes>>,
    /// Data blocks read.
    pub reads: Cell<u64>,
}

impl Table {
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        let index_end = len.checked_sub(8).ok_or_else(|| format!("not a table: it has {len} bytes"))?;
        let index_start = number(&read(&file, index_end..len)?);
        if index_start > index_end {
            return Err(
                format!("a table of {len} bytes cannot have its index at {index_start}: it was cut").into()
            );
        }
        let block = read_block(&file, index_start..index_end)?;
        let (mut entries, mut start) = (entries(&block), 0);
        let (policy_name, filter_start) = entries.next().ok_or("the table's index is empty")?;
        let filter_block = number(filter_start)..index_start;
        let mut place = |end| mem::replace(&mut start, number(end))..number(end);
        let index: Vec<_> = entries.map(|(first_key, end)| (first_key.to_vec(), place(end))).collect();
        let ordered = index.is_sorted_by(|(a, place), (b, next)| a <= b && place.end < next.end);
        if !ordered || start != filter_block.start || filter_block.is_empty() {
            return Err("the table's index is damaged: its blocks are not in order".into());
        }
        let filter = open_filter(&file, policy_name, filter_block);
        Ok(Self { file, index, filter, reads: Cell::new(0) })
    }

    /// Returns the key's value. `hash` is `hash_key(key, 0)`, the same for all tables.
    pub fn get(&self, key: &[u8], hash: u64) -> Result<Option<Vec<u8>>> {
        if self.filter.as_ref().is_ok_and(|filter| !filter.as_view().contains_hash(hash)) {
            return Ok(None); // definitely absent
        }
        let blocks = self.index.partition_point(|(first_key, _)| &**first_key <= key);
        let Some((_, place)) = self.index[..blocks].last() else { return Ok(None) };
        let block = read_block(&self.file, place.clone())?;
        self.reads.set(self.reads.get() + 1);
        Ok(entries(&block).find(|(found, _)| *found == key).map(|(_, value)| value.to_vec()))
    }
}

fn open_filter(file: &File, policy_name: &[u8], place: Range<u64>) -> Result<OwnedView<AlignedBytes>> {
    if policy_name != FilterPolicy::NAME.as_bytes() {
        return Err(format!("another policy made it: {}", policy_name.escape_ascii()).into());
    }
    Ok(OwnedView::from_compact(AlignedBytes::copy_of(&read_block(file, place)?)?)?)
}

/// With several threads, use `read_exact_at` (Unix) or `seek_read` (Windows) instead.
fn read(mut file: &File, place: Range<u64>) -> Result<Vec<u8>> {
    let mut bytes = vec![0; place.end.saturating_sub(place.start) as usize];
    file.seek(SeekFrom::Start(place.start))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The content of a block.
fn read_block(file: &File, place: Range<u64>) -> Result<Vec<u8>> {
    let (start, mut block) = (place.start, read(file, place)?);
    let checksum = block.split_off(block.len().saturating_sub(8));
    let is_intact = number(&checksum) == xxh64(&block, start);
    if is_intact { Ok(block) } else { Err(format!("the block at {start} is damaged").into()) }
}

fn end_block(table: &mut Vec<u8>, start: u64) {
    let checksum = xxh64(&table[start as usize..], start);
    table.extend(checksum.to_le_bytes());
}

fn put(key: &[u8], value: &[u8], block: &mut Vec<u8>) {
    for part in [key, value] {
        block.extend((part.len() as u64).to_le_bytes());
        block.extend(part);
    }
}

fn entries(mut block: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut part = move || block.split_off(..8).and_then(|len| block.split_off(..number(len) as usize));
    iter::from_fn(move || part().zip(part()))
}

fn number(little_endian: &[u8]) -> u64 {
    little_endian.iter().rfold(0, |number, byte| number << 8 | u64::from(*byte))
}
