//! Sizes and false-positive rates of modular filters, by the model of blocks, once for each module.
#![forbid(unsafe_code)]

use super::blocked::{Sizing, best_k, fpr};
use super::checks::{checked_bits_per_key, checked_fpr};
use super::search::least_bits_per_key;
use super::standard::TWO_TO_64;
use crate::blocks::MAX_BLOCKS;
use crate::error::BuildError;
use crate::math::power;

/// The most modules of a size that is computed. A fifth module would save less than 1% of the bits, down to a rate of
/// 10⁻⁷.
pub const MAX_MODULES: usize = 4;

/// The most modules that the format has room for.
pub(crate) const MOST_MODULES: usize = 16;

/// At this false-positive rate, 0.1%, and below, [`FilterPolicy`](crate::sstable::FilterPolicy),
/// [`ScalableBloomFilter`](crate::variants::ScalableBloomFilter) and the command line use two modules. Above it, two
/// modules save less than 7% of the bits, but a present key still costs one more cache line.
pub const MODULAR_FPR: f64 = 0.001;

/// The bits per key of one module at this rate. A constant, because computing it would run longer than making a policy.
pub(crate) const MODULAR_BITS: f64 = 15.724_606;

/// The number of modules there. A third module would save at most 6% more, and cost each present key one more cache
/// line.
pub(crate) const MODULES: usize = 2;

/// The lowest false-positive rates of one to four modules, which are the rates at
/// [`MAX_BITS_PER_KEY`](super::MAX_BITS_PER_KEY).
const LOWEST: [f64; MAX_MODULES] = [1.263e-8, 3.05e-11, 2.142e-12, 5.432e-13];

/// The share of the bits that one more module may need at most, because it costs each present key one more cache line.
/// Likewise for keys, the share of the keys that the same bits may hold with one module less.
const LEFT: f64 = 0.99;

/// The size of a [`ModularBloomFilter`](crate::variants::ModularBloomFilter), which is its number of modules, and the
/// number of blocks and the probes per key of each module.
///
/// The false-positive rate is the product of the modules' rates, each by the exact [model](crate::sizing#the-model) for
/// its share of the bits.
///
/// # Examples
///
/// ```
/// use bloomline::sizing::ModularSizing;
///
/// let sizing = ModularSizing::for_fpr(1_000_000, 0.0001, 4)?;
/// assert_eq!((sizing.n_modules(), sizing.n_blocks(), sizing.k()), (3, 12_722, 4));
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModularSizing {
    n_modules: usize,
    module: Sizing,
}

impl ModularSizing {
    /// The size of a filter with `n_modules` modules, 1 to 16, each of `n_blocks` blocks of 64 bytes and `k` probes per
    /// key, 1 to 16.
    ///
    /// # Errors
    ///
    /// If `n_modules` or `k` is not 1 to 16, `n_blocks` is 0, or the filter is larger than the address space.
    pub fn new(n_modules: usize, n_blocks: usize, k: u32) -> Result<Self, BuildError> {
        Self::of(checked_modules(n_modules, MOST_MODULES)?, Sizing::new(n_blocks, k)?)
    }

    fn of(n_modules: usize, module: Sizing) -> Result<Self, BuildError> {
        let n_blocks = module.n_blocks() as u64 * n_modules as u64;
        match n_blocks <= MAX_BLOCKS as u64 {
            true => Ok(Self { n_modules, module }),
            false => Err(BuildError::Blocks { n_blocks, most: MAX_BLOCKS as u64 }),
        }
    }

    /// The size of the smallest filter whose false-positive rate is at most `fpr` once it holds `expected_keys`
    /// distinct keys, with 1 to `most_modules` modules. If most lookups are of present keys, allow fewer than
    /// [`MAX_MODULES`], because each such lookup reads a cache line of every module.
    ///
    /// A size of more modules is chosen only if each further module saves at least 1% of the bits. Few keys get one
    /// module, because each module has at least one block.
    ///
    /// This FPR is [`fpr`](Self::fpr) plus `expected_keys` ÷ 2^64, the probability that an absent key has the same hash
    /// as a present key. Evaluates the model about twenty times for each number of modules, which costs a few
    /// milliseconds for the lowest FPR, and far less than one millisecond for 1%.
    ///
    /// # Errors
    ///
    /// If `fpr` is not below 1, or is lower than the rate at 64 bits per key. With one to four modules, this rate is
    /// 1.263e-8, 3.05e-11, 2.142e-12 and 5.432e-13, plus `expected_keys` ÷ 2^64. If `most_modules` is not 1 to
    /// [`MAX_MODULES`], or the filter is larger than the address space.
    pub fn for_fpr(expected_keys: usize, fpr: f64, most_modules: usize) -> Result<Self, BuildError> {
        let lowest = LOWEST[checked_modules(most_modules, MAX_MODULES)? - 1];
        let same_hash = expected_keys as f64 / TWO_TO_64;
        // Rounding must not push it below the lowest.
        let of_bits = (checked_fpr(fpr, lowest + same_hash)? - same_hash).max(lowest);
        let reach = (1..=most_modules).filter(|n_modules| LOWEST[n_modules - 1] <= of_bits);
        let sizes = reach.map(|n_modules| {
            let bits_per_key = least_bits_per_key(of_bits, |bits| rate(bits, n_modules));
            Self::for_modules(expected_keys, bits_per_key, n_modules)
        });
        best(sizes, |more, fewer, left| more.byte_len() as f64 <= left * fewer.byte_len() as f64)
    }

