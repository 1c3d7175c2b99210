//! The standalone bytes of a growing filter.

use alloc::vec::Vec;
use core::{iter, mem};

use xxhash_rust::xxh64::Xxh64;

use super::filter::{Load, ScalableBloomFilter};
use super::series::Series;
use crate::blocks::BLOCK_BYTES;
use crate::error::Error;
use crate::footer::{self, StandaloneFooter, VERSION};
use crate::kind::StandaloneKind;
use crate::limits::MAX_BITS_PER_KEY;
use crate::memory::reserve;
use crate::modules::Modules;
use crate::sizing;
use crate::standalone;
use crate::view::BloomView;

/// Bytes of the keys and capacity of a filter.
const LOAD_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 8;

impl ScalableBloomFilter {
    /// Length of the standalone bytes, which are the bytes of each filter, 16 bytes for the keys and capacity of each,
    /// a checksum of these, and a footer of 64 bytes. [Depends on the
    /// bits](crate::BloomFilter::to_compact) of small filters.
    pub fn standalone_len(&self) -> usize {
        let modules = (0..self.n_modules()).flat_map(|i| self.modules(i)).map(standalone::len);
        modules.sum::<usize>() + LOAD_BYTES * self.filters.len() + CHECKSUM_BYTES + StandaloneFooter::LEN
    }

