//! `bloomline find`
#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::mem;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail, ensure};
use bloomline::StandaloneKind;
use bloomline::bank::{IndexView, SlotBitmap};
use clap::Args;
use serde_json::json;

use crate::files::{State, is_folder, is_unread, names, new_files, states};
use crate::filter_file::{Content, FilterFile};
use crate::input::{Input, is_outdated, is_stdin, name_of, text_of};
use crate::keys::integer;
use crate::numbers::{counted, grouped};
use crate::output::{Printer, is_printed_to, note};
use crate::texts::Texts;
use crate::words::{asked, is_joined};

/// Print the files of an index that possibly have all keys
#[derive(Args)]
#[command(after_long_help = "\
Prints every file that has all KEYs, and a few that do not. For a KEY that no
file has, these are on average at most the --fpr of `bloomline index`. So let
grep or zgrep search the files that are printed. Names are printed as
`bloomline index` was given them, sorted by their bytes. Files that `index`
could not read are always printed.

A KEY is what `bloomline index` took as a key. With --words, that is text, of
which a file must have each word, somewhere, as a whole word. With --parts, a
word may also be within a longer one, such as web-20 in web-20.example.com. Of a
KEY of several words, such as a phrase, a time or a URL, only the first and the
last may. So with --parts, no file in UTF-8 is missed in which `grep -wF KEY`
finds something. There are no wildcards.

If few files or none are found, standard error says what could be missed: words
within longer ones or in another case, or files that have changed since the
index was made. --or-changed prints changed files too, and new ones of the
folders that `index` was given. For this, it asks the system for the time of
each file.

With --as-json, prints an object of index, files (the names), not_read (the names
of those that `index` could not read), and keys, an array of objects of key and
files. In these, bytes that are not UTF-8 are U+FFFD.

Put -- before KEYs that begin with -. Exit status: 0 if a file was printed, 1 if
none was, 2 on error.

Examples:
  bloomline find logs.index 10.20.30.40 | xargs -r zgrep -HF 10.20.30.40
  bloomline find --any -0 logs.index u1234 u5678 |
    xargs -r -0 zgrep -HF -e u1234 -e u5678
  bloomline find -f addresses.txt logs.index
  bloomline find lines.index 'a whole line'")]
pub struct Arguments {
    /// Print files that have one of the KEYs, not all
    #[arg(long)]
    any: bool,
    /// Also find words of KEYs within longer ones, between . and -
    #[arg(long)]
    parts: bool,
    /// Also print files that were changed or added since the index was made
    #[arg(long)]
    or_changed: bool,
    /// Print each KEY, a tab and a file that has it
    #[arg(long)]
    each: bool,
    /// Read KEYs from FILE, one a line; implies --each, without --any
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    list: Option<PathBuf>,
    /// Print only the number of files
    #[arg(short, long)]
    count: bool,
    /// Print as JSON, by file and by KEY
    #[arg(long, conflicts_with = "count")]
    as_json: bool,
    /// Print nothing
    #[arg(short, long, conflicts_with = "as_json")]
    quiet: bool,
    /// End names with NUL instead of a newline, for xargs -0
    #[arg(short = '0', long)]
    null: bool,
    /// Index that `bloomline index` made; standard input if -
    #[arg(value_name = "INDEX")]
    index: PathBuf,
    /// Words, lines or fields to look for
    #[arg(value_name = "KEY", required_unless_present = "list", num_args = 1.., allow_negative_numbers = true)]
    keys: Vec<OsString>,
}

