//! Charts as SVG, all in one style. They have a light panel, so that they are readable on dark pages too, and are so
//! narrow that their text is readable on a phone.

use std::ops::Range;

use anyhow::Result;
use plotters::coord::Shift;
use plotters::prelude::*;
pub use plotters::style::RGBColor;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// plotters draws at whole pixels, at which lines would have kinks. So all lengths are in tenths of a pixel.
const PIXEL: i32 = 10;
const WIDTH: i32 = 640 * PIXEL;
const HEIGHT: i32 = 480 * PIXEL;
const MARGIN: i32 = 14 * PIXEL;
const FONT: i32 = 16 * PIXEL;
const LINE_HEIGHT: i32 = 21 * PIXEL;
/// The mean width of a letter in a wide font.
const LETTER: i32 = 17 * PIXEL / 2;

const PANEL: RGBColor = RGBColor(252, 252, 252);
const INK: RGBColor = RGBColor(40, 40, 40);
const GRID: RGBColor = RGBColor(222, 222, 222);
// These can be told apart with colour blindness too. The first two are for bloomline.
pub const ORANGE: RGBColor = RGBColor(213, 62, 0);
pub const AMBER: RGBColor = RGBColor(230, 140, 0);
pub const BLUE: RGBColor = RGBColor(0, 100, 180);
pub const SKY: RGBColor = RGBColor(110, 170, 220);
pub const GREEN: RGBColor = RGBColor(0, 145, 105);
pub const PURPLE: RGBColor = RGBColor(130, 60, 160);
pub const BROWN: RGBColor = RGBColor(150, 110, 60);
pub const GREY: RGBColor = RGBColor(120, 120, 120);

/// 1234567 as 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// Values on a logarithmic axis are logarithms.
pub struct Axis<'a> {
    pub title: &'a str,
    pub range: Range<f64>,
    /// The most, at round numbers.
    pub n_ticks: usize,
    pub label: fn(f64) -> String,
}

impl<'a> Axis<'a> {
    /// The vertical axis of lines, with a tick at each whole number.
    pub fn exponents(title: &'a str, lines: &[Line], label: fn(f64) -> String) -> Self {
        let values = || lines.iter().flat_map(|line| &line.points).map(|point| point.1);
        let range = values().fold(f64::INFINITY, f64::min) - 0.1..values().fold(f64::MIN, f64::max) + 0.1;
        Self { title, n_ticks: (range.end - range.start) as usize + 1, range, label }
    }
}

pub struct Line<'a> {
    pub name: &'a str,
    pub color: RGBColor,
    pub points: Vec<(f64, f64)>,
    /// 0 if the points are not joined.
    pub width: u32,
    /// The radius of the points. Those of 5 are rings, distinguishable where others overlap them.
    pub dot: u32,
}

pub struct Chart<'a> {
    /// Its first line is bold.
    pub title: &'a str,
    pub x: Axis<'a>,
    pub y: Axis<'a>,
    /// The left edge, the right edge and the height of each.
    pub bars: Vec<(f64, f64, f64)>,
    /// The first is in front.
    pub lines: Vec<Line<'a>>,
    /// A position on the horizontal axis, and its name.
    pub mark: Option<(f64, &'a str)>,
}

