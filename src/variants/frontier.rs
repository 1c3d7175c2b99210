//! `Frontier`: a crawler's queue that accepts each item once.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

use xxhash_rust::xxh64::Xxh64;

use super::scalable::ScalableBloomFilter;
use crate::error::Error;
use crate::filter::BloomFilter;
use crate::footer::{self, StandaloneFooter, VERSION};
use crate::key::Key;
use crate::kind::StandaloneKind;
use crate::lanes::LANE_BYTES;
use crate::memory::{OutOfMemory, or_abort};
use crate::standalone;

/// A crawler's URL frontier, a FIFO queue that accepts each item once (Heydon and Najork, "Mercator: A scalable,
/// extensible Web crawler", 1999).
///
/// [`insert`](Self::insert) queues an item that was never inserted before and drops any other. Instead of a set of all
/// items, a Bloom filter remembers what was inserted, in 1.24 bytes per item at 1%, 1.97 at 0.1%, however long the
/// items are. For a million URLs of 71 bytes on average that is 1.24 or 1.97 MB, where a `HashSet<String>` needs 124
/// MB. The queue holds only the items still to be popped, with room for the most that it ever held.
///
/// The price is false positives. `insert` may mistake a new item for one already seen and drop it, so that the item is
/// *never visited*. The probability grows from 0 to the requested `fpr` as the frontier fills to its capacity. Over all
/// items up to capacity, less than a fifth of `fpr` is lost where `fpr` is 2% or less, such as 0.18% of the items at
/// 1%, and 0.015% at 0.1%. No item comes out twice. Attackers who choose the items can choose some that make the
/// frontier drop others, because the hash resists accidents, not attackers.
///
/// Items are compared, and saved, as the bytes of a [`Key`], such as a `String`, a `Vec<u8>`, or a type of your own. To
/// read them again, the type must be `TryFrom<Vec<u8>>`, which integers are not. Normalize URLs before you insert them.
///
/// [`Frontier::with_fpr`] has a fixed size. Past its capacity it keeps working and drops more new items than requested.
/// [`is_over_capacity`](Self::is_over_capacity) reports that, and so does one warning with the feature `log`.
/// [`Frontier::growing`] keeps the false-positive rate for any number of items. It needs two to five times the memory,
/// most just after it has grown, and each insert touches a cache line in each of its filters.
///
/// # Saving a crawl
///
/// The standalone bytes hold what is queued and what was seen. A popped item is seen and no longer queued, so finish
/// visiting it before you save, or keep it elsewhere. To survive a crash while saving, write a new file, sync it and
/// rename it over the old one, as the example `crawl` does. `write_standalone` writes item by item, so wrap a file in a
/// [`BufWriter`](https://doc.rust-lang.org/std/io/struct.BufWriter.html).
///
/// # Examples
///
/// ```
/// use bloomline::variants::Frontier;
///
/// let mut frontier = Frontier::with_fpr(1_000_000, 0.001)?;
/// assert!(frontier.insert("https://example.org/"));
/// while let Some(url) = frontier.pop() {
///     for link in ["https://example.org/", "https://example.org/about"] {
///         frontier.insert(link); // each is visited once
///     }
/// }
/// assert_eq!(frontier.accepted(), 2);
/// # Ok::<(), bloomline::Error>(())
/// ```
#[derive(Clone)]
pub struct Frontier<T> {
    queue: VecDeque<T>,
    filter: Filter,
    /// Items that the filter is sized for, or [`UNLIMITED`] if it grows.
    capacity: u64,
    accepted: u64,
}

#[derive(Clone)]
enum Filter {
    Fixed(BloomFilter),
    Growing(ScalableBloomFilter),
}

/// Evaluates `$value` for the filter of either kind.
macro_rules! of_either {
    ($filter:expr, |$name:ident| $value:expr) => {
        match $filter {
            Filter::Fixed($name) => $value,
            Filter::Growing($name) => $value,
        }
    };
}

