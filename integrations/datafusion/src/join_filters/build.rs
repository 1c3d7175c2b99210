//! `JoinFilterBuildExec` hashes the smaller side's keys.
//!
//! The hashes travel instead of partial filters, because each partition would send each task a filter for all expected
//! keys, however few keys it has. From the hashes, each task makes a filter of the right size in milliseconds.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, UInt64Array, make_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use bloomline::hash_key;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExprRef};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, SplitMetrics, Time,
};
use datafusion::physical_plan::stream::{BatchSplitStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Result, internal_err};
use futures::{TryStreamExt, stream};

use crate::keys;

pub type Plan = Arc<dyn ExecutionPlan>;

/// Returns each hash of a partition's keys in `columns` once. A partition of more than `max_keys` keys gives up, and
/// returns one null instead.
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
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(schema()),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            EmissionType::Final,
            Boundedness::Bounded,
        ));
        Self { input, columns, max_keys, properties, metrics: ExecutionPlanMetricsSet::new() }
    }
}

/// The schema of hashes, or of one null.
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
        Ok(Arc::new(Self::new(input, self.columns.clone(), self.max_keys)))
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
        let gave_up = MetricBuilder::new(&self.metrics).counter("gave_up", partition);
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let batch_size = context.session_config().batch_size();
        let (columns, max_keys) = (self.columns.clone(), self.max_keys);
        let input = self.input.execute(partition, context)?;
        let batch = stream::once(async move {
            let hashes = distinct_hashes(input, &columns, max_keys, metrics.elapsed_compute()).await?;
            gave_up.add(usize::from(hashes.is_none()));
            let hashes = hashes.map_or_else(|| UInt64Array::new_null(1), UInt64Array::from);
            metrics.record_output(hashes.len());
            Ok(RecordBatch::try_new(schema(), vec![Arc::new(hashes)])?)
        });
        let batch = Box::pin(RecordBatchStreamAdapter::new(self.schema(), batch));
        Ok(Box::pin(BatchSplitStream::new(batch, batch_size, SplitMetrics::new(&self.metrics, partition))))
    }
}

/// `None` if there are more than `max_keys`, in which case the rest of the input is not read.
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
    while let Some(batch) = input.try_next().await? {
        let _timer = time.timer();
        let (batch_hashes, valid) = hash(&batch, columns)?;
        match valid {
            Some(valid) => hashes.extend(valid.valid_indices().map(|row| batch_hashes[row])),
            None => hashes.extend(batch_hashes),
        }
        // Duplicates are removed only when the list may hold twice the most keys, so that each key is sorted few times.
        if hashes.len() > max_keys.saturating_mul(2) && !compact(&mut hashes) {
            return Ok(None);
        }
    }
    let _timer = time.timer();
    Ok(compact(&mut hashes).then_some(hashes))
}

/// The names of columns, for `EXPLAIN`.
pub fn names(input: &Plan, columns: &[usize]) -> String {
    let schema = input.schema();
    columns.iter().map(|&i| format!("{}@{i}", schema.field(i).name())).collect::<Vec<_>>().join(", ")
}

/// The hash of each row's key, and which rows have a key. A row with a null in any of the columns has none, because a
/// join finds no partner for it.
pub fn hash(batch: &RecordBatch, columns: &[usize]) -> Result<(Vec<u64>, Option<NullBuffer>)> {
    let (mut hashes, mut valid) = (Vec::new(), None);
    for &column in columns {
        let column = batch.column(column);
        valid = NullBuffer::union(valid.as_ref(), column.logical_nulls().as_ref());
        let stored = match stored_type(column.data_type()) {
            Some(stored) if stored == *column.data_type() => Arc::clone(column),
            Some(stored) => make_array(column.to_data().into_builder().data_type(stored).build()?),
            None => return internal_err!("join filter: keys cannot be of type {}", column.data_type()),
        };
        let next = keys::hash(&stored, 0)?;
        if hashes.is_empty() {
            hashes = next;
        } else {
            hashes.iter_mut().zip(next).for_each(|(hash, key)| *hash = hash_key(key, *hash));
        }
    }
    Ok((hashes, valid))
}

/// The type as which keys of a type are hashed, such as `Int32` for `Date32`, which has the same bits. `None` for types
/// whose equal values can differ in their bits.
pub fn stored_type(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Date32 | DataType::Time32(_) | DataType::Decimal32(..) => Some(DataType::Int32),
        DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_)
        | DataType::Decimal64(..) => Some(DataType::Int64),
        DataType::Decimal128(..) => Some(DataType::FixedSizeBinary(16)),
        DataType::Decimal256(..) => Some(DataType::FixedSizeBinary(32)),
        DataType::Dictionary(_, values) => {
            stored_type(values).filter(|stored| stored == values.as_ref()).map(|_| data_type.clone())
        }
        DataType::Null => None,
        other => keys::check_type("join filter", other).is_ok().then(|| other.clone()),
    }
}
