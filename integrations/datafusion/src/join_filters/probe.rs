//! `JoinFilterExec` drops the rows of the larger side that surely have no partner.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, AsArray, BooleanArray};
use arrow::buffer::{BooleanBuffer, Buffer};
use arrow::compute::BatchCoalescer;
use arrow::datatypes::{DataType, Field, UInt64Type};
use arrow::record_batch::RecordBatch;
use bloomline::BloomFilter;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties, Statistics, StatisticsArgs,
};
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{DataFusionError, Result, internal_err};
use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, TryFutureExt, TryStreamExt, stream};

use super::build::{Plan, hash, names};
use super::options::JoinFilterOptions;

/// Drops rows of the first child whose key is surely not among the keys of the second child, which is a
/// [`JoinFilterBuildExec`]. It may keep all rows.
///
/// [`JoinFilterBuildExec`]: super::JoinFilterBuildExec
#[derive(Debug)]
pub struct JoinFilterExec {
    input: Plan,
    keys: Plan,
    pub(super) settings: Settings,
    filter: OnceLock<SharedFilter>,
    metrics: ExecutionPlanMetricsSet,
}

/// What the planner decides.
#[derive(Clone, Debug)]
pub struct Settings {
    pub columns: Vec<usize>,
    /// The share of rows that the filter is expected to keep.
    pub expected_share: f64,
    pub options: JoinFilterOptions,
}

impl JoinFilterExec {
    pub(super) fn new(input: Plan, keys: Plan, settings: Settings) -> Self {
        Self { input, keys, settings, filter: OnceLock::new(), metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl DisplayAs for JoinFilterExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let names = names(&self.input, &self.settings.columns);
        write!(f, "JoinFilterExec: keys=[{names}], expected_share={:.3}", self.settings.expected_share)
    }
}

impl ExecutionPlan for JoinFilterExec {
    fn name(&self) -> &str {
        Self::static_name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input, &self.keys]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        let Ok([input, keys]) = <[Plan; 2]>::try_from(children) else {
            return internal_err!("{} has two children", self.name());
        };
        Ok(Arc::new(Self::new(input, keys, self.settings.clone())))
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let (input, keys) = (Distribution::UnspecifiedDistribution, Distribution::SinglePartition);
        InputDistributionRequirements::new(vec![input, keys])
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true, false]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition), ChildStats::Skip]
    }

    /// The input's, unreduced, because a join that trusts a wrong guess may send the larger side to all tasks.
    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::new(inputs[0].as_ref().clone().to_inexact()))
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
        let settings = self.settings.clone();
        let filter = || Filter::of(Arc::clone(&self.keys), settings.options.clone(), Arc::clone(&context));
        let filter = || filter().map_ok(|filter| filter.map(Arc::new)).map_err(Arc::new).boxed().shared();
        let filter = self.filter.get_or_init(filter).clone();
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let counts = ["rows_in", "rows_dropped", "switched_off"]
            .map(|name| MetricBuilder::new(&self.metrics).counter(name, partition));
        let (schema, batch_size) = (self.schema(), context.session_config().batch_size());
        let is_dictionary = |field: &&Field| matches!(field.data_type(), DataType::Dictionary(..));
        // Batches with dictionaries are not combined, because one dictionary may not hold the values of several.
        let has_dictionaries = schema.flattened_fields().iter().any(is_dictionary);
        let largest = if has_dictionaries { 0 } else { batch_size / 2 };
        let kept = BatchCoalescer::new(schema, batch_size).with_biggest_coalesce_batch_size(Some(largest));
        let rows = async move {
            let filter = filter.await.map_err(DataFusionError::Shared)?;
            let is_empty = filter.as_ref().is_some_and(|filter| filter.bits.known_keys() == Some(0));
            let rows = Rows {
                input: (!is_empty).then_some(input),
                filter,
                settings,
                window_rows: 0,
                window_kept: 0,
                kept,
                metrics,
                counts,
            };
            Ok::<_, DataFusionError>(stream::try_unfold(rows, async |mut rows: Rows| {
                Ok(rows.next().await?.map(|batch| (batch.record_output(&rows.metrics), rows)))
            }))
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream::once(rows).try_flatten())))
    }
}

