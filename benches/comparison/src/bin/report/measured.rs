//! The page of the machine that the benchmark ran on.

use bloomline_comparison::results::{
    ABSENT, AT_RATES, BY_BITS, BY_K, BY_KEY, INSERT, MIXED, OPENED, PRESENT, Results, Table,
};

use crate::page::{NATIVE, Page};

/// The page of this machine.
pub fn page(default: &Results, native: &Results) -> Page {
    let is_quick = default.machine.facts.iter().any(|(_, fact)| fact.contains("--quick"));
    let mut tables = Vec::from(AT_RATES.map(|(title, _)| default.table(title)));
    tables.extend([BY_KEY, ABSENT, PRESENT, MIXED, INSERT, OPENED].map(|title| default.table(title)));
    tables.extend([BY_KEY, ABSENT, INSERT].map(|title| {
        let table = native.table(title);
        Table { title: format!("{title}{NATIVE}"), ..table }
    }));
    tables.retain(|table| !table.rows.is_empty());
    Page {
        name: default.machine.name.clone(),
        date: default.machine.date.clone(),
        notes: is_quick.then(|| "**From a quick run: not exact.**".to_owned()).into_iter().collect(),
        machine: default.machine.facts.clone(),
        tables,
        plotted: [BY_K, BY_BITS].map(|title| default.table(title)).into(),
    }
}
