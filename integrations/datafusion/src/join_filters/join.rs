//! `FilteredJoin` stands for a join in the final plan, and tells what became of its filter.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{OrderingRequirements, PhysicalExprRef};
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::proto::ExecutionPlanEncodeCtx;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties,
    Statistics, StatisticsArgs,
};
use datafusion_common::Result;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::StreamExt;

use super::filter::Plan;
use super::probe::{JoinFilterExec, Keys};
use super::tap::{JoinFilterTapExec, Link};

/// The join itself in all but two respects: `EXPLAIN` tells why it has no filter, and if it has one, the filter's two
/// operators get a link of their own wherever the plan is changed or reset.
#[derive(Debug)]
pub struct FilteredJoin {
    join: Plan,
    /// Or why there is none.
    link: Result<Arc<Link>, String>,
}

impl FilteredJoin {
    pub fn of(join: Plan, link: Result<Arc<Link>, String>) -> Plan {
        Arc::new(Self { join, link })
    }

    /// The same with another join, which has the children of this one in another state. All joins below get new links
    /// in the same pass, because each of them would otherwise start one of its own.
    fn with(&self, join: Plan) -> Result<Plan> {
        let mut links = HashMap::new();
        let children =
            join.children().into_iter().map(|child| linked(child, &mut links)).collect::<Result<_>>()?;
        let link = self.link.as_ref().map(|old| renewed(old, &mut links)).map_err(Clone::clone);
        Ok(Self::of(replace_children_if_necessary(join, children)?, link))
    }
}

/// The new link of each join.
type Links = HashMap<*const (), Arc<Link>>;

fn renewed(old: &Link, links: &mut Links) -> Arc<Link> {
    Arc::clone(links.entry(old.join()).or_insert_with(|| old.renewed()))
}

/// A plan whose filters have new links.
fn linked(plan: &Plan, links: &mut Links) -> Result<Plan> {
    let children =
        plan.children().into_iter().map(|child| linked(child, links)).collect::<Result<Vec<_>>>()?;
    let joined = (plan.as_ref() as &dyn Any).downcast_ref::<FilteredJoin>();
    if let Some(FilteredJoin { join, link: Ok(old) }) = joined {
        let join = replace_children_if_necessary(Arc::clone(join), children)?;
        return Ok(FilteredJoin::of(join, Ok(renewed(old, links))));
    }
    let plan = replace_children_if_necessary(Arc::clone(plan), children)?;
    Ok(if let Some(tap) = plan.downcast_ref::<JoinFilterTapExec>() {
        tap.with_link(&renewed(&tap.link, links))
    } else if let Some(filter) = plan.downcast_ref::<JoinFilterExec>()
        && let Keys::Tap(old) = &filter.keys
    {
        filter.with_keys(Keys::Tap(renewed(old, links)))
    } else {
        plan
    })
}

impl DisplayAs for FilteredJoin {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        self.join.fmt_as(format, f)?;
        match (&self.link, format) {
            (Ok(_), _) => Ok(()),
            (Err(reason), DisplayFormatType::TreeRender) => writeln!(f, "no_join_filter={reason}"),
            (Err(reason), _) => write!(f, ", no_join_filter=[{reason}]"),
        }
    }
}

impl ExecutionPlan for FilteredJoin {
    fn name(&self) -> &str {
        self.join.name()
    }

    fn downcast_delegate(&self) -> Option<&dyn ExecutionPlan> {
        Some(&*self.join)
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.join.properties()
    }

    fn children(&self) -> Vec<&Plan> {
        self.join.children()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        self.with(replace_children_if_necessary(Arc::clone(&self.join), children)?)
    }

    fn reset_state(self: Arc<Self>) -> Result<Plan> {
        self.with(Arc::clone(&self.join).reset_state()?)
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&PhysicalExprRef) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.join.apply_expressions(f)
    }

    fn dynamic_expressions_produced(&self) -> Vec<PhysicalExprRef> {
        self.join.dynamic_expressions_produced()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.join.input_distribution_requirements()
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        self.join.required_input_ordering()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.join.maintains_input_order()
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.join.child_stats_requests(partition)
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        arguments: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.join.statistics_from_inputs(inputs, arguments)
    }

    fn fetch(&self) -> Option<usize> {
        self.join.fetch()
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.join.metrics()
    }

    fn try_to_proto(&self, context: &ExecutionPlanEncodeCtx<'_>) -> Result<Option<PhysicalPlanNode>> {
        context.encode_child(&self.join).map(Some)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Ok(link) = &self.link else { return self.join.execute(partition, context) };
        // Until the end, because a partition of the tap may end before other operators have begun.
        let run = link.run();
        let rows = self.join.execute(partition, context)?.inspect(move |_| _ = &run);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
