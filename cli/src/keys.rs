//! Lines and their keys, in chunks as they are read.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read};
use std::iter;
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::thread;

use anyhow::{Error, Result, anyhow, ensure};
use bloomline::hash_key;

use crate::decompress::{READ, decompressed, read_error};
use crate::guard::refuse_as_lines;
use crate::input::{Input, is_stdin, total_bytes};
use crate::numbers::counted;
use crate::output::{io_error, is_output, note};
use crate::progress::Progress;
use crate::signals::lock;
use crate::streams::{self, stdin};

/// Editors on Windows write it first, to tell the encoding. A file with it and one without have the same keys.
const UTF_8_MARK: &[u8] = b"\xef\xbb\xbf";
const UTF_16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

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
    /// For each line, where the next one begins.
    ends: Vec<usize>,
}

impl<'a> Chunk<'a> {
    fn new(input: &'a Input) -> Self {
        Self { input, position: (0, 0), buffer: Vec::new(), len: 0, mark: 0, ends: Vec::new() }
    }

    /// Replaces `hashes` by the hashes of the keys. A line without a key is an error, but the hashes of the lines
    /// before it are kept.
    pub fn hash(&self, seed: u64, hashes: &mut Vec<u64>) -> Result<()> {
        hashes.clear();
        let (rule, delimiter) = (&self.input.rule, self.input.rule.delimiter());
        let (integers, column) = (rule.integers, rule.column);
        if !integers && column.is_none() {
            hashes.extend(self.lines().map(|key| hash_key(key, seed)));
            return Ok(());
        }
        for (i, line) in self.lines().enumerate() {
            let key = match column {
                None => line,
                Some(column) => {
                    field(line, column.get(), delimiter).ok_or_else(|| self.has_no_column(i, line))?
                }
            };
            hashes.push(if integers {
                hash_key(integer(key).ok_or_else(|| self.not_an_integer(i, key))?, seed)
            } else {
                hash_key(key, seed)
            });
        }
        Ok(())
    }

    /// The lines without their ends, and without a byte-order mark.
    fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let n_end_bytes = usize::from(self.input.rule.length.is_none());
        let crlf = self.input.rule.crlf;
        let mut start = self.mark;
        self.ends.iter().map(move |&end| {
            let line = &self.buffer[start..end - n_end_bytes];
            start = end;
            if crlf { line.strip_suffix(b"\r").unwrap_or(line) } else { line }
        })
    }

    // Apart from the loop, which would otherwise run 3% more instructions.
    fn not_an_integer(&self, i: usize, key: &[u8]) -> Error {
        self.wrong(i, "is not an integer of up to 64 bits", key, "omit --integers")
    }

    fn has_no_column(&self, i: usize, line: &[u8]) -> Error {
        let what = format!("has no column {}", self.input.rule.column.map_or(0, usize::from));
        self.wrong(i, &what, line, "change --column or --delimiter")
    }

    /// The error for the `i`-th line.
    fn wrong(&self, i: usize, what: &str, text: &[u8], remedy: &str) -> Error {
        let (file, n_before) = self.position;
        let (name, number) = (self.input.name(file), n_before + i as u64 + 1);
        anyhow!("{name}: line {number} {what}: {} (remove it, or {remedy})", quoted(text))
    }

    /// Appends the lines whose flag is `is`, with their ends. Lines without a flag are left out.
    pub fn copy(&self, flags: &[bool], is: bool, to: &mut Vec<u8>) -> Result<()> {
        let n_bytes = self.len;
        to.try_reserve(n_bytes)
            .map_err(|_| anyhow!("no memory to print {n_bytes} bytes of lines (free some)"))?;
        let (mut start, mut kept_from) = (0, 0);
        for (&end, &flag) in self.ends.iter().zip(flags) {
            if flag != is {
                to.extend_from_slice(&self.buffer[kept_from..start]);
                kept_from = end;
            }
            start = end;
        }
        to.extend_from_slice(&self.buffer[kept_from..start]);
        Ok(())
    }

    fn find_ends(&mut self) {
        self.ends.clear();
        let (rule, lines) = (&self.input.rule, &self.buffer[..self.len]);
        match rule.length {
            Some(length) => self.ends.extend((1..=self.len / length).map(|i| i * length.get())),
            None => self.ends.extend(memchr::memchr_iter(rule.end(), lines).map(|at| at + 1)),
        }
    }
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
fn integer(text: &[u8]) -> Option<u64> {
    let text = str::from_utf8(text.trim_ascii()).ok()?;
    text.parse().or_else(|_| text.parse().map(i64::cast_unsigned)).ok()
}

