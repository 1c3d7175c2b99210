//! The table of the example `sstable` notices damage: no key is lost in silence, and nothing panics.

#[path = "../sstable/table.rs"]
mod table;

use std::{env, fs, process};

use bloomline::hash_key;
use bloomline::sstable::FilterPolicy;
use table::Table;

#[test]
fn a_changed_byte_or_a_cut_is_an_error_or_does_no_harm() {
    let path = env::temp_dir().join(format!("bloomline-damaged-{}", process::id()));
    // Two data blocks.
    let keys: Vec<String> = (0..34).map(|i| format!("user{i}")).collect();
    let mut entries: Vec<_> = keys.iter().map(|key| (key.as_bytes(), key.as_bytes())).collect();
    entries.sort();
    table::write(&path, &entries, &FilterPolicy::with_bits_per_key(10.0).unwrap()).unwrap();
    let whole = fs::read(&path).unwrap();

    // The number of gets that found their key, and of errors.
    let gets = || match Table::open(&path) {
        Err(_) => (0, 1),
        Ok(table) => {
            let values = keys.iter().map(|key| table.get(key.as_bytes(), hash_key(key, 0)));
            let (found, failed): (Vec<_>, Vec<_>) =
                keys.iter().zip(values).partition(|(_, value)| value.is_ok());
            for (key, value) in &found {
                assert_eq!(value.as_ref().unwrap().as_deref(), Some(key.as_bytes()), "{key}");
            }
            assert!(table.filter.is_some());
            (found.len(), failed.len())
        }
    };
    assert_eq!(gets(), (keys.len(), 0));
    for place in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        fs::write(&path, &damaged).unwrap();
        assert_ne!(gets().1, 0, "byte {place}");
        fs::write(&path, &whole[..place]).unwrap();
        assert_ne!(gets().1, 0, "cut at {place}");
    }
    fs::remove_file(&path).unwrap();
}
