//! The measurements as the benchmark saves them, and the tables that show them.

use std::path::Path;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::machine::Machine;

// The titles of the tables.
pub const BY_KEY: &str = "Lookups of absent keys, hashing included";
pub const ABSENT: &str = "Lookups of absent keys";
pub const PRESENT: &str = "Lookups of present keys";
/// Each with its false-positive rate, in %.
pub const AT_RATES: [(&str, f64); 3] = [
    ("Lookups at an FPR of 1%, by number of keys", 1.0),
    ("Lookups at an FPR of 0.1%, by number of keys", 0.1),
    ("Lookups at an FPR of 0.01%, by number of keys", 0.01),
];
pub const MIXED: &str = "Lookups of present and absent keys in random order, with a branch on the answer";
pub const INSERT: &str = "Inserts";
/// Also what its only row is named, for `--filter`.
pub const OPENED: &str = "bloomline, opened for each lookup ÷ kept open";
pub const OPENED_COLUMNS: [&str; 4] = ["20 keys", "3,000 keys", "100,000 keys", "100,000 keys, 0.01%"];
pub const BY_K: &str = "Lookups of absent keys by k, 16 KiB";
pub const BY_BITS: &str = "FPR by bits per key, %, each filter with the k that its library chooses";

#[derive(Serialize, Deserialize)]
pub struct Results {
    pub machine: Machine,
    pub columns: Vec<Column>,
}

impl Results {
    pub fn table(&self, title: &str) -> Table {
        Table::new(title, &self.columns)
    }

    /// The bits per key at which the contender's false-positive rate is `fpr` %, interpolated between two measured
    /// numbers of bits, because the logarithm of the rate is nearly linear there.
    pub fn bits_for(&self, contender: &str, fpr: f64) -> Option<f64> {
        let measured = self.columns.iter().filter(|column| column.table == BY_BITS);
        let points = measured.filter_map(|column| {
            Some((column.name.parse::<f64>().ok()?, (column.median(contender)? / fpr).ln()))
        });
        points.collect::<Vec<_>>().windows(2).find_map(|two| {
            let [(fewer, above), (more, below)] = two.try_into().expect("two points");
            (above >= 0.0 && below < 0.0).then(|| fewer + (more - fewer) * above / (above - below))
        })
    }
}

/// A column of a table, with the times of its contenders in interleaved rounds. A table can have several columns of one
/// name, which are races of different contenders.
#[derive(Serialize, Deserialize)]
pub struct Column {
    pub table: String,
    pub name: String,
    /// Each contender with its values by round.
    pub values: Vec<(String, Vec<f64>)>,
}

impl Column {
    fn rounds(&self, contender: &str) -> Option<&[f64]> {
        Some(&self.values.iter().find(|(name, _)| name == contender)?.1)
    }

    pub fn median(&self, contender: &str) -> Option<f64> {
        median(self.rounds(contender)?.iter().copied())
    }

    /// The median over all rounds of `one`'s time divided by `other`'s time in the same round.
    pub fn ratio(&self, one: &str, other: &str) -> Option<f64> {
        median(self.rounds(one)?.iter().zip(self.rounds(other)?).map(|(one, other)| one / other))
    }
}

/// The median, or `None` if there are no values.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    Some((values[(values.len() - 1) / 2] + upper) / 2.0)
}

#[derive(Serialize, Deserialize)]
pub struct Table {
    pub title: String,
    pub columns: Vec<String>,
    pub rows: Vec<(String, Vec<Option<f64>>)>,
}

impl Table {
    /// The medians of the columns that belong to the table. It has a row for each contender, except that the table by
    /// key has a row for each shape.
    fn new(title: &str, columns: &[Column]) -> Self {
        let columns: Vec<&Column> = columns.iter().filter(|column| column.table == title).collect();
        let mut names = distinct(columns.iter().map(|column| &column.name));
        let values = columns.iter().flat_map(|column| &column.values);
        let mut rows = distinct(values.map(|(contender, _)| contender));
        let is_by_key = title == BY_KEY;
        if is_by_key {
            std::mem::swap(&mut names, &mut rows);
        }
        let cell = |row, name| {
            let (name, contender) = if is_by_key { (row, name) } else { (name, row) };
            columns.iter().find_map(|column| column.median(contender).filter(|_| column.name == *name))
        };
        let cells = |row| names.iter().map(|name| cell(row, name).map(rounded)).collect();
        let rows = rows.iter().map(|row| (row.clone(), cells(row))).collect();
        Self { title: title.to_owned(), rows, columns: names }
    }

