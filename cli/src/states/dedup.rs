//! `bloomline dedup`
#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use anyhow::{Error, Result, anyhow, bail, ensure};
use bloomline::variants::ScalableBloomFilter;
use bloomline::{BloomFilter, SizingError, sizing};
use clap::Args;
use serde_json::json;

use crate::distinct;
use crate::filter_file::FilterFile;
use crate::input::Input;
use crate::keys::Keys;
use crate::numbers::{self, counted, grouped, percent, size};
use crate::output::{FileLock, NewFile, Printer, followed, io_error, is_printed_to, is_stream, note};
use crate::signals::{self, lock};
use crate::state::{Filter, State};

/// Print each distinct line once, where it occurs first
#[derive(Args)]
#[command(after_help = "\
Like `awk '!seen[$0]++'`, in the memory of a filter. The order is kept. A new
line is dropped as a duplicate with a probability of at most --fpr.

With --keys, memory is fixed. Once there are more distinct lines than the filter
takes at --fpr by its model (N, or a few more), dedup stops with exit status 2
and saves nothing: up to some thousand lines earlier, before it drops too many.
With --allow-overfull it goes on, drops more and more new lines, and says so at
the end. Without --keys, files are read twice, the first time to count their
distinct lines. From a pipe, and with --state, where later lines cannot be
counted yet, memory grows as with --scalable.

--json prints an object of lines, printed, dropped and false_positive_rate.

With --state, lines printed in earlier runs are dropped too. FILE records what
has been printed, --fpr and --keys: later runs may omit these or repeat them,
and other values are an error. `bloomline grow FILE` lets one of fixed size take
any number of lines. FILE is written at the end, on Ctrl-C, and when input
cannot be read, but not when output cannot be written: what that run printed is
printed again by the next one, and no line is lost. Another run on FILE waits
meanwhile.

Examples:
  bloomline dedup log.txt >once.txt
  zcat urls-*.gz | bloomline dedup --keys 1e9 | zstd >urls.zst
  tail -f events | bloomline dedup --state seen.bloom --scalable | handle-event")]
pub struct Arguments {
    #[command(flatten)]
    input: Input,
    /// Size the filter for N distinct lines, e.g. 1e9
    #[arg(long, value_name = "N", value_parser = numbers::count_from_1, allow_negative_numbers = true)]
    keys: Option<usize>,
    /// Target false-positive rate (new lines dropped), e.g. 1e-6 [default: that of FILE, or 1e-6]
    #[arg(long, value_name = "FPR", value_parser = numbers::share, allow_negative_numbers = true)]
    fpr: Option<f64>,
    /// Let memory grow with the number of distinct lines; uses more memory and time
    #[arg(long)]
    scalable: bool,
    /// Record in FILE what has been printed, and drop it in later runs
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Fail if another run uses the state, instead of waiting for it
    #[arg(long, requires = "state")]
    no_wait: bool,
    /// Go on when there are more lines than --keys allows: more and more new lines are dropped
    #[arg(long)]
    allow_overfull: bool,
    /// Print the summary as JSON, in one line on standard error
    #[arg(long)]
    json: bool,
    /// Do not print the summary
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
}

