//! Every kernel agrees with the reference, bit for bit.

mod common;

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use bloomline::{AtomicBloomFilter, BloomFilter, BloomView, Kernel, mix};
use common::kernel_comparison::{kernels_agree, kernels_agree_on_short};
use proptest::prelude::*;

/// Prints the kernels that this run covers. With `EXPECT_KERNELS=avx512,avx2,sse4.1,portable,reference` it fails unless
/// they are exactly these, so that no machine passes by testing fewer kernels than intended.
#[test]
fn this_run_covers_the_expected_kernels() {
    let kernels: Vec<_> = Kernel::available().map(Kernel::name).collect();
    println!("kernels: {}; big-endian: {}", kernels.join(","), cfg!(target_endian = "big"));
    if let Ok(expected) = std::env::var("EXPECT_KERNELS") {
        assert_eq!(kernels.join(","), expected, "EXPECT_KERNELS");
    }
    assert_eq!(Kernel::active().name(), kernels[0], "the fastest kernel is the active one");
}

/// Random hashes, hashes at the edges of the block index and of the bits, and hashes with equal high bits, which fall
/// in one block.
fn hash() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => any::<u64>(),
        1 => prop_oneof![Just(0), Just(1), Just(u64::MAX), Just(1 << 63), Just(u64::MAX >> 1)],
        2 => (0..4_u64, any::<u16>()).prop_map(|(high, low)| (high << 62) | u64::from(low)),
    ]
}

fn hashes() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(hash(), 0..60)
}