/// If at most so many files are found, a number among the KEYs is looked up within addresses and ids too, to note how
/// many files may have it there. Otherwise it is not, because most files may.
const FEW: usize = 10;

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { any, parts, or_changed, count, as_json, quiet, .. } = *arguments;
    let by = if parts { By::Parts } else { By::Whole };
    let is_each = arguments.each || arguments.list.is_some() && !any;
    let file = FilterFile::open(&arguments.index)?;
    ensure!(!is_printed_to(&arguments.index), "{}: is also the output (write to another file)", file.name);
    let mut searched = Searched::new(&file, any || is_each)?;
    let keys = keys(arguments, &searched.input)?;
    searched.expect(keys.len())?;
    // The files of each KEY if they are printed one by one, and of all KEYs together.
    let groups: Vec<&[Vec<u8>]> = if is_each || as_json { keys.chunks(1).collect() } else { vec![&keys] };
    let mut answers = groups.iter().map(|keys| searched.find(keys, by)).collect::<Result<Vec<_>>>()?;
    let mut all = searched.together(answers.iter().cloned());
    if !quiet {
        match is_each {
            true => searched.note_what_is_missed(&groups, &answers, arguments)?,
            false => searched.note_what_is_missed(&[&keys], &[all.clone()], arguments)?,
        }
    }
    let mut new = BTreeSet::new();
    if or_changed {
        let states = states(&searched.index);
        let changed = searched.files(|file| states[file] == State::Changed);
        answers.iter_mut().chain([&mut all]).for_each(|files| *files = files.clone().or(&changed));
        new = new_files(&searched.index);
    }
    let names = |files: &Files| {
        let of_index = files.iter().filter_map(|file| searched.index.footer().name(file));
        let mut names: Vec<_> =
            of_index.chain(new.iter().map(|path| path.as_os_str().as_encoded_bytes())).collect();
        names.sort_unstable();
        names
    };
    if as_json {
        let of_key = |(key, files): (&Vec<u8>, &Files)| json!({"key": String::from_utf8_lossy(key), "files": texts(names(files))});
        let not_read = searched.unread.iter().filter_map(|file| searched.index.footer().name(file));
        Printer::new().print_json(&json!({
            "index": file.name,
            "files": texts(names(&all)),
            "not_read": texts(not_read.collect()),
            "keys": keys.iter().zip(&answers).map(of_key).collect::<Vec<_>>(),
        }))?;
    } else if !quiet {
        let (mut printer, mut lines) = (Printer::new(), Vec::new());
        for (keys, files) in groups.iter().zip(&answers) {
            let names = if count { vec![] } else { names(files) };
            let number = (files.count() + new.len()).to_string();
            let of_key = if count { vec![number.as_bytes()] } else { names };
            let key = if is_each { [&keys[0][..], b"\t"].concat() } else { Vec::new() };
            for text in of_key {
                add_line(&[&key[..], text].concat(), arguments.null, &mut lines)?;
            }
            if lines.len() > 1 << 20 {
                printer.print(mem::take(&mut lines))?;
            }
        }
        printer.print(lines)?;
    }
    Ok(if all.count() + new.len() > 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The KEYs of the command line, then those of the list, without its lines that have no word.
fn keys(arguments: &Arguments, input: &Input) -> Result<Vec<Vec<u8>>> {
    let mut keys: Vec<_> = arguments.keys.iter().map(|key| key.as_encoded_bytes().to_vec()).collect();
    let Some(list) = &arguments.list else { return Ok(keys) };
    ensure!(
        !(is_stdin(list) && is_stdin(&arguments.index)),
        "the index and the KEYs cannot both come from standard input (name the file of one)"
    );
    let text = text_of(list)?;
    // Where a CR is part of the keys, it is part of these too.
    let keeps_cr = !input.words && !input.rule.crlf && !input.rule.csv && input.rule.json.is_none();
    let lines = text.split(|&byte| byte == b'\n');
    let lines = lines.map(|line| if keeps_cr { line } else { line.strip_suffix(b"\r").unwrap_or(line) });
    let (lines, others): (Vec<_>, Vec<_>) = lines
        .filter(|line| !line.is_empty())
        .partition(|line| !input.words || !asked(line, false).is_empty());
    if !others.is_empty() && !arguments.quiet {
        note(format_args!(
            "{}: {} without a word skipped",
            name_of(list),
            counted(others.len() as u64, "line")
        ));
    }
    keys.extend(lines.into_iter().map(<[u8]>::to_vec));
    ensure!(!keys.is_empty(), "{}: has no KEY (write one on each line)", name_of(list));
    Ok(keys)
}

/// Appends a line and its end. A line that has that byte within is an error.
fn add_line(line: &[u8], null: bool, to: &mut Vec<u8>) -> Result<()> {
    let (end, shown) = (if null { b'\0' } else { b'\n' }, || String::from_utf8_lossy(line));
    ensure!(!line.contains(&end), "{:?}: has a newline (give -0, and also to what reads the names)", shown());
    to.extend_from_slice(line);
    to.push(end);
    Ok(())
}

/// Files of the index, one bit each.
#[derive(Clone)]
struct Files(Vec<u64>);

impl Files {
    fn of(n_files: usize, is_one: impl Fn(usize) -> bool) -> Self {
        let mut files = Self(vec![0; n_files.div_ceil(64)]);
        (0..n_files).filter(|&file| is_one(file)).for_each(|file| files.0[file / 64] |= 1 << (file % 64));
        files
    }

    fn iter(&self) -> impl Iterator<Item = usize> {
        let is_one = |&file: &usize| self.0[file / 64] >> (file % 64) & 1 == 1;
        (0..64 * self.0.len()).filter(is_one)
    }

    fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn combined(mut self, other: &[u64], by: impl Fn(u64, u64) -> u64) -> Self {
        self.0.iter_mut().zip(other).for_each(|(one, other)| *one = by(*one, *other));
        self
    }

    fn and(self, other: &Self) -> Self {
        self.combined(&other.0, |one, other| one & other)
    }

    fn or(self, other: &Self) -> Self {
        self.combined(&other.0, |one, other| one | other)
    }

    fn without(self, other: &Self) -> Self {
        self.combined(&other.0, |one, other| one & !other)
    }
}

/// As what words are looked up.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Whole,
    Parts,
    OtherCase,
}

