//! Random joins. The rules change no result, and a query that has an answer without them has one with them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, StructArray};
use arrow::compute::cast;
use arrow::csv;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::row::{RowConverter, SortField};
use bloomline_datafusion::JoinFilterCodec;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{FairSpillPool, GreedyMemoryPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, TableType};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{
    execute_stream, replace_children_if_necessary, reset_plan_states,
};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties, displayable,
};
use datafusion::prelude::{CsvReadOptions, ParquetReadOptions, SessionContext};
use datafusion_common::exec_datafusion_err;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::physical_plan::{ComposedPhysicalExtensionCodec, DefaultPhysicalExtensionCodec};
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use tempfile::TempDir;

use crate::common::{Keys, Random, filtering_session, runtime, session};

type Plan = Arc<dyn ExecutionPlan>;

const INTEGERS: &str =
    "Int8; Int16; Int32; Int64; UInt8; UInt16; UInt32; UInt64; Int32; Int64; Dictionary(UInt8, Int64)";
const TEXTS: &str = "Utf8; LargeUtf8; Utf8View; Utf8; Utf8View; Dictionary(Int32, Utf8);
    Dictionary(UInt16, LargeUtf8); Dictionary(Int8, Utf8View)";
const TIMES: [&str; 5] = [
    "Date32; Date64; Date32; Timestamp(s); Timestamp(ms); Timestamp(us); Timestamp(ns)",
    "Timestamp(s, \"+02:00\"); Timestamp(ms, \"+00:00\"); Timestamp(us, \"+00:00\"); Timestamp(ns)",
    "Time32(s); Time32(ms); Time64(us); Time64(ns)",
    "Duration(s); Duration(ms); Duration(us); Duration(ns)",
    "Boolean",
];
const NUMBERS: &str =
    "Decimal32(7, 2); Decimal64(9, 2); Decimal128(20, 3); Decimal256(40, 2); Float32; Float64;
    Dictionary(Int32, Decimal128(10, 2))";
const BYTES: &str = "Binary; LargeBinary; BinaryView; FixedSizeBinary(WIDTH); Dictionary(Int16, Binary)";
const PAYLOADS: [&str; 5] =
    [TEXTS, TEXTS, "BinaryView", "List(Utf8View)", "Struct(\"s\": Utf8View, \"n\": Int32)"];

/// A column's types in the three tables. Joins have to cast them where they differ.
fn types(random: &mut Random, list: &str, format: &str) -> [DataType; 3] {
    let (first, is_same) = (random.part(list), random.below(5) < 2);
    [(); 3].map(|()| match (if is_same { first } else { random.part(list) }).parse().unwrap() {
        // Other types are not read from CSV files, or are not written to Parquet files.
        DataType::Date32 => DataType::Date32,
        other if format == "csv" && !other.is_numeric() => DataType::Utf8,
        DataType::Dictionary(_, values) if format == "parquet" && *values == DataType::Utf8View => *values,
        other => other,
    })
}

/// Numbers as values of a type. Texts have `width` digits.
fn column(numbers: &[Option<i32>], width: usize, data_type: &DataType) -> ArrayRef {
    use DataType::*;
    let integers: ArrayRef = Arc::new(Int32Array::from(numbers.to_vec()));
    let texts = || numbers.iter().map(|number| Some(format!("{:0width$}", (*number)?)));
    let texts = || Arc::new(texts().collect::<StringArray>()) as ArrayRef;
    let through = match data_type {
        Dictionary(_, values) => column(numbers, width, values),
        List(item) => column(numbers, width, item.data_type()),
        Struct(fields) => {
            let parts = fields.iter().map(|field| column(numbers, width, field.data_type())).collect();
            Arc::new(StructArray::new(fields.clone(), parts, None))
        }
        Date64 | Timestamp(..) => cast(&integers, &Date32).unwrap(),
        Time64(_) | Duration(_) => cast(&integers, &Int64).unwrap(),
        FixedSizeBinary(_) => cast(&texts(), &Binary).unwrap(),
        other if other.is_string() || other.is_binary() => texts(),
        _ => integers,
    };
    // A dictionary may have too few codes.
    cast(&through, data_type).unwrap_or(through)
}

/// A table in parts. Its keys have nulls, duplicates and a hot key, and `v` numbers the rows.
fn table(random: &mut Random, types: [&DataType; 7], widths: [usize; 2], max_rows: i64) -> Vec<RecordBatch> {
    let rows = random.of(&[0, 1, max_rows / 6, max_rows / 2, max_rows / 2, max_rows, max_rows]);
    let keys = if rows < 50 { 5 } else { random.of(&[rows / 4, rows / 4, rows, 3 * rows]) as u64 };
    let (first, nulls, hot) =
        (random.of(&[0, 0, -3, 40]), random.of(&[0, 0, 10, 30]), random.of(&[0, 0, 10]));
    let mut columns = Vec::new();
    for (name, data_type) in ["i", "l", "t", "d", "m", "w", "p"].into_iter().zip(types) {
        let nulls = if random.below(30) == 0 { 100 } else { nulls };
        let key = |_| match (random.below(100) < nulls, random.below(100) < hot) {
            (true, _) => None,
            (_, true) => Some(3),
            _ => Some(first + random.below(keys) as i32),
        };
        let numbers: Vec<_> = (0..rows).map(key).collect();
        columns.push((name, column(&numbers, widths[usize::from(name == "p")], data_type), true));
    }
    // Nullable, because outer merge joins with a residual condition fail otherwise in DataFusion 55.2.
    columns.push(("v", Arc::new(Int64Array::from_iter_values(0..rows)), true));
    let rows = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let length = random.of(&[7, 40, 100]);
    let part = |start| rows.slice(start, length.min(rows.num_rows() - start));
    (0..rows.num_rows().max(1)).step_by(length).map(part).collect()
}

