//! `Frontier`: a crawler's queue that accepts each item once.
#![forbid(unsafe_code)]

use alloc::collections::{VecDeque, vec_deque};
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;

use xxhash_rust::xxh64::Xxh64;

use crate::encoding::{self, LANE_BYTES, StandaloneFooter, StandaloneKind, VERSION};
#[cfg(feature = "std")]
use crate::error::RestoreError;
use crate::error::{DecodeError, SizingError};
use crate::filter::BloomFilter;
use crate::variants::ScalableBloomFilter;

/// A crawler's URL frontier: a FIFO queue that accepts each item once (Heydon and Najork, "Mercator: A scalable,
/// extensible Web crawler", 1999).
///
/// [`push`](Self::push) queues an item that was never pushed before and drops any other. Instead of a set of all items,
/// a Bloom filter remembers what was pushed: 1.24 bytes per item at 1 %, 1.95 at 0.1 %, however long the items are. For
/// a million URLs of 71 bytes on average that is 1.24 or 1.95 MB, where a `HashSet<String>` takes 124 MB. The queue
/// holds only the items still to be popped, with room for the most that it ever held.
///
/// The price is false positives: `push` may take a new item for one already seen and drop it, and the item is *never
/// visited*. The probability grows from 0 to the requested `fpr` as the frontier fills to its capacity. Over all items
/// up to capacity, less than a fifth of `fpr` is lost where `fpr` is 2 % or less: 0.17 % of the items at 1 %, 0.015 %
/// at 0.1 %. No item comes out twice. Attackers who choose the items can choose some that make the frontier drop
/// another: the hash resists accidents, not attackers.
///
/// Items are compared, and saved, as the bytes of `AsRef<[u8]>`: those of a `String`, a `Vec<u8>`, or a type of your
/// own. Normalize URLs before you push them.
///
/// [`Frontier::with_fpr`] has a fixed size. Past its capacity it keeps working and drops more new items than requested:
/// [`is_over_capacity`](Self::is_over_capacity) reports that, and so does one warning with the feature `log`.
/// [`Frontier::growing`] keeps the false-positive rate for any number of items. It takes two to five times the memory,
/// most just after it has grown, and each push touches a cache line in each of its filters.
///
/// # Examples
///
/// ```
/// use bloomline::variants::Frontier;
///
/// let mut frontier = Frontier::with_fpr(1_000_000, 0.001)?;
/// assert!(frontier.push("https://example.org/"));
/// while let Some(url) = frontier.pop() {
///     for link in ["https://example.org/", "https://example.org/about"] {
///         frontier.push(link); // each is visited once
///     }
/// }
/// assert_eq!(frontier.accepted(), 2);
/// # Ok::<(), bloomline::SizingError>(())
/// ```
#[derive(Clone)]
pub struct Frontier<T> {
    queue: VecDeque<T>,
    filter: Filter,
    /// Items that the filter is sized for; [`UNLIMITED`] if it grows.
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
const LEAST_BYTES: usize = LANE_BYTES + 2 * StandaloneFooter::BYTES;

impl<T: AsRef<[u8]>> Frontier<T> {
    /// An empty frontier of fixed size, which drops new items with a probability of at most `fpr` until more than
    /// `expected_items` have been accepted. Takes the memory of a [`BloomFilter::with_fpr`].
    ///
    /// # Errors
    ///
    /// If `fpr` is not between [`sizing::MIN_FPR`](crate::sizing::MIN_FPR) and 1, or memory for the filter cannot be
    /// allocated.
    pub fn with_fpr(expected_items: usize, fpr: f64) -> Result<Self, SizingError> {
        let filter = Filter::Fixed(BloomFilter::with_fpr(expected_items, fpr)?);
        Ok(Self { queue: VecDeque::new(), filter, capacity: expected_items as u64, accepted: 0 })
    }

    /// An empty frontier that grows, and drops new items with a probability of at most `fpr`, however many are pushed.
    /// Takes the memory and time of a [`ScalableBloomFilter::with_fpr`].
    ///
    /// # Errors
    ///
    /// If `fpr` is not between [`sizing::SCALABLE_MIN_FPR`](crate::sizing::SCALABLE_MIN_FPR) and 1, or memory for
    /// `initial_capacity` items cannot be allocated.
    pub fn growing(initial_capacity: usize, fpr: f64) -> Result<Self, SizingError> {
        let filter = Filter::Growing(ScalableBloomFilter::with_fpr(initial_capacity, fpr)?);
        Ok(Self { queue: VecDeque::new(), filter, capacity: UNLIMITED, accepted: 0 })
    }

