//! An index over files, as its users make, update and ask it.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::json;

use common::{Place, gzip, lines, settle, stderr, stdout};

/// Writes a file that was last changed this number of seconds ago.
fn write(place: &Place, name: &str, bytes: impl AsRef<[u8]>, age: u64) {
    let path = place.write(name, bytes);
    let time = SystemTime::now() - Duration::from_secs(age);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// Three files of logs, one of them compressed, and an index of their words at so low a rate that no other is found.
fn logs() -> Place {
    let place = Place::new();
    write(&place, "b.log", "10.0.0.1:80 GET /a user=bob@example.com\n", 60);
    write(&place, "a.log.gz", gzip("10.0.0.1 PUT www.example.com..\n-x-y- é"), 60);
    write(&place, "c.log", "", 60);
    settle();
    place.run("index --words --fpr 1e-7 -o i b.log c.log a.log.gz").success();
    place
}

/// What `find` prints, of which the status tells the same.
#[track_caller]
fn finds(place: &Place, arguments: &str, names: &str) {
    let found = place.run(format!("find {arguments}")).code(i32::from(names.is_empty()));
    assert_eq!(stdout(&found), names.split_whitespace().map(|name| format!("{name}\n")).collect::<String>());
}

#[track_caller]
fn says(place: &Place, line: &str, text: &str) {
    settle();
    place.run(line).success().stdout("").stderr(contains(text));
}

#[test]
fn files_are_found_by_their_words() {
    let place = logs();
    for (keys, names) in [
        ("10.0.0.1", "a.log.gz b.log"),
        ("80", "b.log"),
        ("www.example.com", "a.log.gz"),
        ("example.com", "b.log"), // a word within a longer one is none, unless it is a part
        ("example", "a.log.gz b.log"),
        ("0.0.1", ""),
        ("x-y", "a.log.gz"),
        ("é", "a.log.gz"),
        ("bob PUT", ""),
        ("10.0.0.1 PUT", "a.log.gz"),
        ("--any bob PUT", "a.log.gz b.log"),
        ("--any bob nobody", "b.log"),
        // All words of a key count, with --any too.
        ("bob@example.com", "b.log"),
        ("' /bob@www.example.com '", ""),
        ("--any 'bob www.example.com' GET", "b.log"),
    ] {
        finds(&place, &format!("i {keys}"), names);
    }
    place.run("find -0 i 10.0.0.1").success().stdout("a.log.gz\0b.log\0");
    place.run("find -0 i nobody").code(1).stdout("");
    place.sh("$b find - 80 <i").success().stdout("b.log\n");
    place.refuses("find i -- --", &["\"--\": has no word (see `bloomline help index`"]);
    place.sh("$b find i 80 >/dev/full").code(2).stderr(contains("No space left"));
}

/// More than is read at a time, in one line and in members, so that words are cut anywhere.
#[test]
fn words_are_found_wherever_reads_end() {
    let place = Place::new();
    let words: Vec<_> = (0..60_000).map(|i| format!("{:012x}", bloomline::mix(i) >> 16)).collect();
    let text = words.join("/");
    write(&place, "plain", &text, 60);
    write(&place, "members", text.as_bytes().chunks(77_777).flat_map(gzip).collect::<Vec<_>>(), 60);
    write(&place, "marked", ["\u{feff}", &text].concat(), 60);
    place.run("index --words --fpr 1e-7 -o i plain members marked").success();
    for words in words.chunks(4000) {
        finds(&place, &format!("i {}", words.join(" ")), "marked members plain");
    }
    // Byte-order marks within a file are parts of words, also where a read begins.
    let marked: Vec<_> = words.iter().map(|word| format!("\u{feff}{word}")).collect();
    write(&place, "marks", marked.join("/"), 60);
    place.run("index --words --fpr 1e-7 -o j marks").success();
    marked[1..].chunks(4000).for_each(|words| finds(&place, &format!("j {}", words.join(" ")), "marks"));
    for words in words.chunks(4000) {
        let halves: Vec<_> = words.iter().map(|word| &word[6..]).collect();
        finds(&place, &format!("--any i {}", halves.join(" ")), "");
    }
}

#[test]
fn the_rate_is_as_requested() {
    let place = Place::new();
    let names: Vec<_> = (0..2000).map(|i| format!("{i:04}")).collect();
    names.iter().zip(0..).for_each(|(name, i)| write(&place, name, lines(100 * i..100 * i + 100), 60));
    let all = names.join(" ");
    for (fpr, range) in [("--fpr 5%", 50..2100), ("", 0..80)] {
        place.run(format!("index -q {fpr} -o i {all}")).success();
        let absent = lines(1_000_000..1_000_020);
        let found: usize =
            absent.lines().map(|line| stdout(&place.run(format!("find i '{line}'"))).lines().count()).sum();
        assert!(range.contains(&found), "{fpr}: {found} of 40,000");
        place.remove("i");
    }
}

#[test]
fn only_what_has_changed_is_read_again() {
    let place = logs();
    let index = "index --words -o i a.log.gz b.log c.log";
    let before = place.read("i");
    says(&place, index, "i: 3 files (0 read), 21 words, ");
    assert!(place.read("i") == before);
    // Of the same size and time, but changed, as the system knows.
    let time = fs::metadata(place.path("b.log")).unwrap().modified().unwrap();
    let other = "10.9.9.9:80 GET /a user=bob@example.com\n";
    let file = place.write("b.log", other);
    let set = |time| File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
    set(time);
    says(&place, index, "(1 read)");
    finds(&place, "i 10.9.9.9", "b.log");
    finds(&place, "i 10.0.0.1", "a.log.gz");
    // Of another size.
    place.write("b.log", "GET");
    set(time);
    says(&place, index, "(1 read)");
    finds(&place, "i GET", "b.log");
    finds(&place, "i bob", "");
    // A new file, one that is not named any more, and one that is not there any more.
    write(&place, "d.log", "cat", 60);
    place.remove("c.log");
    says(&place, "index --words --drop -o i d.log c.log b.log", "i: 2 files (1 read, 2 dropped), 2 words, ");
    finds(&place, "--any i GET cat PUT", "b.log d.log");
    // As an index that is made at once.
    place.run("index -q --words --fpr 1e-7 -o j b.log d.log").success();
    assert!(place.read("i") == place.read("j"));
    // An empty list is a mistake, as of a `find` in a wrong place.
    place
        .feed("index --words -o i --files0-from -", "")
        .code(2)
        .stderr(contains("i: no file was named (name files, or their folder)"));
    assert!(place.read("i") == place.read("j"));
}

/// Another change in the same tick of the clock cannot be seen.
#[test]
fn what_has_just_changed_is_read_again() {
    let place = Place::new();
    let index = "index -o i a";
    for age in [0, 1] {
        write(&place, "a", "ant\n", age);
        place.run(index).success();
        let time = fs::metadata(place.path("a")).unwrap().modified().unwrap();
        let file = place.write("a", "bee\n");
        File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
        says(&place, index, "(1 read)");
        finds(&place, "i bee", "a");
    }
    sleep(Duration::from_millis(2500));
    says(&place, index, "(1 read)");
    says(&place, index, "(0 read)");
}

#[test]
fn the_options_are_those_of_the_index() {
    let place = logs();
    let files = "a.log.gz b.log c.log";
    for (options, texts) in [
        ("", "i: made of words, not of lines (give the same options, or remove it"),
        ("--crlf", "not of lines --crlf (give the same options"),
        ("--words --fpr 1%", "i: made for an FPR of 1e-7, not 1% (omit --fpr"),
    ] {
        place.refuses(format!("index -o i {options} {files}"), &[texts]);
    }
    says(&place, &format!("index --words --fpr 1e-7 -o i {files}"), "(0 read)");
    place.refuses(format!("index --words --null -o j {files}"), &["cannot be used with"]);
    place.refuses(format!("index --words --column 2 -o j {files}"), &["cannot be used with"]);
}

/// What is recorded of options is how `find` understands its keys.
#[test]
fn keys_are_found_by_the_rule_of_the_index() {
    let place = Place::new();
    let csv = "id,url\r\n042,\"x,y\"\r\n7,z\r\n";
    for (text, options, rule, found, absent) in [
        ("ant bee\ncat\n", "", "lines", "'ant bee'", "ant"),
        ("ant bee\r\ncat\r\n", "--crlf", "lines --crlf", "'ant bee'", "'ant bee\r'"),
        ("ant\nbee\0cat\0", "-0", "lines --null", "'ant\nbee'", "ant"),
        ("042\n+7\n", "--integers", "lines --integers", "42 042", "8"),
        ("-1\n", "--integers", "lines --integers", "18446744073709551615", "1"),
        ("antbee", "--length 3", "lines --length 3", "ant bee", "ntb"),
        (csv, "--csv --column url", "lines --csv --column url", "x,y z", "url"),
        (csv, "--csv --column 2 --delimiter ,", "lines --csv --column 2", "url x,y", "7"),
        ("a\t1\n", "--column 2 --delimiter '\\t'", "lines --column 2", "1", "a"),
        ("a'1\n", "--column 2 --delimiter \"'\"", "lines --column 2 --delimiter \"'\"", "1", "a"),
        ("a\\1\n", "--column 2 --delimiter '\\'", "lines --column 2 --delimiter '\\'", "1", "a"),
        (
            "a b\tc\n1\t2\n",
            "--csv --column 'a b' --delimiter '\\t'",
            "lines --csv --column 'a b' --delimiter '\\t'",
            "1",
            "2",
        ),
        ("--x,y\n1,2\n", "--csv --column=--x", "lines --csv --column=--x", "1", "2"),
        ("ant bee\ncat\n", "--words", "words 2", "ant bee cat", "'ant dog'"),
        ("Ant-Bee\n", "--words --ignore-case", "words 2 --ignore-case", "ant-bEE BEE", "cat"),
    ] {
        write(&place, "f", text, 60);
        settle();
        place.run(format!("index -q --fpr 1e-7 {options} -o i f")).success();
        assert_eq!(place.json("info --as-json i")["key_options"], rule);
        finds(&place, &format!("i {found}"), "f");
        finds(&place, &format!("i {absent}"), "");
        says(&place, &format!("index {options} -o i f"), "(0 read)");
        place.remove("i");
    }
}

/// Nothing is written then, and what was there stays.
#[test]
fn what_is_not_meant_leaves_the_index() {
    let place = logs();
    fs::create_dir(place.path("dir")).unwrap();
    write(&place, "cut.gz", &gzip(lines(0..9999))[..9999], 60);
    write(&place, "lines", "ant\n", 60);
    place.run("build -q -o filter lines").success();
    for (files, texts) in [
        (
            "dir",
            &[
                "i: 3 files of it are there but not named, such as a.log.gz (name all as before, or give --add or",
            ][..],
        ),
        ("i b.log", &["i: is an input, and the index would replace it (choose another output)"]),
        ("b.log -", &["standard input: has no name to be found by (name files)"]),
        ("", &["i: no file was named (name files, or their folder)"]),
    ] {
        place.refuses(format!("index --words -o i {files}"), texts);
    }
    place.refuses("index --words -o j dir", &["j: no file was found (name files, or their folder)"]);
    place.refuses("index --words -o j missing", &["missing: No such file or directory (check the path)"]);
    // An option is wrong if it fits no file.
    for column in ["2", "3 b.log"] {
        place
            .run(format!("index --column {column} -o j lines"))
            .code(2)
            .stderr(contains("line 1 has no column"));
    }
    assert!(!place.path("j").exists());
    // What is not an index is not replaced, such as the first of `-o *.log`.
    for output in ["b.log", "filter", "c.log"] {
        let text = format!("{output}: is not an index, or was cut short (remove it, or name another file)");
        place.refuses(format!("index --words -o {output} lines"), &[&text]);
    }
    // A damaged file is not taken over.
    let index = place.read("i");
    for at in (0..index.len()).step_by(7) {
        place.damage("i", at, "damaged");
        place.refuses("index --words -o damaged b.log", &["damaged: "]);
    }
    place.write("damaged", &index[8..]);
    place.refuses("index --words -o damaged b.log", &["damaged: "]);
    assert!(place.read("i") == index);
}

/// One bad file does not cost the index. It possibly has every word, until it can be read.
#[test]
fn files_that_cannot_be_read_are_always_found() {
    let place = Place::new();
    write(&place, "good", "ant\n", 60);
    write(&place, "cut.gz", &gzip(lines(0..9999))[..9999], 60);
    write(&place, "utf-32", b"\xff\xfe\0\0a\0\0\0", 60);
    write(&place, "lines", "ant\n", 60);
    place.run("build -q -o filter lines").success();
    write(&place, "locked", "bee", 60);
    fs::set_permissions(place.path("locked"), fs::Permissions::from_mode(0o0)).unwrap();
    place.sh("mkfifo pipe").success();
    let can_be_locked = File::open(place.path("locked")).is_err();
    let index = "index --words -o i good cut.gz utf-32 filter missing locked pipe";
    let noted = stderr(&place.run(index).code(2).stdout(""));
    for text in [
        "cut.gz: cannot be decompressed: ",
        "utf-32: is UTF-32",
        "filter: a filter, not lines (",
        "missing: No such file or directory (check the path)",
        "pipe: not a regular file, so nothing tells if it changes (omit it)",
    ] {
        assert!(noted.contains(text), "{noted}");
    }
    assert!(!can_be_locked || noted.contains("locked: Permission denied (change its mode"), "{noted}");
    let n_read = if can_be_locked { "1 read, 6 not read" } else { "2 read, 5 not read" };
    assert!(noted.contains(&format!("i: 6 files ({n_read})")), "{noted}");
    let locked = if can_be_locked { "locked " } else { "" };
    let unread = format!("cut.gz filter {locked}missing utf-32");
    finds(&place, "i nobody", &unread);
    finds(&place, "i ant", &unread.replace("filter", "filter good"));
    let (n, text) = (
        4 + usize::from(can_be_locked),
        "could not be read when indexed, and may have any KEY (see `bloomline info --files`)",
    );
    place.run("find i nobody").stderr(contains(format!("i: {n} files {text}")));
    // They are tried again.
    write(&place, "cut.gz", gzip("bee"), 60);
    place.remove("utf-32");
    fs::set_permissions(place.path("locked"), fs::Permissions::from_mode(0o600)).unwrap();
    let noted = stderr(&place.run("index --words -o i good cut.gz locked --drop").code(0));
    assert!(noted.ends_with("FPR 0.1%\n") && !noted.contains("not read"), "{noted}");
    finds(&place, "i bee", "cut.gz locked");
}

#[test]
fn names_are_as_given() {
    let place = Place::new();
    fs::create_dir(place.path("sub")).unwrap();
    let odd = OsStr::from_bytes(b"sub/\xff \"odd\"");
    fs::write(place.directory().join(odd), "ant\n").unwrap();
    for name in ["sub/b", "-dashed", "a"] {
        write(&place, name, "ant\n", 60);
    }
    // In the order of their bytes, and once.
    let list = "{ printf 'sub/b\\0./sub/../a\\0sub/b\\0'; find sub -name '*odd*' -print0; }";
    place.sh(format!("{list} | $b index -q -o i --files0-from -")).success();
    let names = [&b"./sub/../a\0sub/b\0"[..], odd.as_bytes(), b"\0"].concat();
    assert!(place.run("find -0 i ant").success().get_output().stdout == names);
    let names: Vec<_> = names.iter().map(|&byte| if byte == 0 { b'\n' } else { byte }).collect();
    assert!(place.run("find i ant").success().get_output().stdout == names);
    place.sh("$b find -0 i ant | xargs -0 grep -hx ant | wc -l").success().stdout(contains("3"));
    place.run("index -q -o j -- -dashed").success();
    finds(&place, "j ant", "-dashed");
    // A newline would make two names of one.
    write(&place, "new\nline", "bee\n", 60);
    place.run("index -q -o k 'new\nline' a").success();
    place.refuses("find k bee", &["\"new\\nline\": has a newline (give -0, and also to what reads"]);
    place.run("find -0 k bee").success().stdout("new\nline\0");
    finds(&place, "k ant", "a");
}

#[test]
fn other_commands_say_what_an_index_is_for() {
    let place = logs();
    write(&place, "lines", "ant\n", 60);
    place.run("build -q -o f lines").success();
    for (line, text) in [
        ("check i lines", "i: a file index cannot be queried"),
        ("check --no-verify i lines", "i: a file index cannot be queried"),
        ("merge -o g i f", "i: a file index cannot be merged"),
        ("merge -o g f i", "i: a file index cannot be merged"),
        ("estimate f i", "i: a file index cannot be compared"),
        ("fold --factor 2 -o g i", "i: a file index, not a blocked filter"),
        ("build --like i -o g lines", "i: a file index, not a blocked filter"),
        ("grow -o g i", "i: a file index, not a blocked filter"),
    ] {
        place.refuses(line, &[text, "(look up keys in it with `bloomline find`)"]);
    }
    place.refuses("dedup --state i lines", &["i: not a state of dedup"]);
    place.refuses("find f ant", &["f: a blocked filter, not an index (make one with `bloomline index`)"]);
    place.refuses("find lines ant", &["lines: not a bloomline file"]);
    place.refuses("info --plot p.svg i", &["(omit --plot)"]);
    let info = place.json("info --as-json i");
    let fields = [
        ("kind", json!("index")),
        ("files", json!(3)),
        ("known_keys", json!(21)),
        ("key_options", json!("words 2")),
        ("folders", json!([])),
        ("requested_false_positive_rate", json!(1e-7)),
        ("is_intact", json!(true)),
        ("bytes", json!(place.read("i").len())),
    ];
    for (field, value) in fields {
        assert_eq!(info[field], value, "{field}");
    }
    let help = place.prints("help info");
    assert!(info.as_object().unwrap().keys().all(|field| help.contains(field.as_str())), "{info}");
    let text = place.prints("info i");
    for text_of in
        ["files            3 in ", "key options      words 2\n", "distinct words   21 in all files\n"]
    {
        assert!(text.contains(text_of), "{text}");
    }
    // By another program, which alone knows what its keys are.
    let mut builder = bloomline::bank::IndexBuilder::with_fpr(0.01).unwrap().with_rule("ids").unwrap();
    let filter = builder.filter_builder().finish().unwrap();
    builder.insert("a", Default::default(), filter).unwrap();
    place.write("other", builder.to_standalone().unwrap());
    place.refuses("find other ant", &["other: ", "by a rule of another program: \"ids\" (ask that program)"]);
}

/// An error, or all files that have the key.
#[test]
fn damage_hides_no_file() {
    let place = Place::new();
    write(&place, "a", lines(0..3000), 60);
    write(&place, "b", lines(2000..5000), 60);
    place.run("index -q -o i a b").success();
    let (key, n_bytes, mut n_errors) = (lines(2500..2501), place.read("i").len(), 0);
    let positions = (0..n_bytes).step_by(97);
    for at in positions.clone() {
        place.damage("i", at, "damaged");
        let find = place.run(format!("find damaged {key}"));
        match find.get_output().status.code() {
            Some(0) => _ = find.stdout("a\nb\n"),
            _ => {
                n_errors += 1;
                // As any other file if its magic bytes are damaged.
                let text = contains("(rebuild it, or fetch it again)").or(contains("not a bloomline file"));
                find.code(2).stdout("").stderr(text);
            }
        }
        assert!(stderr(&place.run("info damaged").code(2)).starts_with("bloomline: damaged: "));
    }
    // Those of other blocks than the key's are not read.
    assert!((5..positions.len()).contains(&n_errors), "{n_errors} of {}", positions.len());
    place.write("cut", &place.read("i")[8..]);
    place.refuses("find cut 80", &["cut: "]);
    place.write("text", "80");
    place.refuses(
        "find text 80",
        &["text: not a bloomline file, or cut short (make an index with `bloomline index`)"],
    );
    place.run("find i -- -80").code(1);
}

#[test]
fn an_index_appears_whole_or_not_at_all() {
    let place = Place::new();
    write(&place, "a", lines(0..100_000), 60);
    write(&place, "b", lines(0..9), 60);
    settle();
    place.run("index -q -o i b").success();
    let (old, b) = (place.read("i"), ["a", "b", "i"]);
    place.run("index -q -o j a b").success();
    let new = place.read("j");
    place.remove("j");
    // The disk is full.
    place
        .sh("ulimit -f 100; $b index -o i a b")
        .code(2)
        .stderr(contains("i: File too large (free some space"));
    assert!(place.read("i") == old && place.files() == b);
    let (mut n_old, mut time) = (0, Duration::from_millis(300));
    for signal in ["KILL", "TERM", "INT", "HUP"].iter().cycle().take(24) {
        place.write("i", &old);
        let mut child = place.start("index -q -o i a b");
        sleep(time);
        // By the shell, because a bare machine has no other `kill`. It fails if the run has ended.
        let kill = format!("kill -{signal} {}", child.id());
        std::process::Command::new("sh").args(["-c", &kill]).status().expect("a shell");
        child.wait().unwrap();
        let found = place.read("i");
        let is_old = found == old;
        assert!(is_old || found == new, "{signal}");
        n_old += usize::from(is_old);
        time = if is_old { time * 13 / 10 } else { time * 7 / 10 };
    }
    assert!((1..24).contains(&n_old), "{n_old} of 24 ended in time");
    place.run("index -q -o i a b").success();
    assert!(place.read("i") == new && place.files() == b);
}

#[test]
fn threads_and_the_order_of_files_do_not_matter() {
    let place = Place::new();
    let sizes = [1, 30_000, 9, 0, 5000, 300, 301, 77, 12_000, 2];
    let names: Vec<_> = (0..sizes.len()).map(|i| format!("f{i}")).collect();
    names.iter().zip(sizes).for_each(|(name, n)| write(&place, name, lines(0..n), 60));
    settle();
    place.run(format!("index -q -o i {}", names.join(" "))).success();
    let mut reversed = names.clone();
    reversed.reverse();
    place.run(format!("index -q -o j {} f1", reversed.join(" "))).success();
    assert!(place.read("i") == place.read("j"));
    if place.shell("taskset -c 0 true").output().is_ok_and(|output| output.status.success()) {
        place.remove("j");
        place.sh(format!("taskset -c 0 $b index -q -o j {}", names.join(" "))).success();
        assert!(place.read("i") == place.read("j"));
    }
    place.run(format!("index -q -o - {} >k", names.join(" "))).code(2); // >k is a name here
    place.sh(format!("$b index -q -o - {} | cmp - i", names.join(" "))).success();
}

/// Memory is that of the distinct words.
#[test]
#[cfg(target_os = "linux")]
fn repeats_use_no_memory() {
    let place = Place::new();
    let words = (0..1000).map(|i| format!("{i} ")).collect::<String>();
    write(&place, "repeats", gzip(words.repeat(4000)), 60);
    write(&place, "distinct", gzip((0..4_000_000).map(|i| format!("{i} ")).collect::<String>()), 60);
    // In kB. Four million hashes have 32 MB.
    let limited = "ulimit -d 30000; $b index -q --words -o i";
    place.sh(format!("{limited} repeats")).success().stderr("");
    assert!(!place.shell(format!("{limited} distinct")).output().unwrap().status.success());
}

#[test]
fn a_note_names_the_first_file() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        write(&place, name, if name == "a" { "ant\n" } else { "ant\r\nbee\r\n" }, 60);
    }
    let noted = stderr(&place.run("index -o i a b c").success());
    assert!(
        noted.starts_with("bloomline: b: 4 lines end with CR LF, and the CR is part of the key (exclude it"),
        "{noted}"
    );
    assert_eq!(noted.lines().count(), 2, "{noted}");
    place.run("index -q -o j a b c").success().stdout("").stderr("");
    assert!(!stderr(&place.run("index --words -o k a b c").success()).contains("CR LF"));
}

