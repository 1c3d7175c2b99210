//! Modular filters lose no key, have the bits of the format and the product of the modules' false-positive rates.

mod common;
#[path = "common/standalone.rs"]
mod standalone;

use bloomline::sizing::standard::StandardSizing;
use bloomline::sizing::{self, MAX_MODULES, ModularSizing};
use bloomline::sstable::FilterPolicy;
use bloomline::variants::{ModularBloomFilter, ModularView, OwnedModularView};
use bloomline::{BloomView, BuildError, DecodeError, Kernel, MismatchError, StandaloneKind, hash_key, mix};
use common::allocations::allocated;
use common::decode::{forge_footer, modular_decoder_survives};
use common::errors::error;
use common::shrinking::Shrinking;
use proptest::prelude::*;
use xxhash_rust::xxh64::xxh64;

const FOOTER_BYTES: usize = 64;

fn empty(n_modules: usize, n_blocks: usize, k: u32) -> ModularBloomFilter {
    let sizing = ModularSizing::new(n_modules, n_blocks, k).expect("in range");
    ModularBloomFilter::with_sizing(sizing).expect("a small filter")
}

fn filled(n_modules: usize, n_blocks: usize, k: u32, hashes: &[u64]) -> ModularBloomFilter {
    let mut filter = empty(n_modules, n_blocks, k);
    filter.insert_batch(hashes);
    filter
}

fn mixed(numbers: std::ops::Range<u64>) -> Vec<u64> {
    numbers.map(mix).collect()
}

/// Three modules of two blocks.
fn sample() -> ModularBloomFilter {
    let mut filter = empty(3, 2, 5).with_seed(99).unwrap();
    filter.extend(["ant", "bee", "cat"]);
    filter
}

