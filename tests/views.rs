//! A filter read in place describes, folds and unites as its owned copy does, without making that copy.
#![allow(clippy::needless_borrows_for_generic_args, reason = "borrowed is what is tested")]

mod common;

use common::error_texts::*;
use common::of_modules;
use common::shrinking::Shrinking;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use bloomline::{
    AlignedBytes, AtomicBloomFilter, BloomFilter, BloomView, ErrorKind, FilterBuilder, Kernel, OwnedView, mix,
};
use common::allocations::allocated;

/// Compact bytes of 1 to 6,400 keys, which are short filters of every number of lanes, whole blocks, and two modules.
fn compact_filters() -> impl Iterator<Item = Vec<u8>> {
    let in_one = (1..420).chain([450, 900, 6_400]).map(|keys| (keys, 10.0));
    in_one.chain([(1_230, 20.0), (6_401, 20.0)]).map(|(keys, bits_per_key)| {
        let mut builder = FilterBuilder::with_bits_per_key(bits_per_key).unwrap();
        (0..keys).for_each(|i| builder.insert_hash(mix(keys << 32 | i)));
        let mut bytes = vec![0];
        builder.finish_compact(&mut bytes).unwrap();
        bytes
    })
}

/// Filters of every k and of all sizes, because each kernel has its own way to ask four with one mask.
#[test]
fn many_filters_answer_as_one_by_one() {
    let filters: Vec<BloomFilter> = (0..64)
        .map(|i| {
            // Runs of equal k, and pairs that differ.
            let k = if i < 16 { i + 1 } else { 6 + i / 40 };
            let n_modules = [1, 1, 1, 2, 1, 1, 3][i as usize % 7];
            let mut filter = of_modules(n_modules, 1 << (i % 8), k as u32);
            (0..40 << (i % 8)).for_each(|key| _ = filter.insert_hash(mix(i << 32 | key)));
            filter
        })
        .collect();
    // One of each number of lanes, and two modules.
    let short: Vec<_> = compact_filters().step_by(6).chain(compact_filters().last()).collect();
    for kernel in Kernel::available() {
        let mut found = 0;
        let mut views: Vec<_> = filters.iter().map(BloomFilter::as_view).collect();
        views.extend(short.iter().map(|bytes| BloomView::from_compact(&bytes[1..]).unwrap()));
        views.rotate_left(20);
        let views: Vec<_> = views.into_iter().map(|view| view.with_kernel(kernel)).collect();
        for i in 0..if cfg!(miri) { 10 } else { 4_000 } {
            let hash = mix(((i % 420) << 32) | (i / 420));
            let first = mix(i) as usize % views.len();
            let some = &views[first..first + mix(i + 1) as usize % (views.len() - first)];
            let expected = (0..some.len()).filter(|&i| some[i].contains_hash(hash));
            let asked = BloomView::which_contain(some, hash).inspect(|_| found += 1);
            assert!(asked.eq(expected), "{kernel}: {first} + {}", some.len());
        }
        assert!(cfg!(miri) || found > 1_000, "{kernel}: {found}");
    }
}

#[test]
fn a_view_folds_as_its_copy_does_and_allocates_only_the_result() {
    let mut folds = 0;
    for bytes in compact_filters() {
        let view = BloomView::from_compact(&bytes[1..]).unwrap();
        let n_blocks = view.n_blocks() / view.n_modules();
        for factor in 1..=n_blocks {
            let (allocated, folded) = allocated(|| view.to_folded(factor));
            let mut copy = view.to_filter().unwrap();
            let expected = copy.fold(factor).map(|()| copy);
            assert_eq!(folded, expected);
            let Ok(folded) = folded else { continue };
            assert!(allocated < folded.byte_len() + 64, "{allocated} bytes");
            folds += 1;
        }
        for factor in [0, n_blocks + 1, usize::MAX] {
            assert_eq!(view.to_folded(factor).text(), not_folded(n_blocks, factor));
        }
    }
    assert!(folds > 1_000, "{folds}");
}

/// A copy that claims to have no keys accepts a new seed, so a folded filter keeps the number of its keys.
#[test]
fn a_folded_view_keeps_its_keys_and_seed() {
    let mut filter = BloomFilter::with_blocks(12, 6).unwrap().with_seed(5).unwrap();
    let folded = |filter: &BloomFilter| {
        let bytes = filter.to_standalone();
        let folded = BloomView::from_standalone(&bytes).unwrap().to_folded(4).unwrap();
        (folded.n_blocks(), folded.k(), folded.seed(), folded.known_keys(), folded.contains("ant"))
    };
    assert_eq!(folded(&filter), (3, 6, 5, Some(0), false));
    filter.insert("ant");
    assert_eq!(folded(&filter), (3, 6, 5, None, true));
}

fn answers(view: &BloomView<'_>) -> Vec<bool> {
    (0..2_000).map(|i| view.contains_hash(mix(i))).collect()
}