/// The capacity of a growing frontier. No fixed filter has room for so many items.
const UNLIMITED: u64 = u64::MAX;

/// Size of the length that precedes each item.
const LENGTH_BYTES: usize = 8;

/// An empty queue, a filter of one lane, and two footers.
const LEAST_BYTES: usize = LANE_BYTES + 2 * StandaloneFooter::LEN;

impl<T: Key> Frontier<T> {
    /// An empty frontier of fixed size, which drops new items with a probability of at most `fpr` until more than
    /// `expected_items` have been accepted. Needs the memory of a [`BloomFilter::with_fpr`].
    ///
    /// # Errors
    ///
    /// If `fpr` is not between [`sizing::MIN_FPR`](crate::sizing::MIN_FPR) and 1, or memory for the filter cannot be
    /// allocated.
    pub fn with_fpr(expected_items: u64, fpr: f64) -> Result<Self, Error> {
        let filter = Filter::Fixed(BloomFilter::with_fpr(expected_items, fpr)?);
        Ok(Self { queue: VecDeque::new(), filter, capacity: expected_items, accepted: 0 })
    }

    /// An empty frontier that grows, and drops new items with a probability of at most `fpr`, however many are
    /// inserted. Costs the memory and time of a [`ScalableBloomFilter::with_fpr`].
    ///
    /// # Errors
    ///
    /// If `fpr` is not between [`sizing::SCALABLE_MIN_FPR`](crate::sizing::SCALABLE_MIN_FPR) and 1, or memory for
    /// `initial_capacity` items cannot be allocated.
    pub fn growing(initial_capacity: u64, fpr: f64) -> Result<Self, Error> {
        let filter = Filter::Growing(ScalableBloomFilter::with_fpr(initial_capacity, fpr)?);
        Ok(Self { queue: VecDeque::new(), filter, capacity: UNLIMITED, accepted: 0 })
    }

    /// Sets the seed that items are hashed with, 0 by default. With a different seed, a frontier drops different new
    /// items, so a second crawl visits most of what the first one missed.
    ///
    /// # Errors
    ///
    /// If items have been inserted.
    pub fn with_seed(self, seed: u64) -> Result<Self, Error> {
        let filter = match self.filter {
            Filter::Fixed(filter) => Filter::Fixed(filter.with_seed(seed)?),
            Filter::Growing(filter) => Filter::Growing(filter.with_seed(seed)?),
        };
        Ok(Self { filter, ..self })
    }

    /// Queues `item` unless it was seen before. Returns whether it was queued.
    ///
    /// If `true`, the item is new and will come out once. If `false`, it was dropped, because it was inserted before,
    /// or, with probability [`estimated_fpr`](Self::estimated_fpr), although it is new.
    ///
    /// Hashes the item and touches one cache line of the filter, or of each of its filters if the frontier grows.
    #[doc(alias = "push")]
    pub fn insert(&mut self, item: T) -> bool {
        or_abort(self.add(item))
    }

    /// [`insert`](Self::insert), with an error if memory runs out.
    ///
    /// # Errors
    ///
    /// If memory for the queue, or for a larger filter if the frontier grows, cannot be allocated. The item is not seen
    /// then.
    pub fn try_insert(&mut self, item: T) -> Result<bool, Error> {
        Ok(self.add(item)?)
    }

    fn add(&mut self, item: T) -> Result<bool, OutOfMemory> {
        // Reserved before the filter has the item, because an item that is seen but not queued would never come out.
        let bytes = (self.queue.len() + 1).saturating_mul(size_of::<T>());
        self.queue.try_reserve(1).map_err(|_| OutOfMemory { bytes })?;
        let is_new = match &mut self.filter {
            Filter::Fixed(filter) => filter.insert(&item),
            Filter::Growing(filter) => filter.add(filter.hash_key(&item))?,
        };
        if is_new {
            self.queue.push_back(item);
            self.accepted += 1;
            // Warns by the count and not by a flag, so that a frontier saved after its warning does not warn again.
            #[cfg(feature = "log")]
            if self.accepted.checked_sub(1) == Some(self.capacity) {
                log::warn!(
                    "a frontier for {} items is over capacity and drops more new items than requested: make it larger, \
                     or let it grow",
                    self.capacity
                );
            }
        }
        Ok(is_new)
    }

