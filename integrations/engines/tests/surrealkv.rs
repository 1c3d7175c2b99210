//! A database of SurrealKV loses no key and resurrects none, whichever filters its tables have, after a kill and with
//! damaged filters. Its filters are used.
#![cfg(feature = "surrealkv")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bloomline::{BloomView, mix};
use bloomline_adapters::Bloomline;
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

/// Wraps a policy, counts its queries and keeps the filters that it creates.
struct Observed {
    policy: Arc<dyn FilterPolicy>,
    queries: AtomicU64,
    rejections: AtomicU64,
    created: Mutex<BTreeSet<Vec<u8>>>,
}

impl Observed {
    fn new(policy: Policy) -> Arc<Self> {
        let (queries, rejections) = Default::default();
        Arc::new(Self { policy: policy.unwrap(), queries, rejections, created: Mutex::default() })
    }

    /// The queries and rejections since the last call.
    fn counts(&self) -> (u64, u64) {
        (self.queries.swap(0, Ordering::Relaxed), self.rejections.swap(0, Ordering::Relaxed))
    }
}

impl FilterPolicy for Observed {
    fn name(&self) -> &str {
        self.policy.name()
    }

    fn may_contain(&self, filter: &[u8], key: &[u8]) -> bool {
        let answer = self.policy.may_contain(filter, key);
        self.queries.fetch_add(1, Ordering::Relaxed);
        self.rejections.fetch_add(u64::from(!answer), Ordering::Relaxed);
        answer
    }

    fn create_filter(&self, keys: &[Vec<u8>]) -> Vec<u8> {
        self.policy.create_filter(keys)
    }

    fn key_hash(&self, key: &[u8]) -> u64 {
        self.policy.key_hash(key)
    }

    fn create_filter_from_hashes(&self, hashes: &[u64]) -> Vec<u8> {
        let filter = self.policy.create_filter_from_hashes(hashes);
        self.created.lock().unwrap().insert(filter.clone());
        filter
    }

    fn filter_keys_per_partition(&self, partition_bytes: usize) -> usize {
        self.policy.filter_keys_per_partition(partition_bytes)
    }
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
        let observed = Observed::new(Some(policy.clone().into()));
        let mut tree = database.open(Some(observed.clone()));
        let mut model = Model::new();
        for seed in 0..2 {
            database.write(&tree, &mut model, KEYS, seed);
            assert_holds(&tree, &model, KEYS);
            database.close(tree);
            tree = database.open(Some(observed.clone()));
            assert_holds(&tree, &model, KEYS);
            compact(&tree);
            assert_holds(&tree, &model, KEYS);
        }
        assert!(model.len() > 2_500 && database.tables().len() > 5, "{} keys", model.len());

        // Each missing get queries one filter, and about 1% pass.
        observed.counts();
        let transaction = tree.begin_with_mode(Mode::ReadOnly).unwrap();
        for i in 0..KEYS {
            assert_eq!(transaction.get(key(KEYS + i)).unwrap(), None);
        }
        let (queries, rejections) = observed.counts();
        assert!(queries > KEYS * 99 / 100, "{queries} queries");
        assert!(
            (queries * 97 / 100..queries * 998 / 1000).contains(&rejections),
            "{rejections} of {queries}"
        );
        assert_eq!(policy.unusable_filters(), 0);
        drop(transaction);
        database.close(tree);
    }
}

/// The number of modules follows from the bits per key and the number of keys.
#[test]
fn no_key_is_lost_at_any_bits_per_key() {
    const KEYS: u64 = 2_000;
    for bits_per_key in [4.0, 10.0, 16.0, 24.0, 32.0] {
        let options = options().with_target_file_size(1 << 20).with_index_partition_size(64 << 10);
        let database = Database::new(options);
        let policy = Bloomline::with_bits_per_key(bits_per_key).unwrap();
        let observed = Observed::new(Some(policy.clone().into()));
        let tree = database.open(Some(observed.clone()));
        let mut model = Model::new();
        database.write(&tree, &mut model, KEYS, 0);
        compact(&tree);
        database.close(tree);
        let modules_of = |filter: &Vec<u8>| BloomView::from_compact(filter).unwrap().n_modules();
        let most_modules = observed.created.lock().unwrap().iter().map(modules_of).max();
        assert_eq!(most_modules, Some(if bits_per_key < 17.46 { 1 } else { 2 }), "{bits_per_key} bits");

        let tree = database.open(Some(observed.clone()));
        observed.counts();
        assert_holds(&tree, &model, KEYS);
        let (_, rejections) = observed.counts();
        assert!(rejections > KEYS * 3 / 4, "{rejections} rejections at {bits_per_key} bits");
        assert_eq!(policy.unusable_filters(), 0, "{bits_per_key} bits");
        database.close(tree);
    }
}

#[test]
fn no_key_is_lost_when_the_policy_of_a_database_changes() {
    const KEYS: u64 = 1_500;
    let policies: [fn() -> Policy; 3] = [bloomline, own, || None];
    for from in policies {
        for to in policies {
            let database = Database::new(options());
            let mut model = Model::new();
            let tree = database.open(from());
            database.write(&tree, &mut model, KEYS, 0);
            compact(&tree);
            database.write(&tree, &mut model, KEYS, 1);
            database.close(tree);

            // With tables of `from`, of both and of `to`.
            for (seed, policy, compacts) in
                [(2, to(), false), (3, from(), false), (4, to(), true), (5, from(), false)]
            {
                let tree = database.open(policy);
                assert_holds(&tree, &model, KEYS);
                database.write(&tree, &mut model, KEYS, seed);
                if compacts {
                    compact(&tree);
                }
                assert_holds(&tree, &model, KEYS);
                database.close(tree);
            }
        }
    }
}

