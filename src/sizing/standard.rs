//! Standard filters, whose probes go to any of their bits: the textbook's formulas.
#![forbid(unsafe_code)]

use core::f64::consts::{LN_2, SQRT_2};

use super::{ceil, checked_bits_per_key, checked_fpr, exp_of_minus, least_bits_per_key};
use crate::blocks::{BLOCK_BYTES, MAX_BLOCKS};
use crate::error::SizingError;
use crate::limits::{MAX_BITS_PER_KEY, STANDARD_MAX_K, STANDARD_MIN_FPR};

/// The number of 64-bit hashes.
const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// Probes per key of a standard filter, 1 to 64. Checked here and nowhere below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StandardProbeCount(u8);

impl StandardProbeCount {
    pub(crate) fn new(k: u32) -> Result<Self, SizingError> {
        match k {
            1..=STANDARD_MAX_K => Ok(Self(k as u8)),
            _ => Err(SizingError::Probes { k, most: STANDARD_MAX_K }),
        }
    }

    #[inline]
    pub(crate) fn get(self) -> u32 {
        u32::from(self.0)
    }
}

/// The k with the lowest false-positive rate of a standard filter at `bits_per_key`.
///
/// This is ln 2 · bits per key, rounded up or down, whichever gives the lower FPR.
///
/// # Errors
///
/// If `bits_per_key` is not above 0 and at most [`MAX_BITS_PER_KEY`].
pub fn standard_best_k(bits_per_key: f64) -> Result<u32, SizingError> {
    checked_bits_per_key(bits_per_key).map(best_k)
}

/// The false-positive rate of a standard filter of m = `bit_len` bits that holds n = `keys` distinct keys, with `k`
/// probes each: (1 − (1 − 1/m)^(k·n))^k (Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970).
///
/// 1 − (1 − 1/m)^(k·n) is exactly the mean fill ratio. The true FPR is a little above its k-th power, because filters
/// differ in their fill ratio (Bose and others, "On the false-positive rate of Bloom filters", 2008): at 10 bits per
/// key, 0.7 % above for 100 keys and 0.007 % for 10,000.
///
/// # Errors
///
/// If `bit_len` is 0 or `k` is not 1 to [`STANDARD_MAX_K`].
pub fn standard_fpr(bit_len: u64, keys: u64, k: u32) -> Result<f64, SizingError> {
    if bit_len == 0 {
        return Err(SizingError::Bits { bit_len, most: MAX_BITS });
    }
    StandardProbeCount::new(k).map(|k| exact(bit_len, keys, k))
}

/// The false-positive rate of a standard filter of many keys: (1 − e^(−k/c))^k, with c bits per key.
///
/// This is the limit of [`standard_fpr`] as keys and bits grow together.
///
/// # Errors
///
/// If `bits_per_key` is not above 0 and at most [`MAX_BITS_PER_KEY`], or `k` is not 1 to [`STANDARD_MAX_K`].
///
/// # Examples
///
/// ```
/// use bloomline::sizing;
///
/// let approximate = sizing::standard_fpr_approximate(20.0, 10)?;
/// let exact = sizing::standard_fpr(20_000_000, 1_000_000, 10)?;
/// assert_eq!((format!("{approximate:.7}"), format!("{exact:.7}")), ("0.0000889".into(), "0.0000889".into()));
/// # Ok::<(), bloomline::SizingError>(())
/// ```
pub fn standard_fpr_approximate(bits_per_key: f64, k: u32) -> Result<f64, SizingError> {
    Ok(approximate(checked_bits_per_key(bits_per_key)?, StandardProbeCount::new(k)?.get()))
}

/// The most bits that the address space can hold.
const MAX_BITS: u64 = if cfg!(target_pointer_width = "64") { u64::MAX } else { 512 * MAX_BLOCKS as u64 };

