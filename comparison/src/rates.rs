//! False positives, counted.

use bloomline::BloomFilter;

use crate::batch::Batch;
use crate::contender::{Contender, OneByOne};
use crate::line_up::{BLOOMLINE, BLOOMLINE_BATCH, FASTBLOOM, ROCKSDB, SBBF};
use crate::queries;
use crate::rocksdb::{self, RocksDb};

const CHUNK: u64 = 1 << 20;

/// Fills with keys 0, 1, ….
pub fn fill(contender: &mut dyn Contender, keys: u64) {
    let mut hashes = Vec::new();
    for start in (0..keys).step_by(CHUNK as usize) {
        hashes.clear();
        hashes.extend((start..keys.min(start + CHUNK)).map(bloomline::mix));
        contender.fill(&hashes);
    }
    contender.finish();
}

/// How many of how many missing keys are taken for present. Asks for `least` keys at least and `most` at most, and
/// stops once there are `enough` false positives.
pub fn false_positives(contender: &dyn Contender, least: u64, most: u64, enough: u64) -> (u64, u64) {
    let (mut positives, mut asked) = (0, 0);
    let mut hashes = Vec::new();
    while asked < least || (asked < most && positives < enough) {
        hashes.clear();
        // Not those that are timed.
        hashes.extend((asked..asked + CHUNK).map(|i| queries::missing((1 << 40) + i)));
        positives += contender.count_branching(&hashes) as u64;
        asked += CHUNK;
    }
    (positives, asked)
}

/// Contenders of `size_bytes` for `keys` keys, each with the k that it would choose, and that k.
pub fn with_best_k(size_bytes: usize, keys: usize) -> Vec<(u32, Box<dyn Contender>)> {
    let bits_per_key = 8.0 * size_bytes as f64 / keys as f64;
    let k = bloomline::sizing::best_k(bits_per_key).expect("valid bits per key");
    let bloomline = BloomFilter::with_blocks(size_bytes / 64, k).expect("enough memory");
    let probes = rocksdb::probes_for(bits_per_key);
    let fastbloom = fastbloom::BloomFilter::with_num_bits(8 * size_bytes).expected_items(keys);
    let sbbf = sbbf_rs_safe::Filter::new(8, size_bytes);
    vec![
        (k, Box::new(Batch::new(BLOOMLINE, bloomline))),
        (probes, Box::new(RocksDb::new(ROCKSDB, size_bytes, probes))),
        (8, Box::new(OneByOne::new(SBBF, sbbf))),
        (fastbloom.num_hashes(), Box::new(OneByOne::new(FASTBLOOM, fastbloom))),
    ]
}

/// Contenders of `size_bytes` that can do with any `k`.
pub fn with_k(size_bytes: usize, k: u32) -> Vec<Box<dyn Contender>> {
    let bloomline = BloomFilter::with_blocks(size_bytes / 64, k).expect("enough memory");
    let fastbloom = fastbloom::BloomFilter::with_num_bits(8 * size_bytes).hashes(k);
    vec![
        Box::new(OneByOne::new(BLOOMLINE, bloomline.clone())),
        Box::new(Batch::new(BLOOMLINE_BATCH, bloomline)),
        Box::new(RocksDb::new(ROCKSDB, size_bytes, k)),
        Box::new(OneByOne::new(FASTBLOOM, fastbloom)),
    ]
}
