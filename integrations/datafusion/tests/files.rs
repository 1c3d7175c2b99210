//! The Rust crate and the CLI read the filters that SQL writes, and SQL reads theirs.
//!
//! The CLI is the program that the environment variable BLOOMLINE_CLI names (`cargo build -p bloomline-cli`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::common::{built, count, filter, register, rows, session};
use arrow::array::BinaryArray;
use bloomline::BloomFilter;
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
    for part in 0..4 {
        let found = filter(&context, &format!("SELECT filter FROM f WHERE part = {part}")).await.unwrap();
        let keys = some_keys().skip(part).step_by(4).map(|key| bloomline::hash_key(key, 0));
        assert_eq!(found, built(250, 1e-4, keys));
    }
    let lost = "SELECT count(*) FROM t JOIN f ON id % 4 = part WHERE NOT bloom_contains(filter, url)";
    assert_eq!(count(&context, lost).await.unwrap(), 0);
}

/// The number of modules follows from the rate and the number of keys.
#[tokio::test]
async fn sql_and_rust_make_the_same_bytes_at_every_rate_and_size() {
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
            numbers_of_modules.insert(of_rust.n_modules());

            let found = (0..2 * n as i64).filter(|&key| of_rust.contains(key)).count() as i64;
            context.deregister_table("f").unwrap();
            register_one(&context, "f", of_sql);
            for (of, expected) in [
                ("contains((SELECT filter FROM f), id)", found),
                ("contains((SELECT bloom_filter_union(filter) FROM f), id)", found),
                ("contains((SELECT bloom_fold(filter, 0.5) FROM f), id) AND id < 100", 100),
            ] {
                let sql = format!("SELECT count(*) FROM t WHERE bloom_{of}");
                assert_eq!(count(&context, &sql).await.unwrap(), expected, "{of}, {n} keys at {fpr}");
            }
        }
    }
    assert_eq!(numbers_of_modules, BTreeSet::from([1, 2]));
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
