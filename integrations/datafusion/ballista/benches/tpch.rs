//! Joins with and without the filters that bloomline's rule adds to them: `cargo bench -p bloomline-ballista`.
//!
//! Prints Markdown. The settings are environment variables:
//!
//! - `DATA`: `tpch` (the default), or `made`, which has what TPC-H lacks
//! - `SCALE`: TPC-H's scale factor (1)
//! - `ROUNDS`: how often each query runs after a warm-up (5)
//! - `ENGINES`: some of `process` (DataFusion in one process), `default` (two executors of one core each) and `shuffled`
//!   (the same executors, without broadcasts, as if each side of a join were too large for one)
//! - `QUERIES`: the names of some queries, such as `3,5`

#[path = "../tests/cluster/processes.rs"]
mod processes;

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use ballista::prelude::{SessionConfigExt, SessionContextExt};
use bloomline_datafusion::{BloomlineOptions, JoinFilters};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchReader};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::execution::SessionStateBuilder;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use processes::Processes;
use tempfile::TempDir;
use tpchgen::generators::*;
use tpchgen::q_and_a::queries;
use tpchgen_arrow::*;

/// The queries of TPC-H that join, and the specification's validation parameters.
const TPCH: &str = "2|15|BRASS|EUROPE; 3|BUILDING|1995-03-15; 4|1993-07-01; 5|ASIA|1994-01-01; 7|FRANCE|GERMANY;
    8|BRAZIL|AMERICA|ECONOMY ANODIZED STEEL; 9|green; 10|1993-10-01; 11|GERMANY|0.0001; 12|MAIL|SHIP|1994-01-01;
    13|special|requests; 14|1995-09-01; 15|1996-01-01; 16|Brand#45|MEDIUM POLISHED|49|14|23|45|19|3|36|9;
    17|Brand#23|MED BOX; 18|300; 19|Brand#12|Brand#23|Brand#34|1|10|20; 20|forest|1994-01-01|CANADA; 21|SAUDI ARABIA;
    22|13|31|23|29|30|18|17";

const MADE_TABLES: [(&str, &str); 5] = [
    (
        "facts",
        "SELECT spread, 'word ' || spread AS word, 'payload ' || i AS payload
         FROM (SELECT value AS i, value * 7919 % 400000 AS spread FROM range(0, 4000000))",
    ),
    ("keys", "SELECT value AS key, value % 50 AS part, 'word ' || value AS name FROM range(0, 400000)"),
    // 1.15% of the texts have one of the keys, which no statistics tell.
    ("texts", "SELECT value AS k, concat(md5(concat('a', value)), md5(concat('b', value)), md5(concat('c', value))) AS payload
         FROM range(0, 6000000)"),
    ("spread", "SELECT value * 87 AS key FROM range(0, 200000)"),
    // Keys in random order, so that no statistics of a file exclude any.
    ("random", "SELECT value * 7919 % 400009 AS k, 'payload ' || value AS payload FROM range(0, 400000)"),
];

/// Queries, of which `SELECT count(*), max(payload) FROM` is left out. `part = 3` selects 2% of the keys.
const MADE: [(&str, &str); 7] = [
    ("random", "random JOIN keys ON k = key WHERE part = 3"),
    ("texts", "texts JOIN spread ON k = key"),
    ("two keys", "facts JOIN keys ON spread = key AND word = name WHERE part = 3"),
    ("keeps all", "facts JOIN keys ON spread = key"),
    // DataFusion cannot tell how many keys these conditions select.
    ("keeps all unforeseen", "facts JOIN keys ON spread = key WHERE part * part >= 0"),
    ("keeps none", "facts JOIN keys ON spread = key WHERE part * 2 = 1"),
    (
        "groups",
        "(SELECT spread, max(payload) AS payload FROM facts GROUP BY spread) JOIN keys ON spread = key
         WHERE part = 3",
    ),
];

fn main() -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(32 << 20).build()?;
    runtime.block_on(async { tokio::spawn(run()).await? })
}

