//! The rule decides which joins get a filter, of which side, and where.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::intervals::utils::check_support;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{replace_children_if_necessary, reset_plan_states};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{Statistics, StatisticsArgs, StatisticsContext};
use datafusion_common::stats::Precision;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Result, ScalarValue};

use super::build::{JoinFilterBuildExec, Plan, stored_type};
use super::options::{BloomlineOptions, JoinFilterOptions};
use super::probe::{JoinFilterExec, Settings};
use super::trace::{Join, descend, reads_one_table, source_column};

/// What a row costs in nanoseconds of one core, measured with TPC-H on an AMD EPYC (Zen 4). A row is scanned, hashed or
/// looked up, and shuffled and joined. Each of its bytes adds to the cost of shuffling it.
const SCANNED: f64 = 30.0;
const HASHED: f64 = 10.0;
const SHUFFLED: f64 = 30.0;
const SHUFFLED_BYTE: f64 = 4.0;

/// The share of rows for which a condition holds that DataFusion cannot estimate. DataFusion assumes 20%. These shares
/// are on the safe side, so they are higher for the rows that make a filter than for the rows that it drops.
const OPAQUE_SOURCE: f64 = 0.33;
const OPAQUE_TARGET: f64 = 0.05;

/// Puts a [`JoinFilterExec`] in front of joins. It must see the plan before rows are repartitioned.
#[derive(Debug)]
pub struct JoinFilters;

impl PhysicalOptimizerRule for JoinFilters {
    fn name(&self) -> &str {
        "bloomline_join_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        let options = config.extensions.get::<BloomlineOptions>().cloned().unwrap_or_default().join_filters;
        // In one process nothing is shuffled, and DataFusion's joins already filter the scan of their larger side.
        let has_own = config.optimizer.enable_join_dynamic_filter_pushdown
            && config.optimizer.enable_dynamic_filter_pushdown;
        if !options.enabled || has_own && !options.force {
            return Ok(plan);
        }
        let rule = Rule::of(config, options);
        // From the leaves up, because a side that is filtered already makes a better filter of the next one.
        Ok(plan.transform_up(|plan| rule.filter_sides(plan))?.data)
    }
}

struct Rule {
    options: JoinFilterOptions,
    max_keys: usize,
    /// A join's smaller side is sent to all tasks if it is below these sizes, so that the larger one is not shuffled.
    broadcast_bytes: f64,
    broadcast_rows: f64,
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
    /// The share of rows that the filter keeps, and the nanoseconds that it saves.
    share: f64,
    gain: f64,
}

impl Rule {
    fn of(config: &ConfigOptions, options: JoinFilterOptions) -> Self {
        let entries = config.entries();
        let limit = |unit: &str, default: usize| {
            let key = format!("ballista.optimizer.broadcast_join_threshold_{unit}");
            let entry = entries.iter().find(|entry| entry.key == key);
            entry.and_then(|entry| entry.value.as_ref()?.parse().ok()).unwrap_or(default as f64)
        };
        Self {
            max_keys: options.max_keys(),
            options,
            broadcast_bytes: limit("bytes", config.optimizer.hash_join_single_partition_threshold),
            broadcast_rows: limit("rows", config.optimizer.hash_join_single_partition_threshold_rows),
        }
    }

    /// Adds the filter that saves most, if one pays.
    fn filter_sides(&self, plan: Plan) -> Result<Transformed<Plan>> {
        let Some(join) = Join::of(&plan) else { return Ok(Transformed::no(plan)) };
        let candidates = candidates(&join);
        let choices =
            candidates.iter().flat_map(|keys| [0, 1].map(|to| self.evaluate(&plan, &join, keys, to)));
        let Some(best) = choices.flatten().max_by(|a, b| a.gain.total_cmp(&b.gain)) else {
            return Ok(Transformed::no(plan));
        };
        // A scan may hand out its files to whoever asks first, so it must not be in the plan twice.
        let source = reset_plan_states(best.source.plan)?;
        let keys = Arc::new(JoinFilterBuildExec::new(source, best.source.columns, self.max_keys));
        let Side { plan: rows, columns, path, .. } = best.target;
        let settings = Settings { columns, expected_share: best.share, options: self.options.clone() };
        let filtered = Arc::new(JoinFilterExec::new(rows, keys, settings));
        Ok(Transformed::yes(replace(&plan, &path, filtered)?))
    }

