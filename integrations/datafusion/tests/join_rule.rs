//! Joins that filter themselves. These tests show where the rule acts, where it must not, and when a filter gives up.

use std::sync::Arc;

use crate::common::{lines, rows, session, with_functions, write_parquet};
use bloomline_datafusion::{JoinFilterCodec, register_join_filters};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::physical_plan::{ComposedPhysicalExtensionCodec, DefaultPhysicalExtensionCodec};
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
    register_join_filters(context);
    for sql in [
        "SET bloomline.join_filters.force = true".to_owned(),
        format!("CREATE TABLE small AS SELECT value * 7 AS sk, value AS sv FROM range({small})"),
        "CREATE TABLE large AS SELECT value AS lk, value % 5 AS lv FROM range(2000)".to_owned(),
    ] {
        rows(context, &sql).await.unwrap();
    }
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

/// A number of `EXPLAIN ANALYZE`, summed over partitions.
async fn metric(context: &SessionContext, sql: &str, operator: &str, name: &str) -> usize {
    fn of(plan: &Arc<dyn ExecutionPlan>, operator: &str, name: &str) -> Option<usize> {
        let metrics = || Some(plan.metrics()?.sum_by_name(name)?.as_usize());
        let below = || plan.children().into_iter().find_map(|child| of(child, operator, name));
        if plan.name() == operator { metrics() } else { below() }
    }
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
    of(&plan, operator, name).unwrap_or_else(|| panic!("no {name} of {operator}"))
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

#[tokio::test]
async fn too_many_keys_and_too_little_memory_keep_all_rows() {
    let context = tables(100).await;
    rows(&context, "SET bloomline.join_filters.max_bytes = 64").await.unwrap();
    same_answer(&context, JOIN).await;
    assert_eq!(metric(&context, JOIN, "JoinFilterBuildExec", "gave_up").await, 1);
    assert_eq!(metric(&context, JOIN, "JoinFilterExec", "rows_in").await, 0);

    // A pool that has room for the join's batches, and not for the hashes.
    let runtime = RuntimeEnvBuilder::new().with_memory_limit(512 << 10, 1.0).build_arc().unwrap();
    let settings = SessionConfig::new().with_target_partitions(1);
    let context = with_functions(SessionContext::new_with_config_rt(settings, runtime));
    add_tables(&context, 70_000).await;
    let sql = "SELECT count(*) FROM large LEFT JOIN small ON sk = lk AND sk < 0";
    assert_eq!(filtered(&explain(&context, sql).await), Some("sk"));
    let reversed = "SELECT count(*) FROM small RIGHT JOIN large ON sk = lk";
    same_answer(&context, reversed).await;
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
    let error = rows(&context, "SET bloomline.join_filters.min_rows = 1").await.unwrap_err().to_string();
    assert!(error.contains("min_rows"), "{error}");
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
    let options = b" 0.95 65536 4194304 0.01 0"; // max_share, sample_rows, max_bytes and fpr, and the key's column
    assert!(bytes.windows(options.len()).any(|window| window == options), "{bytes:?}");
    let answer = collect(back, Arc::clone(&task)).await.unwrap();
    assert_eq!(lines(&answer), lines(&collect(plan, Arc::clone(&task)).await.unwrap()));

    let whole = b"bloomline-join-filter-build-1 ";
    let start = bytes.windows(whole.len()).position(|window| window == whole).unwrap();
    let numbers =
        bytes[start + whole.len()..].iter().take_while(|&&byte| byte == b' ' || byte.is_ascii_digit());
    let column = start + whole.len() + numbers.count() - 1;
    for (damage, expected) in
        [(b'9', "a join filter of column 9 has an input of"), (b'x', "in place of a number")]
    {
        let mut damaged = bytes.to_vec();
        damaged[column] = damage;
        let error = physical_plan_from_bytes_with_extension_codec(&damaged, &task, &codec).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
