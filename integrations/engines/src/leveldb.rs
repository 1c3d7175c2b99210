//! Engines with the interface of LevelDB's filter policies.

use bloomline::sstable::FilterPolicy;

use crate::policy::Bloomline;

macro_rules! implement {
    ($engine:path, $owner:ty) => {
        /// # Damage
        ///
        /// The engine reads filter blocks without comparing their checksums, so damage on disk can hide keys, as with
        /// its own filters. Its cache has undefined behaviour, which the README describes.
        impl $engine for Bloomline {
            fn name(&self) -> &'static str {
                FilterPolicy::NAME
            }

            /// The keys lie end to end in `keys`, each from its offset to the next key's.
            fn create_filter(&self, keys: &[u8], offsets: &[usize]) -> Vec<u8> {
                let ends = offsets.iter().skip(1).copied().chain([keys.len()]);
                let mut filter = Vec::new();
                let keys = offsets.iter().zip(ends).map(|(&start, end)| &keys[start..end]);
                self.policy.create_filter(keys, &mut filter);
                filter
            }

            fn key_may_match(&self, key: &[u8], filter: &[u8]) -> bool {
                self.may_match(key, filter)
            }
        }

        impl From<Bloomline> for $owner {
            fn from(policy: Bloomline) -> Self {
                Self::new(Box::new(policy))
            }
        }
    };
}

#[cfg(feature = "rusty-leveldb")]
implement!(rusty_leveldb::FilterPolicy, std::rc::Rc<Box<dyn rusty_leveldb::FilterPolicy>>);
#[cfg(feature = "sstable")]
implement!(sstable::filter::FilterPolicy, std::sync::Arc<Box<dyn sstable::filter::FilterPolicy>>);
