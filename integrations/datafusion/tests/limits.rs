//! Results that an array of Binary cannot hold, because it ends at 2 GiB.

use std::sync::Arc;

use crate::common::{built, register, rows, session, value};
use arrow::array::{AsArray, BinaryArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::prelude::SessionContext;

async fn numbers(context: &SessionContext, sql: &str) -> Vec<i64> {
    let batches = rows(context, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

fn with_ids(n: i64) -> SessionContext {
    let context = session(&[]);
    register(&context, "t", [("id", Arc::new(Int64Array::from_iter_values(0..n)))]);
    context
}

/// 250 results of 12 MB each.
#[tokio::test]
async fn windows_over_all_rows() {
    let context = with_ids(250);
    let found = "SELECT count(*) FROM (SELECT id, bloom_filter(id, 10000000, 0.01) OVER () AS filter FROM t)
                 WHERE bloom_contains(filter, id) AND NOT bloom_contains(filter, id + 250)";
    assert_eq!(numbers(&context, found).await, [250]);
    let union = "SELECT count(*) FROM (
                     SELECT id, bloom_filter_union(filter) FILTER (WHERE id = 0) OVER () AS union_of_one
                     FROM t, (SELECT arrow_cast(bloom_filter(id, 10000000, 0.01), 'BinaryView') AS filter
                              FROM t WHERE id % 2 = 0))
                 WHERE bloom_contains(union_of_one, id)";
    assert_eq!(numbers(&context, union).await, [125]);
}

/// The result's column is named after the function, and functions of filters accept the result.
#[tokio::test]
async fn windows_return_views() {
    let context = with_ids(3);
    let sql = "SELECT bloom_filter(id, 10, 0.01) OVER (ORDER BY id), bloom_filter_union(x'') OVER ()
               FROM t WHERE false";
    let frame = context.sql(sql).await.unwrap();
    assert!(frame.schema().fields().iter().all(|field| *field.data_type() == DataType::BinaryView));
    let names: Vec<_> = frame.schema().fields().iter().map(|field| field.name().as_str()).collect();
    assert!(names[0].starts_with("bloom_filter(t.id,"), "{names:?}");
    assert!(names[1].starts_with("bloom_filter_union("), "{names:?}");
    let estimate = "SELECT CAST(bloom_estimated_keys(bloom_fold(w, 0.1)) AS BIGINT)
                    FROM (SELECT id, bloom_filter(id, 99, 0.01) OVER (ORDER BY id) AS w FROM t) ORDER BY id";
    assert_eq!(numbers(&context, estimate).await, [1, 2, 3]);
}

/// The key of 300,000 bytes would fill 2.7 GB if it were repeated for each filter.
#[tokio::test]
async fn a_long_constant_key_beside_many_filters() {
    let context = session(&[("datafusion.execution.batch_size", "9000")]);
    let key = "k".repeat(300_000);
    let (with, without) = (built(1, 0.01, [bloomline::hash_key(&key, 0)]), built(1, 0.01, []));
    let filters = BinaryArray::from_iter_values((0..9000).map(|i| if i % 3 == 0 { &with } else { &without }));
    register(&context, "f", [("filter", Arc::new(filters))]);
    let sql = "SELECT count(*) FROM f WHERE bloom_contains(filter, repeat('k', 300000))";
    assert_eq!(numbers(&context, sql).await, [3000]);
    let null = "SELECT count(*) FROM f WHERE bloom_contains(filter, arrow_cast(NULL, 'Utf8')) IS NULL";
    assert_eq!(numbers(&context, null).await, [9000]);
}

/// 6,000 rows share a filter of 1.2 MB. With a copy each, they would fill 7 GB.
#[tokio::test]
async fn a_folded_filter_is_not_copied_for_each_row() {
    let context = with_ids(6000);
    let create = "CREATE TABLE f AS
                  SELECT bloom_filter(id, 1000000, 0.01) AS filter, 0.05 AS fpr FROM t WHERE id < 3000";
    rows(&context, create).await.unwrap();
    for sql in [
        "SELECT count(*) FROM t, f WHERE bloom_contains(bloom_fold(f.filter, 0.05), id) AND id < 3500",
        "SELECT count(*) FROM t JOIN f ON true WHERE bloom_contains(bloom_fold(filter, 0.05), id) AND id < 3500",
        "SELECT sum(CASE WHEN bloom_contains(bloom_fold(filter, 0.05), id) THEN 1 END) FROM t, f WHERE id < 3500",
    ] {
        let found = numbers(&context, sql).await[0];
        assert!((3000..3100).contains(&found), "{sql}: {found}");
    }
    let plan = "EXPLAIN SELECT count(*) FROM t, f WHERE bloom_contains(bloom_fold(f.filter, 0.05), id)";
    let plan = rows(&context, plan).await.unwrap();
    let plan = plan[0].column(1).as_string::<i32>().value(0).to_owned();
    let (join, folded) =
        (plan.find("Join").expect("a join"), plan.find("bloom_reference(").expect("a reference"));
    assert!(join < folded, "folded above the join:\n{plan}");
    // A rate outside 0 to 1 is an error.
    for fpr in ["1.5", "0.0", "CAST('NaN' AS DOUBLE)"] {
        let sql = format!("SELECT count(*) FROM t, f WHERE bloom_contains(bloom_fold(filter, {fpr}), id)");
        let error = value(&context, &sql).await.unwrap_err().to_string();
        assert!(error.contains("between 0 and 1"), "{error}");
    }
    let by_column =
        "SELECT count(*) FROM (SELECT * FROM t LIMIT 9), f WHERE bloom_contains(bloom_fold(filter, fpr), id)";
    assert_eq!(numbers(&context, by_column).await, [9]);
    let null = "SELECT count(*) FROM (SELECT * FROM t LIMIT 9), f
                WHERE bloom_contains(bloom_fold(filter, NULL), id) IS NULL";
    assert_eq!(numbers(&context, null).await, [9]);
}
