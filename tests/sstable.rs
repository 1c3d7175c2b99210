//! A policy's filters have every key, the requested rate and no more modules than they need, and damage hides no key.

mod common;

use bloomline::sstable::FilterPolicy;
use bloomline::{BloomView, Sizing};
use common::error_texts::{Refusal, impossible_modules, wrong_length, wrong_trailer};

fn policy() -> FilterPolicy {
    FilterPolicy::with_bits_per_key(10.0).unwrap()
}

#[test]
fn a_policy_reports_filters_that_it_cannot_use() {
    let (policy, mut filter) = (policy(), Vec::new());
    policy.create_filter(["ant"], &mut filter);
    assert_eq!(policy.try_key_may_match("ant", &filter), Ok(true));
    assert_eq!(policy.try_key_may_match("bee", &filter), Ok(false));
    assert_eq!(policy.try_key_may_match("bee", &filter[1..]).text(), wrong_length(8));
    assert!(policy.key_may_match("bee", &filter[1..]));
}

#[test]
fn a_policy_streams_the_keys_of_a_table() {
    let (policy, [mut streamed, mut created]) = (policy(), [const { Vec::new() }; 2]);
    let mut builder = policy.builder();
    for keys in [["ant", "bee", "bee"], ["cat", "dog", "elk"]] {
        keys.iter().for_each(|key| builder.insert(key));
        builder.finish_compact(&mut streamed).unwrap();
        policy.create_filter(keys, &mut created);
        assert_eq!(streamed, created);
    }
}

/// As `FilterPolicy::bits_per_key` promises. Just below 0.05%, filters of many keys have one module of 17.5 bits per key
/// instead of two of 16.2, wherever rounding costs what the second would save.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn rounding_adds_no_more_than_promised() {
    let of_fprs = [0.01, 4.96e-4, 1e-4, 1e-6, 1e-8, 1e-11]
        .map(|fpr| (FilterPolicy::with_fpr(fpr), Sizing::for_fpr(1 << 24, fpr)));
    let of_bits = [10.0, 17.5, 24.0, 50.0]
        .map(|bits| (FilterPolicy::with_bits_per_key(bits), Sizing::for_bits_per_key(1 << 24, bits)));
    let (mut most, mut filter) = (0.0_f64, Vec::new());
    for (policy, of_many) in of_fprs.into_iter().chain(of_bits) {
        let (policy, n) = (policy.unwrap(), of_many.unwrap().n_modules() as i32);
        for n_keys in (1..400).chain((401..4_000).step_by(7)) {
            filter.clear();
            policy.create_filter(0..n_keys, &mut filter);
            let mut builder = policy.builder();
            builder.extend(0..n_keys);
            assert_eq!(builder.compact_len(), filter.len(), "{policy:?}, {n_keys} keys");
            let needed = f64::from(n_keys) * policy.bits_per_key() / 8.0 + f64::from(64 * n + 2);
            let promised = needed / 0.93_f64.powi(n - 1);
            assert!(filter.len() as f64 <= promised, "{policy:?}, {n_keys} keys: {}", filter.len());
            most = most.max(filter.len() as f64 - needed);
        }
    }
    assert!(most > 10.0, "the division is needed: {most}");
}

/// At low rates, a filter that is large enough for whole blocks has two modules.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn filters_of_low_rates_keep_them_and_save_bits() {
    for (fpr, saves) in [(0.0004, 0.07), (0.0001, 0.09), (1e-6, 0.19)] {
        let policy = FilterPolicy::with_fpr(fpr).unwrap();
        let in_one = policy.clone().with_most_modules(1).unwrap();
        let of_bits = FilterPolicy::with_bits_per_key(in_one.bits_per_key()).unwrap();
        assert!(policy.bits_per_key() <= (1.0 - saves) * in_one.bits_per_key(), "{fpr}");
        for n_keys in [0, 1, 2, 30, 100, 300, 3_000, 100_000] {
            let filters = [&policy, &in_one, &of_bits].map(|policy| {
                let mut filter = vec![0xff];
                policy.create_filter(0..n_keys, &mut filter);
                assert!((0..n_keys).all(|key| policy.key_may_match(key, &filter[1..])), "{n_keys} keys");
                filter.split_off(1)
            });
            let [n_modules, one, _] = filters.each_ref().map(|filter| modules_of(filter));
            let is_rounded = n_keys < if fpr > 2e-4 { 100_000 } else { 3_000 };
            assert!(one == 1 && (is_rounded || n_modules == 2), "{n_keys} keys");
            let lens = filters.each_ref().map(Vec::len);
            assert!(lens[0] <= lens[1] + 1 && lens[2] <= lens[1] + lens[1] / 100 + 1, "{n_keys}: {lens:?}");
            if n_keys == 100_000 {
                assert!((lens[0] as f64) < (1.001 - saves) * lens[1] as f64, "{lens:?}");
                let absent = n_keys..n_keys + (400.0 / fpr).min(4e6) as i32;
                let expected = fpr * absent.len() as f64;
                let found = absent.filter(|key| policy.key_may_match(key, &filters[0])).count() as f64;
                assert!((found - expected).abs() < 4.0 * expected.sqrt() + 0.02 * expected, "{fpr}: {found}");
            }
        }
    }
}

fn modules_of(filter: &[u8]) -> usize {
    BloomView::from_compact(filter).unwrap().n_modules()
}

/// One module needs 17.454 bits per key for 0.0497%.
#[test]
fn a_second_module_begins_at_a_twentieth_of_a_percent() {
    let [bits, rate] = [FilterPolicy::with_bits_per_key, FilterPolicy::with_fpr];
    let within =
        |policy: Result<FilterPolicy, _>, most| policy.and_then(|policy| policy.with_most_modules(most));
    for (policy, n_modules) in [
        (bits(17.454), 1),
        (bits(17.455), 2),
        (rate(0.000_497), 1),
        (rate(0.000_48), 2),
        (within(rate(0.000_48), 1), 1),
        (within(rate(0.000_001), 4), 4),
        (within(rate(0.001), 2), 2),
        (within(bits(20.0), 1), 1),
        (within(bits(14.0), 2), 2),
    ] {
        let mut filter = Vec::new();
        let policy = policy.unwrap();
        policy.create_filter(0..50_000, &mut filter);
        assert_eq!(modules_of(&filter), n_modules, "{policy:?}: {} bytes", filter.len());
    }
}

#[test]
fn damaged_modules_are_an_error_and_possibly_present() {
    let (policy, mut filter) = (FilterPolicy::with_fpr(0.0001).unwrap(), Vec::new());
    policy.create_filter(0..3_000, &mut filter);
    let [.., n_modules, trailer] = filter[..] else { panic!("no filter") };
    assert_eq!((n_modules, trailer >> 4), (2, 3));
    let with_end = |end: [u8; 2]| [&filter[..filter.len() - 2], &end].concat();
    for (bytes, error) in [
        (with_end([2, trailer ^ 0x10]), wrong_trailer(trailer ^ 0x10)),
        (with_end([1, trailer]), impossible_modules(1)),
        (with_end([17, trailer]), impossible_modules(17)),
        (with_end([2, trailer])[64..].to_vec(), wrong_length(filter.len() - 64)),
        (filter[..filter.len() - 1].to_vec(), wrong_trailer(2)),
        (filter[1..].to_vec(), wrong_trailer(trailer)),
        (vec![2, trailer], wrong_length(2)),
    ] {
        assert_eq!(policy.try_key_may_match(7, &bytes).text(), error);
        assert!(policy.key_may_match("absent", &bytes));
    }
}
