//! A filter read in place describes, folds and unites as its owned copy does, without making that copy.

mod common;

use bloomline::{BloomFilter, BloomView, FilterBuilder, MismatchError, SizingError, mix};
use common::allocations::allocated;

/// Compact bytes of 1 to 6,400 keys: short filters of every number of lanes, and whole blocks.
fn compact_filters() -> impl Iterator<Item = Vec<u8>> {
    (1..420).chain([450, 900, 6_400]).map(|keys| {
        let mut builder = FilterBuilder::with_bits_per_key(10.0).unwrap();
        (0..keys).for_each(|i| builder.add_hash(mix(keys << 32 | i)));
        let mut bytes = vec![0];
        builder.finish_compact(&mut bytes);
        bytes
    })
}

#[test]
fn a_view_describes_itself_as_its_copy_does() {
    let mut lanes = [false; 64];
    for bytes in compact_filters() {
        // Not at a multiple of 8.
        let view = BloomView::from_compact(&bytes[1..]).unwrap();
        let copy = view.to_filter();
        let (allocated, described) =
            allocated(|| (view.size_bytes(), view.fill_ratio(), view.estimated_keys(), view.estimated_fpr()));
        assert_eq!(allocated, 0);
        assert_eq!(
            described,
            (bytes.len() - 2, copy.fill_ratio(), copy.estimated_keys(), copy.estimated_fpr())
        );
        assert!(described.1 > 0.1 && described.3 > 0.0, "{described:?}");
        if let Some(seen) = lanes.get_mut(view.size_bytes() / 8) {
            *seen = true;
        }
    }
    assert_eq!(lanes.iter().filter(|seen| **seen).count(), 63, "every number of lanes of a short filter");
}

#[test]
fn a_view_folds_as_its_copy_does_and_allocates_only_the_result() {
    let mut folds = 0;
    for bytes in compact_filters() {
        let view = BloomView::from_compact(&bytes[1..]).unwrap();
        for factor in 1..=view.n_blocks() {
            let (allocated, folded) = allocated(|| view.to_folded(factor));
            let mut copy = view.to_filter();
            let expected = copy.fold(factor).map(|()| copy);
            assert_eq!(folded, expected);
            let Ok(folded) = folded else { continue };
            assert!(allocated < folded.size_bytes() + 64, "{allocated} bytes");
            folds += 1;
        }
        for factor in [0, view.n_blocks() + 1, usize::MAX] {
            let error = SizingError::FoldFactor { factor, n_blocks: view.n_blocks() };
            assert_eq!(view.to_folded(factor), Err(error));
        }
    }
    assert!(folds > 1_000, "{folds}");
}

/// A copy that claims to have no keys accepts another seed, so a folded filter keeps the number of its keys.
#[test]
fn a_folded_view_keeps_its_keys_and_seed() {
    let mut filter = BloomFilter::with_blocks(12, 6).unwrap().with_seed(5);
    let folded = |filter: &BloomFilter| {
        let bytes = filter.to_standalone();
        let folded = BloomView::from_standalone(&bytes).unwrap().to_folded(4).unwrap();
        (folded.n_blocks(), folded.k(), folded.seed(), folded.known_keys(), folded.contains("ant"))
    };
    assert_eq!(folded(&filter), (3, 6, 5, Some(0), false));
    filter.insert("ant");
    assert_eq!(folded(&filter), (3, 6, 5, None, true));
}

#[test]
fn a_view_is_united_as_its_copy_is() {
    for bytes in compact_filters() {
        let view = BloomView::from_compact(&bytes[1..]).unwrap();
        let mut ours = BloomFilter::with_blocks(view.n_blocks(), view.k()).unwrap();
        ours.insert("ant");
        let mut expected = ours.clone();
        expected.union_with(&view.to_filter()).unwrap();
        let (allocated, united) = allocated(|| ours.union_with_view(&view));
        assert_eq!((allocated, united), (0, Ok(())));
        assert_eq!((&ours, ours.known_keys()), (&expected, None));
        assert!(ours.contains("ant"));
    }
}

#[test]
fn views_that_do_not_match_change_nothing() {
    let mut filter = BloomFilter::with_blocks(3, 6).unwrap().with_seed(9);
    let other =
        |n_blocks, k, seed| BloomFilter::with_blocks(n_blocks, k).unwrap().with_seed(seed).to_standalone();
    let errors = [
        (other(4, 6, 9), MismatchError::Blocks { ours: 3, theirs: 4 }),
        (other(3, 7, 9), MismatchError::Probes { ours: 6, theirs: 7 }),
        (other(3, 6, 0), MismatchError::Seed { ours: 9, theirs: 0 }),
    ];
    for (bytes, error) in errors {
        let view = BloomView::from_standalone(&bytes).unwrap();
        assert_eq!(filter.union_with_view(&view), Err(error));
        assert_eq!(filter.known_keys(), Some(0));
    }
}