fn setting(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

async fn run() -> Result<()> {
    let scale: f64 = setting("SCALE", "1").parse()?;
    let rounds: usize = setting("ROUNDS", "5").parse()?;
    let folder = TempDir::new()?;
    let mut queries: Vec<(String, String)> = match &*setting("DATA", "tpch") {
        "tpch" => {
            write_tpch(scale, folder.path())?;
            TPCH.split(';').map(|query| tpch(query, scale)).collect()
        }
        "made" => {
            write_made(folder.path()).await?;
            let sql = |from| format!("SELECT count(*), max(payload) FROM {from}");
            MADE.iter().map(|(name, from)| (name.to_string(), sql(from))).collect()
        }
        other => bail!("DATA is {other}, and has to be tpch or made"),
    };
    if let Ok(selected) = std::env::var("QUERIES") {
        queries.retain(|(name, _)| selected.split(',').any(|selected| selected == name));
    }

    let engines = setting("ENGINES", "process,default,shuffled");
    // Ballista logs an error wherever a task needs no more rows of a shuffle.
    let cluster = (engines != "process").then(|| Processes::start("off", &[], &[]));
    std::thread::sleep(Duration::from_secs(if cluster.is_some() { 5 } else { 0 }));
    for engine in engines.split(',') {
        let port = cluster.as_ref().map_or(0, |cluster| cluster.port);
        let contexts = [
            connect(engine, port, folder.path(), false).await?,
            connect(engine, port, folder.path(), true).await?,
        ];
        println!(
            "\n| {engine} | s without | s with | ratio | bytes shuffled without | with | filters | rows dropped |"
        );
        println!("|---|---:|---:|---:|---:|---:|---:|---:|");
        let mut measured = Vec::new();
        for (name, sql) in &queries {
            let row = measure(&contexts, name, sql, rounds, cluster.as_ref()).await;
            let row = row.with_context(|| format!("{engine}, {name}"))?;
            row.print();
            measured.push(row);
        }
        Row::total("all", &measured).print();
        measured.retain(|row| row.filters > 0);
        if let Some(worst) = measured.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio)) {
            Row::total("all with filters", &measured).print();
            println!("\nWorst ratio with filters: {:.2} ({}).", worst.ratio, worst.name);
        }
    }
    Ok(())
}

/// What a query needs without and with filters, how many operators filter, and how many rows they drop.
#[derive(Default)]
struct Row {
    name: String,
    seconds: [f64; 2],
    ratio: f64,
    bytes: [u64; 2],
    filters: usize,
    dropped: f64,
}

impl Row {
    fn total(name: &str, rows: &[Row]) -> Self {
        let mut total = Self { name: name.to_owned(), ..Self::default() };
        for row in rows {
            for i in 0..2 {
                total.seconds[i] += row.seconds[i];
                total.bytes[i] += row.bytes[i];
            }
            total.filters += row.filters;
            total.dropped += row.dropped;
        }
        total.ratio = total.seconds[1] / total.seconds[0];
        total
    }

    fn print(&self) {
        let Self {
            name,
            seconds: [without, with],
            ratio,
            bytes: [bytes_without, bytes_with],
            filters,
            dropped,
        } = self;
        println!(
            "| {name} | {without:.3} | {with:.3} | {ratio:.2} | {bytes_without} | {bytes_with} | {filters} | {dropped:.0} |"
        );
    }
}

async fn measure(
    contexts: &[SessionContext; 2],
    name: &str,
    sql: &str,
    rounds: usize,
    cluster: Option<&Processes>,
) -> Result<Row> {
    let mut row = Row { name: name.to_owned(), ..Row::default() };
    let mut seconds = [Vec::new(), Vec::new()];
    for round in 0..=rounds {
        let mut results = [String::new(), String::new()];
        // The first is the second in the next round, so that neither gains by its place.
        for i in [round % 2, 1 - round % 2] {
            let start = Instant::now();
            let result = contexts[i].sql(sql).await?.collect().await?;
            seconds[i].push(start.elapsed().as_secs_f64());
            row.bytes[i] = take_bytes(cluster);
            results[i] = text(&result, sql.contains("order by"))?;
        }
        ensure!(results[0] == results[1], "filters changed the result:\n{}\n{}", results[0], results[1]);
    }
    let seconds = seconds.map(|seconds| seconds[1..].to_vec());
    row.ratio = median(seconds[0].iter().zip(&seconds[1]).map(|(without, with)| with / without).collect());
    row.seconds = seconds.map(median);

    let plan = contexts[1].sql(&format!("EXPLAIN ANALYZE {sql}")).await?.collect().await?;
    take_bytes(cluster);
    for line in text(&plan, true)?.lines().filter(|line| line.contains("JoinFilterExec")) {
        row.filters += 1;
        row.dropped += count(line, "rows_dropped")?;
    }
    Ok(row)
}

/// A result as text. Floats need no tolerance: they are computed from sums of decimals, which have no order.
fn text(batches: &[RecordBatch], ordered: bool) -> Result<String> {
    let text = pretty_format_batches(batches)?.to_string();
    let mut lines: Vec<_> = text.lines().collect();
    if !ordered {
        lines.sort_unstable();
    }
    Ok(lines.join("\n"))
}

