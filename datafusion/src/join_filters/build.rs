//! `JoinFilterBuildExec`: the hashes of the smaller side's keys.
//!
//! They travel instead of partial filters. A filter for the expected keys would be sent by each partition to each task,
//! however few keys there are; of the hashes, each task makes a filter of the right size in milliseconds.

use std::fmt;
use std::sync::Arc;

use arrow::array::UInt64Array;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, Time};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PhysicalExpr,
    PlanProperties,
};
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{DataFusionError, Result, internal_err};
use futures::{StreamExt, TryStreamExt, stream};

use super::keys::{Plan, hash, names};

/// Returns the hashes of the keys in `columns`, each once, from each partition. A partition with more than `max_keys`
/// gives up, and returns one null instead.
#[derive(Debug)]
pub struct JoinFilterBuildExec {
    input: Plan,
    pub(super) columns: Vec<usize>,
    pub(super) max_keys: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl JoinFilterBuildExec {
    pub(super) fn new(input: Plan, columns: Vec<usize>, max_keys: usize) -> Self {
        let partitions = input.output_partitioning().partition_count();
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(schema()),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Final,
            Boundedness::Bounded,
        ));
        Self { input, columns, max_keys, properties, metrics: ExecutionPlanMetricsSet::new() }
    }
}

/// Hashes, or one null.
pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("hash", DataType::UInt64, true)]))
}

impl DisplayAs for JoinFilterBuildExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "JoinFilterBuildExec: keys=[{}]", names(&self.input, &self.columns))
    }
}

impl ExecutionPlan for JoinFilterBuildExec {
    fn name(&self) -> &str {
        "JoinFilterBuildExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Plan>) -> Result<Plan> {
        match children.pop() {
            Some(input) if children.is_empty() => {
                Ok(Arc::new(Self::new(input, self.columns.clone(), self.max_keys)))
            }
            _ => internal_err!("{} has one child", self.name()),
        }
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let gave_up = MetricBuilder::new(&self.metrics).counter("gave_up", partition);
        let keys = MetricBuilder::new(&self.metrics).output_rows(partition);
        let time = MetricBuilder::new(&self.metrics).elapsed_compute(partition);
        let batch_size = context.session_config().batch_size();
        let input = self.input.execute(partition, context)?;
        let (columns, max_keys, schema) = (self.columns.clone(), self.max_keys, self.schema());
        let batches = async move {
            let hashes = match distinct_hashes(input, &columns, max_keys, &time).await? {
                Some(hashes) => UInt64Array::from(hashes),
                None => {
                    gave_up.add(1);
                    UInt64Array::new_null(1)
                }
            };
            keys.add(hashes.len());
            let batch = RecordBatch::try_new(schema, vec![Arc::new(hashes)])?;
            let slices = (0..batch.num_rows())
                .step_by(batch_size)
                .map(move |start| Ok(batch.slice(start, batch_size.min(batch.num_rows() - start))));
            Ok::<_, DataFusionError>(stream::iter(slices))
        };
        let batches = stream::once(batches).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}

/// `None` if there are more than `max_keys`. The rest of the input is not read then.
async fn distinct_hashes(
    mut input: SendableRecordBatchStream,
    columns: &[usize],
    max_keys: usize,
    time: &Time,
) -> Result<Option<Vec<u64>>> {
    let mut hashes: Vec<u64> = Vec::new();
    let compact = |hashes: &mut Vec<u64>| {
        hashes.sort_unstable();
        hashes.dedup();
        hashes.len() <= max_keys
    };
    while let Some(batch) = input.next().await {
        let _timer = time.timer();
        let (batch_hashes, valid) = hash(&batch?, columns)?;
        match valid {
            Some(valid) => hashes.extend(valid.valid_indices().map(|row| batch_hashes[row])),
            None => hashes.extend(batch_hashes),
        }
        // Duplicates are left out now and then, so that each key is sorted few times.
        if hashes.len() > max_keys.saturating_mul(2) && !compact(&mut hashes) {
            return Ok(None);
        }
    }
    let _timer = time.timer();
    Ok(compact(&mut hashes).then_some(hashes))
}
