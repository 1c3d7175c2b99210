//! The arguments that say where keys are and how they end.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use crate::output::io_error;

#[derive(Args, Clone)]
pub struct Input {
    /// Files of keys, plain, gzip or zstd; standard input if none or -
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Keys end with a NUL byte instead of a newline
    #[arg(short = '0', long)]
    pub null: bool,
    /// Keys are N bytes each, with nothing between them
    #[arg(long, value_name = "N", conflicts_with = "null")]
    pub length: Option<NonZeroUsize>,
    /// Treat input as uncompressed, even if it begins like gzip or zstd
    #[arg(long)]
    pub raw: bool,
    /// Lines may end with CR LF; the CR is not part of the key
    #[arg(long, conflicts_with_all = ["null", "length"])]
    pub crlf: bool,
    /// Keys are decimal integers, as in a filter of an integer column
    #[arg(long, conflicts_with = "length")]
    pub integers: bool,
    /// The key is the N-th field of the line, counted from 1
    #[arg(long, value_name = "N", conflicts_with = "length", value_parser = column)]
    pub column: Option<NonZeroUsize>,
    /// What separates fields, one byte; a tab by default
    #[arg(long, value_name = "D", requires = "column", value_parser = delimiter)]
    #[arg(default_value = "\t", hide_default_value = true)]
    pub delimiter: u8,
}

fn column(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "give a field's number, counted from 1".into())
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        b"\\t" => Ok(b'\t'),
        _ => Err("give one byte, such as , or ; (a tab is the default)".into()),
    }
}

/// How keys end.
#[derive(Clone, Copy)]
pub enum Ends {
    With(u8),
    After(usize),
}

impl Input {
    pub fn ends(&self) -> Ends {
        match self.length {
            Some(length) => Ends::After(length.get()),
            None => Ends::With(if self.null { 0 } else { b'\n' }),
        }
    }

    /// The name of the file with this index, for messages.
    pub fn name(&self, file: usize) -> String {
        let file = self.files.get(file).filter(|file| !is_stdin(file));
        file.map_or("standard input".into(), |file| file.display().to_string())
    }

    /// Whether the keys can be read twice.
    pub fn is_of_files(&self) -> bool {
        let is_file =
            |file: &PathBuf| !is_stdin(file) && fs::metadata(file).is_ok_and(|metadata| metadata.is_file());
        !self.files.is_empty() && self.files.iter().all(is_file)
    }

    /// Whether `file` is one of them, under any name.
    pub fn has(&self, file: &Path) -> bool {
        self.files.iter().any(|other| !is_stdin(other) && is_same_file(file, other))
    }

    /// Finds out now whether all files can be read, not after an hour of reading the first.
    pub fn check(&self) -> Result<()> {
        for file in self.files.iter().filter(|file| !is_stdin(file)) {
            // Opening a pipe would wait for its writer.
            let opened = match fs::metadata(file) {
                Ok(metadata) if metadata.is_file() => File::open(file).map(drop),
                Ok(metadata) if metadata.is_dir() => Err(ErrorKind::IsADirectory.into()),
                other => other.map(drop),
            };
            opened.map_err(|error| io_error(file.display(), &error))?;
        }
        Ok(())
    }
}

/// Whether both paths lead to one regular file.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    fs::canonicalize(one)
        .is_ok_and(|one| one.is_file() && fs::canonicalize(other).is_ok_and(|other| other == one))
}

pub fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}
