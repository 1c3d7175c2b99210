//! Lines and their keys, in chunks as they are read.
#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::iter;
use std::mem;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::{Error, Result, anyhow, bail, ensure};
use bloomline::hash_key;

use crate::csv::{self, Csv};
use crate::decompress::{READ, decompressed, read_error};
use crate::encoding::utf_8;
use crate::guard::refuse_as_lines;
use crate::input::{Column, Input, KeyRule, Utf16, is_stdin, total_bytes};
use crate::json::{self, Field};
use crate::numbers::counted;
use crate::output::{io_error, is_output, note};
use crate::progress::Progress;
use crate::signals::lock;
use crate::streams::{self, stdin};
use crate::texts::{Text, Texts, Unit};
use crate::words;

/// Some whole lines of one file, with what ends them.
pub struct Chunk<'a> {
    input: &'a Input,
    /// Index of the file, and the number of lines before these in it. Chunks are read in this order.
    position: (usize, u64),
    buffer: Vec<u8>,
    /// Bytes of the buffer that are lines.
    len: usize,
    /// Bytes of a byte-order mark before the first key.
    mark: usize,
    /// Bytes before the first row of CSV, a byte-order mark and the header. `shown_from` if they are to be printed.
    start: usize,
    shown_from: usize,
    /// For each line, where the next one begins.
    ends: Vec<usize>,
    /// Number of the field that is the key, from 1. 0 if the whole line is.
    column: usize,
    /// For rows with quotes.
    csv: Option<Csv>,
    has_quotes: bool,
    /// Indices of the lines without the column, in order.
    skipped: Vec<usize>,
    /// Whether a key begins with a quote that does not count as one.
    has_quoted_key: bool,
    /// What the keys are of if a line can have several or none.
    units: Vec<Unit>,
    texts: Texts,
    /// How many lines were hashed.
    n_hashed: usize,
}

impl<'a> Chunk<'a> {
    pub fn new(input: &'a Input) -> Self {
        Self {
            input,
            position: (0, 0),
            buffer: Vec::new(),
            len: 0,
            mark: 0,
            start: 0,
            shown_from: 0,
            ends: Vec::new(),
            column: 0,
            csv: input.csv(),
            has_quotes: false,
            skipped: Vec::new(),
            has_quoted_key: false,
            units: Vec::new(),
            texts: Texts::default(),
            n_hashed: 0,
        }
    }

    /// Replaces `hashes` by the hashes of the keys. A line without a key is an error, but the hashes of the lines
    /// before it are kept.
    pub fn hash(&mut self, seed: u64, hashes: &mut Vec<u64>) -> Result<()> {
        hashes.clear();
        self.skipped.clear();
        self.has_quoted_key = false;
        if self.input.words {
            let text = &mut self.buffer[..self.len];
            if self.input.ignore_case {
                text.make_ascii_lowercase();
            }
            words::keys(text, |key| {
                let hash = hash_key(key, seed);
                hashes.push(hash);
                hash
            });
            return Ok(());
        }
        let rule = &self.input.rule;
        let (integers, has_units, delimiter) = (rule.integers, self.input.has_units(), rule.delimiter());
        let first = self.start.max(self.mark);
        let lines = lines(rule, &self.buffer, &self.ends, first);
        if !integers && !has_units && self.column == 0 && rule.json.is_none() {
            hashes.extend(lines.map(|key| hash_key(key, seed)));
            return Ok(());
        }
        self.units.clear();
        for (i, line) in lines.enumerate() {
            self.n_hashed = i;
            let mut json = None;
            let key = match (&rule.json, &mut self.csv) {
                (Some(field), _) => match text_of(field, line) {
                    Ok((found, text)) => {
                        let start = found.as_ptr().addr() - self.buffer.as_ptr().addr();
                        json = Some((found, start));
                        Some(text)
                    }
                    Err(_) if self.input.skip_short => None,
                    Err(what) => {
                        let line = line.to_vec();
                        return Err(self.wrong(i, &what, &line, "change --json, or give --skip-short"));
                    }
                },
                _ if self.column == 0 => Some(line.into()),
                (None, Some(csv)) if self.has_quotes && memchr::memchr(b'"', line).is_some() => {
                    csv.field(line, self.column).map(Cow::Borrowed)
                }
                _ => field(line, self.column, delimiter).map(Cow::Borrowed),
            };
            match key {
                None if self.input.skip_short => self.skipped.push(i),
                None => return Err(self.has_no_column(i, line)),
                Some(key) if integers => {
                    let Some(number) = integer(&key) else {
                        let key = key.to_vec();
                        return Err(self.wrong(
                            i,
                            "is not an integer of up to 64 bits",
                            &key,
                            "omit --integers",
                        ));
                    };
                    hashes.push(hash_key(number, seed));
                }
                Some(key) => {
                    self.has_quoted_key |= !rule.csv && json.is_none() && key.first() == Some(&b'"');
                    if has_units {
                        let text = Text { line: i, text: &key, json };
                        let added = self.texts.add(rule, text, seed, hashes, &mut self.units);
                        let n_bytes = key.len();
                        added.map_err(|_| {
                            anyhow!("no memory for the keys of a text of {n_bytes} bytes (free some)")
                        })?;
                    } else {
                        hashes.push(hash_key(&*key, seed));
                    }
                }
            }
        }
        self.n_hashed = self.ends.len();
        Ok(())
    }

