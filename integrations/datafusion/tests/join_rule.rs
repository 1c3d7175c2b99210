//! Joins that filter themselves: what `tests/sql/joins.slt` cannot tell.

use std::sync::Arc;

use crate::common::{lines, rows, session};
use crate::sql::find;
use arrow::array::RecordBatch;
use bloomline_datafusion::{JoinFilterCodec, register_join_filters};
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable, execute_stream_partitioned};
use datafusion::prelude::SessionContext;
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::physical_plan::{ComposedPhysicalExtensionCodec, DefaultPhysicalExtensionCodec};
use futures::StreamExt;

/// A session with the tables `small (sk, sv)`, of `small` rows, and `large (lk, lv)`, of 2000. The rule acts wherever
/// it may.
async fn tables(small: usize) -> SessionContext {
    let context = session(&[
        ("datafusion.execution.target_partitions", "3"),
        ("datafusion.execution.batch_size", "64"),
    ]);
    add_tables(&context, small).await;
    context
}

async fn add_tables(context: &SessionContext, small: usize) {
    for sql in [
        format!("CREATE TABLE small AS SELECT value * 7 AS sk, value AS sv FROM range({small})"),
        "CREATE TABLE large AS SELECT value AS lk, value % 5 AS lv FROM range(2000)".to_owned(),
    ] {
        rows(context, &sql).await.unwrap();
    }
    // The session keeps the tables that it has.
    register_join_filters(context);
    rows(context, "SET bloomline.join_filters.force = true").await.unwrap();
}

/// A number of `EXPLAIN ANALYZE`, summed over partitions. It is 0 if there is none.
fn counted(plan: &Arc<dyn ExecutionPlan>, operator: &str, name: &str) -> usize {
    let metrics = find(plan, operator).metrics().expect("metrics");
    metrics.sum_by_name(name).map_or(0, |metric| metric.as_usize())
}

async fn planned(context: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
    context.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
}

const JOIN: &str = "SELECT count(*) FROM small JOIN large ON sk = lk";

/// Each reason not to filter is in `EXPLAIN ANALYZE` of each level.
#[tokio::test]
async fn explain_analyze_shows_reasons() {
    let context = tables(100).await;
    rows(&context, "SET bloomline.join_filters.max_bytes = 64").await.unwrap();
    rows(&context, "SET datafusion.explain.analyze_level = 'summary'").await.unwrap();
    let explained = lines(&rows(&context, &format!("EXPLAIN ANALYZE {JOIN}")).await.unwrap()).concat();
    for reason in ["too_many_keys=1", "keys_gave_up=3", "rows_in=0"] {
        assert!(explained.contains(reason), "{reason}: {explained}");
    }
}

/// The bytes of batches in memory, and as they are sent to others.
fn byte_len(batches: &[RecordBatch]) -> [usize; 2] {
    let mut sent = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| sent.write(batch).unwrap());
    [batches.iter().map(RecordBatch::get_array_memory_size).sum(), sent.into_inner().unwrap().len()]
}

/// The rows that are kept need no more than they do behind a condition, whichever buffers they shared with others.
#[tokio::test]
async fn dropped_rows_leave_no_bytes() {
    let context = session(&[("datafusion.execution.target_partitions", "1")]);
    register_join_filters(&context);
    for sql in [
        "SET bloomline.join_filters.force = true",
        "SET bloomline.join_filters.fpr = 1e-7",
        "CREATE TABLE few AS SELECT value * 100 AS fk FROM range(300)",
        "CREATE TABLE most AS SELECT value AS fk FROM range(30000) WHERE value % 10 < 7",
    ] {
        rows(&context, sql).await.unwrap();
    }
    let types = ["Utf8", "LargeUtf8", "Utf8View", "BinaryView", "Dictionary(Int32, Utf8)"];
    let columns = types.map(|to| format!("arrow_cast(text, '{to}')")).into_iter().chain([
        "arrow_cast(text, 'List(Utf8)')".into(),
        "arrow_cast(text, 'List(Utf8View)')".into(),
        "arrow_cast(text, 'List(Dictionary(Int32, Utf8))')".into(),
        "named_struct('text', arrow_cast(text, 'Utf8View'))".into(),
    ]);
    for (column, numbers) in columns.flat_map(|column| [(column.clone(), "value"), (column, "value % 100")]) {
        let wide = format!(
            "CREATE OR REPLACE TABLE wide AS SELECT value AS k, {column} AS t
             FROM (SELECT value, repeat(concat('text ', {numbers}, ' '), 5) AS text FROM range(30000))"
        );
        rows(&context, &wide).await.unwrap();
        for (keys, condition) in [("few", "k % 100 = 0"), ("most", "k % 10 < 7")] {
            let filtered = planned(&context, &format!("SELECT * FROM {keys} JOIN wide ON fk = k")).await;
            let selected = planned(&context, &format!("SELECT * FROM wide WHERE {condition}")).await;
            let run = async |plan: &Arc<dyn ExecutionPlan>, operator| {
                let operator = Arc::clone(find(plan, operator));
                collect(operator, context.task_ctx()).await.unwrap()
            };
            let filtered = run(&filtered, "JoinFilterExec").await;
            let selected = run(&selected, "FilterExec").await;
            assert_eq!(lines(&filtered), lines(&selected));
            for (bytes, least) in byte_len(&filtered).into_iter().zip(byte_len(&selected)) {
                let most = least as f64 * 1.1 + 2048.0;
                assert!(bytes as f64 <= most, "{wide}, {keys}: {bytes} bytes, and {least} of FilterExec");
            }
        }
    }
}

