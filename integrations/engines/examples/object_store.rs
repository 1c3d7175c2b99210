//! Which of 1,000 segments in an object store have a key? Gets without filters, with a filter for each segment, and
//! with a bank of all filters:
//!
//! ```text
//! cargo run --release --manifest-path integrations/engines/Cargo.toml --example object_store
//! ```
//!
//! A get first asks the filters, then reads the segments that possibly have the key, by up to 64 requests at once. The
//! example checks each answer and each number of requests. It reads footers by `GetRange::Suffix`. Azure does not
//! support that, so keep the footers in your manifest there.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bloomline::bank::{BankFooter, FilterBank, SlotBitmap};
use bloomline::{BloomFilter, OwnedView, Sizing, StandaloneFooter, hash_key};
use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};

const SEGMENTS: usize = 1_000;
const KEYS: usize = 1_000_000;
/// Each false positive reads a segment in vain. A get that asks 1,000 filters reads 0.1 segments in vain.
const FPR: f64 = 0.0001;
/// Bytes of an entry of a segment, which is a key of 16 bytes and a value.
const RECORD_BYTES: usize = 32;

/// What a get asks before it reads segments.
enum Filters {
    /// Nothing, so it reads all segments.
    None,
    /// The filters in the store, by a GET of 64 bytes for each.
    InStore(Vec<StandaloneFooter>),
    /// The filters in memory.
    InMemory(Vec<OwnedView<Bytes>>),
    /// The bank in the store, by one GET.
    Bank(BankFooter),
}

impl Filters {
    /// The segments that possibly have a key. After an error, any segment can have it, so the get fails here.
    async fn segments(&self, bucket: &Bucket, key: &str) -> anyhow::Result<Vec<usize>> {
        let hash = hash_key(key, 0); // seed 0, as the filters
        Ok(match self {
            Self::None => (0..SEGMENTS).collect(),
            Self::InStore(footers) => {
                let answers = footers.iter().enumerate().map(|(segment, footer)| async move {
                    let range = footer.range(hash)?;
                    let block = bucket.get(format!("filter/{segment}"), Some(range.into())).await?;
                    Ok(footer.contains_in_range(&block, hash)?)
                });
                let answers = concurrently(answers).await?;
                (0..SEGMENTS).filter(|&segment| answers[segment]).collect()
            }
            Self::InMemory(filters) => {
                (0..SEGMENTS).filter(|&segment| filters[segment].as_view().contains_hash(hash)).collect()
            }
            Self::Bank(footer) => {
                let region = bucket.get("bank".into(), Some(footer.range(hash).into())).await?;
                let mut found = SlotBitmap::new();
                footer.find_in_range(&region, hash, &mut found)?;
                found.iter().collect() // slot 0 has the filter of segment 0, and so on
            }
        })
    }
}

/// Counts GETs and bytes. Objects are never replaced, because a footer in memory must match its object.
struct Bucket {
    store: Box<dyn ObjectStore>,
    gets: AtomicUsize,
    bytes: AtomicUsize,
}

impl Bucket {
    async fn get(&self, name: String, range: Option<GetRange>) -> anyhow::Result<Bytes> {
        let options = GetOptions::new().with_range(range);
        let bytes = self.store.get_opts(&name.into(), options).await?.bytes().await?;
        self.gets.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes.len(), Relaxed);
        Ok(bytes)
    }
}

async fn concurrently<T>(
    requests: impl Iterator<Item = impl Future<Output = anyhow::Result<T>>>,
) -> anyhow::Result<Vec<T>> {
    stream::iter(requests).buffered(64).try_collect().await
}

fn key(i: usize) -> String {
    format!("user{i:012}")
}

