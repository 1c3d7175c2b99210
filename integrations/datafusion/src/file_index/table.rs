//! A table that asks an index which of its files to read.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{ScanArgs, ScanResult, Session, TableProvider};
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::SessionState;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_common::stats::Precision;
use datafusion_common::{Constraints, Result, Statistics, plan_err};
use datafusion_expr::dml::InsertOp;
use datafusion_expr::{Expr, TableProviderFilterPushDown, TableType};

use super::asked::{Asked, may_ask};
use super::columns::Files;
use super::index_file::{Answer, IndexFile};
use super::late::LateIndex;
use super::listed::{config_of, list};
use super::source::{IndexedSource, Planned};

/// A [`ListingTable`] whose queries ask an index which files to read. Results are those of the table, because a file is
/// left out only if the index knows it by its size, time and ETag, and definitely has no row that the query needs.
///
/// A query asks while it is planned if its `WHERE` has `column = value` or `column IN (values)` for a column of the index,
/// alone, in an `AND` with anything, or in an `OR` of such conditions. The files of a hash join are asked for before each
/// is opened, if the join has at most `datafusion.optimizer.hash_join_inlist_pushdown_max_distinct_values` keys, which
/// are 150 by default, of `hash_join_inlist_pushdown_max_size` bytes of memory, which are 128 KiB, in each partition. All
/// other queries run as on the table.
///
/// If the index is missing or damaged, all files are read, and the log has a warning.
#[derive(Debug)]
pub struct IndexedTable {
    table: ListingTable,
    index: Arc<IndexFile>,
}

impl IndexedTable {
    /// Queries of `table` ask the index at this path or URL, whose object store must be registered in the session that
    /// runs them. The index is read by the first query that asks it. It replaces an index that the table already has.
    ///
    /// # Errors
    ///
    /// If `table` is neither a [`ListingTable`] nor an `IndexedTable`, or `index` is a folder or a pattern.
    pub fn new(table: &dyn TableProvider, index: &str) -> Result<Self> {
        Self::of(table, Arc::new(IndexFile::new(index)?))
    }

    pub(super) fn of(table: &dyn TableProvider, index: Arc<IndexFile>) -> Result<Self> {
        Ok(Self { table: listing(table)?.clone(), index })
    }

    /// The table without the index.
    pub fn table(&self) -> &ListingTable {
        &self.table
    }

    /// Opens the index, and checks that it is of columns of the table. Returns its number of files and of bytes.
    pub(super) async fn check(&self, state: &SessionState) -> Result<(usize, u64)> {
        let files = Files::of(&self.table, state.config_options())?;
        self.index.check(state.runtime_env(), &files).await
    }

    /// The URL of the index.
    pub fn index(&self) -> &str {
        self.index.url()
    }

    /// The scan of the files that the index does not leave out, and what it answered. `None` if it is not asked.
    async fn few(
        &self,
        session: &dyn Session,
        args: &ScanArgs<'_>,
        files: &Files,
    ) -> Result<Option<(FileScanConfig, Answer, [usize; 2])>> {
        let Some(state) = session.as_any().downcast_ref::<SessionState>() else { return Ok(None) };
        let filters = args.filters().unwrap_or_default();
        if !filters.iter().any(may_ask) {
            return Ok(None);
        }
        let schema = self.table.schema();
        let ask = |columns: &_| Asked::of_filters(filters, columns, files);
        let Some(answer) = self.index.ask(state.runtime_env(), &ask).await else { return Ok(None) };
        let Some(all) = list(&self.table, state, args.clone()).await? else { return Ok(None) };
        let number = |groups: &[FileGroup]| groups.iter().map(FileGroup::len).sum();
        let mut bytes = 0;
        let keep = |group: &FileGroup| {
            let files = group.files().iter().filter(|file| answer.keeps(&file.object_meta));
            FileGroup::new(files.inspect(|file| bytes += file.object_meta.size as usize).cloned().collect())
        };
        let mut groups: Vec<_> = all.file_groups.iter().map(keep).collect();
        let counts = [number(&groups), number(&all.file_groups)];
        // If the groups are declared partitions, a file's group tells which rows it has.
        if all.output_partitioning.is_none() {
            let files = groups.into_iter().flat_map(FileGroup::into_inner).collect();
            groups = FileGroup::new(files).split_files(state.config().target_partitions());
            groups.resize_with(groups.len().max(1), || FileGroup::new(Vec::new()));
        }
        // Joins are planned by it.
        let statistics = Statistics::new_unknown(&schema).with_total_byte_size(Precision::Inexact(bytes));
        let few =
            FileScanConfigBuilder::from(all).with_file_groups(groups).with_statistics(statistics).build();
        Ok(Some((few, answer, counts)))
    }
}

/// The table, without its index if it has one.
pub fn listing(table: &dyn TableProvider) -> Result<&ListingTable> {
    if let Some(indexed) = table.downcast_ref::<IndexedTable>() {
        return Ok(&indexed.table);
    }
    match table.downcast_ref::<ListingTable>() {
        Some(listing) => Ok(listing),
        None => plan_err!("file index: only tables of files can have an index (CREATE EXTERNAL TABLE)"),
    }
}

#[async_trait]
impl TableProvider for IndexedTable {
    async fn scan_with_args<'a>(&self, session: &dyn Session, args: ScanArgs<'a>) -> Result<ScanResult> {
        let files = Files::of(&self.table, session.config_options())?;
        let (config, answer) = match self.few(session, &args, &files).await? {
            Some((config, answer, counts)) => (config, Some((answer, counts))),
            None => {
                let plan = self.table.scan_with_args(session, args).await?.into_inner();
                match config_of(plan) {
                    Ok(config) => (config, None),
                    Err(plan) => return Ok(ScanResult::new(plan)),
                }
            }
        };
        let inner = Arc::clone(config.file_source());
        let planned = answer.map(|(answer, counts)| Planned::new(answer, counts, inner.metrics()));
        let index = LateIndex::new(Arc::clone(&self.index), Arc::clone(session.runtime_env()), files);
        let source = IndexedSource { inner, index: Arc::new(index), planned };
        let config = FileScanConfigBuilder::from(config).with_source(Arc::new(source)).build();
        Ok(ScanResult::new(DataSourceExec::from_data_source(config)))
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let args = ScanArgs::default()
            .with_projection(projection.map(Vec::as_slice))
            .with_filters(Some(filters))
            .with_limit(limit);
        Ok(self.scan_with_args(session, args).await?.into_inner())
    }

    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.table.constraints()
    }

    fn table_type(&self) -> TableType {
        self.table.table_type()
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.table.get_table_definition()
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.table.get_column_default(column)
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.table.supports_filters_pushdown(filters)
    }

    fn statistics(&self) -> Option<Statistics> {
        self.table.statistics()
    }

    async fn insert_into(
        &self,
        session: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        operation: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.table.insert_into(session, input, operation).await
    }
}
