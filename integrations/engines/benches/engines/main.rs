//! Missing and present gets inside storage engines, with the engine's own filter, with bloomline and with none.
//! Writes `docs/engines.md`.

mod report;
mod slatedb;
mod surrealkv;

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use report::Options;

#[derive(Parser)]
struct Arguments {
    /// A smoke test of under a minute: 20,000 keys, 1 round
    #[arg(long)]
    quick: bool,
    /// Where to write engines.md
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"))]
    to: PathBuf,
    /// Passed by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let (keys, rounds) = if arguments.quick { (20_000, 1) } else { (2_000_000, 15) };
    let options = Options { keys, rounds, quick: arguments.quick };
    let mut tables = surrealkv::measure(&options)?;
    tables.extend(slatedb::measure(&options)?);
    report::write(&options, &tables, &arguments.to)
}
