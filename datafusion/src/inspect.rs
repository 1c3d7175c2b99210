//! `bloom_estimated_keys(filter)`, `bloom_estimated_fpr(filter)` and `bloom_fold(filter, fpr)`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, UInt64Array};
use arrow::datatypes::{DataType, Float64Type};
use bloomline::BloomView;
use datafusion_common::{Result, ScalarValue, exec_err, plan_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::filters::{self, not_made};

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
        let name = self.name();
        match (self.what, types) {
            (What::EstimatedKeys | What::EstimatedFpr, [filter]) => {
                filters::check_type(name, filter)?;
                Ok(vec![filter.clone()])
            }
            (What::Fold, [filter, fpr]) => {
                filters::check_type(name, filter)?;
                if !fpr.is_numeric() && !fpr.is_null() {
                    return plan_err!("{name}: fpr must be a number, not of type {fpr}");
                }
                Ok(vec![filter.clone(), DataType::Float64])
            }
            (What::Fold, _) => plan_err!("{name} takes a filter and a false-positive rate"),
            _ => plan_err!("{name} takes a filter"),
        }
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
        let name = self.name();
        let mut args = args.args.into_iter();
        let (filter, fpr) = (args.next(), args.next());
        let is_array = |arg: &Option<ColumnarValue>| matches!(arg, Some(ColumnarValue::Array(_)));
        let is_scalar = !is_array(&filter) && !is_array(&fpr);
        let filters = filters::views(&match filter {
            Some(ColumnarValue::Array(filters)) => filters,
            Some(ColumnarValue::Scalar(filter)) => filter.to_array()?,
            None => return exec_err!("{name} takes a filter"),
        })?;
        let mut opened =
            filters.iter().map(|bytes| bytes.map(|bytes| filters::open(name, bytes)).transpose());
        let result: ArrayRef = match self.what {
            What::EstimatedKeys => {
                let estimate = |filter: BloomView<'_>| filter.estimated_keys().keys();
                Arc::new(
                    opened.map(|filter| Ok(filter?.and_then(estimate))).collect::<Result<UInt64Array>>()?,
                )
            }
            What::EstimatedFpr => {
                let estimate = |filter: BloomView<'_>| filter.estimated_fpr();
                Arc::new(opened.map(|filter| Ok(filter?.map(estimate))).collect::<Result<Float64Array>>()?)
            }
            What::Fold => {
                let Some(fpr) = fpr else { return exec_err!("{name} takes a false-positive rate") };
                let fprs = fpr.into_array(filters.len())?;
                let fold = |(filter, fpr): (BloomView<'_>, f64)| {
                    let folded = filter.to_filter().and_then(|mut filter| {
                        filter.shrink_to_fpr(fpr)?;
                        Ok(filter)
                    });
                    folded.map_err(|error| not_made(name, error))
                };
                // One filter may be folded to many rates.
                let only = if filters.len() == 1 { opened.next().transpose()?.flatten() } else { None };
                let mut folded = Vec::new();
                for fpr in fprs.as_primitive::<Float64Type>() {
                    let filter = match filters.len() {
                        1 => only,
                        _ => opened.next().transpose()?.flatten(),
                    };
                    folded.push(filter.zip(fpr).map(fold).transpose()?);
                }
                let remedy = "lower datafusion.execution.batch_size, or use smaller filters";
                filters::column(name, folded.iter().map(Option::as_ref), remedy)?
            }
        };
        Ok(if is_scalar {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)
        } else {
            ColumnarValue::Array(result)
        })
    }
}
