//! A filter read in place describes, folds and unites as its owned copy does, without making that copy.

mod common;

use std::cell::Cell;
use std::sync::Arc;

use bloomline::{
    BloomFilter, BloomView, DecodeError, FilterBuilder, MismatchError, OwnedView, SizingError, mix,
};
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

fn answers(view: &BloomView<'_>) -> Vec<bool> {
    (0..2_000).map(|i| view.contains_hash(mix(i))).collect()
}

#[test]
fn an_owned_view_answers_as_a_view_and_allocates_nothing() {
    for bytes in compact_filters() {
        let bytes: Arc<[u8]> = bytes[1..].into();
        let view = BloomView::from_compact(&bytes).unwrap();
        let (allocated, owned) = allocated(|| OwnedView::from_compact(Arc::clone(&bytes)).unwrap());
        assert_eq!(allocated, 0);
        assert_eq!(answers(&owned.as_view()), answers(&view));
        assert!((0..2_000).all(|i| owned.contains_hash(mix(i)) == view.contains_hash(mix(i))));
        assert_eq!(
            (owned.contains("ant"), owned.contains("bee")),
            (view.contains("ant"), view.contains("bee"))
        );
        assert_eq!(format!("{owned:?}"), format!("OwnedView({view:?})"));
        assert!(Arc::ptr_eq(owned.get_ref(), &bytes));
    }
}

/// What an owned view is for: a table that holds its file, and the filter beside it.
#[test]
fn an_owned_view_lives_beside_what_it_reads() {
    struct Table {
        file: Arc<[u8]>,
        filter: OwnedView<Arc<[u8]>>,
    }
    let mut filter = BloomFilter::with_blocks(10, 6).unwrap().with_seed(5);
    filter.insert("ant");
    let file: Arc<[u8]> = filter.to_standalone().into();
    let table = Table { filter: OwnedView::from_standalone(Arc::clone(&file)).unwrap(), file };
    let table = std::thread::spawn(|| table).join().unwrap();
    let view = table.filter.as_view();
    assert!(view.to_filter() == filter && table.filter.contains("ant") && !table.filter.contains("bee"));
    assert_eq!((view.seed(), view.known_keys(), view.verify()), (5, None, Ok(())));

    let mut damaged = table.file.to_vec();
    damaged[0] ^= 1;
    let damaged = OwnedView::from_standalone(damaged).unwrap();
    assert!(matches!(damaged.as_view().verify(), Err(DecodeError::BodyChecksum { .. })));
    assert!(matches!(OwnedView::from_standalone(&table.file[1..]), Err(DecodeError::Size { .. })));
    assert!(matches!(OwnedView::from_compact(&table.file), Err(DecodeError::Length { .. })));

    let mut compact = Vec::new();
    filter.write_compact(&mut compact);
    let owned = OwnedView::from_compact_with_seed(compact, 5).unwrap();
    assert!(owned.as_view().to_filter() == filter && owned.contains("ant"));
}

/// `AsRef` promises nothing. Fewer bytes than the filter had must not hide a key.
#[test]
fn an_owned_view_whose_bytes_get_lost_finds_every_key() {
    struct Shrinking(Vec<u8>, Cell<usize>);
    impl AsRef<[u8]> for Shrinking {
        fn as_ref(&self) -> &[u8] {
            &self.0[..self.1.get()]
        }
    }
    for bytes in compact_filters() {
        let n_bytes = bytes.len() - 1;
        let owned = OwnedView::from_compact(Shrinking(bytes[1..].to_vec(), Cell::new(n_bytes))).unwrap();
        let before = owned.as_view().n_blocks();
        for length in (0..n_bytes - 1).step_by(7) {
            owned.get_ref().1.set(length);
            assert!((0..10).all(|i| owned.contains_hash(mix(i))) && owned.contains("ant"), "{length} bytes");
        }
        owned.get_ref().1.set(n_bytes - 1);
        assert_eq!(owned.as_view().n_blocks(), before, "all lanes are there");
    }
}
