//! Plots of lines, on a light background of their own so that they are readable on dark pages.

use std::ops::Range;

/// The area of the lines. To its right are their names.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 695.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 458.0;
const LABEL_HEIGHT: f64 = 18.0;

pub struct Line {
    pub name: &'static str,
    pub color: &'static str,
    pub points: Vec<(f64, f64)>,
    pub width: u32,
    pub is_joined: bool,
    /// The attributes of the circle that marks its points.
    pub mark: Option<&'static str>,
}

pub const DOT: &str = r#"r="3" stroke="none""#;
/// Distinguishable where a dot overlaps it.
pub const RING: &str = r#"r="5" fill="none" stroke-width="2""#;

pub struct Axis<'a> {
    pub title: &'a str,
    pub range: Range<f64>,
    pub ticks: Vec<(f64, String)>,
}

/// A vertical axis with a tick at each whole exponent.
pub fn exponents<'a>(title: &'a str, lines: &[Line], margin: f64, label: fn(f64) -> String) -> Axis<'a> {
    let values = || lines.iter().flat_map(|line| &line.points).map(|point| point.1);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let range = least - margin..most + margin;
    let exponents = (range.start.ceil() as i32..=range.end.floor() as i32).map(f64::from);
    Axis { title, ticks: exponents.map(|y| (y, label(y))).collect(), range }
}

pub fn svg(title: &str, x_axis: &Axis, y_axis: &Axis, lines: &[Line]) -> String {
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
    for line @ Line { color, width, mark, .. } in lines.iter().rev() {
        let points = line.points.iter().map(|&(x, y)| (right(x), down(y)));
        labels.extend(points.clone().next_back().map(|last| (line, last, last.1)));
        add(format!(r#"<g fill="{color}" stroke="{color}">"#));
        if line.is_joined {
            let path = Vec::from_iter(points.clone().map(|(x, y)| format!("{x:.1},{y:.1}"))).join(" ");
            add(format!(r#"<polyline points="{path}" fill="none" stroke-width="{width}"/>"#));
        }
        for ((x, y), mark) in points.zip(mark.iter().cycle()) {
            add(format!(r#"<circle cx="{x:.1}" cy="{y:.1}" {mark}/>"#));
        }
        add("</g>".to_owned());
    }
    // The name of each line is beside its last point, or as close as there is room. Names that would overlap are moved
    // down, then up from the bottom edge.
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