/// For an unknown number of lines.
pub const INITIAL_CAPACITY: usize = 1_000_000;
pub const FPR: f64 = 1e-6;

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    // Resolved once: a link that is changed meanwhile leads to a state that is not locked.
    let path = arguments.state.as_deref().map(followed).transpose()?;
    let _lock = path.as_ref().map(|path| claim(path, arguments)).transpose()?;
    let saved = path.as_ref().map(|path| saved(path, arguments)).transpose()?.flatten();
    let is_saved = saved.is_some();
    let state = saved.map_or_else(|| new(arguments), Ok)?;
    let most_lines = state.most_lines().unwrap_or(u64::MAX);
    if !arguments.allow_overfull && state.lines > most_lines {
        return Err(too_many(arguments, is_saved, &state, 0));
    }
    let seed = state.filter.seed();
    // Exactly the lines printed so far, whenever it is not locked; `None` once saved, or if it must not be.
    let seen = Arc::new(Mutex::new(Some(state)));
    if let Some(path) = path.clone() {
        let seen = Arc::clone(&seen);
        signals::before_end(move || {
            let mut seen = lock(&seen);
            let saved = seen.take().map_or(Ok(()), |state| save(&state, &path));
            saved.unwrap_or_else(|error| note(format_args!("{error:#}")));
        })?;
    }
    let mut printer = Printer::new();
    let mut keys = Keys::new(&arguments.input, "reading");
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
        let Some(state) = seen.as_mut() else { signals::wait_for_end() };
        selected.clear();
        let mut refused = None;
        let insert = |i| {
            insert(&mut state.filter, &hashes, i).unwrap_or_else(|error| {
                refused = Some(error);
                false
            })
        };
        let n_new = chunk.select(insert, &mut selected)? as u64;
        let lines = state.lines.saturating_add(n_new);
        let is_overfull = !arguments.allow_overfull && lines > most_lines;
        let printed_all = match refused {
            Some(SizingError::OutOfMemory { bytes, .. }) => Err(anyhow!(
                "cannot allocate {} for more lines; nothing was saved (free some memory)",
                size(bytes as u64)
            )),
            Some(error) => Err(error.into()),
            None if is_overfull => Err(too_many(arguments, is_saved, state, printed)),
            None => printer.print(&selected),
        };
        if let Err(error) = printed_all {
            *seen = None;
            return Err(error);
        }
        state.lines = lines;
        printed += n_new;
    };
    let n_lines = keys.count();
    drop(keys); // and with it the progress bar
    let mut seen = lock(&seen);
    let Some(state) = seen.take() else { signals::wait_for_end() };
    // A first run that read nothing leaves no state, which would bind the next run to its options.
    if let Some(path) = path.as_ref().filter(|_| is_saved || printed > 0 || read.is_ok()) {
        save(&state, path)?;
    }
    let mut fpr = state.filter.estimated_fpr();
    if state.lines > most_lines {
        let [fpr, requested] = [fpr, state.fpr].map(percent);
        note(format_args!("more distinct lines than expected: FPR now {fpr}, not the requested {requested}"));
    } else {
        fpr = fpr.min(state.fpr); // above it only by the chance of these bits
    }
    read?;
    if arguments.json {
        let text = json!({"lines": n_lines, "printed": printed, "dropped": n_lines - printed, "false_positive_rate": fpr});
        let _ = writeln!(io::stderr(), "{text}"); // standard output has the lines
    } else if !arguments.quiet {
        say(fpr, n_lines, printed);
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks now that the state can be written, and waits until no other run uses it.
fn claim(path: &Path, arguments: &Arguments) -> Result<FileLock> {
    let name = path.display();
    ensure!(!is_stream(path), "{name}: a state is read and then replaced (name a file)");
    ensure!(!is_printed_to(path), "{name}: is the state, and also the output (write to another file)");
    ensure!(!arguments.input.has(path), "{name}: is the state, and also an input (name another state)");
    drop(NewFile::create(path)?);
    FileLock::of(path, !arguments.no_wait)
}

/// The state of earlier runs, if there were any.
fn saved(path: &Path, arguments: &Arguments) -> Result<Option<State>> {
    let exists = path.try_exists().map_err(|error| io_error(path.display(), &error))?;
    if !exists {
        return Ok(None);
    }
    let file = FilterFile::open(path)?;
    let name = &file.name;
    ensure!(
        !file.bytes().is_empty(),
        "{name}: an empty file is not a dedup state (remove it, and dedup creates one)"
    );
    let state = State::from_bytes(name, file.bytes())?;
    let n_lines = grouped(state.capacity);
    if let Some(keys) = arguments.keys.filter(|&keys| keys as u64 != state.capacity) {
        let keys = grouped(keys as u64);
        bail!("{name}: made for {n_lines} lines, not {keys} (omit --keys, or name another state)");
    }
    if let Some(fpr) = arguments.fpr.filter(|&fpr| !state.requests(fpr)) {
        let [fpr, requested] = [fpr, state.fpr].map(percent);
        bail!("{name}: made for an FPR of {requested}, not {fpr} (omit --fpr, or name another state)");
    }
    ensure!(
        !arguments.scalable || matches!(state.filter, Filter::Growing(_)),
        "{name}: of fixed size, for {n_lines} lines, not --scalable (convert it with `bloomline grow {name}`)"
    );
    Ok(Some(state))
}

fn new(arguments: &Arguments) -> Result<State> {
    let fpr = arguments.fpr.unwrap_or(FPR);
    let bits_per_key = sizing::bits_per_key(fpr)?;
    let keys = match arguments.keys {
        _ if arguments.scalable => None,
        // Lines of later runs go into a state too, and cannot be counted yet.
        None if arguments.state.is_none() && arguments.input.is_of_files() => {
            Some(n_lines_of(&arguments.input))
        }
        keys => keys,
    };
    let capacity = keys.or(arguments.keys).unwrap_or(INITIAL_CAPACITY);
    let filter = if keys.is_some() {
        Filter::Fixed(BloomFilter::with_bits_per_key(capacity, bits_per_key)?)
    } else {
        let filter = ScalableBloomFilter::with_fpr(capacity, fpr);
        Filter::Growing(filter.map_err(|error| match error {
            SizingError::Fpr { value, lowest, .. } => anyhow!(
                "an FPR of {} is too low for a filter that grows (raise --fpr to {lowest:e}, or give the number of \
                 lines with --keys, without --scalable)",
                percent(value)
            ),
            _ => error.into(),
        })?)
    };
    Ok(State { filter, capacity: capacity as u64, lines: 0, fpr })
}

/// The number of distinct lines, and some more: a log may grow while it is read twice, and the count is not exact.
fn n_lines_of(input: &Input) -> usize {
    // What cannot be read is reported when it is read again, after the lines before it.
    let (distinct, _) = distinct::count(input);
    let keys = distinct.at_most();
    keys + keys / 64 + 1000
}

/// Inserts the `i`-th key, prefetching for later ones, and returns whether it was new.
fn insert(filter: &mut Filter, hashes: &[u64], i: usize) -> Result<bool, SizingError> {
    const AHEAD: usize = 32;
    let later = hashes.get(i + AHEAD);
    match filter {
        Filter::Fixed(filter) => {
            later.into_iter().for_each(|&later| filter.prefetch(later));
            Ok(filter.insert_hash(hashes[i]))
        }
        Filter::Growing(filter) => {
            later.into_iter().for_each(|&later| filter.prefetch(later));
            filter.try_insert_hash(hashes[i])
        }
    }
}

/// Once what it says was printed is on disk: after a power failure, no run would print it again.
fn save(state: &State, path: &Path) -> Result<()> {
    Printer::sync()?;
    NewFile::create(path)?.write(|file| state.write_to(file))
}

/// Why dedup stops before it drops more new lines than requested, and what helps.
fn too_many(arguments: &Arguments, is_saved: bool, state: &State, printed: u64) -> Error {
    let most = format!(
        "more than {} distinct lines, the most for an FPR of {}",
        grouped(state.most_lines().unwrap_or(u64::MAX)),
        percent(state.fpr)
    );
    let again = match printed {
        0 => "nothing was saved".to_owned(),
        n => format!("nothing was saved, so the next run prints {} again", counted(n, "line")),
    };
    match &arguments.state {
        Some(path) if is_saved => {
            let name = path.display();
            let rate = if state.is_overfull() { "--fpr FPR " } else { "" };
            anyhow!("{name}: {most}; {again} (run `bloomline grow {rate}{name}`, then dedup again)")
        }
        Some(path) => anyhow!("{}: {most}; {again} (raise --keys, or use --scalable)", path.display()),
        None if arguments.keys.is_none() => anyhow!("{most}: the input has grown (use --scalable)"),
        None => anyhow!("{most} (raise --keys, or use --scalable)"),
    }
}

fn say(fpr: f64, lines: u64, printed: u64) {
    let dropped = lines - printed;
    let counts =
        format!("{}, {} printed, {} dropped", counted(lines, "line"), grouped(printed), grouped(dropped));
    let fpr_now = percent(fpr);
    if dropped == 0 {
        return note(format_args!("{counts} (FPR now {fpr_now})"));
    }
    // An upper bound: the rate has only now risen to `fpr`.
    let wrong = match (fpr / (1.0 - fpr) * printed as f64).min(dropped as f64) {
        wrong if wrong < 1.0 => "likely none".to_owned(),
        wrong => format!("at most about {}", grouped(wrong.ceil() as u64)),
    };
    note(format_args!("{counts}, {wrong} of them new (FPR now {fpr_now})"));
}
