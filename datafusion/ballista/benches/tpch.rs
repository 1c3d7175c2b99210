//! A join of TPC-H with a selective side, with and without a filter of that side: `cargo bench -p bloomline-ballista`.
//!
//! Prints Markdown. `SCALE` is TPC-H's scale factor (1), `ROUNDS` how often each query runs (5).

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use ballista::prelude::{SessionConfigExt, SessionContextExt};
use bloomline::BloomFilter;
use datafusion::arrow::array::{ArrayRef, AsArray, BinaryArray};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::execution::SessionStateBuilder;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use tempfile::TempDir;
use tpchgen::generators::{LineItemGenerator, OrderGenerator};
use tpchgen_arrow::{LineItemArrow, OrderArrow};

/// Files of each table, so that both executors read some.
const FILES: i32 = 4;
const PORT: u16 = 50150;

/// About 1 % of all orders.
const SELECTED: &str = "o_orderdate >= DATE '1995-01-01' AND o_orderdate < DATE '1995-01-25'";

fn main() -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(32 << 20).build()?;
    runtime.block_on(async { tokio::spawn(run()).await? })
}

async fn run() -> Result<()> {
    let scale: f64 = std::env::var("SCALE").map_or(Ok(1.0), |scale| scale.parse())?;
    let rounds: usize = std::env::var("ROUNDS").map_or(Ok(5), |rounds| rounds.parse())?;
    let folder = TempDir::new()?;
    for part in 1..=FILES {
        let lines = LineItemArrow::new(LineItemGenerator::new(scale, part, FILES));
        write(lines, &folder.path().join("lineitem"), part)?;
        write(OrderArrow::new(OrderGenerator::new(scale, part, FILES)), &folder.path().join("orders"), part)?;
    }

    let orders = (1_500_000.0 * scale) as u64;
    let filter = write_filter(folder.path(), orders)?;
    let without = format!(
        "SELECT l_shipmode, count(*), sum(l_extendedprice) FROM lineitem JOIN orders ON l_orderkey = o_orderkey
         WHERE {SELECTED} GROUP BY l_shipmode ORDER BY l_shipmode"
    );
    let contains = format!(
        "bloom_contains((SELECT bloom_filter(o_orderkey, {}, 0.01) FROM orders WHERE {SELECTED}), l_orderkey)",
        orders / 100
    );
    // In a subquery: beside the join, Ballista would apply it to the join's result.
    let probed = format!("FROM (SELECT * FROM lineitem WHERE {contains}) AS lineitem JOIN");
    let with = without.replace("FROM lineitem JOIN", &probed);

    let mut local = SessionContext::new();
    bloomline_datafusion::register_all(&mut local)?;
    register(&local, folder.path()).await?;
    let rows = count(&local, "SELECT count(*) FROM lineitem").await?;
    for (what, sql) in [
        ("rows of lineitem", "SELECT count(*) FROM lineitem".into()),
        ("rows of lineitem that pass the filter", format!("SELECT count(*) FROM lineitem WHERE {contains}")),
        ("rows of orders that are selected", format!("SELECT count(*) FROM orders WHERE {SELECTED}")),
    ] {
        println!("{what}: {}", count(&local, &sql).await?);
    }

    let cluster = Cluster::start()?;
    let remote = connect(folder.path(), true).await?;
    // As for a selected side that is too large to be sent to each task.
    let partitioned = connect(folder.path(), false).await?;

    println!("\n| engine | filter | seconds | bytes shuffled |\n|---|---|---:|---:|");
    for (engine, context) in [
        ("one process", &local),
        ("two executors, the small side broadcast", &remote),
        ("two executors, both sides shuffled", &partitioned),
    ] {
        let mut times = [Vec::new(), Vec::new()];
        let mut shuffled = [0, 0];
        let mut results = [String::new(), String::new()];
        for _ in 0..=rounds {
            for (i, sql) in [&without, &with].into_iter().enumerate() {
                let before = cluster.bytes()?;
                let start = Instant::now();
                let result = context.sql(sql).await?.collect().await?;
                times[i].push(start.elapsed().as_secs_f64());
                shuffled[i] = cluster.bytes()? - before;
                results[i] = pretty_format_batches(&result)?.to_string();
            }
        }
        ensure!(results[0] == results[1], "the filter changed the result:\n{}\n{}", results[0], results[1]);
        for (i, filter) in ["without", "with"].into_iter().enumerate() {
            println!("| {engine} | {filter} | {:.2} | {} |", median(&times[i][1..]), shuffled[i]);
        }
        let ratios: Vec<f64> =
            times[1][1..].iter().zip(&times[0][1..]).map(|(with, without)| with / without).collect();
        println!(
            "| {engine} | ratio | {:.2} | {:.4} |",
            median(&ratios),
            shuffled[1] as f64 / shuffled[0].max(1) as f64
        );
    }

    println!(
        "\n| a filter of 1 MiB reaches {rows} rows by | one process, s | two executors, s |\n|---|---:|---:|"
    );
    let literal: String = filter.iter().map(|byte| format!("{byte:02x}")).collect();
    let ways = [
        ("literal", format!("SELECT count(*) FROM lineitem WHERE bloom_contains(x'{literal}', l_orderkey)")),
        (
            "scalar subquery",
            "SELECT count(*) FROM lineitem WHERE bloom_contains((SELECT filter FROM filters), l_orderkey)"
                .into(),
        ),
        (
            "cross join",
            "SELECT count(*) FROM lineitem, filters WHERE bloom_contains(filter, l_orderkey)".into(),
        ),
    ];
    let mut times = vec![[Vec::new(), Vec::new()]; ways.len()];
    let mut counts = Vec::new();
    for _ in 0..=rounds {
        for (times, (_, sql)) in times.iter_mut().zip(&ways) {
            for (times, context) in times.iter_mut().zip([&local, &remote]) {
                let start = Instant::now();
                counts.push(count(context, sql).await?);
                times.push(start.elapsed().as_secs_f64());
            }
        }
    }
    ensure!(counts.iter().all(|count| *count == counts[0]), "the ways differ: {counts:?}");
    for ((name, _), [local, remote]) in ways.iter().zip(&times) {
        println!("| {name} | {:.2} | {:.2} |", median(&local[1..]), median(&remote[1..]));
    }
    Ok(())
}

