//! What `dedup` promises from run to run: no line is lost beyond the requested false-positive rate.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use bloomline::variants::ScalableBloomFilter;
use bloomline::{BloomFilter, Sizing};
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;

use common::{ON_ONE_CORE, Place, end_of_footer, exchange, footer, gzip, lines};
use common::{objects, reads, settle, stderr, stdout};

/// Without a state, lines are printed until there are too many.
fn stops(place: &Place, line: &str, input: &str, printed: String, texts: &[&str]) {
    let error = stderr(&place.feed(line, input).code(2).stdout(printed));
    assert!(error.lines().count() == 1 && texts.iter().all(|text| error.contains(text)), "{error}");
}

#[test]
fn a_full_filter_stops_at_the_line_that_does_not_fit() {
    let place = Place::new();
    let many = lines(0..100_000);
    place.write("many", &many);
    let most = most_keys(&place, "dedup --keys 1000", lines(0..2000));
    for more in ["", "many", "-q"] {
        let dedup = format!("dedup --keys 1000 {more}");
        stops(&place, &dedup, &many, lines(0..most), &["0.0001%", "(raise --keys, or add --grow)"]);
        place.feed(format!("{dedup} --grow"), &many[..]).success().stdout(many.clone());
    }
    // A state records what was printed, in the first run and in later ones.
    for held in [0, 900] {
        let dedup = "dedup -q --state s --keys 1000";
        if held > 0 {
            place.feed(dedup, lines(0..held)).success().stdout(lines(0..held));
        }
        let texts = ["s: ", "the lines printed are recorded", "run `bloomline grow s`, then dedup again"];
        stops(&place, dedup, &lines(0..3000), lines(held..most), &texts);
        // Repeats are taken still.
        place.feed(dedup, lines(0..most)).success().stdout("");
        place.run("grow s").success();
        place.feed(dedup, lines(0..3000)).success().stdout(lines(most..3000));
        place.remove("s");
    }
}

/// The number in an error: "more than N distinct keys".
fn most_keys(place: &Place, line: &str, input: String) -> u64 {
    let error = stderr(&place.feed(line, input).code(2));
    let number = error.split("more than ").nth(1).unwrap().split(' ').next().unwrap();
    number.replace(',', "").parse().unwrap()
}

/// What a run prints that is not recorded can be cut off, because each run says how long the output was.
#[test]
fn the_output_can_be_truncated_to_what_the_state_has() {
    let place = Place::new();
    place.write("first", lines(0..1000));
    place.write("second", lines(500..2000));
    place.run("dedup --state s first").success().stderr(contains("output now").not());
    let first = place.sh("$b dedup --state s first second >once").success();
    let length = place.read("once").len();
    first.stderr(contains(format!(", output now {length} bytes)")));
    place.write("third", lines(1500..90_000));
    let fails = place.sh("ulimit -f 100; $b dedup --state s third >>once").code(2);
    fails.stderr(contains(format!(
        "; before you go on, truncate the output to the {length} bytes that it had"
    )));
    assert!(place.read("once").len() > length);
    place.sh(format!("truncate -s {length} once; $b dedup -q --state s third >>once")).success();
    assert_eq!(place.text("once"), lines(1000..90_000));
    // Also if it fails, but has recorded what it printed.
    let dedup = "$b dedup --state t --integers >>numbers";
    for (line, length) in
        [(format!("printf '1\\nx\\n' | {dedup}"), 2), (format!("echo 23 | {dedup} --summary /dev/full"), 5)]
    {
        let said = format!("; the lines printed are recorded, output now {length} bytes");
        place.sh(line).code(2).stderr(contains(said));
    }
}

#[test]
fn as_many_lines_as_requested_are_taken_without_a_warning() {
    let place = Place::new();
    let others = [(1, 1e-6), (500, 0.1), (3000, 5.44e-13), (20_000, 0.01), (100, 0.5), (100_000, 0.99)];
    for (n, requested) in (500..=12_000).step_by(500).map(|n| (n, 1e-6)).chain(others) {
        let text: String = (1..=n).map(|i| format!("{i}\n")).collect();
        let dedup =
            place.feed(format!("dedup --keys {n} --fpr {requested} --summary j"), &text[..]).success();
        assert_eq!(stderr(&dedup).lines().count(), 1);
        let fpr = objects(&place.read("j"))[0]["false_positive_rate"].as_f64().unwrap();
        assert!(fpr <= requested, "{n}: {fpr}");
        assert!(requested > 1e-6 || stdout(&dedup) == text, "{n}");
    }
}