/// The size of a [`StandardBloomFilter`](crate::variants::StandardBloomFilter): its number of bits and its probes per
/// key.
///
/// # Examples
///
/// ```
/// use bloomline::sizing::StandardSizing;
///
/// let sizing = StandardSizing::for_fpr(1_000_000, 0.01)?;
/// assert_eq!((sizing.bit_len(), sizing.k()), (9_592_956, 7));
/// # Ok::<(), bloomline::SizingError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandardSizing {
    bit_len: u64,
    k: StandardProbeCount,
}

impl StandardSizing {
    /// The size of a filter with `bit_len` bits and `k` probes per key.
    ///
    /// # Errors
    ///
    /// If `bit_len` is 0, the filter is larger than the address space, or `k` is not 1 to [`STANDARD_MAX_K`].
    pub fn with_bits(bit_len: u64, k: u32) -> Result<Self, SizingError> {
        let k = StandardProbeCount::new(k)?;
        match bit_len {
            1..=MAX_BITS => Ok(Self { bit_len, k }),
            _ => Err(SizingError::Bits { bit_len, most: MAX_BITS }),
        }
    }

    /// Number of bits, at least 1.
    pub fn bit_len(self) -> u64 {
        self.bit_len
    }

    /// Probes per key, 1 to [`STANDARD_MAX_K`].
    pub fn k(self) -> u32 {
        self.k.get()
    }

    pub(crate) fn probe_count(self) -> StandardProbeCount {
        self.k
    }

    /// The smallest size, to one part in a million, whose false-positive rate is at most `fpr` once the filter holds
    /// `expected_keys` distinct keys.
    ///
    /// This FPR is [`standard_fpr`] plus `expected_keys` ÷ 2^64, the probability that an absent key has the same hash
    /// as a present one: with a billion keys, no filter over a 64-bit hash gets below 5.4e-11.
    ///
    /// # Errors
    ///
    /// If `fpr` is below [`STANDARD_MIN_FPR`] + `expected_keys` ÷ 2^64 or not below 1, or the filter is larger than the
    /// address space.
    pub fn for_fpr(expected_keys: usize, fpr: f64) -> Result<Self, SizingError> {
        let keys = expected_keys.max(1) as u64;
        let same_hash = keys as f64 / TWO_TO_64;
        let fpr = checked_fpr(fpr, STANDARD_MIN_FPR + same_hash)?;
        // Rounding must not push it below the lowest.
        let of_bits = (fpr - same_hash).max(STANDARD_MIN_FPR);
        let rate = |bits_per_key| approximate(bits_per_key, best_k(bits_per_key));
        let mut sizing = Self::for_bits_per_key(expected_keys, least_bits_per_key(of_bits, rate))?;
        // The exact FPR is above the approximate one, which a bit or two make up for.
        let mut more = 1;
        while sizing.fpr(keys) > of_bits {
            sizing = Self::for_keys(sizing.bit_len.saturating_add(more), keys)?;
            more *= 2;
        }
        Ok(sizing)
    }

    /// The size of a filter with `bits_per_key` bits for each of `expected_keys` distinct keys, rounded up to a whole
    /// bit.
    ///
    /// k is the best for the bits per key after rounding.
    ///
    /// # Errors
    ///
    /// If `bits_per_key` is not above 0 and at most [`MAX_BITS_PER_KEY`], or the filter is larger than the address
    /// space.
    pub fn for_bits_per_key(expected_keys: usize, bits_per_key: f64) -> Result<Self, SizingError> {
        let too_many = SizingError::Keys { expected_keys, bits_per_key };
        let keys = expected_keys.max(1) as u64;
        let bits = keys as f64 * checked_bits_per_key(bits_per_key)?;
        if bits >= MAX_BITS as f64 {
            return Err(too_many);
        }
        Self::for_keys(ceil(bits).max(1), keys)
    }

    fn for_keys(bit_len: u64, keys: u64) -> Result<Self, SizingError> {
        Self::with_bits(bit_len, best_k((bit_len as f64 / keys as f64).min(MAX_BITS_PER_KEY)))
    }

