//! What was measured, as a page with plots.
//!
//! ```text
//! cargo run --release -p bloomline-comparison --bin report -- default.json native.json
//! ```

mod plots;
mod tables;
mod targets;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bloomline_comparison::results::Results;
use clap::Parser;

/// Write docs/performance.md and its plots
#[derive(Parser)]
struct Arguments {
    /// Saved by the default build
    default: PathBuf,
    /// Saved by the build for this machine's CPU
    native: PathBuf,
    /// Saved by the build with huge pages
    huge_pages: Option<PathBuf>,
    /// Where the page goes, with its plots in plots/
    #[arg(long, value_name = "PATH", default_value = "docs")]
    to: PathBuf,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let (default, native) = (load(&arguments.default)?, load(&arguments.native)?);
    let plots = arguments.to.join("plots");
    std::fs::create_dir_all(&plots).with_context(|| format!("cannot make {}", plots.display()))?;
    plots::time_by_size(&default, &plots.join("time-by-size.svg"))?;
    plots::rate_by_bits(&default, &plots.join("rate-by-bits.svg"))?;
    plots::time_by_k(&default, &plots.join("time-by-k.svg"))?;

    let huge_pages = arguments.huge_pages.as_deref().map(load).transpose()?;
    let bars = targets::table(&default, &native, huge_pages.as_ref());
    let mut page =
        String::from("# Performance\n\nWritten by `scripts/report`, which measures all of it anew.\n\n");
    if default.quick || native.quick {
        page += "**From a quick run: not exact.**\n\n";
    }
    page += &tables::machine(&default);
    page += "## Bars\n\nMedians over rounds of how much longer one takes than the other in the same round, 10 bits per \
             key.\n\n";
    page += &bars;
    page += "\n## Plots\n\nThe default build; lookups of missing keys.\n\n";
    for (file, title) in [
        ("time-by-size.svg", "Nanoseconds per lookup against size of the filter"),
        ("rate-by-bits.svg", "False-positive rate against bits per key"),
        ("time-by-k.svg", "Nanoseconds per lookup against k"),
    ] {
        page += &format!("![{title}](plots/{file})\n\n");
    }
    page += &tables::all(&default, "Default build");
    page += &tables::all(&native, &format!("Build with `{}`", native.machine.flags));
    // A benchmark of its own, in C++, whose last results stay.
    if let Ok(leveldb) = std::fs::read_to_string(arguments.to.join("leveldb.md")) {
        page += &leveldb;
    }
    let page = format!("{}\n", page.trim_end());
    let path = arguments.to.join("performance.md");
    std::fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    print!("{bars}");
    Ok(())
}

fn load(path: &Path) -> Result<Results> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not what the bench saves", path.display()))
}
