//! `bloomline grow`
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Error, Result, anyhow, ensure};
use bloomline::variants::ScalableBloomFilter;
use bloomline::{SizingError, StandaloneKind};
use clap::Args;
use serde_json::json;

use crate::filter_file::FilterFile;
use crate::numbers::{self, counted, percent};
use crate::output::{FileLock, NewFile, Printer, check_json, followed, is_stream, note};
use crate::state::{Filter, State};
use crate::states::dedup::{FPR, INITIAL_CAPACITY};

/// Let a state of dedup take any number of lines
#[derive(Args)]
#[command(after_help = "\
A state that `dedup --keys` created takes a fixed number of lines. This makes it
one that grows, as with --scalable: later lines go into further filters, and
those that were printed stay dropped. The state is replaced unless you name
another file with -o.

With -o, a filter that `build` made becomes a state: dedup then drops its keys.
So does a scalable filter.

The false-positive rate stays that of the state if its filter takes at most
0.15 times that now. Otherwise it is twice that, since the full filter has used
it up; give --fpr for another one. A state that --allow-overfull filled beyond
its rate needs --fpr. A filter of `build` has no requested rate: the default is
that of dedup, 0.0001 %.

The JSON object has file, lines (at most), capacity and
requested_false_positive_rate.

Examples:
  bloomline grow seen.bloom
  bloomline grow -o seen.bloom --fpr 2% keys.bloom")]
pub struct Arguments {
    /// State to write, instead of replacing STATE
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// False-positive rate from now on, e.g. 1e-5
    #[arg(long, value_name = "FPR", value_parser = numbers::share, allow_negative_numbers = true)]
    fpr: Option<f64>,
    /// Fail if another run uses the state, instead of waiting for it
    #[arg(long)]
    no_wait: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// State of dedup, or a filter
    #[arg(value_name = "STATE")]
    state: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    // Resolved once: a link that is changed meanwhile leads to a state that is not locked.
    let source = &followed(&arguments.state)?;
    let path = &arguments.output.as_ref().map_or_else(|| Ok(source.clone()), |path| followed(path))?;
    check_json(arguments.json, path)?;
    drop(NewFile::create(path)?);
    let _lock = (!is_stream(path)).then(|| FileLock::of(path, !arguments.no_wait)).transpose()?;
    let file = FilterFile::open(source)?;
    let before = if State::is_state(file.bytes()) {
        State::from_bytes(&file.name, file.bytes())?
    } else {
        ensure!(
            arguments.output.is_some() || StandaloneKind::of(file.bytes()).is_none(),
            "{}: a filter, which stays as it is (name a state to write with -o)",
            file.name
        );
        state_of(&file)?
    };
    let requested = before.fpr;
    let state = grown(&file.name, before, arguments.fpr)?;
    NewFile::create(path)?.write(|file| state.write_to(file))?;
    let (name, fpr) = (path.display(), percent(state.fpr));
    if arguments.json {
        let text = json!({
            "file": name.to_string(),
            "lines": state.lines,
            "capacity": state.capacity,
            "requested_false_positive_rate": state.fpr,
        });
        Printer::new().print(format!("{text:#}\n"))?;
    } else {
        let lines = counted(state.lines, "line");
        note(format_args!(
            "{name}: at most {lines}, takes any number from now on at an FPR of at most {fpr}"
        ));
    }
    if state.fpr != requested && State::is_state(file.bytes()) {
        let requested = percent(requested);
        note(format_args!(
            "{name}: the FPR was {requested}; where you pass it to dedup, change it or omit it"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// The state of a filter that is none.
fn state_of(file: &FilterFile) -> Result<State> {
    if StandaloneKind::of(file.bytes()) == Some(StandaloneKind::Scalable) {
        let filter = ScalableBloomFilter::from_standalone(file.bytes()).map_err(|error| file.error(error))?;
        let (capacity, lines, fpr) = (filter.initial_capacity(), filter.inserted_keys(), filter.fpr());
        return Ok(State { filter: Filter::Growing(filter), capacity, lines, fpr });
    }
    let filter = file.filter()?;
    let lines = filter
        .known_keys()
        .or_else(|| numbers::at_most(filter.estimated_keys()))
        .ok_or_else(|| anyhow!("{}: too full to estimate its keys (build a larger filter)", file.name))?;
    Ok(State { filter: Filter::Fixed(filter), capacity: lines.max(1), lines, fpr: FPR })
}

fn grown(name: &str, state: State, fpr: Option<f64>) -> Result<State> {
    let is_overfull = state.is_overfull();
    let filter = match state.filter {
        Filter::Fixed(filter) => filter,
        Filter::Growing(_) => {
            let requested = percent(state.fpr);
            ensure!(
                fpr.is_none_or(|fpr| state.requests(fpr)),
                "{name}: grows already, at an FPR of {requested}, which stays (omit --fpr)"
            );
            return Ok(state);
        }
    };
    let rate = filter.estimated_fpr();
    let fpr = match fpr {
        Some(fpr) => fpr,
        None if rate <= 0.15 * state.fpr => state.fpr,
        None if is_overfull => rate, // refused below, with the lowest that it can grow at
        None => 2.0 * state.fpr.max(rate),
    };
    // The next filter takes twice as many.
    let keys = state.lines.max(state.capacity.min(INITIAL_CAPACITY as u64));
    let filter = ScalableBloomFilter::from_filter(filter, keys, fpr).map_err(|error| match error {
        SizingError::Fpr { value, lowest, .. } if value < lowest => {
            let remedy = if lowest < 0.5 { "give a higher --fpr" } else { "start a new state" };
            let [rate, lowest] = [rate, lowest].map(percent);
            anyhow!("{name}: its FPR is {rate} now, and it can grow at more than {lowest} only ({remedy})")
        }
        _ => Error::new(error).context(name.to_owned()),
    })?;
    Ok(State { filter: Filter::Growing(filter), fpr, ..state })
}
