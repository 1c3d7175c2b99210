//! Time of the functions in SQL, as ratios to the same work in a plain loop: `cargo bench --bench sql`.
//!
//! Prints Markdown. Keys are text of 24 bytes in Utf8View columns, on one thread. The contestants take turns within each
//! round, and ratios are medians of the ratios within a round.

use std::sync::Arc;
use std::time::Instant;

use bloomline::{BloomFilter, hash_key};
use bloomline_datafusion::register_filter;
use datafusion::arrow::array::{AsArray, BooleanArray, RecordBatch, StringViewArray, StringViewBuilder};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::ScalarValue;
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::physical_plan::collect;
use datafusion::prelude::{SessionConfig, SessionContext};

const BATCH: usize = 8192;
const FPR: f64 = 0.01;

fn main() -> Result<()> {
    let number = |name, default: usize| std::env::var(name).map_or(default, |text| text.parse().expect(name));
    let (build_keys, probe_keys) = (number("BUILD_KEYS", 100_000_000), number("PROBE_KEYS", 10_000_000));
    let rounds = number("ROUNDS", 5);
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        println!("| query | planning, ms | ns per key | of the loop | ratio |\n|---|---:|---:|---:|---:|");
        probe(probe_keys, rounds).await?;
        build(build_keys, rounds.min(3)).await
    })
}

/// Key `i`: half of all keys are in the filter.
fn key(i: usize) -> String {
    format!("{:024}", i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 1_000_000_000_000)
}

fn batches(n: usize) -> Vec<RecordBatch> {
    let schema = Arc::new(Schema::new(vec![Field::new("key", DataType::Utf8View, false)]));
    let batch = |start| {
        let mut keys = StringViewBuilder::with_capacity(BATCH);
        (start..n.min(start + BATCH)).for_each(|i| keys.append_value(key(i)));
        RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(keys.finish())]).expect("one column")
    };
    (0..n).step_by(BATCH).map(batch).collect()
}

fn keys(batch: &RecordBatch) -> &StringViewArray {
    batch.column(0).as_string_view()
}

fn context(batches: &[RecordBatch]) -> Result<SessionContext> {
    let config = SessionConfig::new().with_target_partitions(1).with_batch_size(BATCH);
    let mut context = SessionContext::new_with_config(config);
    bloomline_datafusion::register_all(&mut context)?;
    let table = MemTable::try_new(batches[0].schema(), vec![batches.to_vec()])?;
    context.register_table("keys", Arc::new(table))?;
    Ok(context)
}

