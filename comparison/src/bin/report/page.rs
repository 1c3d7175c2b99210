//! What is kept of a machine's measurements, as JSON, and the pages that are written from it.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use bloomline_comparison::line_up::{
    AVX2, BASELINE, BLOOMLINE, BLOOMLINE_BATCH, FASTBLOOM, HASH_KEYS, ROCKSDB, ROCKSDB_DEBIAN, SBBF,
};
use bloomline_comparison::results::{ABSENT, BY_KEY, Table, markdown};
use serde::{Deserialize, Serialize};

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

/// A figure that should be at most a certain value, if there is one.
#[derive(Serialize, Deserialize)]
pub struct Target {
    pub name: String,
    pub at_most: Option<f64>,
    pub measured: Option<f64>,
}

impl Page {
    /// Every page in `directory`, the newest first.
    pub fn load_all(directory: &Path) -> Result<Vec<Self>> {
        let mut pages = Vec::new();
        for entry in directory.read_dir().with_context(|| format!("cannot read {}", directory.display()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let page: Self = serde_json::from_str(&std::fs::read_to_string(&path)?)
                    .with_context(|| format!("{} is not a page's data", path.display()))?;
                pages.push(page);
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

    pub fn markdown(&self) -> String {
        let facts = self.machine.iter().map(|(name, value)| format!("| {name} | {value} |\n"));
        let tables = self.tables.iter().map(|table| format!("\n### {}\n\n{}", table.title, table.markdown()));
        format!(
            include_str!("machine.txt"),
            name = self.name,
            notes = String::from_iter(self.notes.iter().map(|note| format!("{note}\n\n"))),
            facts = String::from_iter(facts),
            targets = targets(&[self]),
            tables = String::from_iter(tables),
        )
    }
}

/// The page about all machines.
pub fn summary(pages: &[Page]) -> String {
    let mut machines = vec![["", "CPU", "caches", "compiler", "date"].map(str::to_owned).to_vec()];
    for page in pages {
        let mut row = vec![format!("[{}](performance/{}.md)", page.name, page.file())];
        for name in &machines[0][1..4] {
            let fact = page.machine.iter().find(|fact| fact.0 == *name);
            row.push(fact.map_or(String::new(), |fact| fact.1.clone()));
        }
        row.push(page.date.clone());
        machines.push(row);
    }

    let mut figures = vec![vec![String::new()]];
    figures[0].extend(pages.iter().map(|page| page.name.clone()));
    let mut add = |name: String, table: &str, row: &str, column: &str| {
        let figure = |page: &Page| {
            let table = page.table(table)?;
            let column = table.columns.iter().position(|other| other == column)?;
            table.rows.iter().find(|other| other.0 == row)?.1[column]
        };
        let cells: Vec<_> = pages.iter().map(figure).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.iter().map(|cell| cell.map_or(String::new(), |cell| format!("{cell:.2}")));
            figures.push(std::iter::once(name).chain(cells).collect());
        }
    };
    for size in ["16 KiB", "1 MiB", "64 MiB"] {
        for name in [BASELINE, BLOOMLINE, AVX2, BLOOMLINE_BATCH, ROCKSDB, ROCKSDB_DEBIAN, SBBF, FASTBLOOM] {
            add(format!("{name}: {size}"), ABSENT, name, size);
        }
    }
    for shape in ["16 bytes, 1 MiB", "lengths of URLs, 1 MiB"] {
        for name in HASH_KEYS {
            add(format!("key of {shape}: {name}"), BY_KEY, shape, name);
        }
    }
    format!(
        include_str!("summary.txt"),
        machines = markdown(&machines),
        targets = targets(&Vec::from_iter(pages)),
        figures = markdown(&figures),
    )
}

/// The targets of the first page, which is the newest, with a column for each page.
fn targets(pages: &[&Page]) -> String {
    let mut rows = vec![vec![String::new(), "at most".to_owned()]];
    rows[0].extend(pages.iter().map(|page| page.name.clone()));
    for Target { name, .. } in pages.iter().take(1).flat_map(|newest| &newest.targets) {
        let of_pages = || pages.iter().map(|page| page.targets.iter().find(|target| target.name == *name));
        let limits: BTreeSet<String> =
            of_pages().flatten().filter_map(|target| Some(format!("{:.2}", target.at_most?))).collect();
        let mut row = vec![name.clone(), Vec::from_iter(limits).join(" or ")];
        row.extend(of_pages().map(|target| {
            let Some(Target { measured: Some(measured), at_most, .. }) = target else {
                return String::new();
            };
            let mark = if at_most.is_some_and(|at_most| *measured > at_most) { "**" } else { "" };
            format!("{mark}{measured:.2}{mark}")
        }));
        rows.push(row);
    }
    markdown(&rows)
}
