//! Writes to standard output, notes to standard error, and files that appear whole or not at all.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, IsTerminal, StdoutLock, Write};
use std::mem;
use std::path::{Path, PathBuf, absolute};
use std::sync::{Once, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Error, Result, anyhow, ensure};
use bloomline_replace::{Target, end_of_links, is_at, place, remove_leftovers, rename_new};
use serde_json::Value;
use tempfile::TempPath;

use crate::progress::suspended;
use crate::signals;
use crate::streams::{stdin, stdout};

/// Prints a line to standard error. If that fails, there is nowhere to report it.
pub fn note(text: fmt::Arguments) {
    // Control characters in a file's name could break the line or command a terminal, so they are escaped.
    let mut line = String::new();
    for letter in text.to_string().chars() {
        if letter.is_control() { line.extend(letter.escape_default()) } else { line.push(letter) }
    }
    let _ = suspended(|| writeln!(io::stderr(), "bloomline: {line}"));
}

/// [`note`] while a signal ends the process. Waits for a second at most, because the reader of standard error may have
/// stopped.
pub fn last_note(text: fmt::Arguments) {
    let (text, (done, is_done)) = (text.to_string(), mpsc::channel());
    thread::spawn(move || {
        note(format_args!("{text}"));
        let _ = done.send(());
    });
    let _ = is_done.recv_timeout(Duration::from_secs(1));
}

const DIRECTORY_DENIES: &str = "change the mode of its directory with chmod, or ask the directory's owner";

/// The system's error for a file, with a remedy.
pub fn io_error(name: impl fmt::Display, error: &io::Error) -> Error {
    let text = error.to_string();
    let what = text.split(" (os error").next().unwrap_or_default();
    let remedy = match error.kind() {
        ErrorKind::NotFound => "check the path",
        ErrorKind::PermissionDenied if Path::new(&name.to_string()).exists() => {
            "change its mode with chmod, or ask its owner"
        }
        ErrorKind::PermissionDenied => DIRECTORY_DENIES,
        ErrorKind::IsADirectory => "name a file",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "free some space, or write elsewhere"
        }
        ErrorKind::ReadOnlyFilesystem => "write elsewhere",
        ErrorKind::OutOfMemory => "free some memory",
        _ => return anyhow!("{name}: {what}"),
    };
    anyhow!("{name}: {what} ({remedy})")
}

/// Standard output. Errors are returned, where `println!` would panic.
pub struct Printer {
    out: StdoutLock<'static>,
    is_open: bool,
}

impl Printer {
    pub fn new() -> Self {
        Self { out: io::stdout().lock(), is_open: false }
    }

    /// Writes all of `bytes` and flushes them.
    pub fn print(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        let mut write = || {
            if !self.is_open {
                // For a descriptor that cannot be written to, the standard library reports success.
                stdout().and_then(|mut file| file.write(&[])).or_else(if_supported)?;
                self.is_open = true;
            }
            self.out.write_all(bytes.as_ref()).and_then(|()| self.out.flush())
        };
        let written = if io::stdout().is_terminal() { suspended(write) } else { write() };
        written.map_err(|error| write_error("standard output", error))
    }

    /// Prints a JSON object.
    pub fn print_json(&mut self, object: &Value) -> Result<()> {
        self.print(format!("{object:#}\n"))
    }

    /// The length of the output now, if it is a file.
    pub fn length() -> Option<u64> {
        stdout().ok()?.metadata().ok().filter(|file| file.is_file()).map(|file| file.len())
    }

    /// Waits until what was printed to a file is on disk, because some file systems report only then that they are
    /// full.
    pub fn sync() -> Result<()> {
        // A pipe or a device has nothing to sync.
        let sync = |file: File| if file.metadata()?.is_file() { file.sync_all() } else { Ok(()) };
        stdout().and_then(sync).or_else(if_supported).map_err(|error| io_error("standard output", &error))
    }
}

/// Ignores the error of a system that has no such call.
fn if_supported<T: Default>(error: io::Error) -> io::Result<T> {
    if error.kind() == ErrorKind::Unsupported { Ok(T::default()) } else { Err(error) }
}

fn write_error(name: impl fmt::Display, error: io::Error) -> Error {
    if error.kind() == ErrorKind::BrokenPipe { error.into() } else { io_error(name, &error) }
}

/// Whether the reader of an output has exited, as `head` does, which is not an error to report.
pub fn is_pipe_closed(error: &Error) -> bool {
    error.downcast_ref().is_some_and(|error: &io::Error| error.kind() == ErrorKind::BrokenPipe)
}

/// Whether `path` is the file that standard output goes to.
pub fn is_printed_to(path: &Path) -> bool {
    stdout().is_ok_and(|file| is_at(&file, path))
}

/// Whether `path` is the file that standard input comes from.
pub fn is_read_from(path: &Path) -> bool {
    stdin().is_ok_and(|file| is_at(&file, path))
}