/// Registers a table, in files unless `format` is empty. Three parts each are a file or a partition.
async fn register(
    context: &SessionContext,
    name: &str,
    parts: &[RecordBatch],
    format: &str,
    folder: &TempDir,
) {
    // A limit takes the same rows of the first table each time, because it has one partition.
    let partitions = parts.chunks(if name == "t1" { parts.len() } else { 3 });
    let schema = parts[0].schema();
    if format.is_empty() {
        let table = MemTable::try_new(schema, partitions.map(<[_]>::to_vec).collect()).unwrap();
        context.register_table(name, Arc::new(table)).unwrap();
        return;
    }
    let path = folder.path().join(name);
    std::fs::create_dir(&path).unwrap();
    for (i, parts) in partitions.enumerate() {
        let file = File::create(path.join(format!("{i}.{format}"))).unwrap();
        if format == "csv" {
            let mut writer = csv::Writer::new(file);
            parts.iter().for_each(|part| writer.write(part).unwrap());
        } else {
            let mut writer = ArrowWriter::try_new(file, Arc::clone(&schema), None).unwrap();
            parts.iter().for_each(|part| writer.write(part).and_then(|()| writer.flush()).unwrap());
            writer.close().unwrap();
        }
    }
    let path = path.to_str().unwrap();
    match format {
        "csv" => context.register_csv(name, path, CsvReadOptions::new().schema(&schema)).await.unwrap(),
        _ => context.register_parquet(name, path, ParquetReadOptions::default()).await.unwrap(),
    }
}

/// A table whose rows come from a plan that is optimised already, so that limits are in its filters and joins.
#[derive(Debug)]
struct Optimised(Plan);

#[async_trait::async_trait]
impl TableProvider for Optimised {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Plan> {
        let schema = self.schema();
        let column = |&i: &usize| {
            let name = schema.field(i).name();
            (Arc::new(Column::new(name, i)) as PhysicalExprRef, name.clone())
        };
        let columns: Vec<_> = projection.expect("DataFusion names them").iter().map(column).collect();
        Ok(Arc::new(ProjectionExec::try_new(columns, reset_plan_states(Arc::clone(&self.0))?)?))
    }
}

/// Merges partitions one after the other, and not side by side as DataFusion's operator does.
#[derive(Debug)]
struct InTurn {
    merge: Plan,
    /// Whether all partitions are executed before the first one is drained.
    is_ready: bool,
}

impl DisplayAs for InTurn {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "InTurn: is_ready={}", self.is_ready)
    }
}

impl ExecutionPlan for InTurn {
    fn name(&self) -> &str {
        "InTurn"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.merge.properties()
    }

    fn children(&self) -> Vec<&Plan> {
        self.merge.children()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        let merge = replace_children_if_necessary(Arc::clone(&self.merge), children)?;
        Ok(Arc::new(Self { merge, is_ready: self.is_ready }))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&PhysicalExprRef) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = Arc::clone(self.children()[0]);
        let partitions = 0..input.output_partitioning().partition_count();
        let execute = move |partition| input.execute(partition, Arc::clone(&context));
        let rows = if self.is_ready {
            let streams = partitions.map(execute).collect::<Result<Vec<_>>>()?;
            stream::iter(streams).flatten().boxed()
        } else {
            stream::iter(partitions).map(execute).try_flatten().boxed()
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

fn in_turn(plan: &Plan, is_ready: bool) -> Result<Plan> {
    let replace = |plan: Plan| {
        let is_merge = plan.is::<CoalescePartitionsExec>() && plan.fetch().is_none();
        Ok(if is_merge {
            Transformed::yes(Arc::new(InTurn { merge: plan, is_ready }) as Plan)
        } else {
            Transformed::no(plan)
        })
    };
    let plan = Arc::clone(plan).transform_up(replace)?.data;
    Ok(match plan.output_partitioning().partition_count() {
        1 => plan,
        _ => Arc::new(InTurn { merge: Arc::new(CoalescePartitionsExec::new(plan)), is_ready }),
    })
}

/// How a plan runs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Once,
    InTurn { is_ready: bool },
    Twice { is_reset: bool, is_interleaved: bool },
}

/// Writes queries from templates, in which `$` and a letter stand for a random part, `@` for a column, and `#` for a
/// table's alias.
struct Writer<'r> {
    random: &'r mut Random,
    /// Whether expressions may fail.
    fails: bool,
}

/// Of the rows of a group, the first by `v` is always the same.
const REST: &str = "min(x.d) AS d, max(x.m) AS m, first_value(x.w ORDER BY x.v) AS w,
    first_value(x.p ORDER BY x.v) AS p, min(x.v) AS v FROM $t AS x GROUP BY";
