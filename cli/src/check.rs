//! `bloomline check`
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::filter_file::FilterFile;
use crate::input::Input;
use crate::keys::Keys;
use crate::output::Printer;

/// Print the keys that may be in a filter
#[derive(Args)]
#[command(after_help = "\
As `grep -F -x -f KEYS` with the filter in place of the keys: every line that
is among them is printed, and of the others a share that `bloomline info`
tells. With -v the others are printed, but for that share, and never one that
is among them. Exit status: 0 if a line was selected, 1 if none was, 2 if
something went wrong.

Examples:
  bloomline check keys.bloom lines.txt
  bloomline check -v seen.bloom today.txt.zst >new.txt
  cut -f1 events.tsv | bloomline check -c banned.bloom")]
pub struct Arguments {
    /// The filter
    #[arg(value_name = "FILTER")]
    filter: PathBuf,
    #[command(flatten)]
    input: Input,
    /// Print the keys that are not in the filter
    #[arg(short = 'v', long)]
    invert_match: bool,
    /// Print only how many there are
    #[arg(short, long)]
    count: bool,
    /// Do not see first, by reading all of it, whether the filter is damaged
    #[arg(long)]
    no_verify: bool,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let file = FilterFile::open(&arguments.filter)?;
    let filter = if arguments.no_verify { file.view()? } else { file.verified()? };
    let mut printer = Printer::new();
    let (mut hashes, mut found, mut selected) = (Vec::new(), Vec::new(), Vec::new());
    let mut count = 0_u64;
    let mut keys = Keys::new(&arguments.input, "");
    while let Some(chunk) = keys.next_chunk()? {
        chunk.hash(filter.seed(), &mut hashes);
        found.resize(hashes.len(), false);
        filter.contains_batch(&hashes, &mut found);
        selected.clear();
        let n = chunk.select(|i| found[i] != arguments.invert_match, &mut selected)?;
        count += n as u64;
        if !arguments.count {
            printer.print(&selected)?;
        }
    }
    if arguments.count {
        printer.print(format!("{count}\n"))?;
    }
    Ok(if count > 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
