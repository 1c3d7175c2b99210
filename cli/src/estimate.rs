//! `bloomline estimate`
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::Args;

use crate::filter_file::FilterFile;
use crate::numbers;
use crate::output::Printer;

/// Estimate the number of keys in two filters, in their union and in their intersection
#[derive(Args)]
#[command(after_help = "\
The filters must have the same number of blocks, k and seed: build them with
the same --keys and --fpr. The number after ± is the standard error: two times
in three, the estimate is off by less.

Example:
  bloomline estimate monday.bloom tuesday.bloom")]
pub struct Arguments {
    #[arg(value_name = "FILTER")]
    first: PathBuf,
    #[arg(value_name = "FILTER")]
    second: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (first, second) = (FilterFile::open(&arguments.first)?, FilterFile::open(&arguments.second)?);
    let (first, second) = (first.verified()?.to_owned(), second.verified()?.to_owned());
    let [first_name, second_name] =
        [&arguments.first, &arguments.second].map(|path| path.display().to_string());
    let mismatch = |error| {
        anyhow!(
            "{second_name}: does not match {first_name}: {error} (build both with the same --keys and --fpr)"
        )
    };
    let rows = [
        (&*first_name, first.estimated_keys()),
        (&second_name, second.estimated_keys()),
        ("union", first.estimated_union(&second).map_err(mismatch)?),
        ("intersection", first.estimated_intersection(&second).map_err(mismatch)?),
    ];
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let row = |(name, keys)| format!("{name:width$}  {}\n", numbers::estimate(keys));
    Printer::new().print(rows.map(row).concat())?;
    Ok(ExitCode::SUCCESS)
}
