//! The standalone bytes of a growing filter.
#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::{iter, mem};

use xxhash_rust::xxh64::Xxh64;

use super::super::modular::{ModularBloomFilter, ModularView};
use super::filter::{Load, ScalableBloomFilter};
use super::series::Series;
use crate::blocks::BLOCK_BYTES;
use crate::error::DecodeError;
use crate::footer::{self, StandaloneFooter, VERSION};
use crate::kind::StandaloneKind;
use crate::limits::MAX_BITS_PER_KEY;
use crate::math::power;
use crate::memory::{OutOfMemory, reserve};
use crate::sizing;
use crate::standalone;
use crate::view::BloomView;

/// Keys and capacity of a filter.
const LOAD_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 8;

impl ScalableBloomFilter {
    /// Length of the standalone bytes, which are the filters', 16 bytes for the keys and capacity of each, their
    /// checksum, and a footer of 64 bytes.
    pub fn standalone_len(&self) -> usize {
        let of_each = |filter: &ModularBloomFilter| match self.series.n_modules {
            1 => filter.all.standalone_len(),
            _ => filter.standalone_len(),
        };
        self.filters.iter().map(|filter| of_each(filter) + LOAD_BYTES).sum::<usize>()
            + CHECKSUM_BYTES
            + StandaloneFooter::LEN
    }

    standalone::standalone_io!();

    pub(in crate::variants) fn encode<E>(
        &self,
        mut write: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for filter in &self.filters {
            match self.series.n_modules {
                1 => filter.all.encode(&mut write)?,
                _ => filter.encode(&mut write)?,
            }
        }
        let mut checksum = Xxh64::new(0);
        for load in self.loads() {
            let load = [load.keys, load.capacity].map(u64::to_le_bytes);
            checksum.update(load.as_flattened());
            write(load.as_flattened())?;
        }
        write(&checksum.digest().to_le_bytes())?;
        let Series { initial_capacity, fpr, growth, tightening, .. } = self.series;
        let last = u64::from_le_bytes([VERSION, growth, self.next as u8, 0, 0, 0, 0, 0]);
        let rates = [self.fpr, fpr, tightening].map(f64::to_bits);
        let fields = [self.filters.len() as u64, rates[0], initial_capacity, rates[1], rates[2], last];
        write(&footer::seal(fields, StandaloneKind::Scalable))
    }

