//! The rule decides which joins get a filter, of which side, and where.

use std::cell::RefCell;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::intervals::utils::check_support;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{replace_children_if_necessary, reset_plan_states};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlanProperties, Statistics, StatisticsArgs, StatisticsContext};
use datafusion_common::stats::Precision;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Result, ScalarValue};

use super::build::{JoinFilterBuildExec, Plan};
use super::options::{BloomlineOptions, JoinFilterOptions};
use super::probe::{JoinFilterExec, Settings};
use super::trace::{Join, descend, reads_one_table, source_column};
use crate::row_keys::stored_type;

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
pub struct JoinFilters;

impl JoinFilters {
    /// The options by which the rule acts. `None` if it does not act.
    pub fn options(config: &ConfigOptions) -> Option<JoinFilterOptions> {
        let options = config.extensions.get::<BloomlineOptions>().cloned().unwrap_or_default().join_filters;
        // In one process nothing is shuffled, and DataFusion's joins already filter the scan of their larger side.
        let has_own = config.optimizer.enable_join_dynamic_filter_pushdown
            && config.optimizer.enable_dynamic_filter_pushdown;
        (options.enabled && (options.force || !has_own)).then_some(options)
    }
}

impl PhysicalOptimizerRule for JoinFilters {
    fn name(&self) -> &str {
        "bloomline_join_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        let Some(options) = Self::options(config) else { return Ok(plan) };
        let rule = Rule::of(config, options);
        // From the leaves up, because a side that is filtered already makes a better filter of the next one. Where a
        // filter cannot be added, the join stays as it is.
        let add = |plan: Plan| Ok(rule.filter_sides(&plan).map_or(Transformed::no(plan), Transformed::yes));
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

/// What is known of the keys of a side before its rows are filtered.
struct Keys {
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
    fn filter_sides(&self, plan: &Plan) -> Option<Plan> {
        let join = Join::of(plan)?;
        let candidates = candidates(&join);
        let choices =
            candidates.iter().flat_map(|keys| [0, 1].map(|to| self.evaluate(plan, &join, keys, to)));
        let best = choices.flatten().max_by(|a, b| a.forecast.gain.total_cmp(&b.forecast.gain))?;
        // A scan may hand out its files to whoever asks first, so it must not be in the plan twice.
        let source = reset_plan_states(best.source.plan).ok()?;
        // Only the keys are read. DataFusion pushes the projection into the scan.
        let schema = source.schema();
        let column = |&i: &usize| {
            (Arc::new(Column::new(schema.field(i).name(), i)) as _, schema.field(i).name().clone())
        };
        let columns: Vec<(PhysicalExprRef, String)> = best.source.columns.iter().map(column).collect();
        let source = Arc::new(ProjectionExec::try_new(columns, source).ok()?);
        let keys = Arc::new(JoinFilterBuildExec::new(source, self.max_keys));
        let Side { plan: rows, columns, path, .. } = best.target;
        let Forecast { share, least_share, .. } = best.forecast;
        let settings = Settings { columns, share, least_share, options: self.options.clone() };
        replace(plan, &path, Arc::new(JoinFilterExec::new(rows, keys, settings))).ok()
    }

    /// A filter of the side that is not `to`, for the rows of side `to`.
    fn evaluate(&self, plan: &Plan, join: &Join, keys: &[[usize; 2]], to: usize) -> Option<Choice> {
        let source = join.may_drop(to).then(|| self.trace(join, keys, 1 - to))??;
        // A chain of filters would be built one after the other, which delays the join.
        if !reads_one_table(&source.plan) || filters(&source.plan) > 1 {
            return None;
        }
        let target = self.trace(join, keys, to)?;
        // The filter collects full batches, so the last rows of an endless table would never be returned.
        if target.plan.boundedness().is_unbounded() {
            return None;
        }
        let forecast = self.forecast(plan, &source, &target);
        let unknown = || Forecast { share: 1.0, least_share: 1.0, gain: 0.0 };
        let forecast = forecast.or_else(|| self.options.force.then(unknown))?;
        Some(Choice { source, target, forecast })
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
    fn forecast(&self, join: &Plan, source: &Side, target: &Side) -> Option<Forecast> {
        let (keys, scanned) = (self.rows(&source.plan, OPAQUE_SOURCE)?, self.scanned(&source.plan)?);
        let rows = self.rows(&target.plan, OPAQUE_TARGET)?;
        let [from, to] = [source, target].map(|side| self.keys(&side.plan, &side.columns));
        let (share, least_share) = shares(keys, from.as_ref(), to.as_ref())?;
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
        let acts = keys <= self.max_keys as f64
            && (is_trial || pays(share, least))
            && (target.is_shuffled || self.shuffles(join));
        (acts || self.options.force).then_some(Forecast { share, least_share, gain })
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

    fn keys(&self, plan: &Plan, columns: &[usize]) -> Option<Keys> {
        if let Some((child, columns)) = descend(plan, columns) {
            return self.keys(plan.children()[child], &columns);
        }
        let statistics = self.statistics(plan);
        let rows = known(&statistics.num_rows);
        let &[column] = columns else { return Some(Keys { most: rows?, is_counted: false, range: None }) };
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
        Some(Keys { most, is_counted: counted.is_some(), range })
    }
}

/// The share of rows that a filter of so many keys of the source keeps, and the least that it may be.
///
/// If the target's keys were not counted, `most` is often far too high, for example for a foreign key. So `share` then
/// divides by the smaller of both numbers, as if the source's table had all keys of the target.
fn shares(keys: f64, source: Option<&Keys>, target: Option<&Keys>) -> Option<(f64, f64)> {
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

/// The sets of keys that a filter could have, which are each key alone, and all keys together. A key is a pair of
/// columns.
fn candidates(join: &Join) -> Vec<Vec<[usize; 2]>> {
    let [left_side, right_side] = join.sides;
    let columns = |(left, right): &(PhysicalExprRef, PhysicalExprRef)| {
        let key = [source_column(left, left_side)?, source_column(right, right_side)?];
        let types = [left.data_type(&left_side.schema()).ok()?, right.data_type(&right_side.schema()).ok()?];
        (types[0] == types[1]).then_some(key)
    };
    let keys: Vec<[usize; 2]> = join.on.iter().filter_map(columns).collect();
    let all = (keys.len() > 1).then(|| keys.clone());
    keys.into_iter().map(|key| vec![key]).chain(all).collect()
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
