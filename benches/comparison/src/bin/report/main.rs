//! Writes the page about performance from the measurements of all machines, and keeps this machine's.

mod measured;
mod page;
mod plots;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bloomline_comparison::results::{json, load};
use clap::Parser;

use crate::page::Page;

/// Write docs/performance.md and docs/plots/ from docs/performance/*.json, and this machine's file there
#[derive(Parser)]
struct Arguments {
    /// Measurements of this machine: the default build, the build for its CPU
    #[arg(num_args = 2)]
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
    if let [default, native] = &measured[..] {
        let page = measured::page(default, native);
        fs::write(directory.join(page.file() + ".json"), json(&page)?)?;
    }
    for (file, text) in written(&to)? {
        fs::write(to.join(&file), text).with_context(|| format!("cannot write {file}"))?;
    }
    Ok(())
}

/// The names of the generated files in `docs`, and their texts.
fn written(docs: &Path) -> Result<Vec<(String, String)>> {
    let pages = Page::load_all(&docs.join("performance"))?;
    let mut files = vec![("performance.md".to_owned(), page::summary(&pages))];
    if let Some(newest) = pages.first() {
        files.extend(plots::all(newest)?);
    }
    files.push(plots::bits_by_rate()?);
    files.extend(plots::further(&docs.join("plots"))?);
    Ok(files)
}

#[cfg(test)]
mod tests {
    use bloomline_comparison::line_up::{BLOOMLINE, BLOOMLINE_BATCH, FASTBLOOM, ONE_MODULE, ROCKSDB, SBBF};
    use bloomline_comparison::results::{ABSENT, AT_RATES, BY_KEY, Table};

    use super::*;

