//! What a signal leaves.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use std::env;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bloomline::mix;
use common::{Place, exchange, gzip, lines, place, program, stdout};

/// Sends these signals within milliseconds. The first one may have ended the process.
fn signals(child: &Child, names: &[&str]) {
    let kills = names.iter().map(|name| format!("kill -{name} {}", child.id())).collect::<Vec<_>>();
    let status = Command::new("sh").args(["-c", &kills.join("; ")]).stderr(Stdio::null()).status();
    assert!(status.expect("kill").success() || names.len() > 1);
}

/// Whether the signal ends processes started from here (under `nohup`, SIGHUP does not) and is watched on this system.
fn ends(name: &str) -> bool {
    let status = Command::new("sh").args(["-c", &format!("kill -{name} $$")]).status().expect("a shell");
    status.signal().is_some() && (name != "HUP" || cfg!(target_os = "linux"))
}

/// Its status, and what it has said.
fn ended(mut child: Child) -> (ExitStatus, String) {
    // Open until it has ended.
    let _input = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    (output.status, String::from_utf8(output.stderr).unwrap())
}

/// Waits for another process. The limit only ends a test that hangs.
fn wait_until(mut is_done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_done() {
        assert!(start.elapsed() < Duration::from_secs(600), "timed out");
        sleep(Duration::from_millis(1));
    }
}

/// `BLOOMLINE_STEPS` is the number of kills.
#[test]
fn a_killed_run_on_a_folder_goes_on_where_it_was() {
    let n_kills = env::var("BLOOMLINE_STEPS").map_or(30, |text| text.parse().unwrap());
    let (place, mut n_killed) = (Place::new(), 0);
    let document = |i: u64| format!("{{\"t\":\"a{} b{} c{i} d{i}\\ne{}\"}}\n", i / 2, i / 9, i % 99);
    for i in 0..40 {
        place.write(&format!("{i}.gz"), gzip((i * 40..i * 40 + 80).map(document).collect::<String>()));
    }
    let all: String = (0..40).map(|i| format!(" {i}.gz")).collect();
    let is_whole = "for i in out/*.gz; do [ ! -e $i ] || cmp $i whole/${i#out/} || exit 1; done";
    while n_killed < n_kills {
        for options in ["", "--paragraphs", "--ngrams 2 --overlap 50%"] {
            let dedup = format!("dedup -q --json t {options} --state s --output-dir");
            let begun = Instant::now();
            place.sh(format!("rm -rf whole out s; $b {dedup} whole {all} && rm s")).success();
            let time = begun.elapsed();
            // A state that has the keys of some of the files.
            if n_killed % 2 == 0 {
                place.run(format!("{dedup} out {}", &all[..50])).success();
            }
            // Later, so that a slow one ends too.
            for tenths in 5.. {
                let mut child = place.start(format!("{dedup} out {all}"));
                let share = mix(n_killed) as f64 / u64::MAX as f64 * f64::from(tenths) / 10.0;
                sleep(time.mul_f64(share));
                child.kill().unwrap();
                let status = child.wait().unwrap();
                if status.success() {
                    break;
                }
                assert_eq!(status.signal(), Some(9));
                n_killed += 1;
                place.sh(is_whole).success();
            }
            place.sh("diff -r whole out").success();
        }
    }
}

/// Ends runs of a command near their end, and finds its file `g` as it was or as the command makes it. Returns how often
/// it was as the command makes it.
fn is_old_or_new(
    place: &Place,
    line: &str,
    n_rounds: usize,
    mut end: impl FnMut(usize, &mut Child),
) -> usize {
    let start = Instant::now();
    assert!(place.start(line).wait().unwrap().success());
    let (mut time, new, mut n_new) = (start.elapsed(), place.read("g"), 0);
    place.remove("g");
    for i in 0..n_rounds {
        let old = (i % 2 == 0).then(|| b"old".to_vec());
        old.iter().for_each(|old| _ = place.write("g", old));
        let mut child = place.start(line);
        sleep(time);
        end(i, &mut child);
        ended(child);
        let found = fs::read(place.path("g")).ok();
        let is_new = found.as_ref() == Some(&new);
        assert!(is_new || found == old, "{line}, round {i}");
        n_new += usize::from(is_new);
        let _ = fs::remove_file(place.path("g"));
        // Whatever else the machine does, some ends come in time, and many shortly before the command's own.
        time = if is_new { time * 7 / 10 } else { time * 13 / 10 };
    }
    n_new
}

