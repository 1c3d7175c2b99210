//! The measured false-positive rate is that of the model, by which `sizing` chooses sizes for a requested one.
//!
//! The default tests are quick enough for a debug build. For the full sweep run
//! `cargo test --release --test rates -- --include-ignored`.

use bloomline::{BloomFilter, BloomView, FilterBuilder, Sizing, hash_key, mix, sizing};

/// Hashes of keys that these tests never insert.
fn absent(from: u64) -> impl Iterator<Item = u64> {
    (from..).map(|i| mix((1 << 60) | i))
}

/// The number of false positives among `probes` absent keys.
fn false_positives(filter: &BloomFilter, probes: u64) -> u64 {
    let mut found = [false; 4096];
    let mut count = 0;
    let mut hashes = absent(0);
    for _ in 0..probes.div_ceil(4096) {
        let batch: Vec<u64> = hashes.by_ref().take(4096).collect();
        filter.contains_batch(&batch, &mut found);
        count += found.iter().filter(|&&found| found).count() as u64;
    }
    count
}

/// Filters of one size, each with keys of its own.
#[derive(Default)]
struct Filters {
    n_blocks: f64,
    /// The sums over all blocks of the false-positive rate, of the number of keys, and of their squares and product.
    rate: f64,
    load: f64,
    squares: [f64; 2],
    product: f64,
    lookups: u64,
    positives: u64,
}

impl Filters {
    fn new(sizing: Sizing, keys: u64, filters: u64, lookups: u64) -> Self {
        let mut all = Self::default();
        for round in 0..filters {
            let hashes: Vec<u64> = (0..keys).map(|i| mix((round << 32) | i)).collect();
            let mut filter = BloomFilter::with_sizing(sizing).unwrap();
            filter.insert_batch(&hashes);
            all.add(&filter, &hashes);
            all.lookups += lookups.div_ceil(4096) * 4096;
            all.positives += false_positives(&filter, lookups);
        }
        all
    }

    fn add(&mut self, filter: &BloomFilter, hashes: &[u64]) {
        let mut loads = vec![0_u32; filter.n_blocks()];
        for &hash in hashes {
            loads[((u128::from(hash) * filter.n_blocks() as u128) >> 64) as usize] += 1;
        }
        let bytes = filter.to_compact();
        let (blocks, _) = bytes.as_chunks::<64>();
        assert_eq!(blocks.len(), loads.len(), "not a short filter");
        for (block, load) in blocks.iter().zip(loads) {
            let fill: Vec<f64> = block
                .chunks(8)
                .map(|lane| lane.iter().map(|byte| byte.count_ones()).sum::<u32>().into())
                .collect();
            let of =
                |rotation| (0..filter.k() as usize).map(|j| fill[(rotation + j) % 8] / 64.0).product::<f64>();
            let (rate, load) = ((0..8).map(of).sum::<f64>() / 8.0, f64::from(load));
            self.n_blocks += 1.0;
            self.rate += rate;
            self.load += load;
            self.squares[0] += rate * rate;
            self.squares[1] += load * load;
            self.product += rate * load;
        }
    }

    /// The probability that a random hash is a false positive, given the bits, and its standard error relative to the
    /// mean over all filters. Blocks differ most by their numbers of keys. Because the sum of these is given, this part
    /// of the variance is left out.
    fn rate(&self) -> (f64, f64) {
        let [rate, load] = [self.rate, self.load].map(|sum| sum / self.n_blocks);
        let covariance = self.product / self.n_blocks - rate * load;
        let of_loads =
            covariance.powi(2) / (self.squares[1] / self.n_blocks - load * load).max(f64::MIN_POSITIVE);
        let variance = self.squares[0] / self.n_blocks - rate * rate - of_loads;
        (rate, (variance / self.n_blocks).sqrt() / rate)
    }

    /// Asserts that as many lookups are false positives as follow from the bits, within four standard errors.
    fn assert_lookups(&self, what: &str) {
        let expected = self.rate().0 * self.lookups as f64;
        let off = (self.positives as f64 - expected) / expected.sqrt();
        assert!(
            off.abs() <= 4.0,
            "{what}: {} false positives, {expected} expected from the bits",
            self.positives
        );
    }
}

/// Asserts that the bits have the false-positive rate of the model, and lookups the rate of the bits, within four
/// standard errors. At low rates this says more than lookups alone, because for an error of 1% they would have to find
/// ten thousand false positives.
fn assert_model(bits_per_key: f64, k: u32, keys: u64, filters: u64, false_positives: f64) {
    let n_blocks = (keys as f64 * bits_per_key / 512.0).round() as usize;
    let sizing = Sizing::new(n_blocks, k).unwrap();
    let model = sizing.expected_fpr(keys);
    let measured = Filters::new(sizing, keys, filters, (false_positives / model / filters as f64) as u64);
    let what = format!("{bits_per_key} bits, k {k}");
    measured.assert_lookups(&what);
    let (rate, standard_error) = measured.rate();
    println!("{what}: {:.4} of the model's FPR, standard error {standard_error:.4}", rate / model);
    assert!(
        (rate / model - 1.0).abs() <= 4.0 * standard_error,
        "{what}: {} of the model's FPR, standard error {standard_error}",
        rate / model
    );
}

