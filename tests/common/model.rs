//! Programs of operations on filters, compared with sets of the inserted hashes.

use std::collections::HashSet;

use arbitrary::Arbitrary;
use bloomline::{BloomFilter, BloomView, FilterBuilder, hash_key, mix};

use super::format::Reference;

#[derive(Arbitrary, Debug)]
pub struct Input<'a> {
    /// The low four bits are k, the high ones the number of modules.
    k: u8,
    /// Of each module.
    n_blocks: u8,
    seed: u64,
    operations: Vec<Operation<'a>>,
}

/// The first number selects the filter. In an operation on two filters, the second number selects the second filter.
#[derive(Arbitrary, Debug)]
enum Operation<'a> {
    Insert(u8, u16),
    InsertKey(u8, &'a [u8]),
    /// `mix` of consecutive numbers. Has the first number and their count.
    Batch(u8, u16, u8),
    /// Arbitrary hashes, for example of one block, or that differ only in unused bits.
    Raw(u8, [u64; 2]),
    Union(u8, u8),
    Intersect(u8, u8),
    Copy(u8, u8),
    Fold(u8, u8),
    Shrink(u8, u16),
    Clear(u8),
    /// Replaces the filter by the copy decoded from its compact bytes, at an address with this remainder.
    Compact(u8, u8),
    /// Replaces the filter by the copy decoded from its standalone bytes, at an address with this remainder.
    Standalone(u8, u8),
    /// Rebuilds the filter from its hashes, with (number + 1) / 4 bits per key, in at most as many modules as it has. If
    /// it has one, the builder chooses.
    Build(u8, u8),
    Kernel(u8, u8),
}

const FILTERS: usize = 3;
/// Longer programs find no more bugs than shorter ones.
const MOST_OPERATIONS: usize = 64;

#[derive(Clone)]
struct Slot {
    filter: BloomFilter,
    /// The inserted hashes. The filter must contain all of them.
    hashes: HashSet<u64>,
    /// Whether exactly the bits of the hashes are set. False after an intersection, and once blocks have shared lanes.
    exact: bool,
}

pub fn check(input: Input<'_>) {
    let k = u32::from(input.k % 16) + 1;
    let n_blocks = usize::from(input.n_blocks % 48) + 1;
    let filter = super::of_modules(super::n_modules(input.k), n_blocks, k).with_seed(input.seed).unwrap();
    let slot = || Slot { filter: filter.clone(), hashes: HashSet::new(), exact: true };
    let mut slots: [Slot; FILTERS] = std::array::from_fn(|_| slot());
    for operation in input.operations.iter().take(MOST_OPERATIONS) {
        run(&mut slots, operation);
    }
    slots.iter().for_each(Slot::check);
}

fn run(slots: &mut [Slot; FILTERS], operation: &Operation<'_>) {
    let index = |number: &u8| usize::from(*number) % FILTERS;
    match operation {
        Operation::Insert(slot, number) => slots[index(slot)].insert(mix(u64::from(*number))),
        Operation::InsertKey(slot, key) => slots[index(slot)].insert_key(key),
        Operation::Batch(slot, first, count) => {
            slots[index(slot)].insert_batch(&super::hashes(*first, (*count).into()));
        }
        Operation::Raw(slot, hashes) => slots[index(slot)].insert_batch(hashes),
        Operation::Union(slot, other) => {
            let other = slots[index(other)].clone();
            slots[index(slot)].union_with(other);
        }
        Operation::Intersect(slot, other) => {
            let other = slots[index(other)].clone();
            slots[index(slot)].intersect_with(&other);
        }
        Operation::Copy(slot, other) => slots[index(slot)] = slots[index(other)].clone(),
        Operation::Fold(slot, factor) => slots[index(slot)].fold(usize::from(*factor % 16)),
        Operation::Shrink(slot, fpr) => slots[index(slot)].shrink(f64::from(*fpr) / f64::from(u16::MAX)),
        Operation::Clear(slot) => slots[index(slot)].clear(),
        Operation::Compact(slot, offset) => {
            let slot = &mut slots[index(slot)];
            slot.check();
            let bytes = slot.filter.to_compact();
            assert_eq!(slot.filter.compact_len(), bytes.len());
            let seed = slot.filter.seed();
            let open = |bytes: &[u8]| {
                BloomView::from_compact_with_seed(bytes, seed)
                    .map(|view| slot.same_as(&view))
                    .expect("our own bytes")
            };
            slot.filter = at_offset(&bytes, *offset, open).with_kernel(slot.filter.kernel());
        }
        Operation::Standalone(slot, offset) => {
            let slot = &mut slots[index(slot)];
            let bytes = slot.filter.to_standalone();
            assert_eq!(slot.filter.standalone_len(), bytes.len());
            let open = |bytes: &[u8]| {
                let view = BloomView::from_standalone(bytes).expect("our own bytes");
                view.verify().expect("our own bytes");
                assert_eq!(view.known_keys(), slot.filter.known_keys());
                slot.same_as(&view)
            };
            slot.filter = at_offset(&bytes, *offset, open).with_kernel(slot.filter.kernel());
        }
        Operation::Build(slot, quarters) => slots[index(slot)].build((f64::from(*quarters) + 1.0) / 4.0),
        Operation::Kernel(slot, kernel) => {
            let slot = &mut slots[index(slot)];
            slot.filter = slot.filter.clone().with_kernel(super::kernel(*kernel));
        }
    }
}

