//! Reads the golden tables.

/// The fields of each line but the first, which names them.
pub fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table.lines().skip(1).map(|line| line.split('\t').collect())
}

pub fn hex(digits: &str) -> u64 {
    u64::from_str_radix(digits, 16).unwrap()
}