/// Subqueries whose results would change if rows were dropped inside of them.
const ROWS: &str = "SELECT * FROM $r AS x WHERE $f; SELECT * FROM $r AS x WHERE $f AND $f; SELECT DISTINCT * FROM $r;
    SELECT * FROM $t AS x ORDER BY v LIMIT $n; SELECT * FROM $t AS x WHERE $f ORDER BY v DESC LIMIT $n OFFSET 3;
    SELECT * FROM (SELECT * FROM $t ORDER BY v DESC LIMIT $n) AS x WHERE $f;
    SELECT l AS i, i AS l, t, d, m, w, p, v FROM (SELECT * FROM $t ORDER BY v LIMIT $n OFFSET 2) AS x;
    SELECT $e AS i, l, t, d, m, w, p, v FROM $r AS x; SELECT * FROM $r AS x WHERE $f LIMIT 1000000;
    SELECT x.i, count(*) AS l, min(x.t) AS t, $g x.i; SELECT x.i, x.l, x.t, $g x.i, x.l, x.t;
    SELECT x.i, x.l, min(x.t) AS t, $g ROLLUP (x.i, x.l);
    SELECT x.i, x.l, x.t, $g GROUPING SETS ((x.i, x.t), (x.l), ());
    SELECT i, l, t, d, m, w, p, sum(v) OVER (PARTITION BY @) AS v FROM $r;
    SELECT i, l, t, d, m, w, p, v FROM (SELECT *, rank() OVER (PARTITION BY @ ORDER BY v) AS n FROM $t) WHERE n < 3;
    SELECT * FROM $r UNION ALL SELECT * FROM $t AS x WHERE $f; SELECT * FROM $t UNION ALL SELECT * FROM $r;
    SELECT x.* FROM $r AS x $k JOIN $r AS y ON $o; SELECT x.* FROM $r AS x $s JOIN $r AS y ON $o;
    SELECT y.* FROM $r AS x $k JOIN $r AS y ON $o; SELECT y.* FROM $t AS x LEFT JOIN $r AS y ON $o;
    SELECT x.* FROM $r AS x, (SELECT v FROM $t LIMIT 1)";
/// Subqueries that would fail if rows were dropped on one side of their joins, which would add nulls.
const PADDED: &str = "SELECT y.i, y.l, y.t, y.d, y.m, y.w, y.p, 1 / coalesce(y.v + 1, 0) AS v FROM t1 AS x
    LEFT JOIN t1 AS y ON x.v = y.v; SELECT x.i, x.l, x.t, x.d, x.m, x.w, x.p, 1 / coalesce(x.v + 1, 0) AS v FROM t2 AS x
    RIGHT JOIN t2 AS y ON x.v = y.v";
// Not `i = 3`, by which DataFusion 55.2 takes the groups of ROLLUP for sorted, and returns some twice at random.
const FILTERS: &str =
    "#.i % 3 = 1; #.v < 10; #.d IS NOT NULL; #.l IS NULL; #.m > 4; #.t LIKE '%1'; #.v > 5; #.i IN (3, 5);
    #.l + 1 > 0; #.w IS NOT NULL; #.v % 2 = 0; #.v % 7 = 9; #.v > (SELECT avg(v) FROM $t)";
