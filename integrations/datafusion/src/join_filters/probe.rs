//! `JoinFilterExec` drops the rows of the larger side that surely have no partner.

use std::fmt;
use std::sync::{Arc, Mutex};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::buffer::{BooleanBuffer, Buffer};
use arrow::compute::{BatchCoalescer, concat_batches, filter_record_batch};
use arrow::datatypes::{DataType, FieldRef, Schema, UInt64Type};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use bloomline::BloomFilter;
use datafusion::config::ConfigOptions;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExprRef, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterDescription, ChildPushdownResult, FilterDescription, FilterPushdownPhase,
    FilterPushdownPropagation,
};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::projection::{ProjectionExec, all_columns, make_with_child};
use datafusion::physical_plan::proto::ExecutionPlanEncodeCtx;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties, SortOrderPushdownResult, Statistics, StatisticsArgs,
};
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{DataFusionError, Result, internal_err};
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::future::{BoxFuture, Shared, ready};
use futures::{FutureExt, TryStreamExt, stream};

use super::filter::{Filter, Plan, Reason, TOO_MANY_KEYS, count, failed, names, reserve};
use super::options::JoinFilterOptions;
use super::tap::{Link, Run, lock};
use crate::row_keys::hash_rows;

/// Drops rows of the first child whose key is surely not among the keys of a [`JoinFilterTapExec`], or of the second
/// child, which is a [`JoinFilterBuildExec`]. It may keep all rows.
///
/// [`JoinFilterTapExec`]: super::JoinFilterTapExec
/// [`JoinFilterBuildExec`]: super::JoinFilterBuildExec
#[derive(Debug)]
pub struct JoinFilterExec {
    input: Plan,
    pub(super) keys: Keys,
    pub(super) settings: Settings,
    metrics: ExecutionPlanMetricsSet,
}

/// Where the keys come from.
#[derive(Debug)]
pub enum Keys {
    /// From the rows on their way to the join, in the same process.
    Tap(Arc<Link>),
    /// From a second read. The filter, and how many partitions have asked for it, are what the mutex holds.
    Build(Plan, Mutex<(Option<SharedFilter>, usize)>),
}

/// What the planner decides.
#[derive(Clone, Debug)]
pub struct Settings {
    pub columns: Vec<usize>,
    /// The share of rows that the filter is expected to keep, and the least that it may be. A tap makes no forecast.
    pub share: f64,
    pub least_share: f64,
    pub options: JoinFilterOptions,
}

impl JoinFilterExec {
    pub(super) fn new(input: Plan, keys: Keys, settings: Settings) -> Self {
        Self { input, keys, settings, metrics: ExecutionPlanMetricsSet::new() }
    }

    pub(super) fn with_keys(&self, keys: Keys) -> Plan {
        Arc::new(Self::new(Arc::clone(&self.input), keys, self.settings.clone()))
    }

    fn with_input(&self, input: Plan, settings: Settings) -> Plan {
        let keys = match &self.keys {
            Keys::Tap(link) => Keys::Tap(link.renewed()),
            Keys::Build(keys, _) => Keys::of(Arc::clone(keys)),
        };
        Arc::new(Self::new(input, keys, settings))
    }
}

impl Keys {
    pub fn of(build: Plan) -> Self {
        Self::Build(build, Mutex::default())
    }

    /// The filter for one of so many partitions. Of a second read, it is made once for all partitions, by whichever of
    /// them waits for it. The last of them takes it, so that its memory is released with the query, and not with the
    /// plan. If the plan runs again, it keeps all rows, because the scan of the keys has handed out its files.
    fn filter(&self, partitions: usize, options: &JoinFilterOptions, context: &Arc<TaskContext>) -> Answer {
        let (keys, state) = match self {
            Self::Tap(link) => return Answer::Pending(link.run()),
            Self::Build(keys, state) => (keys, state),
        };
        let mut state = lock(state);
        let (shared, users) = &mut *state;
        *users += 1;
        let filter = match shared.take() {
            Some(filter) => filter,
            None if *users > 1 => ready(Err("run_again")).boxed().shared(),
            None => read(Arc::clone(keys), options.clone(), Arc::clone(context)).boxed().shared(),
        };
        if *users < partitions {
            *shared = Some(filter.clone());
        }
        Answer::Read(filter)
    }
}

