//! The files of an index. Lists folders, and tells whether files have changed since they were indexed.
#![forbid(unsafe_code)]

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bloomline::bank::{FileVersion, IndexView};
use walkdir::{DirEntry, WalkDir};

use crate::guard::is_filter;
use crate::input::path_of;
use crate::keys::in_threads;
use crate::output::{io_error, note};
use crate::signals::lock;

/// A path without slashes at its end.
pub fn trimmed(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().as_encoded_bytes();
    while let [rest @ .., b'/'] = name
        && !rest.is_empty()
    {
        name = rest;
    }
    path_of(name).unwrap_or(path.to_owned())
}

/// The name in an index of a folder whose files are all listed, by its [`trimmed`] path.
pub fn folder_name(folder: &Path) -> Vec<u8> {
    let name = folder.as_os_str().as_encoded_bytes();
    [name.strip_suffix(b"/").unwrap_or(name), b"/"].concat()
}

/// The numbers and names of an index's files and folders.
pub fn names<'a>(index: &'a IndexView<'_>) -> impl Iterator<Item = (usize, &'a [u8])> {
    let footer = index.footer();
    (0..footer.files()).filter_map(|file| Some((file, footer.name(file)?)))
}

pub fn is_folder(name: &[u8]) -> bool {
    name.ends_with(b"/")
}

/// Passes the files of a folder, and of its folders, to `each`, and what cannot be listed to `failed`. As ripgrep does,
/// leaves out what is hidden and does not follow links.
pub fn walk(folder: &Path, mut each: impl FnMut(DirEntry), mut failed: impl FnMut(PathBuf, io::Error)) {
    let is_hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
    let entries = WalkDir::new(folder).into_iter();
    for entry in entries.filter_entry(|entry| entry.depth() == 0 || !is_hidden(entry.file_name())) {
        match entry {
            Ok(entry) if entry.file_type().is_file() => each(entry),
            Ok(_) => (),
            Err(error) => {
                let path = error.path().unwrap_or(folder).to_owned();
                // A file that was removed meanwhile is no error.
                if let Some(error) = error.into_io_error().filter(|error| !is_gone(error)) {
                    failed(path, error);
                }
            }
        }
    }
}

/// What tells whether a file has changed since it was read, so ask for it before you read the file. It has no time if
/// the file could change again unnoticed.
pub fn version(metadata: &Metadata) -> FileVersion {
    // That of FAT, which has the coarsest clock of all file systems in use.
    const TICK: Duration = Duration::from_secs(2);
    let modified = metadata.modified().ok().filter(|modified| is_settled(*modified, TICK));
    #[cfg_attr(not(unix), expect(unused_mut))]
    let mut version = FileVersion::new(metadata.len(), modified.and_then(nanoseconds));
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let seconds = metadata.ctime().checked_mul(1_000_000_000);
        version.changed = seconds.and_then(|seconds| seconds.checked_add(metadata.ctime_nsec()));
        version.inode = Some(metadata.ino());
        let (seconds, nanoseconds) = (metadata.ctime().try_into(), metadata.ctime_nsec().try_into());
        if let (Ok(seconds), Ok(nanoseconds)) = (seconds, nanoseconds) {
            // A clock that counts less than seconds ticks as the system does, each 10 ms at least.
            let tick = if nanoseconds == 0 { TICK } else { Duration::from_millis(100) };
            let changed = UNIX_EPOCH + Duration::new(seconds, nanoseconds);
            version.modified = version.modified.filter(|_| is_settled(changed, tick));
        }
    }
    version
}

/// Since 1970.
pub fn nanoseconds(time: SystemTime) -> Option<i64> {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).ok(),
        Err(before) => i64::try_from(before.duration().as_nanos()).ok().map(|before| -before),
    }
}

/// Whether the next change gets another time.
fn is_settled(time: SystemTime, tick: Duration) -> bool {
    time.elapsed().is_ok_and(|age| age > tick)
}

/// How a file compares with its version in an index.
#[derive(Clone, Copy, PartialEq)]
pub enum State {
    Indexed,
    Changed,
    Gone,
    /// Could not be read, so that it possibly has every key.
    Unread,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            Self::Indexed => "as indexed",
            Self::Changed => "changed",
            Self::Gone => "gone",
            Self::Unread => "not read",
        }
    }
}

/// Whether a file could not be read when the index was made.
pub fn is_unread(index: &IndexView<'_>, file: usize) -> bool {
    index.known_keys(file).is_none() && index.version(file) == Some(FileVersion::default())
}

/// Whether a file is still what was read. If its time is not known, it is not.
pub fn is_same(index: &IndexView<'_>, file: usize, version: FileVersion) -> bool {
    version.modified.is_some() && index.version(file) == Some(version)
}

/// What has become of a file.
fn state(index: &IndexView<'_>, file: usize) -> State {
    let name = index.footer().name(file).unwrap_or_default();
    match path_of(name).map(fs::metadata) {
        Some(Err(error)) if is_gone(&error) => State::Gone,
        Some(Ok(_)) if is_folder(name) => State::Indexed,
        _ if is_unread(index, file) => State::Unread,
        Some(Ok(metadata)) if is_same(index, file, version(&metadata)) => State::Indexed,
        _ => State::Changed,
    }
}

/// The [`state`] of all files. Several threads ask for it, because a file system can be remote.
pub fn states(index: &IndexView<'_>) -> Vec<State> {
    const THREADS: usize = 8;
    const AT_ONCE: usize = 256;
    let (n, next) = (index.footer().files(), AtomicUsize::new(0));
    let states = Mutex::new(vec![State::Changed; n]);
    let work = || {
        loop {
            let first = next.fetch_add(AT_ONCE, Relaxed);
            if first >= n {
                return Ok::<_, ((), _)>(());
            }
            let found: Vec<_> = (first..n.min(first + AT_ONCE)).map(|file| state(index, file)).collect();
            lock(&states)[first..][..found.len()].copy_from_slice(&found);
        }
    };
    // It returns no error.
    let _ = in_threads(THREADS.min(n.div_ceil(AT_ONCE)), work);
    states.into_inner().unwrap_or_else(PoisonError::into_inner)
}

pub fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The files that were added to the folders of an index since. Reports what cannot be listed.
pub fn new_files(index: &IndexView<'_>) -> BTreeSet<PathBuf> {
    let known: HashSet<_> = names(index).map(|(_, name)| name).collect();
    let mut new = BTreeSet::new();
    for folder in known.iter().filter(|name| is_folder(name)).filter_map(|name| path_of(name)) {
        let add = |entry: DirEntry| {
            let path = entry.path();
            if !known.contains(path.as_os_str().as_encoded_bytes()) && !is_filter(path) {
                new.insert(entry.into_path());
            }
        };
        let failed = |path: PathBuf, error: io::Error| {
            note(format_args!("{:#}", io_error(path.display(), &error)));
        };
        walk(&trimmed(&folder), add, failed);
    }
    new
}
