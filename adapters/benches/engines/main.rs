//! Missing and present gets inside storage engines, with the engine's own filter, with bloomline and with none.
//! Writes `docs/engines.md` and its plot.

mod report;
mod slatedb;
mod surrealkv;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use report::{Options, Table};

#[derive(Parser)]
struct Arguments {
    /// Keys in each database
    #[arg(long, default_value_t = 2_000_000)]
    keys: u64,
    /// Rounds; each runs every database in turn
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Measure only this engine. The page then has only its tables
    #[arg(long)]
    engine: Option<Engine>,
    /// A smoke test of under a minute: 20,000 keys, 1 round
    #[arg(long)]
    quick: bool,
    /// Where to write engines.md and plots/engines.svg
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs"))]
    to: PathBuf,
    /// Passed by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Engine {
    Surrealkv,
    Slatedb,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let options = if arguments.quick {
        Options { keys: 20_000, rounds: 1, quick: true }
    } else {
        Options { keys: arguments.keys, rounds: arguments.rounds.max(1), quick: false }
    };
    let mut tables: Vec<Table> = Vec::new();
    if arguments.engine != Some(Engine::Slatedb) {
        tables.extend(surrealkv::measure(&options)?);
    }
    if arguments.engine != Some(Engine::Surrealkv) {
        tables.extend(slatedb::measure(&options)?);
    }
    report::write(&options, &tables, &arguments.to)
}
