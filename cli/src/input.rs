//! Where lines are read from, and which part of a line is its key.
#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail, ensure};
use bloomline::hash_key;
use clap::{Args, Parser};

use crate::csv::Csv;
use crate::json::Field;
use crate::numbers::{self, count_from_1};
use crate::output::{io_error, is_read_from, is_same_file};
use crate::streams;

// Files, and how to read them. Commands flatten it last, because its heading counts for all options after it.
#[derive(Args, Clone)]
#[command(next_help_heading = "Input")]
pub struct Input {
    /// Files of lines, plain or compressed; stdin if none or -
    #[arg(value_name = "FILE", help_heading = None)]
    pub files: Vec<PathBuf>,
    /// Read the names of files from LIST, ended by NUL
    ///
    /// `find -print0` writes such a list; - is standard input.
    #[arg(long, value_name = "LIST", conflicts_with = "files", hide_short_help = true)]
    pub files0_from: Option<PathBuf>,
    /// Do not decompress input
    ///
    /// Otherwise, gzip, zstd, bzip2, xz, lzip and lz4 are known by their first bytes.
    /// Filters, states and UTF-16 are refused, but `index` reads UTF-16. A byte-order
    /// mark, with which Windows begins text, is not part of the first key of its file.
    #[arg(long, hide_short_help = true)]
    pub raw: bool,
    /// Skip lines without the --column or --json field, and count them
    #[arg(long, hide_short_help = true)]
    pub skip_short: bool,
    #[command(flatten)]
    pub rule: KeyRule,
    /// Whether keys are the [`words`](crate::words) of files, instead of what the rule makes of lines.
    #[arg(skip)]
    pub words: bool,
    /// Whether ASCII letters of words are made lower case.
    #[arg(skip)]
    pub ignore_case: bool,
    #[arg(skip)]
    pub utf_16: Utf16,
    /// Of commands that print lines.
    #[arg(skip)]
    pub seen: SeenRule,
}

/// What is done with UTF-16.
#[derive(Clone, Copy, Default, PartialEq)]
pub enum Utf16 {
    /// It is an error where lines are printed, because they would change.
    #[default]
    Refused,
    Decoded,
    /// As its bytes, for what another program appended in UTF-8.
    Bytes,
}

/// The rule of keys as options, without the name of the program.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Typed {
    #[command(flatten)]
    rule: KeyRule,
    #[arg(long)]
    ignore_case: bool,
    #[arg(long)]
    raw: bool,
}

/// What an index of words records first. The number changes with what a word is.
pub const WORDS: &str = "words 2";

/// Whether an index has recorded words by an earlier definition.
pub fn is_outdated(recorded: &str) -> bool {
    recorded.starts_with("words") && !recorded.starts_with(WORDS)
}

const MAX_NGRAM: u16 = 1_000;

fn seed_of_ngrams(n: u16) -> u64 {
    hash_key(format!("--ngrams {n}").as_bytes(), 0)
}

/// The field that is the key.
#[derive(Clone, PartialEq)]
pub enum Column {
    Number(NonZeroUsize),
    Name(String),
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => typed(name).fmt(f),
        }
    }
}

/// A text, quoted for a shell.
fn typed(text: &str) -> Cow<'_, str> {
    shlex::try_quote(text).unwrap_or(text.into())
}

