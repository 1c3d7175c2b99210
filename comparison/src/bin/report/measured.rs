//! The page of the machine that the benchmark ran on.

use bloomline_comparison::builds::BUILDER;
use bloomline_comparison::keys::SHAPES;
use bloomline_comparison::line_up::{
    self, AVX2, BASELINE, BLOOMLINE, BLOOMLINE_BATCH, FASTBLOOM, ROCKSDB, ROCKSDB_DEBIAN, SBBF,
};
use bloomline_comparison::race::median;
use bloomline_comparison::results::{Results, Workload, size_text};
use bloomline_comparison::small_pages::SMALL_PAGES;

use crate::page::{BY_KEY, Page, Table, Target};

const KIB_16: usize = 16 << 10;
const MIB_1: usize = 1 << 20;
const MIB_16: usize = 16 << 20;
const MIB_64: usize = 64 << 20;
const GIB_1: usize = 1 << 30;
/// For a ratio that is only reported.
const NO_TARGET: f64 = f64::INFINITY;

/// The page of this machine.
pub fn page(default: &Results, native: &Results, huge_pages: Option<&Results>) -> Page {
    let machine = &default.machine;
    let mut notes = Vec::new();
    if default.quick || native.quick {
        notes.push("**From a quick run: not exact.**".to_owned());
    }
    let mut rows = vec![
        ("CPU", machine.cpu.clone()),
        ("cores", machine.cores.to_string()),
        ("caches", machine.caches.clone()),
        ("transparent huge pages", machine.huge_pages.clone()),
        ("system", machine.os.clone()),
        ("compiler", machine.rustc.clone()),
        ("command", format!("`{}`", default.command)),
    ];
    if let Some(rocksdb) = &machine.rocksdb {
        rows.extend([("RocksDB", rocksdb.clone()), ("C++ compiler", machine.cpp.clone())]);
    }
    Page {
        name: machine.name.clone(),
        date: machine.date.clone(),
        notes,
        machine: rows.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        targets: targets(default, native, huge_pages),
        tables: tables(default, native),
    }
}

fn targets(default: &Results, native: &Results, huge_pages: Option<&Results>) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut add = |name: String, at_most: f64, measured: Option<f64>| {
        let at_most = at_most.is_finite().then_some(at_most);
        targets.push(Target { name, at_most, measured: measured.map(rounded) });
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
            let ratio = default.key_ratio(MIB_1, shape, BLOOMLINE, other);
            add(format!("key of {shape}, 1 MiB: {BLOOMLINE} ÷ {other}"), at_most, ratio);
        }
    }

    // By hash.
    let intel = default.machine.name.starts_with("Intel");
    let (small_sbbf, middle_sbbf, line) = if intel { (0.7, 0.7, 1.1) } else { (0.6, 0.8, 0.9) };
    use Workload::{Absent, Insert, Mixed};
    for (build, results, workload, one, other, sizes) in [
        ("", Some(default), Absent, BLOOMLINE, SBBF, &[(KIB_16, small_sbbf), (MIB_1, middle_sbbf)][..]),
        ("", Some(default), Absent, AVX2, SBBF, &[(KIB_16, 1.0), (MIB_1, 1.0)]),
        ("", Some(default), Absent, BLOOMLINE, ROCKSDB, &[(KIB_16, NO_TARGET), (MIB_1, NO_TARGET)]),
        ("", Some(default), Absent, AVX2, ROCKSDB, &[(KIB_16, NO_TARGET), (MIB_1, NO_TARGET)]),
        ("", Some(default), Absent, "bloomline sse4.1", FASTBLOOM, &[(KIB_16, 0.6), (MIB_1, 0.6)]),
        ("", Some(default), Absent, "bloomline portable", FASTBLOOM, &[(KIB_16, 0.6), (MIB_1, 0.6)]),
        (
            "",
            Some(default),
            Absent,
            BLOOMLINE_BATCH,
            BASELINE,
            &[(MIB_16, line), (MIB_64, line), (GIB_1, line)],
        ),
        ("", Some(default), Mixed, BLOOMLINE_BATCH, FASTBLOOM, &[(KIB_16, 0.6), (MIB_1, 0.6), (MIB_64, 0.6)]),
        ("", Some(default), Insert, BLOOMLINE, SBBF, &[(KIB_16, 1.0), (MIB_1, 1.0)]),
        ("native build, ", Some(native), Insert, BLOOMLINE, SBBF, &[(KIB_16, 1.0), (MIB_1, 1.0)]),
        ("huge pages, ", huge_pages, Absent, BLOOMLINE_BATCH, SMALL_PAGES, &[(GIB_1, 0.85)]),
    ] {
        for &(size, at_most) in sizes {
            let what = format!("{workload:?}").to_lowercase();
            let name = format!("{build}{what}, {}: {one} ÷ {other}", size_text(size));
            add(name, at_most, results.and_then(|results| results.ratio(size, workload, one, other)));
        }
    }

    let fpr = |contender| default.entry(contender).map(|entry| entry.fpr);
    let ratio = fpr(BLOOMLINE).zip(fpr(SBBF)).map(|(one, other)| one / other);
    add(format!("FPR: {BLOOMLINE} ÷ {SBBF}"), 0.8, ratio);
    for build in default.key_builds.iter().filter(|build| build.contender == BUILDER) {
        let nanoseconds = median(build.rounds.iter().copied());
        add(format!("{BUILDER}, a million keys of {}: ns per key", build.shape), 15.0, nanoseconds);
        let scratch = Some(build.scratch_bytes);
        add(format!("{BUILDER}, a million keys of {}: scratch bytes per key", build.shape), 8.0, scratch);
    }
    targets
}