/// Calls `open` with the bytes at an address whose remainder modulo 64 is `offset % 64`, with other bytes around them.
fn at_offset<T>(bytes: &[u8], offset: u8, open: impl FnOnce(&[u8]) -> T) -> T {
    let mut room = vec![0xA5; bytes.len() + 128];
    let start = room.as_ptr().align_offset(64) + usize::from(offset % 64);
    room[start..][..bytes.len()].copy_from_slice(bytes);
    open(&room[start..][..bytes.len()])
}

/// Asserts that a builder rounds up `needed` lanes to `lanes` as it should. A short filter has less than one lane more,
/// and a filter of whole blocks less than one block more.
fn assert_lanes(lanes: usize, needed: f64) {
    let needed = needed.max(1.0);
    let slack = if lanes < 64 { 1.0 } else { 8.0 };
    assert!(lanes < 64 || lanes.is_multiple_of(8), "no filter has {lanes} lanes");
    assert!((needed..needed + slack).contains(&(lanes as f64)), "{lanes} lanes, {needed} needed");
}

impl Slot {
    fn insert(&mut self, hash: u64) {
        let was_in = self.filter.contains_hash(hash);
        assert_eq!(self.filter.insert_hash(hash), !was_in);
        assert!(was_in || !self.hashes.contains(&hash));
        self.hashes.insert(hash);
        assert!(self.filter.contains_hash(hash));
        assert_eq!(self.filter.known_keys(), None);
    }

    fn insert_key(&mut self, key: &[u8]) {
        let hash = hash_key(key, self.filter.seed());
        let was_in = self.filter.contains_hash(hash);
        assert_eq!(self.filter.contains(key), was_in);
        assert_eq!(self.filter.insert(key), !was_in);
        self.hashes.insert(hash);
    }

    fn insert_batch(&mut self, hashes: &[u64]) {
        let known = self.filter.known_keys();
        self.filter.insert_batch(hashes);
        assert_eq!(self.filter.known_keys(), known.filter(|_| hashes.is_empty()));
        self.hashes.extend(hashes);
    }

    fn takes(&self, other: &Self) -> bool {
        let shape = |filter: &BloomFilter| (filter.n_modules(), filter.k(), filter.seed());
        shape(&self.filter) == shape(&other.filter)
            && self.filter.n_blocks().is_multiple_of(other.filter.n_blocks())
    }

    fn union_with(&mut self, other: Self) {
        let before = self.filter.clone();
        if self.filter.union_with(&other.filter).is_err() {
            assert!(self.filter == before && !self.takes(&other));
            return;
        }
        assert!(self.takes(&other));
        self.hashes.extend(other.hashes);
        self.exact &= other.exact && self.filter.n_blocks() == other.filter.n_blocks();
    }

    fn intersect_with(&mut self, other: &Self) {
        let before = self.filter.clone();
        if self.filter.intersect_with(&other.filter).is_err() {
            assert!(self.filter == before && !self.takes(other));
            return;
        }
        assert!(self.takes(other));
        let fill = before.fill_ratio().min(other.filter.fill_ratio());
        assert!(self.filter.fill_ratio() <= fill, "an intersection is no fuller than either");
        self.hashes.retain(|hash| other.hashes.contains(hash));
        self.exact = false;
    }

    fn fold(&mut self, factor: usize) {
        let before = self.filter.clone();
        let n_blocks = before.n_blocks() / before.n_modules();
        if self.filter.fold(factor).is_err() {
            assert!(self.filter == before && !n_blocks.is_multiple_of(factor));
            return;
        }
        assert_eq!(self.filter.n_blocks() * factor, before.n_blocks());
        self.check();
    }

    fn shrink(&mut self, fpr: f64) {
        let before = self.filter.clone();
        if self.filter.shrink_to_fpr(fpr).is_err() {
            assert!(self.filter == before && (fpr <= 0.0 || fpr >= 1.0));
            return;
        }
        assert!(self.filter.estimated_fpr() <= fpr || self.filter == before);
        let n_blocks = before.n_blocks() / before.n_modules();
        assert!(before.n_blocks().is_multiple_of(self.filter.n_blocks()));
        let taken = before.n_blocks() / self.filter.n_blocks();
        for more in (taken + 1..=n_blocks).filter(|factor| n_blocks.is_multiple_of(*factor)) {
            let mut folded = before.clone();
            folded.fold(more).expect("a divisor");
            assert!(folded.estimated_fpr() > fpr, "{n_blocks} blocks could have been folded by {more}");
        }
        self.check();
    }

