//! Programs of operations on standard filters, compared with the set of bits from the formula of `docs/format.md`.

use std::collections::BTreeSet;

use arbitrary::Arbitrary;
use bloomline::sizing::standard::StandardSizing;
use bloomline::variants::StandardBloomFilter;
use bloomline::{Error, hash_key, mix};

use super::{bitmap_of, packed};

#[derive(Arbitrary, Debug)]
pub struct Input<'a> {
    k: u8,
    size_bits: u16,
    seed: u64,
    operations: Vec<Operation<'a>>,
}

/// Operations on the first of two filters of the same size.
#[derive(Arbitrary, Debug)]
enum Operation<'a> {
    InsertKey(&'a [u8]),
    InsertHash(u64),
    /// `mix` of consecutive numbers. Has the first number and their count.
    Batch(u16, u8),
    ContainsHash(u64),
    Swap,
    Copy,
    Union,
    Intersect,
    Clear,
    Standalone,
}

/// Longer programs find no more bugs than shorter ones.
const MOST_OPERATIONS: usize = 64;

#[derive(Clone)]
struct Model {
    filter: StandardBloomFilter,
    bits: BTreeSet<u64>,
}

pub fn with_bits(bit_len: u64, k: u32) -> Result<StandardBloomFilter, Error> {
    StandardBloomFilter::with_sizing(StandardSizing::new(bit_len, k)?)
}

pub fn check(input: Input<'_>) {
    let k = u32::from(input.k % 64) + 1;
    let filter = with_bits(u64::from(input.size_bits) % 3_000 + 1, k).expect("in range");
    let mut first = Model { filter: filter.with_seed(input.seed).unwrap(), bits: BTreeSet::new() };
    let mut second = first.clone();
    for hash in (0..3).map(mix) {
        second.filter.insert_hash(hash);
        second.add(hash);
    }
    for operation in input.operations.iter().take(MOST_OPERATIONS) {
        match operation {
            Operation::InsertKey(key) => {
                let was_in = first.filter.contains(key);
                assert_eq!(first.filter.insert(key), !was_in);
                first.add(hash_key(key, input.seed));
            }
            Operation::InsertHash(hash) => {
                let was_in = first.contains(*hash);
                assert_eq!(first.filter.insert_hash(*hash), !was_in);
                first.add(*hash);
            }
            Operation::Batch(start, count) => {
                let hashes = super::hashes(*start, (*count).into());
                first.filter.insert_batch(&hashes);
                hashes.iter().for_each(|&hash| first.add(hash));
                let mut found = vec![false; hashes.len()];
                first.filter.contains_batch(&hashes, &mut found);
                let bitmap = bitmap_of(hashes.len(), |bitmap| first.filter.contains_bitmap(&hashes, bitmap));
                assert_eq!(bitmap, packed(&found));
                assert!(found.iter().all(|found| *found), "a key was lost");
            }
            Operation::ContainsHash(hash) => {
                assert_eq!(first.filter.contains_hash(*hash), first.contains(*hash))
            }
            Operation::Swap => std::mem::swap(&mut first, &mut second),
            Operation::Copy => second = first.clone(),
            Operation::Union => {
                let before = first.filter.clone();
                match first.filter.union_with(&second.filter) {
                    Ok(()) => first.bits.extend(&second.bits),
                    Err(_) => {
                        assert!(first.filter == before && before.bit_len() != second.filter.bit_len())
                    }
                }
            }
            Operation::Intersect => {
                let before = first.filter.clone();
                match first.filter.intersect_with(&second.filter) {
                    Ok(()) => first.bits.retain(|bit| second.bits.contains(bit)),
                    Err(_) => {
                        assert!(first.filter == before && before.bit_len() != second.filter.bit_len())
                    }
                }
            }
            Operation::Clear => {
                first.filter.clear();
                first.bits.clear();
            }
            Operation::Standalone => {
                let bytes = first.filter.to_standalone();
                let copy = StandardBloomFilter::from_standalone(&bytes).expect("our own bytes");
                assert!(copy == first.filter && copy.known_keys() == first.filter.known_keys());
                first.filter = copy;
            }
        }
        first.check();
    }
}

impl Model {
    fn bits_of(&self, hash: u64) -> impl Iterator<Item = u64> + use<> {
        let (k, size_bits) = (u128::from(self.filter.k()), u128::from(self.filter.bit_len()));
        let second = hash.wrapping_mul(0x6A09_E667_F3BC_C908);
        (0..k).map(move |j| {
            let third = ((j * j * j - j) / 6) as u64;
            let word = hash
                .wrapping_add(second.wrapping_mul(j as u64))
                .wrapping_add(third.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            ((u128::from(word) * size_bits) >> 64) as u64
        })
    }

    fn add(&mut self, hash: u64) {
        self.bits.extend(self.bits_of(hash));
        assert!(self.filter.contains_hash(hash), "a key was lost");
        assert_eq!(self.filter.known_keys(), None);
    }

    fn contains(&self, hash: u64) -> bool {
        self.bits_of(hash).all(|bit| self.bits.contains(&bit))
    }

    fn check(&self) {
        let fill_ratio = self.bits.len() as f64 / self.filter.bit_len() as f64;
        assert_eq!(self.filter.fill_ratio(), fill_ratio, "wrong bits for its keys");
        assert!(self.filter.known_keys().is_none_or(|keys| keys == 0 && self.bits.is_empty()));
    }
}