/// An index, and the rule of its keys.
struct Searched<'a> {
    file: &'a FilterFile,
    index: IndexView<'a>,
    input: Input,
    /// Whether a file needs only one of the KEYs.
    any: bool,
    unread: Files,
}

impl<'a> Searched<'a> {
    fn new(file: &'a FilterFile, any: bool) -> Result<Self> {
        let name = &file.name;
        ensure!(
            StandaloneKind::of(file.bytes()).is_some() || crate::state::State::is_state(file.bytes()),
            "{name}: not a bloomline file, or cut short (make an index with `bloomline index`)"
        );
        let index = match file.content()? {
            Content::Index(index) => index,
            other => bail!("{name}: a {}, not an index (make one with `bloomline index`)", other.kind().1),
        };
        let rule = index.footer().rule();
        ensure!(
            !is_outdated(rule),
            "{name}: made by an earlier definition of words (remove it, and make it again with `bloomline index`)"
        );
        let input = Input::of_recorded(rule).ok_or_else(|| {
            anyhow!("{name}: its keys were taken by a rule of another program: {rule:?} (ask that program)")
        })?;
        let unread = Files::of(index.footer().files(), |file| is_unread(&index, file));
        Ok(Self { file, index, input, any, unread })
    }

    /// Verifies all bytes once if that costs less than to verify those of so many lookups.
    fn expect(&mut self, n_keys: usize) -> Result<()> {
        let ranges = self.index.footer().ranges(0).map(|range| range.end - range.start);
        if ranges.sum::<u64>().saturating_mul(n_keys as u64) > self.file.bytes().len() as u64 {
            let verified = IndexView::from_standalone(self.file.bytes());
            self.index = verified.map_err(|error| self.file.error(error))?;
        }
        Ok(())
    }

    fn files(&self, is_one: impl Fn(usize) -> bool) -> Files {
        Files::of(self.index.footer().files(), is_one)
    }

    /// The files that possibly have the keys, or one of them.
    fn find(&self, keys: &[Vec<u8>], by: By) -> Result<Files> {
        let of_keys = keys.iter().map(|key| self.files_of(key, by)).collect::<Result<Vec<_>>>()?;
        Ok(self.together(of_keys))
    }