const FAILING: &str = "10 / #.i; #.v % #.l; CAST(#.l * 3 AS TINYINT); CAST(#.t AS TINYINT); 100 / (#.v - 25);
    100 / (#.v - 2); CAST(concat(#.t, '-') AS INT)";
const EQUALITIES: &str = "x.i = y.i; x.l = y.l; x.t = y.t; x.d = y.d; x.m = y.m; x.w = y.w; x.i = y.i; x.l = y.l;
    x.t = y.t; x.d = y.d; x.w = y.w; x.i = y.l; x.m = y.i; x.i + 1 = y.l; x.i % 3 = y.l % 4; coalesce(x.i, 7) = y.l;
    (x.i IS NOT DISTINCT FROM y.i); (x.l IS NOT DISTINCT FROM y.l); (x.t IS NOT DISTINCT FROM y.t); x.v = y.i;
    (x.d IS NOT DISTINCT FROM y.d); (x.w IS NOT DISTINCT FROM y.w); (x.l IS NOT DISTINCT FROM y.i); upper(x.t) = y.t;
    CAST(x.l AS VARCHAR) = y.t; CAST(x.i AS SMALLINT) = y.l; CAST(x.m AS BIGINT) = CAST(y.l AS BIGINT);
    CAST(x.l AS INT) = CAST(y.l AS INT); CAST(x.d AS DATE) = y.d; CAST(x.t AS BIGINT) = y.l; CAST(x.t AS INT) = y.i";
const RESIDUALS: &str =
    "x.v < y.v; x.l <> y.l; (x.v + y.v) % 2 = 0; x.i IS NOT NULL; y.l > 3; x.v > 5; y.v % 2 = 1";
const SUBQUERIES: &str = "#.@ IN (SELECT y.@ FROM $r AS y); #.@ NOT IN (SELECT y.@ FROM $r AS y);
    #.@ NOT IN (SELECT y.@ FROM $t AS y WHERE y.v > 5);
    EXISTS (SELECT 1 FROM $r AS y WHERE $o); NOT EXISTS (SELECT 1 FROM $r AS y WHERE $o);
    (#.v % 3 = 0 OR EXISTS (SELECT 1 FROM $r AS y WHERE $o)); (#.i = 3 OR NOT EXISTS (SELECT 1 FROM $r AS y WHERE $o));
    #.@ IN (SELECT y.@ FROM $r AS y WHERE $o); #.@ NOT IN (SELECT y.@ FROM $r AS y WHERE y.@ IS NOT NULL);
    #.v > (SELECT min(y.v) FROM $r AS y WHERE y.@ = #.@)";
const QUERIES: &str =
    "SELECT count(*), sum(#.v), min(#.t) FROM $; SELECT #.l, count(*), max(#.d) FROM $ GROUP BY #.l;
    SELECT #.i, #.t, count(*), max(#.v) FROM $ GROUP BY ROLLUP (#.i, #.t); SELECT DISTINCT #.t, #.m FROM $;
    SELECT $order FROM $ ORDER BY $order LIMIT 9; SELECT $order, max(#.v) OVER (PARTITION BY #.i) FROM $;
    SELECT * FROM $ LIMIT 4; SELECT * FROM $ ORDER BY $order; SELECT * FROM $; SELECT * FROM $";

/// Limits of rows that are the same each time, in plans that are optimised already.
const FEW: &str =
    "SELECT * FROM t1 WHERE v % 2 = 0 LIMIT $n; SELECT * FROM t1 AS x WHERE x.v <> 4 AND x.v > 1 LIMIT $n;
    SELECT x.* FROM t1 AS x JOIN t1 AS y ON x.v = y.v WHERE x.v <> 4 LIMIT $n";
const OF_FEW: &str =
    "SELECT * FROM few AS a $k JOIN $t AS b ON a.@ = b.@; SELECT * FROM few AS a JOIN $t AS b ON a.@ = b.@;
    SELECT * FROM $t AS a $k JOIN few AS b ON a.@ = b.@; SELECT * FROM $t AS a $s JOIN few AS b ON a.@ = b.@";

/// Queries of which each iteration joins the rows of the iteration before.
const RECURSIVE: &str =
    "SELECT x.*, 0 AS n FROM $t AS x WHERE $f UNION SELECT y.*, w.n + 1 FROM work AS w JOIN TABLE AS y ON $j WHERE w.n < 4;
    SELECT x.*, 0 AS n FROM $t AS x WHERE x.v < 5 UNION SELECT y.*, w.n + 1 FROM TABLE AS y JOIN work AS w ON $j WHERE w.n < 3;
    SELECT x.*, 0 AS n FROM $t AS x WHERE x.v % 9 = 4 UNION ALL SELECT y.*, w.n + 1 FROM work AS w JOIN TABLE AS y ON $j
    JOIN $r AS z ON y.@ = z.@ WHERE w.n < 2;
    SELECT x.*, 0 AS n FROM $t AS x WHERE x.v < 9 UNION SELECT y.*, w.n + 1 FROM work AS w JOIN TABLE AS y ON $j
    WHERE w.n < 2 AND y.@ IN (SELECT z.@ FROM $r AS z);
    SELECT x.*, 0 AS n FROM $t AS x WHERE $f UNION SELECT y.*, 1 FROM TABLE AS y LEFT SEMI JOIN work AS w ON $j;
    SELECT x.*, 0 AS n FROM $t AS x WHERE x.v < 2 UNION SELECT w.i, w.l, w.t, w.d, w.m, w.w, w.p, coalesce(y.v, w.v), w.n + 1
    FROM work AS w LEFT JOIN TABLE AS y ON $j WHERE w.n < 3";
const OF_WORK: &str = "SELECT * FROM work; SELECT count(*), sum(v), max(n) FROM work; SELECT n, count(*) FROM work GROUP BY n;
    SELECT x.*, w.n FROM work AS w $k JOIN $t AS x ON w.@ = x.@; SELECT x.* FROM $t AS x $s JOIN work AS w ON w.@ = x.@";

impl Writer<'_> {
    /// The terms read the same table, because columns of others have other types.
    fn recursive_query(&mut self) -> String {
        let terms = self.part(RECURSIVE, "x", 1);
        let table = terms.split_once("0 AS n FROM ").expect("a static term").1;
        let terms = terms.replace("TABLE", table.split(' ').next().unwrap());
        format!("WITH RECURSIVE work AS ({terms}) {}", self.part(OF_WORK, "x", 0))
    }

    /// `depth` is how deep subqueries may be nested.
    fn write(&mut self, template: &str, x: &str, depth: u32) -> String {
        let template = template.replace('@', self.random.part("i; l; t; d; m; w")).replace('#', x);
        let mut parts = template.split('$');
        let mut sql = parts.next().unwrap().to_owned();
        for part in parts {
            let (token, rest) = part.split_at(1);
            sql += &match token {
                "t" => self.random.part("t1; t2; t3").to_owned(),
                "r" if depth == 0 || self.random.below(2) == 0 => self.random.part("t1; t2; t3").to_owned(),
                "r" if self.random.below(4) == 0 => format!("({})", self.part(PADDED, "x", 0)),
                "r" => format!("({})", self.part(ROWS, "x", depth - 1)),
                "f" if self.fails && self.random.below(3) == 0 => self.part(FAILING, x, 0) + " > 1",
                "f" => self.part(FILTERS, x, 0),
                "e" if self.fails => self.part(FAILING, x, 0),
                "e" => format!("{x}.i + 1"),
                "o" => self.on(x, "y"),
                "j" => self.on("w", "y"),
                "n" => self.random.part("1; 3; 7; 20; 50").to_owned(),
                "k" => self.random.part("; LEFT; RIGHT; FULL").to_owned(),
                "s" => self.random.part("LEFT SEMI; LEFT ANTI").to_owned(),
                _ => self.write(REST, x, depth),
            };
            sql += rest;
        }
        sql
    }

    fn part(&mut self, list: &str, x: &str, depth: u32) -> String {
        let template = self.random.part(list);
        self.write(template, x, depth)
    }

    /// A condition with at least one equality.
    fn on(&mut self, x: &str, y: &str) -> String {
        let mut condition = self.random.part(EQUALITIES).to_owned();
        if self.fails && self.random.below(2) == 0 {
            let (key, with) = self.random.of(&[("x.i", "y"), ("y.i", "x")]);
            condition = format!("{key} = {}", self.part(FAILING, with, 0));
        } else if self.random.below(3) == 0 {
            condition = format!("{condition} AND {}", self.random.part(EQUALITIES));
        }
        if self.random.below(3) == 0 {
            condition = format!("{condition} AND {}", self.random.part(RESIDUALS));
        }
        condition.replace("x.", &format!("{x}.")).replace("y.", &format!("{y}."))
    }

    /// A query that joins up to four tables.
    fn query(&mut self) -> String {
        let kinds = "; ; ; CROSS; LEFT; RIGHT; FULL; LEFT SEMI; LEFT ANTI; RIGHT SEMI; RIGHT ANTI";
        let mut from = self.write("$r AS a", "a", 2);
        let mut visible = vec!["a"];
        for table in ["b", "c", "d"].into_iter().take(self.random.of(&[0, 1, 1, 1, 2, 3])) {
            let (kind, with) = (self.random.part(kinds), self.random.of(&visible));
            from += &match self.random.below(6) {
                _ if kind == "CROSS" => {
                    self.write(" CROSS JOIN (SELECT * FROM $t WHERE v < 3) AS #", table, 0)
                }
                // Of three tables, `USING` would be ambiguous.
                0 if table == "b" => {
                    let columns = self.random.part("i; t; i, d; l, w");
                    self.write(&format!(" {kind} JOIN $r AS # USING ({columns})"), table, 2)
                }
                _ => self.write(&format!(" {kind} JOIN $r AS # ON "), table, 2) + &self.on(with, table),
            };
            match kind {
                "LEFT SEMI" | "LEFT ANTI" => {}
                "RIGHT SEMI" | "RIGHT ANTI" => visible = vec![table],
                _ => visible.push(table),
            }
        }
        let x = self.random.of(&visible);
        from += " WHERE true";
        if self.random.below(3) == 0 {
            from = from + " AND " + &self.part(FILTERS, x, 0);
        }
        if !from.contains("JOIN") || self.random.below(3) == 0 {
            from = from + " AND " + &self.part(SUBQUERIES, x, 1);
        }
        let order = visible.iter().map(|table| format!("{table}.v")).collect::<Vec<_>>().join(", ");
        self.random.part(QUERIES).replace("$order", &order).replace('#', x).replace('$', &from)
    }
}

/// One run of a plan.
struct Run {
    stream: SendableRecordBatchStream,
    converter: RowConverter,
    /// The hashes of its rows so far.
    rows: Vec<u64>,
}

impl Run {
    fn start(plan: &Plan, task: &Arc<TaskContext>) -> Result<Self> {
        let stream = execute_stream(Arc::clone(plan), Arc::clone(task))?;
        let fields =
            plan.schema().fields().iter().map(|field| SortField::new(field.data_type().clone())).collect();
        Ok(Self { stream, converter: RowConverter::new(fields)?, rows: Vec::new() })
    }

    /// Reads a batch. False at the end.
    async fn next(&mut self) -> Result<bool> {
        let Some(batch) = self.stream.try_next().await? else { return Ok(false) };
        let batch = self.converter.convert_columns(batch.columns())?;
        self.rows.extend(batch.iter().map(|row| bloomline::hash_key(row.as_ref(), 0)));
        if self.rows.len() > 30_000 {
            return Err(exec_datafusion_err!("more rows than the test has time for"));
        }
        Ok(true)
    }

    fn sorted(mut self) -> Vec<u64> {
        self.rows.sort_unstable();
        self.rows
    }
}

/// The hashes of an answer's rows in order, or of those of its first batches, and how many rows filters dropped.
async fn answer(plan: &Plan, task: &Arc<TaskContext>, batches: usize) -> Result<(Vec<u64>, usize)> {
    let read = async |plan: Plan| {
        let mut run = Run::start(&plan, task)?;
        for _ in 0..batches {
            if !run.next().await? {
                break;
            }
        }
        Ok((run.sorted(), dropped(&*plan)))
    };
    guarded(read(reset_plan_states(Arc::clone(plan))?)).await
}

/// The same of each run of a plan. What filters dropped is that of the last run.
async fn answers(plan: &Plan, task: &Arc<TaskContext>, way: Way) -> Result<(Vec<Vec<u64>>, usize)> {
    let Way::Twice { is_reset, is_interleaved } = way else {
        let (rows, dropped) = answer(plan, task, usize::MAX).await?;
        return Ok((vec![rows], dropped));
    };
    let read = async |plan: Plan| {
        let mut first = Run::start(&plan, task)?;
        let mut goes_on = first.next().await?;
        while goes_on && !is_interleaved {
            goes_on = first.next().await?;
        }
        let again = if is_reset { reset_plan_states(Arc::clone(&plan))? } else { plan };
        let mut second = Run::start(&again, task)?;
        while second.next().await? {
            goes_on = goes_on && first.next().await?;
        }
        while goes_on {
            goes_on = first.next().await?;
        }
        Ok((vec![first.sorted(), second.sorted()], dropped(&*again)))
    };
    guarded(read(reset_plan_states(Arc::clone(plan))?)).await
}

async fn guarded<T>(read: impl Future<Output = Result<T>>) -> Result<T> {
    let read = tokio::time::timeout(Duration::from_secs(20), AssertUnwindSafe(read).catch_unwind()).await;
    let read = read.map_err(|_| exec_datafusion_err!("no end"))?;
    read.map_err(|_| exec_datafusion_err!("a panic"))?
}

fn dropped(plan: &dyn ExecutionPlan) -> usize {
    let here = plan.metrics().and_then(|metrics| metrics.sum_by_name("rows_dropped"));
    let below: usize = plan.children().into_iter().map(|child| dropped(&**child)).sum();
    here.map_or(0, |here| here.as_usize()) + below
}

fn limited(context: &SessionContext, is_fair: bool, bytes: usize) -> Arc<TaskContext> {
    let pool: Arc<dyn MemoryPool> =
        if is_fair { Arc::new(FairSpillPool::new(bytes)) } else { Arc::new(GreedyMemoryPool::new(bytes)) };
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
    Arc::new(Arc::into_inner(context.task_ctx()).unwrap().with_runtime(runtime))
}

/// About the least memory with which a plan has an answer.
async fn need(plan: &Plan, context: &SessionContext, is_fair: bool) -> usize {
    let (mut fails, mut answers) = (50_000, 20_000_000);
    while answers - fails > fails / 20 {
        let bytes = (fails as f64 * answers as f64).sqrt() as usize;
        let is_enough = answer(plan, &limited(context, is_fair, bytes), usize::MAX).await.is_ok();
        *(if is_enough { &mut answers } else { &mut fails }) = bytes;
    }
    answers
}

#[derive(Default)]
struct Report {
    counts: BTreeMap<&'static str, u64>,
    failures: Vec<String>,
}

impl Report {
    fn count(&mut self, what: &'static str, is: bool) {
        *self.counts.entry(what).or_default() += u64::from(is);
    }

    /// Compares the answers of a plan without a rule and of one with it. If both have the same, returns how many rows
    /// filters dropped.
    async fn compare(
        &mut self,
        plans: &[Plan; 2],
        tasks: &[Arc<TaskContext>; 2],
        way: Way,
        query: &str,
    ) -> Option<usize> {
        let answers = async |i: usize| answers(&plans[i], &tasks[i], way).await;
        // Any four rows are right.
        let is_same = |some: &[Vec<u64>], others: &[Vec<u64>]| {
            let is_same = |(some, others): (&Vec<u64>, &Vec<u64>)| {
                some == others || query.ends_with("LIMIT 4") && some.len() == others.len()
            };
            some.iter().zip(others).all(is_same)
        };
        let lengths = |answers: &[Vec<u64>]| answers.iter().map(Vec::len).collect::<Vec<_>>();
        let compared = match (answers(0).await, answers(1).await) {
            // Some operators of DataFusion cannot run again, and return other rows.
            (Ok((without, _)), _) if !is_same(&without, &without[1..]) => return None,
            (Ok((without, _)), Ok((with, dropped))) => {
                self.count("dropping rows", dropped > 0);
                let failure =
                    || format!("{:?} rows without the rule, {:?} with it", lengths(&without), lengths(&with));
                if is_same(&without, &with) { Ok(dropped) } else { Err(failure()) }
            }
            (Ok(_), Err(error)) => {
                // The order in which partitions run may decide whether a query fails.
                for _ in 0..3 {
                    if answers(0).await.is_err() || answers(1).await.is_ok() {
                        return None;
                    }
                }
                Err(error.to_string())
            }
            (Err(_), with) => {
                self.count("failing with the rule and without", with.is_err());
                return None;
            }
        };
        // Tasks may outlive the answer for a moment.
        for _ in 0..1000 {
            if tasks[1].memory_pool().reserved() != 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        assert_eq!(tasks[1].memory_pool().reserved(), 0, "memory stays reserved: {query}");
        let plan = || shown(&plans[1]);
        let failure = compared.as_ref().err();
        self.failures.extend(failure.map(|failure| format!("{query}\n{failure}\n{}", plan())));
        compared.ok()
    }

    /// Runs the query of a seed with the rule and without.
    async fn check(&mut self, seed: u64) {
        let random = &mut Random::new(seed);
        let mode = random.part(
            "plain; plain; plain; plain; plain; plain; plain; memory; cancelled; cancelled; optimised; recursive;
            recursive",
        );
        let keys = random.of(&[Keys::Tap, Keys::Tap, Keys::SecondRead]);
        let way = if keys == Keys::Tap && ["plain", "recursive"].contains(&mode) {
            let twice = |is_reset, is_interleaved| Way::Twice { is_reset, is_interleaved };
            random.of(&[
                Way::Once,
                Way::Once,
                Way::InTurn { is_ready: false },
                Way::InTurn { is_ready: true },
                twice(false, false),
                twice(false, true),
                twice(true, false),
                twice(true, true),
            ])
        } else {
            Way::Once
        };
        let format = random.of(&["", "", "", "csv", "parquet", "parquet", "parquet", "parquet"]);
        // With one partition, the same memory is needed each time, and a limit takes the same rows. Most plans that
        // are not reset can run again if they read tables in memory without repartitioning them.
        let is_reset = !matches!(way, Way::Twice { is_reset: false, .. });
        let format = if is_reset { format } else { "" };
        let partitions = match way {
            _ if !is_reset || ["memory", "optimised"].contains(&mode) => "1",
            Way::InTurn { .. } => "4",
            _ => random.of(&["1", "4", "4", "4"]),
        };
        // DataFusion 55.2 pushes filters below the limits of plans that are optimised already, and its filters wait for
        // all partitions of a join.
        let is_safe = mode != "optimised" && !matches!(way, Way::InTurn { .. });
        let pushes = if is_safe { random.of(&["true", "false"]) } else { "false" };
        let shuffled = random.of(&["0", "0", "1000000"]);
        let settings = [
            ("datafusion.execution.target_partitions", partitions),
            ("datafusion.execution.batch_size", random.of(&["16", "16", "64", "8192"])),
            ("datafusion.execution.sort_spill_reservation_bytes", "10000"),
            ("datafusion.execution.parquet.pushdown_filters", random.of(&["true", "false"])),
            ("datafusion.optimizer.enable_dynamic_filter_pushdown", pushes),
            ("datafusion.optimizer.prefer_hash_join", random.of(&["true", "true", "true", "false"])),
            ("datafusion.optimizer.hash_join_single_partition_threshold", shuffled),
            ("datafusion.optimizer.hash_join_single_partition_threshold_rows", shuffled),
        ];
        let contexts = [session(&settings), filtering_session(keys, &settings)];
        let (sample, share) = (random.of(&["16", "65536"]), random.of(&["0.95", "0.3"]));
        for (option, value) in [("force", "true"), ("sample_rows", sample), ("max_share", share)] {
            contexts[1].sql(&format!("SET bloomline.join_filters.{option} = {value}")).await.unwrap();
        }

        let widths = [random.of(&[4, 24]), random.of(&[10, 100, 1000])];
        let bytes = BYTES.replace("WIDTH", &widths[0].to_string());
        let lists = [INTEGERS, INTEGERS, TEXTS, random.of(&TIMES), NUMBERS, &bytes, random.of(&PAYLOADS)];
        let types = lists.map(|list| types(random, list, format));
        let folder = tempfile::tempdir().unwrap();
        for (i, name) in ["t1", "t2", "t3"].into_iter().enumerate() {
            let max_rows = if mode == "memory" { 500 } else { 120 };
            let parts = table(random, types.each_ref().map(|types| &types[i]), widths, max_rows);
            register(&contexts[0], name, &parts, format, &folder).await;
        }
        let fails = random.below(4) == 0;
        let mut writer = Writer { random, fails };
        let sql = if mode == "optimised" {
            let few = writer.part(FEW, "x", 0);
            let few = physical(&contexts[0], &logical(&contexts[0], &few).await.unwrap()).await.unwrap();
            contexts[0].register_table("few", Arc::new(Optimised(few))).unwrap();
            writer.part(OF_FEW, "a", 0)
        } else if mode == "recursive" {
            writer.recursive_query()
        } else {
            writer.query()
        };
        let mut sql = sql;
        // Their rows may have the same `v`, so an order by it is not the same each time.
        let has_view = mode == "plain" && sql.contains("t2") && !sql.contains("ORDER BY");
        if has_view {
            let view = writer.part(ROWS, "x", 1);
            // A view that cannot be planned is not there.
            _ = contexts[0].sql(&format!("CREATE VIEW viewed AS {view}")).await;
            sql = sql.replace("t2", "viewed");
        }
        let query =
            format!("JOIN_SEED={seed}, {mode}, {format}, {partitions} partitions, {keys:?}, {way:?}: {sql}");
        // Both have the tables of the first session. It takes longest to optimise a logical plan.
        let Ok(logical) = logical(&contexts[0], &sql).await else { return };
        let Ok(without) = physical(&contexts[0], &logical).await else { return };
        let with = physical(&contexts[1], &logical).await.unwrap_or_else(|error| panic!("{query}\n{error}"));
        let (mut plans, tasks) = ([without, with], contexts.each_ref().map(SessionContext::task_ctx));
        if random.below(5) == 0
            && let Ok(without) = travel(&plans[0], &tasks[0])
        {
            let with = travel(&plans[1], &tasks[1]).unwrap_or_else(|error| panic!("{query}\n{error}"));
            plans = [without, with];
            self.count("travelled", keys == Keys::Tap);
            self.count("travelled with a filter", shown(&plans[1]).contains("JoinFilterBuildExec"));
            assert!(!shown(&plans[1]).contains("JoinFilterTapExec"), "{query}");
        }
        if let Way::InTurn { is_ready } = way {
            plans = plans.map(|plan| in_turn(&plan, is_ready).unwrap());
        }
        let texts = plans.each_ref().map(shown);
        let has_filter = texts[1].contains("JoinFilterExec");
        assert!(!texts[0].contains("JoinFilterExec"));
        if mode == "cancelled" {
            let mut read = Box::pin(answer(&plans[1], &tasks[1], random.of(&[1, 2, 3, usize::MAX])));
            let mut is_running = true;
            for _ in 0..random.below(30) {
                is_running = is_running && futures::poll!(&mut read).is_pending();
                tokio::task::yield_now().await;
            }
            self.count("cancelled", has_filter && is_running);
        }
        let dropped = self.compare(&plans, &tasks, way, &query).await;
        let is_same = dropped.is_some();
        self.count("answered", is_same);
        for operator in [
            "JoinFilterTapExec",
            "JoinFilterBuildExec",
            "mode=CollectLeft",
            "mode=Partitioned",
            "SortMergeJoinExec",
            "RecursiveQueryExec",
        ] {
            self.count(operator, is_same && has_filter && texts[1].contains(operator));
        }
        let drops = dropped.is_some_and(|dropped| dropped > 0);
        let acts = is_same && has_filter;
        self.count("in turn", acts && texts[1].contains("InTurn"));
        if let Way::Twice { is_reset, is_interleaved } = way {
            self.count("twice", acts && !is_reset && !is_interleaved);
            self.count("interleaved", acts && !is_reset && is_interleaved);
            self.count("twice after a reset", acts && is_reset && !is_interleaved);
            self.count("interleaved after a reset", acts && is_reset && is_interleaved);
        }
        self.count("views", drops && has_view);
        self.count("files", is_same && has_filter && !format.is_empty());
        self.count("expressions that may fail", is_same && has_filter && fails);
        if mode == "memory" && is_same && has_filter {
            let is_fair = random.below(2) == 0;
            let need = need(&plans[0], &contexts[0], is_fair).await;
            for percent in [100, 104, random.of(&[110, 130, 200])] {
                let bytes = need * percent / 100;
                let tasks = contexts.each_ref().map(|context| limited(context, is_fair, bytes));
                let query = format!("{bytes} bytes for {query}");
                let dropped = self.compare(&plans, &tasks, Way::Once, &query).await;
                self.count("memory-limited", dropped.is_some());
            }
        }
    }
}

fn shown(plan: &Plan) -> String {
    displayable(&**plan).indent(false).to_string()
}

async fn logical(context: &SessionContext, sql: &str) -> Result<LogicalPlan> {
    context.sql(sql).await?.into_optimized_plan()
}

async fn physical(context: &SessionContext, plan: &LogicalPlan) -> Result<Plan> {
    let state = context.state();
    let plan =
        AssertUnwindSafe(state.query_planner().create_physical_plan(plan, &state)).catch_unwind().await;
    plan.map_err(|_| exec_datafusion_err!("a panic"))?
}

/// The plan as an executor gets it.
fn travel(plan: &Plan, task: &TaskContext) -> Result<Plan> {
    let codec = ComposedPhysicalExtensionCodec::new(vec![
        Arc::new(DefaultPhysicalExtensionCodec {}),
        Arc::new(JoinFilterCodec),
    ]);
    let bytes = physical_plan_to_bytes_with_extension_codec(Arc::clone(plan), &codec)?;
    physical_plan_from_bytes_with_extension_codec(&bytes, task, &codec)
}

/// `JOIN_QUERIES` is how many queries run, and `JOIN_SEED` is the seed of the first. A failure prints its query's seed.
#[test]
fn filters_change_no_result() {
    let runtime = runtime();
    let number = |name, default| std::env::var(name).map_or(default, |text| text.parse().expect(name));
    let (first, queries): (u64, u64) = (number("JOIN_SEED", 0), number("JOIN_QUERIES", 300));
    let report = runtime.block_on(runtime.spawn(async move {
        let mut report = Report::default();
        for seed in first..first + queries {
            report.check(seed).await;
        }
        report
    }));
    let Report { counts, failures } = report.unwrap();
    println!("{queries} queries: {counts:?}");
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n\n"));
    for (what, per_mille) in [
        ("answered", 700),
        ("JoinFilterTapExec", 170),
        ("JoinFilterBuildExec", 100),
        ("RecursiveQueryExec", 40),
        ("in turn", 7),
        ("twice", 3),
        ("interleaved", 6),
        ("twice after a reset", 7),
        ("interleaved after a reset", 6),
        ("views", 10),
        ("mode=CollectLeft", 170),
        ("mode=Partitioned", 80),
        ("SortMergeJoinExec", 33),
        ("dropping rows", 170),
        ("files", 180),
        ("expressions that may fail", 45),
        ("failing with the rule and without", 20),
        ("travelled", 20),
        ("travelled with a filter", 9),
        ("cancelled", 35),
        ("memory-limited", 90),
    ] {
        let count = counts.get(what).copied().unwrap_or_default();
        assert!(queries < 100 || count * 1000 >= queries * per_mille, "{what}: {count} of {queries} queries");
    }
}
