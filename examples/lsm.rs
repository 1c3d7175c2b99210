//! Looks up one key in many filters, as an LSM tree does in the filters of all its tables.
//!
//! ```text
//! cargo run --release --example lsm
//! ```
//!
//! A key that may be in any of eight tables needs eight filter lookups. Once the filters are larger than the caches,
//! each lookup waits for memory, but prefetched or batched lookups wait at the same time. A bank has the bits that one
//! key needs of all tables side by side.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use bloomline::bank::{FilterBank, SlotBitmap};
use bloomline::{BloomFilter, BloomView};

const TABLES: u64 = 8;
/// Of each table's filter.
const MIB: u64 = 16;
const BITS_PER_KEY: u64 = 10;
const KEYS_IN_TABLE: u64 = (MIB << 23) / BITS_PER_KEY;
const GETS: usize = 16 * 1024;
const GETS_AT_ONCE: usize = 1024;
const ROUNDS: usize = 15;

/// Returns the number of tables where a key is possibly present, summed over the keys. The filters of all tables have
/// the same seed, so that one hash serves all of them.
type Way = fn(&[BloomFilter], &FilterBank, &[[u8; 16]]) -> usize;

const WAYS: [(&str, Way); 7] = [
    ("hash the key for every table", |tables, _, keys| {
        let may_hold = |key: &[u8; 16]| tables.iter().filter(|table| table.contains(key)).count();
        keys.iter().map(may_hold).sum()
    }),
    ("hash once", |tables, _, keys| {
        let hashes = keys.iter().map(|key| tables[0].hash_key(key));
        hashes.map(|hash| tables.iter().filter(|table| table.contains_hash(hash)).count()).sum()
    }),
    ("hash once, ask all at once", |tables, _, keys| {
        let hashes = keys.iter().map(|key| tables[0].hash_key(key));
        hashes.map(|hash| BloomView::which_contain(tables, hash).count()).sum()
    }),
    ("hash once, prefetch all, then ask all", |tables, _, keys| {
        let hashes = keys.iter().map(|key| tables[0].hash_key(key));
        let may_hold = |hash| {
            tables.iter().for_each(|table| table.prefetch(hash));
            BloomView::which_contain(tables, hash).count()
        };
        hashes.map(may_hold).sum()
    }),
    ("1024 keys at once, a batch per table", |tables, _, keys| {
        let mut hashes = [0; GETS_AT_ONCE];
        let mut found = [false; GETS_AT_ONCE];
        let mut may_hold = 0;
        for keys in keys.chunks(GETS_AT_ONCE) {
            let (hashes, found) = (&mut hashes[..keys.len()], &mut found[..keys.len()]);
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = tables[0].hash_key(key);
            }
            for table in tables {
                table.contains_batch(hashes, found);
                may_hold += found.iter().filter(|&&found| found).count();
            }
        }
        may_hold
    }),
    ("a bank of all tables", |_, bank, keys| {
        let mut found = SlotBitmap::new();
        let mut may_hold = |key: &[u8; 16]| {
            bank.as_view().find(key, &mut found);
            found.count()
        };
        keys.iter().map(&mut may_hold).sum()
    }),
    ("a bank, 1024 keys at once", |_, bank, keys| {
        let mut may_hold = 0;
        for keys in keys.chunks(GETS_AT_ONCE) {
            let hashes: Vec<u64> = keys.iter().map(|key| bank.as_view().hash_key(key)).collect();
            bank.as_view().find_batch(&hashes, |_, found| may_hold += found.count());
        }
        may_hold
    }),
];

fn key(number: u64) -> [u8; 16] {
    (u128::from(bloomline::mix(number)) << 64 | u128::from(number)).to_le_bytes()
}

fn main() -> Result<(), Box<dyn Error>> {
    let tables: Vec<BloomFilter> = (0..TABLES)
        .map(|table| {
            let mut filter = BloomFilter::with_bits_per_key(KEYS_IN_TABLE, BITS_PER_KEY as f64)?;
            for start in (0..KEYS_IN_TABLE).step_by(GETS) {
                let numbers = start..(start + GETS as u64).min(KEYS_IN_TABLE);
                let hashes: Vec<u64> =
                    numbers.map(|number| filter.hash_key(key(table << 40 | number))).collect();
                filter.insert_batch(&hashes);
            }
            Ok(filter)
        })
        .collect::<Result<_, bloomline::Error>>()?;
    let bank = FilterBank::from_filters(&tables)?;

    let mut times = [const { Vec::new() }; WAYS.len()];
    let mut positives = 0;
    for round in 0..ROUNDS as u64 {
        // Each way gets other keys, because the previous way's cache lines are still in the caches.
        for (i, (_, way)) in WAYS.iter().enumerate() {
            let first = (round * WAYS.len() as u64 + i as u64) * GETS as u64;
            let keys: Vec<[u8; 16]> = (first..first + GETS as u64).map(|i| key(1 << 60 | i)).collect();
            let start = Instant::now();
            let found = black_box(way(&tables, &bank, black_box(&keys)));
            times[i].push(start.elapsed().as_nanos() as f64 / GETS as f64);
            positives += found;
            let few = &keys[..GETS_AT_ONCE];
            let expected = way(&tables, &bank, few);
            assert!(WAYS.iter().all(|(_, way)| way(&tables, &bank, few) == expected), "the ways disagree");
        }
    }

    println!(
        "{TABLES} tables, each of {KEYS_IN_TABLE} keys with a filter of {MIB} MiB; lookups of absent keys"
    );
    println!();
    println!("{:<38} {:>10} {:>10}", "", "ns per key", "speed");
    let medians = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    });
    for ((name, _), median) in WAYS.iter().zip(medians) {
        println!("{name:<38} {median:>10.0} {:>8.1} x", medians[0] / median);
    }
    let lookups = (ROUNDS * GETS * WAYS.len()) as f64 * TABLES as f64;
    let fpr = positives as f64 / lookups;
    println!();
    println!("{lookups:.0} filter lookups, false-positive rate {:.3}%", 100.0 * fpr);
    Ok(())
}
