//! The model for a given k, solved in advance: a scalable filter sizes its next filter during an insert, which must not
//! wait for the model.
#![forbid(unsafe_code)]

use crate::limits::MAX_BITS_PER_KEY;
use crate::mask::ProbeCount;
use crate::math::{exp_of_minus, minus_ln_of_one_less};

/// Entry k − 1 is the model's false-positive rate at [`MAX_BITS_PER_KEY`].
const LOWEST: [f64; 16] = [
    1.550_356_299_459_154_7e-2,
    1.175_970_752_045_452e-3,
    1.498_425_415_649_151_7e-4,
    2.627_333_024_574_074_5e-5,
    5.919_539_654_342_11e-6,
    1.762_232_139_435_049_3e-6,
    6.642_932_613_432_073e-7,
    2.988_001_421_844_188_6e-7,
    1.448_657_487_856_941_4e-7,
    7.991_116_318_661_895e-8,
    4.901_004_330_148_95e-8,
    3.273_443_938_134_335e-8,
    2.345_843_988_504_903_2e-8,
    1.798_529_779_273_305_7e-8,
    1.466_599_130_334_200_8e-8,
    1.261_448_843_992_152_3e-8,
];

/// Entry k − 1 is how many times the bits of a standard filter blocks take: a cubic in ln(1 ÷ rate), the constant term
/// first. Fitted to the model from [`LOWEST`] to 1/2, and raised so that it is 0.03 to 0.24 % too high everywhere.
const OVER_STANDARD: [[f64; 4]; 16] = [
    [1.000_3, 0.0, 0.0, 0.0],
    [0.995_574, 1.149_946e-2, -3.838_597e-3, 7.117_759e-4],
    [0.996_832, 9.511_56e-3, -1.989_247e-3, 3.490_206e-4],
    [0.997_778, 8.083_904e-3, -1.089_806e-3, 1.936_007e-4],
    [0.998_385, 7.357_986e-3, -6.337_138e-4, 1.221_457e-4],
    [0.998_687, 7.621_361e-3, -4.018_96e-4, 9.164_413e-5],
    [0.998_809, 8.450_052e-3, -2.830_627e-4, 7.751_126e-5],
    [0.998_881, 9.445_02e-3, -2.068_095e-4, 6.896_353e-5],
    [0.997_754, 1.019_863e-2, -1.355_188e-4, 5.979_46e-5],
    [0.996_833, 1.105_978e-2, -8.349_633e-5, 5.365_861e-5],
    [0.996_072, 1.196_811e-2, -4.320_128e-5, 4.924_119e-5],
    [0.995_441, 1.287_852e-2, -1.024_974e-5, 4.580_191e-5],
    [0.994_914, 1.377_238e-2, 1.754_362e-5, 4.298_867e-5],
    [0.994_467, 1.468_001e-2, 4.056_162e-5, 4.081_098e-5],
    [0.994_085, 1.560_86e-2, 5.951_256e-5, 3.918_013e-5],
    [0.993_758, 1.655_07e-2, 7.530_476e-5, 3.796_027e-5],
];

/// The false-positive rate at [`MAX_BITS_PER_KEY`] with `k` probes: exactly that of the model.
pub(crate) fn lowest_fpr(k: ProbeCount) -> f64 {
    LOWEST[k.get() as usize - 1]
}

/// The bits per key at which `k` probes reach a false-positive rate of `fpr`, which is [`lowest_fpr`] to 1/2: never
/// fewer than by the model, and at most 0.25 % more.
pub(crate) fn bits_per_key_of(fpr: f64, k: ProbeCount) -> f64 {
    let [a, b, c, d] = OVER_STANDARD[k.get() as usize - 1];
    let (x, k) = (minus_ln_of_one_less(1.0 - fpr), f64::from(k.get()));
    // fpr = (1 − e^(−k/bits))^k, solved for the bits.
    let standard = k / minus_ln_of_one_less(exp_of_minus(x / k));
    (standard * (a + x * (b + x * (c + x * d)))).min(MAX_BITS_PER_KEY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizing::blocked::model;

    fn each_k() -> impl Iterator<Item = ProbeCount> {
        (1..=16).map(|k| ProbeCount::new(k).unwrap())
    }

    #[test]
    fn the_lowest_rates_are_those_of_the_model() {
        for k in each_k() {
            assert_eq!(lowest_fpr(k), model(MAX_BITS_PER_KEY, k), "k {}", k.get());
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "hours under miri")]
    fn bits_per_key_are_enough_and_hardly_more() {
        for k in each_k() {
            let lowest = lowest_fpr(k);
            // From 1/2 down to the lowest, in equal steps of the logarithm.
            let (from, to) = (core::f64::consts::LN_2, minus_ln_of_one_less(1.0 - lowest));
            for step in 0..=100 {
                let rate = exp_of_minus(from + (to - from) * f64::from(step) / 100.0).max(lowest);
                let bits_per_key = bits_per_key_of(rate, k);
                assert!(model(bits_per_key, k) <= rate, "k {}, rate {rate:e}: {bits_per_key}", k.get());
                let fewer = bits_per_key / 1.0025;
                assert!(model(fewer, k) > rate, "k {}, rate {rate:e}: {bits_per_key}", k.get());
            }
        }
    }
}
