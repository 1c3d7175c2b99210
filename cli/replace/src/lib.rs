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

use tempfile::{NamedTempFile, TempPath};

/// Replaces the file at `path`, or creates it. A killed process may leave a hidden file, with a name in `.tmp`, beside it.
pub fn save(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let target = Target::of(path)?;
    let (mut file, temporary) = target.temporary(".bloomline-", ".tmp")?.into_parts();
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
    /// name has six random letters between the prefix and the suffix.
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
                opened => break (opened?, path),
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

    /// Renames a file from [`temporary`](Self::temporary), which the caller has synced, into place.
    pub fn replace(&self, temporary: TempPath) -> io::Result<()> {
        temporary.persist(self.directory.join(&self.name))?;
        // The new name too, on systems that can sync a directory.
        #[cfg(unix)]
        let _ = File::open(&self.directory).and_then(|directory| directory.sync_all());
        Ok(())
    }
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