/// What a line is, and which part of it is the key.
#[derive(Args, Clone, Default, PartialEq)]
pub struct KeyRule {
    /// Lines end with NUL instead of a newline
    #[arg(short = '0', long)]
    pub null: bool,
    /// Lines are N bytes each, with nothing between them
    #[arg(long, value_name = "N", conflicts_with = "null", hide_short_help = true, value_parser = length)]
    pub length: Option<NonZeroUsize>,
    /// The CR of CR LF is not part of the key
    #[arg(long, conflicts_with_all = ["null", "length"])]
    pub crlf: bool,
    /// Keys are decimal integers, not text
    ///
    /// From -2^63 to 2^64 - 1: 42, +42 and 042 are one key, as in filters of
    /// integer columns from Python or SQL; -1 and 2^64 - 1 are one too. --length 8
    /// reads the same keys from little-endian binary files.
    #[arg(long, conflicts_with = "length")]
    pub integers: bool,
    /// The key is field N, from 1, or with --csv field NAME
    ///
    /// Fields end with a tab or the --delimiter, without quoting, as for cut. A
    /// line without that field is an error, unless you give --skip-short.
    #[arg(long, value_name = "N|NAME", conflicts_with = "length", value_parser = column)]
    pub column: Option<Column>,
    /// Lines are rows of CSV, whose fields can be quoted
    ///
    /// As in RFC 4180, also with newlines in quotes. The key is the field without its quotes, and the CR of CR LF
    /// is not part of it. For --column NAME, the first row of each file is a
    /// header, which is no key, and which is printed once. With --column N, it is a
    /// row as any other.
    #[arg(long, requires = "column", conflicts_with_all = ["null", "length", "crlf"])]
    pub csv: bool,
    /// The byte between fields [default: tab, --csv: ,]
    #[arg(long, value_name = "BYTE", requires = "column", value_parser = delimiter)]
    pub delimiter: Option<u8>,
    /// Lines are JSON, and the key is the text of FIELD
    ///
    /// FIELD is a name, a path such as user.id, or a JSON pointer, such as /a.b for
    /// a name with a dot. The key is the decoded text, or a number, true or false as
    /// it is written. Of fields with the same name, the last counts. A line that is
    /// no JSON or whose FIELD is missing, null, an object or an array is an error,
    /// unless you give --skip-short.
    #[arg(long, value_name = "FIELD", conflicts_with_all = ["length", "crlf", "column", "csv"], value_parser = Field::parse)]
    pub json: Option<Field>,
    /// Each paragraph of the --json field is a record
    ///
    /// Paragraphs are the lines of the text, or what --separator separates. Blank
    /// ones are left alone.
    #[arg(long, requires = "json", conflicts_with = "integers")]
    pub paragraphs: bool,
    /// What separates paragraphs, e.g. '\n\n' [default: '\n']
    #[arg(long, value_name = "TEXT", requires = "paragraphs", hide_short_help = true, value_parser = separator)]
    pub separator: Option<String>,
    /// Keys are the n-grams, N consecutive words, of texts
    ///
    /// Words are longest runs of letters, digits and _, without regard to the case
    /// of ASCII letters. A text of fewer words is one key.
    #[arg(long, value_name = "N", conflicts_with_all = ["length", "integers"], value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_NGRAM)))]
    pub ngrams: Option<u16>,
    /// Leave texts and paragraphs of fewer than N words alone
    #[arg(long, hide_short_help = true, value_name = "N", conflicts_with_all = ["length", "integers"])]
    pub min_words: Option<NonZeroUsize>,
}

/// When texts count as seen, and what is done then.
#[derive(Args, Clone, Copy, Default)]
pub struct SeenRule {
    /// A text is seen if SHARE of its --ngrams are in the filter [default: 100%]
    #[arg(long, value_name = "SHARE", requires = "ngrams", hide_short_help = true, value_parser = overlap)]
    overlap: Option<f64>,
    /// Print lines also if all of their paragraphs are dropped
    #[arg(long, requires = "paragraphs", hide_short_help = true)]
    pub keep_empty: bool,
    /// Print which parts of each text were seen, instead of lines
    ///
    /// For each line a JSON object of the line's id, attributes.seen, an array of
    /// [start, end, share] in characters of the decoded text, and bytes, an array
    /// of [start, end]. dolma's mixer reads it.
    #[arg(long, requires = "json", conflicts_with = "integers", hide_short_help = true)]
    pub spans: bool,
}

fn overlap(text: &str) -> Result<f64, String> {
    let share = if text.parse() == Ok(1.0) { 1.0 } else { numbers::share(text)? };
    if share > 0.0 && share <= 1.0 { Ok(share) } else { Err("give more than 0% and at most 100%".into()) }
}

impl SeenRule {
    /// Whether a text is seen of whose keys this share is in the filter.
    pub fn is_seen(&self, share: f64) -> bool {
        share > 0.0 && share >= self.overlap() - 1e-9
    }

    /// The fewest of so many keys that must be in the filter.
    pub fn fewest(&self, n_keys: usize) -> usize {
        ((self.overlap() * n_keys as f64 - 1e-9).ceil() as usize).max(1)
    }

