//! What `dedup` promises from run to run: no line is lost beyond the requested false-positive rate.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use predicates::prelude::*;
use predicates::str::contains;

use common::{Place, lines, program};

/// Fails with one line that contains all of `texts`, and changes no file.
fn refuses(place: &Place, arguments: &[&str], input: &str, texts: &[&str]) {
    let before: Vec<_> = place.files().iter().map(|name| (name.clone(), place.read(name))).collect();
    let assert = place.bloomline(arguments).write_stdin(input).assert().code(2);
    let output = assert.get_output();
    let error = std::str::from_utf8(&output.stderr).unwrap();
    assert!(
        error.starts_with("bloomline: ") && error.lines().count() == 1 && error.ends_with(")\n"),
        "{error}"
    );
    assert!(texts.iter().all(|text| error.contains(text)), "{error}, and {texts:?}");
    let after: Vec<_> = place.files().iter().map(|name| (name.clone(), place.read(name))).collect();
    assert!(before == after, "{:?}", place.files());
    // Whatever was printed before, nothing was skipped.
    assert!(input.as_bytes().starts_with(&output.stdout), "{arguments:?}");
}

#[test]
fn too_many_lines_are_an_error() {
    let place = Place::new();
    let many = lines(0..100_000);
    place.write("many", &many);
    let too_many = "more than 1,0";
    for more in [&[][..], &["many"], &["-q"]] {
        let dedup = [&["dedup", "--keys", "1000"], more].concat();
        refuses(&place, &dedup, &many, &[too_many, "0.0001 %", "raise --keys, or use --scalable"]);
        // There is no state yet that could be made to grow.
        let dedup = [&["dedup", "--state", "s", "--keys", "1000"], more].concat();
        refuses(&place, &dedup, &many, &["s: ", too_many, "nothing was saved", "raise --keys"]);
    }
    let dedup = ["dedup", "-q", "--state", "s", "--keys", "1000"];
    place.bloomline(&dedup).write_stdin(lines(0..900)).assert().success().stdout(lines(0..900)).stderr("");
    refuses(&place, &["dedup", "--state", "s"], &lines(900..2000), &["s: ", too_many, "`bloomline grow s`"]);
    // The state is as it was, and takes what it was made for.
    place.bloomline(&dedup).write_stdin(lines(800..1000)).assert().stdout(lines(900..1000)).stderr("");
}

#[test]
fn a_state_takes_what_it_was_made_for() {
    let place = Place::new();
    for (keys, fpr) in [(1, "1e-6"), (500, "0.1"), (3000, "1.263e-8"), (20_000, "1%"), (100, "0.5")] {
        let count = keys.to_string();
        let arguments = ["dedup", "-q", "--keys", &count, "--fpr", fpr];
        place.bloomline(&arguments).write_stdin(lines(0..keys)).assert().success().stderr("");
        let counted = lines(0..keys);
        place.write("lines", counted);
        place.bloomline(&["dedup", "-q", "--fpr", fpr, "lines"]).assert().success().stderr("");
    }
}

#[test]
fn no_false_alarm() {
    let place = Place::new();
    for n in (500..=12_000).step_by(250) {
        let text: String = (1..=n).map(|i| format!("{i}\n")).collect();
        place.write("f", &text);
        let dedup = place.bloomline(&["dedup", "f"]).assert().success().stdout(text);
        let summary = std::str::from_utf8(&dedup.get_output().stderr).unwrap();
        assert_eq!(summary.lines().count(), 1, "{summary}");
        let fpr = summary.split("FPR now ").nth(1).unwrap().split(')').next().unwrap();
        let fpr =
            fpr.strip_suffix(" %").map_or_else(|| fpr.parse(), |fpr| fpr.parse().map(|fpr: f64| fpr / 100.0));
        assert!(fpr.unwrap() <= 1e-6 + 1e-12, "{summary}");
    }
}

#[test]
fn more_lines_are_taken_when_allowed() {
    let place = Place::new();
    let many = lines(0..20_000);
    let dedup = ["dedup", "-q", "--allow-overfull", "--state", "s", "--keys", "1000"];
    let warning = || {
        contains("more distinct lines than expected: FPR now ").and(contains("not the requested 0.0001 %"))
    };
    let allowed = place.bloomline(&dedup).write_stdin(&many[..]).assert().success().stderr(warning());
    assert!(allowed.get_output().stdout.len() < many.len());
    assert_eq!(allowed.get_output().stderr.iter().filter(|byte| **byte == b'\n').count(), 1);
    place.bloomline(&dedup).write_stdin("").assert().success().stderr(warning());
    // The summary does not claim that more new lines were dropped than lines.
    let dedup = ["dedup", "--allow-overfull", "--state", "s"];
    let dedup = place.bloomline(&dedup).write_stdin(&many[..]).assert().success();
    let summary = std::str::from_utf8(&dedup.get_output().stderr).unwrap();
    let words: Vec<_> = summary.lines().last().unwrap().split_whitespace().collect();
    let number = |before| -> u64 {
        let at = words.iter().position(|word| *word == before).expect("the word");
        words[at - 1].replace(',', "").parse().unwrap()
    };
    assert!(number("of") <= number("dropped,"), "{summary}");
    refuses(&place, &["dedup", "--state", "s"], "", &["s: ", "more than 1,0", "`bloomline grow s`"]);
}

