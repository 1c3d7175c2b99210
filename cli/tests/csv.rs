//! Rows of CSV, written by the `csv` crate.
#![forbid(unsafe_code)]

mod common;

use std::collections::HashSet;

use bloomline::{BloomView, mix};
use common::{Place, gzip, stderr};
use csv::{QuoteStyle, Terminator, WriterBuilder};
use predicates::prelude::*;
use predicates::str::contains;

const URLS: &str = "id,url\n1,\"http://x/?a=1,2\"\n2,\"http://x/?a=1,3\"\n";

/// A row as it is written, and its key, which is its third field.
type Row = (Vec<u8>, Vec<u8>);

/// Rows with quotes, newlines and CR LF in their fields, and ended by both. Some keys repeat, quoted in other ways.
fn rows(n: u64, seed: u64) -> Vec<Row> {
    let mut state = seed;
    let mut random = move |n: u64| {
        state += 1;
        mix(state) % n
    };
    const PARTS: [&str; 12] = ["", "a", "b", "\"", "\"\"", ",", "\n", "\r\n", "\r", " ", "\u{feff}", "é"];
    let field = |random: &mut dyn FnMut(u64) -> u64| {
        let n = if random(3000) == 0 { 200_000 } else { random(6) };
        (0..n).map(|_| PARTS[random(12) as usize]).collect::<String>().into_bytes()
    };
    let row = |_| {
        let key = [PARTS[random(12) as usize], &random(n / 20).to_string()].concat().into_bytes();
        let fields = [field(&mut random), field(&mut random), key.clone(), field(&mut random)];
        let style = [QuoteStyle::Always, QuoteStyle::Necessary, QuoteStyle::NonNumeric][random(3) as usize];
        let end = if random(2) == 0 { Terminator::CRLF } else { Terminator::Any(b'\n') };
        let mut writer = WriterBuilder::new().quote_style(style).terminator(end).from_writer(Vec::new());
        writer.write_record(&fields).unwrap();
        (writer.into_inner().unwrap(), key)
    };
    (0..n).map(row).collect()
}

fn text(rows: &[Row]) -> Vec<u8> {
    rows.iter().flat_map(|(row, _)| row.clone()).collect()
}

/// The first row of each key.
fn distinct(rows: &[Row]) -> Vec<Row> {
    let mut seen = HashSet::new();
    rows.iter().filter(|(_, key)| seen.insert(key)).cloned().collect()
}

fn prints(place: &Place, line: &str, expected: &[u8]) {
    let output = place.bloomline(line).output().unwrap();
    assert!(output.stdout == expected, "{line}: {} and {} bytes", output.stdout.len(), expected.len());
}

#[test]
fn rows_are_printed_as_they_were() {
    let place = Place::new();
    let rows = rows(6_000, 1);
    let (all, once) = (text(&rows), text(&distinct(&rows)));
    assert!(once.len() < all.len() * 9 / 10);
    place.write("rows", &all);
    place.write("rows.gz", gzip(&all));
    let dedup = "dedup -q --csv --column 3";
    prints(&place, &format!("{dedup} rows"), &once);
    prints(&place, &format!("{dedup} rows.gz"), &once);
    place.feed(dedup, all.clone()).success().stdout(once.clone());
    // The last row without its end.
    let cut = all.strip_suffix(b"\n").unwrap();
    place.feed(dedup, cut).success().stdout(once.clone());
    place.feed("dedup --csv --column 3 --keys 1e5", all.clone()).stderr(contains("6,000 lines, "));
    // In two runs, and after a failed one.
    let (first, second) = rows.split_at(2_000);
    place.write("first", text(first));
    place.write("second", text(second));
    let before = text(&distinct(first));
    prints(&place, &format!("{dedup} --state s first"), &before);
    prints(&place, &format!("{dedup} --state s second"), &once[before.len()..]);
    prints(&place, &format!("{dedup} --state s rows"), b"");
}

