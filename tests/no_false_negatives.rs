//! A filter never reports an inserted key as absent, whatever operations follow.

mod common;

use std::iter;
use std::panic::{self, AssertUnwindSafe};

use arbitrary::{Arbitrary, Unstructured};
use bloomline::sstable::FilterPolicy;
use bloomline::variants::ScalableBloomFilter;
use bloomline::{AtomicBloomFilter, BloomFilter, BloomView, FilterBuilder, Kernel, OwnedView, mix};
use common::allocations::{allocated, kept};
use common::error_texts::*;
use common::model::{Input, check};
use common::of_modules;
use proptest::prelude::*;

fn filter_of(hashes: impl IntoIterator<Item = u64>, n_blocks: usize, k: u32) -> BloomFilter {
    in_modules(1, hashes, n_blocks, k)
}

/// With as many blocks in each module.
fn in_modules(
    n_modules: usize,
    hashes: impl IntoIterator<Item = u64>,
    n_blocks: usize,
    k: u32,
) -> BloomFilter {
    let mut filter = of_modules(n_modules, n_blocks, k);
    for hash in hashes {
        filter.insert_hash(hash);
    }
    filter
}

/// Numbers of modules, and k.
const SHAPES: [(usize, u32); 8] = [(1, 1), (1, 6), (1, 8), (1, 9), (1, 16), (2, 6), (3, 2), (16, 9)];

/// Each block of the smaller filter stands for as many blocks of the larger as its hashes fall in, or for one.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn a_filter_is_combined_with_one_of_a_multiple_of_its_blocks() {
    let check = |ours: &BloomFilter, theirs: BloomView<'_>| {
        let (mut union, mut common) = (ours.clone(), ours.clone());
        assert_eq!(allocated(|| union.union_with(theirs)), (0, Ok(())));
        common.intersect_with(theirs).unwrap();
        let atomic = AtomicBloomFilter::from(ours.clone());
        atomic.union_with(theirs).unwrap();
        assert!(atomic.to_filter().unwrap() == union);
        // The first and the last hash of each block, too.
        let n_blocks = (ours.n_blocks() / ours.n_modules()) as u128;
        let starts = (1..n_blocks).map(|block| (block << 64).div_ceil(n_blocks) as u64);
        let ends = starts.flat_map(|start| [start - 1, start]).chain([0, u64::MAX]);
        let both: usize = (0..20_000)
            .map(mix)
            .chain(ends)
            .map(|hash| {
                let found = [ours.contains_hash(hash), theirs.contains_hash(hash)];
                assert!(union.contains_hash(hash) || found == [false; 2]);
                assert_eq!(common.contains_hash(hash), found == [true; 2]);
                usize::from(found == [true; 2])
            })
            .sum();
        let factor = ours.n_blocks() / theirs.n_blocks();
        let mut folded = ours.as_view().to_folded(factor).unwrap();
        folded.union_with(theirs).unwrap();
        union.fold(factor).unwrap();
        assert!(union == folded, "no other bit is set");
        both
    };
    let mut both = 0;
    for (n_blocks, factor) in [(1, 2), (1, 7), (3, 3), (6, 4), (7, 10), (97, 1), (97, 5)] {
        for (n_modules, k) in SHAPES {
            let of = |n_blocks, first| {
                let keys = 0..100 * n_blocks as u64;
                in_modules(n_modules, keys.map(|key| mix(first + key)), n_blocks, k)
            };
            both += check(&of(factor * n_blocks, 0), of(n_blocks, 5_000).as_view());
        }
    }
    for n_lanes in [1, 3, 12, 20, 63] {
        let lanes = (0..n_lanes).flat_map(|lane| (mix(lane) | mix(lane + 1_000)).to_le_bytes());
        let bytes: Vec<u8> = lanes.chain([0x25]).collect();
        let short = BloomView::from_compact(&bytes).unwrap();
        both += check(&filter_of((0..500).map(mix), 4 * short.n_blocks(), 6), short);
    }
    assert!(both > 10_000, "{both}");
}

/// A resized filter has the bits that it has after a detour by a multiple of both sizes, in which each block is repeated.
#[test]
fn a_filter_is_resized_to_any_number_of_blocks() {
    for (n_modules, k) in SHAPES {
        for old in [1, 2, 3, 7, 10] {
            let filter = in_modules(n_modules, (0..20 * old as u64).map(mix), old, k);
            for new in [1, 2, 3, 5, 6, 14, 21] {
                let mut expected = of_modules(n_modules, old * new, k);
                expected.union_with(&filter).unwrap();
                expected.fold(old).unwrap();
                let resized = filter.as_view().to_resized(new * n_modules).unwrap();
                assert!(resized == expected, "{old} to {new} blocks in {n_modules} modules, k = {k}");
            }
        }
    }
}

