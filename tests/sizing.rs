//! Sizes follow from the model, and errors name the invalid number.

mod common;

use bloomline::sizing::standard::StandardSizing;
use bloomline::sstable::FilterPolicy;
use bloomline::variants::CountingBloomFilter;
use bloomline::{
    AtomicBloomFilter, BloomFilter, BloomView, Error, ErrorKind, FilterBuilder, Sizing, mix, sizing,
};
use common::error_texts::*;
use common::sizing_guarantees::{LOWEST, fprs_are_kept, rate, the_best_k_is_best};

/// Bits per key, k, and the false-positive rate in percent, from a sum over all terms in a different language, written
/// before the crate.
const FPRS: [(f64, u32, f64); 12] = [
    (8.0, 5, 2.343_13),
    (10.0, 6, 0.972_68),
    (12.0, 7, 0.419_321),
    (16.0, 10, 0.086_006_3),
    (20.0, 11, 0.020_137_3),
    (24.0, 12, 0.005_439_02),
    (10.0, 8, 1.048_98),
    (12.0, 8, 0.422_249),
    (16.0, 8, 0.090_887_7),
    (10.0, 7, 0.980_29),
    (16.0, 9, 0.085_845_7),
    (32.0, 15, 0.000_552_173),
];

/// The fewest bits per key of many keys.
fn bits_per_key_for(fpr: f64) -> Result<f64, Error> {
    Ok(FilterPolicy::with_fpr(fpr)?.bits_per_key())
}

/// The best k of a standard filter is one higher than that of blocks at 10 bits per key.
#[test]
fn short_filters_of_less_than_two_blocks_take_the_k_of_standard_filters() {
    for (lanes, k) in [(1, 7), (2, 7), (8, 7), (14, 7), (15, 7), (16, 6), (17, 6), (32, 6), (63, 6), (64, 6)]
    {
        let mut builder = FilterBuilder::with_bits_per_key(10.0).unwrap();
        (0..64 * lanes / 10).for_each(|i| builder.insert_hash(mix(i)));
        let mut compact = Vec::new();
        builder.finish_compact(&mut compact).unwrap();
        let view = BloomView::from_compact(&compact).unwrap();
        assert_eq!((compact.len() as u64, view.k()), (8 * lanes + 1, k));
    }
}

#[test]
fn the_model_matches_the_brute_force_sum() {
    for (bits_per_key, k, exact) in FPRS {
        let percent = 100.0 * sizing::fpr(bits_per_key, k).unwrap();
        assert!(
            (percent / exact - 1.0).abs() < 1e-4,
            "{bits_per_key} bits, k {k}: {percent} %, not {exact} %"
        );
    }
    // From the same sum with sixty digits. Rounding errors are largest here.
    let lowest = sizing::fpr(64.0, 16).unwrap();
    assert!((lowest / 1.261_290e-8 - 1.0).abs() < 2e-4, "{lowest:e}");
    for (n_modules, lowest) in (1..).zip(LOWEST) {
        let best = rate(64.0, n_modules);
        assert!((0.998..=1.0).contains(&(best / lowest)), "{n_modules} modules: {best:e}");
    }
}

#[test]
fn the_best_k_has_the_lowest_fpr() {
    (0..210).map(|i| 1.02_f64.powi(i)).for_each(the_best_k_is_best);
    // A ninth probe must save 1% of the bits. From these bits per key on, it does.
    let saved = |bits_per_key| {
        let nine = sizing::fpr(bits_per_key, 9).unwrap();
        sizing::fpr(1.01 * bits_per_key, 8).unwrap() > nine
    };
    assert_eq!(
        [15.909, 15.911].map(|bits| (sizing::best_k(bits), saved(bits))),
        [(Ok(8), false), (Ok(9), true)]
    );
}

/// The fewest bits per key at which so many modules have this rate.
fn bits_in(n_modules: usize, fpr: f64) -> f64 {
    let (mut low, mut high) = (1.0, sizing::MAX_BITS_PER_KEY);
    while high - low > 1e-6 * high {
        let middle = (low + high) / 2.0;
        *(if rate(middle, n_modules) > fpr { &mut low } else { &mut high }) = middle;
    }
    high
}