/// A file that was replaced after planning may have other keys when the join reads it.
#[tokio::test]
async fn files_that_change_make_no_filter() {
    let folder = tempfile::tempdir().unwrap();
    let context = tables(0).await;
    let path = folder.path().join("keys.csv");
    let write = |first: usize| {
        let rows: String = (first..first + 100).map(|key| format!("{key}\n")).collect();
        let new = folder.path().join("new");
        std::fs::write(&new, format!("ck\n{rows}")).unwrap();
        std::fs::rename(new, &path).unwrap();
    };
    write(100);
    context.register_csv("changing", path.to_str().unwrap(), Default::default()).await.unwrap();
    let sql = "SELECT count(lv) FROM changing LEFT JOIN large ON ck = lk";
    for (replaced, filtered) in [(false, true), (true, false)] {
        let plan = planned(&context, sql).await;
        if replaced {
            write(500);
        }
        let answer = lines(&collect(Arc::clone(&plan), context.task_ctx()).await.unwrap());
        assert!(answer.concat().contains("| 100 "), "{answer:?}");
        assert_eq!(counted(&plan, "JoinFilterBuildExec", "files_changed") > 0, replaced);
        assert_eq!(counted(&plan, "JoinFilterExec", "rows_dropped") > 1800, filtered);
    }
}

/// A plan that runs again has no filter, because a scan hands out its rows once.
#[tokio::test]
async fn a_plan_that_runs_again_keeps_all_rows() {
    let context = session(&[("datafusion.execution.target_partitions", "1")]);
    add_tables(&context, 100).await;
    let plan = planned(&context, "SELECT count(lv) FROM small LEFT JOIN large ON sk = lk").await;
    for run in [1, 2] {
        let rows = lines(&collect(Arc::clone(&plan), context.task_ctx()).await.unwrap());
        assert!(rows.concat().contains("| 100 "), "run {run}: {rows:?}");
    }
    assert_eq!(counted(&plan, "JoinFilterExec", "run_again"), 1);
}

/// What a filter needs is reserved, and released when the query ends, though its plan lives on.
#[tokio::test]
async fn memory_is_reserved_and_released() {
    let context = tables(50_000).await;
    let reserved = || context.runtime_env().memory_pool.reserved();
    rows(&context, "SET datafusion.optimizer.prefer_hash_join = false").await.unwrap();
    let plan = planned(&context, "SELECT * FROM small LEFT JOIN large ON sk = lk").await;
    let filter = find(&plan, "JoinFilterExec");
    let streams = execute_stream_partitioned(Arc::clone(filter), context.task_ctx()).unwrap();
    let mut most = 0;
    for mut stream in streams {
        while let Some(batch) = stream.next().await {
            assert!(batch.unwrap().num_rows() > 0);
            most = most.max(reserved());
        }
    }
    assert!((50_000..200_000).contains(&most), "{most} bytes for a filter of 50,000 keys");
    assert_eq!(reserved(), 0);
}

/// Plans travel. A damaged number is an error, and so is a column that the input lacks.
#[tokio::test]
async fn plans_travel_with_the_codec() {
    let context = tables(100).await;
    let codec = ComposedPhysicalExtensionCodec::new(vec![
        Arc::new(DefaultPhysicalExtensionCodec {}),
        Arc::new(JoinFilterCodec),
    ]);
    let plan = planned(&context, JOIN).await;
    let text = displayable(plan.as_ref()).indent(true).to_string();
    let bytes = physical_plan_to_bytes_with_extension_codec(Arc::clone(&plan), &codec).unwrap();
    let task = context.task_ctx();
    let back = physical_plan_from_bytes_with_extension_codec(&bytes, &task, &codec).unwrap();
    assert_eq!(displayable(back.as_ref()).indent(true).to_string(), text);
    assert_eq!(physical_plan_to_bytes_with_extension_codec(Arc::clone(&back), &codec).unwrap(), bytes);
    let answer = collect(back, Arc::clone(&task)).await.unwrap();
    assert_eq!(lines(&answer), lines(&collect(plan, Arc::clone(&task)).await.unwrap()));

    // Damage of the same length, because messages have one.
    for (whole, damage, expected) in [
        ("build-1 33", "build-1 3x", "in place of a number"),
        (" 1 0.05 0 enabled", " 1 0.05 9 enabled", "a join filter of column 9 has an input of"),
        (" 1 0.05 0 enabled", " 1 x.05 0 enabled", "in place of a number"),
        (" fpr=0.01", " fpr=2.01", "bloomline.join_filters.fpr: "),
        (" fpr=0.01", " fpx=0.01", "fpx"),
    ] {
        let start = bytes.windows(whole.len()).position(|window| window == whole.as_bytes()).expect(whole);
        let mut damaged = bytes.to_vec();
        damaged[start..start + damage.len()].copy_from_slice(damage.as_bytes());
        let error = physical_plan_from_bytes_with_extension_codec(&damaged, &task, &codec).unwrap_err();
        assert!(error.to_string().contains(expected), "{damage}: {error}");
    }
}
