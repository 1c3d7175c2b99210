//! SlateDB.

#[path = "../../tests/slatedb/compaction.rs"]
mod compaction;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use bloomline::mix;
use bloomline::sizing::standard::StandardSizing;
use bloomline_adapters::{Bloomline, BloomlineStandard};
use compaction::Runs;
use slatedb::admin::AdminBuilder;
use slatedb::config::{
    CompactionWorkerOptions, FlushOptions, FlushType, GarbageCollectorDirectoryOptions,
    GarbageCollectorOptions, ReadOptions, Settings,
};
use slatedb::object_store::local::LocalFileSystem;
use slatedb::object_store::memory::InMemory;
use slatedb::object_store::throttle::{ThrottleConfig, ThrottledStore};
use slatedb::object_store::{ObjectStore, ObjectStoreExt};
use slatedb::{
    BloomFilterPolicy, CacheTarget, CompactorBuilder, Db, DbCacheManagerOps, FilterPolicy, WriteBatch,
};
use slatedb_common::metrics::{DefaultMetricsRecorder, MetricValue};

use crate::report::{Options, Row, Table, costs, microseconds};

const PATH: &str = "db";
const DELAY: Duration = Duration::from_millis(5);
/// The sorted runs of a database, each of so many flushes, and the SSTs in L0.
const RUNS: u64 = 3;
const FLUSHES_IN_RUN: u64 = 8;
const L0: u64 = 4;
const TURNS: usize = 20;
/// The row with SlateDB's own filter.
const OWN: usize = 1;

type Store = Arc<dyn ObjectStore>;

struct Filter {
    name: String,
    policies: Vec<Arc<dyn FilterPolicy>>,
}

fn filters() -> Result<Vec<Filter>> {
    let fpr = StandardSizing::new(10_000_000, 6)?.expected_fpr(1_000_000);
    let bits_of_equal_fpr = bloomline::sstable::FilterPolicy::with_fpr(fpr)?.bits_per_key();
    let rows: [(_, Vec<Arc<dyn FilterPolicy>>); 5] = [
        ("none".into(), vec![]),
        ("SlateDB's own, 10 bits per key".into(), vec![Arc::new(BloomFilterPolicy::new(10))]),
        ("bloomline, equal bytes".into(), vec![Bloomline::with_bits_per_key(10.0)?.into()]),
        (
            format!("bloomline, {bits_of_equal_fpr:.1} bits per key"),
            vec![Bloomline::with_bits_per_key(bits_of_equal_fpr)?.into()],
        ),
        (
            "bloomline's standard filter, equal bytes".into(),
            vec![BloomlineStandard::with_bits_per_key(10.0)?.into()],
        ),
    ];
    Ok(rows.map(|(name, policies)| Filter { name, policies }).into())
}

pub fn measure(options: &Options) -> Result<Vec<Table>> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let filters = filters()?;
        let directory = tempfile::tempdir()?;
        let (mut local, mut delayed) = (Vec::new(), Vec::new());
        for (i, filter) in filters.iter().enumerate() {
            let path = directory.path().join(i.to_string());
            std::fs::create_dir(&path)?;
            let store: Store = Arc::new(LocalFileSystem::new_with_prefix(path)?);
            write(&store, filter, options.keys).await?;
            delayed.push(copy_to_memory(&store).await?);
            local.push(store);
        }
        let note = format!(
            "{RUNS} sorted runs of {FLUSHES_IN_RUN} flushes each, and {L0} SSTs in L0, so a missing get queries {} filters. \
             Filters and indexes are cached, but data blocks are not.",
            RUNS + L0
        );
        let gets = Gets { missing: 1_000, missing_without_filter: 100, present: 250 }.of(options);
        let rows = rounds(options, &filters, &local, gets).await?;
        let local = Table { title: "SlateDB 0.18, local files".into(), note, rows };

        let gets = Gets { missing: 300, missing_without_filter: 5, present: 10 }.of(options);
        let rows = rounds(options, &filters, &delayed, gets).await?;
        // The same gets without the delay have the times of the table before this.
        let delay = rows[OWN].missing.microseconds - local.rows[OWN].missing.microseconds;
        let in_a_get = rows[OWN].false_positives as f64 / (options.rounds * TURNS * gets.missing) as f64;
        let note = format!(
            "The same databases in an object store in memory, with a delay of {} ms per read, as in a bucket. Each \
             false positive costs one read of a data block, about {:.1} ms, and together they are {:.0}% of the time of \
             missing gets. Without filters, a missing get reads a data block of each of the {} SSTs, up to four at a time.",
            DELAY.as_millis(),
            delay / in_a_get / 1000.0,
            delay / rows[OWN].missing.microseconds * 100.0,
            RUNS + L0,
        );
        let title = format!("SlateDB 0.18, object store, {} ms a read", DELAY.as_millis());
        Ok(vec![local, Table { title, note, rows }])
    })
}

