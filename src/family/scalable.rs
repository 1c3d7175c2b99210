//! `ScalableBloomFilter`: a cascade of filters, for keys of which nobody knows how many they will be.
#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::fmt;

use crate::blocks::Blocks;
use crate::encoding::{self, Scalable};
use crate::error::{DecodeError, HashChanged, SizingError};
use crate::filter::BloomFilter;
use crate::hash::Seed;
use crate::kernel::Kernel;
use crate::mask::ProbeCount;
use crate::sizing::{self, MIN_FPR, Sizing};
use crate::view::BloomView;

/// A filter that grows: filters of growing size and falling rate, so that together they keep the rate asked for,
/// however many keys come.
///
/// # Examples
///
/// ```
/// use bloomline::family::ScalableBloomFilter;
///
/// let mut seen = ScalableBloomFilter::with_fpr(1_000, 0.01)?;
/// for number in 0..100_000_u32 {
///     seen.insert(number.to_le_bytes());
/// }
/// assert_eq!(seen.filters().len(), 7);
/// assert!(seen.contains(99_999_u32.to_le_bytes()));
/// assert!(seen.estimated_fpr() < 0.01);
/// # Ok::<(), bloomline::SizingError>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct ScalableBloomFilter {
    /// Oldest first, at least one. All have the same seed.
    filters: Vec<BloomFilter>,
    plan: Plan,
    /// How many more keys the newest takes.
    room: u64,
    seed: Seed,
}

/// How large each filter is, and of what rate.
#[derive(Clone, Copy, PartialEq)]
struct Plan {
    /// Keys of the first filter, at least 1.
    first_guess: u64,
    fpr: f64,
    growth: u8,
    tightening: f64,
}

const GROWTH: u8 = 2;
const TIGHTENING: f64 = 0.85;
/// More filters than a process can have: the last of them would be of 2^63 keys.
const MOST_FILTERS: f64 = 64.0;

impl Plan {
    fn new(first_guess: u64, fpr: f64, growth: u8, tightening: f64) -> Result<Self, SizingError> {
        if !(fpr > 0.0 && fpr < 1.0) {
            return Err(SizingError::Fpr { value: fpr });
        }
        if fpr < ScalableBloomFilter::MIN_FPR {
            return Err(SizingError::ScalableFpr { value: fpr, lowest: ScalableBloomFilter::MIN_FPR });
        }
        if !(2..=16).contains(&growth) {
            return Err(SizingError::Growth { value: growth });
        }
        if !(0.5..1.0).contains(&tightening) {
            return Err(SizingError::Tightening { value: tightening });
        }
        Ok(Self { first_guess: first_guess.max(1), fpr, growth, tightening })
    }

    /// Keys of the filter of this index.
    fn capacity(&self, index: usize) -> u64 {
        (0..index).fold(self.first_guess, |capacity, _| capacity.saturating_mul(self.growth.into()))
    }

    /// Keys of so many filters.
    fn total_capacity(&self, n_filters: usize) -> u64 {
        (0..n_filters).fold(0, |total: u64, index| total.saturating_add(self.capacity(index)))
    }

    /// Rate of the filter of this index. Those of all 64 add up to less than `fpr`: a geometric series that does, and
    /// beside it the least that a filter can have.
    fn fpr(&self, index: usize) -> f64 {
        let shared = (self.fpr - MOST_FILTERS * MIN_FPR) * (1.0 - self.tightening);
        MIN_FPR + (0..index).fold(shared, |share, _| share * self.tightening)
    }

    fn sizing(&self, index: usize) -> Result<Sizing, SizingError> {
        let keys = usize::try_from(self.capacity(index)).unwrap_or(usize::MAX);
        Sizing::for_fpr(keys, self.fpr(index))
    }
}

impl ScalableBloomFilter {
    /// The lowest false-positive rate that can be asked for: 64 filters of [`sizing::MIN_FPR`].
    pub const MIN_FPR: f64 = MOST_FILTERS * MIN_FPR;

    /// An empty filter that answers "may be in" for at most a share `fpr` of missing keys, however many keys it holds.
    /// It takes memory for `first_guess` keys, and more as they come.
    ///
    /// # Errors
    ///
    /// If `fpr` is not between [`MIN_FPR`](Self::MIN_FPR) and 1, or memory for `first_guess` keys cannot be had.
    pub fn with_fpr(first_guess: usize, fpr: f64) -> Result<Self, SizingError> {
        Self::with_growth(first_guess, fpr, GROWTH, TIGHTENING)
    }

