//! Bloomline's SQL functions on a Ballista cluster. One program is scheduler, executor and client.
//!
//! All three need the functions under the same names, because plans carry only names. The client and the scheduler plan
//! with the functions, and the executors run them. The operators of joins that filter themselves need a codec, and so do
//! tables with an index.

mod executor;
mod filters;
mod query;
mod scheduler;

use std::sync::Arc;
use std::time::SystemTime;

use ballista_core::serde::{BallistaLogicalExtensionCodec, BallistaPhysicalExtensionCodec};
use bloomline_datafusion::{FileIndexCodec, JoinFilterCodec};
use clap::Parser;
use datafusion_proto::physical_plan::ComposedPhysicalExtensionCodec;

/// Runs bloomline's SQL functions on a Ballista cluster.
#[derive(Parser)]
enum Command {
    Scheduler(scheduler::Arguments),
    Executor(executor::Arguments),
    Query(query::Arguments),
}

fn main() -> anyhow::Result<()> {
    let command = Command::parse();
    start_log();
    // Planning is recursive, and a debug build of it overflows tokio's stacks of 2 MiB.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(32 << 20).build()?;
    runtime.block_on(async {
        // The future of `block_on` runs on the main thread, whose stack is smaller.
        tokio::spawn(async {
            match command {
                Command::Scheduler(arguments) => scheduler::run(arguments).await,
                Command::Executor(arguments) => executor::run(arguments).await,
                Command::Query(arguments) => query::run(arguments).await,
            }
        })
        .await?
    })
}

/// What encodes the operators of plans, on the scheduler and on executors.
fn codec() -> Arc<ComposedPhysicalExtensionCodec> {
    let ballista = Arc::new(BallistaPhysicalExtensionCodec::default());
    Arc::new(ComposedPhysicalExtensionCodec::new(vec![ballista, Arc::new(JoinFilterCodec)]))
}

/// What encodes tables with an index, on clients and on the scheduler.
fn logical_codec() -> Arc<FileIndexCodec> {
    Arc::new(FileIndexCodec::new(Arc::new(BallistaLogicalExtensionCodec::default())))
}

/// Prints the log, because Ballista reports lost executors and failed tasks only there.
struct Stderr;

impl log::Log for Stderr {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }

    fn log(&self, record: &log::Record) {
        let time = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64();
        eprintln!("{time:.3} {} {}: {}", record.level(), record.target(), record.args());
    }

    fn flush(&self) {}
}

/// Logs warnings and errors, or what `RUST_LOG` asks for by `off`, `error`, `warn`, `info`, `debug` or `trace`.
fn start_log() {
    let level = std::env::var("RUST_LOG").ok().and_then(|level| level.parse().ok());
    log::set_max_level(level.unwrap_or(log::LevelFilter::Warn));
    log::set_logger(&Stderr).expect("no other logger is set");
}