    /// [`hash`](Self::hash) if something was read.
    pub fn hash_if(&mut self, read: Result<bool>, seed: u64, hashes: &mut Vec<u64>) -> Result<()> {
        hashes.clear();
        if read? { self.hash(seed, hashes) } else { Ok(()) }
    }

    fn has_no_column(&self, i: usize, line: &[u8]) -> Error {
        let column = self.input.rule.column.as_ref().map_or(String::new(), Column::to_string);
        let remedy = "change --column or --delimiter, or give --skip-short";
        self.wrong(i, &format!("has no column {column}"), line, remedy)
    }

    /// The error for the `i`-th line.
    fn wrong(&self, i: usize, what: &str, text: &[u8], remedy: &str) -> Error {
        let (file, n_before) = self.position;
        let rule = &self.input.rule;
        let n = match (i.checked_sub(1), rule.length) {
            (None, _) => count(rule.end(), &self.buffer[..self.start]),
            (_, Some(_)) => i,
            // A row of CSV can have several lines.
            (Some(previous), None) => count(rule.end(), &self.buffer[..self.ends[previous]]),
        };
        let (name, number) = (self.input.name(file), n_before + n as u64 + 1);
        anyhow!("{name}: line {number} {what}: {} (remove it, or {remedy})", quoted(text))
    }

    /// What comes before the lines, unless it was printed before.
    pub fn preamble(&self) -> &[u8] {
        &self.buffer[self.shown_from..self.start]
    }

    /// What the keys are of, unless each line has one.
    pub fn units(&self) -> Option<&[Unit]> {
        self.input.has_units().then_some(&self.units)
    }

    /// Bytes of the lines.
    pub fn n_bytes(&self) -> usize {
        self.len
    }

    /// Whether it has a line that is far longer than most, for which its memory has grown.
    pub fn is_long(&self) -> bool {
        self.buffer.len() > 4 * READ
    }

