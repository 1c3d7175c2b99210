//! What is kept of a machine's measurements, as JSON, and the page that is written from it.

use std::path::Path;

use anyhow::{Context, Result};
use bloomline_comparison::line_up::{
    AVX2, BASELINE, BLOOMLINE, BLOOMLINE_BATCH, CALL, FASTBLOOM, ONE_MODULE, ROCKSDB, ROCKSDB_DEBIAN, SBBF,
    XORF,
};
use bloomline_comparison::results::{
    ABSENT, AT_RATES, BY_BITS, BY_KEY, INSERT, MIXED, OPENED, OPENED_COLUMNS, PRESENT, Table, load, markdown,
};
use serde::{Deserialize, Serialize};

const PEERS: [&str; 5] = [ROCKSDB, ROCKSDB_DEBIAN, SBBF, FASTBLOOM, XORF];

/// The sizes, or whatever else a table has as columns, that fit in the caches close to a core, and the larger ones.
type Columns = [&'static [&'static str]; 2];
const BY_SIZE: Columns = [&["16 KiB", "256 KiB", "1 MiB"], &["16 MiB", "64 MiB", "1 GiB"]];
const KEYS_ABSENT: Columns = [&["absent, 10,000", "absent, 500,000"], &["absent, 50,000,000"]];
const KEYS_PRESENT: Columns = [&["present, 10,000", "present, 500,000"], &["present, 50,000,000"]];

const ABSENT_OR_PRESENT: Columns = [
    &["absent, 10,000", "present, 10,000", "absent, 500,000", "present, 500,000"],
    &["absent, 50,000,000", "present, 50,000,000"],
];
const OF_20_TO_80: Columns =
    [&["20 to 80 bytes, triangular, 16 KiB", "20 to 80 bytes, triangular, 1 MiB"], &[]];

/// Why a peer is faster, where it is.
pub const BY_CHANCE: &str = "This is within the 10% by which runs differ.";
const LAYOUT: &str = "Where a program's short loops lie in memory changes their times. `sbbf-rs-safe` inserts in 0.96 ns in one \
    program and in 1.46 ns in another (16 KiB, Zen 5), bloomline in 0.96 to 1.03 ns in both. Batches are faster.";
const MISPREDICTED: &str = "If answers are random, the CPU mispredicts every second branch, which costs more than the \
    lookup, so the filters differ little. Look up a batch first, and branch afterwards.";
const LENGTHS: &str = "The CPU mispredicts branches on the length if lengths vary. Between 33 and 64 bytes, the hash of \
    bloomline (wyhash) has one more of them than that of RocksDB. URLs and keys of one length are faster in bloomline.";
const TWO_MODULES: &str = "bloomline has two modules here, so it needs 19.9 bits per key, where `sbbf-rs-safe` needs \
    26.4. But a present key reads a cache line of each module. With [one module](tuning.md#modules) and 22.1 bits, it is \
    about as fast.";
const TWO_REGISTERS: &str = "`sbbf-rs-safe` has blocks of 256 bits, which AVX2 tests at once. Blocks of 512 bits need \
    two steps, but have three quarters of the false positives.";

/// The rows of the first table, each with a contender, a table, its columns, and why a peer may be faster.
pub const HEADLINES: [(&str, &str, &str, Columns, &str); 16] = [
    ("absent keys", BLOOMLINE, ABSENT, BY_SIZE, BY_CHANCE),
    ("present keys", BLOOMLINE, PRESENT, BY_SIZE, BY_CHANCE),
    ("mixed keys, then a branch", BLOOMLINE, MIXED, BY_SIZE, MISPREDICTED),
    ("inserts", BLOOMLINE, INSERT, BY_SIZE, LAYOUT),
    ("absent keys, in batches", BLOOMLINE_BATCH, ABSENT, BY_SIZE, BY_CHANCE),
    ("mixed keys, in batches, then a branch", BLOOMLINE_BATCH, MIXED, BY_SIZE, BY_CHANCE),
    ("inserts, in batches", BLOOMLINE_BATCH, INSERT, BY_SIZE, BY_CHANCE),
    ("keys of 16 bytes", BLOOMLINE, BY_KEY, [&["16 bytes, 16 KiB", "16 bytes, 1 MiB"], &[]], BY_CHANCE),
    ("URLs", BLOOMLINE, BY_KEY, [&["lengths of URLs, 16 KiB", URLS], &[]], LENGTHS),
    ("keys of 20 to 80 bytes", BLOOMLINE, BY_KEY, OF_20_TO_80, LENGTHS),
    ("FPR 1%", BLOOMLINE, AT_RATES[0].0, ABSENT_OR_PRESENT, BY_CHANCE),
    ("FPR 0.1%", BLOOMLINE, AT_RATES[1].0, ABSENT_OR_PRESENT, BY_CHANCE),
    ("FPR 0.01%, absent keys", BLOOMLINE, AT_RATES[2].0, KEYS_ABSENT, TWO_MODULES),
    ("FPR 0.01%, present keys", BLOOMLINE, AT_RATES[2].0, KEYS_PRESENT, TWO_MODULES),
    ("AVX2, absent keys", AVX2, ABSENT, BY_SIZE, TWO_REGISTERS),
    ("AVX2, inserts", AVX2, INSERT, BY_SIZE, TWO_REGISTERS),
];