async fn connect(folder: &Path, broadcasts: bool) -> Result<SessionContext> {
    let mut config = SessionConfig::new_with_ballista();
    if !broadcasts {
        config.options_mut().set("ballista.optimizer.broadcast_join_threshold_bytes", "0")?;
        config.options_mut().set("ballista.optimizer.broadcast_join_threshold_rows", "0")?;
    }
    let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    let mut context = SessionContext::remote_with_state(&format!("df://localhost:{PORT}"), state).await?;
    bloomline_datafusion::register_all(&mut context)?;
    register(&context, folder).await?;
    Ok(context)
}

async fn count(context: &SessionContext, sql: &str) -> Result<i64> {
    let result = context.sql(sql).await?.collect().await?;
    let counts = result.iter().find(|batch| batch.num_rows() > 0).context("no rows")?;
    Ok(counts.column(0).as_primitive::<Int64Type>().value(0))
}

/// Writes a table of one filter of 1 MiB, which has every sixteenth order. Returns the filter's bytes.
fn write_filter(folder: &Path, orders: u64) -> Result<Vec<u8>> {
    let mut filter = BloomFilter::with_blocks(1 << 14, 6)?;
    for key in (0..4 * orders).step_by(16) {
        filter.insert(key);
    }
    let bytes = filter.to_standalone();
    let column = BinaryArray::from_iter_values([&bytes]);
    let batch = RecordBatch::try_from_iter([("filter", Arc::new(column) as ArrayRef)])?;
    let schema = batch.schema();
    write(RecordBatchIterator::new([Ok(batch)], schema), &folder.join("filters"), 1)?;
    Ok(bytes)
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

async fn register(context: &SessionContext, folder: &Path) -> Result<()> {
    for table in ["lineitem", "orders", "filters"] {
        let path = folder.join(table);
        let path = path.to_str().context("a path in UTF-8")?;
        context.register_parquet(table, path, ParquetReadOptions::default()).await?;
    }
    Ok(())
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A scheduler and two executors of one core.
struct Cluster {
    processes: Vec<Child>,
    work: TempDir,
}

impl Cluster {
    fn start() -> Result<Self> {
        let mut cluster = Self { processes: Vec::new(), work: TempDir::new()? };
        let port = |port: u16| port.to_string();
        cluster.spawn(&["scheduler", "--port", &port(PORT)])?;
        for i in 1..=2 {
            let folder = cluster.work.path().join(i.to_string());
            fs::create_dir(&folder)?;
            let work_dir = folder.to_str().context("a path in UTF-8")?.to_owned();
            cluster.spawn(&[
                "executor",
                "--scheduler-port",
                &port(PORT),
                "--port",
                &port(PORT + 2 * i),
                "--grpc-port",
                &port(PORT + 2 * i + 1),
                "--vcores",
                "1",
                "--work-dir",
                &work_dir,
            ])?;
        }
        std::thread::sleep(Duration::from_secs(5));
        Ok(cluster)
    }

    fn spawn(&mut self, arguments: &[&str]) -> Result<()> {
        let child = Command::new(env!("CARGO_BIN_EXE_bloomline-ballista")).args(arguments).spawn()?;
        self.processes.push(child);
        Ok(())
    }

    /// Bytes in the executors' folders: what stages wrote for the next ones.
    fn bytes(&self) -> Result<u64> {
        fn bytes(folder: &Path) -> Result<u64> {
            let mut total = 0;
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                total +=
                    if entry.file_type()?.is_dir() { bytes(&entry.path())? } else { entry.metadata()?.len() };
            }
            Ok(total)
        }
        bytes(self.work.path())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
