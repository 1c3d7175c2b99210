//! The plots, on a light background of their own so that they are readable on dark pages.

use std::path::Path;

use anyhow::{Result, anyhow};
use bloomline::sizing;
use bloomline_comparison::line_up::{
    BASELINE, BLOOMLINE, BLOOMLINE_BATCH, FASTBLOOM, ROCKSDB, ROCKSDB_DEBIAN, SBBF, XORF,
};
use bloomline_comparison::race::median;
use bloomline_comparison::results::{Results, Workload, size_text};
use plotters::chart::ChartContext;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const SIZE: (u32, u32) = (860, 520);
const PANEL: RGBColor = RGBColor(252, 252, 252);
const INK: RGBColor = RGBColor(40, 40, 40);
const GRID: RGBColor = RGBColor(222, 222, 222);
const FAINT_GRID: RGBColor = RGBColor(240, 240, 240);
/// Space for the names at the right ends of the lines.
const LABELS_WIDTH: i32 = 165;
const LABEL_HEIGHT: i32 = 18;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

struct Line {
    name: String,
    color: RGBColor,
    points: Vec<(f64, f64)>,
    is_joined: bool,
    marks: Marks,
}

/// Different marks stay distinguishable where they overlap.
#[derive(Clone, Copy)]
enum Marks {
    None,
    Dots,
    Rings,
    Crosses,
}

struct Axis<'a> {
    title: &'a str,
    range: std::ops::Range<f64>,
    ticks: usize,
    label: &'a dyn Fn(f64) -> String,
}

pub fn draw_all(results: &Results, directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    time_by_size(results, &directory.join("time-by-size.svg"))?;
    rate_by_bits(results, &directory.join("rate-by-bits.svg"))?;
    time_by_k(results, &directory.join("time-by-k.svg"))
}

fn time_by_size(results: &Results, path: &Path) -> Result<()> {
    let contenders = [
        BASELINE,
        BLOOMLINE_BATCH,
        BLOOMLINE,
        ROCKSDB,
        ROCKSDB_DEBIAN,
        SBBF,
        FASTBLOOM,
        XORF,
        "bloomcraft",
        "broomfilter",
        "bloomfilter",
    ];
    let lines = contenders.map(|contender| {
        let point = |&size: &usize| {
            let nanoseconds = results.nanoseconds(size, Workload::Absent, contender)?;
            Some(((size as f64).log2(), nanoseconds.log2()))
        };
        line(contender, results.sizes().iter().filter_map(point).collect())
    });
    let largest = results.sizes().last().map_or(20.0, |&size| (size as f64).log2());
    plot(
        path,
        &format!("{}: lookup of an absent key by hash, 10 bits per key", results.machine.name),
        &Axis {
            title: "filter size",
            range: 13.5..largest + 0.5,
            ticks: 10,
            label: &|x| size_text(x.exp2().round() as usize),
        },
        &nanoseconds(&lines),
        &lines,
    )
}

fn time_by_k(results: &Results, path: &Path) -> Result<()> {
    let lines = [BLOOMLINE_BATCH, BLOOMLINE, ROCKSDB, FASTBLOOM].map(|contender| {
        let of_contender = results.by_k.iter().filter(|timing| timing.contender == contender);
        let point = |timing: &bloomline_comparison::results::KTiming| {
            Some((f64::from(timing.k), median(timing.rounds.iter().copied())?.log2()))
        };
        line(contender, of_contender.filter_map(point).collect())
    });
    plot(
        path,
        &format!("{}: lookup of an absent key by hash, 16 KiB", results.machine.name),
        &Axis { title: "k, probes per key", range: 0.7..16.3, ticks: 16, label: &|x| x.to_string() },
        &nanoseconds(&lines),
        &lines,
    )
}

fn rate_by_bits(results: &Results, path: &Path) -> Result<()> {
    let mut lines = Vec::new();
    let model = (0..=180).map(|i| 6.0 + f64::from(i) / 10.0).map(|bits_per_key| {
        let fpr = sizing::best_k(bits_per_key).and_then(|k| sizing::fpr(bits_per_key, k));
        fpr.map(|fpr| (bits_per_key, fpr.log10()))
    });
    let model = line("bloomline's model", model.collect::<Result<_, _>>()?);
    lines.push(Line { marks: Marks::None, ..model });
    let marks =
        [(BLOOMLINE, Marks::Rings), (ROCKSDB, Marks::Crosses), (SBBF, Marks::Dots), (FASTBLOOM, Marks::Dots)];
    for (contender, marks) in marks {
        let rates = results.rates.iter().filter(|rate| rate.contender == contender);
        let points = rates.map(|rate| (rate.bits_per_key, rate.fpr().log10())).collect();
        lines.push(Line { is_joined: false, marks, ..line(contender, points) });
    }
    plot(
        path,
        "Measured false-positive rate, 1 MiB, each filter with the k that its library chooses",
        &Axis { title: "bits per key", range: 5.5..24.5, ticks: 20, label: &|x| x.to_string() },
        &Axis {
            title: "false-positive rate",
            range: range_of(&lines, 0.1),
            ticks: 6,
            label: &|y| format!("{} %", 10_f64.powf(y + 2.0).max(1e-9)),
        },
        &lines,
    )
}

