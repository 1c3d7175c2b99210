//! An index over the files of a table: which queries ask it, what it has, and what it refuses.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use arrow::record_batch::RecordBatch;
use bloomline::bank::{IndexView, SlotBitmap};
use bloomline::hash_key;
use bloomline_datafusion::{FileIndexBuilder, IndexedTable, Others, attach_index, register_file_index};
use datafusion::common::ScalarValue;
use datafusion::prelude::SessionContext;
use tempfile::TempDir;

use crate::common::{lines, rows, session};

const FILES: usize = 8;
const COLUMNS: [&str; 2] = ["trace_id", "user"];

/// A table of files. File `i` has the ids `i-0`, `i-1` and so on, and users from `1000 * i`.
struct Logs {
    context: SessionContext,
    folder: TempDir,
}

impl Logs {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        for file in 0..FILES {
            write(&folder.path().join(format!("logs/{file}.parquet")), file).await;
        }
        let context = logs(folder.path()).await;
        Self { context, folder }
    }

    fn file(&self, file: usize) -> PathBuf {
        self.folder.path().join(format!("logs/{file}.parquet"))
    }

    fn index(&self) -> String {
        self.folder.path().join("logs.index").to_str().unwrap().to_owned()
    }

    async fn build(&self, builder: FileIndexBuilder) -> Result<[usize; 4], String> {
        let report = builder.build(&self.context, "logs", &self.index()).await;
        report
            .map(|report| [report.files, report.read, report.dropped, report.unread.len()])
            .map_err(|error| error.strip_backtrace())
    }

    async fn text(&self, sql: &str) -> String {
        lines(&rows(&self.context, sql).await.unwrap()).join("\n")
    }
}

/// A session with the table of a folder.
async fn logs(folder: &Path) -> SessionContext {
    let context = session(&[]);
    register_file_index(&context);
    let create = format!(
        "CREATE EXTERNAL TABLE logs (trace_id VARCHAR, user BIGINT, share DOUBLE) STORED AS PARQUET LOCATION '{}/'",
        folder.join("logs").display(),
    );
    rows(&context, &create).await.unwrap();
    context
}

/// Writes file `i`, which seems old, because builders wait for young files.
async fn write(path: &Path, file: usize) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let copy = format!(
        "COPY (SELECT '{file}-' || value AS trace_id, {file} * 1000 + value AS user, 0.5 AS share FROM range(100))
         TO '{}' STORED AS PARQUET",
        path.display(),
    );
    rows(&SessionContext::new(), &copy).await.unwrap();
    set_age(path, 60);
}

fn set_age(path: &Path, seconds: u64) {
    set_time(path, SystemTime::now() - Duration::from_secs(seconds));
}