#[test]
fn more_lines_are_taken_when_allowed() {
    let place = Place::new();
    let many = lines(0..20_000);
    let dedup = "dedup -q --allow-overfull --state s --keys 1000";
    let warning = || contains("more distinct keys than expected: FPR now 99.9%, not the requested 0.0001%");
    let allowed = place.feed(dedup, &many[..]).success().stderr(warning());
    assert!(allowed.get_output().stdout.len() < many.len());
    assert_eq!(stderr(&allowed).lines().count(), 1);
    place.feed(dedup, "").success().stderr(warning());
    // All that were dropped are new, and the summary does not claim more.
    let summary = stderr(&place.feed("dedup --allow-overfull --keys 1000", &many[..]).success());
    let words: Vec<_> = summary.lines().last().unwrap().split_whitespace().collect();
    let number = |before| -> u64 {
        let at = words.iter().position(|word| *word == before).expect("the word");
        words[at - 1].replace(',', "").parse().unwrap()
    };
    assert_eq!(number("of"), number("dropped,"), "{summary}");
    let all_different: String = (0..60).map(|i| format!("{i}\n")).collect();
    let dedup = place.feed("dedup --keys 1000 --fpr 0.5", all_different);
    dedup.success().stderr(contains("59 printed, 1 dropped, at most about 1 of them new"));
    place.refuses("dedup --state s", &["s: ", "more than 1,0", "begin another state"]);
}

/// Whatever is dropped from lines that are all different is new.
#[test]
fn a_new_line_that_was_dropped_is_not_called_a_repeated_one() {
    let place = Place::new();
    let (mut n_runs, mut n_too_few) = (0, 0);
    for i in 0..400 {
        let n = 300 + 40 * i;
        let fpr = ["1e-2", "1e-3", "1e-4", "1e-5"][i as usize % 4];
        let memory = if i % 8 < 4 { format!("--keys {n}") } else { format!("--grow --keys {}", n / 5) };
        let run = place.feed(format!("dedup --fpr {fpr} {memory}"), lines(1_000_000 + n..1_000_000 + 2 * n));
        let (n_printed, said) = (stdout(&run).lines().count() as u64, stderr(&run.success()));
        if n_printed < n {
            assert!(!said.contains("likely none"), "{n} lines, {fpr}: {said}");
            let at_most = said.split("at most about ").nth(1).unwrap().split(' ').next().unwrap();
            n_runs += 1;
            n_too_few += i32::from(at_most.replace(',', "").parse::<u64>().unwrap() < n - n_printed);
        }
    }
    assert!(n_runs > 100 && n_too_few * 20 < n_runs, "{n_too_few} of {n_runs}");
    // A tenth of these lines is repeated, in most of the ranges above.
    for fpr in ["1e-5", "1e-6"] {
        let run = place.feed(format!("dedup --fpr {fpr}"), lines(0..9000) + &lines(0..1000));
        run.success().stderr(contains("1,000 dropped, likely none of them new"));
    }
}

#[test]
fn a_damaged_state_is_refused() {
    let place = Place::new();
    place.feed("dedup -q --state s --keys 9", "ant\n").success();
    let state = place.read("s");
    for at in (0..state.len()).step_by(3) {
        place.damage("s", at, "t");
        place.refuses_after("dedup --state t", "bee\n", &["t: "]);
        place.refuses("grow t", &["t: "]);
        place.refuses("merge -o t t t", &["t: "]);
    }
    for start in (1..state.len()).step_by(7) {
        place.write("cut", &state[start..]);
        place.refuses_after("dedup --state cut", "ant\n", &["cut: "]);
    }
}

#[test]
fn a_state_knows_what_it_was_asked_for() {
    let place = Place::new();
    // The same every night, in other words, or none.
    for (state, first, others) in [
        ("s", "--keys 1000 --fpr 1e-4", ["--keys 1e3 --fpr 0.01%", "--keys 1000", ""]),
        ("g", "--grow --keys 20", ["--grow --keys 20 --fpr 1e-6", "--keys 20", "--grow"]),
        ("default", "", ["--keys 1_000_000", "--grow", "--fpr 0.0001%"]),
        // A rate can be given as it is printed.
        ("r", "--fpr 1.23456e-4", ["--fpr 0.0123%", "--fpr 1.23e-4", ""]),
    ] {
        place.feed(format!("dedup -q --state {state} {first}"), "ant\n").success().stdout("ant\n");
        for other in others {
            place.feed(format!("dedup -q --state {state} {other}"), "ant\n").success().stdout("").stderr("");
        }
    }
    for (arguments, text) in [
        ("s --keys 5000", "s: made for 1,000 keys, not 5,000 (omit --keys"),
        ("s --fpr 1e-6", "s: made for an FPR of 0.01%, not 0.0001% (omit --fpr"),
        ("s --grow", "s: of fixed size, for 1,000 keys (first run `bloomline grow s`)"),
        ("g --keys 1000", "g: made for 20 keys, not 1,000"),
        ("g --fpr 1%", "g: made for an FPR of 0.0001%, not 1%"),
        ("default --keys 1e9", "default: made for 1,000,000 keys, not 1,000,000,000"),
    ] {
        place.refuses_after(format!("dedup --state {arguments}"), "new\n", &[text]);
    }
}

#[test]
fn a_state_is_a_file_of_its_own() {
    let place = Place::new();
    place.write("s", "");
    place.refuses("dedup --state s", &["s: an empty file"]);
    place.remove("s");
    place.refuses("dedup --state -", &["-: ", "name a file"]);
    place.refuses("dedup --state /dev/null", &["/dev/null: ", "name a file"]);
    place.feed("dedup -q --state s", "ant\n").success();
    let state = place.read("s");
    // Where nothing can be written, nothing was printed.
    let line = "touch other; echo bee | $b dedup --state s 1<other";
    place.sh(line).code(2).stderr(contains("standard output: Bad file descriptor"));
    assert!(place.read("s") == state);
}

