//! Joins that filter themselves. A Bloom filter of the keys of one side drops rows of the other side.
//!
//! In one process, a join reads one side to its end before it asks the other. [`JoinFilters`] changes the final plan: a
//! `JoinFilterTapExec` hashes the keys on their way to the join, and a `JoinFilterExec` on the other side has a filter
//! once all of them have passed. On a cluster, both sides are shuffled at once. So [`JoinFilterPlanner`] adds a second
//! read of the smaller side, if its statistics promise that this pays.
//!
//! # Why no result changes
//!
//! 1. Rows are dropped only from a side of a join whose rows without a partner are in no result (`Join::may_drop`), by
//!    keys for which null has no partner.
//! 2. The filter has the keys of all rows of the other side, and maybe more. A tap sees the very rows that the join
//!    gets, and all rows are kept until all its partitions have ended. No other run sees its keys (`Link`). A second
//!    read takes the keys below the operators that `descend` passes, which add no keys, from a table that returns the
//!    same rows again (`reads_one_table`). If a file is not the one that was planned with, there is no filter
//!    (`are_unchanged`). But no operator can see that a file is replaced between the two reads, so the README warns.
//! 3. Keys that are equal for the join have one hash. Both sides have one type, but for casts that change no hash
//!    (`widens`), and only types of which equal values have equal bits are hashed (`stored_type`).
//! 4. Rows may be dropped far below the join, because each operator between treats a row alone, or together with rows
//!    of its key only (`descend`).
//! 5. A Bloom filter never misses a key, and all rows are kept if there is no filter.
//!
//! # Why no query fails
//!
//! Whatever goes wrong with the keys is a `Reason` for no filter. The keys take at most an eighth of a limited pool,
//! while half of it is free, and are not counted in it. If the filtered rows fail, the rows before the error are returned
//! first, because a limit may end the query there. If the planner cannot add a filter, the join stays as it is.

mod build;
mod codec;
mod filter;
mod join;
mod local;
mod options;
mod probe;
mod rule;
mod tap;
mod trace;

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion_common::Result;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_expr::LogicalPlan;

pub use build::JoinFilterBuildExec;
pub use codec::JoinFilterCodec;
use filter::Plan;
pub use local::JoinFilters;
pub use options::{BloomlineOptions, JoinFilterOptions};
pub use probe::JoinFilterExec;
use rule::ShuffledJoinFilters;
pub use tap::JoinFilterTapExec;

/// Makes joins filter themselves on a Ballista cluster. It is the query planner of the session in which the scheduler
/// plans, as the README of `ballista` shows. Scheduler and executors also need [`JoinFilterCodec`], because they send each
/// other plans with these operators.
// It runs the rule before all others. The session's own list of rules would not do, because Ballista replaces it.
#[derive(Debug)]
pub struct JoinFilterPlanner {
    inner: Arc<dyn QueryPlanner + Send + Sync>,
}

impl JoinFilterPlanner {
    /// Plans as `inner` does.
    pub fn new(inner: Arc<dyn QueryPlanner + Send + Sync>) -> Self {
        Self { inner }
    }
}

#[async_trait::async_trait]
impl QueryPlanner for JoinFilterPlanner {
    async fn create_physical_plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Plan> {
        let state = session.as_any().downcast_ref::<SessionState>();
        let Some(state) = state
            .filter(|state| ShuffledJoinFilters::options(state.config_options()).is_some() && joins(plan))
        else {
            return self.inner.create_physical_plan(plan, session).await;
        };
        let mut rules = state.physical_optimizers().to_vec();
        rules.insert(0, Arc::new(ShuffledJoinFilters));
        // Ballista knows the session by its id.
        let state = SessionStateBuilder::new_from_existing(state.clone())
            .with_session_id(state.session_id().to_owned())
            .with_physical_optimizer_rules(rules)
            .build();
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
