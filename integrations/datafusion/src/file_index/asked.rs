//! What a predicate asks an index.

use std::sync::Arc;

use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{self, CaseExpr, Column, InListExpr, Literal};
use datafusion::physical_expr_common::physical_expr::snapshot_physical_expr;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::expr::InList;
use datafusion_expr::{BinaryExpr, Expr, Operator};

use super::columns::{Columns, Files, add_hashes};

/// A condition that each file with a row of the result meets.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// A key of one of these hashes is in this column of the index.
    Keys {
        column: usize,
        hashes: Vec<u64>,
    },
    All(Vec<Asked>),
    Any(Vec<Asked>),
}

/// A part of a predicate, of those that can ask.
enum Part<'a, E> {
    And(&'a E, &'a E),
    Any(Vec<&'a E>),
    In(&'a str, Vec<&'a ScalarValue>),
    Never,
}

fn logical(expr: &Expr) -> Option<Part<'_, Expr>> {
    fn value(expr: &Expr) -> Option<&ScalarValue> {
        if let Expr::Literal(value, _) = expr { Some(value) } else { None }
    }
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (op, &**left, &**right) {
            (Operator::And, left, right) => Some(Part::And(left, right)),
            (Operator::Or, left, right) => Some(Part::Any(vec![left, right])),
            (Operator::Eq, Expr::Column(column), Expr::Literal(value, _))
            | (Operator::Eq, Expr::Literal(value, _), Expr::Column(column)) => {
                Some(Part::In(&column.name, vec![value]))
            }
            _ => None,
        },
        Expr::InList(InList { expr, list, negated: false }) => {
            let Expr::Column(column) = &**expr else { return None };
            list.iter().map(value).collect::<Option<_>>().map(|values| Part::In(&column.name, values))
        }
        Expr::Literal(ScalarValue::Boolean(None | Some(false)), _) => Some(Part::Never),
        _ => None,
    }
}

/// Of a join filter, which is a predicate with all keys of the other side.
fn physical(expr: &Arc<dyn PhysicalExpr>) -> Option<Part<'_, Arc<dyn PhysicalExpr>>> {
    fn value(expr: &Arc<dyn PhysicalExpr>) -> Option<&ScalarValue> {
        expr.downcast_ref::<Literal>().map(Literal::value)
    }
    if let Some(binary) = expr.downcast_ref::<expressions::BinaryExpr>() {
        let (left, right) = (binary.left(), binary.right());
        return match binary.op() {
            Operator::And => Some(Part::And(left, right)),
            Operator::Or => Some(Part::Any(vec![left, right])),
            Operator::Eq => Some(Part::In(left.downcast_ref::<Column>()?.name(), vec![value(right)?])),
            _ => None,
        };
    }
    // Each partition of a join has its own keys.
    if let Some(case) = expr.downcast_ref::<CaseExpr>() {
        let thens = case.when_then_expr().iter().map(|(_, then)| then);
        return Some(Part::Any(thens.chain(case.else_expr()).collect()));
    }
    if let Some(ScalarValue::Boolean(None | Some(false))) = value(expr) {
        return Some(Part::Never);
    }
    let list = expr.downcast_ref::<InListExpr>().filter(|list| !list.negated())?;
    let column = list.expr().downcast_ref::<Column>()?;
    list.list().iter().map(value).collect::<Option<_>>().map(|values| Part::In(column.name(), values))
}

/// Whether a predicate may ask an index of some columns.
pub fn may_ask(filter: &Expr) -> bool {
    match logical(filter) {
        Some(Part::And(left, right)) => may_ask(left) || may_ask(right),
        Some(Part::Any(parts)) => parts.into_iter().all(may_ask),
        part => part.is_some(),
    }
}

fn both(one: Option<Asked>, other: Option<Asked>) -> Option<Asked> {
    match (one, other) {
        (Some(one), Some(other)) => Some(Asked::All(vec![one, other])),
        (one, other) => one.or(other),
    }
}

impl Asked {
    /// What filters that all must hold ask. `None` if that is nothing.
    pub fn of_filters(filters: &[Expr], columns: &Columns, files: &Files) -> Result<Option<Self>> {
        filters.iter().try_fold(None, |all, filter| Ok(both(all, Self::of(filter, logical, columns, files)?)))
    }

    /// What a predicate on rows of the table asks while it is run.
    pub fn of_predicate(
        predicate: &Arc<dyn PhysicalExpr>,
        columns: &Columns,
        files: &Files,
    ) -> Result<Option<Self>> {
        Self::of(&snapshot_physical_expr(Arc::clone(predicate))?, physical, columns, files)
    }

    fn of<E>(
        expr: &E,
        part: fn(&E) -> Option<Part<'_, E>>,
        columns: &Columns,
        files: &Files,
    ) -> Result<Option<Self>> {
        let of = |expr| Self::of(expr, part, columns, files);
        Ok(match part(expr) {
            Some(Part::And(left, right)) => both(of(left)?, of(right)?),
            Some(Part::Any(parts)) => {
                let parts = parts.into_iter().map(of).collect::<Result<Vec<_>>>()?;
                parts.into_iter().collect::<Option<_>>().map(Self::Any)
            }
            Some(Part::In(column, values)) => Self::of_values(column, values, columns, files)?,
            Some(Part::Never) => Some(Self::Keys { column: 0, hashes: Vec::new() }),
            None => None,
        })
    }

    /// What asks for rows in which the column has one of the values. No row is equal to null.
    fn of_values(
        column: &str,
        values: Vec<&ScalarValue>,
        columns: &Columns,
        files: &Files,
    ) -> Result<Option<Self>> {
        let name = column;
        let Some(column) = columns.position(name, files) else { return Ok(None) };
        let mut hashes = Vec::new();
        for value in values.into_iter().filter(|value| !value.is_null()) {
            if !files.has_keys_of(name, &value.data_type()) {
                return Ok(None);
            }
            add_hashes(&value.to_array()?, columns.seed(column), &mut hashes)?;
        }
        Ok(Some(Self::Keys { column, hashes }))
    }

    /// Calls `each` with each hash.
    pub fn hashes(&self, each: &mut dyn FnMut(u64)) {
        match self {
            Self::Keys { hashes, .. } => hashes.iter().for_each(|&hash| each(hash)),
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.hashes(each)),
        }
    }

    /// Combines what `keys` returns for each column and list of hashes by `both`, which is told whether both must hold, or
    /// one.
    pub fn evaluate<T>(&self, keys: &dyn Fn(usize, &[u64]) -> T, both: &dyn Fn(bool, T, T) -> T) -> T {
        let (all, parts) = match self {
            Self::Keys { column, hashes } => return keys(*column, hashes),
            Self::All(parts) => (true, parts),
            Self::Any(parts) => (false, parts),
        };
        let parts = parts.iter().map(|part| part.evaluate(keys, both));
        parts.reduce(|one, other| both(all, one, other)).expect("one or more parts")
    }
}
