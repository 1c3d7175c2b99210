//! Which of 1,000 segments in an object store have a key? Gets without a filter, with a filter per segment, and with one
//! bank of all filters:
//!
//! ```text
//! cargo run --release --manifest-path adapters/Cargo.toml --example object_store
//! ```
//!
//! Each lookup first asks the filters and then reads the segments that possibly have the key, with up to 64 requests at
//! once. Every answer and every number of requests is checked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bloomline::bank::{BankFooter, FilterBank, SlotBitmap};
use bloomline::{BloomFilter, OwnedView, StandaloneFooter, hash_key};
use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};

const SEGMENTS: usize = 1_000;
const KEYS_PER_SEGMENT: usize = 1_000;
/// Each false positive reads a segment in vain: 1,000 filters have 0.1 of them per lookup.
const FPR: f64 = 0.0001;
const REQUESTS_AT_ONCE: usize = 64;
/// A key of 16 bytes and a value of 16 bytes.
const RECORD_BYTES: usize = 32;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let delays = ThrottleConfig {
        wait_get_per_call: Duration::from_millis(20),
        wait_get_per_byte: Duration::from_nanos(10),
        ..ThrottleConfig::default()
    };
    let directory = tempfile::tempdir()?;
    let stores: [(_, Arc<dyn ObjectStore>); 2] = [
        (
            "in memory, 20 ms for each GET and 10 ns for each byte",
            Arc::new(ThrottledStore::new(InMemory::new(), delays)),
        ),
        ("local files", Arc::new(LocalFileSystem::new_with_prefix(directory.path())?)),
    ];
    for (name, store) in stores {
        let filters = write_segments(&*store).await?;
        println!("\n{name}:");
        println!("{:18}{:>17}{:>27}{:>27}", "", "opening", "get of an absent key", "get of a present key");
        let get = format!("{:>9}{:>10}{:>8}", "GETs", "KB", "ms");
        println!("{:18}{:>8}{:>9}{get}{get}", "", "GETs", "KB");
        let bucket = Bucket { store, gets: AtomicU64::new(0), bytes: AtomicU64::new(0) };
        measure("no filter", Filters::None, &bucket, &filters).await?;
        measure("filters, in store", Filters::one_by_one(&bucket).await?, &bucket, &filters).await?;
        measure("filters, in memory", Filters::in_memory(&bucket).await?, &bucket, &filters).await?;
        measure("bank, in store", Filters::bank(&bucket).await?, &bucket, &filters).await?;
    }
    Ok(())
}

/// What a lookup asks before it reads segments.
enum Filters {
    /// Nothing: it reads all segments.
    None,
    /// The filter of each segment, by a GET of 64 bytes.
    OneByOne(Vec<StandaloneFooter>),
    /// Filters that were read before.
    InMemory(Vec<OwnedView<Bytes>>),
    /// All filters, by one GET of a region.
    Bank(BankFooter),
}

impl Filters {
    async fn one_by_one(bucket: &Bucket) -> anyhow::Result<Self> {
        let footers = (0..SEGMENTS).map(|segment| async move {
            let bytes = bucket.get(filter_name(segment), Some(GetRange::Suffix(64))).await?;
            Ok(StandaloneFooter::read(&bytes)?)
        });
        Ok(Self::OneByOne(concurrently(footers).await?))
    }

    async fn in_memory(bucket: &Bucket) -> anyhow::Result<Self> {
        let filters = (0..SEGMENTS).map(|segment| async move {
            let bytes = bucket.get(filter_name(segment), None).await?;
            Ok(OwnedView::from_standalone(bytes)?)
        });
        Ok(Self::InMemory(concurrently(filters).await?))
    }

    async fn bank(bucket: &Bucket) -> anyhow::Result<Self> {
        let bytes = bucket.get(BANK.into(), Some(GetRange::Suffix(64))).await?;
        Ok(Self::Bank(BankFooter::read(&bytes)?))
    }

    /// The segments that possibly have the key. After an error, every segment possibly has it.
    async fn segments(&self, bucket: &Bucket, key: &str) -> anyhow::Result<Vec<usize>> {
        let hash = hash_key(key, 0);
        let segments = 0..SEGMENTS;
        Ok(match self {
            Self::None => segments.collect(),
            Self::OneByOne(footers) => {
                let answers = segments.clone().map(|segment| async move {
                    let range = footers[segment].range(hash)?;
                    let line = bucket.get(filter_name(segment), Some(range.into())).await?;
                    Ok(footers[segment].contains_in_range(&line, hash)?)
                });
                let answers = concurrently(answers).await?;
                segments.filter(|&segment| answers[segment]).collect()
            }
            Self::InMemory(filters) => {
                segments.filter(|&segment| filters[segment].contains_hash(hash)).collect()
            }
            Self::Bank(footer) => {
                let region = bucket.get(BANK.into(), Some(footer.range(hash).into())).await?;
                let mut found = SlotBitmap::new();
                footer.find_in_range(&region, hash, &mut found)?;
                found.iter().collect() // slot 0 has the filter of segment 0, and so on
            }
        })
    }