/// Reads the keys of an [`Input`].
pub struct Keys<'a> {
    reader: Reader<'a>,
    chunk: Chunk<'a>,
}

struct Reader<'a> {
    input: &'a Input,
    /// Index of the next file.
    to_open: usize,
    open: Option<Box<dyn Read + Send>>,
    /// The beginning of a line whose end has not been read.
    rest: Vec<u8>,
    /// Lines read so far, and lines of the last opened file.
    n_lines: u64,
    n_file_lines: u64,
    progress: Progress,
    /// Whether to note what lines end with, and files begin with.
    has_notes: bool,
    /// Lines that end with CR LF, and the index of the first file with one.
    n_crs: u64,
    first_cr: usize,
    /// Files that begin with a byte-order mark, and the index of the first one.
    n_marks: u64,
    first_mark: usize,
    /// Whether a file could not be read, which was reported.
    has_failed: bool,
}

/// More threads would wait, because reading is a third of the work and is done by one thread at a time.
const MAX_THREADS: usize = 4;

impl<'a> Keys<'a> {
    /// `doing` is the label of the progress bar. With `quiet`, there is neither a bar nor a note.
    pub fn new(input: &'a Input, doing: &'static str, quiet: bool) -> Self {
        let reader = Reader {
            input,
            to_open: 0,
            open: None,
            rest: Vec::new(),
            n_lines: 0,
            n_file_lines: 0,
            progress: progress(input, doing, quiet),
            has_notes: !quiet,
            n_crs: 0,
            first_cr: 0,
            n_marks: 0,
            first_mark: 0,
            has_failed: false,
        };
        Self { reader, chunk: Chunk::new(input) }
    }

    /// Without notes, because the same input will be read again.
    pub fn without_notes(mut self) -> Self {
        self.reader.has_notes = false;
        self
    }

    /// The lines that can be read without waiting, a few thousand at most, or `None` at the end. If a file cannot be
    /// read, that is reported, and the next one is read.
    pub fn next_chunk(&mut self) -> Option<&Chunk<'a>> {
        loop {
            match self.reader.read(&mut self.chunk) {
                Ok(false) => return None,
                Ok(true) => break,
                Err(error) => self.reader.leave_file(&error),
            }
        }
        self.chunk.find_ends();
        Some(&self.chunk)
    }

    /// Prints the notes on all lines, and returns whether all files could be read.
    pub fn end(self) -> bool {
        self.reader.note_lines();
        !self.reader.has_failed
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
                drop(reading);
                if !is_read {
                    return Ok(());
                }
                chunk.find_ends();
                chunk.hash(seed, &mut hashes).map_err(|error| {
                    lock(&reader).end();
                    (chunk.position, error)
                })?;
                lock(&each)(&hashes);
            }
        };
        // A pipe gets one reader, because a second one would always wait for it, and both would get small pieces.
        let n_threads = match thread::available_parallelism() {
            Ok(n) if input.is_of_files() => n.get().min(MAX_THREADS),
            _ => 1,
        };
        let failed = thread::scope(|scope| {
            // If the system has no thread left, the remaining ones do its work.
            let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
            let others: Vec<_> = (1..n_threads).map_while(start).collect();
            let mine = work();
            let others =
                others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            iter::once(mine).chain(others).filter_map(Result::err).min_by_key(|(position, _)| *position)
        });
        match failed {
            Some((_, error)) => Err(error),
            None => {
                let reader = lock(&reader);
                reader.note_lines();
                Ok(reader.n_lines)
            }
        }
    }
}

