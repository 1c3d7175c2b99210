//! Joins that filter themselves. These tests show where the rule acts, where it must not, and when a filter gives up.

use std::sync::Arc;

use crate::common::{lines, rows, session, with_functions, write_parquet};
use arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};
use bloomline_datafusion::{JoinFilterCodec, register_join_filters};
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::datasource::MemTable;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable, execute_stream_partitioned};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::physical_plan::{ComposedPhysicalExtensionCodec, DefaultPhysicalExtensionCodec};
use futures::StreamExt;
use tempfile::TempDir;

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

/// The tables `small_file` and `large_file`, each of two Parquet files.
async fn files(context: &SessionContext) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (table, key) in [("small", "sv"), ("large", "lk")] {
        let path = write_parquet(context, table, key, &folder).await;
        let options = ParquetReadOptions::default();
        context.register_parquet(format!("{table}_file"), path, options).await.unwrap();
    }
    folder
}

async fn explain(context: &SessionContext, sql: &str) -> String {
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    displayable(plan.as_ref()).indent(true).to_string()
}

async fn answer(context: &SessionContext, sql: &str) -> Vec<String> {
    lines(&rows(context, sql).await.unwrap())
}

/// The answer, which must be that without the rule.
async fn same_answer(context: &SessionContext, sql: &str) -> Vec<String> {
    let with = answer(context, sql).await;
    rows(context, "SET bloomline.join_filters.enabled = false").await.unwrap();
    assert_eq!(with, answer(context, sql).await, "{sql}");
    rows(context, "SET bloomline.join_filters.enabled = true").await.unwrap();
    with
}

/// The key that rows are filtered by.
fn filtered(plan: &str) -> Option<&str> {
    Some(plan.split_once("JoinFilterExec: keys=[")?.1.split_once('@')?.0)
}

/// The larger side is filtered if its rows without a partner are in no result, and otherwise the smaller side, as the
/// README says.
#[tokio::test]
async fn the_sides_of_each_kind_of_join() {
    let context = tables(100).await;
    let _folder = files(&context).await;
    for (join, expected) in [
        ("small JOIN large ON sk = lk", Some("lk")),
        ("large JOIN small ON sk = lk", Some("lk")),
        ("small LEFT JOIN large ON sk = lk", Some("lk")),
        ("large LEFT JOIN small ON sk = lk", Some("sk")),
        ("small RIGHT JOIN large ON sk = lk", Some("sk")),
        ("large RIGHT JOIN small ON sk = lk", Some("lk")),
        ("small FULL JOIN large ON sk = lk", None),
        ("small LEFT SEMI JOIN large ON sk = lk", Some("lk")),
        ("large LEFT SEMI JOIN small ON sk = lk", Some("lk")),
        ("small RIGHT SEMI JOIN large ON sk = lk", Some("lk")),
        ("small LEFT ANTI JOIN large ON sk = lk", Some("lk")),
        ("large LEFT ANTI JOIN small ON sk = lk", Some("sk")),
        ("small RIGHT ANTI JOIN large ON sk = lk", Some("sk")),
        ("large RIGHT ANTI JOIN small ON sk = lk", Some("lk")),
        ("small JOIN large ON sk IS NOT DISTINCT FROM lk", None),
        ("small JOIN large ON sk < lk", None),
        ("small, large", None),
        ("large WHERE lk IN (SELECT sk FROM small) OR lv = 1", None),
        // A limit may choose other rows if it runs again, so their keys make no filter.
        ("(SELECT sk, sv FROM small LIMIT 9) JOIN large ON sk = lk", Some("sk")),
        ("(SELECT sk FROM small WHERE random() < 0.5) JOIN large ON sk = lk", Some("sk")),
        ("(SELECT max(sk) AS sk FROM small) JOIN large ON sk = lk", Some("max(small.sk)")),
        ("small JOIN (SELECT lk FROM large LIMIT 999) ON sk = lk", Some("lk")),
        // Through an aggregate by the key, and a wider type.
        ("small JOIN (SELECT lk, count(*) AS n FROM large GROUP BY lk) ON sk = lk", Some("lk")),
        (
            "small JOIN (SELECT CAST(lk AS INT) AS narrow FROM large) ON sk = narrow",
            Some("CAST(narrow AS Int64)"),
        ),
        (
            "small JOIN (SELECT lv, max(lk) AS most FROM large GROUP BY lv) ON sk = most",
            Some("max(large.lk)"),
        ),
        ("small JOIN large ON sk = lk AND sv = lv", Some("lk")),
    ] {
        let sql = format!("SELECT * FROM {join}");
        let plan = explain(&context, &sql).await;
        assert_eq!(filtered(&plan), expected, "{join}\n{plan}");
        if !join.contains("LIMIT") && !join.contains("random") {
            same_answer(&context, &sql).await;
            let of_files = sql.replace("small", "small_file").replace("large", "large_file");
            same_answer(&context, &of_files.replace("_file.", ".")).await;
        }
    }
    // A limit counts rows that would have been dropped below it.
    let plan =
        explain(&context, "SELECT * FROM small JOIN (SELECT lk FROM large LIMIT 999) ON sk = lk").await;
    let (filter, limit) = (plan.find("JoinFilterExec: ").unwrap(), plan.find("fetch=999").unwrap());
    assert!(filter < limit, "{plan}");
}

