//! `bloomline fold`
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::filter_file::FilterFile;
use crate::numbers::{self, percent, size};
use crate::output::{NewFile, note};

/// Make a filter smaller, without its keys
#[derive(Args)]
#[command(after_help = "\
The file is, bit for bit, the filter that would have been built with so many
times fewer blocks.

Examples:
  bloomline fold -o small.bloom --factor 4 large.bloom
  bloomline fold -o keys.bloom --fpr 1% keys.bloom      as small as that rate allows, in place")]
pub struct Arguments {
    /// The file to write; the filter may be replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// How many times smaller: a divisor of the number of blocks
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true, required_unless_present = "fpr")]
    factor: Option<usize>,
    /// As small as keeps false positives at or below RATE, such as 0.01 or 1%
    #[arg(long, value_name = "RATE", value_parser = numbers::share, allow_negative_numbers = true, conflicts_with = "factor")]
    fpr: Option<f64>,
    #[arg(value_name = "FILTER")]
    filter: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let output = NewFile::create(&arguments.output)?;
    let mut filter = FilterFile::open(&arguments.filter)?.verified()?.to_owned();
    let before = filter.n_blocks();
    let folded = match (arguments.factor, arguments.fpr) {
        (Some(factor), _) => filter.fold(factor),
        (None, Some(fpr)) => filter.shrink_to_fpr(fpr),
        (None, None) => Ok(()),
    };
    folded.with_context(|| arguments.filter.display().to_string())?;
    if let Some(fpr) = arguments.fpr.filter(|&fpr| filter.estimated_fpr() > fpr) {
        bail!(
            "{}: its rate is {} already, not {} (build a larger filter)",
            arguments.filter.display(),
            percent(filter.estimated_fpr()),
            percent(fpr)
        );
    }
    output.write(|file| filter.write_standalone_to(file))?;
    note(format_args!(
        "{}: folded by {}, {}, false positives {}",
        arguments.output.display(),
        before / filter.n_blocks(),
        size(filter.size_bytes() as u64),
        percent(filter.estimated_fpr())
    ));
    Ok(ExitCode::SUCCESS)
}
