//! Compacts all SSTs in L0 at once, as a process of its own would.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use slatedb::CompactorBuilder;
use slatedb::admin::AdminBuilder;
use slatedb::compactor::{
    CompactionScheduler, CompactionSchedulerSupplier, CompactionSpec, CompactorStateView, SourceId,
};
use slatedb::config::{CompactionWorkerOptions, CompactorOptions};
use slatedb::object_store::ObjectStore;

/// How often the compactor looks for work.
pub const SOON: Duration = Duration::from_millis(10);

/// What becomes of L0.
#[derive(Clone, Copy, PartialEq)]
#[allow(dead_code, reason = "tests use the first, and benches the second")]
pub enum Runs {
    /// All SSTs of the database become one sorted run.
    One,
    /// L0 becomes a new sorted run.
    Several,
}

impl CompactionSchedulerSupplier for Runs {
    fn compaction_scheduler(&self, _: &CompactorOptions) -> Box<dyn CompactionScheduler + Send + Sync> {
        Box::new(*self)
    }
}

impl CompactionScheduler for Runs {
    fn propose(&self, state: &CompactorStateView) -> Vec<CompactionSpec> {
        let busy = state.compactions().is_some_and(|all| all.recent_compactions().any(|one| one.active()));
        let manifest = state.manifest();
        if busy || manifest.l0().is_empty() {
            return Vec::new();
        }
        let runs = manifest.compacted();
        let l0 = manifest.l0().iter().map(|view| SourceId::SstView(view.id));
        vec![match self {
            Self::One => {
                let all = l0.chain(runs.iter().map(|run| SourceId::SortedRun(run.id))).collect();
                CompactionSpec::new(all, runs.last().map_or(0, |run| run.id))
            }
            Self::Several => CompactionSpec::new(l0.collect(), runs.first().map_or(0, |run| run.id + 1)),
        }]
    }
}

/// Runs a compactor until L0 is empty.
pub async fn run(
    builder: CompactorBuilder<&'static str>,
    path: &'static str,
    store: &Arc<dyn ObjectStore>,
    worker: CompactionWorkerOptions,
    runs: Runs,
) -> Result<()> {
    let options = CompactorOptions {
        poll_interval: SOON,
        commit_compacted_interval: SOON,
        worker: Some(worker),
        ..CompactorOptions::default()
    };
    let compactor = builder.with_options(options).with_scheduler_supplier(Arc::new(runs)).build();
    let running = tokio::spawn({
        let compactor = compactor.clone();
        async move { compactor.run().await }
    });
    let admin = AdminBuilder::new(path, store.clone()).build();
    let start = Instant::now();
    while !admin.read_compactor_state_view().await?.manifest().l0().is_empty() {
        // Because a panic inside of a compactor does not end it.
        ensure!(start.elapsed() < Duration::from_secs(600), "nothing is compacted");
        tokio::time::sleep(SOON).await;
    }
    compactor.stop().await?;
    Ok(running.await??)
}
