//! SlateDB.

use std::sync::Arc;

use bloomline::sizing::StandardSizing;
use bloomline::sstable::FilterPolicy;
use bloomline::variants::StandardBloomFilter;
use bloomline::{AlignedBytes, FilterBuilder, OwnedView, SizingError, StandaloneFooter};
use bytes::BufMut;
use slatedb::{Filter, FilterQuery, FilterTarget, RowEntry};

use crate::{Bloomline, Unusable};

/// `slatedb`, for gets of whole keys. SlateDB 0.18 needs Rust 1.91.
///
/// ```
/// use std::sync::Arc;
///
/// use bloomline_adapters::Bloomline;
/// use slatedb::Db;
/// use slatedb::object_store::memory::InMemory;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let database = Db::builder("animals", Arc::new(InMemory::new()))
///     .with_filter_policies(vec![Bloomline::with_bits_per_key(10.0)?.into()])
///     .build()
///     .await?;
/// database.put(b"ant", b"six legs").await?;
/// assert!(database.get(b"ant").await?.is_some() && database.get(b"bee").await?.is_none());
/// # database.close().await?;
/// # Ok(())
/// # }
/// ```
///
/// # Set it on every builder
///
/// **SlateDB drops filters whose policy a builder lacks.** Nothing fails and no key is lost, but a get reads a data
/// block of every SST that could have the key. Each builder has a list of policies of its own, which is SlateDB's own
/// filter if you set none:
///
/// | without the policy | |
/// |---|---|
/// | `Db::builder` | New SSTs get SlateDB's own filters; bloomline's are ignored. |
/// | `DbReader::builder` | Its gets use no filter, nor do the gets of a database that shares its cache. |
/// | `CompactorBuilder`, `CompactionWorkerBuilder`, in a process of their own | Compaction replaces bloomline's filters by SlateDB's own, which databases and readers with bloomline alone ignore. |
/// | `Admin::run_compactor`, `Admin::run_compaction_worker` | The same. They take no policies: use the two builders instead. |
///
/// A compactor inside a database (`with_compactor_builder`, or by default) has the policies of the database, whatever
/// its own builder says.
///
/// To notice, look at SlateDB's metrics (`with_metrics_recorder`): if `slatedb.db.sst_filter_negative_count` and
/// `slatedb.db.sst_filter_positive_count`, labelled `kind=point`, stay at 0 while `slatedb.db.request_count`, labelled
/// `op=get`, grows, no filter is used. If some SSTs lack the filter, they grow more slowly than gets × SSTs. SlateDB
/// also logs the warning `unknown filter policy '…' in SST, skipping` when it loads such an SST's filters.
/// [`unusable_filters`](Bloomline::unusable_filters) stays at 0, because bloomline never sees them.
///
/// A cache remembers a dropped filter as "no filter", for all that share it under one `db_cache_id`, and if it is on
/// disk, for ever. After you have added the policy, empty it or open it with another `db_cache_id`.
///
/// # An existing database
///
/// SSTs with SlateDB's own filters are read without them until a compaction rewrites them. To use both, register both:
/// `vec![bloomline.into(), Arc::new(BloomFilterPolicy::new(10))]`. New SSTs then have both filters, so take out the
/// second when the old SSTs are compacted.
///
/// # Bits per key
///
/// A missing get queries a filter of each SST in L0 and of each sorted run, and a false positive costs it a read of the
/// object store, beside which lookups take no time. So choose by false positives: bloomline needs 10.3 bits per key for
/// as many as SlateDB's own filter has with 10, and 15.6 for an eighth of them. [`BloomlineStandard`] has fewer for the
/// same bytes.
///
/// # Prefixes and small SSTs
///
/// Scans use no filter of bloomline. For prefix scans, keep SlateDB's own filter of prefixes in the same list:
/// `BloomFilterPolicy::new(10).with_prefix_extractor(…).with_whole_key_filtering(false)`.
///
/// SSTs of fewer keys than `min_filter_keys`, 1000 by default, have no filter. It is set in `Settings`, and for a
/// compactor of its own in `CompactionWorkerOptions`.
impl slatedb::FilterPolicy for Bloomline {
    fn name(&self) -> &str {
        FilterPolicy::NAME
    }

