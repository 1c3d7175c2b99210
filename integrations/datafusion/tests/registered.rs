//! Filters registered under a name, in one process and in plans that travel to other processes.

use crate::common::{count, hex, rows, session, value, with_functions};
use arrow::array::{AsArray, RecordBatch};
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

/// The only number of an answer.
fn only(batches: &[RecordBatch]) -> i64 {
    batches[0].column(0).as_primitive::<Int64Type>().value(0)
}

async fn error(context: &SessionContext, sql: &str) -> String {
    value(context, sql).await.expect_err(sql).to_string()
}

#[tokio::test]
async fn errors_list_few_names_and_the_beginning_of_a_long_one() {
    let context = process(&[]).await;
    assert!(error(&context, COUNT).await.contains("'crawled' in this process (registered: none)"));
    for i in 0..52 {
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

/// A planned query and a prepared statement keep the filter that they found. A view is planned for each query, also if
/// the functions are registered again.
#[tokio::test]
async fn a_filter_that_replaces_another() {
    let context = process(&[]).await;
    rows(&context, "CREATE VIEW seen AS SELECT id FROM t WHERE bloom_contains('crawled', id)").await.unwrap();
    rows(&context, "PREPARE named(TEXT) AS SELECT count(*) FROM t WHERE bloom_contains($1, id)")
        .await
        .unwrap();
    assert!(error(&context, "SELECT count(*) FROM seen").await.contains("registered: none"));
    register_filter(&context, "crawled", filter_of(0..50)).unwrap();
    rows(&context, &format!("PREPARE below AS {COUNT} AND id < $1")).await.unwrap();
    let planned = context.sql(COUNT).await.unwrap().create_physical_plan().await.unwrap();
    for n in [50, 20] {
        register_filter(&context, "crawled", filter_of(0..n)).unwrap();
        let context = with_functions(context.clone());
        for (sql, n) in [
            (COUNT, n),
            ("SELECT count(*) FROM seen", n),
            ("EXECUTE named('crawled')", n),
            ("EXECUTE below(30)", 30),
        ] {
            assert_eq!(count(&context, sql).await.unwrap(), n, "{sql}");
        }
        let frame = context.sql("SELECT count(*) FROM t WHERE bloom_contains($name, id)").await.unwrap();
        let frame = frame.with_param_values(vec![("name", ScalarValue::from("crawled"))]).unwrap();
        assert_eq!(only(&frame.collect().await.unwrap()), n);
    }
    assert_eq!(only(&collect(planned, context.task_ctx()).await.unwrap()), 50);
}

/// Without the rules that find the filter while the query is planned.
#[tokio::test]
async fn a_name_is_found_late() {
    let context = process(&[("datafusion.optimizer.max_passes", "0")]).await;
    register_filter(&context, "crawled", filter_of(0..50)).unwrap();
    assert_eq!(count(&context, COUNT).await.unwrap(), 50);
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
    // Nor do names of columns consist of a literal filter's bytes.
    let literal = hex(&filter_of(0..50).to_standalone());
    let frame = context.sql(&format!("SELECT bloom_contains(x'{literal}', id) FROM t")).await.unwrap();
    let column = frame.into_optimized_plan().unwrap().schema().field(0).name().clone();
    assert!(column.starts_with("bloom_contains(<") && column.len() < 60, "{column}");
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
        let texts = answers.into_iter().map(|answer| match answer {
            Ok(batches) => Ok(only(&batches)),
            Err(error) => Err(error.to_string()),
        });
        texts.collect::<Vec<_>>()
    };
    for answer in answers().await {
        assert!(answer.as_ref().is_err_and(|text| text.contains("registered: none")), "{answer:?}");
    }
    register_filter(&there, "crawled", filter_of(0..50)).unwrap();
    assert_eq!(answers().await, [Ok(50), Ok(50), Ok(50)]);
    // The plan before any rule names no filter in particular.
    register_filter(&there, "crawled", filter_of(0..20)).unwrap();
    let [unoptimized, planned @ ..] = &answers().await[..] else { panic!("three plans") };
    assert_eq!(*unoptimized, Ok(20));
    for answer in planned {
        assert!(answer.as_ref().is_err_and(|text| text.contains("is not the one")), "{answer:?}");
    }
}