impl Chart<'_> {
    pub fn svg(&self) -> Result<String> {
        let Self { x, y, .. } = self;
        drawn(HEIGHT, self.title, |root, top| {
            root.draw_text(y.title, &text(HPos::Left, VPos::Top), (MARGIN, top))?;
            let mut chart = ChartBuilder::on(root)
                .margin(MARGIN)
                .margin_top(top + LINE_HEIGHT + MARGIN)
                .margin_right(widest(self.lines.iter().map(|line| line.name)) + MARGIN + 2 * LETTER)
                .x_label_area_size(50 * PIXEL)
                .y_label_area_size(8 * LETTER)
                .build_cartesian_2d(x.range.clone(), y.range.clone())?;
            chart
                .configure_mesh()
                .x_labels(x.n_ticks)
                .y_labels(y.n_ticks)
                .x_label_formatter(&|&number| (x.label)(number))
                .y_label_formatter(&|&number| (y.label)(number))
                .x_desc(x.title)
                .label_style(text(HPos::Left, VPos::Top))
                .axis_desc_style(text(HPos::Left, VPos::Top))
                .axis_style(stroke(INK, 1))
                .bold_line_style(stroke(GRID, 1))
                .set_all_tick_mark_size(4 * PIXEL)
                .max_light_lines(0)
                .draw()?;
            let Range { start: floor, end: ceiling } = y.range;
            let bar = |&(left, right, height)| Rectangle::new([(left, floor), (right, height)], SKY.filled());
            chart.draw_series(self.bars.iter().map(bar))?;
            for Line { color, points, width, dot, .. } in self.lines.iter().rev() {
                if *width > 0 {
                    chart.draw_series(LineSeries::new(points.iter().copied(), stroke(*color, *width)))?;
                }
                if *dot > 0 {
                    let style = if *dot < 5 { color.filled() } else { stroke(*color, 2) };
                    let dot = |&point| Circle::new(point, dot * PIXEL as u32, style);
                    chart.draw_series(points.iter().map(dot))?;
                }
            }
            if let Some((x, name)) = self.mark {
                chart.draw_series([PathElement::new([(x, floor), (x, ceiling)], stroke(INK, 1))])?;
                let (right, down) = chart.plotting_area().map_coordinate(&(x, floor));
                root.draw_text(name, &text(HPos::Left, VPos::Bottom), (right + LETTER, down - LETTER))?;
            }
            let pixel = |point: &(f64, f64)| chart.plotting_area().map_coordinate(point);
            let (edge, bottom) = pixel(&(x.range.end, floor));
            let mut names = Vec::new();
            for line in &self.lines {
                // At the median of the last twenty-fifth, because points can scatter.
                let last = line.points.iter().rev().take(line.points.len() / 25 + 1);
                let mut last: Vec<_> = last.map(pixel).collect();
                let Some(&(right, _)) = last.first() else { continue };
                last.sort_by_key(|point| point.1);
                let y = last[last.len() / 2].1;
                names.push((y, (right + 6 * PIXEL, y), line));
            }
            names.sort_by_key(|name| name.0);
            // Names that would overlap repel each other until there is room.
            for _ in 0..200 {
                for i in 1..names.len() {
                    let overlap = (names[i - 1].0 + LINE_HEIGHT - names[i].0).max(0);
                    names[i - 1].0 -= overlap / 2;
                    names[i].0 = (names[i].0 + overlap / 2).min(bottom);
                }
            }
            for (y, start, line) in names {
                let path = [start, (edge + LETTER, y), (edge + LETTER * 3 / 2, y)];
                root.draw(&PathElement::new(path, stroke(line.color, 1)))?;
                root.draw_text(line.name, &text(HPos::Left, VPos::Center), (edge + 2 * LETTER, y))?;
            }
            Ok(())
        })
    }
}

/// Quantities of the same things, each quantity as a panel of bars. A row has the name of a thing, and its quantities.
pub fn bars<const N: usize>(
    title: &str,
    panels: [&str; N],
    rows: &[(&str, RGBColor, [f64; N])],
) -> Result<String> {
    const ROW: i32 = 34 * PIXEL;
    let height = 5 * MARGIN / 2 + LINE_HEIGHT * (title.lines().count() + 1) as i32 + ROW * rows.len() as i32;
    drawn(height, title, |root, top| {
        let names = MARGIN + widest(rows.iter().map(|row| row.0));
        let width = (WIDTH - MARGIN - names) / N as i32;
        for (i, panel) in panels.into_iter().enumerate() {
            let left = names + width * i as i32;
            root.draw_text(panel, &text(HPos::Left, VPos::Top), (left, top))?;
            let most = rows.iter().map(|row| row.2[i]).fold(0.0, f64::max);
            let middles = (top + LINE_HEIGHT + ROW / 2..).step_by(ROW as usize);
            for ((name, color, numbers), y) in rows.iter().zip(middles) {
                let number = numbers[i];
                let label =
                    if number < 10.0 { format!("{number:.1}") } else { grouped(number.round() as u64) };
                let right = left + (f64::from(width - 7 * LETTER) * number / most) as i32;
                let bar = [(left, y - ROW / 3), (right, y + ROW / 3)];
                root.draw(&Rectangle::new(bar, color.filled()))?;
                root.draw_text(&label, &text(HPos::Left, VPos::Center), (right + LETTER / 2, y))?;
                if i == 0 {
                    root.draw_text(name, &text(HPos::Right, VPos::Center), (left - LETTER / 2, y))?;
                }
            }
        }
        Ok(())
    })
}

