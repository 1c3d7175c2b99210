//! The contenders, all with the same bits per key.

use std::hash::{Hash, Hasher};

use bloomcraft::core::BloomFilter as _;
use bloomline::{BloomFilter, Kernel};
use xorf::Filter as _;

use crate::baseline::Baseline;
use crate::batch::Batch;
use crate::contender::{Contender, OneByOne, Single, act_on};
use crate::rocksdb::{self, RocksDb};
#[cfg(feature = "huge-pages")]
use crate::small_pages::{SMALL_PAGES, SmallPages};

/// Bits per key of all contenders.
pub const BITS_PER_KEY: usize = 10;
/// The best k of bloomline and of RocksDB at 10 bits per key.
pub const BEST_K: u32 = 6;

pub const BLOOMLINE: &str = "bloomline";
pub const BLOOMLINE_BATCH: &str = "bloomline batch";
pub const FASTBLOOM: &str = "fastbloom";
pub const SBBF: &str = "sbbf-rs-safe";
/// Built for this CPU, as its Makefile does it.
pub const ROCKSDB: &str = "RocksDB";
/// Built as Debian does it, for every CPU of the architecture.
pub const ROCKSDB_DEBIAN: &str = "RocksDB (Debian)";
pub const AVX2: &str = "bloomline avx2";
pub const XORF: &str = "xorf BinaryFuse8";
pub const BASELINE: &str = "baseline";

/// The contenders that hash keys and are timed with it.
pub const BY_KEY: [&str; 5] = [BLOOMLINE, AVX2, ROCKSDB, ROCKSDB_DEBIAN, FASTBLOOM];

/// The two halves seed two hashes, so they must differ.
pub const BLOOMFILTER_SEED: [u8; 32] = *b"the first hash. the second hash.";

/// Above this size only the contenders of a target run, because the others would take minutes to fill, and only two at
/// a time: in a virtual machine all slow down threefold once some gigabytes of small pages are in use.
const LARGEST_FOR_ALL: usize = 64 << 20;
/// At this size all would fit, but cost a minute for a baseline that few of them come near.
const MEDIUM: usize = 16 << 20;
const MEDIUM_RACE: &[&str] =
    &[BASELINE, BLOOMLINE, BLOOMLINE_BATCH, AVX2, ROCKSDB, ROCKSDB_DEBIAN, SBBF, FASTBLOOM];
const LARGE_RACES: &[&[&str]] = &[
    &[BLOOMLINE_BATCH, BASELINE],
    &[BLOOMLINE, ROCKSDB],
    &[BLOOMLINE, SBBF],
    #[cfg(feature = "huge-pages")]
    &[BLOOMLINE_BATCH, SMALL_PAGES],
];

/// The contenders of each race at `size_bytes`; `None` for all in one race.
pub fn races(size_bytes: usize) -> Vec<Option<&'static [&'static str]>> {
    match size_bytes {
        MEDIUM => vec![Some(MEDIUM_RACE)],
        0..=LARGEST_FOR_ALL => vec![None],
        _ => LARGE_RACES.iter().copied().map(Some).collect(),
    }
}