    pub fn n_lines(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Index of the file.
    pub fn file(&self) -> usize {
        self.position.0
    }

    /// Appends the lines whose flag is `is`, with their ends, or of each line the paragraphs. Lines without a flag are
    /// left out.
    pub fn copy(&self, flags: &[bool], is: bool, to: &mut Vec<u8>) -> Result<()> {
        let n_bytes = self.len;
        to.try_reserve(n_bytes)
            .map_err(|_| anyhow!("no memory to print {n_bytes} bytes of lines (free some)"))?;
        if self.input.has_units() {
            self.copy_units(flags, is, to);
            return Ok(());
        }
        let (mut start, mut kept_from) = (self.start, self.start);
        let (mut flags, mut skipped) = (flags.iter(), self.skipped.iter().peekable());
        for (i, &end) in self.ends.iter().enumerate() {
            let is_skipped = skipped.next_if_eq(&&i).is_some();
            let Some(flag) = (if is_skipped { Some(&!is) } else { flags.next() }) else { break };
            if *flag != is {
                to.extend_from_slice(&self.buffer[kept_from..start]);
                kept_from = end;
            }
            start = end;
        }
        to.extend_from_slice(&self.buffer[kept_from..start]);
        Ok(())
    }

    fn copy_units(&self, flags: &[bool], is: bool, to: &mut Vec<u8>) {
        let (mut start, mut flags) = (self.start, flags);
        let mut lines = self.units.chunk_by(|one, next| one.line == next.line).peekable();
        for (i, &end) in self.ends.iter().enumerate() {
            let line = &self.buffer[mem::replace(&mut start, end)..end];
            let Some(units) = lines.next_if(|units| units[0].line == i) else { continue };
            let Some((of_units, others)) = flags.split_at_checked(units.len()) else { return };
            flags = others;
            let selected =
                || units.iter().zip(of_units).filter(|(_, flag)| **flag == is).map(|(unit, _)| unit);
            if selected().count() == units.len() && !units.iter().all(|unit| unit.is_blank) {
                to.extend_from_slice(line);
            } else if selected().any(|unit| !unit.is_blank) || is && self.input.seen.keep_empty {
                let mut place = end - line.len()..units[0].place.start;
                for (i, unit) in selected().enumerate() {
                    to.extend_from_slice(&self.buffer[place]);
                    if i > 0 {
                        to.extend_from_slice(
                            &self.buffer[unit.place.start - unit.separator..unit.place.start],
                        );
                    }
                    place = unit.place.clone();
                }
                to.extend_from_slice(&self.buffer[place]);
                if !to.ends_with(b"\"") && selected().count() == 0 {
                    to.extend_from_slice(b"\"\""); // in place of a number
                }
                to.extend_from_slice(&self.buffer[units[units.len() - 1].place.end..end]);
            }
        }
    }

    /// Appends a record for each line, of which texts or paragraphs of it were seen. Their shares are those of the units.
    pub fn copy_spans(&self, shares: &[f64], to: &mut Vec<u8>) -> Result<()> {
        let (id, rule) = (Field::parse("id").expect("a name"), &self.input.rule);
        let mut units = self.units.iter().zip(shares).peekable();
        // The lines without a record are those after the last unit that was looked up.
        let n_lines = self.units.get(shares.len()).map_or(self.n_hashed, |unit| unit.line);
        for (i, line) in
            lines(rule, &self.buffer, &self.ends, self.start.max(self.mark)).take(n_lines).enumerate()
        {
            let id = str::from_utf8(line).ok().and_then(|line| id.find(line).ok().flatten());
            let seen: Vec<_> = iter::from_fn(|| units.next_if(|(unit, _)| unit.line == i))
                .filter(|&(unit, &share)| !unit.bytes.is_empty() && self.input.seen.is_seen(share))
                .collect();
            let text =
                rule.json.as_ref().filter(|_| !seen.is_empty()).and_then(|field| text_of(field, line).ok());
            let (mut at, mut n_chars, text) = (0, 0, text.map(|(_, text)| text).unwrap_or_default());
            let mut chars = |byte: usize| {
                // Of UTF-8, each byte but those that continue a code point begins one.
                n_chars += text[at..byte].iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
                at = byte;
                n_chars
            };
            let spans = seen.iter().map(|(Unit { bytes, .. }, share)| {
                format!("[{},{},{share}]", chars(bytes.start), chars(bytes.end))
            });
            let spans = spans.collect::<Vec<_>>().join(",");
            let bytes = seen.iter().map(|(Unit { bytes, .. }, _)| format!("[{},{}]", bytes.start, bytes.end));
            let bytes = bytes.collect::<Vec<_>>().join(",");
            let id = id.unwrap_or("null");
            writeln!(to, "{{\"id\":{id},\"attributes\":{{\"seen\":[{spans}]}},\"bytes\":[{bytes}]}}")?;
        }
        Ok(())
    }

    fn find_ends(&mut self) {
        let (rule, lines) = (&self.input.rule, &self.buffer[..self.len]);
        if rule.csv || self.input.words {
            return; // the ends of rows were found when they were read
        }
        self.ends.clear();
        match rule.length {
            Some(length) => self.ends.extend((1..=self.len / length).map(|i| i * length.get())),
            None => self.ends.extend(memchr::memchr_iter(rule.end(), lines).map(|at| at + 1)),
        }
    }
}

/// The lines without their ends. The first one begins at `start`, the next ones at `ends`.
fn lines<'a>(
    rule: &KeyRule,
    buffer: &'a [u8],
    ends: &[usize],
    mut start: usize,
) -> impl Iterator<Item = &'a [u8]> {
    let n_end_bytes = usize::from(rule.length.is_none());
    let crlf = rule.crlf || rule.csv;
    ends.iter().map(move |&end| {
        let line = &buffer[start..end - n_end_bytes];
        start = end;
        if crlf { line.strip_suffix(b"\r").unwrap_or(line) } else { line }
    })
}