    /// The size of a filter with `bits_per_key` bits for each of `expected_keys` distinct keys, of 1 to `most_modules`
    /// modules, rounded up to whole blocks of each.
    ///
    /// A size of more modules is chosen only if rounding adds at most 1%, and if each further module makes room for at
    /// least 1% more keys at the same false-positive rate. k is the best k for the bits per key after rounding.
    ///
    /// # Errors
    ///
    /// If `bits_per_key` is not above 0 and at most [`MAX_BITS_PER_KEY`](super::MAX_BITS_PER_KEY), `most_modules` is not 1
    /// to [`MAX_MODULES`], or the filter is larger than the address space.
    pub fn for_bits_per_key(
        expected_keys: usize,
        bits_per_key: f64,
        most_modules: usize,
    ) -> Result<Self, BuildError> {
        let (bits_per_key, keys) = (checked_bits_per_key(bits_per_key)?, expected_keys as f64);
        let most_bytes = Sizing::for_bits_per_key(expected_keys, bits_per_key)?.byte_len() as f64 / LEFT;
        let sizes = (1..=checked_modules(most_modules, MAX_MODULES)?)
            .map(|n_modules| Self::for_modules(expected_keys, bits_per_key, n_modules));
        best(sizes, |more, fewer, left| {
            more.byte_len() as f64 <= most_bytes && more.fpr((keys / left) as u64) <= fewer.fpr(keys as u64)
        })
    }

    fn for_modules(expected_keys: usize, bits_per_key: f64, n_modules: usize) -> Result<Self, BuildError> {
        let too_many = BuildError::Keys { expected_keys, bits_per_key };
        let module = Sizing::for_bits_per_key(expected_keys, bits_per_key / n_modules as f64);
        module.and_then(|module| Self::of(n_modules, module)).map_err(|_| too_many)
    }

    /// This size with the number of blocks of each module rounded up as [`Sizing::foldable`] rounds it. Adds at most
    /// 1%, or one block to each module.
    #[must_use]
    pub fn foldable(self) -> Self {
        Self::of(self.n_modules, self.module.foldable()).unwrap_or(self)
    }

    /// Number of modules, 1 to 16.
    pub fn n_modules(self) -> usize {
        self.n_modules
    }

    /// Number of blocks of each module, at least 1.
    pub fn n_blocks(self) -> usize {
        self.module.n_blocks()
    }

    /// Probes per key in each module, 1 to 16.
    pub fn k(self) -> u32 {
        self.module.k()
    }

    /// The memory of the filter in bytes, 64 for each block of each module.
    pub fn byte_len(self) -> usize {
        self.n_modules * self.module.byte_len()
    }

    /// The false-positive rate of this filter once it holds `keys` distinct keys, which is the product of its modules'
    /// rates.
    #[must_use]
    pub fn fpr(self, keys: u64) -> f64 {
        power(self.module.fpr(keys), self.n_modules as u32)
    }

    /// All modules as one filter of blocks.
    pub(crate) fn of_all(self) -> Sizing {
        // Not `expect`, because it prints the error, and printing of floats adds 17 kB to WebAssembly.
        let sizing = Sizing::new(self.n_modules * self.n_blocks(), self.k());
        sizing.unwrap_or_else(|_| unreachable!("checked when it was made"))
    }
}

/// The best size, by `is_better`. This compares a size of more modules with the best size of fewer, given the share
/// that may be [`LEFT`].
fn best(
    sizes: impl Iterator<Item = Result<ModularSizing, BuildError>>,
    is_better: impl Fn(ModularSizing, ModularSizing, f64) -> bool,
) -> Result<ModularSizing, BuildError> {
    let better = sizes.reduce(|best, more| match (best, more) {
        (Ok(best), Ok(more)) => {
            let left = power(LEFT, (more.n_modules - best.n_modules) as u32);
            Ok(if is_better(more, best, left) { more } else { best })
        }
        // One module can exceed the address space where several do not.
        (best, more) => best.or(more),
    });
    better.expect("at least one module")
}

fn checked_modules(n_modules: usize, most: usize) -> Result<usize, BuildError> {
    let is_valid = (1..=most).contains(&n_modules);
    is_valid.then_some(n_modules).ok_or(BuildError::Modules { n_modules, most })
}

fn rate(bits_per_key: f64, n_modules: usize) -> f64 {
    let of_module = bits_per_key / n_modules as f64;
    let rate = best_k(of_module).and_then(|k| fpr(of_module, k));
    power(rate.unwrap_or(0.0), n_modules as u32)
}