/// For many keys, at rates of every magnitude.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn a_further_module_saves_seven_percent_of_the_bits() {
    const KEYS: u64 = 1 << 20;
    let mut seen = [0; 5];
    for i in 0..150 {
        let fpr = 10_f64.powf(-1.0 - 9.0 * (mix(i) >> 11) as f64 / 2_f64.powi(53));
        let sizing = Sizing::for_fpr(KEYS, fpr).unwrap();
        let n_modules = sizing.n_modules();
        let bits = sizing.byte_len() as f64 * 8.0 / KEYS as f64;
        assert!((bits / bits_in(n_modules, fpr) - 1.0).abs() < 3e-4, "{fpr}: {bits}");
        assert!((bits / bits_per_key_for(fpr).unwrap() - 1.0).abs() < 3e-4, "{fpr}: {bits}");
        let share = |n| bits_in(n, fpr) / bits_in(n - 1, fpr);
        let of_fewer = n_modules > 1 && fpr > LOWEST[n_modules - 2];
        assert!(!of_fewer || share(n_modules) <= 0.9301, "{fpr}: {sizing:?}");
        assert!(n_modules == 4 || share(n_modules + 1) > 0.9289, "{fpr}: {sizing:?}");
        seen[n_modules] += 1;
    }
    assert!(seen[1] > 20 && seen[2] > 20 && seen[3] > 10, "{seen:?}");
    // For given bits, as many as for the rate that they have in one module less.
    for i in 0..100 {
        let bits = 1.0 + 62.0 * (mix(i) >> 11) as f64 / 2_f64.powi(53);
        let n_modules = Sizing::for_bits_per_key(KEYS, bits).unwrap().n_modules();
        for n in [n_modules - 1, n_modules].into_iter().filter(|&n| n > 0) {
            assert_eq!(Sizing::for_fpr(KEYS, rate(bits, n)).unwrap().n_modules(), n_modules, "{bits} bits");
        }
    }
}

/// From one key to billions, and also if more or fewer modules are asked for.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn the_requested_rate_is_kept_by_the_fewest_blocks() {
    for i in 0..400_u64 {
        let number = |at| (mix(5 * i + at) >> 11) as f64 / 2_f64.powi(53);
        let keys = 10_f64.powf(10.0 * number(0)) as u64;
        let fpr = 10_f64.powf(-2.0 - 4.0 * number(1));
        fprs_are_kept(keys, fpr, [None, Some(1), Some(2), Some(4), Some(16)][i as usize % 5]);
    }
    // Every further module that is allowed makes the filter smaller, if it changes anything.
    for keys in [1, 100, 30_000, 1_000_000] {
        for fpr in [0.1, 0.01, 0.001, 1e-4, 1e-6, 1e-8] {
            let sizes = (1..=16).filter_map(|most| Sizing::for_fpr_within(keys, fpr, most).ok());
            let sizes: Vec<_> = sizes.map(|sizing| (sizing.byte_len(), sizing.n_modules())).collect();
            for (most, pair) in sizes.windows(2).enumerate() {
                assert!(pair[1].0 < pair[0].0 || pair[1] == pair[0], "{keys} keys, {fpr}, {most}: {pair:?}");
            }
        }
    }
    for (fpr, most) in [(0.001, 1.02), (1e-4, 1.04), (1e-6, 1.05)] {
        let sizing = Sizing::for_fpr_within(1_000_000, fpr, 4).unwrap();
        let ratio = 8.0 * sizing.byte_len() as f64
            / StandardSizing::for_fpr(1_000_000, fpr).unwrap().bit_len() as f64;
        assert!((1.0..most).contains(&ratio), "{fpr}: {ratio} of a standard filter's bits");
    }
}

/// The rate at 64 bits per key can be requested, and nothing lower. With many keys, absent keys also have the hashes of
/// present keys.
#[test]
#[cfg_attr(miri, ignore = "minutes under miri")]
fn the_lowest_rates_are_those_of_64_bits_per_key() {
    for (most, least) in (1..).zip(LOWEST) {
        let refused = Sizing::for_fpr_within(1, 0.99 * least, most).text();
        assert!(refused.contains("out of reach"), "{refused}");
        let same_hash = 1e6 / 2_f64.powi(64) * 1.001;
        let sizing = Sizing::for_fpr_within(1_000_000, least + same_hash, most).unwrap();
        assert_eq!(sizing.n_modules(), most);
        assert!((63.5..=64.01).contains(&(8.0 * sizing.byte_len() as f64 / 1e6)), "{sizing:?}");
    }
    if cfg!(target_pointer_width = "64") {
        let billion = 1_000_000_000;
        assert!((5.47e-11..5.48e-11).contains(&lowest(&Sizing::for_fpr(billion, 5e-11).text())));
        let sizing = Sizing::for_fpr(billion, 6e-11).unwrap();
        assert!(sizing.expected_fpr(billion) < 6e-12, "the FPR that remains for the bits");
    }
}

