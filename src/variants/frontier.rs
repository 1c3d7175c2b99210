//! `Frontier`: a queue of what is to be visited, which takes nothing that it has seen before.
#![forbid(unsafe_code)]

use alloc::collections::{VecDeque, vec_deque};
use alloc::vec::Vec;
use core::fmt;

use xxhash_rust::xxh64::Xxh64;

use crate::encoding::{self, LANE_BYTES, StandaloneFooter, StandaloneKind, VERSION};
#[cfg(feature = "std")]
use crate::error::RestoreError;
use crate::error::{DecodeError, HashChanged, SizingError};
use crate::filter::BloomFilter;
use crate::variants::ScalableBloomFilter;

/// The queue of a crawler: first in, first out, and nothing twice.
///
/// [`push`](Self::push) takes an item that was never pushed before, and drops any other. A Bloom filter knows what was
/// pushed, in place of a set of all items: 1.24 bytes for each at 1 %, 1.95 at 0.1 %, however long the items are. For a
/// million URLs of 71 bytes in the mean that is 1.24 or 1.95 MB, where a `HashSet<String>` takes 124 MB. Besides, only
/// the items that are still to come lie in memory, and room for the most that ever were.
///
/// The price: `push` takes a new item for one that was seen, drops it, and it is *never visited*. The probability grows
/// from 0 to the `fpr` asked for, as the frontier fills to the number of items that it was made for; of so many items less
/// than a fifth of `fpr` are lost where that is 2 % or less: 0.17 % at 1 %, 0.015 % at 0.1 %. No item comes out twice. Whoever chooses the
/// items can choose some for which another is dropped: the hash resists accidents, not attackers.
///
/// What tells items apart, and what is saved of them, are the bytes of `AsRef<[u8]>`: those of a `String`, a `Vec<u8>`,
/// or a type of your own. Normalize URLs before they are pushed.
///
/// [`Frontier::with_fpr`] is of fixed size. Past the number of items that it was made for it works on, and drops more than
/// was asked: [`is_over_capacity`](Self::is_over_capacity) tells so, and with the feature `log` one warning does.
/// [`Frontier::growing`] keeps the rate for any number of items. That takes two to five times the memory, most just after it has grown, and a push
/// touches a cache line in each of its filters.
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

/// The capacity of a filter that grows. No fixed one has room for so many.
const UNLIMITED: u64 = u64::MAX;

/// Of the length before each item.
const LENGTH_BYTES: usize = 8;

/// An empty queue, a filter of one lane, and two footers.
const LEAST_BYTES: usize = LANE_BYTES + 2 * StandaloneFooter::BYTES;

impl<T: AsRef<[u8]>> Frontier<T> {
    /// An empty frontier that drops at most a share `fpr` of new items, as long as no more than `expected_items` are
    /// pushed. Takes the memory of a [`BloomFilter::with_fpr`].
    ///
    /// # Errors
    ///
    /// If `fpr` is not between [`sizing::MIN_FPR`](crate::sizing::MIN_FPR) and 1, or memory for the filter cannot be
    /// had.
    pub fn with_fpr(expected_items: usize, fpr: f64) -> Result<Self, SizingError> {
        let filter = Filter::Fixed(BloomFilter::with_fpr(expected_items, fpr)?);
        Ok(Self { queue: VecDeque::new(), filter, capacity: expected_items as u64, accepted: 0 })
    }

    /// An empty frontier that drops at most a share `fpr` of new items, however many are pushed. Takes the memory and time
    /// of a [`ScalableBloomFilter::with_fpr`].
    ///
    /// # Errors
    ///
    /// If `fpr` is not between [`sizing::SCALABLE_MIN_FPR`](crate::sizing::SCALABLE_MIN_FPR) and 1, or memory for
    /// `initial_capacity` items cannot be had.
    pub fn growing(initial_capacity: usize, fpr: f64) -> Result<Self, SizingError> {
        let filter = Filter::Growing(ScalableBloomFilter::with_fpr(initial_capacity, fpr)?);
        Ok(Self { queue: VecDeque::new(), filter, capacity: UNLIMITED, accepted: 0 })
    }

