//! `bloomline index`
#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{self, BufWriter, Seek};
use std::mem;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use bloomline::bank::{FileVersion, IndexBuilder, IndexView};
use bloomline::{FilterBuilder, StandaloneKind};
use clap::Args;
use walkdir::DirEntry;

use crate::files::{folder_name, is_folder, is_gone, is_same, is_unread, names, trimmed, version, walk};
use crate::filter_file::{Content, FilterFile};
use crate::guard::{Output, is_filter};
use crate::input::{Input, Utf16, WORDS, is_outdated, is_stdin, path_of};
use crate::keys::{Keys, Notes, in_threads};
use crate::numbers::{self, counted, grouped, percent, size};
use crate::output::{io_error, is_stream, note};
use crate::progress::Progress;
use crate::signals::lock;

/// Index files, to find those that have a word or line
#[derive(Args)]
#[command(after_long_help = "\
The index has a filter of each file's keys, and `bloomline find` prints the
files that possibly have a key. Without --words, keys are lines, or their
--column.

With --words, keys are the words of files: longest runs of letters, digits, _, .
and -, and their parts between . and -. So an IPv4, IPv6 or MAC address, a host
name, a UUID, a number or a date is one word, but bob@example.com, 10.0.0.1:80
and key=value are two. NullPointerException is found in
java.lang.NullPointerException. Colours of terminals are left out, and UTF-16 is
converted. Case counts, unless you give --ignore-case. Escapes are not decoded,
so \\nERROR in JSON has the word nERROR. With --json FIELD instead of --words, the
key of a line is the text of that field.

A folder stands for all of its files and those of its folders. Hidden files and
links are left out, unless you name them, and so are indexes and filters. `find`
prints names as you give them here, so in a cron job, name folders by absolute
paths.

Given again, the command reads only files that are new or have changed, by
their size, times and inode, and drops those that do not exist any more. So name
all files or folders each time, by the same paths. If files that exist and are
in the index are not named, that is an error: give --add to keep them, or --drop
to drop them. A file that was changed less than two seconds before it was read
is read again, because it could have changed again in the same tick of the
clock.

A file that cannot be read is reported, and the exit status is then 2. `find`
always prints this file, because it possibly has every key. The next run tries
to read it again.

The index records --fpr and the options of keys. Other values than recorded
are an error. The index appears whole or not at all. The command needs up to
twice the memory of the index, and some 30 bytes for each distinct key of the
files that it is reading. Each core reads one file at a time.

Examples:
  bloomline index --words -o logs.index logs
  find logs -name '*.gz' -print0 |
    bloomline index --words -o logs.index --files0-from -
  bloomline index --csv --column user -o users.index events-*.csv.zst")]
pub struct Arguments {
    #[command(flatten)]
    output: Output,
    /// Keys are the words of files, not their lines
    #[arg(long, conflicts_with_all = ["null", "length", "crlf", "integers", "column", "csv", "json", "ngrams", "min_words"])]
    words: bool,
    /// Find ASCII letters in upper and lower case
    #[arg(long, requires = "words")]
    ignore_case: bool,
    /// Of the files without a key, the largest share that `find` prints [default: 0.1%]
    #[arg(long, value_name = "FPR", value_parser = numbers::share, allow_negative_numbers = true)]
    fpr: Option<f64>,
    /// Keep files of the index that are not named
    #[arg(long, conflicts_with = "drop")]
    add: bool,
    /// Drop files from the index that are not named
    #[arg(long)]
    drop: bool,
    #[command(flatten)]
    input: Input,
}

/// A file that exists, or that cannot be read.
struct Source {
    /// Index among the files of the input.
    file: usize,
    version: FileVersion,
    /// Its number in the old index if it has not changed since.
    unchanged: Option<usize>,
    /// Whether it is already known that it cannot be read.
    unread: bool,
}

