//! The hashes that are looked up.

use bloomline::mix;

/// The hash of a key in a filter of the keys 0 to `keys` − 1, chosen from all of them, not only the first.
pub fn present(i: u64, keys: u64) -> u64 {
    mix(mix(i ^ (1 << 60)) % keys)
}

/// The hash of a key that is absent from every filter.
pub fn absent(i: u64) -> u64 {
    mix((1 << 50) + i)
}

/// Present and absent keys in an order that no branch predictor can guess.
pub fn mixed(i: u64, keys: u64) -> u64 {
    if mix(i ^ (1 << 61)) >> 63 == 0 { absent(i) } else { present(i, keys) }
}

/// Queries that run repeatedly, but never twice in the same order: a branch predictor memorizes thousands of answers,
/// and filters that branch on each bit would seem three times as fast as they are.
pub trait Queries {
    /// The number of queries, a power of two.
    fn number(&self) -> usize;

    /// Moves query number `order(i)` to position `i`.
    fn reorder(&mut self, order: impl Fn(usize) -> usize);
}

/// A permutation of `length` queries, another for each `seed`.
pub fn order(length: usize, seed: u64) -> impl Fn(usize) -> usize {
    debug_assert!(length.is_power_of_two());
    let (step, start) = (mix(seed) as usize | 1, mix(!seed) as usize);
    move |i| i.wrapping_mul(step).wrapping_add(start) & (length - 1)
}

pub struct Hashes {
    as_made: Vec<u64>,
    pub reordered: Vec<u64>,
}

impl Hashes {
    pub fn new(hashes: impl Iterator<Item = u64>) -> Self {
        let hashes: Vec<u64> = hashes.collect();
        Self { reordered: hashes.clone(), as_made: hashes }
    }
}

impl Queries for Hashes {
    fn number(&self) -> usize {
        self.as_made.len()
    }

    fn reorder(&mut self, order: impl Fn(usize) -> usize) {
        for (i, hash) in self.reordered.iter_mut().enumerate() {
            *hash = self.as_made[order(i)];
        }
    }
}
