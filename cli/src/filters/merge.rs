//! `bloomline merge`
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail, ensure};
use bloomline::{BloomFilter, BloomView};
use clap::Args;
use serde_json::json;

use crate::filter_file::{Content, FilterFile, Part, total_bytes};
use crate::numbers::{self, counted, percent};
use crate::output::{FileLock, NewFile, Printer, check_json, is_stream, note};
use crate::progress::Progress;
use crate::state::{Filter, State};

/// Merge filters into one that has all their keys
#[derive(Args)]
#[command(after_long_help = "\
Filters that build made must have the same k and seed, and sizes that
fold to the smallest of them: build them with the same --keys and --fpr,
or with --like. The result is, bit for bit, the filter of all their keys.
Scalable filters must have the same k and seed; the false-positive rate
is at most the sum of those requested. States of dedup become a state.

The JSON object has file, kind, blocks, k, false_positive_rate and
folded, an array of objects of file and factor. A state also has
capacity and lines; a state and a scalable filter have
requested_false_positive_rate.

Example:
  bloomline merge -o week.bloom monday.bloom tuesday.bloom")]
pub struct Arguments {
    /// Filter file to write; may be one of the filters
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Filters to merge; standard input if -
    #[arg(value_name = "FILTER", num_args = 2.., required = true)]
    filters: Vec<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    check_json(arguments.json, &arguments.output)?;
    let output = NewFile::create(&arguments.output)?;
    // A run of dedup that has read this file replaces it at its end.
    let replaces = !is_stream(&arguments.output) && arguments.output.exists();
    let _lock = replaces.then(|| FileLock::of(&arguments.output, true)).transpose()?;
    let paths: Vec<&Path> = arguments.filters.iter().map(PathBuf::as_path).collect();
    let progress = Progress::new("merging", total_bytes(&paths));
    let mut merged: Option<Merged> = None;
    for path in &arguments.filters {
        let file = FilterFile::open(path)?;
        let content = file.verified()?;
        merged = Some(match merged {
            None => Merged::new(&file, &content)?,
            Some(merged) => merged.with(&file, &content)?,
        });
        progress.add(file.bytes().len() as u64);
    }
    merged.expect("clap requires two").finish(arguments, output)
}

/// The filters so far.
struct Merged {
    filter: Filter,
    /// If they are states.
    made: Option<Made>,
    /// Names of the files, with the number of blocks of each that is a blocked filter.
    files: Vec<(String, Option<usize>)>,
}

/// What a state was made for, as in [`State`].
#[derive(Clone, Copy)]
struct Made {
    capacity: u64,
    lines: u64,
    fpr: f64,
}

impl Made {
    fn of(state: &State) -> Self {
        let State { capacity, lines, fpr, .. } = *state;
        Self { capacity, lines, fpr }
    }
}

impl Merged {
    fn new(file: &FilterFile, content: &Content) -> Result<Self> {
        let (part, state) = part(file, content)?;
        let filter = match part {
            Part::Fixed(view) => Filter::Fixed(view.to_filter().with_context(|| file.name.clone())?),
            Part::Growing(filter) => Filter::Growing(filter.clone()),
        };
        Ok(Self { filter, made: state.map(Made::of), files: vec![(file.name.clone(), part.n_blocks())] })
    }

    fn with(mut self, file: &FilterFile, content: &Content) -> Result<Self> {
        let (part, state) = part(file, content)?;
        let (name, first) = (&file.name, &self.files[0].0);
        let (filter, a_state) = if state.is_some() { (first, name) } else { (name, first) };
        ensure!(
            state.is_some() == self.made.is_some(),
            "{filter}: not a state of dedup, as {a_state} is (make one of it with `bloomline grow -o STATE {filter}`)"
        );
        match (&mut self.filter, &part) {
            (Filter::Fixed(ours), Part::Fixed(view)) => {
                let smallest = name_of(&self.files, ours.n_blocks());
                check_match((smallest, &ours.as_view()), (name, view))?;
                let is_smaller = view.n_blocks() < ours.n_blocks();
                unite(ours, view)?;
                self.made = self.made.zip(state).map(|(made, theirs)| {
                    let lines = lines_in_both(ours, made.lines, theirs.lines);
                    Made { lines, ..if is_smaller { Made::of(theirs) } else { made } }
                });
            }
            (Filter::Growing(ours), Part::Growing(theirs)) => {
                let failed = |error| anyhow!("{name}: not merged with {first}: {error} (or keep both)");
                ours.union_with(theirs).map_err(failed)?;
                // As in the filter: nothing comes with an empty one, and a rate is below 1.
                let theirs = state.filter(|theirs| theirs.lines > 0);
                self.made = self.made.map(|made| Made {
                    lines: made.lines.saturating_add(theirs.map_or(0, |theirs| theirs.lines)),
                    fpr: (made.fpr + theirs.map_or(0.0, |theirs| theirs.fpr)).min(1.0 - f64::EPSILON),
                    ..made
                });
            }
            (ours, _) => {
                let is_fixed = matches!(ours, Filter::Fixed(_));
                let (fixed, growing) = if is_fixed { (first, name) } else { (name, first) };
                bail!(
                    "{fixed}: of fixed size, and {growing} grows: they cannot be merged (make it grow first, with \
                     `bloomline grow {fixed}`)"
                );
            }
        }
        self.files.push((name.clone(), part.n_blocks()));
        Ok(self)
    }

