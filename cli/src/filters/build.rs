//! `bloomline build`
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use bloomline::{BloomFilter, FilterBuilder, Sizing, sizing};
use clap::Args;
use serde_json::json;

use crate::distinct;
use crate::filter_file::FilterFile;
use crate::guard::Output;
use crate::input::{Input, InputArguments};
use crate::keys::Keys;
use crate::numbers::{self, counted, grouped, percent, size};
use crate::output::{Printer, check_json, note};

/// Build a filter from keys
#[derive(Args)]
#[command(after_help = "\
Without --keys, the filter is sized for the distinct keys in the input. Files
are read twice, the first time to count the distinct keys: exactly up to
262,144, then to 0.2 %. A pipe is read once, and 8 bytes per key are kept in
memory until its end.

With --keys, input is read once, and memory use is the filter and a few
megabytes. The size is rounded up, by 1 % or one block at most, to one that
`bloomline fold` can divide. With --like, input is read once too, and the filter
can be merged and compared with FILTER.

The file is written under a temporary name and then renamed: it appears whole
or not at all. --json prints one object: file, bytes, blocks, k, seed, keys
(those read), known_keys (how many are distinct, or null if that was not
counted), estimated_keys, standard_error, fill_ratio, false_positive_rate and
requested_false_positive_rate.

Examples:
  bloomline build -o keys.bloom keys.txt.gz
  bloomline build -o keys.bloom --fpr 0.1% monday.txt tuesday.txt
  bloomline build -o tuesday.bloom --like monday.bloom tuesday.txt
  bloomline build -o users.bloom --column 3 --delimiter , events.csv
  zcat log.gz | bloomline build -o lines.bloom --keys 100M
  find . -print0 | bloomline build -0 -o names.bloom
  bloomline build --length 16 -o uuids.bloom uuids.bin")]
pub struct Arguments {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    input: InputArguments,
    /// Size the filter for N distinct keys, e.g. 1e9 or 250M, instead of counting them
    #[arg(long, value_name = "N", value_parser = numbers::count_from_1, allow_negative_numbers = true)]
    keys: Option<usize>,
    /// Target false-positive rate, e.g. 1%
    #[arg(long, value_name = "FPR", default_value = "1%", value_parser = numbers::share, allow_negative_numbers = true)]
    fpr: f64,
    /// Bits per key, instead of --fpr
    #[arg(long, value_name = "BITS", conflicts_with = "fpr", allow_negative_numbers = true)]
    bits_per_key: Option<f64>,
    /// Take the number of blocks, k and seed from FILTER, so that both can be merged
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["keys", "fpr", "bits_per_key"])]
    like: Option<PathBuf>,
    /// Print the summary as JSON, on standard output
    #[arg(long)]
    json: bool,
    /// Do not print the summary and its warning
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    // Wrong numbers and names are reported before the first key is read.
    let bits_per_key = arguments.bits_per_key.map_or_else(|| sizing::bits_per_key(arguments.fpr), Ok)?;
    let sizing_for = |keys| Sizing::for_bits_per_key(keys, bits_per_key);
    sizing_for(0)?;
    let empty = match (&arguments.like, arguments.keys) {
        (Some(path), _) => Some(empty_like(path)?),
        (None, Some(keys)) => Some(BloomFilter::with_sizing(sizing_for(keys)?.foldable())?),
        (None, None) => None,
    };
    check_json(arguments.json, &arguments.output.path)?;
    let (input, quiet) = (&arguments.input.resolve()?, arguments.quiet);
    if input.has(&arguments.output.path) {
        bail!(
            "{}: is an input, and the filter would replace it (choose another output)",
            arguments.output.path.display()
        );
    }
    // A filter without the keys of one file would call them absent.
    input.check()?;
    let output = arguments.output.create(&arguments.like)?;
    let (filter, n_keys, known_keys) = if let Some(empty) = empty {
        insert_all(input, empty, None, quiet)?
    } else if input.is_of_files() {
        let (distinct, read) = distinct::count(input, quiet);
        read?;
        let (known_keys, at_most) = (distinct.known(), distinct.at_most());
        insert_all(input, BloomFilter::with_sizing(sizing_for(at_most)?)?, known_keys, quiet)?
    } else {
        collect(input, FilterBuilder::with_bits_per_key(bits_per_key)?, quiet)?
    };
    output.write(|file| filter.write_standalone(file))?;
    let built = Built { arguments, filter, n_keys, known_keys };
    if arguments.json {
        Printer::new().print(built.json())?;
    } else if !arguments.quiet {
        built.say();
    }
    if !arguments.quiet {
        built.warn();
    }
    Ok(ExitCode::SUCCESS)
}

