//! `sstable`.

use std::sync::Arc;

use bloomline::sstable::FilterPolicy;

use crate::Bloomline;

/// # Damage
///
/// `sstable` reads filter blocks without comparing their checksums, so damage on disk can hide keys, as with its own
/// filters. Its cache has undefined behaviour, which the README describes.
impl sstable::filter::FilterPolicy for Bloomline {
    fn name(&self) -> &'static str {
        FilterPolicy::NAME
    }

    fn create_filter(&self, keys: &[u8], offsets: &[usize]) -> Vec<u8> {
        self.create(keys, offsets)
    }

    fn key_may_match(&self, key: &[u8], filter: &[u8]) -> bool {
        self.may_match(key, filter)
    }
}

impl From<Bloomline> for Arc<Box<dyn sstable::filter::FilterPolicy>> {
    fn from(policy: Bloomline) -> Self {
        Self::new(Box::new(policy))
    }
}
