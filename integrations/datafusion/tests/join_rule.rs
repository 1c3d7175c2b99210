//! Joins that filter themselves: what `tests/sql/joins.slt` cannot tell.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use crate::common::{Keys, count, filtering, filtering_session, lines, rows};
use crate::sql::find;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Int64Type, SchemaRef};
use bloomline_datafusion::{BloomlineOptions, JoinFilterCodec};
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, collect, displayable,
    execute_stream_partitioned,
};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_common::ScalarValue;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_proto::bytes::{
    physical_plan_from_bytes, physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes,
    physical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::physical_plan::{ComposedPhysicalExtensionCodec, DefaultPhysicalExtensionCodec};
use futures::{StreamExt, TryStreamExt, stream};

type Plan = Arc<dyn ExecutionPlan>;

/// A session with the tables `small (sk, sv)`, of `small` rows, and `large (lk, lv)`, of 2000. The rule acts wherever
/// it may.
async fn tables(keys: Keys, small: usize) -> SessionContext {
    let settings =
        [("datafusion.execution.target_partitions", "3"), ("datafusion.execution.batch_size", "64")];
    let context = filtering_session(keys, &settings);
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
    rows(context, "SET bloomline.join_filters.force = true").await.unwrap();
}

/// A number of `EXPLAIN ANALYZE`, summed over partitions. It is 0 if there is none.
fn counted(plan: &Plan, operator: &str, name: &str) -> usize {
    let metrics = find(plan, operator).metrics().expect("metrics");
    metrics.sum_by_name(name).map_or(0, |metric| metric.as_usize())
}

/// Joins read their left side first, though only the right one's size is known.
async fn read_left_first(context: &SessionContext) {
    for unit in ["", "_rows"] {
        let option = format!("datafusion.optimizer.hash_join_single_partition_threshold{unit}");
        rows(context, &format!("SET {option} = 0")).await.unwrap();
    }
}

async fn planned(context: &SessionContext, sql: &str) -> Plan {
    context.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
}

const JOIN: &str = "SELECT count(*) FROM small JOIN large ON sk = lk";

/// Each reason not to filter is in `EXPLAIN ANALYZE` of each level.
#[tokio::test]
async fn explain_analyze_shows_reasons() {
    let context = tables(Keys::SecondRead, 100).await;
    rows(&context, "SET bloomline.join_filters.max_bytes = 64").await.unwrap();
    rows(&context, "SET datafusion.explain.analyze_level = 'summary'").await.unwrap();
    let explained = lines(&rows(&context, &format!("EXPLAIN ANALYZE {JOIN}")).await.unwrap()).concat();
    for reason in ["too_many_keys=1", "keys_gave_up=3", "rows_in=0"] {
        assert!(explained.contains(reason), "{reason}: {explained}");
    }
}

/// The partitions of an operator.
fn streams(plan: &Plan, operator: &str, context: &SessionContext) -> Vec<SendableRecordBatchStream> {
    execute_stream_partitioned(Arc::clone(find(plan, operator)), context.task_ctx()).unwrap()
}

/// Reads the keys of a filter of one process, as its join would.
async fn read_keys(plan: &Plan, context: &SessionContext) -> usize {
    let mut read = 0;
    if displayable(plan.as_ref()).indent(false).to_string().contains("JoinFilterTapExec") {
        for keys in streams(plan, "JoinFilterTapExec", context) {
            read += keys.try_fold(0, async |rows, batch| Ok(rows + batch.num_rows())).await.unwrap();
        }
    }
    read
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
    for keys in [Keys::Tap, Keys::SecondRead] {
        let settings = [("datafusion.execution.target_partitions", "1")];
        filtered_bytes(filtering_session(keys, &settings)).await;
    }
}

async fn filtered_bytes(context: SessionContext) {
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
            let kept = streams(&filtered, "JoinFilterExec", &context).remove(0);
            read_keys(&filtered, &context).await;
            let filtered: Vec<_> = kept.try_collect().await.unwrap();
            let selected = streams(&selected, "FilterExec", &context).remove(0);
            let selected: Vec<_> = selected.try_collect().await.unwrap();
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
    let context = tables(Keys::SecondRead, 0).await;
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
    let context = filtering_session(Keys::SecondRead, &[("datafusion.execution.target_partitions", "1")]);
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
    for keys in [Keys::Tap, Keys::SecondRead] {
        reserves_and_releases(tables(keys, 50_000).await).await;
    }
}

async fn reserves_and_releases(context: SessionContext) {
    let reserved = || context.runtime_env().memory_pool.reserved();
    rows(&context, "SET datafusion.optimizer.prefer_hash_join = false").await.unwrap();
    let plan = planned(&context, "SELECT * FROM small LEFT JOIN large ON sk = lk").await;
    let streams = streams(&plan, "JoinFilterExec", &context);
    read_keys(&plan, &context).await;
    let mut most = 0;
    for mut stream in streams {
        while let Some(batch) = stream.next().await {
            assert!(batch.unwrap().num_rows() > 0);
            most = most.max(reserved());
        }
    }
    assert!((50_000..200_000).contains(&most), "{most} bytes for a filter of 50,000 keys");
    assert_eq!(reserved(), 0);
    assert!(counted(&plan, "JoinFilterExec", "rows_dropped") > 1500);
}

/// Plans travel. A damaged number is an error, and so is a column that the input lacks.
#[tokio::test]
async fn plans_travel_with_the_codec() {
    let context = tables(Keys::SecondRead, 100).await;
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

/// A table of keys that are different each time it is read.
#[derive(Debug)]
struct Volatile {
    schema: SchemaRef,
    reads: Arc<AtomicUsize>,
}

impl PartitionStream for Volatile {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batch = numbers("vk", keys_of(self.reads.fetch_add(1, Relaxed)));
        let rows = stream::iter([Ok(batch)]);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows))
    }
}

