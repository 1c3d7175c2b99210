//! The aggregates as window functions.
//!
//! DataFusion gathers what a window function returns for many rows in one array. An array of Binary panics at 2 GiB, so
//! the planner replaces the aggregates by these, which return BinaryView.
//!
//! A plan that is sent to another process, as on Ballista, loses the clause `FILTER` of a window (DataFusion 55.2). So the
//! planner also makes the keys that it leaves out null, which both aggregates skip.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{Result, ScalarValue, not_impl_err};
use datafusion_expr::expr::WindowFunctionParams;
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::planner::{ExprPlanner, PlannerResult, RawWindowExpr};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, WindowFunctionDefinition, when,
};

use super::{Build, Union};

/// Replaces the aggregates in window expressions.
#[derive(Debug)]
pub struct Planner;

impl ExprPlanner for Planner {
    fn plan_window(&self, mut expr: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        if let WindowFunctionDefinition::AggregateUDF(function) = &mut expr.func_def
            && (function.inner().is::<Build>() || function.inner().is::<Union>())
        {
            *function = Arc::new(InWindow::of(AggregateUDF::clone(function)).into());
            if let (Some(key), Some(filter)) = (expr.args.first_mut(), expr.filter.take()) {
                *key = when(*filter, key.clone()).end()?;
            }
        }
        Ok(PlannerResult::Original(expr))
    }
}

/// An aggregate whose result is BinaryView in place of Binary.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct InWindow {
    name: String,
    aggregate: AggregateUDF,
}

impl InWindow {
    pub fn of(aggregate: AggregateUDF) -> Self {
        Self { name: format!("{}_in_window", aggregate.name()), aggregate }
    }
}

impl AggregateUDFImpl for InWindow {
    fn name(&self) -> &str {
        &self.name
    }

    fn window_function_schema_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.aggregate.window_function_schema_name(params)
    }

    fn signature(&self) -> &Signature {
        self.aggregate.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.aggregate.coerce_types(types)
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::BinaryView)
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        let field = self.aggregate.return_field(arguments)?;
        Ok(Arc::new(Field::clone(&field).with_data_type(DataType::BinaryView)))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.aggregate.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Views(self.aggregate.accumulator(args)?)))
    }

    /// For frames that drop rows.
    fn create_sliding_accumulator(&self, _args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        not_impl_err!(
            "{}: keys cannot be removed from a filter: begin the frame with UNBOUNDED PRECEDING",
            self.aggregate.name()
        )
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.aggregate.order_sensitivity()
    }
}

#[derive(Debug)]
struct Views(Box<dyn Accumulator>);

impl Accumulator for Views {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(match self.0.evaluate()? {
            ScalarValue::Binary(filter) => ScalarValue::BinaryView(filter),
            other => other,
        })
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states)
    }
}
