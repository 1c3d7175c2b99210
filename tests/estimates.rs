//! Estimates of the number of distinct keys are as accurate as their standard errors say.
//!
//! The default tests are quick enough for a debug build. For thousands of filters run
//! `cargo test --release --test estimates -- --include-ignored`.
#![cfg(not(miri))]

mod common;

use bloomline::variants::StandardBloomFilter;
use bloomline::{BloomFilter, FilterBuilder, KeyEstimate, mix};
use common::standard_programs::with_bits;
use proptest::prelude::*;

/// Bits per key and k, both the best k for these bits and worse ones.
const SHAPES: &[(f64, u32)] = &[
    (6.0, 4),
    (6.0, 1),
    (6.0, 8),
    (6.0, 16),
    (8.0, 5),
    (10.0, 6),
    (10.0, 8),
    (12.0, 7),
    (16.0, 9),
    (16.0, 16),
    (24.0, 12),
    (24.0, 1),
];

/// A blocked or a standard filter.
trait Filter: Clone {
    const MODULES: u32 = 1;
    /// With `k` probes in each module.
    fn new(bits: f64, k: u32) -> Self;
    fn insert_batch(&mut self, hashes: &[u64]);
    fn keys(&self) -> Option<KeyEstimate>;
    fn union(&self, other: &Self) -> Option<KeyEstimate>;
    /// `None` for standard filters, which have no estimate of their intersection.
    fn intersection(&self, other: &Self) -> Option<Option<KeyEstimate>>;

    fn of(bits: f64, k: u32, hashes: impl Iterator<Item = u64>) -> Self {
        let mut filter = Self::new(bits, k);
        let mut hashes = hashes.peekable();
        while hashes.peek().is_some() {
            filter.insert_batch(&hashes.by_ref().take(10_000).collect::<Vec<_>>());
        }
        filter
    }
}

macro_rules! filter {
    ($filter:ty, $new:expr, $union:expr, $intersection:expr) => {
        impl Filter for $filter {
            fn new(bits: f64, k: u32) -> Self {
                $new(bits, k).unwrap()
            }
            fn insert_batch(&mut self, hashes: &[u64]) {
                self.insert_batch(hashes);
            }
            fn keys(&self) -> Option<KeyEstimate> {
                self.estimated_keys()
            }
            fn union(&self, other: &Self) -> Option<KeyEstimate> {
                $union(self, other)
            }
            fn intersection(&self, other: &Self) -> Option<Option<KeyEstimate>> {
                $intersection(self, other)
            }
        }
    };
}
filter!(
    BloomFilter,
    |bits: f64, k| BloomFilter::with_blocks((bits / 512.0).round() as usize, k),
    |ours: &BloomFilter, theirs| ours.as_view().estimated_union(theirs).unwrap(),
    |ours: &BloomFilter, theirs| Some(ours.as_view().estimated_intersection(theirs).unwrap())
);
filter!(
    StandardBloomFilter,
    |bits, k| with_bits(bits as u64, k),
    |ours: &StandardBloomFilter, theirs| {
        let mut union = ours.clone();
        union.union_with(theirs).unwrap();
        union.estimated_keys()
    },
    |_, _| None
);

/// A filter of `N` modules.
#[derive(Clone, PartialEq)]
struct InModules<const N: usize>(BloomFilter);

impl<const N: usize> Filter for InModules<N> {
    const MODULES: u32 = N as u32;
    fn new(bits: f64, k: u32) -> Self {
        Self(common::of_modules(N, (bits / 512.0 / N as f64).round() as usize, k))
    }
    fn insert_batch(&mut self, hashes: &[u64]) {
        self.0.insert_batch(hashes);
    }
    fn keys(&self) -> Option<KeyEstimate> {
        self.0.keys()
    }
    fn union(&self, other: &Self) -> Option<KeyEstimate> {
        self.0.union(&other.0)
    }
    fn intersection(&self, other: &Self) -> Option<Option<KeyEstimate>> {
        self.0.intersection(&other.0)
    }
}

