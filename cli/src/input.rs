//! Keys out of files: lines, ended by NUL, or all of one length; compressed or not.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, ErrorKind, IsTerminal, Read};
use std::num::NonZeroUsize;
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
#[cfg(unix)]
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow, ensure};
use bloomline::hash_key;
use clap::Args;
use flate2::bufread::MultiGzDecoder;
use indicatif::{ProgressBar, ProgressStyle};

use crate::numbers;
use crate::output::{io_error, note};

/// What is read at a time: with what is made of it, it stays in the cache close to the core.
const READ: usize = 256 << 10;

#[derive(Args)]
pub struct Input {
    /// Files of keys, also of gzip or zstd; none, or -, is standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Keys end in a NUL byte, not at the end of a line
    #[arg(short = '0', long)]
    null: bool,
    /// Keys are N bytes each, one after another
    #[arg(long, value_name = "N", conflicts_with = "null")]
    length: Option<NonZeroUsize>,
    /// Do not decompress: keys may begin as gzip or zstd does
    #[arg(long)]
    raw: bool,
    /// A CR before the end of a line is not part of the key
    #[arg(long, conflicts_with_all = ["null", "length"])]
    crlf: bool,
}

/// How keys end.
#[derive(Clone, Copy)]
enum Ends {
    With(u8),
    After(usize),
}

impl Input {
    fn ends(&self) -> Ends {
        match self.length {
            Some(length) => Ends::After(length.get()),
            None => Ends::With(if self.null { 0 } else { b'\n' }),
        }
    }

    /// Whether the keys can be read twice.
    pub fn is_of_files(&self) -> bool {
        let is_file =
            |file: &PathBuf| !is_stdin(file) && fs::metadata(file).is_ok_and(|metadata| metadata.is_file());
        !self.files.is_empty() && self.files.iter().all(is_file)
    }

    /// Whether the file is one of them, by whatever name.
    pub fn has(&self, file: &Path) -> bool {
        self.files.iter().any(|other| !is_stdin(other) && is_same_file(file, other))
    }

    /// Finds out at once whether all files can be read, not after an hour of reading the first.
    pub fn check(&self) -> Result<()> {
        for file in self.files.iter().filter(|file| !is_stdin(file)) {
            // Pipes are not opened: that would wait for their writers.
            let opened = match fs::metadata(file) {
                Ok(metadata) if metadata.is_file() => File::open(file).map(drop),
                Ok(metadata) if metadata.is_dir() => Err(ErrorKind::IsADirectory.into()),
                other => other.map(drop),
            };
            opened.map_err(|error| io_error(file.display(), &error))?;
        }
        Ok(())
    }

    /// Reads the keys, from the first on; `doing` is for the bar.
    pub fn keys(&self, doing: &'static str) -> Keys<'_> {
        Keys {
            input: self,
            to_open: 0,
            open: None,
            buffer: vec![0; READ],
            filled: 0,
            taken: 0,
            ends: Vec::new(),
            n_keys: 0,
            bar: self.bar(doing),
            is_cr_seen: self.crlf || self.length.is_some() || self.null,
        }
    }

    /// On standard error, where that is a terminal that nothing else is written to.
    fn bar(&self, doing: &'static str) -> ProgressBar {
        if !io::stderr().is_terminal() || doing.is_empty() {
            return ProgressBar::hidden();
        }
        let size = |file: &PathBuf| fs::metadata(file).map(|metadata| metadata.len());
        let (bar, template) = match self.files.iter().map(size).sum::<io::Result<u64>>() {
            Ok(total) if self.is_of_files() => {
                (ProgressBar::new(total), "{prefix} {wide_bar} {percent:>3} % {msg}")
            }
            _ => (ProgressBar::no_length(), "{prefix} {bytes} {msg}"),
        };
        let style = ProgressStyle::with_template(template).expect("a valid template");
        bar.with_style(style).with_prefix(doing)
    }
}

/// Keys on their way in.
pub struct Keys<'a> {
    input: &'a Input,
    /// Index of the next file.
    to_open: usize,
    open: Option<(String, Box<dyn Read>)>,
    buffer: Vec<u8>,
    /// Bytes of the buffer that have been read.
    filled: usize,
    /// Bytes of the buffer that were handed out.
    taken: usize,
    ends: Vec<usize>,
    n_keys: u64,
    bar: ProgressBar,
    is_cr_seen: bool,
}