/// Number of gets in a turn. A round has several turns.
#[derive(Clone, Copy)]
struct Gets {
    missing: usize,
    missing_without_filter: usize,
    present: usize,
}

impl Gets {
    fn of(self, options: &Options) -> Self {
        let share = |gets: usize| if options.quick { gets.div_ceil(10) } else { gets };
        Self {
            missing: share(self.missing),
            missing_without_filter: share(self.missing_without_filter),
            present: share(self.present),
        }
    }
}

/// The key of a number, which is present below the number of keys, and missing from there on. Each SST has keys from
/// the whole range.
fn key(i: u64) -> [u8; 16] {
    (u128::from(mix(i)) << 64 | u128::from(mix(!i))).to_be_bytes()
}

fn settings() -> Settings {
    Settings { compactor_options: None, garbage_collector_options: None, ..Settings::default() }
}

async fn write(store: &Store, filter: &Filter, keys: u64) -> Result<()> {
    let flushes = RUNS * FLUSHES_IN_RUN + L0;
    let mut flush = 0;
    while flush < flushes {
        let db = Db::builder(PATH, store.clone())
            .with_settings(settings())
            .with_filter_policies(filter.policies.clone())
            .build()
            .await?;
        for _ in 0..FLUSHES_IN_RUN.min(flushes - flush) {
            let mut in_flush = keys * flush / flushes..keys * (flush + 1) / flushes;
            while !in_flush.is_empty() {
                let mut batch = WriteBatch::new();
                for i in in_flush.by_ref().take(1000) {
                    batch.put(key(i), [i as u8; 100]);
                }
                db.write(batch).await?;
            }
            db.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await?;
            flush += 1;
        }
        db.close().await?;
        if flush < flushes {
            compact_l0(store, filter).await?;
        }
    }
    // Leaves only what the database still needs, because the store is copied.
    let now = Some(GarbageCollectorDirectoryOptions { min_age: Duration::ZERO, ..Default::default() });
    let garbage = GarbageCollectorOptions {
        wal_options: now,
        manifest_options: now,
        compacted_options: now,
        ..GarbageCollectorOptions::default()
    };
    Ok(AdminBuilder::new(PATH, store.clone()).build().run_gc_once(garbage).await?)
}

async fn compact_l0(store: &Store, filter: &Filter) -> Result<()> {
    let worker =
        CompactionWorkerOptions { compactions_poll_interval: compaction::SOON, ..Default::default() };
    let builder = CompactorBuilder::new(PATH, store.clone()).with_filter_policies(filter.policies.clone());
    compaction::run(builder, PATH, store, worker, Runs::Several).await
}

async fn copy_to_memory(store: &Store) -> Result<Store> {
    let memory = InMemory::new();
    for object in list(store).await? {
        let bytes = store.get(&object).await?.bytes().await?;
        memory.put(&object, bytes.into()).await?;
    }
    Ok(Arc::new(ThrottledStore::new(
        memory,
        ThrottleConfig { wait_get_per_call: DELAY, ..ThrottleConfig::default() },
    )))
}

async fn list(store: &Store) -> Result<Vec<slatedb::object_store::path::Path>> {
    let mut objects = Vec::new();
    let mut prefixes = vec![PATH.into()];
    while let Some(prefix) = prefixes.pop() {
        let listed = store.list_with_delimiter(Some(&prefix)).await?;
        objects.extend(listed.objects.into_iter().map(|object| object.location));
        prefixes.extend(listed.common_prefixes);
    }
    Ok(objects)
}

struct Database {
    db: Db,
    metrics: Arc<DefaultMetricsRecorder>,
    filter_bytes: u64,
    queries: u64,
    false_positives: u64,
}

