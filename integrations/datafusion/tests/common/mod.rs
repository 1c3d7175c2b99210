//! What several test files share.
#![allow(dead_code, reason = "no file uses all of it")]

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use arrow::record_batch::RecordBatch;
use arrow::util::pretty::pretty_format_batches;
use bloomline::BloomFilter;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
#[cfg(feature = "join-filters")]
pub use filtering::*;

/// Planning is recursive, and a debug build of it overflows tokio's stacks of 2 MiB.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_stack_size(16 << 20)
        .enable_all()
        .build()
        .unwrap()
}

/// A session with the functions.
pub fn session(settings: &[(&str, &str)]) -> SessionContext {
    with_functions(SessionContext::new_with_config(set(SessionConfig::new(), settings)))
}

fn set(mut config: SessionConfig, settings: &[(&str, &str)]) -> SessionConfig {
    for (key, value) in settings {
        config.options_mut().set(key, value).unwrap();
    }
    config
}

#[cfg(feature = "join-filters")]
mod filtering {
    use std::sync::Arc;

    use bloomline_datafusion::{BloomlineOptions, JoinFilterPlanner, JoinFilters};
    use datafusion::execution::SessionStateBuilder;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use super::{set, with_functions};

    /// Where the filters of joins get their keys.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum Keys {
        /// From the rows on their way to the join, in one process.
        Tap,
        /// From a second read, as on Ballista.
        SecondRead,
    }

    /// A session with the functions, whose joins filter themselves.
    pub fn filtering_session(keys: Keys, settings: &[(&str, &str)]) -> SessionContext {
        let config = SessionConfig::new().with_option_extension(BloomlineOptions::default());
        let builder = SessionStateBuilder::new_with_default_features().with_config(set(config, settings));
        with_functions(SessionContext::new_with_state(filtering(builder, keys).build()))
    }

    pub fn filtering(mut builder: SessionStateBuilder, keys: Keys) -> SessionStateBuilder {
        match keys {
            Keys::Tap => builder.with_physical_optimizer_rule(Arc::new(JoinFilters)),
            Keys::SecondRead => {
                let inner = builder.query_planner().clone();
                let inner =
                    inner.unwrap_or_else(|| SessionStateBuilder::new().build().query_planner().clone());
                builder.with_query_planner(Arc::new(JoinFilterPlanner::new(inner)))
            }
        }
    }
}

pub fn with_functions(mut context: SessionContext) -> SessionContext {
    bloomline_datafusion::register_all(&mut context).unwrap();
    context
}

pub async fn rows(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    context.sql(sql).await?.collect().await
}

/// The only value of the answer.
pub async fn value(context: &SessionContext, sql: &str) -> Result<ArrayRef> {
    let batches: Vec<_> =
        rows(context, sql).await?.into_iter().filter(|batch| batch.num_rows() != 0).collect();
    let [batch] = &batches[..] else { panic!("{} batches from {sql}", batches.len()) };
    assert_eq!((batch.num_rows(), batch.num_columns()), (1, 1), "{sql}");
    Ok(batch.column(0).clone())
}

/// The only value of the answer, which is a filter's bytes.
pub async fn filter(context: &SessionContext, sql: &str) -> Result<Vec<u8>> {
    Ok(bytes(&value(context, sql).await?, 0).unwrap())
}

/// The only value of the answer, which is a number.
pub async fn count(context: &SessionContext, sql: &str) -> Result<i64> {
    Ok(value(context, sql).await?.as_primitive::<Int64Type>().value(0))
}

/// The answer as text, whose lines are sorted because the order of rows may differ.
pub fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let table = pretty_format_batches(batches).unwrap().to_string();
    let mut lines: Vec<_> = table.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// Registers a table of one batch.
pub fn register<const N: usize>(context: &SessionContext, table: &str, columns: [(&str, ArrayRef); N]) {
    context.register_batch(table, RecordBatch::try_from_iter(columns).unwrap()).unwrap();
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes in a row of a binary column.
pub fn bytes(column: &dyn Array, row: usize) -> Option<Vec<u8>> {
    let column = cast(column, &DataType::Binary).unwrap();
    column.is_valid(row).then(|| column.as_binary::<i32>().value(row).to_vec())
}

/// The standalone bytes of a filter as SQL makes it, of keys by hash.
pub fn built(expected_keys: usize, fpr: f64, hashes: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut filter = BloomFilter::with_fpr(expected_keys as u64, fpr).unwrap();
    for hash in hashes {
        filter.insert_hash(hash);
    }
    filter.to_standalone()
}

/// Random numbers, which follow from the seed.
pub struct Random {
    seed: u64,
    draws: u64,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self { seed, draws: 0 }
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.draws += 1;
        bloomline::hash_key(self.draws, self.seed) % limit
    }

    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// A part of a list with semicolons.
    pub fn part<'a>(&mut self, list: &'a str) -> &'a str {
        self.of(&list.split(';').collect::<Vec<_>>()).trim()
    }
}