/// The JSON of a field, and its text, or what is wrong with the line.
fn text_of<'a>(field: &Field, line: &'a [u8]) -> Result<(&'a str, Cow<'a, [u8]>), String> {
    // Without the number of the line, which is always 1.
    let wrong = |error: serde_json::Error| {
        let error = error.to_string();
        format!("is not JSON, {}", error.split(" at line ").next().unwrap_or_default())
    };
    let line = str::from_utf8(line)
        .map_err(|error| format!("is not UTF-8 from byte {} on", error.valid_up_to() + 1))?;
    let found = field.find(line).map_err(wrong)?.ok_or_else(|| format!("has no field {field}"))?;
    match json::text(found).map_err(wrong)? {
        Some(Cow::Borrowed(text)) => Ok((found, text.as_bytes().into())),
        Some(Cow::Owned(text)) => Ok((found, text.into_bytes().into())),
        None => {
            let what = match found.as_bytes()[0] {
                b'{' => "an object",
                b'[' => "an array",
                _ => "null",
            };
            Err(format!("has {what} as field {field}"))
        }
    }
}

fn count(byte: u8, bytes: &[u8]) -> usize {
    memchr::memchr_iter(byte, bytes).count()
}

/// The text or its beginning, for messages.
fn quoted(text: &[u8]) -> String {
    const SHOWN: usize = 40;
    let more = if text.len() > SHOWN { "..." } else { "" };
    format!("{:?}{more}", String::from_utf8_lossy(&text[..text.len().min(SHOWN)]))
}

/// The field with this number, counted from 1.
fn field(line: &[u8], number: usize, delimiter: u8) -> Option<&[u8]> {
    let mut ends = memchr::memchr_iter(delimiter, line).chain([line.len()]);
    let start = if number == 1 { 0 } else { ends.nth(number - 2)? + 1 };
    Some(&line[start..ends.next()?])
}

/// A decimal integer from −2^63 to 2^64 − 1 as the `u64` that has the same [key](bloomline::Key). White space around it
/// is ignored.
pub fn integer(text: &[u8]) -> Option<u64> {
    let text = str::from_utf8(text.trim_ascii()).ok()?;
    text.parse().or_else(|_| text.parse().map(i64::cast_unsigned)).ok()
}

/// Reads the keys of an [`Input`].
pub struct Keys<'a> {
    reader: Reader<'a>,
    chunk: Chunk<'a>,
    /// The first row of the first file if it is a header.
    header: Option<Vec<u8>>,
    /// Whether lines of each file are printed to one of its own, and a file that cannot be read is an error.
    by_file: bool,
}

struct Reader<'a> {
    input: &'a Input,
    /// Index of the next file, and of the first one that is not to be read.
    to_open: usize,
    end: usize,
    open: Option<Box<dyn Read + Send>>,
    /// The beginning of a line whose end has not been read.
    rest: Vec<u8>,
    /// Lines read so far, and lines of the last opened file.
    n_lines: u64,
    n_file_lines: u64,
    progress: Arc<Progress>,
    /// Whether to note what lines end with, and files begin with.
    has_notes: bool,
    notes: Notes,
    /// For CSV, and the number of the column in the open file.
    csv: Option<Csv>,
    column: usize,
    /// Whether a file could not be read, which was reported.
    has_failed: bool,
}

/// What is noted of files when they have been read.
#[derive(Clone, Copy, Default)]
pub struct Notes {
    /// Lines that end with CR LF.
    crs: Noted,
    /// Files that begin with a byte-order mark.
    marks: Noted,
    /// Lines without the column.
    skipped: Noted,
    /// Pieces of files with a key that begins with a quote.
    quoted: Noted,
    /// Whether a file was decoded.
    pub has_utf_16: bool,
}

/// How many, and the index of the first file with one.
#[derive(Clone, Copy, Default)]
struct Noted {
    n: u64,
    file: usize,
}

impl Noted {
    fn add(&mut self, n: u64, file: usize) {
        if n > 0 {
            self.file = if self.n == 0 { file } else { self.file.min(file) };
            self.n += n;
        }
    }
}

impl Notes {
    pub fn add(&mut self, other: &Self) {
        let Self { crs, marks, skipped, quoted, .. } = self;
        let others = [other.crs, other.marks, other.skipped, other.quoted];
        [crs, marks, skipped, quoted].into_iter().zip(others).for_each(|(ours, it)| ours.add(it.n, it.file));
    }

