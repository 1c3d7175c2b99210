//! The hashes that are asked for.

use bloomline::mix;

/// The hash of a key that is in a filter of keys 0, 1, …, spread over the filter and not the first of them.
pub fn present(i: u64, keys: u64) -> u64 {
    mix(mix(i ^ (1 << 60)) % keys)
}

/// The hash of a key that is in no filter.
pub fn missing(i: u64) -> u64 {
    mix((1 << 50) + i)
}

/// Present and missing ones in an order that no branch predictor can guess.
pub fn mixed(i: u64, keys: u64) -> u64 {
    if mix(i ^ (1 << 61)) >> 63 == 0 { missing(i) } else { present(i, keys) }
}

/// Queries that are asked again and again, but never twice in the same order: a branch predictor learns thousands of
/// answers by heart, and filters that branch on each bit would seem three times as fast as they are.
pub trait Queries {
    /// A power of two.
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts query number `order(i)` in place i.
    fn reorder(&mut self, order: impl Fn(usize) -> usize);
}

/// Some order of `length` queries, another for each `seed`.
pub fn order(length: usize, seed: u64) -> impl Fn(usize) -> usize {
    debug_assert!(length.is_power_of_two());
    let (step, start) = (mix(seed) as usize | 1, mix(!seed) as usize);
    move |i| i.wrapping_mul(step).wrapping_add(start) & (length - 1)
}

pub struct Hashes {
    as_made: Vec<u64>,
    reordered: Vec<u64>,
}

impl Hashes {
    pub fn new(hashes: impl Iterator<Item = u64>) -> Self {
        let hashes: Vec<u64> = hashes.collect();
        Self { reordered: hashes.clone(), as_made: hashes }
    }

    pub fn get(&self) -> &[u64] {
        &self.reordered
    }
}

impl Queries for Hashes {
    fn len(&self) -> usize {
        self.as_made.len()
    }

    fn reorder(&mut self, order: impl Fn(usize) -> usize) {
        for (i, hash) in self.reordered.iter_mut().enumerate() {
            *hash = self.as_made[order(i)];
        }
    }
}

/// Hashes to take one part after the other, so that none is met again soon.
pub struct Stream {
    hashes: Vec<u64>,
    window: usize,
    next: usize,
}

impl Stream {
    pub fn new(hashes: impl Iterator<Item = u64>, window: usize) -> Self {
        Self { hashes: hashes.collect(), window, next: 0 }
    }

    #[allow(clippy::should_implement_trait, reason = "an iterator cannot lend")]
    pub fn next(&mut self) -> &[u64] {
        if self.next + self.window > self.hashes.len() {
            self.next = 0;
        }
        let start = self.next;
        self.next += self.window;
        &self.hashes[start..self.next]
    }
}
