//! `bloomline find`
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail, ensure};
use bloomline::StandaloneKind;
use bloomline::bank::{IndexView, SlotBitmap};
use clap::Args;

use crate::filter_file::{Content, FilterFile};
use crate::input::Input;
use crate::keys::integer;
use crate::output::{Printer, is_printed_to};
use crate::words::words;

/// Print the files of an index that possibly have all keys
#[derive(Args)]
#[command(after_long_help = "\
Prints every file that has all KEYs, and a few that do not. For a KEY that no
file has, these are on average at most the --fpr of `bloomline index`. So let
grep or zgrep search the files that are printed. Only the index is read, so what
was written to files since is missed. Names are printed as `bloomline index` was
given them.

A KEY is what `bloomline index` took as a key, so with --words, a whole word:
example.com is not found in www.example.com, but a KEY of several words asks for
all of them. Put -- before KEYs that begin with -. Exit status: 0 if a file was
printed, 1 if none was, 2 on error.

Examples:
  bloomline find logs.index 10.20.30.40 | xargs zgrep -F 10.20.30.40
  bloomline find --any -0 logs.index u1234 u5678 |
    xargs -0 zgrep -HF -e u1234 -e u5678
  bloomline find lines.index 'a whole line'")]
pub struct Arguments {
    /// Files that have one of the keys, not all
    #[arg(long)]
    any: bool,
    /// End names with NUL instead of a newline, for xargs -0
    #[arg(short = '0', long)]
    null: bool,
    /// Index that `bloomline index` made; standard input if -
    #[arg(value_name = "INDEX")]
    index: PathBuf,
    /// Words, lines or fields to look for
    #[arg(value_name = "KEY", required = true, allow_negative_numbers = true)]
    keys: Vec<OsString>,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let file = FilterFile::open(&arguments.index)?;
    let name = &file.name;
    ensure!(!is_printed_to(&arguments.index), "{name}: is also the output (write to another file)");
    ensure!(
        StandaloneKind::of(file.bytes()).is_some(),
        "{name}: not a bloomline file, or cut short (make an index with `bloomline index`)"
    );
    let index = match file.content()? {
        Content::Index(index) => index,
        other => bail!("{name}: a {}, not an index (make one with `bloomline index`)", other.kind().1),
    };
    let rule = index.footer().rule();
    let input = Input::of_recorded(rule).ok_or_else(|| {
        anyhow!("{name}: its keys were taken by a rule of another program: {rule:?} (ask that program)")
    })?;
    let of_keys =
        arguments.keys.iter().map(|key| find(&file, &index, &input, key)).collect::<Result<Vec<_>>>()?;
    let files =
        of_keys.into_iter().reduce(|one, other| if arguments.any { &one | &other } else { &one & &other });
    let (files, end) = (files.unwrap_or_default(), if arguments.null { b'\0' } else { b'\n' });
    let mut names = Vec::new();
    for file in files.iter().filter_map(|&file| index.footer().name(file)) {
        ensure!(
            !file.contains(&end),
            "{name}: the name {:?} has a newline (give -0, and also to what reads the names)",
            String::from_utf8_lossy(file)
        );
        names.extend_from_slice(file);
        names.push(end);
    }
    Printer::new().print(names)?;
    Ok(if files.is_empty() { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// The files that possibly have the key, or all of its words.
fn find(file: &FilterFile, index: &IndexView<'_>, input: &Input, key: &OsStr) -> Result<BTreeSet<usize>> {
    let (shown, bytes) = (key.to_string_lossy(), key.as_encoded_bytes());
    if let Some(length) = input.rule.length.filter(|length| length.get() != bytes.len()) {
        bail!("{shown:?}: has {} bytes, and keys have {length} (give a whole one)", bytes.len());
    }
    let rule = &input.rule;
    if !input.words && !rule.csv && rule.length.is_none() && bytes.contains(&rule.end()) {
        bail!("{shown:?}: has an end of line, and no key has one (give one line)");
    }
    let find = |key: &[u8]| {
        let mut found = SlotBitmap::new();
        let number = if input.rule.integers { Some(integer(key)) } else { None };
        match number {
            Some(Some(number)) => index.find(number, &mut found),
            Some(None) => bail!("{shown:?}: is not an integer of up to 64 bits, as keys are (give one)"),
            None => index.find(key, &mut found),
        }
        .map_err(|error| file.error(error))?;
        Ok(found.iter().collect())
    };
    let keys = if input.words { words(bytes).collect() } else { vec![bytes] };
    let of_keys = keys.into_iter().map(find).collect::<Result<Vec<BTreeSet<_>>>>()?;
    let files = of_keys.into_iter().reduce(|one, other| &one & &other);
    files.ok_or_else(|| anyhow!("{shown:?}: has no word (see `bloomline help index` for what a word is)"))
}
