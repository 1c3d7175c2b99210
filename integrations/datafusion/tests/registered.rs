//! Filters registered under a name, in one process and in plans that travel to other processes.

use std::sync::Arc;

use crate::common::{count, hex, rows, session, value, with_functions};
use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use bloomline::BloomFilter;
use bloomline_datafusion::register_filter;
use datafusion::common::ScalarValue;
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use datafusion_proto::bytes::{
    logical_plan_from_bytes, logical_plan_to_bytes, physical_plan_from_bytes, physical_plan_to_bytes,
};

const COUNT: &str = "SELECT count(*) FROM t WHERE bloom_contains('crawled', id)";

fn filter_of(keys: std::ops::Range<i64>) -> BloomFilter {
    let mut filter = BloomFilter::with_fpr(100, 1e-6).unwrap();
    filter.extend(keys);
    filter
}

/// A process with a view of the ids from 0 to 99.
async fn process(settings: &[(&str, &str)]) -> SessionContext {
    let context = session(settings);
    let ids: Vec<_> = (0..100).map(|id| format!("({id})")).collect();
    rows(&context, &format!("CREATE VIEW t AS SELECT * FROM (VALUES {}) AS t (id)", ids.join(",")))
        .await
        .unwrap();
    context
}

async fn error(context: &SessionContext, sql: &str) -> String {
    value(context, sql).await.expect_err(sql).to_string()
}

#[tokio::test]
async fn a_name_stands_for_its_filter() {
    for settings in [&[][..], &[("datafusion.optimizer.max_passes", "0")]] {
        let context = process(settings).await;
        register_filter(&context, "crawled", filter_of(0..50)).unwrap();
        let shared = Arc::new(filter_of(90..100));
        register_filter(&context, "it's ours", Arc::clone(&shared)).unwrap();
        for (sql, n) in [
            (COUNT, 50),
            ("SELECT count(*) FROM t WHERE bloom_contains('it''s ours', id)", 10),
            (
                "SELECT count(*) FROM t WHERE bloom_contains('crawled', id) OR bloom_contains('it''s ours', id)",
                60,
            ),
            ("SELECT count(*) FROM t WHERE bloom_contains(arrow_cast('crawled', 'Utf8View'), id)", 50),
            ("SELECT count(*) FROM t WHERE bloom_contains('craw' || 'led', id)", 50),
            ("SELECT count(*) FROM t WHERE NOT bloom_contains('crawled', id)", 50),
            ("SELECT count(*) FROM t WHERE bloom_contains('crawled', 7)", 100),
            ("SELECT count(*) FROM t WHERE bloom_contains('crawled', NULL)", 0),
            ("SELECT count(*) FROM t WHERE bloom_contains(arrow_cast(NULL, 'Utf8'), id)", 0),
            ("SELECT sum(CASE WHEN bloom_contains('crawled', id) THEN 1 END) FROM t", 50),
            (
                "SELECT count(*) FROM t AS a JOIN t AS b ON a.id = b.id AND bloom_contains('crawled', a.id)",
                50,
            ),
        ] {
            // The optimizer computes constants.
            if settings.is_empty() || !(sql.contains("arrow_cast") || sql.contains("||")) {
                assert_eq!(count(&context, sql).await.unwrap(), n, "{sql}");
            }
        }
        let answer = context.sql("SELECT bloom_contains('crawled', id) FROM t").await.unwrap();
        let before = answer.schema().field(0).name().clone();
        assert_eq!(before, *answer.collect().await.unwrap()[0].schema().field(0).name());
        assert_eq!(before, "bloom_contains('crawled',t.id)");
        // Nor do names of columns consist of a literal filter's bytes.
        let literal = hex(&filter_of(0..50).to_standalone());
        let frame = context.sql(&format!("SELECT bloom_contains(x'{literal}', id) FROM t")).await.unwrap();
        let column = frame.into_optimized_plan().unwrap().schema().field(0).name().clone();
        assert!(column.starts_with("bloom_contains(<") && column.len() < 60, "{column}");
    }
}

