//! A policy that counts, because SurrealKV has no statistics of its filters.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use surrealkv::FilterPolicy;

/// Wraps a policy, counts its queries and keeps the filters that it creates.
pub struct Observed {
    policy: Arc<dyn FilterPolicy>,
    queries: AtomicU64,
    rejections: AtomicU64,
    pub created: Mutex<BTreeSet<Vec<u8>>>,
}

impl Observed {
    pub fn new(policy: Arc<dyn FilterPolicy>) -> Arc<Self> {
        let (queries, rejections) = Default::default();
        Arc::new(Self { policy, queries, rejections, created: Mutex::default() })
    }

    /// The queries and rejections since the last call.
    pub fn counts(&self) -> (u64, u64) {
        (self.queries.swap(0, Ordering::Relaxed), self.rejections.swap(0, Ordering::Relaxed))
    }
}

impl FilterPolicy for Observed {
    fn name(&self) -> &str {
        self.policy.name()
    }

    fn may_contain(&self, filter: &[u8], key: &[u8]) -> bool {
        let answer = self.policy.may_contain(filter, key);
        self.queries.fetch_add(1, Ordering::Relaxed);
        self.rejections.fetch_add(u64::from(!answer), Ordering::Relaxed);
        answer
    }

    fn create_filter(&self, keys: &[Vec<u8>]) -> Vec<u8> {
        self.policy.create_filter(keys)
    }

    fn key_hash(&self, key: &[u8]) -> u64 {
        self.policy.key_hash(key)
    }

    fn create_filter_from_hashes(&self, hashes: &[u64]) -> Vec<u8> {
        let filter = self.policy.create_filter_from_hashes(hashes);
        self.created.lock().unwrap().insert(filter.clone());
        filter
    }

    fn filter_keys_per_partition(&self, partition_bytes: usize) -> usize {
        self.policy.filter_keys_per_partition(partition_bytes)
    }
}