impl Database {
    async fn open(store: &Store, filter: &Filter) -> Result<Self> {
        let metrics = Arc::new(DefaultMetricsRecorder::new());
        let db = Db::builder(PATH, store.clone())
            .with_settings(settings())
            .with_filter_policies(filter.policies.clone())
            .with_metrics_recorder(metrics.clone())
            .build()
            .await?;
        let manifest = db.manifest();
        let (l0, runs) = (manifest.l0(), manifest.compacted());
        ensure!(l0.len() as u64 == L0 && runs.len() as u64 == RUNS, "{} and {}", l0.len(), runs.len());
        let mut filter_bytes = 0;
        for view in l0.iter().chain(runs.iter().flat_map(|run| run.sst_views())) {
            filter_bytes += view.sst.info.filter_len;
            db.warm_sst(view.sst.id, &[CacheTarget::Index, CacheTarget::Filters]).await?;
        }
        Ok(Self { db, metrics, filter_bytes, queries: 0, false_positives: 0 })
    }

    async fn time(&self, keys: impl Iterator<Item = u64>, present: bool) -> Result<f64> {
        let options = ReadOptions::new().with_cache_blocks(false);
        let (mut gets, start) = (0, Instant::now());
        for i in keys {
            let found = self.db.get_with_options(key(i), &options).await?.is_some();
            ensure!(found == present, "key {i} is {}", if present { "lost" } else { "there" });
            gets += 1;
        }
        Ok(microseconds(start, gets))
    }

    fn count(&self, answer: &str) -> Result<u64> {
        let name = format!("slatedb.db.sst_filter_{answer}_count");
        match self
            .metrics
            .snapshot()
            .by_name_and_labels(&name, &[("kind", "point")])
            .map(|found| &found.value)
        {
            Some(MetricValue::Counter(count)) => Ok(*count),
            _ => bail!("SlateDB has no counter {name}"),
        }
    }

    fn queries(&self) -> Result<u64> {
        Ok(self.count("positive")? + self.count("negative")?)
    }
}

async fn rounds(options: &Options, filters: &[Filter], stores: &[Store], gets: Gets) -> Result<Vec<Row>> {
    let mut databases = Vec::new();
    for (filter, store) in filters.iter().zip(stores) {
        databases.push(Database::open(store, filter).await?);
    }
    let equal = databases[OWN + 1].filter_bytes as f64 / databases[OWN].filter_bytes as f64;
    ensure!(options.quick || (equal - 1.0).abs() < 0.01, "bloomline's filters have {equal:.3} × the bytes");

    let n = databases.len();
    let (mut missing, mut present) = (Vec::new(), Vec::new());
    for round in 0..options.rounds {
        let mut times = [vec![0.0; n], vec![0.0; n]];
        // In short turns, so that a pause of the machine slows all databases alike.
        for turn in 0..TURNS {
            let turn = round * TURNS + turn;
            for i in (0..n).map(|i| (i + turn) % n) {
                let database = &mut databases[i];
                let of_missing =
                    if database.filter_bytes == 0 { gets.missing_without_filter } else { gets.missing };
                let first = options.keys + (turn * gets.missing) as u64;
                let before = (database.queries()?, database.count("false_positive")?);
                times[0][i] += database.time(first..first + of_missing as u64, false).await?;
                database.queries += database.queries()? - before.0;
                database.false_positives += database.count("false_positive")? - before.1;
                let random =
                    (0..gets.present).map(|get| mix((turn * gets.present + get) as u64) % options.keys);
                times[1][i] += database.time(random, true).await?;
            }
        }
        let [of_missing, of_present] =
            times.map(|times| times.iter().map(|time| time / TURNS as f64).collect());
        missing.push(of_missing);
        present.push(of_present);
    }
    let (missing, present) = (costs(&missing, OWN), costs(&present, OWN));
    let mut rows = Vec::new();
    for (i, (filter, database)) in filters.iter().zip(databases).enumerate() {
        database.db.close().await?;
        rows.push(Row {
            filter: filter.name.clone(),
            filter_bytes: database.filter_bytes,
            queries: database.queries,
            false_positives: database.false_positives,
            missing: missing[i],
            present: present[i],
        });
    }
    Ok(rows)
}