/// Some keys, whole, as they came.
pub struct Chunk<'a> {
    pub bytes: &'a [u8],
    /// Where the next key begins, for each.
    pub ends: &'a [usize],
    /// Bytes at the end of each that are not the key's.
    n_end_bytes: usize,
    crlf: bool,
}

impl Chunk<'_> {
    /// Hashes of the keys, in place of what was there.
    pub fn hash(&self, seed: u64, hashes: &mut Vec<u64>) {
        let mut start = 0;
        hashes.clear();
        hashes.extend(self.ends.iter().map(|&end| {
            let key = &self.bytes[start..end - self.n_end_bytes];
            start = end;
            let key = if self.crlf { key.strip_suffix(b"\r").unwrap_or(key) } else { key };
            hash_key(key, seed)
        }));
    }

    /// Appends the keys for which `is_selected` says so, as they came; how many there were.
    pub fn select(
        &self,
        mut is_selected: impl FnMut(usize) -> bool,
        selected: &mut Vec<u8>,
    ) -> Result<usize> {
        selected
            .try_reserve(self.bytes.len())
            .context("no memory to print keys of so many bytes (free some)")?;
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

impl Keys<'_> {
    /// Keys handed out so far.
    pub fn count(&self) -> u64 {
        self.n_keys
    }

    /// What can be read without waiting, a few thousand keys at most; `None` at the end.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk<'_>>> {
        self.buffer.copy_within(self.taken..self.filled, 0);
        self.filled -= self.taken;
        self.taken = 0;
        while self.taken == 0 {
            let Some((name, reader)) = &mut self.open else {
                if self.open_next()? {
                    continue;
                }
                self.bar.finish_and_clear();
                return Ok(None);
            };
            if self.filled == self.buffer.len() {
                let more = self.buffer.len();
                let grown = self.buffer.try_reserve(more);
                grown.with_context(|| format!("{name}: no memory for a key of more than {more} bytes"))?;
                self.buffer.resize(2 * more, 0);
            }
            let searched = self.filled;
            match reader.read(&mut self.buffer[searched..]) {
                Ok(0) => self.end_file()?,
                Ok(n) => self.filled += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(read_error(name, &error)),
            }
            self.find_ends(searched);
        }
        self.n_keys += self.ends.len() as u64;
        if !self.is_cr_seen && self.buffer[..self.ends[0]].ends_with(b"\r\n") {
            self.is_cr_seen = true;
            note(format_args!("lines end in CR LF, and the CR is part of the keys (--crlf leaves it out)"));
        }
        if !self.bar.is_hidden() {
            let rate = self.n_keys as f64 / self.bar.elapsed().as_secs_f64();
            self.bar.set_message(format!(
                "{} keys, {}/s",
                numbers::short(self.n_keys as f64),
                numbers::short(rate)
            ));
        }
        Ok(Some(Chunk {
            bytes: &self.buffer[..self.taken],
            ends: &self.ends,
            n_end_bytes: usize::from(self.input.length.is_none()),
            crlf: self.input.crlf,
        }))
    }

    /// Where keys end in what was read, of which the first bytes have been searched before.
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
        let files = &self.input.files;
        let is_stdin = match files.get(self.to_open) {
            None if self.to_open > 0 => return Ok(false),
            file => file.is_none_or(|file| is_stdin(file)),
        };
        let name = if is_stdin { "standard input".into() } else { files[self.to_open].display().to_string() };
        let failed = |error: io::Error| io_error(&name, &error);
        let opened = if is_stdin {
            ensure!(!is_output(&io::stdin()), "{name}: {ALSO_OUTPUT}");
            let reader = self.bar.wrap_read(io::stdin().lock());
            if self.input.raw { Ok(Box::new(reader) as Box<dyn Read>) } else { decompressed(reader) }
        } else {
            let file = File::open(&files[self.to_open]).map_err(failed)?;
            ensure!(!is_output(&file), "{name}: {ALSO_OUTPUT}");
            let reader = self.bar.wrap_read(file);
            if self.input.raw { Ok(Box::new(reader) as Box<dyn Read>) } else { decompressed(reader) }
        };
        self.to_open += 1;
        let opened = opened.map_err(failed)?;
        self.open = Some((name, opened));
        Ok(true)
    }

    /// Ends the last key, if it has no end: the next file begins with another key.
    fn end_file(&mut self) -> Result<()> {
        let Some((name, _)) = self.open.take() else { return Ok(()) };
        match self.input.ends() {
            Ends::With(byte) if self.filled > 0 => {
                self.buffer[self.filled] = byte; // there is room, as it was read into
                self.filled += 1;
            }
            Ends::After(length) => ensure!(
                self.filled.is_multiple_of(length),
                "{name}: ends with {} of the {length} bytes of a key (check the file, and --length)",
                self.filled % length
            ),
            Ends::With(_) => (),
        }
        Ok(())
    }
}

