//! `Bloomline`, the policy for all engines.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bloomline::Error;
use bloomline::sstable::FilterPolicy;

#[cfg(feature = "slatedb")]
use crate::entries::Entries;

/// A filter policy for the options of a database. Clones share one count of unusable filters.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "rusty-leveldb")] {
/// use bloomline_adapters::Bloomline;
///
/// let policy = Bloomline::with_bits_per_key(10.0)?;
/// let mut options = rusty_leveldb::in_memory();
/// options.filter_policy = policy.clone().into();
///
/// let mut database = rusty_leveldb::DB::open("animals", options)?;
/// database.put(b"ant", b"six legs")?;
/// assert!(database.get(b"ant").is_some() && database.get(b"bee").is_none());
/// assert_eq!(policy.unusable_filters(), 0);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bloomline {
    pub(crate) policy: FilterPolicy,
    pub(crate) unusable: Arc<AtomicU64>,
    #[cfg(feature = "slatedb")]
    pub(crate) entries: Entries,
}

impl Bloomline {
    /// Wraps a policy for a database.
    pub fn new(policy: FilterPolicy) -> Self {
        Self {
            policy,
            unusable: Arc::default(),
            #[cfg(feature = "slatedb")]
            entries: Entries::whole_keys(FilterPolicy::NAME),
        }
    }

    /// A policy of `bits_per_key` for each distinct key, such as 10 for 1% false positives.
    ///
    /// # Errors
    ///
    /// If `bits_per_key` is not above 0 and at most 64.
    pub fn with_bits_per_key(bits_per_key: f64) -> Result<Self, Error> {
        FilterPolicy::with_bits_per_key(bits_per_key).map(Self::new)
    }

    /// How many lookups got bytes that are not a filter, and so had to answer "possibly present". More than 0 means
    /// that filters are damaged or have an unknown format, or that memory ran out while one was built or opened.
    pub fn unusable_filters(&self) -> u64 {
        self.unusable.load(Ordering::Relaxed)
    }

    #[cfg(any(feature = "rusty-leveldb", feature = "sstable", feature = "surrealkv"))]
    pub(crate) fn may_match(&self, key: &[u8], filter: &[u8]) -> bool {
        self.policy.try_key_may_match(key, filter).unwrap_or_else(|_| {
            self.unusable.fetch_add(1, Ordering::Relaxed);
            true
        })
    }
}
