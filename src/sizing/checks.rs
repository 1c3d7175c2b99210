//! Checks of requested bits per key and false-positive rates.

use crate::error::Error;
use crate::limits::MAX_BITS_PER_KEY;

pub(crate) fn checked_bits_per_key(value: f64) -> Result<f64, Error> {
    let text = "bits per key must be above 0 and at most {float}, not {float}";
    let is_valid = value > 0.0 && value <= MAX_BITS_PER_KEY;
    is_valid.then_some(value).ok_or(Error::argument(text, [MAX_BITS_PER_KEY, value].map(f64::to_bits)))
}

/// `value`, if it is a false-positive rate of at least `lowest` + `more`.
pub(crate) fn checked_fpr(value: f64, lowest: f64, more: f64) -> Result<f64, Error> {
    if !(value > 0.0 && value < 1.0) {
        let text = "a false-positive rate must be between 0 and 1, both excluded, not {float}";
        return Err(Error::argument(text, [value.to_bits()]));
    }
    let least = lowest + more;
    if value >= least {
        return Ok(value);
    }
    // The text has six digits, so it names a little more than a sum, which may have more.
    let least = if more == 0.0 { least } else { least * (1.0 + 5e-6) };
    let text = if least < 1.0 {
        "a false-positive rate of {float} is out of reach: request at least {float}, or use an exact structure"
    } else {
        "a false-positive rate of {float} is out of reach, as any below 1 is: make a larger filter, or for fewer keys"
    };
    Err(Error::argument(text, [value, least].map(f64::to_bits)))
}

/// The error for a filter that exceeds the address space.
pub(super) fn too_many_keys(keys: u64, bits_per_key: f64) -> Error {
    let text = "{} keys of {float} bits each exceed this machine's address space: split the keys over several filters";
    Error::argument(text, [keys, bits_per_key.to_bits()])
}
