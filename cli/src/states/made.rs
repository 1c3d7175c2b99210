//! Which files of folders were made on a state. A list beside the state, with a line of JSON for each.
//!
//! A file counts as made if the state has its keys. So files are written under temporary names, then listed with the
//! number of keys that the state will have, then the state is saved, and only then are they renamed. Whatever the moment
//! of a stop, the state's number of keys tells the next run which of them to rename and which to make again.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf, absolute};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use crate::files::nanoseconds;
use crate::output::{CompleteFile, NewFile, io_error};

pub struct Made {
    /// `None` for a run without a state, which makes all files or none.
    list: Option<PathBuf>,
    /// By output.
    entries: BTreeMap<PathBuf, Entry>,
}

/// A file that was made of another.
#[derive(Clone, PartialEq)]
pub struct Entry {
    pub output: PathBuf,
    /// Its name until the state has been saved.
    temporary: Option<PathBuf>,
    input: PathBuf,
    /// In bytes, and nanoseconds since 1970.
    pub size: u64,
    modified: Option<i64>,
    /// Keys of the state that has its own.
    keys: u64,
}

impl Entry {
    /// The entry of a file to be made of another, which must be a regular one.
    pub fn new(input: &Path, output: &Path) -> Result<Self> {
        let failed = |error| io_error(input.display(), &error);
        let found = fs::metadata(input).map_err(failed)?;
        ensure!(found.is_file(), "{}: not a regular file (redirect the output instead)", input.display());
        let modified = found.modified().ok().and_then(nanoseconds);
        let [input, output] = [absolute(input).map_err(failed)?, absolute(output).map_err(failed)?];
        ensure!(
            input.to_str().and(output.to_str()).is_some(),
            "{}: its path is not UTF-8, as it must be to be listed (rename it)",
            input.display()
        );
        Ok(Self { output, temporary: None, input, size: found.len(), modified, keys: 0 })
    }

    fn to_json(&self) -> Value {
        json!({
            "output": self.output,
            "temporary": self.temporary,
            "input": self.input,
            "size": self.size,
            "modified": self.modified,
            "keys": self.keys,
        })
    }

    fn from_json(line: &str) -> Option<Self> {
        let object: Value = serde_json::from_str(line).ok()?;
        let path = |name: &str| object[name].as_str().map(PathBuf::from);
        Some(Self {
            output: path("output")?,
            temporary: path("temporary"),
            input: path("input")?,
            size: object["size"].as_u64()?,
            modified: object["modified"].as_i64(),
            keys: object["keys"].as_u64()?,
        })
    }
}

impl Made {
    /// The name of the list of a state.
    pub fn list_of(state: &Path) -> PathBuf {
        let mut name = state.as_os_str().to_owned();
        name.push(".outputs");
        name.into()
    }

    /// Reads the list of a state that has so many keys, and ends the renaming of files. Before the state gets other keys,
    /// because later their number would not tell.
    pub fn open(state: Option<&Path>, keys: u64) -> Result<Self> {
        let Some(list) = state.map(Self::list_of) else {
            return Ok(Self { list: None, entries: BTreeMap::new() });
        };
        let failed = |error| io_error(list.display(), &error);
        let text = match fs::read_to_string(&list) {
            // A state's name can be the longest that the system allows, and then no list can be there.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidFilename) => {
                String::new()
            }
            text => text.map_err(failed)?,
        };
        let entry = |(i, line)| {
            let wrong = || {
                anyhow!(
                    "{}: line {} is damaged (restore a copy, or remove it and all that was made)",
                    list.display(),
                    i + 1
                )
            };
            let entry = Entry::from_json(line).with_context(wrong)?;
            Ok((entry.output.clone(), entry))
        };
        let mut entries = text.lines().enumerate().map(entry).collect::<Result<BTreeMap<_, _>>>()?;
        let mut has_changed = false;
        for Entry { output, temporary, keys: with, .. } in entries.values_mut() {
            // If neither is there, their disk may be missing now.
            let Some(left) = temporary.take_if(|temporary| temporary.exists() || output.exists()) else {
                continue;
            };
            has_changed = true;
            if left.exists() {
                let left = CompleteFile::left(output, &left)?;
                // Otherwise it is removed.
                if *with <= keys {
                    left.rename()?;
                }
            }
        }
        // What the state does not have and is not there can be made again.
        entries.retain(|_, entry| entry.output.exists() || entry.keys <= keys);
        let made = Self { list: Some(list), entries };
        if has_changed {
            made.write()?;
        }
        Ok(made)
    }

    pub fn is_of_state(&self) -> bool {
        self.list.is_some()
    }

    /// Whether a file was made before. Fails if what is there is not that file, or is gone.
    pub fn has(&self, asked: &Entry, keys: u64) -> Result<bool> {
        let (name, exists) = (asked.output.display(), asked.output.exists());
        let Some(entry) = self.entries.get(&asked.output) else {
            ensure!(
                !exists,
                "{name}: is there, and no --state tells that it was made (remove it, or name another folder)"
            );
            return Ok(false);
        };
        ensure!(
            entry.keys <= keys,
            "{name}: is newer than this copy of the state (remove it to make it again)"
        );
        let Entry { temporary, keys, .. } = entry.clone();
        let is_same = Entry { temporary, keys, ..asked.clone() } == *entry;
        let input = entry.input.display();
        ensure!(
            is_same,
            "{name}: was made of {input} as it was then (name another folder, or the input as before)"
        );
        ensure!(
            exists,
            "{name}: is gone, but its lines count as printed (restore it, or begin another state and folder)"
        );
        Ok(true)
    }

    /// Lists complete files, saves the state, which then has so many keys, and renames the files.
    pub fn add(
        &mut self,
        files: Vec<(Entry, CompleteFile)>,
        keys: u64,
        save: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let outputs: Vec<_> = files.iter().map(|(entry, _)| entry.output.clone()).collect();
        self.entries.extend(files.iter().map(|(entry, file)| {
            let temporary = Some(file.path().to_owned());
            (entry.output.clone(), Entry { temporary, keys, ..entry.clone() })
        }));
        self.write()?;
        save()?;
        // All of them, also if one fails, because otherwise they would be removed.
        let renamed: Vec<_> = files.into_iter().map(|(_, file)| file.rename()).collect();
        renamed.into_iter().collect::<Result<()>>()?;
        for output in outputs {
            self.entries.entry(output).and_modify(|entry| entry.temporary = None);
        }
        self.write()
    }

    fn write(&self) -> Result<()> {
        let Some(list) = &self.list else { return Ok(()) };
        let lines: String = self.entries.values().map(|entry| format!("{}\n", entry.to_json())).collect();
        NewFile::create(list)?.write(|file| file.write_all(lines.as_bytes()))
    }
}
