//! Replaces files: whatever ends the process, a file has its old content or the new content, whole and synced to disk.
//!
//! Who has mapped the old file keeps it. Symbolic links stay, and so do the mode and, if the process may give files away,
//! the owner.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind};
#[cfg(unix)]
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf, absolute, is_separator};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tempfile::{NamedTempFile, TempPath};

/// Replaces the file at `path`, or creates it. A killed process may leave a hidden file beside it, with a name in
/// `.tmp`, which the next call in this directory removes.
pub fn save(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    /// Calls that do not list the directory. Some 200 entries are listed per call, so that whoever saves thousands of
    /// files in one directory does not list it thousands of times.
    static UNLISTED: AtomicUsize = AtomicUsize::new(0);
    let target = Target::of(path)?;
    let (prefix, suffix) = (".bloomline-", ".tmp");
    if UNLISTED.fetch_update(Relaxed, Relaxed, |calls| calls.checked_sub(1)).is_err() {
        UNLISTED.store(target.remove_leftovers(prefix, suffix) / 200, Relaxed);
    }
    let (mut file, temporary) = target.temporary(prefix, suffix)?.into_parts();
    write(&mut file)?;
    file.sync_all()?;
    target.replace(temporary)
}

/// A file to replace or to create, for callers that do more than [`save`] between its steps.
pub struct Target {
    /// The directory that has the file.
    pub directory: PathBuf,
    /// The file's name there.
    pub name: OsString,
    existing: Option<Metadata>,
}

impl Target {
    /// Fails if the file could not be written in place either.
    pub fn of(path: &Path) -> io::Result<Self> {
        let path = end_of_links(path)?;
        let existing = match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound && names_a_file(&path) => None,
            // Opening a pipe could wait forever.
            Ok(found) if !found.is_file() && !found.is_dir() => {
                return Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file"));
            }
            found => {
                File::options().write(true).open(&path)?;
                Some(found?)
            }
        };
        let name = path.file_name().ok_or(ErrorKind::IsADirectory)?.to_owned();
        let directory =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Self { directory: directory.to_owned(), name, existing })
    }

    /// Creates a file to write in the same directory, with the mode and the owner of the file that it will replace. Its
    /// name has six random letters between the prefix and the suffix. It stays locked while it is open.
    // Not tempfile's own random names: they need `std::thread::current`, which allocates a block that lives as long as
    // the process, and valgrind calls it possibly lost in programs that use the C library.
    pub fn temporary(&self, prefix: &str, suffix: &str) -> io::Result<NamedTempFile> {
        let mut options = File::options();
        options.write(true).create_new(true);
        // Less the umask. Bits for the group and others wait until the file has its owner and group.
        #[cfg(unix)]
        options.mode(self.existing.as_ref().map_or(0o666, |existing| existing.mode() & 0o700));
        let (file, path) = loop {
            let random = RandomState::new().build_hasher().finish() & 0xff_ffff;
            let path = absolute(self.directory.join(format!("{prefix}{random:06x}{suffix}")))?;
            match options.open(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                opened => {
                    let file = opened?;
                    // Another process may have removed it before it was locked. Without locks, none removes any.
                    let _ = file.lock();
                    if path.exists() {
                        break (file, path);
                    }
                }
            }
        };
        let file = NamedTempFile::from_parts(file, TempPath::try_from_path(path)?);
        if let Some(existing) = &self.existing {
            // At least the group, where the owner cannot be kept.
            #[cfg(unix)]
            let _ = fchown(file.as_file(), Some(existing.uid()), Some(existing.gid()))
                .or_else(|_| fchown(file.as_file(), None, Some(existing.gid())));
            // Where a mount has one mode for all files, as with FAT, it may be refused.
            let _ = file.as_file().set_permissions(existing.permissions());
        }
        Ok(file)
    }

    /// Removes files from [`temporary`](Self::temporary) that nobody has locked, because their processes were killed.
    /// Returns the number of entries of the directory.
    pub fn remove_leftovers(&self, prefix: &str, suffix: &str) -> usize {
        remove_leftovers(&self.directory, |other| other == prefix, suffix)
    }

    /// Renames a file from [`temporary`](Self::temporary), which the caller has synced, into place.
    pub fn replace(&self, temporary: TempPath) -> io::Result<()> {
        temporary.persist(self.directory.join(&self.name))?;
        sync(&self.directory);
        Ok(())
    }
}

/// Renames a temporary file if no file has the new name. Otherwise it stays.
pub fn rename_new(temporary: TempPath, name: &Path) -> io::Result<()> {
    temporary.persist_noclobber(name).map_err(|failed| {
        let _ = failed.path.keep();
        failed.error
    })?;
    name.parent().into_iter().for_each(sync);
    Ok(())
}

/// A new name too, on systems that can sync a directory.
fn sync(directory: &Path) {
    #[cfg(unix)]
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
    #[cfg(not(unix))]
    let _ = directory;
}

/// [`Target::remove_leftovers`] of all files whose prefix is one.
pub fn remove_leftovers(directory: &Path, is_prefix: impl Fn(&str) -> bool, suffix: &str) -> usize {
    const LETTERS: usize = 6;
    let is_one = |name: &str| {
        let name = name
            .strip_suffix(suffix)
            .and_then(|name| name.split_at_checked(name.len().checked_sub(LETTERS)?));
        name.is_some_and(|(prefix, letters)| {
            is_prefix(prefix) && letters.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
        })
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let listed = entries.inspect(|entry| {
        let is_leftover = entry.file_name().to_str().is_some_and(is_one)
            && entry.file_type().is_ok_and(|kind| kind.is_file());
        if let Some(file) = is_leftover.then(|| File::open(entry.path()).ok()).flatten()
            && file.try_lock().is_ok()
            && is_at(&file, &entry.path())
        {
            let _ = fs::remove_file(entry.path());
        }
    });
    listed.count()
}

/// Where a regular file is, whatever its name.
#[cfg(unix)]
pub fn place(metadata: io::Result<Metadata>) -> Option<(u64, u64)> {
    metadata.ok().filter(Metadata::is_file).map(|file| (file.dev(), file.ino()))
}

/// Other systems do not say, so all files count as one.
#[cfg(not(unix))]
pub fn place(metadata: io::Result<Metadata>) -> Option<()> {
    metadata.ok().filter(Metadata::is_file).map(drop)
}

/// Whether `file` is what the path leads to now: another process may have removed or replaced it.
pub fn is_at(file: &File, path: &Path) -> bool {
    place(file.metadata()).is_some_and(|one| place(fs::metadata(path)) == Some(one))
}

/// Whether a file that is missing can be created by this name, which "", "missing/" and "missing/.." do not allow.
fn names_a_file(path: &Path) -> bool {
    path.file_name().is_some() && !path.to_string_lossy().ends_with(is_separator)
}

/// Where a path leads, whether or not a file is there.
pub fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let mut end = path.to_owned();
            while let Ok(next) = fs::read_link(&end) {
                end = end.parent().unwrap_or(Path::new("")).join(next);
            }
            Ok(end)
        }
        found => found,
    }
}
