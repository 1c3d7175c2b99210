//! Asks an index while a scan runs, for keys that are known only then. These are the keys of a join's other side, which
//! DataFusion passes to the scan as a filter once it has read them.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::datasource::listing::PartitionedFile;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr_common::physical_expr::snapshot_generation;
use datafusion::physical_plan::metrics::Count;
use datafusion_common::Result;
use datafusion_datasource::morsel::{MorselPlan, MorselPlanner, Morselizer};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use object_store::ObjectMeta;

use super::asked::Asked;
use super::columns::Files;
use super::index_file::{Answer, IndexFile};

/// Asks an index for all partitions of a scan.
#[derive(Debug)]
pub struct LateIndex {
    index: Arc<IndexFile>,
    runtime: Arc<RuntimeEnv>,
    files: Arc<Files>,
    last: Mutex<Option<LateAnswer>>,
}

#[derive(Debug)]
struct LateAnswer {
    /// What asked, and its state then.
    filter: Arc<dyn PhysicalExpr>,
    generation: u64,
    answer: SharedAnswer,
}

/// `None` if nothing was asked. Any partition that waits for it drives it, because a join may stop to poll one partition
/// until it has read another.
type SharedAnswer = Shared<BoxFuture<'static, Option<Arc<Answer>>>>;

impl LateIndex {
    pub fn new(index: Arc<IndexFile>, runtime: Arc<RuntimeEnv>, files: Files) -> Self {
        Self { index, runtime, files: Arc::new(files), last: Mutex::default() }
    }

    /// What the index answers the filter as it is now. New lookups are added to `lookups`.
    fn ask(&self, filter: &Arc<dyn PhysicalExpr>, lookups: &Count) -> SharedAnswer {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = snapshot_generation(filter);
        let before = last.as_ref().filter(|last| Arc::ptr_eq(&last.filter, filter));
        if let Some(last) = before
            && last.generation == generation
        {
            return last.answer.clone();
        }
        let before = before.and_then(|last| last.answer.peek().cloned().flatten());
        let (index, runtime, lookups) = (Arc::clone(&self.index), Arc::clone(&self.runtime), lookups.clone());
        let (files, asking) = (Arc::clone(&self.files), Arc::clone(filter));
        let answer = async move {
            let ask = |columns: &_| Asked::of_predicate(&asking, columns, &files);
            // Most changes are of other conditions, such as that of `LIMIT`, with each batch.
            if let Some(before) = before
                && ask(before.columns()).is_ok_and(|now| now.as_ref() == Some(&before.asked))
            {
                return Some(before);
            }
            let answer = index.ask(&runtime, &ask).await.map(Arc::new);
            lookups.add(answer.as_ref().map_or(0, |answer| answer.lookups));
            answer
        };
        let answer = answer.boxed().shared();
        *last = Some(LateAnswer { filter: Arc::clone(filter), generation, answer: answer.clone() });
        answer
    }
}

/// Reads files as `inner` does, but before it opens one, asks the index by the filter as it is then.
#[derive(Debug)]
pub struct Late {
    pub inner: Box<dyn Morselizer>,
    pub index: Arc<LateIndex>,
    pub filter: Arc<dyn PhysicalExpr>,
    pub lookups: Count,
    pub left_out: Count,
}

impl Late {
    async fn keeps(&self, file: &ObjectMeta) -> bool {
        let answer = self.index.ask(&self.filter, &self.lookups).await;
        let keeps = answer.is_none_or(|answer| answer.keeps(file));
        self.left_out.add(usize::from(!keeps));
        keeps
    }
}

/// A [`Late`] that its planners share.
#[derive(Debug)]
pub struct SharedLate(pub Arc<Late>);

impl Morselizer for SharedLate {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        Ok(Box::new(Planner::Ask(Arc::clone(&self.0), Box::new(file))))
    }
}

#[derive(Debug)]
enum Planner {
    Ask(Arc<Late>, Box<PartitionedFile>),
    LeaveOut,
}

impl MorselPlanner for Planner {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let Self::Ask(late, file) = *self else { return Ok(None) };
        Ok(Some(MorselPlan::new().with_pending_planner(async move {
            if late.keeps(&file.object_meta).await {
                late.inner.plan_file(*file)
            } else {
                Ok(Box::new(Self::LeaveOut) as _)
            }
        })))
    }
}