    /// Sets the seed that items are hashed with, 0 by default. With another seed the frontier drops other new items, so
    /// a second crawl with another seed visits most of what the first one missed.
    ///
    /// # Panics
    ///
    /// If items have been pushed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        let filter = match self.filter {
            Filter::Fixed(filter) => Filter::Fixed(filter.with_seed(seed)),
            Filter::Growing(filter) => Filter::Growing(filter.with_seed(seed)),
        };
        Self { filter, ..self }
    }

    /// Queues `item` unless it was seen before. Returns whether it was queued.
    ///
    /// `true`: the item is new and will come out once. `false`: it was dropped. Either it was pushed before, or, with
    /// probability [`estimated_fpr`](Self::estimated_fpr), it is new and will never come out.
    ///
    /// Hashes the item and touches one cache line of the filter, or of each of its filters if the frontier grows.
    pub fn push(&mut self, item: T) -> bool {
        let key = item.as_ref();
        let is_new = of_either!(&mut self.filter, |filter| filter.insert(key));
        if is_new {
            self.queue.push_back(item);
            self.accepted += 1;
            // By the count and not by a flag, so that a frontier saved after its warning does not warn again.
            #[cfg(feature = "log")]
            if self.accepted.checked_sub(1) == Some(self.capacity) {
                log::warn!(
                    "a frontier for {} items is over capacity and drops more new items than requested: make it larger, \
                     or let it grow",
                    self.capacity
                );
            }
        }
        is_new
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

    /// Returns whether [`push`](Self::push) would drop `item`: always `true` for an item that was pushed; for any
    /// other, `false` except with probability [`estimated_fpr`](Self::estimated_fpr).
    pub fn seen(&self, item: impl AsRef<[u8]>) -> bool {
        of_either!(&self.filter, |filter| filter.contains(item))
    }

    /// Iterates over the items in the queue, in the order in which they will come out.
    pub fn iter(&self) -> vec_deque::Iter<'_, T> {
        self.queue.iter()
    }

    /// The seed that items are hashed with: 0 unless set by [`with_seed`](Self::with_seed).
    pub fn seed(&self) -> u64 {
        of_either!(&self.filter, |filter| filter.seed())
    }

    /// Items that were new when they were pushed: those popped and those still in the queue.
    pub fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Items that it was made for; `None` if it grows.
    pub fn capacity(&self) -> Option<u64> {
        Some(self.capacity).filter(|&capacity| capacity != UNLIMITED)
    }

    /// Returns whether the frontier has accepted more items than it was made for, and so drops new ones more often than
    /// requested. Always `false` if it grows.
    pub fn is_over_capacity(&self) -> bool {
        self.accepted > self.capacity
    }

    /// Bytes of memory that the filter takes, without the queue.
    pub fn size_bytes(&self) -> usize {
        of_either!(&self.filter, |filter| filter.size_bytes())
    }

    /// The probability that [`push`](Self::push) drops an item that is new: exact for the filter's current bits. Reads
    /// the whole filter.
    pub fn estimated_fpr(&self) -> f64 {
        of_either!(&self.filter, |filter| filter.estimated_fpr())
    }

    /// Appends the frontier's standalone bytes: queue, filter and a footer of 64 bytes, as specified in
    /// `docs/format.md`, section 10. [`save`](Self::save) writes them without a second copy of the queue in memory.
    pub fn write_standalone(&self, out: &mut Vec<u8>) {
        let Ok(()) = self.encode(|part| {
            out.extend_from_slice(part);
            Ok::<(), Infallible>(())
        });
    }

    /// Returns the bytes of [`write_standalone`](Self::write_standalone).
    pub fn to_standalone(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write_standalone(&mut bytes);
        bytes
    }

    /// Writes the frontier's standalone bytes, so that a crawl can resume with [`restore`](Self::restore). Requires the
    /// feature `std`.
    ///
    /// Writes item by item: wrap a file in a [`BufWriter`](std::io::BufWriter). Copies neither the queue nor the filter.
    ///
    /// The bytes hold what is queued and what was seen. A popped item is seen and no longer queued: finish visiting it
    /// before you save, or keep it elsewhere. To survive a crash while saving, write a new file, sync it and rename it
    /// over the old one, as the example `crawl` does with a library. The rename is durable only once you sync the
    /// directory. It replaces a symbolic link, and the new file does not inherit the old one's permissions.
    ///
    /// # Errors
    ///
    /// The writer's errors.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::variants::Frontier;
    ///
    /// let mut frontier = Frontier::with_fpr(1_000_000, 0.001)?;
    /// frontier.push("https://example.org/".to_owned());
    /// let mut file = Vec::new(); // or a `BufWriter<File>`
    /// frontier.save(&mut file)?;
    ///
    /// let restored = Frontier::<String>::restore(&file[..])?;
    /// assert!(restored.iter().eq(&frontier));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn save(&self, mut out: impl std::io::Write) -> std::io::Result<()> {
        self.encode(|part| out.write_all(part))?;
        out.flush()
    }

    fn encode<E>(&self, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let (mut checksum, mut queue_bytes) = (Xxh64::new(0), 0);
        let mut put = |bytes: &[u8]| {
            checksum.update(bytes);
            write(bytes)
        };
        for item in &self.queue {
            let item = item.as_ref();
            put(&(item.len() as u64).to_le_bytes())?;
            put(item)?;
            queue_bytes += (LENGTH_BYTES + item.len()) as u64;
        }
        of_either!(&self.filter, |filter| filter.encode(put))?;
        let Self { accepted, capacity, .. } = *self;
        let items = self.queue.len() as u64;
        let words = [items, queue_bytes, accepted, capacity, checksum.digest(), VERSION.into()];
        write(&encoding::signed(words, StandaloneKind::Frontier))
    }
}