fn hashes(seed: u64, keys: std::ops::Range<u64>) -> impl Iterator<Item = u64> {
    keys.map(move |key| mix((seed << 36) | key))
}

/// The error of the estimate, in standard errors.
#[track_caller]
fn errors(estimate: Option<KeyEstimate>, keys: u64) -> f64 {
    let Some(estimate) = estimate else { panic!("too full to estimate, with {keys} keys") };
    (estimate.keys as f64 - keys as f64) / estimate.standard_error
}

/// Asserts that the estimate is within four standard errors. Where the errors are small enough, callers also check 2%.
#[track_caller]
fn assert_about(estimate: Option<KeyEstimate>, keys: u64, what: &str) {
    let errors = errors(estimate, keys);
    assert!(errors.abs() <= 4.0, "{what}: {estimate:?} for {keys}, {errors:.2} standard errors off");
}

/// e^ρ − 1 − ρ.
fn f(rho: f64) -> f64 {
    rho.exp() - 1.0 - rho
}

/// The standard error of an intersection of two filters of `keys` keys, from the documented formula.
fn formula(bits: f64, k: u32, keys: u64, common: u64) -> f64 {
    let f = |keys: u64| f(keys as f64 * f64::from(k) / bits);
    ((f(2 * keys - common) - 2.0 * f(keys) + 2.0 * f(common)) * bits).sqrt() / f64::from(k)
}

fn check_pair<F: Filter>(shapes: &[(f64, u32)], keys: u64) {
    for &(bits_per_key, k) in shapes.iter().filter(|shape| **shape != (6.0, 16)) {
        let bits = bits_per_key * keys as f64;
        let a = F::of(bits, k, hashes(0, 0..keys));
        assert_about(a.keys(), keys, &format!("{bits_per_key} bits, k {k}, {keys} keys"));
        for percent in [1, 10, 50] {
            let common = keys * percent / 100;
            let b = F::of(bits, k, hashes(0, keys - common..2 * keys - common));
            let what = format!("{bits_per_key} bits, k {k}, {percent} % of {keys} in common");
            let union = a.union(&b);
            assert_about(union, 2 * keys - common, &what);
            let off = union.unwrap().keys.abs_diff(2 * keys - common);
            assert!(keys < 10_000 || off as f64 <= 0.02 * keys as f64, "{what}: {union:?}");
            let Some(intersection) = a.intersection(&b) else { continue };
            assert_about(intersection, common, &what);
            // An inflated standard error would let any estimate pass. Blocks with 2.7 probes per bit err more, so
            // the loop over `SHAPES` skips them.
            let expected = formula(bits, k * F::MODULES, keys, common);
            let ratio = intersection.unwrap().standard_error / expected;
            assert!((0.85..1.2).contains(&ratio), "{what}: {ratio} of the standard error");
        }
    }
}

#[test]
fn pairs_of_filters() {
    for keys in [2_000, 30_000] {
        check_pair::<BloomFilter>(SHAPES, keys);
        check_pair::<StandardBloomFilter>(SHAPES, keys);
        check_pair::<InModules<2>>(&[(10.0, 3), (20.0, 5)], keys);
        check_pair::<InModules<3>>(&[(30.0, 5)], keys);
        check_pair::<InModules<16>>(&[(64.0, 2)], keys);
    }
}

/// Asserts that errors in units of the standard error have mean 0 and standard deviation 1 over the seeds. By chance
/// each bound is exceeded once in ten thousand times.
#[track_caller]
fn assert_standard(errors: &[f64], what: &str) {
    let n = errors.len() as f64;
    let mean = errors.iter().sum::<f64>() / n;
    let deviation = (errors.iter().map(|error| error * error).sum::<f64>() / n).sqrt();
    println!("{what}: mean {mean:.3}, deviation {deviation:.3} of {n}");
    assert!(mean.abs() <= 4.0 / n.sqrt(), "{what}: the mean error is {mean:.3} standard errors");
    assert!(
        (deviation - 1.0).abs() <= 4.0 / (2.0 * n).sqrt(),
        "{what}: the deviation is {deviation:.3} standard errors"
    );
}

