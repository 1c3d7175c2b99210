//! Every function returns an error for a damaged filter, whatever was damaged and whatever the session did before.

use std::sync::Arc;

use crate::common::{count, hex, register, session};
use crate::partitions::aggregate;
use arrow::array::{ArrayRef, AsArray, BinaryArray, BinaryViewArray, Float64Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field};
use bloomline::sizing::standard::StandardSizing;
use bloomline::variants::{CountingBloomFilter, StandardBloomFilter};
use bloomline::{BloomFilter, Sizing};
use bloomline_datafusion::scalar_functions;
use datafusion::common::ScalarValue;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

const KEYS: [&str; 3] = ["ant", "bee", "cat"];

/// A filter of three keys in three blocks.
fn good() -> Vec<u8> {
    let mut filter = BloomFilter::with_blocks(3, 6).unwrap();
    filter.extend(KEYS);
    filter.to_standalone()
}

/// Filters of other kinds, and a filter with each byte changed in one bit and in all bits, with every shorter length from
/// either end, and with bytes added. The checksums and the magic cover every bit, so no damage may go unnoticed.
fn damaged() -> Vec<(String, Vec<u8>)> {
    let good = good();
    let n = good.len();
    let mut damaged = vec![];
    let mut add = |name: String, bytes: Vec<u8>| damaged.push((name, bytes));
    for at in 0..n {
        for (name, mask) in [("a bit", 1 << (at % 8)), ("all bits", 0xff)] {
            let mut bytes = good.clone();
            bytes[at] ^= mask;
            add(format!("{name} of byte {at} flipped"), bytes);
        }
        add(format!("cut to {at} bytes"), good[..at].to_vec());
        add(format!("the last {at} bytes"), good[n - at..].to_vec());
    }
    add("a byte before".into(), [&[0], &good[..]].concat());
    add("a byte behind".into(), [&good[..], &[0]].concat());
    add("a lane before".into(), [&[0; 8], &good[..]].concat());
    add("twice".into(), [&good[..], &good[..]].concat());
    let standard = StandardBloomFilter::with_sizing(StandardSizing::new(1000, 7).unwrap()).unwrap();
    add("a standard filter".into(), standard.to_standalone());
    let counting = CountingBloomFilter::with_sizing(Sizing::new(12, 7).unwrap()).unwrap();
    add("a counting filter".into(), counting.to_standalone());
    damaged
}

/// Calls a scalar function as a plan would, but without the plan's checks.
fn call(name: &str, args: Vec<ColumnarValue>, n: usize) -> Result<ArrayRef> {
    let functions = scalar_functions();
    let function = functions.iter().find(|function| function.name() == name).unwrap();
    let arg_fields: Vec<_> =
        args.iter().map(|arg| Arc::new(Field::new("arg", arg.data_type(), true))).collect();
    let types: Vec<_> = args.iter().map(ColumnarValue::data_type).collect();
    let return_field = Arc::new(Field::new("answer", function.return_type(&types)?, true));
    let config_options = Arc::new(ConfigOptions::default());
    let args = ScalarFunctionArgs { args, arg_fields, number_rows: n, return_field, config_options };
    function.invoke_with_args(args)?.into_array(n)
}

/// The answers of the scalar functions for each filter alone, and for a column of all filters.
fn answers(filters: &[&[u8]]) -> Vec<(String, Result<ArrayRef>)> {
    let array = |array: ArrayRef| ColumnarValue::Array(array);
    let n = filters.len();
    let keys = |n| array(Arc::new(StringArray::from_iter_values(KEYS.into_iter().cycle().take(n))));
    let key = || ColumnarValue::Scalar(ScalarValue::from("bee"));
    let fpr = || ColumnarValue::Scalar(ScalarValue::from(0.5));
    let mut answers = vec![];
    let mut add =
        |name: &str, how: &str, args, n| answers.push((format!("{name} of {how}"), call(name, args, n)));
    for filter in filters {
        let filter = || ColumnarValue::Scalar(ScalarValue::Binary(Some(filter.to_vec())));
        add("bloom_contains", "a scalar and keys", vec![filter(), keys(3)], 3);
        add("bloom_contains", "two scalars", vec![filter(), key()], 1);
        add("bloom_fold", "a scalar", vec![filter(), fpr()], 1);
        add("bloom_estimated_keys", "a scalar", vec![filter()], 1);
        add("bloom_estimated_fpr", "a scalar", vec![filter()], 1);
    }
    let columns: [ArrayRef; 2] = [
        Arc::new(BinaryArray::from_iter_values(filters)),
        Arc::new(BinaryViewArray::from_iter_values(filters)),
    ];
    for column in columns {
        let column = || array(column.clone());
        add("bloom_contains", "a column and keys", vec![column(), keys(n)], n);
        add("bloom_contains", "a column and a key", vec![column(), key()], n);
        add("bloom_fold", "a column", vec![column(), array(Arc::new(Float64Array::from(vec![0.5; n])))], n);
        add("bloom_estimated_keys", "a column", vec![column()], n);
        add("bloom_estimated_fpr", "a column", vec![column()], n);
    }
    answers
}