    fn overlap(&self) -> f64 {
        self.overlap.unwrap_or(1.0)
    }
}

fn length(text: &str) -> Result<NonZeroUsize, String> {
    count_from_1(text).map(|length| NonZeroUsize::new(length).expect("at least 1"))
}

fn column(text: &str) -> Result<Column, String> {
    match text.parse() {
        Ok(number) => Ok(Column::Number(number)),
        Err(_) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err("give a field's number, counted from 1".into())
        }
        Err(_) => Ok(Column::Name(text.into())),
    }
}

/// A text with escapes.
fn separator(text: &str) -> Result<String, String> {
    let (mut separator, mut letters) = (String::new(), text.chars());
    while let Some(letter) = letters.next() {
        separator.push(match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('\\') => '\\',
                _ => return Err("after \\, write n, r, t or \\".into()),
            },
            letter => letter,
        });
    }
    if separator.is_empty() { Err("give at least one character".into()) } else { Ok(separator) }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        b"\\t" => Ok(b'\t'),
        _ => Err("give one byte, such as , or ; (a tab is the default)".into()),
    }
}

impl KeyRule {
    /// The byte that ends lines without a length.
    pub fn end(&self) -> u8 {
        if self.null { 0 } else { b'\n' }
    }

    pub fn delimiter(&self) -> u8 {
        self.delimiter.unwrap_or(self.default_delimiter())
    }

    fn default_delimiter(&self) -> u8 {
        if self.csv { b',' } else { b'\t' }
    }

    /// The number of the column, or 0 if there is none or if headers have it.
    pub fn number(&self) -> usize {
        match self.column {
            Some(Column::Number(number)) => number.get(),
            _ => 0,
        }
    }

    /// What separates paragraphs, if they are records.
    pub fn separator(&self) -> Option<&str> {
        self.paragraphs.then(|| self.separator.as_deref().unwrap_or("\n"))
    }

    /// Whether the words of a text count.
    pub fn has_words(&self) -> bool {
        self.ngrams.is_some() || self.min_words.is_some()
    }

    /// Whether it has options that states did not have in their first versions.
    pub fn is_of_texts(&self) -> bool {
        self.json.is_some() || self.has_words()
    }

    /// The rule of these options, as [`options`](Self::options) writes them, however they are quoted.
    pub fn of_options(text: &str) -> Option<Self> {
        let Typed { rule, ignore_case: false, raw: false } =
            Typed::try_parse_from(shlex::split(text)?).ok()?
        else {
            return None;
        };
        Some(rule)
    }

    /// The seed of filters. N-grams have one of their own for each N, because a filter records nothing else of how its
    /// keys are taken.
    pub fn seed(&self) -> u64 {
        self.ngrams.map_or(0, seed_of_ngrams)
    }

    /// Fails if keys are n-grams and those of a filter are not, or the other way around.
    pub fn check_seed(&self, name: &str, seed: u64) -> Result<()> {
        let n = (1..=MAX_NGRAM).find(|&n| seed_of_ngrams(n) == seed);
        if n == self.ngrams {
            return Ok(());
        }
        let is = n.map_or("no n-grams".into(), |n| format!("n-grams of {n} words"));
        let remedy = n.map_or("omit --ngrams".into(), |n| format!("give --ngrams {n}"));
        bail!("{name}: its keys are {is} ({remedy}, or build it again)")
    }

