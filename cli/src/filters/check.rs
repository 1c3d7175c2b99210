//! `bloomline check`
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use bloomline::BloomFilter;
use clap::Args;
use serde_json::{Value, json};

use crate::ahead::in_order;
use crate::filter_file::{Content, FilterFile};
use crate::input::{Input, SeenRule, is_stdin};
use crate::keys::Keys;
use crate::output::{Printer, is_printed_to};
use crate::state::{Filter, State};
use crate::texts::Unit;

/// Print the lines whose keys are possibly in a filter
#[derive(Args)]
#[command(after_long_help = "\
Like `grep -F -x -f KEYS`, with the filter in place of the keys. Prints
every line whose key is in the filter, and of the remaining lines a
fraction equal to the filter's false-positive rate, which `bloomline
info` shows. With -v, every line printed is definitely not in the filter.

The filter may be of any kind, or a state of dedup. Its checksum is
verified first, by reading it whole; --no-verify skips this for filters
that build made. With -c and several files, each count follows the name
of its file. Exit status: 0 if a line was selected, 1 if none was, 2 on
error.

With --paragraphs or --ngrams, what is looked up is each paragraph, or the
share of n-grams that --overlap says, as `bloomline help dedup` describes.
A filter that `build --ngrams` made is refused with any other --ngrams.

The JSON object has filter, lines, possibly_present, definitely_absent
and files, an array of objects of file, lines, possibly_present and
definitely_absent.

Examples:
  bloomline check keys.bloom lines.txt
  bloomline check -v keys.bloom today.txt.zst >new.txt
  bloomline check --integers ids.bloom ids.txt
  echo alice | bloomline check -q users.bloom && echo maybe
  cut -f1 events.tsv | bloomline check -c banned.bloom
  bloomline check -v --json text --ngrams 13 --overlap 50% test.bloom x.jsonl")]
pub struct Arguments {
    /// Filter to look up keys in; standard input if -
    #[arg(value_name = "FILTER")]
    filter: PathBuf,
    /// Print the lines that are definitely absent
    #[arg(short = 'v', long)]
    invert_match: bool,
    /// Print only the number of selected lines or --paragraphs
    #[arg(short, long)]
    count: bool,
    /// Print counts as JSON, in place of lines
    #[arg(long, conflicts_with = "count")]
    as_json: bool,
    /// Print nothing; stop at the first selected line
    #[arg(short, long, conflicts_with = "as_json")]
    quiet: bool,
    /// Skip checksum verification, so that damage can hide keys
    #[arg(long)]
    no_verify: bool,
    #[command(flatten)]
    seen: SeenRule,
    #[command(flatten)]
    input: Input,
}

/// The seed of a filter, and what looks up hashes in it.
type Lookup<'a> = (u64, Box<dyn Fn(&[u64], &mut [bool]) + 'a>);

macro_rules! lookup {
    ($filter:expr) => {{
        let filter = $filter;
        let lookup: Lookup =
            (filter.seed(), Box::new(move |hashes, found| filter.contains_batch(hashes, found)));
        lookup
    }};
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { invert_match, count, as_json, quiet, .. } = *arguments;
    let input = Input { seen: arguments.seen, ..arguments.input.resolve()? };
    input.check_filter(&arguments.filter)?;
    let file = FilterFile::open(&arguments.filter)?;
    ensure!(!is_printed_to(&arguments.filter), "{}: is also the output (write to another file)", file.name);
    let content = if arguments.no_verify { file.content()? } else { file.verified()? };
    if let Content::State(State { rule: Some(rule), .. }) = &content {
        let (kind, remedy) = if rule.integers { ("integers", "add") } else { ("text", "omit") };
        let is_same = rule.integers == input.rule.integers;
        ensure!(is_same, "{}: its keys are {kind} ({remedy} --integers)", file.name);
    }
    let filter = match content {
        Content::Blocked(filter) => lookup!(filter),
        Content::State(State { filter: Filter::Fixed(filter), .. }) => lookup!(filter),
        Content::Standard(filter) => lookup!(filter),
        Content::Counting(filter) => lookup!(BloomFilter::from(filter)),
        Content::Scalable(filter) | Content::State(State { filter: Filter::Growing(filter), .. }) => {
            lookup!(filter)
        }
        other => {
            return Err(file.cannot(&other, "be queried", "give a filter, as `bloomline build` makes it"));
        }
    };
    input.rule.check_seed(&file.name, filter.0)?;
    // Like grep -c, which counts the lines of each of several files.
    let counts_files = as_json || count && input.files.len() > 1;
    let inputs = match &input.files[..] {
        files @ [_, ..] if counts_files => {
            files.iter().map(|file| Input { files: vec![file.clone()], ..input.clone() }).collect()
        }
        _ => vec![input],
    };
    let (mut printer, mut files, mut total) = (Printer::new(), Vec::new(), Counts::default());
    for input in &inputs {
        let counts = select(arguments, input, &filter, &mut printer)?;
        total.lines += counts.lines;
        total.selected += counts.selected;
        total.has_failed |= counts.has_failed;
        if counts_files && counts.has_failed {
            continue;
        }
        let name = input.name(0);
        if as_json {
            files.push(counts.json(json!({"file": name}), invert_match));
        } else if counts_files && !quiet {
            let name = if is_stdin(&input.files[0]) { "(standard input)" } else { &name };
            printer.print(format!("{name}:{}\n", counts.selected))?;
        }
    }
    if as_json {
        let text = total.json(json!({"filter": file.name, "files": files}), invert_match);
        printer.print_json(&text)?;
    } else if count && !counts_files && !quiet {
        printer.print(format!("{}\n", total.selected))?;
    }
    Ok(match total {
        Counts { has_failed: true, .. } => ExitCode::from(2),
        Counts { selected: 0, .. } => ExitCode::from(1),
        _ => ExitCode::SUCCESS,
    })
}

#[derive(Default)]
struct Counts {
    lines: u64,
    selected: u64,
    has_failed: bool,
}

impl Counts {
    /// Adds the counts to `object`.
    fn json(&self, mut object: Value, invert_match: bool) -> Value {
        let others = self.lines - self.selected;
        let (present, absent) = if invert_match { (others, self.selected) } else { (self.selected, others) };
        object["lines"] = self.lines.into();
        object["possibly_present"] = present.into();
        object["definitely_absent"] = absent.into();
        object
    }
}

/// Prints the selected lines, unless only counts are wanted.
fn select(
    arguments: &Arguments,
    input: &Input,
    (seed, lookup): &Lookup,
    printer: &mut Printer,
) -> Result<Counts> {
    let (mut found, mut shares, mut is_new, mut selected) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let prints = !(arguments.count || arguments.as_json || arguments.quiet);
    let (mut counts, is_selected) = (Counts::default(), !arguments.invert_match);
    let keys = Keys::new(input, "checking", arguments.quiet);
    let is_whole = in_order(keys, *seed, |chunk, hashes, hashed| {
        found.resize(hashes.len(), false);
        lookup(hashes, &mut found);
        let mut found = &found[..];
        if let Some(units) = chunk.units() {
            shares.clear();
            let of_unit = |unit: &Unit| {
                let found = found.split_off(..unit.n_keys).unwrap_or_default();
                unit.share(found.iter().filter(|&&found| found).count())
            };
            shares.extend(units.iter().map(of_unit));
            is_new.clear();
            is_new.extend(shares.iter().map(|&share| !input.seen.is_seen(share)));
            let is_counted = units.iter().zip(&is_new).filter(|(unit, _)| !unit.is_blank);
            counts.lines += is_counted.clone().count() as u64;
            counts.selected += is_counted.filter(|&(_, &is_new)| is_new != is_selected).count() as u64;
        } else {
            counts.lines += found.len() as u64;
            counts.selected += found.iter().filter(|&&found| found == is_selected).count() as u64;
        }
        if prints {
            selected.clear();
            if input.seen.spans {
                chunk.copy_spans(&shares, &mut selected)?;
            } else {
                selected.extend_from_slice(chunk.preamble());
                match chunk.units() {
                    Some(_) => chunk.copy(&is_new, !is_selected, &mut selected)?,
                    None => chunk.copy(found, is_selected, &mut selected)?,
                }
            }
            printer.print(&selected)?;
        } else if arguments.quiet && counts.selected > 0 {
            return Ok(false);
        }
        hashed.map(|()| true)
    })?;
    counts.has_failed = !is_whole;
    Ok(counts)
}