#[test]
fn filters_that_place_keys_differently_are_not_combined() {
    let ours = filter_of((0..100).map(mix), 8, 6);
    let with_seed = BloomFilter::with_blocks(8, 6).unwrap().with_seed(9).unwrap();
    let others = [
        (filter_of([1], 9, 6), different_size(8, 9, "blocks")),
        (filter_of([1], 8, 7), different_k(6, 7)),
        // As many blocks in all modules together, or in each.
        (of_modules(2, 4, 6), different_size(1, 2, "modules")),
        (of_modules(2, 8, 6), different_size(1, 2, "modules")),
        (with_seed, different_seed(0, 9)),
    ];
    for (other, error) in others {
        let mut filter = ours.clone();
        assert_eq!(filter.union_with(&other).text(), error);
        assert_eq!(filter.intersect_with(&other).text(), error);
        assert!(filter == ours, "a failed operation changes nothing");
    }
}

#[test]
fn debug_output_shows_the_shape() {
    let filter = filter_of([1], 1_000, 6);
    let kernel = filter.kernel();
    let shape = format!("n_blocks: 1000, n_modules: 1, k: 6, seed: 0, kernel: Kernel({kernel})");
    assert_eq!(format!("{:?}", filter.as_view()), format!("BloomView {{ {shape}, .. }}"));
    let shape = format!("{{ {shape}, .. }}");
    assert_eq!(format!("{filter:?}"), format!("BloomFilter {shape}"));
    assert_eq!(format!("{:?}", AtomicBloomFilter::from(filter)), format!("AtomicBloomFilter {shape}"));
}

#[test]
fn a_filter_is_shrunk_to_the_requested_rate_and_no_further() {
    for n_modules in [1, 2] {
        let filter = in_modules(n_modules, (0..3_000).map(mix), 64, 6);
        for factor in [2, 4, 8] {
            let folded = filter.as_view().to_folded(factor).unwrap();
            let [mut shrunk, mut larger] = [filter.clone(), filter.clone()];
            shrunk.shrink_to_fpr(folded.estimated_fpr()).unwrap();
            larger.shrink_to_fpr(0.999 * folded.estimated_fpr()).unwrap();
            assert!(shrunk == folded && larger.n_blocks() == 2 * folded.n_blocks());
        }
    }
}

#[test]
fn the_seed_of_a_filter_or_builder_with_keys_cannot_be_changed() {
    assert_eq!(filter_of([1], 5, 6).with_seed(3).text(), too_late(3));
    let mut builder = FilterBuilder::with_bits_per_key(10.0).unwrap();
    builder.insert("key");
    assert_eq!(builder.with_seed(3).text(), too_late(3));
    let shared = AtomicBloomFilter::from(filter_of([1], 5, 6));
    assert_eq!(BloomFilter::from(shared).with_seed(3).text(), too_late(3));
    let seeded = AtomicBloomFilter::from(BloomFilter::with_blocks(5, 6).unwrap().with_seed(3).unwrap());
    assert!(seeded.insert("ant") && seeded.contains("ant") && seeded.contains_hash(seeded.hash_key("ant")));
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn a_builder_sizes_by_distinct_keys() {
    // The repeated key at every position in a batch. Some filters of 64 bits per key have two modules.
    for (n_keys, bits_per_key) in (2..=40).flat_map(|n_keys| [(n_keys, 10.0), (n_keys, 64.0)]) {
        let mut builder = FilterBuilder::with_bits_per_key(bits_per_key).unwrap();
        (0..n_keys).chain([0]).for_each(|i| builder.insert_hash(mix(i)));
        assert_eq!(builder.finish().unwrap().known_keys(), Some(n_keys));
    }

    let mut by_hash = FilterBuilder::with_fpr(0.01).unwrap().with_seed(5).unwrap();
    by_hash.insert("a");
    by_hash.insert_hash(bloomline::hash_key("a", 5));
    by_hash.insert_batch(&[by_hash.hash_key("a")]);
    assert_eq!(by_hash.finish().unwrap().known_keys(), Some(1), "a key and its hash count as one");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: common::cases(200), failure_persistence: None, ..ProptestConfig::default() })]

    /// Also of many more programs than `corpus` runs, because this file runs on other CPUs too.
    #[test]
    #[cfg_attr(miri, ignore = "hours under miri")]
    fn no_program_of_operations_loses_a_key(
        // `arbitrary` ends a list at an even byte, so with random bytes half of all programs would be empty.
        bytes in prop::collection::vec(prop_oneof![7 => any::<u8>().prop_map(|byte| byte | 1), 1 => any::<u8>()], 0..1_000),
    ) {
        if let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(&bytes)) {
            check(input);
        }
    }

    /// Whatever a policy writes, anywhere in a table and with any seed, opens as every type.
    #[test]
    #[cfg_attr(miri, ignore = "hours under miri")]
    fn filters_of_any_rate_lose_no_key_in_any_type(
        fpr in (2.0..6.0).prop_map(|exponent: f64| 10_f64.powf(-exponent)),
        keys in (0.0..5.0).prop_map(|exponent: f64| 10_f64.powf(exponent) as u64 - 1),
        seed in prop_oneof![Just(0), any::<u64>()], most_modules in prop::option::of(1..=16_usize),
    ) {
        let mut policy = FilterPolicy::with_fpr(fpr).unwrap();
        if let Some(most_modules) = most_modules {
            policy = policy.with_most_modules(most_modules).unwrap();
        }
        let mut builder = policy.builder().with_seed(seed).unwrap();
        builder.extend((0..keys).chain(0..keys / 2));
        let (mut table, built) = (b"data".to_vec(), builder.clone().finish().unwrap());
        builder.finish_compact(&mut table).unwrap();
        let bytes = table.strip_prefix(b"data").unwrap();
        let view = BloomView::from_compact_with_seed(bytes, seed).unwrap();
        let owned = OwnedView::from_compact_with_seed(bytes, seed).unwrap();
        let (filter, standalone) = (view.to_filter().unwrap(), view.to_filter().unwrap().to_standalone());
        let atomic = AtomicBloomFilter::from(filter.clone());
        let views = [view, *owned.as_view(), filter.as_view(), BloomView::from_standalone(&standalone).unwrap()];
        prop_assert!(views.iter().all(|other| *other == view && (0..keys).all(|key| other.contains(key))));
        prop_assert!((0..keys).all(|key| filter.contains(key) && atomic.contains(key) && built.contains(key)));
        prop_assert_eq!(built.known_keys(), Some(keys));
        if seed == 0 {
            let copy = BloomFilter::from_compact(bytes).unwrap();
            prop_assert!(copy == filter && *OwnedView::from_compact(bytes).unwrap().as_view() == view);
            prop_assert!((0..keys).all(|key| policy.try_key_may_match(key, bytes) == Ok(true)));
        }
        let absent = (keys..keys + 2_000).filter(|&key| view.contains(key)).count();
        prop_assert!(absent as f64 <= 4_000.0 * fpr + 20.0, "{} of 2000 absent keys", absent);
    }
}