    pub fn options(&self) -> String {
        let flags = [
            (self.null, "--null"),
            (self.crlf, "--crlf"),
            (self.integers, "--integers"),
            (self.csv, "--csv"),
        ];
        let mut options: Vec<_> =
            flags.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name.to_string()).collect();
        options.extend(self.length.map(|length| format!("--length {length}")));
        options.extend(self.column.as_ref().map(|column| match column.to_string() {
            name if name.trim_start_matches(['\'', '"']).starts_with('-') => format!("--column={name}"),
            name => format!("--column {name}"),
        }));
        options.extend(self.delimiter.map(|byte| match byte {
            b'\t' => "--delimiter '\\t'".into(),
            b'\'' => "--delimiter \"'\"".into(),
            _ => format!("--delimiter '{}'", char::from(byte)),
        }));
        options.extend(self.json.as_ref().map(|field| match field.to_string() {
            field if field.starts_with('-') => format!("--json={}", typed(&field)),
            field => format!("--json {}", typed(&field)),
        }));
        options.extend(self.paragraphs.then(|| "--paragraphs".into()));
        options.extend(self.separator.as_ref().map(|separator| {
            let escapes = [('\\', r"\\"), ('\n', r"\n"), ('\r', r"\r"), ('\t', r"\t")];
            let escape = |text: String, (letter, escape): (char, &str)| text.replace(letter, escape);
            format!("--separator={}", typed(&escapes.into_iter().fold(separator.clone(), escape)))
        }));
        options.extend(self.ngrams.map(|n| format!("--ngrams {n}")));
        options.extend(self.min_words.map(|n| format!("--min-words {n}")));
        if options.is_empty() { "whole lines as keys".into() } else { options.join(" ") }
    }
}

/// All of a list.
pub fn text_of(list: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let read = if is_stdin(list) {
        streams::input().and_then(|mut stdin| stdin.read_to_end(&mut text))
    } else {
        File::open(list).and_then(|mut file| file.read_to_end(&mut text))
    };
    read.map_err(|error| io_error(name_of(list), &error))?;
    Ok(text)
}

/// The names in a list, each ended by NUL.
fn names(list: &Path) -> Result<Vec<PathBuf>> {
    let (name, text) = (name_of(list), text_of(list)?);
    ensure!(
        text.contains(&0) || !text.contains(&b'\n'),
        "{name}: has no NUL (end each name with NUL, as `find -print0` does)"
    );
    let names = text.strip_suffix(b"\0").unwrap_or(&text);
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let path = |(i, path): (usize, &[u8])| {
        ensure!(!path.is_empty(), "{name}: name {} is empty (end each name with one NUL)", i + 1);
        ensure!(
            !(is_stdin(list) && path == b"-"),
            "{name}: the names and the lines cannot both come from standard input (omit - from the names)"
        );
        path_of(path).ok_or_else(|| anyhow!("{name}: name {} is not UTF-8 (rename the file)", i + 1))
    };
    names.split(|&byte| byte == 0).enumerate().map(path).collect()
}

/// The path of a name in a list or an index.
#[cfg(unix)]
pub fn path_of(name: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    Some(std::ffi::OsStr::from_bytes(name).into())
}

#[cfg(not(unix))]
pub fn path_of(name: &[u8]) -> Option<PathBuf> {
    str::from_utf8(name).ok().map(PathBuf::from)
}

impl Input {
    /// Reads the list of files, if there is one.
    pub fn resolve(&self) -> Result<Self> {
        let mut input = self.clone();
        if let Some(list) = &self.files0_from {
            input.files = names(list)?;
        } else if self.files.is_empty() {
            input.files = vec!["-".into()];
        }
        let rule = &mut input.rule;
        if let Some(Column::Name(name)) = &rule.column {
            ensure!(rule.csv, "--column {name}: a name is of CSV (add --csv, or give a number)");
        }
        ensure!(
            !self.skip_short || rule.column.is_some() || rule.json.is_some(),
            "--skip-short: all lines have a key (add --column or --json)"
        );
        rule.separator = rule.separator.take().filter(|separator| separator != "\n");
        let is_taken = rule.csv && b"\"\r\n".contains(&rule.delimiter());
        ensure!(
            !is_taken,
            "--delimiter: quotes and ends of lines cannot also separate fields (give another)"
        );
        rule.delimiter = rule.delimiter.filter(|&byte| byte != rule.default_delimiter());
        Ok(input)
    }

    /// What an index records of how keys are taken: `words` and a number, or `lines`, then the options that are not the
    /// default, in the order of [`KeyRule::options`], and `--ignore-case` and `--raw`.
    pub fn recorded(&self) -> String {
        let options = Some(self.rule.options()).filter(|options| options.starts_with("--"));
        let words = if self.words { WORDS } else { "lines" };
        let flag = |is_set: bool, name: &str| is_set.then(|| name.to_owned());
        let flags = [flag(self.ignore_case, "--ignore-case"), flag(self.raw, "--raw")];
        let parts = [Some(words.into()), options].into_iter().chain(flags);
        parts.flatten().collect::<Vec<_>>().join(" ")
    }

