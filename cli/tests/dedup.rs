//! What `dedup` promises from run to run: no line is lost beyond the requested false-positive rate.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use bloomline::variants::ScalableBloomFilter;
use bloomline::{BloomFilter, Sizing, sizing};
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
        refuses(&place, &dedup, &many, &[too_many, "0.0001%", "raise --keys, or use --scalable"]);
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

/// The number in an error: "more than N distinct lines".
fn most_lines(place: &Place, arguments: &[&str], input: String) -> u64 {
    let refused = place.bloomline(arguments).write_stdin(input).assert().code(2);
    let error = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    let number = error.split("more than ").nth(1).unwrap().split(' ').next().unwrap();
    number.replace(',', "").parse().unwrap()
}

#[test]
fn a_full_state_takes_repeats() {
    let place = Place::new();
    let dedup = ["dedup", "-q", "--state", "s", "--keys", "10000"];
    let most = most_lines(&place, &dedup, lines(0..12_000));
    // By the model, and the thousandth that it may be off; none was dropped.
    let bits_per_key = sizing::bits_per_key(1e-6).unwrap();
    let sizing = Sizing::for_bits_per_key(10_000, bits_per_key).unwrap();
    let rates = [most, most + 1].map(|lines| sizing.fpr(lines as usize));
    assert!(rates[0] <= 1.001e-6 && 1.001e-6 < rates[1], "{most} lines: {rates:?}");
    place.bloomline(&dedup).write_stdin(lines(0..most)).assert().success().stdout(lines(0..most));
    place.bloomline(&dedup).write_stdin(lines(0..most)).assert().success().stdout("");
    refuses(&place, &dedup, &lines(most..most + 1), &["s: ", "`bloomline grow s`"]);
    // So does a state for a million lines.
    let filter = BloomFilter::with_bits_per_key(1_000_000, bits_per_key).unwrap();
    place.write("s", [filter.to_standalone(), footer(1_000_000, 1_000_000, 1e-6)].concat());
    place.bloomline(&["dedup", "-q", "--state", "s"]).write_stdin("ant\n").assert().success().stdout("ant\n");
}

