//! False-positive rates of filters of 512-bit blocks, by a model that is exact for random hashes and many blocks.

use core::array;

use super::checks::checked_bits_per_key;
use crate::blocks::LANES;
use crate::error::Error;
use crate::limits::MAX_BITS_PER_KEY;
use crate::mask::ProbeCount;
use crate::math::{exp_of_minus, minus_ln_of_one_less};

pub(super) const BLOCK_BITS: f64 = 512.0;

/// Entry i is the bits per key from which k = i + 2 has a lower FPR than k = i + 1. The ninth probe is an exception,
/// because it needs the second word, with which a lookup in cache runs 1.3 to 1.6 times as long. It has a lower FPR
/// from 13.756 on, but it saves 1% of the bits only from 15.910 on.
const ONE_MORE_PROBE: [f64; 15] = [
    2.093, 3.598, 5.086, 6.601, 8.316, 10.207, 12.231, 15.91, 16.088, 18.644, 21.384, 24.321, 27.828, 31.969,
    36.723,
];

/// The false-positive rate of many blocks at `bits_per_key` with `k` probes. In few blocks it is lower, because the
/// number of keys per block then varies less.
///
/// The rounding error is up to one part in 5,000 at the lowest FPRs, and less than one part in a million for an FPR of
/// 1e-5 and above. Runs for microseconds at k = 6, and up to twice as long for each further probe. Does not allocate.
///
/// # Errors
///
/// If `bits_per_key` is not above 0 and at most [`MAX_BITS_PER_KEY`], or `k` is not 1 to 16.
///
/// # Examples
///
/// ```
/// let fpr = bloomline::sizing::fpr(10.0, 6)?;
/// assert!((0.0097..0.0098).contains(&fpr));
/// # Ok::<(), bloomline::Error>(())
/// ```
pub fn fpr(bits_per_key: f64, k: u32) -> Result<f64, Error> {
    Ok(model(checked_bits_per_key(bits_per_key)?, ProbeCount::new(k)?))
}

/// The k with the lowest false-positive rate at `bits_per_key`, 1 to 16. There is one exception. From 13.76 to 15.91
/// bits per key it is 8, because 9 would save less than 1% of the bits, but lookups would run up to 1.6 times as long.
///
/// The best k is less than the textbook's 0.69 × bits per key, because blocks fill unevenly.
///
/// # Errors
///
/// If `bits_per_key` is not above 0 and at most [`MAX_BITS_PER_KEY`].
pub fn best_k(bits_per_key: f64) -> Result<u32, Error> {
    Ok(best_probe_count(checked_bits_per_key(bits_per_key)?).get())
}

/// The bits per key at which `k` probes reach a false-positive rate of `fpr`, which must be [`lowest_fpr`] to 1/2.
/// Never fewer than by the model, and at most 0.15% more.
///
/// A scalable filter calls this during an insert. So it evaluates the model only three or four times, by the secant
/// method over logarithms, in which the rate for a given k is almost a line.
pub(crate) fn bits_per_key_of(fpr: f64, k: ProbeCount) -> f64 {
    let probes = f64::from(k.get());
    // Start from below. A standard filter, where fpr = (1 − e^(−k/bits))^k, needs fewer bits, and its rate falls
    // faster.
    let probes_per_bit = minus_ln_of_one_less(exp_of_minus(minus_ln_of_one_less(1.0 - fpr) / probes));
    let clear = exp_of_minus(probes_per_bit);
    let mut slope = probes * probes_per_bit * clear / (1.0 - clear);
    let mut bits = (probes / probes_per_bit).min(MAX_BITS_PER_KEY);
    let mut rate = model(bits, k);
    while rate > fpr && bits < MAX_BITS_PER_KEY {
        // Aims 0.1% below `fpr`, because a rate just above it would cost one more step.
        let missing = minus_ln_of_one_less(1.0 - fpr / rate) + 0.001;
        let more = (bits / exp_of_minus(missing / slope)).min(MAX_BITS_PER_KEY);
        let of_more = model(more, k);
        slope = minus_ln_of_one_less(1.0 - of_more / rate) / minus_ln_of_one_less(1.0 - bits / more);
        (bits, rate) = (more, of_more);
    }
    bits
}

/// The false-positive rate at [`MAX_BITS_PER_KEY`] with `k` probes.
pub(crate) fn lowest_fpr(k: ProbeCount) -> f64 {
    model(MAX_BITS_PER_KEY, k)
}

pub(crate) fn best_probe_count(bits_per_key: f64) -> ProbeCount {
    let k_less_1 = ONE_MORE_PROBE.iter().filter(|&&from| bits_per_key >= from).count();
    ProbeCount::from_four_bits(k_less_1 as u8)
}

/// How many probes of a key, 0 to 2, fall in each lane, counted from the rotation on.
fn probes_in_lanes(k: ProbeCount) -> [usize; LANES] {
    let k = k.get() as usize;
    array::from_fn(|steps| usize::from(steps < k) + usize::from(steps + LANES < k))
}

