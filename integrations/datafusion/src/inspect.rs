//! `bloom_estimated_keys(filter)`, `bloom_estimated_fpr(filter)` and `bloom_fold(filter, fpr)`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, Float64Array, UInt64Array};
use arrow::datatypes::DataType;
use bloomline::BloomView;
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::arguments::{Rows, exactly};
use crate::filters;

const TAKES_FILTER: &str = "a filter";
const TAKES_FILTER_AND_FPR: &str = "a filter and a false-positive rate";

/// A scalar function of a filter.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Inspect {
    what: What,
    signature: Signature,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    EstimatedKeys,
    EstimatedFpr,
    Fold,
}

impl Inspect {
    pub fn new(what: What) -> Self {
        Self { what, signature: Signature::user_defined(Volatility::Immutable) }
    }
}

/// Returns whether this is `bloom_fold` with a constant rate that any filter can be folded to.
pub fn folds_to_a_constant(call: &ScalarFunction) -> bool {
    let is_fold = |function: &Inspect| function.what == What::Fold;
    call.func.inner().downcast_ref().is_some_and(is_fold)
        && matches!(call.args[..], [_, Expr::Literal(ScalarValue::Float64(Some(fpr)), _)] if 0.0 < fpr && fpr < 1.0)
}

impl ScalarUDFImpl for Inspect {
    fn name(&self) -> &str {
        match self.what {
            What::EstimatedKeys => "bloom_estimated_keys",
            What::EstimatedFpr => "bloom_estimated_fpr",
            What::Fold => "bloom_fold",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let (name, types) = (self.name(), types.to_vec());
        let [filter, fpr] = match self.what {
            What::EstimatedKeys | What::EstimatedFpr => {
                let [filter] = exactly(name, TAKES_FILTER, types)?;
                filters::check_type(name, &filter)?;
                return Ok(vec![filter]);
            }
            What::Fold => exactly(name, TAKES_FILTER_AND_FPR, types)?,
        };
        filters::check_type(name, &filter)?;
        if !fpr.is_numeric() && !fpr.is_null() {
            return plan_err!("{name}: fpr must be a number, not of type {fpr}");
        }
        Ok(vec![filter, DataType::Float64])
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(match self.what {
            What::EstimatedKeys => DataType::UInt64,
            What::EstimatedFpr => DataType::Float64,
            What::Fold => DataType::Binary,
        })
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (name, rows) = (self.name(), Rows::of(&args));
        match self.what {
            What::EstimatedKeys => {
                let [filter] = exactly(name, TAKES_FILTER, args.args)?;
                let estimate = |filter: BloomView<'_>| Some(filter.estimated_keys()?.keys);
                rows.answer(Arc::new(each::<UInt64Array, _>(name, filter, estimate)?))
            }
            What::EstimatedFpr => {
                let [filter] = exactly(name, TAKES_FILTER, args.args)?;
                let estimate = |filter: BloomView<'_>| Some(filter.estimated_fpr());
                rows.answer(Arc::new(each::<Float64Array, _>(name, filter, estimate)?))
            }
            What::Fold => {
                let [filter, fpr] = exactly(name, TAKES_FILTER_AND_FPR, args.args)?;
                let filters = filters::of(name, filter)?;
                let fprs = fpr.into_array(rows.n)?;
                rows.answer(fold(name, &filters, fprs.as_primitive())?)
            }
        }
    }
}

/// An estimate of each filter.
fn each<A: FromIterator<Option<T>>, T>(
    name: &str,
    filters: ColumnarValue,
    estimate: impl Fn(BloomView<'_>) -> Option<T>,
) -> Result<A> {
    let filters = filters::of(name, filters)?;
    let of = |bytes: Option<&[u8]>| match bytes {
        Some(bytes) => filters::open(name, bytes).map(&estimate),
        None => Ok(None),
    };
    filters.iter().map(of).collect()
}

/// Folds each filter to the rate beside it, or the only filter to all rates.
fn fold(name: &str, filters: &BinaryViewArray, fprs: &Float64Array) -> Result<ArrayRef> {
    let only = filters.len() == 1;
    let open = |i| filters.is_valid(i).then(|| filters::open(name, filters.value(i))).transpose();
    let first = if only { open(0)? } else { None };
    let mut folded = Vec::new();
    for (i, fpr) in fprs.iter().enumerate() {
        let filter = if only { first } else { open(i)? };
        folded.push(filter.zip(fpr).map(|(filter, fpr)| filters::folded(name, filter, fpr)).transpose()?);
    }
    let remedy = "lower datafusion.execution.batch_size, or use smaller filters";
    filters::column(name, folded.iter().map(Option::as_ref), remedy)
}