fn check_errors<F: Filter>(shapes: &[(f64, u32)], keys: u64, seeds: u64) {
    for &(bits_per_key, k) in shapes {
        let bits = bits_per_key * keys as f64;
        let (mut one, mut union, mut intersection) = (vec![], vec![], vec![]);
        let common = keys / 2;
        for seed in 0..seeds {
            let a = F::of(bits, k, hashes(seed, 0..keys));
            let b = F::of(bits, k, hashes(seed, keys - common..2 * keys - common));
            one.push(errors(a.keys(), keys));
            union.push(errors(a.union(&b), 2 * keys - common));
            intersection.extend(a.intersection(&b).map(|estimate| errors(estimate, common)));
        }
        let what = |which| format!("{which}, {bits_per_key} bits, k {k}, {keys} keys");
        assert_standard(&one, &what("one"));
        assert_standard(&union, &what("union"));
        if !intersection.is_empty() {
            assert_standard(&intersection, &what("intersection"));
        }
    }
}

/// Shapes with up to 2.2 probes per bit, and up to 3.3 in unions.
const WIDE: &[(f64, u32)] =
    &[(1.0, 1), (3.0, 6), (4.0, 8), (5.0, 11), (6.0, 4), (8.0, 16), (10.0, 6), (24.0, 12), (64.0, 16)];

#[test]
fn errors_match_their_standard_error() {
    check_errors::<BloomFilter>(WIDE, 1_200, 150);
    check_errors::<InModules<2>>(&[(10.0, 3), (20.0, 5), (16.0, 9)], 1_200, 150);
    check_errors::<InModules<3>>(&[(12.0, 2), (30.0, 5)], 1_200, 150);
    check_errors::<StandardBloomFilter>(&[(2.0, 4), (6.0, 4), (10.0, 7), (24.0, 17)], 1_200, 150);
}

#[test]
#[ignore = "seconds in release"]
fn errors_match_their_standard_error_in_thousands_of_filters() {
    check_errors::<BloomFilter>(WIDE, 2_000, 2_000);
    check_errors::<BloomFilter>(WIDE, 20_000, 500);
    check_errors::<StandardBloomFilter>(&[(2.0, 4), (6.0, 4), (10.0, 7), (24.0, 17)], 2_000, 2_000);
}

/// However full the filter, an estimate is either accurate or none.
fn check_overfull<F: Filter>(k: u32, most_eighths: u32) {
    let bits = 64.0 * 512.0;
    let mut before = 0;
    for eighths in 1..=80_u32 {
        let keys = (bits * f64::from(eighths) / 8.0 / f64::from(k * F::MODULES)) as u64;
        let estimate = F::of(bits, k, hashes(u64::from(eighths), 0..keys)).keys();
        let what = format!("k {k}, {} probes per bit: {estimate:?}", f64::from(eighths) / 8.0);
        match estimate {
            Some(KeyEstimate { keys: estimated, .. }) => {
                assert!(eighths <= most_eighths, "{what}");
                assert_about(estimate, keys, &what);
                assert!(estimated > before, "{what}");
                before = estimated;
            }
            None => assert!(eighths >= 29, "{what}"),
        }
    }
}

#[test]
fn filters_past_saturation_have_no_estimate() {
    for k in [1, 4, 6, 8, 11, 16] {
        check_overfull::<BloomFilter>(k, 31);
        check_overfull::<StandardBloomFilter>(k, 33);
        check_overfull::<InModules<2>>(k, 31);
    }
    let full = BloomFilter::of(512.0, 8, hashes(0, 0..10_000));
    let empty = BloomFilter::new(512.0, 8);
    assert_eq!((full.keys(), full.estimated_fpr()), (None, 1.0));
    assert_eq!((full.union(&empty), full.intersection(&empty)), (None, Some(None)));
}

