//! The files of a table, without reading them.

use std::any::Any;
use std::sync::Arc;

use datafusion::catalog::{ScanArgs, TableProvider};
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::cache::TableScopedPath;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_common::Result;

/// The scan of a table, planned without the statistics of its files, for which DataFusion would open each. `None` if it
/// has no files.
pub async fn list(
    table: &ListingTable,
    state: &SessionState,
    args: ScanArgs<'_>,
) -> Result<Option<FileScanConfig>> {
    // Otherwise, the builder would replace the catalog, which sessions share.
    let options = state.config().clone().with_create_default_catalog_and_schema(false);
    let options = options.with_collect_statistics(false);
    let state = SessionStateBuilder::new_from_existing(state.clone()).with_config(options).build();
    let plan = table.scan_with_args(&state, args).await?.into_inner();
    Ok(config_of(plan).ok())
}

/// The scan that a plan of a table of files is, or the plan if it is none. Copies no list of files.
pub fn config_of(plan: Arc<dyn ExecutionPlan>) -> Result<FileScanConfig, Arc<dyn ExecutionPlan>> {
    let source = plan.downcast_ref::<DataSourceExec>().map(|scan| Arc::clone(scan.data_source()));
    let Some(source) = source.filter(|source| source.is::<FileScanConfig>()) else { return Err(plan) };
    drop(plan);
    let source: Arc<dyn Any + Send + Sync> = source;
    Ok(Arc::unwrap_or_clone(source.downcast().expect("its type was checked")))
}

/// Lets the next query list the table's files again.
pub fn forget(table: &ListingTable, state: &SessionState) {
    if let Some(listings) = state.runtime_env().cache_manager.get_list_files_cache() {
        for url in table.table_paths() {
            let key = TableScopedPath { table: url.get_table_ref().clone(), path: url.prefix().clone() };
            listings.remove(&key);
        }
    }
}