    fn finish(self, arguments: &Arguments, output: NewFile) -> Result<ExitCode> {
        let Self { filter, made, files } = self;
        let fpr = filter.estimated_fpr();
        let (mut kind, n_blocks, k, mut requested) = match &filter {
            Filter::Fixed(filter) => ("blocked", filter.n_blocks(), filter.k(), None),
            Filter::Growing(filter) => {
                let k = filter.filters().first().map_or(0, BloomFilter::k);
                ("scalable", filter.byte_len() / 64, k, Some(filter.fpr()))
            }
        };
        let folded: Vec<_> = files
            .iter()
            .filter_map(|(name, blocks)| {
                let factor = blocks.map_or(1, |blocks| blocks / n_blocks);
                (factor > 1).then_some((name, factor))
            })
            .collect();
        let mut is_overfull = false;
        match made {
            Some(Made { capacity, lines, fpr }) => {
                (kind, requested) = ("state", Some(fpr));
                let state = State { filter, capacity, lines, fpr };
                output.write(|file| state.write_to(file))?;
                is_overfull = state.is_overfull();
            }
            None => output.write(|file| match &filter {
                Filter::Fixed(filter) => filter.write_standalone(file),
                Filter::Growing(filter) => filter.write_standalone(file),
            })?,
        }
        let name = arguments.output.display();
        if arguments.json {
            let folded: Vec<_> =
                folded.iter().map(|(name, factor)| json!({"file": name, "factor": factor})).collect();
            let text = json!({
                "file": name.to_string(),
                "kind": kind,
                "blocks": n_blocks,
                "k": k,
                "false_positive_rate": fpr,
                "requested_false_positive_rate": requested,
                "capacity": made.map(|made| made.capacity),
                "lines": made.map(|made| made.lines),
                "folded": folded,
            });
            Printer::new().print(format!("{text:#}\n"))?;
        } else {
            for (file, factor) in folded {
                note_fold(file, factor, n_blocks, name_of(&files, n_blocks));
            }
            let lines =
                made.map_or(String::new(), |made| format!("at most {}, ", counted(made.lines, "line")));
            let requested = requested.map_or(String::new(), |fpr| format!(", requested {}", percent(fpr)));
            note(format_args!("{name}: {lines}FPR {}{requested}", percent(fpr)));
        }
        if is_overfull {
            note(format_args!(
                "{name}: more lines than it takes at the requested FPR (make room with `bloomline grow --fpr FPR {name}`)"
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The filter in a file, and the state around it.
fn part<'a>(file: &FilterFile, content: &'a Content) -> Result<(Part<'a>, Option<&'a State>)> {
    let remedy = "blocked or scalable filters, or states of dedup";
    content.part().ok_or_else(|| file.cannot(content, "be merged", remedy))
}

/// The first of the files with this number of blocks.
fn name_of(files: &[(String, Option<usize>)], n_blocks: usize) -> &str {
    files.iter().find(|(_, blocks)| *blocks == Some(n_blocks)).map_or("", |(name, _)| name)
}

/// At most this many lines are in the union of two states, almost always: lines of both count once, as the bits show.
fn lines_in_both(union: &BloomFilter, ours: u64, theirs: u64) -> u64 {
    let most = numbers::at_most(union.estimated_keys()).unwrap_or(u64::MAX);
    ours.saturating_add(theirs).min(most).max(ours).max(theirs)
}

/// Unites filters that [match](check_match): folds the larger to the size of the smaller.
fn unite(ours: &mut BloomFilter, theirs: &BloomView) -> Result<()> {
    match (ours.n_blocks(), theirs.n_blocks()) {
        (larger, smaller) if larger > smaller => ours.fold(larger / smaller)?,
        (smaller, larger) if larger > smaller => {
            return Ok(ours.union_with(&theirs.to_folded(larger / smaller)?)?);
        }
        _ => (),
    }
    Ok(ours.union_with(theirs)?)
}

/// Fails if two filters, with their names, are not alike even when the larger is folded.
pub fn check_match(first: (&str, &BloomView), second: (&str, &BloomView)) -> Result<()> {
    let [(name, ours), (other, theirs)] = [first, second];
    let [a, b] = [ours.n_blocks(), theirs.n_blocks()];
    let can_fold = a.is_multiple_of(b) || b.is_multiple_of(a);
    let shape = |view: &BloomView| {
        let seed =
            if ours.seed() == theirs.seed() { String::new() } else { format!(", seed {}", view.seed()) };
        format!("{}, k = {}{seed}", counted(view.n_blocks() as u64, "block"), view.k())
    };
    ensure!(
        ours.k() == theirs.k() && ours.seed() == theirs.seed() && can_fold,
        "{other}: {}, cannot be combined with the {} of {name} (make both with the same --keys and --fpr, or build \
         one again with --like)",
        shape(theirs),
        shape(ours)
    );
    Ok(())
}

pub fn note_fold(file: &str, factor: usize, n_blocks: usize, smallest: &str) {
    let blocks = counted(n_blocks as u64, "block");
    note(format_args!("{file}: folded by {factor}, to the {blocks} of {smallest}"));
}
