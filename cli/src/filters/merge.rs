//! `bloomline merge`
#![forbid(unsafe_code)]

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail, ensure};
use bloomline::BloomFilter;
use bloomline::variants::ScalableBloomFilter;
use clap::Args;
use serde_json::json;

use crate::filter_file::{Content, FilterFile, Part};
use crate::fixed::{Fixed, FixedView};
use crate::guard::{GuardedFile, Output};
use crate::input::{KeyRule, total_bytes};
use crate::numbers::{self, counted, percent};
use crate::output::{Printer, check_json, note};
use crate::progress::Progress;
use crate::state::{Filter, State, grow_command};

/// Merge filters into one that has all their keys
#[derive(Args)]
#[command(after_long_help = "\
Filters that build made must have the same modules, k and seed, and
sizes that fold to the smallest of them: build them with the same --keys
and --fpr, or with --like. The result is, bit for bit, the filter of all
their keys.

Scalable filters must have the same k and seed; the false-positive rate
is at most the sum of those requested. States of dedup become a state.

The JSON object has file, kind, modules (null if it grows), blocks (of
each), k, false_positive_rate and folded, an array of objects of file
and factor. A state also has capacity and keys; a state and a scalable
filter have requested_false_positive_rate.

Example:
  bloomline merge -o week.bloom monday.bloom tuesday.bloom")]
pub struct Arguments {
    #[command(flatten)]
    output: Output,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Filters to merge; standard input if -
    #[arg(value_name = "FILTER", num_args = 2.., required = true)]
    filters: Vec<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    check_json(arguments.json, &arguments.output.path)?;
    let output = arguments.output.create(&arguments.filters)?;
    let total = total_bytes(&arguments.filters);
    let progress = if arguments.output.quiet { Progress::hidden() } else { Progress::new("merging", total) };
    let mut merged: Option<Merged> = None;
    for path in &arguments.filters {
        let file = FilterFile::open(path)?;
        let content = file.verified()?;
        merged = Some(match merged {
            None => Merged::new(&file, content)?,
            Some(merged) => merged.with(&file, &content)?,
        });
        progress.add(file.bytes().len() as u64);
    }
    merged.expect("clap requires two").finish(arguments, output)
}

enum Made {
    Fixed(Fixed),
    Growing(ScalableBloomFilter),
}

/// What states have besides their filters.
struct Rest {
    capacity: u64,
    keys: u64,
    fpr: f64,
    rule: Option<KeyRule>,
}

/// The files so far.
struct Merged {
    filter: Made,
    /// Where they are states.
    state: Option<Rest>,
    /// Their names, with the number of blocks of each whose size is fixed.
    files: Vec<(String, Option<usize>)>,
}

impl Merged {
    fn new(file: &FilterFile, content: Content) -> Result<Self> {
        let (part, _) = file.part(&content, "be merged")?;
        let files = vec![(file.name.clone(), part.n_blocks())];
        let copy = |view: FixedView| view.to_filter().map(Made::Fixed).context(file.name.clone());
        let (filter, state) = match content {
            Content::Blocked(view) => (copy(FixedView::Blocked(view))?, None),
            Content::Modular(view) => (copy(FixedView::Modular(view))?, None),
            Content::Scalable(filter) => (Made::Growing(filter), None),
            Content::State(State { filter, capacity, keys, fpr, rule }) => {
                let filter = match filter {
                    Filter::Fixed(filter) => Made::Fixed(Fixed::Blocked(filter)),
                    Filter::Growing(filter) => Made::Growing(filter),
                };
                (filter, Some(Rest { capacity, keys, fpr, rule }))
            }
            _ => unreachable!("a part"),
        };
        Ok(Self { filter, state, files })
    }

    fn with(mut self, file: &FilterFile, content: &Content) -> Result<Self> {
        let (part, theirs) = file.part(content, "be merged")?;
        let (name, first) = (&file.name, &self.files[0].0);
        let (filter, a_state) = if self.state.is_some() { (name, first) } else { (first, name) };
        ensure!(
            theirs.is_some() == self.state.is_some(),
            "{filter}: not a state of dedup, as {a_state} is (merge states with states, and filters with filters)"
        );
        let mut states = self.state.as_mut().zip(theirs);
        if let Some((made, theirs)) = &mut states {
            match (&made.rule, &theirs.rule) {
                (Some(ours), Some(theirs)) if ours != theirs => {
                    let [ours, theirs] = [ours, theirs].map(KeyRule::options);
                    bail!("{name}: made with {theirs}, and {first} with {ours} (keep both)");
                }
                (ours, theirs) => made.rule = ours.as_ref().or(theirs.as_ref()).cloned(),
            }
        }
        match (&mut self.filter, &part) {
            (Made::Fixed(ours), Part::Fixed(view)) => {
                let n_blocks = ours.as_view().n_blocks();
                check_match((name_of(&self.files, n_blocks), ours.as_view()), (name, *view))?;
                unite(ours, *view)?;
                if let Some((made, theirs)) = states {
                    made.keys = keys_in_both(ours.as_view(), made.keys, theirs.keys);
                    if view.n_blocks() < n_blocks {
                        (made.capacity, made.fpr) = (theirs.capacity, theirs.fpr);
                    }
                }
            }
            (Made::Growing(ours), Part::Growing(view)) => {
                let failed = |error| anyhow!("{name}: not merged with {first}: {error} (or keep both)");
                ours.union_with(view).map_err(failed)?;
                if let Some((made, theirs)) = states {
                    made.keys = made.keys.saturating_add(theirs.keys);
                    made.fpr = made.fpr.max(ours.fpr());
                }
            }
            (ours, _) => {
                let is_fixed = matches!(ours, Made::Fixed(_));
                let (fixed, growing) = if is_fixed { (first, name) } else { (name, first) };
                bail!("{fixed}: of fixed size, and {growing} grows: they cannot be merged (keep both)");
            }
        }
        self.files.push((name.clone(), part.n_blocks()));
        Ok(self)
    }