#[tokio::test]
async fn not_in_sees_nulls() {
    let context = tables(100).await;
    rows(&context, "CREATE TABLE some AS VALUES (1), (NULL)").await.unwrap();
    let sql = "SELECT lk FROM large WHERE lk NOT IN (SELECT column1 FROM some)";
    assert_eq!(filtered(&explain(&context, sql).await), None);
    assert_eq!(same_answer(&context, sql).await, ["++", "++"]);
}

/// The first operator of a name.
fn find<'a>(plan: &'a Arc<dyn ExecutionPlan>, operator: &str) -> Option<&'a Arc<dyn ExecutionPlan>> {
    match plan.name() == operator {
        true => Some(plan),
        false => plan.children().into_iter().find_map(|child| find(child, operator)),
    }
}

/// A number of `EXPLAIN ANALYZE`, summed over partitions. It is 0 if there is none.
fn counted(plan: &Arc<dyn ExecutionPlan>, operator: &str, name: &str) -> usize {
    let operator = find(plan, operator).unwrap_or_else(|| panic!("no {operator}"));
    let metrics = operator.metrics().expect("metrics");
    metrics.sum_by_name(name).map_or(0, |metric| metric.as_usize())
}

async fn planned(context: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
    context.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
}

async fn metric(context: &SessionContext, sql: &str, operator: &str, name: &str) -> usize {
    let plan = planned(context, sql).await;
    collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
    counted(&plan, operator, name)
}

const JOIN: &str = "SELECT count(*) FROM small JOIN large ON sk = lk";

#[tokio::test]
async fn explain_analyze_counts_the_rows() {
    let context = tables(100).await;
    assert_eq!(metric(&context, JOIN, "JoinFilterExec", "rows_in").await, 2000);
    let dropped = metric(&context, JOIN, "JoinFilterExec", "rows_dropped").await;
    // 1,900 rows have no partner, and 1% of them are false positives.
    assert!((1900 - 45..1900).contains(&dropped), "{dropped}");
    assert_eq!(metric(&context, JOIN, "JoinFilterExec", "switched_off").await, 0);
    assert_eq!(metric(&context, JOIN, "JoinFilterBuildExec", "rows_in").await, 100);
}

