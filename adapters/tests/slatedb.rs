//! In SlateDB no key is lost and none comes back, whichever policies the builders of a database have had. Filters are
//! used where the policy is registered, and nowhere else.
#![cfg(feature = "slatedb")]

#[path = "slatedb/prefixes.rs"]
mod prefixes;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::Bound;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bloomline::mix;
use bloomline_adapters::{Bloomline, BloomlineStandard};
use bytes::Bytes;
use slatedb::admin::AdminBuilder;
use slatedb::compactor::{CompactionScheduler, CompactionSchedulerSupplier};
use slatedb::compactor::{CompactionSpec, CompactorStateView, SourceId};
use slatedb::config::{CompactionWorkerOptions, CompactorOptions, FlushOptions, FlushType, Settings};
use slatedb::manifest::SsTableHandle;
use slatedb::object_store::local::LocalFileSystem;
use slatedb::object_store::memory::InMemory;
use slatedb::object_store::{ObjectStore, ObjectStoreExt};
use slatedb::{
    BloomFilterPolicy, CompactionWorkerBuilder, CompactorBuilder, Db, DbBuilder, DbReader, DbReaderBuilder,
    DbReaderMode, FilterPolicy, FilterQuery, MergeOperator, MergeOperatorError, PrefixExtractor,
    PrefixTarget, RowEntry, ValueDeletable, WriteBatch,
};
use slatedb_common::metrics::{DefaultMetricsRecorder, MetricValue};