/// Makes the empty contenders of `size_bytes` whose name `is_wanted`.
pub fn contenders(size_bytes: usize, is_wanted: impl Fn(&str) -> bool) -> Vec<Box<dyn Contender>> {
    let n_blocks = size_bytes / 64;
    let keys = size_bytes * 8 / BITS_PER_KEY;
    let bloomline = |k| BloomFilter::with_blocks(n_blocks, k).expect("enough memory");
    let mut contenders: Vec<Box<dyn Contender>> = Vec::new();
    let mut add = |name: &str, make: &dyn Fn() -> Box<dyn Contender>| {
        if is_wanted(name) {
            contenders.push(make());
        }
    };

    add(BASELINE, &|| Box::new(Baseline::new(size_bytes)));
    add(BLOOMLINE, &|| Box::new(OneByOne::new(BLOOMLINE, bloomline(BEST_K))));
    add(BLOOMLINE_BATCH, &|| Box::new(Batch::new(BLOOMLINE_BATCH, bloomline(BEST_K))));
    #[cfg(feature = "huge-pages")]
    add(SMALL_PAGES, &|| Box::new(SmallPages::new(bloomline(BEST_K))));
    for &build in rocksdb::BUILDS {
        add(build.name, &|| Box::new(RocksDb::new(build, size_bytes, BEST_K)));
    }
    add(SBBF, &|| Box::new(OneByOne::new(SBBF, sbbf_rs_safe::Filter::new(8, size_bytes))));
    add(FASTBLOOM, &|| {
        let filter = fastbloom::BloomFilter::with_num_bits(8 * size_bytes).expected_items(keys);
        Box::new(OneByOne::new(FASTBLOOM, filter))
    });
    add("bloomline k=8", &|| Box::new(OneByOne::new("bloomline k=8", bloomline(8))));
    add("bloomline batch k=8", &|| Box::new(Batch::new("bloomline batch k=8", bloomline(8))));
    for kernel in Kernel::available() {
        let name = format!("{BLOOMLINE} {kernel}");
        add(&name, &|| Box::new(OneByOne::new(&name, bloomline(BEST_K).with_kernel(kernel))));
        let name = format!("{BLOOMLINE_BATCH} {kernel}");
        add(&name, &|| Box::new(Batch::new(&name, bloomline(BEST_K).with_kernel(kernel))));
    }
    add("broomfilter", &|| {
        // One block fewer: with a power of two all keys of a block get the same step, and the FPR is 25 %.
        let size_bytes = size_bytes - 64;
        let filter = broomfilter::BlockedFilter::new(8 * size_bytes, keys).expect("a valid size");
        Box::new(OneByOne::new("broomfilter", Broomfilter { filter, size_bytes }))
    });
    add("bloomcraft", &|| Box::new(OneByOne::new("bloomcraft", bloomcraft_of(keys))));
    add("bloomfilter", &|| {
        let filter =
            bloomfilter::Bloom::new_with_seed(size_bytes, keys, &BLOOMFILTER_SEED).expect("a valid size");
        Box::new(OneByOne::new("bloomfilter", filter))
    });
    #[cfg(feature = "parquet")]
    add("parquet", &|| Box::new(OneByOne::new("parquet", parquet_of(size_bytes))));
    add(XORF, &|| Box::new(Xorf { hashes: Vec::new(), filter: None }));
    contenders
}

impl Single for BloomFilter {
    fn byte_len(&self) -> usize {
        self.byte_len()
    }

    #[inline(always)]
    fn insert(&mut self, hash: u64) {
        self.insert_hash(hash);
    }

    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        self.contains_hash(hash)
    }

    #[inline(always)]
    fn insert_key(&mut self, key: &[u8]) {
        self.insert(key);
    }

    #[inline(always)]
    fn contains_key(&self, key: &[u8]) -> bool {
        self.contains(key)
    }

    fn fill(&mut self, hashes: &[u64]) {
        self.insert_batch(hashes);
    }
}

impl Single for fastbloom::BloomFilter {
    fn byte_len(&self) -> usize {
        self.num_bits() / 8
    }

    #[inline(always)]
    fn insert(&mut self, hash: u64) {
        self.insert_hash(hash);
    }

    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        self.contains_hash(hash)
    }

    #[inline(always)]
    fn insert_key(&mut self, key: &[u8]) {
        self.insert(key);
    }

    #[inline(always)]
    fn contains_key(&self, key: &[u8]) -> bool {
        self.contains(key)
    }
}

impl Single for sbbf_rs_safe::Filter {
    fn byte_len(&self) -> usize {
        self.as_bytes().len()
    }

    #[inline(always)]
    fn insert(&mut self, hash: u64) {
        self.insert_hash(hash);
    }

    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        self.contains_hash(hash)
    }
}

impl Single for bloomfilter::Bloom<u64> {
    const REHASHES: bool = true;

    fn byte_len(&self) -> usize {
        self.len() as usize / 8
    }

    #[inline(always)]
    fn insert(&mut self, hash: u64) {
        self.set(&hash);
    }

    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        self.check(&hash)
    }
}

