//! `Digits`, which prints floats in error texts.

use core::fmt;

/// A number, displayed with up to six significant digits. Not by `core`, because its code for floats would be a fifth
/// of bloomline in WebAssembly (9 of 46 kB compressed).
pub(crate) struct Digits(pub(crate) f64);

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.0.abs();
        match self.0 {
            0.0 => return f.write_str("0"),
            f64::INFINITY => return f.write_str("inf"),
            f64::NEG_INFINITY => return f.write_str("-inf"),
            number if number.is_nan() => return f.write_str("NaN"),
            _ => {}
        }
        let mut exponent = 0;
        while value >= 10.0 {
            (value, exponent) = (value / 10.0, exponent + 1);
        }
        while value < 1.0 {
            (value, exponent) = (value * 10.0, exponent - 1);
        }
        let mut digits = (value * 1e5 + 0.5) as u32;
        if digits == 1_000_000 {
            (digits, exponent) = (100_000, exponent + 1);
        }
        let is_plain = (-4..6).contains(&exponent);
        let mut decimals = if is_plain { (5 - exponent) as usize } else { 5 };
        let one = 10_u32.pow(decimals as u32);
        let mut fraction = digits % one;
        while decimals > 0 && fraction.is_multiple_of(10) {
            (fraction, decimals) = (fraction / 10, decimals - 1);
        }
        if self.0 < 0.0 {
            f.write_str("-")?;
        }
        write!(f, "{}", digits / one)?;
        if decimals > 0 {
            write!(f, ".{fraction:0decimals$}")?;
        }
        if is_plain { Ok(()) } else { write!(f, "e{exponent}") }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn numbers_have_up_to_six_digits() {
        for text in [
            "0", "NaN", "inf", "-inf", "1", "-1", "9.9335", "999999", "0.99999", "0.0001", "100.001",
            "-0.01", "1e6", "1e-5",
        ] {
            assert_eq!(Digits(text.parse().unwrap()).to_string(), text);
        }
        for (value, text) in
            [(0.1 + 0.2, "0.3"), (0.999_999_6, "1"), (1.0 / 3.0, "0.333333"), (999_999.9, "1e6")]
        {
            assert_eq!(Digits(value).to_string(), text);
        }
        for exponent in -300..=300 {
            let value: f64 = alloc::format!("-1.263e{exponent}").parse().unwrap();
            let displayed = Digits(value).to_string().parse::<f64>().unwrap();
            assert!((displayed / value - 1.0).abs() < 1e-12, "{value:e}: {displayed:e}");
        }
    }
}
