//! Bloom filters in SQL, for [DataFusion](https://datafusion.apache.org) and
//! [Ballista](https://datafusion.apache.org/ballista/).
//!
//! The README lists the functions, and says which keys they take, how filters reach a query, and what they cost. A filter
//! is a binary value with the standalone bytes of a [`BloomFilter`], which all packages read and write.
//!
//! ```
//! use datafusion::prelude::SessionContext;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> datafusion::error::Result<()> {
//! let mut context = SessionContext::new();
//! bloomline_datafusion::register_all(&mut context)?;
//! let frame = context
//!     .sql(
//!         "WITH crawled(url) AS (VALUES ('a.org'), ('b.org')),
//!               wanted AS (SELECT bloom_filter(url, 1000, 0.01) AS filter FROM crawled)
//!          SELECT bloom_contains(filter, 'b.org') AS b, bloom_contains(filter, 'c.org') AS c FROM wanted",
//!     )
//!     .await?;
//! datafusion::assert_batches_eq!(
//!     ["+------+-------+", "| b    | c     |", "+------+-------+", "| true | false |", "+------+-------+"],
//!     &frame.collect().await?
//! );
//! # Ok(())
//! # }
//! ```
//!
//! # In plans
//!
//! Each partition builds a filter of the full size from its first key on, and with `GROUP BY` one for each group.
//! DataFusion's memory pool is told after the allocation, so a query can exceed its limit by the filters of one batch
//! before it spills or fails.
//!
//! In `OVER (…)`, SQL's planner replaces the aggregates by `bloom_filter_in_window` and `bloom_filter_union_in_window`.
//! They return BinaryView, because DataFusion gathers their results in one array, and panics if an array of Binary
//! exceeds 2 GiB. If you build window expressions without SQL, use these functions, and instead of a filter on the window,
//! which DataFusion 55.2 leaves out of plans that it sends to other processes, make the keys null.
//!
//! `bloom_contains` rewrites its first argument while a query is planned, so that the filter is not copied for each row.
//! `EXPLAIN` then shows the internal function `bloom_reference`, which checks a filter once and returns a struct that
//! DataFusion passes on by reference. DataFusion moves it below joins if its argument is a column.

mod aggregates;
mod arguments;
mod contains;
#[cfg(feature = "file-index")]
mod file_index;
mod filters;
mod inspect;
#[cfg(feature = "join-filters")]
mod join_filters;
mod keys;
mod reference;
mod registered;
#[cfg(feature = "join-filters")]
mod row_keys;
#[cfg(feature = "join-filters")]
mod snapshot;
#[cfg(any(feature = "file-index", feature = "join-filters"))]
mod stored_keys;

use std::sync::Arc;

use bloomline::BloomFilter;
use datafusion_common::{Result, plan_err};
use datafusion_expr::registry::FunctionRegistry;
use datafusion_expr::{AggregateUDF, ScalarUDF};

#[cfg(feature = "file-index")]
pub use file_index::{
    FileIndexBuilder, FileIndexCodec, FileIndexReport, IndexedTable, Others, attach_index,
    register_file_index,
};
#[cfg(feature = "join-filters")]
pub use join_filters::{
    BloomlineOptions, JoinFilterBuildExec, JoinFilterCodec, JoinFilterExec, JoinFilterOptions,
    JoinFilterPlanner, JoinFilterTapExec, JoinFilters,
};

use aggregates::{Build, InWindow, Planner, Union};
use contains::Contains;
use inspect::{Inspect, What};
use reference::Reference;
use registered::Names;

/// Registers all functions, under their names in SQL. On Ballista, the client, the scheduler and each executor need
/// them. A second call keeps the registered filters.
///
/// # Errors
///
/// If the registry accepts no functions.
pub fn register_all(registry: &mut dyn FunctionRegistry) -> Result<()> {
    // Views hold the function that holds the filters.
    let has_names = names(registry).is_some();
    for function in scalar_functions() {
        if !(has_names && function.name() == contains::NAME) {
            registry.register_udf(function)?;
        }
    }
    for function in aggregate_functions() {
        registry.register_udaf(function)?;
    }
    // A registry that plans no SQL has no planners.
    let _ = registry.register_expr_planner(Arc::new(Planner));
    Ok(())
}

/// Registers a filter under a name. After `register_filter(&context, "crawled", filter)`, SQL looks keys up in this
/// filter with `bloom_contains('crawled', url)`. Replaces the filter that had the name. Names are case-sensitive.
///
/// Plans carry the name and a hash of the filter, not its bytes. So every process that plans or runs the query needs
/// the filter, and returns an error if it has none or a different one of this name. A planned query keeps its filter.
/// Call [`register_all`] first.
///
/// # Errors
///
/// If the registry lacks this crate's functions.
pub fn register_filter(
    registry: &dyn FunctionRegistry,
    name: impl Into<String>,
    filter: impl Into<Arc<BloomFilter>>,
) -> Result<()> {
    match names(registry) {
        Some(names) => names.insert("register_filter", name.into(), filter.into()),
        None => plan_err!("register_filter: call register_all on this registry first"),
    }
}

/// Makes errors about registered filters say which process lacks one, such as `"executor host:50051"`, and how it gets
/// one, such as `"start it with --filter NAME=FILE"`. Call [`register_all`] first.
///
/// # Errors
///
/// If the registry lacks this crate's functions.
pub fn name_process(
    registry: &dyn FunctionRegistry,
    process: impl Into<String>,
    remedy: impl Into<String>,
) -> Result<()> {
    match names(registry) {
        Some(names) => names.name_process(process.into(), remedy.into()),
        None => return plan_err!("name_process: call register_all on this registry first"),
    }
    Ok(())
}

/// The registered filters of a registry with this crate's functions.
fn names(registry: &dyn FunctionRegistry) -> Option<Names> {
    let function = registry.udf(contains::NAME).ok()?;
    function.inner().downcast_ref().map(|contains: &Contains| contains.names().clone())
}

/// The scalar functions, for registries that are not a [`FunctionRegistry`], such as Ballista's.
pub fn scalar_functions() -> Vec<Arc<ScalarUDF>> {
    [
        ScalarUDF::from(Contains::new()),
        ScalarUDF::from(Reference::new()),
        ScalarUDF::from(Reference::in_place()),
        ScalarUDF::from(Inspect::new(What::EstimatedKeys)),
        ScalarUDF::from(Inspect::new(What::EstimatedFpr)),
        ScalarUDF::from(Inspect::new(What::Fold)),
    ]
    .map(Arc::new)
    .into()
}

/// The aggregates, for registries that are not a [`FunctionRegistry`], such as Ballista's.
pub fn aggregate_functions() -> Vec<Arc<AggregateUDF>> {
    let aggregates = [AggregateUDF::from(Build::new()), AggregateUDF::from(Union::new())];
    let in_windows = aggregates.clone().map(|aggregate| AggregateUDF::from(InWindow::of(aggregate)));
    aggregates.into_iter().chain(in_windows).map(Arc::new).collect()
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
