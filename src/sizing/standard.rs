//! Sizes and false-positive rates of standard filters, whose probes go to any of their bits, by the formulas of the
//! textbooks.

use core::f64::consts::{LN_2, PI};

use super::checks::{checked_bits_per_key, checked_fpr, too_many_keys};
use super::search::least_bits_per_key;
use crate::blocks::{BLOCK_BYTES, MAX_BLOCKS};
use crate::error::Error;
use crate::limits::MAX_BITS_PER_KEY;
use crate::math::{ceil, exp_of_minus, minus_ln_of_one_less, one_less_exp_of_minus, power, square_root};

/// The most probes per key of a standard filter. The best k for [`MAX_BITS_PER_KEY`] is 44.
pub const MAX_K: u32 = 64;

/// The lowest false-positive rate that can be requested of a standard filter, its rate at [`MAX_BITS_PER_KEY`].
pub const MIN_FPR: f64 = 4.43e-14;

/// The number of 64-bit hashes.
pub(super) const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// The rate is computed probe by probe up to this number of steps, which take less than 0.1 ms. From there on, an
/// approximation is off by less than 0.1%.
const MOST_STEPS: f64 = 65_536.0;

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
/// assert_eq!((sizing.bit_len(), sizing.k()), (9_592_958, 7));
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
    /// This FPR is [`expected_fpr`](Self::expected_fpr) plus `keys` ÷ 2^64, the probability that an absent key has the
    /// same hash as a present one. With a billion keys, no filter over a 64-bit hash gets below 5.4e-11.
    ///
    /// # Errors
    ///
    /// If `fpr` is below [`MIN_FPR`] + `keys` ÷ 2^64 or not below 1, or the filter is larger than the
    /// address space.
    pub fn for_fpr(keys: u64, fpr: f64) -> Result<Self, Error> {
        let keys = keys.max(1);
        let same_hash = keys as f64 / TWO_TO_64;
        let fpr = checked_fpr(fpr, MIN_FPR, same_hash)?;
        // Rounding must not push it below the lowest.
        let of_bits = (fpr - same_hash).max(MIN_FPR);
        let rate = |bits_per_key| of_many_keys(bits_per_key, rounded_k(bits_per_key));
        let mut sizing = Self::for_bits_per_key(keys, least_bits_per_key(of_bits, rate))?;
        // Finitely many keys need more bits.
        let (mut too_few, mut more) = (sizing.bit_len - 1, 1);
        while sizing.expected_fpr(keys) > of_bits {
            too_few = sizing.bit_len;
            sizing = Self::for_keys(too_few.saturating_add(more), keys)?;
            more *= 2;
        }
        while sizing.bit_len - too_few > 1 + sizing.bit_len / 1_000_000 {
            let middle = Self::for_keys(too_few + (sizing.bit_len - too_few) / 2, keys)?;
            if middle.expected_fpr(keys) > of_bits {
                too_few = middle.bit_len;
            } else {
                sizing = middle;
            }
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

    /// The false-positive rate of this filter once it holds `keys` distinct keys, as a mean over all sets of keys.
    ///
    /// The textbook's rate, the mean fill ratio to the power of k (Bloom, "Space/time trade-offs in hash coding with
    /// allowable errors", 1970), is too low for few keys, for two reasons. Filters differ in their fill ratio (Bose and
    /// others, "On the false-positive rate of Bloom filters", 2008). And all probes of a key are made from one hash, so
    /// an absent key whose hash is related to that of a present key probes the same bits. With 100 keys at 1% the rate
    /// is 0.8% above the textbook's, with 16 keys at 10⁻⁶ twice as high. Measured rates were within 4% of this one for
    /// three keys or more, and within 20% for one or two.
    #[must_use]
    pub fn expected_fpr(self, keys: u64) -> f64 {
        if keys == 0 {
            return 0.0;
        }
        let (n, k, m) = (keys as f64, f64::from(self.k), self.bit_len as f64);
        let probes = n * k * minus_ln_of_one_less(1.0 / m);
        let (fill, clear) = (one_less_exp_of_minus(probes), exp_of_minus(probes));
        let of_bits = if n * k * k < MOST_STEPS {
            self.fpr_of_independent_probes(keys)
        } else {
            // The variance of the fill ratio, relative to the square of its mean.
            let variance = clear * (1.0 - (1.0 + probes) * clear) / (m * fill * fill);
            power(fill, self.k) / exp_of_minus(k * (k - 1.0) / 2.0 * variance)
        };
        (of_bits + self.fpr_of_related_hashes(n, fill)).min(1.0)
    }

    /// The probability that all probes of a lookup hit bits of `keys` keys, if each probe of all of them falls anywhere.
    fn fpr_of_independent_probes(self, keys: u64) -> f64 {
        let (k, m) = (self.k as usize, self.bit_len as f64);
        // The probabilities that so many bits are probed by the lookup, and not yet set.
        let mut clear = [0.0; MAX_K as usize + 1];
        clear[0] = 1.0;
        for _ in 0..k {
            for n in (0..k).rev() {
                let again = n as f64 / m;
                clear[n + 1] += clear[n] * (1.0 - again);
                clear[n] *= again;
            }
        }
        for _ in 0..keys * u64::from(self.k) {
            for n in 1..=k {
                let hit = n as f64 / m;
                clear[n - 1] += clear[n] * hit;
                clear[n] *= 1.0 - hit;
            }
        }
        clear[0]
    }

    /// The probability that an absent key probes the bits of one of `keys` keys because their hashes are related.
    ///
    /// Probe j of two keys differs by a + j·b, because the third terms of their words are equal. Two probes are still
    /// as independent as they should be, but if a is about 1/k bits and b 1/k², k probes are equal. With the other bits
    /// set with probability `fill`, that adds up to ∬ exp(−(1 − fill)·Σ|a + j·b|) da db ≤ (16 + 4π) / ((1 − fill)²·k³),
    /// in which k + 1 is closer for the sum. The last factor leaves out what independent probes do, and is fitted to
    /// sums of the differences a and b over all bits, for k of 3 to 40 and fill ratios of 0.05 to 0.9.
    pub(crate) fn fpr_of_related_hashes(self, keys: f64, fill: f64) -> f64 {
        let (k, m) = (f64::from(self.k), self.bit_len as f64);
        let independent = 1.0 - square_root(power(fill, self.k).max(f64::MIN_POSITIVE));
        if self.k < 3 || independent <= 0.0 {
            return 0.0;
        }
        let places = (16.0 + 4.0 * PI) / (power(1.0 - fill, 2) * power(k + 1.0, 3));
        keys / (m * m) * places * power(independent, 6)
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

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    /// By the number of bits that are set.
    fn fpr_by_occupancy(m: usize, keys: u64, k: u32) -> f64 {
        let mut set = vec![0.0; m + 1];
        set[0] = 1.0;
        for _ in 0..keys * u64::from(k) {
            for n in (0..m).rev() {
                let new = set[n] * (1.0 - n as f64 / m as f64);
                set[n + 1] += new;
                set[n] -= new;
            }
        }
        set.iter().enumerate().map(|(n, share)| share * power(n as f64 / m as f64, k)).sum()
    }

    const RATES: [f64; 8] = [0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-9, 1e-12];

    #[test]
    #[cfg_attr(miri, ignore = "hours under miri")]
    fn the_rate_of_independent_probes_is_exact() {
        for (fpr, keys) in
            RATES.into_iter().flat_map(|fpr| [1, 2, 3, 5, 16, 30, 64, 100].map(|keys| (fpr, keys)))
        {
            let sizing = StandardSizing::for_fpr(keys, fpr).unwrap();
            // Above, the oracle's smallest terms round to 0.
            if sizing.bit_len < 3_000 {
                let expected = fpr_by_occupancy(sizing.bit_len as usize, keys, sizing.k);
                let ratio = sizing.fpr_of_independent_probes(keys) / expected;
                assert!((ratio - 1.0).abs() < 1e-12, "{fpr:e}, {keys} keys: {ratio}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "hours under miri")]
    fn the_approximation_for_many_keys_is_close_from_where_it_is_used() {
        for fpr in RATES {
            let bits_per_key = minus_ln_of_one_less(1.0 - fpr) / (LN_2 * LN_2);
            let k = rounded_k(bits_per_key);
            let keys = MOST_STEPS as u64 / u64::from(k * k) + 1;
            let sizing = StandardSizing::for_bits_per_key(keys, bits_per_key).unwrap();
            let m = sizing.bit_len as f64;
            let fill = one_less_exp_of_minus((keys * u64::from(k)) as f64 * minus_ln_of_one_less(1.0 / m));
            let of_bits = sizing.expected_fpr(keys) - sizing.fpr_of_related_hashes(keys as f64, fill);
            let ratio = of_bits / sizing.fpr_of_independent_probes(keys);
            assert!(ratio != 1.0 && (ratio - 1.0).abs() < 1e-3, "{fpr:e}, {keys} keys: {ratio}");
        }
    }
}
