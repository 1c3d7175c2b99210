//! Tables with an index travel in logical plans, as on Ballista from the client to the scheduler.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::execution::TaskContext;
use datafusion_common::{Result, TableReference, exec_err, plan_err};
use datafusion_expr::logical_plan::{Extension, LogicalPlan, LogicalPlanBuilder};
use datafusion_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, WindowUDF};
use datafusion_proto::logical_plan::{AsLogicalPlan, LogicalExtensionCodec};
use datafusion_proto::protobuf::LogicalPlanNode;

use super::index_file::IndexFile;
use super::table::IndexedTable;

/// The first bytes, which end in the version of the encoding. No protobuf begins with an `f`, whose wire type would be
/// 6. A checksum of the rest follows, because DataFusion panics at some damaged bytes, then the index and the table.
const MAGIC: &[u8] = b"file-index-1 ";
/// More indexes are not kept, because clients name them.
const MOST_INDEXES: usize = 100;

/// Encodes tables with an index in logical plans, and leaves everything else to another codec. On Ballista, clients and
/// the scheduler need it. Executors do not, because plans that are sent to them have only the scans of the files.
///
/// DataFusion's encoding drops constraints, defaults of columns and declared output partitioning, so a decoded table has
/// none. A table whose path is a pattern is an error.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use bloomline_datafusion::{FileIndexBuilder, FileIndexCodec};
/// use datafusion::prelude::{CsvReadOptions, SessionContext};
/// use datafusion_proto::{bytes, logical_plan::DefaultLogicalExtensionCodec};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// # let folder = tempfile::tempdir()?;
/// # std::fs::write(folder.path().join("1.csv"), "trace_id\na\n")?;
/// # std::fs::write(folder.path().join("2.csv"), "trace_id\nb\n")?;
/// # let (logs, index) = (folder.path().to_str().unwrap(), &*format!("{}/logs.index", folder.path().display()));
/// let codec = FileIndexCodec::new(Arc::new(DefaultLogicalExtensionCodec {}));
/// let client = SessionContext::new();
/// client.register_csv("logs", logs, CsvReadOptions::default()).await?;
/// FileIndexBuilder::new(["trace_id"]).build(&client, "logs", index).await?;
/// let plan = client.sql("EXPLAIN SELECT * FROM logs WHERE trace_id = 'b'").await?.into_optimized_plan()?;
/// let bytes = bytes::logical_plan_to_bytes_with_extension_codec(&plan, &codec)?;
///
/// let scheduler = SessionContext::new();
/// let plan = bytes::logical_plan_from_bytes_with_extension_codec(&bytes, &scheduler.task_ctx(), &codec)?;
/// let plan = scheduler.execute_logical_plan(plan).await?.to_string().await?;
/// assert!(plan.contains("index: 1 of 2 files"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FileIndexCodec {
    inner: Arc<dyn LogicalExtensionCodec>,
    /// Those of decoded tables, so that the end of each is read once.
    indexes: Arc<Mutex<HashMap<String, Arc<IndexFile>>>>,
}

impl FileIndexCodec {
    /// `inner` encodes everything else.
    pub fn new(inner: Arc<dyn LogicalExtensionCodec>) -> Self {
        Self { inner, indexes: Arc::default() }
    }

    fn index(&self, url: &str) -> Result<Arc<IndexFile>> {
        let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = indexes.get(url) {
            return Ok(Arc::clone(index));
        }
        if indexes.len() == MOST_INDEXES {
            indexes.clear();
        }
        let index = Arc::new(IndexFile::new(url)?);
        indexes.insert(url.to_owned(), Arc::clone(&index));
        Ok(index)
    }
}

/// Methods that only call the inner codec's.
macro_rules! inner {
    ($($method:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $method(&self, $($argument: $type),*) -> Result<$result> { self.inner.$method($($argument),*) })*
    };
}

impl LogicalExtensionCodec for FileIndexCodec {
    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        table: Arc<dyn TableProvider>,
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        let Some(indexed) = table.downcast_ref::<IndexedTable>() else {
            return self.inner.try_encode_table_provider(name, table, bytes);
        };
        let files = indexed.table().clone();
        if let Some(glob) = files.table_paths().iter().find_map(|url| url.get_glob().as_ref()) {
            return plan_err!("file index: a plan would lose the pattern {glob} of {name} (name the folder)");
        }
        let scan = LogicalPlanBuilder::scan(name.clone(), provider_as_source(Arc::new(files)), None)?;
        let mut rest = format!("{} ", indexed.index()).into_bytes();
        LogicalPlanNode::try_from_logical_plan(&scan.build()?, &*self.inner)?.try_encode(&mut rest)?;
        bytes.extend([MAGIC, &bloomline::hash_key(&rest, 0).to_le_bytes(), &rest].concat());
        Ok(())
    }

    fn try_decode_table_provider(
        &self,
        bytes: &[u8],
        name: &TableReference,
        schema: SchemaRef,
        context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        let Some(ours) = bytes.strip_prefix(MAGIC) else {
            return self.inner.try_decode_table_provider(bytes, name, schema, context);
        };
        if let Some((sum, rest)) = ours.split_first_chunk()
            && u64::from_le_bytes(*sum) == bloomline::hash_key(rest, 0)
            && let Some(space) = rest.iter().position(|&byte| byte == b' ')
            && let Ok(index) = str::from_utf8(&rest[..space])
            && let LogicalPlan::TableScan(scan) = LogicalPlanNode::try_decode(&rest[space + 1..])?
                .try_into_logical_plan(context, &*self.inner)?
        {
            return Ok(Arc::new(IndexedTable::of(&*source_as_provider(&scan.source)?, self.index(index)?)?));
        }
        exec_err!("file index: these {} bytes of the table {name} are damaged", bytes.len())
    }

    inner! {
        try_decode(bytes: &[u8], inputs: &[LogicalPlan], context: &TaskContext) -> Extension;
        try_encode(node: &Extension, bytes: &mut Vec<u8>) -> ();
        try_decode_file_format(bytes: &[u8], context: &TaskContext) -> Arc<dyn FileFormatFactory>;
        try_encode_file_format(bytes: &mut Vec<u8>, format: Arc<dyn FileFormatFactory>) -> ();
        try_decode_udf(name: &str, bytes: &[u8]) -> Arc<ScalarUDF>;
        try_encode_udf(function: &ScalarUDF, bytes: &mut Vec<u8>) -> ();
        try_decode_higher_order_function(name: &str, bytes: &[u8]) -> Arc<HigherOrderUDF>;
        try_encode_higher_order_function(function: &HigherOrderUDF, bytes: &mut Vec<u8>) -> ();
        try_decode_udaf(name: &str, bytes: &[u8]) -> Arc<AggregateUDF>;
        try_encode_udaf(function: &AggregateUDF, bytes: &mut Vec<u8>) -> ();
        try_decode_udwf(name: &str, bytes: &[u8]) -> Arc<WindowUDF>;
        try_encode_udwf(function: &WindowUDF, bytes: &mut Vec<u8>) -> ();
    }
}
