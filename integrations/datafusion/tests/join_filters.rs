//! Random joins. The rule adds filters wherever it may, and they never change a result.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use tempfile::TempDir;

use crate::common::{Random, lines, runtime, session, write_parquet};

/// A table whose keys are in columns of several types, with nulls, duplicates and a hot key. `v` numbers the rows.
fn table(random: &mut Random, types: [DataType; 5]) -> Arc<MemTable> {
    let rows = random.of(&[0, 1, 5, 30, 30, 60, 60, 100, 200]);
    let (first, keys) = (random.of(&[0, 0, -3, 40]), random.of(&[5, 40, 80, 1000]));
    let (nulls, hot) = (random.of(&[0, 0, 10, 50]), random.of(&[0, 0, 30]));
    let mut columns = Vec::new();
    for (name, data_type) in ["i", "l", "t", "d", "m"].into_iter().zip(types) {
        let nulls = if random.below(20) == 0 { 100 } else { nulls };
        let key = |_| match (random.below(100) < nulls, random.below(100) < hot) {
            (true, _) => None,
            (_, true) => Some(3),
            _ => Some(first + random.below(keys) as i32),
        };
        let column: ArrayRef = Arc::new((0..rows).map(key).collect::<Int32Array>());
        columns.push((name, cast(&column, &data_type).unwrap(), true));
    }
    // Nullable, because outer merge joins with a residual condition fail otherwise in DataFusion 55.2.
    columns.push(("v", Arc::new(Int64Array::from_iter_values(0..rows)), true));
    let rows = RecordBatch::try_from_iter_with_nullable(columns).unwrap();

    let mut partitions = vec![Vec::new(); random.of(&[1, 1, 3])];
    let mut start = 0;
    while start < rows.num_rows() {
        let length = (1 + random.below(60) as usize).min(rows.num_rows() - start);
        let partition = random.below(partitions.len() as u64);
        partitions[partition as usize].push(rows.slice(start, length));
        start += length;
    }
    Arc::new(MemTable::try_new(rows.schema(), partitions).unwrap())
}