#[test]
fn cut_input_prints_the_same_with_and_without_keys() {
    let place = Place::new();
    place.write("whole", lines(0..50_000));
    place.sh("gzip -c whole | head -c 400000 >cut.gz").success();
    place.write("first", lines(50_000..50_100));
    let run = |more: &str| {
        let dedup = place.run(format!("dedup -q {more} first cut.gz")).code(2);
        (stdout(&dedup), stderr(&dedup))
    };
    let (printed, error) = run("--keys 1e6");
    assert!(error.contains("cut.gz: cannot be decompressed") && printed.len() > 100_000);
    assert!((printed, error) == run(""));
}

/// Two runs at once: the second sees what the first printed.
#[test]
fn one_run_at_a_time() {
    let place = Place::new();
    let mut first = place.start("dedup -q --state s");
    let in_use = ["s: in use by another run", "(omit --no-wait to wait)"];
    exchange(&mut first, "ant\nbee\n", "ant\nbee\n");
    let mut second = place.start("dedup -q --state s");
    exchange(&mut second, "bee\ncat\n", "");
    reads(second.stderr.as_mut().unwrap(), "bloomline: s: in use by another run, waiting for it to end\n");
    place.refuses_after("dedup --state s --no-wait", "dog\n", &in_use);
    first.stdin.take();
    assert!(first.wait().unwrap().success());
    // The first has removed the lock's file: the second holds one that the third finds.
    exchange(&mut second, "", "cat\n");
    place.refuses_after("dedup --state s --no-wait", "dog\n", &in_use);
    place.refuses("grow --no-wait s", &in_use);
    second.stdin.take();
    let second = second.wait_with_output().unwrap();
    assert_eq!((second.stdout.len(), second.stderr.len(), second.status.code()), (0, 0, Some(0)));
    assert_eq!(place.files(), ["s"]);
    // A lock that was left by a kill is no lock.
    place.write(".s.bloomline.lock", "");
    place.feed("dedup -q --no-wait --state s", "cat\n").success().stdout("");
    assert_eq!(place.files(), ["s"]);
}

/// Column, length, and bytes 40 to 47 of the footer.
const WHOLE_LINES: [u64; 3] = [0, 0, 0x0102];
const UNRECORDED: [u64; 3] = [0, 0, 2];
const VERSION_1: [u64; 3] = [0, 0, 1];

#[test]
fn what_no_bloomline_writes_is_refused() {
    let place = Place::new();
    let mut filter = ScalableBloomFilter::with_fpr(20, 1e-6).unwrap();
    filter.extend(lines(0..300).lines());
    let state = [filter.to_standalone(), footer(20, 300, 1e-6, WHOLE_LINES)].concat();
    place.write("g", state);
    place.feed("dedup -q --state g --keys 20 --grow", lines(0..301)).success().stdout(lines(300..301));
    // Though the checksums match.
    let values = "values that no bloomline writes";
    let refused = |words: &[u8], text: &str| {
        place.write("g", [&filter.to_standalone(), words, &end_of_footer(words)].concat());
        place.refuses("dedup --state g", &["g: ", text, "(restore a copy of the state, or remove it)"]);
    };
    for (capacity, keys, fpr, text) in [
        (0, 300, 1e-6, values),
        (20, 300, 0.0, values),
        (20, 300, 1.0, values),
        (20, 300, f64::NAN, values),
        (20, 301, 1e-6, "301 keys"),
        (20, 300, 9e-7, "a false-positive rate of 9e-7"),
    ] {
        refused(&footer(capacity, keys, fpr, WHOLE_LINES)[..48], text);
    }
    // The filter's own rate may be above it by a billionth.
    let other_digits = ScalableBloomFilter::with_fpr(20, 1e-6 * (1.0 + 1e-9)).unwrap();
    place.write("g", [other_digits.to_standalone(), footer(20, 0, 1e-6, WHOLE_LINES)].concat());
    place.feed("dedup -q --state g", "").success();
    // Version 1 has no key options, and what is not recorded has none.
    for version in [1, 2] {
        for at in (24..48).filter(|at| ![40, 41].contains(at)) {
            let mut words = footer(20, 300, 1e-6, [0, 0, version])[..48].to_vec();
            words[at] = 1;
            refused(&words, values);
        }
    }
    for rule in [
        [0, 0, 0x0101],           // recorded in version 1
        [0, 0, 0x0202],           // NUL, not recorded
        [0, 0, 0x0702],           // NUL and CR LF
        [0, 0, 0x1102],           // CSV without a column
        [0, 0, 0x8102],           // a flag of later versions
        [0, 0, 0x4102],           // options without a text
        [0, 0, 0x2c_0102],        // a delimiter without a column
        [1, 8, 0x0102],           // a column of lines of fixed length
        [0, 8, 0x0902],           // integers of fixed length
        [1, 0, 0x0100_0000_0102], // a byte of later versions
    ] {
        refused(&footer(20, 300, 1e-6, rule)[..48], values);
    }
}