#[test]
fn rows_are_built_and_looked_up() {
    let place = Place::new();
    let rows = rows(6_000, 2);
    let (known, new) = rows.split_at(3_000);
    place.write("rows", text(&rows));
    place.write("known", text(known));
    // From a file, by several threads, and from a pipe.
    for (i, build) in
        ["$b build --as-json -o f known", "cat known | $b build --as-json -o f"].iter().enumerate()
    {
        let build = format!("{build} --fpr 1e-9 --csv --column 3");
        let figures: serde_json::Value =
            serde_json::from_str(&common::stdout(&place.sh(build).success())).unwrap();
        assert_eq!(
            (&figures["lines"], &figures["known_keys"]),
            (&3_000.into(), &distinct(known).len().into()),
            "{i}"
        );
        let filter = place.read("f");
        let filter = BloomView::from_standalone(&filter).unwrap();
        assert!(known.iter().all(|(_, key)| filter.contains(&key[..])));
    }
    let keys: HashSet<_> = known.iter().map(|(_, key)| key).collect();
    let (old, new): (Vec<_>, Vec<_>) = new.iter().cloned().partition(|(_, key)| keys.contains(key));
    assert!(old.len() > 300 && new.len() > 300);
    prints(&place, "check --csv --column 3 f rows", &[text(known), text(&old)].concat());
    prints(&place, "check -v --csv --column 3 f rows", &text(&new));
}

/// Rows with and without quotes have the same keys.
#[test]
fn keys_do_not_depend_on_quotes() {
    let place = Place::new();
    for (column, first, repeated) in [
        (2, "1,x\r\n", "2,x\n3,\"x\"\r\n4,\"x\"\n5,x"),
        (2, "1,\"x\"\r\n", "2,x\r\n3,x"),
        (2, "1,\"x\r\"\n2,\"x\"\n", "3,x\n4,\"x\r\"\r\n"),
        (1, "1,\"\"\n\u{feff}x,\"\"\nx,\"\"\n", "\u{feff}x\nx\n\"\u{feff}x\"\n"),
        (1, "5\" disk,1\n", "\"5\"\" disk\",\"\n\"\n"),
        (2, "1,\n", "2,\"\"\n"),
    ] {
        let dedup = format!("dedup -q --csv --column {column}");
        place.feed(dedup, format!("{first}{repeated}")).success().stdout(first);
    }
}

/// Wherever a file is cut, the rows before are printed, and a quote that is open is an error.
#[test]
fn rows_that_are_cut() {
    let place = Place::new();
    place.feed("build -q -o f", "another").success();
    let mut rows = rows(50, 3);
    rows.retain(|(row, _)| row.len() < 1000);
    let all = text(&rows);
    for cut in (0..all.len()).step_by(29).map(|len| &all[..len]) {
        let is_open = cut.iter().filter(|&&byte| byte == b'"').count() % 2 == 1;
        let (mut expected, mut len) = (cut.to_vec(), 0);
        let whole = rows.iter().map(|(row, _)| row.len()).take_while(|row| {
            len += row;
            len <= cut.len()
        });
        let whole = whole.sum();
        expected.truncate(if is_open { whole } else { cut.len() });
        if !is_open && cut.len() > whole {
            expected.push(b'\n');
        }
        let check = place.feed("check -v --csv --column 1 f", cut).stdout(expected.clone());
        check.code(if is_open { 2 } else { i32::from(expected.is_empty()) });
    }
}

#[test]
fn quotes_without_csv_are_noted() {
    let place = Place::new();
    place.write("urls", URLS);
    place.write("tabs", URLS.replace(',', "\t").replace("id\turl", "id\t\"url\""));
    let note = |line: &str| {
        let text = stderr(&place.run(line).success());
        text.lines().filter(|line| line.contains("--csv")).map(str::to_owned).collect::<Vec<_>>()
    };
    let dedup = "dedup --column 2 --delimiter ,";
    let text = "bloomline: urls: quotes around column 2 are part of the key (if this is CSV, give --csv)";
    assert_eq!(note(&format!("{dedup} urls")), [text]);
    assert_eq!(note("build -o f --column 2 --delimiter , urls urls"), [text]);
    assert_eq!(note("check f --column 2 --delimiter , urls"), [text]);
    for quiet in [
        format!("{dedup} -q urls"),
        format!("{dedup} --csv urls"),
        "dedup --column 1 tabs".into(),
        "dedup urls".into(),
    ] {
        assert_eq!(note(&quiet), [""; 0], "{quiet}");
    }
    let text = "bloomline: tabs: quotes around column 2 are part of the key (if this is CSV, give --csv --delimiter '\\t')";
    assert_eq!(note("dedup --column 2 tabs"), [text]);
    // As the notes say.
    place.run(format!("{dedup} -q --csv urls")).success().stdout(URLS);
    place.run("dedup -q --column 2 --csv --delimiter '\\t' tabs").success().stdout(place.text("tabs"));
    place.run(format!("{dedup} -q urls")).stdout(contains("\n2").not());
}

