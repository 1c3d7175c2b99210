//! Random queries, tables, changes and damage. With the index, a query returns the rows that it returns without.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use bloomline_datafusion::{FileIndexBuilder, IndexedTable, Others};
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::error::Result;
use datafusion::prelude::{SessionContext, col};
use tempfile::TempDir;

use crate::common::{Random, lines, runtime, session};

/// Types of columns, in lists of those that files and a table can have of one column.
const TYPES: [&str; 14] = [
    "Utf8; LargeUtf8; Utf8View; Dictionary(Int8, Utf8)",
    "Utf8; Utf8View; Dictionary(UInt16, Utf8)",
    "Binary; LargeBinary; BinaryView",
    "FixedSizeBinary(2)",
    "Int8; Int16; Int32; Int64; UInt8; UInt16; UInt32; UInt64",
    "Int32; Int64; Utf8; UInt64",
    "Int64; Float64; Decimal128(20, 2)",
    "Date32; Date64",
    "Time32(s); Time32(ms)",
    "Timestamp(ns); Timestamp(µs)",
    r#"Timestamp(ms, "UTC"); Timestamp(s, "+01:00")"#,
    "Decimal32(9, 2); Decimal64(18, 2); Decimal128(20, 2); Decimal256(50, 2)",
    "Duration(s)",
    "Boolean; Int8",
];
/// Distinct values of a column. They have two digits as text.
const VALUES: u64 = 24;

