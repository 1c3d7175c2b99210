//! Every error is one line that names the file and the remedy, with exit status 2, and leaves nothing behind.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use bloomline::BloomFilter;
use bloomline::sizing::standard::StandardSizing;
use bloomline::variants::StandardBloomFilter;
use predicates::prelude::*;
use predicates::str::contains;

use common::{Place, gzip, lines, place, stderr};

#[test]
fn names_that_are_no_files() {
    let place = place();
    fs::create_dir(place.path("d")).unwrap();
    for arguments in
        ["build -o g no", "check f no", "dedup no", "check no keys", "info no", "fold --factor 2 -o g no"]
    {
        place.refuses(arguments, &["no: No such file or directory (check the path"]);
    }
    for arguments in ["build -o g d", "info d", "check f d", "build -o d keys"] {
        place.refuses(arguments, &["d: ", "irectory", "(name a file)"]);
    }
    place.refuses("build -o no/g keys", &["no/g: No such file or directory"]);
    place.refuses("build -o keys f ./keys", &["keys: is an input"]);
    place.refuses("info --plot ./f f", &["f: is the filter", "choose another"]);
    // Reported before the first file is read, which would fail too.
    place.write("cut.gz", b"\x1f\x8b\x08\0");
    place.refuses("build -o g cut.gz no", &["no: No such file"]);
    std::os::unix::fs::symlink("loop", place.path("loop")).unwrap();
    place.run("build -o loop keys").code(2).stderr(contains("loop: "));
    place.refuses("dedup --state no/s keys", &["no/s: No such file"]);
    // The table is printed before the chart is drawn.
    place.refuses_in_shell("$b plan --keys 9 --fpr 1% --plot no/p >/dev/null", &["no/p: No such file"]);
}

#[test]
fn missing_permissions() {
    let place = place();
    for name in ["keys", "f"] {
        fs::set_permissions(place.path(name), fs::Permissions::from_mode(0o000)).unwrap();
    }
    if fs::File::open(place.path("f")).is_ok() {
        return; // permissions do not bind root
    }
    let denied = "Permission denied (change its mode with chmod, or ask its owner)";
    place.refuses("build -o g keys", &["keys: ", denied]);
    place.sh("chmod u+r keys; $b build -o g keys").success();
    let commands = ["check f keys", "build -o f keys"];
    commands.iter().for_each(|command| place.refuses(command, &["f: ", denied]));
    place.sh("chmod u+rw f").success();
    commands.iter().for_each(|command| _ = place.run(command).success());
    place.sh("mkdir d; cp keys f d; $b dedup -q --state d/s keys >old; chmod a-w d").success();
    let denied = "(change the mode of its directory with chmod, or ask the directory's owner)";
    let commands = [
        "build -o d/g keys",
        "build -o d/f keys",
        "fold -o d/f --factor 1 d/f",
        "dedup --state d/s keys",
        "dedup --dropped d/l keys",
        "grow d/s",
    ];
    commands.iter().for_each(|command| place.refuses(command, &["d/", denied]));
    place.sh("chmod a-x d").success();
    let reads = ["info d/f", "dedup d/keys", "build -o g d/keys"];
    reads.iter().for_each(|command| place.refuses(command, &["d/", denied]));
    place.sh("chmod u+wx d").success();
    commands.iter().for_each(|command| _ = place.run(command).success());
}