#[test]
fn raw_files_are_not_those_that_were_decompressed() {
    let place = Place::new();
    place.write("a.log", "cat");
    place.sh("touch -d '1 hour ago' a.log");
    place.run("index -q --words --raw -o i a.log").success();
    place.run("index --words -o i a.log").code(2).stderr(contains("i: made of words --raw, not of words ("));
    finds(&place, "i cat", "a.log");
    place.run("index -q --integers --raw -o j a.log").code(2);
    place.write("b.log", "7\n-1\n");
    place.run("index -q --integers --raw -o j b.log").success();
    finds(&place, "j 7 -1", "b.log");
    finds(&place, "j 8", "");
}

#[test]
fn rates_that_are_shown_alike_are_one() {
    let place = Place::new();
    place.write("a.log", "cat");
    place.write("b.log", "dog");
    // So it is not read again, at another rate.
    place.sh("touch -d '1 hour ago' a.log");
    place.run("index -q --words --fpr 0.020549 -o i a.log").success();
    place.run("index -q --words --fpr 0.020451 -o i a.log b.log").success();
    finds(&place, "i dog", "b.log");
}

#[test]
fn keys_that_no_file_can_have_are_errors() {
    let place = Place::new();
    place.write("a.log", "foo\n");
    place.run("index -q -o i a.log").success();
    place.sh("$b find i \"$(printf 'foo\\nbar')\" 2>&1 | grep -q 'has an end of line'").success();
    place.write("c.csv", "-a b\n1\n");
    place.run("index -q --csv --column='-a b' -o j c.csv").success();
    finds(&place, "j 1", "c.csv");
}