#[test]
fn bits_that_cannot_be_divided_among_modules_stay_in_one() {
    let least = f64::from_bits(1);
    let sizes = [1, 4].map(|most| Sizing::for_bits_per_key_within(1, least, most));
    assert_eq!(sizes[0], sizes[1]);
    let sizing = Sizing::for_bits_per_key_within(1_000_000, 20.0, 4).unwrap();
    assert_eq!((sizing.n_modules(), sizing.k(), sizing.byte_len()), (3, 5, 3 * 64 * 13_021));
    let sizing = BloomFilter::with_bits_per_key(1_000_000, 20.0).unwrap().sizing();
    assert_eq!((sizing.n_modules(), sizing.k(), sizing.byte_len()), (2, 6, 2 * 64 * 19_532));
}

#[test]
fn sizes_match_the_documentation() {
    let bytes = |keys, fpr| 64 * Sizing::for_fpr(keys, fpr).unwrap().n_blocks() as u64;
    assert_eq!(bytes(1_000_000, 0.01), 1_241_728);
    assert_eq!(bytes(1_000_000, 0.001), 1_965_632);
    assert_eq!(bytes(1_000_000, 0.0001), 2_483_456);
    if cfg!(target_pointer_width = "64") {
        assert_eq!(bytes(1_000_000_000, 0.01), 1_241_678_784);
        assert_eq!(bytes(1_000_000_000, 0.001), 1_965_576_320);
        assert_eq!(bytes(1_000_000_000, 0.0001), 2_483_357_696);
    }
    assert_eq!(BloomFilter::with_fpr(1_000_000, 0.01).unwrap().byte_len(), 1_244_160);
    let (readme, docs) = (include_str!("../README.md"), include_str!("../src/sizing/mod.rs"));
    let tuning = include_str!("../docs/tuning.md");
    let [one, tenth, hundredth] =
        [0.01, 0.001, 0.0001].map(|fpr| format!("{:.2}", bits_per_key_for(fpr).unwrap()));
    // In one to four modules, and in a standard filter.
    for (name, fpr, chosen) in [("1%", 0.01, 0), ("0.1%", 0.001, 0), ("0.01%", 1e-4, 1), ("0.0001%", 1e-6, 1)]
    {
        let all = [1, 2, 3, 4].map(|n| bits_in(n, fpr));
        let standard = StandardSizing::for_fpr(1 << 24, fpr).unwrap().bit_len() as f64 / f64::from(1 << 24);
        let mut bits = all.map(|bits| format!("{bits:.2}"));
        bits[chosen] = format!("**{}**", bits[chosen]);
        let [one, two, ..] = &bits;
        let row = format!("| {name} | {one} | {two} | {:.2} | {standard:.2} |", all[2].min(all[3]));
        assert!(tuning.contains(&row), "{row}");
        let row = format!("| {} | {} | {standard:.2} |", name.replace("0.0001%", "10⁻⁶"), bits.join(", "));
        assert!(docs.contains(&row), "{row}");
    }
    let by_bits = |bits: f64| {
        let sizing = Sizing::for_bits_per_key(1 << 24, bits).unwrap();
        let in_modules = if sizing.n_modules() == 2 { ", in 2 modules" } else { "" };
        let percent = 100.0 * sizing.expected_fpr(1 << 24);
        let decimals = if percent > 1.0 { 3 } else { (2.0 - percent.log10().floor()) as usize };
        format!("| {bits} | {}{in_modules} | {percent:.decimals$}% |", sizing.k())
    };
    for part in [8.0, 10.0, 12.0, 16.0, 20.0, 24.0].map(by_bits) {
        assert!(docs.contains(&part), "{part}");
    }
    for (text, part) in [
        (readme, "1% false positives: 1.24 MB".to_owned()),
        (docs, format!("| bits per key | {one} | {tenth} | {hundredth} |")),
        (docs, "| k, modules | 6, 1 | 8, 1 | 6, 2 |".to_owned()),
        (docs, "| 1 million | 1.24 MB | 1.97 MB | 2.48 MB |".to_owned()),
        (docs, "| 1 billion | 1.24 GB | 1.97 GB | 2.48 GB |".to_owned()),
    ] {
        assert!(text.contains(&part), "{part}");
    }
}

