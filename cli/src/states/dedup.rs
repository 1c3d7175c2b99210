//! `bloomline dedup`
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{mem, thread};

use anyhow::{Error, Result, anyhow, bail, ensure};
use bloomline::sizing::SCALABLE_MIN_FPR;
use bloomline::variants::ScalableBloomFilter;
use bloomline::{BloomFilter, Sizing, StandaloneKind};
use clap::Args;
use serde_json::json;

use crate::ahead::in_order;
use crate::filter_file::FilterFile;
use crate::guard::refuse_state;
use crate::input::{Input, SeenRule};
use crate::keys::Keys;
use crate::numbers::{self, counted, grouped, percent};
use crate::output::{
    FileLock, NewFile, Printer, followed, io_error, is_pipe_closed, is_printed_to, is_same_file, is_stdout,
    is_stream, last_note, leads_to, note,
};
use crate::signals::{self, lock};
use crate::state::{FPR, Filter, INITIAL_CAPACITY, State, grow_command};
use crate::states::grow;
use crate::states::insert::{Inserted, Stop, refused};
use crate::states::made::Made;
use crate::states::shards::Writer;

/// Print each distinct line once, where it occurs first
#[derive(Args)]
#[command(after_long_help = "\
Like `awk '!seen[$0]++'`, in the memory of a filter. Drops repeated lines, and
keeps the order. A new line is dropped too with a probability of at most --fpr,
one in a million by default. --dropped writes the dropped lines to a file. A
line that is there, but was never printed, was lost:

  bloomline dedup --dropped dropped.txt log.txt >once.txt
  sort once.txt >printed.txt
  sort -u dropped.txt | comm -13 printed.txt -

The summary says that likely none of the dropped lines is new if the chance that
one is new is below one in twenty. Otherwise it says at most how many.

Memory grows with the number of distinct keys. At the default --fpr, it is 36 to
87 bits for each, and 110 just after the first million. --keys fixes it, at 31.5
bits for each of N keys, and dedup stops with exit status 2 before there are so
many more than N that the FPR rises above --fpr. With --allow-overfull it goes
on, drops more and more new lines, and says so at the end.

With --state, lines printed in earlier runs are dropped too. FILE records the
keys of the printed lines, --fpr, --keys, and the key options (--column, --crlf
and the like). Later runs may omit --fpr and --keys; other values or other key
options are an error. FILE is written at the end, on Ctrl-C, and when dedup
stops because a line cannot be read or the filter is full, but not when output
cannot be written, or after SIGKILL. Then, without --output-dir, the next run
prints the lines of that run again, so first truncate the output to the last
length that a run said (\"output now 8 bytes\"; all runs do that record their
lines, unless -q). A second run on FILE waits until the first one ends.

With --json FIELD, what must be new is the text of that field. With
--paragraphs, each paragraph of the text must be: a line is printed without the
paragraphs that were seen, and byte for byte as it was otherwise, or dropped if
none is left. With --ngrams N, a text is dropped if --overlap of its n-grams are
in the filter. All of them are looked up before one is inserted, so that no text
is dropped because it repeats itself. The n-grams of dropped texts are not
inserted.

With --output-dir, the lines of each FILE go to a file of its name in DIR, which
appears whole or not at all. With --state too, give the same command again after
a stop of any kind. The list FILE.outputs beside the state has which files are
made, so these are not made again. If one of them is gone, or was made of a file
that has changed since, that is an error, because its lines count as printed.

A file that cannot be read is reported, the others are read, and the exit status
is 2. With --output-dir, no more files are read then. --dropped replaces its
file at the start. --summary writes an object of lines (or paragraphs), printed,
dropped and false_positive_rate, at the end.

