//! The counting filter loses no key that remains, keeps no trace of removed keys, and writes the bytes of the format.

mod common;
#[path = "common/standalone.rs"]
mod standalone;

use bloomline::variants::CountingBloomFilter;
use bloomline::{BloomFilter, Kernel, Key, Sizing, mix, sizing};
use common::allocations::allocated;
use common::counting_programs;
use common::decode::forge_footer as forge;
use common::error_texts::*;

const FOOTER_BYTES: usize = 64;

fn with_blocks(n_blocks: usize, k: u32) -> CountingBloomFilter {
    counting_programs::with_blocks(n_blocks, k).expect("a small filter")
}

fn filled<K: Key>(mut filter: CountingBloomFilter, keys: &[K]) -> CountingBloomFilter {
    filter.extend(keys);
    filter
}

fn sample() -> CountingBloomFilter {
    filled(with_blocks(2, 6).with_seed(99).unwrap(), &["ant", "bee", "cat", "ant"])
}

#[test]
fn every_kernel_sets_and_clears_the_same_bits() {
    // Few enough that no counter saturates.
    let hashes: Vec<u64> = (0..60).map(mix).collect();
    let block_counts: &[usize] = if cfg!(miri) { &[1] } else { &[1, 2, 7, 40] };
    for kernel in Kernel::available() {
        for (&n_blocks, k) in block_counts.iter().flat_map(|n_blocks| (1..=16).map(move |k| (n_blocks, k))) {
            let mut filter = with_blocks(n_blocks, k).with_kernel(kernel);
            assert_eq!(filter.as_filter().kernel(), kernel);
            let (batch, single) = hashes.split_at(31);
            filter.insert_batch(batch);
            single.iter().for_each(|&hash| _ = filter.insert_hash(hash));
            for (removed, &hash) in hashes.iter().enumerate() {
                let mut left = BloomFilter::with_blocks(n_blocks, k).unwrap();
                left.insert_batch(&hashes[removed..]);
                assert!(*filter.as_filter() == left, "{kernel}, {n_blocks} blocks, k {k}: {removed} removed");
                assert!(filter.remove_hash(hash));
            }
            assert!(filter == with_blocks(n_blocks, k), "{kernel}, {n_blocks} blocks, k {k}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn standalone_bytes_are_written_in_place_and_damage_is_detected() {
    standalone::check(sample());
}

/// Plain inserts, which the runner of the golden tables has, are not all that counters show.
#[test]
fn removes_write_the_golden_bytes() {
    let numbers: Vec<String> = (0..400).map(|number: u32| number.to_string()).collect();
    let mut saturated = with_blocks(1, 6);
    (0..17).for_each(|_| saturated.extend(["ant"]));
    (0..14).for_each(|_| saturated.extend(["bee", "cat"]));
    (0..13).for_each(|_| assert!(["ant", "bee", "cat"].iter().all(|key| saturated.remove(key))));
    assert!(saturated.to_standalone() == include_bytes!("golden/counting-1-block.bin"));
    let mut thirds = filled(with_blocks(10, 12).with_seed(0x5eed).unwrap(), &numbers);
    assert!(numbers.iter().step_by(3).all(|number| thirds.remove(number)));
    assert!(thirds.to_standalone() == include_bytes!("golden/counting-10-blocks.bin"));
}

#[test]
fn a_forged_count_of_zero_keys_is_ignored() {
    let owned = |bytes: &[u8]| CountingBloomFilter::from_standalone(bytes).unwrap();
    let forged = owned(&forge(&sample().to_standalone(), 8, &[0; 8]));
    assert_eq!(forged.as_filter().known_keys(), None);
    let empty = owned(&with_blocks(1, 3).to_standalone());
    assert_eq!(
        (empty.as_filter().known_keys(), empty.with_seed(5).unwrap().as_filter().seed()),
        (Some(0), 5)
    );
    // After a remove the number of keys is unknown too.
    let mut counted = owned(&forge(&sample().to_standalone(), 8, &3_u64.to_le_bytes()));
    assert_eq!(counted.as_filter().known_keys(), Some(3));
    assert!(counted.remove("ant") && counted.as_filter().known_keys().is_none());
}

#[test]
fn the_seed_of_a_filter_that_had_keys_cannot_be_changed() {
    let mut filter = sample();
    assert!(["ant", "ant", "bee", "cat"].iter().all(|key| filter.remove(key)));
    assert!(filter == with_blocks(2, 6).with_seed(99).unwrap());
    assert_eq!(filter.with_seed(1).text(), too_late(1));
}

#[test]
fn filters_that_differ_in_size_k_or_seed_alone_are_not_equal() {
    let filter = with_blocks(2, 6);
    assert!(filter == with_blocks(2, 6));
    assert!(filter != with_blocks(3, 6));
    assert!(filter != with_blocks(2, 7));
    assert!(filter != with_blocks(2, 6).with_seed(1).unwrap());
}

#[test]
fn saturated_counters_stay_saturated() {
    let mut filter = with_blocks(1, 6);
    for times in 0..20_u32 {
        assert_eq!(filter.count("ant"), times.min(15));
        assert_eq!(filter.saturated_counters(), if times < 15 { 0 } else { 6 });
        assert_eq!(filter.insert("ant"), times == 0);
    }
    (0..40).for_each(|_| assert!(filter.remove("ant")));
    assert_eq!((filter.count("ant"), filter.saturated_counters()), (15, 6));
    filter.clear();
    assert!(filter == with_blocks(1, 6) && *filter.as_filter() == BloomFilter::with_blocks(1, 6).unwrap());

    (0..14).for_each(|_| _ = filter.insert("ant"));
    (0..14).for_each(|_| assert!(filter.contains("ant") && filter.remove("ant")));
    assert!(!filter.contains("ant") && !filter.remove("ant") && filter == with_blocks(1, 6));
}

/// A filter with 10 bits per key and k = 6 that contains `mix(i)` for each `i` in `0..keys`.
fn half_full(keys: u64) -> CountingBloomFilter {
    let mut filter = CountingBloomFilter::with_sizing(Sizing::for_bits_per_key(keys, 10.0).unwrap()).unwrap();
    assert_eq!(filter.as_filter().k(), 6);
    filter.insert_batch(&(0..keys).map(mix).collect::<Vec<_>>());
    filter
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn counters_of_distinct_keys_are_poisson() {
    let filter = half_full(200_000);
    let bytes = filter.to_standalone();
    let body = &bytes[..bytes.len() - FOOTER_BYTES];
    let mut counts = [0; 16];
    body.iter()
        .for_each(|byte| [byte % 16, byte / 16].iter().for_each(|&count| counts[usize::from(count)] += 1));
    let (counters, mean) = (
        512.0 * filter.as_filter().n_blocks() as f64,
        200_000.0 * 6.0 / (512.0 * filter.as_filter().n_blocks() as f64),
    );
    let mut expected = counters * f64::exp(-mean);
    for (count, &found) in (0..=6).zip(&counts) {
        let found = f64::from(found);
        println!("{count}: {found} counters, {expected:.0} expected");
        // Keys in one block are not independent, which widens the distribution a little.
        assert!((found - expected).abs() < 6.0 * expected.sqrt() + 3.0, "{count}: {found}, not {expected}");
        expected *= mean / f64::from(count + 1);
    }
    assert_eq!(counts[10..], [0; 6]);
}

/// What the documentation says of keys that were never inserted.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn removing_an_absent_key_succeeds_at_the_fpr_and_then_loses_four_keys() {
    const KEYS: u64 = 10_000;
    let filter = half_full(KEYS);
    let mut changed = filter.clone();
    let (mut accepted, mut lost) = (0, 0);
    let lookups = 200_000;
    for absent in (0..lookups).map(|i| mix((1 << 60) | i)) {
        if changed.remove_hash(absent) {
            accepted += 1;
            if accepted <= 100 {
                lost += (0..KEYS).filter(|&key| !changed.contains_hash(mix(key))).count();
            }
            changed.insert_hash(absent);
        }
    }
    assert!(changed == filter, "refused removes, and those that were undone, change nothing");
    let expected = lookups as f64 * sizing::fpr(10.0, 6).unwrap();
    let (ratio, lost) = (f64::from(accepted) / expected, lost as f64 / 100.0);
    println!("removes were accepted at {ratio:.3} of the model's FPR; each lost {lost:.2} keys");
    assert!((ratio - 1.0).abs() < 0.02 + 3.0 / expected.sqrt(), "{ratio}");
    assert!((3.0..5.0).contains(&lost), "{lost}");
}

#[test]
fn changes_and_lookups_do_not_allocate() {
    let mut filter = with_blocks(3, 12);
    let hashes: Vec<u64> = (0..40).map(mix).collect();
    let mut found = [false; 40];
    let (bytes, ()) = allocated(|| {
        filter.insert_batch(&hashes);
        filter.as_filter().contains_batch(&hashes, &mut found);
        assert!(!filter.insert("ant") || filter.contains("ant"));
        assert!(filter.count("ant") > 0 && filter.remove("ant"));
        assert_eq!(filter.saturated_counters(), 0);
        filter.clear();
    });
    assert_eq!(bytes, 0);
}

#[test]
fn shapes_are_those_requested() {
    assert_eq!(
        format!("{:?}", sample()),
        format!(
            "CountingBloomFilter {{ n_blocks: 2, n_modules: 1, k: 6, seed: 99, kernel: {:?}, .. }}",
            Kernel::active()
        )
    );
    let (bytes, filter) = allocated(|| CountingBloomFilter::with_fpr(1_000, 0.01).unwrap());
    let plain = BloomFilter::with_fpr(1_000, 0.01).unwrap();
    assert!(*filter.as_filter() == plain);
    assert_eq!(filter.byte_len(), 5 * plain.byte_len());
    assert!((filter.byte_len()..filter.byte_len() + 2 * 64).contains(&bytes), "{bytes} bytes");
    let filter = filled(filter, &["ant", "bee"]);
    assert_eq!(filter.as_filter().estimated_keys().map(|estimate| estimate.keys), Some(2));
    assert!(BloomFilter::from(filter.clone()) == *filter.as_filter());
    assert!(filter != filled(filter.clone(), &["ant"]), "equal bits but different counters");

    for k in [0, 17] {
        assert_eq!(counting_programs::with_blocks(1, k).text(), probes(k, 16));
    }
    for n_blocks in [0, usize::MAX] {
        let error = counting_programs::with_blocks(n_blocks, 6).text();
        assert!(error.ends_with(&format!(" blocks of 64 bytes on this machine, not {n_blocks}")), "{error}");
    }
}
