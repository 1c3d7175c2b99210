//! Programs of operations on a scalable filter, compared with the set of the inserted hashes.

use std::collections::HashSet;

use arbitrary::Arbitrary;
use bloomline::variants::ScalableBloomFilter;
use bloomline::{BloomFilter, mix};

use super::decode::{forge_footer, loads_of, scalable_decoder_survives};
use super::format::Reference;
use super::{bitmap_of, packed};

#[derive(Arbitrary, Debug)]
pub struct Input<'a> {
    initial_capacity: u8,
    fpr: u8,
    growth: u8,
    tightening: u8,
    seed: u64,
    operations: Vec<Operation<'a>>,
}

#[derive(Arbitrary, Debug)]
pub enum Operation<'a> {
    Insert(u16),
    InsertKey(&'a [u8]),
    /// `mix` of consecutive numbers, then the same again. Has the first number, a quarter of their count, and whether
    /// also to insert them in a batch.
    Batch(u16, u8, bool),
    /// Arbitrary hashes, for example of one block, or that differ only in unused bits.
    Raw([u64; 3]),
    Clear,
    Standalone,
    /// Changes a byte of the standalone bytes, and truncates them at that byte.
    Damage(u16, u8),
    /// Changes two bytes of the footer and corrects its checksum.
    Forge(u8, [u8; 2]),
    Kernel(u8),
    /// Unites with a filter of a given initial capacity and growth, which holds `mix` of consecutive numbers. Has their
    /// first number and a quarter of their count.
    Union(u8, u8, u16, u8),
    /// Continues from a filter of this many blocks that holds `mix` of as many consecutive numbers.
    FromFilter(u8, u16),
}

/// Longer programs find no more bugs than shorter ones.
const MOST_OPERATIONS: usize = 64;

struct Model {
    filter: ScalableBloomFilter,
    /// The inserted hashes. The filter must contain all of them.
    hashes: HashSet<u64>,
    /// How many of them the filter reported as new.
    new: u64,
    initial_capacity: u64,
    growth: u64,
    tightening: f64,
    /// The rate of the series.
    fpr: f64,
    n_filters: usize,
    /// How many more keys the filters have room for.
    room: u64,
    /// Whether it has filters of its own series alone, each of them from the first on.
    is_series: bool,
}

/// An empty filter whose filters each have room for `growth` times the keys of the one before, at `tightening` times
/// its false-positive rate. bloomline makes only filters with 2 and 0.85, but it reads all.
pub fn with_growth(initial_capacity: usize, fpr: f64, growth: u8, tightening: f64) -> ScalableBloomFilter {
    let filter = ScalableBloomFilter::with_fpr(initial_capacity as u64, fpr).expect("in range");
    let n_blocks = filter.filters()[0].n_blocks() / filter.filters()[0].n_modules();
    with_modules(filter.filters()[0].n_modules(), n_blocks, initial_capacity, fpr, growth, tightening)
}

/// [`with_growth`] with this many modules in each filter, the first of at least so many blocks each. bloomline makes two
/// modules only at low rates, but reads them at any.
pub fn with_modules(
    n_modules: usize,
    mut n_blocks: usize,
    initial_capacity: usize,
    fpr: f64,
    growth: u8,
    tightening: f64,
) -> ScalableBloomFilter {
    let filter = ScalableBloomFilter::with_fpr(initial_capacity as u64, fpr).expect("in range");
    let k = filter.filters()[0].k();
    loop {
        let module = BloomFilter::with_blocks(n_blocks, k).expect("enough memory").to_standalone();
        let modules = module.repeat(n_modules);
        let bytes = [&modules[..], filter.to_standalone().last_chunk::<88>().expect("a footer")].concat();
        let bytes = forge_footer(&forge_footer(&bytes, 41, &[growth]), 32, &tightening.to_le_bytes());
        match ScalableBloomFilter::from_standalone(&forge_footer(&bytes, 43, &[n_modules as u8 - 1])) {
            Ok(filter) => return filter,
            // Too small for the rate of the first filter.
            Err(_) => n_blocks += n_blocks / 20 + 1,
        }
    }
}

/// How many more keys the filters have room for.
fn room_of(filter: &ScalableBloomFilter) -> u64 {
    let loads = loads_of(&filter.to_standalone(), filter.filters().len());
    assert_eq!(loads.iter().map(|[keys, _]| keys).sum::<u64>(), filter.inserted_keys());
    loads.iter().map(|[keys, capacity]| capacity - keys).sum()
}