fn empty_like(path: &Path) -> Result<BloomFilter> {
    let file = FilterFile::open(path)?;
    let like = file.view()?;
    Ok(BloomFilter::with_blocks(like.n_blocks(), like.k())?.with_seed(like.seed())?)
}

/// The filter, the number of keys, and if known the number of distinct ones.
type Filled = (BloomFilter, u64, Option<u64>);

fn insert_all(
    input: &Input,
    mut filter: BloomFilter,
    known_keys: Option<u64>,
    quiet: bool,
) -> Result<Filled> {
    let keys = Keys::new(input, "building", quiet);
    let n_keys = keys.hash_all(filter.seed(), |hashes| filter.insert_batch(hashes))?;
    Ok((filter, n_keys, known_keys))
}

/// For a pipe: its keys can be read only once, and their number is known at the end.
fn collect(input: &Input, mut builder: FilterBuilder, quiet: bool) -> Result<Filled> {
    let keys = Keys::new(input, "reading", quiet);
    let n_keys = keys.hash_all(0, |hashes| builder.insert_batch(hashes))?;
    let filter = builder.finish()?;
    let known_keys = filter.known_keys();
    Ok((filter, n_keys, known_keys))
}

struct Built<'a> {
    arguments: &'a Arguments,
    filter: BloomFilter,
    /// As they were read.
    n_keys: u64,
    /// Distinct ones.
    known_keys: Option<u64>,
}

impl Built<'_> {
    fn say(&self) {
        let filter = &self.filter;
        let distinct = self.known_keys.map_or_else(|| numbers::estimate(filter.estimated_keys()), grouped);
        note(format_args!(
            "{}: {}, {distinct} distinct; {}, FPR {}",
            self.arguments.output.path.display(),
            counted(self.n_keys, "key"),
            size(filter.byte_len() as u64),
            percent(filter.estimated_fpr())
        ));
    }

    fn json(&self) -> String {
        let filter = &self.filter;
        let estimated = filter.estimated_keys();
        let json = json!({
            "file": self.arguments.output.path.display().to_string(),
            "bytes": filter.standalone_len(),
            "blocks": filter.n_blocks(),
            "k": filter.k(),
            "seed": filter.seed(),
            "keys": self.n_keys,
            "known_keys": self.known_keys,
            "estimated_keys": estimated.keys(),
            "standard_error": estimated.standard_error(),
            "fill_ratio": filter.fill_ratio(),
            "false_positive_rate": filter.estimated_fpr(),
            "requested_false_positive_rate": self.requested(),
        });
        format!("{json:#}\n")
    }

    fn requested(&self) -> Option<f64> {
        let is_requested = self.arguments.bits_per_key.is_none() && self.arguments.like.is_none();
        is_requested.then_some(self.arguments.fpr)
    }

    fn warn(&self) {
        let fpr = self.filter.estimated_fpr();
        if let Some(requested) = self.requested().filter(|requested| fpr > 1.1 * requested) {
            let [fpr, requested] = [fpr, requested].map(percent);
            note(format_args!(
                "{}: more keys than expected: FPR {fpr}, not the requested {requested} (raise --keys)",
                self.arguments.output.path.display()
            ));
        }
    }
}
