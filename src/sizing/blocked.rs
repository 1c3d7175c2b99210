//! `Sizing`, the size of a filter of blocks.

use core::f64::consts::LN_2;
use core::iter;

use super::checks::too_many_keys;
use super::model::{BLOCK_BITS, best_probe_count, model};
use super::per_key::{PerKey, Request, checked_modules};
use crate::blocks::{BLOCK_BYTES, LANES, MAX_BLOCKS};
use crate::error::Error;
use crate::lanes::MOST_LANES;
use crate::mask::ProbeCount;
use crate::math::{ceil, power};

/// The size of a filter, which is its number of blocks, the number of modules that these are divided into, and the
/// probes per key in each module.
///
/// Computed sizes have one [module](crate::sizing#modules) for false-positive rates down to about 0.05%, and two below,
/// because a further module is made only where it saves at least 7% of the bits. To choose otherwise, use
/// [`for_fpr_within`](Self::for_fpr_within) or [`for_bits_per_key_within`](Self::for_bits_per_key_within).
///
/// # Examples
///
/// ```
/// use bloomline::{BloomFilter, Sizing};
///
/// let sizing = Sizing::for_fpr(1_000_000, 0.01)?;
/// assert_eq!((sizing.n_blocks(), sizing.n_modules(), sizing.k()), (19_402, 1, 6));
/// let filter = BloomFilter::with_sizing(sizing)?;
/// assert_eq!((filter.byte_len(), sizing.byte_len()), (1_241_728, 1_241_728));
/// # Ok::<(), bloomline::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sizing {
    pub(crate) n_blocks: usize,
    /// Divides `n_blocks`.
    pub(crate) n_modules: usize,
    pub(crate) k: ProbeCount,
}

impl Sizing {
    /// The size of a filter with `n_blocks` blocks of 64 bytes and `k` probes per key, in one module.
    ///
    /// # Errors
    ///
    /// If `n_blocks` is 0, the filter is larger than the address space, or `k` is not 1 to 16.
    pub fn new(n_blocks: usize, k: u32) -> Result<Self, Error> {
        let k = ProbeCount::new(k)?;
        match n_blocks {
            1..=MAX_BLOCKS => Ok(Self { n_blocks, n_modules: 1, k }),
            _ => {
                let text = "a filter has 1 to {} blocks of 64 bytes on this machine, not {}";
                Err(Error::argument(text, [MAX_BLOCKS, n_blocks].map(|n| n as u64)))
            }
        }
    }

    /// This size, with its blocks divided into `n_modules` modules, 1 to 16.
    ///
    /// # Errors
    ///
    /// If `n_modules` is not 1 to 16, or does not divide the number of blocks.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::{BloomFilter, Sizing};
    ///
    /// let filter = BloomFilter::with_sizing(Sizing::new(30, 4)?.with_modules(3)?)?;
    /// assert_eq!((filter.n_blocks(), filter.n_modules()), (30, 3)); // ten blocks each
    /// # Ok::<(), bloomline::Error>(())
    /// ```
    pub fn with_modules(self, n_modules: usize) -> Result<Self, Error> {
        checked_modules(n_modules)?;
        if !self.n_blocks.is_multiple_of(n_modules) {
            let text = "{} blocks cannot be divided among {} modules: use a multiple of {}";
            return Err(Error::argument(text, [self.n_blocks, n_modules, n_modules].map(|n| n as u64)));
        }
        Ok(Self { n_modules, ..self })
    }

    /// Number of blocks of 64 bytes, of all modules. At least 1. The [format](crate::format)'s n_blocks is the number in
    /// each module, `n_blocks() / n_modules()`.
    pub fn n_blocks(self) -> usize {
        self.n_blocks
    }

    /// Number of modules, 1 to 16. Divides the number of blocks.
    pub fn n_modules(self) -> usize {
        self.n_modules
    }

    /// Probes per key, 1 to 16, in each module.
    pub fn k(self) -> u32 {
        self.k.get()
    }

    pub(crate) fn probe_count(self) -> ProbeCount {
        self.k
    }

    /// Blocks of each module.
    pub(crate) fn module_blocks(self) -> usize {
        self.n_blocks / self.n_modules
    }

    /// The size of the smallest filter whose false-positive rate is at most `fpr` once it holds `keys` distinct keys. A
    /// further module is made only if it saves at least 7% of the bits.
    ///
    /// Evaluates the model twenty to fifty times, which costs far less than a millisecond for an FPR of 1%, and a few
    /// milliseconds for low rates. Does not allocate.
    ///
    /// # Errors
    ///
    /// If `fpr` is below [`MIN_FPR`](crate::sizing::MIN_FPR) plus `keys` ÷ 2^64 or not below 1, or the filter is larger
    /// than the address space.
    pub fn for_fpr(keys: u64, fpr: f64) -> Result<Self, Error> {
        Self::new_for(Request::Fpr(fpr), keys, None)
    }