/// Whether both are names of one file, and not of a device.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    fs::canonicalize(one)
        .is_ok_and(|one| one.is_file() && fs::canonicalize(other).is_ok_and(|other| other == one))
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

const ALSO_OUTPUT: &str = "is also the output, which would be read in its turn (write to another file)";

/// Whether it is the file that standard output goes to.
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

fn read_error(name: &str, error: &io::Error) -> Error {
    match error.kind() {
        // What decompressors say of damaged files: the system says none of these.
        ErrorKind::UnexpectedEof | ErrorKind::InvalidInput | ErrorKind::InvalidData | ErrorKind::Other => {
            let text = error.to_string();
            let remedy = if text.contains("too much memory") {
                "pipe it through `zstdcat --long=31`"
            } else {
                "fetch or compress it anew, or read it as it is with --raw"
            };
            anyhow!("{name}: cannot be decompressed: {text} ({remedy})")
        }
        _ => io_error(name, error),
    }
}

const GZIP: &[u8] = b"\x1f\x8b\x08";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// Of a frame that holds no data, with which pzstd begins; the first byte is 0x50 to 0x5f (RFC 8878, section 3.1.2).
const ZSTD_SKIPPABLE: &[u8] = b"\x50\x2a\x4d\x18";

/// What the first bytes say it is, whatever its name.
fn decompressed(mut reader: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let mut first = Vec::new();
    // No more than it takes, so as not to wait for a pipe's fourth byte.
    let mut masked = Vec::new();
    let begins = |magic: &[u8], first: &[u8]| magic.len() > first.len() && magic.starts_with(first);
    while begins(GZIP, &first) || begins(ZSTD, &first) || begins(ZSTD_SKIPPABLE, &masked) {
        let mut byte = [0];
        match reader.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => {
                masked.push(if first.is_empty() { byte[0] & 0xf0 } else { byte[0] });
                first.extend(byte);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    let (is_gzip, is_zstd) = (first == GZIP, first == ZSTD || masked == ZSTD_SKIPPABLE);
    let whole = Cursor::new(first).chain(reader);
    Ok(if is_gzip {
        Box::new(MultiGzDecoder::new(BufReader::with_capacity(READ, whole)))
    } else if is_zstd {
        Box::new(zstd::Decoder::new(whole)?)
    } else {
        Box::new(whole)
    })
}