    /// Removes and returns the oldest item in the queue. It stays seen.
    pub fn pop(&mut self) -> Option<T> {
        self.queue.pop_front()
    }

    /// Items in the queue.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns whether [`insert`](Self::insert) would drop `item`. Always `true` for an item that was inserted. For a
    /// new item, `false` except with probability [`estimated_fpr`](Self::estimated_fpr).
    #[doc(alias = "seen")]
    #[must_use]
    pub fn contains(&self, item: impl Key) -> bool {
        of_either!(&self.filter, |filter| filter.contains(item))
    }

    /// Iterates over the items in the queue, in the order in which they will come out.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        self.queue.iter()
    }

    /// The seed that items are hashed with, 0 unless set by [`with_seed`](Self::with_seed).
    pub fn seed(&self) -> u64 {
        of_either!(&self.filter, |filter| filter.seed())
    }

    /// Items that were new when they were inserted, both popped and queued.
    pub fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Items that it was made for, or `None` if it grows.
    pub fn capacity(&self) -> Option<u64> {
        Some(self.capacity).filter(|&capacity| capacity != UNLIMITED)
    }

    /// Returns whether the frontier has accepted more items than it was made for, and so drops new ones more often than
    /// requested. Always `false` if it grows.
    pub fn is_over_capacity(&self) -> bool {
        self.accepted > self.capacity
    }

    /// Bytes of memory of the filter, without the queue.
    pub fn byte_len(&self) -> usize {
        of_either!(&self.filter, |filter| filter.byte_len())
    }

    /// The probability that [`insert`](Self::insert) drops an item that is new, exact for the filter's current bits.
    /// Reads the whole filter.
    #[must_use]
    pub fn estimated_fpr(&self) -> f64 {
        of_either!(&self.filter, |filter| filter.estimated_fpr())
    }

    /// Length of the standalone bytes, which are queue, filter and a footer of 64 bytes. [Depends on the
    /// bits](BloomFilter::to_compact) of a small filter.
    pub fn standalone_len(&self) -> usize {
        let queue: usize = self.queue.iter().map(|item| LENGTH_BYTES + item.key_bytes().as_ref().len()).sum();
        queue + of_either!(&self.filter, |filter| filter.standalone_len()) + StandaloneFooter::LEN
    }

    standalone::standalone_io!();

    fn encode<E>(&self, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let (mut checksum, mut queue_bytes) = (Xxh64::new(0), 0);
        let mut put = |bytes: &[u8]| {
            checksum.update(bytes);
            write(bytes)
        };
        for item in &self.queue {
            let item = item.key_bytes();
            let item = item.as_ref();
            put(&(item.len() as u64).to_le_bytes())?;
            put(item)?;
            queue_bytes += (LENGTH_BYTES + item.len()) as u64;
        }
        of_either!(&self.filter, |filter| filter.encode(put))?;
        let Self { accepted, capacity, .. } = *self;
        let items = self.queue.len() as u64;
        let fields = [items, queue_bytes, accepted, capacity, checksum.digest(), VERSION.into()];
        write(&footer::seal(fields, StandaloneKind::Frontier.magic()))
    }
}

