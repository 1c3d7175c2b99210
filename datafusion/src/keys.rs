//! Hashes columns of keys, by "Keys of other types" in the format's specification.

use std::fmt::Display;

use arrow::array::{AnyDictionaryArray, Array, ArrayAccessor, ArrowPrimitiveType, AsArray, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::{
    DataType, Field, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use bloomline::{Key, hash_key};
use datafusion_common::{Result, exec_err, plan_err};

/// Extension types whose storage is a type of keys, but whose values are not.
const REFUSED_EXTENSIONS: [&str; 3] = ["arrow.bool8", "arrow.opaque", "pandas.period"];

/// Returns whether values of this type are keys. All values of type null are null, which is no key and no error.
fn is_key(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_key(values),
        DataType::Null
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => true,
        other => other.is_integer(),
    }
}

/// Refuses a type that has no rule.
pub fn check_type(function: &str, data_type: &DataType) -> Result<()> {
    if is_key(data_type) { Ok(()) } else { refuse(function, data_type) }
}

/// Refuses extension types, which `check_type` does not see.
pub fn check_field(function: &str, field: &Field) -> Result<()> {
    match field.extension_type_name() {
        Some(name) if REFUSED_EXTENSIONS.contains(&name) => refuse(function, name),
        _ => check_type(function, field.data_type()),
    }
}

fn refuse(function: &str, data_type: impl Display) -> Result<()> {
    plan_err!("{function}: keys cannot be of type {data_type}: cast it to an integer or to text first")
}

/// The hash of each key. The hash of a null has no meaning.
pub fn hash(keys: &dyn Array, seed: u64) -> Result<Vec<u64>> {
    Ok(match keys.data_type() {
        DataType::Null => vec![0; keys.len()],
        DataType::Utf8 => bytes(keys.as_string::<i32>(), seed),
        DataType::LargeUtf8 => bytes(keys.as_string::<i64>(), seed),
        DataType::Utf8View => bytes(keys.as_string_view(), seed),
        DataType::Binary => bytes(keys.as_binary::<i32>(), seed),
        DataType::LargeBinary => bytes(keys.as_binary::<i64>(), seed),
        DataType::BinaryView => bytes(keys.as_binary_view(), seed),
        DataType::FixedSizeBinary(_) => bytes(keys.as_fixed_size_binary(), seed),
        DataType::Int8 => integers::<Int8Type>(keys, seed),
        DataType::Int16 => integers::<Int16Type>(keys, seed),
        DataType::Int32 => integers::<Int32Type>(keys, seed),
        DataType::Int64 => integers::<Int64Type>(keys, seed),
        DataType::UInt8 => integers::<UInt8Type>(keys, seed),
        DataType::UInt16 => integers::<UInt16Type>(keys, seed),
        DataType::UInt32 => integers::<UInt32Type>(keys, seed),
        DataType::UInt64 => integers::<UInt64Type>(keys, seed),
        DataType::Dictionary(..) => return dictionary(keys.as_any_dictionary(), seed),
        other => return exec_err!("keys cannot be of type {other}"),
    })
}

fn bytes<A: ArrayAccessor<Item: Key>>(keys: A, seed: u64) -> Vec<u64> {
    (0..keys.len()).map(|i| hash_key(keys.value(i), seed)).collect()
}

fn integers<T: ArrowPrimitiveType<Native: Key>>(keys: &dyn Array, seed: u64) -> Vec<u64> {
    keys.as_primitive::<T>().values().iter().map(|value| hash_key(value, seed)).collect()
}

/// Hashes each value of the dictionary once, unless it has more values than there are keys.
fn dictionary(keys: &dyn AnyDictionaryArray, seed: u64) -> Result<Vec<u64>> {
    let (values, indices) = (keys.values(), keys.keys());
    if values.len() > indices.len() {
        return hash(&take(values, indices, None)?, seed);
    }
    let hashes = UInt64Array::from(hash(values, seed)?);
    Ok(take(&hashes, indices, None)?.as_primitive::<UInt64Type>().values().to_vec())
}
