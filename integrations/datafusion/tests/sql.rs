//! The queries of `tests/sql/*.slt`, each file in several sessions that cut and plan the same rows differently.

use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "join-filters")]
use crate::common::{Keys, filtering_session};
use crate::common::{register, session};
use arrow::array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use bloomline::sstable::FilterPolicy;
use bloomline::{BloomFilter, Sizing};
use bloomline_datafusion::register_filter;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion_proto::bytes::{physical_plan_from_bytes, physical_plan_to_bytes};
use sqllogictest::{DB, DBOutput, DefaultColumnType, Record, Runner, strict_column_validator};
use tokio::runtime::Runtime;

/// A test for each file, and in how many of the sessions it runs. Some run in one, because planning is slow.
macro_rules! files {
    ($($(#[$attribute:meta])* $file:ident: $sessions:literal),* $(,)?) => {
        $($(#[$attribute])* #[test] fn $file() { run(stringify!($file), $sessions); })*

        #[test]
        fn every_file_is_listed() {
            let mut listed = vec![$(concat!(stringify!($file), ".slt")),*];
            let folder = std::fs::read_dir(folder()).unwrap();
            let mut found: Vec<_> = folder.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
            listed.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, listed);
        }
    };
}

files!(
    build: 2,
    #[cfg(feature = "join-filters")]
    joins: 1,
    #[cfg(feature = "join-filters")]
    joins_of_one_process: 1,
    limits: 1,
    lookups: 2,
    names: 2,
    other_functions: 2,
    predicates: 2,
    prepared: 1,
    probes: 2,
    refused: 1,
    union: 2,
    views: 2,
);

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sql")
}

/// Settings under which a file must give the same answers.
const SESSIONS: [(&str, &[(&str, &str)]); 2] = [
    (
        "small batches, many partitions",
        &[("datafusion.execution.batch_size", "7"), ("datafusion.execution.target_partitions", "4")],
    ),
    // Here each row of a grouped aggregate becomes a state of its own, joins sort instead of hashing, the rules that
    // bring the filter to the probe do not run, and plans travel.
    (
        "other plans",
        &[
            ("datafusion.execution.target_partitions", "2"),
            ("datafusion.execution.skip_partial_aggregation_probe_rows_threshold", "0"),
            ("datafusion.execution.skip_partial_aggregation_probe_ratio_threshold", "0"),
            ("datafusion.optimizer.prefer_hash_join", "false"),
            ("datafusion.optimizer.enable_leaf_expression_pushdown", "false"),
            ("datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery", "false"),
            ("datafusion.sql_parser.map_string_types_to_utf8view", "false"),
        ],
    ),
];

/// Whether plans go through the bytes that processes exchange. Functions need no codec, because they go by name.
fn travels(settings: &[(&str, &str)]) -> bool {
    settings == SESSIONS[1].1
}

fn run(file: &str, sessions: usize) {
    let records = sqllogictest::parse_file(folder().join(file).with_extension("slt")).unwrap();
    assert!(records.iter().any(|record| matches!(record, Record::Query { .. } | Record::Statement { .. })));
    let mut failures = String::new();
    for session in &SESSIONS[..sessions] {
        let mut runner = Runner::new(async || Ok::<_, DataFusionError>(Session::new(file, session)));
        runner.with_column_validator(strict_column_validator);
        if travels(session.1) {
            runner.add_label("travels");
        }
        for record in &records {
            if let Err(failure) = runner.run(record.clone()) {
                failures += &format!("session of {}: {failure}\n", session.0);
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

struct Session {
    runtime: Runtime,
    context: SessionContext,
    travels: bool,
}

impl Session {
    fn new(file: &str, (_, settings): &(&str, &[(&str, &str)])) -> Self {
        let context = match file {
            #[cfg(feature = "join-filters")]
            "joins" => filtering_session(Keys::SecondRead, settings),
            #[cfg(feature = "join-filters")]
            "joins_of_one_process" => filtering_session(Keys::Tap, settings),
            _ => session(settings),
        };
        register(&context, "made", made_by_rust());
        for (name, keys) in [("crawled", 0..50), ("it's ours", 90..100)] {
            let mut filter = BloomFilter::with_fpr(100, 1e-6).unwrap();
            filter.extend(keys);
            register_filter(&context, name, filter).unwrap();
        }
        Self { runtime: Runtime::new().unwrap(), context, travels: travels(settings) }
    }
}

/// The table `made (name, filter)`, of filters that SQL cannot make: all with the keys `ant` and `bee`, and `full` with
/// every bit set.
fn made_by_rust() -> [(&'static str, ArrayRef); 2] {
    let modules = Sizing::new(12, 5).unwrap().with_modules(3).unwrap();
    let mut full = BloomFilter::with_blocks(1, 7).unwrap();
    full.extend(0..10_000);
    let mut short = vec![];
    FilterPolicy::with_bits_per_key(20.0).unwrap().create_filter(["ant", "bee"], &mut short);
    let (names, filters): (Vec<_>, Vec<_>) = [
        ("good", BloomFilter::with_blocks(12, 7).unwrap()),
        ("seeded", BloomFilter::with_blocks(12, 7).unwrap().with_seed(0x5eed).unwrap()),
        ("four_probes", BloomFilter::with_blocks(12, 4).unwrap()),
        ("full", full),
        ("modules", BloomFilter::with_sizing(modules).unwrap()),
        ("short", BloomFilter::from_compact(&short).unwrap()),
    ]
    .map(|(name, mut filter)| {
        filter.extend(["ant", "bee"]);
        (name, filter.to_standalone())
    })
    .into_iter()
    .unzip();
    [
        ("name", Arc::new(StringArray::from(names))),
        ("filter", Arc::new(BinaryArray::from_iter_values(filters))),
    ]
}

impl DB for Session {
    type Error = DataFusionError;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>> {
        self.runtime.block_on(async {
            if let Some((what, sql)) = sql.strip_prefix("FILTERS").and_then(|sql| sql.split_once(": ")) {
                return filters(&self.context, what, sql).await;
            }
            if let Some(sql) = sql.strip_prefix("REASONS: ") {
                return reasons(&self.context, sql).await;
            }
            let plan = async { self.context.sql(sql).await?.into_optimized_plan() }
                .await
                .map_err(|error| error.context("while planning"))?;
            let frame = DataFrame::new(self.context.state(), plan);
            let schema = frame.schema().clone();
            let context = Arc::new(frame.task_ctx());
            let mut plan = frame.create_physical_plan().await?;
            // Some operators of DataFusion have no encoding.
            if self.travels
                && let Ok(bytes) = physical_plan_to_bytes(Arc::clone(&plan))
            {
                plan = physical_plan_from_bytes(&bytes, &context)?;
            }
            output(&schema, &collect(plan, context).await?)
        })
    }
}

/// Runs a query, and returns what is named of each filter that the rule added: a metric of the filter or, as
/// `keys.METRIC`, of the operator that collects its keys, its `expected_share`, whether its rows are `limited`, the
/// operator `below` it or its keys, as `keys.below`, or, of the scans below it, the `keys.projection`, and whether they
/// have a `dynamic` filter.
async fn filters(context: &SessionContext, what: &str, sql: &str) -> Result<DBOutput<DefaultColumnType>> {
    let plan = context.sql(sql).await?.create_physical_plan().await?;
    collect(Arc::clone(&plan), context.task_ctx()).await?;
    let metric = |plan: &dyn ExecutionPlan, name: &str| {
        let metric = plan.metrics().and_then(|metrics| metrics.sum_by_name(name));
        metric.map_or(0, |metric| metric.as_usize()).to_string()
    };
    let mut rows = vec![];
    plan.apply(|filter| {
        let shown = displayable(filter.as_ref()).one_line().to_string();
        if let Some(shown) = shown.strip_prefix("JoinFilterExec: keys=[") {
            let (keys, share) = shown.trim().split_once(']').expect("keys");
            let keys: Vec<_> =
                keys.split(", ").map(|key| key.rsplit_once('@').expect("an index").0).collect();
            let mut row = vec![keys.join(", ")];
            let children = filter.children();
            let (source, collector) = match children[..] {
                [_, keys] => (keys, find(keys, "JoinFilterBuildExec")),
                _ => (&plan, find(&plan, "JoinFilterTapExec")),
            };
            for name in what.split_whitespace() {
                let of_keys = name.strip_prefix("keys.");
                let scan = || {
                    let scan = find(if of_keys.is_some() { source } else { children[0] }, "DataSourceExec");
                    displayable(scan.as_ref()).one_line().to_string()
                };
                row.push(match (name, of_keys) {
                    ("expected_share", _) => {
                        share.strip_prefix(", expected_share=").expect("a share").to_owned()
                    }
                    ("limited", _) => {
                        let below = displayable(children[0].as_ref()).indent(false).to_string();
                        below.contains("fetch=").to_string()
                    }
                    ("below", _) => children[0].name().to_owned(),
                    ("keys.below", _) => collector.children()[0].name().to_owned(),
                    ("dynamic" | "keys.dynamic", _) => scan().contains("DynamicFilter").to_string(),
                    ("keys.projection", _) => {
                        let scan = scan();
                        let projection =
                            scan.split_once("projection=[").and_then(|scan| scan.1.split_once(']'));
                        projection.expect("a projection").0.to_owned()
                    }
                    (_, Some(name)) => metric(collector.as_ref(), name),
                    (name, None) => metric(filter.as_ref(), name),
                });
            }
            rows.push(row);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(DBOutput::Rows { types: vec![DefaultColumnType::Text; 1 + what.split_whitespace().count()], rows })
}

/// Plans a query, and returns why each of its joins has no filter, or `filtered`.
async fn reasons(context: &SessionContext, sql: &str) -> Result<DBOutput<DefaultColumnType>> {
    let plan = context.sql(sql).await?.create_physical_plan().await?;
    let shown = displayable(plan.as_ref()).indent(false).to_string();
    let reasons = shown.lines().filter(|line| line.contains("JoinExec")).map(|line| {
        let reason = line
            .split_once("no_join_filter=[")
            .map_or("filtered", |(_, reason)| reason.trim_end_matches(']'));
        vec![reason.to_owned()]
    });
    Ok(DBOutput::Rows { types: vec![DefaultColumnType::Text], rows: reasons.collect() })
}

/// The first operator of a name.
pub fn find<'a>(plan: &'a Arc<dyn ExecutionPlan>, operator: &str) -> &'a Arc<dyn ExecutionPlan> {
    let mut left = vec![plan];
    while let Some(plan) = left.pop() {
        if plan.name() == operator {
            return plan;
        }
        left.extend(plan.children());
    }
    panic!("no {operator}")
}

fn output(schema: &DFSchema, batches: &[RecordBatch]) -> Result<DBOutput<DefaultColumnType>> {
    if schema.fields().is_empty() {
        return Ok(DBOutput::StatementComplete(0));
    }
    let types = schema.fields().iter().map(|field| match field.data_type() {
        type_ if type_.is_integer() => DefaultColumnType::Integer,
        type_ if type_.is_floating() => DefaultColumnType::FloatingPoint,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DefaultColumnType::Text,
        _ => DefaultColumnType::Any,
    });
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = vec![];
    for batch in batches {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options))
            .collect::<Result<_, _>>()?;
        rows.extend(
            (0..batch.num_rows())
                .map(|row| columns.iter().map(|column| column.value(row).to_string()).collect()),
        );
    }
    Ok(DBOutput::Rows { types: types.collect(), rows })
}
