//! `bloomline estimate`
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use bloomline::{BloomFilter, KeyEstimate};
use clap::Args;
use serde_json::{Value, json};

use crate::filter_file::{FilterFile, Part, total_bytes};
use crate::merge::{check_match, note_fold};
use crate::numbers::{self, grouped};
use crate::output::{Printer, note};
use crate::progress::Progress;

/// Estimate the number of keys in two filters, their union and their intersection
#[derive(Args)]
#[command(after_help = "\
The filters must have the same k and seed, and the larger must fold to the size
of the smaller: build them with the same --keys and --fpr, or with --like. The
number after ± is the standard error: two times in three, the estimate is off by
less. Numbers that the files store are exact.

Scalable filters and growing states of dedup can be compared until they have
grown. After that, keys of both may be in filters of different sizes, and only
limits of the union and the intersection are printed.

The JSON object has first, second, union and intersection. Each has keys and
standard_error (0 if exact), or at_least and at_most; null is unknown. first and
second also have file and factor, by which it was folded.

Example:
  bloomline estimate monday.bloom tuesday.bloom")]
pub struct Arguments {
    /// First filter; standard input if -
    #[arg(value_name = "FILTER")]
    first: PathBuf,
    /// Second filter; standard input if -
    #[arg(value_name = "FILTER")]
    second: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// What is known of a number of keys.
#[derive(Clone, Copy)]
enum Number {
    Known(u64),
    Estimated(KeyEstimate),
    Between(u64, u64),
}

impl Number {
    fn text(self) -> String {
        match self {
            Self::Known(keys) => grouped(keys),
            Self::Estimated(keys) => numbers::estimate(keys),
            Self::Between(least, most) => format!("{} to {}", grouped(least), grouped(most)),
        }
    }

    fn json(self) -> Value {
        match self {
            Self::Known(keys) => json!({"keys": keys, "standard_error": 0}),
            Self::Estimated(keys) => json!({"keys": keys.keys(), "standard_error": keys.standard_error()}),
            Self::Between(least, most) => json!({"keys": null, "at_least": least, "at_most": most}),
        }
    }

    fn keys(self) -> Option<u64> {
        match self {
            Self::Known(keys) => Some(keys),
            Self::Estimated(keys) => keys.keys(),
            Self::Between(..) => None,
        }
    }
}

struct Side {
    name: String,
    keys: Number,
    /// All bits, unless it has grown.
    filter: Option<BloomFilter>,
    /// By which it was folded.
    factor: usize,
}

impl Side {
    fn open(path: &Path, progress: &Progress) -> Result<Self> {
        let file = FilterFile::open(path)?;
        let content = file.verified()?;
        let remedy = "blocked or scalable filters, or states of dedup";
        let (part, state) = content.part().ok_or_else(|| file.cannot(&content, "be compared", remedy))?;
        let (filter, known) = match part {
            Part::Fixed(view) => (Some(view.try_to_filter()?), view.known_keys()),
            Part::Growing(filter) => {
                let only = if let [only] = filter.filters() { Some(only.clone()) } else { None };
                (only, Some(filter.inserted_keys()))
            }
        };
        let estimated = filter.as_ref().map_or(KeyEstimate::Unbounded, BloomFilter::estimated_keys);
        let known = state.map(|state| state.lines).or(known);
        let keys = known.map_or(Number::Estimated(estimated), Number::Known);
        progress.add(file.bytes().len() as u64);
        Ok(Self { name: file.name, keys, filter, factor: 1 })
    }

    fn json(&self) -> Value {
        let mut json = self.keys.json();
        json["file"] = (*self.name).into();
        json["factor"] = self.factor.into();
        json
    }
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let paths = [&*arguments.first, &*arguments.second];
    let progress = Progress::new("reading", total_bytes(&paths));
    let [mut first, mut second] = [Side::open(paths[0], &progress)?, Side::open(paths[1], &progress)?];
    let (union, intersection) = if let (Some(ours), Some(theirs)) = (&mut first.filter, &mut second.filter) {
        check_match((&first.name, &ours.as_view()), (&second.name, &theirs.as_view()))?;
        let n_blocks = ours.n_blocks().min(theirs.n_blocks());
        first.factor = fold(ours, &first.name, n_blocks, &second.name)?;
        second.factor = fold(theirs, &second.name, n_blocks, &first.name)?;
        let estimated = Number::Estimated;
        (estimated(ours.estimated_union(theirs)?), estimated(ours.estimated_intersection(theirs)?))
    } else {
        let grown = if first.filter.is_none() { &first.name } else { &second.name };
        note(format_args!(
            "{grown}: has grown, so keys of both may be in filters of different sizes: union and intersection cannot \
             be estimated, only limited"
        ));
        match (first.keys.keys(), second.keys.keys()) {
            (Some(a), Some(b)) => {
                (Number::Between(a.max(b), a.saturating_add(b)), Number::Between(0, a.min(b)))
            }
            _ => (Number::Estimated(KeyEstimate::Unbounded), Number::Estimated(KeyEstimate::Unbounded)),
        }
    };
    let mut printer = Printer::new();
    if arguments.json {
        let text = json!({
            "first": first.json(),
            "second": second.json(),
            "union": union.json(),
            "intersection": intersection.json(),
        });
        printer.print(format!("{text:#}\n"))?;
    } else {
        let rows = [
            (&*first.name, first.keys),
            (&second.name, second.keys),
            ("union", union),
            ("intersection", intersection),
        ];
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        printer.print(rows.map(|(name, keys)| format!("{name:width$}  {}\n", keys.text())).concat())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Folds a filter to as few blocks as the other has, and returns the factor.
fn fold(filter: &mut BloomFilter, name: &str, n_blocks: usize, other: &str) -> Result<usize> {
    let factor = filter.n_blocks() / n_blocks;
    if factor > 1 {
        filter.fold(factor)?;
        note_fold(name, factor, n_blocks, other);
    }
    Ok(factor)
}
