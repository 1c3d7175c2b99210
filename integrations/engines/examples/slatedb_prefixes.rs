//! Prefix scans in SlateDB without prefix filters, with its own and with bloomline's, from a bucket where each read
//! costs 5 ms:
//!
//! ```text
//! cargo run --release --manifest-path integrations/engines/Cargo.toml --features slatedb --example slatedb_prefixes
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use bloomline_adapters::{Bloomline, BloomlineStandard};
use slatedb::config::{FlushOptions, FlushType, Settings};
use slatedb::object_store::memory::InMemory;
use slatedb::object_store::throttle::{ThrottleConfig, ThrottledStore};
use slatedb::{
    BloomFilterPolicy, CacheTarget, Db, DbCacheManagerOps, FilterPolicy, PrefixExtractor, PrefixTarget,
    WriteBatch,
};
use slatedb_common::metrics::{DefaultMetricsRecorder, MetricValue};

/// Fewer in a debug build, which is slow.
const SSTS: u64 = if cfg!(debug_assertions) { 4 } else { 32 };
const SCANS: u64 = if cfg!(debug_assertions) { 200 } else { 2000 };
const USERS_IN_SST: u64 = 1000;
const EVENTS_OF_USER: u64 = 10;

/// The prefix of a key is all up to its first slash.
struct User;

impl PrefixExtractor for User {
    fn name(&self) -> &str {
        "to the first slash"
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        let (PrefixTarget::Point(bytes) | PrefixTarget::Prefix(bytes)) = target;
        Some(bytes.iter().position(|&byte| byte == b'/')? + 1)
    }
}

fn prefix(user: u64) -> String {
    format!("user{user:08}/")
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let own = BloomFilterPolicy::new(10);
    let blocked = Bloomline::with_bits_per_key(10.0)?;
    let standard = BloomlineStandard::with_bits_per_key(10.0)?;
    println!("filter                              bytes  scan of an absent user     of a present user");
    measure("whole keys only", blocked.clone().into(), 100).await?;
    measure("SlateDB's", Arc::new(own.with_prefix_extractor(Arc::new(User))), SCANS).await?;
    measure("bloomline", blocked.clone().with_prefix_extractor(Arc::new(User)).into(), SCANS).await?;
    measure("bloomline standard", standard.clone().with_prefix_extractor(Arc::new(User)).into(), SCANS)
        .await?;
    let prefixes_only =
        standard.clone().with_prefix_extractor(Arc::new(User)).with_whole_key_filtering(false);
    measure("bloomline standard, prefixes only", prefixes_only.into(), SCANS).await?;
    println!("bloomline's unusable filters: {}", blocked.unusable_filters() + standard.unusable_filters());
    Ok(())
}

async fn measure(name: &str, policy: Arc<dyn FilterPolicy>, scans: u64) -> anyhow::Result<()> {
    let delay = ThrottleConfig { wait_get_per_call: Duration::from_millis(5), ..ThrottleConfig::default() };
    let bucket = Arc::new(ThrottledStore::new(InMemory::new(), delay));
    let metrics = Arc::new(DefaultMetricsRecorder::new());
    let open = || {
        let settings = Settings {
            compactor_options: None,
            garbage_collector_options: None,
            l0_max_ssts: 1000,
            l0_max_ssts_per_key: 1000,
            // Reads of the manifest would count, too.
            manifest_poll_interval: Duration::from_secs(3600),
            ..Settings::default()
        };
        Db::builder("db", bucket.clone())
            .with_settings(settings)
            .with_filter_policies(vec![policy.clone()])
            .with_metrics_recorder(metrics.clone())
            .build()
    };

    let database = open().await?;
    // Each user with an even number is in one SST, and the users of every SST are spread over all.
    for sst in 0..SSTS {
        let mut batch = WriteBatch::new();
        for user in (sst..SSTS * USERS_IN_SST).step_by(SSTS as usize) {
            for event in 0..EVENTS_OF_USER {
                batch.put(format!("{}{event:08}", prefix(2 * user)), [b'v'; 100]);
            }
        }
        database.write(batch).await?;
        database.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await?;
    }

    database.close().await?;

    // Opened again, so that the database has an empty cache. By default, scans keep no data blocks in it.
    let database = open().await?;
    let mut filter_bytes = 0;
    for view in database.manifest().l0() {
        filter_bytes += view.sst.info.filter_len;
        database.warm_sst(view.sst.id, &[CacheTarget::Index, CacheTarget::Filters]).await?;
    }
    print!("{name:33} {filter_bytes:7}");
    for (odd, rows) in [(1, 0), (0, EVENTS_OF_USER)] {
        let (start, before) = (Instant::now(), reads(&metrics));
        for i in 0..scans {
            // Not at the edges, where an SST may not reach.
            let user = SSTS + bloomline::mix(i) % (SSTS * (USERS_IN_SST - 2));
            let mut scan = database.scan_prefix(prefix(2 * user + odd), ..).await?;
            let mut found = 0;
            while scan.next().await?.is_some() {
                found += 1;
            }
            ensure!(found == rows, "{found} events");
        }
        let milliseconds = start.elapsed().as_secs_f64() * 1e3 / scans as f64;
        let reads = (reads(&metrics) - before) as f64 / scans as f64;
        print!("  {milliseconds:7.2} ms, {reads:5.2} reads");
    }
    println!();
    Ok(database.close().await?)
}

fn reads(metrics: &DefaultMetricsRecorder) -> u64 {
    let count = |value: &MetricValue| match value {
        MetricValue::Counter(count) => *count,
        _ => 0,
    };
    let snapshot = metrics.snapshot();
    let requests = snapshot.by_name("slatedb.object_store.request_count");
    let reads =
        requests.iter().filter(|metric| metric.labels.iter().any(|(name, op)| name == "op" && op == "get"));
    reads.map(|metric| count(&metric.value)).sum()
}
