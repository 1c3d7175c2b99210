//! The source of a scan that asked an index, which shows what the index answered.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource};
use datafusion::physical_expr::expressions::DynamicFilterTracking;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::filter_pushdown::FilterPushdownPropagation;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricValue, Time};
use datafusion::physical_plan::proto::ExecutionPlanEncodeCtx;
use datafusion::physical_plan::{DisplayFormatType, SortOrderPushdownResult};
use datafusion_common::Result;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_datasource::PartitionedFile;
use datafusion_datasource::morsel::Morselizer;
use datafusion_datasource::table_schema::TableSchema;
use datafusion_proto::protobuf::PhysicalPlanNode;
use object_store::ObjectStore;

use super::index_file::Answer;
use super::late::{Late, LateIndex, SharedLate};
use super::watch::{Sought, Watch};

/// Reads as the source within does. In a plan that is sent to another process, only that one travels.
#[derive(Clone)]
pub struct IndexedSource {
    pub inner: Arc<dyn FileSource>,
    pub index: Arc<LateIndex>,
    pub planned: Option<Planned>,
}

/// What the index answered when the query was planned.
#[derive(Clone)]
pub struct Planned {
    sought: Arc<Sought>,
    /// Such as "3 of 10,000 files".
    kept: Arc<str>,
}

impl Planned {
    pub fn new(answer: Answer, counts: [usize; 2], metrics: &ExecutionPlanMetricsSet) -> Self {
        let ([kept, all], metric) = (counts, || MetricBuilder::new(metrics));
        metric().global_counter(LOOKUPS).add(answer.lookups);
        metric().global_counter("index_bytes").add(answer.bytes as usize);
        let time = Time::new();
        time.add_duration(answer.time);
        metric().build(MetricValue::Time { name: "index_time".into(), time });
        let without_rows = metric().global_gauge("files_without_rows");
        let columns = answer.columns().clone();
        let kept = format!("{} of {} files", grouped(kept), grouped(all)).into();
        Self { sought: Arc::new(Sought::new(answer.asked, columns, without_rows)), kept }
    }
}

const LOOKUPS: &str = "index_lookups";

impl IndexedSource {
    /// The filter of the scan, if it has one that changes while the query runs.
    fn late_filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        let filter = self.inner.filter()?;
        DynamicFilterTracking::classify(&filter).contains_dynamic_filter().then_some(filter)
    }

    fn with(&self, inner: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
        Arc::new(Self { inner, ..self.clone() })
    }
}

/// With a comma before each three digits.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

impl FileSource for IndexedSource {
    fn create_morselizer(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        let mut inner = self.inner.create_morselizer(store, config, partition)?;
        if let Some(Planned { sought, .. }) = &self.planned {
            let positions = sought.positions(self.table_schema().table_schema(), self.projection());
            inner = Box::new(Watch { inner, sought: Arc::clone(sought), positions });
        }
        if let Some(filter) = self.late_filter() {
            let metric = |name| MetricBuilder::new(self.metrics()).counter(name, partition);
            inner = Box::new(SharedLate(Arc::new(Late {
                inner,
                index: Arc::clone(&self.index),
                filter,
                lookups: metric(LOOKUPS),
                left_out: metric("index_files_left_out"),
            })));
        }
        Ok(inner)
    }

    fn fmt_extra(&self, format: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let kept = self.planned.as_ref().map(|planned| &*planned.kept);
        if let Some(kept) = kept.or_else(|| self.late_filter().map(|_| "asked while it runs")) {
            match format {
                DisplayFormatType::TreeRender => writeln!(f, "index={kept}")?,
                _ => write!(f, ", index: {kept}")?,
            }
        }
        self.inner.fmt_extra(format, f)
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        self.with(self.inner.with_batch_size(batch_size))
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        options: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let FilterPushdownPropagation { filters, updated_node } =
            self.inner.try_pushdown_filters(filters, options)?;
        Ok(FilterPushdownPropagation { filters, updated_node: updated_node.map(|inner| self.with(inner)) })
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        properties: &EquivalenceProperties,
    ) -> Result<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        Ok(self.inner.try_pushdown_sort(order, properties)?.map(|inner| self.with(inner)))
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        Ok(self.inner.try_pushdown_projection(projection)?.map(|inner| self.with(inner)))
    }

    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        self.inner.create_file_opener(store, config, partition)
    }

    fn table_schema(&self) -> &TableSchema {
        self.inner.table_schema()
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.inner.filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.inner.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.inner.metrics()
    }

    fn file_type(&self) -> &str {
        self.inner.file_type()
    }

    fn supports_repartitioning(&self) -> bool {
        self.inner.supports_repartitioning()
    }

    fn repartitioned(
        &self,
        partitions: usize,
        least_bytes: usize,
        order: Option<LexOrdering>,
        config: &FileScanConfig,
    ) -> Result<Option<FileScanConfig>> {
        self.inner.repartitioned(partitions, least_bytes, order, config)
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        self.inner.reorder_files(files)
    }

    fn apply_expressions(
        &self,
        each: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.inner.apply_expressions(each)
    }

    fn try_to_proto(
        &self,
        config: &FileScanConfig,
        context: &ExecutionPlanEncodeCtx<'_>,
    ) -> Result<Option<PhysicalPlanNode>> {
        self.inner.try_to_proto(config, context)
    }
}
