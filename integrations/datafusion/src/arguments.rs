//! Arguments and answers of the scalar functions.

use arrow::array::ArrayRef;
use datafusion_common::{Result, ScalarValue, plan_datafusion_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs};

/// The arguments, or their types, if they are as many as the function takes.
pub fn exactly<T, const N: usize>(function: &str, takes: &str, arguments: Vec<T>) -> Result<[T; N]> {
    arguments.try_into().map_err(|found: Vec<T>| {
        let plural = if found.len() == 1 { "" } else { "s" };
        plan_datafusion_err!("{function} takes {takes}, not {} argument{plural}", found.len())
    })
}

/// How many rows the answer has: one, as a scalar, if all arguments are scalars.
#[derive(Clone, Copy)]
pub struct Rows {
    pub n: usize,
    is_scalar: bool,
}

impl Rows {
    pub fn of(args: &ScalarFunctionArgs) -> Self {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        Self { n: if is_scalar { 1 } else { args.number_rows }, is_scalar }
    }

    pub fn answer(self, rows: ArrayRef) -> Result<ColumnarValue> {
        Ok(if self.is_scalar {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&rows, 0)?)
        } else {
            ColumnarValue::Array(rows)
        })
    }
}
