//! Inserts into bloomline's and fastbloom's atomic filters, of the same bits and each with its best k, by one thread and
//! by two.
//!
//! A turn inserts all keys of the filter: new keys into an empty filter, present keys into one that has them all. The
//! filters take turns in one process, in an order that changes with each round.
//!
//! ```text
//! cargo bench -p bloomline-comparison --bench atomic
//! ```

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use bloomline::{AtomicBloomFilter, mix};
use bloomline_comparison::line_up::{BEST_K, BITS_PER_KEY, BLOOMLINE, BLOOMLINE_BATCH, FASTBLOOM};
use bloomline_comparison::queries;
use bloomline_comparison::race::{median, race};
use bloomline_comparison::results::size_text;

type Key = [u8; 16];

/// Bytes of the filters, and rounds.
const SIZES: [(usize, usize); 2] = [(1 << 20, 51), (64 << 20, 3)];
/// Hashes in a call of `insert_batch`.
const BATCH: usize = 1024;
const ABSENT: u64 = 4 << 20;

enum Contender {
    Bloomline(AtomicBloomFilter),
    Batch(AtomicBloomFilter),
    Fastbloom(fastbloom::AtomicBloomFilter),
}

use Contender::{Batch, Bloomline, Fastbloom};

impl Contender {
    fn name(&self) -> &'static str {
        match self {
            Bloomline(_) => BLOOMLINE,
            Batch(_) => BLOOMLINE_BATCH,
            Fastbloom(_) => FASTBLOOM,
        }
    }

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
    let times = thread::scope(|scope| {
        let parts = keys.chunks(keys.len().div_ceil(threads));
        let workers: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
        let times = workers.into_iter().map(|worker| worker.join().expect("no panic"));
        times.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    });
    let (start, end) = times.expect("at least one thread");
    (end - start).as_nanos() as f64 / keys.len() as f64
}

fn main() {
    println!("ns per insert: time of all threads together / inserts; median of the rounds");
    println!("{:36}{:>16}{:>9}{:>20}", "", "", "ns", format!("× of {FASTBLOOM}"));
    for (size, rounds) in SIZES {
        let n_keys = 8 * size / BITS_PER_KEY;
        let bloomline = || AtomicBloomFilter::with_blocks(size / 64, BEST_K).expect("enough memory");
        let fastbloom = fastbloom::AtomicBloomFilter::with_num_bits(8 * size).expected_items(n_keys);
        println!(
            "{}, {BITS_PER_KEY} bits per key, k = {BEST_K} and {}",
            size_text(size),
            fastbloom.num_hashes()
        );
        let mut contenders = [Bloomline(bloomline()), Batch(bloomline()), Fastbloom(fastbloom)];
        let hashes: Vec<u64> = (0..n_keys as u64).map(mix).collect();
        let key = |&hash: &u64| (u128::from(mix(!hash)) << 64 | u128::from(hash)).to_le_bytes();
        let keys: Vec<Key> = hashes.iter().map(key).collect();
        for (is_by_hash, threads) in [(false, 1), (false, 2), (true, 1), (true, 2)] {
            for is_new in [true, false] {
                let times = race(&mut contenders, rounds, |contender| {
                    if is_new {
                        contender.clear();
                    }
                    match is_by_hash {
                        true => time(threads, &hashes, |hashes| contender.insert_hashes(hashes)),
                        false => time(threads, &keys, |keys| contender.insert_keys(keys)),
                    }
                });
                let keys_are = if is_new { "new" } else { "present" };
                let by = if is_by_hash { "hash" } else { "key" };
                let case = format!("{keys_are} keys, by {by}, threads: {threads}");
                for (contender, rounds) in contenders.iter().zip(&times) {
                    let ratios = rounds.iter().zip(&times[2]).map(|(ours, theirs)| ours / theirs);
                    let [ns, ratio] =
                        [median(rounds.iter().copied()), median(ratios)].map(|m| m.expect("rounds"));
                    println!("  {case:34}{:>16}{ns:9.1}{ratio:20.2}", contender.name());
                }
            }
        }
        // The last turns were by hash.
        for contender in &contenders {
            assert!(hashes.iter().all(|&hash| contender.contains_hash(hash)), "a key was lost");
            let positives = (0..ABSENT).filter(|&i| contender.contains_hash(queries::absent(i))).count();
            println!("  {} FPR: {:.3} %", contender.name(), 100.0 * positives as f64 / ABSENT as f64);
        }
    }
}
