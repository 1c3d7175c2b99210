//! The scalable filter loses no key as it grows, keeps its false-positive rate below the requested one, and writes the
//! bytes of the format.

mod common;

use arbitrary::{Arbitrary, Unstructured};
use bloomline::sizing::{self, SCALABLE_MIN_FPR};
use bloomline::variants::ScalableBloomFilter;
use bloomline::{BloomFilter, BloomView, DecodeError, Kernel, Sizing, SizingError, hash_key, mix};
use common::allocations::{allocated, kept};
use common::decode::{forge_footer as forge, scalable_decoder_survives};
use common::scalable::{Input, scalable};
use proptest::prelude::*;

const FOOTER_BYTES: usize = 64;

fn with_fpr(initial_capacity: usize, fpr: f64) -> ScalableBloomFilter {
    ScalableBloomFilter::with_fpr(initial_capacity, fpr).expect("in range")
}

/// Inserts `mix` of 0, 1, 2... until the filter counts `keys` inserted keys.
fn grown(mut filter: ScalableBloomFilter, keys: u64) -> ScalableBloomFilter {
    let mut number = 0;
    while filter.inserted_keys() < keys {
        filter.insert_hash(mix(number));
        number += 1;
    }
    filter
}

fn numbers() -> Vec<String> {
    (0..1000).map(|number: u32| number.to_string()).collect()
}

fn filled(mut filter: ScalableBloomFilter, keys: &[String]) -> ScalableBloomFilter {
    filter.extend(keys);
    filter
}

/// A scalable filter that has grown to three filters.
fn sample() -> ScalableBloomFilter {
    filled(with_fpr(60, 0.1).with_seed(99), &numbers()[..300])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: common::cases(200), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_key_is_lost(bytes in prop::collection::vec(any::<u8>(), 0..1_000)) {
        if let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(&bytes)) {
            scalable(input);
        }
    }

    #[test]
    fn arbitrary_bytes_are_an_error_or_a_filter(
        offset in 0..48_usize, bytes in prop::collection::vec(any::<u8>(), 1..9), n_filters in 0..4_u64,
    ) {
        let standalone = sample().to_standalone();
        let bytes = &bytes[..bytes.len().min(48 - offset)];
        let forged = forge(&standalone, offset, bytes);
        scalable_decoder_survives(&forged);
        scalable_decoder_survives(&forge(&forged, 0, &n_filters.to_le_bytes()));
    }
}

#[test]
fn filters_grow_one_by_one() {
    let mut filter = with_fpr(100, 0.01);
    let mut sizes = Vec::new();
    for keys in [0, 100, 101, 300, 301, 700, 701, 1_500, 1_501] {
        filter = grown(filter, keys);
        let filters = filter.filters();
        sizes.push(filters.len());
        assert!(filters.windows(2).all(|pair| 2 * pair[0].n_blocks() <= pair[1].n_blocks() + 1));
        assert!(!(0..100).map(mix).any(|hash| filter.insert_hash(hash)) || keys == 0);
    }
    assert_eq!(sizes, [1, 1, 2, 2, 3, 3, 4, 4, 5]);

    let by_ten = ScalableBloomFilter::with_growth(1_000, 0.01, 10, 0.5).unwrap();
    let by_ten = grown(by_ten, 11_001);
    assert_eq!(by_ten.filters().len(), 3);
    let bits_per_key = |at: usize, keys| by_ten.filters()[at].size_bytes() as f64 * 8.0 / keys;
    assert!(bits_per_key(0, 1e3) < bits_per_key(1, 1e4));
    assert!(bits_per_key(1, 1e4) < bits_per_key(2, 1e5));
}

#[test]
fn an_initial_capacity_of_zero_counts_as_one() {
    let mut filter = with_fpr(0, 0.01);
    assert!(filter.insert("ant") && !filter.insert("ant") && filter.insert("bee"));
    assert_eq!((filter.filters().len(), filter.inserted_keys()), (2, 2));
    assert_eq!(with_fpr(0, 0.01), with_fpr(1, 0.01));
}

