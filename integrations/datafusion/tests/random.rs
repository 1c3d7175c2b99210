//! Random queries. Whatever the functions are given, they answer or return an error, and never panic.

use std::sync::Arc;

use crate::common::{built, runtime, session};
use arrow::array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray};
use bloomline_datafusion::register_filter;
use datafusion::prelude::SessionContext;
use proptest::prelude::*;

/// Expressions over a table of ten rows, or an empty one. Most are of the types of filters, some of other types.
fn filter() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        6 => Just("filter".to_owned()),
        1 => prop::sample::select(vec![
            "x''", "x'00'", "CASE WHEN id = 5 THEN x'0707' ELSE filter END", "NULL",
            "arrow_cast(NULL, 'Binary')", "arrow_cast(NULL, 'Dictionary(Int8, Binary)')",
            "(SELECT max(filter) FROM t)", "(SELECT filter FROM t WHERE false)", "'named'", "'missing'",
            "''", "text",
            "arrow_cast('named', 'Utf8View')", "arrow_cast(NULL, 'Utf8')", "1", "id", "make_array(filter)",
            "named_struct('bloomline_filter', arrow_cast(filter, 'BinaryView'), 'bloomline_is_intact', id > 3)",
            "named_struct('bloomline_name', 'named', 'bloomline_hash', arrow_cast(7, 'UInt64'))",
            "named_struct('bloomline_name', text, 'bloomline_hash', arrow_cast(id, 'UInt64'))",
        ]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(3, 6, 2, |inner| {
        let types = prop::sample::select(vec![
            "Binary",
            "LargeBinary",
            "BinaryView",
            "FixedSizeBinary(192)",
            "Dictionary(Int8, Binary)",
            "Dictionary(UInt64, BinaryView)",
            "Dictionary(Int16, Dictionary(Int8, Binary))",
            "Utf8",
        ]);
        prop_oneof![
            (inner.clone(), types).prop_map(|(inner, to)| format!("arrow_cast({inner}, '{to}')")),
            (inner.clone(), number()).prop_map(|(inner, fpr)| format!("bloom_fold({inner}, {fpr})")),
            inner.clone().prop_map(|inner| format!("CASE WHEN id % 2 = 0 THEN {inner} END")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("coalesce({a}, {b})")),
            inner.clone().prop_map(|inner| format!("bloom_reference({inner})")),
            (inner, number()).prop_map(|(inner, fpr)| format!("bloom_reference({inner}, {fpr})")),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "id",
        "text",
        "7",
        "'k'",
        "NULL",
        "''",
        "x''",
        "1.5",
        "make_array(id)",
        "filter",
        "arrow_cast(NULL, 'Utf8View')",
        "arrow_cast(id, 'UInt8')",
        "arrow_cast(text, 'LargeUtf8')",
        "arrow_cast(text, 'Dictionary(Int8, Utf8)')",
        "arrow_cast(arrow_cast(id, 'Dictionary(Int8, Int64)'), 'Dictionary(Int16, Dictionary(Int8, Int64))')",
        "CASE WHEN id < 5 THEN text END",
        "arrow_cast(text, 'BinaryView')",
        "repeat(text, 9)",
    ])
    .prop_map(str::to_owned)
}

fn number() -> impl Strategy<Value = String> {
    let numbers = vec![
        "0.01",
        "0.9",
        "0",
        "1",
        "-1",
        "100",
        "1e300",
        "NULL",
        "'x'",
        "id",
        "0.1 * id",
        "arrow_cast(0.5, 'Float16')",
    ];
    prop::sample::select(numbers).prop_map(str::to_owned)
}

/// A call of a scalar function, at times with too few or too many arguments.
fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (filter(), key()).prop_map(|(filter, key)| format!("bloom_contains({filter}, {key})")),
        1 => filter().prop_map(|filter| format!("bloom_estimated_keys({filter})")),
        1 => filter().prop_map(|filter| format!("bloom_estimated_fpr({filter})")),
        1 => (filter(), number()).prop_map(|(filter, fpr)| format!("bloom_estimated_fpr(bloom_fold({filter}, {fpr}))")),
        1 => (function(), prop::collection::vec(prop_oneof![filter(), key()], 0..4))
            .prop_map(|(function, args)| format!("{function}({})", args.join(", "))),
    ]
}

fn function() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "bloom_contains",
        "bloom_estimated_keys",
        "bloom_estimated_fpr",
        "bloom_fold",
        "bloom_reference",
        "bloom_reference_in_place",
        "bloom_filter",
        "bloom_filter_union",
        "bloom_filter_in_window",
    ])
}

