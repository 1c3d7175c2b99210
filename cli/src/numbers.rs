//! Numbers as people write and read them.
#![forbid(unsafe_code)]

use bloomline::{KeyEstimate, Sizing};
pub use bloomline_chart::grouped;

/// A count: `1000000`, `1_000_000`, `1,000,000`, `1e6` or `1M`.
pub fn count(text: &str) -> Result<usize, String> {
    let units =
        [("k", "e3"), ("K", "e3"), ("M", "e6"), ("G", "e9"), ("T", "e12"), ("P", "e15"), ("E", "e18")];
    let with_unit = units.iter().find_map(|&(unit, power)| Some((text.strip_suffix(unit)?, power)));
    let (digits, power) = with_unit.unwrap_or((text, ""));
    let number = ungrouped(digits).map(|digits| digits + power).and_then(|digits| {
        let whole = || digits.parse::<f64>().ok().filter(|number| number.fract() == 0.0);
        digits.parse().ok().or_else(|| whole().and_then(in_range))
    });
    number.ok_or_else(|| "give a whole number, such as 1000000, 1e6 or 1M".into())
}

/// Removes underscores, and commas between groups of three digits. Any other comma is refused, because it may be meant
/// as a decimal point.
fn ungrouped(digits: &str) -> Option<String> {
    let groups: Vec<_> = digits.split(',').collect();
    let is_group = |group: &&str| group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit());
    let is_grouped = groups[1..].iter().all(is_group) && (1..=3).contains(&groups[0].len());
    (groups.len() == 1 || is_grouped).then(|| groups.concat().replace('_', ""))
}

pub fn count_from_1(text: &str) -> Result<usize, String> {
    count(text).and_then(|count| if count == 0 { Err("give at least 1".into()) } else { Ok(count) })
}

fn in_range(number: f64) -> Option<usize> {
    (0.0..usize::MAX as f64).contains(&number).then_some(number as usize)
}

/// A fraction: `0.01` or `1%`.
pub fn share(text: &str) -> Result<f64, String> {
    let (digits, unit) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits.trim_end(), 100.0));
    match digits.parse::<f64>() {
        Ok(number) if unit == 1.0 && (1.0..100.0).contains(&number) => {
            Err(format!("it must be between 0 and 1 (did you mean {text}%?)"))
        }
        Ok(number) if number.is_finite() => Ok(number / unit),
        _ => Err("give a number, such as 0.01 or 1%".into()),
    }
}

/// Bytes: `4096`, `1,950,720`, `64MiB` or `1.2 GB`.
pub fn bytes(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic() && letter != 'e');
    let factor = match &text[digits.len()..] {
        "" | "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "PB" => 1e15,
        "EB" => 1e18,
        "KiB" => 1024.0,
        "MiB" => 1024_f64.powi(2),
        "GiB" => 1024_f64.powi(3),
        "TiB" => 1024_f64.powi(4),
        // In a count, these letters are powers of 1,000, but for bytes most programs use powers of 1,024.
        unit @ ("k" | "K" | "M" | "G" | "T") => {
            let unit = unit.to_uppercase();
            return Err(format!(
                "{unit} is ambiguous: give {unit}B for powers of 1,000, or {unit}iB for powers of 1,024"
            ));
        }
        _ => f64::NAN,
    };
    let number = ungrouped(digits.trim_end()).and_then(|digits| {
        let scaled = || digits.parse::<f64>().ok().map(|number| (number * factor).round());
        digits.parse().ok().filter(|_| factor == 1.0).or_else(|| scaled().and_then(in_range))
    });
    number.ok_or_else(|| "give bytes, such as 4096, 64MiB or 1.2GB".into())
}

/// For example "1 key" and "2,000 keys".
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// For example "60 blocks" and "2 modules of 30 blocks".
pub fn blocks(sizing: Sizing) -> String {
    let (n_modules, n_blocks) = (sizing.n_modules(), sizing.n_blocks());
    let of_each = counted((n_blocks / n_modules) as u64, "block");
    if n_modules == 1 { of_each } else { format!("{n_modules} modules of {of_each}") }
}

/// For example "about 100,019 ± 81".
pub fn estimate(estimate: Option<KeyEstimate>) -> String {
    let text = |estimate: KeyEstimate| {
        format!("about {} ± {}", grouped(estimate.keys), grouped(estimate.standard_error.ceil() as u64))
    };
    estimate.map_or_else(|| "too full to estimate".into(), text)
}

/// The estimate plus four standard errors, which is almost never below the true number.
pub fn at_most(estimate: KeyEstimate) -> u64 {
    estimate.keys + (4.0 * estimate.standard_error).ceil() as u64
}

/// The estimate less four standard errors, which is almost never above the true number.
pub fn at_least(estimate: KeyEstimate) -> u64 {
    estimate.keys.saturating_sub((4.0 * estimate.standard_error).ceil() as u64)
}