/// The exact threshold is documented.
#[test]
fn a_filter_with_fewer_clear_bits_than_a_fiftieth_plus_four_is_too_full() {
    for bits in [1_u32, 5, 60, 1_000] {
        let mut filter = StandardBloomFilter::new(f64::from(bits), 1);
        assert_eq!(filter.keys().map(|estimate| estimate.keys), Some(0));
        for key in 0..20 * bits {
            filter.insert(key.to_le_bytes());
            let clear = bits - (filter.fill_ratio() * f64::from(bits)).round() as u32;
            assert_eq!(filter.keys().is_none(), clear < bits / 50 + 4, "{clear} of {bits} clear");
        }
    }
}

#[test]
fn a_lane_with_fewer_than_five_clear_bits_is_too_full() {
    for clear in 0..64 {
        let mut compact = (u64::MAX << clear).to_le_bytes().to_vec();
        compact.push(0x27);
        let filter = BloomFilter::from_compact(&compact).unwrap();
        assert_eq!(filter.keys().is_none(), clear < 5, "{clear} bits clear");
    }
}

/// Also documented. Here enough bits are clear.
#[test]
fn a_filter_with_more_than_a_quarter_of_its_lanes_full_is_too_full() {
    for full in 0..16 {
        let mut compact = [[0xff; 8].repeat(full), [0; 8].repeat(16 - full)].concat();
        compact.push(0x27);
        let filter = BloomFilter::from_compact(&compact).unwrap();
        assert_eq!(filter.keys().is_none(), full > 4, "{full} of 16 lanes are full");
    }
}

#[test]
fn a_small_part_of_a_sparse_filter() {
    let part = BloomFilter::of(512.0 * 50_000.0, 16, hashes(0, 0..1_000));
    let all = BloomFilter::of(512.0 * 50_000.0, 16, hashes(0, 0..20_000));
    let intersection = part.intersection(&all).unwrap();
    assert_about(intersection, 1_000, "part");
    // Only second probes of a key in the same lane cause an error.
    assert!((0.7..0.8).contains(&intersection.unwrap().standard_error), "{intersection:?}");
}

/// A short filter as the reader of a table opens it.
fn short(hashes: impl Iterator<Item = u64>, bits_per_key: f64) -> BloomFilter {
    let mut builder = FilterBuilder::with_bits_per_key(bits_per_key).unwrap();
    hashes.for_each(|hash| builder.insert_hash(hash));
    let mut compact = Vec::new();
    builder.finish_compact(&mut compact).unwrap();
    BloomFilter::from_compact(&compact).unwrap()
}

#[test]
fn few_keys() {
    for bits_per_key in [4.0, 10.0, 24.0] {
        for keys in [1_u64, 2, 5, 10, 34, 100] {
            let (mut one, mut union, mut intersection) = (vec![], vec![], vec![]);
            let common = keys.div_ceil(2);
            for seed in 0..400 {
                let a = short(hashes(seed, 0..keys), bits_per_key);
                let b = short(hashes(seed, keys - common..2 * keys - common), bits_per_key);
                one.push(errors(a.keys(), keys));
                union.push(errors(a.union(&b), 2 * keys - common));
                intersection.push(errors(a.intersection(&b).unwrap(), common));
            }
            for errors in [one, union, intersection] {
                let what = format!("{bits_per_key} bits, {keys} keys");
                assert!(errors.iter().filter(|error| error.abs() > 4.0).count() <= 3, "{what}");
                assert!(errors.iter().all(|error| error.abs() < 8.0), "{what}");
                if keys >= 34 {
                    assert_standard(&errors, &what);
                } else {
                    // Estimates are whole keys, so smaller errors cannot be observed.
                    let deviation = errors.iter().map(|error| error * error).sum::<f64>() / 400.0;
                    assert!(deviation < 1.5, "{what}: {deviation}");
                }
            }
        }
    }
}

