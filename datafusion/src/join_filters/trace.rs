//! Where the keys of a join come from: from the join's input down to the rows of one scan.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_expr::{PhysicalExpr, PhysicalExprRef};
use datafusion::physical_plan::ExecutionPlanProperties;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{JoinType, NullEquality};

use super::keys::Plan;
use super::probe::JoinFilterExec;

/// A join by equal keys, of whichever operator.
pub struct Join<'a> {
    pub sides: [&'a Plan; 2],
    pub on: &'a [(PhysicalExprRef, PhysicalExprRef)],
    pub join_type: JoinType,
    /// Whether a null changes answers: it has partners, or `NOT IN` looks for it.
    pub sees_nulls: bool,
    projection: Option<&'a [usize]>,
}

impl<'a> Join<'a> {
    pub fn of(plan: &'a Plan) -> Option<Self> {
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            return Some(Self {
                sides: [join.left(), join.right()],
                on: join.on(),
                join_type: *join.join_type(),
                sees_nulls: join.null_aware || join.null_equality() == NullEquality::NullEqualsNull,
                projection: join.projection.as_deref(),
            });
        }
        let join = plan.downcast_ref::<SortMergeJoinExec>()?;
        Some(Self {
            sides: [join.left(), join.right()],
            on: join.on(),
            join_type: join.join_type(),
            sees_nulls: join.null_equality() == NullEquality::NullEqualsNull,
            projection: None,
        })
    }

    /// Whether the result stays the same without the rows of a side (0: left) that have no partner.
    pub fn may_drop(&self, side: usize) -> bool {
        use JoinType::{Inner, Left, LeftAnti, LeftSemi, Right, RightAnti, RightSemi};
        let may = match self.join_type {
            Inner | LeftSemi | RightSemi => [true, true],
            Left | LeftAnti => [false, true],
            Right | RightAnti => [true, false],
            _ => [false, false],
        };
        may[side] && !self.sees_nulls
    }

    /// The side, and its column, of a column of the result, if each of its rows is a row of that side.
    fn origin(&self, column: usize) -> Option<(usize, usize)> {
        use JoinType::{Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi};
        let column = self.projection.map_or(column, |projection| projection[column]);
        let left = self.sides[0].schema().fields().len();
        let (side, column) = match self.join_type {
            RightSemi | RightAnti | RightMark => (1, column),
            _ if column < left => (0, column),
            _ => (1, column - left),
        };
        let kept = match self.join_type {
            Inner => true,
            Left | LeftSemi | LeftAnti | LeftMark => side == 0,
            Right | RightSemi | RightAnti | RightMark => side == 1,
            _ => false,
        };
        (kept && column < self.sides[side].schema().fields().len()).then_some((side, column))
    }
}

/// The child of an operator from which its rows come with the same values in some columns, and those columns of the
/// child. The operator only drops rows or repeats them, and what it does to a row does not depend on rows with other
/// values in these columns: a row that is dropped below instead of above changes nothing else.
pub fn descend(plan: &Plan, columns: &[usize]) -> Option<(usize, Vec<usize>)> {
    if plan.fetch().is_some() {
        return None;
    }
    if let Some(join) = Join::of(plan) {
        let origins: Vec<_> = columns.iter().map(|&column| join.origin(column)).collect::<Option<_>>()?;
        let side = origins.first()?.0;
        return origins
            .iter()
            .all(|origin| origin.0 == side)
            .then(|| (side, origins.iter().map(|origin| origin.1).collect()));
    }
    if let Some(join) = plan.downcast_ref::<CrossJoinExec>() {
        let left = join.left().schema().fields().len();
        let side = usize::from(*columns.first()? >= left);
        let columns = columns.iter().map(|&column| match side {
            0 => (column < left).then_some(column),
            _ => column.checked_sub(left),
        });
        return Some((side, columns.collect::<Option<_>>()?));
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        if projection.expr().iter().any(|part| is_volatile(&part.expr)) {
            return None;
        }
        let source = |&column: &usize| source_column(&projection.expr()[column].expr, projection.input());
        return Some((0, columns.iter().map(source).collect::<Option<_>>()?));
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let source = |&column: &usize| filter.projection().as_ref().map_or(column, |columns| columns[column]);
        let is_pure = !is_volatile(filter.predicate());
        return is_pure.then(|| (0, columns.iter().map(source).collect()));
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        // A group has one value of each key, so all its rows are dropped or none.
        let keys = aggregate.group_expr();
        if !keys.is_single() || aggregate.limit_options().is_some() {
            return None;
        }
        let source = |&column: &usize| source_column(&keys.expr().get(column)?.0, aggregate.input());
        return Some((0, columns.iter().map(source).collect::<Option<_>>()?));
    }
    plan.is::<JoinFilterExec>().then(|| (0, columns.to_vec()))
}

/// The column of which an expression is the value, perhaps of a wider type: the hash of a key is that of its value.
pub fn source_column(expression: &PhysicalExprRef, input: &Plan) -> Option<usize> {
    if let Some(column) = expression.downcast_ref::<Column>() {
        return Some(column.index());
    }
    let cast = expression.downcast_ref::<CastExpr>()?;
    let from = cast.expr().data_type(&input.schema()).ok()?;
    widens(&from, cast.cast_type()).then(|| source_column(cast.expr(), input))?
}

/// Whether a cast changes neither the hash of any key nor which keys are equal, and fails for none.
fn widens(from: &DataType, to: &DataType) -> bool {
    match (from.primitive_width(), to.primitive_width()) {
        (Some(narrow), Some(wide)) if from.is_integer() && to.is_integer() => {
            narrow < wide && (to.is_signed_integer() || from.is_unsigned_integer())
        }
        _ => from == to || from.is_string() && to.is_string(),
    }
}

fn is_volatile(expression: &Arc<dyn PhysicalExpr>) -> bool {
    let mut found = false;
    let _ = expression.apply(|part| {
        found |= part.is_volatile_node();
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found
}

/// Whether a plan reads one table, and reads the same rows if it runs again: a limit would not.
pub fn reads_one_table(plan: &Plan) -> bool {
    if plan.is::<DataSourceExec>() {
        return plan.fetch().is_none() && !plan.boundedness().is_unbounded();
    }
    // Without columns, joins lead nowhere.
    !plan.is::<AggregateExec>() && descend(plan, &[]).is_some() && reads_one_table(plan.children()[0])
}
