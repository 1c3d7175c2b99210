//! Output: standard output, notes on standard error, and files that appear whole or not at all.
#![forbid(unsafe_code)]

use std::fmt;
#[cfg(unix)]
use std::fs::Permissions;
use std::fs::{self, File};
use std::io::{self, ErrorKind, IsTerminal, StdoutLock, Write};
use std::iter;
#[cfg(unix)]
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use anyhow::{Error, Result, anyhow, ensure};

use crate::progress::suspended;
use crate::signals;

/// Prints a line to standard error. If that fails, there is nowhere to report it.
pub fn note(text: fmt::Arguments) {
    let _ = suspended(|| writeln!(io::stderr(), "bloomline: {text}"));
}

/// The system's error for a file, with a remedy.
pub fn io_error(name: impl fmt::Display, error: &io::Error) -> Error {
    let text = error.to_string();
    let what = text.split(" (os error").next().unwrap_or_default();
    let remedy = match error.kind() {
        ErrorKind::NotFound => "check the path",
        ErrorKind::PermissionDenied => "change its mode with chmod, or ask its owner",
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

/// The reader of standard output has exited, as `head` does: not an error to report.
#[derive(Debug)]
pub struct PipeClosed;

impl fmt::Display for PipeClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output: the pipe was closed")
    }
}

impl std::error::Error for PipeClosed {}

/// Standard output, with errors instead of panics.
pub struct Printer(StdoutLock<'static>);

impl Printer {
    pub fn new() -> Self {
        Self(io::stdout().lock())
    }

    /// Writes all of `bytes` and flushes them.
    pub fn print(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        let mut write = || self.0.write_all(bytes.as_ref()).and_then(|()| self.0.flush());
        let written = if io::stdout().is_terminal() { suspended(write) } else { write() };
        written.map_err(|error| {
            if error.kind() == ErrorKind::BrokenPipe {
                Error::new(PipeClosed)
            } else {
                io_error("standard output", &error)
            }
        })
    }
}

/// The end of a chain of symbolic links, where no file exists yet.
fn end_of_links(name: &Path) -> PathBuf {
    let mut end = name.to_owned();
    while let Ok(next) = fs::read_link(&end) {
        end = end.parent().unwrap_or(Path::new("")).join(next);
    }
    end
}

/// A file that appears whole, synced to disk, or not at all: until then its name keeps what it had.
///
/// Built on `tempfile`: `atomic-write-file` 0.3 fails for names of more than 247 bytes, and only at the end.
pub struct NewFile {
    name: PathBuf,
    file: File,
    /// Where to rename it to: the end of symbolic links, which stay. A device has none.
    target: Option<PathBuf>,
}

impl NewFile {
    /// Finds out now whether the file can be written, not after an hour of reading keys.
    pub fn create(name: &Path) -> Result<Self> {
        ensure!(
            name.as_os_str() != "-",
            "-: cannot write this to standard output (name a file, or ./- for a file called -)"
        );
        let failed = |error: io::Error| io_error(name.display(), &error);
        let target = match fs::canonicalize(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => end_of_links(name),
            found => found.map_err(failed)?,
        };
        let (name, existing) = (name.to_owned(), fs::metadata(&target).ok());
        if let Some(existing) = &existing {
            // A file without write permission is not replaced either.
            let file = File::options().write(true).open(&target).map_err(failed)?;
            if !existing.is_file() {
                // Devices such as /dev/null are written to.
                return Ok(Self { name, file, target: None });
            }
        }
        let last = target.file_name().ok_or_else(|| failed(ErrorKind::IsADirectory.into()))?;
        let directory =
            target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Cut, since six letters and the suffix must fit into a name too: 255 bytes on most systems.
        let prefix: String = iter::once('.').chain(last.to_string_lossy().chars().take(50)).collect();
        let mut options = tempfile::Builder::new();
        options.prefix(&prefix).suffix(".tmp");
        #[cfg(unix)]
        // Less the umask. Bits for the group and others wait until the file has its owner and group.
        options
            .permissions(Permissions::from_mode(existing.as_ref().map_or(0o666, |old| old.mode() & 0o700)));
        signals::watch()?;
        let file = {
            let mut temporary = signals::temporary();
            let (file, path) = options.tempfile_in(directory).map_err(failed)?.into_parts();
            *temporary = Some(path);
            file
        };
        if let Some(existing) = existing {
            // At least the group, where the owner cannot be kept.
            #[cfg(unix)]
            let _ = fchown(&file, Some(existing.uid()), Some(existing.gid()))
                .or_else(|_| fchown(&file, None, Some(existing.gid())));
            let _ = file.set_permissions(existing.permissions());
        }
        Ok(Self { name, file, target: Some(directory.join(last)) })
    }

    /// Writes the content, syncs it and renames the file into place.
    pub fn write(mut self, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
        let written = write(&mut self.file).and_then(|()| self.rename());
        written.map_err(|error| io_error(self.name.display(), &error))
    }

    fn rename(&self) -> io::Result<()> {
        let Some(target) = &self.target else { return Ok(()) };
        self.file.sync_all()?;
        // Locked until renamed, so that a signal finds the file under one name or the other.
        let mut temporary = signals::temporary();
        let Some(path) = temporary.take() else { signals::wait_for_end() };
        path.persist(target).map_err(|failed| failed.error)?;
        // The new name too, on file systems that can sync a directory.
        #[cfg(unix)]
        if let Some(directory) = target.parent().and_then(|parent| File::open(parent).ok()) {
            let _ = directory.sync_all();
        }
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        signals::temporary().take();
    }
}
