//! Frontiers in files, which a crash leaves whole.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::format;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::vec::Vec;

use super::Frontier;
use crate::encoding::{self, FOOTER_BYTES};
use crate::error::{DecodeError, RestoreError};

/// Symbolic links that are followed, as many as Linux follows.
const MOST_LINKS: usize = 40;

impl<T: AsRef<[u8]>> Frontier<T> {
    /// Writes queue and filter to the file `path`, so that a crawl can go on from there: its standalone bytes.
    ///
    /// Whatever happens meanwhile, a crash, a kill, a loss of power, the file is then the one that was there before or
    /// the new one, whole: the bytes are written beside it, to `path.0.tmp` or the next number that is free, synced, and
    /// renamed. Who saves is killed leaves that file behind, to be deleted; nothing reads it. Of saves at the same time
    /// the last to end stays. A symbolic link stays one, permissions stay as they are.
    ///
    /// What has been popped is not in the file: finish what is being visited, or keep it elsewhere. Takes memory for a
    /// copy of the filter, not of the queue.
    ///
    /// # Errors
    ///
    /// If the file cannot be written; the one that was there is left, unless all that failed was to sync the directory. If the build's `wyhash` crate has changed its
    /// output ([`HashChanged`](crate::HashChanged)).
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("crawl.frontier");
    /// use std::io::ErrorKind;
    /// use bloomline::RestoreError;
    /// use bloomline::variants::Frontier;
    ///
    /// let mut frontier = match Frontier::<String>::restore(&path) {
    ///     Err(RestoreError::Io(error)) if error.kind() == ErrorKind::NotFound => Frontier::with_fpr(1_000_000, 0.001)?,
    ///     restored => restored?,
    /// };
    /// frontier.push("https://example.org/".to_owned());
    /// frontier.save(&path)?;
    /// # assert_eq!(Frontier::<String>::restore(&path)?.len(), 1);
    /// # Ok(()) }
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let filter = self.filter_bytes().map_err(io::Error::other)?;
        let path = linked(path.as_ref());
        let (temporary, file) = create_beside(&path)?;
        let write = || {
            if let Ok(old) = fs::metadata(&path) {
                file.set_permissions(old.permissions())?;
            }
            let mut writer = BufWriter::new(&file);
            self.encode(&filter, |part| writer.write_all(part))?;
            writer.flush()?;
            file.sync_all()?;
            fs::rename(&temporary, &path)
        };
        let written = write();
        if written.is_err() {
            // What went wrong first is what the caller should hear of.
            _ = fs::remove_file(&temporary);
        }
        written?;
        sync_directory(&path)
    }
}

impl<T: AsRef<[u8]> + TryFrom<Vec<u8>>> Frontier<T> {
    /// The frontier that [`save`](Self::save) wrote to `path`, with the queue in its order. Everything is read and checked;
    /// takes memory for the queue and twice the filter.
    ///
    /// # Errors
    ///
    /// [`RestoreError::Io`] if the file cannot be read, and [`RestoreError::Decode`] if it is not a frontier's, or damaged:
    /// see [`from_standalone`](Self::from_standalone).
    pub fn restore(path: impl AsRef<Path>) -> Result<Self, RestoreError> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut footer = [0; FOOTER_BYTES];
        let Some(body_bytes) = length.checked_sub(footer.len() as u64) else {
            return Err(DecodeError::TooShort {
                found: length as usize,
                least: encoding::LEAST_FRONTIER_BYTES,
            }
            .into());
        };
        file.seek(SeekFrom::Start(body_bytes))?;
        file.read_exact(&mut footer)?;
        file.rewind()?;
        let mut file = BufReader::new(file);
        Self::decode(&footer, body_bytes, |into| Ok(file.read_exact(into)?))
    }
}

/// What the path stands for: the file, should it be a link to one, which need not exist.
fn linked(path: &Path) -> PathBuf {
    let mut path = PathBuf::from(path);
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path.pop();
        path.push(target);
    }
    path
}

/// A new file with a name that no other save has, in the directory of `path`: a rename does not cross file systems.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    for number in 0_u64.. {
        let mut name = OsString::from(path);
        name.push(format!(".{number}.tmp"));
        match File::create_new(&name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (name.into(), file)),
        }
    }
    unreachable!("more files than there are numbers")
}

/// A rename is on the disk when the directory is. Other systems than Unix do not open directories, some file systems do
/// not sync them, and who may write in one need not be allowed to open it: the new file is there already, so that is no
/// error.
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let Ok(directory) = File::open(directory.unwrap_or(Path::new("."))) else { return Ok(()) };
    match directory.sync_all() {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        synced => synced,
    }
}
