//! SlateDB.

use std::sync::Arc;

use bloomline::CompactFilter;
use bloomline::sstable::{FilterPolicy, Policy};
use bytes::BufMut;
use slatedb::{Filter, FilterQuery, FilterTarget, RowEntry};

use crate::Bloomline;

impl slatedb::FilterPolicy for Bloomline {
    fn name(&self) -> &str {
        FilterPolicy::NAME
    }

    fn builder(&self) -> Box<dyn slatedb::FilterBuilder> {
        Box::new(Builder(self.policy.keys()))
    }

    fn decode(&self, data: &[u8]) -> Arc<dyn Filter> {
        match CompactFilter::from_compact(data) {
            Ok(filter) => Arc::new(Opened(filter)),
            Err(_) => Arc::new(Unusable(self.clone())),
        }
    }

    fn estimate_size(&self, num_keys: usize) -> usize {
        let lanes = (num_keys as f64 * self.policy.keys().bits_per_key() / 64.0).ceil().max(1.0);
        (lanes as usize).saturating_mul(8).saturating_add(1)
    }

    // Only whole keys are added.
    fn supports_prefix_queries(&self) -> bool {
        false
    }

    fn supports_range_queries(&self) -> bool {
        false
    }
}

impl From<Bloomline> for Arc<dyn slatedb::FilterPolicy> {
    fn from(policy: Bloomline) -> Self {
        Arc::new(policy)
    }
}

struct Builder(bloomline::FilterBuilder);

impl slatedb::FilterBuilder for Builder {
    fn add_entry(&mut self, entry: &RowEntry) {
        // Tombstones and merge operands too: a get that skips one finds older versions of the key in other SSTs.
        self.0.add(&entry.key);
    }

    fn build(&mut self) -> Arc<dyn Filter> {
        let mut bytes = Vec::new();
        self.0.finish_compact(&mut bytes);
        Arc::new(Opened(CompactFilter::from_compact(&bytes).expect("just written")))
    }
}

struct Opened(CompactFilter);

impl Filter for Opened {
    fn might_match(&self, query: &FilterQuery) -> bool {
        match &query.target {
            FilterTarget::Point(key) => self.0.contains(key),
            FilterTarget::Prefix(_) | FilterTarget::Range { .. } => true,
        }
    }

    fn encode(&self, writer: &mut dyn BufMut) {
        writer.put_slice(self.0.as_bytes());
    }

    /// SlateDB charges its cache with this.
    fn size(&self) -> usize {
        self.0.size_bytes()
    }

    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        Arc::new(Self(self.0.clone()))
    }
}

/// In place of bytes that are not a filter.
struct Unusable(Bloomline);

impl Filter for Unusable {
    fn might_match(&self, query: &FilterQuery) -> bool {
        if let FilterTarget::Point(_) = query.target {
            self.0.count_unusable();
        }
        true
    }

    /// Writes nothing, because no bytes are not a filter either.
    fn encode(&self, _: &mut dyn BufMut) {}

    fn size(&self) -> usize {
        0
    }

    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        Arc::new(Self(self.0.clone()))
    }
}