/// What follows the name of a table of the build for the machine's CPU.
pub const NATIVE: &str = ", native build";

/// The rows of a machine's table.
const CONTENDERS: [&str; 13] = [
    BASELINE,
    BLOOMLINE,
    CALL,
    "bloomline, native build",
    BLOOMLINE_BATCH,
    AVX2,
    "bloomline sse4.1",
    "bloomline portable",
    ROCKSDB,
    ROCKSDB_DEBIAN,
    SBBF,
    FASTBLOOM,
    XORF,
];

/// The columns of a machine's table. Each has a heading, and the table and the column that have its figures.
const COLUMNS: [(&str, &str, &str); 10] = [
    ("16 KiB", ABSENT, "16 KiB"),
    ("256 KiB", ABSENT, "256 KiB"),
    ("1 MiB", ABSENT, "1 MiB"),
    ("16 MiB", ABSENT, "16 MiB"),
    ("64 MiB", ABSENT, "64 MiB"),
    ("1 GiB", ABSENT, "1 GiB"),
    ("16 bytes", BY_KEY, "16 bytes, 1 MiB"),
    ("URL", BY_KEY, URLS),
    ("insert", INSERT, "1 MiB"),
    ("FPR, %", BY_BITS, "10"),
];
const URLS: &str = "lengths of URLs, 1 MiB";

const EQUAL_RATES: [&str; 6] = [BLOOMLINE, BLOOMLINE_BATCH, ONE_MODULE, ROCKSDB, SBBF, FASTBLOOM];
const AT_EQUAL_RATES: [(&str, &str, &str); 9] = [
    ("1%: bits per key", AT_RATES[0].0, "bits per key"),
    ("absent", AT_RATES[0].0, "absent, 500,000"),
    ("present", AT_RATES[0].0, "present, 500,000"),
    ("0.1%: bits per key", AT_RATES[1].0, "bits per key"),
    ("absent", AT_RATES[1].0, "absent, 500,000"),
    ("present", AT_RATES[1].0, "present, 500,000"),
    ("0.01%: bits per key", AT_RATES[2].0, "bits per key"),
    ("absent", AT_RATES[2].0, "absent, 500,000"),
    ("present", AT_RATES[2].0, "present, 500,000"),
];

/// The medians of one machine.
#[derive(Serialize, Deserialize)]
pub struct Page {
    /// For example "AMD Zen 4".
    pub name: String,
    pub date: String,
    /// What a reader must know about these figures.
    #[serde(default)]
    pub notes: Vec<String>,
    pub machine: Vec<(String, String)>,
    pub tables: Vec<Table>,
    /// Tables that are only plotted.
    #[serde(default)]
    pub plotted: Vec<Table>,
}

impl Page {
    /// Every page in `directory`, the newest first.
    pub fn load_all(directory: &Path) -> Result<Vec<Self>> {
        let mut pages: Vec<Self> = Vec::new();
        for entry in directory.read_dir().with_context(|| format!("cannot read {}", directory.display()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                pages.push(load(&path)?);
            }
        }
        pages.sort_by(|one, other| (&other.date, &one.name).cmp(&(&one.date, &other.name)));
        Ok(pages)
    }

    /// The name of its files, without the extension.
    pub fn file(&self) -> String {
        self.name.to_lowercase().replace("zen ", "zen").replace(' ', "-")
    }

    pub fn table(&self, title: &str) -> Option<&Table> {
        self.tables.iter().chain(&self.plotted).find(|table| table.title == title)
    }

    /// A median of a table.
    pub fn figure(&self, table: &str, contender: &str, column: &str) -> Option<f64> {
        let (row, column) = if table.starts_with(BY_KEY) { (column, contender) } else { (contender, column) };
        let table = self.table(table)?;
        let column = table.columns.iter().position(|other| other == column)?;
        table.rows.iter().find(|other| other.0 == row)?.1[column]
    }

    /// A table of some contenders, with columns as in [`COLUMNS`].
    fn figures(&self, contenders: &[&str], columns: &[(&str, &str, &str)]) -> String {
        let mut rows = vec![vec!["filter".to_owned()]];
        rows[0].extend(columns.iter().map(|column| column.0.to_owned()));
        for contender in contenders {
            let mut row = vec![(*contender).to_owned()];
            let (contender, build) =
                contender.strip_suffix(NATIVE).map_or((*contender, ""), |contender| (contender, NATIVE));
            row.extend(columns.iter().map(|(_, table, column)| {
                let figure = self.figure(&format!("{table}{build}"), contender, column);
                figure.map_or("–".to_owned(), |figure| format!("{figure:.2}"))
            }));
            rows.push(row);
        }
        markdown(&rows)
    }

