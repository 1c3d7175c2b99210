//! The rule for joins whose two sides are read in one process.

use std::any::Any;
use std::sync::Arc;

use datafusion::config::ConfigOptions;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, PartitionMode};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{
    ExecutionPlanProperties, Partitioning, StatisticsArgs, StatisticsContext, displayable,
};
use datafusion_common::Result;

use super::filter::Plan;
use super::join::FilteredJoin;
use super::options::JoinFilterOptions;
use super::probe::{JoinFilterExec, Keys, Settings};
use super::tap::{JoinFilterTapExec, Link};
use super::trace::{Join, candidates, descend, scan};
use crate::stored_keys::stored_type;

/// A join gets a filter if it has so many rows for each key, because the filter may drop nothing. A key costs about as
/// much as three rows.
const ROWS_PER_KEY: usize = 16;

/// A hash table of so many keys lies in a far cache, where a lookup costs more than one in a filter.
const LARGE: usize = 1 << 15;

/// Makes the joins of one process filter themselves. It must be the last rule of all, because it adds operators that
/// others do not know:
///
/// ```
/// use std::sync::Arc;
/// use bloomline_datafusion::{BloomlineOptions, JoinFilters};
/// use datafusion::execution::SessionStateBuilder;
/// use datafusion::prelude::{SessionConfig, SessionContext};
///
/// let state = SessionStateBuilder::new_with_default_features()
///     .with_config(SessionConfig::new().with_option_extension(BloomlineOptions::default()))
///     .with_physical_optimizer_rule(Arc::new(JoinFilters))
///     .build();
/// let context = SessionContext::new_with_state(state);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct JoinFilters;

impl PhysicalOptimizerRule for JoinFilters {
    fn name(&self) -> &str {
        "bloomline_join_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        Rule { options: JoinFilterOptions::of(config), statistics: StatisticsContext::new() }
            .rewrite(&plan, Vec::new())
    }
}

struct Rule {
    options: JoinFilterOptions,
    statistics: StatisticsContext,
}

/// A filter on its way down, and its keys' columns in the current operator.
struct Pending {
    columns: Vec<usize>,
    link: Arc<Link>,
}

/// How a join is filtered: which side is read first, and the keys' columns in both sides.
struct Choice {
    first: usize,
    columns: [Vec<usize>; 2],
    max_keys: usize,
}

impl Rule {
    /// Adds the filters from above and those of the plan's own joins.
    fn rewrite(&self, plan: &Plan, pending: Vec<Pending>) -> Result<Plan> {
        let children = plan.children();
        let mut below: Vec<Vec<Pending>> = children.iter().map(|_| Vec::new()).collect();
        let mut here = Vec::new();
        for filter in pending {
            match step(plan, &filter.columns) {
                Some((child, columns)) => below[child].push(Pending { columns, ..filter }),
                None => here.push(filter),
            }
        }
        // The rule may have run before.
        let is_new = !(plan.as_ref() as &dyn Any).is::<FilteredJoin>();
        let choice = Join::of(plan).filter(|_| is_new).map(|join| {
            let choice = self.choose(&join).inspect_err(|reason| {
                log::debug!("no join filter: {reason}: {}", displayable(&**plan).one_line());
            })?;
            Ok((Link::new(self.options.clone(), choice.max_keys), choice))
        });
        if let Some(Ok((link, choice))) = &choice {
            let columns = choice.columns[1 - choice.first].clone();
            below[1 - choice.first].push(Pending { columns, link: Arc::clone(link) });
        }
        let rewritten = children.into_iter().zip(below).map(|(child, pending)| self.rewrite(child, pending));
        let mut children = rewritten.collect::<Result<Vec<_>>>()?;
        if let Some(Ok((link, choice))) = &choice {
            children[choice.first] = tap(&children[choice.first], &choice.columns[choice.first], link)?;
        }
        let mut plan = replace_children_if_necessary(Arc::clone(plan), children)?;
        if let Some(choice) = choice {
            plan = FilteredJoin::of(plan, choice.map(|(link, _)| link));
        }
        for Pending { columns, link } in here {
            let settings = Settings { columns, share: 1.0, least_share: 1.0, options: self.options.clone() };
            plan = Arc::new(JoinFilterExec::new(plan, Keys::Tap(link), settings));
        }
        Ok(plan)
    }