#[test]
fn every_damage_is_an_error() {
    let good = &good()[..];
    for (name, answer) in answers(&[good, good, good]) {
        let answer = answer.unwrap_or_else(|error| panic!("{name} of the good filter: {error}"));
        if let Some(found) = answer.as_boolean_opt() {
            assert_eq!(found.true_count(), found.len(), "{name}");
        }
    }
    for (i, (damage, bytes)) in damaged().iter().enumerate() {
        let fails = |(name, answer): (String, Result<ArrayRef>)| {
            let error = answer.err().unwrap_or_else(|| panic!("{name}, {damage}: no error")).to_string();
            assert!(error.contains(name.split(' ').next().unwrap()), "{name}, {damage}: {error}");
        };
        answers(&[bytes]).into_iter().for_each(fails);
        // Good filters in a column do not hide a damaged one.
        for column in [[bytes, good, good], [good, bytes, good], [good, good, bytes]] {
            if i % 7 == 0 {
                answers(&column).into_iter().filter(|(name, _)| name.contains("column")).for_each(fails);
            }
        }
    }
}

/// In one session, each way passes the good filter before the damaged ones.
#[tokio::test]
async fn what_the_session_did_before_does_not_hide_damage() {
    let context = session(&[("datafusion.execution.target_partitions", "2")]);
    let filters: Vec<_> = damaged().into_iter().step_by(61).map(|(_, bytes)| bytes).collect();
    let filters: Vec<_> = [good()].into_iter().chain(filters).collect();
    let ids = Arc::new(Int64Array::from_iter_values(0..filters.len() as i64));
    let column = Arc::new(BinaryArray::from_iter_values(&filters));
    register(&context, "filters", [("id", ids), ("filter", column)]);
    register(&context, "keys", [("key", Arc::new(StringArray::from(KEYS.to_vec())))]);
    for query in [
        "SELECT count(*) FROM keys WHERE bloom_contains((SELECT filter FROM filters WHERE id = ID), key)",
        "SELECT count(*) FROM keys, filters WHERE id = ID AND bloom_contains(filter, key)",
        "SELECT count(*) FROM keys JOIN (SELECT filter FROM filters WHERE id = ID) ON bloom_contains(filter, key)",
        "SELECT count(filter) FROM keys LEFT JOIN filters ON id = ID AND bloom_contains(filter, key)",
        "SELECT count(*) FROM keys WHERE bloom_contains(x'HEX', key)",
        "SELECT count(*) FROM keys WHERE bloom_contains(
            (SELECT bloom_filter_union(filter) FROM filters WHERE id IN (0, ID)), key)",
        "SELECT count(*) FROM keys WHERE bloom_contains((SELECT bloom_fold(filter, 1e-5) FROM filters WHERE id = ID), key)",
    ] {
        for (id, bytes) in filters.iter().enumerate() {
            let sql = query.replace("ID", &id.to_string()).replace("HEX", &hex(bytes));
            match (id, count(&context, &sql).await) {
                (0, answer) => assert_eq!(answer.unwrap(), 3, "{sql}"),
                (_, answer) => assert!(answer.is_err(), "{sql}"),
            }
        }
    }
}

#[test]
fn a_union_of_damaged_filters_is_an_error() {
    let union = aggregate("bloom_filter_union", &DataType::Binary);
    for (damage, bytes) in damaged() {
        for before in [None, Some(good())] {
            let column: ArrayRef = Arc::new(BinaryArray::from_iter_values(before.iter().chain([&bytes])));
            let mut accumulator = union.create_accumulator().unwrap();
            assert!(accumulator.update_batch(&[column]).is_err(), "{damage}");
        }
    }
}
