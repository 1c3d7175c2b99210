//! `bloomline check`
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use bloomline::variants::{CountingBloomFilter, ScalableBloomFilter, StandardBloomFilter};
use bloomline::{BloomFilter, BloomView};
use clap::Args;

use crate::filter_file::{Content, FilterFile};
use crate::input::{Input, is_stdin};
use crate::keys::Keys;
use crate::output::Printer;
use crate::state::{Filter, State};

/// Print the lines whose keys are possibly in a filter
#[derive(Args)]
#[command(after_help = "\
Like `grep -F -x -f KEYS`, with the filter in place of the keys. Prints every
line that is among the keys, and some that are not: a fraction of them equal to
the filter's false-positive rate, which `bloomline info` shows. With -v, prints
only lines that are definitely absent from the keys, all but that fraction of
them.

The filter may be of any kind, and a state of dedup too. With -c and several
files, each count follows the name of its file.

The whole filter is read first to verify its checksum. With --no-verify, a
blocked filter, as build makes it, is not. Exit status: 0 if a line was
selected, 1 if none was, 2 on error.

Examples:
  bloomline check keys.bloom lines.txt
  bloomline check -v seen.bloom today.txt.zst >new.txt
  bloomline check --integers ids.bloom ids.txt
  cut -f1 events.tsv | bloomline check -c banned.bloom")]
pub struct Arguments {
    /// Filter to look keys up in; standard input if -
    #[arg(value_name = "FILTER")]
    filter: PathBuf,
    #[command(flatten)]
    input: Input,
    /// Print the lines whose keys are definitely absent instead
    #[arg(short = 'v', long)]
    invert_match: bool,
    /// Print only the number of selected lines, of each file
    #[arg(short, long)]
    count: bool,
    /// Skip checksum verification
    #[arg(long)]
    no_verify: bool,
}

/// What every kind of filter can do, by hash.
trait Lookups {
    fn seed(&self) -> u64;
    fn contains_batch(&self, hashes: &[u64], found: &mut [bool]);
}

macro_rules! lookups {
    ($($filter:ty),*) => {
        $(impl Lookups for $filter {
            fn seed(&self) -> u64 {
                self.seed()
            }

            fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
                self.contains_batch(hashes, found);
            }
        })*
    };
}

lookups!(BloomView<'_>, BloomFilter, StandardBloomFilter, CountingBloomFilter, ScalableBloomFilter);

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let input = &arguments.input;
    ensure!(
        !is_stdin(&arguments.filter)
            || !input.files.is_empty() && !input.files.iter().any(|file| is_stdin(file)),
        "the filter and the lines cannot both come from standard input (name the file of one)"
    );
    let file = FilterFile::open(&arguments.filter)?;
    let filter: Box<dyn Lookups> = match if arguments.no_verify { file.content()? } else { file.verified()? }
    {
        Content::Blocked(view) => Box::new(view),
        Content::Standard(filter) => Box::new(filter),
        Content::Counting(filter) => Box::new(filter),
        Content::Scalable(filter) => Box::new(filter),
        Content::State(State { filter: Filter::Fixed(filter), .. }) => Box::new(filter),
        Content::State(State { filter: Filter::Growing(filter), .. }) => Box::new(filter),
        other => return Err(file.cannot(&other, "be queried", "a filter, as `bloomline build` makes it")),
    };
    let mut printer = Printer::new();
    let mut count = 0;
    if arguments.count && input.files.len() > 1 {
        for file in &input.files {
            let only = Input { files: vec![file.clone()], ..input.clone() };
            let of_file = select(arguments, &only, &*filter, &mut printer)?;
            let name = if is_stdin(file) { "(standard input)".into() } else { file.display().to_string() };
            printer.print(format!("{name}:{of_file}\n"))?;
            count += of_file;
        }
    } else {
        count = select(arguments, input, &*filter, &mut printer)?;
        if arguments.count {
            printer.print(format!("{count}\n"))?;
        }
    }
    Ok(if count > 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Prints the selected lines, unless they are only counted, and returns their number.
fn select(arguments: &Arguments, input: &Input, filter: &dyn Lookups, printer: &mut Printer) -> Result<u64> {
    let (mut hashes, mut found, mut selected) = (Vec::new(), Vec::new(), Vec::new());
    let mut count = 0;
    let mut keys = Keys::new(input, "checking");
    while let Some(chunk) = keys.next_chunk()? {
        chunk.hash(filter.seed(), &mut hashes)?;
        found.resize(hashes.len(), false);
        filter.contains_batch(&hashes, &mut found);
        selected.clear();
        count += chunk.select(|i| found[i] != arguments.invert_match, &mut selected)? as u64;
        if !arguments.count {
            printer.print(&selected)?;
        }
    }
    Ok(count)
}