    /// A filter of the side that is not `to`, for the rows of side `to`.
    fn evaluate(&self, plan: &Plan, join: &Join, keys: &[[usize; 2]], to: usize) -> Option<Choice> {
        let source = join.may_drop(to).then(|| self.trace(join, keys, 1 - to))??;
        // Each filter of the source has to be built before this one.
        if !reads_one_table(&source.plan) || filters(&source.plan) > 1 {
            return None;
        }
        let target = self.trace(join, keys, to)?;
        let forecast = self.forecast(plan, &source, &target);
        let (share, gain) = forecast.or(self.options.force.then_some((1.0, 0.0)))?;
        Some(Choice { source, target, share, gain })
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

    /// The share of rows that a filter keeps, and the nanoseconds that it saves, if the statistics say that it pays.
    fn forecast(&self, join: &Plan, source: &Side, target: &Side) -> Option<(f64, f64)> {
        let (keys, scanned) = (rows(&source.plan, OPAQUE_SOURCE)?, scanned(&source.plan)?);
        let rows = rows(&target.plan, OPAQUE_TARGET)?;
        let distinct = [source, target].into_iter().filter_map(|side| distinct(&side.plan, &side.columns));
        let share = (keys / distinct.reduce(f64::min)?.max(1.0)).min(1.0);
        let dropped = rows * (1.0 - share);
        let shuffled = SHUFFLED + SHUFFLED_BYTE * width(&target.plan.schema());
        let gain = dropped * shuffled - (scanned * SCANNED + (keys + rows) * HASHED);
        let pays = keys <= self.max_keys as f64
            && share <= self.options.expected_share
            && gain >= self.options.min_saved_ms as f64 * 1e6
            && (target.is_shuffled || self.shuffles(join));
        (pays || self.options.force).then_some((share, gain))
    }

    /// Whether a join is expected to shuffle its sides.
    fn shuffles(&self, plan: &Plan) -> bool {
        let is_small = |side: &&Plan| {
            let statistics = statistics(side);
            match (known(&statistics.total_byte_size), known(&statistics.num_rows)) {
                (Some(bytes), _) => bytes < self.broadcast_bytes,
                (None, Some(rows)) => rows < self.broadcast_rows,
                (None, None) => false,
            }
        };
        Join::of(plan).is_some_and(|join| !join.sides.iter().any(is_small))
    }
}

/// Sets of keys to look up, which are each key alone, and all together. A key is its columns on both sides.
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

/// The statistics of a plan, unknown if an operator fails to compute them.
fn statistics(plan: &Plan) -> Arc<Statistics> {
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new());
    statistics.unwrap_or_else(|_| Arc::new(Statistics::new_unknown(&plan.schema())))
}

fn known(number: &Precision<usize>) -> Option<f64> {
    number.get_value().map(|&number| number as f64)
}

/// The rows that a plan is expected to return. `opaque` is the share of a condition that cannot be estimated.
fn rows(plan: &Plan, opaque: f64) -> Option<f64> {
    let share = if let Some(filter) = plan.downcast_ref::<JoinFilterExec>() {
        filter.settings.expected_share
    } else if let Some(filter) = plan.downcast_ref::<FilterExec>()
        && !check_support(filter.predicate(), &filter.input().schema())
    {
        opaque
    } else if plan.is::<ProjectionExec>() {
        1.0
    } else {
        return known(&statistics(plan).num_rows);
    };
    Some(share * rows(plan.children()[0], opaque)?)
}

/// The rows that the scans below a plan read.
fn scanned(plan: &Plan) -> Option<f64> {
    if plan.children().is_empty() {
        return rows(plan, 1.0);
    }
    plan.children().into_iter().map(scanned).sum()
}

/// At most how many distinct keys there are before rows are filtered.
fn distinct(plan: &Plan, columns: &[usize]) -> Option<f64> {
    if let Some((child, columns)) = descend(plan, columns) {
        return distinct(plan.children()[child], &columns);
    }
    let statistics = statistics(plan);
    let rows = known(&statistics.num_rows);
    let &[column] = columns else { return rows };
    let column = statistics.column_statistics.get(column)?;
    let range = || {
        let bound = |value: &Precision<ScalarValue>| value.get_value()?.cast_to(&DataType::Int64).ok();
        Some(bound(&column.min_value)?.distance(&bound(&column.max_value)?)? as f64 + 1.0)
    };
    let distinct = known(&column.distinct_count).or_else(range);
    [distinct, rows].into_iter().flatten().reduce(f64::min)
}

/// About how many bytes a row has.
fn width(schema: &Schema) -> f64 {
    schema.fields().iter().map(|field| field.data_type().primitive_width().unwrap_or(24) as f64).sum()
}
