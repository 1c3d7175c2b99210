//! Files that appear whole or not at all.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io;
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Replaces the file at `path`. A reader finds the old content or the new one, and so does the next start after a crash;
/// who has mapped the old file keeps it. If the process is killed, a file with a name in `.tmp` may stay beside it.
pub fn save(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    // Where a symbolic link leads, so that the link stays.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let existing = fs::metadata(&target).ok();
    if existing.as_ref().is_some_and(|existing| !existing.is_file()) {
        return Err(io::Error::other(format!("{} is not a regular file", target.display())));
    }
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut options = tempfile::Builder::new();
    options.prefix(".bloomline-").suffix(".tmp");
    #[cfg(unix)]
    // Less the umask, as for any new file.
    options.permissions(fs::Permissions::from_mode(0o666));
    let mut file = options.tempfile_in(directory)?;
    write(file.as_file_mut())?;
    if let Some(existing) = existing {
        file.as_file().set_permissions(existing.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(&target)?;
    // The new name too, on systems that can sync a directory.
    #[cfg(unix)]
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
    Ok(())
}