impl<T: AsRef<[u8]> + TryFrom<Vec<u8>>> Frontier<T> {
    /// Reads a frontier from the standalone bytes of [`to_standalone`](Self::to_standalone). `TryFrom<Vec<u8>>`, which
    /// `String` and `Vec<u8>` implement, makes the items from their bytes.
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of another version; if an item cannot be made from its bytes, or if its
    /// `AsRef` bytes then differ from the stored ones; if the keys were hashed by another function than this build's.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::variants::Frontier;
    ///
    /// let mut frontier = Frontier::with_fpr(1_000, 0.001)?;
    /// frontier.push("https://example.org/".to_owned());
    /// let mut copy = Frontier::<String>::from_standalone(&frontier.to_standalone())?;
    /// assert!(!copy.push("https://example.org/".to_owned()));
    /// assert_eq!(copy.pop(), frontier.pop());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_standalone(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() < StandaloneFooter::BYTES {
            return Err(DecodeError::TooShort { found: bytes.len(), least: LEAST_BYTES });
        }
        let (body, words) = encoding::split(bytes, StandaloneKind::Frontier)?;
        let [items, queue_bytes, accepted, capacity, checksum, last] = words;
        if last != u64::from(VERSION) {
            return Err(DecodeError::Footer { field: "reserved bytes", found: last >> 8 });
        }
        // The restored count keeps rising: above half the range it might overflow.
        if accepted < items || accepted > u64::MAX / 2 {
            return Err(DecodeError::Footer { field: "number of accepted items", found: accepted });
        }
        encoding::verify(body, checksum)?;
        let wrong_queue = DecodeError::Queue { items, queue_bytes, found_bytes: body.len() as u64 };
        let (mut rest, filter) = split_at(body, queue_bytes).ok_or(wrong_queue)?;
        // Grown item by item: a forged count must not allocate.
        let mut queue = VecDeque::new();
        for index in 0..items {
            let (length, behind) = rest.split_first_chunk::<LENGTH_BYTES>().ok_or(wrong_queue)?;
            let (bytes, behind) = split_at(behind, u64::from_le_bytes(*length)).ok_or(wrong_queue)?;
            let item = T::try_from(bytes.to_vec()).ok().filter(|item| item.as_ref() == bytes);
            queue.push_back(item.ok_or(DecodeError::Item { index })?);
            rest = behind;
        }
        if !rest.is_empty() {
            return Err(wrong_queue);
        }
        let filter = if capacity == UNLIMITED {
            Filter::Growing(ScalableBloomFilter::from_standalone(filter)?)
        } else {
            Filter::Fixed(BloomFilter::from_standalone(filter)?)
        };
        let frontier = Self { queue, filter, capacity, accepted };
        // An item missing from the filter would be accepted again and visited twice.
        match frontier.iter().position(|item| !frontier.seen(item)) {
            Some(index) => Err(DecodeError::Item { index: index as u64 }),
            None => Ok(frontier),
        }
    }

    /// Reads a frontier that [`save`](Self::save) wrote, to the end of the input. Requires the feature `std`.
    ///
    /// Reads everything before it checks anything: limit untrusted input with [`Read::take`](std::io::Read::take).
    /// Allocates as much as the input, and up to as much spare room, in addition to the frontier.
    ///
    /// # Errors
    ///
    /// [`RestoreError::Io`] if the input cannot be read, [`RestoreError::Decode`] if
    /// [`from_standalone`](Self::from_standalone) returns an error.
    #[cfg(feature = "std")]
    pub fn restore(mut input: impl std::io::Read) -> Result<Self, RestoreError> {
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes)?;
        Ok(Self::from_standalone(&bytes)?)
    }
}

/// `None` if there are fewer than `at` bytes.
fn split_at(bytes: &[u8], at: u64) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(usize::try_from(at).ok()?)
}

impl<T: AsRef<[u8]>> Extend<T> for Frontier<T> {
    /// Calls [`push`](Frontier::push) for each item.
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| _ = self.push(item));
    }
}

impl<'a, T> IntoIterator for &'a Frontier<T> {
    type Item = &'a T;
    type IntoIter = vec_deque::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.queue.iter()
    }
}

impl<T> fmt::Debug for Frontier<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filter: &dyn fmt::Debug = of_either!(&self.filter, |filter| filter);
        f.debug_struct("Frontier")
            .field("len", &self.queue.len())
            .field("accepted", &self.accepted)
            .field("filter", filter)
            .finish_non_exhaustive()
    }
}
