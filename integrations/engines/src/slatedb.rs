//! SlateDB.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bloomline::sizing::standard::StandardSizing;
use bloomline::variants::StandardBloomFilter;
use bloomline::{AlignedBytes, Error, FilterBuilder, OwnedView, StandaloneFooter};
use bytes::{BufMut, Bytes};
use slatedb::{Filter, FilterQuery, PrefixExtractor, PrefixTarget, RowEntry};

use crate::entries::Entries;
use crate::policy::Bloomline;

/// `slatedb`, for gets and [prefix scans](Bloomline::with_prefix_extractor). SlateDB 0.18 needs Rust 1.91.
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
/// | `Db::builder` | New SSTs get SlateDB's own filters, and bloomline's are ignored. |
/// | `DbReader::builder` | Its gets use no filter, nor do the gets of a database that shares its cache. |
/// | `CompactorBuilder`, `CompactionWorkerBuilder`, in a process of their own | Compaction replaces bloomline's filters by SlateDB's own, which databases and readers with bloomline alone ignore. |
/// | `Admin::run_compactor`, `Admin::run_compaction_worker` | The same. They accept no policies, so use the two builders instead. |
///
/// A compactor inside a database (`with_compactor_builder`, or by default) has the policies of the database, whatever
/// its own builder says.
///
/// To notice, look at SlateDB's metrics (`with_metrics_recorder`). If `slatedb.db.sst_filter_negative_count` and
/// `slatedb.db.sst_filter_positive_count`, labelled `kind=point`, stay at 0 while `slatedb.db.request_count`, labelled
/// `op=get`, grows, no filter is used. For prefix scans, look at `kind=prefix`. If some SSTs lack the filter, they grow
/// more slowly than gets × SSTs. SlateDB also logs the warning `unknown filter policy '…' in SST, skipping` when it
/// loads such an SST's filters. [`unusable_filters`](Bloomline::unusable_filters) stays at 0, because bloomline never
/// sees them.
///
/// A cache remembers a dropped filter as "no filter", for all that share it under one `db_cache_id`, and if it is on
/// disk, for ever. After you have added the policy, empty it or open it with a new `db_cache_id`.
///
/// # An existing database
///
/// SSTs with SlateDB's own filters are read without them until a compaction rewrites them. To use both, register both,
/// with `vec![bloomline.into(), Arc::new(BloomFilterPolicy::new(10))]`. New SSTs then have both filters, so remove the
/// second policy once the old SSTs are compacted. Do the same to change the extractor or whole-key filtering, because
/// that changes the policy's name, too.
///
/// # Bits per key
///
/// A missing get queries a filter of each SST in L0 and of each sorted run, and a false positive costs it a read of the
/// object store, beside which lookups cost nothing. So choose by false positives. bloomline needs 10.3 bits per key for
/// as many as SlateDB's own filter has with 10, and 15.6 for an eighth of them. [`BloomlineStandard`] has fewer for the
/// same bytes.
///
/// # Small SSTs
///
/// SSTs of fewer keys than `min_filter_keys`, 1000 by default, have no filter. It is set in `Settings`, and for a
/// compactor of its own in `CompactionWorkerOptions`.
impl slatedb::FilterPolicy for Bloomline {
    fn name(&self) -> &str {
        &self.entries.name
    }

    fn builder(&self) -> Box<dyn slatedb::FilterBuilder> {
        Box::new(Builder::<OwnedView<AlignedBytes>>::new(self))
    }

    fn decode(&self, data: &[u8]) -> Arc<dyn Filter> {
        self.filter(<OwnedView<AlignedBytes>>::decode(data))
    }

    /// Rather too much, because each of up to four modules is rounded up to whole blocks. Without prefixes, because
    /// their number is unknown.
    fn estimate_size(&self, num_keys: usize) -> usize {
        ((num_keys as f64 * self.policy.bits_per_key() / 8.0) as usize).saturating_add(4 * 64 + 2)
    }

    fn supports_prefix_queries(&self) -> bool {
        self.entries.extractor.is_some()
    }
}

impl From<Bloomline> for Arc<dyn slatedb::FilterPolicy> {
    fn from(policy: Bloomline) -> Self {
        Arc::new(policy)
    }
}

