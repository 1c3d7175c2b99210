//! In SlateDB no key is lost and none comes back, whichever policies the builders of a database have had. Filters are
//! used where the policy is registered, and nowhere else.
#![cfg(feature = "slatedb")]

#[path = "slatedb/compaction.rs"]
mod compaction;
#[path = "slatedb/prefixes.rs"]
mod prefixes;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use bloomline::{BloomView, mix};
use bloomline_adapters::{Bloomline, BloomlineStandard};
use bytes::Bytes;
use compaction::Runs;
use slatedb::admin::AdminBuilder;
use slatedb::config::{CompactionWorkerOptions, FlushOptions, FlushType, Settings};
use slatedb::manifest::SsTableHandle;
use slatedb::object_store::memory::InMemory;
use slatedb::object_store::{ObjectStore, ObjectStoreExt};
use slatedb::{
    BloomFilterPolicy, CompactorBuilder, Db, DbBuilder, DbReader, DbReaderBuilder, DbReaderMode,
    FilterPolicy, FilterQuery, MergeOperator, MergeOperatorError, PrefixExtractor, PrefixTarget, RowEntry,
    ValueDeletable, WriteBatch,
};
use slatedb_common::metrics::{DefaultMetricsRecorder, MetricValue};

type Store = Arc<dyn ObjectStore>;
type Policies = Vec<Arc<dyn FilterPolicy>>;
type Error = Box<dyn std::error::Error>;

const OURS: &str = bloomline::sstable::FilterPolicy::NAME;
const PATH: &str = "db";

fn bloomline() -> Bloomline {
    Bloomline::with_bits_per_key(10.0).unwrap()
}

fn ours() -> Policies {
    vec![bloomline().into()]
}

fn own() -> Policies {
    vec![Arc::new(BloomFilterPolicy::new(10))]
}

fn both() -> Policies {
    [ours(), own()].concat()
}

/// Without compactions, and with a filter in every SST.
fn settings() -> Settings {
    Settings {
        min_filter_keys: 1,
        l0_max_ssts: 1000,
        l0_max_ssts_per_key: 1000,
        compactor_options: None,
        flush_interval: Some(Duration::from_millis(2)),
        garbage_collector_options: None,
        ..Settings::default()
    }
}

fn builder(store: &Store, policies: Policies) -> DbBuilder<&'static str> {
    Db::builder(PATH, store.clone())
        .with_settings(settings())
        .with_merge_operator(Arc::new(Concatenate))
        .with_filter_policies(policies)
}

struct Concatenate;

impl MergeOperator for Concatenate {
    fn merge(&self, _: &Bytes, old: Option<Bytes>, new: Bytes) -> Result<Bytes, MergeOperatorError> {
        Ok([old.unwrap_or_default(), new].concat().into())
    }
}

/// Compacts everything, as another process would. `None` leaves the policies as they are by default.
async fn compact(store: &Store, policies: Option<Policies>) -> Result<(), Error> {
    let worker = CompactionWorkerOptions {
        compactions_poll_interval: compaction::SOON,
        // Several SSTs in a sorted run.
        max_sst_size: 16 << 10,
        min_filter_keys: 1,
        ..CompactionWorkerOptions::default()
    };
    let builder = CompactorBuilder::new(PATH, store.clone()).with_merge_operator(Arc::new(Concatenate));
    let builder = with(builder, policies, CompactorBuilder::with_filter_policies);
    Ok(compaction::run(builder, PATH, store, worker, Runs::One).await?)
}

fn with<B>(builder: B, policies: Option<Policies>, set: impl FnOnce(B, Policies) -> B) -> B {
    match policies {
        Some(policies) => set(builder, policies),
        None => builder,
    }
}

async fn flush(db: &Db) -> Result<(), Error> {
    Ok(db.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await?)
}

async fn reader(store: &Store, policies: Option<Policies>) -> Result<(DbReader, Metrics), Error> {
    let metrics = Metrics::default();
    let builder = DbReader::builder(PATH, store.clone())
        .with_reader_mode(DbReaderMode::FollowLatest)
        .with_merge_operator(Arc::new(Concatenate))
        .with_metrics_recorder(metrics.0.clone());
    let builder = with(builder, policies, DbReaderBuilder::with_filter_policies);
    Ok((builder.build().await?, metrics))
}