/// Templates as in `random.rs`. `k` and `l` are columns of the index at times, and `f` never is.
const TEMPLATES: [(char, &str); 7] = [
    ('p', "$e; $e; $e; $e; $p AND $p; $p OR $p; $p AND $o; $o AND $p; $p OR $o; $o; ($p) IS TRUE; NOT ($p)"),
    ('e', "k = $v; k = $v; k = $v; l = $w; l = $w; $v = k; k IN ($v, $v, $v); l IN ($w, $w, $w, $w, $w); k IN ($v);
        k = $v AND l = $w; k = $v OR l = $w; k IN ($v, $v, $v, $v) AND k = $v; k = $a"),
    ('o', "k < $v; k IS NULL; k IS NOT NULL; k IS NOT DISTINCT FROM $v; k <> $v; k NOT IN ($v, $v, $v, $v); k = k; true;
        false; NULL; CASE WHEN $e THEN true END; f > 4.5; f = 3; p = 'b'; p IN ('a', 'c') AND $e; id < 20;
        k BETWEEN $v AND $v; k IN (SELECT k FROM wanted); l NOT IN (SELECT l FROM wanted WHERE l IS NOT NULL);
        EXISTS (SELECT 1 FROM wanted WHERE wanted.k = t.k); coalesce(k, $v) = $v; k = (SELECT max(k) FROM wanted);
        l NOT IN ($w, $w, $w, $w) AND id < 50"),
    ('a', "17; 13; 300; -1; 17.0; 17.5; '17'; '017'; ''; NULL; x'3137'; true; arrow_cast(17, 'Int8');
        arrow_cast(17, 'UInt64'); DATE '1970-01-18'; TIMESTAMP '1970-01-01T00:00:17Z';
        arrow_cast('17.00', 'Decimal128(10, 2)')"),
    ('s', "*; *; *; id; k, id; count(*); count(l), max(id); p, f; DISTINCT k; count(DISTINCT k)"),
    ('t', "t; t; t; (SELECT * FROM t WHERE $o) AS t; (SELECT * FROM t WHERE $p) AS t;
        (SELECT * FROM t UNION ALL SELECT * FROM t WHERE $p) AS t"),
    ('j', "JOIN $t ON wanted.k = t.k; JOIN $t ON wanted.k = t.k AND wanted.l = t.l; LEFT JOIN $t ON wanted.k = t.k;
        RIGHT JOIN $t ON wanted.l = t.l; FULL JOIN $t ON wanted.k = t.k; LEFT SEMI JOIN $t ON wanted.k = t.k;
        RIGHT SEMI JOIN $t ON wanted.k = t.k; RIGHT ANTI JOIN $t ON wanted.k = t.k;
        JOIN $t ON wanted.k = t.k AND t.f > 3; JOIN $t ON wanted.k = t.k OR wanted.l = t.l"),
];
const QUERIES: &str = "SELECT $s FROM t WHERE $e; SELECT $s FROM $t WHERE $p; SELECT $s FROM $t WHERE $p;
    SELECT id FROM t WHERE $p ORDER BY id DESC LIMIT 3; SELECT k, count(*) FROM t WHERE $p GROUP BY k HAVING $e;
    SELECT p, count(*), max(id) FROM t WHERE $p GROUP BY p;
    SELECT a.id, b.id FROM t AS a JOIN t AS b ON a.p = b.p WHERE a.k = $v AND b.k IN ($v, $v, $v);
    SELECT * FROM wanted $j; SELECT * FROM wanted $j; SELECT * FROM (SELECT * FROM wanted WHERE $o) AS wanted $j;
    SELECT a.id, b.id FROM t AS a JOIN t AS b ON a.k = b.k WHERE a.id < 9";

const SETTINGS: [(&str, &[&str]); 12] = [
    ("execution.target_partitions", &["1", "3"]),
    ("execution.collect_statistics", &["true", "false"]),
    ("execution.batch_size", &["7", "8192"]),
    ("execution.parquet.pushdown_filters", &["false", "true"]),
    ("execution.listing_table_factory_infer_partitions", &["true", "false"]),
    ("optimizer.preserve_file_partitions", &["0", "1"]),
    ("optimizer.hash_join_inlist_pushdown_max_distinct_values", &["150", "3", "0"]),
    ("optimizer.hash_join_inlist_pushdown_max_size", &["1048576"]),
    ("optimizer.hash_join_single_partition_threshold", &["1048576", "0"]),
    ("optimizer.hash_join_single_partition_threshold_rows", &["131072", "0"]),
    ("optimizer.prefer_hash_join", &["true", "true", "false"]),
    ("optimizer.repartition_file_min_size", &["0", "10485760"]),
];

/// A column of a value of each number, or of nulls.
fn column(numbers: impl Iterator<Item = Option<u64>>, data_type: &DataType) -> ArrayRef {
    let numbers = Int64Array::from_iter(numbers.map(|number| number.map(|number| number as i64 + 10)));
    let texts = || StringArray::from_iter(numbers.iter().map(|number| Some(number?.to_string())));
    let like: ArrayRef = match data_type {
        DataType::FixedSizeBinary(_) => cast(&texts(), &DataType::Binary).unwrap(),
        DataType::Date32 | DataType::Time32(_) => cast(&numbers, &DataType::Int32).unwrap(),
        DataType::Dictionary(..) => Arc::new(texts()),
        other if other.is_string() || other.is_binary() => Arc::new(texts()),
        _ => Arc::new(numbers),
    };
    cast(&like, data_type).unwrap()
}

/// A value of a type, in SQL.
fn literal(random: &mut Random, data_type: &DataType) -> String {
    let (number, name) = (10 + random.below(VALUES + 4), data_type.to_string());
    match data_type {
        DataType::FixedSizeBinary(_) => {
            format!("arrow_cast(arrow_cast('{number}', 'Binary'), '{name}')")
        }
        DataType::Date32 | DataType::Time32(_) => {
            format!("arrow_cast(arrow_cast({number}, 'Int32'), '{name}')")
        }
        other if other.is_string() || other.is_binary() || matches!(other, DataType::Dictionary(..)) => {
            format!("arrow_cast('{number}', '{name}')")
        }
        _ => format!("arrow_cast({number}, '{name}')"),
    }
}

/// A folder of files, and an index over them.
struct World {
    random: Random,
    folder: TempDir,
    /// The table's types of `k`, `l` and `f`, and those that each may have in files.
    types: [(DataType, Vec<DataType>); 3],
    is_partitioned: bool,
    /// Whether the table says that its files are in the order of `id`, as they are.
    is_sorted: bool,
    files: Vec<PathBuf>,
    rows: u64,
    /// Seconds that are past, each a file's time once.
    clock: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut types = || {
            let mut types: Vec<DataType> =
                random.of(&TYPES).split(';').map(|name| name.trim().parse().expect(name)).collect();
            let table = types.swap_remove(random.below(types.len() as u64) as usize);
            let is_one = random.below(2) == 0;
            (table.clone(), if is_one || types.is_empty() { vec![table] } else { types })
        };
        let types = [types(), types(), (DataType::Float64, vec![DataType::Float64])];
        let [is_partitioned, is_sorted] = [random.below(3) == 0, random.below(3) == 0];
        let folder = TempDir::new().unwrap();
        Self { random, folder, types, is_partitioned, is_sorted, files: Vec::new(), rows: 0, clock: 0 }
    }

    fn table(&self) -> PathBuf {
        self.folder.path().join("t")
    }

    fn index(&self) -> PathBuf {
        self.folder.path().join("t/k.index")
    }

    async fn write(&mut self, path: &Path) {
        let rows = self.random.of(&[0, 1, 5, 5, 30, 30]);
        let few = self.random.of(&[2, 2, 4, VALUES]);
        let first = self.random.below(VALUES);
        let mut columns: Vec<(&str, ArrayRef)> = vec![(
            "id",
            Arc::new(Int64Array::from_iter_values((self.rows..self.rows + rows).map(|row| row as i64))),
        )];
        self.rows += rows;
        for (name, (_, types)) in ["k", "l", "f"].into_iter().zip(&self.types) {
            let data_type = &types[self.random.below(types.len() as u64) as usize];
            let number = |_| (self.random.below(8) > 0).then(|| (first + self.random.below(few)) % VALUES);
            columns.push((name, column((0..rows).map(number), data_type)));
        }
        // At times, a file lacks a column.
        if self.random.below(8) == 0 {
            columns.remove(1 + self.random.below(3) as usize);
        }
        let nullable = columns.into_iter().map(|(name, values)| (name, values, true));
        let batch = RecordBatch::try_from_iter_with_nullable(nullable).unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let options = DataFrameWriteOptions::new().with_single_file_output(true);
        let frame = SessionContext::new().read_batch(batch).unwrap();
        frame.write_parquet(path.to_str().unwrap(), options, None).await.unwrap();
        self.clock += 1;
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + self.clock);
        File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
    }

    async fn add_file(&mut self) {
        let folder =
            if self.is_partitioned { format!("p={}", self.random.of(&["a", "b", "c"])) } else { ".".into() };
        let path = self.table().join(folder).join(format!("{}.parquet", self.clock));
        self.write(&path).await;
        self.files.push(path);
    }

    async fn change_files(&mut self) {
        for _ in 0..self.random.below(5) {
            let n = self.files.len() as u64;
            match self.random.below(3) {
                0 if n > 0 => fs::remove_file(self.files.swap_remove(self.random.below(n) as usize)).unwrap(),
                1 if n > 0 => {
                    let path = self.files[self.random.below(n) as usize].clone();
                    self.write(&path).await;
                }
                _ => self.add_file().await,
            }
        }
    }

    /// The table has other types than when the index was made.
    fn change_types(&mut self) {
        for (table, files) in &mut self.types {
            let file = self.random.below(files.len() as u64) as usize;
            std::mem::swap(table, &mut files[file]);
        }
    }

    fn damage_index(&mut self) {
        let Ok(mut bytes) = fs::read(self.index()) else { return };
        let n = bytes.len() as u64;
        match self.random.below(6) {
            0 => return fs::remove_file(self.index()).unwrap(),
            1 => bytes.truncate(self.random.below(n) as usize),
            2 => bytes.push(0),
            3 => bytes.rotate_left(1),
            _ => bytes[self.random.below(n) as usize] ^= 1 << self.random.below(8),
        }
        fs::write(self.index(), bytes).unwrap();
    }

    /// Two sessions, the second with the index.
    fn sessions(&mut self) -> [SessionContext; 2] {
        // DataFusion 55.2 returns rows that are not equal if it filters rows while it decodes them as another type.
        let is_of_one_type = self.types.iter().all(|(table, files)| *files == [table.clone()]);
        let settings = SETTINGS.map(|(name, values)| (format!("datafusion.{name}"), self.random.of(values)));
        let mut settings: Vec<_> = settings.iter().map(|(name, value)| (&**name, *value)).collect();
        settings.retain(|(name, _)| is_of_one_type || !name.ends_with("pushdown_filters"));
        let wanted: Vec<_> = (0..self.random.of(&[0, 1, 4, 9]))
            .map(|_| (self.random.below(8) > 0).then(|| self.random.below(VALUES + 4)))
            .collect();
        [false, true].map(|is_indexed| {
            let context = session(&settings);
            let [k, l, _] = &self.types;
            let columns = [("k", k), ("l", l)]
                .map(|(name, (data_type, _))| (name, column(wanted.iter().copied(), data_type), true));
            context
                .register_batch("wanted", RecordBatch::try_from_iter_with_nullable(columns).unwrap())
                .unwrap();
            let table = self.listing().unwrap();
            if is_indexed {
                let table = IndexedTable::new(&table, self.index().to_str().unwrap()).unwrap();
                context.register_table("t", Arc::new(table)).unwrap();
            } else {
                context.register_table("t", Arc::new(table)).unwrap();
            }
            context
        })
    }

    fn listing(&self) -> Result<ListingTable> {
        let mut fields = vec![Field::new("id", DataType::Int64, true)];
        let types = ["k", "l", "f"].into_iter().zip(&self.types);
        fields.extend(types.map(|(name, (data_type, _))| Field::new(name, data_type.clone(), true)));
        let mut options = ListingOptions::new(Arc::new(ParquetFormat::default()));
        if self.is_sorted {
            options = options.with_file_sort_order(vec![vec![col("id").sort(true, false)]]);
        }
        if self.is_partitioned {
            options = options.with_table_partition_cols(vec![("p".into(), DataType::Utf8)]);
        } else {
            fields.push(Field::new("p", DataType::Utf8, true));
        }
        let url = ListingTableUrl::parse(format!("{}/", self.table().display()))?;
        let config = ListingTableConfig::new(url).with_listing_options(options);
        ListingTable::try_new(config.with_schema(Arc::new(Schema::new(fields))))
    }

    fn query(&mut self, template: &str, depth: usize) -> String {
        let mut parts = template.split('$');
        let mut sql = parts.next().unwrap().to_owned();
        for part in parts {
            let (letter, rest) = part.split_at(1);
            sql += &match letter {
                "v" => literal(&mut self.random, &self.types[0].0),
                "w" => literal(&mut self.random, &self.types[1].0),
                _ => {
                    let list = TEMPLATES.iter().find(|list| letter.starts_with(list.0)).unwrap().1;
                    let template =
                        if depth > 0 { self.random.part(list) } else { list.split(';').next().unwrap() };
                    self.query(template, depth.saturating_sub(1))
                }
            };
            sql += rest;
        }
        sql
    }
}

#[test]
fn random_queries_return_the_rows_of_the_plain_table() {
    let number = |name, default| std::env::var(name).map_or(default, |text| text.parse().expect(name));
    let (queries, first) = (number("FILE_INDEX_QUERIES", 200), number("FILE_INDEX_SEED", 0));
    let runtime = runtime();
    let (mut seed, mut answered, [mut asked, mut left_out]) = (first, 0, [0_u64; 2]);
    while answered < queries {
        let mut world = World::new(seed);
        for _ in 0..world.random.of(&[3, 6, 9]) {
            runtime.block_on(world.add_file());
        }
        for _ in 0..2 {
            let columns: &[&str] = world.random.of(&[&["k"], &["k"], &["l", "k"], &["k", "l"]]);
            let builder = FileIndexBuilder::new(columns.iter().copied()).with_others(Others::Drop);
            let [context, _] = world.sessions();
            // It may be of other columns, of types without keys, or damaged.
            if runtime.block_on(builder.build(&context, "t", world.index().to_str().unwrap())).is_err() {
                _ = fs::remove_file(world.index());
            }
            for step in 0..3 {
                match step {
                    0 => (),
                    1 => runtime.block_on(world.change_files()),
                    _ => match world.random.below(4) {
                        0 => world.damage_index(),
                        1 => world.change_types(),
                        _ => runtime.block_on(world.change_files()),
                    },
                }
                let sessions = world.sessions();
                for _ in 0..5 {
                    let template = world.random.part(QUERIES);
                    let sql = world.query(template, 4);
                    let [plain, indexed] = sessions.clone().map(|context| {
                        let sql = sql.clone();
                        runtime
                            .block_on(runtime.spawn(async move { context.sql(&sql).await?.collect().await }))
                    });
                    // Queries that panic or fail without an index prove nothing.
                    let Ok(Ok(plain)) = plain else { continue };
                    let indexed = indexed
                        .expect("no panic")
                        .unwrap_or_else(|error| panic!("seed {seed}: {sql}: {error}"));
                    assert_eq!(lines(&indexed), lines(&plain), "seed {seed}: {sql}, types {:?}", world.types);
                    answered += 1;
                    let explain = format!("EXPLAIN ANALYZE {sql}");
                    if answered % 4 == 0 {
                        let context = &sessions[1];
                        let plan = runtime.block_on(async { context.sql(&explain).await?.collect().await });
                        let plan = lines(&plan.unwrap()).concat();
                        asked += u64::from(plan.contains("index: "));
                        left_out += u64::from(has_left_out(&plan));
                    }
                }
            }
        }
        seed += 1;
    }
    println!(
        "{answered} queries of {} worlds; of a quarter, {asked} asked and {left_out} left out files",
        seed - first
    );
    assert!(left_out * 16 > answered / 4, "only {left_out} of {} queries left out files", answered / 4);
}

/// Whether the index left out a file, by the plan.
fn has_left_out(plan: &str) -> bool {
    plan.split("index: ").skip(1).any(|rest| {
        let counts = rest.split(" files").next().unwrap_or_default().split_once(" of ");
        counts.is_some_and(|(kept, all)| kept != all)
    }) || plan.split("index_files_left_out=").skip(1).any(|rest| !rest.starts_with('0'))
}
