//! The Rust crate and the CLI read the filters that SQL writes, and SQL reads theirs.
//!
//! The CLI is the program that the environment variable BLOOMLINE_CLI names (`cargo build -p bloomline-cli`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::common::{built, bytes, count, filter, hex, register, rows, session};
use arrow::array::{BinaryArray, Int64Array};
use bloomline::sstable::FilterPolicy;
use bloomline::{BloomFilter, FilterBuilder, Sizing};
use datafusion::prelude::{ParquetReadOptions, SessionContext};

fn some_keys() -> impl Iterator<Item = String> {
    (0..1000).map(|i| format!("https://example.org/{i}"))
}

/// The table `t (id, url)` of 1,000 keys.
async fn with_keys() -> SessionContext {
    let context = session(&[("datafusion.execution.target_partitions", "3")]);
    let create =
        "CREATE TABLE t AS SELECT value AS id, 'https://example.org/' || CAST(value AS VARCHAR) AS url
                  FROM generate_series(0, 999)";
    rows(&context, create).await.unwrap();
    context
}

/// A table of one filter.
fn register_one(context: &SessionContext, table: &str, filter: Vec<u8>) {
    register(context, table, [("filter", Arc::new(BinaryArray::from_iter_values([filter])))]);
}

#[tokio::test]
async fn parquet_holds_filters_for_rust_and_for_sql() {
    let context = with_keys().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filters.parquet");
    let path = path.to_str().unwrap();
    let copy = format!(
        "COPY (SELECT id % 4 AS part, bloom_filter(url, 250, 1e-4) AS filter FROM t GROUP BY id % 4) TO '{path}'
         STORED AS PARQUET OPTIONS ('compression' 'uncompressed')"
    );
    rows(&context, &copy).await.unwrap();

    context.register_parquet("f", path, ParquetReadOptions::default()).await.unwrap();
    let mut parts = 0;
    for batch in rows(&context, "SELECT part, filter FROM f").await.unwrap() {
        for row in 0..batch.num_rows() {
            let part = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap().value(row) as usize;
            let bytes = bytes(batch.column(1), row).unwrap();
            let filter = BloomFilter::from_standalone(&bytes).unwrap();
            assert!(some_keys().skip(part).step_by(4).all(|key| filter.contains(key)));
            let expected = some_keys().skip(part).step_by(4).map(|key| bloomline::hash_key(key, 0));
            assert_eq!(bytes, built(250, 1e-4, expected));
            parts += 1;
        }
    }
    assert_eq!(parts, 4);
    let lost = "SELECT count(*) FROM t JOIN f ON id % 4 = part WHERE NOT bloom_contains(filter, url)";
    assert_eq!(count(&context, lost).await.unwrap(), 0);
}

#[tokio::test]
async fn sql_reads_what_rust_writes() {
    let context = with_keys().await;
    let mut seeded = BloomFilter::with_bits_per_key(1000, 20.0).unwrap().with_seed(0x5eed).unwrap();
    let mut many_probes = BloomFilter::with_blocks(100, 13).unwrap();
    let mut short = BloomFilter::with_blocks(1, 16).unwrap();
    // A high rate in each module, so that absent keys tell whether all modules are asked.
    let modules = Sizing::new(60, 1).unwrap().with_modules(3).unwrap();
    let mut modules = BloomFilter::with_sizing(modules).unwrap();
    for key in some_keys().step_by(2) {
        seeded.insert(&key);
        many_probes.insert(&key);
        modules.insert(&key);
    }
    let few = builder_of(&["https://example.org/0", "https://example.org/2"]);
    short.insert("https://example.org/0");
    short.insert("https://example.org/2");
    for (name, made, n) in [
        ("seeded", seeded, 500),
        ("13 probes", many_probes, 500),
        ("three modules", modules, 500),
        ("one block", short, 2),
        ("short", few, 2),
    ] {
        let expected = some_keys().filter(|key| made.contains(key)).count() as i64;
        assert!((n..n + 20).contains(&expected), "{name}: {expected}");
        context.deregister_table("f").unwrap();
        register_one(&context, "f", made.to_standalone());
        let literal = format!("bloom_contains(x'{}', url)", hex(&made.to_standalone()));
        // Column names do not consist of the filter's bytes.
        let frame = context.sql(&format!("SELECT {literal} FROM t")).await.unwrap();
        let column = frame.into_optimized_plan().unwrap().schema().field(0).name().clone();
        assert!(column.starts_with("bloom_contains(<") && column.len() < 60, "{column}");
        for way in [
            "bloom_contains((SELECT filter FROM f), url)",
            "EXISTS (SELECT 1 FROM f WHERE bloom_contains(filter, url))",
            &literal,
        ] {
            let found = count(&context, &format!("SELECT count(*) FROM t WHERE {way}")).await.unwrap();
            assert_eq!(found, expected, "{name}: {way}");
        }
        let round = filter(&context, "SELECT bloom_filter_union(filter) FROM f").await.unwrap();
        let round = BloomFilter::from_standalone(&round).unwrap();
        assert!(some_keys().all(|key| round.contains(&key) == made.contains(&key)), "{name}");
    }
}

