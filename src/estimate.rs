//! How many keys a filter holds, estimated from its bits, with a standard error.
//!
//! In blocks, each lane of 64 bits is a coupon collector. With x of its bits set, one more probe finds a clear bit with
//! probability (64 − x)/64, so 64/64 + 64/63 + … (x terms) minus the number of probes made is a martingale, whatever
//! happens in other lanes. Its sum over all lanes is therefore unbiased. Its variance is the sum of what each probe
//! adds, x/(64 − x), and is estimated without bias from the same x. So neither needs a model of how keys spread over
//! blocks.
//!
//! The logarithm of the fraction of clear bits, as for standard filters, was tried. Its error is larger, because blocks
//! differ in their load, at 10 bits per key by 1% for k = 6, 3% for 8, 4% for 11 and 7% for 16. The best estimate from
//! the number of lanes with each number of set bits, found numerically, is better than the collectors' by 0.3% at 0.6
//! probes per bit, 1.6% at 1.5, 4% at 2 and 8% at 3. Maximum likelihood under the model of blocks showed no further
//! gain in simulations.

use crate::math::{exp_of_minus, minus_ln_of_one_less, square_root};

/// The number of distinct keys in a filter, estimated from its bits, with a standard error.
///
/// A filter does not count keys, because a repeated key looks like any key that is already there. But its bits show how
/// many distinct keys were inserted, with a standard error that is part of the estimate. With the best k, the standard
/// error for `n` keys is, in percent of n,
///
/// | bits per key | n = 1,000 | 10,000 | 100,000 | 1 million | 10 million |
/// |---|---|---|---|---|---|
/// | 6 | 1.02 | 0.33 | 0.104 | 0.033 | 0.0104 |
/// | 8 | 0.88 | 0.28 | 0.089 | 0.028 | 0.0089 |
/// | 10 | 0.78 | 0.25 | 0.079 | 0.025 | 0.0079 |
/// | 16 | 0.63 | 0.20 | 0.063 | 0.020 | 0.0063 |
/// | 24 | 0.51 | 0.16 | 0.051 | 0.016 | 0.0051 |
///
/// or √((e^ρ − 1 − ρ) · m)/k keys, where ρ = k·n/m is the number of probes per bit in m bits. With fewer than a hundred
/// keys, an estimate is off by more than four standard errors about once in a thousand times.
///
/// The hashes must be as good as random. [`hash_key`](crate::hash_key) makes such hashes.
///
/// # Range
///
/// Estimates go up to 3.8 probes per bit. At 10 bits per key and k = 6, these are 6 times the keys that the filter was
/// sized for, and at 16 bits per key and k = 12, 5 times. For fuller filters the estimate is `None`, and the number of
/// keys may be any above that.
///
/// # Keys that two filters have in common
///
/// If different keys of two filters set the same bits, these look like the bits of common keys. Only the mean number of
/// such bits is known, so they cause an error that does not shrink with fewer common keys. For two filters of n keys
/// each with the best k, the standard error of the number of common keys is, in percent of this number,
///
/// | bits per key | n | 1% in common | 10% | 50% |
/// |---|---|---|---|---|
/// | 6 | 10,000 | 59 | 5.4 | 0.65 |
/// | 10 | 10,000 | 44 | 4.0 | 0.49 |
/// | 24 | 10,000 | 27 | 2.4 | 0.31 |
/// | 10 | 1 million | 4.4 | 0.40 | 0.049 |
/// | 10 | 10 million | 1.4 | 0.13 | 0.016 |
///
/// or √((f(A∪B) − f(A) − f(B) + 2·f(A∩B)) · m)/k keys, with f = e^ρ − 1 − ρ of each set. More bits per key help little.
/// If you have the keys of one set, look them up in the filter of the second set instead, because then only its false
/// positives cause an error.
///
/// # Sources
///
/// For standard filters, −m/k · ln(1 − ones/m) (Swamidass and Baldi, 2007), with the variance of linear counting (Whang,
/// Vander-Zanden and Taylor, 1990), and for unions and intersections Papapetrou, Siberski and Nejdl (2010). For blocks,
/// each lane of 64 bits is a coupon collector, in which x set bits stand for 64/64 + 64/63 + … (x terms) probes.
///
/// # Examples
///
/// ```
/// use bloomline::{BloomFilter, KeyEstimate, mix};
///
/// let mut filter = BloomFilter::with_bits_per_key(100_000, 10.0)?;
/// filter.insert_batch(&(0..100_000).map(mix).collect::<Vec<_>>());
/// let Some(KeyEstimate { keys, standard_error, .. }) = filter.estimated_keys() else {
///     panic!("the filter has room for 100,000 keys")
/// };
/// assert!(standard_error < 100.0);
/// assert!(keys.abs_diff(100_000) as f64 <= 4.0 * standard_error);
/// # Ok::<(), bloomline::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyEstimate {
    /// The estimate, in whole keys.
    pub keys: u64,
    /// The standard error, in keys. The estimate is off by less than this two times in three, and almost never by
    /// more than four times this. At least 0.29, because `keys` is rounded to whole keys.
    pub standard_error: f64,
}

/// The number of probes made, estimated from the bits.
#[derive(Clone, Copy)]
struct ProbeEstimate {
    per_bit: f64,
    /// Variance of `per_bit`.
    variance: f64,
    bits: f64,
}

impl ProbeEstimate {
    /// The keys that make `k` probes each, in all modules.
    fn keys(self, k: u32) -> KeyEstimate {
        let scale = self.bits / f64::from(k);
        KeyEstimate {
            // The cast turns negative values into 0.
            keys: (self.per_bit * scale + 0.5) as u64,
            standard_error: square_root(self.variance.max(0.0) * scale * scale + 1.0 / 12.0),
        }
    }