#[test]
fn changed_copies_of_short_filters() {
    for keys in [20, 36, 84, 110, 330, 400] {
        let (mut one, mut common) = (vec![], vec![]);
        for seed in 0..400 {
            let (mut copy, other) = (short(hashes(seed, 0..keys), 10.0), short(hashes(seed, 0..keys), 10.0));
            copy.insert_batch(&hashes(seed, keys..keys + 10).collect::<Vec<_>>());
            one.push(errors(copy.keys(), keys + 10));
            common.push(errors(copy.intersection(&other).unwrap(), keys));
        }
        for errors in [one, common] {
            assert!(errors.iter().all(|error| error.abs() < 6.0), "{keys} keys");
            if keys >= 36 {
                assert_standard(&errors, &format!("{keys} keys and 10"));
            }
        }
    }
}

#[test]
fn folds_and_unions_keep_the_estimate_and_intersections_do_not() {
    let a = BloomFilter::of(512.0 * 240.0, 6, hashes(1, 0..8_000));
    let b = BloomFilter::of(512.0 * 240.0, 6, hashes(1, 6_000..14_000));
    let mut folded = a.clone();
    folded.fold(3).unwrap();
    assert_about(folded.keys(), 8_000, "folded");
    let mut union = a.clone();
    union.union_with(&b).unwrap();
    assert_eq!(a.union(&b), union.keys());
    let mut larger = BloomFilter::of(512.0 * 350.0, 6, hashes(1, 14_000..18_000));
    larger.union_with(&a.as_view().to_resized(350).unwrap()).unwrap();
    assert_about(larger.keys(), 12_000, "with a resized filter");
    let fewer = a.as_view().first_probes(5).unwrap();
    assert_about(fewer.estimated_keys(), 8_000 * 6 / 5, "by five of six probes");
    assert_about(a.intersection(&b).unwrap(), 2_000, "in both");
    let mut intersected = a;
    intersected.intersect_with(&b).unwrap();
    assert!(errors(intersected.keys(), 2_000) > 4.0, "{:?} for 2000 keys", intersected.keys());
}

/// The blocks of a filter that is `larger` times as large have the bits of its keys as often.
#[test]
fn keys_of_smaller_filters_count_once() {
    for (n_modules, k, module_blocks, keys, smaller) in [
        (1, 6, 380, 1_000, &[(19, 500)][..]),
        (1, 6, 380, 19_456, &[(19, 1_000)]),
        (1, 6, 240, 5_000, &[(2, 5_000)]),
        (1, 6, 240, 5_000, &[(3, 1_000), (2, 1_000), (240, 10)]),
        (1, 3, 1_024, 2_000, &[(1_024, 60)]),
        (1, 16, 96, 1_000, &[(4, 200)]),
        (1, 8, 2, 0, &[(2, 50)]),
        (2, 5, 120, 4_000, &[(6, 600)]),
        (16, 2, 30, 3_000, &[(5, 500)]),
    ] {
        let (mut all, mut halves, mut common) = (vec![], vec![], vec![]);
        for seed in 0..40 {
            let filter = |larger: usize, keys| {
                let mut filter = common::of_modules(n_modules, module_blocks / larger, k);
                filter.insert_batch(&hashes(seed, keys).collect::<Vec<_>>());
                filter
            };
            let plain = filter(1, keys / 2..keys + 50);
            let (mut united, mut n_keys) = (filter(1, 0..keys), keys);
            for &(larger, more) in smaller {
                // Half of them are in no other filter.
                united.union_with(&filter(larger, n_keys - more.min(n_keys) / 2..n_keys + more)).unwrap();
                n_keys += more;
            }
            let what = format!("{n_keys} keys, {smaller:?}");
            let Some(estimate) = united.estimated_keys() else { panic!("{what}") };
            assert!(estimate.standard_error < 0.1 * n_keys as f64, "{what}: {estimate:?}");
            all.push(errors(Some(estimate), n_keys));
            halves.push(errors(united.union(&plain), n_keys));
            common.push(errors(united.intersection(&plain).unwrap(), keys + 50 - keys / 2));
        }
        for errors in [all, halves, common] {
            assert_standard(&errors, &format!("{n_modules} modules, k {k}, {smaller:?}"));
        }
    }
}