#[test]
fn a_state_knows_what_a_key_is() {
    let place = Place::new();
    let text = "1,ant\r\n2,bee\r\n";
    let dedup = |options: &str| place.feed(format!("dedup -q --state s {options}"), text);
    // Column, length, flags and delimiter as section 11 of docs/format.md has them.
    let rules = [
        ("", "whole lines as keys", WHOLE_LINES),
        ("-0", "--null", [0, 0, 0x0302]),
        ("--crlf", "--crlf", [0, 0, 0x0502]),
        ("--column 2 --delimiter ,", "--column 2 --delimiter ','", [2, 0, 0x2c_0102]),
        ("--column 2 --delimiter , --crlf", "--crlf --column 2 --delimiter ','", [2, 0, 0x2c_0502]),
        ("--column 1 --delimiter , --integers", "--integers --column 1 --delimiter ','", [1, 0, 0x2c_0902]),
        ("--column 1", "--column 1", [1, 0, 0x0102]),
        ("--column 1 --delimiter '\\t'", "--column 1", [1, 0, 0x0102]),
        ("--length 7", "--length 7", [0, 7, 0x0102]),
        ("--length 1", "--length 1", [0, 1, 0x0102]),
    ];
    for (options, name, words) in rules {
        let _ = fs::remove_file(place.path("s"));
        dedup(options).success();
        let state = place.read("s");
        assert_eq!(state.last_chunk::<64>().unwrap()[24..48].as_chunks().0, words.map(u64::to_le_bytes));
        // Another run with the same options.
        dedup(options).success().stdout("");
        for (other, other_name, _) in rules.into_iter().filter(|rule| rule.1 != name) {
            let error =
                format!("s: made with {name}, not with {other_name} (give its options, or name another ");
            place.refuses(format!("dedup -q --state s {other}"), &[&error]);
        }
    }
}

/// Version 1 did not record what a key is, and `grow -o` cannot know it: the next run that adds lines does. Its filters
/// had one module at any rate.
#[test]
fn an_unknown_key_is_recorded() {
    let place = Place::new();
    let mut filter = BloomFilter::with_sizing(Sizing::for_fpr_within(1000, 1e-6, 1).unwrap()).unwrap();
    filter.insert("ant");
    for rule in [VERSION_1, UNRECORDED] {
        let old = [filter.to_standalone(), footer(1000, 1, 1e-6, rule)].concat();
        place.write("s", &old);
        let dedup = "dedup -q --state s --column 2";
        // A state is not written again when nothing was added.
        place.feed(dedup, "1\tant\n").success().stdout("");
        assert!(place.read("s") == old);
        place.feed(dedup, "1\tant\n1\tbee\n").success().stdout("1\tbee\n");
        place.write("old", &old);
        for order in ["s s", "s old", "old s"] {
            place.run(format!("merge --replace-state -o m {order}")).success();
            place.refuses("dedup --state m", &["m: made with --column 2, not with whole lines"]);
        }
    }
}

#[test]
fn dropped_lines_are_written() {
    let place = Place::new();
    let text = lines(0..5000) + &lines(2000..6000);
    place.write("in", &text);
    place.write("j", "longer than the summary ".repeat(100));
    let dedup = place.run("dedup --state s --dropped d --summary j in").success().stdout(lines(0..6000));
    dedup.stderr(contains("9,000 lines, 6,000 printed, 3,000 dropped"));
    assert!(place.text("d") == lines(2000..5000));
    let json = &objects(&place.read("j"))[0];
    assert_eq!(["lines", "printed", "dropped"].map(|name| json[name].as_u64().unwrap()), [9000, 6000, 3000]);
    assert!(json["false_positive_rate"].as_f64().unwrap() <= 1e-6);
    // The next run drops them all; what no run could print is among the dropped.
    place.run("dedup -q --state s --dropped d in").success().stdout("");
    assert!(place.text("d") == text);
    // At a rate of 50%, every line is printed or dropped, in order.
    let printed = place.prints("dedup -q --fpr 0.5 --keys 3000 --dropped d --allow-overfull in");
    let dropped = place.text("d");
    let (mut printed, mut dropped) = (printed.lines().peekable(), dropped.lines().peekable());
    for line in text.lines() {
        assert!(printed.next_if_eq(&line).is_some() || dropped.next_if_eq(&line).is_some(), "{line}");
    }
    assert!(printed.next().is_none() && dropped.next().is_none());
    place.sh("$b dedup in --dropped /dev/full").code(2).stdout("").stderr(contains("/dev/full: "));
    // A closed pipe that is not standard output is reported.
    place.write("many", lines(0..9000).repeat(2));
    let mut closed = place.shell("mkfifo p; head -c 5 p >o & $b dedup -q --dropped p many >/dev/null");
    closed.assert().code(2).stderr("bloomline: p: Broken pipe\n");
}

