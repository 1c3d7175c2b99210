//! An executor runs tasks, and keeps what they write for the next stage.

use std::sync::Arc;

use ballista_core::registry::BallistaFunctionRegistry;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use bloomline_datafusion::{aggregate_functions, scalar_functions};

use crate::filters::FilterFiles;

/// Starts an executor.
#[derive(clap::Args)]
pub struct Arguments {
    /// Host of the scheduler
    #[arg(long, default_value = "localhost")]
    scheduler_host: String,
    /// Port of the scheduler
    #[arg(long, default_value_t = 50050)]
    scheduler_port: u16,
    /// Address to listen on. `0.0.0.0` accepts connections from other machines
    #[arg(long, default_value = "127.0.0.1")]
    bind_host: String,
    /// Host name by which the scheduler, other executors and clients reach this executor
    #[arg(long)]
    external_host: Option<String>,
    /// Port for the data of shuffles and results
    #[arg(long, default_value_t = 50051)]
    port: u16,
    /// Port for tasks
    #[arg(long, default_value_t = 50052)]
    grpc_port: u16,
    /// Folder for the data of shuffles and results
    #[arg(long)]
    work_dir: Option<String>,
    /// Tasks that run at a time
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from))]
    vcores: usize,
    /// Bytes that all tasks may reserve. By default, most of the machine's memory
    #[arg(long)]
    memory_pool_size: Option<u64>,
    /// Largest gRPC message in bytes. A task contains the filters that are literals in its query
    #[arg(long, default_value_t = 16 << 20)]
    max_message_size: u32,
    /// Seconds between heartbeats
    #[arg(long, default_value_t = 5)]
    heartbeat: u64,
    #[command(flatten)]
    filters: FilterFiles,
}

pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let functions = functions();
    let host = arguments.external_host.as_deref().unwrap_or(&arguments.bind_host);
    arguments.filters.read()?.register(&functions, &format!("the executor at {host}:{}", arguments.port))?;
    let config = ExecutorProcessConfig {
        scheduler_host: arguments.scheduler_host,
        scheduler_port: arguments.scheduler_port,
        scheduler_connect_timeout_seconds: 30,
        bind_host: arguments.bind_host,
        external_host: arguments.external_host,
        port: arguments.port,
        grpc_port: arguments.grpc_port,
        work_dir: arguments.work_dir,
        vcores: arguments.vcores,
        memory_pool_size: arguments.memory_pool_size,
        grpc_max_decoding_message_size: arguments.max_message_size,
        grpc_max_encoding_message_size: arguments.max_message_size,
        executor_heartbeat_interval_seconds: arguments.heartbeat,
        override_function_registry: Some(Arc::new(functions)),
        override_physical_codec: Some(crate::codec()),
        ..ExecutorProcessConfig::default()
    };
    Ok(start_executor_process(Arc::new(config)).await?)
}

/// Ballista's own functions, and bloomline's.
fn functions() -> BallistaFunctionRegistry {
    let mut registry = BallistaFunctionRegistry::default();
    for function in scalar_functions() {
        registry.scalar_functions.insert(function.name().to_owned(), function);
    }
    for function in aggregate_functions() {
        registry.aggregate_functions.insert(function.name().to_owned(), function);
    }
    registry
}
