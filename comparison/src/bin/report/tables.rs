//! The tables of measurements.

use bloomline_comparison::keys::SHAPES;
use bloomline_comparison::line_up::{BASELINE, BY_KEY};
use bloomline_comparison::race::median;
use bloomline_comparison::results::{Results, Workload, size_text};

/// A Markdown table whose columns also line up as text: the first aligned left, the others right.
pub fn table_of(rows: &[Vec<String>]) -> String {
    let Some(header) = rows.first() else {
        return String::new();
    };
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3);
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |row: &[String]| {
        let mut line = String::from("|");
        for (i, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            line += &if i == 0 { format!(" {cell:<width$} |") } else { format!(" {cell:>width$} |") };
        }
        line + "\n"
    };
    let dashes = |(i, &width): (usize, &usize)| {
        if i == 0 { "-".repeat(width) } else { format!("{}:", "-".repeat(width - 1)) }
    };
    let rule: Vec<String> = widths.iter().enumerate().map(dashes).collect();
    let mut text = line(header) + &line(&rule);
    for row in &rows[1..] {
        text += &line(row);
    }
    text
}

pub fn machine(results: &Results) -> String {
    let machine = &results.machine;
    let rows = [
        ("CPU", machine.cpu.clone()),
        ("cores", machine.cores.to_string()),
        ("caches", machine.caches.clone()),
        ("transparent huge pages", machine.huge_pages.clone()),
        ("system", machine.os.clone()),
        ("compiler", machine.rustc.clone()),
        ("date (UTC)", machine.date.clone()),
        ("command", format!("`{}`", results.command)),
    ];
    let mut text = String::from("|  |  |\n|---|---|\n");
    for (name, value) in rows {
        text += &format!("| {name} | {value} |\n");
    }
    text + "\n"
}

pub fn all(results: &Results, title: &str) -> String {
    let mut text = format!("## {title}\n\n");
    text += "Median nanoseconds per operation. In brackets, the ratio to the baseline, which reads the cache line and \
             does nothing with it. FPR measured at 1 MiB. Filters marked \\* hash the given hash again, because their \
             libraries do not accept hashes.\n\n";
    for workload in Workload::ALL {
        let table = speeds(results, workload);
        if !table.is_empty() {
            text += &format!("### {}\n\n{table}\n", workload.title());
        }
    }
    if !results.key_timings.is_empty() {
        text += &format!("### Lookups of absent keys, hashing included\n\n{}\n", by_key(results));
    }
    if !results.builds.is_empty() {
        text += &format!("### Building a filter from hashes\n\n{}\n", builds(results));
    }
    if !results.key_builds.is_empty() {
        text += &format!(
            "### Building and serializing a filter of a million byte keys, hashing included\n\n{}\n",
            key_builds(results)
        );
    }
    text
}

fn speeds(results: &Results, workload: Workload) -> String {
    let sizes = results.sizes();
    let mut rows = vec![["", "bits per key", "FPR"].map(str::to_owned).to_vec()];
    rows[0].extend(sizes.iter().map(|&size| size_text(size)));
    for contender in results.contenders(workload) {
        let entry = results.entry(contender);
        let mark = if entry.is_some_and(|entry| entry.rehashes) { " \\*" } else { "" };
        let mut row = vec![
            format!("{contender}{mark}"),
            entry.map_or(String::new(), |entry| format!("{:.2}", entry.bits_per_key)),
            entry.map_or(String::new(), |entry| format!("{:.3} %", 100.0 * entry.fpr)),
        ];
        for &size in &sizes {
            let cell = results.nanoseconds(size, workload, contender).map(|nanoseconds| {
                let to_baseline = results.ratio(size, workload, contender, BASELINE);
                let to_baseline = to_baseline.map_or(String::new(), |ratio| format!(" ({ratio:.1})"));
                format!("{nanoseconds:.2}{to_baseline}")
            });
            row.push(cell.unwrap_or_default());
        }
        rows.push(row);
    }
    if rows.len() > 1 { table_of(&rows) } else { String::new() }
}

fn by_key(results: &Results) -> String {
    let mut rows = vec![["", "filter"].map(str::to_owned).to_vec()];
    rows[0].extend(BY_KEY.map(str::to_owned));
    for size_bytes in results.sizes() {
        for shape in SHAPES {
            let mut row = vec![shape.name.to_owned(), size_text(size_bytes)];
            let cells = BY_KEY.map(|name| results.key_nanoseconds(size_bytes, shape.name, name));
            if cells.iter().any(Option::is_some) {
                row.extend(cells.map(|cell| cell.map_or(String::new(), |cell| format!("{cell:.2}"))));
                rows.push(row);
            }
        }
    }
    table_of(&rows)
}

fn builds(results: &Results) -> String {
    let mut rows = vec![["", "keys", "ns per key"].map(str::to_owned).to_vec()];
    let row = |timing: &bloomline_comparison::results::BuildTiming| {
        vec![timing.contender.clone(), timing.keys.to_string(), median_text(&timing.rounds)]
    };
    rows.extend(results.builds.iter().map(row));
    table_of(&rows)
}

fn key_builds(results: &Results) -> String {
    let mut rows = vec![["", "keys", "ns per key", "scratch bytes per key"].map(str::to_owned).to_vec()];
    rows.extend(results.key_builds.iter().map(|build| {
        vec![
            build.contender.clone(),
            build.shape.clone(),
            median_text(&build.rounds),
            format!("{:.2}", build.scratch_bytes),
        ]
    }));
    table_of(&rows)
}

fn median_text(rounds: &[f64]) -> String {
    median(rounds.iter().copied()).map_or(String::new(), |median| format!("{median:.2}"))
}
