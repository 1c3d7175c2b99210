//! Gets in SlateDB without a filter, with its own and with bloomline's, where each read of the bucket takes 5 ms:
//!
//! ```text
//! cargo run --release --manifest-path adapters/Cargo.toml --features slatedb --example slatedb
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use bloomline_adapters::{Bloomline, BloomlineStandard};
use slatedb::config::{FlushOptions, FlushType, ReadOptions, Settings};
use slatedb::object_store::memory::InMemory;
use slatedb::object_store::throttle::{ThrottleConfig, ThrottledStore};
use slatedb::{BloomFilterPolicy, Db, FilterPolicy, WriteBatch};

/// Fewer in a debug build, which is slow.
const KEYS: u64 = if cfg!(debug_assertions) { 20_000 } else { 100_000 };

fn key(i: u64) -> String {
    format!("user{i:012}")
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let policy = Bloomline::with_bits_per_key(10.0)?;
    let standard = BloomlineStandard::with_bits_per_key(10.0)?;
    measure("no filter", vec![], 100).await?;
    measure("SlateDB's default", vec![Arc::new(BloomFilterPolicy::new(10))], 5000).await?;
    measure("bloomline", vec![policy.clone().into()], 5000).await?;
    measure("bloomline standard", vec![standard.clone().into()], 5000).await?;
    println!("bloomline's unusable filters: {}", policy.unusable_filters() + standard.unusable_filters());
    Ok(())
}

async fn measure(name: &str, policies: Vec<Arc<dyn FilterPolicy>>, missing: u64) -> anyhow::Result<()> {
    let delay = ThrottleConfig { wait_get_per_call: Duration::from_millis(5), ..ThrottleConfig::default() };
    let bucket = Arc::new(ThrottledStore::new(InMemory::new(), delay));
    let open = || {
        let settings = Settings { compactor_options: None, ..Settings::default() };
        Db::builder("db", bucket.clone())
            .with_settings(settings)
            .with_filter_policies(policies.clone())
            .build()
    };

    let database = open().await?;
    // Only even numbers, so that each missing key lies between two present ones, in 4 SSTs.
    for sst in 0..4 {
        let mut batch = WriteBatch::new();
        for i in (sst..KEYS).step_by(4) {
            batch.put(key(2 * i), [b'v'; 100]);
        }
        database.write(batch).await?;
        database.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await?;
    }
    database.close().await?;

    // Opened again, the database has an empty cache. The first get loads filters and indexes; data blocks are not kept,
    // as in a database much larger than its cache.
    let database = open().await?;
    let options = ReadOptions::new().with_cache_blocks(false);
    database.get_with_options(key(1), &options).await?;
    for (what, odd, gets) in [("missing", 1, missing), ("present", 0, 100)] {
        let start = Instant::now();
        for i in 0..gets {
            let key = key(2 * (bloomline::mix(i) % KEYS) + odd);
            assert_eq!(database.get_with_options(key, &options).await?.is_some(), odd == 0);
        }
        let milliseconds = start.elapsed().as_secs_f64() * 1e3 / gets as f64;
        println!("{name:19}  get of a {what} key: {milliseconds:6.2} ms");
    }
    Ok(database.close().await?)
}
