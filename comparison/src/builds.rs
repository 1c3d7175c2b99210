//! Ways to build a filter.

use std::hint::black_box;

use bloomline::{BloomFilter, FilterBuilder};

use crate::contender::Contender;
use crate::keys::Keys;
use crate::line_up::{
    BEST_K, BITS_PER_KEY, BLOOMFILTER_SEED, BLOOMLINE, BLOOMLINE_BATCH, FASTBLOOM, ROCKSDB, SBBF,
};
use crate::rocksdb::RocksDb;

pub const BUILDER: &str = "bloomline FilterBuilder";

/// Builds a filter of hashes and drops it.
pub type FromHashes = (&'static str, fn(&[u64]));

pub const FROM_HASHES: &[FromHashes] = &[
    (BLOOMLINE, |hashes| {
        let mut filter = bloomline_for(hashes.len());
        for &hash in hashes {
            filter.insert_hash(hash);
        }
        black_box(filter);
    }),
    (BLOOMLINE_BATCH, |hashes| {
        let mut filter = bloomline_for(hashes.len());
        filter.insert_batch(hashes);
        black_box(filter);
    }),
    ("bloomline batch, 2 threads", |hashes| {
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
    }),
    (BUILDER, |hashes| {
        let mut builder = builder();
        for &hash in hashes {
            builder.add_hash(hash);
        }
        black_box(builder.finish());
    }),
    (ROCKSDB, |hashes| {
        let mut filter = RocksDb::new(ROCKSDB, hashes.len() * BITS_PER_KEY / 8, BEST_K);
        filter.insert_all(hashes);
        black_box(&filter);
    }),
    (SBBF, |hashes| {
        let mut filter = sbbf_rs_safe::Filter::new(BITS_PER_KEY, hashes.len());
        for &hash in hashes {
            filter.insert_hash(hash);
        }
        black_box(filter);
    }),
    (FASTBLOOM, |hashes| {
        let bits = BITS_PER_KEY * hashes.len();
        let mut filter = fastbloom::BloomFilter::with_num_bits(bits).expected_items(hashes.len());
        for &hash in hashes {
            filter.insert_hash(hash);
        }
        black_box(filter);
    }),
    ("xorf BinaryFuse8", |hashes| {
        black_box(xorf::BinaryFuse8::try_from(hashes).expect("distinct keys"));
    }),
];

/// Builds a filter of keys and returns its bytes, as they would be written to a file.
pub type FromKeys = (&'static str, fn(&Keys) -> Vec<u8>);

pub const FROM_KEYS: &[FromKeys] = &[
    (BUILDER, |keys| {
        let mut builder = builder();
        for key in keys.iter() {
            builder.add(key);
        }
        let mut bytes = Vec::new();
        builder.finish_compact(&mut bytes);
        bytes
    }),
    ("bloomline, number of keys known", |keys| {
        let mut filter = bloomline_for(keys.iter().len());
        for key in keys.iter() {
            filter.insert(key);
        }
        let mut bytes = Vec::new();
        filter.write_compact(&mut bytes);
        bytes
    }),
    ("fastbloom, number of keys known", |keys| {
        let n = keys.iter().len();
        let mut filter = fastbloom::BloomFilter::with_num_bits(BITS_PER_KEY * n).expected_items(n);
        for key in keys.iter() {
            filter.insert(key);
        }
        filter.as_slice().iter().flat_map(|word| word.to_le_bytes()).collect()
    }),
    ("bloomfilter, number of keys known", |keys| {
        let n = keys.iter().len();
        let mut filter =
            bloomfilter::Bloom::<[u8]>::new_with_seed(n * BITS_PER_KEY / 8, n, &BLOOMFILTER_SEED)
                .expect("a valid size");
        for key in keys.iter() {
            filter.set(key);
        }
        filter.to_bytes()
    }),
];

fn bloomline_for(keys: usize) -> BloomFilter {
    BloomFilter::with_bits_per_key(keys, BITS_PER_KEY as f64).expect("enough memory")
}

fn builder() -> FilterBuilder {
    FilterBuilder::with_bits_per_key(BITS_PER_KEY as f64).expect("valid")
}