#[test]
fn files_that_are_no_filters() {
    let place = place();
    let filter = place.read("f");
    let end = filter.len();
    let changed = |at: usize| {
        let mut bytes = filter.clone();
        bytes[at] ^= 1;
        bytes
    };
    let damaged = " damaged: ";
    let cases: [(&str, Vec<u8>, &[&str]); 8] = [
        ("empty", Vec::new(), &["not a bloomline file", "(create one with `bloomline build`)"]),
        ("text", lines(0..100).into(), &["not a bloomline file, or cut short", "(create one with"]),
        ("cut", filter[..end - 1].into(), &["not a bloomline file, or cut short"]),
        ("head", filter[64..].into(), &["lanes of 8 bytes", "(rebuild it"]),
        ("footer", changed(end - 60), &[damaged]),
        ("newer", changed(end - 64 + 40), &["upgrade bloomline, or rebuild the filter\n"]),
        ("standard", changed(end - 5), &["not a bloomline file"]),
        ("damaged", changed(100), &[damaged]),
    ];
    for (name, bytes, texts) in cases {
        place.write(name, bytes);
        let texts = [&[name, ": "], texts].concat();
        place.refuses(format!("check {name} keys"), &texts);
        place.refuses(format!("merge -o g f {name}"), &texts);
        place.refuses(format!("estimate {name} f"), &texts);
        place.refuses(format!("fold --factor 1 -o {name} {name}"), &texts);
        if name != "empty" {
            place.refuses(format!("dedup --state {name} keys"), &[name, "not a state of dedup"]);
        }
        if name != "damaged" {
            place.refuses(format!("info {name}"), &texts);
            place.refuses(format!("check --no-verify {name} keys"), &texts);
        }
    }
    // info describes a damaged one all the same.
    let info = place.run("info damaged").code(2).stdout(contains("INVALID"));
    info.stderr(contains("damaged: the bytes are damaged: "));
    place.run("info --as-json damaged").code(2).stdout(contains("\"is_intact\": false"));
    place.feed("check --no-verify damaged", "").code(1);
}

#[test]
fn input_that_is_damaged() {
    let place = place();
    let whole = zstd::encode_all(lines(0..1000).as_bytes(), 1).unwrap();
    place.write("cut.zst", &whole[..whole.len() / 2]);
    let whole = gzip(lines(0..1000));
    place.write("cut.gz", &whole[..whole.len() / 2]);
    place.write("odd", "123456789");
    // One raw block of 4 bytes, in a window of 2^31.
    place.write("long.zst", b"\x28\xb5\x2f\xfd\x00\xa8\x21\0\0ant\n");
    place.refuses("check f long.zst", &["(decompress it with `zstdcat --long=31`)"]);
    place.write("empty", "");
    place.refuses("dedup --state empty keys", &["(remove it, and dedup creates one)"]);
    // Keys that only begin as gzip does.
    place.write("binary", b"\x1f\x8b\x08\0\0\0\0\x01");
    place.refuses("check --length 8 f binary", &["--raw"]);
    place.run("check -c -v --raw --length 8 f binary").stdout("1\n");
    for name in ["cut.zst", "cut.gz"] {
        place.refuses(format!("build -o f --keys 9 {name}"), &[name, "(compress or fetch it again, or"]);
    }
    place.refuses("build --length 4 -o f odd", &["odd: the last line has 1 of 4 bytes"]);
}

#[test]
fn lines_that_are_not_integers() {
    let place = place();
    let remedy = "(remove it, or omit --integers)";
    let too_large = ["18446744073709551616", "-9223372036854775809"];
    let odd =
        ["", " ", "-", "+", "x", "1x", "1.5", "1e6", "1,000", "1_000", "0x10", "--1", "1 2", "٤٢", "\0"];
    for text in odd.into_iter().chain(too_large) {
        place.write("odd", format!("7\n{text}\n8\n"));
        let error = format!("odd: line 2 is not an integer of up to 64 bits: {text:?} {remedy}");
        place.refuses("build --integers -o g --keys 9 odd", &[&error]);
    }
    place.refuses("build --integers -o g odd", &["odd: line 2 is"]);
    place.run("dedup --integers odd").code(2).stdout("7\n").stderr(contains("odd: line 2 is"));
    place.refuses("check --integers f odd", &["odd: line 2 is"]);
    place.refuses("build --integers --length 8 -o g odd", &["'--integers' cannot be used with"]);
    // Not the whole of a long line.
    place.write("long", "0".repeat(1 << 20) + "\n" + &"1".repeat(40) + &"x".repeat(1 << 20));
    let error =
        format!("long: line 2 is not an integer of up to 64 bits: \"{}\"... {remedy}", "1".repeat(40));
    place.refuses("check --integers f long", &[&error]);
    // Many buffers later, in the second file, and from a pipe: what was before has been printed and is in the state.
    let many: String = (0..300_000).map(|i| format!("{i}\n")).collect();
    place.write("many", &many);
    place.write("odd", format!("{many}x\n{many}"));
    let error = "odd: line 300001 is not an integer of up to 64 bits: \"x\"";
    let dedup = place.run("dedup --integers --state s many odd").code(2).stdout(many.clone());
    dedup.stderr(contains(error));
    place.run("dedup -q --integers --state s many").success().stdout("");
    let check = place.feed("check --integers f", format!("{many}x")).code(2);
    check.stderr(contains("standard input: line 300001 is"));
}