#[tokio::test]
async fn unknown_names_are_errors() {
    let context = process(&[]).await;
    let none = error(&context, COUNT).await;
    assert!(
        none.contains("no filter is registered as 'crawled' in this process (registered: none)"),
        "{none}"
    );
    register_filter(&context, "pages", filter_of(0..50)).unwrap();
    register_filter(&context, "links", filter_of(0..50)).unwrap();
    let others = error(&context, COUNT).await;
    assert!(others.contains("(registered: 'links', 'pages')"), "{others}");
    let in_a_row = error(&context, "SELECT bloom_contains('crawled', 7)").await;
    assert!(in_a_row.contains("(registered: 'links', 'pages')"), "{in_a_row}");
    for sql in [
        "SELECT count(*) FROM t WHERE bloom_contains(arrow_cast(id, 'Utf8'), id)",
        "SELECT count(*) FROM t WHERE bloom_contains(CASE WHEN id > 1 THEN 'pages' ELSE 'links' END, id)",
        // Their plans would name no filter in particular.
        "SELECT count(*) FROM t WHERE bloom_contains((SELECT 'pages'), id)",
        "SELECT count(*) FROM t WHERE bloom_contains((SELECT max('pages') FROM t), id)",
        "PREPARE later AS SELECT count(*) FROM t WHERE bloom_contains((SELECT 'pages'), id) AND id < $1",
    ] {
        let text = error(&context, sql).await;
        assert!(text.contains("must be a literal or a parameter"), "{sql}: {text}");
    }
    for i in 0..50 {
        register_filter(&context, format!("a{i:02}"), filter_of(0..1)).unwrap();
    }
    let stored_as_text = format!("SELECT bloom_contains('{}', 7)", "é0".repeat(1000));
    let text = error(&context, &stored_as_text).await;
    assert!(text.len() < 500, "{text}");
    assert!(text.contains("é0…'") && text.contains("'a19', 32 more)"), "{text}");
    let without = SessionContext::new();
    let text = register_filter(&without, "crawled", filter_of(0..50)).unwrap_err().to_string();
    assert!(text.contains("register_all"), "{text}");
}

/// A view is planned for each query, a prepared statement once.
#[tokio::test]
async fn views_prepared_statements_and_parameters() {
    let context = process(&[]).await;
    rows(&context, "CREATE VIEW seen AS SELECT id FROM t WHERE bloom_contains('crawled', id)").await.unwrap();
    rows(&context, "PREPARE named(TEXT) AS SELECT count(*) FROM t WHERE bloom_contains($1, id)")
        .await
        .unwrap();
    assert!(error(&context, "SELECT count(*) FROM seen").await.contains("registered: none"));
    for n in [50, 20] {
        register_filter(&context, "crawled", filter_of(0..n)).unwrap();
        assert_eq!(count(&context, "SELECT count(*) FROM seen").await.unwrap(), n);
        if n == 50 {
            let prepare =
                "PREPARE below AS SELECT count(*) FROM t WHERE bloom_contains('crawled', id) AND id < $1";
            rows(&context, prepare).await.unwrap();
        }
        assert_eq!(count(&context, "EXECUTE below(30)").await.unwrap(), 30);
        assert_eq!(count(&context, "EXECUTE named('crawled')").await.unwrap(), n);
        let frame = context.sql("SELECT count(*) FROM t WHERE bloom_contains($name, id)").await.unwrap();
        let frame = frame.with_param_values(vec![("name", ScalarValue::from("crawled"))]).unwrap();
        let batches = frame.collect().await.unwrap();
        assert_eq!(*batches[0].column(0).as_primitive::<Int64Type>(), Int64Array::from(vec![n]));
    }
    assert!(error(&context, "EXECUTE named('other')").await.contains("registered: 'crawled'"));
}