    fn together(&self, of_keys: impl IntoIterator<Item = Files>) -> Files {
        let by = |one: Files, other: Files| if self.any { one.or(&other) } else { one.and(&other) };
        of_keys.into_iter().reduce(by).unwrap_or_else(|| self.files(|_| false))
    }

    /// The files that possibly have the key, or all of its words.
    fn files_of(&self, key: &[u8], by: By) -> Result<Files> {
        let (shown, rule, footer) = (String::from_utf8_lossy(key), &self.input.rule, self.index.footer());
        if self.input.words {
            let key = if self.input.ignore_case { key.to_ascii_lowercase() } else { key.to_vec() };
            let asked = asked(&key, by == By::Parts);
            ensure!(
                !asked.is_empty(),
                "{shown:?}: has no word (see `bloomline help index` for what a word is)"
            );
            let hash = |keys: Vec<&[u8]>| {
                let hash = |key: &[u8]| footer.hash_key(key);
                let mut hashes: Vec<_> = keys.iter().map(|key| hash(key)).collect();
                if let ([key], By::OtherCase) = (&keys[..], by) {
                    let mut other = key.to_ascii_uppercase();
                    hashes.push(hash(&other));
                    other.make_ascii_lowercase();
                    hashes.push(hash(&other));
                    other[..1].make_ascii_uppercase();
                    hashes.push(hash(&other));
                }
                hashes
            };
            return self.have(asked.into_iter().map(hash));
        }
        if let Some(length) = rule.length.filter(|length| length.get() != key.len()) {
            bail!("{shown:?}: has {} bytes, and keys have {length} (give a whole one)", key.len());
        }
        let is_line = !rule.csv && rule.json.is_none() && rule.length.is_none();
        if is_line && key.contains(&rule.end()) {
            bail!("{shown:?}: has an end of line, and no key has one (give one line)");
        }
        if rule.has_words() {
            let (mut texts, mut hashes) = (Texts::default(), Vec::new());
            texts.keys(rule, key, footer.seed(), &mut hashes)?;
            // Of fewer words, it would be found only where it is the whole text.
            let fewest = rule.min_words.map_or(0, NonZero::get).max(rule.ngrams.unwrap_or(0).into());
            ensure!(
                texts.n_words() >= fewest,
                "{shown:?}: has {}, and keys have {fewest} or more (give a longer text)",
                counted(texts.n_words() as u64, "word")
            );
            return self.have(hashes.into_iter().map(|hash| vec![hash]));
        }
        if !rule.integers {
            return self.have([vec![footer.hash_key(key)]]);
        }
        let number = integer(key).ok_or_else(|| {
            anyhow!("{shown:?}: is not an integer of up to 64 bits, as keys are (give one)")
        })?;
        self.have([vec![footer.hash_key(number)]])
    }

    /// The files that possibly have, of each list, a key with one of its hashes. There is at least one list.
    fn have(&self, lists: impl IntoIterator<Item = Vec<u64>>) -> Result<Files> {
        let mut found = SlotBitmap::new();
        let mut of_list = |hashes: Vec<u64>| {
            let mut files = Files(vec![0; self.unread.0.len()]);
            for hash in hashes {
                self.index.find_hash(hash, &mut found).map_err(|error| self.file.error(error))?;
                files = files.combined(found.as_words(), |one, other| one | other);
            }
            Ok(files)
        };
        let files = lists.into_iter().map(&mut of_list).reduce(|one, other| Ok(one?.and(&other?)));
        files.unwrap_or_else(|| of_list(Vec::new()))
    }