type Root<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// `draw` begins below the title.
fn drawn(height: i32, title: &str, draw: impl FnOnce(&Root, i32) -> Result<()>) -> Result<String> {
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (WIDTH as u32, height as u32)).into_drawing_area();
    root.fill(&PANEL)?;
    let (mut top, mut font) = (MARGIN, font(FontStyle::Bold));
    for line in title.lines() {
        root.draw_text(line, &font, (MARGIN, top))?;
        top += LINE_HEIGHT + PIXEL * 2;
        font = text(HPos::Left, VPos::Top);
    }
    draw(&root, top + MARGIN / 2)?;
    root.present()?;
    drop(root);
    let size = |unit| format!(r#"width="{}" height="{}""#, WIDTH / unit, height / unit);
    Ok(svg.replacen(&size(1), &size(PIXEL), 1))
}

fn font<'a>(style: FontStyle) -> TextStyle<'a> {
    // plotters divides it.
    ("sans-serif", 1.24 * f64::from(FONT), style).into_font().color(&INK)
}

fn text<'a>(right: HPos, down: VPos) -> TextStyle<'a> {
    font(FontStyle::Normal).pos(Pos::new(right, down))
}

fn stroke(color: RGBColor, width: u32) -> ShapeStyle {
    color.stroke_width(width * PIXEL as u32)
}

fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> i32 {
    texts.map(|text| LETTER * text.chars().count() as i32).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of an attribute, of each element of a kind.
    fn numbers(svg: &str, element: &str, attribute: &str) -> Vec<Vec<i32>> {
        let elements = svg.split('<').filter(|text| text.starts_with(element));
        let values = elements.filter_map(|text| text.split_once(attribute)?.1.split('"').nth(1));
        values.map(|text| text.split([' ', ',']).filter_map(|number| number.parse().ok()).collect()).collect()
    }

    #[test]
    fn lines_have_no_kinks_and_names_do_not_overlap() {
        let points = || (0..=100).map(|x| (f64::from(x), f64::from(x))).collect();
        let line = |name| Line { name, color: ORANGE, points: points(), width: 2, dot: 0 };
        let lines = ["one", "two", "three"].map(line).into();
        let axis =
            |end| Axis { title: "axis", range: 0.0..end, n_ticks: 5, label: |number| grouped(number as u64) };
        let chart = Chart { title: "", x: axis(100.0), y: axis(1000.0), bars: Vec::new(), lines, mark: None };
        let svg = chart.svg().unwrap();
        assert!(svg.contains(r#"width="640" height="480" viewBox="0 0 6400 4800""#) && svg.contains("1,000"));
        let path = numbers(&svg, "polyline", " points=").into_iter().find(|path| path.len() == 202).unwrap();
        for (i, point) in path.chunks_exact(2).enumerate() {
            let straight = path[1] + (path[201] - path[1]) * i as i32 / 100;
            assert!(point[1].abs_diff(straight) <= 2, "{path:?}");
        }
        let names: Vec<i32> = numbers(&svg, "text", " y=").into_iter().rev().take(3).flatten().collect();
        assert!(names.windows(2).all(|two| two[0] - two[1] >= LINE_HEIGHT - PIXEL), "{names:?}");
    }
}
