//! Sizes and false-positive rates of standard filters, whose probes go to any of their bits, by the formulas of the
//! textbooks.
#![forbid(unsafe_code)]

use core::f64::consts::LN_2;

use super::checks::{checked_bits_per_key, checked_fpr, too_many_keys};
use super::search::least_bits_per_key;
use crate::blocks::{BLOCK_BYTES, MAX_BLOCKS};
use crate::error::Error;
use crate::limits::MAX_BITS_PER_KEY;
use crate::math::{ceil, minus_ln_of_one_less, one_less_exp_of_minus, power};

/// The most probes per key of a standard filter. The best k for [`MAX_BITS_PER_KEY`] is 44.
pub const MAX_K: u32 = 64;

/// The lowest false-positive rate that can be requested of a standard filter, its rate at [`MAX_BITS_PER_KEY`].
pub const MIN_FPR: f64 = 4.43e-14;

/// The number of 64-bit hashes.
pub(super) const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// The most bits that the address space can hold.
const MAX_BITS: u64 = (MAX_BLOCKS as u64).saturating_mul(512);

/// The size of a [`StandardBloomFilter`](crate::variants::StandardBloomFilter), which is its number of bits and its
/// probes per key.
///
/// # Examples
///
/// ```
/// use bloomline::sizing::standard::StandardSizing;
///
/// let sizing = StandardSizing::for_fpr(1_000_000, 0.01)?;
/// assert_eq!((sizing.bit_len(), sizing.k()), (9_592_956, 7));
/// # Ok::<(), bloomline::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandardSizing {
    bit_len: u64,
    k: u32,
}

impl StandardSizing {
    /// The size of a filter with `bit_len` bits and `k` probes per key.
    ///
    /// # Errors
    ///
    /// If `bit_len` is 0, the filter is larger than the address space, or `k` is not 1 to [`MAX_K`].
    pub fn new(bit_len: u64, k: u32) -> Result<Self, Error> {
        let k = checked_k(k)?;
        match bit_len {
            1..=MAX_BITS => Ok(Self { bit_len, k }),
            _ => {
                let text = "a standard filter has 1 to {} bits on this machine, not {}";
                Err(Error::argument(text, [MAX_BITS, bit_len]))
            }
        }
    }

    /// Number of bits, at least 1.
    pub fn bit_len(self) -> u64 {
        self.bit_len
    }

    /// Probes per key, 1 to [`MAX_K`].
    pub fn k(self) -> u32 {
        self.k
    }

    /// The smallest size, to one part in a million, whose false-positive rate is at most `fpr` once the filter holds
    /// `keys` distinct keys.
    ///
    /// This FPR is [`expected_fpr`](Self::expected_fpr) plus `keys` ÷ 2^64, the probability that an absent key has the same hash
    /// as a present one. With a billion keys, no filter over a 64-bit hash gets below 5.4e-11.
    ///
    /// # Errors
    ///
    /// If `fpr` is below [`MIN_FPR`] + `keys` ÷ 2^64 or not below 1, or the filter is larger than the
    /// address space.
    pub fn for_fpr(keys: u64, fpr: f64) -> Result<Self, Error> {
        let keys = keys.max(1);
        let same_hash = keys as f64 / TWO_TO_64;
        let fpr = checked_fpr(fpr, MIN_FPR + same_hash)?;
        // Rounding must not push it below the lowest.
        let of_bits = (fpr - same_hash).max(MIN_FPR);
        let rate = |bits_per_key| of_many_keys(bits_per_key, rounded_k(bits_per_key));
        let mut sizing = Self::for_bits_per_key(keys, least_bits_per_key(of_bits, rate))?;
        // The exact FPR is above the rate of many keys, so a bit or two more may be needed.
        let mut more = 1;
        while sizing.expected_fpr(keys) > of_bits {
            sizing = Self::for_keys(sizing.bit_len.saturating_add(more), keys)?;
            more *= 2;
        }
        Ok(sizing)
    }

    /// The size of a filter with `bits_per_key` bits for each of `keys` distinct keys, rounded up to a whole
    /// bit.
    ///
    /// k is the best k for the bits per key after rounding.
    ///
    /// # Errors
    ///
    /// If `bits_per_key` is not above 0 and at most [`MAX_BITS_PER_KEY`], or the filter is larger than the address
    /// space.
    pub fn for_bits_per_key(keys: u64, bits_per_key: f64) -> Result<Self, Error> {
        let keys = keys.max(1);
        let bits = keys as f64 * checked_bits_per_key(bits_per_key)?;
        if bits >= MAX_BITS as f64 {
            return Err(too_many_keys(keys, bits_per_key));
        }
        Self::for_keys(ceil(bits).max(1), keys)
    }

    fn for_keys(bit_len: u64, keys: u64) -> Result<Self, Error> {
        Self::new(bit_len, rounded_k((bit_len as f64 / keys as f64).min(MAX_BITS_PER_KEY)))
    }

    /// The false-positive rate of this filter once it holds n = `keys` distinct keys, with m bits:
    /// (1 − (1 − 1/m)^(k·n))^k (Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970).
    ///
    /// 1 − (1 − 1/m)^(k·n) is exactly the mean fill ratio. The true FPR is a little above its k-th power, because
    /// filters differ in their fill ratio (Bose and others, "On the false-positive rate of Bloom filters", 2008). At 10
    /// bits per key it is 0.7% above for 100 keys, and 0.007% for 10,000.
    #[must_use]
    pub fn expected_fpr(self, keys: u64) -> f64 {
        if keys == 0 {
            return 0.0;
        }
        let probes = keys as f64 * f64::from(self.k);
        power(one_less_exp_of_minus(probes * minus_ln_of_one_less(1.0 / self.bit_len as f64)), self.k)
    }

    /// The number of 64-byte blocks of memory that hold the bits.
    pub(crate) fn n_blocks(self) -> usize {
        self.bit_len.div_ceil(8 * BLOCK_BYTES as u64) as usize
    }
}

fn checked_k(k: u32) -> Result<u32, Error> {
    if (1..=MAX_K).contains(&k) { Ok(k) } else { Err(Error::probes(k, MAX_K)) }
}

fn rounded_k(bits_per_key: f64) -> u32 {
    let below = ((LN_2 * bits_per_key) as u32).max(1);
    below + u32::from(of_many_keys(bits_per_key, below + 1) < of_many_keys(bits_per_key, below))
}

fn of_many_keys(bits_per_key: f64, k: u32) -> f64 {
    power(one_less_exp_of_minus(f64::from(k) / bits_per_key), k)
}
