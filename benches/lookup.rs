//! What does one lookup cost? Absent and present keys, each kernel, filters in L1, in L2 and in memory.
//!
//! ```text
//! cargo bench -p bloomline-benches --bench lookup                    # all
//! cargo bench -p bloomline-benches --bench lookup -- 'absent/k=6/16KiB'
//! cargo bench -p bloomline-benches --bench lookup -- --test          # each once, without timing
//! ```

use std::hint::black_box;

use bloomline::{BloomFilter, Kernel, mix};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Few enough that their hashes stay in cache, so that only the lookups are timed.
const QUERIES: u64 = 16 * 1024;

fn lookup(criterion: &mut Criterion) {
    for (size, size_bytes) in [("16KiB", 16 << 10), ("1MiB", 1 << 20), ("64MiB", 64 << 20)] {
        for k in [6, 8] {
            let n_blocks = size_bytes / 64;
            let keys = n_blocks as u64 * 512 / 10;
            let mut filter = BloomFilter::with_blocks(n_blocks, k).expect("64 MiB");
            let present: Vec<u64> = (0..keys).map(mix).collect();
            filter.insert_batch(&present);
            // From all keys, not only the first.
            let present: Vec<u64> = (0..QUERIES).map(|i| present[(mix(i) % keys) as usize]).collect();
            let absent: Vec<u64> = (0..QUERIES).map(|i| mix((1 << 40) + i)).collect();

            for (kind, queries) in [("absent", &absent), ("present", &present)] {
                let mut group = criterion.benchmark_group(format!("{kind}/k={k}/{size}"));
                group.throughput(Throughput::Elements(QUERIES));
                for kernel in Kernel::available() {
                    let filter = filter.clone().with_kernel(kernel);
                    group.bench_function(BenchmarkId::new("contains_hash", kernel), |bencher| {
                        bencher.iter(|| {
                            queries.iter().filter(|&&hash| filter.contains_hash(black_box(hash))).count()
                        });
                    });
                    let mut found = vec![false; queries.len()];
                    group.bench_function(BenchmarkId::new("contains_batch", kernel), |bencher| {
                        bencher.iter(|| filter.contains_batch(black_box(queries), black_box(&mut found)));
                    });
                    let mut found = vec![0; queries.len() / 8];
                    group.bench_function(BenchmarkId::new("contains_bitmap", kernel), |bencher| {
                        bencher.iter(|| filter.contains_bitmap(black_box(queries), black_box(&mut found)));
                    });
                }
                group.finish();
            }
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1))
        .sample_size(20);
    targets = lookup
}
criterion_main!(benches);
