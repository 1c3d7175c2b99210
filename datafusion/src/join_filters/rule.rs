//! The rule: which joins get a filter, of which side, and where.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::intervals::utils::check_support;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::Statistics;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, ReplaceChildrenOptions, reset_plan_states,
};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Result, ScalarValue};

use super::build::JoinFilterBuildExec;
use super::keys::{Plan, stored_type};
use super::options::JoinFilterOptions;
use super::probe::JoinFilterExec;
use super::trace::{Join, descend, reads_one_table, source_column};

/// What a row costs in nanoseconds of one core, measured with TPC-H on an AMD EPYC (Zen 4): to be read, to be hashed or
/// looked up, and to be shuffled and joined, with what each of its bytes adds.
const SCANNED: f64 = 30.0;
const HASHED: f64 = 10.0;
const SHUFFLED: f64 = 30.0;
const SHUFFLED_BYTE: f64 = 4.0;

/// DataFusion takes 20 % as the share of rows for which a condition holds that it cannot estimate. These shares are on
/// the safe side: of the rows that make a filter, and of those that it drops.
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
        let options = JoinFilterOptions::of(config);
        // In one process, DataFusion's joins filter the scan of their larger side themselves, and shuffle nothing.
        let has_own = config.optimizer.enable_join_dynamic_filter_pushdown
            && config.optimizer.enable_dynamic_filter_pushdown;
        if !options.enabled || has_own && !options.force {
            return Ok(plan);
        }
        let rule = Rule { broadcast: Broadcast::of(config), max_keys: options.max_keys(), options };
        // From the leaves up: a side that is filtered already makes a better filter of the next one.
        Ok(plan.transform_up(|plan| rule.filter_sides(plan))?.data)
    }
}

struct Rule {
    options: JoinFilterOptions,
    max_keys: usize,
    broadcast: Broadcast,
}

/// The keys of a join's side, where they come from.
struct Side {
    /// The children on the way down from the join's input.
    path: Vec<usize>,
    columns: Vec<usize>,
    /// What is at its end.
    plan: Plan,
    is_shuffled: bool,
}

/// What a filter saves, the way to the rows that it drops, and those rows.
type Choice = (f64, Vec<usize>, Plan);

impl Rule {
    /// Adds the filter that saves most, if one pays.
    fn filter_sides(&self, plan: Plan) -> Result<Transformed<Plan>> {
        let Some(join) = Join::of(&plan) else { return Ok(Transformed::no(plan)) };
        let mut choices: Vec<Choice> = Vec::new();
        for keys in self.candidates(&join) {
            for to in [0, 1] {
                choices.extend(self.evaluate(&plan, &join, &keys, to)?);
            }
        }
        match choices.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((_, path, filtered)) => Ok(Transformed::yes(replace(&plan, &path, filtered)?)),
            None => Ok(Transformed::no(plan)),
        }
    }

    /// Sets of keys to look up: each alone, and all together. Of each key its columns on both sides.
    fn candidates(&self, join: &Join) -> Vec<Vec<[usize; 2]>> {
        let columns = |(left, right): &(PhysicalExprRef, PhysicalExprRef)| {
            let [left_type, right_type] =
                [(left, 0), (right, 1)].map(|(key, side)| key.data_type(&join.sides[side].schema()).ok());
            let key = [source_column(left, join.sides[0])?, source_column(right, join.sides[1])?];
            (left_type == right_type).then_some(key)
        };
        let keys: Vec<[usize; 2]> = join.on.iter().filter_map(columns).collect();
        let mut sets: Vec<_> = keys.iter().map(|&key| vec![key]).collect();
        if keys.len() > 1 {
            sets.push(keys);
        }
        sets
    }

    /// A filter of the side that is not `to`, for the rows of side `to`.
    fn evaluate(&self, plan: &Plan, join: &Join, keys: &[[usize; 2]], to: usize) -> Result<Option<Choice>> {
        let from = 1 - to;
        if !join.may_drop(to) {
            return Ok(None);
        }
        let columns = |side: usize| keys.iter().map(|key| key[side]).collect::<Vec<_>>();
        let source = self.trace(join.sides[from], columns(from));
        if !reads_one_table(&source.plan) || nested_filters(&source.plan) > 1 {
            return Ok(None);
        }
        let side = self.trace(join.sides[to], columns(to));
        let is_hashable = |side: &Side| {
            let schema = side.plan.schema();
            side.columns.iter().all(|&i| stored_type(schema.field(i).data_type()).is_some())
        };
        if !is_hashable(&source) || !is_hashable(&side) {
            return Ok(None);
        }

        let (share, gain) = match self.forecast(plan, &source, &side) {
            Some(forecast) => forecast,
            None if self.options.force => (1.0, 0.0),
            None => return Ok(None),
        };
        // A scan may hand out its files to whoever asks first, so it must not be in the plan twice.
        let again = reset_plan_states(source.plan)?;
        let build = Arc::new(JoinFilterBuildExec::new(again, source.columns, self.max_keys));
        let filtered = JoinFilterExec::new(side.plan, build, side.columns, share, self.options.clone());
        Ok(Some((gain, [vec![to], side.path].concat(), Arc::new(filtered))))
    }

    /// Follows keys down from a join's input to the scan of their table, as far as it goes.
    fn trace(&self, input: &Plan, columns: Vec<usize>) -> Side {
        let mut side = Side { path: Vec::new(), columns, plan: Arc::clone(input), is_shuffled: false };
        while !reads_one_table(&side.plan) {
            let Some((child, columns)) = descend(&side.plan, &side.columns) else { break };
            side.is_shuffled |= side.plan.is::<AggregateExec>() || self.broadcast.shuffles(&side.plan);
            let below = Arc::clone(side.plan.children()[child]);
            side.path.push(child);
            side = Side { columns, plan: below, ..side };
        }
        side
    }

    /// The share of rows that a filter keeps, and the time that it saves, if it pays by what is known.
    fn forecast(&self, join: &Plan, source: &Side, side: &Side) -> Option<(f64, f64)> {
        if !self.options.force && !side.is_shuffled && !self.broadcast.shuffles(join) {
            return None;
        }
        let (keys, scanned) = (rows(&source.plan, OPAQUE_SOURCE)?, scanned(&source.plan)?);
        let rows = rows(&side.plan, OPAQUE_TARGET)?;
        let distinct = [distinct(source), distinct(side)].into_iter().flatten().reduce(f64::min)?;
        let share = (keys / distinct.max(1.0)).min(1.0);
        let dropped = rows * (1.0 - share);
        let shuffled = SHUFFLED + SHUFFLED_BYTE * width(&side.plan.schema());
        let gain = dropped * shuffled - (scanned * SCANNED + (keys + rows) * HASHED);
        let pays = keys <= self.max_keys as f64
            && share <= self.options.expected_share
            && gain >= self.options.min_saved_ms as f64 * 1e6;
        (pays || self.options.force).then_some((share, gain))
    }
}