    /// The false-positive rate of this filter once it holds `keys` distinct keys, by [`standard_fpr`].
    #[must_use]
    pub fn fpr(self, keys: u64) -> f64 {
        exact(self.bit_len, keys, self.k)
    }

    /// The number of 64-byte blocks of memory that hold the bits.
    pub(crate) fn n_blocks(self) -> usize {
        self.bit_len.div_ceil(8 * BLOCK_BYTES as u64) as usize
    }
}

fn best_k(bits_per_key: f64) -> u32 {
    let below = ((LN_2 * bits_per_key) as u32).max(1);
    if approximate(bits_per_key, below + 1) < approximate(bits_per_key, below) { below + 1 } else { below }
}

fn approximate(bits_per_key: f64, k: u32) -> f64 {
    power_of(one_less_exp_of_minus(f64::from(k) / bits_per_key), k)
}

fn exact(size_bits: u64, keys: u64, k: StandardProbeCount) -> f64 {
    if keys == 0 {
        return 0.0;
    }
    let probes = keys as f64 * f64::from(k.get());
    power_of(one_less_exp_of_minus(probes * minus_ln_of_one_less(1.0 / size_bits as f64)), k.get())
}

/// x^n, the same on every CPU, which `f64::powi` does not guarantee.
pub(crate) fn power_of(x: f64, n: u32) -> f64 {
    (0..n).fold(1.0, |product, _| product * x)
}

/// 1 − e^(−x) for x ≥ 0, accurate to the last digits for small x too.
fn one_less_exp_of_minus(x: f64) -> f64 {
    if x >= 0.5 {
        return 1.0 - exp_of_minus(x);
    }
    x * (2..=15).rev().fold(1.0, |series, i| 1.0 - x / f64::from(i) * series)
}

/// −ln(1 − x) for 0 ≤ x ≤ 1, by basic operations only, like [`exp_of_minus`].
pub(crate) fn minus_ln_of_one_less(x: f64) -> f64 {
    // ln((1 + s)/(1 − s)) = 2·(s + s³/3 + s⁵/5 + …), here for |s| ≤ 0.18.
    let series =
        |s: f64| 2.0 * s * (0..12).rev().fold(0.0, |sum, i| sum * s * s + 1.0 / f64::from(2 * i + 1));
    if x < 0.25 {
        return series(x / (2.0 - x));
    }
    let mut rest = 1.0 - x;
    if rest <= 0.0 {
        return f64::INFINITY;
    }
    let mut halvings = 0.0;
    while rest < 1.0 / SQRT_2 {
        rest *= 2.0;
        halvings += 1.0;
    }
    halvings * LN_2 + series((1.0 - rest) / (1.0 + rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_the_inverse_of_exponentials() {
        for i in 1..1_000 {
            let x = f64::from(i) / 1_000.0;
            for x in [x, x / 1e6, x / 1e12] {
                let there_and_back = one_less_exp_of_minus(minus_ln_of_one_less(x));
                assert!((there_and_back / x - 1.0).abs() < 1e-13, "{x}: {there_and_back}");
            }
        }
        // Computed by bc, to twenty digits.
        for (x, ln) in [
            (0.1, 0.105_360_515_657_826_3),
            (0.25, 0.287_682_072_451_780_93),
            (0.5, LN_2),
            // Without a last doubling, the series would be too short for this one.
            (0.500_1, 0.693_347_200_562_612_4),
            (0.9, core::f64::consts::LN_10),
            (0.999, 6.907_755_278_982_137),
            (1e-12, 1.000_000_000_000_5e-12),
        ] {
            assert!((minus_ln_of_one_less(x) / ln - 1.0).abs() < 1e-14, "{x}");
        }
        assert_eq!((minus_ln_of_one_less(0.0), minus_ln_of_one_less(1.0)), (0.0, f64::INFINITY));
    }
}