impl<'a> Reader<'a> {
    /// Reads at least one whole line, or returns `false` at the end of the last file.
    fn read(&mut self, chunk: &mut Chunk<'a>) -> Result<bool> {
        let rule = &self.input.rule;
        let mut filled = self.rest.len();
        self.grow(&mut chunk.buffer, filled.max(READ))?;
        chunk.buffer[..filled].copy_from_slice(&self.rest);
        self.rest.clear();
        chunk.len = 0;
        while chunk.len == 0 {
            if filled == chunk.buffer.len() {
                self.grow(&mut chunk.buffer, 2 * filled)?;
            }
            let Some(reader) = &mut self.open else {
                if self.open_next()? {
                    continue;
                }
                return Ok(false);
            };
            let searched = filled;
            // Never more at a time, although the buffer may have grown for a long line.
            let room = chunk.buffer.len().min(filled + READ);
            match reader.read(&mut chunk.buffer[filled..room]) {
                Ok(0) => filled = self.end_file(&mut chunk.buffer, filled)?,
                Ok(n) => filled += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(read_error(&self.file(), &error)),
            }
            let read = &chunk.buffer[searched..filled];
            chunk.len = match rule.length {
                Some(length) => filled - filled % length,
                None => memchr::memrchr(rule.end(), read).map_or(0, |at| searched + at + 1),
            };
        }
        let (lines, rest) = chunk.buffer[..filled].split_at(chunk.len);
        self.rest.try_reserve(rest.len()).map_err(|_| self.no_memory(rest.len()))?;
        self.rest.extend_from_slice(rest);
        let file = self.to_open - 1;
        let is_text = !rule.null && rule.length.is_none();
        chunk.mark = 0;
        if is_text && !self.input.raw && self.n_file_lines == 0 {
            ensure!(
                !UTF_16_MARKS.iter().any(|mark| lines.starts_with(mark)),
                "{}: is UTF-16 (pipe it through `iconv -f UTF-16 -t UTF-8`, or use --raw to read it as it is)",
                self.file()
            );
            if lines.starts_with(UTF_8_MARK) {
                chunk.mark = UTF_8_MARK.len();
                self.first_mark = if self.n_marks == 0 { file } else { self.first_mark };
                self.n_marks += 1;
            }
        }
        if self.has_notes && is_text && !rule.crlf && !rule.integers {
            let crs =
                memchr::memchr_iter(b'\r', lines).filter(|&at| lines.get(at + 1) == Some(&b'\n')).count();
            self.first_cr = if self.n_crs == 0 { file } else { self.first_cr };
            self.n_crs += crs as u64;
        }
        chunk.position = (file, self.n_file_lines);
        let n_lines = match rule.length {
            Some(length) => lines.len() / length,
            None => memchr::memchr_iter(rule.end(), lines).count(),
        } as u64;
        self.n_lines += n_lines;
        self.n_file_lines += n_lines;
        self.progress.count(self.n_lines, "lines");
        Ok(true)
    }

    fn note_lines(&self) {
        if self.has_notes && self.n_marks > 0 {
            let verb = if self.n_marks == 1 { "begins" } else { "begin" };
            note(format_args!(
                "{}: {} {verb} with a byte-order mark, which is not part of the key (make it so with --raw)",
                self.input.name(self.first_mark),
                counted(self.n_marks, "file")
            ));
        }
        if self.n_crs > 0 {
            let place = if self.input.rule.column.is_some() { "last field" } else { "key" };
            let verb = if self.n_crs == 1 { "ends" } else { "end" };
            note(format_args!(
                "{}: {} {verb} with CR LF, and the CR is part of the {place} (exclude it with --crlf)",
                self.input.name(self.first_cr),
                counted(self.n_crs, "line")
            ));
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
        let Some(file) = self.input.files.get(self.to_open) else { return Ok(false) };
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
        let reader = if self.input.raw { Box::new(source) } else { decompressed(&name, source)? };
        self.open = Some(reader);
        self.n_file_lines = 0;
        Ok(true)
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
