//! `FileIndexBuilder`: makes and updates an index over the files of a table.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use bloomline::BloomFilter;
use bloomline::bank::{FileVersion, IndexBuilder, IndexView};
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::listing::ListingTable;
use datafusion::execution::SessionState;
use datafusion::prelude::SessionContext;
use datafusion_common::{DataFusionError, Result, TableReference, exec_err, plan_err};
use futures::{StreamExt, stream};
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt};

use super::catalog::{self, replace};
use super::column_scan::ColumnScan;
use super::columns::{Columns, Files};
use super::index_file::{IndexFile, REQUESTS, external, number_of};
use super::table::IndexedTable;

/// What happens to files of the index that still exist, but are not of the table, for example because its location was
/// made narrower. Files that are gone always leave the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Others {
    /// The index is not written, and the error names one of them.
    #[default]
    Refuse,
    /// They stay in the index.
    Keep,
    /// They leave the index.
    Drop,
}

/// What [`FileIndexBuilder::build`] did, and what the index has then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileIndexReport {
    /// Files of the index.
    pub files: usize,
    /// Files that were read, because they are new or have changed.
    pub read: usize,
    /// Files that left the index.
    pub dropped: usize,
    /// Files that could not be read, and why. They possibly have every key.
    pub unread: Vec<(String, String)>,
    /// The sum of the numbers of distinct keys of the files, as far as known.
    pub keys: u64,
    /// Size of the index in bytes.
    pub bytes: u64,
}

type OnProgress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// Makes an index over the files of a table, or updates it.
#[derive(Clone)]
pub struct FileIndexBuilder {
    columns: Vec<String>,
    fpr: Option<f64>,
    others: Others,
    progress: Option<OnProgress>,
}

impl FileIndexBuilder {
    /// An index of these columns, which are of text, binary, integers, dates, times, timestamps, durations or decimals. A
    /// file has one filter for all columns, so name those that queries look keys up in.
    pub fn new<C: Into<String>>(columns: impl IntoIterator<Item = C>) -> Self {
        let columns = columns.into_iter().map(Into::into).collect();
        Self { columns, fpr: None, others: Others::Refuse, progress: None }
    }

    /// The share of the files without a key that a query of this key opens. The default is 0.0001, one in 10,000 files,
    /// which costs about 3 bytes for each distinct key of a file.
    pub fn with_fpr(self, fpr: f64) -> Self {
        Self { fpr: Some(fpr), ..self }
    }

    /// What happens to files of the index that still exist, but are not of the table. The default is
    /// [`Others::Refuse`].
    pub fn with_others(self, others: Others) -> Self {
        Self { others, ..self }
    }

    /// Calls this after each file, with the bytes of the files that were read so far, and of all that are to be read.
    pub fn with_progress(self, progress: impl Fn(u64, u64) + Send + Sync + 'static) -> Self {
        Self { progress: Some(Arc::new(progress)), ..self }
    }

    /// Makes the index at this path or URL, whose object store must be registered. From then on, queries of the table
    /// ask it. Reads only these columns. If the index exists, reads only files that are new or have changed since.
    ///
    /// The index replaces the older one as a whole at the end. The table's files are listed afresh, also for later
    /// queries. If a file was changed less than two seconds ago, this waits, because the file could change again in the
    /// same tick of the clock. Needs memory for twice the index, or three times if it replaces an older one. It reads
    /// `datafusion.execution.meta_fetch_concurrency` files at a time, and needs memory for the distinct keys of each.
    ///
    /// # Errors
    ///
    /// If there is no such table or column, the column's type has no keys, the table is not of files, the index has
    /// other columns, another rate or is damaged, or the store fails. A file that cannot be read is not an error, but is
    /// [reported](FileIndexReport::unread).
    pub async fn build(
        &self,
        context: &SessionContext,
        table: impl Into<TableReference>,
        index: &str,
    ) -> Result<FileIndexReport> {
        self.build_in(&context.state(), &table.into(), index).await
    }

    pub(super) async fn build_in(
        &self,
        state: &SessionState,
        name: &TableReference,
        index: &str,
    ) -> Result<FileIndexReport> {
        let index = Arc::new(IndexFile::new(index)?);
        let indexed = IndexedTable::of(&*catalog::table(state, name).await?, Arc::clone(&index))?;
        let report = self.write(state, indexed.table(), &index).await?;
        replace(state, name, indexed).await?;
        Ok(report)
    }