    /// Notes which files the search for each group of KEYs could have missed, given the files that it found.
    fn note_what_is_missed(
        &self,
        groups: &[&[Vec<u8>]],
        found: &[Files],
        arguments: &Arguments,
    ) -> Result<()> {
        let n_unread = self.unread.count() as u64;
        if n_unread > 0 {
            note(format_args!(
                "{}: {} could not be read when indexed, and may have any KEY (see `bloomline info --files`)",
                self.file.name,
                counted(n_unread, "file")
            ));
        }
        let (mut n_without_file, mut n_with_few, mut wider) = (0, 0, Vec::new());
        for (keys, found) in groups.iter().zip(found) {
            let n_found = found.clone().without(&self.unread).count();
            n_without_file += usize::from(n_found == 0);
            n_with_few += usize::from(n_found <= FEW);
            if self.input.words
                && !arguments.parts
                && (n_found <= FEW || keys.iter().any(|key| is_joined(key)))
            {
                let n_more = self.find(keys, By::Parts)?.without(found).count();
                if n_more > 0 {
                    wider.push((shown(keys), n_found, n_more as u64));
                }
            }
        }
        let n_files = names(&self.index).filter(|(_, name)| !is_folder(name)).count() as u64;
        let of_files = |n: u64| format!("{} of {}", grouped(n), grouped(n_files));
        match &wider[..] {
            [] => (),
            [(shown, 0, n)] => note(format_args!(
                "no file has {shown} as a whole word, but {} may within a longer one (--parts)",
                of_files(*n)
            )),
            [(shown, _, n)] => note(format_args!(
                "{} files more may have {shown}, but only within a longer word (--parts)",
                of_files(*n)
            )),
            [(shown, ..), ..] => note(format_args!(
                "more files may have {} KEYs, such as {shown}, only within longer words (--parts)",
                grouped(wider.len() as u64)
            )),
        }
        if n_without_file > 0 && wider.is_empty() {
            self.note_other_case(groups)?;
        }
        // Few files can all be found by chance. But to ask for the state of each file takes longer than the search.
        let asks = n_without_file > 0 || n_with_few > 0 && io::stderr().is_terminal();
        if asks && !arguments.or_changed {
            self.note_what_changed();
        }
        Ok(())
    }

    /// Says how many files have the KEYs in another case, in which each word is lower, upper or capitalised.
    fn note_other_case(&self, groups: &[&[Vec<u8>]]) -> Result<()> {
        let ([keys], true, false) = (groups, self.input.words, self.input.ignore_case) else { return Ok(()) };
        let n = self.find(keys, By::OtherCase)?.without(&self.unread).count() as f64;
        // At most so many are found by chance, mostly.
        let by_chance = 4.0 * self.index.footer().fpr() * self.index.footer().files() as f64;
        if n > by_chance + 3.0 * by_chance.sqrt() {
            note(format_args!(
                "no file has {}, but {n} may have it in another case (case counts)",
                shown(keys)
            ));
        }
        Ok(())
    }

    /// Notes how many files are not as the index has them.
    fn note_what_changed(&self) {
        let n_files = self.index.footer().files();
        let states = states(&self.index);
        let count = |it| states.iter().filter(|&&state| state == it).count();
        let (changed, gone, new) = (count(State::Changed), count(State::Gone), new_files(&self.index).len());
        if gone > 0 && gone == n_files {
            note(format_args!(
                "{}: none of its files is here (run this in the directory where the index was made)",
                self.file.name
            ));
            return;
        }
        let counts = [("changed", changed), ("gone", gone), ("new", new)];
        let counts =
            counts.iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{what}: {}", grouped(*n as u64)));
        let counts = counts.collect::<Vec<_>>().join(", ");
        if !counts.is_empty() {
            let remedy = if changed + new > 0 { "give --or-changed" } else { "index again" };
            note(format_args!("{}: since it was made, files {counts} ({remedy})", self.file.name));
        }
    }
}

fn texts(names: Vec<&[u8]>) -> Vec<Cow<'_, str>> {
    names.into_iter().map(String::from_utf8_lossy).collect()
}

/// KEYs for messages.
fn shown(keys: &[Vec<u8>]) -> String {
    let first = keys.first().map_or("".into(), |key| String::from_utf8_lossy(key));
    if keys.len() > 1 {
        format!("{first} and {} more", counted(keys.len() as u64 - 1, "KEY"))
    } else {
        first.into()
    }
}
