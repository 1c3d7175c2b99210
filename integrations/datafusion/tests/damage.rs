//! Every function returns an error for a damaged filter, whatever was damaged and whatever the session did before.

use std::sync::Arc;

use crate::common::{bytes, count, hex, register, rows, session};
use arrow::array::{Array, ArrayRef, BinaryArray, BinaryViewArray, Float64Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field};
use bloomline::BloomFilter;
use bloomline_datafusion::scalar_functions;
use datafusion::common::ScalarValue;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use datafusion::prelude::SessionContext;

const KEYS: [&str; 3] = ["ant", "bee", "cat"];

/// A filter of three keys in three blocks.
fn good() -> Vec<u8> {
    let mut filter = BloomFilter::with_blocks(3, 6).unwrap();
    filter.extend(KEYS);
    filter.to_standalone()
}

/// A filter with each byte changed in one bit and in all bits, with every shorter length from either end, and with
/// bytes added. The checksums and the magic cover every bit, so no damage may go unnoticed.
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
    let scalar = |bytes: &[u8]| ColumnarValue::Scalar(ScalarValue::Binary(Some(bytes.to_vec())));
    let array = |array: ArrayRef| ColumnarValue::Array(array);
    let n = filters.len();
    let columns: [ArrayRef; 2] = [
        Arc::new(BinaryArray::from_iter_values(filters)),
        Arc::new(BinaryViewArray::from_iter_values(filters)),
    ];
    let keys: Vec<_> = KEYS.into_iter().cycle().take(n).collect();
    let key_column = || array(Arc::new(StringArray::from(keys.clone())));
    let key = || ColumnarValue::Scalar(ScalarValue::from("bee"));
    let fprs = || ColumnarValue::Scalar(ScalarValue::from(0.5));
    let mut answers = vec![];
    let mut add =
        |name: &str, how: &str, args, n| answers.push((format!("{name} of {how}"), call(name, args, n)));
    for filter in filters {
        let three_keys = || array(Arc::new(StringArray::from(KEYS.to_vec())));
        add("bloom_contains", "a scalar and keys", vec![scalar(filter), three_keys()], 3);
        add("bloom_contains", "two scalars", vec![scalar(filter), key()], 1);
        add("bloom_fold", "a scalar", vec![scalar(filter), fprs()], 1);
        add("bloom_estimated_keys", "a scalar", vec![scalar(filter)], 1);
        add("bloom_estimated_fpr", "a scalar", vec![scalar(filter)], 1);
    }
    for column in columns {
        let how = column.data_type().to_string();
        let column = || array(column.clone());
        add("bloom_contains", &format!("a {how} column and keys"), vec![column(), key_column()], n);
        add("bloom_contains", &format!("a {how} column and a key"), vec![column(), key()], n);
        let fprs = array(Arc::new(Float64Array::from(vec![0.5; n])));
        add("bloom_fold", &format!("a {how} column"), vec![column(), fprs], n);
        add("bloom_estimated_keys", &format!("a {how} column"), vec![column()], n);
        add("bloom_estimated_fpr", &format!("a {how} column"), vec![column()], n);
    }
    answers
}

#[test]
fn every_damage_is_an_error() {
    for (name, answer) in answers(&[&good()]) {
        let answer = answer.unwrap_or_else(|error| panic!("{name} of the good filter: {error}"));
        if let Some(found) = answer.as_any().downcast_ref::<arrow::array::BooleanArray>() {
            assert_eq!(found.true_count(), found.len(), "{name}");
        }
    }
    let damaged = damaged();
    assert_eq!(damaged.len(), 4 * good().len() + 4);
    for (damage, bytes) in &damaged {
        for (name, answer) in answers(&[bytes]) {
            let error = answer.err().unwrap_or_else(|| panic!("{name}, {damage}: no error"));
            assert!(error.to_string().contains(name.split(' ').next().unwrap()), "{name}, {damage}: {error}");
        }
    }
}