fn numbers(name: &str, numbers: Range<i64>) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
    RecordBatch::try_from_iter_with_nullable([(name, numbers, true)]).unwrap()
}

/// The 100 keys of one version of a table.
fn keys_of(version: usize) -> Range<i64> {
    let first = 1000 + (version as i64 * 100) % 1000;
    first..first + 100
}

/// The keys are those that the join reads, though another read would return others.
#[tokio::test]
async fn a_volatile_table_is_read_once() {
    for keys in [Keys::Tap, Keys::SecondRead] {
        let context = tables(keys, 0).await;
        let reads = Arc::new(AtomicUsize::new(0));
        let schema = numbers("vk", 0..0).schema();
        let partition = Volatile { schema: Arc::clone(&schema), reads: Arc::clone(&reads) };
        let table = StreamingTable::try_new(schema, vec![Arc::new(partition)]).unwrap();
        context.register_table("volatile", Arc::new(table)).unwrap();
        read_left_first(&context).await;
        for query in 0..12 {
            let sort = if query % 2 == 0 { "true" } else { "false" };
            rows(&context, &format!("SET datafusion.optimizer.prefer_hash_join = {sort}")).await.unwrap();
            let plan = planned(&context, "SELECT * FROM volatile LEFT JOIN large ON vk = lk").await;
            let answer = collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
            assert_eq!(column(&answer, 1), keys_of(query).collect::<Vec<_>>());
            if keys == Keys::Tap {
                assert!(counted(&plan, "JoinFilterExec", "rows_dropped") > 1500);
            }
        }
        assert_eq!(reads.load(Relaxed), 12);
    }
}

/// The numbers of a column, in order.
fn column(batches: &[RecordBatch], column: usize) -> Vec<i64> {
    let numbers =
        |batch: &RecordBatch| batch.column(column).as_primitive::<Int64Type>().iter().flatten().collect();
    let mut numbers: Vec<i64> = batches.iter().flat_map(|batch| -> Vec<i64> { numbers(batch) }).collect();
    numbers.sort_unstable();
    numbers
}

/// A file that is replaced all the time. All its versions have 100 keys with a partner. `REPLACED_QUERIES` is how many
/// queries join it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_may_be_replaced_at_any_time() {
    let queries = std::env::var("REPLACED_QUERIES").map_or(60, |queries| queries.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.csv");
    let write = {
        let (path, new) = (path.clone(), folder.path().join("new"));
        move |version: usize| {
            let keys: String = keys_of(version).map(|key| format!("{key}\n")).collect();
            std::fs::write(&new, format!("ck\n{keys}")).unwrap();
            std::fs::rename(&new, &path).unwrap();
        }
    };
    write(0);
    let context = tables(Keys::Tap, 0).await;
    read_left_first(&context).await;
    context.register_csv("changing", path.to_str().unwrap(), Default::default()).await.unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let writer = {
        let is_over = Arc::clone(&is_over);
        std::thread::spawn(move || {
            let mut versions = 0;
            while !is_over.load(Relaxed) {
                versions += 1;
                write(versions);
                std::thread::sleep(Duration::from_millis(2));
            }
            versions
        })
    };
    let (mut dropped, mut seen) = (0, BTreeSet::new());
    for query in 0..queries {
        let plan = planned(&context, "SELECT * FROM changing LEFT JOIN large ON ck = lk").await;
        let answer = collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
        let [keys, partners] = [0, 1].map(|i| column(&answer, i));
        assert_eq!((keys.len(), &keys), (100, &partners), "query {query}");
        dropped += counted(&plan, "JoinFilterExec", "rows_dropped");
        seen.insert(keys[0]);
    }
    is_over.store(true, Relaxed);
    let versions = writer.join().unwrap();
    println!("{queries} queries, {versions} versions, {dropped} rows dropped");
    assert!(seen.len() > 3 && dropped > 1500 * queries, "{seen:?}, {dropped} rows dropped");
}

