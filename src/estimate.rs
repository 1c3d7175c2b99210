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
//!
//! # Repeated blocks
//!
//! A union with a smaller filter repeats its blocks, so each of its keys is in r neighbours. It counts once if the keys
//! that blocks i and i + 1 have in common, by the estimates of both and of their union, are subtracted for all i of
//! each module, because r neighbours are r − 1 pairs. That holds for any r, and for several at once. The variance is
//! the same sum, with the same signs, of the variances of these estimates, because the covariance of two estimates is
//! the variance that their common keys alone would have.
//!
//! Without repeats this would double the error, so first it is tested whether pairs have more bits in common than by
//! chance. Two lanes with a and b set bits have a·b/64 in common by chance, with the variance a·b·(64 − a)·(64 − b) /
//! (63·64²) of the hypergeometric distribution. With x bits more in all pairs, and the variance v, blocks count as
//! repeated if x² > 28·(v + x/3). By Bernstein's inequality, chance does that less than once in e^14, a million, times.
//!
//! A copy of a short filter in whole blocks repeats lanes, too. Its lane j of block i + 1 is lane j + 1, j + 2 or j + 4 of
//! block i, and block 0 follows the last one. So pairs are also made with these shifts, and the shift with the most bits
//! in common counts.
//!
//! The correction for full lanes assumes that all blocks expect equally many keys, so after a union with a smaller
//! filter, at most one in 128 unions of neighbours may be full.

use core::array;

use crate::blocks::LANES;
use crate::lanes::{Lanes, MOST_LANES};
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
/// A [union](crate::BloomFilter::union_with) with a smaller filter repeats its keys. The bits show that, so they count
/// once, but the standard error is two to five times as large, and estimates go up to 1.3 probes per bit. Repeats that
/// add less than about ten standard errors (17 if k is far above the best) go unnoticed. At 10 bits per key, these are 8%
/// of 1,000 keys or 0.25% of a million.
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
/// an estimate, or more than one in `lanes_per_full` is full.
fn probes(occupancy: &[u64; 65], k: u32, lanes_per_full: u64) -> Option<ProbeEstimate> {
    let n_lanes: u64 = occupancy.iter().sum();
    let ones = occupancy.iter().zip(0..).map(|(lanes, set)| lanes * set).sum();
    if occupancy[64] > n_lanes / lanes_per_full || are_too_full(ones, 64 * n_lanes) {
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

/// The lanes of a filter, counted by their set bits. The neighbours of a lane are in the blocks before and after.
#[derive(Clone, Copy)]
struct Counts {
    all: [u64; 65],
    /// Of lanes without a neighbour before them, and of lanes without a neighbour after them.
    ends: [u64; 65],
    /// Of the unions of neighbours.
    unions: [u64; 65],
    /// Bits that neighbours have in common, less those that they have by chance, in 64ths.
    excess: i64,
    /// Variance of the excess by chance, in units of 1/(63 · 64²).
    variance: u64,
}

impl Counts {
    fn add(&mut self, before: Option<u64>, lane: u64, is_last: bool) {
        let b = lane.count_ones() as usize;
        self.all[b] += 1;
        self.ends[b] += u64::from(before.is_none()) + u64::from(is_last);
        if let Some(before) = before {
            let [a, union] = [before, before | lane].map(|lane| lane.count_ones() as usize);
            self.unions[union] += 1;
            self.excess += 64 * (a + b - union) as i64 - (a * b) as i64;
            self.variance += (a * b * (64 - a) * (64 - b)) as u64;
        }
    }

    fn are_repeated(&self) -> bool {
        let (excess, variance) = (self.excess as f64 / 64.0, self.variance as f64 / (63.0 * 64.0 * 64.0));
        excess > 0.0 && excess * excess > 28.0 * (variance + excess / 3.0)
    }

    /// The probes of all keys. If blocks are repeated, a key counts once in all neighbours that have it.
    fn probes(&self, k: u32, are_repeated: bool) -> Option<ProbeEstimate> {
        let all = probes(&self.all, k, 4)?;
        if !are_repeated {
            return Some(all);
        }
        // Of each pair, both.
        let pairs = probes(&array::from_fn(|i| 2 * self.all[i] - self.ends[i]), k, 4)?;
        let unions = probes(&self.unions, k, 128)?;
        let share = unions.bits / all.bits;
        let per_bit = all.per_bit - share * (2.0 * pairs.per_bit - unions.per_bit);
        let variance = all.variance - share * share * (4.0 * pairs.variance - unions.variance);
        Some(ProbeEstimate { per_bit, variance, ..all })
    }
}

/// The probes of the `sets` that are made of two filters of the same shape, lane by lane.
fn probes_of<const N: usize>(
    filters: [Lanes<'_>; 2],
    k: u32,
    sets: impl Fn([u64; 2]) -> [u64; N],
) -> [Option<ProbeEstimate>; N] {
    let filters_lanes = filters.map(|filter| filter.as_bytes().as_chunks().0);
    let sets_at = |i: usize| sets(filters_lanes.map(|lanes| u64::from_le_bytes(lanes[i])));
    let n_lanes = filters_lanes[0].len();
    let module_lanes = n_lanes / filters[0].n_modules();
    // Only one module of an odd number of blocks can be a copy of a short filter.
    let is_copy = module_lanes == n_lanes && n_lanes % 16 == 8 && n_lanes <= LANES * MOST_LANES;
    let shifts: &[usize] = if is_copy { &[0, 1, 2, 4] } else { &[0] };
    let counts = shifts.iter().map(|&shift| {
        let [all, ends, unions] = [[0; 65]; 3];
        let mut counts = [Counts { all, ends, unions, excess: 0, variance: 0 }; N];
        for start in (0..n_lanes).step_by(module_lanes) {
            for i in 0..module_lanes {
                let is_first = shift == 0 && i < LANES || i % LANES + shift >= LANES;
                let is_last = shift == 0 && i + LANES >= module_lanes || i % LANES < shift;
                let sets = sets_at(start + i);
                // The block before the first one is the last one.
                let from = if i + shift < LANES { start + module_lanes } else { start };
                let before = (!is_first).then(|| sets_at(from + i + shift - LANES));
                for (set, counts) in counts.iter_mut().enumerate() {
                    counts.add(before.map(|before| before[set]), sets[set], is_last);
                }
            }
        }
        counts
    });
    let counts = counts.max_by_key(|counts| counts.iter().map(|counts| counts.excess).sum::<i64>());
    let counts = counts.expect("one for each shift");
    let are_repeated = counts.iter().any(Counts::are_repeated);
    counts.map(|counts| counts.probes(k, are_repeated))
}

/// The number of keys that are in at least one of two filters of the same shape, with `k` probes in each module.
pub(crate) fn keys(filters: [Lanes<'_>; 2], k: u32) -> Option<KeyEstimate> {
    let [union] = probes_of(filters, k, |[a, b]| [a | b]);
    Some(union?.keys(k * filters[0].n_modules() as u32))
}

/// The number of keys that are in both of two filters of the same shape.
pub(crate) fn common_keys(filters: [Lanes<'_>; 2], k: u32) -> Option<KeyEstimate> {
    let [a, b, union] = probes_of(filters, k, |[a, b]| [a, b, a | b]);
    Some(ProbeEstimate::common(a?, b?, union?).keys(k * filters[0].n_modules() as u32))
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
