//! What bloomline saves in SlateDB when each read of the bucket takes 5 ms:
//! `cargo run --release --features slatedb --example slatedb`

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bloomline_adapters::Bloomline;
use slatedb::config::{FlushOptions, FlushType, ReadOptions, Settings};
use slatedb::object_store::memory::InMemory;
use slatedb::object_store::throttle::{ThrottleConfig, ThrottledStore};
use slatedb::{Db, FilterPolicy, WriteBatch};

const KEYS: u64 = 100_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let bloomline = Bloomline::with_bits_per_key(10.0)?;
    missing_gets("no filter", vec![], 100).await?;
    missing_gets("bloomline", vec![bloomline.clone().into()], 5000).await?;
    println!("lookups in unusable filters: {}", bloomline.unusable_filters());
    Ok(())
}

async fn missing_gets(
    filter: &str,
    policies: Vec<Arc<dyn FilterPolicy>>,
    gets: u64,
) -> Result<(), Box<dyn Error>> {
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
    for sst in 0..4 {
        let mut batch = WriteBatch::new();
        for i in (sst..KEYS).step_by(4) {
            batch.put(format!("user{i:06}"), [0; 100]);
        }
        database.write(batch).await?;
        database.flush_with_options(FlushOptions { flush_type: FlushType::MemTable }).await?;
    }
    database.close().await?;

    // Opened again, the database has an empty cache. The first get loads filters and indexes; data blocks are not kept,
    // as in a database much larger than its cache.
    let database = open().await?;
    let options = ReadOptions::new().with_cache_blocks(false);
    database.get_with_options("user050000-", &options).await?;
    let start = Instant::now();
    for i in 0..gets {
        let missing = format!("user{:06}-", i * KEYS / gets);
        assert!(database.get_with_options(missing, &options).await?.is_none());
    }
    let milliseconds = start.elapsed().as_secs_f64() * 1e3 / gets as f64;
    println!("{filter}: {milliseconds:.2} ms for a get of a missing key, in 4 SSTs");
    Ok(database.close().await?)
}