/// Tables whose columns of the same name differ in type, so that joins cast some.
fn tables(random: &mut Random) -> [(&'static str, Arc<MemTable>); 3] {
    use DataType::*;
    let dictionary = Dictionary(Box::new(Int32), Box::new(Utf8));
    [
        ("a", table(random, [Int32, Int64, Utf8, Date32, Decimal128(10, 2)])),
        ("b", table(random, [Int64, Int32, Utf8View, Date32, Decimal128(10, 2)])),
        ("c", table(random, [UInt32, Int16, dictionary, Date32, Float64])),
    ]
}

/// A table, or a subquery whose result would change if rows were dropped inside of it.
fn source(random: &mut Random, table: &str, alias: &str) -> String {
    let filter = filter(random, table);
    let subquery = match random.below(15) {
        0..=4 => return format!("{table} AS {alias}"),
        5 | 6 => format!("SELECT * FROM {table} WHERE {filter}"),
        7 | 8 => format!("SELECT * FROM {table} ORDER BY v DESC LIMIT 7"),
        9 => format!("SELECT DISTINCT * FROM {table}"),
        10 => format!(
            "SELECT i, count(*) AS l, min(t) AS t, max(d) AS d, max(m) AS m, min(v) AS v FROM {table} GROUP BY i"
        ),
        11 => format!(
            "SELECT min(i) AS i, l, t, max(d) AS d, max(m) AS m, min(v) AS v FROM {table} GROUP BY l, t"
        ),
        12 => {
            format!("SELECT i, l, t, d, m, sum(v) OVER (PARTITION BY l) AS v FROM {table}")
        }
        13 => format!("SELECT * FROM {table} UNION ALL SELECT * FROM {table} WHERE {filter}"),
        _ => {
            let (kind, other) = (random.part("; LEFT; LEFT SEMI; LEFT ANTI"), random.part("a; b; c"));
            format!("SELECT {table}.* FROM {table} {kind} JOIN {other} AS o ON {}", on(random, table, "o"))
        }
    };
    format!("({subquery}) AS {alias}")
}

fn filter(random: &mut Random, table: &str) -> String {
    let filter = random
        .part("i % 3 = 1; v < 10; d IS NOT NULL; l IS NULL; m > 4; t LIKE '1%'; v < 0; i = 3; l + 1 > 0");
    format!("{table}.{filter}")
}

/// A condition with at least one equality, where `x` and `y` stand for the tables.
fn on(random: &mut Random, x: &str, y: &str) -> String {
    let equalities = "x.i = y.i; x.l = y.l; x.t = y.t; x.d = y.d; x.m = y.m; x.i = y.i; x.l = y.l; x.t = y.t; x.i = y.l;
        x.m = y.i; x.i + 1 = y.l; x.i % 3 = y.l % 4; coalesce(x.i, 7) = y.l; (x.i IS NOT DISTINCT FROM y.i);
        (x.t IS NOT DISTINCT FROM y.t); CAST(x.t AS INT) = y.i; CAST(x.l AS VARCHAR) = y.t; CAST(x.i AS SMALLINT) = y.l;
        CAST(x.m AS BIGINT) = CAST(y.l AS BIGINT)";
    let residuals = "x.v < y.v; x.l <> y.l; (x.v + y.v) % 2 = 0; x.i IS NOT NULL; y.l > 3; x.v > 5";
    let mut condition = random.part(equalities).to_owned();
    if random.below(3) == 0 {
        write!(condition, " AND {}", random.part(equalities)).unwrap();
    }
    if random.below(3) == 0 {
        write!(condition, " AND {}", random.part(residuals)).unwrap();
    }
    condition.replace("x.", &format!("{x}.")).replace("y.", &format!("{y}."))
}

/// A predicate on `x` that reads another table in a subquery.
fn subquery(random: &mut Random, x: &str) -> String {
    let other = random.part("a; b; c");
    let (rows, on, key) = (source(random, other, "s"), on(random, x, "s"), random.part("i; l; t; d; m"));
    let not = random.of(&["", "NOT "]);
    match random.below(8) {
        0..=2 => format!("{x}.{key} {not}IN (SELECT {key} FROM {rows})"),
        3 | 4 => format!("{not}EXISTS (SELECT 1 FROM {rows} WHERE {on})"),
        5 => format!("({x}.v % 3 = 0 OR {not}EXISTS (SELECT 1 FROM {rows} WHERE {on}))"),
        6 => format!("{x}.{key} {not}IN (SELECT {key} FROM {rows} WHERE {on})"),
        _ => format!("{x}.v > (SELECT min(s.v) FROM {rows} WHERE s.{key} = {x}.{key})"),
    }
}

/// A query that joins two or three tables.
fn query(random: &mut Random) -> String {
    let kinds = "; ; ; CROSS; LEFT; RIGHT; FULL; LEFT SEMI; LEFT ANTI; RIGHT SEMI; RIGHT ANTI";
    let mut from = source(random, "a", "a");
    let mut visible = vec!["a"];
    for (joined, table) in ["b", "c"].into_iter().enumerate() {
        if random.below(3) == 0 {
            continue;
        }
        let (kind, with, rows) = (random.part(kinds), random.of(&visible), source(random, table, table));
        let condition = match random.below(6) {
            // Of three tables, `USING` would be ambiguous.
            0 if joined == 0 => format!("USING ({})", random.part("i; t; i, d; l, m")),
            _ => format!("ON {}", on(random, with, table)),
        };
        from = match kind {
            "CROSS" => format!("{from} CROSS JOIN (SELECT * FROM {table} WHERE v < 3) AS {table}"),
            _ => format!("{from} {kind} JOIN {rows} {condition}"),
        };
        match kind {
            "LEFT SEMI" | "LEFT ANTI" => {}
            "RIGHT SEMI" | "RIGHT ANTI" => visible = vec![table],
            _ => visible.push(table),
        }
    }
    let mut conditions = Vec::new();
    let x = random.of(&visible);
    if random.below(3) == 0 {
        conditions.push(filter(random, x));
    }
    if !from.contains("JOIN") || random.below(3) == 0 {
        conditions.push(subquery(random, x));
    }
    let conditions = if conditions.is_empty() { "true".to_owned() } else { conditions.join(" AND ") };
    let order = visible.iter().map(|table| format!("{table}.v")).collect::<Vec<_>>().join(", ");
    match random.below(6) {
        0 => format!("SELECT count(*), sum({x}.v), min({x}.t) FROM {from} WHERE {conditions}"),
        1 => format!("SELECT {x}.l, count(*), max({x}.d) FROM {from} WHERE {conditions} GROUP BY {x}.l"),
        2 => format!("SELECT DISTINCT {x}.t, {x}.m FROM {from} WHERE {conditions}"),
        3 => format!("SELECT {order} FROM {from} WHERE {conditions} ORDER BY {order} LIMIT 9"),
        _ => format!("SELECT * FROM {from} WHERE {conditions}"),
    }
}

/// Registers the rule, which then adds filters wherever it may, whether or not they pay.
async fn forced(context: &SessionContext) {
    bloomline_datafusion::register_join_filters(context);
    context.sql("SET bloomline.join_filters.force = true").await.unwrap();
}

/// A query's rows in order, its plan, and the sum of the rows that filters dropped.
async fn run(context: &SessionContext, sql: &str) -> Result<(Vec<String>, String, usize)> {
    let plan = context.sql(sql).await?.create_physical_plan().await?;
    let run = collect(Arc::clone(&plan), context.task_ctx());
    let batches = tokio::time::timeout(Duration::from_secs(60), run).await.expect("an answer in a minute")?;
    Ok((lines(&batches), displayable(&*plan).indent(false).to_string(), dropped(&*plan)))
}

fn dropped(plan: &dyn ExecutionPlan) -> usize {
    let here = plan.metrics().and_then(|metrics| metrics.sum_by_name("rows_dropped"));
    let below: usize = plan.children().into_iter().map(|child| dropped(&**child)).sum();
    here.map_or(0, |here| here.as_usize()) + below
}

/// `JOIN_QUERIES` is how many queries run, and `JOIN_SEED` is the seed of the first. A failure prints its query's seed.
#[test]
fn filters_change_no_result() {
    let runtime = runtime();
    let number = |name, default| std::env::var(name).map_or(default, |text| text.parse().expect(name));
    let (first, queries): (u64, u64) = (number("JOIN_SEED", 0), number("JOIN_QUERIES", 400));
    let run = runtime.spawn(compare(first..first + queries));
    let [answered, joins, filtered, dropping] = runtime.block_on(run).unwrap();
    println!(
        "{queries} queries: {answered} answered, {joins} with joins, {filtered} of these with filters, {dropping} of which dropped rows"
    );
    if queries >= 100 {
        assert!(answered * 10 > queries * 8, "only {answered} queries of {queries} have an answer");
        assert!(filtered * 2 > joins, "only {filtered} plans of {joins} have filters");
        assert!(dropping * 3 > filtered, "only {dropping} queries of {filtered} drop rows");
    }
}

/// Runs each query with the rule and without. Returns how many have answers, joins by equal keys, and filters, and how
/// many drop rows.
async fn compare(seeds: std::ops::Range<u64>) -> [u64; 4] {
    let small = [("datafusion.execution.target_partitions", "4"), ("datafusion.execution.batch_size", "16")];
    let shuffled = [
        ("datafusion.optimizer.hash_join_single_partition_threshold", "0"),
        ("datafusion.optimizer.hash_join_single_partition_threshold_rows", "0"),
    ];
    let merged = [("datafusion.optimizer.prefer_hash_join", "false")];
    let kinds = [[&small[..], &shuffled].concat(), [&small[..], &merged].concat(), small.to_vec()];
    let sessions = kinds.map(|settings| [session(&settings), session(&settings)]);
    for [_, with] in &sessions {
        forced(with).await;
    }

    let mut counts = [0; 4];
    let mut folders = Vec::new();
    for seed in seeds {
        let mut random = Random::new(seed);
        let tables = tables(&mut random);
        let kind = random.of(&[0, 0, 1, 2]);
        let sql = query(&mut random);
        for context in &sessions[kind] {
            for (name, table) in &tables {
                context.deregister_table(*name).unwrap();
                context.register_table(*name, Arc::clone(table) as _).unwrap();
            }
        }
        // Scans of files have a state of their own. Merge joins of DataFusion 55.2 panic on some.
        if kind != 1 && seed % 4 == 0 {
            let folder = tempfile::tempdir().unwrap();
            read_from_files(&sessions[kind], &tables.map(|table| table.0), &folder).await;
            folders.push(folder);
        }
        let [without, with] = &sessions[kind];
        let (without, with) = (run(without, &sql).await, run(with, &sql).await);
        let query = format!("JOIN_SEED={seed}, session {kind}: {sql}");
        match (without, with) {
            (Ok((rows, plan, _)), Ok((filtered, with, dropped))) => {
                assert_eq!(rows, filtered, "{query}\n{with}");
                let joins = plan.contains("HashJoinExec") || plan.contains("SortMergeJoinExec");
                let filters = joins && with.contains("JoinFilterExec");
                for (count, add) in counts.iter_mut().zip([true, joins, filters, filters && dropped > 0]) {
                    *count += u64::from(add);
                }
            }
            // Nothing is learnt where DataFusion itself fails.
            (Err(_), _) => {}
            (_, Err(error)) => panic!("{query}\n{error}"),
        }
    }
    counts
}

/// Writes tables to Parquet files, from which they are read from then on.
async fn read_from_files(sessions: &[SessionContext; 2], tables: &[&str], folder: &TempDir) {
    for name in tables {
        let path = write_parquet(&sessions[0], name, "v", folder).await;
        for context in sessions {
            context.deregister_table(*name).unwrap();
            context.register_parquet(*name, &path, ParquetReadOptions::default()).await.unwrap();
        }
    }
}
