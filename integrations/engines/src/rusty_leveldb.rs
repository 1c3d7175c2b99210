//! `rusty-leveldb`.

use std::rc::Rc;

use bloomline::sstable::FilterPolicy;

use crate::Bloomline;

/// # Damage
///
/// `rusty-leveldb` reads filter blocks without comparing their checksums, so damage on disk can hide keys, as with its own
/// filters. Its cache has undefined behaviour, which the README describes.
impl rusty_leveldb::FilterPolicy for Bloomline {
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

impl From<Bloomline> for Rc<Box<dyn rusty_leveldb::FilterPolicy>> {
    fn from(policy: Bloomline) -> Self {
        Self::new(Box::new(policy))
    }
}
