//! Keys in chunks, as they are read.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, ErrorKind, IsTerminal, Read};
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
#[cfg(unix)]
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use anyhow::{Error, Result, anyhow, ensure};
use bloomline::hash_key;

use crate::decompress::{READ, decompressed, read_error};
use crate::input::{Ends, Input, is_stdin};
use crate::output::{io_error, note};
use crate::progress::Progress;

/// Some whole keys of one file, with what ends them.
pub struct Chunk<'a> {
    bytes: &'a [u8],
    /// Where the next key begins, for each key.
    ends: &'a [usize],
    /// Bytes at the end of each that are not part of the key.
    n_end_bytes: usize,
    crlf: bool,
    integers: bool,
    file: &'a str,
    /// Keys before these in the file.
    n_before: u64,
}

impl Chunk<'_> {
    /// Replaces `hashes` by those of the keys.
    pub fn hash(&self, seed: u64, hashes: &mut Vec<u64>) -> Result<()> {
        hashes.clear();
        if !self.integers {
            hashes.extend(self.keys().map(|key| hash_key(key, seed)));
            return Ok(());
        }
        for (i, key) in self.keys().enumerate() {
            let value = integer(key).ok_or_else(|| self.not_an_integer(i, key))?;
            hashes.push(hash_key(value.to_le_bytes(), seed));
        }
        Ok(())
    }

    fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let key = &self.bytes[start..end - self.n_end_bytes];
            start = end;
            if self.crlf { key.strip_suffix(b"\r").unwrap_or(key) } else { key }
        })
    }

    fn not_an_integer(&self, i: usize, key: &[u8]) -> Error {
        const SHOWN: usize = 40;
        let (file, line) = (self.file, self.n_before + i as u64 + 1);
        let text = String::from_utf8_lossy(&key[..key.len().min(SHOWN)]);
        let more = if key.len() > SHOWN { "..." } else { "" };
        anyhow!("{file}: line {line} is not an integer: {text:?}{more} (remove it, or omit --integers)")
    }

    /// Appends the keys whose index `is_selected`, with their ends, and returns their number.
    pub fn select(
        &self,
        mut is_selected: impl FnMut(usize) -> bool,
        selected: &mut Vec<u8>,
    ) -> Result<usize> {
        let n_bytes = self.bytes.len();
        let failed = |_| anyhow!("no memory to print keys of {n_bytes} bytes (free some)");
        selected.try_reserve(n_bytes).map_err(failed)?;
        let (mut n, mut start, mut kept_from) = (0, 0, 0);
        for (i, &end) in self.ends.iter().enumerate() {
            if is_selected(i) {
                n += 1;
            } else {
                selected.extend_from_slice(&self.bytes[kept_from..start]);
                kept_from = end;
            }
            start = end;
        }
        selected.extend_from_slice(&self.bytes[kept_from..start]);
        Ok(n)
    }
}

/// The value modulo 2^64 of a decimal integer, as `docs/format.md` requires for keys. White space around it is ignored.
fn integer(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    let (digits, is_negative) = match text {
        [b'-', digits @ ..] => (digits, true),
        [b'+', digits @ ..] => (digits, false),
        digits => (digits, false),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value = 0_u64;
    for digit in digits.iter().map(|byte| byte.wrapping_sub(b'0')) {
        if digit > 9 {
            return None;
        }
        value = value.wrapping_mul(10).wrapping_add(digit.into());
    }
    Some(if is_negative { value.wrapping_neg() } else { value })
}

/// Reads the keys of an [`Input`].
pub struct Keys<'a> {
    input: &'a Input,
    /// Index of the next file.
    to_open: usize,
    open: Option<Box<dyn Read + Send>>,
    /// Name of the last opened file, and keys of it that have been returned.
    file: String,
    n_file_keys: u64,
    buffer: Vec<u8>,
    /// Bytes of the buffer that have been read.
    filled: usize,
    /// Bytes of the buffer that have been returned.
    taken: usize,
    ends: Vec<usize>,
    n_keys: u64,
    progress: Progress,
    is_cr_noted: bool,
}

impl<'a> Keys<'a> {
    /// From the first key on; `doing` is the progress bar's label.
    pub fn new(input: &'a Input, doing: &'static str) -> Self {
        Self {
            input,
            to_open: 0,
            open: None,
            file: String::new(),
            n_file_keys: 0,
            buffer: vec![0; READ],
            filled: 0,
            taken: 0,
            ends: Vec::new(),
            n_keys: 0,
            progress: progress(input, doing),
            is_cr_noted: input.crlf || input.length.is_some() || input.null || input.integers,
        }
    }

    /// Passes the hashes of all keys to `each`, chunk by chunk, and returns the number of keys.
    pub fn hash_all(mut self, seed: u64, mut each: impl FnMut(&[u64])) -> Result<u64> {
        let mut hashes = Vec::new();
        while let Some(chunk) = self.next_chunk()? {
            chunk.hash(seed, &mut hashes)?;
            each(&hashes);
        }
        Ok(self.n_keys)
    }

    /// Keys returned so far.
    pub fn count(&self) -> u64 {
        self.n_keys
    }