/// Inserting only present keys into a full filter changes nothing.
#[test]
fn present_keys_do_not_make_it_grow() {
    let mut filter = filled(with_fpr(3, 0.001), &numbers()[..3]);
    let before = filter.clone();
    let (bytes, ()) = allocated(|| filter.extend(&numbers()[..3]));
    assert_eq!((filter.filters().len(), filter == before), (1, true));
    // The keys themselves are all that is allocated.
    let (of_numbers, _) = allocated(numbers);
    assert_eq!(bytes, of_numbers);
    assert_eq!(kept(|| assert!((0..100).all(|i| !filter.contains_hash(mix(i))))), 0);
}

/// The false-positive rate of all filters together, from the model of blocks and the number of keys in each.
fn model(filter: &ScalableBloomFilter, initial_capacity: u64) -> f64 {
    let (mut capacity, mut rest) = (initial_capacity, filter.inserted_keys());
    let mut none = 1.0;
    for filter in filter.filters() {
        let keys = capacity.min(rest);
        none *= 1.0 - sizing::fpr(filter.size_bytes() as f64 * 8.0 / keys as f64, filter.k()).unwrap_or(0.0);
        (capacity, rest) = (2 * capacity, rest - keys);
    }
    1.0 - none
}

/// Asserts that the measured false-positive rate matches the estimate and the model, and is below the requested one.
fn assert_fpr(fpr: f64, initial_capacity: u64, lookups: u64) {
    let mut filter = with_fpr(initial_capacity as usize, fpr);
    for times in [1, 10, 100] {
        filter = grown(filter, times * initial_capacity);
        let positives = (0..lookups).filter(|i| filter.contains_hash(mix((1 << 60) | i))).count();
        let (measured, model) = (positives as f64 / lookups as f64, model(&filter, initial_capacity));
        let estimated = filter.estimated_fpr();
        println!(
            "{fpr}, {times} times the initial capacity: measured {:.3} of the requested FPR, estimated {:.3}, model {:.3}",
            measured / fpr,
            estimated / fpr,
            model / fpr
        );
        let sigma = 1.0 / (lookups as f64 * model).sqrt();
        assert!(
            (measured / estimated - 1.0).abs() < 4.0 * sigma,
            "measured {measured}, estimated {estimated}"
        );
        // The FPR varies between blocks by more than its mean, so a filter of few blocks deviates from the model.
        let tolerance = 6.0 / (filter.size_bytes() as f64 / 64.0).sqrt();
        assert!((estimated / model - 1.0).abs() < tolerance, "estimated {estimated}, model {model}");
        assert!(model < fpr && measured < fpr && model > 0.1 * fpr);
    }
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn the_fpr_stays_below_the_requested_fpr() {
    assert_fpr(0.3, 1_000, 50_000);
    assert_fpr(0.01, 5_000, 300_000);
    assert_fpr(0.001, 3_000, 1_000_000);
}

#[test]
#[ignore = "half a minute in release"]
fn the_fpr_stays_below_the_requested_fpr_at_low_fprs() {
    assert_fpr(0.0001, 20_000, 20_000_000);
    assert_fpr(0.01, 50_000, 4_000_000);
}

#[test]
#[ignore = "20 minutes in release on a busy machine, 2.6 GB of memory"]
fn the_fpr_stays_below_the_requested_fpr_with_a_billion_keys() {
    assert_fpr(0.01, 10_000_000, 4_000_000);
}

/// The figures are documented.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn memory_is_at_most_the_documented_figures() {
    let initial_capacity = 3_000;
    for (fpr, times) in
        [(0.01, [1.46, 2.35, 2.14]), (0.001, [1.35, 2.13, 1.91]), (0.0001, [1.30, 2.04, 1.82])]
    {
        let mut filter = with_fpr(initial_capacity, fpr);
        for (n, most) in [1, 10, 100].into_iter().zip(times) {
            filter = grown(filter, (n * initial_capacity) as u64);
            let one = 64 * Sizing::for_fpr(n * initial_capacity, fpr).unwrap().n_blocks;
            let ratio = filter.size_bytes() as f64 / one as f64;
            println!("{fpr}, {n} times: {ratio:.3} times the memory");
            assert!((most - 0.02..=most).contains(&ratio), "{fpr}, {n} times the initial capacity: {ratio}");
        }
    }
}

