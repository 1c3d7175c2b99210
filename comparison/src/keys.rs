//! Byte keys: the timings include the hash.

use bloomline::{BloomFilter, mix};

use crate::line_up::{BEST_K, BITS_PER_KEY, BLOOMFILTER_SEED, BLOOMLINE, FASTBLOOM};
use crate::queries::Queries;

/// Keys of one length, stored end to end.
pub struct Keys {
    as_made: Vec<u8>,
    reordered: Vec<u8>,
    length: usize,
}

impl Keys {
    /// Keys of `length` bytes, at least 8. Keys with different numbers differ.
    pub fn new(numbers: impl Iterator<Item = u64>, length: usize) -> Self {
        let mut bytes = Vec::new();
        for number in numbers {
            let words = (0..).flat_map(|i| mix(number.wrapping_add(i << 56)).to_le_bytes());
            bytes.extend(words.take(length));
        }
        Self { reordered: bytes.clone(), as_made: bytes, length }
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.reordered.chunks_exact(self.length)
    }
}

impl Queries for Keys {
    fn len(&self) -> usize {
        self.as_made.len() / self.length
    }

    fn reorder(&mut self, order: impl Fn(usize) -> usize) {
        for (i, key) in self.reordered.chunks_exact_mut(self.length).enumerate() {
            key.copy_from_slice(&self.as_made[order(i) * self.length..][..self.length]);
        }
    }
}

/// A filter of byte keys in the comparison.
pub trait KeyContender {
    fn name(&self) -> &'static str;
    fn insert_all(&mut self, keys: &Keys);
    fn count(&self, keys: &Keys) -> usize;
}

trait KeyFilter {
    fn insert_key(&mut self, key: &[u8]);
    fn contains_key(&self, key: &[u8]) -> bool;
}

struct Entry<F>(&'static str, F);

impl<F: KeyFilter> KeyContender for Entry<F> {
    fn name(&self) -> &'static str {
        self.0
    }

    fn insert_all(&mut self, keys: &Keys) {
        for key in keys.iter() {
            self.1.insert_key(key);
        }
    }

    #[inline(never)]
    fn count(&self, keys: &Keys) -> usize {
        keys.iter().map(|key| usize::from(self.1.contains_key(key))).sum()
    }
}

/// Makes the empty contenders whose name `is_wanted`.
pub fn contenders(size_bytes: usize, is_wanted: impl Fn(&str) -> bool) -> Vec<Box<dyn KeyContender>> {
    let bits = 8 * size_bytes;
    let keys = bits / BITS_PER_KEY;
    let bloomline = BloomFilter::with_blocks(size_bytes / 64, BEST_K).expect("enough memory");
    let fastbloom = fastbloom::BloomFilter::with_num_bits(bits).expected_items(keys);
    let bloomfilter =
        bloomfilter::Bloom::<[u8]>::new_with_seed(size_bytes, keys, &BLOOMFILTER_SEED).expect("valid");
    let mut contenders: Vec<Box<dyn KeyContender>> = vec![
        Box::new(Entry(BLOOMLINE, bloomline)),
        Box::new(Entry(FASTBLOOM, fastbloom)),
        Box::new(Entry("broomfilter", broomfilter::BlockedFilter::new(bits, keys).expect("valid"))),
        Box::new(Entry("bloomfilter", bloomfilter)),
    ];
    #[cfg(feature = "parquet")]
    contenders.push(Box::new(Entry("parquet", crate::line_up::parquet_of(size_bytes))));
    contenders.retain(|contender| is_wanted(contender.name()));
    contenders
}

impl KeyFilter for BloomFilter {
    #[inline(always)]
    fn insert_key(&mut self, key: &[u8]) {
        self.insert(key);
    }

    #[inline(always)]
    fn contains_key(&self, key: &[u8]) -> bool {
        self.contains(key)
    }
}

impl KeyFilter for fastbloom::BloomFilter {
    #[inline(always)]
    fn insert_key(&mut self, key: &[u8]) {
        self.insert(key);
    }

    #[inline(always)]
    fn contains_key(&self, key: &[u8]) -> bool {
        self.contains(key)
    }
}

impl KeyFilter for broomfilter::BlockedFilter {
    #[inline(always)]
    fn insert_key(&mut self, key: &[u8]) {
        self.insert(key);
    }

    #[inline(always)]
    fn contains_key(&self, key: &[u8]) -> bool {
        self.contains(key)
    }
}

impl KeyFilter for bloomfilter::Bloom<[u8]> {
    #[inline(always)]
    fn insert_key(&mut self, key: &[u8]) {
        self.set(key);
    }

    #[inline(always)]
    fn contains_key(&self, key: &[u8]) -> bool {
        self.check(key)
    }
}

#[cfg(feature = "parquet")]
impl KeyFilter for parquet::bloom_filter::Sbbf {
    #[inline(always)]
    fn insert_key(&mut self, key: &[u8]) {
        self.insert(key);
    }

    #[inline(always)]
    fn contains_key(&self, key: &[u8]) -> bool {
        self.check(key)
    }
}