#[test]
fn no_keys_are_an_error() {
    let place = Place::new();
    refuses(&place, &["dedup", "--keys", "0"], "ant\n", &["--keys 0"]);
    refuses(&place, &["dedup", "--keys", "0", "--scalable"], "ant\n", &["--keys 0"]);
    refuses(&place, &["build", "--keys", "0", "-o", "f"], "ant\n", &["--keys 0"]);
}

#[test]
fn a_filter_is_not_a_state() {
    let place = Place::new();
    place.bloomline(&["build", "-q", "-o", "k"]).write_stdin(lines(0..5000)).assert().success();
    let scalable = bloomline::variants::ScalableBloomFilter::with_fpr(10, 0.01).unwrap();
    place.write("c", scalable.to_standalone());
    for name in ["k", "c"] {
        let remedy = format!("`bloomline grow -o STATE {name}`");
        let dedup = ["dedup", "--state", name];
        refuses(&place, &dedup, &lines(4000..9000), &[name, "a filter, not a state of dedup", &remedy]);
    }
    place.write("text", "ant\n");
    refuses(&place, &["dedup", "--state", "text"], "ant\n", &["text: not a state of dedup"]);
    // The other way round.
    place.bloomline(&["dedup", "-q", "--state", "s", "--keys", "9"]).write_stdin("ant\n").assert().success();
    let state = place.read("s");
    for start in (1..state.len()).step_by(7) {
        place.write("cut", &state[start..]);
        refuses(&place, &["dedup", "--state", "cut"], "ant\n", &["cut: "]);
    }
}

#[test]
fn a_damaged_state_is_refused() {
    let place = Place::new();
    place.bloomline(&["dedup", "-q", "--state", "s", "--keys", "9"]).write_stdin("ant\n").assert().success();
    let state = place.read("s");
    for at in (0..state.len()).step_by(3) {
        let mut damaged = state.clone();
        damaged[at] ^= 1;
        place.write("s", damaged);
        refuses(&place, &["dedup", "--state", "s"], "bee\n", &["s: "]);
    }
}

#[test]
fn a_state_knows_what_it_was_asked_for() {
    let place = Place::new();
    let dedup = |arguments: &[&str], input: &str| {
        let mut dedup = place.bloomline(&[&["dedup", "-q", "--state"], arguments].concat());
        dedup.write_stdin(input).assert().success().stderr("").get_output().stdout.clone()
    };
    assert_eq!(dedup(&["s", "--keys", "1000", "--fpr", "1e-4"], "ant\n"), b"ant\n");
    // The same every night, in other words, or none.
    for same in [&["--keys", "1000", "--fpr", "1e-4"][..], &["--keys", "1e3", "--fpr", "0.01%"], &[]] {
        assert_eq!(dedup(&[&["s"], same].concat(), "ant\n"), b"");
    }
    assert_eq!(dedup(&["g", "--scalable", "--keys", "20"], &lines(0..100)), lines(0..100).as_bytes());
    assert_eq!(dedup(&["g", "--scalable", "--keys", "20", "--fpr", "1e-6"], &lines(90..100)), b"");
    assert_eq!(dedup(&["g", "--keys", "20"], &lines(0..200)), lines(100..200).as_bytes());
    assert_eq!(dedup(&["default"], "ant\n"), b"ant\n");
    assert_eq!(dedup(&["default", "--keys", "1_000_000"], "ant\n"), b"");
    let refused = |arguments: &[&str], texts: &[&str]| {
        refuses(&place, &[&["dedup", "--state"], arguments].concat(), "new\n", texts);
    };
    refused(&["s", "--keys", "5000"], &["s: ", "1,000 lines", "5,000", "omit --keys"]);
    refused(&["s", "--fpr", "1e-6"], &["s: ", "0.01 %", "0.0001 %", "omit --fpr"]);
    refused(&["s", "--scalable"], &["s: ", "fixed size", "1,000", "--scalable", "`bloomline grow s`"]);
    refused(&["g", "--keys", "1000"], &["g: ", "20 lines", "1,000"]);
    refused(&["g", "--fpr", "1%"], &["g: ", "0.0001 %", "1 %"]);
    refused(&["default", "--keys", "1e9"], &["1,000,000", "1,000,000,000"]);
}