#[test]
fn headers() {
    let place = Place::new();
    place.write("a", URLS);
    place.write("b", "\u{feff}\"id\",\"url\"\r\n3,\"http://x/?a=1,2\"\r\n");
    place.write("same", "\u{feff}id,url\r\n4,http://x/4\r\n2,http://x/2");
    place.write("other", "url,id\nhttp://x/5,5\n");
    place.write("only", "id,url\n");
    place.write("empty", "");
    place.write("twice", "id,url,id\n1,x,2\n");
    place.write("short", "id,url\n\"1\n\",x\n2\n");
    let dedup = "dedup -q --csv --column url";
    place.run(format!("{dedup} a")).success().stdout(URLS);
    // Printed once, without the other mark.
    let both = format!("{URLS}4,http://x/4\r\n2,http://x/2\n");
    place.run(format!("{dedup} empty only a same")).success().stdout(both.clone());
    place.run(format!("{dedup} b")).success().stdout(place.text("b"));
    place.run(format!("{dedup} only")).success().stdout("id,url\n");
    // A row without a header before it is one. As a row, it is a key.
    place.run("dedup -q --csv --column 1 b same").stdout(place.text("b") + "4,http://x/4\r\n2,http://x/2\n");
    // Nothing of a file whose rows would be below another header.
    let text = "other: its header is not that of the file before (give only files with the same header)";
    place.run(format!("{dedup} a other same")).code(2).stdout(both.clone()).stderr(contains(text));
    // A filter has the column of each.
    place.run("build -q -o f --csv --column url a other").success();
    place.run("build -q -o g --csv --column 2 a").success();
    let found = |filter: &str| {
        let filter = place.read(filter);
        let filter = BloomView::from_standalone(&filter).unwrap();
        ["http://x/?a=1,2", "http://x/?a=1,3", "http://x/5", "5", "url"].map(|key| filter.contains(key))
    };
    assert_eq!(
        (found("f"), found("g")),
        ([true, true, true, false, false], [true, true, false, false, true])
    );
    place
        .run("check --csv --column url f same a")
        .stdout(URLS.replace("id", "\u{feff}id").replacen('\n', "\r\n", 1));
    place.run("check -v --csv --column url f a").code(1).stdout("id,url\n");
    place.run("check -c --csv --column url f a other").stdout("a:2\nother:1\n");
    let build = |arguments: &str, text: &str| place.refuses(format!("build -o g {arguments}"), &[text]);
    build("--csv --column ul a", "a: no column is called ul: \"id,url\" (change --column or --delimiter)");
    build(
        "--csv --column id twice",
        "twice: several columns are called id: \"id,url,id\" (give the number of one)",
    );
    build(
        "--csv --column url short",
        "short: line 4 has no column url: \"2\" (remove it, or change --column",
    );
    build("--column url a", "--column url: a name is of CSV (add --csv, or give a number)");
    build("--csv a", "--column");
    build("--csv --column 1 --crlf a", "cannot be used with");
    build("--csv --column 1 --delimiter '\"' a", "--delimiter: quotes and ends");
    build("--skip-short a", "--column");
}

