//! The contenders, each with its name.

use bloomline::{BloomFilter, Kernel, Sizing, mix, sizing};

use crate::cpp::{self, Cpp};
pub use crate::cpp::{C_LIBRARY, HEADER, HEADER_ANY, ROCKSDB, ROCKSDB_DEBIAN};
use crate::filter::{Baseline, Batch, Call, Filter, Xorf};
use crate::queries;

/// Bits per key where nothing else is said.
pub const BITS_PER_KEY: usize = 10;

pub const BASELINE: &str = "baseline";
pub const BLOOMLINE: &str = "bloomline";
pub const BLOOMLINE_BATCH: &str = "bloomline batch";
pub const CALL: &str = "bloomline, by a call";
pub const ONE_MODULE: &str = "bloomline, one module";
pub const AVX2: &str = "bloomline avx2";
pub const SBBF: &str = "sbbf-rs-safe";
pub const FASTBLOOM: &str = "fastbloom";
pub const XORF: &str = "xorf BinaryFuse8";

/// The contenders that hash keys and are timed with it.
pub const HASH_KEYS: [&str; 8] =
    [BLOOMLINE, AVX2, HEADER, HEADER_ANY, C_LIBRARY, ROCKSDB, ROCKSDB_DEBIAN, FASTBLOOM];
/// The contenders whose inserts are not timed, because keys cannot be inserted one by one, or as by another contender.
pub const WITHOUT_INSERTS: [&str; 3] = [BASELINE, CALL, XORF];

/// Above this size only the contenders of a target run, because filling the rest would cost minutes. They run two at a
/// time, because in a virtual machine all slow down threefold once some gigabytes of small pages are in use.
const LARGEST_FOR_ALL: usize = 64 << 20;
/// At this size all would fit, but cost a minute for a baseline that few of them come near.
const MEDIUM: usize = 16 << 20;
const MEDIUM_RACE: &[&str] =
    &[BASELINE, BLOOMLINE, CALL, BLOOMLINE_BATCH, AVX2, ROCKSDB, ROCKSDB_DEBIAN, SBBF, FASTBLOOM];
const LARGE_RACES: &[&[&str]] = &[&[BLOOMLINE_BATCH, BASELINE], &[BLOOMLINE, ROCKSDB], &[BLOOMLINE, SBBF]];

/// The contenders at equal rates. Contenders in one row set the same bits, so only the first one's rate is measured to
/// size them.
pub const AT_RATES: [&[&str]; 5] =
    [&[BLOOMLINE, BLOOMLINE_BATCH], &[ONE_MODULE], &[ROCKSDB], &[SBBF], &[FASTBLOOM]];

/// The contenders of each race at `size_bytes`. Empty if all run in one race.
pub fn races(size_bytes: usize) -> &'static [&'static [&'static str]] {
    match size_bytes {
        MEDIUM => &[MEDIUM_RACE],
        0..=LARGEST_FOR_ALL => &[&[]],
        _ => LARGE_RACES,
    }
}

pub type Contender = (String, Box<dyn Filter>);

/// Makes the empty contenders of `size_bytes` whose name `is_wanted`, with `k` probes per key, or as many, in as many
/// modules, as the library chooses for `keys`.
pub fn contenders(
    size_bytes: usize,
    keys: usize,
    k: Option<u32>,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<Contender> {
    let bits_per_key = 8.0 * size_bytes as f64 / keys as f64;
    let chosen = Sizing::for_bits_per_key(keys as u64, bits_per_key).expect("valid bits per key");
    let (k_chosen, modules) = k.map_or((chosen.k(), chosen.n_modules()), |k| (k, 1));
    // Rounding may have chosen a block more than there are.
    let sizing = Sizing::new(size_bytes / 64, k_chosen).and_then(|sizing| sizing.with_modules(modules));
    let bloomline = || BloomFilter::with_sizing(sizing.expect("a size")).expect("enough memory");
    let mut contenders = Vec::new();
    let mut add = |name: &str, make: &dyn Fn() -> Box<dyn Filter>| {
        if is_wanted(name) {
            contenders.push((name.to_owned(), make()));
        }
    };

    add(BASELINE, &|| Box::new(Baseline::new(size_bytes)));
    add(BLOOMLINE, &|| Box::new(bloomline()));
    add(CALL, &|| Box::new(Call(bloomline())));
    add(ONE_MODULE, &|| {
        let k = sizing::best_k(bits_per_key).expect("valid bits per key");
        Box::new(BloomFilter::with_blocks(size_bytes / 64, k).expect("enough memory"))
    });
    add(BLOOMLINE_BATCH, &|| Box::new(Batch(bloomline())));
    for &(name, functions) in cpp::CONTENDERS.iter().copied().flatten() {
        add(name, &|| Box::new(Cpp::new(functions, size_bytes, bits_per_key, k)));
    }
    add(SBBF, &|| Box::new(sbbf_rs_safe::Filter::new(8, size_bytes)));
    add(FASTBLOOM, &|| {
        let filter = fastbloom::BloomFilter::with_num_bits(8 * size_bytes);
        Box::new(match k {
            Some(k) => filter.hashes(k),
            None => filter.expected_items(keys),
        })
    });
    for kernel in Kernel::available().filter(|kernel| !["avx512", "reference"].contains(&kernel.name())) {
        add(&format!("{BLOOMLINE} {kernel}"), &|| Box::new(bloomline().with_kernel(kernel)));
    }
    add(XORF, &|| Box::<Xorf>::default());
    contenders
}

const CHUNK: u64 = 1 << 20;

/// Inserts the keys 0 to `keys` − 1.
pub fn fill(filter: &mut dyn Filter, keys: u64) {
    for start in (0..keys).step_by(CHUNK as usize) {
        filter.fill(&Vec::from_iter((start..keys.min(start + CHUNK)).map(mix)));
    }
    filter.finish();
}

/// The false-positive rate of each contender, in %, measured with `most` absent keys, or until there are `enough` false
/// positives. Omits rates of so few false positives that they are too uncertain.
pub fn rates(contenders: &[Contender], most: u64, enough: usize) -> impl Iterator<Item = (String, f64)> {
    contenders.iter().filter_map(move |(name, filter)| {
        let (mut positives, mut queried) = (0, 0);
        while queried < most && positives < enough {
            // Different keys than in the timings.
            let hashes = (queried..queried + CHUNK).map(|i| queries::absent((1 << 40) + i));
            positives += filter.count(&Vec::from_iter(hashes), true);
            queried += CHUNK;
        }
        (positives >= 100).then(|| (name.clone(), 100.0 * positives as f64 / queried as f64))
    })
}
