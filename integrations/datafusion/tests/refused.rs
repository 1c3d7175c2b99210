//! What the functions refuse while they are planned, before a row is read.

use std::collections::HashMap;
use std::sync::Arc;

use crate::common::session;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema};

/// The error of planning a query that reads no row.
async fn error(sql: &str) -> String {
    let context = session(&[]);
    let name = |name: &str| HashMap::from([("ARROW:extension:name".to_owned(), name.to_owned())]);
    let nothing = Schema::new(vec![
        Field::new("key", DataType::Int64, true),
        Field::new("text", DataType::Utf8, true),
        Field::new("filter", DataType::Binary, true),
        Field::new_list("array", Field::new_list_field(DataType::Int64, true), true),
        Field::new("bool8", DataType::Int8, true).with_metadata(name("arrow.bool8")),
        Field::new("opaque", DataType::Binary, true).with_metadata(name("arrow.opaque")),
        Field::new("period", DataType::Int64, true).with_metadata(name("pandas.period")),
    ]);
    context.register_batch("nothing", RecordBatch::new_empty(Arc::new(nothing))).unwrap();
    let plan = match context.sql(&format!("SELECT {sql}")).await {
        Ok(frame) => frame.into_optimized_plan(),
        Err(error) => Err(error),
    };
    plan.expect_err(sql).to_string()
}

/// Another engine might choose other bytes for these types, so that lookups would miss keys.
#[tokio::test]
async fn keys_of_types_without_a_rule() {
    for (key, data_type) in [
        ("arrow_cast(1.5, 'Float16')", "Float16"),
        ("CAST(1 AS FLOAT)", "Float32"),
        ("1.5", "Float64"),
        ("CAST(1 AS DECIMAL(10, 2))", "Decimal128"),
        ("CAST(1 AS DECIMAL(50, 2))", "Decimal256"),
        ("true", "Boolean"),
        ("DATE '2026-01-01'", "Date32"),
        ("arrow_cast(DATE '2026-01-01', 'Date64')", "Date64"),
        ("TIME '12:00:00'", "Time64"),
        ("TIMESTAMP '2026-01-01T00:00:00'", "Timestamp"),
        ("arrow_cast(0, 'Timestamp(Second, Some(\"UTC\"))')", "Timestamp"),
        ("INTERVAL '1 day'", "Interval"),
        ("arrow_cast(1, 'Duration(Second)')", "Duration"),
        ("named_struct('a', 1)", "Struct"),
        ("array", "List"),
        ("arrow_cast(1.5, 'Dictionary(Int32, Float64)')", "Float64"),
        ("arrow_cast(DATE '2026-01-01', 'Dictionary(Int32, Date32)')", "Date32"),
        // The storage of these does not hold the value itself.
        ("bool8", "arrow.bool8"),
        ("opaque", "arrow.opaque"),
        ("period", "pandas.period"),
    ] {
        for sql in [
            format!("bloom_filter({key}, 10, 0.1) FROM nothing"),
            format!("key, bloom_filter({key}, 10, 0.1) FROM nothing GROUP BY key"),
            format!("bloom_contains(filter, {key}) FROM nothing"),
        ] {
            let error = error(&sql).await;
            let remedy = "cast it to an integer or to text first";
            assert!(error.contains(data_type) && error.contains(remedy), "{sql}: {error}");
        }
    }
}

#[tokio::test]
async fn constants_out_of_range() {
    for (constants, expected) in [
        ("-1, 0.01", "expected_keys must be a whole number from 0 to 2^53, not -1"),
        ("1.5, 0.01", "expected_keys must be a whole number from 0 to 2^53, not 1.5"),
        ("1e19, 0.01", "expected_keys must be a whole number from 0 to 2^53"),
        ("1e30, 0.01", "expected_keys must be a whole number from 0 to 2^53"),
        ("CAST('NaN' AS DOUBLE), 0.01", "expected_keys must be a whole number from 0 to 2^53, not NaN"),
        ("CAST('Infinity' AS DOUBLE), 0.01", "expected_keys must be a whole number from 0 to 2^53, not inf"),
        ("NULL, 0.01", "expected_keys must be a number, not NULL"),
        ("CAST(NULL AS BIGINT), 0.01", "expected_keys must be a number, not NULL"),
        ("'many', 0.01", "expected_keys must be a number, not of type Utf8"),
        ("true, 0.01", "expected_keys must be a number, not of type Boolean"),
        ("key, 0.01", "expected_keys must be a constant, not nothing.key"),
        ("1e10, 0.01", "exceeds SQL's limit of 2147483647 bytes"),
        ("100, 0", "between 0 and 1, both excluded, not 0"),
        ("100, 1", "between 0 and 1, both excluded, not 1"),
        ("100, -0.01", "between 0 and 1, both excluded, not -0.01"),
        ("100, CAST('NaN' AS DOUBLE)", "between 0 and 1, both excluded, not NaN"),
        ("100, 1e-13", "1e-13 is out of reach: request at least 5.43208e-13"),
        ("100, NULL", "fpr must be a number, not NULL"),
        ("100, 'low'", "fpr must be a number, not of type Utf8"),
        ("100, key", "fpr must be a constant, not nothing.key"),
    ] {
        for group in ["", " GROUP BY text"] {
            let sql = format!("bloom_filter(key, {constants}) FROM nothing{group}");
            let error = error(&sql).await;
            assert!(error.contains("bloom_filter: ") && error.contains(expected), "{sql}: {error}");
        }
    }
}

#[tokio::test]
async fn other_arguments() {
    for (call, expected) in [
        ("bloom_filter(key)", "false-positive rate, not 1 argument"),
        ("bloom_filter(key, 100)", "false-positive rate, not 2 arguments"),
        ("bloom_filter(key, 100, 0.01, 1)", "false-positive rate, not 4 arguments"),
        ("bloom_filter_union(key)", "bloom_filter_union: a filter is of a binary type, not Int64"),
        ("bloom_contains(filter)", "bloom_contains takes a filter and a key, not 1 argument"),
        ("bloom_contains(filter, 1, 2)", "bloom_contains takes a filter and a key, not 3 arguments"),
        ("bloom_contains(key, 1)", "bloom_contains: a filter is of a binary type, not Int64"),
        ("bloom_contains(text, 1)", "bloom_contains: a filter is of a binary type, not Utf8"),
        ("bloom_contains('text', 1)", "no filter is registered as 'text' in this process (registered: none)"),
        (
            "bloom_contains(named_struct('bloomline_filter', 1), 1)",
            "a filter is of a binary type, not Struct",
        ),
        (
            "bloom_contains(named_struct('bloomline_filter', arrow_cast(filter, 'BinaryView')), 1)",
            "a filter is of a binary type, not Struct",
        ),
        ("bloom_estimated_keys()", "bloom_estimated_keys takes a filter, not 0 arguments"),
        ("bloom_estimated_keys('text')", "a filter is of a binary type, not Utf8"),
        ("bloom_estimated_keys(1.5)", "a filter is of a binary type, not Float64"),
        ("bloom_estimated_fpr(filter, 1)", "bloom_estimated_fpr takes a filter, not 2 arguments"),
        ("bloom_fold(filter)", "bloom_fold takes a filter and a false-positive rate, not 1 argument"),
        ("bloom_fold(filter, 'low')", "bloom_fold: fpr must be a number, not of type Utf8"),
    ] {
        let error = error(&format!("{call} FROM nothing")).await;
        assert!(error.contains(expected), "{call}: {error}");
    }
}
