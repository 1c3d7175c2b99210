//! The scalable filter loses no key as it grows, keeps its false-positive rate below the requested one, and writes the
//! bytes of the format.

mod common;
#[path = "common/standalone.rs"]
mod standalone;

use bloomline::sizing::{self, SCALABLE_MIN_FPR};
use bloomline::variants::ScalableBloomFilter;
use bloomline::{BloomFilter, ErrorKind, Kernel, Sizing, mix};
use common::allocations::allocated;
use common::decode::{forge_footer as forge, forge_loads};
use common::error_texts::*;
use common::kernel_comparison::reference_kernel;
use common::of_modules;
use common::scalable_programs::{with_growth, with_modules};

/// Of a footer with the keys, the capacity and the checksum of one filter.
const FOOTER_BYTES: usize = 88;

fn with_fpr(initial_capacity: usize, fpr: f64) -> ScalableBloomFilter {
    ScalableBloomFilter::with_fpr(initial_capacity as u64, fpr).expect("in range")
}

/// Inserts `mix` of 0, 1, 2... until the filter counts `keys` inserted keys.
fn grown(mut filter: ScalableBloomFilter, keys: u64) -> ScalableBloomFilter {
    let mut number = 0;
    while filter.inserted_keys() < keys {
        filter.insert_hash(mix(number));
        number += 1;
        assert!(number < 10 * keys + 1_000, "too full: {filter:?}");
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
    filled(with_fpr(60, 0.1).with_seed(99).unwrap(), &numbers()[..300])
}

/// The false-positive rate of all filters together, from the model of blocks and the number of keys in each.
fn model(filter: &ScalableBloomFilter, initial_capacity: u64) -> f64 {
    let (mut capacity, mut rest) = (initial_capacity, filter.inserted_keys());
    let mut none = 1.0;
    for filter in filter.filters() {
        let keys = capacity.min(rest);
        none *= 1.0 - filter.sizing().expected_fpr(keys);
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
        let tolerance = 6.0 / (filter.byte_len() as f64 / 64.0).sqrt();
        assert!((estimated / model - 1.0).abs() < tolerance, "estimated {estimated}, model {model}");
        assert!(model < fpr && measured < fpr && model > 0.1 * fpr);
    }
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn the_fpr_stays_below_the_requested_fpr() {
    assert_fpr(0.3, 1_000, 50_000);
    assert_fpr(0.01, 5_000, 300_000);
    assert_fpr(0.0004, 3_000, 1_000_000);
}

#[test]
#[ignore = "seconds in release"]
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
        [(0.01, [1.46, 2.35, 2.14]), (0.001, [1.34, 2.11, 1.90]), (0.0001, [1.11, 1.73, 1.53])]
    {
        let mut filter = with_fpr(initial_capacity, fpr);
        for (n, most) in [1, 10, 100].into_iter().zip(times) {
            filter = grown(filter, (n * initial_capacity) as u64);
            let one = Sizing::for_fpr_within((n * initial_capacity) as u64, fpr, 1).unwrap().byte_len();
            let ratio = filter.byte_len() as f64 / one as f64;
            println!("{fpr}, {n} times: {ratio:.3} times the memory");
            assert!((most - 0.02..=most).contains(&ratio), "{fpr}, {n} times the initial capacity: {ratio}");
        }
    }
}

#[test]
fn bad_numbers_are_refused() {
    for value in [0.0, -0.1, 1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(ScalableBloomFilter::with_fpr(10, value).text(), not_a_rate(value));
    }
    assert_eq!(ScalableBloomFilter::with_fpr(10, 1e-7).text(), low_rate("1e-7", "8.0832e-7"));
    assert!(ScalableBloomFilter::with_fpr(10, SCALABLE_MIN_FPR).is_ok());
    let made = [with_growth(10, 0.01, 2, 0.5), with_growth(10, 0.01, 16, 0.999)];
    assert!(made.iter().all(|filter| filter.inserted_keys() == 0));
    let many = ScalableBloomFilter::with_fpr(u64::MAX, 0.01).unwrap_err();
    assert!(many.kind() == ErrorKind::OutOfMemory || many.to_string().contains(" address space"), "{many}");
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn standalone_bytes_are_written_in_place_and_damage_is_detected() {
    standalone::check(sample());
}

#[test]
fn decoded_goldens_grow_as_their_keys_filters() {
    let numbers = numbers();
    // At its rate, filters of a new series have one module.
    let modules =
        ScalableBloomFilter::from_standalone(include_bytes!("golden/scalable-modules.bin")).unwrap();
    let mut two_modules = modules.clone();
    two_modules.clear();
    let one = ScalableBloomFilter::from_standalone(include_bytes!("golden/scalable-3-filters.bin")).unwrap();
    for (read, empty) in [(modules, two_modules), (one, with_fpr(150, 0.01).with_seed(0x5eed).unwrap())] {
        let made = filled(empty, &numbers);
        assert!(read == made && read.to_standalone() == made.to_standalone(), "{made:?}, not {read:?}");
        assert!(grown(read, 2_000) == grown(made, 2_000));
    }
    // Keys in two full or half full filters of one series, which has not grown.
    let golden = include_bytes!("golden/scalable-union.bin");
    let read = ScalableBloomFilter::from_standalone(golden).unwrap();
    assert_eq!((read.filters().len(), read.fpr()), (2, 0.02));
    let mut made = filled(with_fpr(20, 0.01), &numbers[..20]);
    made.union_with(&filled(with_fpr(20, 0.01), &numbers[20..27])).unwrap();
    assert_eq!(made.filters(), read.filters());
    assert_eq!(grown(read.clone(), 40).filters().len(), 2);
    assert_eq!(grown(read, 41).filters(), grown(made, 41).filters());
}

/// Of several filters. `goldens` has one, and every field of the footer.
#[test]
fn each_check_reports_what_is_wrong() {
    let filter = sample();
    let standalone = filter.to_standalone();
    let open = |bytes: &[u8]| ScalableBloomFilter::from_standalone(bytes).text();
    let forged = |offset: usize, bytes: &[u8]| open(&forge(&standalone, offset, bytes));
    // Three filters are not three pairs.
    assert_eq!(forged(43, &[1]), impossible("number of filters", 3));
    assert_eq!(forged(0, &u64::MAX.to_le_bytes()), impossible("number of filters", u64::MAX));
    for n_filters in [0_u64, 1, 2, 4] {
        let error = forged(0, &n_filters.to_le_bytes());
        assert!(error.starts_with(DAMAGED), "{error}");
    }
    // More filters than the footer says, and fewer, with keys and capacities for as many as it says.
    let loads = |n: usize| {
        let rows = standalone.len() - FOOTER_BYTES - 2 * 16;
        let bytes = [&standalone[..rows], &vec![0; 16 * n], &standalone[standalone.len() - 72..]].concat();
        forge_loads(&forge(&bytes, 0, &(n as u64).to_le_bytes()), n, |loads| loads.fill([1, 1]))
    };
    assert!(ScalableBloomFilter::from_standalone(&loads(3)).is_ok());
    for n_filters in [0, 1, 2, 4] {
        assert_eq!(open(&loads(n_filters)), impossible("number of filters", n_filters as u64));
    }
    // The capacity of the largest filter is 240 keys.
    for initial_capacity in [0, 80, 1_000, 1 << 62, u64::MAX] {
        assert_eq!(
            forged(16, &initial_capacity.to_le_bytes()),
            impossible("initial capacity", initial_capacity)
        );
    }
    assert_eq!(forged(42, &[4]), impossible("initial capacity", 60));
    assert_eq!(forged(42, &[255]), impossible("initial capacity", 60));
    let with_load = |at: usize, load| forge_loads(&standalone, 3, |loads| loads[at] = load);
    for (at, load) in [(0, [61, 60]), (2, [241, 240]), (1, [u64::MAX, 120]), (1, [1, 0])] {
        assert_eq!(open(&with_load(at, load)), impossible("number of keys", load[0]));
    }
    for (at, capacity) in [(0, 200), (1, 1_000), (2, u64::MAX)] {
        assert_eq!(open(&with_load(at, [0, capacity])), impossible("capacity of a filter", capacity));
    }
    for (at, load) in [(0, [0, 60]), (2, [0, 240]), (2, [240, 240]), (0, [u64::MAX; 2])] {
        assert!(ScalableBloomFilter::from_standalone(&with_load(at, load)).is_ok(), "{load:?}");
    }
    let (bytes, _) = allocated(|| ScalableBloomFilter::from_standalone(&standalone));
    assert!(bytes < 2 * standalone.len(), "{bytes} bytes for {}", standalone.len());
}

/// With a different seed or k, lookups would probe different bits than the inserts set.
#[test]
fn filters_with_different_parameters_are_refused() {
    let of = |filters: &[BloomFilter]| {
        let bytes: Vec<u8> = filters.iter().flat_map(BloomFilter::to_standalone).collect();
        let footer = sample().to_standalone();
        let bytes = [&bytes[..], &footer[footer.len() - FOOTER_BYTES - 2 * 16..]].concat();
        ScalableBloomFilter::from_standalone(&bytes).map(|_| ())
    };
    let [first, second, third] = [0, 1, 2].map(|at| sample().filters()[at].clone());
    assert_eq!(of(&[first.clone(), second.clone(), third.clone()]), Ok(()));
    let k = third.k();
    let of_other_k = BloomFilter::with_blocks(second.n_blocks(), k + 1).unwrap().with_seed(99).unwrap();
    let refused = of(&[first.clone(), of_other_k, third.clone()]).text();
    assert_eq!(refused, impossible("k", u64::from(k) + 1));
    let of_other_seed = BloomFilter::with_blocks(first.n_blocks(), k).unwrap().with_seed(7).unwrap();
    let refused = of(&[of_other_seed, second.clone(), third.clone()]).text();
    assert_eq!(refused, impossible("seed", 7));
    // In reverse order, the first filter, the smallest, would get the keys of the last.
    assert!(of(&[third, second, first]).is_err());
}

/// A different writer may choose a different k. The next filter is then as large as the false-positive rate requires
/// with this k.
#[test]
fn filters_of_any_k_keep_growing() {
    let one = BloomFilter::with_blocks(10, 2).unwrap().with_seed(99).unwrap().to_standalone();
    let footer = forge(&with_fpr(60, 0.1).to_standalone(), 0, &[1]);
    let bytes = [&one[..], &footer[footer.len() - FOOTER_BYTES..]].concat();
    let grown = grown(ScalableBloomFilter::from_standalone(&bytes).unwrap(), 61);
    let [_, next] = grown.filters() else { panic!("{grown:?}") };
    let bits_per_key = next.byte_len() as f64 * 8.0 / 120.0;
    assert_eq!((next.k(), next.seed()), (2, 99));
    assert!((0.003..0.1 * 0.15 * 0.85).contains(&sizing::fpr(bits_per_key, 2).unwrap()), "{bits_per_key}");
}

/// Asserts that the filter contains `mix` of these numbers, and that its bytes give the same filter, growing alike.
fn assert_holds(filter: &ScalableBloomFilter, numbers: std::ops::Range<u64>) {
    assert!(numbers.clone().all(|number| filter.contains_hash(mix(number))));
    let mut read = ScalableBloomFilter::from_standalone(&filter.to_standalone()).unwrap();
    assert!(read == *filter, "{filter:?}");
    let mut written = filter.clone();
    let more: Vec<u64> = (numbers.end..numbers.end + 2_000).map(mix).collect();
    written.insert_batch(&more);
    read.insert_batch(&more);
    assert!(read == written, "{filter:?}");
}

/// `mix` of each of these numbers, in a filter of fixed size made for them.
fn fixed(numbers: std::ops::Range<u64>, fpr: f64) -> BloomFilter {
    let mut filter = BloomFilter::with_fpr(numbers.clone().count() as u64, fpr).unwrap();
    filter.insert_batch(&numbers.map(mix).collect::<Vec<_>>());
    filter
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn a_filter_of_fixed_size_goes_on_growing() {
    for (fpr, most, of_plan) in [
        (0.01, 0.02, 0.02),
        (0.01, 0.1, 0.1),
        (0.05, 0.06, 0.06),
        (0.001, 0.0012, 0.0012),
        (1e-4, 2e-4, 2e-4),
    ] {
        let old = fixed(0..5_000, fpr).with_kernel(reference_kernel());
        let (k, taken) = (old.k(), old.estimated_fpr());
        let mut filter = ScalableBloomFilter::from_filter(old.clone(), 5_000, most).unwrap();
        assert!(
            filter.fpr() <= of_plan && filter.fpr() >= 0.95 * (most - taken),
            "{} of {most}",
            filter.fpr()
        );
        assert_eq!(
            (filter.inserted_keys(), filter.initial_capacity(), filter.filters().len()),
            (5_000, 5_000, 2)
        );
        assert!(filter.filters()[0] == old && filter.filters()[1].k() == k);
        assert_eq!(filter.filters()[1].n_modules(), old.n_modules());
        assert_eq!(filter.filters()[1].kernel(), reference_kernel());
        assert_holds(&filter, 0..5_000);
        for keys in [5_001, 50_000, 200_000] {
            filter = filter.with_kernel(Kernel::active());
            filter.insert_batch(&(5_000..keys).map(mix).collect::<Vec<_>>());
            let estimated = filter.estimated_fpr();
            println!("{fpr} to {most}: {estimated} with {keys} keys");
            assert!(
                estimated <= most && estimated >= taken,
                "{estimated} with {keys} keys, requested {most}"
            );
        }
        assert_holds(&filter, 0..200_000);
        // The filter that was full is too small for the series, so it is replaced.
        filter.clear();
        let filter = grown(filter, 5_000);
        assert!(filter.filters().len() == 1 && filter.estimated_fpr() < filter.fpr());
        assert_holds(&filter, 0..5_000);
    }
    // Few keys in a filter that was made for more keys leave the whole rate to later filters.
    let filter = ScalableBloomFilter::from_filter(fixed(0..5_000, 1e-5), 5_000, 0.01).unwrap();
    assert_eq!(filter.fpr(), 0.01);
    let empty = ScalableBloomFilter::from_filter(
        BloomFilter::with_blocks(8, 6).unwrap().with_seed(9).unwrap(),
        0,
        0.01,
    );
    let empty = empty.unwrap();
    assert_eq!((empty.seed(), empty.initial_capacity(), empty.filters()[1].seed()), (9, 1, 9));
}

#[test]
fn a_filter_that_cannot_go_on_is_refused() {
    let filter = fixed(0..1_000, 0.01);
    let taken = filter.estimated_fpr();
    let grow = |fpr| ScalableBloomFilter::from_filter(filter.clone(), 1_000, fpr).map(|filter| filter.fpr());
    for value in [0.0, -0.1, 1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(grow(value).text(), not_a_rate(value));
    }
    let text = grow(taken).text();
    let least = lowest(&text);
    assert!(shows(&text, "rate of ", taken) && least > taken && least < 1.03 * taken, "{text}");
    assert_eq!(lowest(&grow(least * (1.0 - 1e-5)).text()), least);
    assert!(grow(least).unwrap() >= SCALABLE_MIN_FPR);
    for (k, n_modules) in (1..=16).flat_map(|k| [(k, 1), (k, 2)]) {
        let filter = of_modules(n_modules, 100, k);
        let grow = |fpr| ScalableBloomFilter::from_filter(filter.clone(), 100, fpr);
        let lowest = lowest(&grow(1e-9).text());
        assert!((SCALABLE_MIN_FPR..1.0).contains(&lowest), "k {k}: {lowest}");
        assert_holds(&grown(grow(lowest).unwrap(), 150), 0..0);
    }
}

/// `mix` of these numbers, in a filter that grows from `initial_capacity`.
fn of(initial_capacity: usize, fpr: f64, numbers: std::ops::Range<u64>) -> ScalableBloomFilter {
    let mut filter = with_fpr(initial_capacity, fpr);
    filter.insert_batch(&numbers.map(mix).collect::<Vec<_>>());
    filter
}

/// Inserts `mix` of `first` and the numbers after it, until the filter counts `keys` inserted keys. Returns the number
/// after the last.
fn filled_up(filter: &mut ScalableBloomFilter, first: u64, keys: u64) -> u64 {
    let mut number = first;
    while filter.inserted_keys() < keys {
        filter.insert_hash(mix(number));
        number += 1;
    }
    number
}

#[test]
fn a_union_of_filters_with_few_keys_is_one_filter() {
    let mut filter = of(20_000, 0.01, 0..1);
    filter.union_with(&of(20_000, 0.01, 1..2)).unwrap();
    assert_eq!((filter.inserted_keys(), filter.filters().len()), (2, 1));
    assert_eq!((filter.initial_capacity(), filter.fpr()), (20_000, 0.01));
    let end = filled_up(&mut filter, 2, 20_000);
    assert_eq!((filter.filters().len(), filter.byte_len()), (1, with_fpr(20_000, 0.01).byte_len()));
    assert_holds(&filter, 0..end);
    // It then grows as one that was never united.
    filled_up(&mut filter, end, 60_001);
    let sizes = |filter: &ScalableBloomFilter| -> Vec<usize> {
        filter.filters().iter().map(BloomFilter::n_blocks).collect()
    };
    assert_eq!(sizes(&filter), sizes(&grown(with_fpr(20_000, 0.01), 60_001)));
}

#[test]
fn a_union_takes_the_tightest_room() {
    // Room for 60 keys, and for 10.
    let mut filter = of(100, 0.01, 0..40);
    filter.union_with(&of(100, 0.01, 40..130)).unwrap();
    assert_eq!(filter.filters().len(), 2);
    filter.union_with(&of(100, 0.01, 130..140)).unwrap();
    filter.union_with(&of(100, 0.01, 140..200)).unwrap();
    assert_eq!((filter.filters().len(), filter.inserted_keys()), (2, 200));
    assert_holds(&filter, 0..200);
    // A search through all filters would be quadratic in their number.
    let mut full = of(1, 0.01, 0..1);
    for doubled in 1..=15 {
        full.union_with(&full.clone()).unwrap();
        assert_eq!(full.filters().len(), 1 << doubled);
    }
}

#[test]
fn a_hundred_unions_take_the_room_that_there_is() {
    let mut filter = of(1_000, 0.01, 0..9);
    for i in 1..100 {
        filter.union_with(&of(1_000, 0.01, 9 * i..9 * (i + 1))).unwrap();
    }
    assert_eq!((filter.inserted_keys(), filter.filters().len(), filter.fpr()), (900, 1, 0.01));
    assert_holds(&filter, 0..900);

    // Full filters stay apart, and new keys go into one filter behind them.
    for initial_capacity in [1, 30] {
        let keys = initial_capacity as u64;
        let mut filter = of(initial_capacity, 0.01, 0..keys);
        for i in 1..100 {
            filter.union_with(&of(initial_capacity, 0.01, keys * i..keys * (i + 1))).unwrap();
        }
        assert!(filter.inserted_keys() == 100 * keys && filter.filters().len() == 100, "{filter:?}");
        assert_holds(&filter, 0..100 * keys);
        let requested = filter.fpr();
        assert!((0.01..0.2).contains(&requested) && filter.estimated_fpr() < requested, "{requested}");
        let more = filled_up(&mut filter, 100 * keys, 102 * keys);
        assert_eq!(filter.filters().len(), 101);
        assert!(filter.byte_len() < 100 * with_fpr(initial_capacity, 0.01).byte_len() + 400);
        assert_holds(&filter, 0..more);
    }
}

/// The rates of all filters, each filled to its capacity, add up to at most the rate that the union reports, which is
/// at most the sum of the rates of both.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn a_union_keeps_the_rate_that_it_reports() {
    for (ours, theirs) in [(1_000, 1_000), (1_000, 40), (40, 5_000)] {
        let mut filter = of(ours, 0.02, 0..10_000);
        filter.union_with(&of(theirs, 0.02, 10_000..20_000)).unwrap();
        assert!((0.02..0.04).contains(&filter.fpr()), "{}", filter.fpr());
        assert_holds(&filter, 0..20_000);
        for keys in [20_000, 40_000, 150_000] {
            let first = filter.inserted_keys();
            filled_up(&mut filter, 20_000 + first, keys);
            let estimated = filter.estimated_fpr();
            println!(
                "{ours} and {theirs}, {keys} keys: {:.3} of the reported rate",
                estimated / filter.fpr()
            );
            assert!(estimated < filter.fpr(), "{estimated}, reported {}", filter.fpr());
        }
        let largest = filter.filters().iter().map(BloomFilter::n_blocks).max();
        assert_eq!(filter.filters().last().map(BloomFilter::n_blocks), largest, "it was added last");
    }
    // A filter that had a fixed size, and a filter of a different growth and tightening.
    let old = fixed(0..3_000, 0.02);
    let k = old.k();
    let mut filter = ScalableBloomFilter::from_filter(old, 3_000, 0.05).unwrap();
    let theirs = (2..).map(|i| with_growth(100, 0.001 * f64::from(i), 3, 0.7));
    let mut other = theirs.take(900).find(|other| other.filters()[0].k() == k).unwrap();
    other.insert_batch(&(3_000..6_000).map(mix).collect::<Vec<_>>());
    let sum = 0.05 + other.fpr();
    for [mut a, b] in [[filter.clone(), other.clone()], [other, filter.clone()]] {
        a.union_with(&b).unwrap();
        assert!(a.fpr() < sum, "{}", a.fpr());
        assert_holds(&a, 0..6_000);
        filled_up(&mut a, 6_000, 50_000);
        assert!(a.estimated_fpr() < a.fpr(), "{a:?}");
    }
    // The sum of these rates is above every rate that a filter can have.
    let mut sum = 0.0;
    filter = filled(with_fpr(60, 0.7), &numbers()[..300]);
    for _ in 0..8 {
        filter.union_with(&filter.clone()).unwrap();
        assert!(filter.fpr() < 1.0 && filter.fpr() >= sum);
        sum = filter.fpr();
    }
    assert_holds(&filter, 0..0);
}

#[test]
fn a_union_with_an_empty_filter_changes_nothing() {
    let mut filter = sample();
    filter.union_with(&with_fpr(60, 0.1).with_seed(99).unwrap()).unwrap();
    assert_eq!(filter, sample());
    // The room of an empty filter is not lost either.
    let mut filter = with_fpr(60, 0.1).with_seed(99).unwrap().with_kernel(reference_kernel());
    filter.union_with(&sample()).unwrap();
    assert_eq!(filter.inserted_keys(), sample().inserted_keys());
    assert_eq!(filter.filters(), sample().filters());
    assert!(filter.filters().iter().all(|filter| filter.kernel() == reference_kernel()));
    assert!((0.1..0.12).contains(&filter.fpr()), "{}", filter.fpr());
}

#[test]
fn a_cleared_union_is_as_one_of_no_union() {
    let mut filter = grown(with_fpr(2, 0.1), 2);
    filter.union_with(&grown(with_fpr(3_000, 0.1), 3_000)).unwrap();
    filter.clear();
    assert_eq!(filter, with_fpr(2, 0.1));
    let mut filter = grown(with_fpr(3_000, 0.1), 3_000);
    filter.union_with(&grown(with_fpr(2, 0.1), 2)).unwrap();
    filter.clear();
    assert_eq!(filter, with_fpr(3_000, 0.1));
}

#[test]
fn filters_that_cannot_be_united_stay_as_they_are() {
    let refused = |filter: &ScalableBloomFilter, other: &ScalableBloomFilter| {
        let mut united = filter.clone();
        let text = united.union_with(other).text();
        assert!(united == *filter);
        text
    };
    let (ours, theirs) = (sample(), filled(with_fpr(60, 0.01).with_seed(99).unwrap(), &numbers()[..300]));
    let probes = different_k(ours.filters()[0].k(), theirs.filters()[0].k());
    assert_eq!(refused(&ours, &theirs), probes);
    let theirs = filled(with_fpr(60, 0.1), &numbers()[..300]);
    assert_eq!(refused(&ours, &theirs), different_seed(99, 0));
    // Of different sizes, so that no filter is united with one of the same size.
    let [ours, theirs] = [1, 2].map(|n| grown(with_modules(n, 1, 600 / n, 0.1, 2, 0.85), 9));
    let modules = different_size(1, 2, "modules");
    assert_eq!(refused(&ours, &theirs), modules);
}

#[test]
fn filters_that_differ_in_one_property_are_not_equal() {
    let of = |growth, keys: &[String]| filled(with_growth(60, 0.1, growth, 0.85), keys);
    let filter = of(2, &numbers()[..9]);
    assert!(filter == of(2, &numbers()[..9]));
    assert!(filter != of(2, &numbers()[9..18]), "other bits");
    assert!(filter != of(3, &numbers()[..9]), "another growth");
    let other = ScalableBloomFilter::from_standalone(&forge_loads(&filter.to_standalone(), 1, |loads| {
        loads[0][0] = 8
    }));
    assert!(filter != other.unwrap(), "another number of keys");
}

#[test]
fn clearing_allocates_nothing() {
    let mut filter = sample();
    assert_eq!(allocated(|| filter.clear()).0, 0);
    assert!(filter == with_fpr(60, 0.1).with_seed(99).unwrap());
    assert_eq!(filter.with_seed(8).unwrap().seed(), 8);
}

#[test]
fn an_initial_capacity_forged_to_be_a_little_larger_is_refused() {
    let bytes = with_fpr(10_000, 0.01).to_standalone();
    let open =
        |capacity: u64| ScalableBloomFilter::from_standalone(&forge(&bytes, 16, &capacity.to_le_bytes()));
    assert!(open(10_000).is_ok() && open(10_040).is_ok(), "one part in a hundred is for rounding");
    assert_eq!(open(10_500).text(), impossible("initial capacity", 10_500));
}

#[test]
fn the_seed_is_set_before_the_first_key() {
    let filter = with_fpr(10, 0.01).with_seed(7).unwrap();
    assert_eq!((filter.seed(), filter.filters()[0].seed()), (7, 7));
    let empty = ScalableBloomFilter::from_standalone(&filter.to_standalone()).unwrap();
    assert_eq!(empty.with_seed(5).unwrap().seed(), 5);
    // This holds whatever the bytes say about the keys.
    let forged =
        forge_loads(&sample().to_standalone(), 3, |loads| loads.iter_mut().for_each(|load| load[0] = 0));
    let forged = ScalableBloomFilter::from_standalone(&forged).unwrap();
    assert_eq!(forged.inserted_keys(), 0);
    assert_eq!(forged.with_seed(1).text(), too_late(1));
}

#[test]
#[should_panic(expected = "one answer per hash")]
fn batches_need_one_answer_per_hash() {
    with_fpr(10, 0.01).contains_batch(&[1, 2], &mut [false]);
}

#[test]
#[should_panic(expected = "a byte per eight hashes")]
fn bitmaps_need_a_byte_per_eight_hashes() {
    with_fpr(10, 0.01).contains_bitmap(&[1, 2], &mut [0; 2]);
}

#[test]
fn a_copy_goes_on_as_its_original() {
    let mut filter = sample().with_kernel(reference_kernel());
    let mut copy = filter.clone();
    assert!(copy == filter && copy.filters().iter().all(|filter| filter.kernel() == reference_kernel()));
    for filter in [&mut copy, &mut filter] {
        assert!(filter.try_insert("new").unwrap() && !filter.try_insert("new").unwrap());
        filter.insert_batch(&(0..500).map(mix).collect::<Vec<_>>());
    }
    assert!(copy == filter);
}

/// A forged rate of all filters must not be below the sum that the filters to come add, because the bytes that are
/// written later would then be refused.
#[test]
fn a_rate_of_all_that_cannot_be_kept_is_refused() {
    let mut filter = ScalableBloomFilter::with_fpr(1, 0.9).unwrap();
    filter.insert("bee");
    let bytes = filter.to_standalone();
    for (of_all, is_kept) in [(5e-324, false), (0.5, false), (0.9, true), (f64::MAX, true)] {
        let forged = forge(&bytes, 8, &f64::to_le_bytes(of_all));
        let read = ScalableBloomFilter::from_standalone(&forged);
        assert_eq!(read.is_ok(), is_kept, "{of_all}");
        let Ok(forged) = read else { continue };
        // The bytes that are written after unions can be read.
        let mut ours = ScalableBloomFilter::with_fpr(1_000, 0.9).unwrap();
        ours.extend(0..500);
        for _ in 0..2 {
            ours.union_with(&forged).unwrap();
        }
        assert!(ours.fpr() > 0.0);
        let copy = ScalableBloomFilter::from_standalone(&ours.to_standalone()).unwrap();
        assert!(copy.contains("bee") && (0..500).all(|key| copy.contains(key)));
    }
}

/// A word has bits for the answers of 64 filters.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn a_hundred_filters_of_two_modules_lose_no_key() {
    let mut filter = of(100, 1e-4, 0..100);
    for i in 1..100 {
        filter.union_with(&of(100, 1e-4, 100 * i..100 * (i + 1))).unwrap();
    }
    filter.insert_hash(mix(10_000));
    assert_eq!((filter.filters().len(), filter.filters()[0].n_modules()), (101, 2));
    let (before, hashes) = (filter.clone(), (0..=10_000).map(mix).collect::<Vec<_>>());
    assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
    // Batches while the newest has room.
    filter.try_insert_batch(&hashes, |is_new| assert!(!is_new)).unwrap();
    assert!(filter == before);
    assert_holds(&filter, 0..10_001);
}

#[test]
fn a_second_module_of_another_size_is_refused() {
    let filter = with_fpr(1, 1e-4);
    let (bytes, k) = (filter.to_standalone(), filter.filters()[0].k());
    let of = |sizes: [usize; 2]| {
        let modules = sizes.map(|n_blocks| BloomFilter::with_blocks(n_blocks, k).unwrap().to_standalone());
        ScalableBloomFilter::from_standalone(&[&modules.concat(), &bytes[bytes.len() - 88..]].concat())
            .map(drop)
    };
    assert_eq!(of([9, 9]), Ok(()));
    assert_eq!(of([9, 10]).text(), impossible("blocks of a second module", 10));
}

/// From 6 MiB for each MiB of the L2 cache on, of which at most 2 count, batches of lookups prefetch, 16 hashes ahead.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn batches_in_filters_beyond_the_caches_answer_as_single_lookups() {
    let hashes: Vec<u64> = (0..2_000).map(mix).collect();
    for (n_modules, kernel) in
        [1, 2].into_iter().flat_map(|n| Kernel::available().map(move |kernel| (n, kernel)))
    {
        let mut first = of_modules(n_modules, 200_000 / n_modules, 6);
        first.insert_batch(&hashes[..500]);
        let filter = ScalableBloomFilter::from_filter(first, 500, 0.01).unwrap();
        let mut filter = filter.with_kernel(kernel);
        filter.insert_batch(&hashes[500..1_000]);
        assert_eq!(filter.filters().len(), 2);
        for length in [0, 1, 15, 16, 17, 1_500] {
            let queried = &hashes[2_000 - length..];
            let mut found = vec![length % 2 == 0; length];
            filter.contains_batch(queried, &mut found);
            let answers: Vec<_> = queried.iter().map(|&hash| filter.contains_hash(hash)).collect();
            assert_eq!(found, answers, "{kernel}, {n_modules} modules, {length} hashes");
        }
        assert!(hashes[..1_000].iter().all(|&hash| filter.contains_hash(hash)));
    }
}
