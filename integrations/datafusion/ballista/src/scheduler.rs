//! The scheduler plans queries and distributes their tasks.

use std::sync::Arc;

use anyhow::Context;
use ballista_core::extension::SessionConfigExt;
use ballista_core::utils::default_session_builder;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::start_server;
use bloomline_datafusion::{BloomlineOptions, with_join_filters};
use datafusion::execution::SessionState;
use datafusion::prelude::SessionConfig;

use crate::filters::{FilterFiles, Filters};

/// Starts a scheduler.
#[derive(clap::Args)]
pub struct Arguments {
    /// Address to listen on. `0.0.0.0` accepts connections from other machines
    #[arg(long, default_value = "127.0.0.1")]
    bind_host: String,
    /// Host name by which executors reach this scheduler
    #[arg(long, default_value = "localhost")]
    external_host: String,
    /// Port to listen on
    #[arg(long, default_value_t = 50050)]
    port: u16,
    /// Largest gRPC message in bytes. A plan contains the filters that are literals in its query
    #[arg(long, default_value_t = 16 << 20)]
    max_message_size: u32,
    /// Seconds without a heartbeat after which an executor is lost and its tasks run elsewhere
    #[arg(long, default_value_t = 20)]
    executor_timeout: u64,
    #[command(flatten)]
    filters: FilterFiles,
}

pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let filters = arguments.filters.read()?;
    let address = format!("{}:{}", arguments.bind_host, arguments.port);
    let address = address.parse().with_context(|| format!("{address} is no address and port"))?;
    let config = SchedulerConfig {
        bind_host: arguments.bind_host,
        bind_port: arguments.port,
        external_host: arguments.external_host,
        grpc_server_max_decoding_message_size: arguments.max_message_size,
        grpc_server_max_encoding_message_size: arguments.max_message_size,
        grpc_client_max_message_size: arguments.max_message_size,
        executor_timeout_seconds: arguments.executor_timeout,
        // Looks for lost executors four times per timeout, but every 1 to 15 seconds.
        expire_dead_executor_interval_seconds: (arguments.executor_timeout / 4).clamp(1, 15),
        no_executors_grace_period_seconds: arguments.executor_timeout,
        override_config_producer: Some(Arc::new(|| {
            SessionConfig::new_with_ballista().with_option_extension(BloomlineOptions::default())
        })),
        override_physical_codec: Some(crate::codec()),
        override_session_builder: Some(Arc::new(move |config| session(config, &filters))),
        ..SchedulerConfig::default()
    };
    let cluster = BallistaCluster::new_from_config(&config).await?;
    Ok(start_server(cluster, address, Arc::new(config)).await?)
}

/// The session that plans a query. It has Ballista's functions and bloomline's, and the filters, and its joins filter
/// themselves.
fn session(config: SessionConfig, filters: &Filters) -> datafusion::error::Result<SessionState> {
    let mut state = default_session_builder(config)?;
    bloomline_datafusion::register_all(&mut state)?;
    filters.register(&state, "the scheduler")?;
    Ok(with_join_filters(state))
}

#[cfg(test)]
mod tests {
    use bloomline_datafusion::BloomlineOptions;
    use datafusion::physical_plan::displayable;
    use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};

    use super::*;

    /// The rule finds these options of Ballista by their names. By its defaults, a table so small is not shuffled.
    #[test]
    fn the_rule_reads_ballistas_thresholds() {
        let folder = tempfile::tempdir().expect("a folder");
        let plan = async |thresholds: &[&str]| {
            let config =
                SessionConfig::new_with_ballista().with_option_extension(BloomlineOptions::default());
            let config = config.set_usize("bloomline.join_filters.min_saved_ms", 0);
            let config = thresholds.iter().fold(config, |config, name| {
                config.set_usize(&format!("ballista.optimizer.broadcast_join_threshold_{name}"), 0)
            });
            let filters = FilterFiles::default().read()?;
            let context = SessionContext::new_with_state(session(config, &filters)?);
            for (table, rows) in [("small", 1000), ("large", 100_000)] {
                let path = folder.path().join(table).with_extension("parquet");
                let path = path.to_str().context("a path in UTF-8")?;
                let copy = format!("COPY (SELECT value AS k, value AS v FROM range({rows})) TO '{path}'");
                context.sql(&copy).await?.collect().await?;
                context.register_parquet(table, path, ParquetReadOptions::default()).await?;
            }
            let join = context
                .sql("SELECT max(large.k) FROM small JOIN large ON small.k = large.k WHERE small.v < 9");
            let plan = join.await?.create_physical_plan().await?;
            anyhow::Ok(displayable(plan.as_ref()).indent(false).to_string())
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_stack_size(32 << 20)
            .build()
            .expect("a runtime");
        std::thread::scope(|scope| {
            let test = std::thread::Builder::new().stack_size(32 << 20).spawn_scoped(scope, || {
                for (thresholds, filters) in
                    [(&[][..], false), (&["rows"], false), (&["bytes", "rows"], true)]
                {
                    let plan = runtime.block_on(plan(thresholds)).expect("a plan");
                    assert_eq!(plan.contains("JoinFilterExec"), filters, "{thresholds:?}\n{plan}");
                }
            });
            test.expect("a thread").join().expect("the test passes");
        });
    }
}
