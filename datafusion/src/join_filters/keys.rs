//! The keys of joins: columns of an operator's rows, and their hashes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, make_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use bloomline::hash_key;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_common::{Result, internal_err};

use crate::keys;

pub type Plan = Arc<dyn ExecutionPlan>;

/// The names of columns, for `EXPLAIN`.
pub fn names(input: &Plan, columns: &[usize]) -> String {
    let schema = input.schema();
    columns.iter().map(|&i| format!("{}@{i}", schema.field(i).name())).collect::<Vec<_>>().join(", ")
}

/// The hash of each row's key, and which rows have one: a null in any column is no key.
pub fn hash(batch: &RecordBatch, columns: &[usize]) -> Result<(Vec<u64>, Option<NullBuffer>)> {
    let mut hashes: Option<Vec<u64>> = None;
    let mut valid = None;
    for &column in columns {
        let column = batch.column(column);
        valid = NullBuffer::union(valid.as_ref(), column.logical_nulls().as_ref());
        let next = keys::hash(&stored(column)?, 0)?;
        hashes = Some(match hashes {
            None => next,
            Some(hashes) => hashes.into_iter().zip(next).map(|(seed, key)| hash_key(key, seed)).collect(),
        });
    }
    Ok((hashes.unwrap_or_default(), valid))
}

/// The type by which keys of a type are hashed: its storage. `None` for types whose equal values differ in their bits.
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
        other => keys::check_type("join filter", other).is_ok().then(|| other.clone()),
    }
}

fn stored(column: &ArrayRef) -> Result<ArrayRef> {
    match stored_type(column.data_type()) {
        Some(stored) if stored == *column.data_type() => Ok(Arc::clone(column)),
        Some(stored) => Ok(make_array(column.to_data().into_builder().data_type(stored).build()?)),
        None => internal_err!("join filter: keys cannot be of type {}", column.data_type()),
    }
}
