//! Every allocation of the methods that return errors is refused in turn. The method must then report it, and leave the
//! object as it was.

mod common;

use std::fmt::Debug;
use std::ops::RangeInclusive;

use bloomline::bank::{BankView, FilterBank, IndexFooter, IndexView};
use bloomline::variants::{CountingBloomFilter, Frontier, ScalableBloomFilter, StandardBloomFilter};
use bloomline::{
    AlignedBytes, AtomicBloomFilter, BloomFilter, BloomView, Error, ErrorKind, FilterBuilder, mix,
};
use common::allocations::with_allowed;
use common::of_modules;

/// Calls `work` on the object that `make` makes, with 0, 1, 2, ... allocations allowed, until it succeeds. After each
/// failure, runs `unchanged`, and `work` again, now with memory. Runs `done` after each success. Returns how often it
/// failed.
///
/// Each attempt has an object of its own, because an object does not request memory again that it reserved before a
/// failure, so the next failure would not be tested.
fn sweep<S, T>(
    make: impl Fn() -> S,
    work: impl Fn(&mut S) -> Result<T, Error>,
    unchanged: impl Fn(&S),
    done: impl Fn(&S, T),
) -> usize {
    for allowed in 0.. {
        let mut subject = make();
        match with_allowed(allowed, || work(&mut subject)) {
            Ok(result) => {
                done(&subject, result);
                return allowed;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::OutOfMemory);
                assert_ne!(error.to_string(), "out of memory: cannot allocate 0 bytes");
                unchanged(&subject);
                let result = work(&mut subject).unwrap();
                done(&subject, result);
            }
        }
    }
    unreachable!()
}

/// Like [`sweep`], for a function that makes a new object. Returns the object, and how often the function failed.
fn attempts<T: Debug>(make: impl Fn() -> Result<T, Error>) -> (T, usize) {
    let failures = sweep(|| (), |()| make().map(drop), |()| (), |(), ()| ());
    (make().unwrap(), failures)
}

fn builder_of(keys: u64, bits_per_key: f64) -> FilterBuilder {
    let mut builder = FilterBuilder::with_bits_per_key(bits_per_key).unwrap();
    // In one piece, or in several.
    builder.try_reserve(if bits_per_key > 10.0 { 2 * keys as usize } else { 0 }).unwrap();
    // Some keys twice, which needs more memory.
    (0..keys).chain(0..keys / 2).for_each(|key| builder.insert_hash(mix(key)));
    builder
}

#[test]
fn a_builder_keeps_its_keys() {
    for (keys, bits_per_key) in
        [(0, 10.0), (1, 10.0), (34, 10.0), (1_000, 10.0), (20_000, 10.0), (20_000, 20.0)]
    {
        let same = builder_of(keys, bits_per_key);
        let n = same.len();
        let mut expected = b"kept".to_vec();
        same.clone().finish_compact(&mut expected).unwrap();
        let failures = sweep(
            || (builder_of(keys, bits_per_key), b"kept".to_vec()),
            |(builder, out)| builder.finish_compact(out),
            |(builder, out)| assert_eq!((builder.len(), &**out), (n, b"kept".as_slice())),
            |(builder, out), ()| assert!(*out == expected && builder.is_empty()),
        );
        assert!(failures >= if keys < 2 { 2 } else { 5 }, "{keys} keys: only {failures} allocations");

        let expected = same.clone().finish().unwrap();
        let failures = sweep(
            || builder_of(keys, bits_per_key),
            FilterBuilder::finish,
            |builder| assert_eq!(builder.len(), n),
            |builder, filter| {
                assert!(builder.is_empty());
                assert_eq!((filter.known_keys(), &filter), (Some(keys), &expected));
            },
        );
        assert!(failures != 0);
    }
}

#[test]
fn a_builder_grows_or_reports() {
    let mut same = FilterBuilder::with_bits_per_key(10.0).unwrap();
    let hashes: Vec<u64> = (0..20_000).map(mix).collect();
    same.insert_batch(&hashes);
    let expected = same.finish().unwrap();
    let failures = sweep(
        || FilterBuilder::with_bits_per_key(10.0).unwrap(),
        // Goes on where memory ran out.
        |builder| {
            hashes[builder.len()..].iter().try_for_each(|&hash| {
                builder.try_reserve(1)?;
                builder.insert_hash(hash);
                Ok(())
            })
        },
        |builder| assert!(builder.len() < 20_000),
        |builder, ()| assert_eq!(builder.clone().finish().unwrap(), expected),
    );
    // 4, 8, ... 8192, then two pieces, the first of which needs the list of pieces too.
    assert_eq!(failures, 12 + 3);

    for (n_before, n) in [(0, 1_000), (0, 20_000), (5, 1_000), (5, 20_000)] {
        let failures = sweep(
            || builder_of(n_before, 10.0),
            |builder| builder.try_reserve(n),
            |builder| assert!(builder.len() < 10),
            |builder, ()| {
                let mut builder = builder.clone();
                builder.try_reserve(n).unwrap();
                with_allowed(0, || builder.extend(0..n as u64));
                assert!(builder.len() >= n);
            },
        );
        // If there are hashes and many more come, also for the list of pieces.
        assert_eq!(failures, if n_before > 0 && n > 8_192 { 2 } else { 1 }, "{n_before}, {n}");
    }
}