    /// How a join is filtered, or why not.
    fn choose(&self, join: &Join) -> Result<Choice, String> {
        let options = &self.options;
        if !options.enabled {
            return Err("bloomline.join_filters.enabled is false".into());
        }
        let Some(first) = join.first else { return Err("no side is read whole before the other".into()) };
        let second = join.sides[1 - first];
        if !join.may_drop(1 - first) {
            return Err("rows without a partner are in the result".into());
        }
        if second.boundedness().is_unbounded() {
            return Err("the rows have no end".into());
        }
        let is_hashable = |keys: &Vec<[usize; 2]>| {
            let hashable = |(side, plan): (usize, &&Plan)| {
                let schema = plan.schema();
                keys.iter().all(|key| stored_type(schema.field(key[side]).data_type()).is_some())
            };
            join.sides.iter().enumerate().all(hashable)
        };
        let target = |keys: &Vec<[usize; 2]>| target(second, keys.iter().map(|key| key[1 - first]).collect());
        let candidates = candidates(join).into_iter().filter(is_hashable);
        // The last is that of all keys, which is the best one at the same place.
        let best = candidates.map(|keys| (target(&keys), keys)).max_by_key(|((relieved, _), _)| *relieved);
        let Some(((relieved, target), keys)) = best else {
            let types: Vec<_> = join.on.iter().map(|(left, _)| type_name(left, join.sides[0])).collect();
            return Err(format!("keys cannot be of type {}", types.join(", ")));
        };
        let columns = [0, 1].map(|side| keys.iter().map(|key| key[side]).collect());
        if options.force {
            return Ok(Choice { first, columns, max_keys: options.max_keys() });
        }
        let (keys_of, rows) = (self.rows(join.sides[first]), self.rows(target));
        if relieved == 0 && keys_of.is_none_or(|keys| keys < LARGE) {
            return Err("its lookup is all that a filter would save".into());
        }
        if let Some(rows) = rows.filter(|&rows| rows < options.sample_rows) {
            return Err(format!("only {rows} rows to look up"));
        }
        let max_keys = rows.map_or(usize::MAX, |rows| rows / ROWS_PER_KEY).min(options.max_keys());
        match keys_of {
            Some(keys) if keys > max_keys => Err(format!("{keys} keys, of which {max_keys} would pay")),
            _ => Ok(Choice { first, columns, max_keys }),
        }
    }

    fn rows(&self, plan: &Plan) -> Option<usize> {
        let statistics = self.statistics.compute(plan.as_ref(), &StatisticsArgs::new()).ok()?;
        statistics.num_rows.get_value().copied()
    }
}

/// The child to which a filter goes down, and its columns there.
///
/// It stays above the conditions of a table, which cost less than a lookup, and above joins that keep one side in the plan.
/// If the plan runs again, they would return what this run's filter has kept. Their lookup costs no more than a filter's,
/// and may drop more.
fn step(plan: &Plan, columns: &[usize]) -> Option<(usize, Vec<usize>)> {
    let is_condition = plan.is::<FilterExec>() && scan(plan).is_some();
    let join = plan.downcast_ref::<HashJoinExec>();
    let keeps_rows = plan.is::<CrossJoinExec>()
        || join.is_some_and(|join| *join.partition_mode() == PartitionMode::CollectLeft);
    if is_condition || keeps_rows {
        return None;
    }
    // A dictionary of numbers is not hashed, but numbers that are cast from one are.
    let is_hashable = |(child, columns): &(usize, Vec<usize>)| {
        let schema = plan.children()[*child].schema();
        columns.iter().all(|&column| stored_type(schema.field(column).data_type()).is_some())
    };
    descend(plan, columns).filter(is_hashable)
}

/// The operator above which a filter of these columns lies, and how many operators that it relieves lie above it. A
/// condition or a projection costs too little for a row, and so does the lookup in a small hash table.
fn target(plan: &Plan, columns: Vec<usize>) -> (usize, &Plan) {
    let Some((child, columns)) = step(plan, &columns) else { return (0, plan) };
    let is_relieved = Join::of(plan).is_some()
        || plan.is::<AggregateExec>()
        || plan.is::<SortExec>()
        || plan.is::<RepartitionExec>() && matches!(plan.output_partitioning(), Partitioning::Hash(..));
    let (relieved, target) = target(plan.children()[child], columns);
    (relieved + usize::from(is_relieved), target)
}

/// Adds the tap where many partitions hash keys, below the operators that bring the same rows together.
fn tap(plan: &Plan, columns: &[usize], link: &Arc<Link>) -> Result<Plan> {
    let is_same_rows = plan.is::<CoalescePartitionsExec>()
        || plan.is::<RepartitionExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan.is::<SortExec>();
    if is_same_rows && plan.fetch().is_none() {
        let input = tap(plan.children()[0], columns, link)?;
        return replace_children_if_necessary(Arc::clone(plan), vec![input]);
    }
    Ok(Arc::new(JoinFilterTapExec::new(Arc::clone(plan), columns.to_vec(), Arc::clone(link))))
}

fn type_name(key: &PhysicalExprRef, side: &Plan) -> String {
    key.data_type(&side.schema()).map_or_else(|error| error.to_string(), |data_type| data_type.to_string())
}