impl<T: Key + TryFrom<Vec<u8>>> Frontier<T> {
    /// Reads a frontier from the standalone bytes of [`to_standalone`](Self::to_standalone). `TryFrom<Vec<u8>>`, which
    /// `String` and `Vec<u8>` implement, makes the items from their bytes.
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of a different version, if an item cannot be made from its bytes or its
    /// [`key_bytes`](Key::key_bytes) then differ from the stored ones, if the keys were hashed by a different function
    /// than this build's, or if memory cannot be allocated.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::variants::Frontier;
    ///
    /// let mut frontier = Frontier::with_fpr(1_000, 0.001)?;
    /// frontier.insert("https://example.org/".to_owned());
    /// let mut copy = Frontier::<String>::from_standalone(&frontier.to_standalone())?;
    /// assert!(!copy.insert("https://example.org/".to_owned()));
    /// assert_eq!(copy.pop(), frontier.pop());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_standalone(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() < StandaloneFooter::LEN {
            return Err(footer::too_short(bytes, LEAST_BYTES));
        }
        let (body, fields) = footer::split(bytes, StandaloneKind::Frontier)?;
        let [items, queue_bytes, accepted, capacity, checksum, last] = fields;
        if last != u64::from(VERSION) {
            return Err(Error::impossible("reserved bytes", last >> 8));
        }
        // The restored count keeps rising, and above half the range it might overflow.
        if accepted < items || accepted > u64::MAX / 2 {
            return Err(Error::impossible("number of accepted items", accepted));
        }
        footer::verify(body, checksum)?;
        let too_long = Error::wrong_size("bytes of queue", queue_bytes, body.len());
        let (encoded, filter) = split_at(body, queue_bytes).ok_or(too_long)?;
        let wrong_queue = Error::wrong_size("queued items", items, body.len());
        // Counted before memory is allocated, because the stored number may be forged. Reserved at once, because a
        // queue that grows needs three times its memory while it moves.
        let (mut n_items, mut rest) = (0, encoded);
        while !rest.is_empty() {
            (_, rest) = split_item(rest).ok_or(wrong_queue)?;
            n_items += 1;
        }
        if n_items as u64 != items {
            return Err(wrong_queue);
        }
        let mut queue = VecDeque::new();
        let slots = size_of::<T>().saturating_mul(n_items);
        queue.try_reserve_exact(n_items).map_err(|_| OutOfMemory { bytes: slots })?;
        rest = encoded;
        while let Some((bytes, after)) = split_item(rest) {
            let mut copy = Vec::new();
            copy.try_reserve_exact(bytes.len()).map_err(|_| OutOfMemory { bytes: bytes.len() })?;
            copy.extend_from_slice(bytes);
            let item = T::try_from(copy).ok().filter(|item| item.key_bytes().as_ref() == bytes);
            queue.push_back(item.ok_or_else(|| wrong_item(queue.len()))?);
            rest = after;
        }
        let filter = if capacity == UNLIMITED {
            let growing = ScalableBloomFilter::from_standalone(filter)?;
            match growing.filters().len() as u64 {
                // Only unions make more, and below each item is looked up in all of them.
                found @ 65.. => return Err(Error::impossible("number of filters", found)),
                _ => Filter::Growing(growing),
            }
        } else {
            Filter::Fixed(BloomFilter::from_standalone(filter)?)
        };
        let frontier = Self { queue, filter, capacity, accepted };
        // An item missing from the filter would be accepted again and visited twice.
        match frontier.queue.iter().position(|item| !frontier.contains(item)) {
            Some(index) => Err(wrong_item(index)),
            None => Ok(frontier),
        }
    }
}

/// `None` if there are fewer than `at` bytes.
fn split_at(bytes: &[u8], at: u64) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(usize::try_from(at).ok()?)
}

/// The first item of an encoded queue, and the rest. `None` if the queue is empty, or ends within the item.
fn split_item(queue: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = queue.split_first_chunk::<LENGTH_BYTES>()?;
    split_at(rest, u64::from_le_bytes(*length))
}

fn wrong_item(index: usize) -> Error {
    Error::damaged("queue item {} is of another type or not in the filter", [index as u64])
}

impl<T: Key> Extend<T> for Frontier<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| _ = self.insert(item));
    }
}

impl<T> fmt::Debug for Frontier<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frontier")
            .field("len", &self.queue.len())
            .field("accepted", &self.accepted)
            .finish_non_exhaustive()
    }
}