#[test]
fn bad_numbers_are_refused() {
    for value in [0.0, -0.1, 1.0, f64::NAN, f64::INFINITY] {
        let error = ScalableBloomFilter::with_fpr(10, value).unwrap_err();
        assert!(matches!(error, SizingError::Fpr { .. }), "{error}");
    }
    let error = ScalableBloomFilter::with_fpr(10, 1e-7).unwrap_err();
    assert_eq!(error, SizingError::ScalableFpr { value: 1e-7, lowest: SCALABLE_MIN_FPR });
    assert_eq!(
        error.to_string(),
        "a scalable filter cannot keep a false-positive rate of 1e-7 as it grows: request at least 8.0832e-7, or use a \
         filter of fixed size"
    );
    assert!(ScalableBloomFilter::with_fpr(10, SCALABLE_MIN_FPR).is_ok());
    let with_growth = |growth, tightening| ScalableBloomFilter::with_growth(10, 0.01, growth, tightening);
    for growth in [0, 1, 17, 255] {
        let error = with_growth(growth, 0.85).unwrap_err();
        assert_eq!(error, SizingError::Growth { value: growth });
        let text = format!("a scalable filter's growth must be 2 to 16, not {growth}");
        assert_eq!(error.to_string(), text);
    }
    for value in [0.0, 0.499, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = with_growth(2, value).unwrap_err();
        assert!(matches!(error, SizingError::Tightening { .. }), "{error}");
    }
    assert_eq!(
        with_growth(2, 0.25).unwrap_err().to_string(),
        "the tightening of a scalable filter must be at least 0.5 and below 1, not 0.25"
    );
    assert!(with_growth(2, 0.5).is_ok() && with_growth(16, 0.999).is_ok());
    assert!(matches!(
        ScalableBloomFilter::with_fpr(usize::MAX, 0.01),
        Err(SizingError::Blocks { .. } | SizingError::OutOfMemory { .. })
    ));
}

#[test]
fn standalone_bytes_match_the_format() {
    type Golden<'a> = (&'a [u8], ScalableBloomFilter, &'a [String], usize);
    let numbers = numbers();
    let golden: [Golden<'_>; 3] = [
        (include_bytes!("golden/scalable-empty.bin"), with_fpr(20, 0.01), &[], 1),
        (include_bytes!("golden/scalable-1-filter.bin"), with_fpr(20, 0.01), &numbers[..20], 1),
        (include_bytes!("golden/scalable-3-filters.bin"), with_fpr(150, 0.01).with_seed(0x5eed), &numbers, 3),
    ];
    for (golden, empty, keys, n_filters) in golden {
        let read = ScalableBloomFilter::from_standalone(golden).unwrap();
        let made = filled(empty, keys);
        assert!(read == made, "{made:?}, not {read:?}");
        assert_eq!(read.filters().len(), n_filters);
        assert!(keys.iter().all(|key| read.contains(key)));
        assert!(read.to_standalone() == golden && made.to_standalone() == golden, "{made:?}");
        assert!(matches!(BloomView::from_standalone(golden), Err(DecodeError::Magic { .. })));
        // The decoded filter keeps growing in the same way.
        let [read, made] = [read, made].map(|filter| grown(filter, 2_000));
        assert!(read == made);
    }
    let blocked = include_bytes!("golden/standalone-100-blocks.bin");
    let magic = DecodeError::Magic { found: *b"\x89bloom\r\n" };
    assert_eq!(ScalableBloomFilter::from_standalone(blocked), Err(magic));
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn every_changed_byte_and_every_truncation_is_detected() {
    let standalone = sample().to_standalone();
    for position in 0..standalone.len() {
        for change in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
            let mut damaged = standalone.clone();
            damaged[position] ^= change;
            assert!(ScalableBloomFilter::from_standalone(&damaged).is_err(), "byte {position}, {change:#x}");
        }
        let (first, last) = standalone.split_at(position);
        assert!(ScalableBloomFilter::from_standalone(first).is_err(), "the first {position} bytes");
        assert!(position == 0 || ScalableBloomFilter::from_standalone(last).is_err(), "from {position} on");
    }
    assert!(ScalableBloomFilter::from_standalone(&standalone.repeat(2)).is_err());
}