#[derive(Default)]
struct Metrics(Arc<DefaultMetricsRecorder>);

impl Metrics {
    fn filters(&self, answer: &str, kind: &str) -> u64 {
        let name = format!("slatedb.db.sst_filter_{answer}_count");
        match self.0.snapshot().by_name_and_labels(&name, &[("kind", kind)]).unwrap().value {
            MetricValue::Counter(count) => count,
            _ => panic!("{name} is not a counter"),
        }
    }

    fn negatives(&self) -> u64 {
        self.filters("negative", "point")
    }

    fn queries(&self) -> u64 {
        self.negatives() + self.filters("positive", "point")
    }
}

async fn ssts(store: &Store) -> Result<Vec<SsTableHandle>, Error> {
    let admin = AdminBuilder::new(PATH, store.clone()).build();
    let state = admin.read_compactor_state_view().await?;
    let l0 = state.manifest().l0().iter();
    let compacted = state.manifest().compacted().iter().flat_map(|run| run.sst_views());
    Ok(l0.chain(compacted).map(|view| view.sst.clone()).collect())
}

fn object_of(sst: &SsTableHandle) -> slatedb::object_store::path::Path {
    format!("{PATH}/compacted/{}.sst", sst.id.value()).into()
}

/// How many SSTs have a filter of this name, which has its length before it, and how many SSTs there are.
async fn ssts_with_filter(store: &Store, name: &str) -> Result<[usize; 2], Error> {
    let name = [&(name.len() as u16).to_be_bytes(), name.as_bytes()].concat();
    let mut counts = [0, 0];
    for sst in ssts(store).await? {
        let all = store.get(&object_of(&sst)).await?.bytes().await?;
        let filters = &all[sst.info.filter_offset as usize..][..sst.info.filter_len as usize];
        counts[0] += usize::from(filters.windows(name.len()).any(|window| window == name));
        counts[1] += 1;
    }
    Ok(counts)
}

fn key(i: u64) -> Bytes {
    format!("{:016x}", mix(i)).into()
}

/// The value that a database must have for each key, or `None` if the key must be absent.
#[derive(Default)]
struct Model(BTreeMap<u64, Option<Vec<u8>>>);

const KEYS: u64 = 400;

impl Model {
    /// Writes to a database of these policies, which holds what it must before and after.
    async fn write_with(&mut self, store: &Store, policies: Policies, time: u64) -> Result<(), Error> {
        let db = builder(store, policies).build().await?;
        self.check(async |key| db.get(key).await, "the database before").await?;
        self.write(&db, time).await?;
        self.check(async |key| db.get(key).await, "the database after").await?;
        Ok(db.close().await?)
    }

    /// Puts, overwrites, deletes and merges, in three SSTs.
    async fn write(&mut self, db: &Db, time: u64) -> Result<(), Error> {
        for part in 0..3 {
            let mut batch = WriteBatch::new();
            for n in 0..KEYS / 2 {
                let random = mix(time * 1_000_000 + part * 10_000 + n);
                let i = random % KEYS;
                let value = random.to_le_bytes().repeat(1 + n as usize % 8);
                let held = self.0.entry(i).or_default();
                match random >> 32 & 3 {
                    0 => {
                        batch.delete(key(i));
                        *held = None;
                    }
                    1 => {
                        batch.merge(key(i), &value);
                        held.get_or_insert_default().extend(&value);
                    }
                    _ => {
                        batch.put(key(i), &value);
                        *held = Some(value);
                    }
                }
            }
            db.write(batch).await?;
            flush(db).await?;
        }
        Ok(())
    }

    async fn check(
        &self,
        get: impl AsyncFn(Bytes) -> Result<Option<Bytes>, slatedb::Error>,
        of: &str,
    ) -> Result<(), Error> {
        // The second half was never written.
        for i in 0..2 * KEYS {
            let held = self.0.get(&i).and_then(Option::as_deref);
            assert_eq!(get(key(i)).await?.as_deref(), held, "key {i} of {of}");
        }
        Ok(())
    }
}

/// A database of these policies, with its model.
async fn database(store: &Store, policies: Policies) -> Result<Model, Error> {
    let mut model = Model::default();
    model.write_with(store, policies, 1).await?;
    Ok(model)
}

