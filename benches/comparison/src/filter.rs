//! The interface of all filters. Its methods are whole loops, so that each lookup is inlined as far as its library
//! allows.

use std::hint::black_box;

use bloomline::{BloomFilter, mix};
use xorf::Filter as _;

use crate::keys::Keys;

pub trait Filter {
    /// Memory of the bits, without the surrounding structure.
    fn byte_len(&self) -> usize;

    fn insert_all(&mut self, hashes: &[u64]);

    /// [`insert_all`](Self::insert_all) outside of timings.
    fn fill(&mut self, hashes: &[u64]) {
        self.insert_all(hashes);
    }

    /// Called once, after the last key.
    fn finish(&mut self) {}

    /// The number of hashes found, with or without a branch on each answer.
    fn count(&self, hashes: &[u64], with_branch: bool) -> usize;

    /// [`insert_all`](Self::insert_all), hashing included. Only of filters in
    /// [`HASH_KEYS`](crate::line_up::HASH_KEYS).
    fn insert_keys(&mut self, _keys: &Keys) {
        unimplemented!("by hash only");
    }

    /// [`count`](Self::count), hashing included. Has the same exceptions as [`insert_keys`](Self::insert_keys).
    fn count_keys(&self, _keys: &Keys) -> usize {
        unimplemented!("by hash only");
    }
}

// Each loop is a function of its own, so that neither changes how the other is compiled, and gets a closure of its own,
// because a closure with two callers is not always inlined, which makes lookups in modules 1.4 times slower.
#[inline(never)]
fn branching(hashes: &[u64], contains: impl Fn(u64) -> bool) -> usize {
    hashes.iter().map(|&hash| if contains(hash) { act_on(hash) } else { 0 }).sum()
}

#[inline(never)]
pub fn branchless(hashes: &[u64], contains: impl Fn(u64) -> bool) -> usize {
    hashes.iter().filter(|&&hash| contains(hash)).count()
}

/// Work that the compiler cannot do without a branch on the answer.
#[inline(always)]
fn act_on(hash: u64) -> usize {
    black_box(hash);
    1
}

/// Implements [`Filter`] for a library's filter, one hash or key at a time.
macro_rules! one_by_one {
    ($filter:ty, $byte_len:expr $(, $insert:ident, $contains:ident)? $(; $fill:item)?) => {
        impl Filter for $filter {
            fn byte_len(&self) -> usize {
                $byte_len(self)
            }

            #[inline(never)]
            fn insert_all(&mut self, hashes: &[u64]) {
                hashes.iter().for_each(|&hash| _ = self.insert_hash(hash));
            }

            $($fill)?

            fn count(&self, hashes: &[u64], with_branch: bool) -> usize {
                match with_branch {
                    true => branching(hashes, |hash| self.contains_hash(hash)),
                    false => branchless(hashes, |hash| self.contains_hash(hash)),
                }
            }

            $(
                fn insert_keys(&mut self, keys: &Keys) {
                    keys.iter().for_each(|key| _ = self.$insert(key));
                }

                #[inline(never)]
                fn count_keys(&self, keys: &Keys) -> usize {
                    keys.iter().map(|key| usize::from(self.$contains(key))).sum()
                }
            )?
        }
    };
}

one_by_one!(BloomFilter, BloomFilter::byte_len, insert, contains; fn fill(&mut self, hashes: &[u64]) {
    self.insert_batch(hashes);
});
one_by_one!(fastbloom::BloomFilter, |filter: &Self| filter.num_bits() / 8, insert, contains);
one_by_one!(sbbf_rs_safe::Filter, |filter: &Self| filter.as_bytes().len());

/// A filter of bloomline whose lookups are not inlined, so that none shares the work that a loop does once.
pub struct Call(pub BloomFilter);

impl Call {
    #[inline(never)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.0.contains_hash(hash)
    }

    fn insert_hash(&mut self, hash: u64) -> bool {
        self.0.insert_hash(hash)
    }
}