/// A function that the user has under the name of another one.
fn function(name: &str) -> Arc<ScalarUDF> {
    let answer = Arc::new(|_: &[ColumnarValue]| -> Result<_> {
        Ok(ColumnarValue::Scalar(ScalarValue::Int64(Some(77))))
    });
    Arc::new(create_udf(name, vec![DataType::Int64], DataType::Int64, Volatility::Immutable, answer))
}

/// The rule adds itself to a session, and nothing else changes.
#[tokio::test]
async fn a_session_stays_as_it_is() {
    let functions = ["length", "pow"].map(function);
    let sessions = [false, true].map(|has_rule| {
        let config = SessionConfig::new().with_option_extension(BloomlineOptions::default());
        let config =
            config.with_information_schema(true).set_bool("datafusion.optimizer.prefer_hash_join", false);
        let mut builder = SessionStateBuilder::new_with_default_features().with_config(config);
        builder.scalar_functions().get_or_insert_default().extend(functions.clone());
        let builder = if has_rule { filtering(builder, Keys::Tap) } else { builder };
        SessionContext::new_with_state(builder.build())
    });
    let mut answers = vec![];
    for context in &sessions {
        for sql in [
            "CREATE TABLE small AS VALUES (1), (2)",
            "CREATE VIEW viewed AS SELECT column1 + 1 AS k FROM small",
            "PREPARE counts AS SELECT count(*) FROM viewed WHERE k > $1",
        ] {
            rows(context, sql).await.unwrap();
        }
        let mut answer = vec![];
        for sql in [
            "SELECT length(1), pow(2), character_length('abc'), power(2, 3)",
            "EXECUTE counts(2)",
            "SELECT * FROM viewed",
            "SHOW ALL",
            "SHOW TABLES",
            "SHOW FUNCTIONS",
        ] {
            answer.push(lines(&rows(context, sql).await.unwrap()));
        }
        assert!(answer[0].concat().contains("77"));
        answers.push(answer);
    }
    assert_eq!(answers[0], answers[1]);

    let states = sessions.each_ref().map(SessionContext::state);
    let [without, with] = &states;
    assert_eq!(with.scalar_functions(), without.scalar_functions());
    assert_eq!(with.aggregate_functions(), without.aggregate_functions());
    assert_eq!(with.window_functions(), without.window_functions());
    for (state, function) in states.iter().flat_map(|state| functions.iter().map(move |own| (state, own))) {
        assert!(Arc::ptr_eq(&state.scalar_functions()[function.name()], function));
    }
    let settings = states.each_ref().map(|state| {
        let entries = state.config_options().entries().into_iter();
        entries.map(|entry| (entry.key, entry.value)).collect::<Vec<_>>()
    });
    assert_eq!(settings[0], settings[1]);
    let rules = states.each_ref().map(|state| {
        let physical = state.physical_optimizers().iter().map(|rule| rule.name().to_owned());
        let logical = state.optimizers().iter().map(|rule| rule.name().to_owned());
        (logical.collect::<Vec<_>>(), physical.collect::<Vec<_>>())
    });
    assert_eq!(rules[1].0, rules[0].0);
    let (last, others) = rules[1].1.split_last().unwrap();
    assert_eq!((last.as_str(), others), ("bloomline_join_filters", &rules[0].1[..]));
    assert_eq!(format!("{:?}", with.query_planner()), format!("{:?}", without.query_planner()));
    for context in &sessions {
        let copy = SessionContext::new_with_config(context.copied_config());
        assert_eq!(copy.catalog_names(), context.catalog_names());
        rows(&copy, "CREATE TABLE own AS VALUES (1)").await.unwrap();
    }
}