    /// [`with_fpr`](Self::with_fpr) with filters that each hold `growth` times the keys of the one before, at
    /// `tightening` times its rate. [`with_fpr`](Self::with_fpr) takes 2 and 0.85.
    ///
    /// # Errors
    ///
    /// As [`with_fpr`](Self::with_fpr), and if `growth` is not 2 to 16, or `tightening` not at least 0.5 and below 1.
    pub fn with_growth(
        first_guess: usize,
        fpr: f64,
        growth: u8,
        tightening: f64,
    ) -> Result<Self, SizingError> {
        let plan = Plan::new(first_guess as u64, fpr, growth, tightening)?;
        let Sizing { n_blocks, k } = plan.sizing(0)?;
        let filters = alloc::vec![BloomFilter::with_blocks(n_blocks, k)?];
        Ok(Self { filters, plan, room: plan.capacity(0), seed: Seed::DEFAULT })
    }

    /// The filter with another seed than 0, as [`BloomFilter::with_seed`].
    ///
    /// # Panics
    ///
    /// If keys have been inserted.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        let filters = self.filters.into_iter().map(|filter| filter.with_seed(seed)).collect();
        Self { filters, seed: Seed::new(seed), ..self }
    }

    /// Adds `key`; whether that changed a bit. If not, [`contains`](Self::contains) was `true` already.
    ///
    /// Where the newest filter is full, a larger one is allocated. Aborts where memory is out, as `Vec` does.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> bool {
        self.insert_hash(self.seed.hash(key.as_ref()))
    }

    /// [`insert`](Self::insert) by hash.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> bool {
        if self.room == 0 {
            if self.contains_hash(hash) {
                return false;
            }
            self.grow();
        }
        let is_new = match &mut self.filters[..] {
            [older @ .., newest] => !contains(older, hash) && newest.insert_hash(hash),
            [] => false,
        };
        self.room -= u64::from(is_new);
        is_new
    }

    /// Adds many keys by hash: faster than one by one in large filters.
    pub fn insert_batch(&mut self, hashes: &[u64]) {
        for (at, &hash) in hashes.iter().enumerate() {
            if let Some(&later) = hashes.get(at + DISTANCE) {
                self.prefetch(later);
            }
            self.insert_hash(hash);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let index = self.filters.len();
        // What does not fit in the address space does not fit in memory.
        let Sizing { n_blocks, k } = self.plan.sizing(index).unwrap_or(Sizing { n_blocks: usize::MAX, k: 1 });
        let (blocks, k) = (Blocks::zeroed_or_abort(n_blocks), ProbeCount::new(k).expect("of a sizing"));
        self.filters.push(BloomFilter::from_parts(blocks, k, Kernel::active(), self.seed, Some(0)));
        self.room = self.plan.capacity(index);
    }

    /// Whether `key` may have been inserted: `false` is certain.
    ///
    /// For a key never inserted the answer is `true` with probability [`estimated_fpr`](Self::estimated_fpr).
    /// Hashes the key and reads a cache line of each filter, newest first, until one has it; does not allocate.
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.contains_hash(self.seed.hash(key.as_ref()))
    }

    /// [`contains`](Self::contains) by hash.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        contains(&self.filters, hash)
    }

    /// Looks up many keys by hash: `found[i]` becomes whether the key of `hashes[i]` may have been inserted.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
        assert_eq!(hashes.len(), found.len(), "one answer per hash");
        for (at, (found, &hash)) in found.iter_mut().zip(hashes).enumerate() {
            if let Some(&later) = hashes.get(at + DISTANCE) {
                self.prefetch(later);
            }
            *found = self.contains_hash(hash);
        }
    }

    /// Starts loading the cache lines of a hash, one of each filter. See [`BloomFilter::prefetch`].
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.filters.iter().for_each(|filter| filter.prefetch(hash));
    }

    /// Takes out all keys, and gives the memory of all filters but the first back; rate, growth and seed stay.
    pub fn clear(&mut self) {
        self.filters.truncate(1);
        self.filters.iter_mut().for_each(BloomFilter::clear);
        self.room = self.plan.capacity(0);
    }

    /// How many keys inserts have added: distinct keys, less those that were taken for present when they came.
    pub fn inserted_keys(&self) -> u64 {
        self.plan.total_capacity(self.filters.len()) - self.room
    }

    /// The filters, oldest and smallest first; keys go into the last one.
    pub fn filters(&self) -> &[BloomFilter] {
        &self.filters
    }

    /// Bytes that the blocks of all filters take in memory.
    pub fn size_bytes(&self) -> usize {
        self.filters.iter().map(BloomFilter::size_bytes).sum()
    }

    /// What keys are hashed with, 0 unless [`with_seed`](Self::with_seed) set it.
    #[inline]
    pub fn seed(&self) -> u64 {
        self.seed.get()
    }

    /// The false-positive rate asked for, which no number of keys exceeds.
    pub fn fpr(&self) -> f64 {
        self.plan.fpr
    }

    /// The probability that a key never inserted is taken for present: that one of the filters does. Exact for the
    /// bits as they are. Reads all filters.
    pub fn estimated_fpr(&self) -> f64 {
        1.0 - self.filters.iter().map(|filter| 1.0 - filter.estimated_fpr()).product::<f64>()
    }

    /// Appends the filter's standalone bytes: those of all filters, oldest first, and a footer of 64 bytes with their
    /// number, the number of keys, what the filter was asked for, and a checksum.
    ///
    /// # Errors
    ///
    /// If the build's `wyhash` crate has changed its output: where another build reads them, the bytes would lie.
    /// Nothing is appended then.
    pub fn write_standalone(&self, out: &mut Vec<u8>) -> Result<(), HashChanged> {
        self.filters.iter().try_for_each(|filter| filter.write_standalone(out))?;
        let Plan { first_guess, fpr, growth, tightening } = self.plan;
        let (n_filters, keys) = (self.filters.len() as u64, self.inserted_keys());
        encoding::write_scalable(out, Scalable { n_filters, keys, first_guess, fpr, growth, tightening });
        Ok(())
    }

    /// The bytes of [`write_standalone`](Self::write_standalone).
    ///
    /// # Panics
    ///
    /// Where that is an error.
    pub fn to_standalone(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.write_standalone(&mut bytes) {
            Ok(()) => bytes,
            Err(changed) => panic!("{changed}"),
        }
    }

    /// The filter of standalone bytes: those of [`to_standalone`](Self::to_standalone). It grows on as if it had never
    /// been written. All checksums are compared.
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of a newer version, or their keys were hashed by another function than
    /// this build's.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::family::ScalableBloomFilter;
    ///
    /// let mut filter = ScalableBloomFilter::with_fpr(1_000, 0.01)?;
    /// filter.insert("user4291");
    /// let bytes = filter.to_standalone();
    /// assert!(ScalableBloomFilter::from_standalone(&bytes)?.contains("user4291"));
    /// assert!(ScalableBloomFilter::from_standalone(&bytes[1..]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_standalone(bytes: &[u8]) -> Result<Self, DecodeError> {
        let wrong = |field, found| DecodeError::Footer { field, found };
        let (mut rest, stored) = encoding::read_scalable(bytes)?;
        let Scalable { n_filters, keys, first_guess, fpr, growth, tightening } = stored;
        let plan = Plan::new(first_guess, fpr, growth, tightening).map_err(|error| match error {
            SizingError::Growth { .. } => wrong("growth", growth.into()),
            SizingError::Tightening { .. } => wrong("tightening", tightening.to_bits()),
            _ => wrong("rate", fpr.to_bits()),
        })?;
        let mut filters = Vec::new();
        for _ in 0..n_filters {
            let (before, filter) = encoding::split_last_standalone(rest)?;
            let filter = BloomView::from_standalone(filter)?;
            filter.verify()?;
            filters.push(filter.to_owned());
            rest = before;
        }
        filters.reverse();
        let Some(newest) = filters.last().filter(|_| rest.is_empty()) else {
            return Err(wrong("number of filters", n_filters));
        };
        if let Some(other) = filters.iter().find(|filter| filter.seed() != newest.seed()) {
            return Err(wrong("seed", other.seed()));
        }
        // The next filter is sized by this: forged bytes must not ask for more memory than a filter of their size would.
        let (index, bits) = (filters.len() - 1, 8.0 * newest.size_bytes() as f64);
        let bits_per_key = sizing::bits_per_key(plan.fpr(index)).unwrap_or(sizing::MAX_BITS_PER_KEY);
        if first_guess == 0 || plan.capacity(index) as f64 * bits_per_key > 1.01 * bits {
            return Err(wrong("first guess", first_guess));
        }
        let room = plan.total_capacity(filters.len()).checked_sub(keys);
        let Some(room) = room.filter(|&room| room <= plan.capacity(index)) else {
            return Err(wrong("number of keys", keys));
        };
        let seed = Seed::new(newest.seed());
        Ok(Self { filters, plan, room, seed })
    }
}

/// How many keys before its own the cache lines of a key are asked for.
const DISTANCE: usize = 16;

/// Newest first, as it has the most keys.
#[inline]
fn contains(filters: &[BloomFilter], hash: u64) -> bool {
    filters.iter().rev().any(|filter| filter.contains_hash(hash))
}

/// The rate and tightening are numbers.
impl Eq for ScalableBloomFilter {}

impl<K: AsRef<[u8]>> Extend<K> for ScalableBloomFilter {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            self.insert(key);
        }
    }
}

impl fmt::Debug for ScalableBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScalableBloomFilter")
            .field("filters", &self.filters)
            .field("fpr", &self.fpr())
            .finish_non_exhaustive()
    }
}