    /// The frontier with another seed than 0: what it drops of new items are then others. A crawl that is repeated with
    /// another seed visits what the last one missed.
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

    /// Queues `item` unless it was seen before; whether it was queued.
    ///
    /// `true`: it is new, and will come out once. `false`: it was dropped. It was pushed before, or, with probability
    /// [`estimated_fpr`](Self::estimated_fpr), it is new and will never come out.
    ///
    /// Hashes the item and touches one cache line of the filter, of each of its parts if it grows.
    pub fn push(&mut self, item: T) -> bool {
        let key = item.as_ref();
        let is_new = match &mut self.filter {
            Filter::Fixed(filter) => filter.insert(key),
            Filter::Growing(filter) => filter.insert(key),
        };
        if is_new {
            self.queue.push_back(item);
            self.accepted += 1;
            // Not by a flag: so a frontier that was saved after it had warned does not warn again.
            #[cfg(feature = "log")]
            if self.accepted.checked_sub(1) == Some(self.capacity) {
                log::warn!(
                    "a frontier made for {} items has taken more: it drops new items more often than was asked for; make it \
                     for more items, or let it grow",
                    self.capacity
                );
            }
        }
        is_new
    }

    /// The item that was pushed first of those that have not come out. It stays seen.
    pub fn pop(&mut self) -> Option<T> {
        self.queue.pop_front()
    }

    /// Items that are to come out.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether no item is to come out.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether [`push`](Self::push) would drop `item`: for an item that was pushed `true`, for any other `false` but with
    /// probability [`estimated_fpr`](Self::estimated_fpr).
    pub fn seen(&self, item: impl AsRef<[u8]>) -> bool {
        match &self.filter {
            Filter::Fixed(filter) => filter.contains(item),
            Filter::Growing(filter) => filter.contains(item),
        }
    }

    /// The items that are to come out, in that order.
    pub fn iter(&self) -> vec_deque::Iter<'_, T> {
        self.queue.iter()
    }

    /// What items are hashed with, 0 unless [`with_seed`](Self::with_seed) set it.
    pub fn seed(&self) -> u64 {
        match &self.filter {
            Filter::Fixed(filter) => filter.seed(),
            Filter::Growing(filter) => filter.seed(),
        }
    }

    /// Items that were new when they were pushed: those that came out and those that are to come.
    pub fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Whether the frontier has taken more items than it was made for, and so drops new ones more often than was asked for.
    /// Never, if it grows.
    pub fn is_over_capacity(&self) -> bool {
        self.accepted > self.capacity
    }

    /// Bytes that the filter takes in memory: all but the queue.
    pub fn size_bytes(&self) -> usize {
        match &self.filter {
            Filter::Fixed(filter) => filter.size_bytes(),
            Filter::Growing(filter) => filter.size_bytes(),
        }
    }

    /// The probability that [`push`](Self::push) drops an item that is new: exact for the filter as it is. Reads the
    /// whole filter.
    pub fn estimated_fpr(&self) -> f64 {
        match &self.filter {
            Filter::Fixed(filter) => filter.estimated_fpr(),
            Filter::Growing(filter) => filter.estimated_fpr(),
        }
    }

    /// Appends the frontier's standalone bytes: queue, filter and a footer of 64 bytes, as specified in `docs/format.md`,
    /// section 10. [`save`](Self::save) writes them without a second copy of the queue in memory.
    ///
    /// # Errors
    ///
    /// If the build's `wyhash` crate has changed its output: other builds would not find the keys. Nothing is appended
    /// then.
    pub fn write_standalone(&self, out: &mut Vec<u8>) -> Result<(), HashChanged> {
        let filter = self.filter_bytes()?;
        self.encode(&filter, |part| {
            out.extend_from_slice(part);
            Ok(())
        })
    }

    /// The bytes of [`write_standalone`](Self::write_standalone).
    ///
    /// # Panics
    ///
    /// Where that is an error.
    pub fn to_standalone(&self) -> Vec<u8> {
        encoding::bytes_or_panic(|bytes| self.write_standalone(bytes))
    }

    /// Writes the frontier's standalone bytes, so that a crawl can resume with [`restore`](Self::restore). Item by item:
    /// wrap a file in a [`BufWriter`](std::io::BufWriter). Allocates a copy of the filter, not of the queue. With the
    /// feature `std`.
    ///
    /// The bytes hold what is queued and what was seen. An item that was popped is seen and no longer queued: finish
    /// visiting it before you save, or keep it elsewhere. To survive a crash while saving, write a new file, sync it and
    /// rename it over the old one; the example `crawl` does so with a library.
    ///
    /// # Errors
    ///
    /// Those of the writer, and [`HashChanged`] as an error of kind [`Other`](std::io::ErrorKind::Other), before anything
    /// is written.
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
        let filter = self.filter_bytes().map_err(std::io::Error::other)?;
        self.encode(&filter, |part| out.write_all(part))?;
        out.flush()
    }

    fn filter_bytes(&self) -> Result<Vec<u8>, HashChanged> {
        let mut bytes = Vec::new();
        match &self.filter {
            Filter::Fixed(filter) => filter.write_standalone(&mut bytes)?,
            Filter::Growing(filter) => filter.write_standalone(&mut bytes)?,
        }
        Ok(bytes)
    }

    fn encode<E>(&self, filter: &[u8], mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
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
        put(filter)?;
        let Self { accepted, capacity, .. } = *self;
        let items = self.queue.len() as u64;
        let words = [items, queue_bytes, accepted, capacity, checksum.digest(), VERSION.into()];
        write(&encoding::signed(words, StandaloneKind::Frontier))
    }
}