    /// Module `index` of each filter.
    fn modules(&self, index: usize) -> impl Iterator<Item = Modules<'_>> {
        self.filters.iter().filter_map(move |filter| filter.modules().iter().nth(index).map(Modules::one))
    }

    standalone::standalone_io!();

    pub(in crate::variants) fn encode<E>(
        &self,
        mut write: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for index in 0..self.n_modules() {
            for (module, filter) in self.modules(index).zip(&self.filters) {
                standalone::encode(module, filter.k, filter.seed, filter.keys, &mut write)?;
            }
        }
        let mut checksum = Xxh64::new(0);
        for load in self.loads() {
            let load = [load.keys, load.capacity].map(u64::to_le_bytes);
            checksum.update(load.as_flattened());
            write(load.as_flattened())?;
        }
        write(&checksum.digest().to_le_bytes())?;
        let Series { initial_capacity, fpr, growth, tightening, n_modules, .. } = self.series;
        let last = u64::from_le_bytes([VERSION, growth, self.next as u8, n_modules as u8 - 1, 0, 0, 0, 0]);
        let rates = [self.fpr, fpr, tightening].map(f64::to_bits);
        let fields = [self.filters.len() as u64, rates[0], initial_capacity, rates[1], rates[2], last];
        write(&footer::seal(fields, StandaloneKind::Scalable.magic()))
    }

    /// Reads a filter from the standalone bytes of [`to_standalone`](Self::to_standalone). Compares all checksums. The
    /// filter keeps growing as if it had never been written.
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of a different version, if their keys were hashed by a different function
    /// than this build's, or if memory cannot be allocated.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::variants::ScalableBloomFilter;
    ///
    /// let mut filter = ScalableBloomFilter::with_fpr(1_000, 0.01)?;
    /// filter.insert("user4291");
    /// let bytes = filter.to_standalone();
    /// assert!(ScalableBloomFilter::from_standalone(&bytes)?.contains("user4291"));
    /// assert!(ScalableBloomFilter::from_standalone(&bytes[1..]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_standalone(bytes: &[u8]) -> Result<Self, Error> {
        let wrong = |field, found: u64| Error::impossible(field, found);
        let check = |is_right: bool, field, found| is_right.then_some(()).ok_or(wrong(field, found));
        let (body, fields) = footer::split(bytes, StandaloneKind::Scalable)?;
        let [n_filters, of_all, initial_capacity, fpr, tightening, last] = fields;
        let [of_all, fpr, tightening] = [of_all, fpr, tightening].map(f64::from_bits);
        let [_, growth, next, further, reserved @ ..] = last.to_le_bytes();
        check(reserved == [0; 4], "reserved bytes", last >> 24)?;
        check(further <= 1, "number of further modules", further.into())?;
        check((2..=16).contains(&growth), "growth", growth.into())?;
        check(next > 0, "index of the next filter", 0)?;
        check((0.5..1.0).contains(&tightening), "tightening, in bits,", tightening.to_bits())?;
        check(of_all > 0.0 && of_all.is_finite(), "false-positive rate of all, in bits,", of_all.to_bits())?;
        let series = Series::new(initial_capacity, fpr, growth, tightening)
            .map_err(|_| wrong("false-positive rate, in bits,", fpr.to_bits()))?;
        let wrong_number = wrong("number of filters", n_filters);
        let (filters, loads, checksum) = split_loads(body, n_filters).ok_or(wrong_number)?;
        footer::verify(loads, checksum)?;
        let loads = || loads.as_chunks().0.iter().map(load_of);
        // Everything is checked before memory is allocated for the first filter.
        let last = newest_first(filters).next().unwrap_or(Err(wrong_number))?;
        // One hash and one mask serve all filters, so a filter with a different k or seed would lose keys.
        let (k, seed, n_modules) = (last.k, last.seed, 1 + usize::from(further));
        let series = series.with_shape(k, n_modules);
        let mut most_blocks = 0;
        for (filter, load) in newest_first(filters).zip(loads().rev().cycle()) {
            let filter = filter?;
            check(filter.n_modules() == 1, "number of modules", filter.n_modules() as u64)?;
            check(filter.k == k, "k", filter.k().into())?;
            check(filter.seed == seed, "seed", filter.seed())?;
            check(load.keys <= load.capacity, "number of keys", load.keys)?;
            filter.verify()?;
            most_blocks = most_blocks.max(filter.n_blocks());
        }
        // The second modules of all filters come last.
        let (n_seconds, found) = (loads().len() * (n_modules - 1), newest_first(filters).count());
        check(found == loads().len() + n_seconds, "number of filters", n_filters)?;
        let firsts = || newest_first(filters).skip(n_seconds);
        for (second, first) in newest_first(filters).zip(firsts()).take(n_seconds) {
            let (second, first) = (second?.n_blocks(), first?.n_blocks());
            check(second == first, "blocks of a second module", second as u64)?;
        }
        let bits_per_key = |n_blocks: usize, keys: u64| (n_blocks * BLOCK_BYTES * 8) as f64 / keys as f64;
        let rate_of = |bits_per_key: f64| {
            let bits_per_key = (1.01 * bits_per_key).min(MAX_BITS_PER_KEY);
            series.of_modules(sizing::fpr(bits_per_key, k.get()).unwrap_or(1.0))
        };
        // The rate of all must cover what may still come, the keys that filters have room for and the filters of the
        // series. Of the filters with room, only the one with the fewest bits per key is checked, because to evaluate
        // the model for each of many forged filters would cost more than to read them.
        let (next, newest) = (usize::from(next), usize::from(next) - 1);
        let (mut rates, mut tightest) = (series.rate_from(next), (f64::INFINITY, 0));
        for (filter, load) in firsts().zip(loads().rev()).filter(|(_, load)| !load.is_full()) {
            let bits = bits_per_key(filter?.n_blocks(), load.capacity);
            if bits < tightest.0 {
                tightest = (bits, load.capacity);
            }
        }
        if let (fewest_bits, capacity @ 1..) = tightest {
            let rate = rate_of(fewest_bits);
            rates += rate;
            check(rate <= 0.5 && rates <= of_all * (1.0 + 1e-9), "capacity of a filter", capacity)?;
        }
        check(rates <= of_all * (1.0 + 1e-9), "false-positive rate of all, in bits,", of_all.to_bits())?;
        // The size of the next filter follows from this, so forged bytes must not make it large relative to the
        // largest.
        let is_large = rate_of(bits_per_key(most_blocks, series.capacity(newest))) <= series.fpr(newest);
        check(initial_capacity != 0 && is_large, "initial capacity", initial_capacity)?;
        let (mut copies, mut seconds) = (Vec::new(), newest_first(filters).take(n_seconds));
        reserve(&mut copies, loads().len())?;
        for first in firsts() {
            let first = first?;
            copies.push(first.copy_with(seconds.next().transpose()?)?);
        }
        copies.reverse();
        let mut older = Vec::new();
        reserve(&mut older, copies.len())?;
        older.extend(loads());
        let newest = older.pop().ok_or(wrong_number)?;
        Ok(Self { filters: copies, older, newest, series, next, fpr: of_all, seed })
    }
}