    /// GETs of a lookup before it reads segments.
    fn gets(&self) -> u64 {
        match self {
            Self::None | Self::InMemory(_) => 0,
            Self::OneByOne(footers) => footers.len() as u64,
            Self::Bank(_) => 1,
        }
    }
}

/// Counts what is read. Objects never change, so that a footer in memory fits the object.
struct Bucket {
    store: Arc<dyn ObjectStore>,
    gets: AtomicU64,
    bytes: AtomicU64,
}

impl Bucket {
    async fn get(&self, name: String, range: Option<GetRange>) -> anyhow::Result<Bytes> {
        let options = GetOptions::new().with_range(range);
        let bytes = self.store.get_opts(&name.into(), options).await?.bytes().await?;
        self.gets.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes.len() as u64, Relaxed);
        Ok(bytes)
    }

    /// GETs and bytes since the last call.
    fn take_counts(&self) -> (u64, u64) {
        (self.gets.swap(0, Relaxed), self.bytes.swap(0, Relaxed))
    }
}

async fn concurrently<T>(
    requests: impl Iterator<Item = impl Future<Output = anyhow::Result<T>>>,
) -> anyhow::Result<Vec<T>> {
    stream::iter(requests).buffered(REQUESTS_AT_ONCE).try_collect().await
}

const BANK: &str = "bank";

fn filter_name(segment: usize) -> String {
    format!("filter/{segment}")
}

fn segment_name(segment: usize) -> String {
    format!("segment/{segment}")
}

fn key(i: usize) -> String {
    format!("user{i:012}")
}

fn value(i: usize) -> String {
    format!("value{i:011}")
}

/// Writes each segment, with only even numbers as keys, its filter, and the bank.
async fn write_segments(store: &dyn ObjectStore) -> anyhow::Result<Vec<BloomFilter>> {
    let mut filters = Vec::new();
    for segment in 0..SEGMENTS {
        let mut filter = BloomFilter::with_fpr(KEYS_PER_SEGMENT, FPR)?; // the same size for all
        let mut data = Vec::new();
        for i in (segment..SEGMENTS * KEYS_PER_SEGMENT).step_by(SEGMENTS) {
            filter.insert(key(2 * i));
            data.extend([key(2 * i), value(2 * i)].concat().as_bytes());
        }
        store.put(&segment_name(segment).into(), data.into()).await?;
        store.put(&filter_name(segment).into(), filter.to_standalone().into()).await?;
        filters.push(filter);
    }
    store.put(&BANK.into(), FilterBank::from_filters(&filters)?.to_standalone().into()).await?;
    Ok(filters)
}

fn value_in<'a>(data: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let (records, _) = data.as_chunks::<RECORD_BYTES>();
    let found = records.binary_search_by(|record| record[..16].cmp(key.as_bytes())).ok()?;
    Some(&records[found][16..])
}

async fn measure(
    name: &str,
    filters: Filters,
    bucket: &Bucket,
    expected: &[BloomFilter],
) -> anyhow::Result<()> {
    let (opening_gets, opening_bytes) = bucket.take_counts();
    print!("{name:18}{opening_gets:>8}{:>9.1}", opening_bytes as f64 / 1e3);
    let lookups = if matches!(filters, Filters::None | Filters::OneByOne(_)) { 3 } else { 30 };
    for odd in [1, 0] {
        let (mut gets, mut bytes, mut time) = (0, 0, Duration::ZERO);
        for lookup in 0..lookups {
            let i = 2 * (bloomline::mix(lookup) as usize % (SEGMENTS * KEYS_PER_SEGMENT)) + odd;
            let key = &key(i);

            let start = Instant::now();
            let segments = filters.segments(bucket, key).await?;
            let values = segments.iter().map(|&segment| async move {
                let data = bucket.get(segment_name(segment), None).await?;
                Ok(value_in(&data, key).map(|value| value.to_vec()))
            });
            let values = concurrently(values).await?;
            time += start.elapsed();

            let found: Vec<_> = values.into_iter().flatten().collect();
            assert!(if odd == 0 { found == [value(i).as_bytes()] } else { found.is_empty() });
            let may_have =
                |segment: &usize| matches!(filters, Filters::None) || expected[*segment].contains(key);
            assert!(segments.iter().copied().eq((0..SEGMENTS).filter(may_have)));
            let counts = bucket.take_counts();
            assert_eq!(counts.0, filters.gets() + segments.len() as u64);
            (gets, bytes) = (gets + counts.0, bytes + counts.1);
        }
        let per_lookup = |total: f64| total / lookups as f64;
        let (kilobytes, milliseconds) = (bytes as f64 / 1e3, time.as_secs_f64() * 1e3);
        print!(
            "{:>9.1}{:>10.1}{:>8.1}",
            per_lookup(gets as f64),
            per_lookup(kilobytes),
            per_lookup(milliseconds)
        );
    }
    println!();
    Ok(())
}
