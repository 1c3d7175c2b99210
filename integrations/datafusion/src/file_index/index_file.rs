//! An index in an object store, of which a lookup reads some ranges.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bloomline::bank::{FileVersion, IndexFooter, SlotBitmap};
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion_common::{DataFusionError, Result, exec_datafusion_err, exec_err, plan_err};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};

use super::asked::Asked;
use super::columns::{Columns, Files};

/// Read from the end of an index at first, which is all that an index of some 10,000 files needs.
const END_BYTES: u64 = 1 << 20;
/// Requests at a time.
pub const REQUESTS: usize = 64;
/// A query that would need more memory, because it asks for very many keys, reads all files.
const MOST_BYTES: u64 = 256 << 20;

/// What to ask an index of these columns.
pub type Ask<'a> = dyn Fn(&Columns) -> Result<Option<Asked>> + Send + Sync + 'a;

/// Where an index is, and its end once it is read.
#[derive(Debug)]
pub struct IndexFile {
    url: ListingTableUrl,
    opened: Mutex<Option<Arc<Opened>>>,
    warned: AtomicBool,
}

/// The end of an index.
#[derive(Debug)]
struct Opened {
    object: ObjectMeta,
    footer: IndexFooter,
    versions: Vec<FileVersion>,
    columns: Columns,
}

/// What an index answered a query.
#[derive(Debug)]
pub struct Answer {
    opened: Arc<Opened>,
    /// A bit for each file of the index that possibly has rows of the result.
    possible: Vec<u64>,
    pub asked: Asked,
    pub lookups: usize,
    pub bytes: u64,
    pub time: Duration,
}

impl Answer {
    /// Whether a file possibly has rows of the result, as every file has that the index does not know in this version.
    pub fn keeps(&self, file: &ObjectMeta) -> bool {
        let Opened { footer, versions, .. } = &*self.opened;
        let now = version(file);
        match number_of(footer, &file.location) {
            Some(number) if now.modified.is_some() && versions[number] == now => {
                self.possible[number / 64] >> (number % 64) & 1 == 1
            }
            _ => true,
        }
    }

    pub fn columns(&self) -> &Columns {
        &self.opened.columns
    }
}

/// The number of a file in an index.
pub fn number_of(footer: &IndexFooter, path: &Path) -> Option<usize> {
    let name = path.as_ref().as_bytes();
    let (mut number, mut end) = (0, footer.files());
    while number < end {
        let middle = number.midpoint(end);
        match footer.name(middle)?.cmp(name) {
            Ordering::Less => number = middle + 1,
            Ordering::Equal => return Some(middle),
            Ordering::Greater => end = middle,
        }
    }
    None
}

/// The version of a file in an object store. Its ETag stands where a file system has the inode.
pub fn version(file: &ObjectMeta) -> FileVersion {
    let mut version = FileVersion::new(file.size, file.last_modified.timestamp_nanos_opt());
    version.inode = file.e_tag.as_ref().map(|tag| bloomline::hash_key(tag, 0));
    version
}

impl IndexFile {
    /// `url` is a path or an URL.
    pub fn new(url: &str) -> Result<Self> {
        let parsed = ListingTableUrl::parse(url)?;
        if parsed.is_collection() || parsed.get_glob().is_some() {
            return plan_err!("file index: '{url}' is a folder or a pattern (name a file)");
        }
        Ok(Self { url: parsed, opened: Mutex::default(), warned: AtomicBool::new(false) })
    }

    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    pub fn path(&self) -> &Path {
        self.url.prefix()
    }

    pub fn store(&self, runtime: &RuntimeEnv) -> Result<Arc<dyn ObjectStore>> {
        runtime.object_store(&self.url)
    }

