//! Hashes keys of more types than filters in SQL accept, for joins and for indexes over files.

use std::sync::Arc;

use arrow::array::{ArrayRef, make_array};
use arrow::datatypes::DataType;
use datafusion_common::{Result, internal_err};

use crate::keys;

/// The hash of each value. That of a null has no meaning.
pub fn hash_column(column: &ArrayRef, seed: u64) -> Result<Vec<u64>> {
    let stored = match stored_type(column.data_type()) {
        Some(stored) if stored == *column.data_type() => Arc::clone(column),
        Some(stored) => make_array(column.to_data().into_builder().data_type(stored).build()?),
        None => return internal_err!("keys cannot be of type {}", column.data_type()),
    };
    keys::hash(&stored, seed)
}

/// The type as which keys of a type are hashed, such as `Int32` for `Date32`, which has the same bits. `None` for types
/// whose equal values can differ in their bits.
pub fn stored_type(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Date32 | DataType::Time32(_) | DataType::Decimal32(..) => Some(DataType::Int32),
        DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_)
        | DataType::Decimal64(..) => Some(DataType::Int64),
        DataType::Decimal128(..) => Some(DataType::FixedSizeBinary(16)),
        DataType::Decimal256(..) => Some(DataType::FixedSizeBinary(32)),
        DataType::Dictionary(_, values) => {
            stored_type(values).filter(|stored| stored == values.as_ref()).map(|_| data_type.clone())
        }
        DataType::Null => None,
        other => keys::is_key(other).then(|| other.clone()),
    }
}
