//! SurrealKV.

#[path = "../../tests/surrealkv/observed.rs"]
mod observed;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use bloomline::mix;
use bloomline_adapters::Bloomline;
use observed::Observed;
use surrealkv::inspect::dump_sst;
use surrealkv::{CompactRangeOptions, Durability, FilterPolicy, Mode, Tree, TreeBuilder};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::report::{Options, Row, Table, costs, median, microseconds};

const NOTE: &str = "Default options, with a block cache of 32 MiB. Each database is compacted to one sorted run, and \
the system's file cache holds all tables. Keys are random, and missing keys lie between present ones.";

type Policy = Option<Arc<dyn FilterPolicy>>;

const TURNS: u64 = 10;
/// The row of the engine's own filter.
const OWN: usize = 1;
/// The row with bloomline's at equal bytes.
const BLOOMLINE: usize = 2;

pub fn measure(options: &Options) -> Result<Vec<Table>> {
    let rows = rows(options, &Runtime::new()?)?;
    Ok(vec![Table { title: "SurrealKV 1.2, local files".to_owned(), note: NOTE.to_owned(), rows }])
}

/// Present keys have even numbers, missing keys odd numbers, so each lies between present ones.
fn key(number: u64) -> String {
    format!("{:016x}", mix(number))
}

fn rows(options: &Options, runtime: &Runtime) -> Result<Vec<Row>> {
    let bloomline = |bits| -> Result<Policy> { Ok(Some(Bloomline::with_bits_per_key(bits)?.into())) };
    let filters: [(&str, Policy); 4] = [
        ("none", None),
        ("SurrealKV's default, 10 bits per key", surrealkv::Options::default().filter_policy),
        ("bloomline, 10 bits per key, equal bytes", bloomline(10.0)?),
        ("bloomline, 11 bits per key", bloomline(11.0)?),
    ];
    let databases = filters
        .iter()
        .map(|(_, policy)| Database::write(runtime, policy.clone(), options.keys))
        .collect::<Result<Vec<_>>>()?;
    let missing = costs(&times(options, &databases, |i| key(2 * i + 1), false)?, OWN);
    let present = costs(&times(options, &databases, |i| key(2 * i), true)?, OWN);

    let mut rows = Vec::new();
    for (i, (database, (filter, policy))) in databases.into_iter().zip(filters).enumerate() {
        let filter_bytes = database.filter_bytes()?;
        let (queries, false_positives) = database.count(runtime, policy, options.keys)?;
        let (filter, missing, present) = (filter.to_owned(), missing[i], present[i]);
        rows.push(Row { filter, filter_bytes, queries, false_positives, missing, present });
    }
    let equal = rows[BLOOMLINE].filter_bytes as f64 / rows[OWN].filter_bytes as f64;
    ensure!(
        options.quick || (0.99..1.01).contains(&equal),
        "{equal} of the bytes of the engine's own filters"
    );
    Ok(rows)
}

/// Microseconds of a get, by round and database.
fn times(
    options: &Options,
    databases: &[Database],
    key: impl Fn(u64) -> String,
    are_present: bool,
) -> Result<Vec<Vec<f64>>> {
    // Gets in a turn, after a tenth of that to warm the CPU's caches.
    let gets = if options.quick { 200 } else { 5_000 };
    // A system under memory pressure drops cached files, the first database's first.
    for database in databases {
        for table in database.tables()? {
            std::fs::read(table)?;
        }
    }
    let mut rounds = Vec::new();
    for round in 0..=options.rounds as u64 {
        let mut times = vec![Vec::new(); databases.len()];
        // In short turns, of which the median counts, because the machine may do something else in some of them.
        for turn in round * TURNS..(round + 1) * TURNS {
            let chosen: Vec<_> =
                (0..gets + gets / 10).map(|i| key(mix(turn << 32 | i) % options.keys)).collect();
            let (warm_up, timed) = chosen.split_at(gets as usize / 10);
            // In a new order each time, because the database before leaves its data in the caches.
            let mut order: Vec<usize> = (0..databases.len()).collect();
            order.sort_by_cached_key(|&i| mix(turn << 32 | i as u64));
            for i in order {
                databases[i].get_all(warm_up, are_present)?;
                times[i].push(databases[i].get_all(timed, are_present)?);
            }
        }
        // The first round fills the block caches.
        if round > 0 {
            rounds.push(times.into_iter().map(|times| median(times.into_iter())).collect());
        }
    }
    Ok(rounds)
}

struct Database {
    tree: Tree,
    directory: TempDir,
}

fn open(path: &Path, policy: Policy) -> Result<Tree> {
    Ok(TreeBuilder::new().with_path(path.to_owned()).with_filter_policy(policy).build()?)
}

impl Database {
    fn write(runtime: &Runtime, policy: Policy, keys: u64) -> Result<Self> {
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

    fn filter_bytes(&self) -> Result<u64> {
        self.tables()?.into_iter().map(|table| Ok(dump_sst(table, false, false)?.filter_size)).sum()
    }

    fn tables(&self) -> Result<Vec<PathBuf>> {
        let tables = self.directory.path().join("sstables").read_dir()?;
        tables.map(|table| Ok(table?.path())).collect()
    }

    /// Opens the database again with a policy that counts.
    fn count(self, runtime: &Runtime, policy: Policy, keys: u64) -> Result<(u64, u64)> {
        let _runtime = runtime.enter();
        runtime.block_on(self.tree.close())?;
        let Some(policy) = policy else { return Ok((0, 0)) };
        let observed = Observed::new(policy);
        let tree = open(self.directory.path(), Some(observed.clone()))?;
        {
            let transaction = tree.begin_with_mode(Mode::ReadOnly)?;
            for i in 0..keys {
                transaction.get(key(2 * i + 1).as_bytes())?;
            }
        }
        runtime.block_on(tree.close())?;
        let (queries, rejections) = observed.counts();
        ensure!(queries > keys / 2, "the filters were not used");
        Ok((queries, queries - rejections))
    }
}
