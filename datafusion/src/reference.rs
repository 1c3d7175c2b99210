//! `bloom_reference(filter)`: what stands for a filter inside of a plan.
//!
//! DataFusion copies binary values often: a literal and the result of a scalar subquery once per batch, the columns of
//! one side of a cross join once per row. It does not copy structs: a struct is passed on by its `Arc`, and repeated by
//! repeating its views of 16 bytes. So `bloom_contains` has its filter wrapped in a struct, as early in the plan as
//! possible: it wraps literals and subqueries itself, and DataFusion moves this function, which wraps columns, below
//! joins.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, StructArray};
use arrow::datatypes::{DataType, Field, Fields};
use bloomline::StandaloneFooter;
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::{
    ColumnarValue, ExpressionPlacement, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use crate::filters;

const NAME: &str = "bloom_reference";

/// The function that users wrote, for errors.
const CONTAINS: &str = "bloom_contains";

/// The name of the struct's field, which tells it from other structs.
const FIELD: &str = "bloomline_filter";

fn fields() -> Fields {
    [Field::new(FIELD, DataType::BinaryView, true)].into_iter().collect()
}

/// The type of references.
pub fn data_type() -> DataType {
    DataType::Struct(fields())
}

/// Returns whether values of this type are references.
pub fn is_reference(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Struct(fields) if matches!(&**fields, [field] if field.name() == FIELD))
}

/// References to filters, whose bytes are checked here, once.
fn of_array(column: &ArrayRef) -> Result<StructArray> {
    let filters = filters::views(column)?;
    // Equal views are of the same bytes.
    let mut checked = HashSet::new();
    for (i, view) in filters.views().iter().enumerate() {
        if filters.is_valid(i) && checked.insert(view) {
            filters::open(CONTAINS, filters.value(i))?;
        }
    }
    let nulls = filters.nulls().cloned();
    Ok(StructArray::try_new(fields(), vec![Arc::new(filters)], nulls)?)
}

/// A reference to one filter, whose bytes are checked.
pub fn of_scalar(filter: &ScalarValue) -> Result<ScalarValue> {
    Ok(ScalarValue::Struct(Arc::new(of_array(&filter.to_array()?)?)))
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

/// References to the filters of an argument: as many as it has, or one if it is a scalar.
pub fn of(filter: ColumnarValue) -> Result<StructArray> {
    let filters = match filter {
        ColumnarValue::Scalar(filter) => filter.to_array()?,
        ColumnarValue::Array(filters) => filters,
    };
    if is_reference(filters.data_type()) { Ok(filters.as_struct().clone()) } else { of_array(&filters) }
}

/// The filters that references stand for.
pub fn filters(references: &StructArray) -> &BinaryViewArray {
    references.column(0).as_binary_view()
}

/// The scalar function `bloom_reference(filter)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    signature: Signature,
}

impl Reference {
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Reference {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [filter] = types else { return plan_err!("{NAME} takes a filter") };
        filters::check_type(NAME, filter)?;
        Ok(vec![filter.clone()])
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(data_type())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn placement(&self, _arguments: &[ExpressionPlacement]) -> ExpressionPlacement {
        ExpressionPlacement::MoveTowardsLeafNodes
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match &args.args[0] {
            ColumnarValue::Scalar(filter) => Ok(ColumnarValue::Scalar(of_scalar(filter)?)),
            ColumnarValue::Array(filters) => Ok(ColumnarValue::Array(Arc::new(of_array(filters)?))),
        }
    }
}