#[test]
fn a_killed_build_leaves_the_old_file_or_the_new_one() {
    let place = place();
    // Large enough to take some time to write.
    let build = "build -q -o g --keys 4e6 keys";
    let mut n_left = 0;
    let n_new = is_old_or_new(&place, build, 60, |_, child| {
        child.kill().unwrap();
        child.wait().unwrap();
        // A kill leaves a hidden file, which nobody mistakes for the filter. The next run removes it.
        let left = place.files().iter().filter(|name| name.starts_with(".g")).count();
        assert!(left <= 2, "{:?}", place.files()); // and a lock, if it was killed while it wrote
        n_left += left;
    });
    assert!(n_new < 55, "none was killed in time: {n_new} new");
    assert!(n_left > 0, "none was killed while it wrote");
    place.run(build).success();
    assert_eq!(place.files(), ["f", "g", "keys"]);
}

/// `timeout` signals its child and then the group, a closed terminal hangs up twice, and a wrapper may pass on a Ctrl-C.
const SIGNALS: [&[&str]; 7] =
    [&["TERM", "TERM"], &["HUP", "HUP"], &["INT", "TERM"], &["TERM", "HUP"], &["INT"], &["TERM"], &["HUP"]];

fn all_signals() -> impl Iterator<Item = &'static [&'static str]> + Clone {
    SIGNALS.into_iter().filter(|names| names.iter().all(|name| ends(name)))
}

#[test]
fn signals_leave_the_old_file_or_the_new_one() {
    let place = place();
    place.run("build -q -o a --keys 1e6 keys").success();
    place.feed("build -q -o b --like a", "ant\n").success();
    place.feed("dedup -q --state s --keys 1e6", "ant\n").success();
    let all: Vec<_> = all_signals().collect();
    for line in
        ["build -q -o g --keys 1e6 keys", "merge -q -o g a b", "grow -q -o g s", "fold -q -o g --factor 2 a"]
    {
        is_old_or_new(&place, line, 14, |i, child| signals(child, all[i % all.len()]));
        assert_eq!(place.files(), ["a", "b", "f", "keys", "s"], "{line}");
    }
    // Of a build that waits for its keys.
    let mut build = place.start("build -o f");
    exchange(&mut build, "ant\nbee\n", "");
    wait_until(|| place.files().iter().any(|name| name.starts_with('.')));
    signals(&build, &["TERM"]);
    // By the signal itself: a shell's loop stops then as well.
    assert_eq!(ended(build).0.signal(), Some(15));
    assert!(place.files().iter().all(|name| !name.starts_with('.')));
    place.run("check -q f keys").success();
}

#[test]
fn an_interrupted_dedup_remembers_what_it_printed() {
    for (round, names) in all_signals().cycle().take(42).enumerate() {
        let place = Place::new();
        // Large enough to take some time to write.
        let line = ["dedup --state s --keys 4e6", "dedup --state s --grow"][round % 2];
        let mut dedup = place.start(line);
        exchange(&mut dedup, &lines(0..500), &lines(0..500));
        // The beginning of a line is not printed.
        exchange(&mut dedup, "half", "");
        signals(&dedup, names);
        let (status, text) = ended(dedup);
        let numbers = names.iter().map(|name| match *name {
            "HUP" => 1,
            "INT" => 2,
            _ => 15,
        });
        assert!(numbers.map(Some).any(|number| number == status.signal()), "{round} {names:?}: {status}");
        assert!(text.contains("s: saved"), "{round} {names:?}: {text}");
        assert_eq!(place.files(), ["s"]);
        place.feed(line, lines(400..600) + "half\n").success().stdout(lines(500..600) + "half\n");
    }
}

