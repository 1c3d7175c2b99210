//! Joins that filter themselves. A rule for the planner puts a Bloom filter of a join's smaller side in front of its
//! larger side, before rows are shuffled.
//!
//! The filter may drop only rows that surely have no partner, but it may keep all rows at any time. It does so if it
//! would be too large, if memory is short, and if it drops too few rows.

mod build;
mod codec;
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
use datafusion::prelude::SessionContext;
use datafusion_common::{Result, plan_datafusion_err};
use datafusion_expr::LogicalPlan;

pub use build::JoinFilterBuildExec;
use build::Plan;
pub use codec::JoinFilterCodec;
pub use options::{BloomlineOptions, JoinFilterOptions};
pub use probe::JoinFilterExec;
use rule::JoinFilters;

/// Makes a session's joins filter themselves, as the README describes. The session forgets its prepared statements.
/// Call it again if something replaces the session's planner.
pub fn register_join_filters(context: &SessionContext) {
    let state = context.state_ref();
    let mut state = state.write();
    *state = with_join_filters(state.clone());
}

/// Returns the session with joins that filter themselves, for a Ballista scheduler's session builder. Executors and
/// scheduler also need [`JoinFilterCodec`], because they send each other plans with these operators.
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

/// A copy of a session to change. It keeps the id, because Ballista knows the session by it. DataFusion's own copies
/// get a new one.
fn same_session(state: SessionState) -> SessionStateBuilder {
    let id = state.session_id().to_owned();
    SessionStateBuilder::new_from_existing(state).with_session_id(id)
}

/// Runs the rule before all others. The session's own list of rules would not do, because Ballista replaces it.
#[derive(Debug)]
struct Planner {
    inner: Arc<dyn QueryPlanner + Send + Sync>,
}

#[async_trait::async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Plan> {
        let state = session.as_any().downcast_ref::<SessionState>().ok_or_else(|| {
            plan_datafusion_err!("join filters: the session is not one of DataFusion's own")
        })?;
        let mut rules = state.physical_optimizers().to_vec();
        rules.retain(|rule| rule.name() != JoinFilters.name());
        rules.insert(0, Arc::new(JoinFilters));
        let state = same_session(state.clone()).with_physical_optimizer_rules(rules).build();
        self.inner.create_physical_plan(plan, &state).await
    }
}