impl<T: AsRef<[u8]> + TryFrom<Vec<u8>>> Frontier<T> {
    /// The frontier of standalone bytes: those of [`to_standalone`](Self::to_standalone). Its items are made from their
    /// bytes by `TryFrom<Vec<u8>>`, which `String` and `Vec<u8>` implement.
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of a newer version; if an item cannot be made from its bytes, or then has
    /// different ones; if the keys were placed by another hash than this build's.
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
        // The count goes on from here: past half the range it might overflow.
        if accepted < items || accepted > u64::MAX / 2 {
            return Err(DecodeError::Footer { field: "number of accepted items", found: accepted });
        }
        encoding::verify(body, checksum)?;
        let wrong_queue = DecodeError::Queue { items, queue_bytes, found_bytes: body.len() as u64 };
        let (mut rest, filter) = split_at(body, queue_bytes).ok_or(wrong_queue)?;
        // Grown as items come: a forged count must not allocate.
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
        // An item that the filter does not know would be accepted again, and visited twice.
        match frontier.iter().position(|item| !frontier.seen(item)) {
            Some(index) => Err(DecodeError::Item { index: index as u64 }),
            None => Ok(frontier),
        }
    }

    /// Reads a frontier that [`save`](Self::save) wrote, to the end of the input. Allocates as much as the input in
    /// addition to the frontier. With the feature `std`.
    ///
    /// # Errors
    ///
    /// [`RestoreError::Io`] if the input cannot be read, [`RestoreError::Decode`] as
    /// [`from_standalone`](Self::from_standalone).
    #[cfg(feature = "std")]
    pub fn restore(mut input: impl std::io::Read) -> Result<Self, RestoreError> {
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes)?;
        Ok(Self::from_standalone(&bytes)?)
    }
}

/// `None` where there are fewer bytes.
fn split_at(bytes: &[u8], at: u64) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(usize::try_from(at).ok()?)
}

impl<T: AsRef<[u8]>> Extend<T> for Frontier<T> {
    /// [`push`](Frontier::push) for each.
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        for item in items {
            self.push(item);
        }
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
        let filter: &dyn fmt::Debug = match &self.filter {
            Filter::Fixed(filter) => filter,
            Filter::Growing(filter) => filter,
        };
        f.debug_struct("Frontier")
            .field("len", &self.queue.len())
            .field("accepted", &self.accepted)
            .field("filter", filter)
            .finish_non_exhaustive()
    }
}
