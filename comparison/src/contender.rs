//! What every contender can do: whole loops, so that the call per lookup is as inlined as its library lets it be.

use std::hint::black_box;

/// A filter in the race.
pub trait Contender {
    fn name(&self) -> &str;

    /// Memory of the bits, without the structure around them.
    fn size_bytes(&self) -> usize;

    /// Whether it hashes what it is given once more, as its library takes no hashes.
    fn hashes_by_itself(&self) -> bool {
        false
    }

    /// Whether keys can be inserted one after the other.
    fn grows(&self) -> bool {
        true
    }

    fn insert_all(&mut self, hashes: &[u64]);

    /// [`insert_all`](Self::insert_all) where the time does not matter.
    fn fill(&mut self, hashes: &[u64]) {
        self.insert_all(hashes);
    }

    /// Nothing more will be filled in.
    fn finish(&mut self) {}

    /// How many are found, without a branch on the answer.
    fn count(&self, hashes: &[u64]) -> usize;

    /// How many are found, with a branch on each answer.
    fn count_branching(&self, hashes: &[u64]) -> usize;
}

/// A filter that answers one hash at a time.
pub trait Single {
    const HASHES_BY_ITSELF: bool = false;

    fn size_bytes(&self) -> usize;
    fn insert(&mut self, hash: u64);
    fn contains(&self, hash: u64) -> bool;

    fn fill(&mut self, hashes: &[u64]) {
        for &hash in hashes {
            self.insert(hash);
        }
    }
}

/// A [`Single`] in the race.
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

    fn size_bytes(&self) -> usize {
        self.filter.size_bytes()
    }

    fn hashes_by_itself(&self) -> bool {
        F::HASHES_BY_ITSELF
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
}

/// Something that the compiler cannot do without having branched on the answer.
#[inline(always)]
pub fn act_on(hash: u64) -> usize {
    black_box(hash);
    1
}
