//! `JoinFilterExec`: drops the rows of the larger side that surely have no partner.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use arrow::array::{Array, AsArray, BooleanArray};
use arrow::buffer::{BooleanBuffer, Buffer};
use arrow::compute::BatchCoalescer;
use arrow::datatypes::{DataType, UInt64Type};
use arrow::record_batch::RecordBatch;
use bloomline::BloomFilter;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PhysicalExpr, PlanProperties, Statistics,
};
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{DataFusionError, Result, internal_err};
use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, Stream, StreamExt, TryFutureExt, TryStreamExt, stream};

use super::keys::{Plan, hash, names};
use super::options::JoinFilterOptions;

/// Drops rows of the first child whose key is surely not among the keys of the second, a [`JoinFilterBuildExec`]. May
/// keep all rows.
///
/// [`JoinFilterBuildExec`]: super::JoinFilterBuildExec
#[derive(Debug)]
pub struct JoinFilterExec {
    input: Plan,
    keys: Plan,
    pub(super) columns: Vec<usize>,
    /// The share of rows that the planner expects to be kept.
    pub(super) expected_share: f64,
    pub(super) options: JoinFilterOptions,
    filter: OnceLock<SharedFilter>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl JoinFilterExec {
    pub(super) fn new(
        input: Plan,
        keys: Plan,
        columns: Vec<usize>,
        expected_share: f64,
        options: JoinFilterOptions,
    ) -> Self {
        let properties = Arc::clone(input.properties());
        Self {
            input,
            keys,
            columns,
            expected_share,
            options,
            filter: OnceLock::new(),
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl DisplayAs for JoinFilterExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let names = names(&self.input, &self.columns);
        write!(f, "JoinFilterExec: keys=[{names}], expected_share={:.3}", self.expected_share)
    }
}

impl ExecutionPlan for JoinFilterExec {
    fn name(&self) -> &str {
        "JoinFilterExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input, &self.keys]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        let Ok([input, keys]) = <[Plan; 2]>::try_from(children) else {
            return internal_err!("{} has two children", self.name());
        };
        let options = self.options.clone();
        Ok(Arc::new(Self::new(input, keys, self.columns.clone(), self.expected_share, options)))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![
            Distribution::UnspecifiedDistribution,
            Distribution::SinglePartition,
        ])
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

    /// Those of the input, unreduced: a join that trusts a wrong guess may send the larger side to every task.
    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::new(inputs[0].as_ref().clone().to_inexact()))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let filter = || Filter::of(Arc::clone(&self.keys), self.options.clone(), Arc::clone(&context));
        let filter = self.filter.get_or_init(|| filter().map_err(Arc::new).boxed().shared()).clone();
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let [rows_in, rows_dropped, switched_off] = ["rows_in", "rows_dropped", "switched_off"]
            .map(|name| MetricBuilder::new(&self.metrics).counter(name, partition));
        let (columns, options, schema) = (self.columns.clone(), self.options.clone(), self.schema());
        let batch_size = context.session_config().batch_size();
        let rows = async move {
            let filter = filter.await.map_err(DataFusionError::Shared)?;
            Ok::<_, DataFusionError>(Rows {
                input: (!matches!(*filter, Filter::Nothing)).then_some(input),
                filter,
                columns,
                options,
                window: Window::default(),
                has_dictionaries: schema
                    .flattened_fields()
                    .iter()
                    .any(|field| matches!(field.data_type(), DataType::Dictionary(..))),
                kept: BatchCoalescer::new(schema, batch_size)
                    .with_biggest_coalesce_batch_size(Some(batch_size / 2)),
                metrics,
                rows_in,
                rows_dropped,
                switched_off,
            })
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream::once(rows).try_flatten())))
    }
}

/// The filter once it is made, by whichever partition waits for it. It is made once, even if that fails.
type SharedFilter = Shared<BoxFuture<'static, Result<Arc<Filter>, Arc<DataFusionError>>>>;

