//! Hashes the keys of joins, which may have several columns.

use arrow::array::Array;
use arrow::buffer::NullBuffer;
use arrow::record_batch::RecordBatch;
use bloomline::hash_key;
use datafusion_common::Result;

use crate::stored_keys::hash_column;

/// The hash of each row's key, and which rows have a key. A row with a null in any of the columns has none, because a
/// join finds no partner for it.
pub fn hash_rows(batch: &RecordBatch, columns: &[usize]) -> Result<(Vec<u64>, Option<NullBuffer>)> {
    let (mut hashes, mut valid) = (Vec::new(), None);
    for &column in columns {
        let column = batch.column(column);
        valid = NullBuffer::union(valid.as_ref(), column.logical_nulls().as_ref());
        let next = hash_column(column, 0)?;
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