#[test]
#[cfg(target_os = "linux")]
fn memory_that_runs_out() {
    let place = place();
    fs::File::create(place.path("long")).unwrap().set_len(20 << 20).unwrap(); // zeros, without disk space
    place.write("blocked", BloomFilter::with_blocks(1 << 19, 6).unwrap().to_standalone());
    let standard = StandardBloomFilter::with_sizing(StandardSizing::new(1 << 28, 7).unwrap()).unwrap();
    place.write("standard", standard.to_standalone());
    let codes = [40, 48, 56, 96].map(|limit| {
        let line = format!("ulimit -v {}; $b dedup -q --keys 9 long >/dev/null", limit << 10);
        place.shell(&line).output().unwrap().status.code()
    });
    assert!(codes.contains(&Some(0)) && codes.contains(&Some(2)), "{codes:?}");
    assert!(codes.iter().all(|code| [Some(0), Some(2)].contains(code)), "{codes:?}");

    for (name, command) in [("blocked", "fold --factor 2 -o g blocked"), ("standard", "check standard keys")]
    {
        let error = format!("bloomline: {name}: out of memory: cannot allocate ");
        let mut n_short = 0;
        for limit in (40..120).step_by(8) {
            let output = place.shell(format!("ulimit -v {}; $b {command}", limit << 10)).output().unwrap();
            assert!(output.status.code().is_some_and(|code| code <= 2), "{limit}: {output:?}");
            let text = String::from_utf8_lossy(&output.stderr);
            let remedy = " bytes (free some memory, or use a smaller filter)\n";
            n_short += usize::from(text.starts_with(&error) && text.ends_with(remedy));
        }
        assert!((1..10).contains(&n_short), "{command}: {n_short}");
    }
}