type Old<'a> = IndexView<'a>;

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { words, ignore_case, .. } = *arguments;
    let Output { path, quiet, .. } = &arguments.output;
    let name = path.display();
    let mut input = Input { words, ignore_case, utf_16: Utf16::Decoded, ..arguments.input.resolve()? };
    let is_named = arguments.input.files0_from.is_some() || !arguments.input.files.is_empty();
    ensure!(is_named && !input.files.is_empty(), "{name}: no file was named (name files, or their folder)");
    let rule = input.recorded();
    ensure!(!input.has(path), "{name}: is an input, and the index would replace it (choose another output)");
    if let Some(file) = input.files.iter().position(|file| is_stdin(file)) {
        bail!("{}: has no name to be found by (name files)", input.name(file));
    }
    ensure!(
        Input::of_recorded(&rule).is_some(),
        "{rule}: the index could not record this (give the column by its number)"
    );
    // Locked until the end if it is there, because it is read and then replaced.
    let output = arguments.output.create([path])?;
    let old_file = (path.exists() && !is_stream(path)).then(|| FilterFile::open(path)).transpose()?;
    let old = old_file.as_ref().map(|file| old_index(file, arguments.fpr, &rule)).transpose()?;
    let fpr = old.as_ref().map(|old| old.footer().fpr()).or(arguments.fpr).unwrap_or(0.001);
    let mut builder = IndexBuilder::with_fpr(fpr)?.with_rule(&rule)?;
    let mut listed = Listed::new(mem::take(&mut input.files));
    let sources = listed.sources(&mut input, old.as_ref(), arguments, &name.to_string())?;
    let Listed { folders, failed, n_gone, .. } = listed;
    ensure!(
        !sources.is_empty() || !failed.is_empty(),
        "{name}: no file was found (name files, or their folder)"
    );
    let n_files = sources.len();
    let n_unchanged = sources.iter().filter(|source| source.unchanged.is_some()).count();
    let mut n_read = 0;
    let (keys, n_bytes, unread) = match (&old, &old_file) {
        (Some(old), Some(file))
            if n_unchanged == n_files && n_gone == 0 && failed.is_empty() && folders == folders_of(old) =>
        {
            let keys = (0..old.footer().files()).filter_map(|file| old.known_keys(file));
            (keys.fold(0, u64::saturating_add), Some(file.bytes().len() as u64), failed)
        }
        _ => {
            for folder in &folders {
                let no_keys = builder.filter_builder().finish()?;
                builder.insert(folder, FileVersion::default(), no_keys)?;
            }
            let Made { builder, n_read: read, keys, notes, mut unread } =
                make(builder, sources, &input, old.as_ref(), *quiet)?;
            n_read = read;
            unread.extend(failed);
            if n_read + n_unchanged == 0
                && let Some((_, last)) = unread.pop_last()
            {
                unread.values().for_each(|error| note(format_args!("{error:#}")));
                return Err(last);
            }
            if !quiet {
                notes.print(&input);
            }
            let mut n_bytes = None;
            output.write(|file| {
                builder.write_standalone(BufWriter::with_capacity(1 << 20, &mut *file))?;
                n_bytes = file.stream_position().ok(); // a pipe has none
                Ok(())
            })?;
            (keys, n_bytes, unread)
        }
    };
    unread.values().for_each(|error| note(format_args!("{error:#}")));
    if !quiet {
        let count = |n: usize, what: &str| {
            if n > 0 { format!(", {} {what}", grouped(n as u64)) } else { String::new() }
        };
        note(format_args!(
            "{name}: {} ({} read{}{}), {}, {}FPR {}",
            counted(n_files as u64, "file"),
            grouped(n_read as u64),
            count(n_gone, "dropped"),
            count(unread.len(), "not read"),
            counted(keys, input.unit()),
            n_bytes.map_or(String::new(), |bytes| size(bytes) + ", "),
            percent(fpr)
        ));
    }
    Ok(if unread.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// The index to update.
fn old_index<'a>(file: &'a FilterFile, fpr: Option<f64>, rule: &str) -> Result<Old<'a>> {
    let name = &file.name;
    ensure!(
        StandaloneKind::of(file.bytes()) == Some(StandaloneKind::Index),
        "{name}: is not an index, or was cut short (remove it, or name another file)"
    );
    let Content::Index(old) = file.verified()? else { unreachable!("of this kind") };
    let (theirs, recorded) = (old.footer().rule(), percent(old.footer().fpr()));
    ensure!(
        !is_outdated(theirs),
        "{name}: made by an earlier definition of words (remove it to make it again)"
    );
    // Without the number of the definition, which no option has.
    let [is, asked] = [theirs, rule].map(|rule| rule.replacen(WORDS, "words", 1));
    ensure!(
        theirs == rule,
        "{name}: made of {is}, not of {asked} (give the same options, or remove it to make it again)"
    );
    if let Some(fpr) = fpr.map(percent).filter(|fpr| *fpr != recorded) {
        bail!("{name}: made for an FPR of {recorded}, not {fpr} (omit --fpr, or remove it to make it again)");
    }
    Ok(old)
}

