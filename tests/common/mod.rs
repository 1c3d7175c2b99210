//! Each property once: driven by proptest in `tests/` and by cargo-fuzz in `fuzz/`.
#![allow(dead_code, reason = "each driver takes the properties that it drives")]

use bloomline::sstable::FilterPolicy;
use bloomline::{BloomFilter, BloomView, Kernel};

/// Every kernel sets the bits of the reference and gives its answers, one by one and in batches, for owned blocks and
/// for bytes at an odd address.
pub fn kernels_agree(inserted: &[u64], asked: &[u64], k: u32, n_blocks: usize) {
    let empty = BloomFilter::with_blocks(n_blocks, k).expect("a small filter");
    let reference_kernel = Kernel::by_name("reference").expect("on every CPU");

    let mut reference = empty.clone().with_kernel(reference_kernel);
    let changed: Vec<bool> = inserted.iter().map(|&hash| reference.insert_hash(hash)).collect();
    let asked: Vec<u64> = inserted.iter().chain(asked).copied().collect();
    let answers: Vec<bool> = asked.iter().map(|&hash| reference.contains_hash(hash)).collect();
    assert!(answers[..inserted.len()].iter().all(|&found| found), "the reference lost a key");
    let mut shifted = vec![0];
    reference.write_compact(&mut shifted);

    for kernel in Kernel::available() {
        let mut single = empty.clone().with_kernel(kernel);
        for (&hash, &changed) in inserted.iter().zip(&changed) {
            assert_eq!(
                single.insert_hash(hash),
                changed,
                "{kernel}: insert of {hash:#x}, k {k}, {n_blocks} blocks"
            );
        }
        assert!(single == reference, "{kernel}: bits after inserts, k {k}, {n_blocks} blocks");

        let mut batch = empty.clone().with_kernel(kernel);
        batch.insert_batch(inserted);
        assert!(batch == reference, "{kernel}: bits after a batch, k {k}, {n_blocks} blocks");

        let view = BloomView::from_compact(&shifted[1..]).expect("our own bytes").with_kernel(kernel);
        assert_eq!([single.kernel(), batch.kernel(), view.kernel(), view.to_owned().kernel()], [kernel; 4]);
        for (&hash, &answer) in asked.iter().zip(&answers) {
            let context = || format!("{kernel}: lookup of {hash:#x}, k {k}, {n_blocks} blocks");
            assert_eq!(single.contains_hash(hash), answer, "{}", context());
            assert_eq!(view.contains_hash(hash), answer, "{}, in place", context());
        }
        let mut found = vec![false; asked.len()];
        single.contains_batch(&asked, &mut found);
        assert_eq!(found, answers, "{kernel}: batch, k {k}, {n_blocks} blocks");
        found.fill(false);
        view.contains_batch(&asked, &mut found);
        assert_eq!(found, answers, "{kernel}: batch in place, k {k}, {n_blocks} blocks");
    }
}

/// Any bytes are an error or a filter that works, never a panic, and what is a filter is written as the same bytes
/// again, unless it is one block that has a shorter form.
pub fn decoders_survive(bytes: &[u8], key: &[u8]) {
    let may_match = FilterPolicy::with_bits_per_key(10.0).expect("10").key_may_match(key, bytes);
    match BloomView::from_compact(bytes) {
        Err(_) => assert!(may_match, "malformed bytes must not hide a key"),
        Ok(view) => {
            assert_eq!(view.contains(key), may_match);
            check_view(&view);
            let mut again = Vec::new();
            view.to_owned().write_compact(&mut again);
            assert_same_or_shorter(&again, bytes, 1);
        }
    }
    if let Ok(view) = BloomView::from_standalone(bytes) {
        check_view(&view);
        let again = view.to_owned().to_standalone();
        if view.verify().is_ok() {
            assert_same_or_shorter(&again, bytes, 64);
        }
    }
}

fn check_view(view: &BloomView<'_>) {
    let mut filter = view.to_owned();
    assert_eq!((filter.k(), filter.n_blocks(), filter.seed()), (view.k(), view.n_blocks(), view.seed()));
    let fill = filter.fill_ratio();
    assert!((0.0..=1.0).contains(&fill) && (0.0..=1.0).contains(&filter.estimated_fpr()));
    let mut found = [false; 64];
    let hashes: [u64; 64] = core::array::from_fn(|i| bloomline::mix(i as u64));
    view.contains_batch(&hashes, &mut found);
    for (&hash, &found) in hashes.iter().zip(&found) {
        view.prefetch(hash);
        assert_eq!(view.contains_hash(hash), found);
        assert!(filter.contains_hash(hash) || !found);
        assert_eq!(
            !filter.contains_hash(hash),
            filter.insert_hash(hash),
            "an insert changes bits of missing keys only"
        );
        assert!(filter.contains_hash(hash));
    }
}

fn assert_same_or_shorter(again: &[u8], bytes: &[u8], trailer: usize) {
    let has_shorter_form = bytes.len() <= 64 + trailer && again.len() < bytes.len();
    assert!(again == bytes || has_shorter_form, "{} bytes became {}", bytes.len(), again.len());
}
