//! `bloomline dedup`
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use anyhow::{Result, anyhow, ensure};
use bloomline::variants::ScalableBloomFilter;
use bloomline::{BloomFilter, SizingError, sizing};
use clap::Args;

use crate::build::count_distinct;
use crate::filter_file::FilterFile;
use crate::input::Input;
use crate::keys::Keys;
use crate::numbers::{self, grouped, percent};
use crate::output::{NewFile, Printer, note};
use crate::signals::{self, lock};

/// Print each distinct line once, where it occurs first
#[derive(Args)]
#[command(after_help = "\
Like `awk '!seen[$0]++'`, in the memory of a filter. The order is kept. A new
line is dropped as a duplicate with a probability of at most --fpr. With
--keys, that holds for up to N distinct lines, and memory is fixed. Without,
files are read twice, the first time to count their distinct lines. From a
pipe, and with --state, where later lines cannot be counted yet, memory grows
as with --scalable. A false-positive rate above --fpr is reported even with -q.

With --state, lines printed in earlier runs are dropped too. FILE records what
has been printed. It is written at the end, on Ctrl-C, and when input cannot be
read, but not when output cannot be written: what that run printed is printed
again by the next one, and no line is lost. Once FILE exists, the filter in it
is used, whatever --keys, --fpr and --scalable say.

Examples:
  bloomline dedup log.txt >once.txt
  zcat urls-*.gz | bloomline dedup --keys 1e9 | zstd >urls.zst
  tail -f events | bloomline dedup --state seen.bloom --scalable | handle-event")]
pub struct Arguments {
    #[command(flatten)]
    input: Input,
    /// Size the filter for N distinct lines, e.g. 1e9
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    keys: Option<usize>,
    /// Target false-positive rate (new lines dropped), e.g. 1e-6
    #[arg(long, value_name = "FPR", default_value = "1e-6", value_parser = numbers::share, allow_negative_numbers = true)]
    fpr: f64,
    /// Let memory grow with the number of distinct lines; uses more memory and time
    #[arg(long)]
    scalable: bool,
    /// Record in FILE what has been printed, and drop it in later runs
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Do not print the summary
    #[arg(short, long)]
    quiet: bool,
}

enum Filter {
    Fixed(BloomFilter),
    Growing(ScalableBloomFilter),
}

/// For an unknown number of lines.
const INITIAL_CAPACITY: usize = 1_000_000;

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let filter = Filter::new(arguments)?;
    let seed = filter.seed();
    // Exactly the lines printed so far, whenever it is not locked; `None` once saved, or if output failed.
    let seen = Arc::new(Mutex::new(Some(filter)));
    if let Some(path) = arguments.state.clone() {
        drop(NewFile::create(&path)?); // fails now if it cannot be written
        let seen = Arc::clone(&seen);
        signals::before_end(move || {
            let mut seen = lock(&seen);
            let saved = seen.take().map_or(Ok(()), |filter| filter.save(&path));
            saved.unwrap_or_else(|error| note(format_args!("{error:#}")));
        })?;
    }
    let mut printer = Printer::new();
    let mut keys = Keys::new(&arguments.input, "");
    let (mut hashes, mut selected) = (Vec::new(), Vec::new());
    let mut printed = 0;
    let read = loop {
        // Not locked while waiting for input, so that a signal can save the state.
        let chunk = match keys.next_chunk() {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        if let Err(error) = chunk.hash(seed, &mut hashes) {
            break Err(error);
        }
        let mut seen = lock(&seen);
        let Some(filter) = seen.as_mut() else { signals::wait_for_end() };
        selected.clear();
        printed += chunk.select(|i| filter.insert(&hashes, i), &mut selected)? as u64;
        if let Err(error) = printer.print(&selected) {
            *seen = None;
            return Err(error);
        }
    };
    let mut seen = lock(&seen);
    let Some(filter) = seen.take() else { signals::wait_for_end() };
    if let Some(path) = &arguments.state {
        filter.save(path)?;
    }
    let fpr = filter.estimated_fpr();
    let requested = match &filter {
        Filter::Growing(filter) => filter.fpr(), // that of its state, if there is one
        Filter::Fixed(_) => arguments.fpr,
    };
    if fpr > 1.1 * requested {
        let [fpr, requested] = [fpr, requested].map(percent);
        note(format_args!(
            "more distinct lines than expected: FPR now {fpr}, not the requested {requested} \
             (restart with a larger --keys, or --scalable)"
        ));
    }
    read?;
    if !arguments.quiet {
        say(fpr, keys.count(), printed);
    }
    Ok(ExitCode::SUCCESS)
}