/// The number of modules follows from the rate and the number of keys.
#[tokio::test]
async fn sql_and_rust_read_each_other_at_every_rate_and_size() {
    let mut numbers_of_modules = BTreeSet::new();
    for n in [100, 100_000] {
        let context = session(&[]);
        rows(&context, &format!("CREATE TABLE t AS SELECT value AS id FROM range({})", 2 * n)).await.unwrap();
        for fpr in [0.01, 1e-3, 1e-4, 1e-6] {
            let sql = format!("SELECT bloom_filter(id, {n}, {fpr}) FROM t WHERE id < {n}");
            let of_sql = filter(&context, &sql).await.unwrap();
            let mut of_rust = BloomFilter::with_fpr(n, fpr).unwrap();
            of_rust.extend(0..n as i64);
            assert_eq!(of_sql, of_rust.to_standalone(), "{n} keys at {fpr}");

            let mut builder = FilterBuilder::with_fpr(fpr).unwrap();
            builder.extend(0..n as i64);
            let mut compact = vec![];
            FilterPolicy::with_fpr(fpr).unwrap().create_filter(0..n as i64, &mut compact);
            for (writer, made) in [
                ("SQL", BloomFilter::from_standalone(&of_sql).unwrap()),
                ("the builder", builder.finish().unwrap()),
                ("the policy", BloomFilter::from_compact(&compact).unwrap()),
            ] {
                numbers_of_modules.insert(made.n_modules());
                let expected = (0..2 * n as i64).filter(|&key| made.contains(key)).count() as i64;
                context.deregister_table("f").unwrap();
                register_one(&context, "f", made.to_standalone());
                for of in ["filter", "bloom_filter_union(filter)"] {
                    let sql =
                        format!("SELECT count(*) FROM t WHERE bloom_contains((SELECT {of} FROM f), id)");
                    let found = count(&context, &sql).await.unwrap();
                    assert_eq!(found, expected, "{of} by {writer}, {n} keys at {fpr}");
                }
                let lost = format!(
                    "SELECT count(*) FROM t WHERE id < {n} AND NOT bloom_contains(
                         (SELECT bloom_fold(filter, 0.5) FROM f), id)"
                );
                assert_eq!(count(&context, &lost).await.unwrap(), 0, "by {writer}, {n} keys at {fpr}");
            }
        }
    }
    assert_eq!(numbers_of_modules, BTreeSet::from([1, 2]));
}

/// A filter of so few keys that its bytes are in the short form.
fn builder_of(keys: &[&str]) -> BloomFilter {
    let mut builder = FilterBuilder::with_bits_per_key(20.0).unwrap();
    keys.iter().for_each(|key| builder.insert(key));
    let mut compact = vec![];
    builder.finish_compact(&mut compact).unwrap();
    let filter = BloomFilter::from_compact(&compact).unwrap();
    assert!(filter.to_standalone().len() < 64 + 64, "not short");
    filter
}