fn tables(default: &Results, native: &Results) -> Vec<Table> {
    let mut tables = vec![by_key(default, "")];
    tables.extend(Workload::ALL.map(|workload| speeds(default, workload, "")));
    tables.push(by_key(native, NATIVE));
    tables.extend([Workload::Absent, Workload::Insert].map(|workload| speeds(native, workload, NATIVE)));

    let rows = default.entries.iter().map(|entry| {
        let mark = if entry.rehashes { " \\*" } else { "" };
        let fpr = (entry.fpr * 1e5).round() / 1e3;
        (format!("{}{mark}", entry.contender), vec![Some(rounded(entry.bits_per_key)), Some(fpr)])
    });
    tables.push(table(
        "Size and false-positive rate at 1 MiB (\\* hashes the given hash again)",
        ["bits per key", "FPR, %"],
        rows.collect(),
    ));

    let keys = distinct(default.builds.iter().map(|build| build.keys));
    let rows = distinct(default.builds.iter().map(|build| &build.contender)).into_iter().map(|name| {
        let cell = |keys: &u64| {
            let build =
                default.builds.iter().find(|build| build.keys == *keys && build.contender == *name)?;
            median_of(&build.rounds)
        };
        (name.clone(), keys.iter().map(cell).collect())
    });
    let columns = keys.iter().map(|keys| format!("{keys} keys"));
    tables.push(table("Building a filter from hashes, ns per key", columns, rows.collect()));

    let rows = default.key_builds.iter().map(|build| {
        let cells = vec![median_of(&build.rounds), Some(rounded(build.scratch_bytes))];
        (format!("{}: {}", build.shape, build.contender), cells)
    });
    tables.push(table(
        "Building and serializing a filter of a million keys, hashing included",
        ["ns per key", "scratch bytes per key"],
        rows.collect(),
    ));
    tables.retain(|table| !table.rows.is_empty());
    tables
}

const NATIVE: &str = ", native build";

fn by_key(results: &Results, build: &str) -> Table {
    let mut rows = Vec::new();
    for size_bytes in results.sizes() {
        for shape in SHAPES {
            let cell = |name| results.key_nanoseconds(size_bytes, shape.name, name).map(rounded);
            let cells = line_up::BY_KEY.map(cell).to_vec();
            if cells.iter().any(Option::is_some) {
                rows.push((format!("{}, {}", shape.name, size_text(size_bytes)), cells));
            }
        }
    }
    table(&format!("{BY_KEY}{build}"), line_up::BY_KEY, rows)
}

fn speeds(results: &Results, workload: Workload, build: &str) -> Table {
    let sizes = results.sizes();
    let rows = results.contenders(workload).into_iter().map(|name| {
        let cell = |&size| results.nanoseconds(size, workload, name).map(rounded);
        (name.to_owned(), sizes.iter().map(cell).collect())
    });
    let columns = sizes.iter().map(|&size| size_text(size));
    table(&format!("{}{build}", workload.title()), columns, rows.collect())
}

fn table<C: Into<String>>(
    title: &str,
    columns: impl IntoIterator<Item = C>,
    rows: Vec<(String, Vec<Option<f64>>)>,
) -> Table {
    Table { title: title.to_owned(), columns: columns.into_iter().map(Into::into).collect(), rows }
}

fn median_of(rounds: &[f64]) -> Option<f64> {
    median(rounds.iter().copied()).map(rounded)
}

fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for item in items {
        if !distinct.contains(&item) {
            distinct.push(item);
        }
    }
    distinct
}
