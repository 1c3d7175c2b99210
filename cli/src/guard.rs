//! Writes filter files, but overwrites no state of dedup by accident.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use bloomline::StandaloneKind;
use clap::Args;

use crate::output::{FileLock, NewFile, followed, io_error, is_same_file, is_stream};
use crate::state::State;

#[derive(Args)]
pub struct Output {
    /// Filter file to write
    #[arg(id = "output", short, long, value_name = "FILE")]
    pub path: PathBuf,
    /// Replace FILE even if it is a state of dedup
    #[arg(long)]
    replace_state: bool,
    /// Print neither progress, nor notes, nor summary
    #[arg(short, long)]
    pub quiet: bool,
}

impl Output {
    /// Fails now if the file must not be written. `read` are the files that it is made of, which it may replace.
    pub fn create<'a>(&self, read: impl IntoIterator<Item = &'a PathBuf>) -> Result<GuardedFile> {
        // Resolved once, because a link that is changed meanwhile would lead to a file that is not locked.
        let path = followed(&self.path)?;
        let file = NewFile::create(&path)?;
        let is_read = read.into_iter().any(|other| is_same_file(&path, other));
        let mut guarded = GuardedFile { file, path, replaces_all: self.replace_state || is_read, lock: None };
        guarded.lock(Some("wait for it to end, or name another file").filter(|_| !guarded.replaces_all))?;
        if !is_read {
            // Unlocked until it is written, because others may use the file in the hours that this can last.
            guarded.lock = None;
        }
        Ok(guarded)
    }
}

/// A new file that replaces no state, unless that was asked for.
pub struct GuardedFile {
    file: NewFile,
    path: PathBuf,
    /// Whether what is there now may be replaced, whatever it is.
    replaces_all: bool,
    lock: Option<FileLock>,
}

impl GuardedFile {
    pub fn write(mut self, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
        if self.lock.is_none() {
            self.lock(None)?;
        }
        self.file.write(write)
    }

    /// Keeps runs of dedup off the file. Fails if it is a state that must stay.
    fn lock(&mut self, if_in_use: Option<&str>) -> Result<()> {
        if is_stream(&self.path) {
            return Ok(());
        }
        self.lock = Some(FileLock::of(&self.path, if_in_use)?);
        if self.replaces_all {
            return Ok(());
        }
        refuse_state(&self.path, "name another file, or give --replace-state")
    }
}

/// Fails, with a remedy, if the file is a state.
pub fn refuse_state(path: &Path, remedy: &str) -> Result<()> {
    let end = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened.and_then(|mut file| end_of(&mut file)),
    };
    let end = end.map_err(|error| io_error(path.display(), &error))?;
    ensure!(!State::is_state(&end), "{}: a state of dedup, which would be lost ({remedy})", path.display());
    Ok(())
}

/// Fails if a file that is to be read as lines is a filter or a state.
pub fn refuse_as_lines(name: &str, file: &mut File) -> Result<()> {
    let end = end_of(file).map_err(|error| io_error(name, &error))?;
    let kind = match StandaloneKind::of(&end) {
        _ if State::is_state(&end) => "a state of dedup",
        Some(_) => "a filter",
        None => return Ok(()),
    };
    bail!("{name}: {kind}, not lines (name a file of lines, or give --raw to read it as lines)")
}

/// Whether a file can be read and is a filter or a state.
pub fn is_filter(path: &Path) -> bool {
    let end = File::open(path).and_then(|mut file| end_of(&mut file));
    end.is_ok_and(|end| State::is_state(&end) || StandaloneKind::of(&end).is_some())
}

/// The last bytes of a file. It is read from its start afterwards.
fn end_of(file: &mut File) -> io::Result<Vec<u8>> {
    const LEN: u64 = 64;
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(LEN)))?;
    file.take(LEN).read_to_end(&mut end)?;
    file.rewind()?;
    Ok(end)
}