/// The hashes of a key in all modules, by section 3 of the format.
fn chain(hash: u64) -> impl Iterator<Item = u64> {
    let step = |hash: u64| (hash ^ (hash >> 32)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    std::iter::successors(Some(hash), move |&hash| Some(step(step(hash))))
}

/// The filter by sections 2 and 3 of the format.
struct Reference {
    lanes: Vec<u64>,
    n_blocks: usize,
    k: usize,
}

impl Reference {
    /// The lanes of a hash, and its bits in them.
    fn bits(&self, hash: u64) -> Vec<(usize, u64)> {
        let (n_blocks, k) = (self.n_blocks, self.k);
        let n_modules = self.lanes.len() / 8 / n_blocks;
        let modules = chain(hash).take(n_modules).enumerate();
        let bits = modules.flat_map(|(module, hash)| {
            let block = ((u128::from(hash) * n_blocks as u128) >> 64) as usize;
            let x = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let y = (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
            (0..k).map(move |j| {
                let lane = ((x >> 61) as usize + j) % 8;
                let word = if j < 8 { x } else { y };
                (8 * (module * n_blocks + block) + lane, 1 << ((word >> (13 + 6 * lane)) & 63))
            })
        });
        bits.collect()
    }

    fn insert(&mut self, hash: u64) {
        self.bits(hash).into_iter().for_each(|(lane, bit)| self.lanes[lane] |= bit);
    }

    fn contains(&self, hash: u64) -> bool {
        self.bits(hash).into_iter().all(|(lane, bit)| self.lanes[lane] & bit != 0)
    }

    /// Asserts that the filter has these bits and answers by them, one by one, in a batch and in a bitmap, owned and in
    /// place at an odd address.
    fn check(&self, filter: &ModularBloomFilter, hashes: &[u64]) {
        let answers: Vec<bool> = hashes.iter().map(|&hash| self.contains(hash)).collect();
        let bytes = filter.to_standalone();
        assert_eq!(bytes.len(), filter.standalone_len());
        let lanes: Vec<u8> = self.lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect();
        assert!(bytes[..filter.byte_len()] == lanes, "{filter:?}");
        let moved = [&[0; 1][..], &bytes].concat();
        let copied = ModularView::from_standalone(&moved[1..]).unwrap();
        for kernel in Kernel::available() {
            let (filter, view) = (filter.clone().with_kernel(kernel), copied.with_kernel(kernel));
            assert!(filter.as_view() == view);
            for (&hash, &answer) in hashes.iter().zip(&answers) {
                filter.prefetch(hash);
                view.prefetch(hash);
                assert_eq!(filter.contains_hash(hash), answer, "{hash:#x}, {kernel}");
                assert_eq!(view.contains_hash(hash), answer, "{hash:#x}, {kernel}, in place");
            }
            for view in [filter.as_view(), view] {
                let mut found: Vec<bool> = answers.iter().map(|answer| !answer).collect();
                view.contains_batch(hashes, &mut found);
                assert!(found == answers, "{kernel}: a batch of {}", hashes.len());
                let mut bitmap = vec![0xa5; hashes.len().div_ceil(8)];
                view.contains_bitmap(hashes, &mut bitmap);
                let bits = (0..8 * bitmap.len()).map(|i| bitmap[i / 8] >> (i % 8) & 1 == 1);
                assert!(bits.eq((0..8 * bitmap.len()).map(|i| answers.get(i) == Some(&true))), "{kernel}");
            }
        }
    }
}

/// Hashes as good as random, and bad hashes.
fn hashes(most: usize) -> impl Strategy<Value = Vec<u64>> {
    let hash = prop_oneof![any::<u64>(), 0..100_u64, (0..100_u64).prop_map(|i| i << 32), Just(u64::MAX)];
    prop::collection::vec(hash, 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: common::cases(300), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_key_is_lost_and_all_bits_are_those_of_the_format(
        n_modules in 1..=16_usize, n_blocks in 1..40_usize, k in 1..=16_u32, seed: u64,
        keys in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..20),
        one_by_one in hashes(20), batch in hashes(60), absent in hashes(60),
    ) {
        let new = empty(n_modules, n_blocks, k).with_seed(seed).unwrap();
        let lanes = vec![0; 8 * n_modules * n_blocks];
        let mut reference = Reference { lanes, n_blocks, k: k as usize };
        let inserted: Vec<u64> = keys.iter().map(|key| hash_key(key, seed)).chain(one_by_one).collect();
        for &hash in inserted.iter().chain(&batch) {
            reference.insert(hash);
        }
        let all = [&inserted[..], &batch, &absent].concat();
        for kernel in Kernel::available() {
            let mut filter = new.clone().with_kernel(kernel);
            for &hash in &inserted {
                let was_in = filter.contains_hash(hash);
                prop_assert_eq!(filter.insert_hash(hash), !was_in);
                prop_assert!(filter.contains_hash(hash));
            }
            filter.insert_batch(&batch);
            prop_assert_eq!(filter.known_keys(), Some(0).filter(|_| inserted.is_empty() && batch.is_empty()));
            prop_assert!(keys.iter().all(|key| filter.contains(key)));
            reference.check(&filter, &all);
            let copy = ModularBloomFilter::from_standalone(&filter.to_standalone()).unwrap();
            prop_assert!(copy == filter && filter.try_clone().unwrap() == filter);
            prop_assert_eq!(
                (copy.n_modules(), copy.n_blocks(), copy.k(), copy.seed(), copy.known_keys()),
                (n_modules, n_blocks, k, seed, filter.known_keys())
            );
        }
    }

    #[test]
    fn unions_and_folds_are_the_filters_of_the_keys(
        n_modules in 1..=5_usize, n_blocks in 1..12_usize, factor in 1..5_usize, k in 1..=16_u32,
        left in hashes(40), right in hashes(40),
    ) {
        let [mut ours, theirs] = [&left, &right].map(|hashes| filled(n_modules, n_blocks * factor, k, hashes));
        let all = [left, right].concat();
        ours.union_with(theirs.as_view()).unwrap();
        prop_assert!(ours == filled(n_modules, n_blocks * factor, k, &all));
        ours.fold(factor).unwrap();
        prop_assert!(ours == filled(n_modules, n_blocks, k, &all));
        prop_assert_eq!((ours.n_modules(), ours.n_blocks()), (n_modules, n_blocks));
        prop_assert!(all.iter().all(|&hash| ours.contains_hash(hash)));
        for fewer in 1..=n_modules {
            let first = ours.as_view().truncated(fewer).unwrap();
            prop_assert!(first.to_filter().unwrap() == filled(fewer, n_blocks, k, &all));
        }
        ours.clear();
        prop_assert!(ours == empty(n_modules, n_blocks, k));
        prop_assert_eq!(ours.known_keys(), Some(0));
    }

    #[test]
    fn arbitrary_footers_are_an_error_or_a_filter(
        offset in 0..48_usize, bytes in prop::collection::vec(any::<u8>(), 1..9), length in 0..400_usize,
    ) {
        let standalone = sample().to_standalone();
        let bytes = &bytes[..bytes.len().min(48 - offset)];
        modular_decoder_survives(&forge_footer(&standalone, offset, bytes));
        modular_decoder_survives(&forge_footer(&standalone[length.min(standalone.len() - 64)..], offset, bytes));
    }
}

/// The same in modules so large that batches prefetch.
#[test]
#[cfg_attr(miri, ignore = "minutes under miri")]
fn batches_of_every_length_agree_with_the_format() {
    for n_blocks in [50, 9_000] {
        let hashes = mixed(0..1_200);
        let (mut filter, k) = (empty(3, n_blocks, 3), 3);
        let mut reference = Reference { lanes: vec![0; 8 * 3 * n_blocks], n_blocks, k };
        for &hash in hashes.iter().filter(|&&hash| hash.is_multiple_of(2)) {
            filter.insert_hash(hash);
            reference.insert(hash);
        }
        for length in [0, 1, 2, 7, 8, 9, 63, 64, 65, 255, 256, 257, 511, 512, 513, 1_200] {
            reference.check(&filter, &hashes[..length]);
        }
    }
}

#[test]
#[should_panic = "one answer per hash"]
fn too_few_answers_are_refused() {
    sample().contains_batch(&[1, 2], &mut [false]);
}

#[test]
#[should_panic = "a byte per eight hashes"]
fn too_few_bits_are_refused() {
    sample().contains_bitmap(&[1; 9], &mut [0]);
}

#[test]
fn filters_with_different_parameters_are_not_combined() {
    let filter = sample();
    let other = |n_modules, n_blocks, k| {
        let mut changed = filter.clone();
        let other = empty(n_modules, n_blocks, k);
        let union = changed.union_with(&other).unwrap_err();
        assert!(changed == filter && changed != other);
        union
    };
    assert_eq!(other(2, 3, 5), error!(MismatchError::Size { ours: 3, theirs: 2, unit: "modules" }));
    assert_eq!(other(3, 4, 5), error!(MismatchError::Size { ours: 2, theirs: 4, unit: "blocks" }));
    assert_eq!(other(3, 2, 6), error!(MismatchError::Probes { ours: 5, theirs: 6 }));
    assert_eq!(other(3, 2, 5), error!(MismatchError::Seed { ours: 99, theirs: 0 }));
    // As many blocks in all modules together.
    assert!(empty(2, 3, 5) != empty(3, 2, 5));
    assert!(filter != empty(3, 2, 5).with_seed(99).unwrap());
    for factor in [0, 3, 4, 6] {
        let mut folded = filter.clone();
        assert_eq!(folded.fold(factor), error!(BuildError::FoldFactor { factor, n_blocks: 2 }));
        assert!(folded == filter);
    }
}

/// In modules so full that any of them, the first or the last, can be the only one that changes.
#[test]
fn an_insert_tells_whether_any_module_changed() {
    for n_modules in 1..=4 {
        let mut filter = empty(n_modules, 1, 2);
        for hash in mixed(0..1_000) {
            let was_in = filter.contains_hash(hash);
            assert_eq!(filter.insert_hash(hash), !was_in, "{n_modules} modules, {hash:#x}");
        }
    }
}

#[test]
fn a_seed_is_set_before_the_first_key() {
    let refused = error!(BuildError::SeedAfterKeys { seed: 1_u64 });
    assert_eq!(sample().with_seed(1).unwrap_err(), refused);
    let mut filter = sample();
    filter.clear();
    let mut filter = filter.with_seed(1).unwrap();
    assert!(filter.insert("ant") && !filter.insert("ant"));
    assert_eq!(filter.hash_key("ant"), hash_key("ant", 1));
    assert!(filter.as_view().contains("ant") && filter.contains_hash(hash_key("ant", 1)));
    assert_eq!(filter.as_view().hash_key("ant"), hash_key("ant", 1));
}

/// The bits have the rate of the model, and lookups have the rate of the bits, within four standard errors on both
/// sides. The comparison with lookups tests that modules are independent.
fn assert_rates(sizing: ModularSizing, keys: u64, filters: u64, false_positives: f64) {
    let lookups = ((false_positives / sizing.fpr(keys) / filters as f64) as u64).next_multiple_of(4096);
    let (mut rate, mut squares, mut positives) = (0.0, 0.0, 0);
    for round in 0..filters {
        let mut filter = ModularBloomFilter::with_sizing(sizing).unwrap();
        filter.insert_batch(&mixed(round << 32..(round << 32) + keys));
        let of_bits = filter.estimated_fpr();
        rate += of_bits;
        squares += of_bits * of_bits;
        let mut found = [false; 4096];
        for batch in 0..lookups / 4096 {
            let first = (1 << 60) | (round << 32) | (4096 * batch);
            filter.contains_batch(&mixed(first..first + 4096), &mut found);
            positives += found.iter().filter(|&&found| found).count();
        }
    }
    let mean = rate / filters as f64;
    let error =
        (squares / filters as f64 - mean * mean).max(0.0).sqrt() / mean / (filters as f64 - 1.0).sqrt();
    let (of_model, expected) = (mean / sizing.fpr(keys), rate * lookups as f64);
    let off = (positives as f64 - expected) / expected.sqrt();
    println!(
        "{sizing:?}, {keys} keys: {of_model:.4} ± {error:.4} of the model, lookups {off:+.2} deviations off"
    );
    assert!((of_model - 1.0).abs() <= 4.0 * error + 1e-3, "{sizing:?}: {of_model} of the model, {error}");
    assert!(off.abs() <= 4.0, "{sizing:?}: {positives} false positives, {expected} expected from the bits");
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn the_measured_fpr_is_the_product_of_the_modules() {
    for (n_modules, bits_per_key, k) in [(2, 8.0, 3), (2, 12.0, 4), (3, 10.0, 2), (3, 12.0, 9), (4, 12.0, 2)]
    {
        let n_blocks = (20_000.0 * bits_per_key / 512.0 / n_modules as f64) as usize;
        assert_rates(ModularSizing::new(n_modules, n_blocks, k).unwrap(), 20_000, 6, 4_000.0);
    }
}

#[test]
#[ignore = "seconds in release, minutes in debug"]
fn the_measured_fpr_is_the_product_of_the_modules_at_low_rates() {
    for most in 1..=MAX_MODULES {
        for fpr in [0.01, 0.001, 1e-4, 1e-5] {
            for keys in [10_000, 1_000_000] {
                let sizing = ModularSizing::for_fpr(keys, fpr, most).unwrap();
                assert_rates(sizing, keys as u64, (2_000_000 / keys).clamp(4, 100) as u64, 4_000.0);
            }
        }
    }
    let sizing = ModularSizing::for_fpr(1_000_000, 1e-6, MAX_MODULES).unwrap();
    assert_rates(sizing, 1_000_000, 4, 1_000.0);
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
    let sizing = ModularSizing::new(3, 1_600, 5).unwrap();
    let of_module = sizing::fpr(1_600.0 * 512.0 / KEYS as f64, 5).unwrap();
    for (name, pattern) in PATTERNS {
        let mut modules = [(); 3].map(|()| empty(1, 1_600, 5));
        let mut filter = ModularBloomFilter::with_sizing(sizing).unwrap();
        for hash in (0..KEYS).map(|i| pattern(2 * i)) {
            filter.insert_hash(hash);
            modules.iter_mut().zip(chain(hash)).for_each(|(module, hash)| _ = module.insert_hash(hash));
        }
        let bytes = modules.each_ref().map(|module| module.to_standalone()[..module.byte_len()].to_vec());
        assert!(filter.to_standalone()[..filter.byte_len()] == bytes.concat(), "{name}");

        let mut positives = [0; 4];
        for hash in (0..KEYS).map(|i| pattern(2 * i + 1)) {
            let of_modules: Vec<bool> =
                modules.iter().zip(chain(hash)).map(|(module, hash)| module.contains_hash(hash)).collect();
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
    let hashes = mixed(0..20_000);
    let filter = filled(4, 250, 4, &hashes);
    let bytes = filter.to_standalone();
    let view = ModularView::from_standalone(&bytes).unwrap();
    for n_modules in 1..=4 {
        for view in [view, filter.as_view()] {
            let first = view.truncated(n_modules).unwrap();
            assert_eq!(
                (first.n_modules(), first.n_blocks(), first.byte_len()),
                (n_modules, 250, 16_000 * n_modules)
            );
            assert!(hashes.iter().all(|&hash| first.contains_hash(hash)), "a key was lost");
            let model = ModularSizing::new(n_modules, 250, 4).unwrap().fpr(20_000);
            let ratio = first.estimated_fpr() / model;
            assert!((ratio - 1.0).abs() < 0.05, "{n_modules} modules: {ratio} of the model");
            let positives =
                (1 << 40..(1 << 40) + 100_000).filter(|&i| first.contains_hash(mix(i))).count() as f64;
            let expected = 100_000.0 * first.estimated_fpr();
            assert!(
                (positives - expected).abs() <= 4.0 * expected.sqrt(),
                "{positives}, {expected} expected"
            );
            let copy = first.to_filter().unwrap().to_standalone();
            assert!(ModularView::from_standalone(&copy).unwrap() == first);
        }
    }
    for n_modules in [0, 5, usize::MAX] {
        assert_eq!(view.truncated(n_modules).map(|_| ()), error!(BuildError::Modules { n_modules, most: 4 }));
    }
    assert_eq!(
        view.truncated(2).unwrap().truncated(3).map(|_| ()),
        error!(BuildError::Modules { n_modules: 3, most: 2 })
    );
}

/// `AsRef` promises nothing. Fewer bytes than the filter had must not hide a key.
#[test]
fn an_owned_view_answers_as_a_view_and_finds_every_key_if_bytes_get_lost() {
    let bytes = sample().to_standalone();
    let owned = OwnedModularView::from_standalone(Shrinking::new(bytes.clone())).unwrap();
    assert!(owned.as_view() == sample().as_view() && owned.as_view().verify() == Ok(()));
    assert!(OwnedModularView::from_standalone(&bytes[1..]).is_err());
    let damaged: Vec<u8> = [&[!bytes[0]], &bytes[1..]].concat();
    assert!(OwnedModularView::from_standalone(&damaged).is_err());
    let unverified = OwnedModularView::from_standalone_unverified(damaged).unwrap();
    assert!(matches!(unverified.as_view().verify(), Err(DecodeError::BodyChecksum { .. })));
    for length in 0..bytes.len() - FOOTER_BYTES {
        owned.get_ref().shrink_to(length);
        assert!((0..100).all(|i| owned.as_view().contains_hash(mix(i))), "{length} bytes");
    }
    let (policy, mut compact) = (FilterPolicy::with_fpr(0.0001).unwrap(), Vec::new());
    policy.create_filter(0..10_000, &mut compact);
    let owned = OwnedModularView::from_compact(compact).unwrap();
    assert!((0..10_000).all(|key| owned.as_view().contains(key)) && !owned.as_view().contains(10_001));
    assert!(matches!(owned.as_view().verify(), Err(DecodeError::NoChecksum)));
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
        let error = error!(DecodeError::BodyChecksum { stored, computed });
        assert_eq!(ModularView::from_standalone(&damaged).map(|_| ()), error);
        assert_eq!(ModularBloomFilter::from_standalone(&damaged).map(|_| ()), error);
        let view = ModularView::from_standalone_unverified(&damaged).unwrap();
        assert_eq!(view.verify(), error);
        for n_modules in 1..=3 {
            let verified = view.truncated(n_modules).unwrap().verify();
            assert_eq!(
                verified.is_ok(),
                n_modules <= module,
                "{n_modules} modules, damage in module {module}"
            );
        }
    }
    // Modules in a different order.
    let swapped = [&bytes[128..256], &bytes[..128], &bytes[256..]].concat();
    assert!(matches!(ModularView::from_standalone(&swapped), Err(DecodeError::BodyChecksum { .. })));
    assert_eq!(sample().as_view().verify(), Err(DecodeError::NoChecksum));
    assert_eq!(sample().as_view().truncated(1).unwrap().verify(), Err(DecodeError::NoChecksum));
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn standalone_bytes_are_written_in_place_and_damage_is_detected() {
    let mut filter = empty(2, 1, 3);
    filter.extend(["boa", "bee"]);
    standalone::check(filter);
}

#[test]
fn each_check_reports_what_is_wrong() {
    let standalone = sample().to_standalone();
    let open = |bytes: &[u8]| {
        let unverified = ModularView::from_standalone_unverified(bytes).map(|_| ()).unwrap_err();
        assert_eq!(ModularBloomFilter::from_standalone(bytes).unwrap_err(), unverified);
        unverified
    };
    assert_eq!(open(&[0; 71]), error!(DecodeError::Magic { found: [0; 8] }));
    assert_eq!(open(&[0; 63]), error!(DecodeError::TooShort { found: 63, least: 72 }));
    assert_eq!(
        open(&forge_footer(&standalone, 40, &[3])),
        error!(DecodeError::Version { found: 3, newest: 2 })
    );
    for k in [0, 17] {
        let error = error!(DecodeError::Footer { field: "k", found: u64::from(k) });
        assert_eq!(open(&forge_footer(&standalone, 41, &[k])), error);
    }
    assert_eq!(
        open(&forge_footer(&standalone, 42, &[1])),
        error!(DecodeError::Footer { field: "hash id", found: 1 })
    );
    for n_modules in [0, 17, 255] {
        let error = error!(DecodeError::Footer { field: "number of modules", found: u64::from(n_modules) });
        assert_eq!(open(&forge_footer(&standalone, 43, &[n_modules])), error);
    }
    for offset in 44..48 {
        let found = 3 | 1_u64 << (8 * (offset - 43));
        let error = error!(DecodeError::Footer { field: "number of modules", found });
        assert_eq!(open(&forge_footer(&standalone, offset, &[1])), error);
    }
    assert!(matches!(open(&forge_footer(&standalone, 24, &[1])), DecodeError::HashValue { .. }));
    assert!(matches!(open(&forge_footer(&standalone, 32, &[1])), DecodeError::BodyChecksum { .. }));
    let wrong_size =
        |stored, found_bytes| error!(DecodeError::Size { stored, unit: "blocks per module", found_bytes });
    // Sizes such as 2^64 / 3 / 64, whose products wrap around to the length.
    for stored in [0, 1, 3, 6, u64::MAX / 192 + 3, (1 << 58) + 2, u64::MAX] {
        let bytes = forge_footer(&standalone, 0, &stored.to_le_bytes());
        let (allocated, error) = allocated(|| ModularBloomFilter::from_standalone(&bytes).unwrap_err());
        assert_eq!(error, wrong_size(stored, 408_usize));
        assert_eq!((allocated, open(&bytes)), (0, error));
    }
    // A different number of modules, although its checksum matches, because the same bytes cannot be divided by it.
    for n_modules in [1, 2, 4, 5, 6, 16] {
        let bytes = forge_footer(&standalone, 43, &[n_modules]);
        assert!(
            matches!(open(&bytes), DecodeError::Size { .. } | DecodeError::BodyChecksum { .. }),
            "{n_modules}"
        );
    }
    for cut in [0, 8, 63, 64, 127, 128, 192, 384, 392] {
        assert_eq!(open(&standalone[standalone.len() - FOOTER_BYTES - cut..]), wrong_size(2_u64, cut));
    }
    assert!(
        matches!(BloomView::from_standalone(&standalone), Err(DecodeError::Magic { found, .. }) if StandaloneKind::of(&found) == Some(StandaloneKind::Modular))
    );
    assert_eq!(StandaloneKind::Modular.to_string(), "modular filter");
}

#[test]
fn a_forged_count_of_zero_keys_is_ignored() {
    let bytes = forge_footer(&sample().to_standalone(), 8, &[0; 8]);
    assert_eq!(ModularBloomFilter::from_standalone(&bytes).unwrap().known_keys(), None);
    let bytes = forge_footer(&sample().to_standalone(), 8, &3_u64.to_le_bytes());
    assert_eq!(ModularBloomFilter::from_standalone(&bytes).unwrap().known_keys(), Some(3));
    let empty = ModularBloomFilter::from_standalone(&empty(2, 3, 4).to_standalone()).unwrap();
    assert_eq!((empty.known_keys(), empty.with_seed(5).unwrap().seed()), (Some(0), 5));
}

#[test]
#[cfg_attr(miri, ignore = "minutes under miri")]
fn estimates_are_as_exact_as_they_say() {
    for (n_modules, k) in [(1, 6), (2, 5), (3, 3), (4, 9), (16, 2)] {
        let mut offs = 0.0;
        for round in 0..20_u64 {
            let keys = 300 * (round + 1);
            let filter = filled(n_modules, 200, k, &mixed(round << 32..(round << 32) + keys));
            let estimate = filter.estimated_keys().expect("not full");
            let off = (estimate.keys as f64 - keys as f64) / estimate.standard_error;
            assert!(off.abs() <= 4.0, "{n_modules} modules, {keys} keys: {estimate:?}");
            offs += off * off / 20.0;
        }
        println!("{n_modules} modules, k {k}: {offs:.2} times the variance");
        assert!((0.4..2.0).contains(&offs), "{n_modules} modules, k {k}: {offs} times the variance");
    }
    let filter = empty(3, 10, 4);
    assert_eq!(
        (filter.estimated_keys().map(|estimate| estimate.keys), filter.estimated_fpr()),
        (Some(0), 0.0)
    );
    let full = filled(2, 1, 8, &mixed(0..10_000));
    assert_eq!((full.estimated_keys(), full.estimated_fpr()), (None, 1.0));
}

#[test]
#[cfg_attr(miri, ignore = "minutes under miri")]
fn sizes_have_the_requested_rate_and_hardly_more_bits_than_a_standard_filter() {
    for keys in [0, 1, 10, 100, 1_000, 30_000, 1_000_000, 300_000_000] {
        for fpr in [0.5, 0.1, 0.01, 0.001, 1e-4, 1e-6, 1e-8] {
            let sizes: Vec<_> =
                (1..=MAX_MODULES).map(|most| ModularSizing::for_fpr(keys, fpr, most).ok()).collect();
            assert_eq!(sizes[0].is_some(), fpr > sizing::MIN_FPR);
            for (most, sizing) in (1..).zip(&sizes) {
                let Some(sizing) = sizing else { continue };
                assert!(
                    sizing.n_modules() <= most && sizing.fpr(keys as u64) <= fpr,
                    "{keys} keys, {fpr}: {sizing:?}"
                );
                let foldable = sizing.foldable();
                assert!(
                    foldable.n_blocks() <= (sizing.n_blocks() * 101).div_ceil(100) + 1
                        && foldable.n_blocks().is_multiple_of(2)
                );
                assert_eq!((foldable.n_modules(), foldable.k()), (sizing.n_modules(), sizing.k()));
                assert_eq!(sizing.byte_len(), 64 * sizing.n_modules() * sizing.n_blocks());
                // One block less in each module is not enough.
                if sizing.n_blocks() > 1 {
                    let fewer =
                        ModularSizing::new(sizing.n_modules(), sizing.n_blocks() - 1, sizing.k()).unwrap();
                    let of_bits = fpr - keys as f64 / 2_f64.powi(64);
                    assert!(
                        fewer.fpr(keys as u64) > of_bits * (1.0 - 1e-4),
                        "{keys} keys, {fpr}: {sizing:?}"
                    );
                }
            }
            let bytes: Vec<_> = sizes.iter().flatten().map(|sizing| sizing.byte_len()).collect();
            assert!(bytes.is_sorted_by(|more, fewer| fewer <= more), "{bytes:?}");
        }
    }
    for (fpr, most) in [(0.001, 1.02), (1e-4, 1.04), (1e-6, 1.05)] {
        let sizing = ModularSizing::for_fpr(1_000_000, fpr, MAX_MODULES).unwrap();
        let standard = StandardSizing::for_fpr(1_000_000, fpr).unwrap();
        let ratio = 8.0 * sizing.byte_len() as f64 / standard.bit_len() as f64;
        assert!((1.0..most).contains(&ratio), "{fpr}: {ratio} of a standard filter's bits");
        let filter = ModularBloomFilter::with_fpr(1_000_000, fpr).unwrap();
        assert_eq!(
            (filter.n_modules(), filter.n_blocks()),
            (sizing.n_modules(), sizing.foldable().n_blocks())
        );
    }
}

#[test]
#[cfg_attr(miri, ignore = "minutes under miri")]
fn bits_per_key_give_the_modules_that_use_them_best() {
    for keys in [0, 1, 10, 100, 1_000, 1_000_000] {
        for bits_per_key in [1.0, 4.0, 8.0, 10.0, 16.0, 20.0, 40.0, 64.0] {
            let of_one = ModularSizing::for_bits_per_key(keys, bits_per_key, 1).unwrap();
            assert_eq!(of_one.n_modules(), 1);
            for most in 2..=MAX_MODULES {
                let sizing = ModularSizing::for_bits_per_key(keys, bits_per_key, most).unwrap();
                assert!(sizing.n_modules() <= most && sizing.byte_len() * 99 <= of_one.byte_len() * 100);
                assert!(sizing.byte_len() as f64 * 8.0 >= keys as f64 * bits_per_key);
                assert!(sizing.n_modules() == 1 || sizing.fpr(keys as u64) < of_one.fpr(keys as u64));
            }
        }
    }
    // Bits per key that cannot be divided among modules.
    let least = f64::from_bits(1);
    assert_eq!(
        ModularSizing::for_bits_per_key(1, least, MAX_MODULES),
        ModularSizing::for_bits_per_key(1, least, 1)
    );
    let filter = ModularBloomFilter::with_bits_per_key(1_000_000, 20.0).unwrap();
    assert_eq!((filter.n_modules(), filter.k(), filter.byte_len()), (3, 5, 3 * 64 * 13_021));
}

#[test]
fn numbers_out_of_range_are_refused() {
    let modules = |n_modules: usize, most: usize| error!(BuildError::Modules { n_modules, most });
    for n_modules in [0, 17, usize::MAX] {
        assert_eq!(ModularSizing::new(n_modules, 1, 6), modules(n_modules, 16));
    }
    for most in [0, 5, usize::MAX] {
        assert_eq!(ModularSizing::for_fpr(10, 0.01, most), modules(most, 4));
        assert_eq!(ModularSizing::for_bits_per_key(10, 10.0, most), modules(most, 4));
    }
    assert_eq!(ModularSizing::new(2, 1, 17), error!(BuildError::Probes { k: 17, most: 16 }));
    assert!(matches!(ModularSizing::new(2, 0, 6), Err(BuildError::Blocks { n_blocks: 0, .. })));
    assert!(matches!(ModularSizing::new(16, usize::MAX / 128, 6), Err(BuildError::Blocks { .. })));
    for value in [0.0, -1.0, 1.0, 2.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(ModularBloomFilter::with_fpr(10, value), Err(BuildError::Fpr { .. })));
    }
    for value in [0.0, -1.0, 64.1, f64::NAN, f64::INFINITY] {
        assert!(matches!(
            ModularBloomFilter::with_bits_per_key(10, value),
            Err(BuildError::BitsPerKey { .. })
        ));
    }
    assert!(matches!(
        ModularSizing::for_fpr(usize::MAX, 0.9, 4),
        Ok(_) | Err(BuildError::Fpr { .. } | BuildError::Keys { .. })
    ));
    let error = error!(BuildError::Keys { expected_keys: usize::MAX, bits_per_key: 64.0 });
    assert_eq!(ModularSizing::for_bits_per_key(usize::MAX, 64.0, 4), error);
}

/// The rate at 64 bits per key can be requested, and nothing lower. With many keys, absent keys also have the hashes of
/// present keys.
#[test]
#[cfg_attr(miri, ignore = "minutes under miri")]
fn the_lowest_rates_are_those_of_64_bits_per_key() {
    for (n_modules, lowest) in (1..).zip([1.263e-8, 3.05e-11, 2.142e-12, 5.432e-13]) {
        let of_module = 64.0 / n_modules as f64;
        let best = sizing::fpr(of_module, sizing::best_k(of_module).unwrap()).unwrap().powi(n_modules);
        assert!(best <= lowest && best > 0.998 * lowest, "{n_modules} modules: {best:e}");
        let most = n_modules as usize;
        let refused = ModularSizing::for_fpr(1, 0.99 * lowest, most);
        assert!(matches!(refused, Err(BuildError::Fpr { .. })), "{refused:?}");
        let sizing = ModularSizing::for_fpr(1_000_000, lowest + 1e6 / 2_f64.powi(64) * 1.001, most).unwrap();
        assert_eq!(sizing.n_modules(), most);
        assert!((63.5..=64.01).contains(&(8.0 * sizing.byte_len() as f64 / 1e6)), "{sizing:?}");
    }
    #[cfg(target_pointer_width = "64")]
    {
        let billion = 1_000_000_000;
        assert!(matches!(
            ModularSizing::for_fpr(billion, 5e-11, 4),
            Err(BuildError::Fpr { lowest, .. }) if (5.47e-11..5.48e-11).contains(&lowest)
        ));
        let sizing = ModularSizing::for_fpr(billion, 6e-11, 4).unwrap();
        assert!(sizing.fpr(billion as u64) < 6e-12, "the FPR that remains for the bits");
    }
}
