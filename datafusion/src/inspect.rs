//! `bloom_estimated_keys(filter)`, `bloom_estimated_fpr(filter)` and `bloom_fold(filter, fpr)`.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryArray, Float64Array, UInt64Array};
use arrow::datatypes::{DataType, Float64Type};
use bloomline::BloomFilter;
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::filters::{self, failed};

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
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let filters = filters::views(&columns[0])?;
        let open = |bytes| Ok(filters::open(name, bytes)?.to_filter());
        let filters = filters.iter().map(|bytes| -> Result<_> { bytes.map(open).transpose() });
        let result: ArrayRef = match self.what {
            What::EstimatedKeys => {
                let estimate = |filter: BloomFilter| filter.estimated_keys().keys();
                Arc::new(
                    filters.map(|filter| Ok(filter?.and_then(estimate))).collect::<Result<UInt64Array>>()?,
                )
            }
            What::EstimatedFpr => {
                let estimate = |filter: BloomFilter| filter.estimated_fpr();
                Arc::new(filters.map(|filter| Ok(filter?.map(estimate))).collect::<Result<Float64Array>>()?)
            }
            What::Fold => {
                let fprs = columns[1].as_primitive::<Float64Type>().iter();
                let fold = |(mut filter, fpr): (BloomFilter, f64)| {
                    filter.shrink_to_fpr(fpr).map_err(|error| failed(name, error))?;
                    filters::standalone(name, &filter)
                };
                let folded = filters.zip(fprs).map(|(filter, fpr)| filter?.zip(fpr).map(fold).transpose());
                Arc::new(folded.collect::<Result<BinaryArray>>()?)
            }
        };
        Ok(if is_scalar {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)
        } else {
            ColumnarValue::Array(result)
        })
    }
}
