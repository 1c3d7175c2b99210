//! `bloomline merge`
#![forbid(unsafe_code)]

use std::mem;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail, ensure};
use bloomline::{BloomFilter, BloomView, Sizing};
use clap::Args;
use serde_json::json;

use crate::filter_file::{Content, FilterFile};
use crate::guard::{GuardedFile, Output};
use crate::input::{KeyRule, total_bytes};
use crate::numbers::{self, counted, percent};
use crate::output::{Printer, check_json, note};
use crate::progress::Progress;
use crate::state::{Filter, FilterView, State, grow_command};

/// Merge filters into one that has all their keys
#[derive(Args)]
#[command(after_long_help = "\
Filters that build made must have the same modules, k and seed, so build
them with the same --keys and --fpr, or with --like. The result is then,
bit for bit, the filter of all their keys. If sizes differ, the largest
must be a multiple of each, and is the size of the result. The blocks of
a smaller one are repeated, so each of its keys raises the FPR as several
do.

Scalable filters must have the same k and seed; the false-positive rate
is at most the sum of those requested. States of dedup become a state,
and states of fixed size are folded to the smallest.

The JSON object has file, kind, modules (null if it grows), blocks (of
all modules), k, false_positive_rate and folded, an array of objects of
file and factor. A state also has capacity and keys; a state and a
scalable filter have requested_false_positive_rate.

Example:
  bloomline merge -o week.bloom monday.bloom tuesday.bloom")]
pub struct Arguments {
    #[command(flatten)]
    output: Output,
    /// Print the result as JSON
    #[arg(long)]
    as_json: bool,
    /// Filters to merge; standard input if -
    #[arg(value_name = "FILTER", num_args = 2.., required = true)]
    filters: Vec<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    check_json(arguments.as_json, &arguments.output.path)?;
    let output = arguments.output.create(&arguments.filters)?;
    let progress = Progress::new("merging", total_bytes(&arguments.filters), arguments.output.quiet);
    let mut merged: Option<Merged> = None;
    let mut files =
        arguments.filters.iter().map(|path| FilterFile::open(path)).collect::<Result<Vec<_>>>()?;
    // Two filters of 4 and 6 blocks unite in one of 12.
    let largest =
        files.iter().map(FilterFile::filter_blocks).enumerate().rev().max_by_key(|(_, blocks)| *blocks);
    files[..=largest.map_or(0, |(at, _)| at)].rotate_right(1);
    for file in &files {
        let content = file.verified()?;
        merged = Some(match merged {
            None => Merged::new(file, content)?,
            Some(merged) => merged.with(file, &content)?,
        });
        progress.add(file.bytes().len() as u64);
    }
    merged.expect("clap requires two").finish(arguments, output)
}

/// The files so far.
struct Merged {
    /// Where the files are filters, only its filter counts.
    state: State,
    are_states: bool,
    /// Their names, with the size of each whose size is fixed.
    files: Vec<(String, Option<Sizing>)>,
}

impl Merged {
    fn new(file: &FilterFile, content: Content) -> Result<Self> {
        let (part, _) = file.part(&content, "be merged")?;
        let files = vec![(file.name.clone(), part.sizing())];
        let filter = match content {
            Content::Blocked(view) => view.to_filter().map(Filter::Fixed).context(file.name.clone())?,
            Content::Scalable(filter) => Filter::Growing(filter),
            Content::State(state) => return Ok(Self { state, are_states: true, files }),
            _ => unreachable!("a part"),
        };
        let state = State { filter, capacity: 0, keys: 0, fpr: 0.0, rule: None };
        Ok(Self { state, are_states: false, files })
    }

    fn with(mut self, file: &FilterFile, content: &Content) -> Result<Self> {
        let (part, theirs) = file.part(content, "be merged")?;
        let (name, first) = (&file.name, &self.files[0].0);
        let (filter, a_state) = if self.are_states { (name, first) } else { (first, name) };
        ensure!(
            theirs.is_some() == self.are_states,
            "{filter}: not a state of dedup, as {a_state} is (merge states with states, and filters with filters)"
        );
        let State { filter, capacity, keys, fpr, rule } = &mut self.state;
        match (&rule, theirs.and_then(|theirs| theirs.rule.as_ref())) {
            (Some(ours), Some(theirs)) if ours != theirs => {
                let [ours, theirs] = [ours, theirs].map(KeyRule::options);
                bail!("{name}: made with {theirs}, and {first} with {ours} (keep both)");
            }
            (None, theirs) => *rule = theirs.cloned(),
            _ => (),
        }
        match (filter, &part) {
            (Filter::Fixed(ours), FilterView::Fixed(view)) => {
                let sizing = ours.sizing();
                check_match((name_of(&self.files, sizing), ours.as_view()), (name, *view))?;
                unite(ours, *view, self.are_states)?;
                if let Some(theirs) = theirs {
                    *keys = keys_in_both(ours, *keys, theirs.keys);
                    if view.n_blocks() < sizing.n_blocks() {
                        (*capacity, *fpr) = (theirs.capacity, theirs.fpr);
                    }
                }
            }
            (Filter::Growing(ours), FilterView::Growing(view)) => {
                let failed = |error| anyhow!("{name}: not merged with {first}: {error} (or keep both)");
                ours.union_with(view).map_err(failed)?;
                *keys = keys.saturating_add(theirs.map_or(0, |theirs| theirs.keys));
                *fpr = fpr.max(ours.fpr());
            }
            (ours, _) => {
                let is_fixed = matches!(ours, Filter::Fixed(_));
                let (fixed, growing) = if is_fixed { (first, name) } else { (name, first) };
                bail!("{fixed}: of fixed size, and {growing} grows: they cannot be merged (keep both)");
            }
        }
        self.files.push((name.clone(), part.sizing()));
        Ok(self)
    }

