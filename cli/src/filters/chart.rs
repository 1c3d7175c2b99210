//! Draws charts. They have a light panel, so that they are readable on dark pages too.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, ensure};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::output::{NewFile, is_stdout};

const SIZE: (u32, u32) = (860, 480);
const PANEL: RGBColor = RGBColor(252, 252, 252);
const INK: RGBColor = RGBColor(40, 40, 40);
const GRID: RGBColor = RGBColor(222, 222, 222);
/// These two can be told apart with colour blindness too.
pub const ORANGE: RGBColor = RGBColor(213, 62, 0);
pub const BLUE: RGBColor = RGBColor(0, 100, 180);

/// Refuses a file whose name promises another format. A name without an ending is accepted, because devices have none.
pub fn svg(path: PathBuf) -> Result<PathBuf, String> {
    match path.extension() {
        Some(ending) if !ending.eq_ignore_ascii_case("svg") => {
            Err(format!("charts are SVG (name it {})", path.with_extension("svg").display()))
        }
        _ => Ok(path),
    }
}

/// Whether the chart is printed instead of text. Fails if JSON would be printed too.
pub fn is_printed(plot: Option<&PathBuf>, json: bool) -> Result<bool> {
    let is_printed = plot.is_some_and(|plot| is_stdout(plot));
    ensure!(!json || !is_printed, "--json: standard output is for the chart (write the chart to a file)");
    Ok(is_printed)
}

pub struct Axis<'a> {
    pub title: &'a str,
    pub range: Range<f64>,
    /// Maximum number of labels along it.
    pub n_labels: usize,
    pub label: &'a dyn Fn(f64) -> String,
}

pub struct Line {
    pub name: String,
    pub color: RGBColor,
    pub points: Vec<(f64, f64)>,
}

/// Left edge, right edge and height.
pub type Bar = (f64, f64, f64);

pub struct Chart<'a> {
    pub title: &'a str,
    pub x: Axis<'a>,
    pub y: Axis<'a>,
    /// With their name.
    pub bars: Option<(&'a str, Vec<Bar>)>,
    pub lines: Vec<Line>,
    /// A labelled position on the x axis.
    pub mark: Option<(f64, &'a str)>,
}

impl Chart<'_> {
    pub fn write(&self, path: &Path) -> Result<()> {
        let output = NewFile::create(path)?;
        let mut svg = String::new();
        self.draw(&mut svg).map_err(|error| anyhow!("{}: {error}", path.display()))?;
        output.write(|mut file| std::io::Write::write_all(&mut file, svg.as_bytes()))
    }

    fn draw(&self, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        root.fill(&PANEL)?;
        let mut chart = ChartBuilder::on(&root)
            .margin(14)
            .margin_right(28)
            .caption(self.title, ("sans-serif", 19, &INK))
            .x_label_area_size(48)
            .y_label_area_size(92)
            .build_cartesian_2d(self.x.range.clone(), self.y.range.clone())?;
        chart
            .configure_mesh()
            .x_labels(self.x.n_labels)
            .y_labels(self.y.n_labels)
            .x_label_formatter(&|&value| (self.x.label)(value))
            .y_label_formatter(&|&value| (self.y.label)(value))
            .x_desc(self.x.title)
            .y_desc(self.y.title)
            .label_style(("sans-serif", 14, &INK))
            .axis_desc_style(("sans-serif", 15, &INK))
            .axis_style(INK)
            .bold_line_style(GRID)
            .max_light_lines(0)
            .draw()?;
        if let Some((name, bars)) = &self.bars {
            let bar = |&(left, right, height): &Bar| {
                Rectangle::new([(left, self.y.range.start), (right, height)], BLUE.mix(0.45).filled())
            };
            chart
                .draw_series(bars.iter().map(bar))?
                .label(*name)
                .legend(|(x, y)| Rectangle::new([(x, y - 5), (x + 18, y + 5)], BLUE.mix(0.45).filled()));
        }
        for line in &self.lines {
            let style = line.color.stroke_width(3);
            chart
                .draw_series(LineSeries::new(line.points.iter().copied(), style))?
                .label(&line.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        }
        if let Some((x, name)) = self.mark {
            let Range { start, end } = self.y.range;
            chart.draw_series([PathElement::new([(x, start), (x, end)], INK.stroke_width(1))])?;
            let style = ("sans-serif", 14).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Bottom));
            let place = (x, start + 0.03 * (end - start));
            chart.draw_series([EmptyElement::at(place) + Text::new(name.to_owned(), (6, 0), style)])?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .margin(12)
            .label_font(("sans-serif", 14, &INK))
            .background_style(PANEL.mix(0.9))
            .border_style(GRID)
            .draw()?;
        root.present()?;
        Ok(())
    }
}
