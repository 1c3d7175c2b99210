//! `bloom_reference(filter)` stands for a filter inside of a plan, and `bloom_reference(filter, fpr)` for a folded one.
//!
//! DataFusion often copies binary values. It copies a literal and the result of a scalar subquery once per batch, and
//! the columns of one side of a cross join once per row. But it does not copy structs, because it passes a struct on
//! by its `Arc`, and repeats only its views of 16 bytes. So the filter of `bloom_contains` is wrapped in a struct as
//! early as possible. `bloom_contains` itself wraps literals and subqueries. This function wraps columns, and
//! DataFusion moves it below joins.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, AsArray, BinaryViewArray, BinaryViewBuilder, BooleanArray, StructArray, UInt64Builder,
};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Fields};
use bloomline::{BloomView, StandaloneFooter};
use datafusion_common::{Result, ScalarValue, exec_err};
use datafusion_expr::{
    ColumnarValue, ExpressionPlacement, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use crate::arguments::{Rows, exactly};
use crate::filters;

const NAME: &str = "bloom_reference";
const TAKES: &str = "a filter";

fn fields() -> Fields {
    let filter = Field::new("bloomline_filter", DataType::BinaryView, true);
    // The filter is checked only here. A damaged one is an error only when a key is looked up in it, because rows that
    // the query does not select may come by here.
    let is_intact = Field::new("bloomline_is_intact", DataType::Boolean, true);
    Fields::from_iter([filter, is_intact])
}

/// Returns whether values of this type are references.
pub fn is_reference(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Struct(found) if filters::same_fields(found, &fields()))
}

fn to(filters: BinaryViewArray) -> Result<StructArray> {
    // Equal views are of the same bytes.
    let mut checked = HashMap::new();
    let is_intact = (0..filters.len()).map(|i| {
        let check = || filters::open(NAME, filters.value(i)).is_ok();
        filters.is_valid(i) && *checked.entry(filters.views()[i]).or_insert_with(check)
    });
    let is_intact = BooleanArray::from_iter(is_intact.map(Some));
    let nulls = filters.nulls().cloned();
    Ok(StructArray::try_new(fields(), vec![Arc::new(filters), Arc::new(is_intact)], nulls)?)
}

/// Folds filters to a rate. Damaged filters stay as they are.
fn folded(function: &str, filters: &BinaryViewArray, fpr: f64) -> Result<BinaryViewArray> {
    let mut folded = BinaryViewBuilder::new();
    // Equal views are of the same bytes.
    let mut known = HashMap::new();
    let mut rows = UInt64Builder::with_capacity(filters.len());
    for (i, view) in filters.views().iter().enumerate() {
        if filters.is_null(i) {
            rows.append_null();
            continue;
        }
        let next = known.len() as u64;
        let row = *known.entry(view).or_insert(next);
        rows.append_value(row);
        if row == next {
            let bytes = filters.value(i);
            match filters::open(function, bytes) {
                Ok(filter) => {
                    let filter = filters::folded(function, filter, fpr)?;
                    folded.append_value(filters::standalone(function, &filter)?);
                }
                Err(_) => folded.append_value(bytes),
            }
        }
    }
    Ok(take(&folded.finish(), &rows.finish(), None)?.as_binary_view().clone())
}

/// The checksum of a filter, or of the filter that a reference stands for. `None` for other values.
pub fn checksum(filter: &ScalarValue) -> Option<u64> {
    let bytes = match filter {
        ScalarValue::Struct(reference) if is_reference(reference.data_type()) => filters(reference).value(0),
        ScalarValue::Binary(bytes) | ScalarValue::LargeBinary(bytes) | ScalarValue::BinaryView(bytes) => {
            bytes.as_deref()?
        }
        _ => return None,
    };
    StandaloneFooter::read(bytes).ok().map(|footer| footer.body_checksum)
}

/// References to the filters of an argument, one per row, or only one if it is a scalar.
pub fn of(function: &str, argument: ColumnarValue) -> Result<StructArray> {
    match argument {
        ColumnarValue::Scalar(ScalarValue::Struct(reference)) if is_reference(reference.data_type()) => {
            Ok(reference.as_ref().clone())
        }
        ColumnarValue::Array(references) if is_reference(references.data_type()) => {
            Ok(references.as_struct().clone())
        }
        filters => to(filters::of(function, filters)?),
    }
}

/// The filters that references stand for.
pub fn filters(references: &StructArray) -> &BinaryViewArray {
    references.column(0).as_binary_view()
}

/// Opens filter `i`. An error if its bytes are damaged or no filter.
pub fn open<'a>(function: &str, references: &'a StructArray, i: usize) -> Result<BloomView<'a>> {
    let bytes = filters(references).value(i);
    let is_intact = references.column(1).as_boolean();
    if is_intact.is_valid(i) && is_intact.value(i) {
        filters::open_unverified(function, bytes)
    } else {
        filters::open(function, bytes)
    }
}

/// The scalar functions `bloom_reference(filter)`, which DataFusion may move, and `bloom_reference_in_place(filter)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    moves: bool,
    signature: Signature,
}

impl Reference {
    pub fn new() -> Self {
        Self { moves: true, signature: Signature::user_defined(Volatility::Immutable) }
    }

    pub fn in_place() -> Self {
        Self { moves: false, ..Self::new() }
    }
}

impl ScalarUDFImpl for Reference {
    fn name(&self) -> &str {
        if self.moves { NAME } else { "bloom_reference_in_place" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let mut types = types.to_vec();
        let fpr = if types.len() == 2 { types.pop() } else { None };
        let [filter] = exactly(self.name(), TAKES, types)?;
        filters::check_type(self.name(), &filter)?;
        Ok([filter].into_iter().chain(fpr.map(|_| DataType::Float64)).collect())
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(fields()))
    }

    fn is_strict(&self) -> bool {
        true
    }

    /// The function moves only if its argument is a column. DataFusion moves it below a query's `WHERE` too, so it also
    /// sees rows that the query drops, and there only columns are cheap and cannot fail.
    fn placement(&self, arguments: &[ExpressionPlacement]) -> ExpressionPlacement {
        match arguments {
            [ExpressionPlacement::Column] | [ExpressionPlacement::Column, ExpressionPlacement::Literal]
                if self.moves =>
            {
                ExpressionPlacement::MoveTowardsLeafNodes
            }
            _ => ExpressionPlacement::KeepInPlace,
        }
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = Rows::of(&args);
        let fpr = if args.args.len() == 2 { args.args.pop() } else { None };
        let [filter] = exactly(self.name(), TAKES, args.args)?;
        rows.answer(Arc::new(match fpr {
            None => of(self.name(), filter)?,
            Some(ColumnarValue::Scalar(ScalarValue::Float64(Some(fpr)))) => {
                to(folded(self.name(), &filters::of(self.name(), filter)?, fpr)?)?
            }
            Some(_) => return exec_err!("{}: the false-positive rate must be a constant", self.name()),
        }))
    }
}