    fn builder(&self) -> Box<dyn slatedb::FilterBuilder> {
        Box::new(Builder { policy: self.clone(), keys: self.policy.builder() })
    }

    fn decode(&self, data: &[u8]) -> Arc<dyn Filter> {
        match AlignedBytes::copy_of(data).map(OwnedView::from_compact) {
            Ok(Ok(filter)) => Arc::new(Opened(Arc::new(filter))),
            _ => Arc::new(NotAFilter(self.unusable.clone())),
        }
    }

    /// Rounded up as the filter is, or a little more.
    fn estimate_size(&self, num_keys: usize) -> usize {
        ((num_keys as f64 * self.policy.bits_per_key() / 8.0) as usize).saturating_add(65)
    }

    // Only whole keys are added.
    fn supports_prefix_queries(&self) -> bool {
        false
    }
}

impl From<Bloomline> for Arc<dyn slatedb::FilterPolicy> {
    fn from(policy: Bloomline) -> Self {
        Arc::new(policy)
    }
}

/// [`StandardBloomFilter`]s in `slatedb`, for databases in an object store: of all Bloom filters, these have the fewest
/// false positives for their bytes.
///
/// Use it as [`Bloomline`]: on every builder, and beside it to read databases of both. A lookup takes up to k cache
/// misses instead of one, which is nothing beside the milliseconds that a false positive takes there.
///
/// ```
/// use bloomline_adapters::BloomlineStandard;
/// use slatedb::Db;
/// use slatedb::object_store::memory::InMemory;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let policy = BloomlineStandard::with_bits_per_key(10.0)?;
/// let database = Db::builder("animals", std::sync::Arc::new(InMemory::new()))
///     .with_filter_policies(vec![policy.clone().into()])
///     .build()
///     .await?;
/// database.put(b"ant", b"six legs").await?;
/// assert!(database.get(b"ant").await?.is_some() && database.get(b"bee").await?.is_none());
/// assert_eq!(policy.unusable_filters(), 0);
/// # database.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct BloomlineStandard(Bloomline);

impl BloomlineStandard {
    /// The name that SSTs store. Their filters are standalone bytes.
    pub const NAME: &str = "bloomline.Standard2";

    /// A policy of `bits_per_key` for each distinct key: 10 for 0.8 % false positives.
    ///
    /// # Errors
    ///
    /// If `bits_per_key` is not above 0 and at most 64.
    pub fn with_bits_per_key(bits_per_key: f64) -> Result<Self, SizingError> {
        Bloomline::with_bits_per_key(bits_per_key).map(Self)
    }

    /// See [`Bloomline::unusable_filters`]. Filters have checksums of their own here.
    pub fn unusable_filters(&self) -> u64 {
        self.0.unusable_filters()
    }
}

impl slatedb::FilterPolicy for BloomlineStandard {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn builder(&self) -> Box<dyn slatedb::FilterBuilder> {
        Box::new(StandardBuilder { policy: self.0.clone(), keys: self.0.policy.builder() })
    }

    fn decode(&self, data: &[u8]) -> Arc<dyn Filter> {
        match StandardBloomFilter::from_standalone(data) {
            Ok(filter) => Arc::new(Opened(Arc::new(filter))),
            Err(_) => Arc::new(NotAFilter(self.0.unusable.clone())),
        }
    }

    fn estimate_size(&self, num_keys: usize) -> usize {
        StandardSizing::for_bits_per_key(num_keys, self.0.policy.bits_per_key())
            .map_or(usize::MAX, |sizing| sizing.bit_len().div_ceil(64) as usize * 8 + StandaloneFooter::LEN)
    }

    fn supports_prefix_queries(&self) -> bool {
        false
    }
}

