//! `JoinFilterBuildExec` hashes the smaller side's keys.
//!
//! The hashes travel instead of partial filters, because each partition would send each task a filter for all expected
//! keys, however few keys it has. From the hashes, each task makes a filter of the right size in milliseconds.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::UInt64Array;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExprRef};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, SplitMetrics, Time,
};
use datafusion::physical_plan::stream::{BatchSplitStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Result, internal_err};
use futures::{Stream, StreamExt, TryStreamExt, stream};

use super::filter::{Plan, Reason, TOO_MANY_KEYS, count, failed, names, reserve};
use crate::row_keys::add_hashes;
use crate::snapshot::are_unchanged;

/// Returns each hash of a partition's keys once. A key is all columns of the input. A partition of more than `max_keys`
/// keys, or one that fails for another reason, returns one null instead.
#[derive(Debug)]
pub struct JoinFilterBuildExec {
    input: Plan,
    pub(super) max_keys: usize,
    properties: Arc<PlanProperties>,
    /// Partitions that are not read yet.
    unread: Arc<AtomicUsize>,
    metrics: ExecutionPlanMetricsSet,
}

impl JoinFilterBuildExec {
    pub(super) fn new(input: Plan, max_keys: usize) -> Self {
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(schema()),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            EmissionType::Final,
            Boundedness::Bounded,
        ));
        let unread = Arc::new(properties.partitioning.partition_count().into());
        Self { input, max_keys, properties, unread, metrics: ExecutionPlanMetricsSet::new() }
    }
}

/// The schema of hashes, or of one null.
pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("hash", DataType::UInt64, true)]))
}

impl DisplayAs for JoinFilterBuildExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "JoinFilterBuildExec: keys=[{}]", names(&self.input, &all_columns(&self.input.schema())))
    }
}

impl ExecutionPlan for JoinFilterBuildExec {
    fn name(&self) -> &str {
        Self::static_name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        let Ok([input]) = <[Plan; 1]>::try_from(children) else {
            return internal_err!("{} has one child", self.name());
        };
        Ok(Arc::new(Self::new(input, self.max_keys)))
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

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let batch_size = context.session_config().batch_size();
        let memory = Arc::new(MemoryConsumer::new("JoinFilterBuildExec").register(context.memory_pool()));
        // DataFusion reads the source of a join only if the join needs it. So that no query fails here that would not
        // fail without the filter, an error is a reason for no filter.
        let input = self.input.execute(partition, Arc::clone(&context));
        // DataFusion adds up the rows of both scans of a file in one process, so count the rows of this scan here.
        let rows_in = count(&self.metrics, "rows_in", partition);
        let (max_keys, plan) = (self.max_keys, Arc::clone(&self.input));
        let (reasons, reserved, unread) =
            (self.metrics.clone(), Arc::clone(&memory), Arc::clone(&self.unread));
        let batch = stream::once(async move {
            let hashes = async {
                let (time, pool) = (metrics.elapsed_compute(), context.memory_pool().as_ref());
                let input = input.map_err(failed)?.inspect_ok(|batch| rows_in.add(batch.num_rows()));
                let hashes = distinct_hashes(input, max_keys, &reserved, pool, time).await;
                // Once, because each file is a request, and at the end, because partitions read each other's files.
                let is_last = unread.fetch_sub(1, Ordering::Relaxed) == 1;
                if is_last && hashes.is_ok() && !are_unchanged(&plan, &context).await {
                    return Err("files_changed");
                }
                hashes
            };
            let give_up = |reason| {
                count(&reasons, reason, partition).add(1);
                UInt64Array::new_null(1)
            };
            let hashes = hashes.await.map_or_else(give_up, UInt64Array::from);
            metrics.record_output(hashes.len());
            Ok(RecordBatch::try_new(schema(), vec![Arc::new(hashes)])?)
        });
        let batch = Box::pin(RecordBatchStreamAdapter::new(self.schema(), batch));
        let batches = BatchSplitStream::new(batch, batch_size, SplitMetrics::new(&self.metrics, partition));
        // The hashes live, and so does their reservation, until the last batch.
        let batches = batches.inspect(move |_| _ = &memory);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}

/// The distinct hashes of the keys, sorted. Stops reading at the first reason for no filter.
async fn distinct_hashes(
    mut input: impl Stream<Item = Result<RecordBatch>> + Unpin,
    max_keys: usize,
    memory: &MemoryReservation,
    pool: &dyn MemoryPool,
    time: &Time,
) -> Result<Vec<u64>, Reason> {
    let mut hashes: Vec<u64> = Vec::new();
    let compact = |hashes: &mut Vec<u64>| {
        hashes.sort_unstable();
        hashes.dedup();
        if hashes.len() <= max_keys { Ok(()) } else { Err(TOO_MANY_KEYS) }
    };
    while let Some(batch) = input.try_next().await.map_err(failed)? {
        let _timer = time.timer();
        add_hashes(&mut hashes, &batch, &all_columns(batch.schema_ref())).map_err(failed)?;
        // Duplicates are removed only when the list may hold twice the most keys, so that each key is sorted few times.
        if hashes.len() > max_keys.saturating_mul(2) {
            compact(&mut hashes)?;
        }
        reserve(memory, hashes.capacity() * size_of::<u64>(), pool)?;
    }
    let _timer = time.timer();
    compact(&mut hashes)?;
    Ok(hashes)
}

fn all_columns(schema: &Schema) -> Vec<usize> {
    (0..schema.fields().len()).collect()
}