/// Whether standard output goes to `file`.
pub fn is_output(file: &File) -> bool {
    place(file.metadata()).is_some_and(|file| stdout().is_ok_and(|out| place(out.metadata()) == Some(file)))
}

/// Whether both paths lead to one regular file, which may have several hard links.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    if cfg!(unix) {
        return place(fs::metadata(one)).is_some_and(|one| place(fs::metadata(other)) == Some(one));
    }
    let canonical = |path: &Path| fs::canonicalize(path).ok().filter(|path| path.is_file());
    canonical(one).is_some_and(|one| canonical(other) == Some(one))
}

/// At most 200 bytes of a name, so that there is room for more. Most systems allow 255.
fn beginning(name: &OsStr) -> String {
    name.to_string_lossy().chars().take(50).collect()
}

/// A file that appears whole and synced to disk, or not at all. Until then, what had its name before stays there.
pub struct NewFile {
    name: PathBuf,
    file: File,
    /// What it replaces. `None` for standard output, pipes and devices, which are written to directly.
    target: Option<Target>,
}

const SUFFIX: &str = ".bloomline.tmp";

/// What the temporary names of a file begin with.
fn prefix(name: &OsStr) -> String {
    format!(".{}", beginning(name))
}

impl NewFile {
    /// Fails now if the file cannot be written, instead of after an hour of reading keys. `-` is standard output.
    pub fn create(name: &Path) -> Result<Self> {
        let failed = |error: io::Error| io_error(name.display(), &error);
        if is_stream(name) {
            let file = open_stream(name).map_err(failed)?;
            ensure!(
                !file.is_terminal(),
                "{}: a terminal cannot show this (redirect it, or name a file)",
                name.display()
            );
            return Ok(Self { name: name.to_owned(), file, target: None });
        }
        let target = Target::of(name).map_err(failed)?;
        target.remove_leftovers(&prefix(&target.name), SUFFIX);
        Self::create_beside(name, target)
    }

    /// As [`create`](Self::create) for one of many files of a folder, whose leftovers are removed together.
    pub fn create_one(name: &Path) -> Result<Self> {
        Self::create_beside(name, Target::of(name).map_err(|error| io_error(name.display(), &error))?)
    }

    /// Removes what killed runs have left of files with these names.
    pub fn remove_leftovers(directory: &Path, names: &HashSet<PathBuf>) {
        let prefixes: HashSet<_> = names.iter().filter_map(|name| Some(prefix(name.file_name()?))).collect();
        remove_leftovers(directory, |name| prefixes.contains(name), SUFFIX);
    }

    fn create_beside(name: &Path, target: Target) -> Result<Self> {
        let failed = |error: io::Error| io_error(name.display(), &error);
        let not_created = |error: io::Error| match error.kind() {
            ErrorKind::PermissionDenied => {
                anyhow!("{}: no file can be created beside it ({DIRECTORY_DENIES})", name.display())
            }
            _ => failed(error),
        };
        signals::watch()?;
        let mut temporary = signals::temporary();
        let made = target.temporary(&prefix(&target.name), SUFFIX);
        let (file, path) = made.map_err(not_created)?.into_parts();
        *temporary = Some(path);
        drop(temporary);
        Ok(Self { name: name.to_owned(), file, target: Some(target) })
    }

    /// Writes what comes next, before [`write`](Self::write).
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| write_error(self.name.display(), error))
    }

    pub fn write(mut self, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
        let written = write(&mut self.file).and_then(|()| self.rename());
        written.map_err(|error| write_error(self.name.display(), error))
    }

    /// Syncs the file, to be renamed later. Until then, a signal does not remove it.
    pub fn complete(mut self) -> Result<CompleteFile> {
        self.file.sync_all().map_err(|error| write_error(self.name.display(), error))?;
        let Some(path) = signals::temporary().take() else { signals::wait_for_end() };
        Ok(CompleteFile { name: mem::take(&mut self.name), path })
    }

    fn rename(&self) -> io::Result<()> {
        let Some(target) = &self.target else { return Ok(()) };
        self.file.sync_all()?;
        // Locked until renamed, so that a signal finds the file under its old name or its new one.
        let mut temporary = signals::temporary();
        let Some(path) = temporary.take() else { signals::wait_for_end() };
        target.replace(path)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        signals::temporary().take();
    }
}

/// A file under a temporary name. It is removed unless it is renamed.
pub struct CompleteFile {
    name: PathBuf,
    path: TempPath,
}

impl CompleteFile {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// One that an earlier run left.
    pub fn left(name: &Path, path: &Path) -> Result<Self> {
        Ok(Self { name: name.to_owned(), path: TempPath::try_from_path(path)? })
    }

    /// Fails, and keeps the file, if there is one by its name.
    pub fn rename(self) -> Result<()> {
        let temporary = self.path.to_path_buf();
        rename_new(self.path, &self.name).map_err(|error| {
            let (name, temporary) = (self.name.display(), temporary.display());
            let error = io_error(&name, &error);
            anyhow!("{error:#}; its lines are in {temporary} (move away what is at {name})")
        })
    }
}