fn set_time(path: &Path, time: SystemTime) {
    File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

#[tokio::test]
async fn queries_of_a_key_open_its_file() {
    let logs = Logs::new().await;
    let call =
        format!("SELECT files, read, keys FROM bloom_index('logs', '{}', 'trace_id', 'user')", logs.index());
    assert!(logs.text(&call).await.contains("| 8     | 8    | 1600 |"));
    for (predicate, kept) in [
        ("trace_id = '3-1'", Some(1)),
        ("'3-1' = trace_id", Some(1)),
        ("trace_id = 'none'", Some(0)),
        ("trace_id IN ('3-1', '3-2', '5-2', 'none', NULL)", Some(2)),
        ("trace_id IN ('1-1', '2-1', '3-1', '4-1', '5-1')", Some(5)),
        ("user = 3001", Some(1)),
        ("user = '3001'", Some(1)),
        ("user = arrow_cast(3001, 'UInt16')", Some(1)),
        ("trace_id = '3-1' OR user = 4001", Some(2)),
        ("trace_id = '3-1' AND user = 4001", Some(0)),
        ("trace_id = '3-1' AND share > 0.1 AND lower(trace_id) LIKE '3%'", Some(1)),
        ("(trace_id = '3-1' OR trace_id = '4-1') AND (user = 3001 OR user = 5001)", Some(1)),
        ("trace_id = '3-1' OR share > 7", None),
        ("trace_id <> '3-1'", None),
        ("trace_id NOT IN ('3-1', '4-1', '5-1', '6-1')", None),
        ("trace_id LIKE '3-1'||'%'", None),
        ("trace_id > '3-1'", None),
        ("lower(trace_id) = '3-1'", None),
        ("share = 0.5", None),
    ] {
        let plan = logs.text(&format!("EXPLAIN SELECT * FROM logs WHERE {predicate}")).await;
        match kept {
            Some(kept) => {
                assert!(plan.contains(&format!("index: {kept} of 8 files,")), "{predicate}\n{plan}")
            }
            None => assert!(!plan.contains("index: "), "{predicate}\n{plan}"),
        }
    }

    let query = logs.context.sql("EXPLAIN SELECT * FROM logs WHERE trace_id = $1").await.unwrap();
    let parameters = vec![ScalarValue::from("3-1")];
    let plan = query.with_param_values(parameters).unwrap().collect().await.unwrap();
    assert!(lines(&plan).concat().contains("index: 1 of 8 files"));

    // A changed file is read, in vain.
    set_age(&logs.file(6), 30);
    let context = self::logs(logs.folder.path()).await;
    attach_index(&context, "logs", &logs.index()).await.unwrap();
    let sql = "EXPLAIN ANALYZE SELECT share FROM logs WHERE trace_id IN ('3-1', 'none')";
    let plan = lines(&rows(&context, sql).await.unwrap()).concat();
    for part in
        ["index: 2 of 8 files", "index_lookups=2", "index_bytes=", "index_time=", "files_without_rows=1"]
    {
        assert!(plan.contains(part), "{part}\n{plan}");
    }
}

#[tokio::test]
async fn joins_leave_files_out_while_they_run() {
    let logs = Logs::new().await;
    logs.build(FileIndexBuilder::new(COLUMNS)).await.unwrap();
    rows(&logs.context, "CREATE TABLE wanted AS VALUES ('3-1'), ('3-2'), ('5-9'), ('none')").await.unwrap();
    let join = "SELECT user FROM wanted JOIN logs ON trace_id = column1";
    assert_eq!(logs.text(&format!("SELECT count(*) AS n FROM ({join})")).await.matches("| 3 |").count(), 1);
    let others = format!("SELECT count(*) AS n FROM ({join} WHERE trace_id NOT IN ('3-1', 'a', 'b', 'c'))");
    assert!(logs.text(&others).await.contains("| 2 |"));
    let plan = logs.text(&format!("EXPLAIN ANALYZE {join}")).await;
    assert!(plan.contains("index: asked while it runs"), "{plan}");
    assert!(plan.contains("index_files_left_out=6") && plan.contains("index_lookups=4"), "{plan}");

    // A join whose sides are partitioned has a filter for each partition.
    for (setting, value) in [
        ("single_partition_threshold", "0"),
        ("single_partition_threshold_rows", "0"),
        ("inlist_pushdown_max_size", "1048576"),
    ] {
        let set = format!("SET datafusion.optimizer.hash_join_{setting} = {value}");
        rows(&logs.context, &set).await.unwrap();
    }
    let plan = logs.text(&format!("EXPLAIN ANALYZE {join}")).await;
    assert!(plan.contains("mode=Partitioned") && plan.contains("index_files_left_out=6"), "{plan}");

    // The condition of `LIMIT` changes often, and the keys do not.
    let context =
        session(&[("datafusion.execution.batch_size", "1"), ("datafusion.execution.target_partitions", "1")]);
    context.register_table("logs", logs.context.table_provider("logs").await.unwrap()).unwrap();
    let wanted = "(SELECT value || '-7' AS k FROM range(10)) AS wanted";
    let sql = format!(
        "EXPLAIN ANALYZE SELECT user FROM {wanted} JOIN logs ON trace_id = k ORDER BY user DESC LIMIT 1"
    );
    let plan = lines(&rows(&context, &sql).await.unwrap()).concat();
    assert!(plan.contains("index_lookups=10"), "{plan}");
}

#[tokio::test]
async fn updates_read_only_what_has_changed() {
    let logs = Logs::new().await;
    let builder = FileIndexBuilder::new(COLUMNS);
    assert_eq!(logs.build(builder.clone()).await, Ok([8, 8, 0, 0]));
    assert_eq!(logs.build(builder.clone()).await, Ok([8, 0, 0, 0]));
    fs::remove_file(logs.file(0)).unwrap();
    set_age(&logs.file(1), 30);
    write(&logs.file(8), 8).await;
    fs::write(logs.file(9), "no Parquet").unwrap();
    set_age(&logs.file(9), 60);
    assert_eq!(logs.build(builder.clone()).await, Ok([9, 2, 1, 1]));
    // It possibly has every key, so it is read each time.
    assert_eq!(logs.build(builder.clone()).await, Ok([9, 0, 0, 1]));
    fs::remove_file(logs.file(9)).unwrap();
    // By a clock that is ahead, a file may have changed just now, and may change again in the same tick.
    set_time(&logs.file(8), SystemTime::now() + Duration::from_secs(3600));
    assert_eq!(logs.build(builder.clone()).await, Ok([8, 1, 1, 0]));
    assert_eq!(logs.build(builder.clone()).await, Ok([8, 1, 0, 0]));
    set_age(&logs.file(8), 60);

    // Files that exist, but are not of the table.
    for file in [2, 3] {
        fs::rename(logs.file(file), logs.folder.path().join(format!("{file}.parquet"))).unwrap();
    }
    assert_eq!(logs.build(builder.clone()).await, Ok([6, 1, 2, 0]));
    let context = self::logs(logs.folder.path()).await;
    rows(&context, "DROP TABLE logs").await.unwrap();
    let one = format!(
        "CREATE EXTERNAL TABLE logs (trace_id VARCHAR, user BIGINT) STORED AS PARQUET LOCATION '{}'",
        logs.file(8).display()
    );
    rows(&context, &one).await.unwrap();
    let one = Logs { context, folder: logs.folder };
    let error = one.build(builder.clone()).await.unwrap_err();
    assert!(error.contains("1.parquet is in the index and exists, but is not of the table"), "{error}");
    assert_eq!(one.build(builder.clone().with_others(Others::Keep)).await, Ok([6, 0, 0, 0]));
    assert_eq!(one.build(builder.with_others(Others::Drop)).await, Ok([1, 0, 5, 0]));
}

/// Other programs can ask the index, because its keys are those of filters in SQL.
#[tokio::test]
async fn keys_are_those_of_every_language() {
    let logs = Logs::new().await;
    logs.build(FileIndexBuilder::new(COLUMNS)).await.unwrap();
    let bytes = fs::read(logs.index()).unwrap();
    let index = IndexView::from_standalone(&bytes).unwrap();
    assert_eq!(index.footer().rule(), "columns 1\ntext\ttrace_id\ninteger\tuser");
    assert_eq!(index.footer().fpr(), 0.0001);
    let mut found = SlotBitmap::new();
    let name = |found: &SlotBitmap| {
        let files: Vec<_> =
            found.iter().map(|file| String::from_utf8_lossy(index.footer().name(file).unwrap())).collect();
        files.join(" ")
    };
    index.find("3-1", &mut found).unwrap();
    assert!(name(&found).ends_with("logs/3.parquet"), "{}", name(&found));
    index.find_hash(hash_key(5007_i64, hash_key("user", 0)), &mut found).unwrap();
    assert!(name(&found).ends_with("logs/5.parquet"), "{}", name(&found));
}

#[tokio::test]
async fn tables_of_other_types_or_options_do_not_ask() {
    let logs = Logs::new().await;
    logs.build(FileIndexBuilder::new(COLUMNS)).await.unwrap();
    for (number, (user, options, rule)) in [
        ("VARCHAR", "", r"text\tuser"),
        ("BIGINT", "OPTIONS ('format.coerce_int96' 'ms')", r"integer int96 ms None\tuser"),
    ]
    .into_iter()
    .enumerate()
    {
        let create = format!(
            "CREATE EXTERNAL TABLE other{number} (trace_id VARCHAR, user {user}) STORED AS PARQUET
             LOCATION '{}/' {options}",
            logs.folder.path().join("logs").display(),
        );
        rows(&logs.context, &create).await.unwrap();
        let other = logs.context.table_provider(format!("other{number}")).await.unwrap();
        let error = attach_index(&logs.context, format!("other{number}"), &logs.index()).await.unwrap_err();
        let error = error.to_string();
        assert!(error.contains("but the table has") && error.contains(rule), "{error}");
        let indexed = IndexedTable::new(&*other, &logs.index()).unwrap();
        logs.context.register_table(format!("indexed{number}"), Arc::new(indexed)).unwrap();
        let query = format!("SELECT trace_id FROM indexed{number} WHERE user = '3001'");
        assert!(logs.text(&query).await.contains("| 3-1 "));
        assert!(!logs.text(&format!("EXPLAIN {query}")).await.contains("index: "));
    }
}

/// DataFusion groups files by their partition column, and counts each group alone.
#[tokio::test]
async fn files_stay_in_their_partitions() {
    let folder = TempDir::new().unwrap();
    let context = session(&[
        ("datafusion.execution.target_partitions", "2"),
        ("datafusion.optimizer.preserve_file_partitions", "1"),
    ]);
    let place = folder.path().join("logs");
    for (file, server) in ["a", "a", "a", "b", "b", "c"].into_iter().enumerate() {
        write(&place.join(format!("server={server}/{file}.parquet")), file).await;
    }
    let create = format!(
        "CREATE EXTERNAL TABLE logs (trace_id VARCHAR, server VARCHAR) STORED AS PARQUET PARTITIONED BY (server)
         LOCATION '{}/'",
        place.display(),
    );
    rows(&context, &create).await.unwrap();
    let index = folder.path().join("logs.index");
    FileIndexBuilder::new(["trace_id"]).build(&context, "logs", index.to_str().unwrap()).await.unwrap();
    let query = "SELECT server, count(*) AS n FROM logs WHERE trace_id IN ('0-1', '1-1', '2-1', '3-1') GROUP BY server";
    let answer = lines(&rows(&context, query).await.unwrap()).join("\n");
    let plan = lines(&rows(&context, &format!("EXPLAIN {query}")).await.unwrap()).join("\n");
    assert!(plan.contains("index: 4 of 6 files"), "{plan}");
    assert!(answer.contains("| a      | 3 |") && answer.contains("| b      | 1 |"), "{answer}\n{plan}");
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let logs = Logs::new().await;
    let builder = FileIndexBuilder::new(COLUMNS);
    for (columns, error) in [
        (&["trace"][..], "the table's files have no column 'trace', but trace_id, user, share"),
        (
            &["share"],
            "'share' is of type Float64, which has no keys (index text, binary, integers, dates, times or decimals)",
        ),
        (&["user", "user"], "the column \"user\" is named twice"),
        (&[], "name at least one column"),
    ] {
        let found = logs.build(FileIndexBuilder::new(columns.iter().copied())).await.unwrap_err();
        assert!(found.contains(error), "{found}");
    }
    logs.build(builder.clone()).await.unwrap();
    let found = logs.build(builder.clone().with_fpr(0.01)).await.unwrap_err();
    assert!(
        found.contains("was made for an FPR of 0.0001, not 0.01 (remove it, or name another file)"),
        "{found}"
    );
    let found = logs.build(FileIndexBuilder::new(["user"])).await.unwrap_err();
    assert!(found.contains(r#"is of "columns 1\ntext\ttrace_id\ninteger\tuser", not of "#), "{found}");
    let found =
        builder.build(&logs.context, "logs", logs.file(77).to_str().unwrap()).await.unwrap_err().to_string();
    assert!(found.contains("would be a file of the table (choose another name or folder)"), "{found}");
    rows(&logs.context, "CREATE TABLE memory AS VALUES (1)").await.unwrap();
    let found = attach_index(&logs.context, "memory", &logs.index()).await.unwrap_err().to_string();
    assert!(found.contains("only tables of files can have an index (CREATE EXTERNAL TABLE)"), "{found}");
    for (index, why) in [
        (logs.index() + "x", "No such file"),
        (logs.folder.path().join("logs/1.parquet").display().to_string(), "not a filter"),
    ] {
        let found = attach_index(&logs.context, "logs", &index).await.unwrap_err().to_string();
        assert!(found.contains(&format!("{index} cannot be opened: ")) && found.contains(why), "{found}");
    }
    for call in ["bloom_index()", "bloom_index('logs')", "bloom_index('logs', 7)"] {
        let found = rows(&logs.context, &format!("SELECT * FROM {call}")).await.unwrap_err().to_string();
        assert!(found.contains("write bloom_index('TABLE', 'INDEX', 'COLUMN', …)"), "{found}");
    }
}

/// Another table of the same files can take the values of a column of the index from their paths.
#[tokio::test]
async fn partition_columns_do_not_ask() {
    let folder = TempDir::new().unwrap();
    write(&folder.path().join("logs/trace_id=a/0.parquet"), 0).await;
    let logs = Logs { context: logs(folder.path()).await, folder };
    logs.build(FileIndexBuilder::new(COLUMNS)).await.unwrap();
    let create = format!(
        "CREATE EXTERNAL TABLE parts (user BIGINT, trace_id VARCHAR) STORED AS PARQUET PARTITIONED BY (trace_id)
         LOCATION '{}/'",
        logs.folder.path().join("logs").display(),
    );
    rows(&logs.context, &create).await.unwrap();
    let parts =
        IndexedTable::new(&*logs.context.table_provider("parts").await.unwrap(), &logs.index()).unwrap();
    logs.context.register_table("indexed", Arc::new(parts)).unwrap();
    rows(&logs.context, "CREATE TABLE wanted AS VALUES ('a')").await.unwrap();
    for query in ["indexed WHERE trace_id = 'a'", "wanted JOIN indexed ON trace_id = column1"] {
        let found = logs.text(&format!("SELECT count(*) AS n FROM {query}")).await;
        assert!(found.contains("| 100 |"), "{query}: {found}");
    }
}

/// The same bytes have other values if they are read otherwise.
#[tokio::test]
async fn tables_that_read_files_otherwise_do_not_ask() {
    let folder = TempDir::new().unwrap();
    let [file, index] = ["t/0.csv", "t.index"].map(|name| folder.path().join(name));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "a,1\nb,2\n").unwrap();
    set_age(&file, 60);
    let table = async |columns: &str, options: &str| {
        let context = session(&[]);
        let create = format!(
            "CREATE EXTERNAL TABLE t ({columns}) STORED AS CSV LOCATION '{}/t/' OPTIONS ({options})",
            folder.path().display(),
        );
        rows(&context, &create).await.unwrap();
        context
    };
    let [columns, with_header] = ["k VARCHAR, l VARCHAR", "'has_header' 'true'"];
    let builder = FileIndexBuilder::new(["k"]);
    builder.build(&table(columns, with_header).await, "t", index.to_str().unwrap()).await.unwrap();
    for (columns, options, key) in [
        (columns, with_header, "b"),
        (columns, "'has_header' 'false'", "a"),
        ("l VARCHAR, k VARCHAR", with_header, "2"),
        ("k VARCHAR", "'has_header' 'true', 'delimiter' ';'", "b,2"),
    ] {
        let context = table(columns, options).await;
        let indexed =
            IndexedTable::new(&*context.table_provider("t").await.unwrap(), index.to_str().unwrap());
        context.register_table("indexed", Arc::new(indexed.unwrap())).unwrap();
        let sql = format!("SELECT count(*) AS n FROM indexed WHERE k = '{key}'");
        let found = lines(&rows(&context, &sql).await.unwrap()).concat();
        assert!(found.contains("| 1 |"), "{columns}, {options}: {found}");
        let attached = attach_index(&context, "t", index.to_str().unwrap()).await;
        assert_eq!(attached.is_ok(), key == "b", "{attached:?}");
    }
}

#[tokio::test]
async fn a_table_that_replaces_another_one_meanwhile_stays() {
    let logs = Logs::new().await;
    // A callback that drops the table runs after its files are listed.
    let context = logs.context.clone();
    let drop_it = move |_, _| _ = context.deregister_table("logs");
    let error = logs.build(FileIndexBuilder::new(COLUMNS).with_progress(drop_it)).await.unwrap_err();
    assert!(error.contains("logs was dropped while its index was made"), "{error}");
    assert!(!logs.context.table_exist("logs").unwrap());
}

/// What was logged by all tests.
static LOG: Mutex<Vec<String>> = Mutex::new(Vec::new());
struct Log;

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }

    fn log(&self, record: &log::Record) {
        if record.level() == log::Level::Warn {
            LOG.lock().unwrap().push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

#[tokio::test]
async fn with_a_damaged_index_all_files_are_read_and_one_warning_logged() {
    log::set_logger(&Log).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    let logs = Logs::new().await;
    logs.build(FileIndexBuilder::new(COLUMNS)).await.unwrap();
    let intact = fs::read(logs.index()).unwrap();
    let query = "SELECT count(*) AS n FROM logs WHERE trace_id = '3-1'";
    for (cut, warnings) in [(intact.len(), 0), (intact.len() - 1, 1), (3, 1), (0, 1), (usize::MAX, 1)] {
        // Opened before it is damaged, and while it is.
        let [early, late] = [self::logs(logs.folder.path()).await, self::logs(logs.folder.path()).await];
        fs::write(logs.index(), &intact).unwrap();
        attach_index(&early, "logs", &logs.index()).await.unwrap();
        attach_index(&late, "logs", &logs.index()).await.unwrap();
        rows(&early, query).await.unwrap();
        match intact.get(..cut) {
            Some(bytes) => fs::write(logs.index(), bytes).unwrap(),
            None => fs::remove_file(logs.index()).unwrap(),
        }
        LOG.lock().unwrap().clear();
        for _ in 0..3 {
            for context in [&early, &late] {
                let answer: Vec<RecordBatch> = rows(context, query).await.unwrap();
                assert!(lines(&answer).concat().contains("| 1 |"), "{cut}");
            }
        }
        let log = LOG.lock().unwrap();
        let ours = log.iter().filter(|line| line.contains(&logs.index())).count();
        assert_eq!(ours, 2 * warnings, "{cut}: {log:?}");
        assert!(log.iter().all(|line| line.contains("cannot be asked, so all files are read")), "{log:?}");
    }
}
