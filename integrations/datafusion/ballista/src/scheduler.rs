//! The scheduler plans queries and distributes their tasks.

use std::sync::Arc;

use anyhow::Context;
use ballista_core::extension::SessionConfigExt;
use ballista_core::utils::default_session_builder;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::start_server;
use bloomline_datafusion::{BloomlineOptions, JoinFilterPlanner};
use datafusion::execution::{SessionState, SessionStateBuilder};
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
        override_logical_codec: Some(crate::logical_codec()),
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
    let state = default_session_builder(config)?;
    let planner = Arc::new(JoinFilterPlanner::new(Arc::clone(state.query_planner())));
    let mut state = SessionStateBuilder::new_from_existing(state).with_query_planner(planner).build();
    // After the builder, which registers all functions again, in any order.
    bloomline_datafusion::register_all(&mut state)?;
    filters.register(&state, "the scheduler")?;
    Ok(state)
}