/// Plans of one process travel without the filters, and need no codec.
#[tokio::test]
async fn plans_of_one_process_travel_without_a_codec() {
    let context = tables(Keys::Tap, 100).await;
    for hash in ["true", "false"] {
        rows(&context, &format!("SET datafusion.optimizer.prefer_hash_join = {hash}")).await.unwrap();
        for kind in ["", "LEFT", "LEFT SEMI", "RIGHT ANTI"] {
            let plan = planned(&context, &format!("SELECT * FROM small {kind} JOIN large ON sk = lk")).await;
            let (task, text) = (context.task_ctx(), displayable(&*plan).indent(true).to_string());
            let back =
                physical_plan_from_bytes(&physical_plan_to_bytes(Arc::clone(&plan)).unwrap(), &task).unwrap();
            let is_filtered = text.contains("JoinFilterTapExec") && text.contains("JoinFilterExec");
            assert!(is_filtered || text.contains("no_join_filter=["), "{text}");
            assert!(is_filtered || kind == "RIGHT ANTI" || hash == "false", "{text}");
            let text = displayable(&*back).indent(true).to_string();
            assert!(!text.contains("JoinFilter") && !text.contains("no_join_filter"), "{text}");
            let back = lines(&collect(back, Arc::clone(&task)).await.unwrap());
            assert_eq!(back, lines(&collect(plan, task).await.unwrap()));
        }
    }
}

/// A plan that is reset has a filter in each of its runs, and no keys of another run.
#[tokio::test]
async fn a_plan_that_is_reset_has_a_filter() {
    let context = tables(Keys::Tap, 100).await;
    let mut plan = planned(&context, "SELECT count(lv) FROM small LEFT JOIN large ON sk = lk").await;
    for run in 0..3 {
        let copy = reset_plan_states(Arc::clone(&plan)).unwrap();
        // Two at the same time.
        let answers = futures::join!(
            collect(Arc::clone(&plan), context.task_ctx()),
            collect(Arc::clone(&copy), context.task_ctx())
        );
        for (answer, plan) in [(answers.0, &plan), (answers.1, &copy)] {
            assert_eq!(column(&answer.unwrap(), 0), [100], "run {run}");
            assert!(counted(plan, "JoinFilterExec", "rows_dropped") > 1800, "run {run}");
        }
        plan = reset_plan_states(copy).unwrap();
    }
}

/// The keys of two runs are not told apart, so they make no filter.
#[tokio::test]
async fn a_tap_that_runs_again_makes_no_filter() {
    let context = filtering_session(Keys::Tap, &[("datafusion.execution.target_partitions", "1")]);
    add_tables(&context, 100).await;
    let plan = planned(&context, JOIN).await;
    for (runs, is_filtered) in [(1, true), (2, false)] {
        let plan = reset_plan_states(Arc::clone(&plan)).unwrap();
        let kept = streams(&plan, "JoinFilterExec", &context).remove(0);
        for _ in 0..runs {
            assert_eq!(read_keys(&plan, &context).await, 100);
        }
        let kept = kept.try_fold(0, async |rows, batch| Ok(rows + batch.num_rows())).await.unwrap();
        assert_eq!(kept < 2000, is_filtered, "{kept} rows of {runs} runs");
        assert_eq!(counted(&plan, "JoinFilterExec", "run_again"), runs - 1);
    }
}

/// Adds up what filters drop, also in plans that a recursive query resets for each of its iterations.
#[derive(Debug, Default)]
struct Watch(Arc<AtomicUsize>);

impl PhysicalOptimizerRule for Watch {
    fn name(&self) -> &str {
        "watch"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        let watch = |filter: Plan| {
            Ok(if filter.name() == "JoinFilterExec" {
                Transformed::yes(Arc::new(Watched { filter, dropped: Arc::clone(&self.0) }) as Plan)
            } else {
                Transformed::no(filter)
            })
        };
        Ok(plan.transform_up(watch)?.data)
    }
}

#[derive(Debug)]
struct Watched {
    filter: Plan,
    dropped: Arc<AtomicUsize>,
}

impl DisplayAs for Watched {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Watched")
    }
}

impl ExecutionPlan for Watched {
    fn name(&self) -> &str {
        "Watched"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.filter.properties()
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.filter]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        Ok(Arc::new(Self { filter: Arc::clone(&children[0]), dropped: Arc::clone(&self.dropped) }))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&PhysicalExprRef) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.filter.execute(partition, context)?;
        let (filter, dropped) = (Arc::clone(&self.filter), Arc::clone(&self.dropped));
        let end = stream::once(async move {
            let metrics = filter.metrics().expect("metrics");
            let here = metrics.iter().filter(|metric| metric.partition() == Some(partition));
            let here = here.filter(|metric| metric.value().name() == "rows_dropped");
            dropped.fetch_add(here.map(|metric| metric.value().as_usize()).sum(), Relaxed);
        });
        let end = end.filter_map(async |()| None);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows.chain(end))))
    }
}

