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

    pub fn next(&mut self, length: usize) -> &[u64] {
        let length = length.min(self.window);
        if self.next + length > self.hashes.len() {
            self.next = 0;
        }
        let window = &self.hashes[self.next..][..length];
        self.next += length;
        window
    }
}
