//! What only filters of several modules have: hashes of the further modules, rates that multiply, bytes of each module, and
//! what refuses them. All other tests of filters run with any number of modules.

mod common;

use bloomline::bank::FilterBank;
use bloomline::variants::CountingBloomFilter;
use bloomline::{BloomFilter, BloomView, StandaloneFooter, mix, sizing};
use common::error_texts::*;
use common::format::hashes;
use common::of_modules;
use xxhash_rust::xxh64::xxh64;

const FOOTER_BYTES: usize = 64;

/// Three modules of two blocks.
fn sample() -> BloomFilter {
    let mut filter = of_modules(3, 2, 5).with_seed(99).unwrap();
    filter.extend(["ant", "bee", "cat"]);
    filter
}

/// Hashes are bad in module 0 if they are counters, multiples of powers of two, arithmetic progressions, a base with
/// few bits flipped, or half of the bits. Absent keys are of the same pattern. But the later modules have the model's
/// rate, each and together.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn bad_hashes_are_good_in_the_later_modules() {
    type Pattern = fn(u64) -> u64;
    const PATTERNS: [(&str, Pattern); 10] = [
        ("counters", |i| i),
        ("multiples of 2^32", |i| i << 32),
        ("multiples of 2^44", |i| i << 44),
        ("multiples of 2^20", |i| i << 20),
        ("negative counters", |i| i.wrapping_neg()),
        ("a progression", |i| (i * 1_000_003).wrapping_add(0x0123_4567_89ab_cdef)),
        ("few bits flipped", |i| {
            (0..20).fold(0x243f_6a88_85a3_08d3, |hash, bit| hash ^ ((i >> bit & 1) << (5 + 2 * bit)))
        }),
        ("one bit of a base", |i| mix(i / 8) ^ 1 << (9 * (i % 8))),
        ("the low half", |i| mix(i) >> 32),
        ("the high half", |i| mix(i) << 32),
    ];
    const KEYS: u64 = 100_000;
    let of_module = sizing::fpr(1_600.0 * 512.0 / KEYS as f64, 5).unwrap();
    for (name, pattern) in PATTERNS {
        let mut modules = [(); 3].map(|()| of_modules(1, 1_600, 5));
        let mut filter = of_modules(3, 1_600, 5);
        for hash in (0..KEYS).map(|i| pattern(2 * i)) {
            filter.insert_hash(hash);
            modules.iter_mut().zip(hashes(hash)).for_each(|(module, hash)| _ = module.insert_hash(hash));
        }
        let mut positives = [0; 4];
        for hash in (0..KEYS).map(|i| pattern(2 * i + 1)) {
            let of_modules: Vec<bool> =
                modules.iter().zip(hashes(hash)).map(|(module, hash)| module.contains_hash(hash)).collect();
            assert_eq!(filter.contains_hash(hash), of_modules.iter().all(|&found| found));
            for (positives, found) in positives.iter_mut().zip(&of_modules) {
                *positives += u32::from(*found);
            }
            positives[3] += u32::from(of_modules[1] && of_modules[2]);
        }
        println!("{name}: {positives:?} false positives, {:.0} by the model", KEYS as f64 * of_module);
        for (positives, model) in
            [(positives[1], of_module), (positives[2], of_module), (positives[3], of_module.powi(2))]
        {
            let expected = KEYS as f64 * model;
            // The bits of 1,600 blocks vary, too.
            let tolerance = 4.0 * (expected + (0.01 * expected).powi(2)).sqrt();
            assert!(
                (f64::from(positives) - expected).abs() <= tolerance,
                "{name}: {positives}, {expected} expected"
            );
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "minutes under miri")]
fn fewer_modules_have_every_key_at_a_higher_rate() {
    let hashes: Vec<u64> = (0..20_000).map(mix).collect();
    let mut filter = of_modules(4, 250, 4);
    filter.insert_batch(&hashes);
    let bytes = filter.to_standalone();
    let view = BloomView::from_standalone(&bytes).unwrap();
    for n_modules in 1..=4 {
        for view in [view, filter.as_view()] {
            let first = view.first_modules(n_modules).unwrap();
            assert_eq!(
                [first.n_modules(), first.n_blocks() / 250, first.byte_len() / 16_000],
                [n_modules; 3]
            );
            assert!(hashes.iter().all(|&hash| first.contains_hash(hash)), "a key was lost");
            let model = first.sizing().expected_fpr(20_000);
            let ratio = first.estimated_fpr() / model;
            assert!((ratio - 1.0).abs() < 0.05, "{n_modules} modules: {ratio} of the model");
            let positives =
                (1 << 40..(1 << 40) + 100_000).filter(|&i| first.contains_hash(mix(i))).count() as f64;
            let expected = 100_000.0 * first.estimated_fpr();
            assert!(
                (positives - expected).abs() <= 4.0 * expected.sqrt(),
                "{positives}, {expected} expected"
            );
        }
    }
    for n_modules in [0, 5, usize::MAX] {
        assert!(view.first_modules(n_modules).is_none(), "{n_modules} of 4");
    }
    assert!(view.first_modules(2).unwrap().first_modules(3).is_none());
}

