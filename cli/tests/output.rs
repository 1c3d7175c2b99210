//! Where files are written: in place of others, or straight through.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use std::fs;
use std::io::Write;

use predicates::prelude::*;
use predicates::str::contains;

use common::{place, stderr};

#[test]
fn standard_output_is_written_straight_through() {
    let place = place();
    let filter = place.read("f");
    for output in ["-", "/dev/stdout"] {
        let build = format!("$b build -q -o {output} keys");
        assert!(place.sh(&build).success().get_output().stdout == filter, "{output}");
        // To a file, what is there stays, and what follows is appended.
        place.sh(format!("(echo before; {build}; echo after) >g")).success();
        assert!(place.read("g") == [&b"before\n"[..], &filter, b"after\n"].concat(), "{output}");
        place.sh(format!("echo before >g; {build} >>g")).success();
        assert!(place.read("g") == [&b"before\n"[..], &filter].concat(), "{output}");
    }
    let line = "$b merge -o - f f 2>&- | $b fold -o - --factor 2 /dev/stdin 2>&- | $b info /dev/stdin";
    place.sh(line).success().stdout(contains("10 blocks"));
    place.sh("$b merge -o - f f 2>&- | cmp - f").success();
    place.sh("$b build -q -o - keys >/dev/full").code(2).stderr(contains("-: No space left"));
    // The reader has gone: silently, as for lines.
    place.sh("($b build -o - --keys 1e6 keys; echo $? >&2) | head -c 1 >g").stderr("141\n");
    assert_eq!(place.files(), ["f", "g", "keys"]);
}

#[test]
fn pipes_and_devices_are_written_straight_through() {
    let place = place();
    place.sh("mkfifo p; cat p >g & $b build -q -o p keys; wait; cmp f g && [ -p p ]").success();
    place.run("build -q -o /dev/null keys").success();
    // Nobody waits for `cat`.
    if place.shell("bash --version").output().is_ok_and(|output| output.status.success()) {
        place.sh("bash -c '$b build -q -o >(cat >h) keys'; until cmp -s f h; do sleep 0.01; done").success();
    }
    assert!(place.files().iter().all(|name| !name.starts_with('.')), "{:?}", place.files());
}

#[test]
#[cfg(target_os = "linux")]
fn a_filter_is_not_written_to_a_terminal() {
    let place = place();
    if !place.shell("script --version").output().is_ok_and(|output| output.status.success()) {
        return; // no pseudo-terminal
    }
    for output in ["-", "/dev/stdout", "/dev/tty"] {
        let line = format!("script -qec \"$b build -q -o {output} keys\" /dev/null </dev/null");
        place.sh(line).code(2).stdout(contains("terminal").and(contains("(redirect it, or name a file)")));
    }
}

#[test]
fn leftovers_of_a_kill_are_removed() {
    let place = place();
    let mine = [".f1ab2c3.bloomline.tmp", ".fffffff.bloomline.tmp"];
    let others = [
        ".f1aB2c3.bloomline.tmp",
        ".f1ab2c3.tmp",
        ".f1ab2c.bloomline.tmp",
        ".g1ab2c3.bloomline.tmp",
        ".f/ab2c3.bloomline.tmp",
        "f1ab2c3.bloomline.tmp",
    ];
    fs::create_dir(place.path(".f")).unwrap();
    mine.iter().chain(&others).for_each(|name| _ = place.write(name, "left"));
    place.run("build -q -o f keys").success();
    mine.iter().for_each(|name| assert!(!place.path(name).exists(), "{name}"));
    others.iter().for_each(|name| assert!(place.path(name).exists(), "{name}"));
}

#[test]
fn a_file_that_is_being_written_is_no_leftover() {
    let place = place();
    let mut first = place.start("build -q -o f");
    while !place.files().iter().any(|name| name.starts_with(".f")) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let second =
        "for i in 1 2 3 4 5 6 7 8 9; do $b build -q -o f keys & $b build -q -o f keys; wait $!; done";
    let in_use = "bloomline: f: in use by another run";
    assert!(stderr(&place.sh(second)).lines().all(|line| line.starts_with(in_use)));
    first.stdin.take().unwrap().write_all(b"ant\n").unwrap();
    assert!(first.wait().unwrap().success());
    place.feed("check f", "ant\nbee\n").stdout("ant\n");
    assert_eq!(place.files(), ["f", "keys"]);
}

#[test]
fn long_names() {
    let place = place();
    let long = "n".repeat(255);
    place.run(format!("build -q -o {long} keys")).success();
    place.remove(&long);
    for printed in [&*place.text("keys"), ""] {
        place.run(format!("dedup -q --state {long} keys")).success().stdout(printed.to_owned());
    }
    assert_eq!(place.files(), ["f", "keys", &long]);
}
