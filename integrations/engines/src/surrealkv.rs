//! SurrealKV.

use std::sync::Arc;

use bloomline::hash_key;
use bloomline::sstable::FilterPolicy;

use crate::policy::Bloomline;

/// `surrealkv`, for gets. Scans use no filters.
///
/// ```
/// use bloomline_adapters::Bloomline;
/// use surrealkv::TreeBuilder;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().to_owned();
/// let policy = Bloomline::with_bits_per_key(10.0)?;
/// let tree = TreeBuilder::new().with_path(path).with_filter_policy(Some(policy.clone().into())).build()?;
///
/// let mut transaction = tree.begin()?;
/// transaction.set("ant", "six legs")?;
/// transaction.commit().await?;
/// assert!(tree.begin()?.get("ant")?.is_some() && tree.begin()?.get("bee")?.is_none());
/// assert_eq!(policy.unusable_filters(), 0);
/// # tree.close().await?;
/// # Ok(())
/// # }
/// ```
///
/// # An existing database
///
/// A table that was written under a different policy is read without its filter, and each of its missing gets reads a
/// data block, until a compaction rewrites it. SurrealKV has no count that shows it. So after you change the policy of a
/// database, to bloomline or back, rewrite its tables by `tree.compact_range(None, None,
/// &CompactRangeOptions::default())`. It blocks, so in async code call it by `spawn_blocking`.
///
/// # Bits per key
///
/// At 10 bits per key, bloomline has about as many false positives as SurrealKV's default filter, and at 11 bits two
/// thirds of them. Filters lie in partitions of `index_partition_size` bytes, which the block cache keeps.
///
/// # Damage
///
/// SurrealKV checks the checksum of a filter when it reads it from disk. If it is wrong, the engine answers from the
/// data, warns in its log, and counts nothing here: [`unusable_filters`](Bloomline::unusable_filters) counts bytes
/// whose checksum is right and that are not a filter. Damage that no checksum sees, such as in memory, can hide keys, as with
/// the engine's own filters.
impl surrealkv::FilterPolicy for Bloomline {
    fn name(&self) -> &str {
        FilterPolicy::NAME
    }

    fn may_contain(&self, filter: &[u8], key: &[u8]) -> bool {
        self.may_match(key, filter)
    }

    fn create_filter(&self, keys: &[Vec<u8>]) -> Vec<u8> {
        let mut filter = Vec::new();
        self.policy.create_filter(keys, &mut filter);
        filter
    }

    fn key_hash(&self, key: &[u8]) -> u64 {
        hash_key(key, 0)
    }

    fn create_filter_from_hashes(&self, hashes: &[u64]) -> Vec<u8> {
        let mut keys = self.policy.builder();
        let mut filter = Vec::new();
        // If memory runs out, the filter has no bytes, which are no filter.
        if keys.try_reserve(hashes.len()).is_ok() {
            keys.insert_batch(hashes);
            _ = keys.finish_compact(&mut filter);
        }
        filter
    }

    /// SurrealKV cuts a partition before the data block that reaches this number.
    fn filter_keys_per_partition(&self, partition_bytes: usize) -> usize {
        ((partition_bytes as f64 * 8.0 / self.policy.bits_per_key()) as usize).max(1)
    }
}

impl From<Bloomline> for Arc<dyn surrealkv::FilterPolicy> {
    fn from(policy: Bloomline) -> Self {
        Arc::new(policy)
    }
}
