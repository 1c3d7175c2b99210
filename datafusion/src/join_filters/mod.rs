//! Joins that filter themselves: a rule for the planner that puts a Bloom filter of a join's smaller side in front of
//! its larger side, before rows are shuffled.
//!
//! The predicate means "drop rows that surely have no partner". So it may keep all rows at any time: if the filter
//! would be too large, if memory is short, and if too few rows are dropped.

mod build;
mod codec;
mod keys;
mod options;
mod probe;
mod rule;
mod trace;

use std::any::Any;
use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use datafusion_common::{Result, plan_datafusion_err};
use datafusion_expr::LogicalPlan;

pub use build::JoinFilterBuildExec;
pub use codec::JoinFilterCodec;
pub use options::{BloomlineOptions, JoinFilterOptions};
pub use probe::JoinFilterExec;
use rule::JoinFilters;

/// Has a session's joins filter themselves, as the README tells. The session forgets its prepared statements. Call it
/// again if something replaces the session's planner.
pub fn register_join_filters(context: &SessionContext) {
    let state = context.state_ref();
    let mut state = state.write();
    *state = with_join_filters(state.clone());
}

/// A session whose joins filter themselves, for a Ballista scheduler's session builder. Executors and scheduler also
/// need [`JoinFilterCodec`].
pub fn with_join_filters(state: SessionState) -> SessionState {
    let mut config = state.config().clone();
    if config.options().extensions.get::<BloomlineOptions>().is_none() {
        config.options_mut().extensions.insert(BloomlineOptions::default());
    }
    let inner = Arc::clone(state.query_planner());
    if (inner.as_ref() as &dyn Any).is::<Planner>() {
        return state;
    }
    let planner = Arc::new(Planner { inner });
    same_session(state).with_config(config).with_query_planner(planner).build()
}

/// A copy of a session to change. DataFusion's own has another id, by which Ballista knows the session.
fn same_session(state: SessionState) -> SessionStateBuilder {
    let id = state.session_id().to_owned();
    SessionStateBuilder::new_from_existing(state).with_session_id(id)
}

/// Runs the rule before all others. A rule in the session's list would not do: Ballista replaces that list.
#[derive(Debug)]
struct Planner {
    inner: Arc<dyn QueryPlanner + Send + Sync>,
}

#[async_trait::async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let state = session.as_any().downcast_ref::<SessionState>().ok_or_else(|| {
            plan_datafusion_err!("join filters: the session is not one of DataFusion's own")
        })?;
        let mut rules = state.physical_optimizers().to_vec();
        if !rules.iter().any(|rule| rule.name() == JoinFilters.name()) {
            rules.insert(0, Arc::new(JoinFilters));
        }
        let state = same_session(state.clone()).with_physical_optimizer_rules(rules).build();
        self.inner.create_physical_plan(plan, &state).await
    }
}