/// What a partition knows of the filter.
enum Answer {
    /// To be waited for.
    Read(SharedFilter),
    /// There may be one with the next batch.
    Pending(Arc<Mutex<Run>>),
    Filter(Arc<Filter>),
    /// All rows are kept.
    None,
}

impl DisplayAs for JoinFilterExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let Settings { columns, share, least_share, .. } = &self.settings;
        write!(f, "JoinFilterExec: keys=[{}]", names(&self.input, columns))?;
        match self.keys {
            Keys::Tap(_) => Ok(()),
            _ if least_share < share => write!(f, ", expected_share={least_share:.3}..{share:.3}"),
            _ => write!(f, ", expected_share={share:.3}"),
        }
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
        match &self.keys {
            Keys::Tap(_) => vec![&self.input],
            Keys::Build(keys, _) => vec![&self.input, keys],
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        let keys = match (&self.keys, &children[..]) {
            (Keys::Tap(link), [_]) => Keys::Tap(link.renewed()),
            (Keys::Build(..), [_, keys]) => Keys::of(Arc::clone(keys)),
            _ => return internal_err!("{} has not {} children", self.name(), children.len()),
        };
        Ok(Arc::new(Self::new(Arc::clone(&children[0]), keys, self.settings.clone())))
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let (input, keys) = (Distribution::UnspecifiedDistribution, Distribution::SinglePartition);
        InputDistributionRequirements::new([input, keys].into_iter().take(self.children().len()).collect())
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        [true, false][..self.children().len()].to_vec()
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        [ChildStats::At(partition), ChildStats::Skip][..self.children().len()].to_vec()
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

    /// Filters of the operators above go on to the input, and not to the keys. A filter finds its columns by name, so
    /// if several columns share one, only the first is offered, because the filter would read that one.
    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        filters: Vec<PhysicalExprRef>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let schema = self.schema();
        let is_first = |&i: &usize| schema.index_of(schema.field(i).name()).is_ok_and(|first| first == i);
        let columns = (0..schema.fields().len()).filter(is_first).collect();
        let input = ChildFilterDescription::from_child_with_allowed_indices(&filters, columns, &self.input)?;
        let mut description = FilterDescription::new().with_child(input);
        if let Keys::Build(..) = self.keys {
            description = description.with_child(ChildFilterDescription::all_unsupported(&filters));
        }
        Ok(description)
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Plan>> {
        Ok(FilterPushdownPropagation::if_any(result))
    }

    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<Plan>> {
        let kept = projection.expr();
        let place = |&column: &usize| {
            kept.iter().position(|kept| {
                kept.expr.downcast_ref::<Column>().is_some_and(|kept| kept.index() == column)
            })
        };
        let columns = self.settings.columns.iter().map(place).collect::<Option<Vec<_>>>();
        let is_narrower = all_columns(kept) && kept.len() < self.schema().fields().len();
        let Some(columns) = columns.filter(|_| is_narrower) else { return Ok(None) };
        let input = make_with_child(projection, &self.input)?;
        Ok(Some(self.with_input(input, Settings { columns, ..self.settings.clone() })))
    }

    fn try_pushdown_sort(&self, order: &[PhysicalSortExpr]) -> Result<SortOrderPushdownResult<Plan>> {
        self.input
            .try_pushdown_sort(order)?
            .try_map(|input| Ok(self.with_input(input, self.settings.clone())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    /// Plans travel without the filter of a tap, because the tap may run in a different process.
    fn try_to_proto(&self, context: &ExecutionPlanEncodeCtx<'_>) -> Result<Option<PhysicalPlanNode>> {
        match self.keys {
            Keys::Tap(_) => context.encode_child(&self.input).map(Some),
            Keys::Build(..) => Ok(None),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (settings, reasons) = (self.settings.clone(), self.metrics.clone());
        let partitions = self.input.output_partitioning().partition_count();
        let mut filter = self.keys.filter(partitions, &settings.options, &context);
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let counts =
            ["rows_in", "rows_dropped", "switched_off"].map(|name| count(&self.metrics, name, partition));
        let (schema, batch_size) = (self.schema(), context.session_config().batch_size());
        let combine = Combine::of(&schema, batch_size);
        let narrow =
            (combine == Combine::Try).then(|| (RecordBatch::new_empty(Arc::clone(&schema)), batch_size));
        let largest = if combine == Combine::Always { batch_size / 2 } else { 0 };
        let kept = BatchCoalescer::new(schema, batch_size).with_biggest_coalesce_batch_size(Some(largest));
        let give_up = move |reason| count(&reasons, reason, partition).add(1);
        let rows = async move {
            if let Answer::Read(read) = filter {
                filter =
                    read.await.inspect_err(|reason| give_up(reason)).map_or(Answer::None, Answer::Filter);
            }
            let is_empty = matches!(&filter, Answer::Filter(filter) if filter.bits.known_keys() == Some(0));
            let rows = Rows {
                input: (!is_empty).then_some(input),
                error: None,
                filter,
                give_up: Box::new(give_up),
                settings,
                window_rows: 0,
                window_kept: 0,
                looked_up: 0,
                batch_size,
                kept,
                narrow,
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

/// Whether batches can be combined. A combined dictionary may have more values than its index type can number.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Combine {
    Always,
    /// Arrow returns an error if there are too many values.
    Try,
    /// Arrow panics if there are too many values.
    Never,
}

impl Combine {
    fn of(schema: &Schema, batch_size: usize) -> Self {
        use DataType::*;
        let mut all = Self::Always;
        for column in schema.fields() {
            let is_nested = !matches!(column.data_type(), Dictionary(..));
            for field in Schema::new(vec![Arc::clone(column)]).flattened_fields() {
                let Dictionary(key, values) = field.data_type() else { continue };
                let bits = 8 * key.primitive_width().unwrap_or_default();
                let is_merged =
                    values.is_primitive() || matches!(**values, Utf8 | LargeUtf8 | Binary | LargeBinary);
                all = all.max(match bits {
                    32.. => Self::Always,
                    _ if is_nested || !is_merged => Self::Never,
                    _ if batch_size >> (bits - 1) > 0 => Self::Try,
                    _ => Self::Always,
                });
            }
        }
        all
    }
}

type SharedFilter = Shared<BoxFuture<'static, Result<Arc<Filter>, Reason>>>;

/// Reads the keys of a second read.
async fn read(
    keys: Plan,
    options: JoinFilterOptions,
    context: Arc<TaskContext>,
) -> Result<Arc<Filter>, Reason> {
    // DataFusion merges the partitions of the keys into one. If that rule does not run, some keys would be missing.
    if keys.output_partitioning().partition_count() != 1 {
        return Err("keys_not_merged");
    }
    let (max_keys, pool) = (options.max_keys(), context.memory_pool());
    let memory = MemoryConsumer::new("JoinFilterExec").register(pool);
    let mut batches = keys.execute(0, Arc::clone(&context)).map_err(failed)?;
    let mut hashes: Vec<u64> = Vec::new();
    while let Some(batch) = batches.try_next().await.map_err(failed)? {
        let column = batch.column(0).as_primitive::<UInt64Type>();
        if column.null_count() > 0 {
            return Err("keys_gave_up");
        }
        if hashes.len() + column.len() > max_keys {
            return Err(TOO_MANY_KEYS);
        }
        hashes.extend_from_slice(column.values());
        reserve(&memory, hashes.capacity() * size_of::<u64>(), &**pool)?;
    }
    Filter::of(&[&hashes], &options, pool)
}

/// The rows kept of so many full batches are combined at most.
const COMBINED: usize = 8;

/// The rows of one partition that may have partners.
struct Rows {
    /// `None` after its end.
    input: Option<SendableRecordBatchStream>,
    /// The input's error. It is returned after the rows before it, because a limit above may end the query first.
    error: Option<DataFusionError>,
    filter: Answer,
    /// Counts a reason for no filter.
    give_up: Box<dyn Fn(Reason) + Send>,
    settings: Settings,
    /// Rows looked up, and rows kept, since the kept share was last compared with `max_share`.
    window_rows: usize,
    window_kept: usize,
    /// Rows looked up since the last flush.
    looked_up: usize,
    batch_size: usize,
    kept: BatchCoalescer,
    /// For [`Combine::Try`], the rows combined so far, and the most rows of a batch.
    narrow: Option<(RecordBatch, usize)>,
    metrics: BaselineMetrics,
    /// `rows_in`, `rows_dropped` and `switched_off`.
    counts: [Count; 3],
}

impl Rows {
    /// Keeps the rows that may have partners.
    fn push(&mut self, batch: &RecordBatch, bits: &BloomFilter) -> Result<()> {
        let rows = batch.num_rows();
        let (hashes, valid) = match hash_rows(batch, &self.settings.columns) {
            Ok(hashed) => hashed,
            Err(error) => {
                (self.give_up)(failed(error));
                self.filter = Answer::None;
                self.keep(batch.clone())?;
                return self.flush();
            }
        };
        let mut found = vec![0; rows.div_ceil(8)];
        bits.contains_bitmap(&hashes, &mut found);
        let found = BooleanArray::new(BooleanBuffer::new(Buffer::from_vec(found), 0, rows), valid);
        let kept = found.true_count();
        self.counts[0].add(rows);
        self.counts[1].add(rows - kept);
        // Not `push_batch_with_filter`, which keeps whole buffers of views for the few rows that it copies.
        self.keep(filter_record_batch(batch, &found)?)?;

        // A limit above may need few of the rows.
        self.looked_up += rows;
        if self.looked_up >= COMBINED * self.batch_size {
            self.flush()?;
        }
        self.window_rows += rows;
        self.window_kept += kept;
        if self.window_rows >= self.settings.options.sample_rows {
            if self.window_kept as f64 > self.settings.options.max_share * self.window_rows as f64 {
                self.filter = Answer::None;
                self.counts[2].add(1);
                self.flush()?;
            }
            (self.window_rows, self.window_kept) = (0, 0);
        }
        Ok(())
    }

    /// Combines small batches.
    fn keep(&mut self, batch: RecordBatch) -> Result<()> {
        let Some((narrow, most)) = &mut self.narrow else { return Ok(self.kept.push_batch(batch)?) };
        match concat_batches(&batch.schema(), [&*narrow, &batch]) {
            Ok(both) if both.num_rows() <= *most => *narrow = both,
            _ => self.kept.push_batch(std::mem::replace(narrow, batch))?,
        }
        Ok(())
    }

    /// Ends the batch that is not full.
    fn flush(&mut self) -> Result<()> {
        self.looked_up = 0;
        if let Some((narrow, _)) = &mut self.narrow {
            let empty = RecordBatch::new_empty(narrow.schema());
            self.kept.push_batch(std::mem::replace(narrow, empty))?;
        }
        Ok(self.kept.finish_buffered_batch()?)
    }

    /// The filter, if there is one by now.
    fn filter(&mut self) -> Option<Arc<Filter>> {
        if let Answer::Pending(run) = &self.filter {
            let filter = lock(run).filter.clone()?;
            self.filter =
                filter.inspect_err(|reason| (self.give_up)(reason)).map_or(Answer::None, Answer::Filter);
        }
        if let Answer::Filter(filter) = &self.filter { Some(Arc::clone(filter)) } else { None }
    }

    /// The next rows that may have partners. `None` at the end.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.kept.next_completed_batch() {
                return Ok(Some(shrunk(batch)?));
            }
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            let Some(input) = &mut self.input else { return Ok(None) };
            match input.try_next().await {
                Ok(Some(batch)) => {
                    let Some(filter) = self.filter() else { return Ok(Some(batch)) };
                    let time = self.metrics.elapsed_compute().clone();
                    let _timer = time.timer();
                    self.push(&batch, &filter.bits)?;
                }
                end => {
                    (self.input, self.filter, self.error) = (None, Answer::None, end.err());
                    self.flush()?;
                }
            }
        }
    }
}

/// Frees the unused capacity of a combined batch, which has room for `batch_size` rows. Operators above would reserve
/// memory for all of it, and a limited pool may not have that.
fn shrunk(batch: RecordBatch) -> Result<RecordBatch> {
    // Arrow refuses a null in a column that may not have one, though no operator did so far.
    let has_null = |(column, field): (&ArrayRef, &FieldRef)| !field.is_nullable() && column.null_count() > 0;
    if batch.columns().iter().zip(batch.schema_ref().fields()).any(has_null) {
        return Ok(batch);
    }
    let (schema, mut columns, rows) = batch.into_parts();
    columns.iter_mut().filter_map(Arc::get_mut).for_each(Array::shrink_to_fit);
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}