    /// A contender's time ÷ the fastest peer's, and that peer, in the column where this is worst.
    pub fn worst(&self, contender: &str, table: &str, columns: &[&str]) -> Option<(f64, &str)> {
        let ratios = columns.iter().filter_map(|column| {
            let times = PEERS.iter().filter_map(|peer| Some((self.figure(table, peer, column)?, *peer)));
            let (time, peer) = times.min_by(|one, other| one.0.total_cmp(&other.0))?;
            Some((self.figure(table, contender, column)? / time, peer))
        });
        ratios.max_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// The machine and its table.
    fn section(&self) -> String {
        let shown = |fact: &&(String, String)| ["CPU", "caches", "compiler", "RocksDB"].contains(&&*fact.0);
        let facts = self.machine.iter().filter(shown).map(|(name, fact)| format!("{name} {fact}"));
        let notes = String::from_iter(self.notes.iter().map(|note| format!("{note}\n\n")));
        let table = self.figures(&CONTENDERS, &COLUMNS);
        format!(
            "## {}, {}\n\n{}.\n\n{notes}{table}\n",
            self.name,
            self.date,
            Vec::from_iter(facts).join(", ")
        )
    }

    /// The rows of the README's table.
    #[cfg(test)]
    pub fn readme_rows(&self) -> Vec<String> {
        let name_and_contender = [
            ("**bloomline**", BLOOMLINE),
            ("RocksDB", ROCKSDB),
            ("`sbbf-rs-safe`", SBBF),
            ("`fastbloom`", FASTBLOOM),
        ];
        let row = |(name, contender): (&str, &str)| {
            let columns = [(BY_BITS, "10"), (ABSENT, "1 MiB"), (ABSENT, "64 MiB"), (BY_KEY, URLS)];
            let [rate, times @ ..] = columns.map(|(table, column)| {
                let figure = self.figure(table, contender, column);
                figure.map_or("–".to_owned(), |figure| format!("{figure:.2}"))
            });
            format!("| {name} | {rate}% | {} |", times.join(" | "))
        };
        name_and_contender.map(row).into()
    }
}

/// The first table, and what it says where a peer is faster.
fn headlines(pages: &[Page]) -> (String, String) {
    let mut rows = vec![vec!["bloomline ÷ the fastest peer".to_owned()]];
    for page in pages {
        rows[0].extend([format!("{}, ≤ 1 MiB", page.name), format!("{}, ≥ 16 MiB", page.name)]);
    }
    rows[0].push("fastest peer".to_owned());
    let mut losses: Vec<(&str, Vec<&str>)> = Vec::new();
    for (what, contender, table, columns, why) in HEADLINES {
        let cells =
            pages.iter().flat_map(|page| columns.map(|columns| page.worst(contender, table, columns)));
        let (mut row, mut peers) = (vec![what.to_owned()], Vec::new());
        for cell in cells {
            let text = cell.map_or("–".to_owned(), |(ratio, _)| format!("{ratio:.2}"));
            let is_slower = cell.is_some_and(|(ratio, _)| ratio >= 1.005);
            row.push(if is_slower { format!("**{text}**") } else { text });
            peers.extend(cell.map(|(_, peer)| peer).filter(|peer| !peers.contains(peer)));
            if is_slower {
                match losses.iter_mut().find(|(reason, _)| *reason == why) {
                    Some((_, rows)) if rows.last() == Some(&what) => {}
                    Some((_, rows)) => rows.push(what),
                    None => losses.push((why, vec![what])),
                }
            }
        }
        row.push(peers.join(", "));
        rows.push(row);
    }
    let losses = losses.iter().map(|(why, rows)| format!("- *{}*: {why}\n", rows.join("*, *")));
    (markdown(&rows), losses.collect())
}

/// What it costs to open a filter for each lookup, in a row for each machine.
fn opened(pages: &[Page]) -> String {
    let mut rows = vec![vec!["opened for each lookup ÷ kept open".to_owned()]];
    rows[0].extend(OPENED_COLUMNS.map(str::to_owned));
    for page in pages {
        let figures = OPENED_COLUMNS.iter().map(|column| page.figure(OPENED, OPENED, column));
        let cells = figures.map(|figure| figure.map_or("–".to_owned(), |figure| format!("{figure:.2}")));
        rows.push(std::iter::once(page.name.clone()).chain(cells).collect());
    }
    markdown(&rows)
}

/// The page about all machines.
pub fn summary(pages: &[Page]) -> String {
    let (headlines, losses) = headlines(pages);
    let equal = pages.iter().filter(|page| page.table(AT_RATES[0].0).is_some());
    let equal =
        equal.map(|page| format!("{}:\n\n{}\n", page.name, page.figures(&EQUAL_RATES, &AT_EQUAL_RATES)));
    format!(
        include_str!("summary.txt"),
        headlines = headlines,
        losses = losses,
        equal = String::from_iter(equal),
        opened = opened(pages),
        machines = String::from_iter(pages.iter().map(Page::section)),
    )
}
