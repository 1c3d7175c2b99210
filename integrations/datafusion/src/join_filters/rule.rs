//! The rule decides which joins get a filter, of which side, and where.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::intervals::utils::check_support;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{replace_children_if_necessary, reset_plan_states};
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{
    ExecutionPlanProperties, Statistics, StatisticsArgs, StatisticsContext, displayable,
};
use datafusion_common::stats::Precision;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Result, ScalarValue};

use super::build::JoinFilterBuildExec;
use super::filter::Plan;
use super::options::JoinFilterOptions;
use super::probe::{JoinFilterExec, Keys, Settings};
use super::trace::{Join, candidates, descend, reads_one_table};
use crate::stored_keys::stored_type;

/// What a row costs in nanoseconds of one core, measured with TPC-H on an AMD EPYC (Zen 4). A row is scanned, hashed or
/// looked up, and shuffled and joined. Each of its bytes adds to the cost of shuffling it.
///
/// To measure them again, run the benchmark `tpch` with `DATA=made`, with and without the rule. In "keeps all" with
/// `max_share = 1` and `force`, the rule adds `scanned * SCANNED + (keys + rows) * HASHED` to the CPU time. In "keeps
/// none", it saves `rows * (SHUFFLED + bytes * SHUFFLED_BYTE)`. Two widths of `payload` give the two constants.
const SCANNED: f64 = 30.0;
const HASHED: f64 = 10.0;
const SHUFFLED: f64 = 30.0;
const SHUFFLED_BYTE: f64 = 4.0;

/// The share of rows that is assumed to pass a condition that DataFusion cannot estimate. DataFusion assumes 20%. The
/// rule assumes more for the side that makes the filter, and less for the side that is filtered, so it adds fewer
/// filters.
const OPAQUE_SOURCE: f64 = 0.33;
const OPAQUE_TARGET: f64 = 0.05;

/// A filter that may drop nothing is tried if it may save this many times its cost. So a query loses about 3% at most,
/// by these estimates.
const TRIAL: f64 = 32.0;

/// Puts a [`JoinFilterExec`] in front of joins. It must see the plan before rows are repartitioned.
#[derive(Debug)]
pub struct ShuffledJoinFilters;

impl ShuffledJoinFilters {
    /// The options by which the rule acts. `None` if it does not act.
    pub fn options(config: &ConfigOptions) -> Option<JoinFilterOptions> {
        Some(JoinFilterOptions::of(config)).filter(|options| options.enabled)
    }
}

impl PhysicalOptimizerRule for ShuffledJoinFilters {
    fn name(&self) -> &str {
        "bloomline_shuffled_join_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        let Some(options) = Self::options(config) else { return Ok(plan) };
        let rule = Rule::of(config, options);
        // From the leaves up, because a side that is filtered already makes a better filter of the next one. Where a
        // filter cannot be added, the join stays as it is.
        let add = |plan: Plan| {
            let Some(join) = Join::of(&plan) else { return Ok(Transformed::no(plan)) };
            Ok(match rule.filter_sides(&plan, &join) {
                Ok(filtered) => Transformed::yes(filtered),
                Err((_, reason)) => {
                    log::debug!("no join filter: {reason}: {}", displayable(&*plan).one_line());
                    Transformed::no(plan)
                }
            })
        };
        Ok(plan.transform_up(add)?.data)
    }
}

struct Rule {
    options: JoinFilterOptions,
    max_keys: usize,
    /// A join's smaller side is sent to all tasks if it is below these sizes, so that the larger one is not shuffled.
    broadcast_bytes: f64,
    broadcast_rows: f64,
    statistics: StatisticsContext,
    /// Keeps the plans of which `statistics` caches results, because it finds them by address.
    computed: RefCell<Vec<Plan>>,
}

/// Where the keys of a join's side come from.
struct Side {
    /// The children on the way down from the join.
    path: Vec<usize>,
    /// The operator at the end of the path, and the columns in which it returns the keys.
    plan: Plan,
    columns: Vec<usize>,
    is_shuffled: bool,
}

/// A filter of the keys of `source` for the rows of `target`.
struct Choice {
    source: Side,
    target: Side,
    forecast: Forecast,
}

/// The shares of rows that a filter keeps, and the nanoseconds that it then saves.
struct Forecast {
    /// If the source's table has all keys of the target, as it has for a foreign key.
    share: f64,
    /// If the target's keys are spread evenly over their whole range. At most `share`.
    least_share: f64,
    gain: f64,
}