#[test]
fn the_measured_fpr_matches_the_model() {
    for (bits_per_key, k) in [(6.0, 4), (8.0, 5), (10.0, 6), (10.0, 8), (12.0, 11)] {
        assert_model(bits_per_key, k, 100_000, 4, 4_000.0);
    }
}

#[test]
#[ignore = "seconds in release, minutes in debug"]
fn the_measured_fpr_matches_the_model_for_all_bits_per_key_and_every_k() {
    for bits_per_key in 6..=24 {
        let bits_per_key = f64::from(bits_per_key);
        let k = sizing::best_k(bits_per_key).unwrap();
        assert_model(bits_per_key, k, 2_000_000, 1, 4_000.0);
    }
    for (bits_per_key, k) in (1..=16).flat_map(|k| [(4.0, k), (10.0, k)]) {
        assert_model(bits_per_key, k, 2_000_000, 1, 4_000.0);
    }
}

/// Like LevelDB's test `VaryingLengths`. Filters of every size stay small, lose no key, and few have a mediocre FPR.
fn varying_lengths(lengths: impl Iterator<Item = u32>) {
    let (mut mediocre, mut good) = (Vec::new(), 0);
    let mut builder = FilterBuilder::with_bits_per_key(10.0).unwrap();
    let probes: Vec<u64> = (0..10_000_u32).map(|i| hash_key((i + 1_000_000_000).to_le_bytes(), 0)).collect();
    let mut found = vec![false; probes.len()];
    for length in lengths {
        builder.extend((0..length).map(u32::to_le_bytes));
        let mut bytes = Vec::new();
        builder.finish_compact(&mut bytes).unwrap();
        assert!(
            bytes.len() as f64 <= 1.25 * f64::from(length) + 133.0,
            "{length} keys: {} bytes",
            bytes.len()
        );

        let view = BloomView::from_compact(&bytes).unwrap();
        assert!((0..length).all(|i| view.contains(i.to_le_bytes())), "{length} keys");
        view.contains_batch(&probes, &mut found);
        let rate = found.iter().filter(|&&found| found).count() as f64 / 10_000.0;
        assert!(rate <= 0.02, "{length} keys in {} bytes, k {}: {rate}", bytes.len(), view.k());
        if rate > 0.0125 { mediocre.push((length, rate)) } else { good += 1 }
    }
    println!("{} mediocre, {good} good", mediocre.len());
    assert!(mediocre.len() <= good / 5, "{good} good and {} mediocre: {mediocre:?}", mediocre.len());
}

#[test]
fn filters_of_few_keys_are_small_and_accurate() {
    let steps = (1..10)
        .chain((10..100).step_by(10))
        .chain((100..1_000).step_by(100))
        .chain((1_000..=10_000).step_by(1_000));
    varying_lengths(steps);
}

#[test]
#[ignore = "a second in release, half a minute in debug"]
fn filters_of_every_size_are_small_and_accurate() {
    varying_lengths(1..=10_000);
}

type Key = fn(u64) -> Vec<u8>;

/// Kinds of keys, each a function of a counter below 2^24.
const KINDS: [(&str, Key); 18] = [
    ("little-endian integers", |i| i.to_le_bytes().into()),
    ("big-endian integers", |i| i.to_be_bytes().into()),
    ("little-endian integers of 4 bytes", |i| (i as u32).to_le_bytes().into()),
    ("big-endian integers of 4 bytes", |i| (i as u32).to_be_bytes().into()),
    ("shifted integers", |i| (i << 40).to_le_bytes().into()),
    ("strided integers", |i| (i * 4096).to_be_bytes().into()),
    ("floats", |i| (i as f64).to_bits().to_le_bytes().into()),
    ("floats of 4 bytes", |i| (i as f32).to_bits().to_be_bytes().into()),
    ("decimals", |i| i.to_string().into()),
    ("padded decimals", |i| format!("{i:016}").into()),
    ("YCSB names", |i| format!("user{}", mix(i)).into()),
    ("URLs", |i| format!("https://example.org/{}/item?id={i}", i % 7).into()),
    ("sparse records", |i| [&i.to_le_bytes()[..], &[0; 16]].concat()),
    ("3 bytes", three_bytes_of::<3, 0>),
    ("3 of 17 bytes", three_bytes_of::<17, 7>),
    ("3 of 32 bytes", three_bytes_of::<32, 29>),
    ("the first 3 of 100 bytes", three_bytes_of::<100, 0>),
    ("3 of 100 bytes", three_bytes_of::<100, 50>),
];

/// Keys of `LENGTH` bytes that differ in the three bytes from `START` on.
fn three_bytes_of<const LENGTH: usize, const START: usize>(i: u64) -> Vec<u8> {
    let mut key = vec![b'k'; LENGTH];
    key[START..START + 3].copy_from_slice(&i.to_le_bytes()[..3]);
    key
}

