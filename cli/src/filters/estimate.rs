//! `bloomline estimate`
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bloomline::{BloomFilter, KeyEstimate, Sizing};
use clap::Args;
use serde_json::{Value, json};

use crate::filter_file::FilterFile;
use crate::filters::merge::{check_match, note_fold};
use crate::input::total_bytes;
use crate::numbers::{self, grouped};
use crate::output::{Printer, note};
use crate::progress::Progress;
use crate::state::FilterView;

/// Estimate how many keys two filters have, alone and in common
#[derive(Args)]
#[command(after_long_help = "\
The filters must have the same modules, k and seed, and the larger must
fold to the size of the smaller, so build them with the same --keys and --fpr,
or with --like. The number after ± is the standard error. Two times in
three, the estimate is off by less. Numbers that files store are exact.

Scalable filters and growing states of dedup can be compared until they
have grown. After that, keys of both may be in filters of different
sizes, and only upper bounds are printed.

The JSON object has first, second, union and intersection. Each has keys
and standard_error (0 if exact), or at_most; null is unknown. first and
second also have file, and the factor by which it was folded.

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
    as_json: bool,
}

/// What is known of a number of keys.
#[derive(Clone, Copy)]
enum Number {
    Known(u64),
    /// `None` if too full.
    Estimated(Option<KeyEstimate>),
    AtMost(u64),
}

impl Number {
    fn text(self) -> String {
        match self {
            Self::Known(keys) => grouped(keys),
            Self::Estimated(estimate) => numbers::estimate(estimate),
            Self::AtMost(keys) => format!("at most {}", grouped(keys)),
        }
    }

    fn json(self) -> Value {
        match self {
            Self::Known(keys) => json!({"keys": keys, "standard_error": 0}),
            Self::Estimated(estimate) => json!({
                "keys": estimate.map(|estimate| estimate.keys),
                "standard_error": estimate.map(|estimate| estimate.standard_error),
            }),
            Self::AtMost(keys) => json!({"keys": null, "at_most": keys}),
        }
    }

    fn at_most(self) -> Option<u64> {
        match self {
            Self::Known(keys) | Self::AtMost(keys) => Some(keys),
            Self::Estimated(estimate) => estimate.map(numbers::at_most),
        }
    }
}

struct Side {
    name: String,
    keys: Number,
    /// `None` if it has grown.
    filter: Option<BloomFilter>,
    factor: usize,
}

impl Side {
    fn open(path: &Path, progress: &Progress) -> Result<Self> {
        let file = FilterFile::open(path)?;
        let content = file.verified()?;
        let (part, _) = file.part(&content, "be compared")?;
        let (filter, keys) = match part {
            FilterView::Fixed(view) => {
                let filter = view.to_filter().with_context(|| file.name.clone())?;
                let estimated = || Number::Estimated(view.estimated_keys());
                let keys = view.known_keys().map_or_else(estimated, Number::Known);
                (Some(filter), keys)
            }
            FilterView::Growing(filter) => match filter.filters() {
                [only] => (Some(only.clone()), Number::Known(filter.inserted_keys())),
                // An upper bound, because `merge` counts keys of both filters twice.
                _ => (None, Number::AtMost(filter.inserted_keys())),
            },
        };
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

pub fn run(arguments: &Arguments) -> Result<()> {
    let paths = [&arguments.first, &arguments.second];
    let progress = Progress::new("reading", total_bytes(paths), false);
    let [mut first, mut second] = [Side::open(paths[0], &progress)?, Side::open(paths[1], &progress)?];
    let (union, intersection) = if let (Some(ours), Some(theirs)) = (&mut first.filter, &mut second.filter) {
        check_match((&first.name, ours.as_view()), (&second.name, theirs.as_view()))?;
        let (of_ours, of_theirs) = (ours.sizing(), theirs.sizing());
        first.factor = fold(ours, &first.name, of_theirs, &second.name)?;
        second.factor = fold(theirs, &second.name, of_ours, &first.name)?;
        let (ours, theirs) = (ours.as_view(), theirs.as_view());
        let common = ours.estimated_intersection(theirs)?;
        (Number::Estimated(ours.estimated_union(theirs)?), Number::Estimated(common))
    } else {
        let grown = if first.filter.is_none() { &first.name } else { &second.name };
        note(format_args!(
            "{grown}: has grown, so only upper bounds of the union and the intersection are known"
        ));
        match (first.keys.at_most(), second.keys.at_most()) {
            (Some(a), Some(b)) => (Number::AtMost(a.saturating_add(b)), Number::AtMost(a.min(b))),
            _ => (Number::Estimated(None), Number::Estimated(None)),
        }
    };
    let mut printer = Printer::new();
    if arguments.as_json {
        printer.print_json(&json!({
            "first": first.json(),
            "second": second.json(),
            "union": union.json(),
            "intersection": intersection.json(),
        }))?;
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
    Ok(())
}

/// Folds a filter to the size of the other, unless that is larger, and returns the factor.
fn fold(filter: &mut BloomFilter, name: &str, to: Sizing, other: &str) -> Result<usize> {
    let factor = (filter.n_blocks() / to.n_blocks()).max(1);
    if factor > 1 {
        filter.fold(factor)?;
        note_fold(name, factor, to, other);
    }
    Ok(factor)
}