/// For SlateDB only. Other engines ignore these settings, and their filters have whole keys.
impl Bloomline {
    /// Adds the prefix of each key to the filters, so that `scan_prefix` skips SSTs without the prefix.
    ///
    /// Use SlateDB's [`PrefixExtractor`]s. A prefix needs as many bits as a key, once per SST. Without an extractor, a
    /// prefix scan uses no filter. The README has the times of both.
    ///
    /// **Change the extractor's name whenever you change its answers.** SSTs store the name with the policy's, and
    /// filters of other prefixes under the same name hide keys.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use bloomline_adapters::Bloomline;
    /// use slatedb::object_store::memory::InMemory;
    /// use slatedb::{Db, PrefixExtractor, PrefixTarget};
    ///
    /// struct UpToSlash;
    ///
    /// impl PrefixExtractor for UpToSlash {
    ///     fn name(&self) -> &str {
    ///         "up to the first slash"
    ///     }
    ///
    ///     fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
    ///         let (PrefixTarget::Point(bytes) | PrefixTarget::Prefix(bytes)) = target;
    ///         Some(bytes.iter().position(|&byte| byte == b'/')? + 1)
    ///     }
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let policy = Bloomline::with_bits_per_key(10.0)?.with_prefix_extractor(Arc::new(UpToSlash));
    /// let database = Db::builder("animals", Arc::new(InMemory::new()))
    ///     .with_filter_policies(vec![policy.into()])
    ///     .build()
    ///     .await?;
    /// database.put(b"ant/legs", b"six").await?;
    /// assert!(database.scan_prefix("ant/", ..).await?.next().await?.is_some());
    /// // Filters do not help a scan of `an`: no slash ends its prefix.
    /// assert!(database.scan_prefix("an", ..).await?.next().await?.is_some());
    /// # database.close().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_prefix_extractor(self, extractor: Arc<dyn PrefixExtractor>) -> Self {
        Self { entries: Entries { extractor: Some(extractor), ..self.entries }.named(), ..self }
    }

    /// Sets whether filters have whole keys, `true` by default. If `false`, filters are smaller, and a get skips an SST
    /// only if no key there has the prefix of its key.
    #[must_use]
    pub fn with_whole_key_filtering(self, enabled: bool) -> Self {
        Self { entries: Entries { whole_keys: enabled, ..self.entries }.named(), ..self }
    }

    fn filter<F: Stored>(&self, filter: Option<F>) -> Arc<dyn Filter> {
        let (entries, unusable) = (self.entries.clone(), self.unusable.clone());
        Arc::new(Opened { filter: filter.map(Arc::new), entries, unusable })
    }
}

/// [`StandardBloomFilter`]s in `slatedb`, for databases in an object store. Of all Bloom filters, these have the fewest
/// false positives for their bytes.
///
/// Set it on every builder, as you would [`Bloomline`]. To read databases that have filters of both, set both. A lookup
/// costs up to k cache misses instead of one, which is nothing beside the milliseconds that a false positive costs
/// there.
#[derive(Clone, Debug)]
pub struct BloomlineStandard(Bloomline);

impl BloomlineStandard {
    /// The name that SSTs store. Their filters are standalone bytes.
    pub const NAME: &str = "bloomline.Standard2";

    /// A policy of `bits_per_key` for each distinct key, such as 10 for 0.8% false positives.
    ///
    /// # Errors
    ///
    /// If `bits_per_key` is not above 0 and at most 64.
    pub fn with_bits_per_key(bits_per_key: f64) -> Result<Self, Error> {
        let policy = Bloomline::with_bits_per_key(bits_per_key)?;
        Ok(Self(Bloomline { entries: Entries::whole_keys(Self::NAME), ..policy }))
    }

    /// See [`Bloomline::with_prefix_extractor`].
    #[must_use]
    pub fn with_prefix_extractor(self, extractor: Arc<dyn PrefixExtractor>) -> Self {
        Self(self.0.with_prefix_extractor(extractor))
    }

    /// See [`Bloomline::with_whole_key_filtering`].
    #[must_use]
    pub fn with_whole_key_filtering(self, enabled: bool) -> Self {
        Self(self.0.with_whole_key_filtering(enabled))
    }

    /// See [`Bloomline::unusable_filters`]. Filters have checksums of their own here.
    pub fn unusable_filters(&self) -> u64 {
        self.0.unusable_filters()
    }
}

impl slatedb::FilterPolicy for BloomlineStandard {
    fn name(&self) -> &str {
        &self.0.entries.name
    }

    fn builder(&self) -> Box<dyn slatedb::FilterBuilder> {
        Box::new(Builder::<StandardBloomFilter>::new(&self.0))
    }

    fn decode(&self, data: &[u8]) -> Arc<dyn Filter> {
        self.0.filter(StandardBloomFilter::decode(data))
    }

    /// Prefixes do not count, as in [`Bloomline`]'s.
    fn estimate_size(&self, num_keys: usize) -> usize {
        StandardSizing::for_bits_per_key(num_keys as u64, self.0.policy.bits_per_key())
            .map_or(usize::MAX, |sizing| sizing.bit_len().div_ceil(64) as usize * 8 + StandaloneFooter::LEN)
    }

    fn supports_prefix_queries(&self) -> bool {
        self.0.supports_prefix_queries()
    }
}

impl From<BloomlineStandard> for Arc<dyn slatedb::FilterPolicy> {
    fn from(policy: BloomlineStandard) -> Self {
        Arc::new(policy)
    }
}

struct Builder<F> {
    policy: Bloomline,
    /// Counts a key once, because its versions are neighbours.
    hashes: FilterBuilder,
    last_key: Bytes,
    /// The lengths of the last key's prefixes that are in `hashes`.
    prefix_lens: Vec<usize>,
    kind: PhantomData<fn() -> F>,
}