/// The filter, which is made once for all partitions, by whichever of them waits for it. A failure is not tried again.
type SharedFilter = Shared<BoxFuture<'static, Result<Option<Arc<Filter>>, Arc<DataFusionError>>>>;

/// The filter that all partitions of a task ask.
#[derive(Debug)]
struct Filter {
    bits: BloomFilter,
    _memory: MemoryReservation,
}

impl Filter {
    /// `None` to keep all rows.
    async fn of(keys: Plan, options: JoinFilterOptions, context: Arc<TaskContext>) -> Result<Option<Self>> {
        // DataFusion merges the partitions of the keys into one. If that rule does not run, some keys would be missing.
        if keys.output_partitioning().partition_count() != 1 {
            return Ok(None);
        }
        let max_keys = options.max_keys();
        let memory = MemoryConsumer::new("JoinFilterExec").register(context.memory_pool());
        let mut batches = keys.execute(0, context)?;
        let mut hashes: Vec<u64> = Vec::new();
        while let Some(batch) = batches.try_next().await? {
            let column = batch.column(0).as_primitive::<UInt64Type>();
            let are_too_many = column.null_count() > 0 || hashes.len() + column.len() > max_keys;
            if are_too_many || memory.try_grow(size_of_val(&column.values()[..])).is_err() {
                return Ok(None);
            }
            hashes.extend_from_slice(column.values());
        }
        let bits = options
            .sizing(hashes.len())
            .and_then(|sizing| BloomFilter::with_sizing(sizing.rounded_to_fold()));
        let Ok(mut bits) = bits else { return Ok(None) };
        if memory.try_resize(bits.byte_len()).is_err() {
            return Ok(None);
        }
        bits.insert_batch(&hashes);
        Ok(Some(Self { bits, _memory: memory }))
    }
}

/// The rows of one partition that may have partners.
struct Rows {
    /// `None` after its end.
    input: Option<SendableRecordBatchStream>,
    /// `None` to keep all rows.
    filter: Option<Arc<Filter>>,
    settings: Settings,
    /// Since the share of kept rows was last compared with `max_share`.
    window_rows: usize,
    window_kept: usize,
    kept: BatchCoalescer,
    metrics: BaselineMetrics,
    /// `rows_in`, `rows_dropped` and `switched_off`.
    counts: [Count; 3],
}

impl Rows {
    /// Keeps the rows that may have partners.
    fn push(&mut self, batch: RecordBatch, filter: &BloomFilter) -> Result<()> {
        let rows = batch.num_rows();
        let (hashes, valid) = hash(&batch, &self.settings.columns)?;
        let mut bits = vec![0; rows.div_ceil(8)];
        filter.contains_bitmap(&hashes, &mut bits);
        let found = BooleanArray::new(BooleanBuffer::new(Buffer::from_vec(bits), 0, rows), valid);
        let kept = found.true_count();
        let [rows_in, rows_dropped, switched_off] = &self.counts;
        rows_in.add(rows);
        rows_dropped.add(rows - kept);
        self.kept.push_batch_with_filter(batch, &found)?;

        self.window_rows += rows;
        self.window_kept += kept;
        if self.window_rows >= self.settings.options.sample_rows {
            if self.window_kept as f64 > self.settings.options.max_share * self.window_rows as f64 {
                self.filter = None;
                switched_off.add(1);
                self.kept.finish_buffered_batch()?;
            }
            (self.window_rows, self.window_kept) = (0, 0);
        }
        Ok(())
    }

    /// The next rows that may have partners. `None` at the end.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.kept.next_completed_batch() {
                return Ok(Some(batch));
            }
            let Some(input) = &mut self.input else { return Ok(None) };
            let Some(batch) = input.try_next().await? else {
                self.input = None;
                self.kept.finish_buffered_batch()?;
                continue;
            };
            let Some(filter) = self.filter.clone() else { return Ok(Some(batch)) };
            let time = self.metrics.elapsed_compute().clone();
            let _timer = time.timer();
            self.push(batch, &filter.bits)?;
        }
    }
}