/// What is read is not overwritten, whatever it is called.
#[test]
fn outputs_are_no_inputs() {
    let place = Place::new();
    let text = lines(0..10);
    place.write("in", &text);
    fs::hard_link(place.path("in"), place.path("hard")).unwrap();
    std::os::unix::fs::symlink("in", place.path("soft")).unwrap();
    place.write("list", "in\0");
    place.write("a", "");
    place.run("dedup -q --state s in").success();
    let state = place.read("s");
    fs::hard_link(place.path("a"), place.path("b")).unwrap();
    for (line, error) in [
        ("$b dedup in --summary -", "-: is given with --summary, and is also the output (name "),
        (
            "$b dedup in --state new --dropped new",
            "new: is given with --dropped, and is also the state (name ",
        ),
        ("$b dedup in --dropped s", "s: a state of dedup, which would be lost (name "),
        ("$b dedup in --summary s", "s: a state of dedup, which would be lost (name "),
        ("$b dedup --dropped in <in", "in: is given with --dropped, and is also an input"),
        ("$b dedup --summary hard - <in", "hard: is given with --summary, and is also an input"),
        ("$b dedup --dropped hard in", "hard: is given with --dropped, and is also an input"),
        ("$b dedup --dropped soft in", "soft: is given with --dropped, and is also an input"),
        ("$b dedup --files0-from list --dropped list", "list: is given with --dropped, and is also an input"),
        (
            "$b dedup --files0-from - --dropped list <list",
            "list: is given with --dropped, and is also an input",
        ),
        ("$b dedup --state in <in", "in: is the state, and also an input"),
        ("echo bee | $b dedup --state s >>s", "s: is the state, and also the output"),
        ("echo bee | $b dedup --state s - s", "s: is the state, and also an input"),
        ("$b check s list >>s", "s: is also the output (write to another file)"),
        (
            "ulimit -f 2000; $b check s in >>in",
            "in: is also the output, which would be read as input (write to ",
        ),
        ("ulimit -f 2000; $b check s <in >>in", "standard input: is also the output"),
        ("ulimit -f 2000; $b dedup in >>in", "in: is also the output"),
        (
            "$b dedup in --dropped /dev/stdout | cat",
            "/dev/stdout: is given with --dropped, and is also the output",
        ),
        ("$b dedup in --dropped a --summary b", "a: for --dropped and --summary (name two files)"),
        ("$b build -o in <in", "in: is an input, and the filter would replace it"),
        ("$b build -o list --files0-from list", "list: is an input, and the filter would replace it"),
    ] {
        let run = place.sh(line).stdout("").stderr(contains(error));
        assert_eq!(stderr(&run).lines().count(), 1, "{line}");
        assert!(
            place.text("in") == text && place.read("list") == b"in\0" && place.read("s") == state,
            "{line}"
        );
    }
    // Any other file may be standard input.
    place.sh("$b dedup -q --dropped in list <in").success();
}

#[test]
fn other_commands_keep_states() {
    let place = Place::new();
    place.write("in", lines(0..100));
    place.run("dedup -q --state s in").success();
    place.run("build -q -o f --keys 100 in").success();
    place.run("dedup -q --state t in").success();
    let text = "s: a state of dedup, which would be lost (name another file, or give --replace-state)";
    for arguments in [
        "build -o s in",
        "build -o s --like f in",
        "fold -o s --factor 1 f",
        "merge -o s f f",
        "merge -o s t t",
        "grow -o s t",
        "grow -o s --fpr 5% f",
    ] {
        place.refuses(arguments, &[text]);
        place.run(format!("{arguments} --replace-state")).success();
        if arguments.ends_with('t') || arguments.starts_with("grow") {
            place.run("dedup -q --state s in").success().stdout("");
        }
        place.run("dedup -q --state new in").success();
        fs::rename(place.path("new"), place.path("s")).unwrap();
    }
    // Its lines are in the result.
    place.run("merge -o s t s").success();
    place.run("dedup -q --state s in").success().stdout("");
    assert_eq!(place.files(), ["f", "in", "s", "t"]);
    // A state that a run is making has no file yet.
    let script = "mkfifo p; $b dedup -q --state n <p >out & exec 3>p; echo ant >&3; until [ -s out ]; do sleep 0.01; \
                  done; $b build -o n in; echo $?; exec 3>&-; wait; $b info n | grep -c 'state of dedup'";
    let in_use = "bloomline: n: in use by another run (wait for it to end, or name another file)\n";
    place.sh(script).stdout("2\n1\n").stderr(in_use);
    // Of dedup and `build` at once, one has the name.
    for i in 0..9 {
        let names = format!("n{i} in >out{i} 2>&- & $b build -q -o n{i} in 2>&-; echo $?; wait $!; echo $?");
        let statuses = stdout(&place.sh(format!("$b dedup -q --state {names}")).success());
        let is_state = place.read(&format!("n{i}")).ends_with(b"\x89bldup\r\n");
        assert_eq!(statuses, if is_state { "2\n0\n" } else { "0\n2\n" });
        assert!(place.text(&format!("out{i}")).is_empty() != is_state);
    }
}

