//! Hashes the keys of joins. These may have several columns, and more types than the keys of stored filters.

use std::sync::Arc;

use arrow::array::{Array, make_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use bloomline::hash_key;
use datafusion_common::{Result, internal_err};

use crate::keys;

/// The hash of each row's key, and which rows have a key. A row with a null in any of the columns has none, because a
/// join finds no partner for it.
pub fn hash_rows(batch: &RecordBatch, columns: &[usize]) -> Result<(Vec<u64>, Option<NullBuffer>)> {
    let (mut hashes, mut valid) = (Vec::new(), None);
    for &column in columns {
        let column = batch.column(column);
        valid = NullBuffer::union(valid.as_ref(), column.logical_nulls().as_ref());
        let stored = match stored_type(column.data_type()) {
            Some(stored) if stored == *column.data_type() => Arc::clone(column),
            Some(stored) => make_array(column.to_data().into_builder().data_type(stored).build()?),
            None => return internal_err!("join filter: keys cannot be of type {}", column.data_type()),
        };
        let next = keys::hash(&stored, 0)?;
        if hashes.is_empty() {
            hashes = next;
        } else {
            hashes.iter_mut().zip(next).for_each(|(hash, key)| *hash = hash_key(key, *hash));
        }
    }
    Ok((hashes, valid))
}

/// Adds the hashes of the rows that have a key.
pub fn add_hashes(hashes: &mut Vec<u64>, batch: &RecordBatch, columns: &[usize]) -> Result<()> {
    let (batch_hashes, valid) = hash_rows(batch, columns)?;
    match valid {
        Some(valid) => hashes.extend(valid.valid_indices().map(|row| batch_hashes[row])),
        None => hashes.extend(batch_hashes),
    }
    Ok(())
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
