//! Ways to build a filter.

use std::hint::black_box;

use bloomline::{BloomFilter, FilterBuilder};

use crate::keys::Keys;
use crate::line_up::{self, BITS_PER_KEY, BLOOMLINE, BLOOMLINE_BATCH, FASTBLOOM, ROCKSDB, SBBF, XORF};

pub const BUILDER: &str = "bloomline FilterBuilder";
const TWO_THREADS: &str = "bloomline batch, 2 threads";

/// The filters whose building from hashes is timed.
pub const FROM_HASHES: [&str; 8] =
    [BLOOMLINE, BLOOMLINE_BATCH, TWO_THREADS, BUILDER, ROCKSDB, SBBF, FASTBLOOM, XORF];

/// Builds the filter of this name and drops it.
pub fn from_hashes(name: &str, hashes: &[u64]) {
    match name {
        TWO_THREADS => {
            let empty = bloomline_for(hashes.len());
            let build = |hashes| {
                let mut filter = empty.clone();
                filter.insert_batch(hashes);
                filter
            };
            let (first, second) = hashes.split_at(hashes.len() / 2);
            black_box(std::thread::scope(|scope| {
                let other = scope.spawn(|| build(second));
                let mut filter = build(first);
                filter.union_with(&other.join().expect("no panic")).expect("equal shapes");
                filter
            }));
        }
        BUILDER => {
            let mut builder = builder();
            hashes.iter().for_each(|&hash| builder.insert_hash(hash));
            black_box(builder.finish().expect("enough memory"));
        }
        _ => {
            let size_bytes = hashes.len() * BITS_PER_KEY / 8 / 64 * 64;
            let contenders = line_up::contenders(size_bytes, hashes.len(), None, |other| other == name);
            for (_, mut filter) in contenders {
                filter.insert_all(hashes);
                filter.finish();
                black_box(filter.as_ref());
            }
        }
    }
}

/// Builds a filter of keys and returns its bytes, as they would be written to a file.
pub type FromKeys = fn(&Keys) -> Vec<u8>;

pub const FROM_KEYS: [(&str, FromKeys); 3] = [
    (BUILDER, |keys| {
        let (mut builder, mut bytes) = (builder(), Vec::new());
        keys.iter().for_each(|key| builder.insert(key));
        builder.finish_compact(&mut bytes).expect("enough memory");
        bytes
    }),
    ("bloomline, number of keys known", |keys| {
        let mut filter = bloomline_for(keys.iter().len());
        keys.iter().for_each(|key| _ = filter.insert(key));
        filter.to_compact()
    }),
    ("fastbloom, number of keys known", |keys| {
        let n = keys.iter().len();
        let mut filter = fastbloom::BloomFilter::with_num_bits(BITS_PER_KEY * n).expected_items(n);
        keys.iter().for_each(|key| _ = filter.insert(key));
        filter.as_slice().iter().flat_map(|word| word.to_le_bytes()).collect()
    }),
];

fn bloomline_for(keys: usize) -> BloomFilter {
    BloomFilter::with_bits_per_key(keys as u64, BITS_PER_KEY as f64).expect("enough memory")
}

fn builder() -> FilterBuilder {
    FilterBuilder::with_bits_per_key(BITS_PER_KEY as f64).expect("valid")
}