#[test]
fn a_full_state_is_made_to_grow() {
    // Nearly empty, so that the rate stays; nearly full; full.
    for (held, fpr) in [(10, "0.0001%"), (700, "0.0001%"), (990, "0.0002%"), (1000, "0.0002%")] {
        let place = Place::new();
        let cron = "dedup -q --state s --keys 1000";
        place.feed(cron, lines(0..held)).success();
        let said = stderr(&place.run("grow s").success().stdout(""));
        let first = said.lines().next().unwrap();
        assert!(first.ends_with(&format!("now grows without limit, FPR at most {fpr}")), "{said}");
        assert_eq!(said.contains("the FPR was 0.0001%"), fpr != "0.0001%", "{said}");
        // The same command as ever, and what was printed stays so.
        place.feed(cron, lines(0..30_000)).success().stderr("").stdout(lines(held..30_000));
        place.feed(cron, lines(0..30_000)).success().stdout("");
        // Each is twice as large as the one before it, from the number of lines that the state was made for.
        let state = place.read("s");
        let filter = ScalableBloomFilter::from_standalone(&state[..state.len() - 64]).unwrap();
        assert_eq!(filter.filters().len(), 5);
        place.run("grow s").success();
        place.refuses("grow --fpr 1% s", &["s: grows already", fpr]);
        place.feed("dedup -q --state s --grow", "").success();
        let fpr = if fpr == "0.0001%" { "1e-6" } else { "2e-6" };
        place.feed(format!("dedup -q --state s --fpr {fpr}"), "").success();
        assert_eq!(place.files(), ["s"]);
    }
}

/// By chance, a small filter's own rate is up to twice the requested one.
#[test]
fn full_states_of_any_size_grow() {
    let place = Place::new();
    for keys in (50..3000).step_by(271) {
        let dedup = format!("dedup -q --state s --keys {keys}");
        place.feed(&dedup, lines(0..keys)).success();
        place.run("grow s").success();
        place.feed(&dedup, lines(0..2 * keys)).success().stdout(lines(keys..2 * keys));
        place.remove("s");
    }
}

#[test]
fn a_filter_becomes_a_state() {
    let place = Place::new();
    place.feed("build -q -o k --fpr 1%", lines(0..5000)).success();
    place.refuses("grow k", &["k: a filter", "-o"]);
    place.refuses("grow -o s k", &["k: its FPR is 0.9", "--fpr"]);
    place.refuses("grow -o s no", &["no: No such file"]);
    place.write("text", "ant\n");
    place.refuses("grow text", &["text: "]);
    let filter = place.read("k");
    place.run("grow -o s --fpr 3% k").success();
    assert!(place.read("k") == filter);
    let printed = place.feed("dedup -q --state s --fpr 0.03", lines(0..20_000)).success();
    let n_printed = stdout(&printed).lines().count();
    assert!((14_550..=15_000).contains(&n_printed), "{n_printed}");
    // A state of an earlier bloomline: a scalable filter.
    let mut scalable = ScalableBloomFilter::with_fpr(20, 1e-4).unwrap().with_seed(7).unwrap();
    scalable.extend(lines(0..100).lines());
    place.write("c", scalable.to_standalone());
    let texts = ["c: a filter, not a state of dedup", "`bloomline grow -o c.state c`"];
    place.refuses_after("dedup --state c", "new\n", &texts);
    place.sh("$b grow -o - c 2>&- | cat >g").success();
    let footer = footer(20, scalable.inserted_keys(), 1e-4, UNRECORDED);
    assert!(place.read("g") == [scalable.to_standalone(), footer].concat());
    place.feed("dedup -q --state g", lines(0..101)).stdout(lines(100..101));
}

#[test]
#[cfg(target_os = "linux")]
fn growth_that_finds_no_memory_is_an_error() {
    let place = Place::new();
    let mut filter = ScalableBloomFilter::with_fpr(50_000, 1e-6).unwrap();
    filter.extend(lines(0..50_000).lines());
    // With a growth of 16 instead of 2, the next filter takes megabytes.
    let mut filter = filter.to_standalone();
    let signed = filter.len() - 64..filter.len() - 16;
    filter[signed.start + 41] = 16;
    let end = end_of_footer(&filter[signed.clone()]);
    filter[signed.end..][..8].copy_from_slice(&end[..8]);
    let state = [filter, footer(50_000, 50_000, 1e-6, WHOLE_LINES)].concat();
    place.write("in", lines(50_000..50_010));
    let mut n_refused = 0;
    for limit in (4..40).step_by(2) {
        place.write("s", &state);
        let line = format!("ulimit -v {}; $b dedup -q --state s in", limit << 10);
        let output = place.shell(&line).output().unwrap();
        if output.status.success() {
            assert!(output.stdout == lines(50_000..50_010).as_bytes());
        } else if output.status.code() == Some(2)
            && String::from_utf8_lossy(&output.stderr).contains("allocate")
        {
            assert!(output.stdout.is_empty() && place.read("s") == state);
            n_refused += 1;
        }
    }
    assert!(n_refused > 0);
}