    /// [`for_fpr`](Self::for_fpr) with at most `most_modules` modules, where each further one has to save only 1% of the
    /// bits. Computed sizes never have more than four.
    ///
    /// Pass 1 if most lookups are of present keys, because such a lookup reads a cache line of every module, and 4 if
    /// the last percent of the bits matters more than time.
    ///
    /// # Errors
    ///
    /// As [`for_fpr`](Self::for_fpr), but the lowest rates of one to four modules are 1.263e-8, 3.05e-11, 2.142e-12 and
    /// 5.432e-13. Or if `most_modules` is not 1 to 16.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::Sizing;
    ///
    /// let in_modules = |most_modules| Sizing::for_fpr_within(1_000_000, 0.0001, most_modules);
    /// let sizes = [in_modules(1)?, Sizing::for_fpr(1_000_000, 0.0001)?, in_modules(4)?];
    /// assert_eq!(sizes.map(Sizing::n_modules), [1, 2, 3]);
    /// assert_eq!(sizes.map(Sizing::byte_len), [2_761_536, 2_483_456, 2_442_624]);
    /// # Ok::<(), bloomline::Error>(())
    /// ```
    pub fn for_fpr_within(keys: u64, fpr: f64, most_modules: usize) -> Result<Self, Error> {
        Self::new_for(Request::Fpr(fpr), keys, Some(most_modules))
    }

    /// The size of a filter with `bits_per_key` bits for each of `keys` distinct keys, rounded up to whole blocks. k is
    /// the best for the bits per key after rounding.
    ///
    /// A second module is made from 17.46 bits per key on, where one module has a false-positive rate that two reach with
    /// 7% fewer bits, and only if rounding adds at most 1%.
    ///
    /// # Errors
    ///
    /// If `bits_per_key` is not above 0 and at most [`MAX_BITS_PER_KEY`](crate::sizing::MAX_BITS_PER_KEY), or the
    /// filter is larger than the address space.
    pub fn for_bits_per_key(keys: u64, bits_per_key: f64) -> Result<Self, Error> {
        Self::new_for(Request::BitsPerKey(bits_per_key), keys, None)
    }

    /// [`for_bits_per_key`](Self::for_bits_per_key) with at most `most_modules` modules, where each further one has to
    /// save only 1%. See [`for_fpr_within`](Self::for_fpr_within).
    ///
    /// # Errors
    ///
    /// As [`for_bits_per_key`](Self::for_bits_per_key), and if `most_modules` is not 1 to 16.
    pub fn for_bits_per_key_within(keys: u64, bits_per_key: f64, most_modules: usize) -> Result<Self, Error> {
        Self::new_for(Request::BitsPerKey(bits_per_key), keys, Some(most_modules))
    }

    /// This size with the number of blocks rounded up to one with many divisors, so that the filter can be
    /// [folded](crate::BloomFilter::fold). Adds at most 1%, or one block to each module. The number of modules and k
    /// stay.
    ///
    /// Use it if the number of keys is a guess, or if you want to unite filters of different sizes. Otherwise the
    /// computed number of blocks is often a prime, or has only large factors. The number of a module's blocks that is
    /// returned is even. From 1,100 blocks (70 kB) on, it is a multiple of 12, from 11,900 blocks (762 kB) on of 120,
    /// and from 71,900 blocks (4.6 MB) on of 720. [`BloomFilter::with_fpr`](crate::BloomFilter::with_fpr) uses it.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::{BloomFilter, Sizing};
    ///
    /// let sizing = Sizing::for_bits_per_key(5_000_000, 9.9335)?;
    /// assert_eq!(sizing.n_blocks(), 97_007, "a prime");
    /// assert_eq!(sizing.rounded_to_fold().n_blocks(), 97_200);
    /// let mut filter = BloomFilter::with_sizing(sizing.rounded_to_fold())?;
    /// filter.fold(9)?;
    /// # Ok::<(), bloomline::Error>(())
    /// ```
    #[must_use]
    pub fn rounded_to_fold(self) -> Self {
        // Each step divides the next, so that a larger size never becomes the smaller one.
        let doubled = iter::successors(Some(5_040_usize), |step| step.checked_mul(2));
        let steps = [2, 4, 12, 24, 120, 720].into_iter().chain(doubled);
        let module_blocks = self.module_blocks();
        let step = steps.take_while(|step| step - 1 <= module_blocks / 100).last().unwrap_or(2);
        let module_blocks = module_blocks.next_multiple_of(step).min(MAX_BLOCKS / self.n_modules);
        Self { n_blocks: module_blocks * self.n_modules, ..self }
    }

