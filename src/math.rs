//! Exponentials, logarithms, powers and roots without `std`. The functions of platforms differ in the last bit, but
//! sizes must be equal on every CPU. So these functions use basic operations only, which IEEE 754 defines to the last
//! bit.

use core::f64::consts::{LN_2, LOG2_E, SQRT_2};

/// e^(−x) for x ≥ 0.
pub(crate) fn exp_of_minus(x: f64) -> f64 {
    // ln 2 in two parts. The first part ends in zero bits, so that its products with small integers are exact.
    const PARTS: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];
    if x > 700.0 {
        return 0.0;
    }
    // e^(−x) = 2^(−halvings) · e^(−rest).
    let halvings = (x * LOG2_E + 0.5) as u64;
    let rest = (x - halvings as f64 * PARTS[0]) - halvings as f64 * PARTS[1];
    let series = (1..=13).rev().fold(1.0, |series, i| 1.0 - rest / f64::from(i) * series);
    series * f64::from_bits((1023 - halvings) << 52)
}

/// 1 − e^(−x) for x ≥ 0, accurate to the last digits for small x too.
pub(crate) fn one_less_exp_of_minus(x: f64) -> f64 {
    if x >= 0.5 {
        return 1.0 - exp_of_minus(x);
    }
    x * (2..=15).rev().fold(1.0, |series, i| 1.0 - x / f64::from(i) * series)
}

/// −ln(1 − x) for 0 ≤ x ≤ 1.
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

#[inline]
pub(crate) fn power(x: f64, n: u32) -> f64 {
    (0..n).fold(1.0, |product, _| product * x)
}

/// The least integer at or above `x`, for x ≥ 0.
pub(crate) fn ceil(x: f64) -> u64 {
    let whole = x as u64;
    whole + u64::from((whole as f64) < x)
}

/// √x for x > 0 that is neither tiny nor huge.
pub(crate) fn square_root(x: f64) -> f64 {
    // Halving the exponent comes within 7%, and each step doubles the number of correct digits.
    let guess = f64::from_bits((x.to_bits() + (1023 << 52)) / 2);
    (0..4).fold(guess, |root, _| (root + x / root) / 2.0)
}

#[cfg(test)]
mod tests {
    use core::f64::consts::{E, LN_10};

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
            (0.9, LN_10),
            (0.999, 6.907_755_278_982_137),
            (1e-12, 1.000_000_000_000_5e-12),
        ] {
            assert!((minus_ln_of_one_less(x) / ln - 1.0).abs() < 1e-14, "{x}");
        }
        assert_eq!((minus_ln_of_one_less(0.0), minus_ln_of_one_less(1.0)), (0.0, f64::INFINITY));
    }

    #[test]
    fn exponentials_are_powers_of_e() {
        assert_eq!((exp_of_minus(0.0), exp_of_minus(1e9)), (1.0, 0.0));
        for n in 1..=700 {
            let product = exp_of_minus(n.into()) * power(E, n);
            assert!((product - 1.0).abs() < 1e-13, "{n}: {product}");
        }
    }

    #[test]
    fn roots_are_those_of_their_squares() {
        for i in 1..1_000 {
            for root in [f64::from(i), f64::from(i) * 1e6, f64::from(i) / 1e3] {
                assert!((square_root(root * root) / root - 1.0).abs() < 1e-15, "{root}");
            }
        }
    }

    #[test]
    fn only_fractions_are_rounded_up() {
        for (x, rounded) in
            [(0.0, 0), (5e-324, 1), (1.0, 1), (1.000_1, 2), (1e15 + 0.5, 1_000_000_000_000_001)]
        {
            assert_eq!(ceil(x), rounded);
        }
    }
}