fn folders_of(old: &Old) -> BTreeSet<Vec<u8>> {
    names(old).map(|(_, name)| name).filter(|name| is_folder(name)).map(<[u8]>::to_vec).collect()
}

/// A file that was named or found in a folder.
struct Found {
    version: io::Result<FileVersion>,
    is_named: bool,
}

/// The files that were named, and the files of folders that were named.
#[derive(Default)]
struct Listed {
    files: BTreeMap<PathBuf, Found>,
    folders: BTreeSet<Vec<u8>>,
    /// Why files and folders cannot be listed.
    failed: BTreeMap<PathBuf, Error>,
    /// Files of the old index that do not exist any more, or are dropped.
    n_gone: usize,
}

impl Listed {
    fn new(named: Vec<PathBuf>) -> Self {
        let mut listed = Self::default();
        for path in named {
            match fs::metadata(&path) {
                Ok(metadata) if metadata.is_dir() => {
                    let path = trimmed(&path);
                    listed.folders.insert(folder_name(&path));
                    let add = |entry: DirEntry| {
                        let version =
                            entry.metadata().map(|metadata| version(&metadata)).map_err(io::Error::from);
                        let found = Found { version, is_named: false };
                        listed.files.entry(entry.into_path()).or_insert(found);
                    };
                    let mut unlisted = Vec::new();
                    walk(&path, add, |path, error| unlisted.push((path, error)));
                    let found = |error| Found { version: Err(error), is_named: true };
                    listed.files.extend(unlisted.into_iter().map(|(path, error)| (path, found(error))));
                }
                Ok(metadata) if !metadata.is_file() => {
                    let name = path.display();
                    let error =
                        anyhow!("{name}: not a regular file, so nothing tells if it changes (omit it)");
                    listed.failed.insert(path, error);
                }
                metadata => {
                    let version = metadata.map(|metadata| version(&metadata));
                    listed.files.insert(trimmed(&path), Found { version, is_named: true });
                }
            }
        }
        listed
    }

