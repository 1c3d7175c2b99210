//! Checks of requested bits per key and false-positive rates.
#![forbid(unsafe_code)]

use crate::error::BuildError;
use crate::limits::MAX_BITS_PER_KEY;

pub(crate) fn checked_bits_per_key(value: f64) -> Result<f64, BuildError> {
    if value > 0.0 && value <= MAX_BITS_PER_KEY { Ok(value) } else { Err(BuildError::BitsPerKey { value }) }
}

/// `value`, if it is a false-positive rate of at least `lowest`.
pub(crate) fn checked_fpr(value: f64, lowest: f64) -> Result<f64, BuildError> {
    let is_valid = value > 0.0 && value >= lowest && value < 1.0;
    is_valid.then_some(value).ok_or(BuildError::Fpr { value, lowest })
}