#[test]
fn a_lock_is_nobody_else_s_file() {
    let place = Place::new();
    place.write("s.lock", "precious");
    place.feed("dedup -q --state s", "ant\n").success();
    assert_eq!(place.read("s.lock"), b"precious");
    place.write(".s.bloomline.lock", "precious");
    place.refuses_after("dedup --state s", "ant\n", &[".s.bloomline.lock: not a lock of bloomline's"]);
    assert_eq!(place.read(".s.bloomline.lock"), b"precious");
    place.sh("rm .s.bloomline.lock; mkfifo .s.bloomline.lock").success();
    place.feed("dedup --state s", "ant\n").code(2).stderr(contains("not a lock"));
}

/// At high rates a filter drops many of the lines that it was made for. The lines put in are more than their number says.
#[test]
fn a_filter_is_full_when_the_model_says_so() {
    let place = Place::new();
    for fpr in ["0.5", "0.1", "0.01", "1e-6"] {
        for n in [3_000_u64, 20_000, 100_000] {
            let dedup = format!("dedup --keys {n} --fpr {fpr}");
            place.feed(&dedup, lines(0..n)).success().stderr(contains("expected").not());
            // By the model, this many lines raise the rate by more than a twentieth.
            let most = most_keys(&place, &dedup, lines(0..n + n / 8 + 1000));
            // Of the lines that keep the rate, the dropped ones are not put in: four standard errors fewer.
            let fpr = fpr.parse().unwrap();
            let sizing = Sizing::for_fpr(n, fpr).unwrap();
            let rate = |lines: usize| sizing.expected_fpr(lines as u64);
            let enough = (n as usize..).find(|&lines| rate(lines + 1) > 1.001 * fpr).unwrap();
            let dropped =
                (1..200).step_by(2).map(|i| rate(enough * i / 200)).sum::<f64>() / 100.0 * enough as f64;
            let expected = enough as f64 - (dropped - 4.0 * dropped.sqrt()).max(0.0);
            assert!((most as f64 - expected).abs() < 2.0 + expected / 1000.0, "{most}, not {expected}");
        }
    }
    // A state for a million lines has room after a million.
    let filter = BloomFilter::with_sizing(Sizing::for_fpr(1_000_000, 1e-6).unwrap()).unwrap();
    place.write("s", [filter.to_standalone(), footer(1_000_000, 1_000_000, 1e-6, WHOLE_LINES)].concat());
    place.feed("dedup -q --state s", "ant\n").success().stdout("ant\n");
}

/// As where a link to the state of the day, or to its directory, is changed at midnight, while dedup runs.
#[test]
fn a_link_that_changes_does_not_move_the_state() {
    for (directories, state) in [("", ""), ("mkdir monday tuesday;", "/s")] {
        let place = Place::new();
        place.sh(format!("{directories} ln -s monday day; mkfifo in")).success();
        for (name, range) in [("monday", 0..10), ("tuesday", 90..99)] {
            place.feed(format!("dedup -q --state {name}{state}"), lines(range)).success();
        }
        let tuesday = place.read(&format!("tuesday{state}"));
        let line = format!(
            "$b dedup -q --state day{state} <in >out & exec 3>in; echo ant >&3; \
             until [ -s out ]; do sleep 0.01; done; ln -sfn tuesday day; exec 3>&-; wait"
        );
        place.sh(line).success();
        assert_eq!(place.read(&format!("tuesday{state}")), tuesday);
        place.feed(format!("dedup -q --state monday{state}"), "ant\n").success().stdout("");
    }
}

fn documents(range: std::ops::Range<u64>) -> String {
    lines(range).lines().map(|line| format!("{{\"t\":{line:?}}}\n")).collect()
}

#[test]
fn a_folder_has_what_each_file_keeps() {
    let place = Place::new();
    ["in", "kept"].iter().for_each(|name| fs::create_dir(place.path(name)).unwrap());
    for i in 0..9 {
        let kept = if i == 0 { 0 } else { i * 1000 + 1000 };
        place.write(&format!("in/{i}"), documents(i * 1000..i * 1000 + 2000));
        place.write(&format!("kept/{i}"), documents(kept..i * 1000 + 2000));
    }
    settle();
    let (dedup, all) = ("$b dedup --json t --state s --output-dir out", "in/*; diff -r kept out");
    let first = place.sh(format!("{dedup} {all}")).success().stdout("");
    first.stderr(contains("9 files, 18,000 lines, 10,000 printed, 8,000 dropped, likely none"));
    // Files that are there are not read again, and others are added.
    place.sh(format!("{dedup} {all}")).success().stderr(contains("0 files (finished before: 9), 0 lines"));
    place.write("in/new", documents(9999..10_001));
    place.write("kept/new", documents(10_000..10_001));
    place
        .sh(format!("{dedup} {all}"))
        .success()
        .stderr(contains("1 file (finished before: 9), 2 lines, 1 printed"));
    for (command, text) in [
        ("--json t --output-dir out in/1", "out/1: is there, and no --state tells that it was made (remove"),
        ("--json t --output-dir out --state t in/1", "out/1: is there, and no --state tells"),
        ("--output-dir no in/new kept/new", "new: another input has this name too (give each folder a run"),
        (
            "--output-dir in in/new",
            "in/new: is written or read in another way, too (name another --output-dir)",
        ),
        ("--output-dir no -", "standard input has no name (name files)"),
        ("--output-dir no in/1 no", "no: No such file or directory"),
        ("--output-dir no/no in/1", "no/no: No such file or directory"),
        ("--output-dir out --json t --state s --spans in/1", "(omit --state or --output-dir)"),
        (
            "--output-dir out --json t --state s --dropped out/0 in/0",
            "out/0: is written or read in another way",
        ),
        ("--output-dir . --json t --state new in/new", "./new: is written or read in another way"),
        ("--output-dir in/1 in/new", "in/1: not a folder (name another --output-dir)"),
        ("--output-dir out --state s in/1", "made with --json t, not with whole lines"),
    ] {
        place.refuses(format!("dedup {command}"), &[text]);
    }
    settle();
    place.write("in/new", documents(9999..10_001));
    place.refuses_in_shell(format!("{dedup} in/new"), &["/in/new as it was then (name another folder"]);
    // Each has its header.
    ["x", "y"].iter().for_each(|name| _ = place.write(name, format!("a,b\n1,{name}\n2,{name}\n")));
    for files in ["x", "x y"] {
        place
            .run(format!("dedup -q --csv --column a --state c --output-dir csv {files}"))
            .success()
            .stdout("");
    }
    assert_eq!([place.text("csv/x"), place.text("csv/y")], ["a,b\n1,x\n2,x\n", "a,b\n"]);
}