fn has_key(segment: &[u8], key: &str) -> bool {
    let (records, _) = segment.as_chunks::<RECORD_BYTES>();
    records.binary_search_by(|record| record[..16].cmp(key.as_bytes())).is_ok()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let delay = ThrottleConfig {
        wait_get_per_call: Duration::from_millis(20),
        wait_get_per_byte: Duration::from_nanos(10),
        ..ThrottleConfig::default()
    };
    let store = ThrottledStore::new(InMemory::new(), delay);
    // One for all, and of one module, as a bank requires.
    let sizing = Sizing::for_fpr_within((KEYS / SEGMENTS) as u64, FPR, 1)?;
    let mut filters = Vec::new();
    for segment in 0..SEGMENTS {
        let mut filter = BloomFilter::with_sizing(sizing)?;
        let mut records = Vec::new();
        for i in (segment..KEYS).step_by(SEGMENTS) {
            let key = key(2 * i); // so that odd keys are absent
            filter.insert(&key);
            records.extend([key.as_bytes(), &[b'v'; 16]].concat());
        }
        store.put(&format!("segment/{segment}").into(), records.into()).await?;
        store.put(&format!("filter/{segment}").into(), filter.to_standalone().into()).await?;
        filters.push(filter);
    }
    store.put(&"bank".into(), FilterBank::from_filters(&filters)?.to_standalone().into()).await?;

    println!("An object store in memory, 20 ms for a GET and 10 ns for a byte:");
    println!("{:18}{:>20}{:>29}{:>29}", "", "opening", "get of an absent key", "get of a present key");
    let columns = format!("{:>9}{:>11}{:>9}", "GETs", "KB", "ms");
    println!("{:18}{:>9}{:>11}{columns}{columns}", "", "GETs", "KB");
    let bucket = &Bucket { store: Box::new(store), gets: AtomicUsize::new(0), bytes: AtomicUsize::new(0) };

    get(("no filters", Filters::None, 0), bucket, &filters).await?;

    let footers = (0..SEGMENTS).map(|segment| async move {
        let footer = bucket.get(format!("filter/{segment}"), Some(GetRange::Suffix(64))).await?;
        Ok(StandaloneFooter::read(&footer)?)
    });
    let in_store = Filters::InStore(concurrently(footers).await?);
    get(("filters, in store", in_store, SEGMENTS), bucket, &filters).await?;

    let whole = (0..SEGMENTS).map(|segment| async move {
        Ok(OwnedView::from_standalone(bucket.get(format!("filter/{segment}"), None).await?)?)
    });
    let in_memory = Filters::InMemory(concurrently(whole).await?);
    get(("filters, in memory", in_memory, 0), bucket, &filters).await?;

    let footer = BankFooter::read(&bucket.get("bank".into(), Some(GetRange::Suffix(64))).await?)?;
    get(("bank, in store", Filters::Bank(footer), 1), bucket, &filters).await?;

    let (blocks, region) = (filters[0].n_blocks(), footer.range(0).end);
    println!("Each filter has {blocks} blocks of 64 bytes, the bank {blocks} regions of {region} bytes.\n");
    Ok(())
}

/// Times gets, each of which asks the filters by `requests` GETs.
async fn get(
    (name, filters, requests): (&str, Filters, usize),
    bucket: &Bucket,
    expected: &[BloomFilter],
) -> anyhow::Result<()> {
    let kilobytes = bucket.bytes.swap(0, Relaxed) as f64 / 1e3;
    print!("{name:18}{:>9}{kilobytes:>11.1}", bucket.gets.swap(0, Relaxed));
    // Some send 1,000 requests each.
    let gets = if matches!(filters, Filters::None | Filters::InStore(_)) { 2 } else { 20 };
    for odd in [1, 0] {
        let (mut time, mut claimed) = (Duration::ZERO, 0);
        for i in 0..gets {
            let i = bloomline::mix(i) as usize % KEYS;
            let key = &key(2 * i + odd);
            let start = Instant::now();
            let segments = filters.segments(bucket, key).await?;
            let found = segments.iter().map(|&segment| async move {
                let records = bucket.get(format!("segment/{segment}"), None).await?;
                Ok(has_key(&records, key).then_some(segment))
            });
            let found = concurrently(found).await?;
            time += start.elapsed();

            assert!(found.into_iter().flatten().eq((odd == 0).then_some(i % SEGMENTS)));
            let all = matches!(filters, Filters::None);
            let may_have = (0..SEGMENTS).filter(|&segment| all || expected[segment].contains(key));
            assert!(segments.iter().copied().eq(may_have));
            claimed += requests + segments.len();
        }
        assert_eq!(bucket.gets.swap(0, Relaxed), claimed);
        let totals = [claimed as f64, bucket.bytes.swap(0, Relaxed) as f64 / 1e3, time.as_secs_f64() * 1e3];
        let [count, kilobytes, milliseconds] = totals.map(|total| total / gets as f64);
        print!("{count:>9.1}{kilobytes:>11.1}{milliseconds:>9.2}");
    }
    println!();
    Ok(())
}
