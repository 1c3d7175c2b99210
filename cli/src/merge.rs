//! `bloomline merge`
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::Args;

use crate::filter_file::FilterFile;
use crate::numbers::percent;
use crate::output::{NewFile, note};

/// Make one filter of the keys of several
#[derive(Args)]
#[command(after_help = "\
The filters must have as many blocks, k and seed as each other: build them
with the same --keys and the same rate. The file is, bit for bit, the filter
that all their keys make together.

Example:
  bloomline merge -o week.bloom monday.bloom tuesday.bloom wednesday.bloom")]
pub struct Arguments {
    /// The file to write; one of the filters may be replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The filters
    #[arg(value_name = "FILTER", num_args = 2.., required = true)]
    filters: Vec<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let output = NewFile::create(&arguments.output)?;
    let (first, others) = arguments.filters.split_first().expect("clap asks for two");
    let mut merged = FilterFile::open(first)?.verified()?.to_owned();
    for path in others {
        let other = FilterFile::open(path)?.verified()?.to_owned();
        let united = merged.union_with(&other);
        united.map_err(|error| {
            anyhow!(
                "{}: not as {}: {error} (build them with the same --keys and rate)",
                path.display(),
                first.display()
            )
        })?;
    }
    output.write(|file| merged.write_standalone_to(file))?;
    let fpr = merged.estimated_fpr();
    note(format_args!("{}: false positives {}", arguments.output.display(), percent(fpr)));
    Ok(ExitCode::SUCCESS)
}