    /// What can be read without waiting, a few thousand keys at most; `None` at the end.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk<'_>>> {
        self.buffer.copy_within(self.taken..self.filled, 0);
        self.filled -= self.taken;
        self.taken = 0;
        while self.taken == 0 {
            let Some(reader) = &mut self.open else {
                if self.open_next()? {
                    continue;
                }
                return Ok(None);
            };
            if self.filled == self.buffer.len() {
                let more = self.buffer.len();
                let file = &self.file;
                let failed = |_| anyhow!("{file}: no memory for a key of more than {more} bytes (free some)");
                self.buffer.try_reserve(more).map_err(failed)?;
                self.buffer.resize(2 * more, 0);
            }
            let searched = self.filled;
            match reader.read(&mut self.buffer[searched..]) {
                Ok(0) => self.end_file()?,
                Ok(n) => self.filled += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(read_error(&self.file, &error)),
            }
            self.find_ends(searched);
        }
        let n_before = self.n_file_keys;
        self.n_keys += self.ends.len() as u64;
        self.n_file_keys += self.ends.len() as u64;
        if !self.is_cr_noted && self.buffer[..self.ends[0]].ends_with(b"\r\n") {
            self.is_cr_noted = true;
            note(format_args!(
                "lines end with CR LF, and the CR is part of the keys (exclude it with --crlf)"
            ));
        }
        self.progress.count(self.n_keys, "keys");
        Ok(Some(Chunk {
            bytes: &self.buffer[..self.taken],
            ends: &self.ends,
            n_end_bytes: usize::from(self.input.length.is_none()),
            crlf: self.input.crlf,
            integers: self.input.integers,
            file: &self.file,
            n_before,
        }))
    }

    /// Finds the ends of keys in the buffer. Its first `searched` bytes contain no end byte.
    fn find_ends(&mut self, searched: usize) {
        self.ends.clear();
        match self.input.ends() {
            Ends::With(byte) => {
                let found = memchr::memchr_iter(byte, &self.buffer[searched..self.filled]);
                self.ends.extend(found.map(|at| searched + at + 1));
            }
            Ends::After(length) => self.ends.extend((1..=self.filled / length).map(|i| i * length)),
        }
        self.taken = self.ends.last().copied().unwrap_or(0);
    }

    fn open_next(&mut self) -> Result<bool> {
        let file = match self.input.files.get(self.to_open) {
            None if self.to_open > 0 => return Ok(false),
            file => file.filter(|file| !is_stdin(file)),
        };
        let name = file.map_or("standard input".into(), |file| file.display().to_string());
        let failed = |error: io::Error| io_error(&name, &error);
        const ALSO_OUTPUT: &str = "is also the output, which would be read as input (write to another file)";
        let source: Box<dyn Read + Send> = match file {
            None => {
                ensure!(!is_output(&io::stdin()), "{name}: {ALSO_OUTPUT}");
                Box::new(io::stdin())
            }
            Some(file) => {
                let file = File::open(file).map_err(failed)?;
                ensure!(!is_output(&file), "{name}: {ALSO_OUTPUT}");
                Box::new(file)
            }
        };
        let source = self.progress.reading(source);
        let reader = if self.input.raw { Box::new(source) } else { decompressed(source).map_err(failed)? };
        self.to_open += 1;
        self.open = Some(reader);
        self.file = name;
        self.n_file_keys = 0;
        Ok(true)
    }

    /// Ends the last key, if nothing ends it: the next file begins with another key.
    fn end_file(&mut self) -> Result<()> {
        self.open = None;
        match self.input.ends() {
            Ends::With(byte) if self.filled > 0 => {
                self.buffer[self.filled] = byte; // the buffer was not full, as it was read into
                self.filled += 1;
            }
            Ends::After(length) => ensure!(
                self.filled.is_multiple_of(length),
                "{}: the last key has {} of {length} bytes (check the file and --length)",
                self.file,
                self.filled % length
            ),
            Ends::With(_) => (),
        }
        Ok(())
    }
}

/// Without a bar where it would overwrite what is typed, or the end of output that does not end in a newline.
fn progress(input: &Input, doing: &'static str) -> Progress {
    let reads_stdin = input.files.is_empty() || input.files.iter().any(|file| is_stdin(file));
    let ends_lines = matches!(input.ends(), Ends::With(b'\n'));
    if reads_stdin && io::stdin().is_terminal() || !ends_lines && io::stdout().is_terminal() {
        return Progress::hidden();
    }
    let size = |file: &PathBuf| fs::metadata(file).ok().map(|metadata| metadata.len());
    let total = if input.is_of_files() { input.files.iter().map(size).sum() } else { None };
    Progress::new(doing, total)
}

/// Whether `input` is the file that standard output goes to.
#[cfg(unix)]
fn is_output(input: &impl AsFd) -> bool {
    let place = |fd: BorrowedFd| {
        let metadata = File::from(fd.try_clone_to_owned().ok()?).metadata().ok()?;
        metadata.is_file().then(|| (metadata.dev(), metadata.ino()))
    };
    place(input.as_fd()).is_some_and(|input| place(io::stdout().as_fd()) == Some(input))
}

#[cfg(not(unix))]
fn is_output<T>(_: &T) -> bool {
    false
}