    /// The files to keep from the old index or to read. They replace the input's files, in the order of their names.
    fn sources(
        &mut self,
        input: &mut Input,
        old: Option<&Old>,
        arguments: &Arguments,
        name: &str,
    ) -> Result<Vec<Source>> {
        let old_files = old.into_iter().flat_map(names).filter(|(_, name)| !is_folder(name));
        let mut left: HashMap<&[u8], usize> = old_files.map(|(file, name)| (name, file)).collect();
        let old_folders = old.map(folders_of).unwrap_or_default();
        let was_read =
            |number: Option<usize>| number.zip(old).is_some_and(|(file, old)| !is_unread(old, file));
        let mut sources = Vec::new();
        let mut add = |path, version, unchanged, unread| {
            sources.push(Source { file: input.files.len(), version, unchanged, unread });
            input.files.push(path);
        };
        for (path, Found { version, is_named }) in mem::take(&mut self.files) {
            let number = left.remove(path.as_os_str().as_encoded_bytes());
            match version {
                // An index can be in the folder that it is of.
                Ok(_) if !is_named && number.is_none() && is_filter(&path) => (),
                Ok(version) => {
                    let is_same = |&file: &usize| old.is_some_and(|old| is_same(old, file, version));
                    add(path, version, number.filter(is_same), false);
                }
                Err(error) if is_gone(&error) && (!is_named || was_read(number)) => {
                    self.n_gone += usize::from(number.is_some());
                }
                // Its files are gone, but it can come back, as what is mounted does.
                Err(error) if is_gone(&error) && old_folders.contains(&folder_name(&path)) => {
                    self.failed.insert(path.clone(), io_error(path.display(), &error));
                    self.folders.insert(folder_name(&path));
                }
                Err(error) => {
                    self.failed.insert(path.clone(), io_error(path.display(), &error));
                    add(path, FileVersion::default(), None, true);
                }
            }
        }
        let walked: Vec<_> = self.folders.iter().filter_map(|folder| path_of(folder)).collect();
        let mut unnamed = Vec::new();
        for (path, number) in left.into_iter().filter_map(|(name, number)| Some((path_of(name)?, number))) {
            let is_gone = match fs::symlink_metadata(&path) {
                // The walk of its folder leaves it out if it is a link now.
                Ok(found) => !found.is_file() && walked.iter().any(|folder| path.starts_with(folder)),
                Err(error) => is_gone(&error),
            };
            if is_gone {
                self.n_gone += 1;
            } else if path.ancestors().any(|folder| self.failed.contains_key(folder)) {
                add(path, FileVersion::default(), None, true);
            } else if arguments.add {
                let old = old.expect("what is left is of it");
                let version = old.version(number).unwrap_or_default();
                add(path, version, Some(number), is_unread(old, number));
            } else {
                unnamed.push(path);
            }
        }
        let first = unnamed.iter().min().map(|path| path.display().to_string()).unwrap_or_default();
        let (n, verb) = (unnamed.len(), if unnamed.len() == 1 { "is" } else { "are" });
        ensure!(
            n == 0 || arguments.drop,
            "{name}: {} of it {verb} there but not named, such as {first} (name all as before, or give --add or --drop)",
            counted(n as u64, "file")
        );
        self.n_gone += n;
        if arguments.add {
            self.folders.extend(old_folders);
        }
        Ok(sources)
    }
}

struct Made {
    builder: IndexBuilder,
    n_read: usize,
    /// The sum of the numbers of distinct keys of all files.
    keys: u64,
    notes: Notes,
    unread: BTreeMap<PathBuf, Error>,
}

/// Inserts all files. Each thread reads one at a time, the largest first, so that no thread reads a large one alone at
/// the end.
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
    let made =
        Mutex::new(Made { builder, n_read: 0, keys: 0, notes: Notes::default(), unread: BTreeMap::new() });
    let bytes = Input { utf_16: Utf16::Bytes, ..input.clone() };
    let read = |source: &Source, keys: &mut FilterBuilder| {
        // The builder would keep every repeated key.
        let mut distinct = HashSet::<u64, BuildHasherDefault<Unchanged>>::default();
        let mut hash = |input| {
            Keys::of_file(input, source.file, &progress).hash(0, |hashes| {
                distinct.extend(hashes);
                progress.count(next.load(Relaxed) as u64, "files");
            })
        };
        let notes = hash(input)?;
        if notes.has_utf_16 && input.words {
            hash(&bytes)?;
        }
        distinct.into_iter().for_each(|hash| keys.insert_hash(hash));
        Ok(notes)
    };
    let insert = |source: &Source, keys: &mut FilterBuilder| {
        let path = &input.files[source.file];
        let (mut filter, mut version, mut unread, mut notes) = (None, source.version, None, None);
        if source.unread {
            version = FileVersion::default();
        } else if let (Some(old), Some(file)) = (old, source.unchanged) {
            filter = Some(old.to_filter(file)?.map_or_else(|| keys.finish(), Ok)?);
        } else {
            match read(source, keys) {
                Ok(found) => (filter, notes) = (Some(keys.finish()?), Some(found)),
                Err(error) => (version, unread) = (FileVersion::default(), Some(error)),
            }
        }
        let mut made = lock(&made);
        let known = filter.as_ref().and_then(|filter| filter.known_keys());
        made.keys = made.keys.saturating_add(known.unwrap_or(0));
        if let Some(notes) = notes {
            made.n_read += 1;
            made.notes.add(&notes);
        }
        unread.into_iter().for_each(|error| _ = made.unread.insert(path.clone(), error));
        let name = path.as_os_str().as_encoded_bytes();
        made.builder.insert(name, version, filter).with_context(|| input.name(source.file))
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

/// A hasher of hashes, which leaves them as they are.
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