    /// The probes made in both of two filters, from the probes of each and of their union.
    ///
    /// The errors are correlated, because the covariance of two martingales comes from the probes made in both. So the
    /// covariance of a filter and the union is the filter's own variance, and the covariance of the two filters is the
    /// variance that their common keys alone would have. The total is var(union) − var(a) − var(b) + 2·var(common).
    fn common(a: Self, b: Self, union: Self) -> Self {
        let per_bit = a.per_bit + b.per_bit - union.per_bit;
        // var(common) is a share of the smaller filter's variance, by the formula for independent bits, or all of it
        // where that formula rounds to 0 for the smaller filter.
        let smaller = if (a.per_bit, a.variance) < (b.per_bit, b.variance) { a } else { b };
        let share = (variance_per_bit(per_bit.max(0.0)) / variance_per_bit(smaller.per_bit)).min(1.0);
        // Summed in this order so that (a, b) and (b, a) give exactly the same result.
        let variance = union.variance - (a.variance + b.variance) + 2.0 * share * smaller.variance;
        Self { per_bit, variance, ..union }
    }
}

/// The probes that set the bits of lanes, of which `occupancy[i]` have i bits set. `None` if too few bits are clear for
/// an estimate, or more than a quarter of the lanes are full.
fn probes(occupancy: &[u64; 65], k: u32) -> Option<ProbeEstimate> {
    let n_lanes: u64 = occupancy.iter().sum();
    let ones = occupancy.iter().zip(0..).map(|(lanes, set)| lanes * set).sum();
    if occupancy[64] > n_lanes / 4 || are_too_full(ones, 64 * n_lanes) {
        return None;
    }
    let (mut probes, mut variance) = (0.0, 0.0);
    let (mut probes_of_lane, mut variance_of_lane) = (0.0, 0.0);
    for (set, &lanes) in occupancy.iter().enumerate() {
        probes += lanes as f64 * probes_of_lane;
        variance += lanes as f64 * variance_of_lane;
        let clear = (64 - set) as f64;
        probes_of_lane += 64.0 / clear;
        variance_of_lane += 64.0 * set as f64 / (clear * clear);
    }
    let bits = 64.0 * n_lanes as f64;
    let per_bit = with_those_in_full_lanes(probes / bits, k);
    Some(ProbeEstimate { per_bit, variance: variance / (bits * bits), bits })
}

/// Probes per bit, corrected from `noticed`, the mean of the lanes' estimates, because a full lane does not notice
/// further probes.
///
/// If keys are a Poisson process, with a fraction p of the bits set and ρ = −ln(1 − p) = p + p²/2 + p³/3 + … probes
/// per bit, the lanes' mean is the first 64 terms of that series. For k above 8, a key makes two probes in some lanes,
/// so lanes differ more. This changes the mean by half the excess variance (that half is ρ/64·(k − 8)/k) times the
/// second derivative of the sum (nearly −64·p^64·(1 − p)). Where no lane is nearly full, the whole correction is close
/// to 0.
fn with_those_in_full_lanes(noticed: f64, k: u32) -> f64 {
    let in_pairs = f64::from(k.saturating_sub(8)) / f64::from(k);
    // Newton's method, from below. The sum is concave in ρ, so no step overshoots.
    (0..8).fold(noticed, |rho, _| {
        let clear = exp_of_minus(rho);
        let (mut sum, mut power) = (0.0, 1.0);
        for i in 1..=64 {
            power *= 1.0 - clear;
            sum += power / f64::from(i);
        }
        sum -= rho * in_pairs * clear * power;
        rho + (noticed - sum) / (1.0 - power)
    })
}

/// Returns whether so few bits are clear that a few more or fewer would change the estimate a lot.
fn are_too_full(ones: u64, bits: u64) -> bool {
    ones > 0 && bits - ones < bits / 50 + 4
}

/// e^ρ − 1 − ρ, the variance of the number of probes, per bit, if ρ probes per bit can go to any bit.
fn variance_per_bit(rho: f64) -> f64 {
    1.0 / exp_of_minus(rho) - 1.0 - rho
}

/// The number of keys that set these lanes, with `k` probes in each of `n_modules` modules.
pub(crate) fn keys(lanes: impl Iterator<Item = u64>, k: u32, n_modules: usize) -> Option<KeyEstimate> {
    let mut occupancy = [0; 65];
    lanes.for_each(|lane| occupancy[lane.count_ones() as usize] += 1);
    Some(probes(&occupancy, k)?.keys(k * n_modules as u32))
}

/// The number of keys that are in both of two filters, from their lanes in pairs.
pub(crate) fn common_keys(
    lanes: impl Iterator<Item = (u64, u64)>,
    k: u32,
    n_modules: usize,
) -> Option<KeyEstimate> {
    let mut occupancies = [[0; 65]; 3];
    for (a, b) in lanes {
        for (occupancy, lane) in occupancies.iter_mut().zip([a, b, a | b]) {
            occupancy[lane.count_ones() as usize] += 1;
        }
    }
    let [a, b, union] = occupancies.map(|occupancy| probes(&occupancy, k));
    Some(ProbeEstimate::common(a?, b?, union?).keys(k * n_modules as u32))
}

/// The number of keys that set `ones` of the bits of a standard filter.
pub(crate) fn standard_keys(ones: u64, size_bits: u64, k: u32) -> Option<KeyEstimate> {
    if are_too_full(ones, size_bits) {
        return None;
    }
    let bits = size_bits as f64;
    let per_bit = minus_ln_of_one_less(ones as f64 / bits);
    Some(ProbeEstimate { per_bit, variance: variance_per_bit(per_bit) / bits, bits }.keys(k))
}
