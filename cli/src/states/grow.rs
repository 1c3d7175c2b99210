//! `bloomline grow`
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use anyhow::{Error, Result, anyhow, bail, ensure};
use bloomline::StandaloneKind;
use bloomline::variants::ScalableBloomFilter;
use clap::Args;
use serde_json::json;

use crate::filter_file::FilterFile;
use crate::guard::refuse_state;
use crate::numbers::{self, counted, percent};
use crate::output::{FileLock, NewFile, Printer, check_json, followed, is_stdout, is_stream, leads_to, note};
use crate::state::{FPR, Filter, INITIAL_CAPACITY, State, grow_command};

/// Let a state of dedup take any number of lines
#[derive(Args)]
#[command(after_long_help = "\
A state that `dedup --keys` created is for a fixed number of keys. This makes it
one that grows, so later keys go into further filters, and lines that were
printed stay dropped. The state is replaced unless you name a file with -o.

With -o, a blocked or scalable filter, as of `build`, becomes a state: dedup
then drops lines that have its keys.

The FPR stays if the filter's own FPR is at most 15% of it. Otherwise it
doubles. A filter of `build`, and a state that --allow-overfull filled beyond
its FPR, need --fpr.

The JSON object has file, keys (at most), capacity and
requested_false_positive_rate.

Examples:
  bloomline grow seen.state
  bloomline grow -o seen.state --fpr 2% keys.bloom")]
pub struct Arguments {
    /// State to write, instead of replacing STATE
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace FILE even if it is another state
    #[arg(long)]
    replace_state: bool,
    /// False-positive rate from now on, e.g. 1e-5
    #[arg(long, value_name = "FPR", value_parser = numbers::share, allow_negative_numbers = true)]
    fpr: Option<f64>,
    /// Fail instead of waiting for another run on the state
    #[arg(long)]
    no_wait: bool,
    /// Print no notes
    #[arg(short, long)]
    quiet: bool,
    /// Print the result as JSON
    #[arg(long)]
    as_json: bool,
    /// State of dedup, or a filter
    #[arg(value_name = "STATE")]
    state: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    // Resolved once, because a link that is changed meanwhile would lead to a state that is not locked.
    let source = &followed(&arguments.state)?;
    let path = &arguments.output.as_ref().map_or_else(|| Ok(source.clone()), |path| followed(path))?;
    check_json(arguments.as_json, path)?;
    ensure!(
        arguments.output.is_some() || !is_stream(path) || is_stdout(path),
        "{}: cannot be replaced (name a state to write with -o)",
        path.display()
    );
    drop(NewFile::create(path)?);
    let busy = arguments.no_wait.then_some("omit --no-wait to wait");
    let _lock = (!is_stream(path)).then(|| FileLock::of(path, busy)).transpose()?;
    let is_replaced = leads_to(path, source);
    if !is_replaced && !arguments.replace_state && !is_stream(path) {
        refuse_state(path, "name another file, or give --replace-state")?;
    }
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
    let (requested, was_growing) = (before.fpr, matches!(before.filter, Filter::Growing(_)));
    let state = grown(arguments, before, !State::is_state(file.bytes()))?;
    if !(is_replaced && was_growing) {
        NewFile::create(path)?.write(|file| state.write_to(file))?;
    }
    let (name, fpr) = (path.display(), percent(state.fpr));
    if arguments.as_json {
        Printer::new().print_json(&json!({
            "file": name.to_string(),
            "keys": state.keys,
            "capacity": state.capacity,
            "requested_false_positive_rate": state.fpr,
        }))?;
    } else if !arguments.quiet {
        let keys = counted(state.keys, "key");
        note(format_args!("{name}: has at most {keys}; now grows without limit, FPR at most {fpr}"));
    }
    if state.fpr != requested && !arguments.quiet && State::is_state(file.bytes()) {
        let requested = percent(requested);
        note(format_args!(
            "{name}: the FPR was {requested}; from now on, give dedup --fpr {fpr}, or omit it"
        ));
    }
    Ok(())
}

