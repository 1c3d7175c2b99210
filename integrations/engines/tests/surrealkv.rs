//! A database of SurrealKV loses no key and resurrects none, whichever filters its tables have, after a kill and with
//! damaged filters. Its filters are used.
#![cfg(feature = "surrealkv")]

#[path = "surrealkv/observed.rs"]
mod observed;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use bloomline::{BloomView, mix};
use bloomline_adapters::Bloomline;
use observed::Observed;
use surrealkv::{
    CipherPreference, CompactRangeOptions, FilterPolicy, Mode, Options, SoftwareKeyManager, Transaction,
    Tree, TreeBuilder,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

type Policy = Option<Arc<dyn FilterPolicy>>;
/// What a database must contain.
type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Small tables with small partitions, so that few keys fill many of both.
fn options() -> Options {
    Options::default()
        .with_max_memtable_size(256 << 10)
        .with_block_size(1 << 10)
        .with_target_file_size(32 << 10)
        .with_index_partition_size(1 << 10)
}

fn bloomline() -> Policy {
    Some(Bloomline::with_bits_per_key(10.0).unwrap().into())
}

fn own() -> Policy {
    Options::default().filter_policy
}

struct Database {
    runtime: Runtime,
    directory: TempDir,
    options: Options,
}

impl Database {
    fn new(options: Options) -> Self {
        Self { runtime: Runtime::new().unwrap(), directory: tempfile::tempdir().unwrap(), options }
    }

    fn open(&self, policy: Policy) -> Tree {
        let _runtime = self.runtime.enter();
        let options = self.options.clone().with_path(self.directory.path().to_owned());
        TreeBuilder::with_options(options.with_filter_policy(policy)).build().unwrap()
    }

    fn close(&self, tree: Tree) {
        self.runtime.block_on(tree.close()).unwrap();
    }

    fn commit(&self, tree: &Tree, change: impl FnOnce(&mut Transaction)) {
        let mut transaction = tree.begin().unwrap();
        change(&mut transaction);
        self.runtime.block_on(transaction.commit()).unwrap();
    }

    /// Sets, overwrites and deletes keys below `keys`, in 3 × `keys` operations.
    fn write(&self, tree: &Tree, model: &mut Model, keys: u64, seed: u64) {
        for batch in 0..keys.div_ceil(50) {
            self.commit(tree, |transaction| {
                for operation in 150 * batch..150 * (batch + 1) {
                    let random = mix(seed << 32 | operation);
                    let key = key(random % keys);
                    match operation % 20 {
                        6 | 13 => {
                            transaction.delete(&key).unwrap();
                            model.remove(&key);
                        }
                        19 => {
                            transaction.soft_delete(&key).unwrap();
                            model.remove(&key);
                        }
                        18 if batch % 16 == 0 => {
                            let end = [&key[..], &[b'f'; 2]].concat();
                            transaction.delete_range(&key, &end).unwrap();
                            model.retain(|other, _| *other < key || *other >= end);
                        }
                        kind => {
                            let value = random.to_le_bytes().repeat(if kind < 10 { 2 } else { 12 });
                            let set = if kind == 3 { Transaction::replace } else { Transaction::set };
                            set(transaction, &key, &value).unwrap();
                            model.insert(key, value);
                        }
                    }
                }
            });
        }
    }

    fn tables(&self) -> Vec<PathBuf> {
        let entries = self.directory.path().join("sstables").read_dir().unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

/// Keys of several lengths.
fn key(i: u64) -> Vec<u8> {
    let text = format!("{:016x}/{i:09}", mix(i));
    text[..text.len() - i as usize % 4].into()
}

fn compact(tree: &Tree) {
    tree.compact_range(None, None, &CompactRangeOptions::default()).unwrap();
}

fn assert_holds(tree: &Tree, model: &Model, keys: u64) {
    let transaction = tree.begin_with_mode(Mode::ReadOnly).unwrap();
    for i in 0..2 * keys {
        let key = key(i);
        assert_eq!(transaction.get(&key).unwrap().as_ref(), model.get(&key), "key {i}");
    }
}

/// Opens a database with each policy in turn. Before and after it writes, and compacts if `compacts`, it holds what it must.
fn write_with(database: &Database, model: &mut Model, keys: u64, turns: &[(Policy, bool)]) -> Tree {
    let mut last = None;
    for (seed, (policy, compacts)) in (0..).zip(turns) {
        last.into_iter().for_each(|tree| database.close(tree));
        let tree = database.open(policy.clone());
        assert_holds(&tree, model, keys);
        database.write(&tree, model, keys, seed);
        if *compacts {
            compact(&tree);
        }
        assert_holds(&tree, model, keys);
        last = Some(tree);
    }
    last.unwrap()
}

#[test]
fn no_key_is_lost_through_overwrites_deletes_compactions_and_reopening() {
    let vlog = options().with_enable_vlog(true).with_vlog_value_threshold(64);
    let keys = Arc::new(SoftwareKeyManager::new([7; 32]));
    let encrypted = options().with_encryption(keys, CipherPreference::Auto);
    for options in [options(), vlog, options().with_versioning(true, 0), encrypted] {
        const KEYS: u64 = 5_000;
        let database = Database::new(options);
        let policy = Bloomline::with_bits_per_key(10.0).unwrap();
        let observed = Observed::new(policy.clone().into());
        let mut model = Model::new();
        let turns = [false, true].map(|compacts| (Some(observed.clone() as _), compacts));
        let tree = write_with(&database, &mut model, KEYS, &turns);
        assert!(model.len() > 2_500 && database.tables().len() > 5, "{} keys", model.len());

        // Each missing get queries one filter, and about 1% pass.
        observed.counts();
        let transaction = tree.begin_with_mode(Mode::ReadOnly).unwrap();
        for i in 0..KEYS {
            assert_eq!(transaction.get(key(KEYS + i)).unwrap(), None);
        }
        let (queries, rejections) = observed.counts();
        assert!(queries > KEYS * 99 / 100, "{queries} queries");
        let expected = queries * 97 / 100..queries * 998 / 1000;
        assert!(expected.contains(&rejections), "{rejections} of {queries}");
        assert_eq!(policy.unusable_filters(), 0);
        drop(transaction);
        database.close(tree);
    }
}

#[test]
fn no_key_is_lost_when_the_policy_of_a_database_changes() {
    let policies: [fn() -> Policy; 3] = [bloomline, own, || None];
    for from in policies {
        for to in policies {
            // In the end, there are tables of both.
            let turns = [
                (from(), true),
                (from(), false),
                (to(), false),
                (from(), false),
                (to(), true),
                (from(), false),
            ];
            let database = Database::new(options());
            database.close(write_with(&database, &mut Model::new(), 1_500, &turns));
        }
    }
}

/// The folder of the database and the first change, for the child process of [`every_acknowledged_change_survives_a_kill`].
const CHILD: &str = "BLOOMLINE_TEST_CHILD";
/// Change `i` sets key `i` and deletes the key that was set so many changes before.
const HELD: u64 = 1_000;

/// Writes until it is killed. Reports each change once it is committed.
fn write_forever(directory: &str, first: u64) {
    let runtime = Runtime::new().unwrap();
    let _entered = runtime.enter();
    let options = options().with_path(directory.into()).with_filter_policy(bloomline());
    let tree = TreeBuilder::with_options(options).build().unwrap();
    for i in first.. {
        let mut transaction = tree.begin().unwrap();
        transaction.set(key(i), &[7; 160]).unwrap();
        if let Some(old) = i.checked_sub(HELD) {
            transaction.delete(key(old)).unwrap();
        }
        runtime.block_on(transaction.commit()).unwrap();
        println!("committed");
    }
}

#[test]
fn every_acknowledged_change_survives_a_kill() {
    if let Ok(child) = std::env::var(CHILD) {
        let (directory, first) = child.rsplit_once('#').unwrap();
        write_forever(directory, first.parse().unwrap());
    }
    let database = Database::new(options());
    let mut n = 0;
    for generation in 0..6 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "every_acknowledged_change_survives_a_kill", "--nocapture"])
            .env(CHILD, format!("{}#{n}", database.directory.path().display()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The name of the test precedes the first report.
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut reports = lines.filter(|line| line.contains("committed"));
        n += reports.by_ref().take(4_000 + mix(generation) as usize % 3_000).count() as u64;
        child.kill().unwrap();
        child.wait().unwrap();
        n += reports.count() as u64;
        let tree = database.open(bloomline());
        let transaction = tree.begin().unwrap();
        // Change `n` may have been committed as well. The next process repeats it.
        for i in (0..n).filter(|i| i + HELD != n) {
            assert_eq!(transaction.get(key(i)).unwrap().is_some(), i + HELD > n, "key {i} of {n}");
        }
        drop(transaction);
        database.close(tree);
    }
    assert!(!database.tables().is_empty());
}

#[test]
fn damaged_filters_hide_no_key() {
    let database = Database::new(options());
    let observed = Observed::new(bloomline().unwrap());
    let tree = database.open(Some(observed.clone()));
    let mut model = Model::new();
    database.write(&tree, &mut model, 3_000, 0);
    observed.created.lock().unwrap().clear();
    compact(&tree);
    database.close(tree);
    let filters = observed.created.lock().unwrap();
    assert!(filters.len() > 4, "{} filters", filters.len());

    let policy = Bloomline::with_bits_per_key(10.0).unwrap();
    // In the lanes, which only the engine's checksum protects, and in the last byte. At last, they are in order again.
    let tables: Vec<_> = database.tables().into_iter().map(|path| (fs::read(&path).unwrap(), path)).collect();
    for place in 0..5 {
        for (bytes, path) in &tables {
            let mut damaged = bytes.clone();
            for filter in filters.iter() {
                let start = bytes.windows(filter.len()).position(|window| window == filter);
                let n = filter.len();
                if let (Some(start), Some(at)) = (start, [0, n / 2, n - 2, n - 1].get(place)) {
                    damaged[start + at] ^= 0x55;
                }
            }
            fs::write(path, damaged).unwrap();
        }
        let observed = Observed::new(policy.clone().into());
        let tree = database.open(Some(observed.clone()));
        assert_holds(&tree, &model, 3_000);
        let (queries, rejections) = observed.counts();
        assert_eq!(queries > 0, place == 4, "filters are used if their checksums are right");
        assert_eq!(rejections > 3_000, place == 4);
        assert_eq!(policy.unusable_filters(), 0);
        database.close(tree);
    }
}

/// The number of modules follows from the bits per key and the number of keys.
#[test]
fn hashes_make_the_filter_that_their_keys_make() {
    for (bits_per_key, most_modules) in [(4.0, 1), (10.0, 1), (24.0, 2)] {
        let policy: Arc<dyn FilterPolicy> = Bloomline::with_bits_per_key(bits_per_key).unwrap().into();
        let mut numbers_of_modules = BTreeSet::new();
        for n_keys in [0, 1, 2, 33, 50, 51, 1000, 20_000] {
            let mut keys: Vec<Vec<u8>> = (0..n_keys).map(key).collect();
            let distinct = policy.create_filter(&keys);
            // Versions of a key, next to each other and apart.
            keys.extend_from_within(..keys.len() / 3);
            keys.extend_from_within(..keys.len() / 7);
            let hashes: Vec<u64> = keys.iter().map(|key| policy.key_hash(key)).collect();
            let filter = policy.create_filter_from_hashes(&hashes);
            assert_eq!(filter, policy.create_filter(&keys), "{n_keys} keys");
            assert_eq!(filter, distinct, "{n_keys} keys");
            assert!(keys.iter().all(|key| policy.may_contain(&filter, key)));
            numbers_of_modules.insert(BloomView::from_compact(&filter).unwrap().n_modules());
        }
        assert_eq!(numbers_of_modules.last(), Some(&most_modules), "{bits_per_key} bits");
    }
}

#[test]
fn a_partitions_keys_make_a_filter_of_its_size() {
    let policy = bloomline().unwrap();
    assert_eq!(policy.name(), bloomline::sstable::FilterPolicy::NAME);
    for bytes in [512, 1000, 4096, 16384] {
        let keys: Vec<_> = (0..policy.filter_keys_per_partition(bytes) as u64).map(key).collect();
        // Filters are rounded up to whole blocks.
        assert!((bytes - 64..=bytes + 64).contains(&policy.create_filter(&keys).len()), "{bytes} bytes");
    }
    let n_keys = [0, 1, 8, 16384, usize::MAX].map(|bytes| policy.filter_keys_per_partition(bytes));
    assert_eq!(n_keys[..4], [1, 1, 6, 16384 * 8 / 10]);
    assert!(n_keys[4] > usize::MAX / 2);
}

#[test]
fn bytes_that_are_not_a_filter_are_counted_and_hide_no_key() {
    let policy = Bloomline::with_bits_per_key(10.0).unwrap();
    let in_engine: Arc<dyn FilterPolicy> = policy.clone().into();
    let filter = in_engine.create_filter(&[b"ant".into()]);
    assert!(in_engine.may_contain(&filter, b"ant") && !in_engine.may_contain(&filter, b"bee"));
    assert_eq!(policy.unusable_filters(), 0);
    assert!([&filter[1..], &[], &[0]].iter().all(|bytes| in_engine.may_contain(bytes, b"bee")));
    assert_eq!(policy.unusable_filters(), 3);
}
