//! The plots of the pages.

use bloomline::sizing::{self, Sizing, standard::StandardSizing};
use bloomline_comparison::line_up::{
    BASELINE, BLOOMLINE, BLOOMLINE_BATCH, FASTBLOOM, ROCKSDB, ROCKSDB_DEBIAN, SBBF, XORF,
};
use bloomline_comparison::plot::{Axis, DOT, Line, RING, exponents, svg};
use bloomline_comparison::results::{ABSENT, BY_BITS, BY_K, Table, size};

use crate::page::Page;

/// Each with its color.
const CONTENDERS: [(&str, &str); 8] = [
    (BASELINE, "#787878"),
    (BLOOMLINE_BATCH, "#e68c00"),
    (BLOOMLINE, "#d53e00"),
    (ROCKSDB, "#0064b4"),
    (ROCKSDB_DEBIAN, "#6eaadc"),
    (SBBF, "#009169"),
    (FASTBLOOM, "#823ca0"),
    (XORF, "#966e3c"),
];

/// The name of each plot whose figures the page has, and its SVG.
pub fn all(page: &Page) -> Vec<(String, String)> {
    let title = |what| format!("{}: lookup of an absent key by hash, {what}", page.name);
    let nanoseconds =
        |lines: &[Line]| exponents("nanoseconds per lookup", lines, 0.2, |y| y.exp2().to_string());
    let by_size = page.table(ABSENT).map(|table| {
        let log2 = |column: &str| size(column).map_or(0.0, |size| (size as f64).log2());
        let (x, lines) = lines(table, "filter size", log2, f64::log2);
        ("plots/time-by-size.svg", svg(&title("10 bits per key"), &x, &nanoseconds(&lines), &lines))
    });
    let by_k = page.table(BY_K).map(|table| {
        let (x, lines) = lines(table, "k, probes per key", number, f64::log2);
        ("plots/time-by-k.svg", svg(&title("16 KiB"), &x, &nanoseconds(&lines), &lines))
    });
    let by_bits = page.table(BY_BITS).map(|table| {
        let (x, mut lines) = lines(table, "bits per key", number, f64::log10);
        for line in &mut lines {
            line.is_joined = false;
            line.mark = Some(if line.name == BLOOMLINE { RING } else { DOT });
        }
        let fpr = |bits_per_key| sizing::best_k(bits_per_key).and_then(|k| sizing::fpr(bits_per_key, k)).ok();
        let model = (60..=240).map(|tenths| f64::from(tenths) / 10.0);
        let points = model.filter_map(|bits| Some((bits, (100.0 * fpr(bits)?).log10()))).collect();
        lines.push(Line {
            name: "bloomline's model",
            color: "#787878",
            points,
            width: 2,
            is_joined: true,
            mark: None,
        });
        let y = exponents("false-positive rate", &lines, 0.1, |y| format!("{}%", 10_f64.powf(y)));
        let title = "Measured false-positive rate, 1 MiB, each filter with the k that its library chooses";
        ("plots/rate-by-bits.svg", svg(title, &x, &y, &lines))
    });
    let plots = [by_size, by_k, by_bits].into_iter().flatten();
    plots.map(|(file, text)| (file.to_owned(), text)).collect()
}

/// What a false-positive rate costs in each kind of filter. Computed by the model, without measurements.
pub fn bits_by_rate() -> (String, String) {
    type Bits = fn(usize, f64) -> Option<u64>;
    fn within(keys: usize, fpr: f64, most_modules: usize) -> Option<u64> {
        Some(8 * Sizing::for_fpr_within(keys as u64, fpr, most_modules).ok()?.byte_len() as u64)
    }
    let kinds: [(_, _, Bits); 4] = [
        ("one module", "#d53e00", |keys, fpr| within(keys, fpr, 1)),
        ("up to 2 modules", "#e68c00", |keys, fpr| within(keys, fpr, 2)),
        ("up to 4 modules", "#009169", |keys, fpr| within(keys, fpr, 4)),
        ("standard filter", "#823ca0", |keys, fpr| {
            Some(StandardSizing::for_fpr(keys as u64, fpr).ok()?.bit_len())
        }),
    ];
    const KEYS: usize = 10_000_000;
    let lines = kinds.map(|(name, color, bits)| {
        let exponents = (4..=24).map(|quarters| f64::from(quarters) / 4.0);
        let points = exponents.filter_map(|x| Some((x, bits(KEYS, 10_f64.powf(-x))? as f64 / KEYS as f64)));
        Line { name, color, points: points.collect(), width: 2, is_joined: true, mark: None }
    });
    let rates = ["10%", "1%", "0.1%", "0.01%", "0.001%", "0.0001%"];
    let ticks = rates.iter().zip(1..).map(|(rate, x)| (f64::from(x), rate.to_string())).collect();
    let x = Axis { title: "false-positive rate", range: 0.9..6.1, ticks };
    let ticks = (0..=40).step_by(5).map(|bits| (f64::from(bits), bits.to_string())).collect();
    let y = Axis { title: "bits per key", range: 0.0..41.0, ticks };
    let title = "Bits per key for a false-positive rate, by the exact model";
    ("plots/bits-by-rate.svg".to_owned(), svg(title, &x, &y, &lines))
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_default()
}

/// The axis of the table's columns, and the rows that have a color.
fn lines<'a>(
    table: &Table,
    title: &'a str,
    x: impl Fn(&str) -> f64,
    y: fn(f64) -> f64,
) -> (Axis<'a>, Vec<Line>) {
    let ticks: Vec<_> = table.columns.iter().map(|column| (x(column), column.clone())).collect();
    let line = |&(name, color): &(&'static str, &'static str)| {
        let cells = &table.rows.iter().find(|row| row.0 == name)?.1;
        let points = ticks.iter().zip(cells).filter_map(|((x, _), cell)| Some((*x, y((*cell)?)))).collect();
        let width = if [BLOOMLINE, BLOOMLINE_BATCH].contains(&name) { 3 } else { 2 };
        Some(Line { name, color, points, width, is_joined: true, mark: Some(DOT) })
    };
    let lines = CONTENDERS.iter().filter_map(line).collect();
    let end = |tick: Option<&(f64, String)>| tick.map_or(0.0, |tick| tick.0);
    (Axis { title, range: end(ticks.first()) - 0.5..end(ticks.last()) + 0.5, ticks }, lines)
}
