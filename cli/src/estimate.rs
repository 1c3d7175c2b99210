//! `bloomline estimate`
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::filter_file::FilterFile;
use crate::numbers;
use crate::output::Printer;

/// Estimate the number of keys in two filters, their union and their intersection
#[derive(Args)]
#[command(after_help = "\
The filters must have the same number of blocks, k and seed: build them with
the same --keys and --fpr. The number after ± is the standard error: two times
in three, the estimate is off by less.

Example:
  bloomline estimate monday.bloom tuesday.bloom")]
pub struct Arguments {
    /// First filter
    #[arg(value_name = "FILTER")]
    first: PathBuf,
    /// Second filter
    #[arg(value_name = "FILTER")]
    second: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (first_file, second_file) =
        (FilterFile::open(&arguments.first)?, FilterFile::open(&arguments.second)?);
    let (first, second) = (first_file.filter()?, second_file.filter()?);
    let mismatch = |error| second_file.mismatch(&arguments.first, error);
    let rows = [
        (&*first_file.name, first.estimated_keys()),
        (&second_file.name, second.estimated_keys()),
        ("union", first.estimated_union(&second).map_err(mismatch)?),
        ("intersection", first.estimated_intersection(&second).map_err(mismatch)?),
    ];
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let row = |(name, keys)| format!("{name:width$}  {}\n", numbers::estimate(keys));
    Printer::new().print(rows.map(row).concat())?;
    Ok(ExitCode::SUCCESS)
}
