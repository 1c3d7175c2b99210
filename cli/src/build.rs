//! `bloomline build`
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use bloomline::{BloomFilter, FilterBuilder, sizing};
use clap::Args;

use crate::input::Input;
use crate::keys::Keys;
use crate::numbers::{self, grouped, percent, size};
use crate::output::{NewFile, note};

/// Build a filter from keys
#[derive(Args)]
#[command(after_help = "\
Without --keys, the filter is sized for the distinct keys in the input. Files
are read twice, the first time to count the distinct keys: exactly up to
262,144, then to 0.2 %. A pipe is read once, and 8 bytes per key are kept in
memory until its end. With --keys, input is read once, and memory use is the
filter and a few megabytes.

The file is written under a temporary name and then renamed: it appears whole
or not at all.

Examples:
  bloomline build -o keys.bloom keys.txt.gz
  bloomline build -o keys.bloom --fpr 0.1% monday.txt tuesday.txt
  zcat log.gz | cut -f1 | bloomline build -o users.bloom --keys 1e8
  find . -print0 | bloomline build -0 -o names.bloom
  bloomline build --length 16 -o uuids.bloom uuids.bin")]
pub struct Arguments {
    /// Filter file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    input: Input,
    /// Size the filter for N distinct keys, e.g. 1e9, instead of counting them
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    keys: Option<usize>,
    /// Target false-positive rate, e.g. 1%
    #[arg(long, value_name = "FPR", default_value = "1%", value_parser = numbers::share, allow_negative_numbers = true)]
    fpr: f64,
    /// Bits per key, instead of --fpr
    #[arg(long, value_name = "BITS", conflicts_with = "fpr", allow_negative_numbers = true)]
    bits_per_key: Option<f64>,
    /// Do not print the summary and its warning
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    // Wrong numbers and names are reported before the first key is read.
    let bits_per_key = arguments.bits_per_key.map_or_else(|| sizing::bits_per_key(arguments.fpr), Ok)?;
    let filter_for = |keys| BloomFilter::with_bits_per_key(keys, bits_per_key);
    filter_for(arguments.keys.unwrap_or(0))?;
    let input = &arguments.input;
    if input.has(&arguments.output) {
        bail!(
            "{}: is an input, and the filter would replace it (choose another output)",
            arguments.output.display()
        );
    }
    input.check()?;
    let output = NewFile::create(&arguments.output)?;
    let (filter, n_keys) = match arguments.keys {
        Some(keys) => insert_all(input, filter_for(keys)?)?,
        None if input.is_of_files() => insert_all(input, filter_for(count_distinct(input)?)?)?,
        None => collect(input, FilterBuilder::with_bits_per_key(bits_per_key)?)?,
    };
    output.write(|file| filter.write_standalone_to(file))?;
    if !arguments.quiet {
        say(arguments, &filter, n_keys);
    }
    Ok(ExitCode::SUCCESS)
}

fn insert_all(input: &Input, mut filter: BloomFilter) -> Result<(BloomFilter, u64)> {
    let keys = Keys::new(input, "building");
    let n_keys = keys.hash_all(filter.seed(), |hashes| filter.insert_batch(hashes))?;
    Ok((filter, n_keys))
}

/// For a pipe: its keys can be read only once, and their number is known at the end.
fn collect(input: &Input, mut builder: FilterBuilder) -> Result<(BloomFilter, u64)> {
    let keys = Keys::new(input, "reading");
    let n_keys = keys.hash_all(0, |hashes| hashes.iter().for_each(|&hash| builder.add_hash(hash)))?;
    Ok((builder.finish(), n_keys))
}

fn say(arguments: &Arguments, filter: &BloomFilter, n_keys: u64) {
    let name = arguments.output.display();
    let distinct = filter.known_keys().map_or_else(|| numbers::estimate(filter.estimated_keys()), grouped);
    let (fpr, bytes) = (filter.estimated_fpr(), size(filter.size_bytes() as u64));
    note(format_args!(
        "{name}: {} keys, {distinct} distinct; {bytes}, FPR {}",
        grouped(n_keys),
        percent(fpr)
    ));
    if arguments.bits_per_key.is_none() && fpr > 1.1 * arguments.fpr {
        let [fpr, requested] = [fpr, arguments.fpr].map(percent);
        note(format_args!(
            "{name}: more keys than expected: FPR {fpr}, not the requested {requested} (raise --keys)"
        ));
    }
}

pub fn count_distinct(input: &Input) -> Result<usize> {
    let mut distinct = Distinct::default();
    Keys::new(input, "counting").without_notes().hash_all(0, |hashes| distinct.add(hashes))?;
    Ok(distinct.at_most())
}

/// Counts distinct hashes by keeping the smallest: if the n-th is at a fraction s of all values, there are about n ÷ s
/// (Bar-Yossef, Jayram, Kumar, Sivakumar and Trevisan, "Counting distinct elements in a data stream", 2002).
struct Distinct {
    smallest: Vec<u64>,
    /// No larger hash is kept.
    limit: u64,
}

/// The relative standard error is 1 ÷ √`KEPT`.
const KEPT: usize = 1 << 18;

impl Default for Distinct {
    fn default() -> Self {
        Self { smallest: Vec::new(), limit: u64::MAX }
    }
}

impl Distinct {
    fn add(&mut self, hashes: &[u64]) {
        self.smallest.extend(hashes.iter().filter(|&&hash| hash <= self.limit));
        if self.smallest.len() >= 4 * KEPT {
            self.tidy();
        }
    }

    fn tidy(&mut self) {
        self.smallest.sort_unstable();
        self.smallest.dedup();
        if self.smallest.len() >= KEPT {
            self.smallest.truncate(KEPT);
            self.limit = self.smallest[KEPT - 1];
        }
    }

    /// The count, or its estimate plus four standard errors: too small a filter would exceed its false-positive rate.
    fn at_most(mut self) -> usize {
        self.tidy();
        if self.smallest.len() < KEPT {
            return self.smallest.len();
        }
        let share = (self.limit as f64 + 1.0) / 2_f64.powi(64);
        let n = KEPT as f64;
        ((n - 1.0) / share * (1.0 + 4.0 / n.sqrt())) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_keys_are_counted() {
        for n in [0, 1, 1000, KEPT - 1, KEPT, 3_000_000] {
            let mut distinct = Distinct::default();
            let hashes: Vec<u64> = (0..n as u64).map(bloomline::mix).collect();
            for hashes in hashes.chunks(4000) {
                distinct.add(hashes);
                distinct.add(hashes);
            }
            let estimate = distinct.at_most();
            if n < KEPT {
                assert_eq!(estimate, n);
            } else {
                // The estimate is within four standard errors, and four are added.
                assert!(
                    (1.0..1.0 + 8.0 / (KEPT as f64).sqrt()).contains(&(estimate as f64 / n as f64)),
                    "{n}: {estimate}"
                );
            }
        }
    }
}