pub fn check(input: Input<'_>) {
    let initial_capacity = usize::from(input.initial_capacity % 100);
    let growth = input.growth % 15 + 2;
    // High false-positive rates, so that a key of one filter is often a false positive in a different one. They also
    // make reading fast, because the model runs a hundred times as long for sixteen probes as for eight.
    let fpr = f64::from(input.fpr.max(16)) / 256.0;
    let tightening = 0.5 + f64::from(input.tightening) / 640.0;
    let n_modules = usize::from(input.growth / 128) + 1;
    let filter = with_modules(n_modules, 1, initial_capacity, fpr, growth, tightening);
    let mut model = Model {
        filter: filter.with_seed(input.seed).unwrap(),
        hashes: HashSet::new(),
        new: 0,
        initial_capacity: initial_capacity.max(1) as u64,
        growth: growth.into(),
        tightening,
        fpr,
        n_filters: 1,
        room: initial_capacity.max(1) as u64,
        is_series: true,
    };
    assert_eq!((model.filter.fpr(), model.filter.seed()), (fpr, input.seed));
    for operation in input.operations.iter().take(MOST_OPERATIONS) {
        model.run(operation);
        model.check_shape();
    }
    model.check();
}

impl Model {
    fn run(&mut self, operation: &Operation<'_>) {
        match operation {
            Operation::Insert(number) => _ = self.insert(mix((*number).into())),
            Operation::InsertKey(key) => {
                let hash = self.filter.hash_key(key);
                let was_in = self.filter.contains(key);
                assert_eq!(was_in, self.filter.contains_hash(hash));
                assert_eq!(self.filter.insert(key), !was_in);
                self.record(hash, was_in);
            }
            Operation::Batch(first, count, in_batch) => {
                // Each hash twice, near each other if there are few.
                let hashes = super::hashes(*first, 4 * u64::from(*count)).repeat(2);
                self.insert_all(&hashes, *in_batch);
            }
            Operation::Raw(hashes) => self.insert_all(hashes, true),
            Operation::Clear => {
                let first = self.filter.filters()[0].n_blocks();
                self.filter.clear();
                self.hashes.clear();
                (self.new, self.n_filters, self.is_series) = (0, 1, true);
                (self.initial_capacity, self.room) =
                    (self.filter.initial_capacity(), self.filter.initial_capacity());
                assert!(self.filter.filters().len() == 1 && self.filter.filters()[0].n_blocks() >= first);
                assert_eq!(self.filter.estimated_fpr(), 0.0);
                assert_eq!(self.filter.filters()[0].known_keys(), Some(0));
            }
            Operation::Standalone => self.check(),
            Operation::Damage(at, change) => {
                let read = ScalableBloomFilter::from_standalone;
                super::damaged(self.filter.to_standalone(), (*at).into(), *change, read);
            }
            Operation::Forge(offset, bytes) => {
                let forged = forge_footer(&self.filter.to_standalone(), usize::from(offset % 47), bytes);
                scalable_decoder_survives(&forged);
            }
            Operation::Kernel(kernel) => {
                self.filter = self.filter.clone().with_kernel(super::kernel(*kernel));
            }
            Operation::Union(initial_capacity, growth, first, count) => {
                let capacity = usize::from(*initial_capacity);
                let n_modules = self.filter.filters()[0].n_modules();
                let other = with_modules(n_modules, 1, capacity, self.fpr, growth % 15 + 2, self.tightening);
                let mut other = other.with_seed(self.filter.seed()).unwrap();
                let hashes = super::hashes(*first, 4 * u64::from(*count));
                other.insert_batch(&hashes);
                let (before, keys) = (self.filter.clone(), self.new + other.inserted_keys());
                match self.filter.union_with(&other) {
                    Ok(()) if hashes.is_empty() => assert!(self.filter == before),
                    Ok(()) => {
                        self.hashes.extend(hashes);
                        let (n_filters, initial_capacity) =
                            (self.filter.filters().len(), self.initial_capacity);
                        self.continue_with(self.filter.clone());
                        assert_eq!((self.new, self.initial_capacity), (keys, initial_capacity));
                        assert!(n_filters <= before.filters().len() + other.filters().len());
                        let most = before.fpr() + other.fpr();
                        assert!(
                            self.filter.fpr() <= most
                                && (n_filters > before.filters().len() || self.filter.fpr() == before.fpr())
                        );
                    }
                    Err(_) => assert!(self.filter == before),
                }
            }
            Operation::FromFilter(n_blocks, first) => {
                let k = self.filter.filters()[0].k();
                let filter =
                    super::of_modules(self.filter.filters()[0].n_modules(), usize::from(*n_blocks) + 1, k);
                let mut filter = filter.with_seed(self.filter.seed()).unwrap();
                let hashes = super::hashes(*first, u64::from(*n_blocks) + 1);
                filter.insert_batch(&hashes);
                let (kernel, fpr) = (self.filter.filters()[0].kernel(), self.fpr);
                let keys = hashes.len() as u64;
                if let Ok(filter) = ScalableBloomFilter::from_filter(filter.with_kernel(kernel), keys, fpr) {
                    assert!(filter.fpr() == fpr && filter.inserted_keys() == keys);
                    (self.growth, self.tightening) = (2, 0.85);
                    self.hashes = hashes.into_iter().collect();
                    self.continue_with(filter);
                }
            }
        }
    }

