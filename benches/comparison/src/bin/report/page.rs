//! What is kept of a machine's measurements, as JSON, and the page that is written from it.

use std::path::Path;

use anyhow::{Context, Result};
use bloomline_comparison::line_up::{
    AVX2, BASELINE, BLOOMLINE, BLOOMLINE_BATCH, FASTBLOOM, MODULES, ROCKSDB, ROCKSDB_DEBIAN, SBBF, XORF,
};
use bloomline_comparison::results::{ABSENT, AT_RATES, BY_BITS, BY_KEY, INSERT, Table, load, markdown};
use serde::{Deserialize, Serialize};

/// The rows of a machine's table.
const CONTENDERS: [&str; 11] = [
    BASELINE,
    BLOOMLINE,
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

const EQUAL_RATES: [&str; 5] = [BLOOMLINE, MODULES, ROCKSDB, SBBF, FASTBLOOM];
const AT_EQUAL_RATES: [(&str, &str, &str); 6] = [
    ("1%: bits per key", AT_RATES[0].0, "bits per key"),
    ("absent", AT_RATES[0].0, "absent, 500,000"),
    ("present", AT_RATES[0].0, "present, 500,000"),
    ("0.1%: bits per key", AT_RATES[1].0, "bits per key"),
    ("absent", AT_RATES[1].0, "absent, 500,000"),
    ("present", AT_RATES[1].0, "present, 500,000"),
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
    pub targets: Vec<Target>,
    pub tables: Vec<Table>,
    /// Tables that are only plotted.
    #[serde(default)]
    pub plotted: Vec<Table>,
}

/// A figure, and the value that it should not exceed, if there is one.
#[derive(Serialize, Deserialize)]
pub struct Target {
    pub name: String,
    pub at_most: Option<f64>,
    pub measured: Option<f64>,
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
        let (row, column) = if table == BY_KEY { (column, contender) } else { (contender, column) };
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
            row.extend(columns.iter().map(|(_, table, column)| {
                let figure = self.figure(table, contender, column);
                figure.map_or("–".to_owned(), |figure| format!("{figure:.2}"))
            }));
            rows.push(row);
        }
        markdown(&rows)
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

    /// The targets, with what was measured.
    pub fn targets(&self) -> String {
        let mut rows = vec![["target", "at most", "measured"].map(str::to_owned).to_vec()];
        rows.extend(self.targets.iter().map(|Target { name, at_most, measured }| {
            let text = |figure: &Option<f64>| figure.map_or(String::new(), |figure| format!("{figure:.2}"));
            let is_missed = measured > at_most && at_most.is_some();
            vec![name.clone(), text(at_most), text(measured) + if is_missed { " missed" } else { "" }]
        }));
        markdown(&rows)
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

/// The page about all machines.
pub fn summary(pages: &[Page]) -> String {
    let equal = pages.iter().find(|page| page.table(AT_RATES[0].0).is_some());
    format!(
        include_str!("summary.txt"),
        equal = equal.map_or(String::new(), |page| {
            format!("{}:\n\n{}", page.name, page.figures(&EQUAL_RATES, &AT_EQUAL_RATES))
        }),
        machines = String::from_iter(pages.iter().map(Page::section)),
    )
}