/// Otherwise a view would answer from the filters of the first call.
#[tokio::test]
async fn a_second_register_all_keeps_the_filters() {
    let context = process(&[]).await;
    register_filter(&context, "crawled", filter_of(0..50)).unwrap();
    rows(&context, "CREATE VIEW seen AS SELECT id FROM t WHERE bloom_contains('crawled', id)").await.unwrap();
    let context = with_functions(context);
    assert_eq!(count(&context, COUNT).await.unwrap(), 50);
    register_filter(&context, "crawled", filter_of(0..20)).unwrap();
    assert_eq!(count(&context, "SELECT count(*) FROM seen").await.unwrap(), 20);
}

#[tokio::test]
async fn a_planned_query_keeps_its_filter() {
    let context = process(&[]).await;
    register_filter(&context, "crawled", filter_of(0..50)).unwrap();
    let planned = context.sql(COUNT).await.unwrap().create_physical_plan().await.unwrap();
    register_filter(&context, "crawled", filter_of(0..20)).unwrap();
    let batches = collect(planned, context.task_ctx()).await.unwrap();
    assert_eq!(batches[0].column(0).as_primitive::<Int64Type>().value(0), 50);
    assert_eq!(count(&context, COUNT).await.unwrap(), 20);
}

#[tokio::test]
async fn plans_do_not_grow_with_the_filter() {
    let context = process(&[]).await;
    register_filter(&context, "crawled", BloomFilter::with_blocks(1 << 14, 6).unwrap()).unwrap();
    let frame = context.sql(COUNT).await.unwrap();
    let plan = frame.clone().into_optimized_plan().unwrap();
    assert!(plan.display_indent().to_string().contains("crawled"), "{}", plan.display_indent());
    let printed = format!("{plan:?} {plan:#?} {}", plan.display_indent_schema());
    assert!(printed.len() < 1 << 20, "{} bytes are printed", printed.len());
    let physical = frame.create_physical_plan().await.unwrap();
    let bytes = logical_plan_to_bytes(&plan).unwrap().len() + physical_plan_to_bytes(physical).unwrap().len();
    assert!(bytes < 1 << 14, "{bytes} bytes travel");
}

/// Each process looks the name up in its own filters, which must be the same.
#[tokio::test]
async fn processes_agree_on_the_filter() {
    let here = process(&[]).await;
    register_filter(&here, "crawled", filter_of(0..50)).unwrap();
    let plan = here.sql(COUNT).await.unwrap().into_unoptimized_plan();
    let unoptimized = logical_plan_to_bytes(&plan).unwrap();
    let optimized = logical_plan_to_bytes(&here.state().optimize(&plan).unwrap()).unwrap();
    let physical = physical_plan_to_bytes(here.state().create_physical_plan(&plan).await.unwrap()).unwrap();

    let there = process(&[]).await;
    let answers = async || {
        let mut answers = vec![];
        for bytes in [&unoptimized, &optimized] {
            let plan = logical_plan_from_bytes(bytes, &there.task_ctx()).unwrap();
            answers.push(there.execute_logical_plan(plan).await.unwrap().collect().await);
        }
        let plan = physical_plan_from_bytes(&physical, &there.task_ctx()).unwrap();
        answers.push(collect(plan, there.task_ctx()).await);
        let count = |batches: Vec<RecordBatch>| batches[0].column(0).as_primitive::<Int64Type>().value(0);
        let texts = answers.into_iter().map(|answer| answer.map(count).map_err(|error| error.to_string()));
        texts.collect::<Vec<_>>()
    };
    for answer in answers().await {
        assert!(answer.as_ref().is_err_and(|text| text.contains("registered: none")), "{answer:?}");
    }
    register_filter(&there, "crawled", filter_of(0..50)).unwrap();
    for answer in answers().await {
        assert_eq!(answer, Ok(50));
    }
    // The plan before any rule names no filter in particular.
    register_filter(&there, "crawled", filter_of(0..20)).unwrap();
    let [unoptimized, planned @ ..] = &answers().await[..] else { panic!("three plans") };
    assert_eq!(*unoptimized, Ok(20));
    for answer in planned {
        assert!(answer.as_ref().is_err_and(|text| text.contains("is not the one")), "{answer:?}");
    }
}