/// The CLI, if the environment names it.
fn cli() -> Option<PathBuf> {
    let cli = std::env::var_os("BLOOMLINE_CLI").map(PathBuf::from);
    if cli.is_none() {
        println!("skipped: BLOOMLINE_CLI does not name the CLI's program");
    }
    cli
}

fn run(cli: &Path, folder: &Path, args: &[&str]) -> String {
    let output = Command::new(cli).current_dir(folder).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn the_cli_reads_what_sql_writes() {
    let Some(cli) = cli() else { return };
    let context = with_keys().await;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let lines = |keys: &mut dyn Iterator<Item = String>| keys.map(|key| key + "\n").collect::<String>();
    std::fs::write(folder.join("urls.txt"), lines(&mut some_keys())).unwrap();
    std::fs::write(folder.join("ids.txt"), lines(&mut (0..1000).map(|id| id.to_string()))).unwrap();

    let urls = filter(&context, "SELECT bloom_filter(url, 500, 1e-6) FROM t WHERE id % 2 = 0").await.unwrap();
    std::fs::write(folder.join("urls.bloom"), urls).unwrap();
    let found = run(&cli, folder, &["check", "urls.bloom", "urls.txt"]);
    assert_eq!(found, lines(&mut some_keys().step_by(2)));
    run(&cli, folder, &["info", "urls.bloom"]);

    let ids =
        filter(&context, "SELECT bloom_filter(arrow_cast(id, 'UInt16'), 500, 1e-6) FROM t WHERE id % 2 = 1")
            .await
            .unwrap();
    std::fs::write(folder.join("ids.bloom"), ids).unwrap();
    let found = run(&cli, folder, &["check", "--integers", "ids.bloom", "ids.txt"]);
    assert_eq!(found, lines(&mut (1..1000).step_by(2).map(|id: i32| id.to_string())));
}

#[tokio::test]
async fn sql_reads_what_the_cli_writes() {
    let Some(cli) = cli() else { return };
    let context = with_keys().await;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let even: String = some_keys().step_by(2).map(|key| key + "\n").collect();
    std::fs::write(folder.join("even.txt"), even).unwrap();
    let ids: String = (0..1000).step_by(5).map(|id| format!("{id}\n")).collect();
    std::fs::write(folder.join("ids.txt"), ids).unwrap();

    let build = ["build", "-q", "--fpr", "1e-6"];
    run(&cli, folder, &[&build[..], &["--keys", "500", "-o", "even.bloom", "even.txt"]].concat());
    let even = std::fs::read(folder.join("even.bloom")).unwrap();
    let of_sql =
        filter(&context, "SELECT bloom_filter(url, 500, 1e-6) FROM t WHERE id % 2 = 0").await.unwrap();
    assert_eq!(BloomFilter::from_standalone(&even).unwrap(), BloomFilter::from_standalone(&of_sql).unwrap());
    register_one(&context, "even", even);
    let wrong = "SELECT count(*) FROM t, even WHERE bloom_contains(filter, url) <> (id % 2 = 0)";
    assert_eq!(count(&context, wrong).await.unwrap(), 0);

    // Filters of one size unite, whoever made them.
    register_one(
        &context,
        "odd",
        filter(&context, "SELECT bloom_filter(url, 500, 1e-6) FROM t WHERE id % 2 = 1").await.unwrap(),
    );
    let lost = "SELECT count(*) FROM t WHERE NOT bloom_contains(
        (SELECT bloom_filter_union(filter) FROM (SELECT filter FROM even UNION ALL SELECT filter FROM odd)), url)";
    assert_eq!(count(&context, lost).await.unwrap(), 0);

    run(&cli, folder, &[&build[..], &["--integers", "-o", "ids.bloom", "ids.txt"]].concat());
    register_one(&context, "ids", std::fs::read(folder.join("ids.bloom")).unwrap());
    let wrong = "SELECT count(*) FROM t, ids WHERE bloom_contains(filter, id) <> (id % 5 = 0)";
    assert_eq!(count(&context, wrong).await.unwrap(), 0);
}
