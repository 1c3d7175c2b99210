//! In databases and tables of LevelDB's format no key is lost, and their filters are the policy's.
#![cfg(any(feature = "rusty-leveldb", feature = "sstable"))]

use bloomline::mix;
use bloomline_adapters::Bloomline;

macro_rules! filters_have_the_bytes_of_the_policy {
    ($boxed:ty) => {
        #[test]
        fn filters_have_the_bytes_of_the_policy() {
            let policy = Bloomline::with_bits_per_key(10.0).unwrap();
            let boxed: $boxed = policy.clone().into();
            assert_eq!(boxed.name(), bloomline::sstable::FilterPolicy::NAME);
            let filter = boxed.create_filter(b"antbee", &[0, 3]);
            let expected = bloomline::sstable::FilterPolicy::with_bits_per_key(10.0).unwrap();
            let mut bytes = Vec::new();
            expected.create_filter(["ant", "bee"], &mut bytes);
            assert_eq!(filter, bytes);
            assert!(boxed.key_may_match(b"ant", &filter) && boxed.key_may_match(b"bee", &filter));
            assert!(!boxed.key_may_match(b"cat", &filter));
            assert_eq!(policy.unusable_filters(), 0);
            assert!(boxed.key_may_match(b"cat", &filter[1..]) && boxed.key_may_match(b"cat", b""));
            assert_eq!(policy.unusable_filters(), 2);
        }
    };
}

#[cfg(feature = "rusty-leveldb")]
mod rusty_leveldb_databases {
    use std::rc::Rc;

    use rusty_leveldb::{BloomPolicy, DB, FilterPolicy, Options};

    use super::*;

    type Policy = Rc<Box<dyn FilterPolicy>>;

    filters_have_the_bytes_of_the_policy!(Policy);

    fn ours() -> Policy {
        Bloomline::with_bits_per_key(10.0).unwrap().into()
    }

    fn own() -> Policy {
        Rc::new(Box::new(BloomPolicy::new(10)))
    }

    fn key(i: u64) -> Vec<u8> {
        format!("user{:019}", mix(i) / 2).into()
    }

    #[test]
    #[cfg_attr(not(target_arch = "x86_64"), ignore = "the engine's cache can crash it (see the README)")]
    fn no_key_is_lost_and_none_comes_back_whichever_policies_a_database_has() {
        for ([first, then], keys) in
            [([ours as fn() -> Policy, ours], 8_000), ([own, ours], 2_000), ([ours, own], 2_000)]
        {
            // Small tables, so that few keys fill several levels. The database is in memory.
            let options = Options {
                write_buffer_size: 64 << 10,
                max_file_size: 32 << 10,
                ..rusty_leveldb::in_memory()
            };
            let open = |policy| DB::open("db", Options { filter_policy: policy, ..options.clone() }).unwrap();
            let mut db = open(first());
            let mut expected = vec![None; keys as usize];
            for i in 0..3 * keys {
                let n = mix(i) % keys;
                let value = (i % 7 != 6).then(|| i.to_le_bytes().repeat(6));
                match &value {
                    Some(value) => db.put(&key(n), value).unwrap(),
                    None => db.delete(&key(n)).unwrap(),
                }
                expected[n as usize] = value;
            }
            assert!(expected.iter().flatten().count() as u64 > keys * 6 / 10);
            // The second half was never written.
            expected.resize(2 * keys as usize, None);
            let holds = |db: &mut DB| {
                for (i, value) in (0..).zip(&expected) {
                    assert_eq!(db.get(&key(i)).as_deref(), value.as_deref(), "key {i}");
                }
            };
            db.compact_range(b"a", b"z").unwrap();
            holds(&mut db);
            db.close().unwrap();
            drop(db);

            let mut db = open(then());
            holds(&mut db);
            db.compact_range(b"a", b"z").unwrap();
            holds(&mut db);
        }
    }
}

#[cfg(feature = "sstable")]
mod sstable_tables {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use sstable::filter::FilterPolicy;
    use sstable::{Options, Table, TableBuilder};

    use super::*;

    filters_have_the_bytes_of_the_policy!(Arc<Box<dyn FilterPolicy>>);

    const KEYS: u64 = 20_000;

    fn key(i: u64) -> Vec<u8> {
        format!("{i:06}/{:x}", mix(i)).into()
    }

    /// A policy that counts what it rejects.
    struct Observed(Arc<Box<dyn FilterPolicy>>, Arc<AtomicU64>);

    impl FilterPolicy for Observed {
        fn name(&self) -> &'static str {
            self.0.name()
        }

        fn create_filter(&self, keys: &[u8], offsets: &[usize]) -> Vec<u8> {
            self.0.create_filter(keys, offsets)
        }

        fn key_may_match(&self, key: &[u8], filter: &[u8]) -> bool {
            let answer = self.0.key_may_match(key, filter);
            self.1.fetch_add(u64::from(!answer), Ordering::Relaxed);
            answer
        }
    }

    #[test]
    fn no_key_is_lost_and_few_others_are_found() {
        let (policy, rejections) = (Bloomline::with_bits_per_key(10.0).unwrap(), Arc::new(AtomicU64::new(0)));
        let observed = Observed(policy.clone().into(), Arc::clone(&rejections));
        let options = Options { filter_policy: Arc::new(Box::new(observed)), ..Options::default() };
        let mut bytes = Vec::new();
        let mut builder = TableBuilder::new(options.clone(), &mut bytes);
        for i in 0..KEYS {
            builder.add(&key(2 * i), &mix(i).to_le_bytes()).unwrap();
        }
        builder.finish().unwrap();
        // The name by which other programs find the filters.
        let name = format!("filter.{}", bloomline::sstable::FilterPolicy::NAME).into_bytes();
        assert!(bytes.windows(name.len()).any(|window| window == name));

        let size = bytes.len();
        let table = Table::new(options, Box::new(bytes), size).unwrap();
        // Without the last key, because the missing key after it lies in no data block.
        for i in 0..KEYS - 1 {
            assert_eq!(table.get(&key(2 * i)).unwrap().as_deref(), Some(&mix(i).to_le_bytes()[..]));
            assert_eq!(table.get(&key(2 * i + 1)).unwrap(), None);
        }
        // About 1% pass, or fewer, as filters of few keys are rounded up.
        let passed = KEYS - 1 - rejections.load(Ordering::Relaxed);
        assert!((60..=220).contains(&passed), "{passed} of {KEYS}");
        assert_eq!(policy.unusable_filters(), 0);
    }
}