#[tokio::test]
async fn without_keys_nothing_is_read() {
    let context = tables(0).await;
    // Not a hash join, which reads nothing of the larger side if the smaller one is empty, with a filter or without.
    rows(&context, "SET datafusion.optimizer.prefer_hash_join = false").await.unwrap();
    same_answer(&context, JOIN).await;
    assert_eq!(metric(&context, JOIN, "JoinFilterExec", "rows_in").await, 0);
}

#[tokio::test]
async fn a_filter_that_keeps_most_rows_switches_itself_off() {
    let context = tables(500).await;
    rows(&context, "SET bloomline.join_filters.sample_rows = 128").await.unwrap();
    let keeps_all = "SELECT count(*) FROM small JOIN large ON sv = lv";
    same_answer(&context, keeps_all).await;
    let partitions = metric(&context, keeps_all, "JoinFilterExec", "switched_off").await;
    let rows_in = metric(&context, keeps_all, "JoinFilterExec", "rows_in").await;
    assert!((1..=3).contains(&partitions) && rows_in < 2000, "{partitions} partitions, {rows_in} rows");
}

/// Each reason not to filter has a name, in `EXPLAIN ANALYZE` of each level.
#[tokio::test]
async fn too_many_keys_and_too_little_memory_keep_all_rows() {
    let context = tables(100).await;
    rows(&context, "SET bloomline.join_filters.max_bytes = 64").await.unwrap();
    rows(&context, "SET datafusion.explain.analyze_level = 'summary'").await.unwrap();
    same_answer(&context, JOIN).await;
    assert_eq!(metric(&context, JOIN, "JoinFilterExec", "rows_in").await, 0);
    let explained = answer(&context, &format!("EXPLAIN ANALYZE {JOIN}")).await.concat();
    for reason in ["too_many_keys=1", "keys_gave_up=3", "rows_in=0"] {
        assert!(explained.contains(reason), "{reason}: {explained}");
    }

    // A pool that has room for the join's batches, and not for the hashes.
    let runtime = RuntimeEnvBuilder::new().with_memory_limit(2 << 20, 1.0).build_arc().unwrap();
    let settings = SessionConfig::new().with_target_partitions(1);
    let context = with_functions(SessionContext::new_with_config_rt(settings, runtime));
    add_tables(&context, 200_000).await;
    let sql = "SELECT count(*) FROM large LEFT JOIN small ON sk = lk AND sk < 0";
    assert_eq!(filtered(&explain(&context, sql).await), Some("sk"));
    let reversed = "SELECT count(*) FROM small RIGHT JOIN large ON sk = lk";
    same_answer(&context, reversed).await;
    let merged = "SELECT count(lv) FROM small LEFT JOIN large ON sk = lk";
    rows(&context, "SET datafusion.optimizer.prefer_hash_join = false").await.unwrap();
    assert_eq!(metric(&context, merged, "JoinFilterBuildExec", "out_of_memory").await, 1);
}

/// A query that reads nothing of the filter's source does not fail with it.
#[tokio::test]
async fn an_error_of_the_keys_is_no_error_of_the_query() {
    let context = tables(100).await;
    let sql = "SELECT u.lk FROM (SELECT lk FROM large WHERE lk < 0 LIMIT 5) AS u JOIN small AS s ON u.lk = 10 / s.sk";
    same_answer(&context, sql).await;
    let plan = planned(&context, sql).await;
    collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
    assert_eq!(counted(&plan, "JoinFilterBuildExec", "input_failed"), 1);
}

