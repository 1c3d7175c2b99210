//! What `find` answers, and what it says if that could be wrong.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use predicates::str::contains;
use serde_json::json;

use common::{Place, settle, stderr, stdout};

/// One file of each line, named by its number, last changed a minute ago.
fn place(lines: &[&str]) -> Place {
    let place = Place::new();
    for (i, line) in lines.iter().enumerate() {
        let path = place.write(&format!("{i}"), line);
        let time = SystemTime::now() - Duration::from_secs(60);
        File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }
    settle();
    let names: Vec<_> = (0..lines.len()).map(|i| i.to_string()).collect();
    place.run(format!("index -q --words --fpr 1e-7 -o i {}", names.join(" "))).success();
    place
}

/// Lines in which `grep -wF` finds a key, by the kind of their words.
const FOUND: [(&str, &str); 35] = [
    ("10:00:01.123 boot", "10:00:01"),
    ("2026-11-28T10:00:01.123Z x", "2026-11-28T10:00:01"),
    ("java.lang.NullPointerException: x", "NullPointerException"),
    ("production.ERROR: x", "ERROR"),
    ("Loading foo...done", "done"),
    ("a1b2c3d..e4f5a6b", "a1b2c3d"),
    ("10.0.0.1-10.0.0.9", "10.0.0.1"),
    ("IP 10.0.0.1.443 > 10.0.0.9.80", "10.0.0.1"),
    ("1,234.56", "1,234"),
    ("eth0.100", "eth0"),
    ("web-20", "web"),
    ("\x1b[31mERROR\x1b[0m", "ERROR"),
    ("\x1b[1;32mINFO\x1b[39;49m ok", "INFO"),
    ("\u{201c}db1\u{201d}", "db1"),
    ("retry\u{2014}timeout", "timeout"),
    ("\u{5931}\u{6557}\u{3002}host42", "host42"),
    ("a\u{a0}db2\u{a0}b", "db2"),
    ("\u{feff}first", "first"),
    ("fatal\u{1f4a5}boom", "boom"),
    ("ERROR timeout connecting to db3.local", "timeout connecting to db3"),
    ("user=bob@example.com.", "bob@example.com"),
    ("https://www.example.com/a/b.html?x=1", "www.example.com/a"),
    ("C:\\Windows\\System32\\x.dll", "System32"),
    ("\u{e9}t\u{e9}-2026", "\u{e9}t\u{e9}"),
    ("req-7c7905bd-1692-4e77-a6a2-ad2f558436e0.json", "7c7905bd-1692-4e77-a6a2-ad2f558436e0"),
    ("from [2001:db8::1]:443", "2001:db8::1"),
    ("mac 02:42:ac:11:00:02", "02:42:ac:11:00:02"),
    ("SHA256:aa:bb:cc:dd", "aa:bb:cc:dd"),
    ("v1.2.3-rc.1", "rc"),
    ("_start", "_start"),
    ("x\"quoted\"y", "quoted"),
    ("pid=4242;", "4242"),
    ("-- -x- --", "x"),
    ("at=2026-11-28T10:00:01.123Z", "2026-11-28"),
    ("app-2026-11-28.log", "2026-11-28"),
];

#[test]
fn words_are_found_as_they_are_typed() {
    let place = place(&FOUND.map(|(line, _)| line));
    for (i, (_, key)) in FOUND.iter().enumerate() {
        let found = place.bloomline("find i --").arg(key).assert().success();
        assert!(stdout(&found).lines().any(|name| name == i.to_string()), "{key}");
    }
}

/// Words that are only within longer ones, with how many files may have them.
#[test]
fn words_within_longer_ones_are_told() {
    let lines = [
        ("10.0.0.1", "10.0.0"),
        ("web-20.example.com", "web-20"),
        ("a.java.lang.String", "java.lang"),
        ("7c7905bd-1692-4e77-a6a2-ad2f558436e0", "7c7905bd"),
        ("app-2026-11.log", "2026-11"),
        ("aa:bb:cc:dd:ee:ff", "aa:bb:cc"),
        ("x web-21.local", "x web-21"),
    ];
    let place = place(&lines.map(|(line, _)| line));
    for (i, (_, key)) in lines.iter().enumerate() {
        place.run(format!("find i '{key}'")).code(1).stdout("").stderr(format!(
            "bloomline: no file has {key} as a whole word, but 1 of 7 may within a longer one (--parts)\n"
        ));
        place.run(format!("find --parts i '{key}'")).success().stdout(format!("{i}\n")).stderr("");
    }
}

#[test]
fn what_else_is_told() {
    let place = place(&["web-20", "web-20.example.com", "ERROR Timeout", "x"]);
    place
        .run("find i web-20")
        .success()
        .stdout("0\n")
        .stderr("bloomline: 1 of 4 files more may have web-20, but only within a longer word (--parts)\n");
    place.run("find -q i web-20").success().stdout("").stderr("");
    for key in ["error", "TIMEOUT", "'error timeout'", "timeout error"] {
        let text = ", but 1 may have it in another case (case counts)";
        place.run(format!("find i {key}")).code(1).stderr(contains(text));
    }
    place.run("find i errors").code(1).stderr("");
    place.run("find i x").success().stderr("");
    // Of several, by one line.
    place.run("find --each i web nobody 20.example example.com").success().stdout("web\t0\nweb\t1\n").stderr(
        "bloomline: more files may have 2 KEYs, such as 20.example, only within longer words (--parts)\n",
    );
    // Since the index was made, one has changed, one is gone, and the folder has a new one.
    fs::create_dir(place.path("logs")).unwrap();
    place.run("index -q --words --add -o i logs 0").success();
    place.write("2", "changed");
    place.remove("3");
    place.write("logs/new", "x");
    place
        .run("find i nobody")
        .code(1)
        .stderr("bloomline: i: since it was made, files changed: 1, gone: 1, new: 1 (give --or-changed)\n");
    place.run("find --or-changed i nobody").success().stdout("2\nlogs/new\n").stderr("");
    place.run("find --or-changed i web").success().stdout("0\n1\n2\nlogs/new\n");
    place.run("find --or-changed -c i web").success().stdout("4\n");
    place.run("find i web").success().stderr("");
    place.sh("mkdir elsewhere && cd elsewhere && $b find ../i nobody").code(1).stderr(contains(
        "../i: none of its files is here (run this in the directory where the index was made)",
    ));
}

