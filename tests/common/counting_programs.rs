//! Programs of inserts and removes on a counting filter, compared with a count for each bit and each hash.

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use bloomline::variants::CountingBloomFilter;
use bloomline::{BloomFilter, Error, Sizing, hash_key, mix};

use super::decode::{counting_decoder_survives, forge_footer};
use super::format::mask;

#[derive(Arbitrary, Debug)]
pub struct Input<'a> {
    k: u8,
    n_blocks: u8,
    seed: u64,
    operations: Vec<Operation<'a>>,
}

#[derive(Arbitrary, Debug)]
pub enum Operation<'a> {
    Insert(u16),
    InsertKey(&'a [u8]),
    /// `mix` of consecutive numbers. Has the first number and their count.
    Batch(u16, u8),
    /// One hash many times, up to more than a counter can count.
    Repeat(u16, u8),
    /// One of the present hashes.
    Remove(u16),
    RemoveKey(&'a [u8]),
    /// An arbitrary hash, rarely a present one.
    RemoveRaw(u64),
    /// One of the present hashes, many times.
    RemoveAll(u16, u8),
    Clear,
    Standalone,
    /// Changes a byte of the standalone bytes, and truncates them at that byte.
    Damage(u16, u8),
    /// Changes two bytes of the footer and corrects its checksum.
    Forge(u8, [u8; 2]),
    Kernel(u8),
}

/// Longer programs find no more bugs than shorter ones.
const MOST_OPERATIONS: usize = 64;
const SATURATED: u8 = 15;

struct Model {
    filter: CountingBloomFilter,
    /// How often each hash is present.
    hashes: BTreeMap<u64, u32>,
    /// One counter for each bit, from block 0, lane 0 on.
    counters: Vec<u8>,
    /// Whether every removed key was present. Otherwise keys may be lost.
    removes_are_valid: bool,
}

pub fn with_blocks(n_blocks: usize, k: u32) -> Result<CountingBloomFilter, Error> {
    CountingBloomFilter::with_sizing(Sizing::new(n_blocks, k)?)
}

pub fn check(input: Input<'_>) {
    let k = u32::from(input.k % 16) + 1;
    let n_blocks = usize::from(input.n_blocks % 6) + 1;
    let mut model = Model {
        filter: with_blocks(n_blocks, k).expect("a small filter").with_seed(input.seed).unwrap(),
        hashes: BTreeMap::new(),
        counters: vec![0; 512 * n_blocks],
        removes_are_valid: true,
    };
    for operation in input.operations.iter().take(MOST_OPERATIONS) {
        model.run(operation);
    }
    model.check();
}

impl Model {
    fn run(&mut self, operation: &Operation<'_>) {
        let seed = self.filter.as_filter().seed();
        match operation {
            Operation::Insert(number) => self.insert(mix((*number).into()), CountingBloomFilter::insert_hash),
            Operation::InsertKey(key) => self.insert(hash_key(key, seed), |filter, _| filter.insert(key)),
            Operation::Batch(first, count) => {
                let hashes = super::hashes(*first, (*count).into());
                let (mut single, mut batch) = (self.filter.clone(), self.filter.clone());
                batch.insert_batch(&hashes);
                let mut new = vec![false; hashes.len()];
                self.filter.insert_batch_new(&hashes, &mut new);
                assert!(new.into_iter().eq(hashes.iter().map(|&hash| single.insert_hash(hash))));
                assert!(single == self.filter && batch == self.filter);
                hashes.iter().for_each(|&hash| self.record_insert(hash));
            }
            Operation::Repeat(number, times) => {
                for _ in 0..times % 40 {
                    self.insert(mix((*number).into()), CountingBloomFilter::insert_hash);
                }
            }
            Operation::Remove(at) => {
                self.with_present(*at, |model, hash| model.remove(hash, CountingBloomFilter::remove_hash));
            }
            Operation::RemoveKey(key) => self.remove(hash_key(key, seed), |filter, _| filter.remove(key)),
            Operation::RemoveRaw(hash) => self.remove(*hash, CountingBloomFilter::remove_hash),
            Operation::RemoveAll(at, times) => self.with_present(*at, |model, hash| {
                let times = u32::from(times % 40).min(model.hashes[&hash]);
                (0..times).for_each(|_| model.remove(hash, CountingBloomFilter::remove_hash));
            }),
            Operation::Clear => {
                self.filter.clear();
                self.hashes.clear();
                self.counters.fill(0);
                self.removes_are_valid = true;
                assert_eq!(self.filter.as_filter().known_keys(), Some(0));
            }
            Operation::Standalone => self.check(),
            Operation::Damage(at, change) => {
                let read = CountingBloomFilter::from_standalone;
                super::damaged(self.filter.to_standalone(), (*at).into(), *change, read);
            }
            Operation::Forge(offset, bytes) => {
                let forged = forge_footer(&self.filter.to_standalone(), usize::from(offset % 47), bytes);
                counting_decoder_survives(&forged);
            }
            Operation::Kernel(kernel) => {
                self.filter = self.filter.clone().with_kernel(super::kernel(*kernel));
            }
        }
    }

    /// The indices of the counters of a hash, one for each bit of its mask.
    fn counters_of(&self, hash: u64) -> Vec<usize> {
        let block = ((u128::from(hash) * self.filter.as_filter().n_blocks() as u128) >> 64) as usize;
        let lanes = mask(hash, self.filter.as_filter().k());
        (0..512).filter(|bit| lanes[bit / 64] >> (bit % 64) & 1 == 1).map(|bit| 512 * block + bit).collect()
    }

    fn with_present(&mut self, at: u16, run: impl FnOnce(&mut Self, u64)) {
        if let Some((&hash, _)) = self.hashes.iter().nth(usize::from(at) % self.hashes.len().max(1)) {
            run(self, hash);
        }
    }

    fn insert(&mut self, hash: u64, insert: impl FnOnce(&mut CountingBloomFilter, u64) -> bool) {
        let (was_in, count) = (self.filter.contains_hash(hash), self.filter.count_hash(hash));
        assert_eq!(insert(&mut self.filter, hash), !was_in);
        self.record_insert(hash);
        assert!(self.filter.contains_hash(hash));
        assert_eq!(self.filter.count_hash(hash), (count + 1).min(15));
    }

    fn record_insert(&mut self, hash: u64) {
        for at in self.counters_of(hash) {
            self.counters[at] = (self.counters[at] + 1).min(SATURATED);
        }
        *self.hashes.entry(hash).or_default() += 1;
    }

    fn remove(&mut self, hash: u64, remove: impl FnOnce(&mut CountingBloomFilter, u64) -> bool) {
        let counters = self.counters_of(hash);
        let possibly_present = counters.iter().all(|&at| self.counters[at] != 0);
        let before = self.filter.clone();
        assert_eq!(remove(&mut self.filter, hash), possibly_present);
        if !possibly_present {
            assert!(self.filter == before && self.filter.as_filter() == before.as_filter());
            assert!(!self.removes_are_valid || !self.hashes.contains_key(&hash), "a key was lost");
            return;
        }
        for at in counters {
            self.counters[at] -= u8::from(self.counters[at] != SATURATED);
        }
        assert_eq!(self.filter.as_filter().known_keys(), None);
        match self.hashes.get_mut(&hash) {
            None => self.removes_are_valid = false,
            Some(1) => _ = self.hashes.remove(&hash),
            Some(times) => *times -= 1,
        }
    }

    /// Checks what holds for every filter. The model continues with the copy decoded from its bytes.
    fn check(&mut self) {
        let Self { filter, hashes, counters, .. } = self;
        let (n_blocks, k) = (filter.as_filter().n_blocks(), filter.as_filter().k());
        let saturated = counters.iter().filter(|&&count| count == SATURATED).count();
        assert_eq!(filter.saturated_counters(), saturated as u64);
        assert_eq!(filter.byte_len(), 320 * n_blocks);

        let bytes = filter.to_standalone();
        let packed = counters.as_chunks().0.iter().map(|[low, high]| low | high << 4);
        assert!(bytes[..256 * n_blocks].iter().copied().eq(packed), "wrong counters for its keys");
        let copy = CountingBloomFilter::from_standalone(&bytes).expect("our own bytes");
        assert!(copy == *filter && copy.as_filter() == filter.as_filter(), "wrong bits for its counters");
        assert_eq!(copy.as_filter().known_keys(), filter.as_filter().known_keys());

        let present: Vec<u64> = hashes.keys().copied().collect();
        let mut fresh = BloomFilter::with_blocks(n_blocks, k)
            .expect("in range")
            .with_seed(filter.as_filter().seed())
            .unwrap();
        fresh.insert_batch(&present);
        if self.removes_are_valid {
            if saturated == 0 {
                assert!(fresh == *filter.as_filter(), "wrong bits for its keys");
            }
            let mut found = vec![false; present.len()];
            filter.as_filter().contains_batch(&present, &mut found);
            assert!(found.iter().all(|&found| found), "a key was lost: batch");
            for (&hash, &times) in hashes.iter() {
                assert!(filter.contains_hash(hash), "a key was lost");
                assert!(filter.count_hash(hash) >= times.min(15), "{hash:#x} was inserted {times} times");
            }
        }
        for hash in present.into_iter().chain((0..64).map(mix)) {
            assert_eq!(filter.count_hash(hash) == 0, !filter.contains_hash(hash));
        }
        self.filter = copy.with_kernel(self.filter.as_filter().kernel());
    }
}