#[test]
fn a_state_takes_what_it_was_made_for() {
    let place = Place::new();
    for (keys, fpr) in
        [(1, "1e-6"), (500, "0.1"), (3000, "1.263e-8"), (20_000, "1%"), (100, "0.5"), (100_000, "0.99")]
    {
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
    for n in (500..=12_000).step_by(500) {
        let text: String = (1..=n).map(|i| format!("{i}\n")).collect();
        place.write("f", &text);
        let dedup = ["dedup", "--keys", &n.to_string(), "f"];
        let dedup = place.bloomline(&dedup).assert().success().stdout(text);
        let summary = std::str::from_utf8(&dedup.get_output().stderr).unwrap();
        assert_eq!(summary.lines().count(), 1, "{summary}");
        let fpr = summary.split("FPR now ").nth(1).unwrap().split(')').next().unwrap();
        let fpr =
            fpr.strip_suffix('%').map_or_else(|| fpr.parse(), |fpr| fpr.parse().map(|fpr: f64| fpr / 100.0));
        assert!(fpr.unwrap() <= 1e-6 + 1e-12, "{summary}");
        place.bloomline(&["dedup", "-q", "f"]).assert().success().stderr("");
    }
}

#[test]
fn more_lines_are_taken_when_allowed() {
    let place = Place::new();
    let many = lines(0..20_000);
    let dedup = ["dedup", "-q", "--allow-overfull", "--state", "s", "--keys", "1000"];
    let warning = || contains("more distinct lines than expected: FPR now 99.4%, not the requested 0.0001%");
    let allowed = place.bloomline(&dedup).write_stdin(&many[..]).assert().success().stderr(warning());
    assert!(allowed.get_output().stdout.len() < many.len());
    assert_eq!(allowed.get_output().stderr.iter().filter(|byte| **byte == b'\n').count(), 1);
    place.bloomline(&dedup).write_stdin("").assert().success().stderr(warning());
    // All that were dropped are new, and the summary does not claim more.
    let dedup = ["dedup", "--allow-overfull", "--keys", "1000"];
    let dedup = place.bloomline(&dedup).write_stdin(&many[..]).assert().success();
    let summary = std::str::from_utf8(&dedup.get_output().stderr).unwrap();
    let words: Vec<_> = summary.lines().last().unwrap().split_whitespace().collect();
    let number = |before| -> u64 {
        let at = words.iter().position(|word| *word == before).expect("the word");
        words[at - 1].replace(',', "").parse().unwrap()
    };
    assert_eq!(number("of"), number("dropped,"), "{summary}");
    let all_different: String = (0..60).map(|i| format!("{i}\n")).collect();
    let dedup =
        place.bloomline(&["dedup", "--keys", "1000", "--fpr", "0.5"]).write_stdin(all_different).assert();
    dedup.success().stderr(contains("59 printed, 1 dropped, at most about 1 of them new"));
    refuses(
        &place,
        &["dedup", "--state", "s"],
        "",
        &["s: ", "more than 1,0", "`bloomline grow --fpr FPR s`"],
    );
}

#[test]
fn no_keys_are_an_error() {
    let place = Place::new();
    refuses(&place, &["dedup", "--keys", "0"], "ant\n", &["--keys <N>", "at least 1"]);
    refuses(&place, &["dedup", "--keys", "0", "--scalable"], "ant\n", &["--keys <N>", "at least 1"]);
    refuses(&place, &["build", "--keys", "0", "-o", "f"], "ant\n", &["--keys <N>", "at least 1"]);
}

#[test]
fn a_filter_is_not_a_state() {
    let place = Place::new();
    place.bloomline(&["build", "-q", "-o", "k"]).write_stdin(lines(0..5000)).assert().success();
    let scalable = ScalableBloomFilter::with_fpr(10, 0.01).unwrap();
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
    refused(&["s", "--fpr", "1e-6"], &["s: ", "0.01%", "0.0001%", "omit --fpr"]);
    refused(&["s", "--scalable"], &["s: ", "fixed size", "1,000", "--scalable", "`bloomline grow s`"]);
    refused(&["g", "--keys", "1000"], &["g: ", "20 lines", "1,000"]);
    refused(&["g", "--fpr", "1%"], &["g: ", "0.0001%", "1%"]);
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
    // Where nothing can be written, nothing was printed.
    place.write("in", "bee\n");
    let read_only = place.shell("$b dedup --state s in 1<in").assert().code(2);
    read_only.stderr(contains("standard output: Bad file descriptor"));
    assert!(place.read("s") == state);
}

#[test]
fn what_was_printed_before_an_error_is_in_the_state() {
    let place = Place::new();
    // Nothing was printed: a state would bind the next run to its options.
    refuses(&place, &["dedup", "--state", "s", "--keys", "9", "no"], "", &["no: No such file"]);
    place.write("in", "ant\n");
    place.bloomline(&["dedup", "-q", "--state", "s", "in", "no"]).assert().code(2).stdout("ant\n");
    place.bloomline(&["dedup", "-q", "--state", "s", "in"]).assert().success().stdout("");
}

/// While it is read for the second time, after its lines were counted.
#[test]
fn a_file_that_grows_loses_nothing() {
    // The filter takes a 64th more lines than were counted, and 1,000.
    for (n_more, is_taken) in [(1300, true), (20_000, false)] {
        let place = Place::new();
        place.write("in", lines(0..20_000));
        let mut command = Command::new(program());
        command.current_dir(place.directory()).args(["dedup", "-q", "in"]).stderr(Stdio::piped());
        let mut dedup = command.stdout(Stdio::piped()).spawn().unwrap();
        // It waits for the reader: more than a pipe holds.
        let mut printed = vec![0];
        dedup.stdout.as_mut().unwrap().read_exact(&mut printed).unwrap();
        let mut file = fs::File::options().append(true).open(place.path("in")).unwrap();
        file.write_all(lines(20_000..20_000 + n_more).as_bytes()).unwrap();
        dedup.stdout.as_mut().unwrap().read_to_end(&mut printed).unwrap();
        let mut error = String::new();
        dedup.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        let code = dedup.wait().unwrap().code();
        let all = lines(0..20_000 + n_more);
        if is_taken {
            assert_eq!((printed == all.as_bytes(), error.as_str(), code), (true, "", Some(0)));
        } else {
            assert!(
                error.contains("the input has grown (use --scalable)") && error.lines().count() == 1,
                "{error}"
            );
            assert!(printed.len() > 500_000 && all.as_bytes().starts_with(&printed) && code == Some(2));
        }
    }
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
    let start = |input: &str| {
        let mut command = Command::new(program());
        command.current_dir(place.directory()).args(["dedup", "-q", "--state", "s"]).stderr(Stdio::piped());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(input.as_bytes()).unwrap();
        child
    };
    let reads = |from: &mut dyn Read, expected: &str| {
        let mut found = vec![0; expected.len()];
        from.read_exact(&mut found).unwrap();
        assert_eq!(found, expected.as_bytes());
    };
    let in_use = ["s: in use by another run", "(omit --no-wait to wait)"];
    let mut first = start("ant\nbee\n");
    reads(first.stdout.as_mut().unwrap(), "ant\nbee\n");
    let mut second = start("bee\ncat\n");
    reads(second.stderr.as_mut().unwrap(), "bloomline: s: in use by another run, waiting for it to end\n");
    refuses(&place, &["dedup", "--state", "s", "--no-wait"], "dog\n", &in_use);
    first.stdin.take();
    assert!(first.wait().unwrap().success());
    // The first has removed the lock's file: the second holds one that the third finds.
    reads(second.stdout.as_mut().unwrap(), "cat\n");
    refuses(&place, &["dedup", "--state", "s", "--no-wait"], "dog\n", &in_use);
    refuses(&place, &["grow", "--no-wait", "s"], "", &in_use);
    second.stdin.take();
    let second = second.wait_with_output().unwrap();
    assert_eq!((second.stdout.len(), second.stderr.len(), second.status.code()), (0, 0, Some(0)));
    assert_eq!(place.files(), ["s"]);
    // A lock that was left by a kill is no lock.
    place.write(".s.bloomline.lock", "");
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
    let runs = "for i in 1 2 3 4; do for f in a b; do \
                $b dedup -q --state s --keys 3000 $f >$f$i 2>/dev/null & done; done; wait; cat a? b? | sort >all";
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

/// The footer of section 11 of docs/format.md.
fn footer(capacity: u64, lines: u64, fpr: f64) -> Vec<u8> {
    let words = [capacity, lines, fpr.to_bits(), 0, 0, 1].map(u64::to_le_bytes);
    let checksum = xxhash_rust::xxh64::xxh64(words.as_flattened(), 0).to_le_bytes();
    [words.as_flattened(), &checksum, b"\x89bldup\r\n"].concat()
}

#[test]
fn a_state_is_written_as_specified() {
    let place = Place::new();
    let mut filter = BloomFilter::with_bits_per_key(1000, sizing::bits_per_key(1e-4).unwrap()).unwrap();
    filter.extend(lines(0..300).lines());
    let dedup = ["dedup", "-q", "--state", "s", "--keys", "1000", "--fpr", "1e-4"];
    place.bloomline(&dedup).write_stdin(lines(0..300)).assert().success();
    assert!(place.read("s") == [filter.to_standalone(), footer(1000, 300, 1e-4)].concat());
    let mut filter = ScalableBloomFilter::with_fpr(20, 1e-6).unwrap();
    filter.extend(lines(0..300).lines());
    let dedup = ["dedup", "-q", "--state", "g", "--keys", "20", "--scalable"];
    place.bloomline(&dedup).write_stdin(lines(0..300)).assert().success();
    assert!(place.read("g") == [filter.to_standalone(), footer(20, 300, 1e-6)].concat());
    // What no bloomline writes is refused, though the checksums match.
    let values = "values that no bloomline writes";
    for (wrong, text) in [
        (footer(0, 300, 1e-6), values),
        (footer(20, 300, 0.0), values),
        (footer(20, 300, 1.0), values),
        (footer(20, 300, f64::NAN), values),
        (footer(20, 301, 1e-6), "301 lines"),
        (footer(20, 300, 9e-7), "a false-positive rate of 9e-7"),
    ] {
        place.write("g", [filter.to_standalone(), wrong].concat());
        let remedy = "(restore a copy of the state, or remove it)";
        refuses(&place, &["dedup", "--state", "g"], "", &["g: ", text, remedy]);
    }
    // The filter's own rate may be above it by a billionth.
    let other_digits = ScalableBloomFilter::with_fpr(20, 1e-6 * (1.0 + 1e-9)).unwrap();
    place.write("g", [other_digits.to_standalone(), footer(20, 0, 1e-6)].concat());
    place.bloomline(&["dedup", "-q", "--state", "g"]).write_stdin("").assert().success();
    for at in (24..48).filter(|at| *at != 40) {
        let mut words = footer(20, 300, 1e-6)[..48].to_vec();
        words[at] = 1;
        let checksum = xxhash_rust::xxh64::xxh64(&words, 0).to_le_bytes();
        place.write("g", [&filter.to_standalone(), &words[..], &checksum, b"\x89bldup\r\n"].concat());
        refuses(&place, &["dedup", "--state", "g"], "", &["g: ", values]);
    }
}

#[test]
fn a_full_state_is_made_to_grow() {
    // Nearly empty, so that the rate stays; nearly full; full.
    for (held, fpr) in [(10, "0.0001%"), (700, "0.0001%"), (990, "0.0002%"), (1000, "0.0002%")] {
        let place = Place::new();
        let cron = ["dedup", "-q", "--state", "s", "--keys", "1000"];
        place.bloomline(&cron).write_stdin(lines(0..held)).assert().success();
        refuses(&place, &cron, &lines(held..5000), &["`bloomline grow s`"]);
        let grow = place.bloomline(&["grow", "s"]).assert().success().stdout("");
        let said = String::from_utf8(grow.get_output().stderr.clone()).unwrap();
        let first = said.lines().next().unwrap();
        assert!(
            first.ends_with(&format!("takes any number from now on at an FPR of at most {fpr}")),
            "{said}"
        );
        assert_eq!(said.contains("the FPR was 0.0001%"), fpr != "0.0001%", "{said}");
        // The same command as ever, and what was printed stays so.
        let printed = place.bloomline(&cron).write_stdin(lines(0..30_000)).assert().success().stderr("");
        assert!(printed.get_output().stdout == lines(held..30_000).as_bytes());
        place.bloomline(&cron).write_stdin(lines(0..30_000)).assert().success().stdout("");
        // Each is twice as large as the one before it, from the number of lines that the state was made for.
        let state = place.read("s");
        let filter = ScalableBloomFilter::from_standalone(&state[..state.len() - 64]).unwrap();
        assert_eq!(filter.filters().len(), 5);
        place.bloomline(&["grow", "s"]).assert().success();
        refuses(&place, &["grow", "--fpr", "1%", "s"], "", &["s: grows already", fpr]);
        place.bloomline(&["dedup", "-q", "--state", "s", "--scalable"]).write_stdin("").assert().success();
        let fpr = if fpr == "0.0001%" { "1e-6" } else { "2e-6" };
        place.bloomline(&["dedup", "-q", "--state", "s", "--fpr", fpr]).write_stdin("").assert().success();
        assert_eq!(place.files(), ["s"]);
    }
}

/// By chance, a small filter's own rate is up to twice the requested one.
#[test]
fn full_states_of_any_size_grow() {
    let place = Place::new();
    for keys in (50..3000).step_by(271) {
        let dedup = ["dedup", "-q", "--state", "s", "--keys", &keys.to_string()];
        place.bloomline(&dedup).write_stdin(lines(0..keys)).assert().success();
        place.bloomline(&["grow", "s"]).assert().success();
        let more = place.bloomline(&dedup).write_stdin(lines(0..2 * keys)).assert().success();
        more.stdout(lines(keys..2 * keys));
        fs::remove_file(place.path("s")).unwrap();
    }
}

#[test]
fn an_overfull_state_grows_at_a_rate_that_is_named() {
    let place = Place::new();
    let dedup = ["dedup", "-q", "--allow-overfull", "--state", "s", "--keys", "1000"];
    place.bloomline(&dedup).write_stdin(lines(0..2000)).assert().success();
    refuses(&place, &["grow", "s"], "", &["s: its FPR is 0.", "--fpr"]);
    refuses(
        &place,
        &["grow", "--fpr", "1e-5", "s"],
        "",
        &["s: its FPR is 0.", "it can grow at more than 0.", "--fpr"],
    );
    place.bloomline(&["grow", "--fpr", "10%", "s"]).assert().success();
    let more =
        place.bloomline(&["dedup", "-q", "--state", "s"]).write_stdin(lines(0..10_000)).assert().success();
    let n_printed = more.get_output().stdout.iter().filter(|byte| **byte == b'\n').count();
    assert!((7600..=8001).contains(&n_printed), "{n_printed}");
}

#[test]
fn a_filter_becomes_a_state() {
    let place = Place::new();
    place
        .bloomline(&["build", "-q", "-o", "k", "--fpr", "1%"])
        .write_stdin(lines(0..5000))
        .assert()
        .success();
    refuses(&place, &["grow", "k"], "", &["k: a filter", "-o"]);
    refuses(&place, &["grow", "-o", "s", "k"], "", &["k: its FPR is 0.9", "--fpr"]);
    refuses(&place, &["grow", "-o", "s", "no"], "", &["no: No such file"]);
    place.write("text", "ant\n");
    refuses(&place, &["grow", "text"], "", &["text: "]);
    let filter = place.read("k");
    place.bloomline(&["grow", "-o", "s", "--fpr", "3%", "k"]).assert().success();
    assert!(place.read("k") == filter);
    let dedup = ["dedup", "-q", "--state", "s", "--fpr", "0.03"];
    let printed = place.bloomline(&dedup).write_stdin(lines(0..20_000)).assert().success();
    let n_printed = printed.get_output().stdout.iter().filter(|byte| **byte == b'\n').count();
    assert!((14_550..=15_000).contains(&n_printed), "{n_printed}");
    // A state of an earlier bloomline: a scalable filter.
    let mut scalable = ScalableBloomFilter::with_fpr(20, 1e-4).unwrap().with_seed(7).unwrap();
    scalable.extend(lines(0..100).lines());
    place.write("c", scalable.to_standalone());
    place.shell("$b grow -o - c 2>&- | cat >g").assert().success();
    assert!(
        place.read("g") == [scalable.to_standalone(), footer(20, scalable.inserted_keys(), 1e-4)].concat()
    );
    place
        .bloomline(&["dedup", "-q", "--state", "g"])
        .write_stdin(lines(0..101))
        .assert()
        .stdout(lines(100..101));
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
    let checksum = xxhash_rust::xxh64::xxh64(&filter[signed.clone()], 0).to_le_bytes();
    filter[signed.end..][..8].copy_from_slice(&checksum);
    let state = [filter, footer(50_000, 50_000, 1e-6)].concat();
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
    place.bloomline(&["dedup", "-q", "--state", "s"]).write_stdin("ant\n").assert().success();
    assert_eq!(place.read("s.lock"), b"precious");
    place.write(".s.bloomline.lock", "precious");
    refuses(&place, &["dedup", "--state", "s"], "ant\n", &[".s.bloomline.lock: not a lock of bloomline's"]);
    assert_eq!(place.read(".s.bloomline.lock"), b"precious");
    place.shell("rm .s.bloomline.lock; mkfifo .s.bloomline.lock").assert().success();
    let mut command = place.bloomline(&["dedup", "--state", "s"]);
    command.write_stdin("ant\n").assert().code(2).stderr(contains("not a lock"));
}

/// At high rates a filter drops many of the lines that it was made for. The lines put in are more than their number says.
#[test]
fn the_rate_holds_where_it_is_high() {
    let place = Place::new();
    for fpr in ["0.5", "0.1", "0.01"] {
        for n in [3_000_u64, 20_000, 100_000] {
            let keys = n.to_string();
            let dedup = |n: u64| {
                let mut command = place.bloomline(&["dedup", "--keys", &keys, "--fpr", fpr]);
                command.write_stdin(lines(0..n)).assert()
            };
            dedup(n).success().stderr(contains("expected").not());
            // By the model, this many lines raise the rate by more than a twentieth.
            let dedup = ["dedup", "--keys", &keys, "--fpr", fpr];
            let most = most_lines(&place, &dedup, lines(0..n + n / 8 + 1000));
            // Of the lines that keep the rate, the dropped ones are not put in: four standard errors fewer.
            let fpr = fpr.parse().unwrap();
            let sizing = Sizing::for_bits_per_key(n as usize, sizing::bits_per_key(fpr).unwrap()).unwrap();
            let rate = |lines: usize| sizing.fpr(lines);
            let enough = (n as usize..).find(|&lines| rate(lines + 1) > 1.001 * fpr).unwrap();
            let dropped =
                (1..200).step_by(2).map(|i| rate(enough * i / 200)).sum::<f64>() / 100.0 * enough as f64;
            let expected = enough as f64 - (dropped - 4.0 * dropped.sqrt()).max(0.0);
            assert!((most as f64 - expected).abs() < 2.0 + expected / 1000.0, "{most}, not {expected}");
        }
    }
}

/// As where a link to the state of the day is changed at midnight, while dedup runs.
#[cfg(unix)]
#[test]
fn a_link_that_changes_does_not_move_the_state() {
    let place = Place::new();
    for (name, range) in [("monday", 0..10), ("tuesday", 90..99)] {
        place.bloomline(&["dedup", "-q", "--state", name]).write_stdin(lines(range)).assert().success();
    }
    let tuesday = place.read("tuesday");
    place
        .shell(
            "ln -s monday link; mkfifo in; $b dedup -q --state link <in >out & exec 3>in; echo ant >&3; \
             until [ -s out ]; do sleep 0.01; done; ln -sfn tuesday link; exec 3>&-; wait",
        )
        .assert()
        .success();
    assert_eq!(place.read("tuesday"), tuesday);
    place.bloomline(&["dedup", "-q", "--state", "monday"]).write_stdin("ant\n").assert().success().stdout("");
}