    /// Copies the shape of a filter that did not grow key by key.
    fn continue_with(&mut self, filter: ScalableBloomFilter) {
        (self.n_filters, self.is_series) = (filter.filters().len(), false);
        self.room = room_of(&filter);
        (self.new, self.initial_capacity) = (filter.inserted_keys(), filter.initial_capacity());
        self.filter = filter;
        self.check();
    }

    /// Returns whether it was new.
    fn insert(&mut self, hash: u64) -> bool {
        let was_in = self.filter.contains_hash(hash);
        assert_eq!(self.filter.insert_hash(hash), !was_in);
        self.record(hash, was_in);
        !was_in
    }

    /// Inserts the hashes one by one. With `in_batch`, checks that a batch gives the same filter and the same answers.
    fn insert_all(&mut self, hashes: &[u64], in_batch: bool) {
        let before = self.filter.clone();
        let is_new: Vec<bool> = hashes.iter().map(|&hash| self.insert(hash)).collect();
        if in_batch {
            let one_by_one = std::mem::replace(&mut self.filter, before);
            let mut in_batch = Vec::new();
            self.filter.try_insert_batch(hashes, |is_new| in_batch.push(is_new)).expect("enough memory");
            assert!(self.filter == one_by_one && in_batch == is_new);
        }
    }

    fn record(&mut self, hash: u64, was_in: bool) {
        assert!(was_in || !self.hashes.contains(&hash), "a key was lost");
        assert!(self.filter.contains_hash(hash), "a key was lost");
        self.hashes.insert(hash);
        self.new += u64::from(!was_in);
        if !was_in && self.room == 0 {
            self.n_filters += 1;
            self.room = room_of(&self.filter);
        } else {
            self.room -= u64::from(!was_in);
        }
    }

    /// Checks that a filter was added only when all were full.
    fn check_shape(&self) {
        let filters = self.filter.filters();
        assert_eq!((self.filter.inserted_keys(), filters.len()), (self.new, self.n_filters));
        assert_eq!(room_of(&self.filter), self.room);
        if self.is_series {
            let (mut capacity, mut total, mut n_filters) = (self.initial_capacity, self.initial_capacity, 1);
            while total < self.new {
                capacity *= self.growth;
                total += capacity;
                n_filters += 1;
            }
            assert_eq!((filters.len(), self.room), (n_filters, total - self.new));
        }
        assert_eq!(self.filter.initial_capacity(), self.initial_capacity);
        assert!(filters.iter().all(|filter| filter.k() == filters[0].k()));
        assert!(filters.iter().all(|filter| filter.seed() == self.filter.seed()));
        let size_bytes: usize = filters.iter().map(|filter| filter.byte_len()).sum();
        assert_eq!(self.filter.byte_len(), size_bytes);
        assert!(filters.iter().all(|filter| filter.n_modules() == filters[0].n_modules()));
    }

    /// Checks what holds for every filter. The model continues with the copy decoded from its bytes.
    fn check(&mut self) {
        let bytes = self.filter.to_standalone();
        let copy = ScalableBloomFilter::from_standalone(&bytes).expect("our own bytes");
        assert!(copy == self.filter && copy.inserted_keys() == self.new);
        let kernel = self.filter.filters()[0].kernel();
        self.filter = copy.with_kernel(kernel);

        let hashes: Vec<u64> = self.hashes.iter().copied().chain((0..64).map(mix)).collect();
        let mut found = vec![false; hashes.len()];
        self.filter.contains_batch(&hashes, &mut found);
        let filters: Vec<_> = self.filter.filters().iter().map(Reference::of).collect();
        for (at, &hash) in hashes.iter().enumerate() {
            assert!(found[at] || at >= self.hashes.len(), "a key was lost: batch");
            assert_eq!(self.filter.contains_hash(hash), found[at]);
            assert_eq!(filters.iter().any(|filter| filter.contains(hash)), found[at]);
            self.filter.prefetch(hash);
        }
        let bitmap = bitmap_of(hashes.len(), |bitmap| self.filter.contains_bitmap(&hashes, bitmap));
        assert_eq!(bitmap, packed(&found));
    }
}