/// Splits the body into the filters, their keys and capacities, and the checksum of these. `None` if there are fewer
/// bytes.
fn split_loads(body: &[u8], n_filters: u64) -> Option<(&[u8], &[u8], u64)> {
    let (body, checksum) = body.split_last_chunk()?;
    let len = usize::try_from(n_filters).ok()?.checked_mul(LOAD_BYTES)?;
    let (filters, loads) = body.split_at_checked(body.len().checked_sub(len)?)?;
    Some((filters, loads, u64::from_le_bytes(*checksum)))
}

fn load_of(bytes: &[u8; LOAD_BYTES]) -> Load {
    let [keys, capacity] = bytemuck::cast::<_, [[u8; 8]; 2]>(*bytes).map(u64::from_le_bytes);
    Load { keys, capacity }
}

/// The filters in these bytes, last first, up to the first that cannot be read.
fn newest_first(mut bytes: &[u8]) -> impl Iterator<Item = Result<BloomView<'_>, Error>> {
    iter::from_fn(move || {
        let all = mem::take(&mut bytes);
        (!all.is_empty()).then(|| {
            let (before, last) = standalone::split_last_standalone(all)?;
            bytes = before;
            BloomView::from_standalone_unverified(last)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bank::FilterBank;
    use crate::filter::BloomFilter;
    use crate::sizing::EVALUATIONS;
    use crate::variants::{CountingBloomFilter, Frontier, StandardBloomFilter};

    /// The model runs for up to a millisecond, and a filter can be as short as 88 bytes.
    #[test]
    fn the_model_runs_a_few_times_whatever_the_bytes() {
        for n_modules in [1, 2] {
            let mut filter =
                ScalableBloomFilter::with_fpr(1, if n_modules == 1 { 0.4 } else { 1e-4 }).unwrap();
            let module_blocks = filter.filters[0].blocks.module_blocks();
            for capacity in 1..=300 {
                filter.filters.push(filter.filters[0].try_empty(module_blocks + capacity as usize).unwrap());
                filter.older.push(Load { keys: 0, capacity });
            }
            filter.fpr = f64::MAX;
            let bytes = filter.to_standalone();
            let read = || ScalableBloomFilter::from_standalone(&bytes).unwrap();
            assert_eq!((read().filters.len(), read().n_modules()), (301, n_modules));
            let n = evaluations(|| _ = read());
            assert!((1..=4).contains(&n), "{n}");
        }
        let growing = Frontier::<Vec<u8>>::growing(9, 0.01).unwrap().to_standalone();
        let n = evaluations(|| _ = Frontier::<Vec<u8>>::from_standalone(&growing).unwrap());
        assert!((1..=4).contains(&n), "{n}");
        let filter = BloomFilter::with_blocks(9, 6).unwrap();
        let counting = CountingBloomFilter::with_fpr(9, 0.01).unwrap().to_standalone();
        let standard = StandardBloomFilter::with_fpr(9, 0.01).unwrap().to_standalone();
        let bank = FilterBank::from_filters([&filter]).unwrap().to_standalone();
        let filter = filter.to_standalone();
        let n = evaluations(|| {
            BloomFilter::from_standalone(&filter).unwrap();
            CountingBloomFilter::from_standalone(&counting).unwrap();
            StandardBloomFilter::from_standalone(&standard).unwrap();
            FilterBank::from_standalone(&bank).unwrap();
        });
        assert_eq!(n, 0);
    }

    fn evaluations(read: impl FnOnce()) -> u32 {
        EVALUATIONS.set(0);
        read();
        EVALUATIONS.get()
    }
}