    /// Asks what `asked` returns for the index's columns. `None` if that is nothing, or if the index cannot be read. In
    /// the latter case, the first such call logs a warning.
    pub async fn ask(&self, runtime: &RuntimeEnv, asked: &Ask<'_>) -> Option<Answer> {
        let was_open = self.lock().is_some();
        let answer = match self.try_ask(runtime, asked).await {
            // It may have been replaced since its end was read.
            Err(_) if was_open => {
                self.lock().take();
                self.try_ask(runtime, asked).await
            }
            answer => answer,
        };
        match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.lock().take();
                if !self.warned.swap(true, Relaxed) {
                    log::warn!("the index {self} cannot be asked, so all files are read: {error}");
                }
                None
            }
        }
    }

    async fn try_ask(&self, runtime: &RuntimeEnv, asked: &Ask<'_>) -> Result<Option<Answer>> {
        let start = Instant::now();
        let store = self.store(runtime)?;
        let opened = self.open(&*store).await?;
        let Opened { footer, columns, .. } = &*opened;
        let Some(asked) = asked(columns)? else { return Ok(None) };
        let (mut needed, mut hashes) = (BTreeMap::new(), HashMap::new());
        asked.hashes(&mut |hash| {
            hashes.entry(hash).or_insert_with(Vec::new);
            needed.extend(footer.ranges(hash).map(|range| (range.start, range.end)));
        });
        let bytes: u64 = needed.iter().map(|(start, end)| end - start).sum();
        let words = footer.files().div_ceil(64);
        if bytes + 8 * (words * hashes.len()) as u64 > MOST_BYTES {
            log::debug!(
                "the index {self} is not asked for {} keys, because that needs too much memory",
                hashes.len()
            );
            return Ok(None);
        }
        let read = needed.into_iter().map(|(start, end)| {
            let read = get(&*store, &opened.object, start..end);
            async move { Ok::<_, DataFusionError>((start, read.await?)) }
        });
        let read: BTreeMap<_, _> = stream::iter(read).buffer_unordered(REQUESTS).try_collect().await?;
        let mut found = SlotBitmap::new();
        for (&hash, files) in &mut hashes {
            let ranges = footer.ranges(hash).map(|range| &read[&range.start]);
            footer.find_in_ranges(hash, ranges, &mut found).map_err(external)?;
            *files = found.as_words().to_vec();
        }
        let merged = |all: bool, mut one: Vec<u64>, other: Vec<u64>| {
            one.iter_mut()
                .zip(other)
                .for_each(|(one, other)| if all { *one &= other } else { *one |= other });
            one
        };
        let of_keys = |_, keys: &[u64]| {
            let found = keys.iter().map(|hash| hashes[hash].clone());
            found.fold(vec![0; words], |one, other| merged(false, one, other))
        };
        let possible = asked.evaluate(&of_keys, &merged);
        let lookups = hashes.len();
        Ok(Some(Answer { opened, possible, asked, lookups, bytes, time: start.elapsed() }))
    }

    /// Reads the end of the index, unless it was read before.
    async fn open(&self, store: &dyn ObjectStore) -> Result<Arc<Opened>> {
        let kept = self.lock().clone();
        if let Some(opened) = kept {
            return Ok(opened);
        }
        let opened = Arc::new(Opened::read(store, self.path()).await?);
        *self.lock() = Some(Arc::clone(&opened));
        Ok(opened)
    }

    /// Opens the index, and checks that it is of columns of these files. Returns its number of files and of bytes.
    pub async fn check(&self, runtime: &RuntimeEnv, files: &Files) -> Result<(usize, u64)> {
        let opened = self.open(&*self.store(runtime)?).await.or_else(|error| {
            exec_err!(
                "file index: {self} cannot be opened: {error} (to make it, name its columns, as in bloom_index('logs', 'logs.index', 'id'))"
            )
        })?;
        opened.columns.check(files)?;
        Ok((opened.footer.files(), opened.object.size))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Opened>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for IndexFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

impl Opened {
    async fn read(store: &dyn ObjectStore, path: &Path) -> Result<Self> {
        let object = store.head(path).await?;
        let len = object.size;
        let end = get(store, &object, len.saturating_sub(END_BYTES)..len).await?;
        let needed = IndexFooter::read_len(&end).map_err(external)?;
        let end = match len.checked_sub(needed) {
            None => return exec_err!("it has {len} bytes, and its end alone needs {needed}"),
            Some(_) if needed <= end.len() as u64 => end,
            Some(start) => get(store, &object, start..len).await?,
        };
        let footer = IndexFooter::read(&end).map_err(external)?;
        let range = footer.versions_range();
        if range.end + needed != len {
            return exec_err!("it has {len} bytes, not {}: it was cut or joined", range.end + needed);
        }
        let versions = match (end.len() as u64 + range.start).checked_sub(len) {
            Some(start) => footer.versions(&end[start as usize..end.len() - needed as usize]),
            None => footer.versions(&get(store, &object, range).await?),
        };
        let versions = versions.map_err(external)?;
        let columns = Columns::of_rule(footer.rule())
            .ok_or_else(|| exec_datafusion_err!("another program made it, of {:?}", footer.rule()))?;
        Ok(Self { object, footer, versions, columns })
    }
}

/// Reads part of an object, unless it was replaced.
async fn get(store: &dyn ObjectStore, object: &ObjectMeta, range: Range<u64>) -> Result<Vec<u8>> {
    let options = GetOptions {
        range: Some(GetRange::Bounded(range)),
        if_match: object.e_tag.clone(),
        ..GetOptions::default()
    };
    Ok(store.get_opts(&object.location, options).await?.bytes().await?.into())
}

pub fn external(error: impl Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