/// Between any two steps of a commit, and with an older copy of the state.
#[test]
fn a_folder_goes_on_wherever_it_stopped() {
    let place = Place::new();
    place.write("a", documents(0..9));
    place.write("b", documents(0..12));
    let dedup = "$b dedup -q --json t --state s --output-dir out";
    place.sh(format!("{dedup} a && cp s old && {dedup} a b")).success();
    let is_whole = || {
        place.sh(format!("{dedup} a b")).success();
        assert_eq!([place.text("out/a"), place.text("out/b")], [documents(0..9), documents(9..12)]);
        assert_eq!(place.sh("ls -A out").success().get_output().stdout, b"a\nb\n");
    };
    is_whole();
    let unnamed = "mv out/b out/.b123456.bloomline.tmp; \
        sed -i '/out.b\",/s|\"temporary\":null}$|\"temporary\":\"'$PWD'/out/.b123456.bloomline.tmp\"}|' s.outputs";
    // Listed, and in the state or not, but not renamed.
    place.sh(unnamed).success();
    is_whole();
    place.sh(format!("{unnamed}; cp old s")).success();
    is_whole();
    // Nor if the state gets other keys in between.
    place
        .sh(format!("{unnamed}; cp old s; seq 99 | sed 's/.*/{{\"t\":&}}/' | $b dedup -q --json t --state s"))
        .success();
    is_whole();
    // Or if their disk is missing in between.
    place.sh(format!("{unnamed}; mv out away; {dedup} b 2>&1 | grep 'b: is gone' && mv away out")).success();
    is_whole();
    // What is gone, or not in this copy of the state, is said.
    place.sh("mv out/b x").success();
    place.refuses_in_shell(
        format!("{dedup} a b"),
        &["out/b: is gone, but its lines count as printed (restore it"],
    );
    place.sh("mv x out/b; cp old s").success();
    place.refuses_in_shell(
        format!("{dedup} b"),
        &["out/b: is newer than this copy of the state (remove it to"],
    );
    place.remove("out/b");
    is_whole();
    place.sh("echo '{' >>s.outputs").success();
    place.refuses_in_shell(format!("{dedup} a b"), &["s.outputs: line 3 is damaged (restore a copy, or"]);
}

/// Its lines before the error are not in the state.
#[test]
fn a_file_of_a_folder_that_cannot_be_read_is_not_half_written() {
    let place = Place::new();
    let text = |i: u64| documents(i * 2000..i * 2000 + 12_000);
    let (cut, bad) = (gzip(text(2)), text(2) + "{\"t\":[]}\n");
    for program in ["$b", ON_ONE_CORE] {
        for (bytes, error) in [(&cut[..20], "c: cannot be"), (bad.as_bytes(), "c: line 12001 has an array")] {
            (0..4).zip(["a", "b", "c", "d"]).for_each(|(i, name)| _ = place.write(name, gzip(text(i))));
            place.write("c", bytes);
            settle();
            let dedup = format!("{program} dedup --json t --state s --output-dir out a b c d");
            for _ in 0..2 {
                let failed = place.sh(format!("{dedup}; e=$?; ls out; exit $e")).code(2);
                let n = stdout(&failed).lines().count();
                // Keys of its first lines are in the filter when it fails, so those that wait are made again.
                assert!("a\nb\n".starts_with(&stdout(&failed)) && (n == 2 || bytes == bad.as_bytes()));
                let said = format!("; s: {n} of 4 files finished (give the command again to go on)\n");
                failed.stderr(contains(error).and(contains(said)));
            }
            place.write("c", gzip(text(2)));
            let whole = place.sh(format!("{dedup}; cat out/* | gzip -dc; rm -r out s*"));
            assert!(stdout(&whole.success()) == documents(0..18_000));
        }
    }
}