#[test]
fn filters_are_copied_or_not() {
    for (n_modules, n_blocks) in [(1, 1), (1, 7), (1, 100), (2, 50)] {
        let mut filter = of_modules(n_modules, n_blocks, 6);
        (0..100).for_each(|key| _ = filter.insert_hash(mix(key)));
        assert_eq!(attempts(|| filter.as_view().to_filter()), (filter.clone(), 1));
        let shared = AtomicBloomFilter::from(filter.clone());
        assert_eq!(attempts(|| shared.to_filter()), (filter.clone(), 1));
    }
    let mut short = Vec::new();
    builder_of(34, 10.0).finish_compact(&mut short).unwrap();
    let view = BloomView::from_compact(&short).unwrap();
    assert_eq!(attempts(|| view.to_filter()), (view.to_filter().unwrap(), 1));
}

/// Memory is refused as often as `expected` says.
fn a_scalable_filter_grows(fpr: f64, expected: RangeInclusive<usize>) {
    let make = || ScalableBloomFilter::with_fpr(10, fpr).unwrap();
    let hashes: Vec<u64> = (0..200).map(mix).collect();
    let mut filter = make();
    hashes.iter().for_each(|&hash| _ = filter.insert_hash(hash));
    assert_eq!(filter.filters().len(), 5);
    let failures = sweep(
        || (make(), 0),
        |(growing, inserted)| {
            while let Some(&hash) = hashes.get(*inserted) {
                growing.try_insert_hash(hash)?;
                *inserted += 1;
            }
            Ok(())
        },
        |(growing, inserted)| {
            let mut same = make();
            hashes[..*inserted].iter().for_each(|&hash| _ = same.insert_hash(hash));
            assert!(*growing == same, "after {inserted}");
        },
        |(growing, _), ()| assert!(*growing == filter),
    );
    assert!(expected.contains(&failures), "{failures}");
    let in_batch = sweep(
        || (make(), 0),
        |(growing, inserted)| growing.try_insert_batch(&hashes[*inserted..], |_| *inserted += 1),
        // The hashes that it inserted before the failure stay, and were answered.
        |(growing, inserted)| {
            let mut same = make();
            same.insert_batch(&hashes[..*inserted]);
            assert!(*growing == same, "after {inserted}");
        },
        |(growing, _), ()| assert!(*growing == filter),
    );
    assert_eq!(in_batch, failures);
}

#[test]
fn a_scalable_filter_grows_or_stays() {
    // Memory for each filter, and for the lists of filters and of their keys if these grow.
    a_scalable_filter_grows(0.1, 5..=8);
    // Two modules are one piece of memory.
    a_scalable_filter_grows(0.0001, 5..=8);
    let filter = BloomFilter::with_blocks(8, 6).unwrap();
    let (growing, failures) = attempts(|| {
        let filter = filter.as_view().to_filter()?;
        ScalableBloomFilter::from_filter(filter, 10, 0.01)
    });
    // The list of filters, the list of their keys, and two filters.
    assert_eq!((growing.filters().len(), failures), (2, 4));
}

/// If an item were in the filter but not in the queue, it would never come out.
#[test]
fn a_frontier_queues_an_item_or_has_not_seen_it() {
    for is_growing in [false, true] {
        let make =
            || if is_growing { Frontier::growing(10, 0.1) } else { Frontier::with_fpr(100, 0.1) }.unwrap();
        let items = || (0_u64..40).map(|i| i as i64);
        let mut frontier = make();
        frontier.extend(items());
        let failures = sweep(
            || (make(), 0),
            |(frontier, inserted)| {
                while let Some(item) = items().nth(*inserted) {
                    frontier.try_insert(item)?;
                    *inserted += 1;
                }
                Ok(())
            },
            |(frontier, inserted)| {
                let mut same = make();
                same.extend(items().take(*inserted));
                assert!(frontier.to_standalone() == same.to_standalone(), "after {inserted}");
            },
            |(same, _), ()| assert!(same.to_standalone() == frontier.to_standalone()),
        );
        assert!(failures >= if is_growing { 6 } else { 3 }, "{failures}");
    }
}

#[test]
fn a_filter_is_folded_or_stays() {
    for n_modules in [1, 2] {
        let mut filter = of_modules(n_modules, 64 / n_modules, 6);
        filter.insert("ant");
        let unchanged = |folded: &BloomFilter| assert!(*folded == filter);
        let failures = sweep(
            || filter.clone(),
            |filter| filter.fold(2),
            unchanged,
            |folded, ()| {
                assert!(folded.n_blocks() == 32 && folded.contains("ant"));
            },
        );
        assert_eq!(failures, 1);
        let failures = sweep(
            || filter.clone(),
            |filter| filter.shrink_to_fpr(0.01),
            unchanged,
            |shrunk, _| {
                assert!(shrunk.n_blocks() < 32 && shrunk.contains("ant"));
            },
        );
        assert!(failures >= 2);
    }
}