one_by_one!(Call, |filter: &Self| filter.0.byte_len());

/// A filter of bloomline through `insert_batch` and `contains_batch`.
pub struct Batch(pub BloomFilter);

/// A realistic batch for a caller, and small enough to leave the L1 cache to the filter.
pub const BATCH: usize = 1024;

#[inline(always)]
fn count_in_batches(hashes: &[u64], with_branch: bool, look_up: impl Fn(&[u64], &mut [bool])) -> usize {
    let mut found = [false; BATCH];
    let mut count = 0;
    for hashes in hashes.chunks(BATCH) {
        let found = &mut found[..hashes.len()];
        look_up(hashes, found);
        if with_branch {
            let answers = hashes.iter().zip(&*found);
            count += answers.map(|(&hash, &found)| if found { act_on(hash) } else { 0 }).sum::<usize>();
        } else {
            // Sums bytes, which the compiler vectorizes, so that little besides the lookups is timed.
            let sum = |found: &[bool]| found.iter().fold(0_u8, |sum, &found| sum + u8::from(found));
            count += found.chunks(128).map(|found| usize::from(sum(found))).sum::<usize>();
        }
    }
    count
}

impl Filter for Batch {
    fn byte_len(&self) -> usize {
        self.0.byte_len()
    }

    #[inline(never)]
    fn insert_all(&mut self, hashes: &[u64]) {
        hashes.chunks(BATCH).for_each(|hashes| self.0.insert_batch(hashes));
    }

    #[inline(never)]
    fn count(&self, hashes: &[u64], with_branch: bool) -> usize {
        count_in_batches(hashes, with_branch, |hashes, found| self.0.contains_batch(hashes, found))
    }
}

#[derive(Clone)]
#[repr(align(64))]
struct Line([u64; 8]);

/// The least work of a filter with one cache line per lookup. Reads eight bytes of each hash's line and does nothing
/// with them.
pub struct Baseline(Vec<Line>);

impl Baseline {
    pub fn new(size_bytes: usize) -> Self {
        assert!(size_bytes >= 64, "at least one line");
        // Written to, because untouched pages would all map to the same zero page.
        Self((0..size_bytes as u64 / 64).map(|i| Line([mix(i); 8])).collect())
    }
}

impl Filter for Baseline {
    fn byte_len(&self) -> usize {
        self.0.len() * 64
    }

    fn insert_all(&mut self, _hashes: &[u64]) {}

    #[inline(never)]
    fn count(&self, hashes: &[u64], _with_branch: bool) -> usize {
        let n_lines = self.0.len() as u64;
        let mut union = 0;
        for &hash in hashes {
            let line = ((u128::from(hash) * u128::from(n_lines)) >> 64) as usize;
            // SAFETY: the high half of a product with n_lines is less than n_lines, and `new` refuses n_lines = 0.
            union |= unsafe { self.0.get_unchecked(line) }.0[0];
        }
        black_box(union);
        0
    }
}

/// Not a Bloom filter. It is built from all keys at once, and shows what a static set achieves with as many bits.
#[derive(Default)]
pub struct Xorf {
    hashes: Vec<u64>,
    filter: Option<xorf::BinaryFuse8>,
}

impl Xorf {
    fn filter(&self) -> &xorf::BinaryFuse8 {
        self.filter.as_ref().expect("finished")
    }
}

impl Filter for Xorf {
    fn byte_len(&self) -> usize {
        self.filter().len()
    }

    fn insert_all(&mut self, hashes: &[u64]) {
        self.hashes.extend(hashes);
    }

    fn finish(&mut self) {
        self.filter = Some(xorf::BinaryFuse8::try_from(&self.hashes).expect("distinct keys"));
        self.hashes = Vec::new();
    }

    fn count(&self, hashes: &[u64], with_branch: bool) -> usize {
        let filter = self.filter();
        match with_branch {
            true => branching(hashes, |hash| filter.contains(&hash)),
            false => branchless(hashes, |hash| filter.contains(&hash)),
        }
    }
}