struct Broomfilter {
    filter: broomfilter::BlockedFilter,
    size_bytes: usize,
}

impl Single for Broomfilter {
    const REHASHES: bool = true;

    fn byte_len(&self) -> usize {
        self.size_bytes
    }

    #[inline(always)]
    fn insert(&mut self, hash: u64) {
        self.filter.insert(hash.to_le_bytes());
    }

    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        self.filter.contains(hash.to_le_bytes())
    }
}

type Bloomcraft = bloomcraft::filters::RegisterBlockedBloomFilter<u64, Identity>;

/// A bloomcraft filter of about 10 bits per key, if 10 bits for each of `keys` are a power of two.
fn bloomcraft_of(keys: usize) -> Bloomcraft {
    Bloomcraft::new(keys, BLOOMCRAFT_FPR).expect("a valid size")
}

/// The FPR for which bloomcraft takes a little less than 10 bits per key, which it rounds up to a power of two.
const BLOOMCRAFT_FPR: f64 = 0.021;

impl Single for Bloomcraft {
    fn byte_len(&self) -> usize {
        self.bit_count() / 8
    }

    #[inline(always)]
    fn insert(&mut self, hash: u64) {
        bloomcraft::core::BloomFilter::insert(self, &hash);
    }

    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        bloomcraft::core::BloomFilter::contains(self, &hash)
    }
}

/// The least work that bloomcraft's hasher can do: derive two hashes from the given one.
#[derive(Clone, Default)]
struct Identity;

impl bloomcraft::hash::BloomHasher for Identity {
    fn hash_bytes(&self, bytes: &[u8]) -> u64 {
        let mut hash = Captured(0);
        hash.write(bytes);
        hash.0
    }

    #[inline(always)]
    fn hash_item<T: Hash>(&self, item: &T) -> (u64, u64) {
        let mut hash = Captured(0);
        item.hash(&mut hash);
        (hash.0, hash.0.rotate_left(32))
    }

    fn name(&self) -> &'static str {
        "Identity"
    }
}

struct Captured(u64);

impl Hasher for Captured {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.try_into().map_or(0, u64::from_le_bytes);
    }

    #[inline(always)]
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(feature = "parquet")]
fn parquet_of(size_bytes: usize) -> parquet::bloom_filter::Sbbf {
    parquet::bloom_filter::Sbbf::new_with_num_of_bytes(size_bytes)
}

#[cfg(feature = "parquet")]
impl Single for parquet::bloom_filter::Sbbf {
    const REHASHES: bool = true;

    fn byte_len(&self) -> usize {
        self.num_blocks() * 32
    }

    #[inline(always)]
    fn insert(&mut self, hash: u64) {
        self.insert(&hash);
    }

    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        self.check(&hash)
    }
}

/// Not a Bloom filter: it is built from all keys at once, and shows what a static set achieves with as many bits.
struct Xorf {
    hashes: Vec<u64>,
    filter: Option<xorf::BinaryFuse8>,
}

impl Xorf {
    fn filter(&self) -> &xorf::BinaryFuse8 {
        self.filter.as_ref().expect("finished")
    }
}

impl Contender for Xorf {
    fn name(&self) -> &str {
        XORF
    }

    fn byte_len(&self) -> usize {
        self.filter().len()
    }

    fn rehashes(&self) -> bool {
        true
    }

    fn supports_inserts(&self) -> bool {
        false
    }

    fn insert_all(&mut self, hashes: &[u64]) {
        self.hashes.extend(hashes);
    }

    fn finish(&mut self) {
        self.filter = Some(xorf::BinaryFuse8::try_from(&self.hashes).expect("distinct keys"));
        self.hashes = Vec::new();
    }

    #[inline(never)]
    fn count(&self, hashes: &[u64]) -> usize {
        let filter = self.filter();
        hashes.iter().map(|hash| usize::from(filter.contains(hash))).sum()
    }

    #[inline(never)]
    fn count_branching(&self, hashes: &[u64]) -> usize {
        let filter = self.filter();
        let mut count = 0;
        for &hash in hashes {
            if filter.contains(&hash) {
                count += act_on(hash);
            }
        }
        count
    }
}
