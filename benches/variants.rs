//! What does each variant cost beside `BloomFilter`? Lookups of absent and present keys, inserts by one thread, and
//! inserts by up to eight threads into an `AtomicBloomFilter`. Filters are in L1, in L2 and in memory, and filled at 10
//! bits per key, but `two_modules` and `filter20` at 20.
//!
//! ```text
//! cargo bench -p bloomline-benches --bench variants                  # all
//! cargo bench -p bloomline-benches --bench variants -- 'absent/1MiB'
//! cargo bench -p bloomline-benches --bench variants -- --test        # each once, without timing
//! ```

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use bloomline::sizing::standard::StandardSizing;
use bloomline::variants::{CountingBloomFilter, ScalableBloomFilter, StandardBloomFilter};
use bloomline::{AtomicBloomFilter, BloomFilter, Sizing, mix};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

/// Few enough that their hashes stay in cache, so that only the lookups are timed.
const QUERIES: u64 = 16 * 1024;
const K: u32 = 6;
const SIZES: [(&str, usize); 3] = [("16KiB", 16 << 10), ("1MiB", 1 << 20), ("64MiB", 64 << 20)];

fn lookups(criterion: &mut Criterion) {
    for (size, size_bytes) in SIZES {
        let keys: Vec<u64> = (0..size_bytes as u64 * 8 / 10).map(mix).collect();
        let n_blocks = size_bytes / 64;
        let mut filter = BloomFilter::with_blocks(n_blocks, K).expect("64 MiB");
        filter.insert_batch(&keys);
        let atomic = AtomicBloomFilter::from(filter.clone());
        let mut counting =
            CountingBloomFilter::with_sizing(Sizing::new(n_blocks, K).unwrap()).expect("320 MiB");
        counting.insert_batch(&keys);
        let counting = counting.as_filter();
        let of_bits = StandardSizing::new(size_bytes as u64 * 8, 7).unwrap();
        let mut standard = StandardBloomFilter::with_sizing(of_bits).expect("64 MiB");
        standard.insert_batch(&keys);
        // Grown to a hundred times its initial capacity, to include the cost of the cascade.
        let mut scalable = ScalableBloomFilter::with_fpr((keys.len() / 100) as u64, 0.01).expect("150 MiB");
        scalable.insert_batch(&keys);

        // Twice as many bits per key, at which modules pay, and a filter of the same bits to compare with.
        let keys_of_modules = &keys[..keys.len() / 2];
        let mut two_modules = BloomFilter::with_sizing(of_two_modules(n_blocks)).expect("64 MiB");
        two_modules.insert_batch(keys_of_modules);
        let mut filter20 = BloomFilter::with_blocks(n_blocks, 11).expect("64 MiB");
        filter20.insert_batch(keys_of_modules);

        // From all keys, not only the first.
        let present: Vec<u64> =
            (0..QUERIES).map(|i| keys_of_modules[mix(i) as usize % keys_of_modules.len()]).collect();
        let absent: Vec<u64> = (0..QUERIES).map(|i| mix((1 << 40) + i)).collect();
        for (kind, queries) in [("absent", &absent), ("present", &present)] {
            let mut group = criterion.benchmark_group(format!("{kind}/{size}"));
            group.throughput(Throughput::Elements(QUERIES));
            macro_rules! measure {
                ($($filter:ident)*) => {$(
                    group.bench_function(concat!(stringify!($filter), "/contains_hash"), |bencher| {
                        bencher.iter(|| {
                            queries.iter().filter(|&&hash| $filter.contains_hash(black_box(hash))).count()
                        });
                    });
                    let mut found = vec![false; queries.len()];
                    group.bench_function(concat!(stringify!($filter), "/contains_batch"), |bencher| {
                        bencher.iter(|| $filter.contains_batch(black_box(queries), black_box(&mut found)));
                    });
                )*};
            }
            measure!(filter atomic counting standard scalable two_modules filter20);
            group.finish();
        }
    }
}

fn inserts(criterion: &mut Criterion) {
    for (size, size_bytes) in SIZES {
        let n_blocks = size_bytes / 64;
        let keys: Vec<u64> = (0..size_bytes as u64 * 8 / 10).map(mix).collect();
        let mut group = criterion.benchmark_group(format!("insert/{size}"));
        group.throughput(Throughput::Elements(keys.len() as u64));

        macro_rules! measure {
            ($($name:ident: $empty:expr;)*) => {$(
                let $name = $empty.expect("up to 320 MiB");
                group.bench_function(stringify!($name), |bencher| {
                    // Into an empty filter each time, because keys that are already present cost less.
                    bencher.iter_batched_ref(
                        || $name.clone(),
                        |filter| filter.insert_batch(&keys),
                        BatchSize::PerIteration,
                    );
                });
            )*};
        }
        measure! {
            filter: BloomFilter::with_blocks(n_blocks, K);
            counting: CountingBloomFilter::with_sizing(Sizing::new(n_blocks, K).unwrap());
            two_modules: BloomFilter::with_sizing(of_two_modules(n_blocks));
            standard: StandardBloomFilter::with_sizing(StandardSizing::new(size_bytes as u64 * 8, 7).unwrap());
            scalable: ScalableBloomFilter::with_fpr((keys.len() / 100) as u64, 0.01);
        }
        for threads in [1, 2, 4, 8] {
            if thread::available_parallelism().is_ok_and(|cpus| threads <= cpus.get()) {
                group.bench_function(format!("atomic/{threads} threads"), |bencher| {
                    bencher
                        .iter_custom(|times| (0..times).map(|_| time_threads(&filter, &keys, threads)).sum());
                });
            }
        }
        group.finish();
    }
}

fn of_two_modules(n_blocks: usize) -> Sizing {
    Sizing::new(n_blocks, K).and_then(|sizing| sizing.with_modules(2)).expect("in range")
}

/// The time from the first thread's start to the last one's end, each inserting its part of the keys.
fn time_threads(empty: &BloomFilter, keys: &[u64], threads: usize) -> Duration {
    let filter = AtomicBloomFilter::from(empty.clone());
    let barrier = Barrier::new(threads);
    let times: Vec<(Instant, Instant)> = thread::scope(|scope| {
        let workers: Vec<_> = keys
            .chunks(keys.len().div_ceil(threads))
            .map(|keys| {
                let (filter, barrier) = (&filter, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let start = Instant::now();
                    filter.insert_batch(keys);
                    (start, Instant::now())
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).collect()
    });
    let first = times.iter().map(|(start, _)| *start).min().expect("a thread");
    let last = times.iter().map(|(_, end)| *end).max().expect("a thread");
    last - first
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(10);
    targets = lookups, inserts
}
criterion_main!(benches);