/// Whether the file is written to instead of replaced, because it is standard output, a pipe or a device.
pub fn is_stream(name: &Path) -> bool {
    is_stdout(name) || fs::metadata(name).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

pub fn is_stdout(name: &Path) -> bool {
    ["-", "/dev/stdout"].iter().any(|stdout| name.as_os_str() == *stdout)
}

/// Fails now if JSON cannot be printed, because standard output is closed or is for a filter.
pub fn check_json(json: bool, output: &Path) -> Result<()> {
    ensure!(
        !json || !is_stdout(output),
        "--as-json: standard output is for the filter (write the filter to a file)"
    );
    if json { Printer::new().print("") } else { Ok(()) }
}

fn open_stream(name: &Path) -> io::Result<File> {
    // The descriptor, because the path /dev/stdout cannot always be opened, and a file that is appended to would be
    // overwritten.
    if is_stdout(name) { stdout() } else { File::options().write(true).open(name) }
}

/// Opens a file to lock, or creates it. The error is `AlreadyExists` if another run removes or creates it meanwhile. A
/// file of another user is opened for reading, which is enough to lock it.
fn open_lock(path: &Path) -> io::Result<File> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() && found.len() == 0 => {
            File::open(path).map_err(|error| match error.kind() {
                ErrorKind::NotFound => ErrorKind::AlreadyExists.into(),
                _ => error,
            })
        }
        Ok(_) => Err(io::Error::other("not a lock of bloomline's (remove it, or name another file)")),
        Err(_) => File::options().write(true).create_new(true).open(path),
    }
}

/// Whether both paths lead to one file, which need not exist yet.
pub fn leads_to(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        let target = Target::of(path).ok()?;
        Some((fs::canonicalize(&target.directory).ok()?, target.name))
    };
    place(one).is_some_and(|one| place(other) == Some(one))
}

/// A path, quoted for a shell.
pub fn typed(path: &Path) -> String {
    let name = path.to_string_lossy();
    let name = if name.starts_with('-') { format!("./{name}") } else { name.into_owned() };
    shlex::try_quote(&name).map_or(name.clone(), |quoted| quoted.into_owned())
}

/// What a path leads to now if it or its directory is a symbolic link. Otherwise, and if it is a pipe or a device, the
/// path itself.
pub fn followed(path: &Path) -> Result<PathBuf> {
    if is_stream(path) {
        return Ok(path.to_owned());
    }
    let end = if path.is_symlink() { end_of_links(path) } else { Ok(path.to_owned()) };
    let end = end.map_err(|error| io_error(path.display(), &error))?;
    let (Some(directory), Some(name)) = (end.parent(), end.file_name()) else { return Ok(end) };
    Ok(match (fs::canonicalize(directory), absolute(directory)) {
        (Ok(canonical), Ok(absolute)) if canonical != absolute => canonical.join(name),
        _ => end,
    })
}

/// A lock on a file that is read and then replaced, so that one process at a time does so.
pub struct FileLock(());

impl FileLock {
    /// If another process holds the lock, fails with the remedy, or waits if there is none.
    pub fn of(name: &Path, remedy: Option<&str>) -> Result<Self> {
        let target = Target::of(name).map_err(|error| io_error(name.display(), &error))?;
        // A file beside it, because the file itself is replaced. No other program uses such a name.
        let mut lock = OsString::from(".");
        lock.push(if target.name.len() <= 230 { target.name } else { beginning(&target.name).into() });
        lock.push(".bloomline.lock");
        let path = target.directory.join(lock);
        let failed = |error: io::Error| io_error(path.display(), &error);
        signals::watch()?;
        let mut is_noted = false;
        loop {
            // Before the file is created, so that a signal removes it.
            let mut locked = signals::locked();
            let file = match open_lock(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                opened => opened.map_err(failed)?,
            };
            if let Err(error) = file.try_lock() {
                drop(locked);
                match error {
                    TryLockError::WouldBlock => {
                        let in_use = format!("{}: in use by another run", name.display());
                        if let Some(remedy) = remedy {
                            return Err(anyhow!("{in_use} ({remedy})"));
                        }
                        if !is_noted {
                            note(format_args!("{in_use}, waiting for it to end"));
                        }
                        is_noted = true;
                        file.lock().map_err(failed)?;
                    }
                    // Some network file systems have no locks. Two runs at once may then print a line twice, but they
                    // lose none.
                    TryLockError::Error(error) => {
                        static NOTED: Once = Once::new();
                        let name = name.display();
                        NOTED.call_once(|| {
                            note(format_args!(
                                "{name}: cannot be locked ({error}): let one run use it at a time"
                            ));
                        });
                    }
                }
                locked = signals::locked();
            }
            // The process that held the lock may have removed the file, and a third one may have created it again.
            if is_at(&file, &path) {
                *locked = Some((TempPath::try_from_path(path)?, file));
                return Ok(Self(()));
            }
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        signals::locked().take();
    }
}