fn aggregate() -> impl Strategy<Value = String> {
    let call = prop_oneof![
        (
            key(),
            prop_oneof![3 => Just("10".to_owned()), 1 => number()],
            prop_oneof![3 => Just("0.01".to_owned()), 1 => number()]
        )
            .prop_map(|(key, keys, fpr)| ("bloom_filter", format!("{key}, {keys}, {fpr}"))),
        filter().prop_map(|filter| ("bloom_filter_union", filter)),
    ];
    let distinct = prop::sample::select(vec!["", "", "DISTINCT "]);
    let order = prop::sample::select(vec!["", "", " ORDER BY id", " ORDER BY text DESC"]);
    let clause = prop::sample::select(vec!["", "", " FILTER (WHERE id > 4)", " FILTER (WHERE NULL)"]);
    // Only columns, because DataFusion 55.2 panics where two windows share an expression such as `id % 2`.
    let over = prop::sample::select(vec![
        "",
        "",
        "",
        " OVER ()",
        " OVER (ORDER BY id)",
        " OVER (PARTITION BY text)",
        " OVER (PARTITION BY text ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)",
        " OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        " OVER (ORDER BY id RANGE BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING)",
        " OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    ]);
    (call, distinct, order, clause, over).prop_map(|((name, arguments), distinct, order, clause, over)| {
        format!("{name}({distinct}{arguments}{order}){clause}{over}")
    })
}

fn query() -> impl Strategy<Value = String> {
    let table = prop::sample::select(vec![
        "t",
        "t",
        "nothing AS t",
        "(SELECT * FROM t WHERE id < 0) AS t",
        "(SELECT * FROM t LIMIT 3 OFFSET 4) AS t",
        "(SELECT a.id, b.text, b.filter FROM t AS a JOIN t AS b ON a.id = b.id + 1) AS t",
        "(SELECT b.id, b.text, a.filter FROM t AS a RIGHT JOIN nothing AS b ON a.id = b.id) AS t",
    ]);
    let rest =
        prop::sample::select(vec!["", " WHERE id % 3 = 1", " WHERE false", " ORDER BY id DESC LIMIT 2"]);
    let grouped =
        prop::sample::select(vec!["", " GROUP BY id % 2", " GROUP BY text", " GROUP BY id", " HAVING false"]);
    prop_oneof![
        (scalar(), table.clone(), rest)
            .prop_map(|(call, table, rest)| format!("SELECT id, {call} FROM {table}{rest}")),
        (scalar(), table.clone())
            .prop_map(|(call, table)| format!("SELECT count(*) FROM {table} WHERE {call}")),
        (scalar(), scalar(), table.clone()).prop_map(|(a, b, table)| format!(
            "SELECT count(*) FROM {table} JOIN nothing AS n ON t.id = n.id WHERE {a} OR NOT {b}"
        )),
        (aggregate(), table.clone(), grouped.clone())
            .prop_map(|(call, table, grouped)| format!("SELECT {call} FROM {table}{grouped}")),
        (aggregate(), aggregate(), table, grouped).prop_map(|(a, b, table, grouped)| {
            format!("SELECT bloom_contains({a}, 7), bloom_estimated_keys({b}) FROM {table}{grouped}")
        }),
    ]
}

fn with_tables(settings: &[(&str, &str)]) -> SessionContext {
    let context = session(settings);
    let filter = |i: i64| built(10, 0.5, (0..i as u64).map(|key| bloomline::hash_key(key, 0)));
    let ids = Int64Array::from_iter_values(0..10);
    let texts = StringArray::from_iter((0..10).map(|i| (i % 4 != 3).then(|| format!("text {i}"))));
    let filters = BinaryArray::from_iter((0..10).map(|i| match i {
        2 | 9 => None,
        i => Some(filter(i / 3)),
    }));
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(ids) as ArrayRef),
        ("text", Arc::new(texts)),
        ("filter", Arc::new(filters)),
    ])
    .unwrap();
    context.register_batch("nothing", batch.slice(4, 0)).unwrap();
    context.register_batch("t", batch).unwrap();
    let mut named = bloomline::BloomFilter::with_fpr(10, 0.01).unwrap();
    named.insert(7);
    register_filter(&context, "named", named).unwrap();
    context
}

#[test]
fn no_query_panics() {
    let runtime = runtime();
    let sessions = [
        with_tables(&[
            ("datafusion.execution.target_partitions", "3"),
            ("datafusion.execution.batch_size", "3"),
        ]),
        with_tables(&[
            ("datafusion.execution.target_partitions", "2"),
            ("datafusion.execution.skip_partial_aggregation_probe_rows_threshold", "0"),
            ("datafusion.execution.skip_partial_aggregation_probe_ratio_threshold", "0"),
            ("datafusion.optimizer.max_passes", "0"),
        ]),
    ];
    let cases = std::env::var("QUERIES").map_or(300, |text| text.parse().expect("QUERIES"));
    let answered = std::cell::Cell::new(0);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) };
    proptest!(config, |(sql in query(), session in 0..2_usize)| {
        let context = sessions[session].clone();
        let run = runtime.spawn({
            let sql = sql.clone();
            async move { context.sql(&sql).await?.collect().await }
        });
        match runtime.block_on(run) {
            Ok(Ok(_)) => answered.set(answered.get() + 1),
            Ok(Err(error)) => prop_assert!(!error.to_string().contains("panicked"), "{}: {}", sql, error),
            Err(_) => prop_assert!(false, "{sql} panicked"),
        }
    });
    let answered = answered.get();
    println!("{answered} queries of {cases} have an answer");
    assert!(answered * 10 > cases, "only {answered} queries of {cases} have an answer");
}