impl From<BloomlineStandard> for Arc<dyn slatedb::FilterPolicy> {
    fn from(policy: BloomlineStandard) -> Self {
        Arc::new(policy)
    }
}

struct Builder {
    policy: Bloomline,
    keys: FilterBuilder,
}

impl slatedb::FilterBuilder for Builder {
    fn add_entry(&mut self, entry: &RowEntry) {
        // Tombstones and merge operands too: a get that skips one finds older versions of the key in other SSTs.
        self.keys.insert(&entry.key[..]);
    }

    fn build(&mut self) -> Arc<dyn Filter> {
        let mut bytes = Vec::new();
        // There may be no memory for it. The SST is then written without a usable filter: no bytes are no filter.
        if self.keys.finish_compact(&mut bytes).is_err() {
            self.keys.clear();
        }
        slatedb::FilterPolicy::decode(&self.policy, &bytes)
    }
}

struct StandardBuilder {
    policy: Bloomline,
    /// Counts the versions of a key, which are neighbours, once.
    keys: FilterBuilder,
}

impl slatedb::FilterBuilder for StandardBuilder {
    fn add_entry(&mut self, entry: &RowEntry) {
        self.keys.insert(&entry.key[..]);
    }

    fn build(&mut self) -> Arc<dyn Filter> {
        let filter =
            StandardBloomFilter::with_bits_per_key(self.keys.len(), self.policy.policy.bits_per_key());
        let built: Arc<dyn Filter> = match filter {
            Ok(mut filter) => {
                self.keys.hashes().for_each(|hashes| filter.insert_batch(hashes));
                Arc::new(Opened(Arc::new(filter)))
            }
            // There is no memory for it. The SST is written without a usable filter.
            Err(_) => Arc::new(NotAFilter(self.policy.unusable.clone())),
        };
        self.keys.clear();
        built
    }
}

/// What both kinds of filters can do.
trait Stored: Send + Sync + 'static {
    fn contains(&self, key: &[u8]) -> bool;
    fn encode(&self, writer: &mut dyn BufMut);
    fn byte_len(&self) -> usize;
}

impl Stored for OwnedView<AlignedBytes> {
    fn contains(&self, key: &[u8]) -> bool {
        self.contains(key)
    }

    fn encode(&self, writer: &mut dyn BufMut) {
        writer.put_slice(self.get_ref());
    }

    fn byte_len(&self) -> usize {
        self.get_ref().len().next_multiple_of(64)
    }
}

impl Stored for StandardBloomFilter {
    fn contains(&self, key: &[u8]) -> bool {
        self.contains(key)
    }

    fn encode(&self, writer: &mut dyn BufMut) {
        writer.put_slice(&self.to_standalone());
    }

    fn byte_len(&self) -> usize {
        self.byte_len()
    }
}

struct Opened<F>(Arc<F>);

impl<F: Stored> Filter for Opened<F> {
    fn might_match(&self, query: &FilterQuery) -> bool {
        match &query.target {
            FilterTarget::Point(key) => self.0.contains(key),
            FilterTarget::Prefix(_) | FilterTarget::Range { .. } => true,
        }
    }

    fn encode(&self, writer: &mut dyn BufMut) {
        self.0.encode(writer);
    }

    /// SlateDB charges its cache with this.
    fn size(&self) -> usize {
        self.0.byte_len()
    }

    /// The filter has memory of its own, no larger than it needs.
    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        Arc::new(Self(self.0.clone()))
    }
}

/// In place of bytes that are not a filter.
struct NotAFilter(Unusable);

impl Filter for NotAFilter {
    fn might_match(&self, query: &FilterQuery) -> bool {
        if let FilterTarget::Point(_) = query.target {
            self.0.count();
        }
        true
    }

    /// Writes no bytes, which are not a filter: a reader counts again.
    fn encode(&self, _: &mut dyn BufMut) {}

    fn size(&self) -> usize {
        0
    }

    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        Arc::new(Self(self.0.clone()))
    }
}
