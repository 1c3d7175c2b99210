//! SQL's filters have the bytes of the Rust crate's. Puts the test vectors of "Keys of other types" in `docs/format.md`
//! through every Arrow type that can hold them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::common::{built, bytes, count, register, rows, session};
use arrow::array::{Array, ArrayRef, BinaryArray, Int64Array, StringArray, UInt64Array, new_null_array};
use arrow::compute::{CastOptions, cast_with_options, concat, filter, is_not_null};
use arrow::datatypes::DataType;
use bloomline::BloomFilter;

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

/// The values in keys.tsv with their hashes, but for six Python integers that no Arrow integer holds.
fn goldens() -> Vec<(ArrayRef, u64)> {
    let unhex = |digits: &str| -> Vec<u8> {
        (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
    };
    let lines = include_str!("../../../tests/golden/keys.tsv").lines().skip(1);
    let goldens = lines.filter_map(|line| {
        let [type_, value, _, hash, _] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let value: ArrayRef = match (type_, value.parse::<i64>()) {
            ("text", _) => Arc::new(StringArray::from(vec![value.replace("\\0", "\0")])),
            ("binary", _) => Arc::new(BinaryArray::from_iter_values([unhex(value)])),
            (_, Ok(value)) => Arc::new(Int64Array::from(vec![value])),
            _ => Arc::new(UInt64Array::from(vec![value.parse::<u64>().ok()?])),
        };
        Some((value, u64::from_str_radix(hash, 16).unwrap()))
    });
    let goldens: Vec<_> = goldens.collect();
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
    for (value, hash) in goldens() {
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

/// The number of modules follows from the rate and the number of keys.
#[tokio::test]
async fn sql_and_rust_make_the_same_bytes_at_every_rate_and_size() {
    let mut numbers_of_modules = BTreeSet::new();
    for n in [100, 100_000] {
        let context = session(&[]);
        rows(&context, &format!("CREATE TABLE t AS SELECT value AS id FROM range({})", 2 * n)).await.unwrap();
        for fpr in [0.01, 1e-3, 1e-4, 1e-6] {
            let sql = format!("SELECT bloom_filter(id, {n}, {fpr}) FROM t WHERE id < {n}");
            let of_sql = crate::common::filter(&context, &sql).await.unwrap();
            let mut of_rust = BloomFilter::with_fpr(n, fpr).unwrap();
            of_rust.extend(0..n as i64);
            assert_eq!(of_sql, of_rust.to_standalone(), "{n} keys at {fpr}");
            numbers_of_modules.insert(of_rust.n_modules());

            let found = (0..2 * n as i64).filter(|&key| of_rust.contains(key)).count() as i64;
            context.deregister_table("f").unwrap();
            register(&context, "f", [("filter", Arc::new(BinaryArray::from_iter_values([of_sql])))]);
            for (of, expected) in [
                ("contains((SELECT filter FROM f), id)", found),
                ("contains((SELECT bloom_filter_union(filter) FROM f), id)", found),
                ("contains((SELECT bloom_fold(filter, 0.5) FROM f), id) AND id < 100", 100),
            ] {
                let sql = format!("SELECT count(*) FROM t WHERE bloom_{of}");
                assert_eq!(count(&context, &sql).await.unwrap(), expected, "{of}, {n} keys at {fpr}");
            }
        }
    }
    assert_eq!(numbers_of_modules, BTreeSet::from([1, 2]));
}