#[test]
fn a_state_is_a_file_of_its_own() {
    let place = Place::new();
    fs::write(place.path("s"), "").unwrap();
    refuses(&place, &["dedup", "--state", "s"], "", &["s: an empty file"]);
    fs::remove_file(place.path("s")).unwrap();
    refuses(&place, &["dedup", "--state", "-"], "", &["-: ", "name a file"]);
    refuses(&place, &["dedup", "--state", "/dev/null"], "", &["/dev/null: ", "name a file"]);
    place.bloomline(&["dedup", "-q", "--state", "s"]).write_stdin("ant\n").assert().success();
    let state = place.read("s");
    // Renaming the new state into place would lose what was appended.
    place
        .shell("echo bee | $b dedup --state s >>s")
        .assert()
        .code(2)
        .stderr(contains("s: is the state, and also the output"));
    place
        .shell("echo bee | $b dedup --state s - s")
        .assert()
        .code(2)
        .stderr(contains("s: is the state, and also an input"));
    assert!(place.read("s") == state);
}

#[test]
fn cut_input_prints_the_same_with_and_without_keys() {
    let place = Place::new();
    place.write("whole", lines(0..50_000));
    place.shell("gzip -c whole | head -c 400000 >cut.gz").assert().success();
    place.write("first", lines(50_000..50_100));
    let run = |more: &[&str]| {
        let dedup =
            place.bloomline(&[&["dedup", "-q"], more, &["first", "cut.gz"]].concat()).assert().code(2);
        let output = dedup.get_output();
        (output.stdout.clone(), String::from_utf8(output.stderr.clone()).unwrap())
    };
    let (printed, error) = run(&["--keys", "1e6"]);
    assert!(error.contains("cut.gz: cannot be decompressed") && printed.len() > 100_000);
    assert!((printed, error) == run(&[]));
}

/// Two runs at once: the second sees what the first printed.
#[test]
fn one_run_at_a_time() {
    let place = Place::new();
    let start = |input: &str, more: &[&str]| {
        let mut command = Command::new(program());
        command
            .current_dir(place.directory())
            .args(["dedup", "-q", "--state", "s"])
            .args(more)
            .stderr(Stdio::piped());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(input.as_bytes()).unwrap();
        child
    };
    let wait_for_lock = || {
        while !place.files().contains(&"s.lock".to_owned()) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    };
    let mut first = start("ant\nbee\n", &[]);
    wait_for_lock();
    // The lock may not be taken yet when its file appears: whoever comes second, the other is refused or waits.
    let second = start("bee\ncat\n", &[]);
    std::thread::sleep(std::time::Duration::from_millis(200));
    refuses(
        &place,
        &["dedup", "--state", "s", "--no-wait"],
        "dog\n",
        &["s: in use by another run", "--no-wait"],
    );
    first.stdin.take();
    let first = first.wait_with_output().unwrap();
    assert_eq!((first.stdout.as_slice(), first.status.code()), (&b"ant\nbee\n"[..], Some(0)));
    let second = second.wait_with_output().unwrap();
    assert_eq!((second.stdout.as_slice(), second.status.code()), (&b"cat\n"[..], Some(0)));
    let noted = String::from_utf8(second.stderr).unwrap();
    assert_eq!(noted, "bloomline: s: in use by another run, waiting for it to end\n");
    assert_eq!(place.files(), ["s"]);
    // A lock that was left by a kill is no lock.
    place.write("s.lock", "");
    place
        .bloomline(&["dedup", "-q", "--no-wait", "--state", "s"])
        .write_stdin("cat\n")
        .assert()
        .success()
        .stdout("");
    assert_eq!(place.files(), ["s"]);
}

/// Many runs on one state, all at once: each line is printed by one of them.
#[test]
fn many_runs_at_once_print_each_line_once() {
    let place = Place::new();
    place.write("a", lines(0..2000));
    place.write("b", lines(1000..3000));
    let runs = "for i in 1 2 3 4; do for f in a b; do $b dedup -q --state s --keys 3000 $f >$f$i 2>/dev/null & done; done; \
                wait; cat a? b? | sort >all";
    place.shell(runs).assert().success();
    let mut expected: Vec<_> = lines(0..3000).lines().map(str::to_owned).collect();
    expected.sort();
    let all = String::from_utf8(place.read("all")).unwrap();
    assert!(all.lines().eq(expected.iter().map(String::as_str)), "{} lines", all.lines().count());
    assert!(
        !place.files().iter().any(|name| name.contains(".lock") || name.contains(".tmp")),
        "{:?}",
        place.files()
    );
}
