//! What an index over files saves, and what it costs: `cargo bench --features file-index --bench files`.
//!
//! Makes FILES Parquet files (10,000) of 1,000 to 100,000 rows in FOLDER, once without and once with Parquet's own Bloom
//! filters, and leaves them there for the next run. SCALE (1) divides the rows. Prints Markdown, and writes the
//! statements to FOLDER/queries.sql, for other engines. PARTS names some of the tables.

use std::collections::HashSet;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path as FilePath, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bloomline_datafusion::{FileIndexBuilder, attach_index};
use datafusion::arrow::array::{Int64Array, RecordBatch, StringArray};
use datafusion::error::Result;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_plan::execute_stream_partitioned;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::future::try_join_all;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult,
};

fn main() -> Result<()> {
    let number = |name, default: usize| std::env::var(name).map_or(default, |text| text.parse().expect(name));
    let folder = std::env::var("FOLDER").unwrap_or(format!("{}/files", env!("CARGO_TARGET_TMPDIR")));
    let data = Data::make(folder.into(), number("FILES", 10_000), number("SCALE", 1))?;
    let rounds = number("ROUNDS", 3);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let parts = std::env::var("PARTS").unwrap_or("make vain plan local slow".to_owned());
    runtime.block_on(async {
        let (local, slow) = (Store::new(&data, 0)?, Store::new(&data, 20)?);
        for part in parts.split(' ') {
            println!();
            match part {
                "make" => make(&data, &local, rounds).await?,
                "vain" => in_vain(&data, &local).await?,
                "plan" => plan(&local, 20 * rounds + 1).await?,
                "local" => compare(&data, &local, rounds).await?,
                "slow" => compare(&data, &slow, rounds.div_ceil(3)).await?,
                other => panic!("unknown part {other}"),
            }
        }
        Ok(())
    })
}

/// A permutation of the integers, in no order.
fn mixed(i: u64) -> u64 {
    let i = (i ^ (i >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let i = (i ^ (i >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    i ^ (i >> 31)
}

/// The key of row `i` of all files.
fn id(i: u64) -> String {
    format!("{:016x}", mixed(i + 1))
}

/// Files of which each row has another key.
struct Data {
    folder: PathBuf,
    /// Of each file the first row, and at last the number of all.
    starts: Vec<u64>,
}

impl Data {
    fn make(folder: PathBuf, files: usize, scale: usize) -> Result<Self> {
        let mut starts = vec![0];
        for file in 0..files {
            let share = mixed(file as u64 + 1) as f64 / u64::MAX as f64;
            starts.push(starts[file] + (1000.0 * 100f64.powf(share)) as u64 / scale as u64);
        }
        let data = Self { folder, starts };
        let done = data.folder.join(format!("{files} files of {} rows", data.rows()));
        if !done.exists() {
            let start = Instant::now();
            _ = fs::remove_dir_all(&data.folder);
            ["plain", "filters"].iter().try_for_each(|set| fs::create_dir_all(data.folder.join(set)))?;
            let next = AtomicUsize::new(0);
            let work = || -> Result<()> {
                loop {
                    let file = next.fetch_add(1, Relaxed);
                    if file >= files {
                        return Ok(());
                    }
                    data.write(file)?;
                }
            };
            let cores = std::thread::available_parallelism()?.get();
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
                threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
            })?;
            File::create(done)?;
            eprintln!("made the files in {:.0} s", start.elapsed().as_secs_f64());
        }
        Ok(data)
    }

    fn rows(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    fn write(&self, file: usize) -> Result<()> {
        let rows = self.starts[file]..self.starts[file + 1];
        let ids = StringArray::from_iter_values(rows.clone().map(id));
        let values = Int64Array::from_iter_values(rows.clone().map(|row| (mixed(row) % 1000) as i64));
        let batch =
            RecordBatch::try_from_iter([("trace_id", Arc::new(ids) as _), ("value", Arc::new(values) as _)])?;
        for (set, has_filters) in [("plain", false), ("filters", true)] {
            // DataFusion's own choice.
            let mut properties =
                WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?));
            if has_filters {
                properties = properties
                    .set_column_bloom_filter_enabled("trace_id".into(), true)
                    .set_column_bloom_filter_max_ndv("trace_id".into(), rows.end - rows.start);
            }
            let file = File::create(self.folder.join(format!("{set}/{file:05}.parquet")))?;
            let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build()))?;
            writer.write(&batch)?;
            writer.close()?;
        }
        Ok(())
    }

    /// Keys of which each round has others.
    fn ids(&self, n: usize, round: usize) -> Vec<String> {
        (0..n as u64).map(|i| id(mixed((round as u64 + 1) << 32 | i) % self.rows())).collect()
    }
}