/// A reader has no filters, and compaction in another process replaces them, unless it has the policy.
#[tokio::test]
async fn every_builder_needs_the_policy() -> Result<(), Error> {
    let none: fn() -> Option<Policies> = || None;
    for (policies, names, is_used) in [
        (none, &["_bf"][..], false),
        (|| Some(Vec::new()), &[], false),
        (|| Some(own()), &["_bf"], false),
        (|| Some(ours()), &[OURS], true),
        (|| Some(both()), &[OURS, "_bf"], true),
    ] {
        let store: Store = Arc::new(InMemory::new());
        let model = database(&store, ours()).await?;
        assert_eq!(ssts_with_filter(&store, OURS).await?, [3, 3]);
        let (reader, metrics) = reader(&store, policies()).await?;
        model.check(async |key| reader.get(key).await, "a reader").await?;
        // Three SSTs, and the filters say of most that an absent key is not in them.
        let expected = if is_used { 3 * KEYS * 98 / 100..u64::MAX } else { 0..1 };
        assert!(expected.contains(&metrics.negatives()), "{} of {names:?}", metrics.negatives());
        assert_eq!(metrics.queries() > 0, is_used);
        reader.close().await?;

        compact(&store, policies()).await?;
        for name in [OURS, "_bf"] {
            let [with_filter, all] = ssts_with_filter(&store, name).await?;
            assert_eq!(with_filter, if names.contains(&name) { all } else { 0 }, "{name} in {names:?}");
            assert!(all > 1);
        }
        let metrics = Metrics::default();
        let db = builder(&store, ours()).with_metrics_recorder(metrics.0.clone()).build().await?;
        model.check(async |key| db.get(key).await, "a compacted database").await?;
        assert_eq!(metrics.negatives() > KEYS / 2, is_used, "{}", metrics.negatives());
        db.close().await?;
    }
    Ok(())
}

/// The filter of these entries. The builder may be used again.
fn built(
    builder: &mut dyn slatedb::FilterBuilder,
    entries: impl IntoIterator<Item = (Bytes, ValueDeletable)>,
) -> Arc<dyn slatedb::Filter> {
    for (key, value) in entries {
        builder.add_entry(&RowEntry { key, value, seq: 1, create_ts: None, expire_ts: None });
    }
    builder.build()
}

fn keys(n: usize) -> impl Iterator<Item = (Bytes, ValueDeletable)> {
    (0..n as u64).map(|i| (key(i), ValueDeletable::Tombstone))
}

fn encoded(filter: &dyn slatedb::Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.encode(&mut bytes);
    bytes
}

fn might_match(filter: &dyn slatedb::Filter, key: Bytes) -> bool {
    filter.might_match(&FilterQuery::point(key))
}

/// The number of modules follows from the bits per key and the number of keys.
#[test]
fn filters_have_the_estimated_size() {
    for (bits_per_key, most_modules) in [(0.5, 1), (6.0, 1), (10.0, 1), (20.0, 2), (64.0, 3)] {
        let blocked = Bloomline::with_bits_per_key(bits_per_key).unwrap();
        let standard = BloomlineStandard::with_bits_per_key(bits_per_key).unwrap();
        let mut numbers_of_modules = BTreeSet::new();
        for n in (0..70).chain([100, 333, 599, 1000, 12_345, 100_000]) {
            let policies: [(&dyn FilterPolicy, _); 2] = [(&blocked, 259), (&standard, 1)];
            for (policy, off) in policies {
                let bytes = encoded(&*built(&mut *policy.builder(), keys(n)));
                let (estimate, len) = (policy.estimate_size(n), bytes.len());
                assert!((len..len + off).contains(&estimate), "{estimate} for {len} of {n} keys");
                if off > 1 {
                    numbers_of_modules.insert(BloomView::from_compact(&bytes).unwrap().n_modules());
                }
            }
        }
        assert_eq!(numbers_of_modules.last(), Some(&most_modules), "{bits_per_key} bits");
        for n in [usize::MAX, usize::MAX / 2, 1 << 60, 1 << 54] {
            assert!(blocked.estimate_size(n) >= n / 16 && standard.estimate_size(n) >= n / 16);
        }
    }
}