#[test]
fn arguments_that_make_no_sense() {
    let place = place();
    for (arguments, text) in [
        ("build -o g --keys -5 keys", "such as 1000000, 1e6 or 1M"),
        ("build -o g --fpr -1 keys", "between 0 and 1, both excluded, not -1\n"),
        ("dedup --fpr 1e-7 keys", "raise --fpr to "),
        ("fold -o g --fpr 1e-6 f", "(build a larger filter)"),
        ("plan --keys 1e18 --bits-per-key 20", "more than 2^64 bits"),
        ("plan --bytes 1e19 --keys 1", "more than 2^64 bits"),
        ("plan --bytes -1 --keys 1", "such as 4096"),
        ("build keys", "--output <FILE>"),
        ("build -o g --fpr 2 keys", "between 0 and 1"),
        ("build -o g --fpr 1e-9 --modules 1 keys", "request at least 1.263e-8, or use an exact structure\n"),
        ("build -o g --fpr 1e-13 keys", "request at least 5.432e-13, or use an exact structure\n"),
        ("build -o g --modules 17 keys", "the number of modules must be 1 to 16, not 17\n"),
        ("plan --keys 9 --modules 0 --fpr 1%", "must be 1 to 16, not 0\n"),
        ("plan --bytes 64 --fpr 1e-12", "64 bytes are too few for this rate (give --bytes 256)"),
        ("build -o g --bits-per-key 100 keys", "at most 64, not 100\n"),
        ("build -o g --keys many keys", "such as 1000000, 1e6 or 1M"),
        ("build -o g --keys 1e17 keys", "bytes (free some memory, or use a smaller filter)"),
        ("build -o g --keyes 1e18 keys", "'--keyes'"),
        ("build -o g --length 0 keys", "--length"),
        ("dedup --fpr 0 keys", "between 0 and 1, both excluded, not 0\n"),
        ("build -o g --keys 1,5 keys", "give a whole number"),
        ("build -o g --column 0 keys", "counted from 1"),
        ("build -o g --keys 0 keys", "at least 1"),
        ("dedup --keys 0 keys", "at least 1"),
        ("dedup --grow --keys 0 keys", "at least 1"),
        ("build -o g --fpr 5 keys", "(did you mean 5%?)"),
        ("dedup --fpr 5 keys", "(did you mean 5%?)"),
        ("plan --keys 9 --fpr 5", "(did you mean 5%?)"),
    ] {
        place.refuses(arguments, &[text]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn full_disks() {
    let place = place();
    let full = "No space left on device (free some space, or write elsewhere)";
    for line in [
        "$b check f keys >/dev/full",
        "$b check -c f keys >/dev/full",
        "$b dedup keys >/dev/full",
        "$b dedup --state s keys >/dev/full",
        "$b plan --keys 9 --fpr 1% >/dev/full",
        "$b info f >/dev/full",
        "$b man >/dev/full",
        "$b --help >/dev/full",
        "$b --version >/dev/full",
        "$b help build >/dev/full",
        "$b dedup -h >/dev/full",
    ] {
        place.refuses_in_shell(line, &["standard output: ", full]);
    }
    // A file that may not grow past 512 bytes.
    place.refuses_in_shell("ulimit -f 1; exec $b build -o f keys", &["f: File too large (free some space"]);
    let line = "ulimit -f 1; exec $b dedup -q --state s --keys 1e4 keys >/dev/null";
    place.refuses_in_shell(line, &["s: not recorded: s: File too large"]);
    let dedup = place.sh("ulimit -f 1; $b dedup -q keys >much").code(2);
    dedup.stderr(contains("standard output: File too large"));
    let dedup = place.sh("ulimit -f 1; $b dedup -q --state s keys >much").code(2);
    dedup.stderr(contains("s: not recorded: standard output: File too large"));
    assert_eq!(place.files(), ["f", "keys", "much"]);
}

/// Rust opens /dev/null in place of closed ones: an empty input, and an output that takes all.
#[test]
fn streams_that_are_closed() {
    let place = place();
    place.write("s", "");
    place.run("grow -o s --replace-state --fpr 2% f").success();
    let input = "standard input: closed, or a directory (redirect it, or name a file)";
    for command in [
        "build -o f",
        "build -o f --keys 9 keys -",
        "build -o f --like - keys",
        "build -o f --files0-from -",
        "dedup",
        "dedup --state s",
        "dedup --files0-from -",
        "check f",
        "check - keys",
        "info -",
        "estimate - f",
        "merge -o f - f",
        "fold -o f --factor 2 -",
    ] {
        place.refuses_in_shell(format!("$b {command} <&-"), &[input]);
    }
    place.refuses_in_shell("$b build -o f /dev/stdin <&-", &[input]);
    let output = "standard output: closed, or a directory (redirect it)";
    for command in [
        "dedup keys",
        "dedup --state t keys",
        "dedup --dropped s keys",
        "check f keys",
        "check -c f keys",
        "check --as-json f keys",
        "build -o f --as-json keys",
        "merge -o f --as-json f f",
        "fold -o f --as-json --factor 2 f",
        "grow -o g --as-json --fpr 2% f",
        "info f",
        "estimate f f",
        "plan --keys 9 --fpr 1%",
        "man",
        "completions bash",
        "help build",
        "--version",
    ] {
        place.refuses_in_shell(format!("$b {command} >&-"), &[output]);
    }
    place.refuses_in_shell("$b build -o - keys >&-", &["-: closed, or a directory"]);
    place.refuses_in_shell("$b build -o /dev/stdout keys >&-", &["/dev/stdout: closed, or a directory"]);
    // Those that no command uses do not matter, nor does standard error, nor are devices closed streams.
    for line in [
        "$b build -o g keys <&- >&- 2>&-",
        "$b build -o g keys 2>/dev/full",
        "$b check -q f keys <&- >&- 2>&-",
        "$b dedup --state t keys <&- 2>&- | cmp - keys && rm t",
        "$b dedup --state t keys 2>/dev/full | cmp - keys && rm t",
        "$b build -o g </dev/null",
        "$b build -o g 0<>/dev/null",
        "$b dedup keys >/dev/null",
        "$b dedup keys 1<>/dev/null",
    ] {
        place.sh(line).success().stderr(contains("closed").not());
    }
}

#[test]
fn pipes_that_are_closed() {
    let place = place();
    place.write("many", lines(0..200_000));
    for line in [
        "$b dedup many",
        "$b check -v f many",
        "$b dedup --state s many",
        "$b man dedup",
        "$b plan --keys 9 --fpr 1%",
    ] {
        let error = stderr(&place.sh(format!("({line}; echo $? >&2) | head -n 0")).success().stdout(""));
        // Small output may be written before the reader is gone.
        assert!(
            error.ends_with("141\n") || error == "0\n" || error.ends_with("(FPR now 0%)\n0\n"),
            "{line}: {error}"
        );
        let not_recorded = "bloomline: s: not recorded, because the reader of the output has exited\n";
        let said = if line.contains("--state") { not_recorded } else { "" };
        assert!(!line.contains("many") || error == format!("{said}141\n"), "{line}: {error}");
    }
    // How many lines were read is unknown, so none counts as printed.
    assert_eq!(place.files(), ["f", "keys", "many"]);
    let runs = place.sh("$b dedup -q --state s many | head -n 1 | wc -l; $b dedup -q --state s many | wc -l");
    runs.stdout(predicate::str::is_match("^ *1\n *200000\n$").unwrap());
}

/// Looks at every file that appears, however briefly.
#[test]
fn a_file_never_has_a_wider_mode_than_its_final_one() {
    let place = Place::new();
    fs::set_permissions(place.write("f", ""), fs::Permissions::from_mode(0o600)).unwrap();
    // Creates the file to replace f, then fails, as there is nothing to merge.
    let merges = "umask 0; i=0; while [ $i -lt 200 ]; do $b merge -o f no no 2>&-; i=$((i+1)); done";
    let is_done = AtomicBool::new(false);
    let watch = || {
        while !is_done.load(Relaxed) {
            for entry in fs::read_dir(place.directory()).unwrap().map(Result::unwrap) {
                let Ok(metadata) = entry.metadata() else { continue }; // gone by now
                if entry.file_name().to_string_lossy().ends_with(".lock") {
                    continue; // always empty
                }
                assert!(metadata.mode() & 0o077 == 0, "{entry:?}: {:o}", metadata.mode());
            }
        }
    };
    thread::scope(|scope| {
        let watchers = [scope.spawn(watch), scope.spawn(watch)];
        place.sh(merges).code(0);
        is_done.store(true, Relaxed);
        watchers.into_iter().for_each(|watcher| watcher.join().unwrap());
    });
}

#[test]
fn modes_links_and_pipes_stay() {
    let place = place();
    let mode = |name: &str| fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    place.sh("umask 027; $b build -q -o new keys").success();
    assert_eq!(mode("new"), 0o640);
    fs::set_permissions(place.path("f"), fs::Permissions::from_mode(0o604)).unwrap();
    std::os::unix::fs::symlink("f", place.path("link")).unwrap();
    place.run("build -q -o link --keys 2000 keys").success();
    assert!(fs::symlink_metadata(place.path("link")).unwrap().is_symlink());
    assert_eq!(mode("f"), 0o604);
    assert!(place.read("f") != place.read("new"));
    // A dangling link leads to the new file, relative to its own directory.
    fs::create_dir(place.path("d")).unwrap();
    std::os::unix::fs::symlink("d/second", place.path("dangling")).unwrap();
    std::os::unix::fs::symlink("../third", place.path("d/second")).unwrap();
    place.run("build -q -o dangling keys").success();
    assert!(fs::symlink_metadata(place.path("dangling")).unwrap().is_symlink());
    assert!(place.read("third") == place.read("new"));
    // Only root can give files away.
    if std::os::unix::fs::chown(place.path("f"), Some(65534), Some(65534)).is_ok() {
        place.run("build -q -o f keys").success();
        let metadata = fs::metadata(place.path("f")).unwrap();
        assert_eq!((metadata.uid(), metadata.gid(), mode("f")), (65534, 65534, 0o604));
    }
}

/// Whatever a line is, the error has its number, the lines before it are done, and others can be skipped.
#[test]
fn lines_that_are_no_json() {
    let (place, good) = (Place::new(), "{\"t\":\"a\"}\n");
    let deep = |open: &str, close: &str| [open.repeat(1_000_000), close.repeat(1_000_000)].concat();
    let texts = r#"{"t":"\ud800"} {"t":"\udc00\ud800"} {"t":"\ud83d\u0041"} {"\ud800":1,"t":"x"} {"t":"\u00"} {"t":"\x"}
        {"t":"x"}} {"t":"x"}{"t":"x"} {"t":"x","u":[1,]} {"t":01} {"t":"x {"t":NaN} {"t":"x","u":[{]}"#;
    let others = ["", "\u{feff}{\"t\":\"x\"}", "{\"t\":\"\0\"}", "{\"\t\":1,\"t\":2}"];
    let texts = texts.split_whitespace().chain(others);
    let mut hostile: Vec<_> = texts.map(|text| (text.as_bytes().to_vec(), "is not JSON")).collect();
    hostile.extend([
        (deep("[", "").into(), "is not JSON"),
        (deep("{\"t\":", "").into(), "is not JSON"),
        (deep("[", "]").into(), "has no field t"),
        (format!("{{\"t\":{}}}", deep("[", "]")).into(), "has an array as field t"),
        (b"{\"t\":\"\xff\"}".into(), "is not UTF-8 from byte 7 on"),
        (b"{\"t\":\"x\",\"u\":\"\xed\xa0\x80\"}".into(), "is not UTF-8 from byte 15 on"),
        (b"17".into(), "has no field t"),
    ]);
    let mut all = Vec::new();
    for (line, what) in &hostile {
        let text = [good.as_bytes(), line, b"\n", good.as_bytes()].concat();
        for options in ["", "--paragraphs", "--ngrams 2"] {
            let failed = place.feed(format!("dedup --json t {options}"), &text[..]).code(2).stdout(good);
            let (error, begin) = (stderr(&failed), format!("bloomline: standard input: line 2 {what}"));
            assert!(error.starts_with(&begin) && error.ends_with("or give --skip-short)\n"), "{error}");
            assert!(error.len() < 300 && error.lines().count() == 1, "{error}");
        }
        all.extend_from_slice(&text);
    }
    let said = format!("bloomline: {} lines without a text in t skipped\n", hostile.len());
    place.feed("dedup --skip-short --json t", all).success().stdout(good).stderr(contains(said));
    let line = format!("{{\"u\":{},\"t\":\"x\"}}\n", deep("[{\"t\":", "}]").replace(":}", ":1}"));
    place.feed("dedup -q --json t", line.clone()).success().stdout(line);
}