#[test]
fn an_owned_view_answers_as_a_view_and_copies_no_bytes() {
    for bytes in compact_filters() {
        let bytes: Arc<[u8]> = bytes[1..].into();
        let view = BloomView::from_compact(&bytes).unwrap();
        let (allocated, owned) = allocated(|| OwnedView::from_compact(Arc::clone(&bytes)).unwrap());
        // The `Arc` and its two counts.
        assert_eq!(allocated, 4 * size_of::<usize>());
        assert_eq!(answers(owned.as_view()), answers(&view));
        let once = |i| BloomView::compact_contains_hash(&bytes, mix(i)).unwrap();
        assert!((0..2_000).map(once).eq(answers(&view)));
        assert_eq!(
            ["ant", "bee"].map(|key| owned.as_view().contains(key)),
            ["ant", "bee"].map(|key| view.contains(key))
        );
        assert_eq!(format!("{owned:?}"), format!("Owned({view:?})"));
        assert!(Arc::ptr_eq(owned.get_ref(), &bytes));
    }
}

/// A cache counts all that a filter costs.
#[test]
fn an_owned_view_says_what_it_costs() {
    for bytes in compact_filters() {
        let open = || OwnedView::from_compact(AlignedBytes::copy_of(&bytes[1..]).unwrap()).unwrap();
        let (allocated, owned) = allocated(open);
        assert_eq!(owned.charge(), size_of_val(&owned) + allocated);
    }
}

/// An owned view is for a table that holds its file, and the filter beside it.
#[test]
fn an_owned_view_lives_beside_what_it_reads() {
    struct Table {
        file: Arc<[u8]>,
        filter: OwnedView<Arc<[u8]>>,
    }
    for n_modules in [1, 2] {
        let mut filter = of_modules(n_modules, 10, 6).with_seed(5).unwrap();
        filter.insert("ant");
        let file: Arc<[u8]> = filter.to_standalone().into();
        let table = Table { filter: OwnedView::from_standalone(Arc::clone(&file)).unwrap(), file };
        let table = thread::spawn(|| table).join().unwrap();
        let view = table.filter.as_view();
        assert!(view.to_filter().unwrap() == filter && view.contains("ant") && !view.contains("bee"));
        assert_eq!((view.seed(), view.known_keys(), view.verify()), (5, None, Ok(())));

        let mut damaged = table.file.to_vec();
        damaged[0] ^= 1;
        assert!(OwnedView::from_standalone(&damaged).text().starts_with(DAMAGED));
        let damaged = OwnedView::from_standalone_unverified(damaged).unwrap();
        assert!(damaged.as_view().verify().text().starts_with(DAMAGED));
        let (lanes, found_bytes) = (80 * n_modules as u64, table.file.len() - 64 - 1);
        let cut = OwnedView::from_standalone(&table.file[1..]).text();
        assert_eq!(cut, wrong_size(lanes, "lanes of 8 bytes", found_bytes));
        assert_eq!(OwnedView::from_compact(&table.file).text(), wrong_length(table.file.len()));

        let mut compact = Vec::new();
        filter.write_compact(&mut compact).unwrap();
        let owned = OwnedView::from_compact_with_seed(compact, 5).unwrap();
        assert!(owned.as_view().to_filter().unwrap() == filter && owned.as_view().contains("ant"));
    }
}

#[test]
fn aligned_bytes_start_at_a_cache_line() {
    for len in [0, 1, 63, 64, 65, 1_000] {
        let bytes: Vec<u8> = (0..len as u64).map(|i| mix(i) as u8).collect();
        let mut zeroed = AlignedBytes::zeroed(len).unwrap();
        assert!(zeroed.len() == len && zeroed.iter().all(|byte| *byte == 0));
        zeroed.copy_from_slice(&bytes);
        for aligned in [AlignedBytes::copy_of(&bytes).unwrap(), zeroed.clone(), zeroed] {
            assert!(aligned[..] == bytes && aligned.as_ptr().addr().is_multiple_of(64), "{len} bytes");
        }
    }
    assert_eq!(AlignedBytes::zeroed(isize::MAX as usize).kind(), Some(ErrorKind::OutOfMemory));
}

/// A short filter equals its copy in whole blocks, which answers alike.
#[test]
fn views_are_compared_by_their_answers() {
    let bytes = [compact_filters().nth(9).unwrap(), compact_filters().nth(10).unwrap()];
    let [view, other] = [0, 1].map(|i| BloomView::from_compact(&bytes[i][1..]).unwrap());
    let copy = view.to_filter().unwrap();
    assert!(view == copy.as_view() && view == BloomView::from(&copy) && view != other);
    let standalone = copy.clone().to_standalone();
    assert!(view == BloomView::from_standalone(&standalone).unwrap());
    assert!(view != BloomView::from_compact_with_seed(&bytes[0][1..], 1).unwrap());
    let mut more = copy;
    assert!(more.insert("one more") && view != more.as_view());
    // Empty, so that only the shape differs.
    let [ours, others @ ..] =
        [(1, 8, 6), (1, 8, 7), (1, 9, 6), (2, 4, 6)].map(|(n, blocks, k)| of_modules(n, blocks, k));
    assert!(others.iter().all(|other| *other != ours) && of_modules(2, 6, 6) != of_modules(3, 4, 6));
}