/// Damage in the last module does not matter to views of the first modules.
#[test]
fn each_module_is_verified_alone() {
    let bytes = sample().to_standalone();
    for module in 0..3 {
        let mut damaged = bytes.clone();
        damaged[128 * module + 77] ^= 1;
        let body = &damaged[128 * module..128 * (module + 1)];
        let computed = xxh64(body, module as u64);
        let stored = xxh64(&bytes[128 * module..128 * (module + 1)], module as u64);
        let error = common::error_texts::damaged(computed, stored);
        assert_eq!(BloomView::from_standalone(&damaged).text(), error);
        let view = BloomView::from_standalone_unverified(&damaged).unwrap();
        assert_eq!(view.verify().text(), error);
        for n_modules in 1..=3 {
            let verified = view.first_modules(n_modules).unwrap().verify();
            assert_eq!(
                verified.is_ok(),
                n_modules <= module,
                "{n_modules} modules, damage in module {module}"
            );
        }
    }
    // Modules in a different order.
    let swapped = [&bytes[128..256], &bytes[..128], &bytes[256..]].concat();
    assert!(BloomView::from_standalone(&swapped).text().starts_with(DAMAGED));
    assert_eq!(sample().as_view().verify().text(), NO_CHECKSUM);
    assert_eq!(sample().as_view().first_modules(1).unwrap().verify().text(), NO_CHECKSUM);
}

#[test]
fn modules_that_are_cut_have_the_size_in_their_error() {
    let standalone = sample().to_standalone();
    for cut in [0, 8, 63, 64, 127, 128, 192, 384, 392] {
        let bytes = &standalone[standalone.len() - FOOTER_BYTES - cut..];
        assert_eq!(BloomView::from_standalone(bytes).text(), wrong_size(48, "lanes of 8 bytes", cut));
    }
}

/// Where one is made without being asked for, it has one module.
#[test]
fn what_has_one_module_refuses_several_and_says_what_to_do() {
    let mut of_one = FilterBank::from_filters([&of_modules(1, 2, 5)]).unwrap();
    for refused in [
        FilterBank::with_capacity(sample().sizing(), 9).map(drop),
        FilterBank::from_filters([&of_modules(1, 2, 5), &of_modules(3, 2, 5)]).map(drop),
        FilterBank::from_filters([&of_modules(3, 2, 5)]).map(drop),
        of_one.push(&of_modules(3, 2, 5)).map(drop),
        of_one.replace(0, &of_modules(3, 2, 5)).map(drop),
    ] {
        assert_eq!(refused.text(), one_module_of_a_bank(3));
    }
    let standalone = sample().to_standalone();
    let footer = StandaloneFooter::read(&standalone).unwrap();
    for range in [footer.range(7).map(drop), footer.contains_in_range(&standalone[..64], 7).map(drop)] {
        assert_eq!(range.text(), one_module_of_ranges(3));
    }

    let counting = CountingBloomFilter::with_fpr(10_000, 1e-6).unwrap();
    assert_eq!(counting.as_filter().n_modules(), 1);
    assert_eq!(BloomFilter::with_fpr(10_000, 1e-6).unwrap().n_modules(), 2);
}