/// The directory for the child process of [`every_acknowledged_key_is_found_after_a_kill`].
const CHILD: &str = "BLOOMLINE_TEST_DIRECTORY";

/// The key that change `change` of generation `generation` sets, or deletes if it is odd, and its value.
fn change_of(generation: u64, change: u64) -> (Vec<u8>, Option<Vec<u8>>) {
    let random = mix(generation << 32 | change);
    (key(random % 4_000), (!change.is_multiple_of(3)).then(|| random.to_le_bytes().repeat(20)))
}

/// Writes until it is killed. Reports each change once it is committed.
fn write_forever(directory: &Path, generation: u64) -> ! {
    let runtime = Runtime::new().unwrap();
    let _entered = runtime.enter();
    let options = options().with_path(directory.to_owned());
    let tree = TreeBuilder::with_options(options.with_filter_policy(bloomline())).build().unwrap();
    for change in 0.. {
        let (key, value) = change_of(generation, change);
        let mut transaction = tree.begin().unwrap();
        match value {
            Some(value) => transaction.set(key, value).unwrap(),
            None => transaction.delete(key).unwrap(),
        }
        runtime.block_on(transaction.commit()).unwrap();
        println!("committed {change}");
    }
    unreachable!()
}

#[test]
fn every_acknowledged_key_is_found_after_a_kill() {
    if let Ok(directory) = std::env::var(CHILD) {
        let (directory, generation) = directory.rsplit_once('#').unwrap();
        write_forever(directory.as_ref(), generation.parse().unwrap());
    }
    let database = Database::new(options());
    let mut model = Model::new();
    for generation in 0..6 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "every_acknowledged_key_is_found_after_a_kill", "--nocapture"])
            .env(CHILD, format!("{}#{generation}", database.directory.path().display()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut committed = 0;
        let mut read = |lines: &mut dyn Iterator<Item = std::io::Result<String>>, most: u64| {
            while committed < most {
                let Some(line) = lines.next() else { break };
                // The name of the test precedes the first report.
                if let Some((_, change)) = line.unwrap().split_once("committed ") {
                    assert_eq!(change, committed.to_string());
                    committed += 1;
                }
            }
        };
        read(&mut lines, 4_000 + mix(generation) % 3_000);
        child.kill().unwrap();
        child.wait().unwrap();
        read(&mut lines, u64::MAX);
        for change in 0..committed {
            match change_of(generation, change) {
                (key, Some(value)) => model.insert(key, value),
                (key, None) => model.remove(&key),
            };
        }
        // The change after the last report may have been committed as well.
        let (uncertain, value) = change_of(generation, committed);
        let tree = database.open(bloomline());
        let found = tree.begin().unwrap().get(&uncertain).unwrap();
        assert!(found == value || found.as_ref() == model.get(&uncertain));
        match found {
            Some(found) => model.insert(uncertain, found),
            None => model.remove(&uncertain),
        };
        assert_holds(&tree, &model, 4_000);
        database.close(tree);
    }
    assert!(model.len() > 2_000 && !database.tables().is_empty());
}

/// Where each of `filters` starts in one of the tables.
fn positions(tables: &[PathBuf], filters: &BTreeSet<Vec<u8>>) -> Vec<(PathBuf, usize, usize)> {
    let mut found = Vec::new();
    for table in tables {
        let bytes = fs::read(table).unwrap();
        for filter in filters {
            if let Some(start) = bytes.windows(filter.len()).position(|window| window == filter) {
                found.push((table.clone(), start, filter.len()));
            }
        }
    }
    found
}

fn flip(path: &Path, position: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[position] ^= 0x55;
    fs::write(path, bytes).unwrap();
}

#[test]
fn damaged_filters_hide_no_key() {
    let database = Database::new(options());
    let observed = Observed::new(bloomline());
    let tree = database.open(Some(observed.clone()));
    let mut model = Model::new();
    database.write(&tree, &mut model, 3_000, 0);
    observed.created.lock().unwrap().clear();
    compact(&tree);
    assert_holds(&tree, &model, 3_000);
    database.close(tree);
    let filters = positions(&database.tables(), &observed.created.lock().unwrap());
    assert!(filters.len() > 4, "{} filters", filters.len());

    let policy = Bloomline::with_bits_per_key(10.0).unwrap();
    // In the lanes, which only the engine's checksum protects, and in the last byte.
    for place in [|_| 0, |length| length / 2, |length| length - 2, |length: usize| length - 1] {
        for (table, start, length) in &filters {
            flip(table, start + place(*length));
        }
        let observed = Observed::new(Some(policy.clone().into()));
        let tree = database.open(Some(observed.clone()));
        assert_holds(&tree, &model, 3_000);
        assert_eq!(observed.counts(), (0, 0), "a filter with a wrong checksum was used");
        assert_eq!(policy.unusable_filters(), 0);
        database.close(tree);
        for (table, start, length) in &filters {
            flip(table, start + place(*length));
        }
    }
    let observed = Observed::new(bloomline());
    assert_holds(&database.open(Some(observed.clone())), &model, 3_000);
    assert!(observed.counts().1 > 3_000, "the filters are in order again");
}

#[test]
fn hashes_make_the_filter_that_their_keys_make() {
    let policy = bloomline().unwrap();
    assert_eq!(policy.name(), bloomline::sstable::FilterPolicy::NAME);
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
    }
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
