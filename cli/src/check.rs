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

/// Print the keys that are possibly in a filter
#[derive(Args)]
#[command(after_help = "\
Like `grep -F -x -f KEYS`, with the filter in place of the keys. Prints every
line that is among the keys, and some that are not: a fraction of them equal to
the filter's false-positive rate, which `bloomline info` shows. With -v, prints
only lines that are definitely absent from the keys, all but that fraction of
them.

The whole filter is read first to verify its checksum, unless --no-verify is
given. Exit status: 0 if a line was selected, 1 if none was, 2 on error.

Examples:
  bloomline check keys.bloom lines.txt
  bloomline check -v seen.bloom today.txt.zst >new.txt
  bloomline check --integers ids.bloom ids.txt
  cut -f1 events.tsv | bloomline check -c banned.bloom")]
pub struct Arguments {
    /// Filter to look keys up in
    #[arg(value_name = "FILTER")]
    filter: PathBuf,
    #[command(flatten)]
    input: Input,
    /// Print the keys that are definitely absent instead
    #[arg(short = 'v', long)]
    invert_match: bool,
    /// Print only the number of selected keys
    #[arg(short, long)]
    count: bool,
    /// Skip checksum verification
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
        chunk.hash(filter.seed(), &mut hashes)?;
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
