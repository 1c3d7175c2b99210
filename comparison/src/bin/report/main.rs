//! Writes the pages about performance: this machine's from saved measurements, and the summary from all machines'.
//!
//! ```text
//! cargo run --release -p bloomline-comparison --bin report -- default.json native.json   # as scripts/report does
//! cargo run --release -p bloomline-comparison --bin report                               # the same pages again
//! ```

mod measured;
mod page;
mod plots;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use bloomline_comparison::results::Results;
use clap::Parser;

use crate::page::Page;

/// Write docs/performance.md, the pages of machines in docs/performance/, and docs/plots/
#[derive(Parser)]
struct Arguments {
    /// Measurements of this machine: the default build, the build for its CPU, the build with huge pages
    #[arg(num_args = 2..=3)]
    measured: Vec<PathBuf>,
    /// The directory of the pages
    #[arg(long, value_name = "PATH", default_value = "docs")]
    to: PathBuf,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let directory = arguments.to.join("performance");
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    if let [default, native, rest @ ..] = &arguments.measured[..] {
        let (default, native) = (load(default)?, load(native)?);
        let huge_pages = rest.first().map(|path| load(path)).transpose()?;
        let page = measured::page(&default, &native, huge_pages.as_ref());
        write(&directory.join(page.file() + ".json"), &json(&page)?)?;
        print!("{}", page.markdown());
        plots::draw_all(&default, &arguments.to.join("plots"))?;
    }
    let pages = Page::load_all(&directory)?;
    ensure!(!pages.is_empty(), "no machine's figures in {}: run scripts/report", directory.display());
    for page in &pages {
        write(&directory.join(page.file() + ".md"), &page.markdown())?;
    }
    write(&arguments.to.join("performance.md"), &page::summary(&pages))
}

fn load(path: &Path) -> Result<Results> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} was not saved by this version of the benchmark", path.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// With a line for each row of a table, so that differences can be read.
fn json(page: &Page) -> Result<String> {
    let text = serde_json::to_string(page)?;
    Ok(text.replace("]],[\"", "]],\n[\"").replace("},{\"", "},\n{\"").replace(":[", ":[\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_what_the_report_writes() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let pages = Page::load_all(&docs.join("performance")).unwrap();
        assert!(!pages.is_empty());
        let written = |path: &str| std::fs::read_to_string(docs.join(path)).unwrap();
        for page in &pages {
            assert!(written(&format!("performance/{}.md", page.file())) == page.markdown(), "{}", page.name);
        }
        assert!(written("performance.md") == page::summary(&pages), "run the report again");
    }
}