/// Rows before an error arrive before it, so that a limit may be reached first, as without a filter.
#[tokio::test]
async fn rows_before_an_error_arrive() {
    // One partition, because others would return rows meanwhile.
    let context = session(&[
        ("datafusion.execution.target_partitions", "1"),
        ("datafusion.execution.batch_size", "64"),
    ]);
    add_tables(&context, 100).await;
    rows(&context, "SET datafusion.execution.batch_size = 8192").await.unwrap();
    // The filter lies above the expression that fails, because it makes the key, and keeps too few rows for a batch.
    let sql = "SELECT * FROM small JOIN (SELECT lk + 100 / (1900 - lk) AS k FROM large) ON sk = k LIMIT 5";
    let plan = explain(&context, sql).await;
    assert_eq!(filtered(&plan), Some("k"), "{plan}");
    assert_eq!(same_answer(&context, sql).await.len(), 5 + 4);
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
    let text = |i: usize| format!("text {i} ").repeat(5);
    let long: ArrayRef = Arc::new(StringArray::from_iter_values((0..30_000).map(text)));
    let short: ArrayRef = Arc::new(StringArray::from_iter_values((0..30_000).map(|i| text(i % 100))));
    let list = |values: &ArrayRef, data_type| {
        let field = Arc::new(Field::new("item", data_type, true));
        let values = cast(values, field.data_type()).unwrap();
        Arc::new(ListArray::new(field, OffsetBuffer::from_repeated_length(1, 30_000), values, None))
            as ArrayRef
    };
    let dictionary = |key| DataType::Dictionary(Box::new(key), Box::new(DataType::Utf8));
    let views = Field::new("text", DataType::Utf8View, true);
    let mut columns = vec![
        list(&long, DataType::Utf8),
        list(&long, DataType::Utf8View),
        list(&short, dictionary(DataType::Int32)),
        Arc::new(StructArray::from(vec![(Arc::new(views.clone()), cast(&long, views.data_type()).unwrap())])),
        cast(&short, &dictionary(DataType::UInt8)).unwrap(),
    ];
    for text in [&long, &short] {
        let types = [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View, DataType::BinaryView];
        columns.extend(types.iter().chain([&dictionary(DataType::Int32)]).map(|to| cast(text, to).unwrap()));
    }
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..30_000));
    for column in columns {
        let kind = column.data_type().to_string();
        let table = RecordBatch::try_from_iter([("k", Arc::clone(&keys)), ("t", column)]).unwrap();
        let batches = (0..4).map(|i| table.slice(8192 * i, 8192.min(30_000 - 8192 * i))).collect();
        context.deregister_table("wide").unwrap();
        let table = MemTable::try_new(table.schema(), vec![batches]).unwrap();
        context.register_table("wide", Arc::new(table)).unwrap();
        for (keys, condition) in [("few", "k % 100 = 0"), ("most", "k % 10 < 7")] {
            let filtered = planned(&context, &format!("SELECT * FROM {keys} JOIN wide ON fk = k")).await;
            let selected = planned(&context, &format!("SELECT * FROM wide WHERE {condition}")).await;
            let [filtered, selected] = [(filtered, "JoinFilterExec"), (selected, "FilterExec")]
                .map(|(plan, operator)| Arc::clone(find(&plan, operator).expect(operator)));
            let [filtered, selected] = [
                collect(filtered, context.task_ctx()).await.unwrap(),
                collect(selected, context.task_ctx()).await.unwrap(),
            ];
            assert_eq!(lines(&filtered), lines(&selected));
            for (bytes, least) in byte_len(&filtered).into_iter().zip(byte_len(&selected)) {
                let most = least as f64 * 1.1 + 2048.0;
                assert!(bytes as f64 <= most, "{kind}, {keys}: {bytes} bytes, and {least} of FilterExec");
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
        assert!(find(&plan, "JoinFilterExec").is_some());
        if replaced {
            write(500);
        }
        let answer = lines(&collect(Arc::clone(&plan), context.task_ctx()).await.unwrap());
        assert!(answer.concat().contains("| 100 "), "{answer:?}");
        assert_eq!(counted(&plan, "JoinFilterBuildExec", "files_changed") > 0, replaced);
        assert_eq!(counted(&plan, "JoinFilterExec", "rows_dropped") > 1800, filtered);
    }
}

/// Only keys are read for the filter.
#[tokio::test]
async fn a_filter_reads_only_keys() {
    let context = tables(100).await;
    let _folder = files(&context).await;
    let sql = "SELECT * FROM small_file JOIN large_file ON sk = lk WHERE sv % 2 = 0";
    let plan = explain(&context, sql).await;
    let keys = plan.split_once("JoinFilterBuildExec: keys=[sk@0]").expect("a filter").1;
    let scan = keys.split_once("DataSourceExec").expect("a scan").1.lines().next().unwrap();
    assert!(scan.contains("projection=[sk, sv]"), "{plan}");
    assert!(keys.contains("projection=[sk@0]"), "{plan}");
    let plan = explain(&context, &sql.replace("WHERE sv % 2 = 0", "")).await;
    let keys = plan.split_once("JoinFilterBuildExec").expect("a filter").1;
    let scan = keys.split_once("DataSourceExec").expect("a scan").1.lines().next().unwrap();
    assert!(scan.contains("projection=[sk],"), "{plan}");
    same_answer(&context, sql).await;
}

/// What operators above ask of a scan passes the filter, as the threshold of the first rows by an order.
#[tokio::test]
async fn pushed_filters_reach_the_scan() {
    let context = tables(100).await;
    let _folder = files(&context).await;
    let sql = "SELECT * FROM small_file RIGHT SEMI JOIN large_file ON sk = lk ORDER BY lk LIMIT 3";
    let plan = explain(&context, sql).await;
    let rows = plan.split_once("JoinFilterExec: keys=[lk@0]").expect("a filter").1;
    assert!(rows.split_once("JoinFilterBuildExec").unwrap().0.contains("DynamicFilter"), "{plan}");
    assert!(!rows.split_once("JoinFilterBuildExec").unwrap().1.contains("DynamicFilter"), "{plan}");
    same_answer(&context, sql).await;
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
    let filter = find(&plan, "JoinFilterExec").unwrap();
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

/// The rule acts only on joins that are shuffled, and only if the statistics promise that the filter saves time.
#[tokio::test]
async fn it_acts_where_it_pays() {
    let context = tables(100).await;
    let _folder = files(&context).await;
    let sql = "SELECT count(*) FROM small_file JOIN large_file ON sk = lk WHERE sv < 10";
    for (setting, expected, why) in [
        ("bloomline.join_filters.force = false", None, "DataFusion's joins filter themselves"),
        (
            "datafusion.optimizer.enable_dynamic_filter_pushdown = false",
            None,
            "the small side is not shuffled",
        ),
        ("datafusion.optimizer.hash_join_single_partition_threshold = 0", None, "nor by its rows"),
        ("datafusion.optimizer.hash_join_single_partition_threshold_rows = 0", None, "it saves no time"),
        ("bloomline.join_filters.min_saved_ms = 0", Some("lk"), "10 of 100 keys are selected"),
        ("bloomline.join_filters.expected_share = 0.05", None, "too many are"),
        ("bloomline.join_filters.expected_share = 0.5", Some("lk"), "10 of 100 keys are selected"),
        ("bloomline.join_filters.enabled = false", None, "the rule is off"),
    ] {
        rows(&context, &format!("SET {setting}")).await.unwrap();
        let plan = explain(&context, sql).await;
        assert_eq!(filtered(&plan), expected, "{setting}: {why}\n{plan}");
    }
    // Under its whole name, by which Ballista passes it on.
    let config = context.copied_config();
    assert!(config.options().entries().iter().any(
        |entry| entry.key == "bloomline.join_filters.enabled" && entry.value.as_deref() == Some("false")
    ));
    for (setting, expected) in [
        ("min_rows = 1", "min_rows"),
        ("fpr = 2", "bloomline.join_filters.fpr: "),
        ("fpr = 'NaN'", "bloomline.join_filters.fpr: "),
        ("max_share = -1", "max_share must be from 0 to 1, not -1"),
        ("expected_share = 'NaN'", "expected_share must be from 0 to 1, not NaN"),
    ] {
        let setting = format!("SET bloomline.join_filters.{setting}");
        let error = rows(&context, &setting).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{setting}: {error}");
    }
}

/// A table without a condition makes a filter if the other one's keys may lie elsewhere, which the first rows show.
#[tokio::test]
async fn it_tries_what_statistics_cannot_tell() {
    let context = tables(0).await;
    let folder = tempfile::tempdir().unwrap();
    for (table, sql) in [
        ("many", "SELECT value AS k, value % 30000 AS foreign_key, value AS v FROM range(60000)"),
        ("spread", "SELECT value * 30 AS k, value AS v FROM range(1000)"),
        ("dense", "SELECT value AS k, value AS v FROM range(30000)"),
        ("two", "SELECT value * 30 AS k, value AS foreign_key, value AS v FROM range(1000)"),
    ] {
        rows(&context, &format!("CREATE TABLE {table} AS {sql}")).await.unwrap();
        let path = write_parquet(&context, table, "v", &folder).await;
        context.deregister_table(table).unwrap();
        context.register_parquet(table, path, ParquetReadOptions::default()).await.unwrap();
    }
    for setting in [
        "bloomline.join_filters.force = false",
        "bloomline.join_filters.min_saved_ms = 0",
        "bloomline.join_filters.sample_rows = 500",
        "datafusion.optimizer.enable_dynamic_filter_pushdown = false",
        "datafusion.optimizer.hash_join_single_partition_threshold = 0",
        "datafusion.optimizer.hash_join_single_partition_threshold_rows = 0",
    ] {
        rows(&context, &format!("SET {setting}")).await.unwrap();
    }
    for (from, share, why) in [
        ("many JOIN spread ON many.k = spread.k", Some("0.017..1.000"), "one in 60, or all"),
        ("many JOIN dense ON many.foreign_key = dense.k", None, "dense keys reach all others"),
        (
            "many JOIN spread ON many.k = spread.k WHERE spread.v < 100",
            Some("0.002..0.100"),
            "one in ten at most",
        ),
        (
            "many JOIN two ON many.k = two.k AND many.foreign_key = two.foreign_key",
            Some("0.017..1.000"),
            "by one key",
        ),
    ] {
        let plan = explain(&context, &format!("SELECT max(many.v) FROM {from}")).await;
        let found = plan.split_once("expected_share=").map(|plan| plan.1.lines().next().unwrap());
        assert_eq!(found, share, "{from}: {why}\n{plan}");
    }
    // Its source costs too much for what it may save.
    rows(&context, "SET bloomline.join_filters.sample_rows = 50000").await.unwrap();
    let plan = explain(&context, "SELECT max(many.v) FROM many JOIN spread ON many.k = spread.k").await;
    assert_eq!(filtered(&plan), None, "{plan}");
}

/// Plans travel. A damaged number is an error, and so is a column that the input lacks.
#[tokio::test]
async fn plans_travel_with_the_codec() {
    let context = tables(100).await;
    let codec = ComposedPhysicalExtensionCodec::new(vec![
        Arc::new(DefaultPhysicalExtensionCodec {}),
        Arc::new(JoinFilterCodec),
    ]);
    let plan = context.sql(JOIN).await.unwrap().create_physical_plan().await.unwrap();
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
        (" max_share=0.95", " fpr=0.01000000", "a join filter has the options"),
        (" fpr=0.01", " fpx=0.01", "fpx"),
    ] {
        let start = bytes.windows(whole.len()).position(|window| window == whole.as_bytes()).expect(whole);
        let mut damaged = bytes.to_vec();
        damaged[start..start + damage.len()].copy_from_slice(damage.as_bytes());
        let error = physical_plan_from_bytes_with_extension_codec(&damaged, &task, &codec).unwrap_err();
        assert!(error.to_string().contains(expected), "{damage}: {error}");
    }
}
