//! Reads the golden tables and files.

use std::fs;

/// The fields of each line but the first, which names them.
pub fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table.lines().skip(1).map(|line| line.split('\t').collect())
}

pub fn hex(digits: &str) -> u64 {
    u64::from_str_radix(digits, 16).unwrap()
}

/// The bytes of a golden file, for the package at the root and for `tests/lean`.
#[allow(dead_code, reason = "not every test reads files")]
pub fn golden(name: &str) -> Vec<u8> {
    let read = |folder| fs::read(format!("{}/{folder}/{name}", env!("CARGO_MANIFEST_DIR")));
    read("tests/golden").or_else(|_| read("../golden")).unwrap()
}
