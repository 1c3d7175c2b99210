//! `bloomline index`
#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{BufWriter, ErrorKind, Seek};
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use bloomline::bank::{FileVersion, IndexBuilder, IndexView};
use bloomline::{FilterBuilder, StandaloneKind};
use clap::Args;

use crate::filter_file::{Content, FilterFile};
use crate::guard::Output;
use crate::input::{Input, is_stdin};
use crate::keys::{Keys, Notes, in_threads};
use crate::numbers::{self, counted, grouped, percent, size};
use crate::output::{io_error, is_stream, note};
use crate::progress::Progress;
use crate::signals::lock;

/// Index files, to find those that have a word or line
#[derive(Args)]
#[command(after_long_help = "\
The index has a filter of each file's keys, and `bloomline find` prints the
files that possibly have a key. With --words, keys are the words of files: the
longest runs of ASCII letters, digits, _, ., - and bytes above 127, without .
and - at their ends. So IPv4 addresses, host names, UUIDs, numbers and dates
are one word each, and bob@example.com, 10.0.0.1:80 and key=value are two. Case
counts. Escapes are not decoded, so \\nERROR in JSON has the word nERROR. Without
--words, keys are lines, or their --column.

Given again, the command reads only files that are new or have changed, by
their size and modification time, and drops those that are not named any more
or do not exist any more. So name all files each time. A file that is replaced
by one of the same size and modification time is not noticed. Files that were
changed less than two seconds before they were read are read again, because
they could have been changed again in the same tick of the clock.

The index records --fpr and the options of keys. Other values than recorded
are an error.

If a file cannot be read, nothing is written. The index appears whole or not at
all. Memory is up to twice the index, and some 30 bytes for each distinct key
of the files that are being read. Each core reads one file at a time.

