//! The search for the fewest bits per key that reach a false-positive rate, by any model.

use crate::math::minus_ln_of_one_less;

/// The least bits per key at which `rate` is at most `fpr`, to one part in a million.
///
/// The logarithm of a rate is nearly linear in the bits, so this interpolates (regula falsi, the "Illinois" variant) in
/// less than half of a bisection's time.
pub(super) fn least_bits_per_key(fpr: f64, rate: impl Fn(f64) -> f64) -> f64 {
    let ln = |rate: f64| -minus_ln_of_one_less(1.0 - rate.max(1e-15));
    // Upwards from a low start, not down from the maximum, because the model costs more for a higher k.
    let mut too_few = (0.0, f64::INFINITY);
    let mut enough = 1.0 / 64.0;
    let mut of_enough = rate(enough);
    while of_enough > fpr {
        too_few = (enough, ln(of_enough) - ln(fpr));
        enough *= 2.0;
        of_enough = rate(enough);
    }
    let mut enough = (enough, ln(of_enough) - ln(fpr));
    let mut last_reached = None;
    while enough.0 - too_few.0 > 1e-6 * enough.0 {
        // An end that stays a second time counts for half, so that it moves too. At 0 bits no logarithm is known, so
        // the first step goes to the middle.
        let share = (too_few.1 / (too_few.1 - enough.1)).clamp(1e-3, 1.0 - 1e-3);
        let middle = too_few.0 + (enough.0 - too_few.0) * if share.is_nan() { 0.5 } else { share };
        let of_middle = rate(middle);
        let reached = of_middle <= fpr;
        let stays = if reached { &mut too_few } else { &mut enough };
        if last_reached.replace(reached) == Some(reached) {
            stays.1 /= 2.0;
        }
        *(if reached { &mut enough } else { &mut too_few }) = (middle, ln(of_middle) - ln(fpr));
    }
    enough.0
}