    pub fn print(&self, input: &Input) {
        let rule = &input.rule;
        let column = rule.column.as_ref().map_or(String::new(), Column::to_string);
        let Self { crs, marks, skipped, quoted, .. } = self;
        if marks.n > 0 && !rule.csv && !input.words {
            let verb = if marks.n == 1 { "begins" } else { "begin" };
            note(format_args!(
                "{}: {} {verb} with a byte-order mark, which is not part of the key",
                input.name(marks.file),
                counted(marks.n, "file")
            ));
        }
        if skipped.n > 0 {
            let lines = counted(skipped.n, "line");
            let field =
                rule.json.as_ref().map_or(format!("column {column}"), |field| format!("a text in {field}"));
            note(format_args!("{lines} without {field} skipped"));
        }
        if quoted.n > 0 {
            let delimiter = if rule.delimiter.is_none() { " --delimiter '\\t'" } else { "" };
            note(format_args!(
                "{}: quotes around column {column} are part of the key (if this is CSV, give --csv{delimiter})",
                input.name(quoted.file)
            ));
        }
        if crs.n > 0 {
            let place = if rule.column.is_some() { "last field" } else { "key" };
            let verb = if crs.n == 1 { "ends" } else { "end" };
            note(format_args!(
                "{}: {} {verb} with CR LF, and the CR is part of the {place} (exclude it with --crlf)",
                input.name(crs.file),
                counted(crs.n, "line")
            ));
        }
    }
}

/// Bytes of a row of CSV. A quote that nobody closes would otherwise fill the memory with the rest of the file.
const MAX_ROW: usize = 64 << 20;

/// Bytes of a word, for whose parts there must be twenty times as much memory.
const MAX_WORD: usize = 16 << 20;

/// More threads would wait, because reading is a third of the work and is done by one thread at a time.
const MAX_THREADS: usize = 4;

impl<'a> Keys<'a> {
    /// `doing` is the label of the progress bar. With `quiet`, there is neither a bar nor a note.
    pub fn new(input: &'a Input, doing: &'static str, quiet: bool) -> Self {
        let progress = Arc::new(progress(input, doing, quiet));
        Self::of(input, 0..input.files.len(), progress, !quiet)
    }

    /// Reads one of the files, whose bytes the caller's bar counts.
    pub fn of_file(input: &'a Input, file: usize, progress: &Arc<Progress>) -> Self {
        Self::of(input, file..file + 1, Arc::clone(progress), true)
    }

    fn of(input: &'a Input, files: Range<usize>, progress: Arc<Progress>, has_notes: bool) -> Self {
        let reader = Reader {
            input,
            to_open: files.start,
            end: files.end,
            open: None,
            rest: Vec::new(),
            n_lines: 0,
            n_file_lines: 0,
            progress,
            has_notes,
            notes: Notes::default(),
            csv: input.csv(),
            column: input.rule.number(),
            has_failed: false,
        };
        Self { reader, chunk: Chunk::new(input), header: None, by_file: false }
    }

    /// Without notes, because the same input will be read again.
    pub fn without_notes(mut self) -> Self {
        self.reader.has_notes = false;
        self
    }

    /// For files whose lines are printed to one file each. If one of them cannot be read, this is an error, and no more
    /// is read.
    pub fn by_file(mut self) -> Self {
        self.by_file = true;
        self
    }

    /// Reads the lines that can be read without waiting, a few thousand at most. Returns `false` at the end. If a file
    /// cannot be read, that is reported, and the next one is read.
    pub fn next_chunk(&mut self) -> Result<bool> {
        loop {
            let checked = match self.reader.read(&mut self.chunk) {
                Ok(false) => return Ok(false),
                Ok(true) => self.check_header(),
                Err(error) => Err(error),
            };
            match checked {
                Ok(()) => break,
                Err(error) if self.by_file => {
                    let file = self.reader.to_open.saturating_sub(1);
                    self.reader.end();
                    self.chunk = Chunk { position: (file, 0), ..Chunk::new(self.chunk.input) };
                    return Err(error);
                }
                Err(error) => self.reader.leave_file(&error),
            }
        }
        self.chunk.find_ends();
        Ok(true)
    }

    /// Puts what was read into another chunk.
    pub fn swap(&mut self, chunk: &mut Chunk<'a>) {
        mem::swap(&mut self.chunk, chunk);
    }

