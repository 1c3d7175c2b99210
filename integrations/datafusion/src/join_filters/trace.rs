//! Follows the keys of a join from the join's input down to the rows of one scan.

use arrow::datatypes::DataType;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlanProperties;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion_common::{JoinSide, JoinType, NullEquality};

use super::filter::Plan;
use super::probe::JoinFilterExec;

/// A join by equal keys, of whichever operator.
pub struct Join<'a> {
    pub sides: [&'a Plan; 2],
    pub on: &'a [(PhysicalExprRef, PhysicalExprRef)],
    /// The side that is read to its end before the other one. `None` if that is not certain.
    pub first: Option<usize>,
    join_type: JoinType,
    /// Whether a null changes answers, because it has partners or `NOT IN` looks for it.
    sees_nulls: bool,
    projection: Option<&'a [usize]>,
}

impl<'a> Join<'a> {
    pub fn of(plan: &'a Plan) -> Option<Self> {
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            return Some(Self {
                sides: [join.left(), join.right()],
                on: join.on(),
                first: Some(0),
                join_type: *join.join_type(),
                sees_nulls: join.null_aware || join.null_equality() == NullEquality::NullEqualsNull,
                projection: join.projection.as_deref(),
            });
        }
        let join = plan.downcast_ref::<SortMergeJoinExec>()?;
        // It asks its probe side first, and a sort reads all its rows before it returns one.
        let first = usize::from(SortMergeJoinExec::probe_side(&join.join_type()) == JoinSide::Right);
        let sides = [join.left(), join.right()];
        Some(Self {
            sides,
            on: join.on(),
            first: (sides[first].is::<SortExec>() && sides[first].fetch().is_none()).then_some(first),
            join_type: join.join_type(),
            sees_nulls: join.null_equality() == NullEquality::NullEqualsNull,
            projection: None,
        })
    }

    /// Whether the result stays the same without the rows of a side (0 is left) that have no partner.
    pub fn may_drop(&self, side: usize) -> bool {
        let (left, right) = self.join_type.on_lr_is_preserved();
        let is_mark = matches!(self.join_type, JoinType::LeftMark | JoinType::RightMark);
        [left, right][side] && !is_mark && !self.sees_nulls
    }

    /// The side from which a column of the result comes, and its column there. `None` if the join adds rows to it, as
    /// an outer join adds rows of nulls to the side that it does not preserve.
    fn source(&self, column: usize) -> Option<(usize, usize)> {
        use JoinType::*;
        let column = self.projection.map_or(column, |projection| projection[column]);
        let [left, right] = self.sides.map(|side| side.schema().fields().len());
        let (from, column) = match self.join_type {
            RightSemi | RightAnti | RightMark => (1, column),
            _ if column < left => (0, column),
            _ => (1, column - left),
        };
        let adds_rows = match from {
            0 => matches!(self.join_type, Right | Full),
            _ => matches!(self.join_type, Left | Full | LeftMark),
        };
        // The mark of a `RightMark` join comes after the right side's columns, and from neither side.
        (!adds_rows && column < [left, right][from]).then_some((from, column))
    }
}

/// The sets of keys that a filter could have, which are each key alone, and all keys together. A key is a pair of
/// columns.
pub fn candidates(join: &Join) -> Vec<Vec<[usize; 2]>> {
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

/// The one child of an operator from which all the columns come unchanged, and their columns there.
///
/// Rows can then be dropped below the operator instead of above it, by their values in these columns. The operator
/// returns no key that its child lacks, and what it does with the rows of one key does not depend on other keys.
pub fn descend(plan: &Plan, columns: &[usize]) -> Option<(usize, Vec<usize>)> {
    // A limit would also count the rows that are dropped.
    if plan.fetch().is_some() {
        return None;
    }
    let sources: Vec<_> = columns.iter().map(|&column| source(plan, column)).collect::<Option<_>>()?;
    let child = sources.first()?.0;
    let is_one_child = sources.iter().all(|source| source.0 == child);
    is_one_child.then(|| (child, sources.iter().map(|source| source.1).collect()))
}

/// The child from which a column of an operator comes unchanged, and its column there.
fn source(plan: &Plan, column: usize) -> Option<(usize, usize)> {
    if let Some(join) = Join::of(plan) {
        return join.source(column);
    }
    if let Some(join) = plan.downcast_ref::<CrossJoinExec>() {
        let left = join.left().schema().fields().len();
        return Some(column.checked_sub(left).map_or((0, column), |column| (1, column)));
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        // A group has one value of each key, so all its rows are dropped or none.
        let keys = aggregate.group_expr();
        let is_whole = keys.is_single() && aggregate.limit_options().is_none();
        let (key, _) = is_whole.then(|| keys.expr().get(column))??;
        return Some((0, source_column(key, aggregate.input())?));
    }
    is_by_row(plan).then_some(())?;
    let column = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        source_column(&projection.expr()[column].expr, projection.input())?
    } else {
        let kept = plan.downcast_ref::<FilterExec>().and_then(|filter| filter.projection().as_ref());
        kept.map_or(column, |kept| kept[column])
    };
    Some((0, column))
}

/// Whether an operator treats each row alone, and in the same way if it runs again. A `JoinFilterExec` may drop other
/// rows when it runs again, but only rows that the join above it drops anyway.
fn is_by_row(plan: &Plan) -> bool {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return !projection.expr().iter().any(|part| is_volatile(&part.expr));
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return !is_volatile(filter.predicate());
    }
    plan.is::<JoinFilterExec>() || plan.is::<RepartitionExec>() || plan.is::<SortExec>()
}

/// The column of which an expression is the value. A cast to a wider type does not matter, because the hash of a key is
/// the hash of its value.
pub fn source_column(expression: &PhysicalExprRef, input: &Plan) -> Option<usize> {
    if let Some(column) = expression.downcast_ref::<Column>() {
        return Some(column.index());
    }
    let cast = expression.downcast_ref::<CastExpr>()?;
    let from = cast.expr().data_type(&input.schema()).ok()?;
    widens(&from, cast.cast_type()).then(|| source_column(cast.expr(), input))?
}

/// Whether a cast changes neither the hash of any key nor which keys are equal, and never fails.
fn widens(from: &DataType, to: &DataType) -> bool {
    match (from, from.primitive_width(), to.primitive_width()) {
        // Such as the columns of which folders are named.
        (DataType::Dictionary(_, values), ..) if from != to => widens(values, to),
        (_, Some(narrow), Some(wide)) if from.is_integer() && to.is_integer() => {
            narrow < wide && (to.is_signed_integer() || from.is_unsigned_integer())
        }
        _ => from == to || from.is_string() && to.is_string(),
    }
}

/// The scan of a plan that treats each row of it alone. A limit may choose other rows if it runs again.
pub fn scan(plan: &Plan) -> Option<&Plan> {
    match plan.children()[..] {
        _ if plan.fetch().is_some() => None,
        [] => Some(plan),
        [child, ..] => is_by_row(plan).then(|| scan(child))?,
    }
}

/// Whether a plan reads one table, and reads the same rows if it runs again, but for rows that a `JoinFilterExec`
/// drops. Tables that are neither files nor in memory may return others.
pub fn reads_one_table(plan: &Plan) -> bool {
    let source =
        scan(plan).and_then(|scan| scan.downcast_ref::<DataSourceExec>()).map(DataSourceExec::data_source);
    let is_known =
        source.is_some_and(|source| source.is::<FileScanConfig>() || source.is::<MemorySourceConfig>());
    is_known && !plan.boundedness().is_unbounded()
}
