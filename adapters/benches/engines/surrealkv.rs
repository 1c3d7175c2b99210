//! SurrealKV.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Result, ensure};
use bloomline::mix;
use bloomline_adapters::Bloomline;
use surrealkv::inspect::dump_sst;
use surrealkv::{CompactRangeOptions, Durability, FilterPolicy, Mode, RibbonFilter, Tree, TreeBuilder};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::report::{Options, Row, Table, costs, microseconds};

type Policy = Option<Arc<dyn FilterPolicy>>;
type Key = fn(u64) -> String;

/// Gets of each kind that a database does in its turn of a round.
const GETS: u64 = 5_000;

pub fn measure(options: &Options) -> Result<Vec<Table>> {
    // Present keys are those of even numbers, missing keys those of odd numbers: each lies between present ones.
    let keys: [(&str, Key); 2] = [
        ("keys in random order", |i| format!("{:016x}", mix(i))),
        ("decimal keys in sequence", |i| format!("{i:016}")),
    ];
    let runtime = Runtime::new()?;
    keys.into_iter().map(|(name, key)| table(options, &runtime, name, key)).collect()
}

fn table(options: &Options, runtime: &Runtime, keys: &str, key: Key) -> Result<Table> {
    let own = surrealkv::Options::default().filter_policy;
    let bloomline = |bits| -> Result<Policy> { Ok(Some(Bloomline::with_bits_per_key(bits)?.into())) };
    // SurrealKV's own filter takes a byte more than 10 bits per key, bloomline up to 64 bytes more.
    let filters: [(&str, Policy); 4] = [
        ("none", None),
        ("SurrealKV's default, 10 bits per key", own),
        ("SurrealKV's RibbonFilter, 10 bits per key", Some(Arc::new(RibbonFilter::new(10)))),
        ("bloomline, 10 bits per key", bloomline(10.0)?),
    ];
    const OWN: usize = 1;

    let mut databases = Vec::new();
    for (_, policy) in &filters {
        databases.push(Database::write(runtime, policy.clone(), options.keys, key)?);
    }
    let kinds: [(u64, Vec<Vec<f64>>); 2] = [1, 0].map(|odd| (odd, Vec::new()));
    let [missing, present] = kinds.map(|(odd, mut rounds)| -> Result<_> {
        // The first round warms the caches.
        for round in 0..=options.rounds {
            let chosen: Vec<String> =
                (0..GETS).map(|i| key(2 * (mix((round as u64) << 32 | i) % options.keys) + odd)).collect();
            let mut times = vec![0.0; databases.len()];
            for turn in 0..databases.len() {
                let turn = (turn + round) % databases.len();
                times[turn] = databases[turn].get_all(&chosen, odd == 0)?;
            }
            if round > 0 {
                rounds.push(times);
            }
        }
        Ok(costs(&rounds, OWN))
    });
    let (missing, present) = (missing?, present?);

    let mut rows = Vec::new();
    for (i, (database, (filter, policy))) in databases.into_iter().zip(filters).enumerate() {
        let (filter_bytes, tables) = database.filter_bytes()?;
        let (queries, false_positives) = database.count(runtime, policy, options.keys, key)?;
        eprintln!("{filter}: {tables} tables");
        rows.push(Row {
            filter: filter.to_owned(),
            filter_bytes,
            queries,
            false_positives,
            missing: missing[i],
            present: present[i],
        });
    }
    Ok(Table { title: format!("SurrealKV 1.2, local files, {keys}"), note: String::new(), rows })
}

struct Database {
    tree: Tree,
    directory: TempDir,
}

fn open(path: &Path, policy: Policy) -> Result<Tree> {
    Ok(TreeBuilder::new().with_path(path.to_owned()).with_filter_policy(policy).build()?)
}

impl Database {
    fn write(runtime: &Runtime, policy: Policy, keys: u64, key: Key) -> Result<Self> {
        let _runtime = runtime.enter();
        let directory = tempfile::tempdir()?;
        let tree = open(directory.path(), policy)?;
        let mut from = 0;
        while from < keys {
            let until = keys.min(from + 1000);
            let mut transaction = tree.begin()?.with_durability(Durability::Eventual);
            for i in from..until {
                let value: Vec<u8> =
                    (0..13).flat_map(|word| mix(i << 8 | word).to_le_bytes()).take(100).collect();
                transaction.set(key(2 * i).as_str(), value)?;
            }
            runtime.block_on(transaction.commit())?;
            from = until;
        }
        tree.compact_range(None, None, &CompactRangeOptions::default())?;
        Ok(Self { tree, directory })
    }

    fn get_all(&self, keys: &[String], are_present: bool) -> Result<f64> {
        let transaction = self.tree.begin_with_mode(Mode::ReadOnly)?;
        let start = Instant::now();
        for key in keys {
            ensure!(transaction.get(key.as_bytes())?.is_some() == are_present, "wrong answer for {key}");
        }
        Ok(microseconds(start, keys.len()))
    }

    fn filter_bytes(&self) -> Result<(u64, usize)> {
        let mut bytes = 0;
        let mut tables = 0;
        for entry in self.directory.path().join("sstables").read_dir()? {
            bytes += dump_sst(entry?.path(), false, false)?.filter_size;
            tables += 1;
        }
        Ok((bytes, tables))
    }

    /// Opens the database again with a policy that counts.
    fn count(self, runtime: &Runtime, policy: Policy, keys: u64, key: Key) -> Result<(u64, u64)> {
        let _runtime = runtime.enter();
        runtime.block_on(self.tree.close())?;
        let Some(policy) = policy else { return Ok((0, 0)) };
        let counting =
            Arc::new(Counting { policy, queries: AtomicU64::new(0), positives: AtomicU64::new(0) });
        let tree = open(self.directory.path(), Some(counting.clone()))?;
        {
            let transaction = tree.begin_with_mode(Mode::ReadOnly)?;
            for i in 0..keys {
                transaction.get(key(2 * i + 1).as_bytes())?;
            }
        }
        runtime.block_on(tree.close())?;
        Ok((counting.queries.load(Ordering::Relaxed), counting.positives.load(Ordering::Relaxed)))
    }
}

/// SurrealKV has no statistics of its filters.
struct Counting {
    policy: Arc<dyn FilterPolicy>,
    queries: AtomicU64,
    positives: AtomicU64,
}

impl FilterPolicy for Counting {
    fn name(&self) -> &str {
        self.policy.name()
    }

    fn may_contain(&self, filter: &[u8], key: &[u8]) -> bool {
        let answer = self.policy.may_contain(filter, key);
        self.queries.fetch_add(1, Ordering::Relaxed);
        self.positives.fetch_add(u64::from(answer), Ordering::Relaxed);
        answer
    }

    fn create_filter(&self, keys: &[Vec<u8>]) -> Vec<u8> {
        self.policy.create_filter(keys)
    }

    fn key_hash(&self, key: &[u8]) -> u64 {
        self.policy.key_hash(key)
    }

    fn create_filter_from_hashes(&self, hashes: &[u64]) -> Vec<u8> {
        self.policy.create_filter_from_hashes(hashes)
    }

    fn filter_keys_per_partition(&self, partition_bytes: usize) -> usize {
        self.policy.filter_keys_per_partition(partition_bytes)
    }
}