/// A second run appends to what the first one printed.
#[test]
fn a_header_is_printed_by_the_first_run() {
    let place = Place::new();
    place.write("monday", URLS);
    place.write("tuesday", "id,url\n3,x\n1,\"http://x/?a=1,2\"\n");
    let dedup = "dedup -q --csv --column url --state s";
    // Nothing but the header, and then an error.
    place.feed(dedup, "id,url\n\"1").code(2).stdout("id,url\n");
    place.run(format!("{dedup} monday")).success().stdout(URLS.replacen("id,url\n", "", 1));
    place.run(format!("{dedup} tuesday")).success().stdout("3,x\n");
    let options = &place.json("info --as-json s")["key_options"];
    assert_eq!(options, "--csv --column url");
    for (options, text) in [
        ("--csv --column id", "made with --csv --column url, not with --csv --column id (give its options"),
        ("--csv --column 2", "made with --csv --column url, not with --csv --column 2"),
        ("--column 2", "made with --csv --column url, not with --column 2"),
        ("--csv --column url --delimiter '\\t'", "not with --csv --column url --delimiter '\\t'"),
    ] {
        place.refuses(format!("dedup --state s {options} monday"), &[text]);
    }
    // The name stays when a state is rewritten.
    place.run("dedup -q --csv --column url --keys 9 --state t monday").success();
    place.run("merge -q -o u t t").success();
    place.run("grow -q t").success();
    for state in ["t", "u"] {
        place.run(format!("dedup -q --csv --column url --state {state} monday")).success().stdout("");
    }
    // Each byte of the name counts.
    let bytes = place.read("u");
    place.run("info u").success().stdout(contains("--csv --column url"));
    for at in bytes.len() - 67..bytes.len() {
        place.damage("u", at, "damaged");
        place.refuses("dedup --csv --column url --state damaged monday", &["damaged: "]);
    }
    place.write("cut", &bytes[bytes.len() - 64..]);
    place.refuses("dedup --csv --column url --state cut monday", &["cut: "]);
}

#[test]
fn short_rows_are_skipped() {
    let place = Place::new();
    let csv = "a,1\n\"b\nc\"\n\nd,\"2\"\ne,2,\n";
    place.write("csv", csv);
    place.write("plain", "a,1\nb\n\nd,2\ne,2,\n");
    for (file, options, number) in [("csv", "--csv", 2), ("plain", "--delimiter ,", 2)] {
        let options = format!("--column 2 {options}");
        let text = format!("{file}: line {number} has no column 2: ");
        let remedy = "(remove it, or change --column or --delimiter, or give --skip-short)";
        place.refuses(format!("build -o f {options} {file}"), &[&text, remedy]);
        let notes = "bloomline: 2 lines without column 2 skipped\n";
        let rows = place.text(file);
        let [first, last] = [&rows[..4], &rows[rows.find('d').unwrap()..]];
        let dedup = place.run(format!("dedup --skip-short {options} {file}")).success();
        dedup.stdout(format!("{first}{}", last.lines().next().unwrap().to_owned() + "\n")).stderr(format!(
            "{notes}bloomline: 3 lines, 2 printed, 1 dropped, likely none of them new (FPR now 3.08e-46)\n"
        ));
        let build = place.run(format!("build --skip-short -o f {options} {file}")).success();
        build.stderr(predicate::str::starts_with(notes).and(contains("f: 3 lines, 2 distinct keys")));
        let check = place.run(format!("check --skip-short {options} f {file}")).success();
        check.stdout(format!("{first}{last}")).stderr(notes);
        place.run(format!("check -v --skip-short {options} f {file}")).code(1).stdout("").stderr(notes);
        place.run(format!("dedup -q --skip-short {options} {file}")).success().stderr("");
        // Line numbers count them.
        place.write("late", rows + "f,x\n");
        let late = format!("late: line {} is not an integer", if file == "csv" { 7 } else { 6 });
        place.refuses(format!("build -o g --integers --skip-short {options} late"), &[&late]);
    }
}

#[test]
fn a_quote_that_nobody_closes() {
    let place = Place::new();
    place.write("open", "a,1\n\"b\n\",\"2\nc,3\n");
    let text = "open: line 2: a quote is not closed (close it, or omit --csv)";
    place.refuses("build -o f --csv --column 1 open", &[text]);
    place.write("rest", "c,3\n");
    let dedup = "dedup --state s --csv --column 1";
    // The rows before are printed and recorded, and the next file is read.
    place.run(format!("{dedup} open rest")).code(2).stdout("a,1\nc,3\n").stderr(contains(text));
    place.run(format!("{dedup} -q rest")).success().stdout("");
    // In a file without end, memory has one.
    let endless = "(printf 'a,1\\n\"b'; tr '\\0' x </dev/zero) | $b dedup --csv --column 1";
    place.sh(endless).code(2).stdout("a,1\n").stderr(contains("standard input: line 2: a quote is not"));
}
