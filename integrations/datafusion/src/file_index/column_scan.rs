//! Reads the columns of an index from the files of a table, one file at a time, as the table would.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use bloomline::bank::FileVersion;
use bloomline::{BloomFilter, FilterBuilder};
use datafusion::catalog::{ScanArgs, TableProvider};
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::listing::{ListingTable, PartitionedFile};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_common::{DataFusionError, Result};
use futures::StreamExt;

use super::columns::{Columns, add_hashes};
use super::index_file::{external, version};
use super::listed::{forget, list};

/// Within this time after a change, a file can change again in the same tick of some clock.
const YOUNG: Duration = Duration::from_secs(2);
/// Hashes of a file before repeated ones are dropped for the first time.
const HASHES: usize = 1 << 17;

/// A scan of the columns of all files of a table.
pub struct ColumnScan {
    pub files: Vec<PartitionedFile>,
    config: Option<FileScanConfig>,
    columns: Columns,
    context: Arc<TaskContext>,
    listed: SystemTime,
}

impl ColumnScan {
    /// Lists the table's files afresh. If one of them is young, does so once more when it is not.
    pub async fn of(state: &SessionState, table: &ListingTable, columns: &Columns) -> Result<Self> {
        let schema = table.schema();
        let projection = columns.names().map(|name| schema.index_of(name)).collect::<Result<Vec<_>, _>>()?;
        let scan = async || {
            let listed = SystemTime::now();
            forget(table, state);
            let args = ScanArgs::default().with_projection(Some(&projection));
            let mut config = list(table, state, args).await?;
            // Taken out, because each file's scan copies the rest.
            let groups = config.iter_mut().flat_map(|config| std::mem::take(&mut config.file_groups));
            let files = groups.flat_map(FileGroup::into_inner).collect();
            let (columns, context) = (columns.clone(), state.task_ctx());
            Ok::<_, DataFusionError>(Self { files, config, columns, context, listed })
        };
        let first = scan().await?;
        let ages = first.files.iter().map(|file| first.age(file).unwrap_or(YOUNG));
        match ages.min() {
            Some(age) if age < YOUNG => {
                // A runtime may have no timer.
                let wait = SpawnedTask::spawn_blocking(move || thread::sleep(YOUNG - age));
                wait.join().await.map_err(external)?;
                scan().await
            }
            _ => Ok(first),
        }
    }

    /// The time from the last change of a file until it was listed. `None` if the change is in the future.
    fn age(&self, file: &PartitionedFile) -> Option<Duration> {
        self.listed.duration_since(file.object_meta.last_modified.into()).ok()
    }

    /// The version of a file, without its time if it can change again without another one.
    pub fn version(&self, file: &PartitionedFile) -> FileVersion {
        let is_young = self.age(file).is_none_or(|age| age < YOUNG);
        let mut version = version(&file.object_meta);
        version.modified = version.modified.filter(|_| !is_young);
        version
    }

    /// A filter of the keys of a file.
    pub fn read(
        &self,
        file: PartitionedFile,
        mut keys: FilterBuilder,
    ) -> impl Future<Output = Result<BloomFilter>> + Send + 'static {
        let config = self.config.clone().map(|config| {
            let only = vec![FileGroup::new(vec![file])];
            FileScanConfigBuilder::from(config).with_file_groups(only).with_output_partitioning(None).build()
        });
        let (columns, context) = (self.columns.clone(), Arc::clone(&self.context));
        async move {
            let (mut hashes, mut most) = (Vec::new(), HASHES);
            if let Some(config) = config {
                let mut batches = DataSourceExec::from_data_source(config).execute(0, context)?;
                while let Some(batch) = batches.next().await {
                    for (number, values) in batch?.columns().iter().enumerate() {
                        add_hashes(values, columns.seed(number), &mut hashes)?;
                    }
                    if hashes.len() > most {
                        let before = hashes.len();
                        hashes.sort_unstable();
                        hashes.dedup();
                        let is_mostly_distinct = 2 * hashes.len() > before;
                        most = if is_mostly_distinct { 8 * before } else { HASHES.max(2 * hashes.len()) };
                    }
                }
            }
            // The builder drops repeats too, but needs some 40 bytes for each.
            keys.insert_batch(&hashes);
            keys.finish().map_err(external)
        }
    }
}