/// A forged length cannot make a decoder allocate, but a filter that is merely large must not abort the process.
#[test]
fn every_decoder_reports_that_memory_ran_out() {
    for n_modules in [1, 2] {
        let mut filter = of_modules(n_modules, 50, 6);
        filter.insert("ant");
        let (standalone, compact) = (filter.to_standalone(), filter.to_compact());
        assert_eq!(attempts(|| BloomFilter::from_standalone(&standalone)), (filter.clone(), 1));
        assert_eq!(attempts(|| BloomFilter::from_compact(&compact)), (filter, 1));
        assert_eq!(attempts(|| AlignedBytes::copy_of(&compact)).1, 1);
    }

    let mut standard = StandardBloomFilter::with_fpr(100, 0.01).unwrap();
    standard.insert("ant");
    let bytes = standard.to_standalone();
    assert_eq!(attempts(|| StandardBloomFilter::from_standalone(&bytes)), (standard, 1));

    let mut counting = CountingBloomFilter::with_fpr(100, 0.01).unwrap();
    counting.insert("ant");
    let bytes = counting.to_standalone();
    assert_eq!(attempts(|| CountingBloomFilter::from_standalone(&bytes)), (counting, 2));

    for (fpr, n_modules) in [(0.01, 1), (0.0001, 2)] {
        let mut scalable = ScalableBloomFilter::with_fpr(10, fpr).unwrap();
        scalable.extend(0..100);
        assert_eq!(scalable.filters()[0].n_modules(), n_modules);
        let bytes = scalable.to_standalone();
        // The list of filters, the list of their keys, and the filters.
        let expected = 2 + scalable.filters().len();
        assert_eq!(attempts(|| ScalableBloomFilter::from_standalone(&bytes)), (scalable, expected));
    }

    for mut frontier in [Frontier::with_fpr(100, 0.01).unwrap(), Frontier::growing(100, 0.01).unwrap()] {
        frontier.extend((0..10).map(|i| i.to_string()));
        let bytes = frontier.to_standalone();
        let (copy, failures) = attempts(|| Frontier::<String>::from_standalone(&bytes));
        assert!(copy.iter().eq(frontier.iter()) && failures > 10, "{failures}");
    }
}

#[test]
fn an_index_is_opened_or_reports() {
    let bytes = include_bytes!("golden/index-6-files.bin");
    let (footer, failures) = attempts(|| IndexFooter::read(bytes));
    // The rule, the lists of names, of entries and of banks, five names that are not empty, and the files of three banks.
    assert_eq!((footer.files(), failures), (6, 4 + 5 + 3));
    assert_eq!(attempts(|| IndexView::from_standalone(bytes)).1, failures);
    let view = IndexView::from_standalone(bytes).unwrap();
    assert_eq!(attempts(|| view.to_filter(1)).1, 1);
}

#[test]
fn a_bank_stays_as_it_was() {
    let filters: Vec<_> = (0..9)
        .map(|i| {
            let mut filter = BloomFilter::with_blocks(2, 6).unwrap();
            filter.insert(i);
            filter
        })
        .collect();
    // A list of the filters that grows twice, and the bank.
    let (bank, failures) = attempts(|| FilterBank::from_filters(&filters));
    assert_eq!((bank.as_view().slots(), failures), (9, 4));
    let bytes = bank.to_standalone();
    assert_eq!(attempts(|| FilterBank::from_standalone(&bytes)).1, 1);
    assert_eq!(attempts(|| BankView::from_standalone(&bytes)).1, 0);
    assert_eq!(attempts(|| bank.as_view().to_filter(8)).1, 1);

    let unchanged = |same: &FilterBank| {
        assert_eq!((same.as_view().slots(), same.capacity()), (9, 16));
        assert!((0..9).all(|slot| same.as_view().to_filter(slot).unwrap() == filters[slot]));
    };
    let failures = sweep(
        || bank.clone(),
        |bank| bank.try_reserve(9),
        unchanged,
        |bank, ()| {
            assert_eq!((bank.as_view().slots(), bank.capacity()), (9, 32));
        },
    );
    assert_eq!(failures, 1);
    let failures = sweep(
        || bank.clone(),
        |bank| bank.push_all(&filters[..7]),
        unchanged,
        |bank, range| {
            assert_eq!((range, bank.as_view().slots(), bank.capacity()), (9..16, 16, 16));
            assert!((0..16).all(|slot| bank.as_view().to_filter(slot).unwrap() == filters[slot % 9]));
        },
    );
    assert_eq!(failures, 2);
    let mut roomy = bank.clone();
    roomy.try_reserve(9).unwrap();
    assert_eq!(with_allowed(0, || roomy.push(&filters[0])), Ok(9));
}
