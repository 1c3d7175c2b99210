//! Inserts and lookups of many keys, which prefetch.

use super::filter::ScalableBloomFilter;
use super::lookups::{MOST_FOUND, any_contains};
use crate::bitmap;
use crate::error::Error;
use crate::filter::BloomFilter;
use crate::kernel;
use crate::memory::{OutOfMemory, or_abort};

/// Keys of a batch whose answers are held at a time, on the stack.
const CHUNK: usize = 256;

/// How many keys the lookups in first modules are ahead of the inserts of a batch. 32 is as fast.
const LAG: usize = 16;

impl ScalableBloomFilter {
    /// Inserts many keys by hash. Faster than single inserts once the filters are large.
    pub fn insert_batch(&mut self, hashes: &[u64]) {
        or_abort(self.add_batch(hashes, |_| ()));
    }

    /// [`insert_batch`](Self::insert_batch), with an error if memory runs out. Passes to `each` whether each key was
    /// new, in their order, as [`insert`](Self::insert) returns it.
    ///
    /// # Errors
    ///
    /// If all filters are full and memory for a larger one cannot be allocated. The keys before are inserted then, and
    /// their answers passed to `each`.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::hash_key;
    /// use bloomline::variants::ScalableBloomFilter;
    ///
    /// let mut seen = ScalableBloomFilter::with_fpr(1_000, 0.001)?;
    /// let hashes = ["ant", "bee", "ant"].map(|line| hash_key(line, seen.seed()));
    /// let mut is_new = Vec::new();
    /// seen.try_insert_batch(&hashes, |new| is_new.push(new))?;
    /// assert_eq!(is_new, [true, true, false]);
    /// # Ok::<(), bloomline::Error>(())
    /// ```
    pub fn try_insert_batch(&mut self, hashes: &[u64], each: impl FnMut(bool)) -> Result<(), Error> {
        Ok(self.add_batch(hashes, each)?)
    }

    fn add_batch(&mut self, mut hashes: &[u64], mut each: impl FnMut(bool)) -> Result<(), OutOfMemory> {
        // Inserts prefetch from half the size of a single filter on, because all filters share the caches.
        let large = kernel::large() / 2;
        while !hashes.is_empty() {
            let is_one_module = self.series.n_modules == 1;
            let n_added = if is_one_module { 0 } else { self.add_chunk(hashes, large, &mut each) };
            let one_by_one = match n_added {
                0 if is_one_module => hashes.len(),
                0 => hashes.len().min(LAG),
                _ => 0,
            };
            let (now, rest) = hashes[n_added..].split_at(one_by_one);
            for (hash, later) in kernel::with_later(now) {
                later.into_iter().for_each(|later| self.prefetch_in(large, later));
                each(self.add(hash)?);
            }
            hashes = rest;
        }
        Ok(())
    }

    /// Inserts the first hashes into filters of two modules, as many as the newest surely has room for, at most
    /// [`CHUNK`]. Then passes to `each` whether each was new. Returns how many they are, or 0 if they are few, which is
    /// faster one by one.
    ///
    /// Looks up first modules some keys ahead of the inserts, because they decide which second one is read. So it
    /// misses a repeat of one of the keys in between, which the insert then finds.
    fn add_chunk(&mut self, hashes: &[u64], large: usize, each: impl FnMut(bool)) -> usize {
        let room = self.newest.room();
        let most = if self.filters.len() > MOST_FOUND { 0 } else { CHUNK };
        let n = hashes.len().min(usize::try_from(room).unwrap_or(most)).min(most);
        if n < 4 * LAG {
            return 0;
        }
        // For each key, first the answers of the first modules, later 1 if the key is new, else 0.
        let mut is_new = [0; CHUNK];
        let mut ahead = kernel::with_later(hashes).zip(0..n);
        for at in 0..n + LAG {
            if let Some(((hash, later), at)) = ahead.next() {
                later.into_iter().for_each(|later| self.prefetch_in(large, later));
                is_new[at] = BloomFilter::which_first_contain(&self.filters, hash);
                // The second module of the last filter that has the key, or else of the newest filter, which gets it.
                let filter = self.filters.iter().nth_back(is_new[at].trailing_zeros() as usize % MOST_FOUND);
                filter.into_iter().for_each(|filter| filter.prefetch_second(hash));
            }
            if let Some(at) = at.checked_sub(LAG) {
                let hash = hashes[at];
                let is_found = any_contains(&self.filters, is_new[at], hash);
                let newest = self.filters.last_mut();
                is_new[at] = u64::from(!is_found && newest.is_some_and(|newest| newest.insert_hash(hash)));
                self.newest.keys += is_new[at];
            }
        }
        is_new[..n].iter().map(|&is_new| is_new != 0).for_each(each);
        n
    }

    /// Looks up many keys by hash, and sets `found[i]` to whether the key of `hashes[i]` is possibly present. Faster
    /// than single lookups once the filters are large.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
        assert_eq!(hashes.len(), found.len(), "one answer per hash");
        if let [only] = &self.filters[..] {
            return only.contains_batch(hashes, found);
        }
        let n_blocks = self.filters.iter().map(BloomFilter::n_blocks).sum::<usize>();
        let large = kernel::large();
        if n_blocks < 8 * large {
            found.iter_mut().zip(hashes).for_each(|(found, &hash)| *found = self.contains_hash(hash));
            return;
        }
        // Tried: ask each filter by its own batch. Without the common mask it needs 0.8 to 1.3 of the time.
        for ((hash, later), found) in kernel::with_later(hashes).zip(found) {
            later.into_iter().for_each(|later| self.prefetch_in(large / 2, later));
            *found = self.contains_hash(hash);
        }
    }

    /// [`contains_batch`](Self::contains_batch) into a bitmap, as
    /// [`BloomFilter::contains_bitmap`] does.
    ///
    /// # Panics
    ///
    /// If `found` does not have `hashes.len().div_ceil(8)` bytes.
    pub fn contains_bitmap(&self, hashes: &[u64], found: &mut [u8]) {
        bitmap::write_batches(hashes, found, |hashes, found| self.contains_batch(hashes, found));
    }

    /// [`prefetch`](Self::prefetch) in the newest filter and the next older ones, if they have at least `n_blocks`.
    #[inline]
    fn prefetch_in(&self, n_blocks: usize, hash: u64) {
        let is_large = |filter: &&BloomFilter| filter.n_blocks() >= n_blocks;
        let mut from_newest = self.filters.iter().rev();
        let newest = from_newest.next().filter(is_large);
        newest.into_iter().chain(from_newest.take_while(is_large)).for_each(|filter| filter.prefetch(hash));
    }
}