#[test]
fn bits_by_level_match_the_documentation() {
    let (levels, sum) = ([1e4, 1e5, 1e6, 1e7, 1e8], 0.05);
    let all: f64 = levels.iter().sum();
    let bits = levels.map(|keys| bits_per_key_for(sum * keys / all).unwrap());
    let mean = levels.iter().zip(bits).map(|(keys, bits)| keys * bits).sum::<f64>() / all;
    let [a, b, c, d, e] = bits;
    let equal = bits_per_key_for(sum / levels.len() as f64).unwrap();
    let text = format!(
        "{a:.1}, {b:.1}, {c:.1}, {d:.1} and {e:.1} bits, on average {mean:.1} per key. Equal bits for all levels would need {equal:.1}."
    );
    let page = include_str!("../docs/embedding.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(&text), "{text}");
}

/// The size that [`Sizing::rounded_to_fold`] makes of `n_blocks`.
fn foldable(n_blocks: usize) -> usize {
    let sizing = Sizing::new(n_blocks, 6).unwrap();
    let foldable = sizing.rounded_to_fold();
    assert_eq!(foldable.k(), 6);
    let more = foldable.n_blocks() - n_blocks;
    assert!(more <= (n_blocks / 100).max(1), "{more} blocks more than {n_blocks}");
    foldable.n_blocks()
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn foldable_sizes_have_many_divisors_and_keep_their_order() {
    let mut before = 0;
    for n_blocks in 1..=1_000_000 {
        let foldable = foldable(n_blocks);
        assert!(before <= foldable, "{n_blocks} blocks");
        before = foldable;
        for (from, step) in
            [(1, 2), (300, 4), (1_100, 12), (2_300, 24), (11_900, 120), (71_900, 720), (503_900, 5_040)]
        {
            assert!(foldable.is_multiple_of(step) || n_blocks < from, "{n_blocks} blocks: {foldable}");
        }
    }
    if cfg!(target_pointer_width = "64") {
        for i in 0..100_000 {
            // As many numbers of each magnitude.
            let n_blocks = ((mix(i) >> 24) >> (i % 40)).max(1) as usize;
            let next = n_blocks + 1 + mix(!i) as usize % n_blocks;
            assert!(foldable(n_blocks) <= foldable(next), "{n_blocks} and {next} blocks");
            assert!(foldable(n_blocks).is_multiple_of(5_040 * 256) || n_blocks < 5_040 * 25_600);
        }
    }
    // The largest size has no larger one.
    let most = (isize::MAX as usize - 120) / 64;
    let sizing = Sizing::new(most, 6).unwrap();
    assert_eq!(sizing.rounded_to_fold().n_blocks(), most);
    assert!(cfg!(target_pointer_width = "32") || BloomFilter::with_sizing(sizing.rounded_to_fold()).is_err());
}

#[test]
fn filters_for_a_guessed_number_of_keys_can_be_folded() {
    for i in 0..200 {
        let keys = 10 + mix(i) as usize % 300_000;
        let exact = Sizing::for_fpr(keys as u64, 0.01).unwrap();
        let mut filter = BloomFilter::with_fpr(keys as u64, 0.01).unwrap();
        assert_eq!((filter.n_blocks(), filter.k()), (exact.rounded_to_fold().n_blocks(), exact.k()));
        let counting = CountingBloomFilter::with_fpr(keys as u64, 0.01).unwrap();
        let shared = AtomicBloomFilter::with_fpr(keys as u64, 0.01).unwrap();
        assert_eq!([counting.as_filter().n_blocks(), shared.sizing().n_blocks()], [filter.n_blocks(); 2]);
        assert_eq!(BloomFilter::with_sizing(exact).unwrap().n_blocks(), exact.n_blocks());
        filter.fold(2).unwrap();
    }
    // A number of keys that is known stays exact.
    let sizing = Sizing::for_bits_per_key(5_000_000, 9.9335).unwrap();
    assert_eq!(sizing.n_blocks(), 97_007);
    assert_eq!(BloomFilter::with_bits_per_key(5_000_000, 9.9335).unwrap().n_blocks(), 97_007);
}

#[test]
fn invalid_bits_per_key_are_refused() {
    let infinite = [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")];
    let finite = [
        (0.0, "0"),
        (-0.0, "0"),
        (-10.0, "-10"),
        (64.1, "64.1"),
        (1e300, "1e300"),
        (f64::MAX, "1.79769e308"),
    ];
    for (value, shown) in infinite.into_iter().chain(finite) {
        let refused = |error: Error| assert_eq!(error.to_string(), bits_per_key(shown));
        refused(BloomFilter::with_bits_per_key(100, value).unwrap_err());
        refused(FilterBuilder::with_bits_per_key(value).unwrap_err());
        refused(FilterPolicy::with_bits_per_key(value).unwrap_err());
        refused(Sizing::for_bits_per_key(100, value).unwrap_err());
        refused(sizing::fpr(value, 6).unwrap_err());
        refused(sizing::best_k(value).unwrap_err());
    }
}

#[test]
fn invalid_fprs_are_refused() {
    let infinite = [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")];
    let finite = [(0.0, "0"), (-0.0, "0"), (-0.01, "-0.01"), (1.0, "1"), (1.01, "1.01"), (1e300, "1e300")];
    for (value, shown) in infinite.into_iter().chain(finite) {
        let refused = |error: Error| assert_eq!(error.to_string(), not_a_rate(shown));
        refused(BloomFilter::with_fpr(100, value).unwrap_err());
        refused(FilterBuilder::with_fpr(value).unwrap_err());
        refused(FilterPolicy::with_fpr(value).unwrap_err());
        refused(Sizing::for_fpr(100, value).unwrap_err());
        refused(bits_per_key_for(value).unwrap_err());
    }
    for (value, shown) in
        [(f64::MIN_POSITIVE, "2.22507e-308"), (5e-324, "4.94066e-324"), (5.4e-13, "5.4e-13")]
    {
        assert_eq!(BloomFilter::with_fpr(0, value).text(), low_rate(shown, "5.432e-13"));
        assert_eq!(bits_per_key_for(value).text(), low_rate(shown, "5.432e-13"));
    }
    // The lowest rate of one module is higher.
    let text = low_rate("1.2e-8", "1.263e-8");
    assert_eq!(Sizing::for_fpr_within(100, 1.2e-8, 1).text(), text);
    assert_eq!(FilterBuilder::with_fpr(1.2e-8).unwrap().with_most_modules(1).text(), text);
    assert_eq!(FilterPolicy::with_fpr(1.2e-8).unwrap().with_most_modules(1).text(), text);
}

#[test]
fn degenerate_sizes_are_small_filters_or_errors() {
    for keys in [0, 1] {
        let filters = [BloomFilter::with_fpr(keys, 0.01), BloomFilter::with_bits_per_key(keys, 10.0)];
        for (mut filter, n_blocks) in filters.map(Result::unwrap).into_iter().zip([2, 1]) {
            assert_eq!(filter.n_blocks(), n_blocks);
            assert!(filter.insert("key") && filter.contains("key"));
        }
    }
    // The fewest bits per key that a float can express.
    for bits_per_key in [5e-324, f64::MIN_POSITIVE, 1e-9] {
        let mut filter = BloomFilter::with_bits_per_key(1_000_000, bits_per_key).unwrap();
        assert_eq!((filter.n_blocks(), filter.k()), (1, 1));
        assert!(filter.insert("key") && filter.contains("key"));
        assert!(sizing::fpr(bits_per_key, 1).unwrap() <= 1.0);
    }
    for k in [0, 17, 18, 256, 257, u32::MAX] {
        assert_eq!(BloomFilter::with_blocks(1, k).text(), probes(k, 16));
        assert_eq!(sizing::fpr(10.0, k).text(), probes(k, 16));
        assert_eq!(Sizing::new(1, k).text(), probes(k, 16));
    }
    for n_modules in [0, 17, usize::MAX] {
        let text = common::error_texts::n_modules(n_modules);
        assert_eq!(Sizing::new(34, 6).unwrap().with_modules(n_modules).text(), text);
        assert_eq!(Sizing::for_fpr_within(10, 0.01, n_modules).text(), text);
        assert_eq!(Sizing::for_bits_per_key_within(10, 10.0, n_modules).text(), text);
        assert_eq!(FilterBuilder::with_fpr(0.01).unwrap().with_most_modules(n_modules).text(), text);
        assert_eq!(FilterPolicy::with_fpr(0.01).unwrap().with_most_modules(n_modules).text(), text);
    }
    let most = (isize::MAX as u64 - 120) / 64;
    for n_blocks in [0, most as usize + 1, usize::MAX / 64, usize::MAX] {
        let text = common::error_texts::n_blocks(n_blocks, most);
        assert_eq!(BloomFilter::with_blocks(n_blocks, 6).text(), text);
        assert_eq!(Sizing::new(n_blocks, 6).text(), text);
    }
    // With a 32-bit address space, allocating half of it may succeed.
    if cfg!(target_pointer_width = "64") {
        assert_eq!(BloomFilter::with_blocks(most as usize, 6).kind(), Some(ErrorKind::OutOfMemory));
    }
    for bits_per_key in [10.0, 64.0] {
        let error = BloomFilter::with_bits_per_key(u64::MAX, bits_per_key).unwrap_err();
        let is_of_keys = error.to_string() == too_many_keys(usize::MAX as u64, bits_per_key);
        assert!(is_of_keys || error.kind() == ErrorKind::OutOfMemory, "{error}");
    }
    assert!(BloomFilter::with_fpr(u64::MAX, 0.01).is_err());
}