/// Estimates stay the same to the last digit. An independent implementation of the documented formulas, in a different
/// language, gave the same keys, and the same standard errors except for the last bit.
#[test]
fn estimates_are_the_same_on_every_cpu() {
    let a = BloomFilter::of(512.0 * 40.0, 11, hashes(7, 0..2_000));
    let b = BloomFilter::of(512.0 * 40.0, 11, hashes(7, 1_500..5_000));
    let estimates = [a.keys(), b.keys(), a.union(&b), a.intersection(&b).unwrap()];
    let bits = estimates.map(|estimate| estimate.map(|it| (it.keys, it.standard_error.to_bits())).unwrap());
    let expected = [
        (2_001, 12.415_700_750_830_51_f64),
        (3_489, 26.182_154_714_030_027),
        (4_917, 45.294_527_462_181_31),
        (573, 35.086_932_546_292_94),
    ];
    assert_eq!(bits, expected.map(|(keys, standard_error)| (keys, standard_error.to_bits())));
}

/// Checks the laws that hold for any two filters, including short ones.
fn check_laws<F: Filter + PartialEq>(a: &F, b: &F, union_with_b: impl Fn(&mut F)) {
    let mut union = a.clone();
    union_with_b(&mut union);
    assert_eq!(a.union(b), union.keys());
    assert_eq!((a.union(b), a.intersection(b)), (b.union(a), b.intersection(a)));
    assert_eq!(a.union(a), a.keys());
    let common = a.intersection(b);
    assert!(common.is_none() || a.intersection(a) == Some(a.keys()));
    let numbers = [a.keys(), b.keys(), a.union(b)].map(|estimate| Some(estimate?.keys));
    if let [Some(a), Some(b), Some(union)] = numbers {
        assert!(union >= a.max(b));
        if let Some(common) = common {
            let common = common.unwrap().keys;
            assert!(common <= a.min(b));
            // Each number is rounded, and a negative intersection is reported as 0.
            assert!((a + b).abs_diff(union + common) <= 2 || common == 0 && a + b < union + 2);
        }
    } else {
        // If a filter is too full, so is any union with it, and an intersection needs the estimate of the union.
        assert!(numbers[2].is_none() && common.is_none_or(|common| common.is_none()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn estimates_agree_with_each_other(
        n_blocks in 1_usize..40,
        k in 1_u32..=16,
        a in 0_u64..3_000,
        b in 0_u64..3_000,
        from in 0_u64..3_000,
        seed in 0_u64..1_000,
    ) {
        let bits = 512.0 * n_blocks as f64;
        let (ours, theirs) = (hashes(seed, 0..a), hashes(seed, from..from + b));
        let (x, y) = (BloomFilter::of(bits, k, ours), BloomFilter::of(bits, k, theirs));
        check_laws(&x, &y, |x| x.union_with(&y).unwrap());
        let none = BloomFilter::new(bits, k);
        check_laws(&none, &x, |none| none.union_with(&x).unwrap());
        let (ours, theirs) = (hashes(seed, 0..a), hashes(seed, from..from + b));
        let (x, y) = (InModules::<2>::of(2.0 * bits, k, ours), InModules::<2>::of(2.0 * bits, k, theirs));
        check_laws(&x, &y, |x| x.0.union_with(&y.0).unwrap());
        let (ours, theirs) = (hashes(seed, 0..a), hashes(seed, from..from + b));
        let (x, y) = (StandardBloomFilter::of(bits - 7.0, k, ours), StandardBloomFilter::of(bits - 7.0, k, theirs));
        check_laws(&x, &y, |x| x.union_with(&y).unwrap());
    }

    #[test]
    fn estimates_of_short_filters_agree_with_each_other(
        keys in 0_u64..100,
        from in 0_u64..100,
        bits_per_key in 1.0..20.0,
    ) {
        let a = short(hashes(0, 0..keys), bits_per_key);
        let b = short(hashes(0, from..from + keys), bits_per_key);
        check_laws(&a, &b, |a| a.union_with(&b).unwrap());
    }
}
