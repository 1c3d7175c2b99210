//! `bloomline merge`
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::filter_file::FilterFile;
use crate::numbers::percent;
use crate::output::{NewFile, note};

/// Merge filters into one that has all their keys
#[derive(Args)]
#[command(after_help = "\
The filters must have the same number of blocks, k and seed: build them with
the same --keys and --fpr. The result is, bit for bit, the filter built from
all their keys.

Example:
  bloomline merge -o week.bloom monday.bloom tuesday.bloom wednesday.bloom")]
pub struct Arguments {
    /// Filter file to write; may be one of the filters
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Filters to merge
    #[arg(value_name = "FILTER", num_args = 2.., required = true)]
    filters: Vec<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let output = NewFile::create(&arguments.output)?;
    let (first, others) = arguments.filters.split_first().expect("clap requires two");
    let mut merged = FilterFile::open(first)?.filter()?;
    for path in others {
        let other = FilterFile::open(path)?;
        merged.union_with(&other.filter()?).map_err(|error| other.mismatch(first, error))?;
    }
    output.write(|file| merged.write_standalone_to(file))?;
    let fpr = merged.estimated_fpr();
    note(format_args!("{}: FPR {}", arguments.output.display(), percent(fpr)));
    Ok(ExitCode::SUCCESS)
}
