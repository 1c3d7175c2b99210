//! Where files are written: in place of others, or straight through.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use predicates::prelude::*;
use predicates::str::contains;

use common::{Place, lines, program};

fn place() -> Place {
    let place = Place::new();
    place.write("keys", lines(0..1000));
    place.bloomline(&["build", "-q", "-o", "f", "keys"]).assert().success();
    place
}

#[test]
fn standard_output_is_written_straight_through() {
    let place = place();
    let filter = place.read("f");
    for output in ["-", "/dev/stdout"] {
        let build = ["build", "-q", "-o", output, "keys"];
        assert!(place.bloomline(&build).assert().success().get_output().stdout == filter, "{output}");
        // To a file, what is there stays, and what follows is appended.
        let line = format!("(echo before; $b build -q -o {output} keys; echo after) >g");
        place.shell(&line).assert().success();
        assert!(place.read("g") == [&b"before\n"[..], &filter, b"after\n"].concat(), "{output}");
        place.shell(&format!("echo before >g; $b build -q -o {output} keys >>g")).assert().success();
        assert!(place.read("g") == [&b"before\n"[..], &filter].concat(), "{output}");
    }
    place
        .shell("$b merge -o - f f 2>&- | $b fold -o - --factor 2 /dev/stdin 2>&- | $b info /dev/stdin")
        .assert()
        .success()
        .stdout(contains("10 blocks"));
    place.shell("$b merge -o - f f 2>&- | cmp - f").assert().success();
    place.shell("$b build -q -o - keys >/dev/full").assert().code(2).stderr(contains("-: No space left"));
    // The reader has gone: silently, as for lines.
    place.shell("($b build -o - --keys 1e6 keys; echo $? >&2) | head -c 1 >g").assert().stderr("141\n");
    assert_eq!(place.files(), ["f", "g", "keys"]);
}

#[test]
fn pipes_and_devices_are_written_straight_through() {
    let place = place();
    place.shell("mkfifo p; cat p >g & $b build -q -o p keys; wait; cmp f g").assert().success();
    place.bloomline(&["build", "-q", "-o", "/dev/null", "keys"]).assert().success();
    // Nobody waits for `cat`.
    let process_substitution =
        "bash -c '$b build -q -o >(cat >h) keys'; until cmp -s f h; do sleep 0.01; done";
    if Command::new("bash").arg("--version").output().is_ok_and(|output| output.status.success()) {
        place.shell(process_substitution).assert().success();
    }
    assert!(place.files().iter().all(|name| !name.starts_with('.')), "{:?}", place.files());
}

#[test]
#[cfg(target_os = "linux")]
fn a_filter_is_not_written_to_a_terminal() {
    if !Command::new("script").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return; // no pseudo-terminal
    }
    let place = place();
    for output in ["-", "/dev/stdout", "/dev/tty"] {
        let line = format!("script -qec \"$b build -q -o {output} keys\" /dev/null </dev/null");
        place
            .shell(&line)
            .assert()
            .code(2)
            .stdout(contains("terminal").and(contains("(redirect it, or name a file)")));
    }
}

#[test]
fn leftovers_of_a_kill_are_removed() {
    let place = place();
    let mine = [".f1aB2c3.bloomline.tmp", ".fZZZZZZ.bloomline.tmp"];
    let others = [
        ".f1aB2c3.tmp",
        ".f1aB2c.bloomline.tmp",
        ".g1aB2c3.bloomline.tmp",
        ".f/aB2c3.bloomline.tmp",
        "f1aB2c3.bloomline.tmp",
    ];
    fs::create_dir(place.path(".f")).unwrap();
    mine.iter().chain(&others).for_each(|name| _ = place.write(name, "left"));
    place.bloomline(&["build", "-q", "-o", "f", "keys"]).assert().success();
    mine.iter().for_each(|name| assert!(!place.path(name).exists(), "{name}"));
    others.iter().for_each(|name| assert!(place.path(name).exists(), "{name}"));
}

#[test]
fn a_file_that_is_being_written_is_no_leftover() {
    let place = place();
    let mut command = Command::new(program());
    command.current_dir(place.directory()).args(["build", "-q", "-o", "f"]).stdin(Stdio::piped());
    let mut first = command.spawn().unwrap();
    while !place.files().iter().any(|name| name.starts_with(".f")) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let second =
        "for i in 1 2 3 4 5 6 7 8 9; do $b build -q -o f keys & $b build -q -o f keys; wait $!; done";
    let others = place.shell(second).assert().get_output().clone();
    let in_use = "bloomline: f: in use by another run";
    assert!(String::from_utf8(others.stderr).unwrap().lines().all(|line| line.starts_with(in_use)));
    first.stdin.take().unwrap().write_all(b"ant\n").unwrap();
    assert!(first.wait().unwrap().success());
    place.bloomline(&["check", "f"]).write_stdin("ant\nbee\n").assert().stdout("ant\n");
    assert_eq!(place.files(), ["f", "keys"]);
}

#[test]
fn long_names() {
    let place = place();
    let long = "n".repeat(255);
    place.bloomline(&["build", "-q", "-o", &long, "keys"]).assert().success();
    fs::remove_file(place.path(&long)).unwrap();
    place.bloomline(&["dedup", "-q", "--state", &long, "keys"]).assert().success();
    place.bloomline(&["dedup", "-q", "--state", &long, "keys"]).assert().success().stdout("");
    assert_eq!(place.files(), ["f", "keys", &long]);
}