/// The filter that all partitions of a task ask.
#[derive(Debug)]
enum Filter {
    /// Keeps all rows.
    All,
    /// Keeps none: there is no key.
    Nothing,
    Of(BloomFilter, #[expect(dead_code, reason = "held as long as the filter")] MemoryReservation),
}

impl Filter {
    async fn of(keys: Plan, options: JoinFilterOptions, context: Arc<TaskContext>) -> Result<Arc<Self>> {
        // A rule that enforces distributions has one partition made of them. Without it, some keys would be missing.
        if keys.output_partitioning().partition_count() != 1 {
            return Ok(Arc::new(Self::All));
        }
        let max_keys = options.max_keys();
        let reservation = MemoryConsumer::new("JoinFilterExec").register(context.memory_pool());
        let mut batches = keys.execute(0, context)?;
        let mut hashes: Vec<u64> = Vec::new();
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            let column = batch.column(0).as_primitive::<UInt64Type>();
            let is_too_large = hashes.len() + column.len() > max_keys;
            if column.null_count() > 0
                || is_too_large
                || reservation.try_grow(size_of_val(&column.values()[..])).is_err()
            {
                return Ok(Arc::new(Self::All));
            }
            hashes.extend_from_slice(column.values());
        }
        if hashes.is_empty() {
            return Ok(Arc::new(Self::Nothing));
        }
        let Ok(mut filter) = BloomFilter::with_fpr(hashes.len(), options.fpr) else {
            return Ok(Arc::new(Self::All));
        };
        if reservation.try_resize(filter.byte_len()).is_err() {
            return Ok(Arc::new(Self::All));
        }
        filter.insert_batch(&hashes);
        Ok(Arc::new(Self::Of(filter, reservation)))
    }
}

/// Rows since the share of kept ones was compared last.
#[derive(Default)]
struct Window {
    rows: usize,
    kept: usize,
}

/// The rows of one partition that may have partners.
struct Rows {
    /// `None` once it has ended.
    input: Option<SendableRecordBatchStream>,
    filter: Arc<Filter>,
    columns: Vec<usize>,
    options: JoinFilterOptions,
    window: Window,
    kept: BatchCoalescer,
    has_dictionaries: bool,
    metrics: BaselineMetrics,
    rows_in: Count,
    rows_dropped: Count,
    switched_off: Count,
}

impl Rows {
    /// Keeps the rows that may have partners. Returns the batch if all rows are kept.
    fn push(&mut self, batch: RecordBatch) -> Result<Option<RecordBatch>> {
        let Filter::Of(filter, _) = self.filter.as_ref() else { return Ok(Some(batch)) };
        let rows = batch.num_rows();
        let (hashes, valid) = hash(&batch, &self.columns)?;
        let mut bits = vec![0; rows.div_ceil(8)];
        filter.contains_bitmap(&hashes, &mut bits);
        let mut found = BooleanBuffer::new(Buffer::from_vec(bits), 0, rows);
        if let Some(valid) = valid {
            found = &found & valid.inner();
        }
        let found = BooleanArray::new(found, None);
        let kept = found.true_count();
        self.rows_in.add(rows);
        self.rows_dropped.add(rows - kept);
        self.kept.push_batch_with_filter(batch, &found)?;

        self.window.rows += rows;
        self.window.kept += kept;
        if self.window.rows >= self.options.sample_rows {
            let window = std::mem::take(&mut self.window);
            if window.kept as f64 > self.options.max_share * window.rows as f64 {
                self.filter = Arc::new(Filter::All);
                self.switched_off.add(1);
                self.kept.finish_buffered_batch()?;
            }
        }
        // Values of several dictionaries may be too many for one.
        if self.has_dictionaries {
            self.kept.finish_buffered_batch()?;
        }
        Ok(None)
    }
}

impl Stream for Rows {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(batch) = self.kept.next_completed_batch() {
                return self.metrics.record_poll(Poll::Ready(Some(Ok(batch))));
            }
            let Some(input) = &mut self.input else { return Poll::Ready(None) };
            let next = ready!(input.poll_next_unpin(context));
            let time = self.metrics.elapsed_compute().clone();
            let _timer = time.timer();
            match next {
                Some(batch) => {
                    if let Some(batch) = batch.and_then(|batch| self.push(batch))? {
                        return self.metrics.record_poll(Poll::Ready(Some(Ok(batch))));
                    }
                }
                None => {
                    self.input = None;
                    self.kept.finish_buffered_batch()?;
                }
            }
        }
    }
}