    async fn write(
        &self,
        state: &SessionState,
        table: &ListingTable,
        index: &IndexFile,
    ) -> Result<FileIndexReport> {
        let columns = Columns::of(&Files::of(table, state.config_options())?, &self.columns)?;
        let extension = &table.options().file_extension;
        if index.path().as_ref().ends_with(extension)
            && table.table_paths().iter().any(|url| url.contains(index.path(), false))
        {
            return plan_err!(
                "file index: {index} would be a file of the table (choose another name or folder)"
            );
        }
        let store = index.store(state.runtime_env())?;
        let bytes = match store.get(index.path()).await {
            Ok(found) => Some(found.bytes().await?),
            Err(Error::NotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let old = bytes.as_ref().map(|bytes| self.old(bytes, &columns, index)).transpose()?;
        let fpr = old.as_ref().map(|old| old.footer().fpr()).or(self.fpr).unwrap_or(0.0001);
        let builder = IndexBuilder::with_fpr(fpr).and_then(|builder| builder.with_rule(&columns.rule()));
        let (mut builder, mut report) = (builder.map_err(external)?, FileIndexReport::default());

        let scan = ColumnScan::of(state, table, &columns).await?;
        let mut left = BTreeSet::from_iter(0..old.as_ref().map_or(0, |old| old.footer().files()));
        let (mut kept, mut to_read) = (Vec::new(), Vec::new());
        for file in &scan.files {
            let now = scan.version(file);
            let known = old.as_ref().and_then(|old| {
                let number = number_of(old.footer(), &file.object_meta.location)?;
                left.remove(&number);
                (now.modified.is_some() && old.version(number) == Some(now)).then_some(number)
            });
            known.map_or_else(|| to_read.push(file.clone()), |number| kept.push(number));
        }
        let mut dropped = left.len();
        if let Some(old) = &old {
            let others = self.others(state, table, old, left).await?;
            dropped -= others.len();
            kept.extend(others);
            if to_read.is_empty() && dropped == 0 {
                let keys = kept.iter().filter_map(|&number| old.known_keys(number)).sum();
                let bytes = bytes.map_or(0, |bytes| bytes.len() as u64);
                return Ok(FileIndexReport { files: kept.len(), keys, bytes, ..report });
            }
            for number in &kept {
                let no_keys = || builder.filter_builder().finish();
                let filter = old.to_filter(*number).and_then(|filter| filter.map_or_else(no_keys, Ok));
                let name = old.footer().name(*number).unwrap_or_default();
                let version = old.version(*number).unwrap_or_default();
                report.keys += old.known_keys(*number).unwrap_or(0);
                builder.insert(name, version, filter.map_err(external)?).map_err(external)?;
            }
        }
        report.dropped = dropped;
        report.files = kept.len() + to_read.len();

        let all_bytes = to_read.iter().map(|file| file.object_meta.size).sum();
        let keys = builder.filter_builder();
        let reads = to_read.into_iter().map(|file| {
            // A task begins when it is made, and the stream makes each when there is room for it.
            let read = SpawnedTask::spawn(scan.read(file.clone(), keys.clone()));
            async move { (file, read.join().await) }
        });
        let at_a_time = state.config_options().execution.meta_fetch_concurrency.get();
        let (mut reads, mut read_bytes) = (stream::iter(reads).buffer_unordered(at_a_time), 0);
        while let Some((file, filter)) = reads.next().await {
            let path = &file.object_meta.location;
            let (version, filter) = match filter.unwrap_or_else(|error| Err(external(error))) {
                Ok(filter) => (scan.version(&file), Some(filter)),
                Err(error) => {
                    report.unread.push((path.to_string(), error.to_string()));
                    (FileVersion::default(), None)
                }
            };
            report.read += usize::from(filter.is_some());
            report.keys += filter.as_ref().and_then(BloomFilter::known_keys).unwrap_or(0);
            builder.insert(path.as_ref(), version, filter).map_err(external)?;
            read_bytes += file.object_meta.size;
            if let Some(progress) = &self.progress {
                progress(read_bytes, all_bytes);
            }
        }
        report.unread.sort();
        let bytes = builder.to_standalone().map_err(external)?;
        report.bytes = bytes.len() as u64;
        store.put(index.path(), bytes.into()).await?;
        Ok(report)
    }

    /// The index to update.
    fn old<'a>(&self, bytes: &'a [u8], columns: &Columns, index: &IndexFile) -> Result<IndexView<'a>> {
        let remedy = "remove it, or name another file";
        let old = match IndexView::from_standalone(bytes) {
            Ok(old) => old,
            Err(error) => return exec_err!("file index: {index} cannot be updated: {error} ({remedy})"),
        };
        let (theirs, ours) = (old.footer().rule(), columns.rule());
        if theirs != ours {
            return exec_err!("file index: {index} is of {theirs:?}, not of {ours:?} ({remedy})");
        }
        let recorded = old.footer().fpr();
        match self.fpr {
            Some(fpr) if fpr != recorded => {
                exec_err!("file index: {index} was made for an FPR of {recorded}, not {fpr} ({remedy})")
            }
            _ => Ok(old),
        }
    }

    /// Which of these files of the old index, which are not of the table, stay.
    async fn others(
        &self,
        state: &SessionState,
        table: &ListingTable,
        old: &IndexView<'_>,
        left: BTreeSet<usize>,
    ) -> Result<Vec<usize>> {
        let Some(url) = table.table_paths().first().filter(|_| self.others != Others::Drop) else {
            return Ok(vec![]);
        };
        let store = state.runtime_env().object_store(url)?;
        let found = left.into_iter().map(|number| {
            let name = String::from_utf8_lossy(old.footer().name(number).unwrap_or_default());
            let (path, store) = (Path::parse(name), Arc::clone(&store));
            async move {
                let path = path.map_err(Error::from)?;
                Ok::<_, Error>((number, store.head(&path).await, path))
            }
        });
        let (mut found, mut kept) = (stream::iter(found).buffered(REQUESTS), Vec::new());
        while let Some(found) = found.next().await {
            let (number, found, path) = found.map_err(DataFusionError::from)?;
            match found {
                Ok(_) if self.others == Others::Keep => kept.push(number),
                Ok(_) => {
                    return exec_err!(
                        "file index: {path} is in the index and exists, but is not of the table (use Others::Keep or Others::Drop in Rust, or another index)"
                    );
                }
                Err(Error::NotFound { .. }) => (),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(kept)
    }
}

impl fmt::Debug for FileIndexBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { columns, fpr, others, .. } = self;
        f.debug_struct("FileIndexBuilder")
            .field("columns", columns)
            .field("fpr", fpr)
            .field("others", others)
            .finish_non_exhaustive()
    }
}
