//! The Rust crate and the CLI read the filters that SQL writes, and SQL reads theirs.
//!
//! The CLI is the program that the environment variable BLOOMLINE_CLI names (`cargo build -p bloomline-cli`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::common::{count, filter, register, rows, session};
use arrow::array::BinaryArray;
use bloomline::BloomFilter;
use datafusion::prelude::SessionContext;

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
async fn the_cli_and_sql_make_and_read_the_same_filters() {
    let Some(cli) = cli() else { return };
    let context = with_keys().await;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let texts: Vec<_> = some_keys().map(|key| key + "\n").collect();
    let integers: Vec<_> = (0..1000).map(|id| format!("{id}\n")).collect();
    for (lines, column, option) in
        [(texts, "url", &[][..]), (integers, "arrow_cast(id, 'UInt16')", &["--integers"])]
    {
        let even: String = lines.iter().step_by(2).cloned().collect();
        std::fs::write(folder.join("even.txt"), &even).unwrap();
        std::fs::write(folder.join("all.txt"), lines.concat()).unwrap();
        let build = ["build", "-q", "--fpr", "1e-6", "--keys", "500", "-o", "cli.bloom", "even.txt"];
        run(&cli, folder, &[&build[..], option].concat());
        let of_cli = std::fs::read(folder.join("cli.bloom")).unwrap();
        let sql = format!("SELECT bloom_filter({column}, 500, 1e-6) FROM t WHERE id % 2");
        let of_sql = filter(&context, &format!("{sql} = 0")).await.unwrap();
        let open = |bytes: &[u8]| BloomFilter::from_standalone(bytes).unwrap();
        assert_eq!(open(&of_cli), open(&of_sql), "{column}");

        std::fs::write(folder.join("sql.bloom"), of_sql).unwrap();
        run(&cli, folder, &["info", "sql.bloom"]);
        assert_eq!(run(&cli, folder, &[&["check", "sql.bloom", "all.txt"], option].concat()), even);
        context.deregister_table("f").unwrap();
        register_one(&context, "f", of_cli);
        let wrong =
            format!("SELECT count(*) FROM t, f WHERE bloom_contains(filter, {column}) <> (id % 2 = 0)");
        assert_eq!(count(&context, &wrong).await.unwrap(), 0);
        // Filters of one size unite, whoever made them.
        let lost = format!(
            "SELECT count(*) FROM t WHERE NOT bloom_contains(
                 (SELECT bloom_filter_union(filter) FROM (SELECT filter FROM f UNION ALL {sql} = 1)), {column})"
        );
        assert_eq!(count(&context, &lost).await.unwrap(), 0);
    }
}
