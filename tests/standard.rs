//! The standard filter loses no key, has the textbook false-positive rate, and writes the bytes of the format.

mod common;
#[path = "common/standalone.rs"]
mod standalone;
#[path = "golden/table.rs"]
mod table;

use bloomline::sizing::MAX_BITS_PER_KEY;
use bloomline::sizing::standard::{MIN_FPR, StandardSizing};
use bloomline::sstable::FilterPolicy;
use bloomline::variants::StandardBloomFilter;
use bloomline::{Error, ErrorKind, Key, mix};
use common::decode::forge_footer as forge;
use common::error_texts::*;

const FOOTER_BYTES: usize = 64;

fn with_bits(size_bits: u64, k: u32) -> StandardBloomFilter {
    common::standard_programs::with_bits(size_bits, k).expect("a small filter")
}

fn of_bits_per_key(keys: u64, bits_per_key: f64) -> Result<StandardBloomFilter, Error> {
    StandardBloomFilter::with_sizing(StandardSizing::for_bits_per_key(keys, bits_per_key)?)
}

/// The textbook's rate of many keys.
fn limit(bits_per_key: f64, k: u32) -> f64 {
    (1.0 - (-f64::from(k) / bits_per_key).exp()).powi(k as i32)
}

/// The rate by the model for finite m and n, not by its limit.
fn model_fpr(bit_len: u64, keys: u64, k: u32) -> Result<f64, Error> {
    StandardSizing::new(bit_len, k).map(|sizing| sizing.expected_fpr(keys))
}

fn filled<K: Key>(mut filter: StandardBloomFilter, keys: &[K]) -> StandardBloomFilter {
    filter.extend(keys);
    filter
}

fn sample() -> StandardBloomFilter {
    filled(with_bits(500, 6).with_seed(99).unwrap(), &["ant", "bee", "cat"])
}

/// The bits that are set, read from the bytes.
fn bits(filter: &StandardBloomFilter) -> Vec<u64> {
    let bytes = filter.to_standalone();
    let body = &bytes[..bytes.len() - FOOTER_BYTES];
    let in_use = body.iter().enumerate().filter(|(_, byte)| **byte != 0);
    in_use
        .flat_map(|(at, byte)| {
            (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| 8 * at as u64 + bit)
        })
        .collect()
}

#[test]
fn filters_with_different_parameters_are_not_combined() {
    let filter = sample();
    let other = |other: StandardBloomFilter| {
        let mut changed = filter.clone();
        let union = changed.union_with(&other).unwrap_err();
        assert_eq!(changed.intersect_with(&other), Err(union));
        assert!(changed == filter && changed != other);
        union.to_string()
    };
    assert_eq!(other(with_bits(501, 6).with_seed(99).unwrap()), different_size(500, 501, "bits"));
    assert_eq!(other(with_bits(500, 7).with_seed(99).unwrap()), different_k(6, 7));
    assert_eq!(other(with_bits(500, 6)), different_seed(99, 0));
    assert!(filter == sample() && filter != with_bits(500, 6).with_seed(99).unwrap(), "other bits");
}

