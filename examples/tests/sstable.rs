//! The table of the example `sstable` opens with filters of any bits per key, and notices damage: no key is lost in
//! silence, and nothing panics.

#[path = "../sstable/table.rs"]
mod table;

use std::fs;
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

    /// The number of gets that found their key, and of errors.
    fn gets(&self, bytes: &[u8]) -> (usize, usize) {
        fs::write(&self.path, bytes).unwrap();
        let Ok(table) = Table::open(&self.path) else { return (0, 1) };
        assert!(table.filter.is_some());
        let values = self.keys.iter().map(|key| table.get(key.as_bytes(), hash_key(key, 0)));
        let (found, failed): (Vec<_>, Vec<_>) =
            self.keys.iter().zip(values).partition(|(_, value)| value.is_ok());
        for (key, value) in &found {
            assert_eq!(value.as_ref().unwrap().as_deref(), Some(key.as_bytes()), "{key}");
        }
        (found.len(), failed.len())
    }

    fn index_start(&self) -> usize {
        u64::from_le_bytes(*self.whole.last_chunk().unwrap()) as usize
    }
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
    assert_eq!(case.gets(&case.whole), (case.keys.len(), 0));
    for place in 0..case.whole.len() {
        let mut damaged = case.whole.clone();
        damaged[place] ^= 1;
        assert_ne!(case.gets(&damaged).1, 0, "byte {place}");
        assert_ne!(case.gets(&case.whole[..place]).1, 0, "cut at {place}");
    }
}

#[test]
fn blocks_in_each_other_s_place_are_an_error() {
    let case = Case::new("swapped");
    let mut swapped = case.whole.clone();
    let (data, _) = swapped.split_at_mut(case.index_start());
    data.rotate_left(data.len() / 2);
    assert_eq!(case.gets(&swapped), (0, case.keys.len()));
}

#[test]
fn an_impossible_index_is_an_error_in_spite_of_its_checksum() {
    let case = Case::new("forged");
    let start = case.index_start();
    let (data, index) = (&case.whole[..start], &case.whole[start..case.whole.len() - 16]);
    let forged = |index: &[u8]| {
        let ends = [xxh64(index, start as u64), start as u64].map(u64::to_le_bytes);
        case.gets(&[data, index, ends.as_flattened()].concat())
    };
    assert_eq!(forged(index), (case.keys.len(), 0));
    let with = |at: usize, part: &[u8]| [&index[..at], part, &index[at + part.len()..]].concat();
    // The last entries: length 6, first key, length 8, end of the block.
    let last = index.len() - 30;
    for at in [last - 8, index.len() - 8] {
        for end in [start as u64 + 1, 1 << 40, 1 << 63, u64::MAX] {
            assert_eq!(forged(&with(at, &end.to_le_bytes())), (0, 1), "{end}");
        }
    }
    // Blocks whose keys are not in order.
    assert_eq!(forged(&with(last + 8, b"a")), (0, 1));
    // Cut short, as if the last block did not exist.
    for len in 0..index.len() {
        assert_eq!(forged(&index[..len]), (0, 1), "{len}");
    }
}