/// Why a join has no filter. The reason of the attempt that came furthest is the one to tell.
type Why = (u8, &'static str);

/// What is known of the keys of a side before its rows are filtered.
struct Known {
    /// At most how many there are, and whether they were counted.
    most: f64,
    is_counted: bool,
    /// The least and the greatest of integers.
    range: Option<[f64; 2]>,
}

impl Rule {
    fn of(config: &ConfigOptions, options: JoinFilterOptions) -> Self {
        let ballista = config.extensions.iter().find(|(prefix, _)| *prefix == "ballista");
        let entries = ballista.map(|(_, options)| options.entries()).unwrap_or_default();
        let limit = |unit: &str, default: usize| {
            let key = format!("optimizer.broadcast_join_threshold_{unit}");
            let entry = entries.iter().find(|entry| entry.key.ends_with(&key));
            entry.and_then(|entry| entry.value.as_ref()?.parse().ok()).unwrap_or(default as f64)
        };
        Self {
            max_keys: options.max_keys(),
            options,
            broadcast_bytes: limit("bytes", config.optimizer.hash_join_single_partition_threshold),
            broadcast_rows: limit("rows", config.optimizer.hash_join_single_partition_threshold_rows),
            statistics: StatisticsContext::new(),
            computed: RefCell::default(),
        }
    }

    /// A join with the filter that saves most, if one pays.
    fn filter_sides(&self, plan: &Plan, join: &Join) -> Result<Plan, Why> {
        let (candidates, mut why) = (candidates(join), (0, "its keys are not columns of one type"));
        let choices = candidates.iter().flat_map(|keys| [0, 1].map(|to| self.evaluate(plan, join, keys, to)));
        let choices = choices.filter_map(|choice| choice.inspect_err(|&other| why = why.max(other)).ok());
        let best = choices.max_by(|a, b| a.forecast.gain.total_cmp(&b.forecast.gain)).ok_or(why)?;
        self.add(plan, best).map_err(|_| (9, "the planner cannot add it"))
    }

    fn add(&self, plan: &Plan, best: Choice) -> Result<Plan> {
        // A scan may hand out its files to whoever asks first, so it must not be in the plan twice.
        let source = narrowed(&reset_plan_states(best.source.plan)?, &best.source.columns)?;
        let keys = Arc::new(JoinFilterBuildExec::new(source, self.max_keys));
        let Side { plan: rows, columns, path, .. } = best.target;
        let Forecast { share, least_share, .. } = best.forecast;
        let settings = Settings { columns, share, least_share, options: self.options.clone() };
        replace(plan, &path, Arc::new(JoinFilterExec::new(rows, Keys::of(keys), settings)))
    }

    /// A filter of the side that is not `to`, for the rows of side `to`.
    fn evaluate(&self, plan: &Plan, join: &Join, keys: &[[usize; 2]], to: usize) -> Result<Choice, Why> {
        if !join.may_drop(to) {
            return Err((1, "rows without a partner are in its result"));
        }
        let traced = self.trace(join, keys, 1 - to).zip(self.trace(join, keys, to));
        let (source, target) = traced.ok_or((2, "its keys are of a type without a hash"))?;
        if !reads_one_table(&source.plan) {
            return Err((3, "the keys are not those of one table"));
        }
        // They would be built one after the other, which delays the join.
        if filters(&source.plan) > 1 {
            return Err((4, "the table of the keys has filters already"));
        }
        // The filter collects full batches, so the last rows of an endless table would never be returned.
        if target.plan.boundedness().is_unbounded() {
            return Err((5, "the rows have no end"));
        }
        let forecast = match self.forecast(plan, &source, &target) {
            Err(_) if self.options.force => Forecast { share: 1.0, least_share: 1.0, gain: 0.0 },
            forecast => forecast?,
        };
        Ok(Choice { source, target, forecast })
    }

    /// Follows the keys of a side down from the join to the scan of their table, as far as it goes. `None` if keys of
    /// their types cannot be hashed.
    fn trace(&self, join: &Join, keys: &[[usize; 2]], side: usize) -> Option<Side> {
        let mut columns: Vec<_> = keys.iter().map(|key| key[side]).collect();
        let (mut plan, mut path, mut is_shuffled) = (join.sides[side], vec![side], false);
        while !reads_one_table(plan)
            && let Some((child, below)) = descend(plan, &columns)
        {
            is_shuffled |= plan.is::<AggregateExec>() || self.shuffles(plan);
            (plan, columns) = (plan.children()[child], below);
            path.push(child);
        }
        let schema = plan.schema();
        let is_hashable = columns.iter().all(|&i| stored_type(schema.field(i).data_type()).is_some());
        is_hashable.then(|| Side { path, plan: Arc::clone(plan), columns, is_shuffled })
    }

    /// What a filter is expected to keep and to save, if that pays.
    fn forecast(&self, join: &Plan, source: &Side, target: &Side) -> Result<Forecast, Why> {
        let [from, to] = [source, target].map(|side| self.keys(&side.plan, &side.columns));
        let rows = [(source, OPAQUE_SOURCE), (target, OPAQUE_TARGET)]
            .map(|(side, opaque)| self.rows(&side.plan, opaque));
        let (Some(scanned), [Some(keys), Some(rows)]) = (self.scanned(&source.plan), rows) else {
            return Err((6, "the tables have no statistics"));
        };
        let (share, least_share) =
            shares(keys, from.as_ref(), to.as_ref()).ok_or((6, "the keys have no statistics"))?;
        let cost = scanned * SCANNED + keys * HASHED;
        let row = SHUFFLED + SHUFFLED_BYTE * width(&target.plan.schema());
        let gain = |share| rows * ((1.0 - share) * row - HASHED) - cost;
        let pays = |share, least| share <= self.options.expected_share && gain(share) >= least;
        let least = self.options.min_saved_ms as f64 * 1e6;
        // A filter that keeps too many rows is not asked again after a sample of them.
        let sampled = target.plan.output_partitioning().partition_count() * self.options.sample_rows;
        let trial = TRIAL * (cost + rows.min(sampled as f64) * HASHED);
        let is_trial =
            !pays(share, least) && source.columns.len() == 1 && pays(least_share, least.max(trial));
        let gain = gain(if is_trial { least_share } else { share });
        let why = if keys > self.max_keys as f64 {
            (7, "it has more keys than max_bytes allow")
        } else if !is_trial && !pays(share, least) {
            (8, "it would keep more than expected_share of the rows, or save less than min_saved_ms")
        } else if !target.is_shuffled && !self.shuffles(join) {
            (9, "a side is small enough to be sent to all tasks")
        } else {
            return Ok(Forecast { share, least_share, gain });
        };
        if self.options.force { Ok(Forecast { share, least_share, gain }) } else { Err(why) }
    }

    /// Whether a join is expected to shuffle its sides.
    fn shuffles(&self, plan: &Plan) -> bool {
        let is_small = |side: &&Plan| {
            let statistics = self.statistics(side);
            match (known(&statistics.total_byte_size), known(&statistics.num_rows)) {
                (Some(bytes), _) => bytes < self.broadcast_bytes,
                (None, Some(rows)) => rows < self.broadcast_rows,
                (None, None) => false,
            }
        };
        Join::of(plan).is_some_and(|join| !join.sides.iter().any(is_small))
    }

    /// The statistics of a plan, unknown if an operator fails to compute them.
    fn statistics(&self, plan: &Plan) -> Arc<Statistics> {
        self.computed.borrow_mut().push(Arc::clone(plan));
        let statistics = self.statistics.compute(plan.as_ref(), &StatisticsArgs::new());
        statistics.unwrap_or_else(|_| Arc::new(Statistics::new_unknown(&plan.schema())))
    }

    /// The rows that a plan is expected to return. `opaque` is the share of a condition that cannot be estimated.
    fn rows(&self, plan: &Plan, opaque: f64) -> Option<f64> {
        let share = if let Some(filter) = plan.downcast_ref::<JoinFilterExec>() {
            filter.settings.share
        } else if let Some(filter) = plan.downcast_ref::<FilterExec>()
            && !check_support(filter.predicate(), &filter.input().schema())
        {
            opaque
        } else if plan.is::<ProjectionExec>() {
            1.0
        } else {
            return known(&self.statistics(plan).num_rows);
        };
        Some(share * self.rows(plan.children()[0], opaque)?)
    }

    /// The rows that the scans below a plan read.
    fn scanned(&self, plan: &Plan) -> Option<f64> {
        if plan.children().is_empty() {
            return self.rows(plan, 1.0);
        }
        plan.children().into_iter().map(|plan| self.scanned(plan)).sum()
    }

    fn keys(&self, plan: &Plan, columns: &[usize]) -> Option<Known> {
        if let Some((child, columns)) = descend(plan, columns) {
            return self.keys(plan.children()[child], &columns);
        }
        let statistics = self.statistics(plan);
        let rows = known(&statistics.num_rows);
        let &[column] = columns else { return Some(Known { most: rows?, is_counted: false, range: None }) };
        let column = statistics.column_statistics.get(column)?;
        let bound =
            |value: &Precision<ScalarValue>| match value.get_value()?.cast_to(&DataType::Int64).ok()? {
                ScalarValue::Int64(bound) => bound.map(|bound| bound as f64),
                _ => None,
            };
        let range = bound(&column.min_value).zip(bound(&column.max_value)).map(|(min, max)| [min, max + 1.0]);
        let counted = known(&column.distinct_count);
        let most = counted.or(range.map(|[min, end]| end - min));
        let most = [most, rows].into_iter().flatten().reduce(f64::min)?.max(1.0);
        Some(Known { most, is_counted: counted.is_some(), range })
    }
}

/// The share of rows that a filter of so many keys of the source keeps, and the least that it may be.
///
/// If the target's keys were not counted, `most` is often far too high, for example for a foreign key. So `share` then
/// divides by the smaller of both numbers, as if the source's table had all keys of the target.
fn shares(keys: f64, source: Option<&Known>, target: Option<&Known>) -> Option<(f64, f64)> {
    let (Some(source), Some(target)) = (source, target) else {
        let share = (keys / source.or(target)?.most).min(1.0);
        return Some((share, share));
    };
    let all = source.most.max(target.most);
    let share = keys / if target.is_counted { all } else { source.most.min(target.most) };
    let least_share = match (source.range, target.range) {
        (Some([a, b]), Some([c, d])) => (b.min(d) - a.max(c)).max(0.0) / (d - c) * (keys / (b - a)).min(1.0),
        _ => keys / all,
    };
    Some((share.min(1.0), least_share.min(share).min(1.0)))
}

/// These columns of a plan. DataFusion pushes a projection into a scan, but not below a condition on other columns.
fn narrowed(plan: &Plan, columns: &[usize]) -> Result<Plan> {
    let (mut plan, mut columns) = (Arc::clone(plan), columns.to_vec());
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        if let Some(kept) = filter.projection() {
            columns.iter_mut().for_each(|column| *column = kept[*column]);
        }
        let read: BTreeSet<usize> =
            collect_columns(filter.predicate()).iter().map(Column::index).chain(columns.clone()).collect();
        let read: Vec<usize> = read.into_iter().collect();
        let place = |column: usize| read.partition_point(|&read| read < column);
        let moved = |part: PhysicalExprRef| {
            Ok(match part.downcast_ref::<Column>() {
                Some(column) => {
                    Transformed::yes(Arc::new(Column::new(column.name(), place(column.index()))) as _)
                }
                None => Transformed::no(part),
            })
        };
        let predicate = Arc::clone(filter.predicate()).transform(moved)?.data;
        let input = narrowed(filter.input(), &read)?;
        let selectivity = filter.default_selectivity();
        let filter =
            FilterExecBuilder::new(predicate, input).with_default_selectivity(selectivity).build()?;
        columns.iter_mut().for_each(|column| *column = place(*column));
        plan = Arc::new(filter);
    }
    let schema = plan.schema();
    let column =
        |i: usize| (Arc::new(Column::new(schema.field(i).name(), i)) as _, schema.field(i).name().clone());
    let columns: Vec<(PhysicalExprRef, String)> = columns.into_iter().map(column).collect();
    Ok(Arc::new(ProjectionExec::try_new(columns, plan)?))
}

/// Replaces the operator at the end of a path.
fn replace(plan: &Plan, path: &[usize], with: Plan) -> Result<Plan> {
    let Some((&child, path)) = path.split_first() else { return Ok(with) };
    let mut children: Vec<Plan> = plan.children().into_iter().cloned().collect();
    children[child] = replace(&children[child], path, with)?;
    replace_children_if_necessary(Arc::clone(plan), children)
}

/// How many filters a plan has.
fn filters(plan: &Plan) -> usize {
    usize::from(plan.is::<JoinFilterExec>()) + plan.children().into_iter().map(filters).sum::<usize>()
}

fn known(number: &Precision<usize>) -> Option<f64> {
    number.get_value().map(|&number| number as f64)
}

/// About how many bytes a row has.
fn width(schema: &Schema) -> f64 {
    schema.fields().iter().map(|field| field.data_type().primitive_width().unwrap_or(24) as f64).sum()
}