/// 1241728 as 1.24 MB.
pub fn size(bytes: u64) -> String {
    scaled(bytes as f64, &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

/// 1241728 as 1.24M.
pub fn short(number: f64) -> String {
    scaled(number, &["", "k", "M", "G", "T", "P", "E"]).replace(' ', "")
}

fn scaled(mut number: f64, units: &[&str]) -> String {
    let mut units = units.iter();
    let mut unit = units.next().expect("there are units");
    while number >= 999.5 {
        let Some(next) = units.next() else { break };
        number /= 1e3;
        unit = next;
    }
    format!("{} {unit}", significant(number))
}

/// A fraction in per cent, or with a power of ten where per cent would be mostly zeros. [`share`] reads both.
pub fn percent(share: f64) -> String {
    if share == 0.0 || share >= 1e-6 {
        return significant(100.0 * share) + "%";
    }
    let scientific = format!("{share:.2e}");
    let (digits, exponent) = scientific.split_once('e').expect("scientific notation");
    format!("{}e{exponent}", without_zeros(digits))
}

/// At most three significant digits.
fn significant(number: f64) -> String {
    // The exponent after rounding, because 0.9999 is written as 1.
    let scientific = format!("{number:.2e}");
    let (_, exponent) = scientific.split_once('e').expect("scientific notation");
    let decimals = (2 - exponent.parse::<i32>().expect("an exponent")).max(0) as usize;
    without_zeros(&format!("{number:.decimals$}")).into()
}

/// The digits without zeros that end their fraction.
fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read() {
        for text in ["1000000", "1_000_000", "1,000,000", "1e6", "1M", "1.0M", "1000k", "1,000k"] {
            assert_eq!(count(text), Ok(1_000_000), "{text}");
        }
        assert_eq!((count("4.35M"), count("18446744073709551615")), (Ok(4_350_000), Ok(usize::MAX)));
        let wrong = ["", "-1", "1.5", "1e30", "nan", "inf", "ten", "1e6keys", "M", "1e3M", "1MB", "1m"];
        let ungrouped = ["1,5", "1,0000", "1000,000", ",000", "1,", ",", "1,0e3", "1,000.5"];
        for wrong in wrong.into_iter().chain(ungrouped) {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shares_are_read() {
        let shares = ["0.01", "1%", "2.5 %", "5%", "0.99", "100"].map(share);
        assert_eq!(shares, [0.01, 0.01, 0.025, 0.05, 0.99, 100.0].map(Ok));
        assert!(share("5").unwrap_err().contains("did you mean 5%?"));
        assert!(share("one").is_err() && share("nan").is_err() && share("%").is_err());
    }

    #[test]
    fn bytes_are_read() {
        let plain = [("4096", 4096), ("1e3", 1000), ("1.2GB", 1_200_000_000), ("64 MiB", 64 << 20)];
        for (text, number) in plain.into_iter().chain([("1,950,720", 1_950_720), ("1,950 kB", 1_950_000)]) {
            assert_eq!(bytes(text), Ok(number), "{text}");
        }
        for wrong in ["", "MB", "1XB", "-1", "1e40", "1,95", "1,0000"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        for unit in ["k", "K", "M", "G", "T"] {
            let remedy = format!("give {0}B for powers of 1,000, or {0}iB ", unit.to_uppercase());
            assert!(bytes(&format!("64{unit}")).unwrap_err().contains(&remedy), "{unit}");
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let is_close = |read: usize, number: f64| (read as f64 / number - 1.0).abs() <= 0.005;
        for i in 0..20_000 {
            let number = bloomline::mix(i) >> (i % 64);
            let read = number as usize;
            assert_eq!((count(&grouped(number)), bytes(&grouped(number))), (Ok(read), Ok(read)));
            if number < 18_440_000_000_000_000_000 {
                let (size, short) = (size(number), short(number as f64));
                assert!(number == 0 || is_close(bytes(&size).unwrap(), number as f64), "{number}: {size}");
                assert!(number == 0 || is_close(count(&short).unwrap(), number as f64), "{number}: {short}");
            }
            let rate = (number.max(1) as f64) / 2_f64.powi(64);
            let text = percent(rate);
            let read = share(&text).unwrap();
            assert!((read / rate - 1.0).abs() <= 0.005 && !text.contains(' '), "{rate}: {text}");
        }
        assert_eq!((share(&percent(0.0)), count(&short(0.0)), bytes(&size(0))), (Ok(0.0), Ok(0), Ok(0)));
    }

    #[test]
    fn numbers_are_written() {
        assert_eq!([0, 999, 1_234_567].map(grouped).join(" "), "0 999 1,234,567");
        assert_eq!([64, 999_999, 1_241_728].map(size).join(", "), "64 B, 1 MB, 1.24 MB");
        assert_eq!([1, 2000].map(|number| counted(number, "key")).join(", "), "1 key, 2,000 keys");
        assert_eq!([51.2e6, 12.0, 1.8e9].map(short).join(" "), "51.2M 12 1.8G");
        let shares = [0.01, 0.00972, 0.0088, 0.009_999_9, 0.123_456, 0.39, 0.000_999_99, 1.0, 0.0];
        assert_eq!(shares.map(percent).join(" "), "1% 0.972% 0.88% 1% 12.3% 39% 0.1% 100% 0%");
        let small = [1e-6, 1.234e-7, 1.1e-7, 1e-8, 1e-30, f64::MIN_POSITIVE];
        assert_eq!(small.map(percent).join(" "), "0.0001% 1.23e-7 1.1e-7 1e-8 1e-30 2.23e-308");
    }
}
