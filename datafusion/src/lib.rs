//! Bloom filters in SQL, for DataFusion and Ballista.

mod aggregates;
mod contains;
mod filters;
mod inspect;
mod keys;
mod reference;

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_expr::registry::FunctionRegistry;
use datafusion_expr::{AggregateUDF, ScalarUDF};

use aggregates::{Build, Union};
use contains::Contains;
use inspect::{Inspect, What};
use reference::Reference;

/// Registers all functions.
///
/// # Errors
///
/// If the registry refuses a function.
pub fn register_all(registry: &mut dyn FunctionRegistry) -> Result<()> {
    for function in scalar_functions() {
        registry.register_udf(function)?;
    }
    for function in aggregate_functions() {
        registry.register_udaf(function)?;
    }
    Ok(())
}

/// The scalar functions.
pub fn scalar_functions() -> Vec<Arc<ScalarUDF>> {
    [
        ScalarUDF::from(Contains::new()),
        ScalarUDF::from(Reference::new()),
        ScalarUDF::from(Inspect::new(What::EstimatedKeys)),
        ScalarUDF::from(Inspect::new(What::EstimatedFpr)),
        ScalarUDF::from(Inspect::new(What::Fold)),
    ]
    .map(Arc::new)
    .into()
}

/// The aggregate functions.
pub fn aggregate_functions() -> Vec<Arc<AggregateUDF>> {
    [AggregateUDF::from(Build::new()), AggregateUDF::from(Union::new())].map(Arc::new).into()
}