Examples:
  bloomline index --words -o logs.index logs/*.gz
  find logs -name '*.gz' -print0 |
    bloomline index --words -o logs.index --files0-from -
  bloomline index --csv --column user -o users.index events-*.csv.zst")]
pub struct Arguments {
    #[command(flatten)]
    output: Output,
    /// Keys are the words of files, instead of their lines
    #[arg(long, conflicts_with_all = ["null", "length", "crlf", "integers", "column", "csv"])]
    words: bool,
    /// Largest share of the files without a key that `find` prints too [default: 0.1%]
    #[arg(long, value_name = "FPR", value_parser = numbers::share, allow_negative_numbers = true)]
    fpr: Option<f64>,
    #[command(flatten)]
    input: Input,
}

/// A file that is there.
struct Source {
    /// Index among the files of the input.
    file: usize,
    version: FileVersion,
    /// Its number in the old index if it has not changed since.
    unchanged: Option<usize>,
}

type Old<'a> = IndexView<'a>;

pub fn run(arguments: &Arguments) -> Result<()> {
    let Output { path, quiet, .. } = &arguments.output;
    let mut input = Input { words: arguments.words, decodes: true, ..arguments.input.resolve()? };
    let (name, rule) = (path.display(), input.recorded());
    ensure!(!input.has(path), "{name}: is an input, and the index would replace it (choose another output)");
    if let Some(file) = input.files.iter().position(|file| is_stdin(file)) {
        bail!("{}: has no name to be found by (name files)", input.name(file));
    }
    ensure!(
        Input::of_recorded(&rule).is_some(),
        "{rule}: the index could not record this (give the column by its number)"
    );
    input.files.sort_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    input.files.dedup_by(|one, other| one.as_os_str() == other.as_os_str());
    // Locked until the end if it is there, because it is read and then replaced.
    let output = arguments.output.create([path])?;
    let old_file = (path.exists() && !is_stream(path)).then(|| FilterFile::open(path)).transpose()?;
    let old = old_file.as_ref().map(|file| old_index(file, arguments.fpr, &rule)).transpose()?;
    let fpr = old.as_ref().map(|old| old.footer().fpr()).or(arguments.fpr).unwrap_or(0.001);
    let builder = IndexBuilder::with_fpr(fpr)?.with_rule(&rule)?;
    let (sources, gone) = sources(&input, old.as_ref())?;
    if let (true, Some(old)) = (sources.is_empty(), &old) {
        let n = old.footer().files();
        ensure!(
            n == 0,
            "{name}: none of its {} is there (remove it if this is meant)",
            counted(n as u64, "file")
        );
    }
    let (n_files, n_read) =
        (sources.len(), sources.iter().filter(|source| source.unchanged.is_none()).count());
    let (keys, n_bytes) = match &old_file {
        Some(file) if n_read == 0 && gone == 0 => {
            let keys = old.iter().flat_map(|old| (0..n_files).filter_map(|file| old.known_keys(file)));
            (keys.fold(0, u64::saturating_add), Some(file.bytes().len() as u64))
        }
        _ => {
            let Made { builder, keys, notes } = make(builder, sources, &input, old.as_ref(), *quiet)?;
            if !quiet {
                notes.print(&input);
            }
            let mut n_bytes = None;
            output.write(|file| {
                builder.write_standalone(BufWriter::with_capacity(1 << 20, &mut *file))?;
                n_bytes = file.stream_position().ok(); // a pipe has none
                Ok(())
            })?;
            (keys, n_bytes)
        }
    };
    if !quiet {
        let gone = if gone > 0 { format!(", {} dropped", grouped(gone as u64)) } else { String::new() };
        note(format_args!(
            "{name}: {} ({} read{gone}), {}, {}FPR {}",
            counted(n_files as u64, "file"),
            grouped(n_read as u64),
            counted(keys, "key"),
            n_bytes.map_or(String::new(), |bytes| size(bytes) + ", "),
            percent(fpr)
        ));
    }
    Ok(())
}

/// The index that is to be updated.
fn old_index<'a>(file: &'a FilterFile, fpr: Option<f64>, rule: &str) -> Result<Old<'a>> {
    let name = &file.name;
    ensure!(
        StandaloneKind::of(file.bytes()) == Some(StandaloneKind::Index),
        "{name}: is not an index, or was cut short (remove it, or name another file)"
    );
    let Content::Index(old) = file.verified()? else { unreachable!("of this kind") };
    let (theirs, recorded) = (old.footer().rule(), percent(old.footer().fpr()));
    ensure!(
        theirs == rule,
        "{name}: made of {theirs}, not of {rule} (give the same options, or remove it to read all files again)"
    );
    if let Some(fpr) = fpr.map(percent).filter(|fpr| *fpr != recorded) {
        bail!(
            "{name}: made for an FPR of {recorded}, not {fpr} (omit --fpr, or remove it to read all files again)"
        );
    }
    Ok(old)
}

/// The files that are there, and how many others the old index has.
fn sources(input: &Input, old: Option<&Old>) -> Result<(Vec<Source>, usize)> {
    let footer = old.map(IndexView::footer);
    let names = footer.iter().flat_map(|footer| (0..footer.files()).map(|file| (footer.name(file), file)));
    let (mut left, mut sources): (HashMap<_, _>, _) = (names.collect(), Vec::new());
    for (file, path) in input.files.iter().enumerate() {
        let (name, now) = (path.as_os_str().as_encoded_bytes(), SystemTime::now());
        let metadata = match fs::metadata(path) {
            // It has gone, and is not taken from those that are left.
            Err(error) if error.kind() == ErrorKind::NotFound && left.contains_key(&Some(name)) => continue,
            Ok(found) if found.is_dir() => Err(ErrorKind::IsADirectory.into()),
            found => found,
        };
        let metadata = metadata.map_err(|error| io_error(path.display(), &error))?;
        ensure!(
            metadata.is_file(),
            "{}: not a regular file, so nothing tells if it changes (omit it)",
            path.display()
        );
        let version = version(&metadata, now);
        let is_same = |file: &usize| {
            version.modified.is_some() && old.is_some_and(|old| old.version(*file) == Some(version))
        };
        sources.push(Source { file, version, unchanged: left.remove(&Some(name)).filter(is_same) });
    }
    Ok((sources, left.len()))
}

/// What tells whether a file has changed since it was read, found before it is read. It has no time if the file could
/// change again unnoticed.
fn version(metadata: &Metadata, now: SystemTime) -> FileVersion {
    // Of all file systems in use, FAT has the coarsest clock.
    const TICK: Duration = Duration::from_secs(2);
    let settled =
        metadata.modified().ok().filter(|modified| now.duration_since(*modified).is_ok_and(|age| age > TICK));
    let nanoseconds = settled.and_then(|modified| match modified.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).ok(),
        Err(before) => i64::try_from(before.duration().as_nanos()).ok().map(|before| -before),
    });
    FileVersion::new(metadata.len(), nanoseconds)
}

struct Made {
    builder: IndexBuilder,
    /// Distinct keys of each file, in sum.
    keys: u64,
    notes: Notes,
}

/// Inserts all files. Each thread reads one at a time, the largest ones first, so that none is left alone with one.
fn make(
    builder: IndexBuilder,
    mut sources: Vec<Source>,
    input: &Input,
    old: Option<&Old>,
    quiet: bool,
) -> Result<Made> {
    sources.sort_by_key(|source| Reverse(source.version.size));
    let to_read = sources.iter().filter(|source| source.unchanged.is_none());
    let n_bytes = to_read.map(|source| source.version.size).sum();
    let progress = Arc::new(Progress::new("indexing", Some(n_bytes), quiet));
    let (keys, next) = (builder.filter_builder(), AtomicUsize::new(0));
    let made = Mutex::new(Made { builder, keys: 0, notes: Notes::default() });
    let insert = |source: &Source, keys: &mut FilterBuilder| {
        let (name, mut notes) = (input.files[source.file].as_os_str(), Notes::default());
        let mut filter = None;
        if let (Some(old), Some(file)) = (old, source.unchanged) {
            filter = old.to_filter(file)?;
        } else {
            // The builder would keep each repeat.
            let mut distinct = HashSet::<u64, BuildHasherDefault<Unchanged>>::default();
            notes = Keys::of_file(input, source.file, &progress).hash(0, |hashes| {
                distinct.extend(hashes);
                progress.count(next.load(Relaxed) as u64, "files");
            })?;
            distinct.into_iter().for_each(|hash| keys.insert_hash(hash));
        }
        let filter = filter.map_or_else(|| keys.finish(), Ok)?;
        let mut made = lock(&made);
        made.keys = made.keys.saturating_add(filter.known_keys().unwrap_or(0));
        made.notes.add(&notes);
        made.builder
            .insert(name.as_encoded_bytes(), source.version, filter)
            .with_context(|| input.name(source.file))
    };
    let work = || {
        let mut keys = keys.clone();
        while let Some(source) = sources.get(next.fetch_add(1, Relaxed)) {
            insert(source, &mut keys).map_err(|error| {
                next.store(sources.len(), Relaxed);
                (source.file, error)
            })?;
        }
        Ok(())
    };
    in_threads(thread::available_parallelism().map_or(1, NonZero::get).min(sources.len()), work)?;
    Ok(made.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The hash of a hash.
#[derive(Default)]
struct Unchanged(u64);

impl Hasher for Unchanged {
    fn write(&mut self, _: &[u8]) {
        unreachable!("hashes are of one integer");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