/// A count of an operator, which `EXPLAIN ANALYZE` prints as `12` or `3.45 K`.
fn count(line: &str, name: &str) -> Result<f64> {
    let (_, value) = line.split_once(&format!("{name}=")).context("no such count")?;
    let value = value.split([',', ']']).next().unwrap_or(value);
    let (number, unit) = value.split_once(' ').unwrap_or((value, ""));
    let power = ["", "K", "M", "B"].iter().position(|known| *known == unit).context("an unknown unit")?;
    Ok(number.parse::<f64>()? * 1000_f64.powi(power as i32))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn connect(engine: &str, port: u16, folder: &Path, filters: bool) -> Result<SessionContext> {
    let config = if engine == "process" { SessionConfig::new() } else { SessionConfig::new_with_ballista() };
    let mut config = config.with_option_extension(BloomlineOptions::default());
    config.options_mut().set("bloomline.join_filters.enabled", &filters.to_string())?;
    match engine {
        "default" | "process" => {}
        "shuffled" => {
            config.options_mut().set("ballista.optimizer.broadcast_join_threshold_bytes", "0")?;
            config.options_mut().set("ballista.optimizer.broadcast_join_threshold_rows", "0")?;
        }
        _ => bail!("ENGINES has {engine}, and may have process, default and shuffled"),
    }
    let mut state = SessionStateBuilder::new().with_config(config).with_default_features();
    if engine == "process" && filters {
        state = state.with_physical_optimizer_rule(Arc::new(JoinFilters));
    }
    let context = match engine {
        "process" => SessionContext::new_with_state(state.build()),
        _ => SessionContext::remote_with_state(&format!("df://localhost:{port}"), state.build()).await?,
    };
    for table in fs::read_dir(folder)? {
        let (name, path) = table.map(|table| (table.file_name(), table.path()))?;
        let (name, path) = name.to_str().zip(path.to_str()).context("a path in UTF-8")?;
        context.register_parquet(name, path, ParquetReadOptions::default()).await?;
    }
    Ok(context)
}

/// The name and the text of a query of TPC-H.
fn tpch(query: &str, scale: f64) -> (String, String) {
    let parameters: Vec<_> = query.trim().split('|').collect();
    // `:s` numbers a stream in the name of the view of query 15, which becomes a common table expression.
    let mut sql = queries::query(parameters[0].parse().unwrap()).unwrap().replace(":s", "");
    if sql.contains("create view") {
        sql = sql.replacen("create view", "with", 1).replacen(" as\n", " as (\n", 1).replacen(';', ")", 1);
    }
    // `:10` before `:1`.
    for (i, value) in parameters.iter().enumerate().skip(1).rev() {
        sql = sql.replace(&format!(":{i}"), value);
    }
    // The fraction of query 11 is divided by the scale factor.
    sql = sql.replace("0.0001", &(0.0001 / scale).to_string());
    let limit = match parameters[0] {
        "3" => "limit 10",
        "10" => "limit 20",
        "2" | "18" | "21" => "limit 100",
        _ => "",
    };
    (parameters[0].to_owned(), format!("{} {limit}", sql.split(';').next().unwrap()))
}

fn write_tpch(scale: f64, folder: &Path) -> Result<()> {
    macro_rules! write_table {
        ($name:literal, $files:literal, $arrow:ident, $generator:ident) => {
            for part in 1..=$files {
                write($arrow::new($generator::new(scale, part, $files)), &folder.join($name), part)?;
            }
        };
    }
    // Several files, so that both executors read some.
    write_table!("lineitem", 4, LineItemArrow, LineItemGenerator);
    write_table!("orders", 4, OrderArrow, OrderGenerator);
    write_table!("partsupp", 4, PartSuppArrow, PartSuppGenerator);
    write_table!("part", 4, PartArrow, PartGenerator);
    write_table!("customer", 4, CustomerArrow, CustomerGenerator);
    write_table!("supplier", 1, SupplierArrow, SupplierGenerator);
    write_table!("nation", 1, NationArrow, NationGenerator);
    write_table!("region", 1, RegionArrow, RegionGenerator);
    Ok(())
}

fn write(batches: impl RecordBatchReader, folder: &Path, part: i32) -> Result<()> {
    fs::create_dir_all(folder)?;
    let file = File::create(folder.join(format!("{part}.parquet")))?;
    let mut writer = ArrowWriter::try_new(file, batches.schema(), None)?;
    for batch in batches {
        writer.write(&batch?)?;
    }
    writer.close()?;
    Ok(())
}

async fn write_made(folder: &Path) -> Result<()> {
    let context = SessionContext::new();
    for (table, sql) in MADE_TABLES {
        let path = folder.join(table);
        let copy = format!("COPY ({sql}) TO '{}/' STORED AS PARQUET", path.display());
        context.sql(&copy).await?.collect().await?;
    }
    Ok(())
}

/// Removes what stages wrote for the next ones, and returns how many bytes that was.
fn take_bytes(cluster: Option<&Processes>) -> u64 {
    fn take(path: &Path) -> u64 {
        if let Ok(entries) = fs::read_dir(path) {
            return entries.flatten().map(|entry| take(&entry.path())).sum();
        }
        let bytes = fs::metadata(path).map_or(0, |file| file.len());
        let _ = fs::remove_file(path);
        bytes
    }
    let folder = cluster.map(|cluster| cluster.folder.path());
    folder.map_or(0, |folder| {
        ["executor-0", "executor-1"].map(|executor| take(&folder.join(executor))).iter().sum()
    })
}
