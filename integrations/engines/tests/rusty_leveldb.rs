//! In a LevelDB-format database the filter policy loses no key, whatever the database does with its tables.
//!
//! Opens databases on x86-64 only, because the cache of rusty-leveldb 4.0.2 has undefined behaviour, which crashes
//! builds for generic aarch64 (see the README).
#![cfg(feature = "rusty-leveldb")]

use std::rc::Rc;

use bloomline::sstable::FilterPolicy as Policy;
use bloomline_adapters::Bloomline;

#[test]
fn filters_have_the_name_and_the_bytes_of_the_policy() {
    let policy = Bloomline::with_bits_per_key(10.0).unwrap();
    let boxed: Rc<Box<dyn rusty_leveldb::FilterPolicy>> = policy.clone().into();
    assert_eq!(boxed.name(), Policy::NAME);
    let filter = boxed.create_filter(b"antbee", &[0, 3]);
    let mut expected = Vec::new();
    Policy::with_bits_per_key(10.0).unwrap().create_filter(["ant", "bee"], &mut expected);
    assert_eq!(filter, expected);
    assert!(boxed.key_may_match(b"ant", &filter) && boxed.key_may_match(b"bee", &filter));
    assert!(!boxed.key_may_match(b"cat", &filter));
    assert_eq!(policy.unusable_filters(), 0);
    assert!(boxed.key_may_match(b"cat", &filter[1..]) && boxed.key_may_match(b"cat", b""));
    assert_eq!(policy.unusable_filters(), 2);
}

#[cfg(target_arch = "x86_64")]
mod databases {
    use std::collections::BTreeMap;

    use bloomline::mix;
    use rusty_leveldb::{BloomPolicy, DB, FilterPolicy, Options};

    use super::*;

    /// The options of an in-memory database, which the tests open with different policies.
    struct Database(Options);

    impl Database {
        fn new() -> Self {
            // Small tables, so that few keys fill several levels.
            Self(Options {
                write_buffer_size: 64 << 10,
                max_file_size: 32 << 10,
                ..rusty_leveldb::in_memory()
            })
        }

        fn open(&self, policy: impl FilterPolicy + 'static) -> DB {
            let options = Options { filter_policy: Rc::new(Box::new(policy)), ..self.0.clone() };
            DB::open("db", options).unwrap()
        }
    }

    fn bloomline() -> Bloomline {
        Bloomline::with_bits_per_key(10.0).unwrap()
    }

    fn key(i: u64) -> Vec<u8> {
        format!("user{:019}", mix(i) / 2).into()
    }

    /// Puts, overwrites and deletes keys. Returns what the database must then contain.
    fn write(db: &mut DB, keys: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut expected = BTreeMap::new();
        for i in 0..3 * keys {
            let key = key(mix(i) % keys);
            if i % 7 == 6 {
                db.delete(&key).unwrap();
                expected.remove(&key);
            } else {
                let value = i.to_le_bytes().repeat(6);
                db.put(&key, &value).unwrap();
                expected.insert(key, value);
            }
        }
        db.compact_range(b"a", b"z").unwrap();
        expected
    }

    fn assert_holds(db: &mut DB, expected: &BTreeMap<Vec<u8>, Vec<u8>>, keys: u64) {
        for i in 0..2 * keys {
            let key = key(i);
            assert_eq!(db.get(&key).as_deref(), expected.get(&key).map(Vec::as_slice), "key {i}");
        }
    }

    #[test]
    fn no_key_is_lost_through_overwrites_deletes_and_compaction() {
        let database = Database::new();
        let mut db = database.open(bloomline());
        let expected = write(&mut db, 20_000);
        assert!(expected.len() > 12_000);
        assert_holds(&mut db, &expected, 20_000);
        db.close().unwrap();
        drop(db);
        assert_holds(&mut database.open(bloomline()), &expected, 20_000);
    }

    #[test]
    fn no_key_is_lost_when_the_policy_of_a_database_changes() {
        let database = Database::new();
        let mut db = database.open(BloomPolicy::new(10));
        let expected = write(&mut db, 2_000);
        db.close().unwrap();
        drop(db);

        let mut db = database.open(bloomline());
        assert_holds(&mut db, &expected, 2_000);
        db.compact_range(b"a", b"z").unwrap();
        assert_holds(&mut db, &expected, 2_000);
        db.close().unwrap();
        drop(db);

        assert_holds(&mut database.open(BloomPolicy::new(10)), &expected, 2_000);
    }
}