/// The error for a filter that is given as a state, with the command that makes a state of it.
pub fn is_a_filter(path: &Path, file: &FilterFile) -> Error {
    let name = &file.name;
    let Ok(state) = state_of(file) else {
        return anyhow!("{name}: not a state of dedup, or cut short (name another file, or restore a copy)");
    };
    let output = path.with_extension("state");
    let output = if output == path { path.with_extension("dedup.state") } else { output };
    let Some(fpr) = state.enough_to_grow() else {
        return anyhow!(
            "{name}: a filter, not a state of dedup, and too full or of too many modules to make one of it (name \
             another file)"
        );
    };
    let fpr = (!state.requests(fpr)).then_some(fpr);
    anyhow!(
        "{name}: a filter, not a state of dedup (make one by `{}`, and use that)",
        grow_command(path, Some(&output), fpr)
    )
}

/// Makes a state from a filter.
fn state_of(file: &FilterFile) -> Result<State> {
    if StandaloneKind::of(file.bytes()) == Some(StandaloneKind::Scalable) {
        let filter = ScalableBloomFilter::from_standalone(file.bytes()).map_err(|error| file.error(error))?;
        let (capacity, keys, fpr) = (filter.initial_capacity(), filter.inserted_keys(), filter.fpr());
        return Ok(State { filter: Filter::Growing(filter), capacity, keys, fpr, rule: None });
    }
    let filter = file.filter()?;
    let keys = filter
        .known_keys()
        .or_else(|| filter.estimated_keys().map(numbers::at_most))
        .ok_or_else(|| anyhow!("{}: too full to estimate its keys (build a larger filter)", file.name))?;
    let filter = Filter::Fixed(filter);
    Ok(State { filter, capacity: keys.max(1), keys, fpr: FPR, rule: None })
}

fn grown(arguments: &Arguments, state: State, is_filter: bool) -> Result<State> {
    let name = arguments.state.display();
    let (is_overfull, enough) = (state.is_overfull(), state.enough_to_grow());
    let filter = match state.filter {
        Filter::Fixed(filter) => filter,
        Filter::Growing(_) => {
            let requested = percent(state.fpr);
            ensure!(
                arguments.fpr.is_none_or(|fpr| state.requests(fpr)),
                "{name}: grows already, at an FPR of {requested}, which stays (omit --fpr)"
            );
            return Ok(state);
        }
    };
    let (n_modules, again) = (filter.n_modules(), "begin another state");
    ensure!(
        n_modules <= 2,
        "{name}: has {n_modules} modules, and only filters of one or two can grow ({})",
        if is_filter { "build it with --modules 2" } else { again }
    );
    let rate = percent(filter.estimated_fpr());
    let remedy = enough.map_or(again.into(), |fpr| {
        format!("run `{}`", grow_command(&arguments.state, arguments.output.as_deref(), Some(fpr)))
    });
    let fpr = match (arguments.fpr, enough) {
        (Some(fpr), _) => fpr,
        (None, Some(fpr)) if fpr == state.fpr || !(is_filter || is_overfull) => fpr,
        _ => bail!("{name}: its FPR is {rate} now, above {} ({remedy})", percent(state.fpr)),
    };
    // The next filter is for twice as many.
    let keys = state.keys.max(state.capacity.min(INITIAL_CAPACITY as u64));
    let lowest = ScalableBloomFilter::min_fpr_from(&filter);
    ensure!(
        fpr >= lowest,
        "{name}: its FPR is {rate} now, and it can grow at more than {} only ({remedy})",
        percent(lowest)
    );
    let filter = ScalableBloomFilter::from_filter(filter, keys, fpr);
    let filter = filter.map_err(|error| Error::new(error).context(name.to_string()))?;
    Ok(State { filter: Filter::Growing(filter), fpr, ..state })
}