/// A number of modules, and the blocks of each.
fn sizes() -> impl Strategy<Value = [usize; 2]> {
    let n_blocks = prop_oneof![8 => 1..=100_usize, 1 => 101..=5_000_usize];
    (any::<u8>(), n_blocks).prop_map(|(byte, n_blocks)| match common::n_modules(byte) {
        1 => [1, n_blocks],
        n_modules => [n_modules, n_blocks.min(200)],
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: common::cases(400), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_kernel_agrees_with_the_reference(
        inserted in hashes(), queried in hashes(), k in 1..=16_u32, sizes in sizes(),
    ) {
        kernels_agree(&inserted, &queried, k, sizes);
    }

    /// With fewer probes, a view is the filter of the same bits whose bytes have the smaller k.
    #[test]
    fn the_first_probes_have_every_key(
        inserted in hashes(), queried in hashes(), k in 1..=16_u32, sizes in sizes(),
    ) {
        let mut filter = common::of_modules(sizes[0], sizes[1], k);
        filter.insert_batch(&inserted);
        let bytes = filter.to_compact();
        for (fewer, kernel) in (1..=k).flat_map(|fewer| Kernel::available().map(move |kernel| (fewer, kernel))) {
            let mut of_fewer = bytes.clone();
            *of_fewer.last_mut().unwrap() -= (k - fewer) as u8;
            let expected = BloomView::from_compact(&of_fewer).unwrap().with_kernel(kernel);
            for view in [filter.as_view(), BloomView::from_compact(&bytes).unwrap()] {
                let whole = view.with_kernel(kernel);
                let view = whole.first_probes(fewer).unwrap();
                let copy = view.to_filter().unwrap();
                prop_assert!(view == expected && copy.as_view() == expected && copy.kernel() == kernel);
                prop_assert!(inserted.iter().all(|&hash| view.contains_hash(hash)), "a key was lost");
                let found: Vec<bool> = queried.iter().map(|&hash| expected.contains_hash(hash)).collect();
                let mut answers = vec![false; queried.len()];
                view.contains_batch(&queried, &mut answers);
                prop_assert_eq!(&answers, &found);
                for (&hash, &found) in queried.iter().zip(&found) {
                    prop_assert_eq!(view.contains_hash(hash), found);
                    let which: Vec<_> = BloomView::which_contain([whole, view], hash).collect();
                    prop_assert_eq!([which.contains(&0), which.contains(&1)], [whole.contains_hash(hash), found]);
                }
            }
        }
        for none in [0, k + 1, 17, 257, u32::MAX] {
            prop_assert!(filter.as_view().first_probes(none).is_none(), "{} of {}", none, k);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn every_kernel_agrees_for_every_k_rotation_and_block_count() {
    // The rotation is the top three bits of the first word of the mask.
    let rotation = |hash: u64| (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61) as usize;
    let mut of_rotation: [Vec<u64>; 8] = Default::default();
    for hash in (0..).map(mix) {
        if of_rotation[rotation(hash)].len() < 3 {
            of_rotation[rotation(hash)].push(hash);
        } else if of_rotation.iter().all(|hashes| hashes.len() == 3) {
            break;
        }
    }
    for k in 1..=16 {
        for hashes in &of_rotation {
            kernels_agree(hashes, &of_rotation.concat(), k, [1, 1]);
        }
        for n_blocks in 2..=100 {
            let [inserted, queried] = [n_blocks, n_blocks + 1].map(|i| &of_rotation[i % 8]);
            kernels_agree(inserted, queried, k, [1, n_blocks]);
        }
        for n_modules in 2..=16 {
            kernels_agree(&of_rotation[n_modules % 8], &of_rotation.concat(), k, [n_modules, 3]);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn batches_of_any_length_are_answered_completely() {
    let hashes: Vec<u64> = (0..300).map(mix).collect();
    for length in (0..=70).chain([127, 128, 129, 255, 256, 257, 300]) {
        kernels_agree(&hashes[..length], &hashes[length..], 6, [1, 7]);
    }
    // Blocks so full that the answers for absent keys depend on the probes past the eighth.
    for k in 1..=16 {
        kernels_agree(&hashes[..100], &hashes[100..], k, [1, 2]);
    }
}

/// Batches insert up to 1,024 hashes at a time into a module, but shorter ones than 64 one by one.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn batches_of_any_length_are_answered_completely_in_several_modules() {
    let hashes: Vec<u64> = (0..2_200).map(mix).collect();
    for length in [0, 1, 2, 9, 63, 64, 65, 257, 1_023, 1_024, 1_025, 1_030, 1_087, 1_088, 2_100] {
        // Inserts in one batch, then lookups in one. In modules so full, a half of the absent keys is in the first.
        kernels_agree(&hashes[..length], &[], 2, [2, 20]);
        kernels_agree(&hashes[..length / 2], &hashes[length / 2..length], 2, [3, 1 + length / 400]);
    }
}

/// Two modules have code of their own, and three of one block are nearly two.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn every_kernel_agrees_for_every_number_of_modules_and_few_blocks() {
    let (inserted, queried): (Vec<u64>, Vec<u64>) = ((0..20).map(mix).collect(), (10..40).map(mix).collect());
    for (n_modules, module_blocks) in (1..=16).flat_map(|n| (1..=4).map(move |blocks| (n, blocks))) {
        for k in [6, 13] {
            kernels_agree(&inserted, &queried, k, [n_modules, module_blocks]);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn every_kernel_agrees_on_short_filters_of_every_length() {
    // Hashes at equal distances fall in each of up to 63 blocks at least four times, so lookups begin at each first lane.
    let queried: Vec<u64> = (0..200).map(mix).chain((0..256).map(|i| i << 56)).chain([1, u64::MAX]).collect();
    for n_lanes in (1..64_u64).filter(|n_lanes| n_lanes % 8 != 0) {
        // Sets about seven eighths of the bits, so that lookups give both answers often.
        let word = |i| mix(i) | mix(i + 1_000) | mix(i + 2_000);
        let lanes: Vec<u8> = (0..n_lanes).flat_map(|i| word(i).to_le_bytes()).collect();
        for k in 1..=16 {
            let short = [lanes.as_slice(), &[0x1f + k]].concat().into_boxed_slice();
            kernels_agree_on_short(&short, &queried);
        }
    }
}

#[test]
#[should_panic(expected = "one answer per hash")]
fn a_batch_with_fewer_answers_than_hashes_panics() {
    let filter = BloomFilter::with_blocks(1, 6).unwrap();
    filter.contains_batch(&[1, 2, 3], &mut [false; 2]);
}

#[test]
#[should_panic(expected = "one answer per hash")]
fn a_batch_of_inserts_with_more_answers_than_hashes_panics() {
    let mut filter = BloomFilter::with_blocks(1, 6).unwrap();
    filter.insert_batch_new(&[1, 2, 3], &mut [false; 4]);
}

#[test]
#[should_panic(expected = "a byte per eight hashes")]
fn a_bitmap_with_fewer_bits_than_hashes_panics() {
    let filter = BloomFilter::with_blocks(1, 6).unwrap();
    filter.contains_bitmap(&[0; 9], &mut [0]);
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn every_kernel_builds_the_same_filter() {
    let built = Kernel::available().map(|kernel| {
        let mut builder = bloomline::FilterBuilder::with_bits_per_key(10.0).unwrap().with_kernel(kernel);
        // Each key twice, and enough keys that some are false positives when first added.
        let keys = || (0..10_000).map(|i: u32| i.to_le_bytes());
        builder.extend(keys().chain(keys()));
        let filter = builder.finish().unwrap();
        assert_eq!(filter.known_keys(), Some(10_000), "{kernel}");
        assert_eq!(filter.kernel(), kernel);
        filter
    });
    let built: Vec<_> = built.collect();
    assert!(built.iter().all(|filter| *filter == built[0]));
}

/// Batches in one block run a loop of their own where the block fits in registers.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn every_kernel_finds_the_repeats_in_one_block() {
    for kernel in Kernel::available() {
        for round in 0..20 {
            let mut builder = bloomline::FilterBuilder::with_bits_per_key(2.0).unwrap().with_kernel(kernel);
            // Each key twice. One in eight is a false positive when first added.
            let hashes = || (0..120).map(|i| mix(round << 32 | i));
            hashes().chain(hashes()).for_each(|hash| builder.insert_hash(hash));
            let filter = builder.finish().unwrap();
            assert_eq!((filter.n_blocks(), filter.known_keys()), (1, Some(120)), "{kernel}");
        }
    }
}

/// Batches on filters as large as the L2 cache, of at most 2 MiB, run a separate loop, which prefetches 96 hashes ahead.
/// Few cases, because each costs as much as all cases of a small filter.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn batches_of_any_length_are_answered_completely_in_large_filters() {
    // Every third hash is new, and repeated twice.
    let (inserted, queried): (Vec<u64>, Vec<u64>) =
        ((0..700).map(|i| mix(i - i % 3)).collect(), (350..1_050).map(mix).collect());
    for (n_modules, k, lengths) in [
        (1, 6, &[0, 1, 95, 96, 97, 98, 700][..]),
        (1, 13, &[97, 700]),
        (2, 6, &[97, 255, 256, 257, 700]),
        (2, 13, &[257, 700]),
    ] {
        for &length in lengths {
            kernels_agree(&inserted[..length], &queried[..length], k, [n_modules, 50_000]);
        }
    }
}

/// A batch asks the second module only for keys that the first has, eight or 512 at a time. Here the first has all keys,
/// the first 300 or none.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn batches_ask_the_second_module_for_what_the_first_has() {
    let hashes: Vec<u64> = (0..1_100).map(mix).collect();
    for module_blocks in [40, 50_000] {
        let mut filter = common::of_modules(2, module_blocks, 6);
        filter.insert_batch(&hashes[..300]);
        for first in [Some(0xff), None, Some(0)] {
            let mut bytes = filter.to_compact();
            if let Some(byte) = first {
                bytes[..64 * module_blocks].fill(byte);
            }
            for kernel in Kernel::available() {
                let view = BloomView::from_compact(&bytes).unwrap().with_kernel(kernel);
                for queried in [1, 7, 8, 9, 511, 512, 513, 1_100].map(|length| &hashes[1_100 - length..]) {
                    let mut found = vec![true; queried.len()];
                    view.contains_batch(queried, &mut found);
                    let answers: Vec<_> = queried.iter().map(|&hash| view.contains_hash(hash)).collect();
                    assert_eq!(found, answers, "{kernel}, {module_blocks} blocks, first {first:?}");
                }
                assert_eq!(hashes[..300].iter().all(|&hash| view.contains_hash(hash)), first != Some(0));
            }
        }
    }
}

/// A lookup reads the filter each time, so the compiler must not move it out of the loop. In a release build it may, if
/// the kernel's assembly is declared `pure`.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn a_thread_that_waits_for_a_key_sees_it() {
    // A function of its own, because then the compiler knows that the filter's fields never change.
    #[inline(never)]
    fn wait_for(filter: &AtomicBloomFilter, hash: u64) {
        while !filter.contains_hash(hash) {}
    }

    for kernel in Kernel::available() {
        let filter = BloomFilter::with_blocks(1, 6).unwrap().with_kernel(kernel);
        let filter = Arc::new(AtomicBloomFilter::from(filter));
        let (send, receive) = mpsc::channel();
        // Not scoped, so that the test fails if the thread never ends.
        thread::spawn({
            let filter = Arc::clone(&filter);
            move || {
                send.send("waits").unwrap();
                wait_for(&filter, mix(1));
                send.send("has seen the key").unwrap();
            }
        });
        assert_eq!(receive.recv(), Ok("waits"));
        // Waits until the loop has begun.
        thread::sleep(Duration::from_millis(10));
        filter.insert_hash(mix(1));
        assert_eq!(receive.recv_timeout(Duration::from_secs(60)), Ok("has seen the key"), "{kernel}");
    }
}
