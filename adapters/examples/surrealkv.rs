//! Gets of missing keys in SurrealKV, without a filter, with its own and with bloomline's:
//!
//! ```text
//! cargo run --release --manifest-path adapters/Cargo.toml --features surrealkv --example surrealkv
//! ```

use std::sync::Arc;
use std::time::Instant;

use bloomline_adapters::Bloomline;
use surrealkv::{CompactRangeOptions, FilterPolicy, Options, TreeBuilder};

/// Fewer in a debug build, which is slow.
const KEYS: u64 = if cfg!(debug_assertions) { 50_000 } else { 500_000 };

fn key(i: u64) -> String {
    format!("user{i:012}")
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let policy = Bloomline::with_bits_per_key(10.0)?;
    measure("no filter", None).await?;
    measure("SurrealKV's default", Options::default().filter_policy).await?;
    measure("bloomline", Some(policy.clone().into())).await?;
    println!("bloomline's unusable filters: {}", policy.unusable_filters());
    Ok(())
}

async fn measure(name: &str, policy: Option<Arc<dyn FilterPolicy>>) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let tree =
        TreeBuilder::new().with_path(directory.path().to_owned()).with_filter_policy(policy).build()?;
    // Only even numbers, so that each missing key lies between two present ones.
    for batch in 0..KEYS / 1000 {
        let mut transaction = tree.begin()?;
        for i in 1000 * batch..1000 * (batch + 1) {
            transaction.set(key(2 * i).as_str(), [b'v'; 100].as_slice())?;
        }
        transaction.commit().await?;
    }
    // To tables: gets of keys that are still in memory need no filter.
    tokio::task::block_in_place(|| tree.compact_range(None, None, &CompactRangeOptions::default()))?;

    let transaction = tree.begin()?;
    let gets = KEYS / 10;
    for (what, odd) in [("missing", 1), ("present", 0)] {
        let start = Instant::now();
        for i in 0..gets {
            let found = transaction.get(key(2 * (bloomline::mix(i) % KEYS) + odd).as_str())?;
            assert_eq!(found.is_some(), odd == 0);
        }
        let microseconds = start.elapsed().as_secs_f64() * 1e6 / gets as f64;
        println!("{name:19}  get of a {what} key: {microseconds:6.2} µs");
    }
    drop(transaction);
    tree.close().await?;
    Ok(())
}