#[test]
fn each_check_reports_what_is_wrong() {
    let filter = sample();
    let standalone = filter.to_standalone();
    let open = |bytes: &[u8]| ScalableBloomFilter::from_standalone(bytes).unwrap_err();
    let forged = |offset: usize, bytes: &[u8]| open(&forge(&standalone, offset, bytes));
    let footer = |field, found| DecodeError::Footer { field, found };
    assert_eq!(open(&[0; 71]), DecodeError::Magic { found: [0; 8] });
    assert_eq!(open(&[0; 63]), DecodeError::TooShort { found: 63, least: 72 });
    assert_eq!(forged(40, &[3]), DecodeError::Version { found: 3, newest: 2 });
    assert_eq!(forged(41, &[1]), footer("growth", 1));
    assert_eq!(forged(41, &[17]), footer("growth", 17));
    assert_eq!(forged(42, &[1]), footer("reserved bytes", 1));
    assert_eq!(forged(47, &[1]), footer("reserved bytes", 1 << 40));
    for fpr in [0.0, 1.0, 1e-7, f64::NAN] {
        assert_eq!(forged(24, &fpr.to_le_bytes()), footer("false-positive rate, in bits,", fpr.to_bits()));
    }
    for tightening in [0.4, 1.0, f64::NAN] {
        assert_eq!(
            forged(32, &tightening.to_le_bytes()),
            footer("tightening, in bits,", tightening.to_bits())
        );
    }
    // A lower number of filters leaves bytes over, and a higher one runs out of bytes.
    for n_filters in [0_u64, 1, 2, 4, u64::MAX] {
        assert_eq!(forged(0, &n_filters.to_le_bytes()), footer("number of filters", n_filters));
    }
    // The capacity of the newest filter is 240 keys.
    for initial_capacity in [0, 80, 1_000, 1 << 62, u64::MAX] {
        assert_eq!(forged(16, &initial_capacity.to_le_bytes()), footer("initial capacity", initial_capacity));
    }
    assert_eq!(forged(16, &[12]), footer("number of keys", filter.inserted_keys()));
    for keys in [0, 179, 421, u64::MAX] {
        assert_eq!(forged(8, &u64::to_le_bytes(keys)), footer("number of keys", keys));
    }
    assert!(ScalableBloomFilter::from_standalone(&forge(&standalone, 8, &u64::to_le_bytes(180))).is_ok());
    let (bytes, _) = allocated(|| ScalableBloomFilter::from_standalone(&standalone));
    assert!(bytes < 2 * standalone.len(), "{bytes} bytes for {}", standalone.len());
}

/// With a different seed or k, lookups would probe other bits than those that the inserts set.
#[test]
fn filters_with_different_parameters_are_refused() {
    let of = |filters: &[BloomFilter]| {
        let bytes: Vec<u8> = filters.iter().flat_map(BloomFilter::to_standalone).collect();
        let footer = sample().to_standalone();
        let bytes = [&bytes[..], &footer[footer.len() - FOOTER_BYTES..]].concat();
        ScalableBloomFilter::from_standalone(&bytes).map(|_| ())
    };
    let [first, second, third] = [0, 1, 2].map(|at| sample().filters()[at].clone());
    assert_eq!(of(&[first.clone(), second.clone(), third.clone()]), Ok(()));
    let k = third.k();
    let of_other_k = BloomFilter::with_blocks(second.n_blocks(), k + 1).unwrap().with_seed(99);
    assert_eq!(
        of(&[first.clone(), of_other_k, third.clone()]),
        Err(DecodeError::Footer { field: "k", found: u64::from(k) + 1 })
    );
    let of_other_seed = BloomFilter::with_blocks(first.n_blocks(), k).unwrap().with_seed(7);
    assert_eq!(
        of(&[of_other_seed, second.clone(), third.clone()]),
        Err(DecodeError::Footer { field: "seed", found: 7 })
    );
    // In reverse order, the next filter would be sized from the first, smallest one.
    assert!(of(&[third, second, first]).is_err());
}

