//! Plans travel between processes as the bytes of `datafusion-proto`. They need no codec, because functions go by name.

use crate::common::{filter, hex, lines, session};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::collect;
use datafusion::prelude::{CsvReadOptions, SessionContext};
use datafusion_proto::bytes::{
    logical_plan_from_bytes, logical_plan_to_bytes, physical_plan_from_bytes, physical_plan_to_bytes,
};
use tempfile::TempDir;

const QUERIES: [&str; 16] = [
    "SELECT bloom_filter(id, 300, 0.01) FROM t",
    "SELECT day, bloom_filter(name, 300, 0.01) FROM t GROUP BY day",
    "SELECT day, bloom_filter(id, 1e3, 1e-3) FILTER (WHERE id % 2 = 0) FROM t GROUP BY day",
    "SELECT bloom_filter(DISTINCT name, 300, 0.01) FROM t",
    "SELECT bloom_filter_union(filter) FROM f",
    "SELECT day % 2, bloom_filter_union(filter) FROM f GROUP BY day % 2",
    "SELECT day, bloom_estimated_keys(filter), bloom_estimated_fpr(filter), bloom_fold(filter, 0.5) FROM f",
    "SELECT count(*), sum(id) FROM t WHERE bloom_contains(x'HEX', id)",
    "SELECT count(*), sum(id) FROM t WHERE NOT bloom_contains(x'HEX', id) OR id = 7",
    "SELECT count(*), sum(id) FROM t WHERE bloom_contains((SELECT filter FROM f WHERE day = 1), id)",
    "SELECT count(*), sum(id) FROM t WHERE bloom_contains((SELECT bloom_filter(id, 99, 1e-6) FROM t WHERE day = 2), id)",
    "SELECT count(*), sum(id) FROM t, f WHERE bloom_contains(filter, id)",
    "SELECT t.day, count(*) FROM t JOIN f ON t.day = f.day WHERE bloom_contains(filter, id) GROUP BY t.day",
    "SELECT count(*), count(filter) FROM t LEFT JOIN f ON t.day = f.day + 1 AND bloom_contains(filter, id)",
    "SELECT id, bloom_contains(filter, id) FROM t, f WHERE id < 10",
    "SELECT id, bloom_contains(bloom_filter(name, 300, 0.01) OVER (ORDER BY id), 'name 9') FROM t WHERE id < 20",
];

/// A process, which knows the files of `t (id, day, name)`, of 300 rows, and the view `f (day, filter)`.
async fn process(folder: &TempDir) -> SessionContext {
    let context = session(&[("datafusion.execution.target_partitions", "3")]);
    context.register_csv("t", folder.path().to_str().unwrap(), CsvReadOptions::default()).await.unwrap();
    let view = "CREATE VIEW f AS SELECT day, bloom_filter(id, 100, 1e-6) AS filter FROM t GROUP BY day";
    context.sql(view).await.unwrap().collect().await.unwrap();
    context
}

fn files() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for day in 0..3 {
        let rows: String =
            (0..100).map(|i| 3 * i + day).map(|id| format!("{id},{day},name {id}\n")).collect();
        std::fs::write(folder.path().join(format!("{day}.csv")), format!("id,day,name\n{rows}")).unwrap();
    }
    folder
}

async fn run(context: &SessionContext, plan: LogicalPlan) -> Vec<String> {
    lines(&context.execute_logical_plan(plan).await.unwrap().collect().await.unwrap())
}

#[tokio::test]
async fn plans_travel_as_bytes() {
    let folder = files();
    let (here, there) = (process(&folder).await, process(&folder).await);
    let hex = hex(&filter(&here, "SELECT filter FROM f WHERE day = 2").await.unwrap());
    let mut rewritten = 0;
    for query in QUERIES {
        let sql = query.replace("HEX", &hex);
        let plan = here.sql(&sql).await.unwrap().into_unoptimized_plan();
        let expected = run(&here, plan.clone()).await;
        assert!(expected.len() > 3, "{sql}: no row");

        let back = |plan: &LogicalPlan| {
            let bytes = logical_plan_to_bytes(plan).unwrap_or_else(|error| panic!("{sql}: {error}"));
            logical_plan_from_bytes(&bytes, &there.task_ctx())
                .unwrap_or_else(|error| panic!("{sql}: {error}"))
        };
        assert_eq!(run(&there, back(&plan)).await, expected, "{sql}");

        // The rules ran here, and they run there once more.
        let optimized = here.state().optimize(&plan).unwrap();
        assert_eq!(run(&there, back(&optimized)).await, expected, "{sql}, optimized");
        rewritten += usize::from(optimized.display_indent().to_string().contains("bloom_reference"));

        let physical = here.state().create_physical_plan(&plan).await.unwrap();
        let bytes = physical_plan_to_bytes(physical).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let physical = physical_plan_from_bytes(&bytes, &there.task_ctx())
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(lines(&collect(physical, there.task_ctx()).await.unwrap()), expected, "{sql}, physical");
    }
    assert!(rewritten >= 6, "only {rewritten} plans refer to filters: the rewriting was not tested");
}

/// A process without the functions returns an error, not a wrong answer.
#[tokio::test]
async fn a_process_without_the_functions_refuses_the_plan() {
    let folder = files();
    let here = process(&folder).await;
    let stranger = SessionContext::new();
    for sql in
        ["SELECT bloom_filter(id, 300, 0.01) FROM t", "SELECT id, bloom_contains(filter, id) FROM t, f"]
    {
        let plan = here.sql(sql).await.unwrap();
        let bytes = logical_plan_to_bytes(plan.logical_plan()).unwrap();
        let error = logical_plan_from_bytes(&bytes, &stranger.task_ctx()).unwrap_err().to_string();
        assert!(error.contains("bloom_"), "{error}");
        let physical = plan.create_physical_plan().await.unwrap();
        let bytes = physical_plan_to_bytes(physical).unwrap();
        let error = physical_plan_from_bytes(&bytes, &stranger.task_ctx()).unwrap_err().to_string();
        assert!(error.contains("bloom_"), "{error}");
    }
}
