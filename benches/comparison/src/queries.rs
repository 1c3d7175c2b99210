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

/// A permutation of `n` queries, a different one for each `seed`.
fn order(n: usize, seed: u64) -> impl Fn(usize) -> usize {
    debug_assert!(n.is_power_of_two());
    let (step, start) = (mix(seed) as usize | 1, mix(!seed) as usize);
    move |i| i.wrapping_mul(step).wrapping_add(start) & (n - 1)
}

/// Queries that run repeatedly, but never twice in the same order, because a branch predictor memorizes thousands of
/// answers, and filters that branch on each bit would seem three times as fast as they are.
pub struct Queries<Q> {
    as_made: Q,
    reordered: Q,
    pub n: usize,
}

impl<Q: Clone + Reorder> Queries<Q> {
    /// Makes an order of `n` queries, a power of two.
    pub fn new(queries: Q, n: usize) -> Self {
        Self { reordered: queries.clone(), as_made: queries, n }
    }

    pub fn reordered(&mut self, seed: u64) -> &Q {
        self.reordered.reorder(&self.as_made, (0..self.n).map(order(self.n, seed)));
        &self.reordered
    }
}

impl Queries<Vec<u64>> {
    pub fn of_hashes(hash: impl Fn(u64) -> u64, n: usize) -> Self {
        Self::new((0..n as u64).map(hash).collect(), n)
    }
}

pub trait Reorder {
    /// Copies the queries `from` a slice, in this `order`.
    fn reorder(&mut self, from: &Self, order: impl Iterator<Item = usize>);
}

impl Reorder for Vec<u64> {
    fn reorder(&mut self, from: &Self, order: impl Iterator<Item = usize>) {
        self.clear();
        self.extend(order.map(|i| from[i]));
    }
}
