//! Joins that filter themselves. A rule for the planner puts a Bloom filter of a join's smaller side in front of its
//! larger side, before rows are shuffled.
//!
//! # Why no result changes
//!
//! 1. Rows are dropped only from a side of a join whose rows without a partner are in no result (`Join::may_drop`), by
//!    keys for which null has no partner.
//! 2. The filter has the keys of all rows of the other side, and maybe more. It reads them below the operators that
//!    `descend` passes, which add no keys, from a table that returns the same rows again (`reads_one_table`). If a file
//!    is not the one that was planned with, there is no filter (`are_unchanged`). But no operator can see that a file
//!    is replaced after the filter has read it and before the join does, so the README warns of it.
//! 3. Keys that are equal for the join have one hash. Both sides have one type, but for casts that change no hash
//!    (`widens`), and only types of which equal values have equal bits are hashed (`stored_type`).
//! 4. Rows may be dropped far below the join, because each operator between treats a row alone, or together with rows
//!    of its key only (`descend`).
//! 5. A Bloom filter never misses a key, and all rows are kept if there is no filter.
//!
//! # Why no query fails
//!
//! Whatever goes wrong with the keys is a `Reason` for no filter. The keys take at most an eighth of a limited pool,
//! while half of it is free, and a finished filter is not counted in it. If the filtered rows fail, the rows before the
//! error are returned first, because a limit may end the query there. If the planner cannot add a filter, the join
//! stays as it is.

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
use datafusion_common::Result;
use datafusion_common::tree_node::TreeNodeRecursion;
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
    let inner = Arc::clone(state.query_planner());
    if (inner.as_ref() as &dyn Any).is::<Planner>() {
        return state;
    }
    let mut session = same_session(state).with_query_planner(Arc::new(Planner { inner }));
    // Not `with_config` of a copy, by which the session would forget its tables.
    let extensions = &mut session.config().get_or_insert_default().options_mut().extensions;
    if extensions.get::<BloomlineOptions>().is_none() {
        extensions.insert(BloomlineOptions::default());
    }
    session.build()
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
        let state = session.as_any().downcast_ref::<SessionState>();
        let Some(state) =
            state.filter(|state| JoinFilters::options(state.config_options()).is_some() && joins(plan))
        else {
            return self.inner.create_physical_plan(plan, session).await;
        };
        let mut rules = state.physical_optimizers().to_vec();
        rules.retain(|rule| rule.name() != JoinFilters.name());
        rules.insert(0, Arc::new(JoinFilters));
        let state = same_session(state.clone()).with_physical_optimizer_rules(rules).build();
        self.inner.create_physical_plan(plan, &state).await
    }
}

/// Whether a plan joins. A copy of the session costs more than all else here, so only such plans get one.
fn joins(plan: &LogicalPlan) -> bool {
    let mut joins = false;
    let visited = plan.apply_with_subqueries(|node| {
        joins |= matches!(node, LogicalPlan::Join(_));
        Ok(if joins { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    joins || visited.is_err()
}
