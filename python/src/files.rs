//! Files that appear whole or not at all. Used by the C interface as well.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, ErrorKind};
#[cfg(unix)]
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

/// Replaces the file at `path`. A reader finds the old content or the new one, and so does the next start after a crash;
/// who has mapped the old file keeps it. If the process is killed, a file with a name in `.tmp` may stay beside it.
pub fn save(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    // The end of symbolic links, which stay.
    let (target, existing) = match fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => (end_of_links(path), None),
        found => {
            let target = found?;
            let existing = fs::metadata(&target)?;
            if !existing.is_file() && !existing.is_dir() {
                let message = format!("{} is not a regular file", path.display());
                return Err(io::Error::new(ErrorKind::InvalidInput, message));
            }
            // A file that may not be written is not replaced either.
            File::options().write(true).open(&target)?;
            (target, Some(existing))
        }
    };
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut options = File::options();
    // Less the umask. Bits for the group and others wait until the file has its owner.
    #[cfg(unix)]
    options.mode(existing.as_ref().map_or(0o666, |existing| existing.mode() & 0o700));
    let create = |path: &Path| options.write(true).create_new(true).open(path);
    let mut file =
        tempfile::Builder::new().prefix(".bloomline-").suffix(".tmp").make_in(directory, create)?;
    write(file.as_file_mut())?;
    if let Some(existing) = existing {
        // The owner too, or at least the group, where this process may.
        #[cfg(unix)]
        let _ = fchown(file.as_file(), Some(existing.uid()), Some(existing.gid()))
            .or_else(|_| fchown(file.as_file(), None, Some(existing.gid())));
        file.as_file().set_permissions(existing.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(&target)?;
    // The new name too, on systems that can sync a directory.
    #[cfg(unix)]
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
    Ok(())
}

/// Where symbolic links lead, if no file is there yet.
fn end_of_links(path: &Path) -> PathBuf {
    let mut end = path.to_owned();
    while let Ok(next) = fs::read_link(&end) {
        end = end.parent().unwrap_or(Path::new("")).join(next);
    }
    end
}
