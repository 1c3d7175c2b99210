//! Writes the page about performance from the measurements of all machines, and keeps this machine's.

mod measured;
mod page;
mod plots;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bloomline_comparison::results::Results;
use clap::Parser;

use crate::page::Page;

/// Write docs/performance.md and docs/plots/ from docs/performance/*.json, and this machine's file there
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
    let Arguments { measured, to } = Arguments::parse();
    let directory = to.join("performance");
    fs::create_dir_all(&directory)?;
    fs::create_dir_all(to.join("plots"))?;
    let measured = measured.iter().map(|path| load(path)).collect::<Result<Vec<_>>>()?;
    if let [default, native, rest @ ..] = &measured[..] {
        let page = measured::page(default, native, rest.first());
        fs::write(directory.join(page.file() + ".json"), json(&page)?)?;
        print!("{}", page.targets());
    }
    for (file, text) in written(&Page::load_all(&directory)?) {
        fs::write(to.join(&file), text).with_context(|| format!("cannot write {file}"))?;
    }
    Ok(())
}

/// The names of the generated files in `docs`, and their texts.
fn written(pages: &[Page]) -> Vec<(String, String)> {
    let mut files = vec![("performance.md".to_owned(), page::summary(pages))];
    files.extend(pages.first().map(plots::all).into_iter().flatten());
    files.push(plots::bits_by_rate());
    files
}

fn load(path: &Path) -> Result<Results> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} was not saved by this version of the benchmark", path.display()))
}

/// Writes a line for each row of a table, so that differences can be read.
fn json(page: &Page) -> Result<String> {
    let text = serde_json::to_string(page)?;
    Ok(text.replace("]],[\"", "]],\n[\"").replace("},{\"", "},\n{\"").replace(":[", ":[\n") + "\n")
}

#[cfg(test)]
mod tests {
    use bloomline_comparison::line_up::{BLOOMLINE, BLOOMLINE_BATCH, FASTBLOOM, MODULES, ROCKSDB, SBBF};
    use bloomline_comparison::results::{ABSENT, AT_RATES, BY_KEY};

    use super::*;

    #[test]
    fn pages_are_what_the_report_writes() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let pages = Page::load_all(&docs.join("performance")).unwrap();
        assert!(!pages.is_empty());
        for (file, text) in written(&pages) {
            assert!(fs::read_to_string(docs.join(&file)).unwrap() == text, "run the report again for {file}");
        }
    }

    #[test]
    fn the_readme_has_the_newest_figures() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let newest = &Page::load_all(&docs.join("performance")).unwrap()[0];
        let readme = fs::read_to_string(docs.join("../README.md")).unwrap();
        for text in newest.readme_rows().iter().chain([&newest.name, &newest.date]) {
            assert!(readme.contains(text), "{text}");
        }
    }

    #[test]
    fn pages_quote_the_measured_figures() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let pages = Page::load_all(&docs.join("performance")).unwrap();
        let figure = |machine: &str, contender: &str, table: &str, column: &str| {
            let page = pages.iter().find(|page| page.name == machine).expect("a machine");
            page.figure(table, contender, column).expect("a figure")
        };
        let bloomline = |table, column| figure("AMD Zen 4", BLOOMLINE, table, column);
        let hashing = |shape| 100.0 * (1.0 - bloomline(ABSENT, "1 MiB") / bloomline(BY_KEY, shape));
        let at_1_gib = |contender| figure("AMD Zen 5", contender, ABSENT, "1 GiB");
        let (of_16_bytes, of_urls) = (hashing("16 bytes, 1 MiB"), hashing("lengths of URLs, 1 MiB"));
        let at_rate =
            |contender, rate: usize, column| figure("AMD Zen 4", contender, AT_RATES[rate].0, column);
        let more_bits = at_rate(BLOOMLINE, 0, "bits per key") / at_rate(FASTBLOOM, 0, "bits per key") - 1.0;
        let of_modules = |column| at_rate(MODULES, 1, column) / at_rate(BLOOMLINE, 1, column);
        let banks = fs::read_to_string(docs.join("banks.md")).unwrap();
        let rows: Vec<Vec<_>> = banks
            .lines()
            .filter_map(|line| line.strip_prefix("| "))
            .map(|line| line.split(" | ").collect())
            .filter(|row: &Vec<_>| row[0].ends_with("iB"))
            .collect();
        let row = rows.iter().find(|row| row[0] == "1024 of 64 KiB").expect("a row");
        let (one_by_one, bank) = (row[3], row[5]);
        let of_prefetches =
            rows.iter().map(|row| row[4].parse::<f64>().unwrap() / row[3].parse::<f64>().unwrap());
        let (gain, cost) = of_prefetches.fold((0.0, 0.0), |(gain, cost), ratio| {
            (f64::max(gain, 1.0 - ratio), f64::max(cost, ratio - 1.0))
        });
        let absent = |contender| figure("AMD Zen 4", contender, ABSENT, "1 MiB");
        let [ours, of_rocksdb, of_sbbf, of_fastbloom] = [BLOOMLINE, ROCKSDB, SBBF, FASTBLOOM].map(absent);
        for (page, text) in [
            (
                "../README.md",
                format!("runs in {ours:.1} ns where RocksDB's Bloom filter needs {of_rocksdb:.1} ns"),
            ),
            ("../README.md", format!("`sbbf-rs-safe` {of_sbbf:.1} ns and `fastbloom` {of_fastbloom:.1} ns")),
            ("embedding.md", format!("{of_16_bytes:.0}% for keys of 16 bytes, and {of_urls:.0}% for URLs")),
            ("embedding.md", format!("in {bank} ns, where `which_contain` needs {one_by_one}")),
            ("tuning.md", format!("{:.0} ns at 1 GiB", at_1_gib(BLOOMLINE))),
            ("tuning.md", format!("a key costs {:.1} ns", at_1_gib(BLOOMLINE_BATCH))),
            ("tuning.md", format!("gains at most {:.0}%", 100.0 * gain)),
            ("tuning.md", format!("it costs up to {:.0}%", 100.0 * cost)),
            ("tuning.md", format!("an absent key costs {:.1} times as much", of_modules("absent, 500,000"))),
            ("tuning.md", format!("a present key {:.1} times", of_modules("present, 500,000"))),
            ("adopting.md", format!("four lookups of {:.0} ns each", bloomline(ABSENT, "1 GiB"))),
            ("adopting.md", format!("expect {:.0}% more bits per key", 100.0 * more_bits)),
        ] {
            let words = fs::read_to_string(docs.join(page)).unwrap().replace(',', "");
            let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(&text.replace(',', "")), "{page}: {text}");
        }
    }
}
