//! Tells whether the files of a table are still those that a query was planned with.

use std::collections::HashMap;
use std::future::ready;
use std::sync::Arc;

use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::TaskContext;
use datafusion::object_store::{ObjectMeta, ObjectStoreExt};
use datafusion::physical_plan::ExecutionPlan;
use futures::{StreamExt, stream};

/// Compares the files of the scan below a plan of one table with what the planner knew of them. A scan of memory holds
/// its batches, so it cannot change.
pub async fn are_unchanged(plan: &Arc<dyn ExecutionPlan>, context: &TaskContext) -> bool {
    let Some(scan) = files(plan) else { return true };
    let Ok(store) = context.runtime_env().object_store(&scan.object_store_url) else { return false };
    let files = scan.file_groups.iter().flat_map(|group| group.iter());
    let is_unchanged = |planned: ObjectMeta| {
        let store = Arc::clone(&store);
        async move { store.head(&planned.location).await.is_ok_and(|now| is_same(&planned, &now)) }
    };
    let files: HashMap<_, _> =
        files.map(|file| (file.object_meta.location.clone(), file.object_meta.clone())).collect();
    stream::iter(files.into_values().map(is_unchanged)).buffer_unordered(16).all(ready).await
}

/// A listing, which the planner used, and `head` can describe the same file differently. One of them may give its time
/// in whole seconds, and may put its tag in quotes. Ballista's plans have no tags, so then the times decide.
fn is_same(planned: &ObjectMeta, now: &ObjectMeta) -> bool {
    let [before, after] = [planned, now].map(|file| file.last_modified);
    let is_in_seconds = [before, after].iter().any(|time| time.timestamp_subsec_nanos() == 0);
    planned.size == now.size
        && match (&planned.e_tag, &now.e_tag) {
            // Tables of files that never change need no time.
            (None, _) if before.timestamp() == 0 => true,
            (Some(planned), Some(now)) => planned.trim_matches('"') == now.trim_matches('"'),
            _ => before == after || is_in_seconds && before.timestamp() == after.timestamp(),
        }
}

/// The files of the scan below a plan that reads one table.
fn files(plan: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    match plan.downcast_ref::<DataSourceExec>() {
        Some(scan) => scan.data_source().downcast_ref(),
        None => files(plan.children().first()?),
    }
}
