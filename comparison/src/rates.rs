//! Measured false-positive rates.

use bloomline::BloomFilter;

use crate::batch::Batch;
use crate::contender::{Contender, OneByOne};
use crate::line_up::{BLOOMLINE, BLOOMLINE_BATCH, FASTBLOOM, SBBF};
use crate::queries;
use crate::rocksdb::{self, RocksDb};

const CHUNK: u64 = 1 << 20;

/// Inserts the keys 0 to `keys` − 1.
pub fn fill(contender: &mut dyn Contender, keys: u64) {
    let mut hashes = Vec::new();
    for start in (0..keys).step_by(CHUNK as usize) {
        hashes.clear();
        hashes.extend((start..keys.min(start + CHUNK)).map(bloomline::mix));
        contender.fill(&hashes);
    }
    contender.finish();
}

/// The number of false positives, and the number of absent keys queried for them: `least`, then more until there are
/// `enough` false positives, but not more than `most`.
pub fn false_positives(contender: &dyn Contender, least: u64, most: u64, enough: u64) -> (u64, u64) {
    let (mut positives, mut queried) = (0, 0);
    let mut hashes = Vec::new();
    while queried < least || (queried < most && positives < enough) {
        hashes.clear();
        // Not the keys of the timings.
        hashes.extend((queried..queried + CHUNK).map(|i| queries::absent((1 << 40) + i)));
        positives += contender.count_branching(&hashes) as u64;
        queried += CHUNK;
    }
    (positives, queried)
}

/// Contenders of `size_bytes` for `keys` keys, each with the k that its library chooses, and that k.
pub fn with_best_k(size_bytes: usize, keys: usize) -> Vec<(u32, Box<dyn Contender>)> {
    let bits_per_key = 8.0 * size_bytes as f64 / keys as f64;
    let k = bloomline::sizing::best_k(bits_per_key).expect("valid bits per key");
    let bloomline = BloomFilter::with_blocks(size_bytes / 64, k).expect("enough memory");
    let fastbloom = fastbloom::BloomFilter::with_num_bits(8 * size_bytes).expected_items(keys);
    let sbbf = sbbf_rs_safe::Filter::new(8, size_bytes);
    let mut contenders: Vec<(u32, Box<dyn Contender>)> = vec![
        (k, Box::new(Batch::new(BLOOMLINE, bloomline))),
        (8, Box::new(OneByOne::new(SBBF, sbbf))),
        (fastbloom.num_hashes(), Box::new(OneByOne::new(FASTBLOOM, fastbloom))),
    ];
    if let Some(&rocksdb) = rocksdb::BUILDS.first() {
        let k = rocksdb.probes_for(bits_per_key);
        contenders.push((k, Box::new(RocksDb::new(rocksdb, size_bytes, k))));
    }
    contenders
}

/// The contenders of `size_bytes` that support any `k`.
pub fn with_k(size_bytes: usize, k: u32) -> Vec<Box<dyn Contender>> {
    let bloomline = BloomFilter::with_blocks(size_bytes / 64, k).expect("enough memory");
    let fastbloom = fastbloom::BloomFilter::with_num_bits(8 * size_bytes).hashes(k);
    let mut contenders: Vec<Box<dyn Contender>> = vec![
        Box::new(OneByOne::new(BLOOMLINE, bloomline.clone())),
        Box::new(Batch::new(BLOOMLINE_BATCH, bloomline)),
        Box::new(OneByOne::new(FASTBLOOM, fastbloom)),
    ];
    if let Some(&rocksdb) = rocksdb::BUILDS.first() {
        contenders.push(Box::new(RocksDb::new(rocksdb, size_bytes, k)));
    }
    contenders
}