/// Asserts that keys of every kind fall into blocks and meet set bits as random hashes do, within four standard
/// deviations, with `filters` filters of `keys` keys each, and twice as many lookups of absent keys. Between filters of
/// random hashes, the false-positive rate has a relative standard deviation of `deviation` ÷ √(number of blocks).
fn assert_random(seed: u64, keys: u64, filters: u64, bits_per_key: f64, deviation: f64) {
    for (name, key) in KINDS {
        let sizing = Sizing::for_bits_per_key(keys, bits_per_key).unwrap();
        let (mut chi_squared, mut positives) = (0.0, 0);
        for round in 0..filters {
            let mut filter =
                BloomFilter::with_blocks(sizing.n_blocks(), sizing.k()).unwrap().with_seed(seed).unwrap();
            let mut loads = vec![0_u32; sizing.n_blocks()];
            let first = 3 * round * keys;
            for key in (first..first + keys).map(key) {
                let hash = hash_key(&key, seed);
                loads[((u128::from(hash) * sizing.n_blocks() as u128) >> 64) as usize] += 1;
                filter.insert_hash(hash);
            }
            let mean = keys as f64 / sizing.n_blocks() as f64;
            chi_squared += loads.iter().map(|&load| (f64::from(load) - mean).powi(2) / mean).sum::<f64>();
            positives += (first + keys..first + 3 * keys).filter(|&i| filter.contains(key(i))).count();
        }
        let freedom = (filters as usize * (sizing.n_blocks() - 1)) as f64;
        let loads = (chi_squared / freedom - 1.0, (2.0 / freedom).sqrt());
        let expected = (2 * filters * keys) as f64 * sizing.expected_fpr(keys);
        let n_blocks = (filters as usize * sizing.n_blocks()) as f64;
        let fpr = (positives as f64 / expected - 1.0, (1.0 / expected + deviation.powi(2) / n_blocks).sqrt());
        println!("{name}, seed {seed:#x}: loads {loads:.3?} and FPR {fpr:.3?} off, with their deviations");
        for (off, deviation) in [loads, fpr] {
            assert!(off.abs() <= 4.0 * deviation, "{name}, seed {seed:#x}: loads {loads:?}, FPR {fpr:?}");
        }
    }
}

#[test]
fn every_kind_of_key_and_every_seed_has_the_loads_and_the_fpr_of_the_model() {
    assert_random(0, 20_000, 6, 10.0, 0.245);
    // Without the mixing of the seed, every key of up to three bytes would have the hash 0.
    assert_random(0xa076_1d64_78bd_642f, 20_000, 6, 10.0, 0.245);
}

#[test]
#[ignore = "seconds in release, minutes in debug"]
fn a_million_keys_of_every_kind_have_the_loads_and_the_fpr_of_the_model() {
    assert_random(0, 1_000_000, 1, 10.0, 0.245);
    assert_random(0, 1_000_000, 1, 16.0, 0.762);
}

#[test]
fn the_estimated_fpr_and_the_fill_ratio_are_those_of_the_bits() {
    for k in [1, 4, 6, 8, 11, 16] {
        let mut filter = BloomFilter::with_blocks(400, k).unwrap();
        filter.insert_batch(&(0..20_000).map(mix).collect::<Vec<_>>());
        let estimated = filter.estimated_fpr();
        let probes = 50 * 4096;
        let positives = false_positives(&filter, probes);
        let expected = estimated * probes as f64;
        assert!(
            (positives as f64 - expected).abs() <= 3.0 * expected.sqrt() + 1.0,
            "k {k}: {positives} false positives, {expected} expected"
        );

        let mut bytes = Vec::new();
        filter.write_compact(&mut bytes).unwrap();
        let ones: u32 = bytes[..bytes.len() - 1].iter().map(|byte| byte.count_ones()).sum();
        assert_eq!(filter.fill_ratio(), f64::from(ones) / (400.0 * 512.0));
    }
}

/// Of bits that no keys have set, in blocks from full to almost empty.
#[test]
fn the_estimated_fpr_is_the_mean_of_the_products_of_all_probed_lanes() {
    let word = |i: u64| (mix(i) | mix(!i)) >> (i / 8 % 65).min(63);
    let lanes: Vec<u64> = (0..800).map(word).collect();
    for k in 1..=16_usize {
        let of_key = |block: &[u64], first: usize| -> f64 {
            (0..k).map(|probe| f64::from(block[(first + probe) % 8].count_ones()) / 64.0).product()
        };
        let sum: f64 = lanes.chunks(8).flat_map(|block| (0..8).map(move |first| of_key(block, first))).sum();
        let mut bytes: Vec<u8> = lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect();
        bytes.push(0x1f + k as u8);
        let estimate = bloomline::BloomView::from_compact(&bytes).unwrap().estimated_fpr();
        assert!((estimate / (sum / 800.0) - 1.0).abs() < 1e-14, "k {k}: {estimate}");
    }
}
