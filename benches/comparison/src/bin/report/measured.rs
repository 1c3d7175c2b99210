//! The page of the machine that the benchmark ran on.

use bloomline_comparison::builds::BUILDER;
use bloomline_comparison::line_up::{
    AVX2, BASELINE, BLOOMLINE, BLOOMLINE_BATCH, FASTBLOOM, ROCKSDB, ROCKSDB_DEBIAN, SBBF, SMALL_PAGES,
};
use bloomline_comparison::results::{
    ABSENT, AT_RATES, BY_BITS, BY_K, BY_KEY, FROM_KEYS, INSERT, MIXED, PRESENT, Results, SCRATCH, Table,
};

use crate::page::{NATIVE, Page, Target};

/// The page of this machine.
pub fn page(default: &Results, native: &Results, huge_pages: Option<&Results>) -> Page {
    let is_quick = default.machine.facts.iter().any(|(_, fact)| fact.contains("--quick"));
    let mut tables = Vec::from(AT_RATES.map(|(title, _)| default.table(title)));
    tables.extend([BY_KEY, ABSENT, PRESENT, MIXED, INSERT].map(|title| default.table(title)));
    tables.extend([BY_KEY, ABSENT, INSERT].map(|title| {
        let table = native.table(title);
        Table { title: format!("{title}{NATIVE}"), ..table }
    }));
    tables.extend([FROM_KEYS, SCRATCH].map(|title| default.table(title)));
    tables.retain(|table| !table.rows.is_empty());
    Page {
        name: default.machine.name.clone(),
        date: default.machine.date.clone(),
        notes: is_quick.then(|| "**From a quick run: not exact.**".to_owned()).into_iter().collect(),
        machine: default.machine.facts.clone(),
        targets: targets(default, native, huge_pages),
        tables,
        plotted: [BY_K, BY_BITS].map(|title| default.table(title)).into(),
    }
}

fn targets(default: &Results, native: &Results, huge_pages: Option<&Results>) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut add = |name: String, at_most: f64, measured: Option<f64>| {
        targets.push(Target {
            name,
            at_most: Some(at_most),
            measured: measured.map(|measured| (measured * 100.0).round() / 100.0),
        });
    };

    // By key, the first two for RocksDB built for this CPU.
    for (shape, at_most) in [
        ("lengths of URLs", 0.75),
        ("20 to 80 bytes, triangular", 1.05),
        ("8 bytes", 1.05),
        ("16 bytes", 1.1),
        ("24 bytes", 0.95),
        ("40 bytes", 0.85),
        ("64 bytes", 1.0),
    ] {
        for (other, at_most) in [(ROCKSDB, at_most), (ROCKSDB_DEBIAN, 0.8)] {
            let at = format!("{shape}, 1 MiB");
            let ratio = default.ratio(BY_KEY, &at, BLOOMLINE, other);
            add(format!("key of {at}: {BLOOMLINE} ÷ {other}"), at_most, ratio);
        }
    }

    // By hash.
    let is_intel = default.machine.facts.iter().any(|(_, fact)| fact.contains("Intel"));
    let (small_sbbf, middle_sbbf, line) = if is_intel { (0.7, 0.7, 1.1) } else { (0.6, 0.8, 0.9) };
    let builds = [("", Some(default)), ("native build, ", Some(native)), ("huge pages, ", huge_pages)];
    let tables = [("absent", ABSENT), ("mixed", MIXED), ("insert", INSERT)];
    let mut by_hash = |build: &str, what: &str, one: &str, other: &str, sizes: &[(&str, f64)]| {
        let results = builds.iter().find(|(name, _)| *name == build).and_then(|(_, results)| *results);
        let table = tables.iter().find(|(name, _)| *name == what).expect("a table").1;
        for &(size, at_most) in sizes {
            let ratio = results.and_then(|results| results.ratio(table, size, one, other));
            add(format!("{build}{what}, {size}: {one} ÷ {other}"), at_most, ratio);
        }
    };
    let in_cache = |at_most| [("16 KiB", at_most), ("1 MiB", at_most)];
    by_hash("", "absent", BLOOMLINE, SBBF, &[("16 KiB", small_sbbf), ("1 MiB", middle_sbbf)]);
    by_hash("", "absent", AVX2, SBBF, &in_cache(1.0));
    by_hash("", "absent", "bloomline sse4.1", FASTBLOOM, &in_cache(0.6));
    by_hash("", "absent", "bloomline portable", FASTBLOOM, &in_cache(0.6));
    by_hash("", "absent", BLOOMLINE_BATCH, BASELINE, &["16 MiB", "64 MiB", "1 GiB"].map(|size| (size, line)));
    let three_sizes = |at_most| ["16 KiB", "1 MiB", "64 MiB"].map(|size| (size, at_most));
    by_hash("", "mixed", BLOOMLINE_BATCH, FASTBLOOM, &three_sizes(0.6));
    by_hash("", "insert", BLOOMLINE, SBBF, &in_cache(1.0));
    by_hash("native build, ", "insert", BLOOMLINE, SBBF, &in_cache(1.0));
    by_hash("huge pages, ", "absent", BLOOMLINE_BATCH, SMALL_PAGES, &[("1 GiB", 0.85)]);

    for (table, fpr) in AT_RATES {
        for other in [ROCKSDB, SBBF] {
            let at = "absent, 500,000";
            let name = format!("FPR {fpr}%, {at} keys: {BLOOMLINE} ÷ {other}");
            add(name, 1.0, default.ratio(table, at, BLOOMLINE, other));
        }
    }
    for shape in ["16 bytes", "24 bytes"] {
        for (table, what, at_most) in [(FROM_KEYS, "ns", 15.0), (SCRATCH, "scratch bytes", 8.0)] {
            let name = format!("{BUILDER}, a million keys of {shape}: {what} per key");
            add(name, at_most, default.median(table, shape, BUILDER));
        }
    }
    targets
}