type Store = Arc<dyn ObjectStore>;
type Policies = Vec<Arc<dyn FilterPolicy>>;
type Named = (&'static str, fn() -> Policies);
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

fn standard() -> Policies {
    vec![BloomlineStandard::with_bits_per_key(10.0).unwrap().into()]
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

/// Compacts everything to one sorted run.
struct Everything;

impl CompactionSchedulerSupplier for Everything {
    fn compaction_scheduler(&self, _: &CompactorOptions) -> Box<dyn CompactionScheduler + Send + Sync> {
        Box::new(Self)
    }
}

impl CompactionScheduler for Everything {
    fn propose(&self, state: &CompactorStateView) -> Vec<CompactionSpec> {
        let busy = state.compactions().is_some_and(|all| all.recent_compactions().any(|one| one.active()));
        let manifest = state.manifest();
        if busy || manifest.l0().is_empty() {
            return Vec::new();
        }
        let l0 = manifest.l0().iter().map(|view| SourceId::SstView(view.id));
        let runs = manifest.compacted().iter().map(|run| SourceId::SortedRun(run.id));
        let destination = manifest.compacted().last().map_or(0, |run| run.id);
        vec![CompactionSpec::new(l0.chain(runs).collect(), destination)]
    }
}

const SOON: Duration = Duration::from_millis(10);
/// Only ends a test that hangs, because a panic inside of a compactor does not end it.
const LONG: Duration = Duration::from_secs(600);

fn worker_options() -> CompactionWorkerOptions {
    CompactionWorkerOptions {
        compactions_poll_interval: SOON,
        // Several SSTs in a sorted run.
        max_sst_size: 16 << 10,
        min_filter_keys: 1,
        ..CompactionWorkerOptions::default()
    }
}

fn compactor(store: &Store, worker: Option<CompactionWorkerOptions>) -> CompactorBuilder<&'static str> {
    CompactorBuilder::new(PATH, store.clone())
        .with_scheduler_supplier(Arc::new(Everything))
        .with_merge_operator(Arc::new(Concatenate))
        .with_options(CompactorOptions {
            poll_interval: SOON,
            commit_compacted_interval: SOON,
            worker,
            ..CompactorOptions::default()
        })
}

/// What runs compactions in a process of its own.
#[derive(Clone, Copy, Debug)]
enum Process {
    Compactor,
    /// The worker, beside a compactor in a second process, which then only coordinates.
    Worker,
}

/// Compacts everything, as other processes would. `None` leaves the policies as they are by default.
async fn compact(store: &Store, process: Process, policies: Option<Policies>) -> Result<(), Error> {
    let (compactor, worker) = match process {
        Process::Compactor => {
            let builder = compactor(store, Some(worker_options()));
            (with(builder, policies, CompactorBuilder::with_filter_policies).build(), None)
        }
        Process::Worker => {
            let builder = CompactionWorkerBuilder::new(PATH, store.clone())
                .with_merge_operator(Arc::new(Concatenate))
                .with_options(worker_options());
            let worker =
                with(builder, policies, CompactionWorkerBuilder::with_filter_policies).build().await?;
            (compactor(store, None).build(), Some(Arc::new(worker)))
        }
    };
    let running = tokio::spawn({
        let (compactor, worker) = (compactor.clone(), worker.clone());
        async move {
            match worker {
                Some(worker) => tokio::try_join!(compactor.run(), worker.run()).map(|_| ()),
                None => compactor.run().await,
            }
        }
    });
    let admin = AdminBuilder::new(PATH, store.clone()).build();
    let start = Instant::now();
    while !admin.read_compactor_state_view().await?.manifest().l0().is_empty() {
        assert!(start.elapsed() < LONG, "nothing is compacted");
        tokio::time::sleep(SOON).await;
    }
    if let Some(worker) = worker {
        worker.stop().await?;
    }
    compactor.stop().await?;
    Ok(running.await??)
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

/// The names of the filters in each SST, as its filter block has them.
async fn filter_names(store: &Store) -> Result<Vec<Vec<String>>, Error> {
    let mut names = Vec::new();
    for sst in ssts(store).await? {
        let all = store.get(&object_of(&sst)).await?.bytes().await?;
        let mut rest = &all[sst.info.filter_offset as usize..][..sst.info.filter_len as usize];
        let mut filters = Vec::new();
        if let Some(count) = rest.split_off(..2) {
            for _ in 0..u16::from_be_bytes(count.try_into()?) {
                let n_name = u16::from_be_bytes(rest.split_off(..2).unwrap().try_into()?);
                filters.push(String::from_utf8(rest.split_off(..n_name.into()).unwrap().to_vec())?);
                let n_data = u64::from_be_bytes(rest.split_off(..8).unwrap().try_into()?);
                rest.split_off(..n_data as usize).unwrap();
            }
        }
        names.push(filters);
    }
    Ok(names)
}

fn key(i: u64) -> Bytes {
    format!("{:016x}", mix(i)).into()
}

/// The value that a database must have for each key, or `None` if the key must be absent.
#[derive(Default)]
struct Model(BTreeMap<u64, Option<Vec<u8>>>);

const KEYS: u64 = 400;

impl Model {
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

#[tokio::test]
async fn no_key_is_lost_or_comes_back_when_policies_change() -> Result<(), Error> {
    let all: [Named; 5] =
        [("own", own), ("bloomline", ours), ("none", Vec::new), ("both", both), ("standard", standard)];
    for (i, (first_name, first)) in all.into_iter().enumerate() {
        for (j, (second_name, second)) in all.into_iter().enumerate() {
            // Each policy beside each of the first and each of the second.
            let (third_name, third) = all[(i + j) % all.len()];
            let of = format!("{first_name}, then {second_name}, compacted by {third_name}");
            let store: Store = Arc::new(InMemory::new());
            let mut model = Model::default();
            let db = builder(&store, first()).build().await?;
            model.write(&db, 1).await?;
            db.close().await?;

            let db = builder(&store, second()).build().await?;
            model.check(async |key| db.get(key).await, &of).await?;
            model.write(&db, 2).await?;
            model.check(async |key| db.get(key).await, &of).await?;
            db.close().await?;

            compact(&store, Process::Compactor, Some(third())).await?;
            for (name, policies) in all {
                let (reader, _) = reader(&store, Some(policies())).await?;
                model.check(async |key| reader.get(key).await, &format!("{of}, read by {name}")).await?;
                reader.close().await?;
            }
            let db = builder(&store, first()).build().await?;
            model.check(async |key| db.get(key).await, &of).await?;
            model.write(&db, 3).await?;
            model.check(async |key| db.get(key).await, &of).await?;
            db.close().await?;
        }
    }
    Ok(())
}

/// A database of bloomline's, with its model.
async fn database(store: &Store) -> Result<Model, Error> {
    let mut model = Model::default();
    let db = builder(store, ours()).build().await?;
    model.write(&db, 1).await?;
    db.close().await?;
    Ok(model)
}

#[tokio::test]
async fn a_reader_has_no_filters_unless_it_has_the_policy() -> Result<(), Error> {
    let store: Store = Arc::new(InMemory::new());
    let model = database(&store).await?;
    for (policies, used) in [(None, false), (Some(own()), false), (Some(ours()), true), (Some(both()), true)]
    {
        let (reader, metrics) = reader(&store, policies).await?;
        model.check(async |key| reader.get(key).await, "a reader").await?;
        // Three SSTs, and the filters say of most that an absent key is not in them.
        let expected = if used { 3 * KEYS * 98 / 100..u64::MAX } else { 0..1 };
        assert!(expected.contains(&metrics.negatives()), "{} of {used}", metrics.negatives());
        assert_eq!(metrics.queries() > 0, used);
        reader.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn compaction_in_another_process_replaces_the_filters_unless_it_has_the_policy() -> Result<(), Error> {
    for process in [Process::Compactor, Process::Worker] {
        for (policies, names) in [
            (None, vec!["_bf"]),
            (Some(Vec::new()), vec![]),
            (Some(ours()), vec![OURS]),
            (Some(both()), vec![OURS, "_bf"]),
        ] {
            let store: Store = Arc::new(InMemory::new());
            let model = database(&store).await?;
            assert_eq!(filter_names(&store).await?, vec![vec![OURS]; 3]);
            compact(&store, process, policies).await?;
            let filters = filter_names(&store).await?;
            assert!(
                filters.len() > 1 && filters.iter().all(|filters| *filters == names),
                "{process:?} {filters:?}"
            );

            let metrics = Metrics::default();
            let db = builder(&store, ours()).with_metrics_recorder(metrics.0.clone()).build().await?;
            model.check(async |key| db.get(key).await, "a compacted database").await?;
            assert_eq!(metrics.negatives() > KEYS / 2, names.contains(&OURS), "{}", metrics.negatives());
            db.close().await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_compactor_inside_a_database_has_the_policies_of_the_database() -> Result<(), Error> {
    let store: Store = Arc::new(InMemory::new());
    let inside = compactor(&store, Some(worker_options())).with_filter_policies(own());
    let db = builder(&store, ours()).with_compactor_builder(inside).build().await?;
    let mut model = Model::default();
    model.write(&db, 1).await?;
    let start = Instant::now();
    while db.manifest().compacted().is_empty() || !db.manifest().l0().is_empty() {
        assert!(start.elapsed() < LONG, "nothing is compacted");
        tokio::time::sleep(Duration::from_millis(5)).await;
        db.refresh_manifest().await?;
    }
    model.check(async |key| db.get(key).await, "a database with a compactor").await?;
    db.close().await?;
    assert!(filter_names(&store).await?.iter().all(|filters| *filters == [OURS]));
    Ok(())
}

#[tokio::test]
async fn small_ssts_have_no_filter_by_default() -> Result<(), Error> {
    for (keys, names) in [(999, vec![]), (1000, vec![OURS])] {
        let store: Store = Arc::new(InMemory::new());
        let settings = Settings { min_filter_keys: Settings::default().min_filter_keys, ..settings() };
        let db = builder(&store, ours()).with_settings(settings).build().await?;
        for i in 0..keys {
            db.put(key(i), b"").await?;
        }
        flush(&db).await?;
        db.close().await?;
        assert_eq!(filter_names(&store).await?, [names]);
    }
    Ok(())
}

struct FirstFour;

impl PrefixExtractor for FirstFour {
    fn name(&self) -> &str {
        "first four"
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        let (PrefixTarget::Point(bytes) | PrefixTarget::Prefix(bytes)) = target;
        (bytes.len() >= 4).then_some(4)
    }
}

#[tokio::test]
async fn slatedbs_prefix_filter_works_beside_bloomline() -> Result<(), Error> {
    let prefixes =
        BloomFilterPolicy::new(10).with_whole_key_filtering(false).with_prefix_extractor(Arc::new(FirstFour));
    let beside = || -> Policies { vec![bloomline().into(), Arc::new(prefixes)] };
    let store: Store = Arc::new(InMemory::new());
    let metrics = Metrics::default();
    let db = builder(&store, beside()).with_metrics_recorder(metrics.0.clone()).build().await?;
    let mut model = Model::default();
    model.write(&db, 1).await?;
    model.check(async |key| db.get(key).await, "a database with prefixes").await?;
    assert!(metrics.negatives() > 3 * KEYS * 98 / 100, "{}", metrics.negatives());

    let mut found = 0;
    for i in 0..2 * KEYS {
        let mut rows = db.scan_prefix(&key(i)[..4], ..).await?;
        while rows.next().await?.is_some() {
            found += u64::from(i < KEYS);
        }
    }
    let present: Vec<_> = model.0.iter().filter(|(_, held)| held.is_some()).map(|(i, _)| key(*i)).collect();
    let expected = (0..KEYS).map(|i| present.iter().filter(|other| other[..4] == key(i)[..4]).count() as u64);
    assert_eq!(found, expected.sum::<u64>());
    assert!(metrics.filters("negative", "prefix") > 3 * KEYS / 2);
    db.close().await?;
    assert_eq!(filter_names(&store).await?, vec![vec![OURS, "_bf:p=first four:wh=0"]; 3]);
    Ok(())
}

#[tokio::test]
async fn scans_read_no_filter_of_bloomline() -> Result<(), Error> {
    let store: Store = Arc::new(InMemory::new());
    let model = database(&store).await?;
    let (reader, metrics) = reader(&store, Some(ours())).await?;
    let mut rows = reader.scan(..).await?;
    let mut n = 0;
    while rows.next().await?.is_some() {
        n += 1;
    }
    assert_eq!(n, model.0.values().flatten().count());
    assert!(reader.scan_prefix("not hexadecimal", ..).await?.next().await?.is_none());
    for (answer, kind) in
        [("negative", "prefix"), ("positive", "prefix"), ("negative", "range"), ("positive", "range")]
    {
        assert_eq!(metrics.filters(answer, kind), 0, "{answer} {kind}");
    }
    Ok(())
}

/// CRC-32 as in zlib, which SlateDB ends its blocks with.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[tokio::test]
async fn damaged_filters_lose_no_key() -> Result<(), Error> {
    let store: Store = Arc::new(InMemory::new());
    let model = database(&store).await?;
    let sst = ssts(&store).await?.remove(0);
    let object = object_of(&sst);
    let intact = store.get(&object).await?.bytes().await?;
    let (start, length) = (sst.info.filter_offset as usize, sst.info.filter_len as usize);
    let last = start + length - 5; // the trailer of bloomline's filter, before the CRC

    // SlateDB's checksum detects flipped bits.
    for i in 0..100 {
        let mut damaged = intact.to_vec();
        damaged[start + mix(i) as usize % length] ^= 1 << (i % 8);
        store.put(&object, damaged.into()).await?;
        let (reader, _) = reader(&store, Some(ours())).await?;
        let mut errors = 0;
        for (i, held) in model.0.iter().take(50) {
            match reader.get(key(*i)).await {
                Ok(found) => assert_eq!(found.as_deref(), held.as_deref()),
                Err(error) => errors += usize::from(error.to_string().contains("checksum")),
            }
        }
        assert!(errors > 20, "{errors}");
        reader.close().await?;
    }

    // Bytes that are no filter, under a checksum that says they are intact.
    for damage in [
        |filter: &mut Vec<u8>| *filter.last_mut().unwrap() ^= 0x10, // another version
        |filter: &mut Vec<u8>| _ = filter.pop(),
        |filter: &mut Vec<u8>| filter.clear(),
        |filter: &mut Vec<u8>| filter.fill(0),
        |filter: &mut Vec<u8>| filter.fill(0xFF),
    ] {
        let name = 2 + 2 + OURS.len();
        let mut filter = intact[start + name + 8..=last].to_vec();
        damage(&mut filter);
        let n = (filter.len() as u64).to_be_bytes();
        let mut block = [&intact[start..start + name], &n, &filter].concat();
        // SlateDB ignores what follows the last filter.
        block.resize(length - 4, 0);
        block.extend(crc32(&block).to_be_bytes());
        let mut damaged = intact.to_vec();
        damaged[start..start + length].copy_from_slice(&block);
        store.put(&object, damaged.into()).await?;

        let policy = bloomline();
        let (reader, metrics) = reader(&store, Some(vec![policy.clone().into()])).await?;
        model.check(async |key| reader.get(key).await, "a damaged database").await?;
        assert!(policy.unusable_filters() >= KEYS, "{}", policy.unusable_filters());
        assert!(metrics.negatives() > KEYS, "of the other SSTs: {}", metrics.negatives());
        reader.close().await?;
    }

    store.put(&object, intact.into()).await?;
    let policy = bloomline();
    let (reader, _) = reader(&store, Some(vec![policy.clone().into()])).await?;
    model.check(async |key| reader.get(key).await, "a restored database").await?;
    assert_eq!(policy.unusable_filters(), 0);
    Ok(())
}

/// A cache in memory and on disk.
async fn disk_cache(
    directory: &Path,
) -> Result<Arc<slatedb::db_cache::foyer_hybrid::FoyerHybridCache>, Error> {
    use foyer::{BlockEngineConfig, DeviceBuilder, FsDeviceBuilder, HybridCacheBuilder, PsyncIoEngineConfig};
    let device = FsDeviceBuilder::new(directory).with_capacity(16 << 20).build()?;
    let cache = HybridCacheBuilder::new()
        .memory(16 << 20)
        .with_weighter(|_, entry: &slatedb::db_cache::CachedEntry| entry.size())
        .storage()
        .with_io_engine_config(PsyncIoEngineConfig::new())
        .with_engine_config(BlockEngineConfig::new(device).with_block_size(64 << 10))
        .build()
        .await?;
    Ok(Arc::new(slatedb::db_cache::foyer_hybrid::FoyerHybridCache::new_with_cache(cache)))
}

/// Reads everything through a disk cache, and returns how many filters said that a key is absent.
async fn read_through(
    store: &Store,
    model: &Model,
    directory: &Path,
    policies: Policies,
) -> Result<u64, Error> {
    use slatedb::DbCacheManagerOps;
    use slatedb::db_cache::DbCache;
    let cache = disk_cache(directory).await?;
    let metrics = Metrics::default();
    let db = builder(store, policies)
        .with_db_cache(cache.clone(), 1)
        .with_metrics_recorder(metrics.0.clone())
        .build()
        .await?;
    model.check(async |key| db.get(key).await, "a database with a disk cache").await?;
    db.flush_cache_to_disk().await?;
    db.close().await?;
    cache.close().await?;
    Ok(metrics.negatives())
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_pass_through_a_disk_cache() -> Result<(), Error> {
    let directory = tempfile::tempdir()?;
    let store: Store = Arc::new(InMemory::new());
    let model = database(&store).await?;
    let negatives = read_through(&store, &model, directory.path(), ours()).await?;
    assert!(negatives > 3 * KEYS * 98 / 100, "{negatives}");
    // From the disk, because the filters are no longer in the store.
    for sst in ssts(&store).await? {
        let object = object_of(&sst);
        let mut bytes = store.get(&object).await?.bytes().await?.to_vec();
        bytes[sst.info.filter_offset as usize..][..sst.info.filter_len as usize].fill(0);
        store.put(&object, bytes.into()).await?;
    }
    let negatives = read_through(&store, &model, directory.path(), ours()).await?;
    assert!(negatives > 3 * KEYS * 98 / 100, "{negatives}");
    Ok(())
}

/// So does a cache in memory that others share. If this fails, SlateDB has changed, too.
#[tokio::test]
async fn a_shared_cache_remembers_that_a_filter_was_dropped() -> Result<(), Error> {
    let store: Store = Arc::new(InMemory::new());
    let model = database(&store).await?;
    for (policies, uses_filters) in [(ours(), true), (own(), false)] {
        let cache = Arc::new(slatedb::db_cache::foyer::FoyerCache::new());
        let reader = DbReader::builder(PATH, store.clone())
            .with_reader_mode(DbReaderMode::FollowLatest)
            .with_merge_operator(Arc::new(Concatenate))
            .with_filter_policies(policies)
            .with_db_cache(cache.clone(), 1)
            .build()
            .await?;
        model.check(async |key| reader.get(key).await, "a reader with a shared cache").await?;
        let metrics = Metrics::default();
        let db = builder(&store, ours())
            .with_db_cache(cache, 1)
            .with_metrics_recorder(metrics.0.clone())
            .build()
            .await?;
        model.check(async |key| db.get(key).await, "a database with a shared cache").await?;
        assert_eq!(metrics.negatives() > 0, uses_filters);
        db.close().await?;
        reader.close().await?;
    }
    Ok(())
}

/// SlateDB's cache on disk keeps what a policy's absence left behind. If this fails, SlateDB has changed, so change the
/// documentation of the policy.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_cache_remembers_that_a_filter_was_dropped() -> Result<(), Error> {
    let directory = tempfile::tempdir()?;
    let store: Store = Arc::new(InMemory::new());
    let model = database(&store).await?;
    assert_eq!(read_through(&store, &model, directory.path(), own()).await?, 0);
    assert_eq!(read_through(&store, &model, directory.path(), ours()).await?, 0);
    let other = tempfile::tempdir()?;
    assert!(read_through(&store, &model, other.path(), ours()).await? > KEYS);
    Ok(())
}

/// The value that a key of the killed process's batch has when batch `last` was the last.
fn of_batch(batch: u64, n: u64, last: u64) -> Option<[u8; 16]> {
    let value = |time: u64| (u128::from(mix(batch)) << 64 | u128::from(time << 32 | n)).to_le_bytes();
    match n {
        0 if batch < last => None,
        1 if batch < last => Some(value(batch + 1)),
        _ => Some(value(batch)),
    }
}

const IN_BATCH: u64 = 20;

fn small_settings() -> Settings {
    let flush_interval = Some(Duration::from_millis(2));
    Settings { flush_interval, l0_sst_size_bytes: 32 << 10, ..settings() }
}

fn local(directory: &Path) -> Result<Store, Error> {
    Ok(Arc::new(LocalFileSystem::new_with_prefix(directory)?))
}

fn killed_policies(bloomline: bool) -> Policies {
    if bloomline { ours() } else { own() }
}

/// The process that is killed. Prints a batch's number once it is durable.
#[tokio::test]
#[ignore = "runs in a process of its own, as part of a_killed_process_loses_nothing_durable"]
async fn writes_until_killed() -> Result<(), Error> {
    let [directory, first, policy] = ["DIRECTORY", "FIRST", "POLICY"].map(std::env::var);
    let store = local(directory?.as_ref())?;
    let db = builder(&store, killed_policies(policy? == "bloomline"))
        .with_settings(small_settings())
        .with_compactor_builder(compactor(&store, Some(worker_options())))
        .build()
        .await?;
    for batch in first?.parse::<u64>()?.. {
        let mut writes = WriteBatch::new();
        for n in 0..IN_BATCH {
            writes.put(key(batch * IN_BATCH + n), of_batch(batch, n, batch).unwrap());
        }
        if let Some(before) = batch.checked_sub(1) {
            writes.delete(key(before * IN_BATCH));
            writes.put(key(before * IN_BATCH + 1), of_batch(before, 1, batch).unwrap());
        }
        db.write(writes).await?.await_durable().await?;
        let mut out = std::io::stdout();
        writeln!(out, "durable {batch}")?;
        out.flush()?;
    }
    Ok(())
}

#[tokio::test]
async fn a_killed_process_loses_nothing_durable() -> Result<(), Error> {
    let directory = tempfile::tempdir()?;
    let store = local(directory.path())?;
    let mut next = 0;
    let (mut compactions, mut life) = (0, 0);
    let start = Instant::now();
    while life < 6 || compactions == 0 {
        assert!(life < 6 || start.elapsed() < LONG, "nothing is compacted");
        let policy = if life % 3 == 1 { "own" } else { "bloomline" };
        let mut child = Command::new(std::env::current_exe()?)
            .args(["writes_until_killed", "--exact", "--ignored", "--nocapture"])
            .env("DIRECTORY", directory.path())
            .env("FIRST", next.to_string())
            .env("POLICY", policy)
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut durable = lines
            .map_while(Result::ok)
            .filter_map(|line| Some(line.split_once("durable ")?.1.parse::<u64>().unwrap()));
        let acknowledged = durable.nth(40 + mix(life) as usize % 60).expect("the process ended by itself");
        child.kill()?;
        child.wait()?;
        let acknowledged = durable.last().unwrap_or(acknowledged);

        let db = builder(&store, killed_policies(life % 2 == 0)).build().await?;
        let mut last = acknowledged;
        while db.get(key((last + 1) * IN_BATCH + 2)).await?.is_some() {
            last += 1;
        }
        for batch in 0..=last {
            for n in 0..IN_BATCH {
                let found = db.get(key(batch * IN_BATCH + n)).await?;
                let expected = of_batch(batch, n, last);
                assert_eq!(
                    found.as_deref(),
                    expected.as_ref().map(|value| &value[..]),
                    "{n} of batch {batch} of {last}"
                );
            }
        }
        for n in 0..IN_BATCH {
            assert!(db.get(key((last + 1) * IN_BATCH + n)).await?.is_none());
        }
        compactions += db.manifest().compacted().len();
        db.close().await?;
        next = last + 1;
        life += 1;
    }
    Ok(())
}

fn built(
    policy: &dyn FilterPolicy,
    entries: impl IntoIterator<Item = (Bytes, ValueDeletable)>,
) -> Arc<dyn slatedb::Filter> {
    let mut builder = policy.builder();
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

#[test]
fn estimates_are_right() {
    for bits_per_key in [0.5, 6.0, 10.0, 17.3, 64.0] {
        let policy = Bloomline::with_bits_per_key(bits_per_key).unwrap();
        for n in (0..600).chain([1000, 12_345, 100_000]) {
            let (estimate, bytes) = (policy.estimate_size(n), encoded(&*built(&policy, keys(n))).len());
            assert!((bytes..bytes + 66).contains(&estimate), "{estimate} for {bytes} of {n} keys");
        }
        for n in [usize::MAX, usize::MAX / 2, 1 << 60, 1 << 54] {
            assert!(policy.estimate_size(n) >= n / 16);
        }
    }
}

#[test]
fn filters_answer_only_for_whole_keys() {
    let policy = bloomline();
    assert_eq!(policy.name(), OURS);
    assert!(!policy.supports_prefix_queries() && !policy.supports_range_queries());
    for filter in
        [built(&policy, keys(10)), policy.decode(&[]), policy.decode(&encoded(&*built(&policy, keys(10))))]
    {
        assert!(filter.might_match(&FilterQuery::prefix("not there".into())));
        assert!(
            filter.might_match(&FilterQuery::range(Bound::Unbounded, Bound::Excluded("not there".into())))
        );
    }
    assert_eq!(policy.unusable_filters(), 0, "these queries need no filter");
}

#[test]
fn standard_filters_have_every_key_and_checksums() {
    let policy = BloomlineStandard::with_bits_per_key(10.0).unwrap();
    assert_eq!(policy.name(), "bloomline.Standard2");
    assert!(!policy.supports_prefix_queries() && !policy.supports_range_queries());
    for n in (0..70).chain([1000, 10_000]) {
        let versions = keys(n).flat_map(|key| [key.clone(), key]);
        let filter = built(&policy, versions);
        let bytes = encoded(&*filter);
        assert_eq!(policy.estimate_size(n), bytes.len(), "{n} keys");
        for filter in [&filter, &filter.clamp_allocated_size(), &policy.decode(&bytes)] {
            assert!((0..n as u64).all(|i| might_match(&**filter, key(i))));
            assert_eq!(encoded(&**filter), bytes);
            assert_eq!(filter.size(), (bytes.len() - 64).next_multiple_of(64));
            assert!(filter.might_match(&FilterQuery::prefix("not there".into())));
        }
        if n == 10_000 {
            let false_positives = (20_000..40_000).filter(|i| might_match(&*filter, key(*i))).count();
            assert!((120..210).contains(&false_positives), "{false_positives}");
        }
        // Wherever it is damaged or cut, it hides no key.
        for at in (0..bytes.len()).step_by(1 + bytes.len() / 200) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            for damaged in [&damaged[..], &bytes[..at]] {
                let before = policy.unusable_filters();
                let filter = policy.decode(damaged);
                assert!((0..9).all(|i| might_match(&*filter, key(i + 50_000))));
                assert_eq!(policy.unusable_filters() - before, 9);
            }
        }
    }
    assert_eq!(policy.estimate_size(usize::MAX), usize::MAX);
    assert!(BloomlineStandard::with_bits_per_key(f64::NAN).is_err());
}

/// Bytes of every short length, most with a valid trailer, at every address modulo 64, and longer bytes.
#[test]
fn any_bytes_are_a_filter_or_possibly_contain_everything() {
    let oracle = bloomline::sstable::FilterPolicy::with_bits_per_key(10.0).unwrap();
    let policy = bloomline();
    let (mut usable, mut unusable) = (0, 0);
    for length in (0..140).chain([200, 505, 513, 577, 4097]) {
        for at in 0..64 {
            let mut random = mix(length as u64 * 64 + at as u64);
            let mut memory = vec![0_u8; at + length];
            for byte in &mut memory {
                random = mix(random);
                // More ones than zeros, so that some answers are "possibly present".
                *byte = (random | random >> 8) as u8;
            }
            let trailer = if random.is_multiple_of(4) { random as u8 } else { 0x20 | random as u8 & 15 };
            if let Some(last) = memory[at..].last_mut() {
                *last = trailer;
            }
            let bytes = &memory[at..];

            let filter = policy.decode(bytes);
            let is_filter = oracle.try_key_may_match("", bytes).is_ok();
            *(if is_filter { &mut usable } else { &mut unusable }) += 1;
            let before = policy.unusable_filters();
            for filter in [&filter, &filter.clamp_allocated_size(), &policy.decode(&encoded(&*filter))] {
                for i in 0..8 {
                    assert_eq!(might_match(&**filter, key(i)), oracle.key_may_match(&key(i)[..], bytes));
                }
                let memory = if is_filter { length.next_multiple_of(64) } else { 0 };
                assert_eq!(filter.size(), memory);
                assert_eq!(encoded(&**filter), if is_filter { bytes } else { &[] });
            }
            assert_eq!(policy.unusable_filters() - before, if is_filter { 0 } else { 24 });
        }
    }
    assert!(usable > 500 && unusable > 500, "{usable} and {unusable}");
}
