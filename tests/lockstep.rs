//! Every kernel agrees with the reference, bit for bit.

#[path = "common/properties.rs"]
mod properties;

use bloomline::{Kernel, mix};
use proptest::prelude::*;

/// Names what this run covers. `EXPECT_KERNELS=avx512,avx2,portable,reference` makes it fail where it covers less, so
/// that no machine passes by testing fewer kernels than were meant.
#[test]
fn this_run_covers_the_kernels_that_are_expected() {
    let kernels: Vec<_> = Kernel::available().map(Kernel::name).collect();
    println!("kernels: {}; big-endian: {}", kernels.join(","), cfg!(target_endian = "big"));
    if let Ok(expected) = std::env::var("EXPECT_KERNELS") {
        assert_eq!(kernels.join(","), expected, "EXPECT_KERNELS");
    }
    assert_eq!(Kernel::active().name(), kernels[0], "the fastest is the one in use");
    assert!(Kernel::by_name("abacus").is_none());
}

/// Hashes as they come, those at the edges of the block index and of the bits, and runs with equal high bits, which
/// fall in one block.
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

fn block_count() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 1..=100_usize, 1 => 101..=5_000_usize]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_kernel_agrees_with_the_reference(
        inserted in hashes(), asked in hashes(), k in 1..=16_u32, n_blocks in block_count(),
    ) {
        properties::kernels_agree(&inserted, &asked, k, n_blocks);
    }
}

#[test]
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
            properties::kernels_agree(hashes, &of_rotation.concat(), k, 1);
        }
        for n_blocks in 2..=100 {
            properties::kernels_agree(
                &of_rotation[n_blocks % 8],
                &of_rotation[(n_blocks + 1) % 8],
                k,
                n_blocks,
            );
        }
    }
}

#[test]
fn a_batch_of_any_length_is_answered_whole() {
    let hashes: Vec<u64> = (0..300).map(mix).collect();
    for length in (0..=70).chain([127, 128, 129, 255, 256, 257, 300]) {
        properties::kernels_agree(&hashes[..length], &hashes[length..], 6, 7);
    }
}

#[test]
#[should_panic(expected = "one answer per hash")]
fn a_batch_without_room_for_its_answers_panics() {
    let filter = bloomline::BloomFilter::with_blocks(1, 6).unwrap();
    filter.contains_batch(&[1, 2, 3], &mut [false; 2]);
}

#[test]
fn every_kernel_builds_the_same_filter() {
    let built = Kernel::available().map(|kernel| {
        let mut builder = bloomline::FilterBuilder::with_bits_per_key(10.0).unwrap().with_kernel(kernel);
        builder.extend((0..1_000).map(|i: u32| i.to_le_bytes()));
        let filter = builder.finish();
        assert_eq!(filter.kernel(), kernel);
        filter
    });
    let built: Vec<_> = built.collect();
    assert!(built.iter().all(|filter| *filter == built[0]));
}
