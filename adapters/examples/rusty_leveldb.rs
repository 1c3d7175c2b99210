//! Gets of missing keys in rusty-leveldb, without a filter, with its own and with bloomline's:
//!
//! ```text
//! cargo run --release --manifest-path adapters/Cargo.toml --features rusty-leveldb --example rusty_leveldb
//! ```
//!
//! On generic aarch64 it crashes, by undefined behaviour in rusty-leveldb 4.0.2: see adapters/README.md.

use std::rc::Rc;
use std::time::Instant;

use bloomline_adapters::Bloomline;
use rusty_leveldb::{BloomPolicy, DB, FilterPolicy, Options};

/// Fewer in a debug build, which is slow.
const KEYS: u64 = if cfg!(debug_assertions) { 50_000 } else { 500_000 };
const GETS: u64 = KEYS / 10;

struct NoFilter;

impl FilterPolicy for NoFilter {
    fn name(&self) -> &'static str {
        "example.NoFilter"
    }

    /// One byte, since the database reads at least one.
    fn create_filter(&self, _: &[u8], _: &[usize]) -> Vec<u8> {
        vec![0]
    }

    fn key_may_match(&self, _: &[u8], _: &[u8]) -> bool {
        true
    }
}

fn key(i: u64) -> String {
    format!("user{i:012}")
}

fn main() -> anyhow::Result<()> {
    let policy = Bloomline::with_bits_per_key(10.0)?;
    measure("no filter", Rc::new(Box::new(NoFilter)))?;
    measure("rusty-leveldb's own", Rc::new(Box::new(BloomPolicy::new(10))))?;
    measure("bloomline", policy.clone().into())?;
    println!("bloomline's unusable filters: {}", policy.unusable_filters());
    Ok(())
}

fn measure(name: &str, filter_policy: Rc<Box<dyn FilterPolicy>>) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let mut db = DB::open(directory.path(), Options { filter_policy, ..Options::default() })?;
    // Only even numbers, so that each missing key lies between two present ones.
    for i in 0..KEYS {
        db.put(key(2 * i).as_bytes(), &[b'v'; 100])?;
    }
    // To tables: gets of keys that are still in memory need no filter.
    db.compact_range(b"", key(2 * KEYS).as_bytes())?;
    for (what, odd) in [("missing", 1), ("present", 0)] {
        let start = Instant::now();
        for i in 0..GETS {
            let found = db.get(key(2 * (bloomline::mix(i) % KEYS) + odd).as_bytes());
            assert_eq!(found.is_some(), odd == 0);
        }
        let microseconds = start.elapsed().as_secs_f64() * 1e6 / GETS as f64;
        println!("{name:19}  get of a {what} key: {microseconds:6.2} µs");
    }
    Ok(())
}
