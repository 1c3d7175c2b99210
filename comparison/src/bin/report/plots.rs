//! The plots, on a light background of their own so that they are readable on dark pages.

use std::ops::Range;

use bloomline::sizing;
use bloomline_comparison::line_up::{
    BASELINE, BLOOMLINE, BLOOMLINE_BATCH, FASTBLOOM, ROCKSDB, ROCKSDB_DEBIAN, SBBF, XORF,
};
use bloomline_comparison::results::{ABSENT, BY_BITS, BY_K, Table, size};

use crate::page::Page;

/// The area of the lines. To its right are their names.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 695.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 458.0;
const LABEL_HEIGHT: f64 = 18.0;

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

struct Line {
    name: &'static str,
    color: &'static str,
    points: Vec<(f64, f64)>,
    is_joined: bool,
    /// What marks its points: the attributes of a circle.
    mark: Option<&'static str>,
}

const DOT: &str = r#"r="3" stroke="none""#;
/// Distinguishable where a dot overlaps it.
const RING: &str = r#"r="5" fill="none" stroke-width="2""#;

struct Axis<'a> {
    title: &'a str,
    range: Range<f64>,
    ticks: Vec<(f64, String)>,
}

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
        lines.push(Line { name: "bloomline's model", color: "#787878", points, is_joined: true, mark: None });
        let y = exponents("false-positive rate", &lines, 0.1, |y| format!("{} %", 10_f64.powf(y)));
        let title = "Measured false-positive rate, 1 MiB, each filter with the k that its library chooses";
        ("plots/rate-by-bits.svg", svg(title, &x, &y, &lines))
    });
    let plots = [by_size, by_k, by_bits].into_iter().flatten();
    plots.map(|(file, text)| (file.to_owned(), text)).collect()
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
        Some(Line { name, color, points, is_joined: true, mark: Some(DOT) })
    };
    let lines = CONTENDERS.iter().filter_map(line).collect();
    let end = |tick: Option<&(f64, String)>| tick.map_or(0.0, |tick| tick.0);
    (Axis { title, range: end(ticks.first()) - 0.5..end(ticks.last()) + 0.5, ticks }, lines)
}

/// A vertical axis with a tick at each whole exponent.
fn exponents<'a>(title: &'a str, lines: &[Line], margin: f64, label: fn(f64) -> String) -> Axis<'a> {
    let values = || lines.iter().flat_map(|line| &line.points).map(|point| point.1);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let range = least - margin..most + margin;
    let exponents = (range.start.ceil() as i32..=range.end.floor() as i32).map(f64::from);
    Axis { title, ticks: exponents.map(|y| (y, label(y))).collect(), range }
}

fn svg(title: &str, x_axis: &Axis, y_axis: &Axis, lines: &[Line]) -> String {
    let scale = |value: f64, Axis { range, .. }: &Axis| (value - range.start) / (range.end - range.start);
    let right = |value| LEFT + (RIGHT - LEFT) * scale(value, x_axis);
    let down = |value| BOTTOM + (TOP - BOTTOM) * scale(value, y_axis);
    let mut svg = format!(
        include_str!("plot.svg"),
        title = title,
        x_title = x_axis.title,
        y_title = y_axis.title,
        axes = format_args!("M{LEFT} {TOP}V{BOTTOM}H{RIGHT}"),
    );
    let mut add = |element: String| svg += &(element + "\n");
    for (value, label) in &x_axis.ticks {
        let (x, below) = (right(*value), BOTTOM + 18.0);
        add(format!(r##"<path d="M{x:.1} {TOP}V{BOTTOM}" stroke="#dedede"/>"##));
        add(format!(r#"<text x="{x:.1}" y="{below}">{label}</text>"#));
    }
    for (value, label) in &y_axis.ticks {
        let (y, left) = (down(*value), LEFT - 8.0);
        add(format!(r##"<path d="M{LEFT} {y:.1}H{RIGHT}" stroke="#dedede"/>"##));
        add(format!(r#"<text x="{left}" y="{y:.1}" dy="4" text-anchor="end">{label}</text>"#));
    }
    let mut labels = Vec::new();
    for line @ Line { name, color, mark, .. } in lines.iter().rev() {
        let points = line.points.iter().map(|&(x, y)| (right(x), down(y)));
        labels.extend(points.clone().next_back().map(|last| (line, last, last.1)));
        add(format!(r#"<g fill="{color}" stroke="{color}">"#));
        if line.is_joined {
            let width = if [BLOOMLINE, BLOOMLINE_BATCH].contains(name) { 3 } else { 2 };
            let path = Vec::from_iter(points.clone().map(|(x, y)| format!("{x:.1},{y:.1}"))).join(" ");
            add(format!(r#"<polyline points="{path}" fill="none" stroke-width="{width}"/>"#));
        }
        for ((x, y), mark) in points.zip(mark.iter().cycle()) {
            add(format!(r#"<circle cx="{x:.1}" cy="{y:.1}" {mark}/>"#));
        }
        add("</g>".to_owned());
    }
    // The name of each line is beside its last point, or as close as the other names leave room: moved down where they
    // would overlap, then up from the bottom edge.
    labels.sort_by(|one, other| one.2.total_cmp(&other.2));
    for i in 1..labels.len() {
        labels[i].2 = labels[i].2.max(labels[i - 1].2 + LABEL_HEIGHT);
    }
    let mut lowest = BOTTOM;
    for &(Line { name, color, .. }, (x, y), label_y) in labels.iter().rev() {
        let (label_y, start, end, left) = (label_y.min(lowest), x + 5.0, RIGHT + 11.0, RIGHT + 14.0);
        lowest = label_y - LABEL_HEIGHT;
        add(format!(
            r#"<path d="M{start:.1} {y:.1}L{end} {label_y:.1}" stroke="{color}" stroke-opacity="0.45"/>"#
        ));
        add(format!(
            r#"<text x="{left}" y="{label_y:.1}" dy="4" text-anchor="start" fill="{color}">{name}</text>"#
        ));
    }
    svg + "</svg>\n"
}