    /// The input, of no files, that has recorded this.
    pub fn of_recorded(text: &str) -> Option<Self> {
        let words = text.starts_with(WORDS);
        let options = text.strip_prefix(if words { WORDS } else { "lines" })?;
        let Typed { rule, ignore_case, raw } = Typed::try_parse_from(shlex::split(options)?).ok()?;
        let (files, files0_from) = (Vec::new(), None);
        let input = Self {
            files,
            files0_from,
            raw,
            skip_short: false,
            rule,
            words,
            ignore_case,
            utf_16: Utf16::Decoded,
            seen: SeenRule::default(),
        };
        (input.recorded() == text).then_some(input)
    }

    /// What is printed or dropped, for counts of them.
    pub fn record(&self) -> &'static str {
        if self.rule.paragraphs { "paragraph" } else { "line" }
    }

    /// What keys are, for counts of them.
    pub fn unit(&self) -> &'static str {
        if self.words {
            "word"
        } else if self.rule.ngrams.is_some() {
            "n-gram"
        } else if self.rule.paragraphs {
            "paragraph"
        } else if self.rule.column.is_some() || self.rule.json.is_some() {
            "field"
        } else {
            "line"
        }
    }

    /// Whether a line can have several keys or none, or is printed as spans.
    pub fn has_units(&self) -> bool {
        self.rule.paragraphs || self.rule.has_words() || self.seen.spans
    }

    /// A reader of rows if lines are.
    pub fn csv(&self) -> Option<Csv> {
        self.rule.csv.then(|| Csv::new(self.rule.delimiter()))
    }

    /// The name of the file with this index, for messages.
    pub fn name(&self, file: usize) -> String {
        self.files.get(file).map_or("standard input".into(), |file| name_of(file))
    }

    /// Whether the lines can be read twice.
    pub fn is_of_files(&self) -> bool {
        total_bytes(&self.files).is_some()
    }

    /// Whether `file`, by any of its names, is one of them or their list.
    pub fn has(&self, file: &Path) -> bool {
        let is_file =
            |other: &PathBuf| if is_stdin(other) { is_read_from(file) } else { is_same_file(file, other) };
        self.files.iter().chain(&self.files0_from).any(is_file)
    }

    /// Fails if the lines, or the names of their files, come from standard input as this filter does.
    pub fn check_filter(&self, filter: &Path) -> Result<()> {
        let mut files = self.files.iter().chain(&self.files0_from);
        ensure!(
            !is_stdin(filter) || !files.any(|file| is_stdin(file)),
            "the filter and the lines cannot both come from standard input (name the file of one)"
        );
        Ok(())
    }

    /// Fails now if a file cannot be read, instead of after an hour of reading the first one.
    pub fn check(&self) -> Result<()> {
        for file in &self.files {
            // A pipe is not opened, because that would wait for its writer.
            let opened = match fs::metadata(file) {
                _ if is_stdin(file) => streams::input().map(drop),
                Ok(metadata) if metadata.is_file() => File::open(file).map(drop),
                Ok(metadata) if metadata.is_dir() => Err(ErrorKind::IsADirectory.into()),
                other => other.map(drop),
            };
            opened.map_err(|error| io_error(name_of(file), &error))?;
        }
        Ok(())
    }
}

/// The bytes of all files, or `None` if one is not a regular file.
pub fn total_bytes<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Option<u64> {
    let size = |file: &PathBuf| {
        let metadata = if is_stdin(file) { None } else { fs::metadata(file).ok() };
        metadata.filter(Metadata::is_file).map(|metadata| metadata.len())
    };
    files.into_iter().map(size).sum()
}

pub fn is_stdin(file: &Path) -> bool {
    // A file that is redirected can be opened again, and read from its start.
    file.as_os_str() == "-" || file.as_os_str() == "/dev/stdin" && !file.is_file()
}

/// The name of an input, for messages.
pub fn name_of(file: &Path) -> String {
    if is_stdin(file) { "standard input".into() } else { file.display().to_string() }
}