/// In a small filter and in one whose batches prefetch. Lengths are around those at which a batch changes its method.
#[test]
fn a_batch_sets_and_finds_the_bits_of_single_keys() {
    // Above 3 MiB for each MiB of the L2 cache, of which at most 2 count.
    let large = if cfg!(miri) { 5_000 } else { (6 << 23) + 7 };
    for (size_bits, k) in [(1, 1), (700, 3), (20_000, 64), (large, 7)] {
        let present: Vec<u64> = (0..size_bits.min(20_000) / 10).map(mix).chain([0, u64::MAX]).collect();
        let (mut single, mut batch) = (with_bits(size_bits, k), with_bits(size_bits, k));
        present.iter().for_each(|&hash| _ = single.insert_hash(hash));
        batch.insert_batch(&present);
        assert!(single == batch, "{size_bits} bits, k {k}");
        let keys: Vec<u64> = (0..300).collect();
        keys.iter().for_each(|key| _ = single.insert(key));
        assert!(single == filled(batch, &keys), "{size_bits} bits, k {k}");
        for len in [0, 1, 31, 32, 33, 255, 256, 257, 288, 600] {
            for present_of_8 in [0, 1, 7, 8] {
                let is_present = |i: u64| mix(i ^ 1 << 50) % 8 < present_of_8;
                let hash =
                    |i| if is_present(i) { present[i as usize % present.len()] } else { mix(i | 1 << 40) };
                let hashes: Vec<u64> = (0..len).map(hash).collect();
                let expected: Vec<bool> = hashes.iter().map(|&hash| single.contains_hash(hash)).collect();
                let mut found = vec![present_of_8 < 4; hashes.len()];
                single.contains_batch(&hashes, &mut found);
                assert_eq!(found, expected, "{size_bits} bits, k {k}, {len} keys");
            }
        }
    }
}