    /// Reads a filter from the standalone bytes of [`to_standalone`](Self::to_standalone). Compares all checksums. The
    /// filter keeps growing as if it had never been written.
    ///
    /// # Errors
    ///
    /// If the bytes were cut, are damaged or of another version, if their keys were hashed by another function than
    /// this build's, or if memory cannot be allocated.
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
    pub fn from_standalone(bytes: &[u8]) -> Result<Self, DecodeError> {
        let wrong = |field, found| DecodeError::Footer { field, found };
        let check = |is_right: bool, field, found| is_right.then_some(()).ok_or(wrong(field, found));
        let (body, fields) = footer::split(bytes, StandaloneKind::Scalable)?;
        let [n_filters, of_all, initial_capacity, fpr, tightening, last] = fields;
        let [of_all, fpr, tightening] = [of_all, fpr, tightening].map(f64::from_bits);
        let [_, growth, next, reserved @ ..] = last.to_le_bytes();
        check(reserved == [0; 5], "reserved bytes", last >> 24)?;
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
        // One hash and one mask serve all filters, so a filter with another k or seed would lose keys.
        let (k, n_modules, seed) = (last.all().k, last.n_modules(), last.all().seed);
        let series = series.with_shape(k, n_modules);
        let mut most_blocks = 0;
        for (filter, load) in newest_first(filters).zip(loads().rev()) {
            let filter = filter?;
            check(filter.all().k == k, "k", filter.all().k().into())?;
            check(filter.n_modules() == n_modules, "number of modules", filter.n_modules() as u64)?;
            check(filter.all().seed == seed, "seed", filter.all().seed())?;
            check(load.keys <= load.capacity, "number of keys", load.keys)?;
            filter.verify()?;
            most_blocks = most_blocks.max(filter.n_blocks());
        }
        let found = newest_first(filters).count();
        check(found as u64 == n_filters, "number of filters", n_filters)?;
        let rate_of = |n_blocks: usize, keys: u64| {
            let bits_per_key = 1.01 * (n_blocks * BLOCK_BYTES * 8) as f64 / keys as f64;
            let of_module = sizing::fpr(bits_per_key.min(MAX_BITS_PER_KEY), k.get()).unwrap_or(1.0);
            power(of_module, n_modules as u32)
        };
        // The rate of all must cover what may still come, the keys that filters have room for and the filters of the
        // series. Checked after the checksums, because the model is slower.
        let (next, newest) = (usize::from(next), usize::from(next) - 1);
        let mut rates = series.rate_from(next);
        for (filter, load) in newest_first(filters).zip(loads().rev()).filter(|(_, load)| !load.is_full()) {
            let rate = rate_of(filter?.n_blocks(), load.capacity);
            rates += rate;
            check(rate <= 0.5 && rates <= of_all * (1.0 + 1e-9), "capacity of a filter", load.capacity)?;
        }
        check(rates <= of_all * (1.0 + 1e-9), "false-positive rate of all, in bits,", of_all.to_bits())?;
        // The size of the next filter follows from this, so forged bytes must not make it large relative to the
        // largest.
        let is_large = rate_of(most_blocks, series.capacity(newest)) <= series.fpr(newest);
        check(initial_capacity != 0 && is_large, "initial capacity", initial_capacity)?;
        let (mut copies, mut older) = (Vec::new(), Vec::new());
        reserve(&mut copies, found)?;
        reserve(&mut older, found)?;
        for filter in newest_first(filters) {
            copies.push(filter?.copy()?);
        }
        copies.reverse();
        older.extend(loads());
        let newest = older.pop().ok_or(wrong_number)?;
        Ok(Self { filters: copies, older, newest, series, next, fpr: of_all, seed })
    }
}

/// The filters, the keys and capacities of so many filters, and their checksum. `None` if there are fewer bytes.
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
fn newest_first(mut bytes: &[u8]) -> impl Iterator<Item = Result<Part<'_>, DecodeError>> {
    iter::from_fn(move || {
        let all = mem::take(&mut bytes);
        (!all.is_empty()).then(|| {
            let (before, last) = Part::split_last(all)?;
            bytes = before;
            Ok(last)
        })
    })
}

/// One filter in the bytes.
enum Part<'a> {
    OneModule(BloomView<'a>),
    Modules(ModularView<'a>),
}

impl<'a> Part<'a> {
    fn split_last(bytes: &'a [u8]) -> Result<(&'a [u8], Self), DecodeError> {
        if StandaloneKind::of(bytes) == Some(StandaloneKind::Modular) {
            let (before, last) = ModularView::split_last(bytes)?;
            return Ok((before, Self::Modules(last)));
        }
        let (before, last) = standalone::split_last_standalone(bytes)?;
        BloomView::from_standalone_unverified(last).map(|last| (before, Self::OneModule(last)))
    }

    /// All modules as one filter: good for its k and seed.
    fn all(&self) -> BloomView<'a> {
        match self {
            Self::OneModule(view) => *view,
            Self::Modules(view) => view.all(),
        }
    }

    fn n_modules(&self) -> usize {
        match self {
            Self::OneModule(_) => 1,
            Self::Modules(view) => view.n_modules(),
        }
    }

    /// Of each module.
    fn n_blocks(&self) -> usize {
        self.all().n_blocks() / self.n_modules()
    }

    fn verify(&self) -> Result<(), DecodeError> {
        match self {
            Self::OneModule(view) => view.verify(),
            Self::Modules(view) => view.verify(),
        }
    }

    fn copy(&self) -> Result<ModularBloomFilter, OutOfMemory> {
        Ok(ModularBloomFilter { all: self.all().copy()?, n_blocks: self.n_blocks() })
    }
}
