//! The filter of a join's keys, and the reasons for none.

use std::sync::Arc;

use bloomline::BloomFilter;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, MetricType};
use datafusion_common::DataFusionError;

use super::options::JoinFilterOptions;

pub type Plan = Arc<dyn ExecutionPlan>;

/// Why there is no filter, by the name that `EXPLAIN ANALYZE` shows.
pub type Reason = &'static str;
pub const TOO_MANY_KEYS: Reason = "too_many_keys";
pub const OUT_OF_MEMORY: Reason = "out_of_memory";

#[derive(Debug)]
pub struct Filter {
    pub bits: BloomFilter,
    _memory: MemoryReservation,
}

impl Filter {
    /// The filter of all hashes.
    pub fn of(
        hashes: &[&[u64]],
        options: &JoinFilterOptions,
        pool: &Arc<dyn MemoryPool>,
    ) -> Result<Arc<Self>, Reason> {
        let memory = MemoryConsumer::new("JoinFilterExec").register(pool);
        let n_keys = hashes.iter().map(|hashes| hashes.len()).sum();
        let sizing = options.sizing(n_keys).map_err(|_| "invalid_options")?;
        reserve(&memory, sizing.byte_len(), &**pool)?;
        let mut bits = BloomFilter::with_sizing(sizing).map_err(|_| OUT_OF_MEMORY)?;
        hashes.iter().for_each(|hashes| bits.insert_batch(hashes));
        Ok(Arc::new(Self { bits, _memory: memory }))
    }
}

/// What a filter may take of a pool that does not tell its limit.
const UNKNOWN_LIMIT: usize = 4 << 20;

/// Allows memory, of a limited pool at most an eighth, and only while half of it is free. It is not reserved there,
/// because an operator that fills the pool to its end would fail for want of it, and it is little: 8 bytes for a key.
pub fn reserve(memory: &MemoryReservation, bytes: usize, pool: &dyn MemoryPool) -> Result<(), Reason> {
    let is_modest = match pool.memory_limit() {
        MemoryLimit::Finite(limit) => bytes <= limit / 8 && pool.reserved() <= limit / 2,
        MemoryLimit::Unknown => bytes <= UNKNOWN_LIMIT,
        MemoryLimit::Infinite => {
            memory.resize(bytes);
            true
        }
    };
    if is_modest { Ok(()) } else { Err(OUT_OF_MEMORY) }
}

/// A counter that `EXPLAIN ANALYZE` shows at each of its levels.
pub fn count(metrics: &ExecutionPlanMetricsSet, name: &'static str, partition: usize) -> Count {
    MetricBuilder::new(metrics).with_type(MetricType::Summary).counter(name, partition)
}

/// The log has the error, because the query goes on without it.
pub fn failed(error: DataFusionError) -> Reason {
    log::warn!("no join filter: {error}");
    "input_failed"
}

/// The names of columns, for `EXPLAIN`.
pub fn names(input: &Plan, columns: &[usize]) -> String {
    let schema = input.schema();
    columns.iter().map(|&i| format!("{}@{i}", schema.field(i).name())).collect::<Vec<_>>().join(", ")
}