/// A folder as an object store, which answers each request after a while, and lists 1,000 files by a request.
#[derive(Debug)]
struct Store {
    inner: LocalFileSystem,
    latency: Duration,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicUsize,
    lists: AtomicUsize,
    files: Mutex<HashSet<Path>>,
}

impl Store {
    fn new(data: &Data, milliseconds: u64) -> Result<Arc<Self>> {
        let inner = LocalFileSystem::new_with_prefix(&data.folder)?;
        Ok(Arc::new(Self { inner, latency: Duration::from_millis(milliseconds), counts: Arc::default() }))
    }

    /// Requests but those that list, requests that list, and files of the table that were opened, since the last call.
    fn take_counts(&self) -> [usize; 3] {
        let Counts { requests, lists, files } = &*self.counts;
        let files = std::mem::take(&mut *files.lock().expect("no panic"));
        let files = files.iter().filter(|path| path.extension() == Some("parquet")).count();
        [requests.swap(0, Relaxed), lists.swap(0, Relaxed), files]
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after {:?}", self.inner, self.latency)
    }
}

async fn wait(latency: Duration) {
    if !latency.is_zero() {
        tokio::time::sleep(latency).await;
    }
}

#[async_trait]
impl ObjectStore for Store {
    async fn get_opts(&self, path: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        self.counts.requests.fetch_add(1, Relaxed);
        if !options.head {
            self.counts.files.lock().expect("no panic").insert(path.clone());
        }
        wait(self.latency).await;
        self.inner.get_opts(path, options).await
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        let (counts, latency) = (Arc::clone(&self.counts), self.latency);
        let files = self.inner.list(prefix).enumerate().then(move |(number, file)| {
            let is_first = number % 1000 == 0;
            counts.lists.fetch_add(usize::from(is_first), Relaxed);
            async move {
                wait(if is_first { latency } else { Duration::ZERO }).await;
                file
            }
        });
        files.boxed()
    }

    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> object_store::Result<PutResult> {
        self.inner.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(paths)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.counts.lists.fetch_add(1, Relaxed);
        wait(self.latency).await;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

const INDEX: &str = "store://bench/plain.index";

struct Contestant {
    name: &'static str,
    set: &'static str,
    reads_filters: bool,
    collects: bool,
    asks: bool,
}

impl Contestant {
    const fn new(name: &'static str, set: &'static str, collects: bool, asks: bool) -> Self {
        Self { name, set, reads_filters: true, collects, asks }
    }

    /// A new session with the table `logs`.
    async fn session(&self, store: &Arc<Store>) -> Result<SessionContext> {
        let mut config = SessionConfig::new().with_collect_statistics(self.collects);
        config.options_mut().execution.parquet.bloom_filter_on_read = self.reads_filters;
        if !store.latency.is_zero() {
            // A partition waits for one file at a time.
            config = config.with_target_partitions(16);
        }
        let context = SessionContext::new_with_config(config);
        let url = "store://bench".try_into().expect("an URL");
        context.register_object_store(&url, Arc::clone(store) as Arc<dyn ObjectStore>);
        let create = "CREATE EXTERNAL TABLE logs (trace_id VARCHAR, value BIGINT) STORED AS PARQUET LOCATION";
        context.sql(&format!("{create} 'store://bench/{}/'", self.set)).await?.collect().await?;
        if self.asks {
            attach_index(&context, "logs", INDEX).await?;
        }
        Ok(context)
    }
}

fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Seconds of all threads of this process, of which the kernel counts hundredths.
fn cpu_seconds() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields = after_name.split_whitespace().skip(11).take(2);
    Ok(fields.map(|ticks| ticks.parse::<f64>().expect("a number")).sum::<f64>() / 100.0)
}

fn size_of(folder: &FilePath) -> Result<u64> {
    fs::read_dir(folder)?.try_fold(0, |sum, file| Ok(sum + file?.metadata()?.len()))
}

/// Reads the column `trace_id` of all files. Returns the number of rows.
async fn read_column(context: &SessionContext) -> Result<u64> {
    let plan = context.sql("SELECT trace_id FROM logs").await?.create_physical_plan().await?;
    let add = async |rows, batch: RecordBatch| Ok(rows + batch.num_rows() as u64);
    let partitions = execute_stream_partitioned(plan, context.task_ctx())?.into_iter();
    let reads = partitions.map(|batches| tokio::spawn(batches.try_fold(0, add)));
    let rows = try_join_all(reads).await.expect("no panic");
    rows.into_iter().sum()
}

/// Makes the index, and reads its column alone, in turn.
async fn make(data: &Data, store: &Arc<Store>, rounds: usize) -> Result<()> {
    let alone = Contestant::new("", "plain", false, false);
    let (mut builds, mut scans, mut ratios, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for _ in 0..rounds {
        let (context, start) = (alone.session(store).await?, cpu_seconds()?);
        assert_eq!(read_column(&context).await?, data.rows());
        let scan = cpu_seconds()? - start;

        _ = fs::remove_file(data.folder.join("plain.index"));
        let (context, start, elapsed) = (alone.session(store).await?, cpu_seconds()?, Instant::now());
        let report = FileIndexBuilder::new(["trace_id"]).build(&context, "logs", INDEX).await?;
        let build = cpu_seconds()? - start;
        eprintln!("made the index in {:.0} s", elapsed.elapsed().as_secs_f64());
        assert_eq!((report.read, report.keys), (data.starts.len() - 1, data.rows()), "{:?}", report.unread);
        bytes = report.bytes;
        scans.push(scan);
        builds.push(build);
        ratios.push(build / scan);
    }
    let (rows, size) = (data.rows(), |set| size_of(&data.folder.join(set)));
    println!("| of {} files | number |\n|---|---:|", data.starts.len() - 1);
    println!("| rows, each with another key | {rows} |");
    println!("| bytes without Parquet's filters | {} |", size("plain")?);
    println!("| bytes with Parquet's filters | {} |", size("filters")?);
    println!("| bytes of the index | {bytes} |\n| per key | {:.2} |", bytes as f64 / rows as f64);
    println!("| CPU seconds to make it | {:.1} |", median(builds));
    println!("| CPU seconds to read its column | {:.1} |\n| ratio | {:.2} |", median(scans), median(ratios));
    Ok(())
}

/// Counts the files that queries open.
async fn in_vain(data: &Data, store: &Arc<Store>) -> Result<()> {
    let context = Contestant::new("", "plain", true, true).session(store).await?;
    store.take_counts();
    let (ids, mut opened) = (data.ids(200, 0), 0);
    for id in &ids {
        let found =
            context.sql(&format!("SELECT * FROM logs WHERE trace_id = '{id}'")).await?.count().await?;
        assert_eq!(found, 1);
        opened += store.take_counts()[2];
    }
    println!("Queries of {} keys opened {opened} files, of which each key is in one.", ids.len());
    Ok(())
}

/// Plans queries that cannot ask, with and without an index in turn.
async fn plan(store: &Arc<Store>, rounds: usize) -> Result<()> {
    let mut contexts = Vec::new();
    for asks in [false, true] {
        let context = Contestant::new("", "plain", true, asks).session(store).await?;
        // By default, it has no room for the names of 10,000 files.
        context.sql("SET datafusion.runtime.list_files_cache_limit = '64M'").await?.collect().await?;
        contexts.push(context);
    }
    println!("| predicate | ms without index | with | ratio |\n|---|---:|---:|---:|");
    for predicate in ["value > 5", "lower(trace_id) = 'a'"] {
        let (mut times, mut ratios) = ([Vec::new(), Vec::new()], Vec::new());
        for round in 0..=rounds {
            let mut time = [0.0; 2];
            for which in [round % 2, 1 - round % 2] {
                let sql = format!("SELECT * FROM logs WHERE {predicate}");
                let start = Instant::now();
                contexts[which].sql(&sql).await?.create_physical_plan().await?;
                time[which] = milliseconds(start);
            }
            // The first round fills the caches.
            if round > 0 {
                ratios.push(time[1] / time[0]);
                times.iter_mut().zip(time).for_each(|(times, time)| times.push(time));
            }
        }
        let ([alone, with], ratio) = (times.map(median), median(ratios));
        println!("| `{predicate}` | {alone:.1} | {with:.1} | {ratio:.3} |");
    }
    Ok(())
}

/// Statements that look `n` keys up, the last of which returns their rows.
fn statements(data: &Data, n: usize, join: bool, round: usize) -> Vec<String> {
    let ids: Vec<_> = data.ids(n, round).iter().map(|id| format!("'{id}'")).collect();
    match (n, join) {
        (_, true) => vec![
            format!("CREATE OR REPLACE TABLE keys AS SELECT k FROM (VALUES ({})) AS v(k)", ids.join("), (")),
            "SELECT logs.* FROM keys JOIN logs ON trace_id = k".to_owned(),
        ],
        (1, _) => vec![format!("SELECT * FROM logs WHERE trace_id = {}", ids[0])],
        _ => vec![format!("SELECT * FROM logs WHERE trace_id IN ({})", ids.join(", "))],
    }
}

/// Prints a table of the first and of the second query in a session.
async fn compare(data: &Data, store: &Arc<Store>, rounds: usize) -> Result<()> {
    let mut alone = Contestant::new("DataFusion", "plain", true, false);
    let mut without = Contestant::new("…, without statistics", "plain", false, false);
    (alone.reads_filters, without.reads_filters) = (false, false);
    let all = [
        Contestant::new("Parquet's filters", "filters", true, false),
        Contestant::new("…, without statistics", "filters", false, false),
        alone,
        without,
        Contestant::new("index", "plain", true, true),
        Contestant::new("…, without statistics", "plain", false, true),
    ];
    let head = "ms | requests | + to list | files | ratio";
    println!("| query | by | first: {head} | second: {head} |\n|---|---|{}", "---:|".repeat(10));
    let mut queries = String::new();
    for (name, n, join) in [("one key", 1, false), ("100 keys", 100, false), ("join of 100 keys", 100, true)]
    {
        let mut base = [0.0; 2];
        for (place, contestant) in all.iter().enumerate() {
            if n > 1 && !contestant.reads_filters && !store.latency.is_zero() {
                continue; // Parquet's filters don't help there either.
            }
            let mut times = [Vec::new(), Vec::new()];
            let mut counts = [[0; 3]; 2];
            for round in 0..rounds {
                store.take_counts();
                let mut start = Instant::now();
                let context = contestant.session(store).await?;
                for again in 0..2 {
                    let mut found = Vec::new();
                    for sql in statements(data, n, join, 2 * round + again) {
                        found = context.sql(&sql).await?.collect().await?;
                    }
                    times[again].push(milliseconds(start));
                    assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), n);
                    counts[again] = store.take_counts();
                    start = Instant::now();
                }
            }
            print!("| {name} | {} |", contestant.name);
            for (again, times) in times.into_iter().enumerate() {
                let (time, [requests, lists, files]) = (median(times), counts[again]);
                if place == 0 {
                    base[again] = time;
                }
                print!(" {time:.0} | {requests} | {lists} | {files} | {:.4} |", time / base[again]);
            }
            println!();
        }
        queries.extend(statements(data, n, join, 0).into_iter().map(|sql| sql + ";\n"));
    }
    fs::write(data.folder.join("queries.sql"), queries)?;
    Ok(())
}