/// Ctrl-C and SIGTERM say whether the state was saved.
#[test]
fn an_interrupted_dedup_says_what_became_of_the_state() {
    let place = Place::new();
    let interrupted = |line: &str, input: &str, printed: &str| {
        let mut dedup = place.start(line);
        exchange(&mut dedup, input, printed);
        sleep(Duration::from_millis(200));
        signals(&dedup, &["TERM"]);
        ended(dedup).1
    };
    let dedup = "dedup --state s";
    assert_eq!(interrupted(dedup, "", ""), "bloomline: s: not made, as nothing was printed\n");
    assert!(place.files().is_empty());
    let saved = "bloomline: s: saved, with all lines that were printed\n";
    assert_eq!(interrupted(dedup, "ant\n", "ant\n"), saved);
    assert_eq!(interrupted(dedup, "ant\n", ""), "bloomline: s: nothing new was printed\n");
    assert_eq!(interrupted("dedup -q --state s", "bee\n", "bee\n"), "");
    assert_eq!(interrupted("dedup", "ant\n", "ant\n"), "");
}

#[test]
#[cfg(target_os = "linux")]
fn signals_that_were_ignored_stay_so() {
    let place = Place::new();
    let mut command = Command::new("sh");
    command.current_dir(place.directory()).env("b", program());
    command.args(["-c", "trap '' HUP INT TERM; exec $b dedup -q --state s --keys 1e3"]);
    let mut dedup = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
    exchange(&mut dedup, "ant\n", "ant\n");
    ["HUP", "INT", "TERM"].into_iter().for_each(|name| signals(&dedup, &[name]));
    sleep(Duration::from_millis(100));
    exchange(&mut dedup, "bee\n", "bee\n");
    let rest = dedup.wait_with_output().unwrap();
    assert_eq!((rest.stdout.len(), rest.status.code()), (0, Some(0)));
}

#[test]
fn a_dedup_that_cannot_print_does_not_remember() {
    let place = Place::new();
    let mut dedup = place.start("dedup --state s --keys 1e5");
    let mut input = dedup.stdin.take().unwrap();
    let mut output = dedup.stdout.take().unwrap();
    // More than a pipe holds, and nobody reads the rest, so that it is unknown what was printed.
    let text = lines(0..50_000);
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    output.read_exact(&mut [0]).unwrap();
    sleep(Duration::from_millis(100));
    // The first signal waits for the reader, and so do its repetitions; one that comes a second later does not.
    signals(&dedup, &["TERM", "TERM"]);
    sleep(Duration::from_millis(100));
    assert!(dedup.try_wait().unwrap().is_none());
    wait_until(|| {
        signals(&dedup, &["TERM", "TERM"]);
        dedup.try_wait().unwrap().is_some()
    });
    let (status, text) = ended(dedup);
    assert_eq!(status.signal(), Some(15));
    assert!(text.ends_with("s: not recorded, because output was not written\n"), "{text}");
    assert!(writer.join().unwrap().is_err());
    assert!(place.files().is_empty());
}

/// Lines that were not printed, because there are too many, are not in the state.
#[test]
fn a_dedup_that_stops_remembers_what_it_printed() {
    let place = Place::new();
    place.write("in", lines(0..1000));
    // Its error waits for a reader, and a signal comes meanwhile.
    let line = "mkfifo e; exec 3<>e; head -c 65536 /dev/zero >&3; $b dedup --state s --keys 10 in 2>&3 & \
                until [ -e s ]; do sleep 0.1; done; sleep 0.5; kill -TERM $!; wait $!; exec 3>&-";
    let printed = stdout(&place.sh(line).success());
    assert!(printed.len() > 200 && lines(0..30).starts_with(&printed));
    place.run("grow s").success();
    assert!(printed + &place.prints("dedup -q --state s in") == lines(0..1000));
}

/// What it says then may find no reader.
#[test]
fn a_signal_ends_a_dedup_whose_notes_nobody_reads() {
    let place = Place::new();
    place.write("in", lines(0..1000));
    let line = "mkfifo i e; exec 3<>e 4<>i; head -c 65536 /dev/zero >&3; cat in >&4; $b dedup --state s <i >out 2>&3 & \
                until [ -s out ]; do sleep 0.1; done; kill -TERM $!; wait $!; [ $? = 143 ]";
    place.sh(line).success();
    assert!(lines(0..1000) == place.text("out"));
    place.run("dedup -q --state s in").success().stdout("");
}
