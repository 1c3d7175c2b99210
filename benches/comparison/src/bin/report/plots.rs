//! The plots of the pages.

use std::path::Path;

use anyhow::Result;
use bloomline::sizing::{Sizing, standard::StandardSizing};
use bloomline_chart::{
    AMBER, Axis, BLUE, BROWN, Chart, GREEN, GREY, Line, ORANGE, PURPLE, RGBColor, SKY, bars, grouped,
};
use bloomline_comparison::line_up::{
    BASELINE, BLOOMLINE, BLOOMLINE_BATCH, FASTBLOOM, ROCKSDB, ROCKSDB_DEBIAN, SBBF, XORF,
};
use bloomline_comparison::results::{ABSENT, BY_BITS, BY_K, Table, load, size, size_text};

use crate::page::Page;

/// The contenders of each plot, those in front first.
const FILTERS: [(&str, RGBColor); 8] = [
    (BASELINE, GREY),
    (BLOOMLINE_BATCH, AMBER),
    (BLOOMLINE, ORANGE),
    (ROCKSDB, BLUE),
    (ROCKSDB_DEBIAN, SKY),
    (SBBF, GREEN),
    (FASTBLOOM, PURPLE),
    (XORF, BROWN),
];
const BANKS: [(&str, RGBColor); 6] = [
    ("bank, batch", AMBER),
    ("bank", ORANGE),
    ("bloomline, prefetched", BLUE),
    ("bloomline", SKY),
    ("sbbf-rs-safe", GREEN),
    ("fastbloom", PURPLE),
];
/// So many that the model of many blocks holds.
const KEYS: u64 = 10_000_000;
const POLICIES: [(&str, RGBColor); 2] = [("bloomline", ORANGE), ("LevelDB's filter", BLUE)];

/// The name of each plot whose figures the page has, and its SVG.
pub fn all(page: &Page) -> Result<Vec<(String, String)>> {
    let mut plots = Vec::new();
    let mut add = |name: &str, svg| plots.push((format!("plots/{name}.svg"), svg));
    let title = |what| format!("{}: lookup of an absent key by hash\n{what}", page.name);
    let nanoseconds =
        |lines: &[Line]| Axis::exponents("nanoseconds per lookup", lines, |y| y.exp2().to_string());
    if let Some(table) = page.table(ABSENT) {
        // A tick at each power of 16 from 16 KiB on.
        let scaled = |text: &str| size(text).map_or(0.0, |size| (size as f64).log2() / 4.0 - 3.5);
        let label = |x: f64| size_text(1 << (14 + 4 * x as usize));
        let x = Axis { title: "filter size", range: -0.1..4.1, n_ticks: 5, label };
        let lines = lines(table, &FILTERS, scaled, f64::log2);
        add("time-by-size", svg(&title("10 bits per key"), x, nanoseconds(&lines), lines)?);
    }
    if let Some(table) = page.table(BY_K) {
        let x = Axis { title: "k, probes per key", range: 0.6..16.4, n_ticks: 16, label: |k| k.to_string() };
        let lines = lines(table, &FILTERS, number, f64::log2);
        add("time-by-k", svg(&title("16 KiB"), x, nanoseconds(&lines), lines)?);
    }
    if let Some(table) = page.table(BY_BITS) {
        let mut lines = lines(table, &FILTERS, number, f64::log10);
        for line in &mut lines {
            (line.width, line.dot) = (0, if line.name == BLOOMLINE { 5 } else { 3 });
        }
        let fpr = |bits| Some(Sizing::for_bits_per_key(KEYS, bits).ok()?.expected_fpr(KEYS));
        let model = (300..=1350).map(|fiftieths| f64::from(fiftieths) / 50.0);
        let points = model.filter_map(|bits| Some((bits, (100.0 * fpr(bits)?).log10()))).collect();
        lines.push(Line { name: "bloomline's model", color: GREY, points, width: 2, dot: 0 });
        let x = Axis { title: "bits per key", range: 5.6..27.4, n_ticks: 11, label: |bits| bits.to_string() };
        let title = "Measured false-positive rate, 1 MiB\neach filter with the k and modules that its library chooses";
        add("rate-by-bits", svg(title, x, percent(&lines), lines)?);
    }
    Ok(plots)
}