    /// The medians of the columns, divided by some contenders' in the same rounds.
    pub fn ratios(title: &str, measured: &[Column], others: &[&str]) -> Self {
        let mut rows = Vec::new();
        for column in measured {
            for (name, _) in &column.values {
                let label =
                    if measured.len() > 1 { format!("{}: {name}", column.name) } else { name.clone() };
                let ratios = others.iter().map(|other| column.ratio(name, other));
                rows.push((label, [column.median(name)].into_iter().chain(ratios).collect()));
            }
        }
        let mut columns = vec!["ns".to_owned()];
        columns.extend(others.iter().map(|other| format!("/ {other}")));
        Self { title: title.to_owned(), columns, rows }
    }

    pub fn markdown(&self) -> String {
        let mut rows = vec![vec![String::new()]];
        rows[0].extend(self.columns.iter().cloned());
        rows.extend(self.rows.iter().map(|(name, cells)| {
            let cells = cells.iter().zip(&self.columns).map(|(cell, column)| {
                let digits = match cell {
                    _ if !column.starts_with("FPR") && self.title != BY_BITS => 2,
                    Some(..0.1) => 5,
                    _ => 3,
                };
                cell.map_or(String::new(), |cell| format!("{cell:.digits$}"))
            });
            std::iter::once(name.clone()).chain(cells).collect()
        }));
        markdown(&rows)
    }

    pub fn print(&self) {
        if !self.rows.is_empty() {
            println!("\n{}\n\n{}", self.title, self.markdown());
        }
    }
}

/// To three decimals, and more of the smallest rates.
fn rounded(number: f64) -> f64 {
    let scale = if number < 0.1 { 1e5 } else { 1e3 };
    (number * scale).round() / scale
}

fn distinct<'a>(items: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut distinct = Vec::new();
    for item in items {
        if !distinct.contains(item) {
            distinct.push(item.clone());
        }
    }
    distinct
}

/// A table whose columns also line up as text. The first column is aligned left, all further columns right.
pub fn markdown(rows: &[Vec<String>]) -> String {
    let mut rows = rows.to_vec();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    rows.insert(1, widths.iter().map(|width| format!("{}:", "-".repeat(width - 1))).collect());
    rows[1][0] = "-".repeat(widths[0]);
    let mut text = String::new();
    for row in rows {
        for (i, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            text += &if i == 0 { format!("| {cell:<width$} |") } else { format!(" {cell:>width$} |") };
        }
        text.push('\n');
    }
    text
}

/// Writes a line for each row of a table, so that differences can be read.
pub fn json(figures: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string(figures)?;
    Ok(text.replace("]],[\"", "]],\n[\"").replace("},{\"", "},\n{\"").replace(":[", ":[\n") + "\n")
}

pub fn load<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} was not saved by this version of the benchmark", path.display()))
}

const UNITS: [&str; 4] = ["bytes", "KiB", "MiB", "GiB"];

/// A size as a whole number of the largest unit possible.
pub fn size_text(size_bytes: usize) -> String {
    let unit = (size_bytes.trailing_zeros() / 10).min(3);
    format!("{} {}", size_bytes >> (10 * unit), UNITS[unit as usize])
}

/// The size that a text such as "16KiB" or "16 KiB" gives.
pub fn size(text: &str) -> Result<usize, String> {
    let number = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let unit = UNITS.iter().position(|&unit| unit == text[number.len()..].trim());
    let size = || number.parse::<usize>().ok()?.checked_mul(1 << (10 * unit?)).filter(|&size| size > 0);
    size().ok_or_else(|| "give a size such as 16KiB, 1MiB or 1GiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_found_between_measured_ones() {
        // A rate that halves with each bit, so that the logarithm is a line.
        let column = |bits: u32| Column {
            table: BY_BITS.to_owned(),
            name: bits.to_string(),
            values: vec![("filter".to_owned(), vec![100.0 * 0.5_f64.powi(bits as i32)])],
        };
        let machine = Machine { name: String::new(), date: String::new(), facts: Vec::new() };
        let results = Results { machine, columns: [6, 8, 10].map(column).into() };
        for bits in [6.0, 7.5, 8.0, 9.9] {
            let found = results.bits_for("filter", 100.0 * 0.5_f64.powf(bits));
            assert!(found.is_some_and(|found| (found - bits).abs() < 1e-9), "{bits}: {found:?}");
        }
        assert_eq!(results.bits_for("filter", 10.0), None);
        assert_eq!(results.bits_for("filter", 0.01), None);
    }
}