#[test]
fn good_filters_in_the_column_do_not_hide_a_damaged_one() {
    let good = good();
    for (damage, bytes) in damaged().iter().step_by(7) {
        for column in [[bytes, &good, &good], [&good, bytes, &good], [&good, &good, bytes]] {
            let column = column.map(|filter| &filter[..]);
            for (name, answer) in answers(&column).into_iter().filter(|(name, _)| name.contains("column")) {
                assert!(answer.is_err(), "{name}, {damage}: no error");
            }
        }
    }
}

/// A table of the good filter, under id −1, and of the damaged ones.
fn with_filters() -> (SessionContext, Vec<String>) {
    let context = session(&[("datafusion.execution.target_partitions", "2")]);
    let (mut names, mut filters): (Vec<_>, Vec<_>) = damaged().into_iter().unzip();
    let ids = Int64Array::from_iter_values((0..names.len() as i64).chain([-1]));
    names.push("good".into());
    filters.push(good());
    let filters = Arc::new(BinaryArray::from_iter_values(&filters));
    register(&context, "filters", [("id", Arc::new(ids)), ("filter", filters)]);
    register(&context, "keys", [("key", Arc::new(StringArray::from(KEYS.to_vec())))]);
    (context, names)
}

/// In one session, each way passes the good filter before the damaged ones.
#[tokio::test]
async fn what_the_session_did_before_does_not_hide_damage() {
    let (context, names) = with_filters();
    let queries = [
        "SELECT count(*) FROM keys WHERE bloom_contains((SELECT filter FROM filters WHERE id = ID), key)",
        "SELECT count(*) FROM keys, filters WHERE id = ID AND bloom_contains(filter, key)",
        "SELECT count(*) FROM keys JOIN (SELECT filter FROM filters WHERE id = ID) ON bloom_contains(filter, key)",
        "SELECT count(*) FROM keys WHERE bloom_contains(x'HEX', key)",
        "SELECT count(*) FROM keys WHERE bloom_contains(
            (SELECT bloom_filter_union(filter) FROM filters WHERE id IN (-1, ID)), key)",
        "SELECT count(*) FROM keys WHERE bloom_contains((SELECT bloom_fold(filter, 1e-5) FROM filters WHERE id = ID), key)",
    ];
    let filters = rows(&context, "SELECT filter FROM filters ORDER BY id").await.unwrap();
    for query in queries {
        for (id, name) in [(names.len() - 1, "good")]
            .into_iter()
            .chain(names.iter().map(String::as_str).enumerate().step_by(61))
        {
            // The good filter is the first by id.
            let hex = hex(&bytes(filters[0].column(0), if name == "good" { 0 } else { id + 1 }).unwrap());
            let id = if name == "good" { -1 } else { id as i64 };
            let sql = query.replace("ID", &id.to_string()).replace("HEX", &hex);
            let answer = count(&context, &sql).await;
            if id == -1 {
                let answer = answer.unwrap_or_else(|error| panic!("{sql}: {error}"));
                assert_eq!(answer, 3, "{sql}");
            } else {
                assert!(answer.is_err(), "{name}: {sql}");
            }
        }
    }
}

#[tokio::test]
async fn a_union_of_damaged_filters_is_an_error() {
    let union = bloomline_datafusion::aggregate_functions()
        .into_iter()
        .find(|f| f.name() == "bloom_filter_union")
        .unwrap();
    let schema = Arc::new(arrow::datatypes::Schema::new(vec![Field::new("filter", DataType::Binary, true)]));
    let column = datafusion::physical_expr::expressions::col("filter", &schema).unwrap();
    let aggregate = datafusion::physical_expr::aggregate::AggregateExprBuilder::new(union, vec![column])
        .schema(schema)
        .alias("union")
        .build()
        .unwrap();
    for (damage, bytes) in damaged() {
        for before in [None, Some(good())] {
            let mut accumulator = aggregate.create_accumulator().unwrap();
            let column: ArrayRef = Arc::new(BinaryArray::from_iter_values(before.iter().chain([&bytes])));
            assert!(accumulator.update_batch(&[column]).is_err(), "{damage}");
        }
    }
}
