//! `bloomline fold`
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::filter_file::FilterFile;
use crate::numbers::{self, percent, size};
use crate::output::{NewFile, note};

/// Shrink a filter without its keys
#[derive(Args)]
#[command(after_help = "\
The result is, bit for bit, the filter built from the same keys with 1/N of the
blocks.

Examples:
  bloomline fold -o small.bloom --factor 4 large.bloom
  bloomline fold -o keys.bloom --fpr 1% keys.bloom      in place")]
pub struct Arguments {
    /// Filter file to write; may be the filter itself
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Fold to 1/N of the size; N must divide the number of blocks
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true, required_unless_present = "fpr")]
    factor: Option<usize>,
    /// Fold as far as the false-positive rate stays at or below FPR, e.g. 1%
    #[arg(long, value_name = "FPR", value_parser = numbers::share, allow_negative_numbers = true, conflicts_with = "factor")]
    fpr: Option<f64>,
    /// Filter to shrink
    #[arg(value_name = "FILTER")]
    filter: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let output = NewFile::create(&arguments.output)?;
    let mut filter = FilterFile::open(&arguments.filter)?.filter()?;
    let before = filter.n_blocks();
    let folded = match (arguments.factor, arguments.fpr) {
        (Some(factor), _) => filter.fold(factor),
        (None, Some(fpr)) => filter.shrink_to_fpr(fpr),
        (None, None) => Ok(()),
    };
    folded.with_context(|| arguments.filter.display().to_string())?;
    if let Some(fpr) = arguments.fpr.filter(|&fpr| filter.estimated_fpr() > fpr) {
        bail!(
            "{}: FPR is already {}, above {} (build a larger filter)",
            arguments.filter.display(),
            percent(filter.estimated_fpr()),
            percent(fpr)
        );
    }
    output.write(|file| filter.write_standalone_to(file))?;
    note(format_args!(
        "{}: folded by {}, {}, FPR {}",
        arguments.output.display(),
        before / filter.n_blocks(),
        size(filter.size_bytes() as u64),
        percent(filter.estimated_fpr())
    ));
    Ok(ExitCode::SUCCESS)
}
