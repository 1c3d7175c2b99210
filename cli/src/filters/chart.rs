//! Writes charts.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use bloomline_chart::Chart;

use crate::output::{NewFile, is_stdout};

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
    ensure!(!json || !is_printed, "--as-json: standard output is for the chart (write the chart to a file)");
    Ok(is_printed)
}

pub fn write(chart: &Chart, path: &Path) -> Result<()> {
    let output = NewFile::create(path)?;
    let svg = chart.svg().with_context(|| path.display().to_string())?;
    output.write(|mut file| std::io::Write::write_all(&mut file, svg.as_bytes()))
}
