//! Inserts into bloomline's and fastbloom's atomic filters, of the same bits and each with its best k, by one thread and
//! by two.
//!
//! A turn inserts all keys of the filter, new keys into an empty filter, or present keys into a filter that has them
//! all.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use bloomline::{AtomicBloomFilter, BloomFilter, mix};
use bloomline_comparison::filter::BATCH;
use bloomline_comparison::line_up::{BITS_PER_KEY, BLOOMLINE, BLOOMLINE_BATCH, FASTBLOOM};
use bloomline_comparison::queries;
use bloomline_comparison::race::race;
use bloomline_comparison::results::{Table, size_text};

type Key = [u8; 16];

/// Bytes of the filters, and rounds.
const SIZES: [(usize, usize); 2] = [(1 << 20, 51), (64 << 20, 3)];
/// bloomline's best k at 10 bits per key.
const BEST_K: u32 = 6;
const ABSENT: u64 = 4 << 20;

enum Filter {
    Bloomline(AtomicBloomFilter),
    Batch(AtomicBloomFilter),
    Fastbloom(fastbloom::AtomicBloomFilter),
}

use Filter::{Batch, Bloomline, Fastbloom};

impl Filter {
    fn clear(&mut self) {
        match self {
            Bloomline(filter) | Batch(filter) => filter.clear(),
            Fastbloom(filter) => filter.clear(),
        }
    }

    fn insert_hashes(&self, hashes: &[u64]) {
        match self {
            Bloomline(filter) => hashes.iter().for_each(|&hash| _ = filter.insert_hash(hash)),
            Batch(filter) => hashes.chunks(BATCH).for_each(|hashes| filter.insert_batch(hashes)),
            Fastbloom(filter) => hashes.iter().for_each(|&hash| _ = filter.insert_hash(hash)),
        }
    }

    fn insert_keys(&self, keys: &[Key]) {
        match self {
            Bloomline(filter) => keys.iter().for_each(|key| _ = filter.insert(key)),
            Batch(filter) => keys.chunks(BATCH).for_each(|keys| {
                let mut hashes = [0; BATCH];
                keys.iter().zip(&mut hashes).for_each(|(key, hash)| *hash = filter.hash_key(key));
                filter.insert_batch(&hashes[..keys.len()]);
            }),
            Fastbloom(filter) => keys.iter().for_each(|key| _ = filter.insert(key)),
        }
    }

    fn contains_hash(&self, hash: u64) -> bool {
        match self {
            Bloomline(filter) | Batch(filter) => filter.contains_hash(hash),
            Fastbloom(filter) => filter.contains_hash(hash),
        }
    }
}

/// Nanoseconds from the start of the first thread to the end of the last, divided by the number of `keys`.
fn time<K: Sync>(threads: usize, keys: &[K], insert: impl Fn(&[K]) + Sync) -> f64 {
    let barrier = Barrier::new(threads);
    let work = |keys| {
        barrier.wait();
        let start = Instant::now();
        insert(keys);
        (start, Instant::now())
    };
    let times: Vec<_> = thread::scope(|scope| {
        let parts = keys.chunks(keys.len().div_ceil(threads));
        let workers: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).collect()
    });
    let start = times.iter().map(|(start, _)| start).min().expect("a thread");
    let end = times.iter().map(|(_, end)| end).max().expect("a thread");
    (*end - *start).as_nanos() as f64 / keys.len() as f64
}

fn main() {
    println!("ns per insert: time of all threads together / inserts; median of the rounds");
    for (size, rounds) in SIZES {
        let n_keys = 8 * size / BITS_PER_KEY;
        let bloomline =
            || AtomicBloomFilter::from(BloomFilter::with_blocks(size / 64, BEST_K).expect("enough memory"));
        let fastbloom = fastbloom::AtomicBloomFilter::with_num_bits(8 * size).expected_items(n_keys);
        let mut filters = [
            (BLOOMLINE, Bloomline(bloomline())),
            (BLOOMLINE_BATCH, Batch(bloomline())),
            (FASTBLOOM, Fastbloom(fastbloom)),
        ];
        let hashes: Vec<u64> = (0..n_keys as u64).map(mix).collect();
        let key = |&hash: &u64| (u128::from(mix(!hash)) << 64 | u128::from(hash)).to_le_bytes();
        let keys: Vec<Key> = hashes.iter().map(key).collect();
        let mut columns = Vec::new();
        for (by, threads) in [("key", 1), ("key", 2), ("hash", 1), ("hash", 2)] {
            for keys_are in ["new", "present"] {
                let case = format!("{keys_are} keys, by {by}, threads: {threads}");
                columns.push(race("", case, &mut filters, rounds, |filter| {
                    if keys_are == "new" {
                        filter.clear();
                    }
                    match by {
                        "key" => time(threads, &keys, |keys| filter.insert_keys(keys)),
                        _ => time(threads, &hashes, |hashes| filter.insert_hashes(hashes)),
                    }
                }));
            }
        }
        let title = format!("{}, {BITS_PER_KEY} bits per key, each with its best k", size_text(size));
        Table::ratios(&title, &columns, &[FASTBLOOM]).print();
        // The last turns were by hash.
        for (name, filter) in &filters {
            assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)), "a key was lost");
            let positives = (0..ABSENT).filter(|&i| filter.contains_hash(queries::absent(i))).count();
            println!("{name} FPR: {:.3}%", 100.0 * positives as f64 / ABSENT as f64);
        }
    }
}