    fn finish(self, arguments: &Arguments, output: GuardedFile) -> Result<()> {
        let Self { filter, state, files } = self;
        let (kind, n_modules, n_blocks, k, fpr, requested) = match &filter {
            Made::Fixed(filter) => {
                let view = filter.as_view();
                let kind = if view.is_modular() { "modular" } else { "blocked" };
                (kind, Some(view.n_modules()), view.n_blocks(), view.k(), view.estimated_fpr(), None)
            }
            Made::Growing(filter) => {
                let k = filter.filters().first().map_or(0, BloomFilter::k);
                let n_blocks = filter.byte_len() / 64;
                ("scalable", None, n_blocks, k, filter.estimated_fpr(), Some(filter.fpr()))
            }
        };
        let (kind, requested) = state.as_ref().map_or((kind, requested), |state| ("state", Some(state.fpr)));
        let state = match (state, filter) {
            (None, filter) => {
                output.write(|file| match &filter {
                    Made::Fixed(filter) => filter.write_standalone(file),
                    Made::Growing(filter) => filter.write_standalone(file),
                })?;
                None
            }
            (Some(Rest { capacity, keys, fpr, rule }), filter) => {
                let filter = match filter {
                    Made::Fixed(Fixed::Blocked(filter)) => Filter::Fixed(filter),
                    Made::Fixed(Fixed::Modular(_)) => unreachable!("no state has modules"),
                    Made::Growing(filter) => Filter::Growing(filter),
                };
                let state = State { filter, capacity, keys, fpr, rule };
                output.write(|file| state.write_to(file))?;
                Some(state)
            }
        };
        let factors = files.iter().map(|(name, blocks)| (name, blocks.map_or(1, |blocks| blocks / n_blocks)));
        let folded = factors.filter(|(_, factor)| *factor > 1);
        let name = arguments.output.path.display();
        if arguments.json {
            let text = json!({
                "file": name.to_string(),
                "kind": kind,
                "modules": n_modules,
                "blocks": n_blocks,
                "k": k,
                "false_positive_rate": fpr,
                "requested_false_positive_rate": requested,
                "capacity": state.as_ref().map(|state| state.capacity),
                "keys": state.as_ref().map(|state| state.keys),
                "folded": folded.map(|(file, factor)| json!({"file": file, "factor": factor})).collect::<Vec<_>>(),
            });
            Printer::new().print_json(&text)?;
        } else if !arguments.output.quiet {
            for (file, factor) in folded {
                note_fold(file, factor, n_blocks, name_of(&files, n_blocks));
            }
            let at_most = |state: &State| format!("at most {}, ", counted(state.keys, "key"));
            let keys = state.as_ref().map_or(String::new(), at_most);
            let requested = requested.map_or(String::new(), |fpr| format!(", requested {}", percent(fpr)));
            note(format_args!("{name}: {keys}FPR {}{requested}", percent(fpr)));
        }
        if let Some(state) = state.filter(State::is_overfull) {
            let remedy = state.enough_to_grow().map_or("keep both".into(), |fpr| {
                format!("make room with `{}`", grow_command(&arguments.output.path, None, Some(fpr)))
            });
            note(format_args!("{name}: more keys than it takes at the requested FPR ({remedy})"));
        }
        Ok(())
    }
}

/// The first of the files with this number of blocks.
fn name_of(files: &[(String, Option<usize>)], n_blocks: usize) -> &str {
    files.iter().find(|(_, blocks)| *blocks == Some(n_blocks)).map_or("", |(name, _)| name)
}

/// At most this many keys are in the union of two states, almost always: keys of both count once, as the bits show.
fn keys_in_both(union: FixedView, ours: u64, theirs: u64) -> u64 {
    let most = union.estimated_keys().map_or(u64::MAX, numbers::at_most);
    ours.saturating_add(theirs).min(most).max(ours).max(theirs)
}

/// Unites filters that [match](check_match): folds the larger to the size of the smaller.
fn unite(ours: &mut Fixed, theirs: FixedView) -> Result<()> {
    match (ours.as_view().n_blocks(), theirs.n_blocks()) {
        (larger, smaller) if larger > smaller => ours.fold(larger / smaller)?,
        (smaller, larger) if larger > smaller => {
            return Ok(ours.union_with(theirs.to_folded(larger / smaller)?.as_view())?);
        }
        _ => (),
    }
    Ok(ours.union_with(theirs)?)
}

/// Fails if two filters, with their names, are not alike even when the larger is folded.
pub fn check_match(first: (&str, FixedView), second: (&str, FixedView)) -> Result<()> {
    let [(name, ours), (other, theirs)] = [first, second];
    let [a, b] = [ours.n_blocks(), theirs.n_blocks()];
    let can_fold = a.is_multiple_of(b) || b.is_multiple_of(a);
    let shape = |view: FixedView| {
        let seed =
            if ours.seed() == theirs.seed() { String::new() } else { format!(", seed {}", view.seed()) };
        format!("{}, k = {}{seed}", view.shape(), view.k())
    };
    let is_one_kind = ours.is_modular() == theirs.is_modular() && ours.n_modules() == theirs.n_modules();
    ensure!(
        is_one_kind && ours.k() == theirs.k() && ours.seed() == theirs.seed() && can_fold,
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