    pub fn input(&self) -> &'a Input {
        self.reader.input
    }

    /// Whether several threads read faster than one. A pipe has one reader, because a second one would wait for it.
    pub fn is_costly(&self) -> bool {
        let input = self.reader.input;
        (input.rule.json.is_some() || self.by_file) && input.is_of_files()
    }

    /// Reads one of the files in the same way.
    pub fn open(&self, file: usize) -> Self {
        let Reader { input, progress, has_notes, .. } = &self.reader;
        let keys = Self::of(input, file..file + 1, Arc::clone(progress), *has_notes);
        Self { by_file: self.by_file, ..keys }
    }

    /// Notes what there is to note of a file that was read.
    pub fn close(&mut self, file: Self) {
        self.reader.notes.add(&file.reader.notes);
        self.reader.has_failed |= file.reader.has_failed;
    }

    /// Notes what there is to note of a chunk, and shows how many lines were read.
    pub fn show(&mut self, chunk: &mut Chunk, n_lines: u64) {
        self.reader.take_notes(chunk);
        self.reader.progress.count(n_lines, "lines");
    }

    /// Shows the header of the first file only. Fails if a later file has a different header, because its
    /// rows would be printed below the first file's header.
    fn check_header(&mut self) -> Result<()> {
        let chunk = &mut self.chunk;
        let (file, n_before) = chunk.position;
        if chunk.input.rule.csv && n_before == 0 {
            let header = csv::header(&chunk.buffer[..chunk.start]);
            match &self.header {
                _ if self.by_file => (),
                None => self.header = Some(header.to_vec()),
                Some(first) => {
                    let name = chunk.input.name(file);
                    ensure!(
                        first == header,
                        "{name}: its header is not that of the file before (give only files with the same header)"
                    );
                    chunk.shown_from = chunk.start;
                }
            }
        }
        Ok(())
    }

    /// Prints the notes on all lines, and returns whether all files could be read.
    pub fn end(self) -> bool {
        self.reader.print_notes();
        !self.reader.has_failed
    }

    /// Passes the hashes of all keys to `each`, in chunks and in this thread, and returns what there is to note.
    pub fn hash(mut self, seed: u64, mut each: impl FnMut(&[u64])) -> Result<Notes> {
        let mut hashes = Vec::new();
        while self.reader.read(&mut self.chunk)? {
            self.chunk.find_ends();
            self.chunk.hash(seed, &mut hashes)?;
            self.reader.take_notes(&mut self.chunk);
            each(&hashes);
        }
        Ok(self.reader.notes)
    }

    /// Passes the hashes of all keys to `each`, in chunks and in any order, and returns the number of lines.
    ///
    /// Threads take turns to read files, and to call `each`. They find the ends of lines and hash at the same time.
    pub fn hash_all(self, seed: u64, each: impl FnMut(&[u64]) + Send) -> Result<u64> {
        let input = self.reader.input;
        let (reader, each) = (Mutex::new(self.reader), Mutex::new(each));
        // Each error has its place in the input, so that the first one is reported whichever thread is faster.
        let work = || {
            let (mut chunk, mut hashes) = (Chunk::new(input), Vec::new());
            loop {
                let mut reading = lock(&reader);
                let is_read = reading.read(&mut chunk).map_err(|error| {
                    reading.end();
                    ((usize::MAX, 0), error)
                })?;
                reading.show_lines();
                drop(reading);
                if !is_read {
                    return Ok(());
                }
                chunk.find_ends();
                chunk.hash(seed, &mut hashes).map_err(|error| {
                    lock(&reader).end();
                    (chunk.position, error)
                })?;
                if !chunk.skipped.is_empty() || chunk.has_quoted_key {
                    lock(&reader).take_notes(&mut chunk);
                }
                lock(&each)(&hashes);
            }
        };
        // A pipe gets one reader, because a second one would always wait for it, and both would get small pieces.
        let n_threads = match thread::available_parallelism() {
            Ok(n) if input.is_of_files() => n.get().min(MAX_THREADS),
            _ => 1,
        };
        in_threads(n_threads, work)?;
        let reader = lock(&reader);
        reader.print_notes();
        Ok(reader.n_lines - reader.notes.skipped.n)
    }
}

/// Does `work` in several threads, and returns the error with the first position, whichever thread is faster.
pub fn in_threads<P: Ord + Send>(
    n_threads: usize,
    work: impl Fn() -> Result<(), (P, Error)> + Sync,
) -> Result<()> {
    let work = &work;
    let failed = thread::scope(|scope| {
        // If the system has no thread left, the remaining ones do its work.
        let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..n_threads).map_while(start).collect();
        let mine = work();
        let others =
            others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        iter::once(mine).chain(others).filter_map(Result::err).min_by(|(one, _), (other, _)| one.cmp(other))
    });
    failed.map_or(Ok(()), |(_, error)| Err(error))
}

