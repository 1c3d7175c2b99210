//! The table of the example `sstable` opens with filters of any bits per key, and notices damage: no key is lost in
//! silence, and nothing panics. A table whose filter alone is damaged is read without it.

#[path = "../sstable/table.rs"]
mod table;

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use bloomline::hash_key;
use bloomline::sstable::FilterPolicy;
use table::Table;
use xxhash_rust::xxh64::xxh64;

/// A table of two data blocks, equal in length.
struct Case {
    path: PathBuf,
    keys: Vec<String>,
    whole: Vec<u8>,
}

impl Case {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let keys: Vec<_> = (0..64).map(|i| format!("user{i:02}")).collect();
        let entries: Vec<_> = keys.iter().map(|key| (key.as_bytes(), key.as_bytes())).collect();
        _ = fs::remove_file(&path); // of an earlier run
        table::write(&path, &entries, &FilterPolicy::with_bits_per_key(10.0).unwrap()).unwrap();
        let whole = fs::read(&path).unwrap();
        Self { path, keys, whole }
    }

    /// Gets of all keys. The error is why the table does not open.
    fn gets(&self, bytes: &[u8]) -> Result<Gets, String> {
        fs::write(&self.path, bytes).unwrap();
        let table = Table::open(&self.path).map_err(|error| error.to_string())?;
        let values = self.keys.iter().map(|key| table.get(key.as_bytes(), hash_key(key, 0)));
        let (found, failed): (Vec<_>, Vec<_>) =
            self.keys.iter().zip(values).partition(|(_, value)| value.is_ok());
        for (key, value) in &found {
            assert_eq!(value.as_ref().unwrap().as_deref(), Some(key.as_bytes()), "{key}");
        }
        Ok(Gets {
            found: found.len(),
            failed: failed.len(),
            filter: table.filter.map(drop).map_err(|e| e.to_string()),
        })
    }

    fn index_start(&self) -> usize {
        u64::from_le_bytes(*self.whole.last_chunk().unwrap()) as usize
    }

    /// The index block begins with a name and the start of the filter block.
    fn filter_block(&self) -> Range<usize> {
        let index = &self.whole[self.index_start()..];
        let start = &index[8 + FilterPolicy::NAME.len() + 8..];
        u64::from_le_bytes(*start.first_chunk().unwrap()) as usize..self.index_start()
    }
}

#[derive(Debug, PartialEq)]
struct Gets {
    found: usize,
    failed: usize,
    filter: Result<(), String>,
}

/// The filters are short, of one module and of two.
#[test]
fn tables_of_any_bits_per_key_find_their_keys() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bits");
    for n_keys in [1_000, 100_000] {
        let keys: Vec<_> = (0..n_keys).map(|i| format!("user{i:06}")).collect();
        let entries: Vec<_> = keys.iter().map(|key| (key.as_bytes(), key.as_bytes())).collect();
        for bits_per_key in [4.0, 10.0, 16.0, 24.0, 32.0] {
            _ = fs::remove_file(&path); // of an earlier run
            table::write(&path, &entries, &FilterPolicy::with_bits_per_key(bits_per_key).unwrap()).unwrap();
            let table = Table::open(&path).unwrap();
            let get = |key: &str| table.get(key.as_bytes(), hash_key(key, 0)).unwrap();
            let mut asked = keys.iter().step_by(n_keys / 1_000);
            // Each of these sorts right behind a present key.
            assert!(asked.clone().all(|key| get(&format!("{key}\n")).is_none()));
            assert!(table.reads.get() < 250, "{bits_per_key}: {} reads", table.reads.get());
            assert!(asked.all(|key| get(key).as_deref() == Some(key.as_bytes())), "{bits_per_key}");
        }
    }
}

#[test]
fn a_changed_byte_or_a_cut_is_an_error_or_does_no_harm() {
    let case = Case::new("damaged");
    let (all, filter) = (case.keys.len(), case.filter_block());
    assert_eq!(case.gets(&case.whole), Ok(Gets { found: all, failed: 0, filter: Ok(()) }));
    for place in 0..case.whole.len() {
        let mut damaged = case.whole.clone();
        damaged[place] ^= 1;
        let gets = case.gets(&damaged);
        if filter.contains(&place) {
            let error = Err(format!("the block at {} is damaged", filter.start));
            assert_eq!(gets, Ok(Gets { found: all, failed: 0, filter: error }), "byte {place}");
        } else {
            assert!(gets.is_err() || gets.is_ok_and(|gets| gets.failed > 0), "byte {place}");
        }
        let error = case.gets(&case.whole[..place]).unwrap_err();
        let says = ["not a table: it has ", "a table of ", "the block at ", "the table's index "];
        assert!(says.iter().any(|says| error.starts_with(says)), "cut at {place}: {error}");
    }
}

#[test]
fn a_filter_of_another_policy_is_not_asked() {
    let case = Case::new("policy");
    let (start, mut table) = (case.index_start(), case.whole.clone());
    table[start + 8] ^= 1;
    let end = table.len() - 16;
    let checksum = xxh64(&table[start..end], start as u64);
    table[end..][..8].copy_from_slice(&checksum.to_le_bytes());
    let filter = Err("another policy made it: cloomline.BlockedBloom2".into());
    assert_eq!(case.gets(&table), Ok(Gets { found: case.keys.len(), failed: 0, filter }));
}

#[test]
fn blocks_in_each_other_s_place_are_an_error() {
    let case = Case::new("swapped");
    let mut swapped = case.whole.clone();
    let data = &mut swapped[..case.filter_block().start];
    data.rotate_left(data.len() / 2);
    assert_eq!(case.gets(&swapped), Ok(Gets { found: 0, failed: case.keys.len(), filter: Ok(()) }));
}

#[test]
fn an_impossible_index_is_an_error_in_spite_of_its_checksum() {
    let case = Case::new("forged");
    let start = case.index_start();
    let (before, index) = (&case.whole[..start], &case.whole[start..case.whole.len() - 16]);
    let forged = |index: &[u8]| {
        let ends = [xxh64(index, start as u64), start as u64].map(u64::to_le_bytes);
        case.gets(&[before, index, ends.as_flattened()].concat())
    };
    assert!(forged(index).is_ok());
    let with = |at: usize, part: &[u8]| [&index[..at], part, &index[at + part.len()..]].concat();
    // The first entry: length, name, length 8, start of the filter block. The last entries: length 6, first key, length
    // 8, end of the block.
    let (filter_start, last) = (8 + FilterPolicy::NAME.len() + 8, index.len() - 30);
    for end in [start as u64, start as u64 + 1, 1 << 40, 1 << 63, u64::MAX].map(u64::to_le_bytes) {
        for at in [filter_start, last - 8, index.len() - 8] {
            assert!(forged(&with(at, &end)).is_err(), "{end:?} at {at}");
        }
        let data = with(index.len() - 8, &end);
        let both = [&data[..filter_start], &end, &data[filter_start + 8..]].concat();
        assert!(forged(&both).is_err(), "{end:?}");
    }
    // Blocks whose keys are not in order.
    assert!(forged(&with(last + 8, b"a")).is_err());
    // Cut short, as if the last block did not exist.
    for len in 0..index.len() {
        assert!(forged(&index[..len]).is_err(), "{len}");
    }
}
