//! Bloom filters in SQL, for DataFusion and Ballista.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_expr::registry::FunctionRegistry;
use datafusion_expr::{AggregateUDF, ScalarUDF};

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
    vec![]
}

/// The aggregate functions.
pub fn aggregate_functions() -> Vec<Arc<AggregateUDF>> {
    vec![]
}
