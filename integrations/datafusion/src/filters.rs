//! Reads and writes filters in binary columns, as standalone bytes.

use std::error::Error;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryArray, BinaryViewArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, FieldRef, Fields};
use bloomline::{BloomFilter, BloomView, ErrorKind};
use datafusion_common::{
    DataFusionError, Result, exec_datafusion_err, plan_err, resources_datafusion_err, resources_err,
};
use datafusion_expr::ColumnarValue;

/// An error that names the function which met it.
pub fn failed(function: &str, error: impl Error) -> DataFusionError {
    exec_datafusion_err!("{function}: {error}")
}

/// [`failed`], but with DataFusion's own kind of error if memory ran out.
pub fn not_made(function: &str, error: bloomline::Error) -> DataFusionError {
    match error.kind() {
        ErrorKind::OutOfMemory => resources_datafusion_err!("{function}: {error}"),
        _ => failed(function, error),
    }
}

/// Refuses types that cannot hold a filter.
pub fn check_type(function: &str, data_type: &DataType) -> Result<()> {
    match data_type {
        DataType::Dictionary(_, values) => check_type(function, values),
        DataType::Null
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => Ok(()),
        text if text.is_string() => plan_err!(
            "{function}: a filter is of a binary type, not {text}; only bloom_contains takes the name of a \
             registered filter"
        ),
        other => plan_err!("{function}: a filter is of a binary type, not {other}"),
    }
}

/// Opens standalone bytes, and checks all their bits.
pub fn open<'a>(function: &str, bytes: &'a [u8]) -> Result<BloomView<'a>> {
    BloomView::from_standalone(bytes).map_err(|error| failed(function, error))
}

/// Opens standalone bytes that [`open`] has checked before.
pub fn open_unverified<'a>(function: &str, bytes: &'a [u8]) -> Result<BloomView<'a>> {
    BloomView::from_standalone_unverified(bytes).map_err(|error| failed(function, error))
}

/// Returns whether two structs have the same fields, but for nullability and metadata.
pub fn same_fields(a: &Fields, b: &Fields) -> bool {
    let same = |(a, b): (&FieldRef, &FieldRef)| a.name() == b.name() && a.data_type() == b.data_type();
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// The filters of an argument, one per row, or only one if it is a scalar.
pub fn of(function: &str, argument: ColumnarValue) -> Result<BinaryViewArray> {
    check_type(function, &argument.data_type())?;
    views(&match argument {
        ColumnarValue::Array(filters) => filters,
        ColumnarValue::Scalar(filter) => filter.to_array()?,
    })
}

/// A column of filters as views, without a copy of their bytes where the column has them in one buffer.
pub fn views(column: &ArrayRef) -> Result<BinaryViewArray> {
    if let Some(dictionary) = column.as_any_dictionary_opt() {
        // Cast by hand, because Arrow's cast drops the nulls among the values.
        let values: ArrayRef = Arc::new(views(dictionary.values())?);
        return Ok(take(&values, dictionary.keys(), None)?.as_binary_view().clone());
    }
    Ok(cast(column, &DataType::BinaryView)?.as_binary_view().clone())
}

/// A filter, folded as far as its false-positive rate stays at or below `fpr`.
pub fn folded(function: &str, filter: BloomView<'_>, fpr: f64) -> Result<BloomFilter> {
    let folded = filter.to_filter().and_then(|mut filter| {
        filter.shrink_to_fpr(fpr)?;
        Ok(filter)
    });
    folded.map_err(|error| not_made(function, error))
}

/// The most bytes in an array of Binary.
const MAX_COLUMN: usize = if cfg!(test) { 1 << 20 } else { i32::MAX as usize };

/// What to do if the filters of all groups do not fit into one column.
pub const FEWER_GROUPS: &str =
    "raise datafusion.execution.target_partitions, or use fewer groups or smaller filters";

/// A column of filters. `remedy` says what the user can do if they do not fit into one.
pub fn column<'a>(
    function: &str,
    filters: impl Iterator<Item = Option<&'a BloomFilter>> + Clone,
    remedy: &str,
) -> Result<ArrayRef> {
    let total: usize = filters.clone().flatten().map(BloomFilter::standalone_len).sum();
    if total > MAX_COLUMN {
        return resources_err!(
            "{function}: {} filters of {total} bytes together do not fit into one column of 2 GiB: {remedy}",
            filters.flatten().count()
        );
    }
    let mut values = with_room(function, total)?;
    let (mut offsets, mut valid) = (vec![0], Vec::new());
    for filter in filters {
        if let Some(filter) = filter {
            filter.write_standalone(&mut values)?;
        }
        offsets.push(values.len() as i32);
        valid.push(filter.is_some());
    }
    let offsets = OffsetBuffer::new(offsets.into());
    Ok(Arc::new(BinaryArray::try_new(offsets, values.into(), Some(valid.into()))?))
}

/// The standalone bytes of a filter.
pub fn standalone(function: &str, filter: &BloomFilter) -> Result<Vec<u8>> {
    let mut bytes = with_room(function, filter.standalone_len())?;
    filter.write_standalone(&mut bytes)?;
    Ok(bytes)
}

fn with_room(function: &str, bytes: usize) -> Result<Vec<u8>> {
    let mut room = Vec::new();
    match room.try_reserve_exact(bytes) {
        Ok(()) => Ok(room),
        Err(_) => resources_err!("{function}: cannot allocate {bytes} bytes for the result"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, BinaryArray, DictionaryArray, Int32Array};
    use arrow::buffer::NullBuffer;
    use arrow::datatypes::Int32Type;

    use super::views;

    #[test]
    fn null_values_of_a_dictionary_are_null() {
        let (offsets, bytes, _) = BinaryArray::from_iter_values([b"ant", b"bee"]).into_parts();
        let values = BinaryArray::new(offsets, bytes, Some(NullBuffer::from(vec![true, false])));
        let keys = Int32Array::from(vec![Some(0), Some(1), None]);
        let column: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(values)));
        assert_eq!(views(&column).unwrap().iter().collect::<Vec<_>>(), [Some(&b"ant"[..]), None, None]);
    }
}