impl<'a> Reader<'a> {
    /// Reads at least one whole line, or returns `false` at the end of the last file.
    fn read(&mut self, chunk: &mut Chunk<'a>) -> Result<bool> {
        let rule = &self.input.rule;
        let mut filled = self.rest.len();
        // First, because without memory for the buffer, this file is left for the next, and so the files end.
        if self.open.is_none() && !self.open_next()? {
            return Ok(false);
        }
        self.grow(&mut chunk.buffer, filled.max(READ))?;
        chunk.buffer[..filled].copy_from_slice(&self.rest);
        self.rest.clear();
        (chunk.len, chunk.start, chunk.shown_from, chunk.has_quotes) = (0, 0, 0, false);
        chunk.ends.clear();
        while chunk.len == 0 {
            // As much for each read, whatever the buffer had before. So chunks are the same however many threads read.
            self.grow(&mut chunk.buffer, filled + READ)?;
            let Some(reader) = &mut self.open else {
                if self.open_next()? {
                    continue;
                }
                return Ok(false);
            };
            let searched = filled;
            match reader.read(&mut chunk.buffer[filled..filled + READ]) {
                Ok(0) => filled = self.end_file(&mut chunk.buffer, filled)?,
                Ok(n) => filled += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(read_error(&self.file(), &error)),
            }
            let read = &chunk.buffer[searched..filled];
            chunk.len = match (rule.length, &mut self.csv) {
                (Some(length), _) => filled - filled % length,
                (None, Some(csv)) => {
                    let bytes = &chunk.buffer[..filled];
                    chunk.start = if self.n_file_lines == 0 { csv::bom(bytes).len() } else { 0 };
                    chunk.has_quotes |= csv.find_ends(bytes, chunk.start, searched, &mut chunk.ends);
                    let is_cut = csv.is_in_row && (self.open.is_none() || filled > MAX_ROW);
                    let len = chunk.ends.last().map_or(0, |&end| end);
                    ensure!(len > 0 || !is_cut, self.open_quote());
                    len
                }
                (None, None) if self.input.words => {
                    let whole = words::whole(read);
                    ensure!(whole > 0 || filled < MAX_WORD, self.long_word());
                    if whole > 0 { searched + whole } else { 0 }
                }
                (None, None) => memchr::memrchr(rule.end(), read).map_or(0, |at| searched + at + 1),
            };
        }
        let (lines, rest) = chunk.buffer[..filled].split_at(chunk.len);
        self.rest.try_reserve(rest.len()).map_err(|_| self.no_memory(rest.len()))?;
        self.rest.extend_from_slice(rest);
        let file = self.to_open - 1;
        let is_text = self.is_text();
        chunk.mark = 0;
        if is_text && !self.input.raw && self.n_file_lines == 0 {
            chunk.mark = csv::bom(lines).len();
            if chunk.mark > 0 {
                self.notes.marks.add(1, file);
            }
        }
        let has_key_to_end = !rule.crlf && !rule.integers && !rule.csv && rule.json.is_none();
        if self.has_notes && is_text && has_key_to_end && !self.input.words {
            let crs =
                memchr::memchr_iter(b'\r', lines).filter(|&at| lines.get(at + 1) == Some(&b'\n')).count();
            self.notes.crs.add(crs as u64, file);
        }
        chunk.position = (file, self.n_file_lines);
        let n_lines = match rule.length {
            Some(length) => lines.len() / length,
            // Words are not counted by lines, but the next piece is not the beginning of the file.
            None if self.input.words => lines.len(),
            None => count(rule.end(), lines),
        } as u64;
        if let (Some(Column::Name(name)), Some(csv), 0) = (&rule.column, &mut chunk.csv, self.n_file_lines) {
            chunk.start = chunk.ends.remove(0);
            self.column = self.column(csv, csv::header(&lines[..chunk.start]), name)?;
        }
        chunk.column = self.column;
        self.n_lines += if rule.csv { chunk.ends.len() as u64 } else { n_lines };
        self.n_file_lines += n_lines;
        Ok(true)
    }

    fn show_lines(&self) {
        self.progress.count(self.n_lines, "lines");
    }

    /// The number of the column with this name.
    fn column(&self, csv: &mut Csv, header: &[u8], name: &str) -> Result<usize> {
        let fields = (1..).map_while(|n| Some((n, csv.field(header, n)? == name.as_bytes())));
        let found: Vec<usize> = fields.filter_map(|(n, is_it)| is_it.then_some(n)).collect();
        let (file, header) = (self.file(), quoted(header));
        match found[..] {
            [n] => Ok(n),
            [] => bail!("{file}: no column is called {name}: {header} (change --column or --delimiter)"),
            _ => bail!("{file}: several columns are called {name}: {header} (give the number of one)"),
        }
    }

    fn long_word(&self) -> Error {
        anyhow!("{}: a word of more than {} MiB (leave the file out)", self.file(), MAX_WORD >> 20)
    }

