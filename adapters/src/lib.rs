//! [`bloomline`]'s filters in the tables of Rust's LevelDB-like crates, by one line.
//!
//! | feature | crate | the line |
//! |---|---|---|
//! | `rusty-leveldb` | `rusty-leveldb` 4 | `options.filter_policy = Bloomline::with_bits_per_key(10.0)?.into();` |
//! | `sstable` | `sstable` 0.11 | the same |
//!
//! Tables tell by a name which policy made their filters. Those of other policies are then read without filters, and
//! get bloomline's when they are rewritten.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(any(feature = "rusty-leveldb", feature = "sstable")),
    allow(dead_code, reason = "a feature names the database")
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bloomline::SizingError;
use bloomline::sstable::FilterPolicy;

/// A filter policy for the options of a database. Clones count together.
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
    policy: FilterPolicy,
    unusable: Arc<AtomicU64>,
}

impl Bloomline {
    /// The policy, for a database.
    pub fn new(policy: FilterPolicy) -> Self {
        Self { policy, unusable: Arc::default() }
    }

    /// Filters of `bits_per_key` for each distinct key: 10 for 1 % false positives.
    ///
    /// # Errors
    ///
    /// If `bits_per_key` is not above 0 and at most 64.
    pub fn with_bits_per_key(bits_per_key: f64) -> Result<Self, SizingError> {
        FilterPolicy::with_bits_per_key(bits_per_key).map(Self::new)
    }

    /// How often a lookup met bytes that are no filter, and had to answer "may be in". More than a few mean damaged
    /// tables, or a policy of another format under the same name.
    pub fn unusable_filters(&self) -> u64 {
        self.unusable.load(Ordering::Relaxed)
    }

    /// The keys lie end to end in `keys`, each from its offset to the next one's.
    #[cfg(any(feature = "rusty-leveldb", feature = "sstable"))]
    fn create(&self, keys: &[u8], offsets: &[usize]) -> Vec<u8> {
        let ends = offsets.iter().skip(1).copied().chain([keys.len()]);
        let mut filter = Vec::new();
        self.policy
            .create_filter(offsets.iter().zip(ends).map(|(&start, end)| &keys[start..end]), &mut filter);
        filter
    }

    #[cfg(any(feature = "rusty-leveldb", feature = "sstable"))]
    fn may_match(&self, key: &[u8], filter: &[u8]) -> bool {
        self.policy.try_key_may_match(key, filter).unwrap_or_else(|_| {
            self.unusable.fetch_add(1, Ordering::Relaxed);
            true
        })
    }
}

/// Both crates have the trait of the same name and methods, and keep it behind a pointer of their own.
macro_rules! adapt {
    ($feature:literal, $filter_policy:path, $pointer:ident) => {
        #[cfg(feature = $feature)]
        impl $filter_policy for Bloomline {
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

        #[cfg(feature = $feature)]
        impl From<Bloomline> for $pointer<Box<dyn $filter_policy>> {
            fn from(policy: Bloomline) -> Self {
                Self::new(Box::new(policy))
            }
        }
    };
}

#[cfg(feature = "rusty-leveldb")]
use std::rc::Rc;

adapt!("rusty-leveldb", rusty_leveldb::FilterPolicy, Rc);
adapt!("sstable", sstable::filter::FilterPolicy, Arc);