/// The plots of further benchmarks, which leave their figures beside them.
pub fn further(directory: &Path) -> Result<Vec<(String, String)>> {
    type Draw = fn(&Table) -> Result<String>;
    let plots: [(_, Draw); 3] = [("banks", banks), ("dedup", dedup), ("leveldb", leveldb)];
    let mut drawn = Vec::new();
    for (name, draw) in plots {
        let path = directory.join(name).with_extension("json");
        if path.exists() {
            drawn.push((format!("plots/{name}.svg"), draw(&load(&path)?)?));
        }
    }
    Ok(drawn)
}

fn banks(table: &Table) -> Result<String> {
    // A tick at each power of 8 from 4 on.
    let lines = lines(table, &BANKS, |text| (number(text).log2() - 2.0) / 3.0, f64::log10);
    let label = |x: f64| grouped(4 << (3 * x as u32));
    let x = Axis { title: "filters of 64 KiB", range: -0.1..3.1, n_ticks: 4, label };
    let y = Axis::exponents("nanoseconds per key", &lines, |y| grouped(10_f64.powf(y) as u64));
    let title = format!("{}: which filters possibly have an absent key\n10 bits per key", table.title);
    svg(&title, x, y, lines)
}

fn leveldb(table: &Table) -> Result<String> {
    let mut lines = lines(table, &POLICIES, number, f64::log10);
    for line in &mut lines {
        (line.width, line.dot) = (0, 2);
    }
    let x = Axis { title: "keys per filter", range: 0.0..260.0, n_ticks: 6, label: |keys| keys.to_string() };
    let title = "LevelDB's filter and bloomline, 10 bits per key\nkeys: even numbers of 16 digits; queries: the odd ones";
    svg(title, x, percent(&lines), lines)
}

fn dedup(table: &Table) -> Result<String> {
    let rows = table.rows.iter().take(5).filter_map(|(name, cells)| {
        let color = if name.starts_with("bloomline") { ORANGE } else { GREY };
        Some((&**name, color, [cells[0]?, cells[1]?]))
    });
    let title = "Dropping the repeats of 30 million lines";
    bars(title, ["CPU time, s", "memory, MB"], &Vec::from_iter(rows))
}

/// What a false-positive rate costs in each kind of filter. Computed by the model, without measurements.
pub fn bits_by_rate() -> Result<(String, String)> {
    type Bits = fn(f64) -> Result<u64, bloomline::Error>;
    let kinds: [(_, _, Bits); 2] = [
        ("BloomFilter", ORANGE, |fpr| Ok(8 * Sizing::for_fpr(KEYS, fpr)?.byte_len() as u64)),
        ("StandardBloomFilter", PURPLE, |fpr| Ok(StandardSizing::for_fpr(KEYS, fpr)?.bit_len())),
    ];
    let lines = kinds.map(|(name, color, bits)| {
        let exponents = (40..=240).map(|fortieths| f64::from(fortieths) / 40.0);
        let points = exponents.filter_map(|x| Some((x, bits(10_f64.powf(-x)).ok()? as f64 / KEYS as f64)));
        Line { name, color, points: points.collect(), width: 2, dot: 0 }
    });
    let label = |x: f64| format!("{}%", 10_f64.powf(2.0 - x));
    let x = Axis { title: "false-positive rate", range: 0.9..6.1, n_ticks: 6, label };
    let y = Axis { title: "bits per key", range: 0.0..33.0, n_ticks: 7, label: |bits| bits.to_string() };
    let title = "Bits per key for a false-positive rate, by the exact model";
    Ok(("plots/bits-by-rate.svg".to_owned(), svg(title, x, y, lines.into())?))
}

fn svg(title: &str, x: Axis, y: Axis, lines: Vec<Line>) -> Result<String> {
    Chart { title, x, y, bars: Vec::new(), lines, mark: None }.svg()
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_default()
}

fn percent(lines: &[Line]) -> Axis<'static> {
    Axis::exponents("false-positive rate", lines, |y| format!("{}%", 10_f64.powf(y)))
}

/// The rows of the table that have a color.
fn lines<'a>(
    table: &Table,
    colors: &[(&'a str, RGBColor)],
    x: impl Fn(&str) -> f64,
    y: fn(f64) -> f64,
) -> Vec<Line<'a>> {
    let line = |&(name, color): &(&'a str, RGBColor)| {
        let cells = &table.rows.iter().find(|row| row.0 == name)?.1;
        let points = table.columns.iter().zip(cells);
        let points = points.filter_map(|(column, cell)| Some((x(column), y((*cell)?)))).collect();
        Some(Line {
            name,
            color,
            points,
            width: if [ORANGE, AMBER].contains(&color) { 3 } else { 2 },
            dot: 3,
        })
    };
    colors.iter().filter_map(line).collect()
}