    /// This size with the number of blocks rounded up to a power of two or three times one, and the k of many keys. A
    /// filter of few keys has more bits for each, so its rate is lower with this k too.
    pub(crate) fn in_steps(self, k: ProbeCount) -> Self {
        let power = self.n_blocks.next_power_of_two();
        let three = power / 4 * 3;
        let n_blocks = if self.n_blocks <= three { three } else { power };
        Self { n_blocks: n_blocks.min(MAX_BLOCKS), k, ..self }
    }

    /// The memory of the filter in bytes, 64 for each block. Its compact bytes are at most one byte longer, and its
    /// standalone bytes at most 64, or with several modules two bytes, and 64 and 8 for each module.
    ///
    /// For few keys, [`FilterBuilder::finish_compact`](crate::FilterBuilder::finish_compact) writes fewer bytes.
    pub fn byte_len(self) -> usize {
        self.n_blocks * BLOCK_BYTES
    }

    /// The false-positive rate of this filter once it holds `keys` distinct keys, by the
    /// [model](crate::sizing#the-model) of many blocks. It is the product of the modules' rates.
    ///
    /// Costs as much as [`fpr`](crate::sizing::fpr()). Above [`MAX_BITS_PER_KEY`](crate::sizing::MAX_BITS_PER_KEY) bits
    /// per key, rounding errors of 1e-12 are larger than the rate.
    #[must_use]
    pub fn expected_fpr(self, keys: u64) -> f64 {
        let of_module = model(self.module_blocks() as f64 * BLOCK_BITS / keys.max(1) as f64, self.k);
        power(of_module, self.n_modules as u32)
    }

    fn new_for(request: Request, keys: u64, most_modules: Option<usize>) -> Result<Self, Error> {
        Self::of_keys(keys, &request.per_key(keys, most_modules)?)
    }

    pub(crate) fn of_keys(keys: u64, per_key: &PerKey) -> Result<Self, Error> {
        per_key.best(|n_modules, bits| Self::of_modules(n_modules, keys, bits), Self::n_blocks)
    }

    /// The size of `n_modules` modules, each with its share of the bits, a valid `bits_per_key` in all.
    pub(crate) fn of_modules(n_modules: usize, keys: u64, bits_per_key: f64) -> Result<Self, Error> {
        // At most 2^64 keys of 64 bits, which is 2^61 blocks, so a u64 cannot overflow.
        let of_each = ceil(keys as f64 * (bits_per_key / n_modules as f64) / BLOCK_BITS).max(1);
        let k = best_probe_count(of_each as f64 * BLOCK_BITS / keys.max(1) as f64);
        let fitting = usize::try_from(of_each).ok().filter(|&of_each| of_each <= MAX_BLOCKS / n_modules);
        let of_each = fitting.ok_or_else(|| too_many_keys(keys, bits_per_key))?;
        Ok(Self { n_blocks: of_each * n_modules, n_modules, k })
    }
}

/// The size of compact bytes: lanes of a short filter, or of whole blocks of all modules.
#[derive(Clone, Copy)]
pub(crate) struct CompactSize {
    pub(crate) n_lanes: usize,
    pub(crate) n_modules: usize,
    pub(crate) k: ProbeCount,
}

impl From<Sizing> for CompactSize {
    fn from(Sizing { n_blocks, n_modules, k }: Sizing) -> Self {
        Self { n_lanes: n_blocks * LANES, n_modules, k }
    }
}

impl CompactSize {
    /// The size for `keys` distinct keys.
    pub(crate) fn new(keys: u64, per_key: &PerKey) -> Result<Self, Error> {
        per_key.best(
            |n_modules, bits| match n_modules {
                1 => Ok(Self::one_module(keys, bits)),
                _ => Sizing::of_modules(n_modules, keys, bits).map(Self::from),
            },
            |size| size.n_lanes,
        )
    }

    /// The number of lanes, of a short filter or of whole blocks, and the best k for them.
    fn one_module(keys: u64, bits_per_key: f64) -> Self {
        let n_lanes = ceil(keys as f64 * bits_per_key / 64.0).max(1) as usize;
        let n_lanes = if n_lanes <= MOST_LANES { n_lanes } else { n_lanes.next_multiple_of(LANES) };
        let bits_per_key = n_lanes as f64 * 64.0 / keys.max(1) as f64;
        let k = if n_lanes < 2 * LANES {
            // Each block covers most of the filter, so all blocks fill alike, and a standard filter's k is best.
            ProbeCount::new(((LN_2 * bits_per_key + 0.5) as u32).clamp(1, 16)).expect("1 to 16")
        } else {
            best_probe_count(bits_per_key)
        };
        Self { n_lanes, n_modules: 1, k }
    }
}