#[test]
fn a_list_that_ends_early_drops_nothing() {
    let place = logs();
    let text =
        "i: 1 file of it is there but not named, such as c.log (name all as before, or give --add or --drop)";
    write(&place, "d.log", "dog", 60);
    place.refuses("index --words -o i a.log.gz b.log d.log", &[text]);
    // A file of the index that is not named is still as it was read.
    write(&place, "c.log", "cat", 60);
    says(&place, "index --words --add -o i d.log", "i: 4 files (1 read), ");
    finds(&place, "i dog", "d.log");
    finds(&place, "i PUT", "a.log.gz");
    finds(&place, "i cat", "");
    says(&place, "index --words --drop -o i d.log", "i: 1 file (0 read, 3 dropped), 1 word, ");
    place.refuses("index --words --drop --add -o i d.log", &["cannot be used with"]);
    // In batches, as of xargs.
    place.sh("printf '%s\\0' a.log.gz b.log c.log | xargs -0 -n 1 $b index -q --add --words -o j").success();
    finds(&place, "--any j PUT bob cat", "a.log.gz b.log c.log");
}

#[test]
fn folders_are_walked() {
    let place = Place::new();
    for folder in ["logs/sub/.hidden", "logs/.hidden", "other"] {
        fs::create_dir_all(place.path(folder)).unwrap();
    }
    for name in ["logs/a", "logs/sub/b", "logs/.c", "logs/.hidden/d", "logs/sub/.hidden/e", "other/f"] {
        write(&place, name, "ant", 60);
    }
    place.sh("ln -s ../other logs/link; ln -s ../other/f logs/file; mkfifo logs/pipe").success();
    let index = "index --words -o logs/i logs";
    says(&place, index, "logs/i: 2 files (2 read), 2 words, ");
    finds(&place, "logs/i ant", "logs/a logs/sub/b");
    says(&place, index, "(0 read)");
    assert_eq!(place.json("info --as-json logs/i")["folders"], json!(["logs/"]));
    // By the folder, as it is named.
    says(&place, "index --words -o j logs/ other logs/.c", "j: 4 files (4 read)");
    finds(&place, "j ant", "logs/.c logs/a logs/sub/b other/f");
    write(&place, "logs/sub/g", "bee", 60);
    place.remove("logs/a");
    says(&place, index, "logs/i: 2 files (1 read, 1 dropped)");
    finds(&place, "logs/i bee", "logs/sub/g");
    // A link in its place is left out.
    place.sh("mv logs/sub/b other/b; ln -s ../../other/b logs/sub/b").success();
    says(&place, index, "logs/i: 1 file (0 read, 1 dropped)");
    place.sh("mv other/b logs/sub/b").success();
    says(&place, index, "logs/i: 2 files (1 read)");
    // What cannot be listed is not dropped.
    fs::set_permissions(place.path("logs/sub"), fs::Permissions::from_mode(0o0)).unwrap();
    if fs::read_dir(place.path("logs/sub")).is_err() {
        place.run(index).code(2).stderr(contains("logs/sub: Permission denied (change its mode"));
        finds(&place, "logs/i nobody", "logs/sub logs/sub/b logs/sub/g");
        let text = "logs/sub: Permission denied";
        place.run("find --or-changed logs/i nobody").success().stderr(contains(text));
        // Nor is what was never listed.
        place.run("index --words -o k logs").code(2);
        finds(&place, "k nobody", "logs/sub");
    }
    fs::set_permissions(place.path("logs/sub"), fs::Permissions::from_mode(0o700)).unwrap();
}