    fn open_quote(&self) -> Error {
        let (file, line) = (self.file(), self.n_file_lines + 1);
        anyhow!("{file}: line {line}: a quote is not closed (close it, or omit --csv)")
    }

    /// Collects what notes report from a chunk that was hashed.
    fn take_notes(&mut self, chunk: &mut Chunk) {
        let file = chunk.position.0;
        self.notes.skipped.add(chunk.skipped.drain(..).count() as u64, file);
        self.notes.quoted.add(mem::take(&mut chunk.has_quoted_key).into(), file);
    }

    fn print_notes(&self) {
        if self.has_notes {
            self.notes.print(self.input);
        }
    }

    /// Reports why the last opened file cannot be read, so that the next one is read.
    fn leave_file(&mut self, error: &Error) {
        note(format_args!("{error:#}"));
        self.has_failed = true;
        self.rest.clear();
        self.open = None;
    }

    /// Name of the last opened file.
    fn file(&self) -> String {
        self.input.name(self.to_open.saturating_sub(1))
    }

    /// Reads no more.
    fn end(&mut self) {
        self.open = None;
        self.to_open = usize::MAX;
    }

    fn grow(&self, buffer: &mut Vec<u8>, len: usize) -> Result<()> {
        if let Some(more) = len.checked_sub(buffer.len()) {
            buffer.try_reserve(more).map_err(|_| self.no_memory(buffer.len()))?;
            buffer.resize(len, 0);
        }
        Ok(())
    }

    fn no_memory(&self, length: usize) -> Error {
        anyhow!("{}: no memory for a line of more than {length} bytes (free some)", self.file())
    }

    fn open_next(&mut self) -> Result<bool> {
        let Some(file) = self.input.files[..self.end].get(self.to_open) else { return Ok(false) };
        let name = self.input.name(self.to_open);
        self.to_open += 1;
        let failed = |error: io::Error| io_error(&name, &error);
        const ALSO_OUTPUT: &str = "is also the output, which would be read as input (write to another file)";
        let source: Box<dyn Read + Send> = if is_stdin(file) {
            ensure!(!stdin().is_ok_and(|stdin| is_output(&stdin)), "{name}: {ALSO_OUTPUT}");
            streams::input().map_err(failed)?
        } else {
            let mut opened = File::open(file).map_err(failed)?;
            ensure!(!is_output(&opened), "{name}: {ALSO_OUTPUT}");
            if !self.input.raw && opened.metadata().is_ok_and(|metadata| metadata.is_file()) {
                refuse_as_lines(&name, &mut opened)?;
            }
            Box::new(opened)
        };
        let source = self.progress.reading(source);
        let utf_16 = self.input.utf_16;
        self.open = Some(if self.input.raw {
            Box::new(source)
        } else if self.is_text() && utf_16 != Utf16::Bytes {
            let (text, is_utf_16) = utf_8(&name, decompressed(&name, source)?, utf_16 == Utf16::Decoded)?;
            self.notes.has_utf_16 |= is_utf_16;
            text
        } else {
            decompressed(&name, source)?
        });
        self.n_file_lines = 0;
        self.csv = self.input.csv(); // at the beginning of a row
        Ok(true)
    }

    /// Whether newlines end the lines.
    fn is_text(&self) -> bool {
        !self.input.rule.null && self.input.rule.length.is_none()
    }

    /// Ends the last line if nothing does, because the next file begins with a new one. Returns the bytes filled.
    fn end_file(&mut self, buffer: &mut [u8], filled: usize) -> Result<usize> {
        self.open = None;
        let rule = &self.input.rule;
        if let Some(length) = rule.length {
            let (name, rest) = (self.file(), filled % length);
            ensure!(
                rest == 0,
                "{name}: the last line has {rest} of {length} bytes (check the file and --length)"
            );
        } else if filled > 0 {
            buffer[filled] = rule.end(); // the buffer was not full, as it was read into
            return Ok(filled + 1);
        }
        Ok(filled)
    }
}

/// There is no bar where it would overwrite what is typed, or the end of output that has no newline.
fn progress(input: &Input, doing: &'static str, quiet: bool) -> Progress {
    let reads_stdin = input.files.iter().any(|file| is_stdin(file));
    let ends_lines = input.rule.length.is_none() && !input.rule.null;
    let is_in_the_way = reads_stdin && io::stdin().is_terminal() || !ends_lines && io::stdout().is_terminal();
    Progress::new(doing, total_bytes(&input.files), quiet || is_in_the_way)
}
