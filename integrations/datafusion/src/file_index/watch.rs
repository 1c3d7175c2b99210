//! Counts the files of which the index said that they possibly have rows, but that have none.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::{ProjectionExpr, ProjectionExprs};
use datafusion::physical_plan::metrics::Gauge;
use datafusion_common::Result;
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use object_store::path::Path;

use super::asked::Asked;
use super::columns::{Columns, add_hashes};

/// What a scan looks for.
#[derive(Debug)]
pub struct Sought {
    asked: Asked,
    hashes: HashSet<u64>,
    columns: Columns,
    /// For each file that was read to its end, whether it had a row. A file can be read in several ranges.
    files: Mutex<HashMap<Path, bool>>,
    without_rows: Gauge,
}

impl Sought {
    pub fn new(asked: Asked, columns: Columns, without_rows: Gauge) -> Self {
        let mut hashes = HashSet::new();
        asked.hashes(&mut |hash| _ = hashes.insert(hash));
        Self { asked, hashes, columns, files: Mutex::default(), without_rows }
    }

    /// Of each column of the index, the position in rows of the table, or of this projection of them.
    pub fn positions(&self, table: &Schema, projection: Option<&ProjectionExprs>) -> Arc<[Option<usize>]> {
        let position = |name: &str| {
            let index = table.index_of(name).ok()?;
            let Some(projection) = projection else { return Some(index) };
            let is_column = |expr: &ProjectionExpr| {
                expr.expr.downcast_ref::<Column>().is_some_and(|column| column.index() == index)
            };
            projection.iter().position(is_column)
        };
        self.columns.names().map(position).collect()
    }

    fn ended(&self, path: &Path, has_row: bool) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        match files.get_mut(path) {
            None => {
                files.insert(path.clone(), has_row);
                self.without_rows.add(usize::from(!has_row));
            }
            Some(had) => {
                self.without_rows.sub(usize::from(has_row && !*had));
                *had |= has_row;
            }
        }
    }
}

/// A range of a file.
#[derive(Debug)]
struct Watched {
    sought: Arc<Sought>,
    path: Path,
    positions: Arc<[Option<usize>]>,
    found: Mutex<HashSet<u64>>,
    has_row: AtomicBool,
    /// Whether it was not read to its end, for example because of a `LIMIT`.
    is_cut: AtomicBool,
}

impl Watched {
    fn look_at(&self, batch: &RecordBatch) {
        if self.has_row.load(Relaxed) || batch.num_rows() == 0 {
            return;
        }
        let Sought { asked, hashes, columns, .. } = &*self.sought;
        let mut keys = Vec::new();
        let values = self.positions.iter().map(|position| batch.columns().get((*position)?));
        let is_hashed = values.enumerate().all(|(column, values)| {
            values.is_none_or(|values| add_hashes(values, columns.seed(column), &mut keys).is_ok())
        });
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.extend(keys.into_iter().filter(|hash| hashes.contains(hash)));
        // A column that the scan does not return can have any key.
        let has_key = |column: usize, keys: &[u64]| {
            self.positions[column].is_none() || keys.iter().any(|key| found.contains(key))
        };
        let both = |all, one, other| if all { one && other } else { one || other };
        if !is_hashed || asked.evaluate(&has_key, &both) {
            self.has_row.store(true, Relaxed);
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !*self.is_cut.get_mut() {
            self.sought.ended(&self.path, *self.has_row.get_mut());
        }
    }
}

/// A part of the work on a range of a file.
#[derive(Debug)]
struct Part<T> {
    work: Option<T>,
    range: Arc<Watched>,
}

impl<T> Part<T> {
    fn new(work: T, range: &Arc<Watched>) -> Self {
        Self { work: Some(work), range: Arc::clone(range) }
    }
}

impl<T> Drop for Part<T> {
    fn drop(&mut self) {
        if self.work.is_some() {
            self.range.is_cut.store(true, Relaxed);
        }
    }
}

/// Reads files as `inner` does, and looks at their rows.
#[derive(Debug)]
pub struct Watch {
    pub inner: Box<dyn Morselizer>,
    pub sought: Arc<Sought>,
    /// Of each column of the index, the position in the rows that are read.
    pub positions: Arc<[Option<usize>]>,
}

impl Morselizer for Watch {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        let range = Arc::new(Watched {
            sought: Arc::clone(&self.sought),
            path: file.object_meta.location.clone(),
            positions: Arc::clone(&self.positions),
            found: Mutex::default(),
            has_row: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
        });
        Ok(Box::new(Part::new(self.inner.plan_file(file)?, &range)))
    }
}

impl MorselPlanner for Part<Box<dyn MorselPlanner>> {
    fn plan(mut self: Box<Self>) -> Result<Option<MorselPlan>> {
        let range = Arc::clone(&self.range);
        let planner = self.work.take().expect("it is planned once");
        let Some(mut plan) = planner.plan()? else { return Ok(None) };
        let morsels = plan.take_morsels().into_iter();
        let morsels = morsels.map(|morsel| Box::new(Part::new(morsel, &range)) as Box<dyn Morsel>).collect();
        let planners = plan.take_ready_planners().into_iter();
        let planners =
            planners.map(|planner| Box::new(Part::new(planner, &range)) as Box<dyn MorselPlanner>).collect();
        let mut watched = MorselPlan::new().with_morsels(morsels).with_planners(planners);
        if let Some(pending) = plan.take_pending_planner() {
            let mut waiting = Part::new((), &range);
            watched.set_pending_planner(async move {
                let planner = pending.await?;
                waiting.work.take();
                Ok(Box::new(Part::new(planner, &waiting.range)) as Box<dyn MorselPlanner>)
            });
        }
        Ok(Some(watched))
    }
}

impl Morsel for Part<Box<dyn Morsel>> {
    fn into_stream(mut self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        let stream = self.work.take().expect("it is read once").into_stream();
        let reading = Part::new(stream, &self.range);
        let next = async |mut reading: Part<BoxStream<'static, Result<RecordBatch>>>| {
            let batch = reading.work.as_mut()?.next().await;
            match &batch {
                None => _ = reading.work.take(),
                Some(Ok(batch)) => reading.range.look_at(batch),
                Some(Err(_)) => (),
            }
            batch.map(|batch| (batch, reading))
        };
        stream::unfold(reading, next).boxed()
    }
}