/// The plan with another one at the end of a path.
fn replace(plan: &Plan, path: &[usize], with: Plan) -> Result<Plan> {
    let Some((&child, path)) = path.split_first() else { return Ok(with) };
    let mut children: Vec<Plan> = plan.children().into_iter().cloned().collect();
    children[child] = replace(&children[child], path, with)?;
    Arc::clone(plan)
        .replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

/// Filters that are built to build a filter of this side.
fn nested_filters(plan: &Plan) -> usize {
    let below = plan.children().into_iter().map(nested_filters).max().unwrap_or(0);
    below + usize::from(plan.is::<JoinFilterExec>())
}

/// Unknown, if an operator cannot tell.
fn statistics(plan: &Plan) -> Arc<Statistics> {
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new());
    statistics.unwrap_or_else(|_| Arc::new(Statistics::new_unknown(&plan.schema())))
}

/// Rows that a plan is expected to return, and of a condition that cannot be estimated this share.
fn rows(plan: &Plan, opaque: f64) -> Option<f64> {
    let input = || rows(plan.children()[0], opaque);
    if let Some(filter) = plan.downcast_ref::<JoinFilterExec>() {
        return input().map(|rows| rows * filter.expected_share);
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>()
        && !check_support(filter.predicate(), &filter.input().schema())
    {
        return input().map(|rows| rows * opaque);
    }
    if plan.is::<ProjectionExec>() {
        return input();
    }
    statistics(plan).num_rows.get_value().map(|&rows| rows as f64)
}

/// Rows that the scans below a plan read.
fn scanned(plan: &Plan) -> Option<f64> {
    if plan.children().is_empty() {
        return rows(plan, 1.0);
    }
    plan.children().into_iter().map(scanned).sum()
}

/// At most how many distinct keys there are before a side's rows are filtered.
fn distinct(side: &Side) -> Option<f64> {
    let (mut plan, mut columns) = (Arc::clone(&side.plan), side.columns.clone());
    while let Some((child, below)) = descend(&plan, &columns) {
        columns = below;
        plan = Arc::clone(plan.children()[child]);
    }
    let statistics = statistics(&plan);
    let rows = statistics.num_rows.get_value().map(|&rows| rows as f64);
    let &[column] = &columns[..] else { return rows };
    let column = statistics.column_statistics.get(column)?;
    let range = || {
        let bound = |value: Option<&ScalarValue>| match value?.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(value)) => value,
            _ => None,
        };
        let (least, most) = (bound(column.min_value.get_value())?, bound(column.max_value.get_value())?);
        Some(most as f64 - least as f64 + 1.0)
    };
    let distinct = column.distinct_count.get_value().map(|&count| count as f64).or_else(range);
    match (distinct, rows) {
        (Some(distinct), Some(rows)) => Some(distinct.min(rows)),
        (distinct, rows) => distinct.or(rows),
    }
}

/// The sizes below which a join's smaller side is sent to all tasks, so that the larger one is not shuffled.
struct Broadcast {
    bytes: f64,
    rows: f64,
}

impl Broadcast {
    fn of(config: &ConfigOptions) -> Self {
        let optimizer = &config.optimizer;
        let mut broadcast = Self {
            bytes: optimizer.hash_join_single_partition_threshold as f64,
            rows: optimizer.hash_join_single_partition_threshold_rows as f64,
        };
        for entry in config.entries() {
            let limit = match &entry.key[..] {
                "ballista.optimizer.broadcast_join_threshold_bytes" => &mut broadcast.bytes,
                "ballista.optimizer.broadcast_join_threshold_rows" => &mut broadcast.rows,
                _ => continue,
            };
            if let Some(value) = entry.value.and_then(|value| value.parse().ok()) {
                *limit = value;
            }
        }
        broadcast
    }

    /// Whether a join shuffles its sides, as far as it can be foretold.
    fn shuffles(&self, plan: &Plan) -> bool {
        Join::of(plan).is_some_and(|join| !join.sides.iter().any(|side| self.is_small(side)))
    }

    fn is_small(&self, side: &Plan) -> bool {
        let statistics = statistics(side);
        match (statistics.total_byte_size.get_value(), statistics.num_rows.get_value()) {
            (Some(&bytes), _) => (bytes as f64) < self.bytes,
            (None, Some(&rows)) => (rows as f64) < self.rows,
            (None, None) => false,
        }
    }
}

/// About how many bytes a row has.
fn width(schema: &Schema) -> f64 {
    schema.fields().iter().map(|field| field.data_type().primitive_width().unwrap_or(24) as f64).sum()
}