Examples:
  bloomline dedup log.txt >once.txt
  zcat urls-*.gz | bloomline dedup --keys 1e9 | zstd >urls.zst
  bloomline dedup --csv --column user events.csv >first-events.csv
  bloomline dedup --json text --paragraphs documents.jsonl.gz >once.jsonl
  bloomline dedup --json text --ngrams 13 --overlap 80% --state seen.state
    --output-dir once shards/*.jsonl.gz
  tail -f events | bloomline dedup --state seen.state | handle-event")]
pub struct Arguments {
    /// Fix memory for N distinct keys, e.g. 1e9
    #[arg(long, value_name = "N", value_parser = numbers::count_from_1, allow_negative_numbers = true)]
    keys: Option<usize>,
    /// Begin with memory for N keys, and let it grow
    ///
    /// The default without --keys, beginning with memory for a million.
    #[arg(long)]
    grow: bool,
    /// Highest probability that a new line is dropped [default: 1e-6]
    ///
    /// At least 8.1e-7; 5.5e-13 with --keys and without --grow, but a state below
    /// 1.8e-8 cannot grow later. The default with --state is that of the state.
    #[arg(long, value_name = "FPR", value_parser = numbers::share, allow_negative_numbers = true)]
    fpr: Option<f64>,
    /// Drop what earlier runs printed, and record it in FILE
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Fail instead of waiting for another run on the state
    #[arg(long, requires = "state", hide_short_help = true)]
    no_wait: bool,
    /// Drop more and more new lines beyond N keys
    #[arg(long, hide_short_help = true)]
    allow_overfull: bool,
    /// Write the lines of each FILE to a file in DIR
    ///
    /// It has the name and the compression of FILE, and appears whole or not at all.
    /// With --state, a run that was killed goes on at the first file that is not there.
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Write the dropped lines to FILE
    #[arg(long, value_name = "FILE")]
    dropped: Option<PathBuf>,
    /// Write the summary to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// Print neither progress, nor notes, nor summary
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    seen: SeenRule,
    #[command(flatten)]
    input: Input,
}

/// What was printed.
struct Seen {
    state: State,
    /// Whether the state has no file yet.
    is_first: bool,
    /// Whether this run has printed something, which the file does not have.
    has_printed: bool,
}

/// What a run is doing when a signal comes.
#[expect(clippy::large_enum_variant, reason = "there is one of them")]
enum Doing {
    /// Waiting for lines. The signal's thread saves what was printed.
    Reading(Seen),
    Printing,
    Saving,
    /// One of both threads has saved it, or says that it did not.
    Ending,
}

impl Doing {
    /// Does `next` from now on, and returns what the run did before. Waits for the end if a signal ends it.
    fn change(doing: &Mutex<Self>, next: Self) -> Self {
        let mut now = lock(doing);
        if !matches!(*now, Self::Ending) {
            return mem::replace(&mut now, next);
        }
        drop(now);
        signals::wait_for_end()
    }

    fn stop_reading(doing: &Mutex<Self>, next: Self) -> Seen {
        let Self::Reading(seen) = Self::change(doing, next) else { unreachable!("it reads") };
        seen
    }
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut printer = Printer::new();
    // Fails now if standard output is closed.
    printer.print("")?;
    let mut input = Input { seen: arguments.seen, ..arguments.input.resolve()? };
    // Resolved once, because a link that is changed meanwhile would lead to a state that is not locked.
    let path = arguments.state.as_deref().map(followed).transpose()?;
    let _lock = path.as_ref().map(|path| claim(path, arguments, &input)).transpose()?;
    let saved = path.as_ref().map(|path| saved(path, arguments, &input)).transpose()?.flatten();
    let is_first = saved.is_none();
    let mut state = saved.map_or_else(|| new(arguments), Ok)?;
    // A header too is printed once, or once in each file.
    let shows_header = state.rule.is_none() || arguments.output_dir.is_some();
    state.rule.get_or_insert_with(|| input.rule.clone());
    let most_keys = state.most_keys().unwrap_or(u64::MAX);
    let limit = if arguments.allow_overfull { u64::MAX } else { most_keys };
    if state.keys > limit {
        return Err(full(arguments, &state));
    }
    if let (Some(dropped), Some(summary)) = (&arguments.dropped, &arguments.summary) {
        let name = dropped.display();
        let are_one = leads_to(dropped, summary) || is_same_file(dropped, summary);
        ensure!(!are_one, "{name}: for --dropped and --summary (name two files)");
    }
    ensure!(
        !(input.seen.spans && path.is_some() && arguments.output_dir.is_some()),
        "--spans: a state knows of files of lines, not of spans (omit --state or --output-dir)"
    );
    let outputs = [("--dropped", &arguments.dropped), ("--summary", &arguments.summary)];
    outputs.iter().try_for_each(|(option, file)| check_output(option, file.as_deref(), &path, &input))?;
    let [mut dropped, mut summary] =
        [Report::create(&arguments.dropped, true)?, Report::create(&arguments.summary, false)?];
    let made = Made::open(path.as_deref(), state.keys)?;
    let n_files = input.files.len();
    let mut writer = None;
    if let Some(directory) = &arguments.output_dir {
        input.check()?;
        let list = path.as_deref().map(Made::list_of);
        let others = [&path, &list, &arguments.dropped, &arguments.summary];
        let others: Vec<&Path> = others.into_iter().flatten().map(PathBuf::as_path).collect();
        writer = Some(Writer::create(directory, &mut input, made, state.keys, &others)?);
    }
    let seed = state.filter.seed();
    let doing = Arc::new(Mutex::new(Doing::Reading(Seen { state, is_first, has_printed: false })));
    let begin = Printer::length().filter(|_| path.is_some() && writer.is_none());
    if let Some(path) = path.clone() {
        let (doing, quiet) = (Arc::clone(&doing), arguments.quiet);
        let finished = writer.as_ref().map(|writer| Arc::clone(&writer.finished));
        signals::before_end(move || match finished {
            None => save_before_end(&doing, &path, begin, quiet),
            Some(finished) => {
                lock(&finished.waiting).clear();
                if !quiet {
                    last_note(format_args!("{}: {finished}", path.display()));
                }
            }
        })?;
    }
    let keys = Keys::new(&input, "reading", arguments.quiet);
    let keys = if writer.is_some() { keys.by_file() } else { keys };
    let (mut inserted, mut lines) = (Inserted::default(), Vec::new());
    let (mut n_lines, mut n_printed, mut n_keys, mut ended) = (0, 0, 0, Ok(()));
    let is_whole = in_order(keys, seed, |chunk, hashes, hashed| {
        let mut seen = Doing::stop_reading(&doing, Doing::Printing);
        let Seen { state, has_printed, .. } = &mut seen;
        if let Some(writer) = writer.as_mut().filter(|writer| writer.current() < chunk.file()) {
            let save = || path.as_ref().map_or(Ok(()), |path| save(state, path));
            writer.go_to(chunk.file(), hashed.is_err(), state.keys, save)?;
        }
        let (n_new, stop) =
            inserted.insert(&mut state.filter, chunk.units(), hashes, limit - state.keys, &input.seen);
        let mut print = || {
            let is_new = &inserted.is_new;
            if let Some(dropped) = &mut dropped {
                lines.clear();
                chunk.copy(is_new, false, &mut lines)?;
                dropped.write(&lines)?;
            }
            lines.clear();
            if input.seen.spans {
                chunk.copy_spans(&inserted.shares, &mut lines)?;
            } else {
                if shows_header {
                    lines.extend_from_slice(chunk.preamble());
                }
                chunk.copy(is_new, true, &mut lines)?;
            }
            *has_printed |= !lines.is_empty();
            match &mut writer {
                Some(writer) => writer.print(&lines),
                None => printer.print(&lines),
            }
        };
        if let Err(error) = print() {
            Doing::change(&doing, Doing::Ending);
            return Err(match &writer {
                Some(_) => error,
                None => not_recorded(path.as_deref(), begin, error),
            });
        }
        state.keys += n_new;
        n_keys += n_new;
        n_printed += inserted.n_printed;
        n_lines += inserted.n_lines;
        ended = match stop {
            None => hashed,
            Some(Stop::Full) => Err(full(arguments, state)),
            Some(Stop::Refused(error)) => Err(refused(error)),
        };
        Doing::change(&doing, Doing::Reading(seen));
        Ok(ended.is_ok())
    })?;
    let Seen { state, has_printed, .. } = Doing::stop_reading(&doing, Doing::Saving);
    if let Some(writer) = &mut writer {
        let save = || path.as_ref().map_or(Ok(()), |path| save(&state, path));
        match &path {
            _ if ended.is_ok() => writer.go_to(input.files.len(), true, state.keys, save)?,
            Some(path) => {
                ended = ended.map_err(|error| anyhow!("{error:#}; {}: {}", path.display(), writer.finished));
            }
            None => (),
        }
        writer.drain()?;
    }
    // A first run that printed nothing and failed leaves no state, which would bind the next run to its options.
    let is_wanted = writer.is_none() && (has_printed || is_first && ended.is_ok() && is_whole);
    let saved = match path.as_ref().filter(|_| is_wanted) {
        Some(path) => {
            // What is lost is among the dropped lines, after a power failure too. A pipe cannot be synced.
            let _ = dropped.as_ref().map(|dropped| dropped.file.sync_all());
            save(&state, path)
        }
        None => Ok(()),
    };
    Doing::change(&doing, Doing::Ending);
    saved.map_err(|error| not_recorded(path.as_deref(), begin, error))?;
    // Every run that records what it printed says how long the output is, also if it fails.
    let is_printed = path.is_some() && writer.is_none();
    let now = if is_printed { output_now() } else { String::new() };
    let is_recorded = is_printed && is_wanted;
    let recorded = if is_recorded { format!("; the lines printed are recorded{now}") } else { String::new() };
    ended.map_err(|error| anyhow!("{error:#}{recorded}"))?;
    let mut fpr = state.filter.estimated_fpr();
    if state.keys > most_keys {
        let [fpr, requested] = [fpr, state.fpr].map(percent);
        note(format_args!("more distinct keys than expected: FPR now {fpr}, not the requested {requested}"));
    } else {
        fpr = fpr.min(state.fpr); // above it only by the chance of these bits
    }
    if let Some(summary) = &mut summary {
        let n_dropped = n_lines - n_printed;
        let text =
            json!({"lines": n_lines, "printed": n_printed, "dropped": n_dropped, "false_positive_rate": fpr});
        let _ = summary.file.set_len(0); // a pipe has no length
        summary.write(format!("{text:#}\n")).map_err(|error| anyhow!("{error:#}{recorded}"))?;
    }
    if !arguments.quiet && (is_whole || n_lines > 0) {
        let drops = if n_printed < n_lines { inserted.expected_drops(&state, n_keys) } else { 0.0 };
        let files = match input.files.len() {
            _ if writer.is_none() => String::new(),
            n if n < n_files => {
                format!(
                    "{} (finished before: {}), ",
                    counted(n as u64, "file"),
                    grouped((n_files - n) as u64)
                )
            }
            n => counted(n as u64, "file") + ", ",
        };
        say(fpr, &(files + &counted(n_lines, input.record())), n_lines, n_printed, drops, &now);
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// Fails now if the state cannot be written. Waits until no other run uses it.
fn claim(path: &Path, arguments: &Arguments, input: &Input) -> Result<FileLock> {
    let name = path.display();
    ensure!(!is_stream(path), "{name}: a state is read and then replaced (name a file)");
    ensure!(!is_printed_to(path), "{name}: is the state, and also the output (write to another file)");
    ensure!(!input.has(path), "{name}: is the state, and also an input (name another state)");
    drop(NewFile::create(path)?);
    FileLock::of(path, arguments.no_wait.then_some("omit --no-wait to wait"))
}

/// Fails if the file of an option is also read, or written in another way.
fn check_output(option: &str, file: Option<&Path>, state: &Option<PathBuf>, input: &Input) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    let name = file.display();
    let also = if is_printed_to(file) || is_stdout(file) {
        "the output"
    } else if input.has(file) {
        "an input"
    } else if state.as_ref().is_some_and(|state| leads_to(file, state)) {
        "the state"
    } else {
        return if is_stream(file) { Ok(()) } else { refuse_state(file, "name another file") };
    };
    bail!("{name}: is given with {option}, and is also {also} (name another file)")
}

/// The state of earlier runs, if there were any.
fn saved(path: &Path, arguments: &Arguments, input: &Input) -> Result<Option<State>> {
    let exists = path.try_exists().map_err(|error| io_error(path.display(), &error))?;
    if !exists {
        return Ok(None);
    }
    let file = FilterFile::open(path)?;
    let name = &file.name;
    ensure!(
        !file.bytes().is_empty(),
        "{name}: an empty file is not a state of dedup (remove it, and dedup creates one)"
    );
    if StandaloneKind::of(file.bytes()).is_some() {
        return Err(grow::is_a_filter(path, &file));
    }
    let state = State::from_bytes(name, file.bytes())?;
    let n_keys = grouped(state.capacity);
    if let Some(keys) = arguments.keys.filter(|&keys| keys as u64 != state.capacity) {
        let keys = grouped(keys as u64);
        bail!("{name}: made for {n_keys} keys, not {keys} (omit --keys, or name another state)");
    }
    if let Some(fpr) = arguments.fpr.filter(|&fpr| !state.requests(fpr)) {
        let [fpr, requested] = [fpr, state.fpr].map(percent);
        bail!("{name}: made for an FPR of {requested}, not {fpr} (omit --fpr, or name another state)");
    }
    if let Some(rule) = state.rule.as_ref().filter(|rule| **rule != input.rule) {
        let [ours, theirs] = [&input.rule, rule].map(|rule| rule.options());
        bail!("{name}: made with {theirs}, not with {ours} (give its options, or name another state)");
    }
    if state.rule.is_none() {
        input.rule.check_seed(name, state.filter.seed())?;
    }
    ensure!(
        !arguments.grow || matches!(state.filter, Filter::Growing(_)),
        "{name}: of fixed size, for {n_keys} keys (first run `{}`)",
        grow_command(path, None, None)
    );
    Ok(Some(state))
}

fn new(arguments: &Arguments) -> Result<State> {
    let fpr = arguments.fpr.unwrap_or(FPR);
    let capacity = arguments.keys.unwrap_or(INITIAL_CAPACITY);
    let filter = if arguments.keys.is_some() && !arguments.grow {
        let filter = BloomFilter::with_sizing(Sizing::for_fpr(capacity as u64, fpr)?)?;
        Filter::Fixed(filter.with_seed(arguments.input.rule.seed())?)
    } else {
        ensure!(
            !(fpr > 0.0 && fpr < SCALABLE_MIN_FPR),
            "an FPR of {} is too low for a filter that grows (raise --fpr to {SCALABLE_MIN_FPR:e}{})",
            percent(fpr),
            if Sizing::for_fpr(1, fpr).is_ok() {
                ", or fix the number of distinct keys with --keys"
            } else {
                ""
            }
        );
        let filter = ScalableBloomFilter::with_fpr(capacity as u64, fpr)?;
        Filter::Growing(filter.with_seed(arguments.input.rule.seed())?)
    };
    Ok(State { filter, capacity: capacity as u64, keys: 0, fpr, rule: None })
}

/// Syncs the printed lines first. Otherwise they could be lost in a power failure, and no run would print them again.
fn save(state: &State, path: &Path) -> Result<()> {
    Printer::sync()?;
    NewFile::create(path)?.write(|file| state.write_to(file))
}

/// What to report if lines were printed, or some of them, and the state does not have them. The output was `begin` bytes
/// long before.
fn not_recorded(path: Option<&Path>, begin: Option<u64>, error: Error) -> Error {
    let Some(path) = path.map(Path::display) else { return error };
    if is_pipe_closed(&error) {
        note(format_args!("{path}: not recorded, because the reader of the output has exited"));
        return error;
    }
    anyhow!("{path}: not recorded: {error:#}{}", truncate_to(begin))
}

/// To what length the output can be truncated if the next run is killed.
fn output_now() -> String {
    Printer::length().map(|bytes| format!(", output now {bytes} bytes")).unwrap_or_default()
}

fn truncate_to(begin: Option<u64>) -> String {
    begin
        .map(|bytes| format!("; before you go on, truncate the output to the {bytes} bytes that it had"))
        .unwrap_or_default()
}

/// Saves the state when a signal ends the process, and says whether that was possible.
fn save_before_end(doing: &Mutex<Doing>, path: &Path, begin: Option<u64>, quiet: bool) {
    let (name, mut n_waits) = (path.display(), 0);
    let seen = loop {
        let mut now = lock(doing);
        match mem::replace(&mut *now, Doing::Ending) {
            Doing::Reading(seen) => break seen,
            Doing::Printing if signals::is_impatient() => {
                let cut = truncate_to(begin);
                return last_note(format_args!("{name}: not recorded, because output was not written{cut}"));
            }
            // The main thread says so, unless nobody reads that.
            Doing::Ending => return thread::sleep(Duration::from_secs(1)),
            printing_or_saving => *now = printing_or_saving,
        }
        let is_printing = matches!(*now, Doing::Printing);
        drop(now);
        n_waits += 1;
        if n_waits == 100 && is_printing && !quiet {
            last_note(format_args!(
                "{name}: saved once output is written; another signal ends without saving"
            ));
        }
        thread::sleep(Duration::from_millis(10));
    };
    let text = match seen {
        Seen { is_first: true, has_printed: false, .. } => "not made, as nothing was printed",
        Seen { has_printed: false, .. } => "nothing new was printed",
        Seen { state, .. } => match save(&state, path) {
            Ok(()) => &format!("saved, with all lines that were printed{}", output_now()),
            Err(error) => {
                return last_note(format_args!("{name}: not recorded: {error:#}{}", truncate_to(begin)));
            }
        },
    };
    if !quiet {
        last_note(format_args!("{name}: {text}"));
    }
}

/// Why dedup stops before it drops more new lines than requested, and what helps.
fn full(arguments: &Arguments, state: &State) -> Error {
    let most = grouped(state.most_keys().unwrap_or(u64::MAX));
    let most = format!("more than {most} distinct keys, the most for an FPR of {}", percent(state.fpr));
    let Some(path) = &arguments.state else {
        return anyhow!("{most} (raise --keys, or add --grow)");
    };
    let (name, is_overfull) = (path.display(), state.is_overfull());
    let remedy = state.enough_to_grow().map_or("begin another state".into(), |fpr| {
        let again = if is_overfull || arguments.fpr.is_none() { "again" } else { "again without --fpr" };
        format!("run `{}`, then dedup {again}", grow_command(path, None, is_overfull.then_some(fpr)))
    });
    anyhow!("{name}: {most} ({remedy})")
}

/// `drops` is how many new lines are dropped in the mean.
fn say(fpr: f64, read: &str, lines: u64, printed: u64, drops: f64, output_now: &str) {
    let dropped = lines - printed;
    let counts = format!("{read}, {} printed, {} dropped", grouped(printed), grouped(dropped));
    let fpr_now = percent(fpr) + output_now;
    if dropped == 0 {
        return note(format_args!("{counts} (FPR now {fpr_now})"));
    }
    // Assumes, before the run, that with probability 1/2 no line is repeated, so that all dropped lines are new, and
    // that otherwise all numbers of repeats are equally likely.
    let odds = drops.exp_m1() + lines as f64 * drops.powf(dropped as f64);
    let wrong = if odds < 1.0 / 19.0 {
        "likely none".to_owned()
    } else {
        // More than two standard deviations above the mean are rarer than one in twenty.
        let most = drops + 2.0 * (drops / (1.0 - fpr)).sqrt();
        format!("at most about {}", grouped(most.ceil().min(dropped as f64) as u64))
    };
    note(format_args!("{counts}, {wrong} of them new (FPR now {fpr_now})"));
}

/// A file that is written beside the lines.
struct Report {
    name: PathBuf,
    file: File,
}

impl Report {
    /// Fails now if the file cannot be written. Empties it now, or leaves that to its writer.
    fn create(name: &Option<PathBuf>, empties: bool) -> Result<Option<Self>> {
        let Some(name) = name else { return Ok(None) };
        let file = File::options().write(true).create(true).truncate(empties).open(name);
        let file = file.map_err(|error| io_error(name.display(), &error))?;
        Ok(Some(Self { name: name.clone(), file }))
    }

    fn write(&mut self, text: impl AsRef<[u8]>) -> Result<()> {
        self.file.write_all(text.as_ref()).map_err(|error| io_error(self.name.display(), &error))
    }
}