/// Each iteration of a recursive query has other keys, and a filter of its own.
#[tokio::test]
async fn each_iteration_has_a_filter_of_its_own_keys() {
    for hash in ["true", "false"] {
        let watch = Watch::default();
        let config = SessionConfig::new().with_option_extension(BloomlineOptions::default());
        let config = config.with_target_partitions(3).set_str("datafusion.optimizer.prefer_hash_join", hash);
        let builder = SessionStateBuilder::new_with_default_features().with_config(config);
        let builder = filtering(builder, Keys::Tap);
        let builder = builder.with_physical_optimizer_rule(Arc::new(Watch(Arc::clone(&watch.0))));
        let context = SessionContext::new_with_state(builder.build());
        read_left_first(&context).await;
        for sql in [
            "CREATE TABLE edges AS SELECT value AS start, (value * 3 + 1) % 2003 AS stop FROM range(2003)",
            "SET bloomline.join_filters.force = true",
        ] {
            rows(&context, sql).await.unwrap();
        }
        let walk = "WITH RECURSIVE walk AS (
                SELECT 1::BIGINT AS node, 0::BIGINT AS step
                UNION ALL SELECT stop, step + 1 FROM walk JOIN edges ON node = start WHERE step < 50)
            SELECT count(*) FROM walk";
        assert_eq!(count(&context, walk).await.unwrap(), 51);
        assert!(watch.0.load(Relaxed) > 50 * 1900, "{} rows dropped, {hash}", watch.0.load(Relaxed));
    }
}

/// Joins of both sides' partitions, whose keys are read again if the plan runs again.
fn partitioned() -> SessionContext {
    filtering_session(
        Keys::Tap,
        &[
            ("datafusion.execution.target_partitions", "3"),
            ("datafusion.optimizer.enable_dynamic_filter_pushdown", "false"),
            ("datafusion.optimizer.hash_join_single_partition_threshold", "0"),
            ("datafusion.optimizer.hash_join_single_partition_threshold_rows", "0"),
        ],
    )
}

/// A cross join keeps its left side in the plan, so a filter there would drop rows by the keys of an earlier run.
#[tokio::test]
async fn a_cross_join_that_runs_again_has_all_rows() {
    let context = partitioned();
    for sql in [
        "SET bloomline.join_filters.force = true",
        "CREATE TABLE a AS SELECT value AS ak FROM range(50)",
        "CREATE TABLE b AS SELECT value AS bk FROM range(60)",
        "CREATE TABLE tiny AS SELECT value AS tk FROM range(5)",
    ] {
        rows(&context, sql).await.unwrap();
    }
    let sql = "SELECT bk FROM (SELECT floor(random() * 50)::BIGINT AS vk FROM tiny)
               LEFT JOIN (SELECT ak, bk FROM a CROSS JOIN b) ON vk = ak";
    let plan = planned(&context, sql).await;
    find(&plan, "JoinFilterExec");
    for run in 0..8 {
        let batches = collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
        let partners = batches.iter().map(|batch| batch.num_rows() - batch.column(0).null_count());
        assert_eq!(partners.sum::<usize>(), 300, "run {run}");
    }
}

/// Each join gets its link once, and not once for each join above it. Twenty joins would otherwise be reset in minutes.
#[tokio::test]
async fn many_joins_are_reset() {
    let context = partitioned();
    rows(&context, "SET bloomline.join_filters.force = true").await.unwrap();
    let columns: String = (0..20).map(|i| format!(", (value + {i}) % 100 AS k{i}")).collect();
    let dim = "CREATE TABLE dim AS SELECT value AS dk FROM range(100)";
    for sql in [&format!("CREATE TABLE fact AS SELECT value AS fk{columns} FROM range(300)"), dim] {
        rows(&context, sql).await.unwrap();
    }
    let conditions: Vec<_> =
        (0..20).map(|i| format!("k{i} IN (SELECT dk FROM dim WHERE dk >= -{i})")).collect();
    let plan = planned(&context, &format!("SELECT fk FROM fact WHERE {}", conditions.join(" AND "))).await;
    let plan = reset_plan_states(plan).unwrap();
    assert!(counted(&plan, "JoinFilterExec", "rows_in") == 0);
    let batches = collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 300);
    assert!(counted(&plan, "JoinFilterExec", "rows_in") > 0);
}
