//! The interface of all contenders: whole loops, so that each lookup is inlined as far as its library allows.

use std::hint::black_box;

use crate::keys::Keys;

/// A filter in the comparison.
pub trait Contender {
    fn name(&self) -> &str;

    /// Memory of the bits, without the surrounding structure.
    fn byte_len(&self) -> usize;

    /// Whether it hashes the given hash again, because its library does not accept hashes.
    fn rehashes(&self) -> bool {
        false
    }

    /// Whether keys can be inserted one by one. If not, inserts are not timed.
    fn supports_inserts(&self) -> bool {
        true
    }

    fn insert_all(&mut self, hashes: &[u64]);

    /// [`insert_all`](Self::insert_all) outside of timings.
    fn fill(&mut self, hashes: &[u64]) {
        self.insert_all(hashes);
    }

    /// Called once, after the last key.
    fn finish(&mut self) {}

    /// The number of hashes found, without a branch on the answer.
    fn count(&self, hashes: &[u64]) -> usize;

    /// The number of hashes found, with a branch on each answer.
    fn count_branching(&self, hashes: &[u64]) -> usize;

    /// Like [`insert_all`](Self::insert_all), hashing included. Only of contenders in
    /// [`BY_KEY`](crate::line_up::BY_KEY).
    fn insert_keys(&mut self, _keys: &Keys) {
        unimplemented!("{} by key", self.name());
    }

    /// Like [`count`](Self::count), hashing included. Only of contenders in [`BY_KEY`](crate::line_up::BY_KEY).
    fn count_keys(&self, _keys: &Keys) -> usize {
        unimplemented!("{} by key", self.name());
    }
}

/// A filter that answers one hash at a time.
pub trait Single {
    const REHASHES: bool = false;

    fn byte_len(&self) -> usize;
    fn insert(&mut self, hash: u64);
    fn contains(&self, hash: u64) -> bool;

    fn insert_key(&mut self, _key: &[u8]) {
        unimplemented!("no hash of keys");
    }

    fn contains_key(&self, _key: &[u8]) -> bool {
        unimplemented!("no hash of keys");
    }

    fn fill(&mut self, hashes: &[u64]) {
        for &hash in hashes {
            self.insert(hash);
        }
    }
}

/// A [`Single`] as a contender.
pub struct OneByOne<F> {
    name: String,
    filter: F,
}

impl<F> OneByOne<F> {
    pub fn new(name: impl Into<String>, filter: F) -> Self {
        Self { name: name.into(), filter }
    }
}

impl<F: Single> Contender for OneByOne<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn byte_len(&self) -> usize {
        self.filter.byte_len()
    }

    fn rehashes(&self) -> bool {
        F::REHASHES
    }

    #[inline(never)]
    fn insert_all(&mut self, hashes: &[u64]) {
        for &hash in hashes {
            self.filter.insert(hash);
        }
    }

    fn fill(&mut self, hashes: &[u64]) {
        self.filter.fill(hashes);
    }

    #[inline(never)]
    fn count(&self, hashes: &[u64]) -> usize {
        hashes.iter().map(|&hash| usize::from(self.filter.contains(hash))).sum()
    }

    #[inline(never)]
    fn count_branching(&self, hashes: &[u64]) -> usize {
        let mut count = 0;
        for &hash in hashes {
            if self.filter.contains(hash) {
                count += act_on(hash);
            }
        }
        count
    }

    #[inline(never)]
    fn insert_keys(&mut self, keys: &Keys) {
        for key in keys.iter() {
            self.filter.insert_key(key);
        }
    }

    #[inline(never)]
    fn count_keys(&self, keys: &Keys) -> usize {
        keys.iter().map(|key| usize::from(self.filter.contains_key(key))).sum()
    }
}

/// Work that the compiler cannot do without a branch on the answer.
#[inline(always)]
pub fn act_on(hash: u64) -> usize {
    black_box(hash);
    1
}