/// The false-positive rate, which is the probability that every probe of an absent key finds its bit set, averaged over
/// the number of keys in a block.
///
/// Computed by inclusion and exclusion over the probes that find their bit clear. After N probes in a lane, a given bit
/// is clear with probability (63/64)^N, and two given bits are both clear with probability (62/64)^N. The keys of each
/// rotation are a Poisson process of their own. So the mean of the product of z^N over the lanes of a term is
/// e^(λ·(c − 1)), where λ is the mean number of keys per block and c is what one key contributes to the product,
/// averaged over rotations.
pub(super) fn model(bits_per_key: f64, k: ProbeCount) -> f64 {
    #[cfg(test)]
    EVALUATIONS.set(EVALUATIONS.get() + 1);
    // Blocks are full long before the limit. Without it, this would be infinite for bits per key near 0.
    let keys_per_block = (BLOCK_BITS / bits_per_key).min(1e6);
    // By symmetry, the rotation of the key that is looked up can be 0. Each lane that it probes contributes a
    // polynomial in the powers z^N, and each term of their product picks one summand per lane.
    let probes = probes_in_lanes(k);
    let summands: [_; LANES] = array::from_fn(|lane| {
        // One probe finds its bit set with probability 1 − z₁^N, and two find different bits set with probability
        // 1 − 2·z₁^N + z₂^N. Two are the same bit once in 64 times, so their factor is the weighted mean of both.
        let factors = if probes[lane] < 2 { [1.0, -1.0, 0.0] } else { [1.0, -127.0 / 64.0, 63.0 / 64.0] };
        array::from_fn::<_, 3, _>(|i| {
            let z = 1.0 - i as f64 / 64.0;
            // This counts the rotation backwards, which changes nothing because the sum covers all of them.
            let of_rotation = |rotation| [1.0, z, z * z][probes[(lane + rotation) % LANES]];
            (factors[i], array::from_fn::<_, LANES, _>(of_rotation))
        })
    });
    let terms: usize = probes.iter().map(|probes| 1 + probes).product();
    let mut fpr = 0.0;
    for term in 0..terms {
        let (mut coefficient, mut one_key, mut choices) = (1.0, [1.0; LANES], term);
        for (summands, probes) in summands.iter().zip(probes) {
            // Constant divisors, because divisions by `1 + probes` would cost half of the time.
            let choice;
            (choices, choice) = match probes {
                0 => (choices, 0),
                1 => (choices / 2, choices % 2),
                _ => (choices / 3, choices % 3),
            };
            let (factor, of_rotations) = &summands[choice];
            coefficient *= factor;
            one_key.iter_mut().zip(of_rotations).for_each(|(product, power)| *product *= power);
        }
        let mean_over_rotations = one_key.iter().sum::<f64>() / LANES as f64;
        fpr += coefficient * exp_of_minus(keys_per_block * (1.0 - mean_over_rotations));
    }
    fpr.clamp(0.0, 1.0)
}

/// The false-positive rate of a filter with these bits, which is the mean, over blocks and rotations, of the product of
/// the probed lanes' fill ratios. A lane that is probed twice counts twice.
// Tried: vectors of 4 to 16 blocks, which run up to 2.4 times as long, and counts instead of ratios, which LLVM
// multiplies as integers, in 1.6 times the time.
pub(crate) fn estimated_fpr(blocks: impl Iterator<Item = [u64; LANES]>, k: ProbeCount) -> f64 {
    let (rounds, rest) = (k.get() / 8, k.get() % 8);
    let (mut sums, mut n_blocks) = ([0.0; LANES], 0_u64);
    for lanes in blocks {
        // The products of one, two and four lanes, from each lane on.
        let one = lanes.map(|lane| f64::from(lane.count_ones()) / 64.0);
        let two = product(one, one, 1);
        let four = product(two, two, 2);
        let all = four[0] * four[4];
        let of_rounds = match rounds {
            0 => 1.0,
            1 => all,
            _ => all * all,
        };
        let of_rest = match rest {
            0 => [1.0; LANES],
            1 => one,
            2 => two,
            3 => product(two, one, 2),
            4 => four,
            5 => product(four, one, 4),
            6 => product(four, two, 4),
            _ => product(product(four, two, 4), one, 6),
        };
        sums = array::from_fn(|lane| sums[lane] + of_rounds * of_rest[lane]);
        n_blocks += 1;
    }
    sums.iter().sum::<f64>() / (n_blocks * LANES as u64) as f64
}

/// The product of `a` from each lane on and `b` from so many lanes later on.
#[inline]
fn product(a: [f64; LANES], b: [f64; LANES], later: usize) -> [f64; LANES] {
    array::from_fn(|lane| a[lane] * b[(lane + later) % LANES])
}

#[cfg(test)]
std::thread_local! {
    /// How often this thread has evaluated the model.
    pub(crate) static EVALUATIONS: core::cell::Cell<u32> = const { core::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use core::f64::consts::LN_2;

    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "hours under miri")]
    fn bits_per_key_are_enough_and_hardly_more() {
        for k in (1..=16).map(|k| ProbeCount::new(k).unwrap()) {
            let lowest = lowest_fpr(k);
            // From 1/2 down to the lowest, in equal steps of the logarithm.
            let (from, to) = (LN_2, minus_ln_of_one_less(1.0 - lowest));
            for step in 0..=100 {
                let rate = exp_of_minus(from + (to - from) * f64::from(step) / 100.0).max(lowest);
                let bits_per_key = bits_per_key_of(rate, k);
                assert!(model(bits_per_key, k) <= rate, "k {}, rate {rate:e}: {bits_per_key}", k.get());
                let fewer = bits_per_key / 1.0015;
                assert!(model(fewer, k) > rate, "k {}, rate {rate:e}: {bits_per_key}", k.get());
            }
        }
    }
}
