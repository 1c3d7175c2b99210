//! bloomline in small pages, in a build whose own filters use huge pages.

use bloomline::{BloomFilter, BloomView};

use crate::batch::count_in_batches;
use crate::contender::Contender;

pub const SMALL_PAGES: &str = "bloomline batch, small pages";

/// A filter's bytes, queried in place.
pub struct SmallPages {
    filter: Option<BloomFilter>,
    bytes: Vec<u8>,
    /// Where the filter starts, aligned to a cache line.
    start: usize,
}

impl SmallPages {
    pub fn new(filter: BloomFilter) -> Self {
        Self { filter: Some(filter), bytes: Vec::new(), start: 0 }
    }
}

impl Contender for SmallPages {
    fn name(&self) -> &str {
        SMALL_PAGES
    }

    fn byte_len(&self) -> usize {
        (self.bytes.len() - self.start) / 64 * 64
    }

    fn supports_inserts(&self) -> bool {
        false
    }

    fn insert_all(&mut self, hashes: &[u64]) {
        self.filter.as_mut().expect("not finished").insert_batch(hashes);
    }

    fn finish(&mut self) {
        let filter = self.filter.take().expect("finished once");
        // Reserves the final size with its padding: a reallocation would change the alignment.
        self.bytes.reserve_exact(filter.byte_len() + 128);
        self.start = self.bytes.as_ptr().align_offset(64);
        self.bytes.resize(self.start, 0);
        filter.write_compact(&mut self.bytes).expect("room for it");
    }

    fn count(&self, hashes: &[u64]) -> usize {
        let view = BloomView::from_compact(&self.bytes[self.start..]).expect("our own bytes");
        count_in_batches(hashes, |hashes, found| view.contains_batch(hashes, found))
    }

    fn count_branching(&self, hashes: &[u64]) -> usize {
        self.count(hashes)
    }
}
