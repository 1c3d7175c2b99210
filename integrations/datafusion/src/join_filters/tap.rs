//! `JoinFilterTapExec` hashes the keys of the rows that a join reads first, on their way to the join.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, Time};
use datafusion::physical_plan::proto::ExecutionPlanEncodeCtx;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Result, internal_err};
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::{StreamExt, stream};

use super::filter::{Filter, Plan, Reason, TOO_MANY_KEYS, count, failed, names, reserve};
use super::options::JoinFilterOptions;
use crate::row_keys::add_hashes;

/// Passes the rows of its input on, and hashes their keys. When all partitions have ended, [`JoinFilterExec`] on the
/// other side of the join has a filter of all keys. Until then, it keeps all rows.
///
/// [`JoinFilterExec`]: super::JoinFilterExec
#[derive(Debug)]
pub struct JoinFilterTapExec {
    input: Plan,
    columns: Vec<usize>,
    pub(super) link: Arc<Link>,
    metrics: ExecutionPlanMetricsSet,
}

impl JoinFilterTapExec {
    pub(super) fn new(input: Plan, columns: Vec<usize>, link: Arc<Link>) -> Self {
        Self { input, columns, link, metrics: ExecutionPlanMetricsSet::new() }
    }

    pub(super) fn with_link(&self, link: &Arc<Link>) -> Plan {
        Arc::new(Self::new(Arc::clone(&self.input), self.columns.clone(), Arc::clone(link)))
    }
}

/// What connects the operators of one filter. No two plans share a link. Where a plan is changed or reset, the join above
/// gives both operators a new one. An operator that is changed without its join gets one that connects it to nothing. So
/// a filter never has the keys of another run.
#[derive(Debug)]
pub struct Link {
    /// The same in all links of a join.
    join: Arc<()>,
    options: JoinFilterOptions,
    max_keys: usize,
    /// The keys of a run. Only streams hold them, so their memory is released with the query, and not with the plan.
    run: Mutex<Weak<Mutex<Run>>>,
}

impl Link {
    pub fn new(options: JoinFilterOptions, max_keys: usize) -> Arc<Self> {
        Arc::new(Self { join: Arc::default(), options, max_keys, run: Mutex::default() })
    }

    /// A new link of the same join.
    pub fn renewed(&self) -> Arc<Self> {
        let Self { join, options, max_keys, .. } = self;
        Arc::new(Self {
            join: Arc::clone(join),
            options: options.clone(),
            max_keys: *max_keys,
            run: Mutex::default(),
        })
    }

    /// Which join it is of.
    pub fn join(&self) -> *const () {
        Arc::as_ptr(&self.join)
    }

    /// The keys of this run, which begins with the first stream of the two operators.
    pub fn run(&self) -> Arc<Mutex<Run>> {
        let mut run = lock(&self.run);
        run.upgrade().unwrap_or_else(|| {
            let new = Arc::default();
            *run = Arc::downgrade(&new);
            new
        })
    }
}

/// The keys that all partitions of the tap have hashed so far, and then their filter.
#[derive(Debug, Default)]
pub struct Run {
    started: HashSet<usize>,
    ended: usize,
    n_keys: usize,
    hashes: Vec<(Vec<u64>, MemoryReservation)>,
    /// `None` while keys are missing.
    pub filter: Option<Result<Arc<Filter>, Reason>>,
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One partition of the keys.
struct Tap {
    run: Arc<Mutex<Run>>,
    link: Arc<Link>,
    columns: Vec<usize>,
    /// `None` after a reason for no filter.
    hashes: Option<Vec<u64>>,
    memory: MemoryReservation,
    pool: Arc<dyn MemoryPool>,
    partitions: usize,
    time: Time,
    n_keys: Count,
}

impl Tap {
    fn push(&mut self, batch: &RecordBatch) {
        let Some(hashes) = &mut self.hashes else { return };
        let _timer = self.time.timer();
        let start = hashes.len();
        let pushed = add_hashes(hashes, batch, &self.columns).map_err(failed);
        let pushed =
            pushed.and_then(|()| reserve(&self.memory, hashes.capacity() * size_of::<u64>(), &*self.pool));
        let mut run = lock(&self.run);
        run.n_keys += hashes.len() - start;
        self.n_keys.add(hashes.len() - start);
        let is_few = run.n_keys <= self.link.max_keys;
        if let Err(reason) = pushed.and(if is_few { Ok(()) } else { Err(TOO_MANY_KEYS) }) {
            run.filter.get_or_insert(Err(reason));
        }
        if run.filter.is_some() {
            // Another partition may have given up.
            run.hashes.clear();
            self.hashes = None;
            self.memory.free();
        }
    }

    /// The last partition to end makes the filter, before the join sees the end.
    fn end(self) {
        let mut run = lock(&self.run);
        run.ended += 1;
        if let Some(hashes) = self.hashes {
            run.hashes.push((hashes, self.memory));
        }
        if run.ended == self.partitions && run.filter.is_none() {
            let _timer = self.time.timer();
            let hashes = std::mem::take(&mut run.hashes);
            let keys: Vec<_> = hashes.iter().map(|(hashes, _)| &hashes[..]).collect();
            run.filter = Some(Filter::of(&keys, &self.link.options, &self.pool));
        }
    }
}

impl DisplayAs for JoinFilterTapExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "JoinFilterTapExec: keys=[{}]", names(&self.input, &self.columns))
    }
}

impl ExecutionPlan for JoinFilterTapExec {
    fn name(&self) -> &str {
        Self::static_name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        let Ok([input]) = <[Plan; 1]>::try_from(children) else {
            return internal_err!("{} has one child", self.name());
        };
        Ok(Arc::new(Self::new(input, self.columns.clone(), self.link.renewed())))
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&PhysicalExprRef) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    /// Plans travel without the filter, because its two operators may run in different processes.
    fn try_to_proto(&self, context: &ExecutionPlanEncodeCtx<'_>) -> Result<Option<PhysicalPlanNode>> {
        context.encode_child(&self.input).map(Some)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let run = self.link.run();
        if !lock(&run).started.insert(partition) {
            lock(&run).filter = Some(Err("run_again"));
        }
        let tap = Tap {
            run,
            link: Arc::clone(&self.link),
            columns: self.columns.clone(),
            hashes: Some(Vec::new()),
            memory: MemoryConsumer::new("JoinFilterTapExec").register(context.memory_pool()),
            pool: Arc::clone(context.memory_pool()),
            partitions: self.input.output_partitioning().partition_count(),
            time: MetricBuilder::new(&self.metrics).elapsed_compute(partition),
            n_keys: count(&self.metrics, "keys", partition),
        };
        let input = self.input.execute(partition, context)?;
        let rows = stream::unfold((input, Some(tap)), async |(mut input, mut tap)| {
            let next = input.next().await;
            match (&next, &mut tap) {
                (Some(Ok(batch)), Some(tap)) => tap.push(batch),
                // After an error, keys are missing.
                (Some(Err(_)), _) => tap = None,
                (None, _) => tap.take().map_or((), Tap::end),
                (_, None) => {}
            }
            next.map(|next| (next, (input, tap)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