fn nanoseconds(lines: &[Line]) -> Axis<'static> {
    let range = range_of(lines, 0.2);
    Axis { title: "nanoseconds per lookup", range, ticks: 10, label: &power_of_two }
}

fn power_of_two(exponent: f64) -> String {
    if exponent == exponent.round() { exponent.exp2().to_string() } else { String::new() }
}

fn line(name: &str, points: Vec<(f64, f64)>) -> Line {
    let color = match name {
        BLOOMLINE => RGBColor(213, 62, 0),
        BLOOMLINE_BATCH => RGBColor(230, 140, 0),
        ROCKSDB => RGBColor(0, 100, 180),
        ROCKSDB_DEBIAN => RGBColor(110, 170, 220),
        SBBF => RGBColor(0, 145, 105),
        FASTBLOOM => RGBColor(130, 60, 160),
        XORF => RGBColor(150, 110, 60),
        "bloomcraft" => RGBColor(60, 150, 170),
        "broomfilter" => RGBColor(150, 40, 90),
        "bloomfilter" => RGBColor(110, 120, 40),
        _ => RGBColor(120, 120, 120),
    };
    Line { name: name.to_owned(), color, points, is_joined: true, marks: Marks::Dots }
}

fn range_of(lines: &[Line], margin: f64) -> std::ops::Range<f64> {
    let values = || lines.iter().flat_map(|line| &line.points).map(|point| point.1);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    if least.is_finite() { least - margin..most + margin } else { 0.0..1.0 }
}

fn plot(path: &Path, title: &str, x: &Axis, y: &Axis, lines: &[Line]) -> Result<()> {
    draw(path, title, x, y, lines).map_err(|error| anyhow!("cannot draw {}: {error}", path.display()))
}

fn draw(
    path: &Path,
    title: &str,
    x: &Axis,
    y: &Axis,
    lines: &[Line],
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&PANEL)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(14)
        .margin_right(LABELS_WIDTH)
        .caption(title, ("sans-serif", 19, &INK))
        .x_label_area_size(48)
        .y_label_area_size(66)
        .build_cartesian_2d(x.range.clone(), y.range.clone())?;
    chart
        .configure_mesh()
        .x_labels(x.ticks)
        .y_labels(y.ticks)
        .x_label_formatter(&|&value| (x.label)(value))
        .y_label_formatter(&|&value| (y.label)(value))
        .x_desc(x.title)
        .y_desc(y.title)
        .label_style(("sans-serif", 14, &INK))
        .axis_desc_style(("sans-serif", 15, &INK))
        .axis_style(INK)
        .bold_line_style(GRID)
        .light_line_style(FAINT_GRID)
        .max_light_lines(0)
        .draw()?;
    for line in lines.iter().rev() {
        let width = if [BLOOMLINE, BLOOMLINE_BATCH].contains(&line.name.as_str()) { 3 } else { 2 };
        if line.is_joined {
            chart
                .draw_series(LineSeries::new(line.points.iter().copied(), line.color.stroke_width(width)))?;
        }
        let points = line.points.iter().copied();
        match line.marks {
            Marks::None => (),
            Marks::Dots => {
                chart.draw_series(points.map(|point| Circle::new(point, 3, line.color.filled())))?;
            }
            Marks::Rings => {
                chart.draw_series(points.map(|point| Circle::new(point, 5, line.color.stroke_width(2))))?;
            }
            Marks::Crosses => {
                chart.draw_series(points.map(|point| Cross::new(point, 3, line.color.stroke_width(2))))?;
            }
        }
    }
    draw_labels(&root, &chart, lines)?;
    root.present()?;
    Ok(())
}

/// The name of each line beside its last point, or as close to it as the other names leave room.
fn draw_labels<'a>(
    root: &Area<'a>,
    chart: &Chart<'a>,
    lines: &[Line],
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let left = SIZE.0 as i32 - LABELS_WIDTH + 14;
    let mut labels: Vec<((i32, i32), i32, &Line)> = Vec::new();
    for line in lines {
        if let Some(last) = line.points.last() {
            let (x, y) = chart.backend_coord(last);
            labels.push(((x, y), y, line));
        }
    }
    labels.sort_by_key(|label| label.1);
    // Down where they would overlap, then up from the bottom edge.
    for i in 1..labels.len() {
        labels[i].1 = labels[i].1.max(labels[i - 1].1 + LABEL_HEIGHT);
    }
    let mut lowest = SIZE.1 as i32 - 70;
    for label in labels.iter_mut().rev() {
        label.1 = label.1.min(lowest);
        lowest = label.1 - LABEL_HEIGHT;
    }
    for ((x, y), label_y, line) in labels {
        let leader = [(x + 5, y), (left - 3, label_y)];
        root.draw(&PathElement::new(leader, line.color.mix(0.45).stroke_width(1)))?;
        let style = ("sans-serif", 14).into_font().color(&line.color).pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new(line.name.clone(), (left, label_y), style))?;
    }
    Ok(())
}
