//! Filters as SQL has them: standalone bytes in binary columns.

use std::error::Error;

use arrow::array::{ArrayRef, AsArray, BinaryViewArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use bloomline::{BloomFilter, BloomView, StandaloneFooter};
use datafusion_common::{DataFusionError, Result, exec_datafusion_err, plan_err, resources_datafusion_err};

/// An error that names the function which met it.
pub fn failed(function: &str, error: impl Error) -> DataFusionError {
    exec_datafusion_err!("{function}: {error}")
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
        other => plan_err!("{function}: a filter is of a binary type, not {other}"),
    }
}

/// Opens standalone bytes, all of whose bits are checked.
pub fn open<'a>(function: &str, bytes: &'a [u8]) -> Result<BloomView<'a>> {
    let view = BloomView::from_standalone(bytes).map_err(|error| failed(function, error))?;
    view.verify().map_err(|error| failed(function, error))?;
    Ok(view)
}

/// A column of filters as views, without a copy of their bytes where the column has them in one buffer.
pub fn views(column: &ArrayRef) -> Result<BinaryViewArray> {
    Ok(cast(column, &DataType::BinaryView)?.as_binary_view().clone())
}

/// The standalone bytes of a filter.
pub fn standalone(function: &str, filter: &BloomFilter) -> Result<Vec<u8>> {
    let (mut bytes, n) = (Vec::new(), filter.compact_bytes() + StandaloneFooter::BYTES);
    let refused = |_| resources_datafusion_err!("{function}: cannot allocate {n} bytes for the result");
    bytes.try_reserve_exact(n).map_err(refused)?;
    filter.write_standalone(&mut bytes);
    Ok(bytes)
}