    fn clear(&mut self) {
        self.filter.clear();
        self.hashes.clear();
        self.exact = true;
        assert_eq!((self.filter.known_keys(), self.filter.fill_ratio()), (Some(0), 0.0));
        assert_eq!(
            (self.filter.estimated_keys().map(|estimate| estimate.keys), self.filter.estimated_fpr()),
            (Some(0), 0.0)
        );
    }

    fn build(&mut self, bits_per_key: f64) {
        let mut builder = FilterBuilder::with_bits_per_key(bits_per_key).expect("1/4 to 64");
        if self.filter.n_modules() > 1 {
            builder = builder.with_most_modules(self.filter.n_modules()).expect("in range");
        }
        let mut builder = builder.with_seed(self.filter.seed()).unwrap().with_kernel(self.filter.kernel());
        // Each key twice, because a table holds several versions of a key.
        for &hash in self.hashes.iter().chain(&self.hashes) {
            builder.insert_hash(hash);
        }
        let mut compact = Vec::new();
        builder.clone().finish_compact(&mut compact).unwrap();
        self.filter = builder.finish().unwrap();
        assert!(builder.is_empty());
        assert_eq!(self.filter.known_keys(), Some(self.hashes.len() as u64));
        let blocks_in = |n_modules: usize| {
            let of_each = self.hashes.len() as f64 * (bits_per_key / n_modules as f64) / 512.0;
            n_modules * (of_each.ceil() as usize).max(1)
        };
        let n_modules = self.filter.n_modules();
        assert_eq!(self.filter.n_blocks(), blocks_in(n_modules));
        // Rounding may add 1% for each further module.
        let most = 1.01_f64.powi(n_modules as i32 - 1) * blocks_in(1) as f64;
        assert!(blocks_in(n_modules) as f64 <= most, "{n_modules} modules");
        self.exact = true;
        self.check();
        self.check_compact(&compact, self.hashes.len() as f64 * bits_per_key / 64.0);
    }

    /// Checks that compact bytes have the bits of the format. The model continues with the filter decoded from them.
    fn check_compact(&mut self, compact: &[u8], needed: f64) {
        let view = BloomView::from_compact_with_seed(compact, self.filter.seed()).expect("our own bytes");
        let (lanes, _) = compact.as_chunks::<8>();
        if view.n_modules() == 1 {
            assert_lanes(lanes.len(), needed);
        } else {
            assert!(self.filter.sizing() == view.sizing() && lanes.len() == 8 * view.n_blocks());
        }
        let stride = 1 << lanes.len().trailing_zeros().min(3);
        assert_eq!(view.n_blocks(), lanes.len() / stride);

        let mut blocks = Reference::new(view.sizing());
        self.hashes.iter().for_each(|&hash| _ = blocks.insert(hash));
        let mut expected = vec![0; lanes.len()];
        for (b, block) in blocks.modules.iter().flatten().enumerate() {
            for (i, lane) in block.iter().enumerate() {
                expected[(stride * b + i) % lanes.len()] |= lane;
            }
        }
        assert!(lanes.iter().map(|lane| u64::from_le_bytes(*lane)).eq(expected), "wrong bits for its keys");
        self.exact = stride == 8;
        self.filter = view.to_filter().unwrap().with_kernel(self.filter.kernel());
        self.check();
    }

    /// Checks what holds for every filter.
    fn check(&self) {
        let view = self.filter.as_view();
        let hashes: Vec<u64> = self.hashes.iter().copied().collect();
        let mut found = vec![false; hashes.len()];
        view.contains_batch(&hashes, &mut found);
        assert!(found.iter().all(|&found| found), "a key was lost: batch");
        assert!(hashes.iter().all(|&hash| self.filter.contains_hash(hash)), "a key was lost");

        assert_eq!(self.filter.byte_len(), 64 * self.filter.n_blocks());
        assert!(self.filter.known_keys().is_none_or(|known| known == self.hashes.len() as u64));
        if self.exact {
            let mut fresh = Reference::new(self.filter.sizing());
            hashes.iter().for_each(|&hash| _ = fresh.insert(hash));
            assert!(fresh.to_filter(view.seed()) == self.filter, "wrong bits for its keys");
        }
    }

    /// Checks that the view shows this filter, and returns an owned copy.
    fn same_as(&self, view: &BloomView<'_>) -> BloomFilter {
        assert_eq!((view.sizing(), view.seed()), (self.filter.sizing(), self.filter.seed()));
        assert!(self.hashes.iter().all(|&hash| view.contains_hash(hash)), "a key was lost");
        let copy = view.to_filter().unwrap();
        assert!(copy == self.filter);
        copy
    }
}