    #[test]
    fn pages_are_what_the_report_writes() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let files = written(&docs).unwrap();
        assert_eq!(files.len(), 8);
        for (file, text) in files {
            assert!(fs::read_to_string(docs.join(&file)).unwrap() == text, "run the report again for {file}");
        }
    }

    #[test]
    fn the_readme_has_the_newest_figures() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let newest = &Page::load_all(&docs.join("performance")).unwrap()[0];
        let readme = fs::read_to_string(docs.join("../README.md")).unwrap();
        let mut texts = newest.readme_rows();
        texts.push(format!("({}, {})", newest.name, newest.date));
        texts.retain(|text| !readme.contains(text));
        assert!(texts.is_empty(), "not in README.md: {texts:#?}");
    }

    #[test]
    fn what_is_slower_by_chance_is_so_by_ten_percent() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let by_chance = page::HEADLINES.into_iter().filter(|row| row.4 == page::BY_CHANCE);
        for (what, contender, table, columns, _) in by_chance {
            for page in Page::load_all(&docs.join("performance")).unwrap() {
                let ratios = columns.map(|columns| page.worst(contender, table, columns));
                let is_lost = ratios.iter().flatten().any(|&(ratio, _)| ratio > 1.1);
                assert!(!is_lost, "{}, {what}: {ratios:?}: write a reason", page.name);
            }
        }
    }

    #[test]
    fn pages_quote_the_measured_figures() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let pages = Page::load_all(&docs.join("performance")).unwrap();
        let newest = &pages[0];
        let of_newest = |contender, table, column| newest.figure(table, contender, column).expect("a figure");
        let figure = |machine: &str, contender: &str, table: &str, column: &str| {
            let page = pages.iter().find(|page| page.name == machine).expect("a machine");
            page.figure(table, contender, column).expect("a figure")
        };
        let bloomline = |table, column| figure("AMD Zen 4", BLOOMLINE, table, column);
        let hashing = |shape| 100.0 * (1.0 - bloomline(ABSENT, "1 MiB") / bloomline(BY_KEY, shape));
        let at = |size, contender| figure("AMD Zen 5", contender, ABSENT, size);
        let [batch, single, sbbf, rocksdb] =
            [BLOOMLINE_BATCH, BLOOMLINE, SBBF, ROCKSDB].map(|contender| at("16 MiB", contender));
        let (of_16_bytes, of_urls) = (hashing("16 bytes, 1 MiB"), hashing("lengths of URLs, 1 MiB"));
        let at_rate =
            |contender, rate: usize, column| figure("AMD Zen 4", contender, AT_RATES[rate].0, column);
        let more_bits = at_rate(BLOOMLINE, 0, "bits per key") / at_rate(FASTBLOOM, 0, "bits per key") - 1.0;
        let in_modules = |contender, column| of_newest(contender, AT_RATES[2].0, column);
        let of_modules = |column| in_modules(BLOOMLINE, column) / in_modules(ONE_MODULE, column);
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
        let dedup: Table = load(&docs.join("plots/dedup.json")).unwrap();
        let command = |name, column: usize| {
            let row = dedup.rows.iter().find(|row| row.0 == name).expect("a row");
            row.1[column].expect("a figure")
        };
        let of_mawk = |name, column| command("mawk", column) / command(name, column);
        let (dedup, with_keys) = ("bloomline dedup", "bloomline dedup --keys");
        let new_lines = |name| command("mawk", 2) - command(name, 2);
        let absent = |contender| of_newest(contender, ABSENT, "1 MiB");
        let [ours, of_rocksdb, of_sbbf, of_fastbloom] = [BLOOMLINE, ROCKSDB, SBBF, FASTBLOOM].map(absent);
        let mut quoted = Vec::from([
            (
                "../README.md",
                format!("runs in {ours:.1} ns where RocksDB's Bloom filter needs {of_rocksdb:.1} ns"),
            ),
            ("../README.md", format!("`sbbf-rs-safe` {of_sbbf:.1} ns and `fastbloom` {of_fastbloom:.1} ns")),
            ("embedding.md", format!("{of_16_bytes:.0}% for keys of 16 bytes, and {of_urls:.0}% for URLs")),
            ("embedding.md", format!("in {bank} ns, where `which_contain` needs {one_by_one}")),
            (
                "../README.md",
                format!(
                    "answers a key in {batch:.1} ns where a loop of single lookups needs {single:.1} ns in bloomline \
                    {sbbf:.1} in `sbbf-rs-safe` and {rocksdb:.1} in RocksDB"
                ),
            ),
            ("tuning.md", format!("a key costs {batch:.1} ns instead of {single:.1} where")),
            ("tuning.md", format!("other filters need {sbbf:.0} ns and more")),
            (
                "tuning.md",
                format!(
                    "a key costs {:.1} ns instead of {:.0} (Zen 5)",
                    at("1 GiB", BLOOMLINE_BATCH),
                    at("1 GiB", BLOOMLINE)
                ),
            ),
            ("tuning.md", format!("gains at most {:.0}%", 100.0 * gain)),
            ("tuning.md", format!("it costs up to {:.0}%", 100.0 * cost)),
            (
                "tuning.md",
                format!("needs {:.1} times as long if it is present", of_modules("present, 500,000")),
            ),
            (
                "tuning.md",
                format!(
                    "runs in {:.1} of the time of one module if the key is absent",
                    of_modules("absent, 500,000")
                ),
            ),
            ("tuning.md", format!("by hash, {}", newest.name)),
            ("adopting.md", format!("four lookups of {:.0} ns each", bloomline(ABSENT, "1 GiB"))),
            ("adopting.md", format!("expect {:.0}% more bits per key", 100.0 * more_bits)),
            (
                "../cli/README.md",
                format!(
                    "in [1/{:.0}](#measurements) of awk's CPU time and 1/{:.0} of its memory (1/{:.0} with `--keys`)",
                    of_mawk(dedup, 0),
                    of_mawk(dedup, 1),
                    of_mawk(with_keys, 1),
                ),
            ),
            (
                "../cli/README.md",
                format!(
                    "`dedup` dropped {} of the 21 million new lines and `--fpr` allows 21. With `--keys 21e6` it dropped {}",
                    new_lines(dedup),
                    new_lines(with_keys),
                ),
            ),
            (
                "../cli/README.md",
                format!("needs {:.0} s of CPU time and {} MB.", command("grep", 0), command("grep", 1)),
            ),
            (
                "../cli/README.md",
                format!(
                    "need {:.1} s and {} MB.",
                    command("bloomline build, check", 0),
                    command("bloomline build, check", 1)
                ),
            ),
            ("performance/modelled.md", format!("[{:.2} ns]", bloomline(ABSENT, "16 KiB"))),
        ]);
        quoted.retain(|(page, text)| {
            let words = fs::read_to_string(docs.join(page)).unwrap().replace(',', "");
            let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
            !words.contains(&text.replace(',', ""))
        });
        assert!(quoted.is_empty(), "not in the page: {quoted:#?}");
    }
}
