//! Every kernel sets the same bits and returns the same answers as the reference.

use arbitrary::Arbitrary;
use bloomline::{AtomicBloomFilter, BloomView, Kernel};

use super::format::Reference;
use super::{bitmap_of, packed};

#[derive(Arbitrary, Debug)]
pub struct Input<'a> {
    /// The low four bits are k, the high ones the number of modules.
    k: u8,
    /// Of each module.
    n_blocks: u8,
    inserted: &'a [u8],
    queried: &'a [u8],
}

pub fn check(input: Input<'_>) {
    let k = u32::from(input.k % 16) + 1;
    // Mostly few blocks, so that keys share blocks.
    let n_blocks = match input.n_blocks {
        few @ 0..=239 => usize::from(few % 16) + 1,
        many => 5 * usize::from(many - 239),
    };
    let n_modules = super::n_modules(input.k);
    kernels_agree(&words(input.inserted), &words(input.queried), k, [n_modules, n_blocks]);
}

/// With filters of this size, more words run the same code, but only run longer.
const MOST_WORDS: usize = 40;

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().take(MOST_WORDS).map(|word| u64::from_le_bytes(*word)).collect()
}

/// The definition as a kernel.
pub fn reference_kernel() -> Kernel {
    Kernel::available().find(|kernel| kernel.name() == "reference").expect("available on every CPU")
}

/// Compares single operations and batches, on owned blocks and on bytes at an odd address, in a number of modules of as
/// many blocks each.
pub fn kernels_agree(inserted: &[u64], queried: &[u64], k: u32, [n_modules, n_blocks]: [usize; 2]) {
    let empty = super::of_modules(n_modules, n_blocks, k);
    let shape = format!("k {k}, {n_modules} modules of {n_blocks} blocks");

    let mut reference = Reference::new(empty.sizing());
    let changed: Vec<bool> = inserted.iter().map(|&hash| reference.insert(hash)).collect();
    let queried: Vec<u64> = inserted.iter().chain(queried).copied().collect();
    let answers: Vec<bool> = queried.iter().map(|&hash| reference.contains(hash)).collect();
    assert!(answers[..inserted.len()].iter().all(|&found| found), "the reference lost a key");
    let shifted = [vec![0], reference.to_compact()].concat();
    let reference = reference.to_filter(0);

    // Its first lanes as a short filter, in an allocation of exactly these bytes.
    let n_lanes = (1 + 8 * inserted.len() + queried.len()) % 63 + 1;
    if let Some(lanes) = shifted[1..].get(..8 * n_lanes)
        && !n_lanes.is_multiple_of(8)
    {
        let short = [lanes, &[0x1f + k as u8]].concat().into_boxed_slice();
        kernels_agree_on_short(&short, &queried);
    }

    for kernel in Kernel::available() {
        let mut single = empty.clone().with_kernel(kernel);
        for (&hash, &changed) in inserted.iter().zip(&changed) {
            assert_eq!(single.insert_hash(hash), changed, "{kernel}: insert of {hash:#x}, {shape}");
        }
        assert!(single == reference, "{kernel}: bits after inserts, {shape}");

        let mut batch = empty.clone().with_kernel(kernel);
        batch.insert_batch(inserted);
        assert!(batch == reference, "{kernel}: bits after a batch, {shape}");

        let mut batch = empty.clone().with_kernel(kernel);
        let mut new: Vec<bool> = changed.iter().map(|changed| !changed).collect();
        batch.insert_batch_new(inserted, &mut new);
        assert_eq!(new, changed, "{kernel}: new in a batch, {shape}");
        assert!(batch == reference, "{kernel}: bits after a batch with answers, {shape}");

        let shared = AtomicBloomFilter::from(empty.clone().with_kernel(kernel));
        for (&hash, &changed) in inserted.iter().zip(&changed) {
            assert_eq!(shared.insert_hash(hash), changed, "{kernel}: shared insert of {hash:#x}, {shape}");
        }
        let answered = queried.iter().map(|&hash| shared.contains_hash(hash));
        assert!(answered.eq(answers.iter().copied()), "{kernel}: shared lookups, {shape}");
        let mut found = vec![false; queried.len()];
        shared.contains_batch(&queried, &mut found);
        assert_eq!(found, answers, "{kernel}: shared batch, {shape}");
        assert!(shared.to_filter().unwrap() == reference, "{kernel}: shared bits, {shape}");

        let view = BloomView::from_compact(&shifted[1..]).expect("our own bytes").with_kernel(kernel);
        assert_eq!([single.kernel(), batch.kernel(), view.to_filter().unwrap().kernel()], [kernel; 3]);
        for (&hash, &answer) in queried.iter().zip(&answers) {
            single.prefetch(hash);
            view.prefetch(hash);
            assert_eq!(single.contains_hash(hash), answer, "{kernel}: lookup of {hash:#x}, {shape}");
            assert_eq!(view.contains_hash(hash), answer, "{kernel}: lookup of {hash:#x} in place, {shape}");
        }
        let mut found = vec![false; queried.len()];
        single.contains_batch(&queried, &mut found);
        assert_eq!(found, answers, "{kernel}: batch, {shape}");
        found.fill(false);
        view.contains_batch(&queried, &mut found);
        assert_eq!(found, answers, "{kernel}: batch in place, {shape}");
        for (filter, place) in [(single.as_view(), "owned"), (view, "in place")] {
            let bitmap = bitmap_of(queried.len(), |bitmap| filter.contains_bitmap(&queried, bitmap));
            assert_eq!(bitmap, packed(&answers), "{kernel}: bitmap, {place}, {shape}");
        }
    }
}

/// Compares single lookups and batches on a short filter with lookups in the whole blocks that it represents.
pub fn kernels_agree_on_short(short: &[u8], queried: &[u64]) {
    let view = BloomView::from_compact(short).expect("a short filter");
    let whole = view.to_filter().unwrap().with_kernel(reference_kernel());
    for kernel in Kernel::available() {
        let view = view.with_kernel(kernel);
        let mut found = vec![false; queried.len()];
        view.contains_batch(queried, &mut found);
        let bitmap = bitmap_of(queried.len(), |bitmap| view.contains_bitmap(queried, bitmap));
        assert_eq!(bitmap, packed(&found), "{kernel}: bitmap of {} bytes", short.len());
        for (&hash, found) in queried.iter().zip(found) {
            let answer = whole.contains_hash(hash);
            assert_eq!(view.contains_hash(hash), answer, "{kernel}: {hash:#x} in {} bytes", short.len());
            assert_eq!(found, answer, "{kernel}: batch with {hash:#x} in {} bytes", short.len());
        }
    }
}