#[test]
fn a_builder_has_the_kernel_the_memory_and_the_bits_per_key_that_were_asked_for() {
    for kernel in Kernel::available() {
        let mut builder = FilterBuilder::with_bits_per_key(10.0).unwrap().with_kernel(kernel);
        builder.try_reserve(1_000).unwrap();
        let (bytes, ()) = allocated(|| (0..1_000).for_each(|i| builder.insert_hash(mix(i))));
        assert_eq!((bytes, builder.finish().unwrap().kernel()), (0, kernel));
    }
    // As a writer may do before each key.
    let mut builder = FilterBuilder::with_bits_per_key(10.0).unwrap();
    let bytes = kept(|| {
        for i in 0..1_000 {
            builder.try_reserve(10_000).unwrap();
            builder.insert_hash(mix(i));
        }
    });
    assert!((88_000..=160_000).contains(&bytes), "{bytes} bytes for room for 10,000 more keys");
    for bits_per_key in [10.5, 20.3] {
        assert_eq!(FilterPolicy::with_bits_per_key(bits_per_key).unwrap().bits_per_key(), bits_per_key);
    }
    // A further module is made only if it saves at least 1% of the bits.
    for (fpr, most_modules) in [(0.2667, 4), (0.03, 2), (0.001, 4), (4.96e-4, 4), (1e-6, 3)] {
        let policy = FilterPolicy::with_fpr(fpr).unwrap().with_most_modules(most_modules).unwrap();
        let many = bloomline::Sizing::for_fpr_within(100_000_000, fpr, most_modules).unwrap();
        let of_many = many.byte_len() as f64 * 8.0 / 1e8;
        assert!((of_many / policy.bits_per_key() - 1.0).abs() < 1e-5, "{fpr}: {of_many}");
    }
}

/// `extend` inserts by batches, and an iterator may panic in the middle of one.
#[test]
fn an_extension_that_panics_keeps_the_keys_before() {
    for n_keys in [0, 1, 255, 256, 257, 1_000] {
        let keys = || (0..n_keys).chain(iter::from_fn(|| panic::resume_unwind(Box::new(()))));
        // Large enough for batches.
        let mut filter = BloomFilter::with_blocks(1 << 16, 6).unwrap();
        let mut growing = ScalableBloomFilter::with_fpr(100, 1e-5).unwrap();
        assert!(panic::catch_unwind(AssertUnwindSafe(|| filter.extend(keys()))).is_err());
        assert!(panic::catch_unwind(AssertUnwindSafe(|| growing.extend(keys()))).is_err());
        assert!((0..n_keys).all(|key| filter.contains(key) && growing.contains(key)), "{n_keys} keys");
        assert_eq!((filter.known_keys(), growing.inserted_keys()), ((n_keys == 0).then_some(0), n_keys));
    }
}
