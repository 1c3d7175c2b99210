//! Puts the test vectors of "Keys of other types" in `docs/format.md` through every Arrow type that can hold them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{built, bytes, count, register, session};
use arrow::array::{Array, ArrayRef, BinaryArray, Int64Array, StringArray, UInt64Array, new_null_array};
use arrow::compute::{CastOptions, cast_with_options, concat, filter, is_not_null};
use arrow::datatypes::DataType;

const INTEGERS: [DataType; 8] = [
    DataType::Int8,
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::UInt8,
    DataType::UInt16,
    DataType::UInt32,
    DataType::UInt64,
];
const TEXT: [DataType; 3] = [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View];
const BINARY: [DataType; 3] = [DataType::Binary, DataType::LargeBinary, DataType::BinaryView];

/// A line of keys.tsv.
struct Golden {
    value: ArrayRef,
    hash: u64,
}

/// All but six Python integers that no Arrow integer holds.
fn goldens() -> Vec<Golden> {
    let unhex = |digits: &str| -> Vec<u8> {
        (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
    };
    let lines = include_str!("../../../tests/golden/keys.tsv").lines().skip(1);
    let goldens: Vec<_> = lines
        .filter_map(|line| {
            let [type_, value, _, hash, _] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
            let value: ArrayRef = match type_ {
                "text" => Arc::new(StringArray::from(vec![value.replace("\\0", "\0")])),
                "binary" => Arc::new(BinaryArray::from_iter_values([unhex(value)])),
                _ => match value.parse::<i64>() {
                    Ok(value) => Arc::new(Int64Array::from(vec![value])),
                    Err(_) => Arc::new(UInt64Array::from(vec![value.parse::<u64>().ok()?])),
                },
            };
            Some(Golden { value, hash: u64::from_str_radix(hash, 16).unwrap() })
        })
        .collect();
    assert_eq!(goldens.len(), 70 - 6);
    goldens
}

/// The types to try, which hold this value or not.
fn types_for(value: &ArrayRef) -> Vec<DataType> {
    let dictionary = |index: &DataType, values: &DataType| {
        DataType::Dictionary(Box::new(index.clone()), Box::new(values.clone()))
    };
    let (plain, values): (&[_], _) = match value.data_type() {
        DataType::Utf8 => (&[&TEXT[..], &BINARY[..]].concat(), &DataType::Utf8),
        DataType::Binary => (&BINARY, &DataType::Binary),
        _ => (&INTEGERS, value.data_type()),
    };
    let by_index = INTEGERS.iter().map(|index| dictionary(index, values));
    let by_value = plain.iter().map(|values| dictionary(&DataType::Int32, values));
    let mut types: Vec<_> = plain.iter().cloned().chain(by_index).chain(by_value).collect();
    if let DataType::Binary = value.data_type() {
        let n = bytes(value, 0).unwrap().len() as i32;
        types.extend((n > 0).then_some(DataType::FixedSizeBinary(n)));
    }
    types
}

/// The array as another type, empty if the type cannot hold the value.
fn cast(array: &ArrayRef, data_type: &DataType) -> ArrayRef {
    let cast = |array: &ArrayRef, to: &DataType| {
        cast_with_options(array, to, &CastOptions { safe: true, ..Default::default() }).unwrap()
    };
    // Not every pair of types has a cast of its own.
    let array = match data_type {
        DataType::Dictionary(_, values) => &cast(array, values),
        _ => array,
    };
    let array = cast(array, data_type);
    filter(&array, &is_not_null(&array).unwrap()).unwrap()
}

#[tokio::test]
async fn keys_of_every_type_match_the_format() {
    let mut columns: BTreeMap<String, (Vec<ArrayRef>, Vec<u64>)> = BTreeMap::new();
    for Golden { value, hash } in goldens() {
        for data_type in types_for(&value) {
            let array = cast(&value, &data_type);
            if !array.is_empty() {
                let (arrays, hashes) = columns.entry(data_type.to_string()).or_default();
                arrays.push(array);
                hashes.push(hash);
            }
        }
    }
    assert!(columns.len() >= 50, "{} types", columns.len());

    let context =
        session(&[("datafusion.execution.target_partitions", "2"), ("datafusion.execution.batch_size", "5")]);
    for (data_type, (mut arrays, hashes)) in columns {
        arrays.push(new_null_array(arrays[0].data_type(), 1));
        let arrays: Vec<_> = arrays.iter().map(|array| &**array).collect();
        let filters = hashes.iter().chain(&hashes[..1]).map(|&hash| built(1, 0.01, [hash]));
        let filters = Arc::new(BinaryArray::from_iter_values(filters));
        context.deregister_table("t").unwrap();
        register(&context, "t", [("key", concat(&arrays).unwrap()), ("filter", filters)]);

        let whole =
            crate::common::filter(&context, "SELECT bloom_filter(key, 100, 0.01) FROM t").await.unwrap();
        assert_eq!(whole, built(100, 0.01, hashes.iter().copied()), "{data_type}");

        // Each key's filter is beside it.
        let sql = "SELECT count(*) FILTER (WHERE bloom_contains(filter, key)) * 1000
                        + count(*) FILTER (WHERE bloom_contains(filter, key) IS NULL) FROM t";
        assert_eq!(count(&context, sql).await.unwrap(), 1000 * hashes.len() as i64 + 1, "{data_type}");
    }
}
