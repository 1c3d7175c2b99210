//! bloomline used in batches of hashes.

use bloomline::BloomFilter;

use crate::contender::{Contender, act_on};

/// bloomline through `insert_batch` and `contains_batch`.
pub struct Batch {
    name: String,
    filter: BloomFilter,
}

impl Batch {
    /// A realistic batch for a caller, and small enough to leave the L1 cache to the filter.
    const LENGTH: usize = 1024;

    pub fn new(name: impl Into<String>, filter: BloomFilter) -> Self {
        Self { name: name.into(), filter }
    }
}

/// The number of hashes that `contains_batch` finds.
#[inline(always)]
pub fn count_in_batches(hashes: &[u64], contains_batch: impl Fn(&[u64], &mut [bool])) -> usize {
    let mut found = [false; Batch::LENGTH];
    let mut count = 0;
    for hashes in hashes.chunks(Batch::LENGTH) {
        let found = &mut found[..hashes.len()];
        contains_batch(hashes, found);
        // Byte sums vectorize, so that little besides the lookups is timed.
        let sum = |found: &[bool]| found.iter().fold(0_u8, |sum, &found| sum + u8::from(found));
        count += found.chunks(128).map(|found| usize::from(sum(found))).sum::<usize>();
    }
    count
}

impl Contender for Batch {
    fn name(&self) -> &str {
        &self.name
    }

    fn byte_len(&self) -> usize {
        self.filter.byte_len()
    }

    #[inline(never)]
    fn insert_all(&mut self, hashes: &[u64]) {
        for hashes in hashes.chunks(Self::LENGTH) {
            self.filter.insert_batch(hashes);
        }
    }

    #[inline(never)]
    fn count(&self, hashes: &[u64]) -> usize {
        count_in_batches(hashes, |hashes, found| self.filter.contains_batch(hashes, found))
    }

    #[inline(never)]
    fn count_branching(&self, hashes: &[u64]) -> usize {
        let mut found = [false; Self::LENGTH];
        let mut count = 0;
        for hashes in hashes.chunks(Self::LENGTH) {
            let found = &mut found[..hashes.len()];
            self.filter.contains_batch(hashes, found);
            for (&hash, &found) in hashes.iter().zip(&*found) {
                if found {
                    count += act_on(hash);
                }
            }
        }
        count
    }
}
