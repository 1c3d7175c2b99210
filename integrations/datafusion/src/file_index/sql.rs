//! `bloom_index`, which makes an index and attaches it in SQL.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::prelude::SessionContext;
use datafusion_common::{Result, TableReference, plan_datafusion_err, plan_err};
use datafusion_expr::{Expr, TableType};
use futures::stream;

use super::builder::{FileIndexBuilder, FileIndexReport};
use super::catalog::attach;

/// Registers the table function `bloom_index`. `SELECT * FROM bloom_index('logs', 'logs.index', 'trace_id')` makes or
/// updates the index of one or several columns with [`FileIndexBuilder`], attaches it to the table, and returns the
/// counts of its [report](FileIndexReport). Without columns, it attaches an index that is there.
pub fn register_file_index(context: &SessionContext) {
    context.register_udtf("bloom_index", Arc::new(BloomIndex));
}

#[derive(Debug)]
struct BloomIndex;

impl TableFunctionImpl for BloomIndex {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let text = |expr: &Expr| match expr {
            Expr::Literal(value, _) => value.try_as_str().flatten().map(str::to_owned),
            _ => None,
        };
        let usage = || {
            plan_datafusion_err!(
                "bloom_index: write bloom_index('TABLE', 'INDEX', 'COLUMN', …), or no columns to attach"
            )
        };
        let texts = args.exprs().iter().map(text).collect::<Option<Vec<_>>>().ok_or_else(usage)?;
        let [table, index, columns @ ..] = &texts[..] else { return Err(usage()) };
        let columns = columns.to_vec();
        Ok(Arc::new(Call { table: TableReference::parse_str(table), index: index.clone(), columns }))
    }
}

/// A call of the function, as a table.
#[derive(Clone, Debug)]
struct Call {
    table: TableReference,
    index: String,
    columns: Vec<String>,
}

const COUNTS: [&str; 6] = ["files", "read", "dropped", "unread", "keys", "bytes"];

impl Call {
    fn columns() -> SchemaRef {
        let count = |name| Field::new(name, DataType::UInt64, true);
        let mut fields = COUNTS.map(count).to_vec();
        fields.push(Field::new("first_error", DataType::Utf8, true));
        Arc::new(Schema::new(fields))
    }

    async fn run(self, state: SessionState) -> Result<RecordBatch> {
        let (mut counts, mut first_error) = ([None; COUNTS.len()], None);
        if self.columns.is_empty() {
            let (files, bytes) = attach(&state, &self.table, &self.index).await?;
            (counts[0], counts[5]) = (Some(files as u64), Some(bytes));
        } else {
            let builder = FileIndexBuilder::new(self.columns);
            let report = builder.build_in(&state, &self.table, &self.index).await?;
            let FileIndexReport { files, read, dropped, unread, keys, bytes } = report;
            counts = [files as u64, read as u64, dropped as u64, unread.len() as u64, keys, bytes].map(Some);
            first_error = unread.into_iter().map(|(path, error)| format!("{path}: {error}")).next();
        }
        let mut columns = counts.map(|count| Arc::new(UInt64Array::from(vec![count])) as ArrayRef).to_vec();
        columns.push(Arc::new(StringArray::from(vec![first_error])));
        Ok(RecordBatch::try_new(Self::columns(), columns)?)
    }
}

#[async_trait]
impl TableProvider for Call {
    fn schema(&self) -> SchemaRef {
        Self::columns()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(state) = session.as_any().downcast_ref::<SessionState>() else {
            return plan_err!("bloom_index: it cannot run in another process than the one that plans it");
        };
        let run = Run { call: self.clone(), state: state.clone(), schema: Self::columns() };
        let plan =
            StreamingTableExec::try_new(Self::columns(), vec![Arc::new(run)], projection, [], false, limit)?;
        Ok(Arc::new(plan))
    }
}

/// Runs a call when the plan runs, and not in `EXPLAIN`.
struct Run {
    call: Call,
    state: SessionState,
    schema: SchemaRef,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}

impl PartitionStream for Run {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let run = self.call.clone().run(self.state.clone());
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream::once(run)))
    }
}