    fn finish(self, arguments: &Arguments, output: GuardedFile) -> Result<()> {
        let Self { state, are_states, files } = self;
        let (kind, sizing, n_blocks, k, requested) = match &state.filter {
            Filter::Fixed(filter) => ("blocked", Some(filter.sizing()), filter.n_blocks(), filter.k(), None),
            Filter::Growing(filter) => {
                let k = filter.filters().first().map_or(0, BloomFilter::k);
                ("scalable", None, filter.byte_len() / 64, k, Some(filter.fpr()))
            }
        };
        let (kind, requested) = if are_states { ("state", Some(state.fpr)) } else { (kind, requested) };
        let fpr = state.filter.estimated_fpr();
        output.write(
            |file| {
                if are_states { state.write_to(file) } else { state.filter.write_standalone(file) }
            },
        )?;
        let factor = |sizing: &Option<Sizing>| sizing.map_or(1, |sizing| sizing.n_blocks() / n_blocks);
        let factors = files.iter().map(|(name, sizing)| (name, factor(sizing)));
        let folded = factors.filter(|(_, factor)| *factor > 1);
        let name = arguments.output.path.display();
        if arguments.as_json {
            Printer::new().print_json(&json!({
                "file": name.to_string(),
                "kind": kind,
                "modules": sizing.map(Sizing::n_modules),
                "blocks": n_blocks,
                "k": k,
                "false_positive_rate": fpr,
                "requested_false_positive_rate": requested,
                "capacity": are_states.then_some(state.capacity),
                "keys": are_states.then_some(state.keys),
                "folded": folded.map(|(file, factor)| json!({"file": file, "factor": factor})).collect::<Vec<_>>(),
            }))?;
        } else if !arguments.output.quiet {
            if let Some(sizing) = sizing {
                folded.for_each(|(file, factor)| note_fold(file, factor, sizing, name_of(&files, sizing)));
            }
            for (file, theirs) in files.iter().filter_map(|(file, sizing)| Some((file, (*sizing)?))) {
                let repeats = n_blocks / theirs.n_blocks();
                if repeats > 1 {
                    let blocks = numbers::blocks(theirs);
                    note(format_args!(
                        "{file}: its {blocks} repeat {repeats} times in {name}, so each of its keys raises the FPR as {repeats} do"
                    ));
                }
            }
            let keys = format!("at most {}, ", counted(state.keys, "key"));
            let keys = if are_states { &keys } else { "" };
            let requested = requested.map_or(String::new(), |fpr| format!(", requested {}", percent(fpr)));
            note(format_args!("{name}: {keys}FPR {}{requested}", percent(fpr)));
        }
        if are_states && state.is_overfull() {
            let remedy = state.enough_to_grow().map_or("keep both".into(), |fpr| {
                format!("make room with `{}`", grow_command(&arguments.output.path, None, Some(fpr)))
            });
            note(format_args!("{name}: more keys than it takes at the requested FPR ({remedy})"));
        }
        Ok(())
    }
}

/// The first of the files with this size.
fn name_of(files: &[(String, Option<Sizing>)], sizing: Sizing) -> &str {
    files.iter().find(|(_, other)| *other == Some(sizing)).map_or("", |(name, _)| name)
}

/// An upper bound of the keys in the union of two states, almost always. The bits show how many keys both have, so
/// these count once.
fn keys_in_both(union: &BloomFilter, ours: u64, theirs: u64) -> u64 {
    let most = union.estimated_keys().map_or(u64::MAX, numbers::at_most);
    ours.saturating_add(theirs).min(most).max(ours).max(theirs)
}

/// Unites filters that [match](check_match). Of two states, the larger is folded to the size of the smaller, because
/// how many keys a state has room for is computed from its size, as if each key set its bits once.
fn unite(ours: &mut BloomFilter, theirs: BloomView, are_states: bool) -> Result<()> {
    let [a, b] = [ours.n_blocks(), theirs.n_blocks()];
    let factor = if are_states { a.max(b) / a.min(b) } else { 1 };
    if a < b {
        let smaller = mem::replace(ours, theirs.to_folded(factor)?);
        return Ok(ours.union_with(&smaller)?);
    }
    ours.fold(factor)?;
    Ok(ours.union_with(theirs)?)
}

/// Fails if two filters, given with their names, differ in more than sizes that folding makes equal.
pub fn check_match(first: (&str, BloomView), second: (&str, BloomView)) -> Result<()> {
    let [(name, ours), (other, theirs)] = [first, second];
    let [a, b] = [ours.n_blocks(), theirs.n_blocks()];
    let can_fold = a.is_multiple_of(b) || b.is_multiple_of(a);
    let shape = |view: BloomView| {
        let seed =
            if ours.seed() == theirs.seed() { String::new() } else { format!(", seed {}", view.seed()) };
        format!("{}, k = {}{seed}", numbers::blocks(view.sizing()), view.k())
    };
    let rest = |view: BloomView| (view.n_modules(), view.k(), view.seed());
    ensure!(
        rest(ours) == rest(theirs) && can_fold,
        "{other}: {}, cannot be combined with the {} of {name} (make both with the same --keys and --fpr, or build \
         one again with --like)",
        shape(theirs),
        shape(ours)
    );
    Ok(())
}

pub fn note_fold(file: &str, factor: usize, sizing: Sizing, smallest: &str) {
    let blocks = numbers::blocks(sizing);
    note(format_args!("{file}: folded by {factor}, to the {blocks} of {smallest}"));
}