impl<F> Builder<F> {
    fn new(policy: &Bloomline) -> Self {
        Self {
            policy: policy.clone(),
            hashes: policy.policy.builder(),
            last_key: Bytes::new(),
            prefix_lens: Vec::new(),
            kind: PhantomData,
        }
    }

    /// Adds each prefix once. Keys are sorted, so the keys with a prefix are neighbours, but keys with a longer prefix
    /// may lie between them, for instance if the extractor returns all up to the last slash.
    fn add_prefix(&mut self, key: &Bytes) {
        let Some(len) = self.policy.entries.prefix_len(&PrefixTarget::Point(key.clone())) else { return };
        self.prefix_lens.retain(|&len| key.get(..len) == self.last_key.get(..len));
        if !self.prefix_lens.contains(&len) {
            self.hashes.insert(&key[..len]);
            self.prefix_lens.push(len);
        }
        self.last_key = key.clone();
    }
}

impl<F: Stored> slatedb::FilterBuilder for Builder<F> {
    fn add_entry(&mut self, entry: &RowEntry) {
        // Tombstones and merge operands, too, because a read that skips one finds older versions of the key in other
        // SSTs.
        self.add_prefix(&entry.key);
        if self.policy.entries.whole_keys {
            self.hashes.insert(&entry.key[..]);
        }
    }

    fn build(&mut self) -> Arc<dyn Filter> {
        let filter = F::build(&mut self.hashes, self.policy.policy.bits_per_key());
        self.hashes.clear();
        self.prefix_lens.clear();
        self.policy.filter(filter)
    }
}

/// What the filters of both policies can do.
trait Stored: Sized + Send + Sync + 'static {
    /// `None` if there is no memory for the filter. The SST is then written without a usable filter.
    fn build(hashes: &mut FilterBuilder, bits_per_key: f64) -> Option<Self>;
    fn decode(data: &[u8]) -> Option<Self>;
    fn contains(&self, entry: &[u8]) -> bool;
    fn encode(&self, writer: &mut dyn BufMut);
    fn byte_len(&self) -> usize;
}

impl Stored for OwnedView<AlignedBytes> {
    fn build(hashes: &mut FilterBuilder, _: f64) -> Option<Self> {
        let mut bytes = Vec::new();
        hashes.finish_compact(&mut bytes).ok()?;
        Self::decode(&bytes)
    }

    fn decode(data: &[u8]) -> Option<Self> {
        Self::from_compact(AlignedBytes::copy_of(data).ok()?).ok()
    }

    fn contains(&self, entry: &[u8]) -> bool {
        self.as_view().contains(entry)
    }

    fn encode(&self, writer: &mut dyn BufMut) {
        writer.put_slice(self.get_ref());
    }

    fn byte_len(&self) -> usize {
        self.get_ref().len().next_multiple_of(64)
    }
}

impl Stored for StandardBloomFilter {
    fn build(hashes: &mut FilterBuilder, bits_per_key: f64) -> Option<Self> {
        let sizing = StandardSizing::for_bits_per_key(hashes.len() as u64, bits_per_key).ok()?;
        let mut filter = Self::with_sizing(sizing).ok()?;
        hashes.hashes().for_each(|hashes| filter.insert_batch(hashes));
        Some(filter)
    }

    fn decode(data: &[u8]) -> Option<Self> {
        Self::from_standalone(data).ok()
    }

    fn contains(&self, entry: &[u8]) -> bool {
        self.contains(entry)
    }

    fn encode(&self, writer: &mut dyn BufMut) {
        writer.put_slice(&self.to_standalone());
    }

    fn byte_len(&self) -> usize {
        self.byte_len()
    }
}

struct Opened<F> {
    /// `None` in place of bytes that are not a filter.
    filter: Option<Arc<F>>,
    entries: Entries,
    unusable: Arc<AtomicU64>,
}

impl<F: Stored> Filter for Opened<F> {
    fn might_match(&self, query: &FilterQuery) -> bool {
        let Some(entry) = self.entries.entry_of(&query.target) else { return true };
        let Some(filter) = &self.filter else {
            self.unusable.fetch_add(1, Ordering::Relaxed);
            return true;
        };
        filter.contains(entry)
    }

    /// Without a filter, writes no bytes. Readers then count an unusable filter, too.
    fn encode(&self, writer: &mut dyn BufMut) {
        if let Some(filter) = &self.filter {
            filter.encode(writer);
        }
    }

    /// SlateDB charges its cache with this.
    fn size(&self) -> usize {
        self.filter.as_ref().map_or(0, |filter| filter.byte_len())
    }

    /// The filter has memory of its own, no larger than it needs.
    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        let Self { filter, entries, unusable } = self;
        Arc::new(Self { filter: filter.clone(), entries: entries.clone(), unusable: unusable.clone() })
    }
}