/// Milliseconds of planning, nanoseconds of execution for each of `n` keys, and the result.
async fn timed(context: &SessionContext, sql: &str, n: usize) -> Result<(f64, f64, ScalarValue)> {
    let start = Instant::now();
    let plan = context.sql(sql).await?.create_physical_plan().await?;
    let planning = start.elapsed().as_secs_f64() * 1e3;
    let start = Instant::now();
    let result = collect(plan, context.task_ctx()).await?;
    let execution = start.elapsed().as_nanos() as f64 / n as f64;
    Ok((planning, execution, ScalarValue::try_from_array(result[0].column(0), 0)?))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints a row: planning and execution, and the plain loop's times, round by round.
fn row(name: &str, times: &[(f64, f64)], alone: &[f64]) {
    let (planning, execution): (Vec<f64>, Vec<f64>) = times.iter().copied().unzip();
    let ratios = execution.iter().zip(alone).map(|(time, alone)| time / alone).collect();
    let [planning, execution, alone, ratio] = [planning, execution, alone.to_vec(), ratios].map(median);
    println!("| {name} | {planning:.1} | {execution:.2} | {alone:.2} | {ratio:.2} |");
}

/// The batch, with a column of what `bloom_contains` returns.
fn answered(batch: &RecordBatch, filter: &BloomFilter) -> Result<RecordBatch> {
    let found: BooleanArray = keys(batch).iter().map(|key| key.map(|key| filter.contains(key))).collect();
    let columns = [("key", Arc::clone(batch.column(0))), ("found", Arc::new(found))];
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// Looks up all keys in a filter of 1 MiB, which has every second key of its first part.
async fn probe(n: usize, rounds: usize) -> Result<()> {
    let batches = batches(n);
    let context = context(&batches)?;
    let mut filter = BloomFilter::with_blocks(1 << 14, 6).expect("a size that fits");
    (0..n.min(1 << 20)).step_by(2).take(800_000).for_each(|i| {
        filter.insert(key(i));
    });
    let literal: String = filter.to_standalone().iter().map(|byte| format!("{byte:02x}")).collect();
    context.sql(&format!("CREATE TABLE filters AS SELECT x'{literal}' AS filter")).await?.collect().await?;
    register_filter(&context, "crawled", filter.clone())?;
    // DataFusion's own part: the answers are there already.
    let answered: Vec<_> = batches.iter().map(|batch| answered(batch, &filter)).collect::<Result<_>>()?;
    context.register_table("answered", Arc::new(MemTable::try_new(answered[0].schema(), vec![answered])?))?;
    let ways = [
        ("a column of Booleans, without a filter", "SELECT count(*) FROM answered WHERE found".into()),
        ("a registered filter", "SELECT count(*) FROM keys WHERE bloom_contains('crawled', key)".into()),
        ("a literal", format!("SELECT count(*) FROM keys WHERE bloom_contains(x'{literal}', key)")),
        (
            "a scalar subquery",
            "SELECT count(*) FROM keys WHERE bloom_contains((SELECT filter FROM filters), key)".into(),
        ),
        ("a cross join", "SELECT count(*) FROM keys, filters WHERE bloom_contains(filter, key)".into()),
        (
            "a cross join, in the SELECT list",
            "SELECT sum(CASE WHEN bloom_contains(filter, key) THEN 1 END) FROM keys, filters".into(),
        ),
    ];
    let (mut hashes, mut found, mut alone) = (Vec::new(), [false; BATCH], Vec::new());
    let mut times = vec![Vec::new(); ways.len()];
    for _ in 0..rounds {
        let start = Instant::now();
        let mut count = 0;
        for batch in &batches {
            hashes.clear();
            hashes.extend(keys(batch).iter().flatten().map(|key| hash_key(key, 0)));
            let found = &mut found[..hashes.len()];
            filter.contains_batch(&hashes, found);
            count += found.iter().filter(|found| **found).count() as i64;
        }
        alone.push(start.elapsed().as_nanos() as f64 / n as f64);
        for ((_, sql), times) in ways.iter().zip(&mut times) {
            let (planning, execution, result) = timed(&context, sql, n).await?;
            assert_eq!(result, ScalarValue::Int64(Some(count)));
            times.push((planning, execution));
        }
    }
    for ((name, _), times) in ways.iter().zip(&times) {
        row(name, times, &alone);
    }
    Ok(())
}

/// Builds a filter of all keys.
async fn build(n: usize, rounds: usize) -> Result<()> {
    let batches = batches(n);
    let context = context(&batches)?;
    let sql = format!("SELECT bloom_filter(key, {n}, {FPR}) FROM keys");
    let (mut alone, mut times) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let start = Instant::now();
        let mut filter = BloomFilter::with_fpr(n as u64, FPR).expect("a size that fits");
        let mut hashes = Vec::new();
        for batch in &batches {
            hashes.clear();
            hashes.extend(keys(batch).iter().flatten().map(|key| hash_key(key, 0)));
            filter.insert_batch(&hashes);
        }
        alone.push(start.elapsed().as_nanos() as f64 / n as f64);
        let (planning, execution, result) = timed(&context, &sql, n).await?;
        assert_eq!(result, ScalarValue::Binary(Some(filter.to_standalone())));
        times.push((planning, execution));
    }
    row("`bloom_filter`", &times, &alone);
    Ok(())
}