#[test]
fn probes_match_the_format() {
    let probes = include_str!("golden/probes.tsv");
    assert_eq!(table::rows(probes).count(), 14 * 5);
    for row in table::rows(probes) {
        let (hash, size_bits) = (table::hex(row[0]), row[1].parse().unwrap());
        if cfg!(miri) && size_bits > 1000 {
            continue;
        }
        let probes: Vec<u64> = row[2..].iter().map(|bit| bit.parse().unwrap()).collect();
        for k in if size_bits <= 1000 { 1..=6 } else { 6..=6 } {
            let mut filter = with_bits(size_bits, k);
            assert!(filter.insert_hash(hash));
            let mut expected = probes[..k as usize].to_vec();
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(bits(&filter), expected, "hash {hash:#x}, {size_bits} bits, k {k}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn standalone_bytes_are_written_in_place_and_damage_is_detected() {
    standalone::check(sample());
}

#[test]
fn a_forged_count_of_zero_keys_is_ignored() {
    let owned = |bytes: &[u8]| StandardBloomFilter::from_standalone(bytes).unwrap();
    let forged = owned(&forge(&sample().to_standalone(), 8, &[0; 8]));
    assert_eq!(forged.known_keys(), None);
    let empty = owned(&with_bits(100, 3).to_standalone());
    assert_eq!((empty.known_keys(), empty.with_seed(5).unwrap().seed()), (Some(0), 5));
}

#[test]
fn a_filter_takes_whole_cache_lines() {
    assert_eq!((sample().byte_len(), with_bits(513, 1).byte_len()), (64, 128));
}

/// Asserts that the measured false-positive rate is within 2% plus three standard errors of the model's, on both sides,
/// over `filters` filters of `keys` keys, with `lookups` absent keys each.
fn assert_model(bits_per_key: f64, k: u32, keys: u64, filters: u64, lookups: u64) {
    let sizing = StandardSizing::new((keys as f64 * bits_per_key) as u64, k).unwrap();
    let mut positives = 0;
    for round in 0..filters {
        let mut filter = with_bits(sizing.bit_len(), sizing.k());
        (0..keys).for_each(|i| _ = filter.insert_hash(mix((round << 32) | i)));
        let absent = (0..lookups).map(|i| mix((1 << 60) | (round << 32) | i));
        positives += absent.filter(|&hash| filter.contains_hash(hash)).count();
    }
    let expected = (filters * lookups) as f64 * sizing.expected_fpr(keys);
    let (ratio, tolerance) = (positives as f64 / expected, 0.02 + 3.0 / expected.sqrt());
    println!("{sizing:?}, {keys} keys: {ratio:.4} of the model's FPR, {expected:.0} expected");
    assert!((ratio - 1.0).abs() <= tolerance, "{sizing:?}: {ratio} of the model, tolerance {tolerance}");
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn the_measured_fpr_matches_the_model() {
    for (bits_per_key, k) in [(4.0, 3), (6.0, 4), (8.0, 6), (10.0, 1), (10.0, 7), (10.0, 16), (12.0, 8)] {
        assert_model(bits_per_key, k, 1_000, 60, 4_000);
        assert_model(bits_per_key, k, 50_000, 3, 60_000);
    }
}

#[test]
#[ignore = "seconds in release"]
fn the_measured_fpr_matches_the_model_at_low_fprs() {
    // Coinciding probes of a key cost most with few keys and a low FPR.
    for (bits_per_key, k) in [(14.38, 10), (19.17, 13), (24.0, 17)] {
        let lookups = (2_000.0 / limit(bits_per_key, k)) as u64;
        assert_model(bits_per_key, k, 1_000, 500, lookups / 500);
        assert_model(bits_per_key, k, 100_000, 10, lookups / 10);
    }
}

/// A whole filter of the size that the window test of `src/variants/standard.rs` samples.
#[test]
#[ignore = "minutes in release, 1.25 GB of memory"]
fn the_measured_fpr_matches_the_model_with_a_billion_keys() {
    assert_model(10.0, 7, 1_000_000_000, 1, 4_000_000);
}

/// With few keys, filters differ in their fill, and related hashes show.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn the_measured_fpr_of_few_keys_matches_the_model_and_keeps_the_request() {
    for fpr in [0.1, 0.01, 1e-3, 1e-4] {
        for keys in [1, 2, 3, 5, 16, 30, 64, 100] {
            let sizing = StandardSizing::for_fpr(keys, fpr).unwrap();
            let (filters, lookups) = (2_000, 1_000.0_f64.max(0.4 / fpr) as u64);
            let (mut sum, mut squares, mut estimated) = (0.0, 0.0, 0.0);
            for round in 0..filters {
                let mut filter = with_bits(sizing.bit_len(), sizing.k());
                (0..keys).for_each(|i| _ = filter.insert_hash(mix((round << 32) | i)));
                let absent = (0..lookups).map(|i| mix((1 << 60) | (round << 32) | i));
                let rate = absent.filter(|&hash| filter.contains_hash(hash)).count() as f64 / lookups as f64;
                (sum, squares, estimated) =
                    (sum + rate, squares + rate * rate, estimated + filter.estimated_fpr());
            }
            let n = filters as f64;
            let [measured, estimated] = [sum, estimated].map(|sum| sum / n);
            let error = ((squares / n - measured * measured) / n).sqrt() / fpr;
            let [to_model, to_request, of_estimate] =
                [measured / sizing.expected_fpr(keys), measured / fpr, estimated / measured];
            println!(
                "{fpr}, {keys} keys: {to_model:.3} of the model, {to_request:.3} of the request, estimates {of_estimate:.3}, ± {error:.3}"
            );
            let tolerance = 4.0 * error + if keys < 3 { 0.2 } else { 0.04 };
            for ratio in [to_model, of_estimate] {
                assert!(
                    (ratio - 1.0).abs() <= tolerance,
                    "{fpr}, {keys} keys: {ratio}, tolerance {tolerance}"
                );
            }
            assert!(to_request <= 1.0 + 4.0 * error, "{fpr}, {keys} keys: {to_request} of the request");
        }
    }
}

#[test]
fn the_estimated_fpr_is_that_of_the_model() {
    for k in [1, 4, 7, 13, 40] {
        let keys = if cfg!(miri) { 400 } else { 20_000 };
        let mut filter = with_bits(keys * 2 * u64::from(k), k);
        assert_eq!((filter.estimated_fpr(), filter.fill_ratio()), (0.0, 0.0));
        for quarter in 1..=4 {
            let inserted = quarter * keys / 4;
            filter.insert_batch(&(inserted - keys / 4..inserted).map(mix).collect::<Vec<_>>());
            let tolerance = if cfg!(miri) { 4.0 } else { 0.3 };
            let model = model_fpr(filter.bit_len(), inserted, k).unwrap();
            let fpr = filter.estimated_fpr();
            assert!((fpr / model - 1.0).abs() < tolerance, "k {k}: {fpr:e}, model {model:e}");
            assert!(fpr >= filter.fill_ratio().powi(k as i32) * 0.999_999);
        }
    }
    let mut one = with_bits(1, 1);
    assert!(!one.contains("ant") && one.insert("ant") && !one.insert("bee") && one.contains("cat"));
    assert_eq!(
        (one.estimated_keys().map(|estimate| estimate.keys), one.estimated_fpr(), one.fill_ratio()),
        (None, 1.0, 1.0)
    );
}

#[test]
fn the_rate_of_many_keys_is_that_of_the_textbook() {
    for (bits_per_key, k) in (2..=20).flat_map(|bits_per_key| (1..=16).map(move |k| (bits_per_key, k))) {
        let exact = model_fpr(bits_per_key * 1_000_000, 1_000_000, k).unwrap();
        let approximate = limit(bits_per_key as f64, k);
        assert!(
            (exact / approximate - 1.0).abs() < 1e-4,
            "{bits_per_key} bits, k {k}: {exact}, {approximate}"
        );
    }
}

#[test]
fn the_fpr_of_the_smallest_and_largest_filters() {
    assert_eq!([1, 7].map(|k| model_fpr(1, 0, k)), [Ok(0.0); 2]);
    for (keys, k) in [(1, 1), (1, 64), (1_000_000, 7)] {
        assert_eq!(model_fpr(1, keys, k), Ok(1.0));
    }
    // For one key in so many bits the FPR is (k/m)^k, which computing 1 − e^(−x) would round away.
    let fpr = model_fpr(1 << 60, 1, 2).unwrap();
    assert!((fpr * 2.0_f64.powi(118) - 1.0).abs() < 1e-12, "{fpr:e}");
}

#[test]
fn bits_per_key_are_the_inverse_of_the_fpr() {
    const KEYS: u32 = 200_000_000;
    let mut fpr = 0.9;
    // Without the keys of equal hashes, and so many keys that hardly any are of related ones.
    let same_hash = f64::from(KEYS) / 2_f64.powi(64);
    while fpr > MIN_FPR {
        let sizing = StandardSizing::for_fpr(KEYS.into(), fpr + same_hash).unwrap();
        let (bits_per_key, k) = (sizing.bit_len() as f64 / f64::from(KEYS), sizing.k());
        let rate = |k| limit(bits_per_key, k);
        assert!(rate(k) <= fpr && rate(k) > 0.9999 * fpr - 5e-15, "{fpr}: {}", rate(k));
        assert!(k == 1 || rate(k - 1) >= rate(k));
        assert!(rate(k + 1) >= rate(k));
        // A Bloom filter needs at least 1/ln 2 times the lower bound for any filter.
        let least = -fpr.log2() / std::f64::consts::LN_2;
        assert!((0.9999..1.15).contains(&(bits_per_key / least)) || fpr > 0.3, "{fpr}: {bits_per_key}");
        if let Ok(blocked) = FilterPolicy::with_fpr(fpr).map(|policy| policy.bits_per_key()) {
            assert!(bits_per_key < 1.02 * blocked, "{fpr}: blocks take {blocked}");
            assert!(fpr > 0.3 || bits_per_key < blocked, "{fpr}: blocks take {blocked}");
        }
        fpr *= 0.31;
    }
    let lowest = StandardSizing::for_fpr(KEYS.into(), MIN_FPR + same_hash).unwrap();
    let bits_per_key = lowest.bit_len() as f64 / f64::from(KEYS);
    assert!((63.9..1.01 * MAX_BITS_PER_KEY).contains(&bits_per_key) && lowest.k() == 44, "{lowest:?}");
}

#[test]
fn sizes_are_the_smallest_that_keep_the_fpr() {
    for keys in [0, 1, 2, 3, 10, 100, 1_000, 1_000_000, 100_000_000] {
        for fpr in [0.9, 0.5, 0.1, 0.01, 0.001, 1e-6] {
            let sizing = StandardSizing::for_fpr(keys, fpr).unwrap();
            let rate = sizing.expected_fpr(keys.max(1));
            assert!(rate <= fpr, "{keys} keys, {fpr}: {sizing:?} has {rate}");
            if keys <= 1_000 {
                let filter = StandardBloomFilter::with_fpr(keys, fpr).unwrap();
                assert_eq!((filter.bit_len(), filter.k()), (sizing.bit_len(), sizing.k()));
            }
            let less = sizing.bit_len() - 2 - sizing.bit_len().min(keys) / 10_000;
            if keys >= 100 {
                let smaller = model_fpr(less, keys, sizing.k()).unwrap();
                assert!(smaller > fpr, "{keys} keys, {fpr}: {sizing:?}, and {less} bits have {smaller}");
            }
        }
        let sizing = StandardSizing::for_bits_per_key(keys, 10.0).unwrap();
        assert_eq!(sizing.bit_len(), 10 * keys.max(1));
        let filter = of_bits_per_key(keys.min(1_000), 10.0).unwrap();
        assert_eq!(filter.bit_len(), 10 * keys.clamp(1, 1_000));
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    for value in [f64::NAN, 0.0, -1.0, 1.0, 2.0, f64::INFINITY] {
        assert_eq!(StandardBloomFilter::with_fpr(10, value).text(), not_a_rate(value));
        assert_eq!(StandardSizing::for_fpr(10, value).text(), not_a_rate(value));
    }
    for value in [f64::NAN, 0.0, -1.0, 64.1, f64::INFINITY] {
        assert_eq!(of_bits_per_key(10, value).text(), bits_per_key(value));
    }
    for k in [0, 65, u32::MAX] {
        let error = common::standard_programs::with_bits(10, k).unwrap_err();
        assert_eq!(error.to_string(), probes(k, 64));
        assert_eq!(model_fpr(10, 10, k), Err(error));
    }
    let no_bits = common::standard_programs::with_bits(0, 7).unwrap_err();
    assert_eq!(Err(no_bits), model_fpr(0, 7, 7));
    assert!(no_bits.to_string().ends_with(" bits on this machine, not 0"), "{no_bits}");
    let error = common::standard_programs::with_bits(u64::MAX, 7).unwrap_err();
    assert!(
        error.kind() == ErrorKind::OutOfMemory || error.to_string().ends_with(&format!(", not {}", u64::MAX))
    );
    let most = StandardSizing::for_fpr(u64::MAX, 0.9);
    assert!(most.is_ok() || most.kind() == Some(ErrorKind::Argument));
    let error = StandardSizing::for_bits_per_key(u64::MAX, 64.0).text();
    if cfg!(target_pointer_width = "64") {
        assert_eq!(error, too_many_keys(u64::MAX, 64.0));
    }
}

/// With so many keys, some absent keys have the same hash as a present one, and more bits do not help.
#[test]
#[cfg(target_pointer_width = "64")]
fn fprs_below_the_chance_of_equal_hashes_are_refused() {
    let billion = 1_000_000_000;
    let least = lowest(&StandardSizing::for_fpr(billion, 5e-11).text());
    assert!((5.42e-11..5.43e-11).contains(&least) && StandardSizing::for_fpr(billion, least).is_ok());
    let sizing = StandardSizing::for_fpr(billion, 6e-11).unwrap();
    assert!(sizing.expected_fpr(billion) < 6e-12, "the FPR that remains for the bits");
    assert!(StandardSizing::for_fpr(1_000, MIN_FPR / 2.0).is_err());
}