#[test]
fn filters_views_and_owned_views_are_combined_alike() {
    [1, 2].into_iter().for_each(are_combined_alike);
}

fn are_combined_alike(n_modules: usize) {
    let of = |keys: std::ops::Range<u32>| {
        let mut filter = of_modules(n_modules, 9, 6);
        filter.extend(keys);
        filter
    };
    let (ours, theirs) = (of(0..200), of(100..300));
    let bytes = theirs.to_standalone();
    let view = BloomView::from_standalone(&bytes).unwrap();
    let owned = OwnedView::from_standalone(bytes.clone()).unwrap();
    let atomic = AtomicBloomFilter::from(ours.clone());
    let mut united = [(); 4].map(|()| ours.clone());
    united[0].union_with(&theirs).unwrap();
    united[1].union_with(view).unwrap();
    united[2].union_with(&view).unwrap();
    united[3].union_with(&owned).unwrap();
    atomic.union_with(&view).unwrap();
    assert!(united.into_iter().chain([atomic.to_filter().unwrap()]).all(|united| united == of(0..300)));
    let ours_view = ours.as_view();
    assert_eq!(ours_view.estimated_union(&theirs), Ok(of(0..300).estimated_keys()));
    assert_eq!(view.estimated_union(&ours), ours_view.estimated_union(view));
    assert_eq!(view.estimated_intersection(&ours), ours_view.estimated_intersection(&theirs));
    let seeded = AtomicBloomFilter::from(of_modules(n_modules, 9, 6).with_seed(1).unwrap());
    assert_eq!(seeded.union_with(&ours).text(), different_seed(1, 0));
    assert_eq!(seeded.to_filter().unwrap().fill_ratio(), 0.0);
}

/// Size, bytes and copies of an atomic filter equal the ones of a plain filter with the same keys.
#[test]
fn an_atomic_filter_describes_and_writes_itself_as_a_filter_does() {
    let in_one = [1, 2, 7, 62, 63, 64, 65, 200].map(|n_blocks| (1, n_blocks));
    let in_several = [(2, 1), (2, 31), (2, 32), (3, 21), (2, 63), (2, 64), (16, 70)];
    for (n_modules, n_blocks) in in_one.into_iter().chain(in_several) {
        let mut filter = of_modules(n_modules, n_blocks, 6).with_seed(7).unwrap();
        let atomic = AtomicBloomFilter::from(filter.clone());
        assert_eq!(atomic.sizing(), filter.sizing());
        for keys in [0..0, 0..3, 3..n_blocks as u64 * 40] {
            keys.clone().for_each(|key| _ = atomic.insert(key));
            filter.extend(keys);
            let again = BloomFilter::from_standalone(&atomic.to_standalone()).unwrap();
            for atomic in [&atomic, &AtomicBloomFilter::from(again)] {
                assert!(atomic.to_filter().unwrap() == filter, "{n_blocks} blocks");
                // The number of keys is not known.
                let mut expected = filter.to_standalone();
                expected = common::decode::forge_footer(&expected, 8, &[0xff; 8]);
                let (allocated, bytes) = allocated(|| atomic.to_standalone());
                assert_eq!((allocated, bytes), (expected.len(), expected));
            }
        }
    }
}

/// The standalone bytes of a filter that changes meanwhile have the right checksum.
#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn an_atomic_filter_is_written_while_others_insert() {
    for (n_modules, n_blocks) in [(1, 1), (1, 63), (1, 4_000), (3, 1), (3, 2_000)] {
        let atomic = AtomicBloomFilter::from(of_modules(n_modules, n_blocks, 1));
        let is_done = AtomicBool::new(false);
        let written: Vec<_> = thread::scope(|scope| {
            scope.spawn(|| {
                (1..).take_while(|_| !is_done.load(Relaxed)).for_each(|key: u64| _ = atomic.insert(key))
            });
            while !atomic.contains(1) {
                thread::yield_now();
            }
            atomic.insert("before");
            let written = (0..40).map(|_| atomic.to_standalone()).collect();
            is_done.store(true, Relaxed);
            written
        });
        for bytes in written {
            let copy = BloomFilter::from_standalone(&bytes).unwrap();
            assert!(copy.contains("before") && copy.n_blocks() <= n_modules * n_blocks);
        }
    }
}

/// `AsRef` promises nothing, so it is asked once.
#[test]
fn an_owned_view_keeps_the_bytes_that_it_opened() {
    for bytes in compact_filters() {
        let view = BloomView::from_compact(&bytes[1..]).unwrap();
        let owned = OwnedView::from_compact(Shrinking::new(bytes[1..].to_vec())).unwrap();
        owned.get_ref().shrink_to(0);
        let clone = owned.clone();
        assert_eq!((&owned, answers(owned.as_view())), (&clone, answers(&view)));
        drop(owned);
        assert_eq!(answers(clone.as_view()), answers(&view));
    }
}
