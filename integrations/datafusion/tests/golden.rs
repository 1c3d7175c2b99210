//! Puts the test vectors of "Keys of other types" in `docs/format.md` through every Arrow type that can hold them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::common::{built, bytes, register, rows, session};
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Int64Array, RecordBatch, StringArray, UInt64Array, new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options, concat, filter, is_not_null};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};

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
    println!(
        "{} types, {} values",
        columns.len(),
        columns.values().map(|(_, hashes)| hashes.len()).sum::<usize>()
    );
    assert!(columns.len() >= 50);

    let context =
        session(&[("datafusion.execution.target_partitions", "2"), ("datafusion.execution.batch_size", "5")]);
    for (data_type, (mut arrays, hashes)) in columns {
        // A null, which belongs to the first group.
        arrays.push(new_null_array(arrays[0].data_type(), 1));
        let arrays: Vec<_> = arrays.iter().map(|array| &**array).collect();
        let ids = Int64Array::from_iter_values((0..hashes.len() as i64).chain([0]));
        let filters = hashes.iter().chain(&hashes[..1]).map(|&hash| built(1, 0.01, [hash]));
        let filters = Arc::new(BinaryArray::from_iter_values(filters));
        context.deregister_table("t").unwrap();
        register(
            &context,
            "t",
            [("id", Arc::new(ids)), ("key", concat(&arrays).unwrap()), ("filter", filters)],
        );

        let whole =
            crate::common::filter(&context, "SELECT bloom_filter(key, 100, 0.01) FROM t").await.unwrap();
        assert_eq!(whole, built(100, 0.01, hashes.iter().copied()), "{data_type}");

        let mut groups = 0;
        let grouped = "SELECT id, bloom_filter(key, 1, 0.01) FROM t GROUP BY id";
        for batch in rows(&context, grouped).await.unwrap() {
            groups += batch.num_rows();
            for (row, &id) in batch.column(0).as_primitive::<Int64Type>().values().iter().enumerate() {
                let expected = built(1, 0.01, [hashes[id as usize]]);
                assert_eq!(bytes(batch.column(1), row).unwrap(), expected, "{data_type}, value {id}");
            }
        }
        assert_eq!(groups, hashes.len(), "{data_type}");

        let lookups =
            "SELECT bloom_contains(filter, key) AS found, count(*) FROM t GROUP BY found ORDER BY found";
        let mut answers = vec![];
        for batch in rows(&context, lookups).await.unwrap() {
            for row in 0..batch.num_rows() {
                let found = batch.column(0).as_boolean();
                let found = found.is_valid(row).then(|| found.value(row));
                answers.push((found, batch.column(1).as_primitive::<Int64Type>().value(row) as usize));
            }
        }
        assert_eq!(answers, [(Some(true), hashes.len()), (None, 1)], "{data_type}");
    }
}

/// Their storage does not hold the value itself.
#[tokio::test]
async fn extension_types_are_refused() {
    let refused = [
        ("arrow.bool8", DataType::Int8),
        ("arrow.opaque", DataType::Binary),
        ("pandas.period", DataType::Int64),
    ];
    for (name, storage) in refused {
        let metadata = HashMap::from([("ARROW:extension:name".to_owned(), name.to_owned())]);
        let key = Field::new("key", storage.clone(), true).with_metadata(metadata);
        let keys = RecordBatch::try_new(Arc::new(Schema::new(vec![key])), vec![new_null_array(&storage, 1)]);
        let context = session(&[]);
        context.register_batch("keys", keys.unwrap()).unwrap();
        for sql in [
            "SELECT bloom_filter(key, 10, 0.1) FROM keys",
            "SELECT key, bloom_filter(key, 10, 0.1) FROM keys GROUP BY key",
            "SELECT bloom_contains((SELECT bloom_filter('ant', 10, 0.1)), key) FROM keys",
        ] {
            let error = rows(&context, sql).await.unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("cast it to an integer or to text"), "{error}");
        }
    }
}