/// `mv s.2 s.3; mv s.1 s.2`, of equal sizes and times.
#[test]
fn renamed_files_are_read_again() {
    let place = Place::new();
    let time = SystemTime::now() - Duration::from_secs(60);
    for (name, text) in [("s.1", "ant"), ("s.2", "bee"), ("s.3", "cat")] {
        let path = place.write(name, text);
        File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }
    let index = "index --words --fpr 1e-7 -o i s.1 s.2 s.3";
    says(&place, index, "(3 read)");
    place.sh("mv s.2 s.3 && mv s.1 s.2").success();
    says(&place, index, "i: 2 files (2 read, 1 dropped)");
    finds(&place, "i ant", "s.2");
    finds(&place, "i bee", "s.3");
    // Of the same inode, size and time.
    place.sh("printf cow >new; touch -r s.3 new; cp -p new s.3").success();
    says(&place, "index --words -o i s.2 s.3", "(1 read)");
    finds(&place, "i cow", "s.3");
}

/// What was a file is a folder or a link now, and what was a folder is gone or back.
#[test]
fn files_and_folders_change_places() {
    let place = Place::new();
    fs::create_dir_all(place.path("d")).unwrap();
    for name in ["d/x", "d/y", "z"] {
        write(&place, name, "ant", 60);
    }
    let index = "index --words -o i d/ z";
    says(&place, index, "i: 3 files (3 read)");
    place.sh("rm d/x; mkdir d/x; mv d/y d/x/y; ln -s x/y d/y").success();
    says(&place, index, "i: 2 files (1 read, 2 dropped)");
    finds(&place, "i ant", "d/x/y z");
    // As of a disk that is not mounted.
    place.sh("mv d gone").success();
    for _ in 0..2 {
        place.run(index).code(2).stderr(contains("d: No such file or directory (check the path)"));
        finds(&place, "i ant", "z");
    }
    place.sh("mv gone d").success();
    place.run("find --or-changed i nobody").success().stdout("d/x/y\n");
    says(&place, index, "i: 2 files (1 read)");
    // A file that is named and not there stays an error.
    place.remove("z");
    says(&place, index, "i: 1 file (0 read, 1 dropped)");
    for _ in 0..2 {
        place.run(index).code(2).stderr(contains("z: No such file or directory (check the path)"));
        finds(&place, "i nobody", "z");
    }
    // A folder within one.
    write(&place, "z", "", 60);
    says(&place, "index --words -o i d d/x z d//", "i: 2 files (1 read)");
    write(&place, "d/x/new", "bee", 60);
    place.run("find --or-changed i bee").success().stdout("d/x/new\n");
}

/// A log that PowerShell began and another program went on with.
#[test]
fn words_are_found_in_two_encodings_at_once() {
    let place = Place::new();
    let utf_16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    write(&place, "a", [&utf_16("\u{feff}begun ok\r\n")[..], b"ERROR secret\r\n"].concat(), 60);
    says(&place, "index --words --fpr 1e-7 -o i a", "i: 1 file (1 read)");
    finds(&place, "i begun ok ERROR secret", "a");
    place.run("index --words --fpr 1e-7 -o i a").success().stderr(contains("(0 read)"));
}

/// It could be part of a word without end, which would need all memory.
#[test]
fn a_word_of_many_megabytes_is_not_read() {
    let place = Place::new();
    write(&place, "a", "a.".repeat(9 << 20), 60);
    write(&place, "b", "bee", 60);
    let text = "a: a word of more than 16 MiB (leave the file out)";
    place.run("index --words -o i a b").code(2).stderr(contains(text));
    finds(&place, "i bee", "a b");
}
