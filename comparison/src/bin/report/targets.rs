//! The targets, and whether bloomline meets them.

use bloomline_comparison::builds::BUILDER;
use bloomline_comparison::line_up::{BASELINE, BLOOMLINE, BLOOMLINE_BATCH, FASTBLOOM, ROCKSDB, SBBF};
use bloomline_comparison::race::median;
use bloomline_comparison::results::{Results, Workload, size_text};
use bloomline_comparison::small_pages::SMALL_PAGES;

use crate::tables::table_of;

const SIZES: [usize; 5] = [16 << 10, 256 << 10, 1 << 20, 64 << 20, 1 << 30];
const CACHED: &[usize] = &[16 << 10, 1 << 20];
const LARGE: &[usize] = &[64 << 20, 1 << 30];

#[derive(Clone, Copy)]
enum Build {
    Default,
    Native,
    HugePages,
}

struct Target {
    build: Build,
    workload: Workload,
    one: &'static str,
    other: &'static str,
    /// `None` for a ratio without a target.
    at_most: Option<f64>,
    sizes: &'static [usize],
}

const fn target(workload: Workload, one: &'static str, other: &'static str, at_most: f64) -> Target {
    Target { build: Build::Default, workload, one, other, at_most: Some(at_most), sizes: CACHED }
}

const K8: &str = "bloomline k=8";
const AVX2: &str = "bloomline avx2";
const PORTABLE: &str = "bloomline portable";
const SSE41: &str = "bloomline sse4.1";
const REFERENCE: &str = "bloomline reference";
const MAX_FPR_RATIO: f64 = 0.8;

const TARGETS: [Target; 15] = [
    target(Workload::Absent, BLOOMLINE, SBBF, 1.0),
    target(Workload::Absent, BLOOMLINE, ROCKSDB, 0.65),
    target(Workload::Absent, BLOOMLINE, FASTBLOOM, 0.2),
    target(Workload::Absent, BLOOMLINE_BATCH, SBBF, 0.75),
    Target { build: Build::Native, ..target(Workload::Absent, K8, SBBF, 0.65) },
    target(Workload::Absent, AVX2, ROCKSDB, 0.9),
    Target { build: Build::Native, ..target(Workload::Absent, AVX2, ROCKSDB, 0.9) },
    target(Workload::Absent, SSE41, FASTBLOOM, 0.6),
    target(Workload::Absent, PORTABLE, FASTBLOOM, 0.6),
    Target { at_most: None, ..target(Workload::Absent, REFERENCE, FASTBLOOM, 0.0) },
    target(Workload::Insert, BLOOMLINE, ROCKSDB, 0.5),
    target(Workload::Insert, BLOOMLINE, SBBF, 1.0),
    Target { sizes: LARGE, ..target(Workload::Absent, BLOOMLINE_BATCH, BASELINE, 1.15) },
    Target {
        build: Build::HugePages,
        sizes: &[1 << 30],
        ..target(Workload::Absent, BLOOMLINE_BATCH, SMALL_PAGES, 0.85)
    },
    Target { sizes: &SIZES, ..target(Workload::Mixed, BLOOMLINE_BATCH, FASTBLOOM, 0.6) },
];

pub fn table(default: &Results, native: &Results, huge_pages: Option<&Results>) -> String {
    let mut header = vec!["".to_owned(), "keys".to_owned(), "build".to_owned(), "at most".to_owned()];
    header.extend(SIZES.map(size_text));
    header.push("met".to_owned());
    let mut rows = vec![header];
    for target in &TARGETS {
        let (build, results) = match target.build {
            Build::Default => ("default", Some(default)),
            Build::Native => ("native", Some(native)),
            Build::HugePages => ("huge-pages", huge_pages),
        };
        let ratio = |size: &usize| {
            target
                .sizes
                .contains(size)
                .then(|| results?.ratio(*size, target.workload, target.one, target.other))
        };
        rows.push(row(
            &format!("{} / {}", target.one, target.other),
            &format!("{:?}", target.workload).to_lowercase(),
            build,
            target.at_most,
            SIZES.map(|size| ratio(&size)),
        ));
    }
    let fpr = |contender| default.entry(contender).map(|entry| entry.fpr);
    let ratio = fpr(BLOOMLINE).zip(fpr(SBBF)).map(|(one, other)| one / other);
    rows.push(row(
        &format!("FPR, {BLOOMLINE} / {SBBF}"),
        "absent",
        "default",
        Some(MAX_FPR_RATIO),
        SIZES.map(|size| (size == 1 << 20).then_some(ratio)),
    ));
    table_of(&rows) + "\n" + &builder(default)
}

fn builder(results: &Results) -> String {
    let mut rows = vec![["", "keys", "at most", "1,000,000 keys", "met"].map(str::to_owned).to_vec()];
    for build in results.key_builds.iter().filter(|build| build.contender == BUILDER) {
        let nanoseconds = median(build.rounds.iter().copied()).unwrap_or(f64::NAN);
        let values = [("ns per key", nanoseconds, 15.0), ("scratch bytes per key", build.scratch_bytes, 8.0)];
        for (what, value, at_most) in values {
            rows.push(vec![
                format!("{BUILDER}, {what}"),
                build.shape.clone(),
                format!("{at_most:.1}"),
                format!("{value:.2}"),
                if value <= at_most { "yes" } else { "**no**" }.to_owned(),
            ]);
        }
    }
    if rows.len() > 1 { table_of(&rows) } else { String::new() }
}

/// One row. `ratios` has an entry for each of [`SIZES`]: `None` if the target does not cover that size, `Some(None)` if
/// it was not measured.
fn row(
    name: &str,
    keys: &str,
    build: &str,
    at_most: Option<f64>,
    ratios: [Option<Option<f64>>; SIZES.len()],
) -> Vec<String> {
    let measured = || ratios.iter().flatten().flatten();
    let met = match at_most {
        None => "",
        Some(at_most) if measured().any(|&ratio| ratio > at_most) => "**no**",
        Some(_) if ratios.contains(&Some(None)) => "?",
        Some(_) => "yes",
    };
    let mut row = vec![name.to_owned(), keys.to_owned(), build.to_owned()];
    row.push(at_most.map_or(String::new(), |at_most| format!("{at_most:.2}")));
    row.extend(ratios.map(|ratio| match ratio {
        None => String::new(),
        Some(None) => "?".to_owned(),
        Some(Some(ratio)) => format!("{ratio:.2}"),
    }));
    row.push(met.to_owned());
    row
}