/// Another writer may choose another k. The next filter is then as large as the false-positive rate requires with that
/// k.
#[test]
fn filters_of_any_k_keep_growing() {
    let one = BloomFilter::with_blocks(10, 2).unwrap().with_seed(99).to_standalone();
    let footer = forge(&with_fpr(60, 0.1).to_standalone(), 0, &[1]);
    let bytes = [&one[..], &footer[footer.len() - FOOTER_BYTES..]].concat();
    let grown = grown(ScalableBloomFilter::from_standalone(&bytes).unwrap(), 61);
    let [_, next] = grown.filters() else { panic!("{grown:?}") };
    let bits_per_key = next.size_bytes() as f64 * 8.0 / 120.0;
    assert_eq!((next.k(), next.seed()), (2, 99));
    assert!((0.003..0.1 * 0.15 * 0.85).contains(&sizing::fpr(bits_per_key, 2).unwrap()), "{bits_per_key}");
}

#[test]
fn every_kernel_queries_every_filter() {
    for kernel in Kernel::available() {
        let filter = sample().with_kernel(kernel);
        let hashes: Vec<u64> =
            numbers()[..300].iter().map(|key| hash_key(key, 99)).chain((0..1000).map(mix)).collect();
        let mut found = vec![false; hashes.len()];
        filter.contains_batch(&hashes, &mut found);
        for (&hash, found) in hashes.iter().zip(found) {
            let expected = filter.filters().iter().any(|filter| filter.contains_hash(hash));
            assert_eq!((found, filter.contains_hash(hash)), (expected, expected), "{kernel}: {hash:#x}");
        }
        assert!(numbers()[..300].iter().all(|key| filter.contains(key)), "{kernel}");
        assert!(grown(filter, 421).filters().iter().all(|filter| filter.kernel() == kernel));
    }
}

#[test]
fn the_seed_is_set_before_the_first_key() {
    let filter = with_fpr(10, 0.01).with_seed(7);
    assert_eq!((filter.seed(), filter.filters()[0].seed()), (7, 7));
    let empty = ScalableBloomFilter::from_standalone(&filter.to_standalone()).unwrap();
    assert_eq!(empty.with_seed(5).seed(), 5);
    let mut cleared = sample();
    cleared.clear();
    assert_eq!(cleared, with_fpr(60, 0.1).with_seed(99));
    assert_eq!(cleared.with_seed(8).seed(), 8);
}

#[test]
#[should_panic(expected = "before its first key")]
fn the_seed_of_a_filter_with_keys_cannot_be_changed() {
    let _ = sample().with_seed(1);
}

/// `with_seed` is allowed only on an empty filter, so a footer must not make a filter with bits look empty.
#[test]
#[should_panic(expected = "before its first key")]
fn a_forged_count_of_zero_keys_is_ignored() {
    let mut filter = with_fpr(10, 0.01);
    filter.insert("ant");
    let forged = forge(&filter.to_standalone(), 8, &[0]);
    let _ = ScalableBloomFilter::from_standalone(&forged).map(|filter| filter.with_seed(1));
}

#[test]
fn debug_output_shows_the_shape() {
    let debug = format!("{:?}", with_fpr(10, 0.01));
    assert!(
        debug.starts_with("ScalableBloomFilter { filters: [BloomFilter { n_blocks: 1, k: 10, seed: 0,"),
        "{debug}"
    );
    assert!(debug.ends_with("fpr: 0.01, .. }"), "{debug}");
}

#[test]
#[should_panic(expected = "one answer per hash")]
fn batches_need_one_answer_per_hash() {
    with_fpr(10, 0.01).contains_batch(&[1, 2], &mut [false]);
}
