//! The plots, on a light background of their own so that they are readable on dark pages.

use std::fmt::Write;
use std::ops::Range;

use bloomline::sizing;
use bloomline_comparison::line_up::{
    BASELINE, BLOOMLINE, BLOOMLINE_BATCH, FASTBLOOM, ROCKSDB, ROCKSDB_DEBIAN, SBBF, XORF,
};
use bloomline_comparison::results::{ABSENT, BY_BITS, BY_K, Table, size};

use crate::page::Page;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 520.0;
/// The inner area. To its right are the names of the lines.
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

const DOT: &str = "r=\"3\" stroke=\"none\"";
/// Distinguishable where a dot overlaps it.
const RING: &str = "r=\"5\" fill=\"none\" stroke-width=\"2\"";

struct Axis<'a> {
    title: &'a str,
    range: Range<f64>,
    ticks: Vec<(f64, String)>,
}

/// The name of each plot whose figures the page has, and its SVG.
pub fn all(page: &Page) -> Vec<(String, String)> {
    let title = |what| format!("{}: lookup of an absent key by hash, {what}", page.name);
    let by_size = page.table(ABSENT).map(|table| {
        let log2 = |column: &str| size(column).map_or(0.0, |size| (size as f64).log2());
        let (lines, x) = lines(table, "filter size", 0.5, log2, f64::log2);
        ("time-by-size", svg(&title("10 bits per key"), &x, &nanoseconds(&lines), &lines))
    });
    let by_k = page.table(BY_K).map(|table| {
        let (lines, x) = lines(table, "k, probes per key", 0.3, number, f64::log2);
        ("time-by-k", svg(&title("16 KiB"), &x, &nanoseconds(&lines), &lines))
    });
    let by_bits = page.table(BY_BITS).map(|table| {
        let (mut lines, x) = lines(table, "bits per key", 0.5, number, f64::log10);
        let fpr = |bits_per_key| sizing::best_k(bits_per_key).and_then(|k| sizing::fpr(bits_per_key, k)).ok();
        let model = (60..=240).map(|tenths| f64::from(tenths) / 10.0);
        let points = model.filter_map(|bits| Some((bits, (100.0 * fpr(bits)?).log10()))).collect();
        for line in &mut lines {
            line.is_joined = false;
            line.mark = Some(if line.name == BLOOMLINE { RING } else { DOT });
        }
        lines.insert(
            0,
            Line { name: "bloomline's model", color: "#787878", points, is_joined: true, mark: None },
        );
        let label = |y: f64| format!("{} %", 10_f64.powf(y));
        let y = Axis { title: "false-positive rate", ..axis_of(&lines, 0.1, label) };
        let title = "Measured false-positive rate, 1 MiB, each filter with the k that its library chooses";
        ("rate-by-bits", svg(title, &x, &y, &lines))
    });
    let plots = [by_size, by_k, by_bits].into_iter().flatten();
    plots.map(|(name, text)| (format!("plots/{name}.svg"), text)).collect()
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_default()
}

/// The table's rows that have a color, and the axis of its columns.
fn lines<'a>(
    table: &Table,
    title: &'a str,
    margin: f64,
    x: impl Fn(&str) -> f64,
    y: fn(f64) -> f64,
) -> (Vec<Line>, Axis<'a>) {
    let ticks: Vec<_> = table.columns.iter().map(|column| (x(column), column.clone())).collect();
    let line = |&(name, color): &(&'static str, &'static str)| {
        let cells = &table.rows.iter().find(|row| row.0 == name)?.1;
        let points = ticks.iter().zip(cells).filter_map(|((x, _), cell)| Some((*x, y((*cell)?)))).collect();
        Some(Line { name, color, points, is_joined: true, mark: Some(DOT) })
    };
    let range =
        ticks.first().map_or(0.0, |tick| tick.0) - margin..ticks.last().map_or(1.0, |tick| tick.0) + margin;
    (CONTENDERS.iter().filter_map(line).collect(), Axis { title, range, ticks })
}

fn nanoseconds(lines: &[Line]) -> Axis<'static> {
    Axis { title: "nanoseconds per lookup", ..axis_of(lines, 0.2, |y| y.exp2().to_string()) }
}