#[test]
fn case_is_ignored_if_the_index_does() {
    let place = Place::new();
    place.write("a", "NullPointerException in WEB-1.Example.com \u{c9}t\u{e9}");
    place.run("index -q --words --ignore-case -o i a").success();
    for key in
        ["nullpointerexception", "NULLPOINTEREXCEPTION", "web-1.example.com", "eXample", "\u{c9}T\u{e9}"]
    {
        place.run(format!("find i {key}")).success().stdout("a\n").stderr("");
    }
    place.run("find i \u{e9}t\u{e9}").code(1); // only ASCII letters
    place.refuses("index --words -o i a", &["i: made of words --ignore-case, not of words (give the same"]);
    place.refuses("index --ignore-case -o j a", &["--words"]);
}

#[test]
fn many_keys_are_answered_one_by_one() {
    let place = place(&["ant bee", "bee cat", "dog"]);
    place.write("keys", "bee\n\ncow\r\ndog\r\n");
    place.run("find -f keys i").success().stdout("bee\t0\nbee\t1\ndog\t2\n");
    place.run("find -f keys i cat").success().stdout("cat\t1\nbee\t0\nbee\t1\ndog\t2\n");
    place.run("find -c -f keys i").success().stdout("bee\t2\ncow\t0\ndog\t1\n");
    place.run("find -0 -f keys i").success().stdout("bee\t0\0bee\t1\0dog\t2\0");
    place.run("find --any -f keys i").success().stdout("0\n1\n2\n");
    place.run("find --any --each i ant dog").success().stdout("ant\t0\ndog\t2\n");
    place.sh("printf 'ant\\ncow\\n' | $b find -f - i").success().stdout("ant\t0\n");
    place.run("find -c i bee").success().stdout("2\n");
    place.run("find -c i cow").code(1).stdout("0\n");
    let object = place.json("find --any --as-json i ant bee");
    let expected = json!({
        "index": "i",
        "files": ["0", "1"],
        "not_read": [],
        "keys": [{"key": "ant", "files": ["0"]}, {"key": "bee", "files": ["0", "1"]}],
    });
    assert_eq!(object, expected);
    assert_eq!(place.json("find --as-json i ant bee")["files"], json!(["0"]));
    place.write("none", "\n");
    place.refuses("find -f none i", &["none: has no KEY (write one on each line)"]);
    place.sh("$b find -f - - <i").code(2).stderr(contains("cannot both come from standard input"));
    place.refuses("find i", &["KEY"]);
    // As many processes would, and from an index whose bytes are then verified at once.
    let many: Vec<_> = (0..300).map(|i| format!("w{i}\nbee")).collect();
    place.write("many", many.join("\n"));
    let found = stdout(&place.run("find -f many i").success());
    assert_eq!(found, "bee\t0\nbee\t1\n".repeat(300));
    place.damage("i", 3, "damaged");
    place.refuses("find -f many damaged", &["damaged: "]);
}

#[test]
fn files_are_listed() {
    let place = place(&["ant bee", "cat", "dog"]);
    place.write("bad.gz", b"\x1f\x8b\x08cut");
    place.run("index -q --words --add -o i bad.gz").code(2);
    place.remove("1");
    place.write("2", "changed");
    let listed = place.json("info --files --as-json i")["listed"].clone();
    let states: Vec<_> =
        listed.as_array().unwrap().iter().map(|file| (&file["file"], &file["state"])).collect();
    let expected = json!([["0", "as indexed"], ["1", "gone"], ["2", "changed"], ["bad.gz", "not read"]]);
    assert_eq!(json!(states), expected);
    assert_eq!(
        (&listed[0]["keys"], &listed[0]["size"], &listed[3]["keys"]),
        (&json!(2), &json!(7), &json!(null))
    );
    let text = place.prints("info --files i");
    assert!(
        text.lines().count() >= 10 && text.contains("as indexed 0\n") && text.contains("not read   bad.gz\n"),
        "{text}"
    );
    assert!(!place.prints("info i").contains("as indexed"));
}

#[test]
fn other_files_are_no_index() {
    let place = place(&["ant"]);
    place.write("lines", "ant\n");
    place.run("dedup -q --state s lines").success();
    place.refuses("find s ant", &["s: a state of dedup, not an index (make one with `bloomline index`)"]);
    // Of the definition of words before this one.
    let mut builder = bloomline::bank::IndexBuilder::with_fpr(0.01).unwrap().with_rule("words").unwrap();
    let filter = builder.filter_builder().finish().unwrap();
    builder.insert("lines", Default::default(), filter).unwrap();
    place.write("old", builder.to_standalone().unwrap());
    place.refuses(
        "find old ant",
        &["old: made by an earlier definition of words (remove it, and make it again"],
    );
    place.refuses(
        "index --words -o old lines",
        &["old: made by an earlier definition of words (remove it to make it again)"],
    );
    assert!(stderr(&place.run("info old").success()).is_empty());
}