impl Filter {
    fn new(arguments: &Arguments) -> Result<Self> {
        if let Some(path) = arguments.state.as_ref().filter(|path| path.exists()) {
            let file = FilterFile::open(path)?;
            ensure!(
                !file.bytes().is_empty(),
                "{}: an empty file is not a dedup state (remove it, and dedup creates one)",
                path.display()
            );
            return if file.is_scalable() {
                ScalableBloomFilter::from_standalone(file.bytes())
                    .map(Self::Growing)
                    .map_err(|error| file.error(error))
            } else {
                Ok(Self::Fixed(file.filter()?))
            };
        }
        let bits_per_key = sizing::bits_per_key(arguments.fpr)?;
        let keys = match arguments.keys {
            // Lines of later runs go into the state too, and cannot be counted yet.
            keys if arguments.scalable || arguments.state.is_some() && keys.is_none() => None,
            None if arguments.input.is_of_files() => {
                let (keys, read) = count_distinct(&arguments.input);
                read?;
                Some(keys)
            }
            keys => keys,
        };
        Ok(match keys {
            Some(keys) => Self::Fixed(BloomFilter::with_bits_per_key(keys, bits_per_key)?),
            None => {
                let initial_capacity = arguments.keys.unwrap_or(INITIAL_CAPACITY);
                let filter = ScalableBloomFilter::with_fpr(initial_capacity, arguments.fpr);
                Self::Growing(filter.map_err(|error| match error {
                    SizingError::ScalableFpr { .. } => {
                        anyhow!("{error} (give the number of lines with --keys, without --scalable)")
                    }
                    _ => error.into(),
                })?)
            }
        })
    }

    fn seed(&self) -> u64 {
        match self {
            Self::Fixed(filter) => filter.seed(),
            Self::Growing(filter) => filter.seed(),
        }
    }

    fn estimated_fpr(&self) -> f64 {
        match self {
            Self::Fixed(filter) => filter.estimated_fpr(),
            Self::Growing(filter) => filter.estimated_fpr(),
        }
    }

    /// Inserts the `i`-th key, prefetching for later ones, and returns whether it was new.
    fn insert(&mut self, hashes: &[u64], i: usize) -> bool {
        const AHEAD: usize = 32;
        let later = hashes.get(i + AHEAD);
        match self {
            Self::Fixed(filter) => {
                later.into_iter().for_each(|&later| filter.prefetch(later));
                filter.insert_hash(hashes[i])
            }
            Self::Growing(filter) => {
                later.into_iter().for_each(|&later| filter.prefetch(later));
                filter.insert_hash(hashes[i])
            }
        }
    }

    fn save(&self, path: &Path) -> Result<()> {
        NewFile::create(path)?.write(|file| match self {
            Self::Fixed(filter) => filter.write_standalone_to(file),
            Self::Growing(filter) => file.write_all(&filter.to_standalone()),
        })
    }
}

fn say(fpr: f64, lines: u64, printed: u64) {
    let dropped = lines - printed;
    // An upper bound: the rate has only now risen to `fpr`.
    let wrong = match (fpr / (1.0 - fpr) * printed as f64).min(dropped as f64) {
        wrong if wrong < 1.0 => "likely none".to_owned(),
        wrong => format!("at most about {}", grouped(wrong.ceil() as u64)),
    };
    let [lines, printed, dropped] = [lines, printed, dropped].map(grouped);
    let fpr = percent(fpr);
    note(format_args!(
        "{lines} lines, {printed} printed, {dropped} dropped, {wrong} of them new (FPR now {fpr})"
    ));
}