/// A vertical axis with a tick at each whole exponent.
fn axis_of(lines: &[Line], margin: f64, label: impl Fn(f64) -> String) -> Axis<'static> {
    let values = || lines.iter().flat_map(|line| &line.points).map(|point| point.1);
    let range =
        values().fold(f64::INFINITY, f64::min) - margin..values().fold(f64::NEG_INFINITY, f64::max) + margin;
    let exponents = (range.start.ceil() as i32..=range.end.floor() as i32).map(f64::from);
    Axis { title: "", ticks: exponents.map(|y| (y, label(y))).collect(), range }
}

fn svg(title: &str, x: &Axis, y: &Axis, lines: &[Line]) -> String {
    let scale = |value: f64, axis: &Axis| (value - axis.range.start) / (axis.range.end - axis.range.start);
    let right = |value| LEFT + (RIGHT - LEFT) * scale(value, x);
    let down = |value| BOTTOM + (TOP - BOTTOM) * scale(value, y);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} \
         {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#282828\" text-anchor=\"middle\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fcfcfc\"/>\n\
         <text x=\"354\" y=\"30\" font-size=\"15\">{title}</text>\n\
         <text x=\"387\" y=\"500\" font-size=\"13\">{}</text>\n\
         <text x=\"26\" y=\"252\" font-size=\"13\" transform=\"rotate(270 26 252)\">{}</text>\n",
        x.title, y.title
    );
    let mut add = |element: std::fmt::Arguments| writeln!(svg, "{element}").expect("a string grows");
    for (value, label) in &x.ticks {
        let x = right(*value);
        add(format_args!("<path d=\"M{x:.1} {TOP}V{BOTTOM}\" stroke=\"#dedede\"/>"));
        add(format_args!("<text x=\"{x:.1}\" y=\"{}\">{label}</text>", BOTTOM + 18.0));
    }
    for (value, label) in &y.ticks {
        let y = down(*value);
        add(format_args!("<path d=\"M{LEFT} {y:.1}H{RIGHT}\" stroke=\"#dedede\"/>"));
        add(format_args!(
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            LEFT - 8.0,
            y + 4.0
        ));
    }
    add(format_args!("<path d=\"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}\" fill=\"none\" stroke=\"#282828\"/>"));
    for Line { name, color, points, is_joined, mark } in lines.iter().rev() {
        add(format_args!("<g fill=\"{color}\" stroke=\"{color}\">"));
        let points = points.iter().map(|&(x, y)| (right(x), down(y)));
        if *is_joined {
            let width = if [BLOOMLINE, BLOOMLINE_BATCH].contains(name) { 3 } else { 2 };
            let path = Vec::from_iter(points.clone().map(|(x, y)| format!("{x:.1},{y:.1}"))).join(" ");
            add(format_args!("<polyline points=\"{path}\" fill=\"none\" stroke-width=\"{width}\"/>"));
        }
        for ((x, y), mark) in points.zip(mark.iter().cycle()) {
            add(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" {mark}/>"));
        }
        add(format_args!("</g>"));
    }
    for (line, (x, y), label_y) in labels(lines, right, down) {
        let left = RIGHT + 14.0;
        add(format_args!(
            "<path d=\"M{:.1} {y:.1}L{} {label_y:.1}\" stroke=\"{}\" stroke-opacity=\"0.45\"/>",
            x + 5.0,
            left - 3.0,
            line.color
        ));
        add(format_args!(
            "<text x=\"{left}\" y=\"{:.1}\" text-anchor=\"start\" fill=\"{}\">{}</text>",
            label_y + 4.0,
            line.color,
            line.name
        ));
    }
    svg + "</svg>\n"
}

/// Each line, its last point, and the height of its name: beside that point, or as close as the other names leave room.
fn labels<'a>(
    lines: &'a [Line],
    right: impl Fn(f64) -> f64,
    down: impl Fn(f64) -> f64,
) -> Vec<(&'a Line, (f64, f64), f64)> {
    let last = |line: &'a Line| line.points.last().map(|&(x, y)| (line, (right(x), down(y)), down(y)));
    let mut labels: Vec<_> = lines.iter().filter_map(last).collect();
    labels.sort_by(|one, other| one.2.total_cmp(&other.2));
    // Down where they would overlap, then up from the bottom edge.
    for i in 1..labels.len() {
        labels[i].2 = labels[i].2.max(labels[i - 1].2 + LABEL_HEIGHT);
    }
    let mut lowest = BOTTOM;
    for label in labels.iter_mut().rev() {
        label.2 = label.2.min(lowest);
        lowest = label.2 - LABEL_HEIGHT;
    }
    labels
}
