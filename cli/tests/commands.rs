//! What each command does without errors.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use std::collections::HashSet;
use std::io::Write;

use bloomline::BloomFilter;
use predicates::prelude::*;
use predicates::str::contains;

use common::{Place, gzip, lines, objects, stdout};

/// Keys of all kinds, to find any that is lost, as at the end of a buffer.
fn odd_keys() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = vec![
        b"".into(),
        b" ".into(),
        b"ant".into(),
        b"not \xff UTF-8 \xc3".into(),
        b"with\0NUL".into(),
        b"in the middle\rof it".into(),
        vec![b'x'; 3 << 20],
    ];
    keys.extend((0..20_000_u32).map(|i| i.to_string().into_bytes()));
    keys
}

fn joined(keys: &[Vec<u8>], end: u8) -> Vec<u8> {
    keys.iter().flat_map(|key| key.iter().copied().chain([end])).collect()
}

fn filter_of<'a>(mut filter: BloomFilter, keys: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    keys.into_iter().for_each(|key| _ = filter.insert(key));
    filter.to_standalone()
}

#[test]
fn a_built_file_is_the_library_s_filter() {
    let place = Place::new();
    let keys = odd_keys();
    place.write("keys", joined(&keys, b'\n'));
    let expected = filter_of(BloomFilter::with_fpr(50_000, 0.01).unwrap(), keys.iter().map(Vec::as_slice));
    place.run("build -o f --keys 50_000 keys").success();
    assert!(place.read("f") == expected);
    // From a pipe, compressed, and replacing an old one.
    // Two members, as `cat a.gz b.gz` makes.
    let parts = [&keys[..100], &keys[100..]].map(|keys| joined(keys, b'\n'));
    let gzip = parts.each_ref().map(gzip).concat();
    let zstd = parts.map(|part| zstd::encode_all(&part[..], 1).unwrap()).concat();
    let skipped = [&b"\x5a\x2a\x4d\x18\x03\0\0\0any"[..], &zstd].concat(); // as pzstd makes
    for bytes in [joined(&keys, b'\n'), gzip, zstd, skipped] {
        place.feed("build -o f --keys 50000", bytes.clone()).success();
        assert!(place.read("f") == expected);
        place.write("any-name", bytes);
        place.run("build -o f --keys 50000 any-name").success();
        assert!(place.read("f") == expected);
    }
}

#[test]
fn keys_end_as_the_arguments_say() {
    let place = Place::new();
    let keys: Vec<Vec<u8>> = vec![b"two\nlines".into(), b"".into(), b"last".into()];
    let expected = filter_of(BloomFilter::with_fpr(3, 0.01).unwrap(), keys.iter().map(Vec::as_slice));
    place.feed("build -0 -o f --keys 3", joined(&keys, 0)).success();
    assert_eq!(place.read("f"), expected);
    // The end of a file ends its last key: the next file begins with another.
    place.write("a", b"two\nlines\0");
    place.write("b", b"\0last");
    place.feed("build --null -o f --keys 3 a - b", "").success();
    assert_eq!(place.read("f"), expected);
    place.write("first", "ant");
    place.write("second", "bee");
    place.run("dedup -q first second first").stdout("ant\nbee\n");
    // Without keys, the filter is empty.
    place.feed("build -q -o f", "").success().stderr("");
    place.feed("check f", "\nant\n").code(1).stdout("");

    let numbers: Vec<u8> = (0..100_000_u64).flat_map(u64::to_le_bytes).collect();
    let expected = filter_of(BloomFilter::with_fpr(100_000, 0.01).unwrap(), numbers.chunks(8));
    place.feed("build --length 8 -o f --keys 1e5", numbers.clone()).success();
    assert!(place.read("f") == expected);
    assert!(place.feed("check --length=8 f", numbers.clone()).get_output().stdout == numbers);
}

#[test]
fn integers_are_the_keys_of_integer_columns() {
    let place = Place::new();
    let values = [0, 1, -1, 42, i64::MIN, i64::MAX];
    let keys = values.map(i64::to_le_bytes);
    let expected = filter_of(BloomFilter::with_fpr(6, 0.01).unwrap(), keys.iter().map(<[u8; 8]>::as_slice));
    let build = "build -o f --keys 6";
    // However they are written.
    let spellings = [
        "0\n1\n-1\n42\n-9223372036854775808\n9223372036854775807\n",
        "-0\n+1\n18446744073709551615\n 042\t\n9223372036854775808\n0009223372036854775807",
        "00\r\n1\r\n-01\r\n+42\r\n-9223372036854775808\r\n+9223372036854775807\r\n",
    ];
    for text in spellings {
        place.feed(format!("{build} --integers"), text).success().stderr(contains("CR").not());
        assert!(place.read("f") == expected, "{text}");
    }
    place.feed(format!("{build} --integers -0"), spellings[0].replace('\n', "\0")).success();
    assert!(place.read("f") == expected);
    // As numpy's `tofile` writes them.
    place.feed(format!("{build} --length 8"), keys.concat()).success();
    assert!(place.read("f") == expected);

    // Lines are printed as they were read.
    let lines = "+42\n7\n 1 \r\n042\n";
    place.feed("check --integers f", lines).stdout("+42\n 1 \r\n042\n");
    place.feed("check --integers -v f", lines).stdout("7\n");
    place.feed("dedup --integers", lines).stdout("+42\n7\n 1 \r\n");
    place.feed("check -c f", "42\n").stdout("0\n");
}

#[test]
fn golden_keys_of_other_types_are_found() {
    let place = Place::new();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/");
    let filter = format!("{golden}standalone-keys.bin");
    let keys = std::fs::read_to_string(format!("{golden}keys.tsv")).unwrap();
    let (mut texts, mut integers) = (String::new(), String::new());
    for line in keys.lines().skip(1) {
        let fields: Vec<_> = line.split('\t').collect();
        match fields[0] {
            "text" => texts += &(fields[1].replace("\\0", "\0") + "\n"),
            // Those of the type `int` have more than 64 bits.
            "binary" | "int" => (),
            _ => integers += &format!("{}\n", fields[1]),
        }
    }
    assert_eq!((texts.lines().count(), integers.lines().count()), (13, 44));
    place.feed(format!("check {filter}"), texts.clone()).stdout(texts);
    place.feed(format!("check --integers {filter}"), integers.clone()).stdout(integers);
}

#[test]
fn too_full_a_filter_is_not_written() {
    let place = Place::new();
    let build = |more: &str, input: String| place.feed(format!("build -o f {more}"), input);
    let remedy = "; nothing was written (raise --keys, or give --allow-overfull)\n";
    for (more, text) in [
        ("--keys 1000", "not the requested 1%"),
        ("-q --as-json --keys 1000 --bits-per-key 9.94", "% that it was sized for"),
    ] {
        let says = contains("f: 3,000 lines read, an FPR of ").and(contains(text)).and(contains(remedy));
        build(more, lines(0..3000)).code(2).stdout("").stderr(says.and(contains("\n").count(1)));
        assert!(place.files().is_empty());
    }
    // Too many to estimate; and a file that is there stays.
    place.write("f", "old");
    build("--keys 1000", lines(0..100_000)).code(2).stderr(contains("FPR of 100%").and(contains(remedy)));
    assert_eq!(place.read("f"), b"old");
    let all = "--keys 1000 --allow-overfull";
    let says = contains("f: 100,000 lines, too many distinct keys to estimate; 1.28 kB, FPR 100%\n");
    build(all, lines(0..100_000)).success().stderr(says);
    build(all, lines(0..3000)).success().stderr(contains("not the requested 1% (raise --keys)"));
    let filter = BloomFilter::with_fpr(1000, 0.01).unwrap();
    assert!(place.read("f") == filter_of(filter, lines(0..3000).lines().map(str::as_bytes)));
    build("--keys 1000 --allow-overfull -q", lines(0..3000)).success().stderr("");
    build("--keys 3000", lines(0..3000)).success().stderr(contains("requested").not());
    // Repeated lines do not count.
    build("--keys 1000", lines(0..1000).repeat(9)).success();
}

/// Which bits the keys set must not matter, only how many keys there are.
#[test]
fn a_filter_of_as_many_keys_as_expected_is_written() {
    let place = Place::new();
    for fpr in ["0.9", "0.5", "0.1", "1%", "1e-6"] {
        for n in (1..20).chain([31, 51, 52, 102, 103, 155, 206, 500, 1000, 5000, 30_000]) {
            let input = lines(7 * n..8 * n);
            for input in [input.repeat(2), input] {
                place.write("keys", &input);
                place.run(format!("build -q -o f --keys {n} --fpr {fpr} keys")).success().stderr("");
            }
            place.run(format!("build -q -o g --fpr {fpr} keys")).success().stderr("");
            place.run("build -q -o g --like f keys").success().stderr("");
        }
    }
}

#[test]
fn a_filter_like_another_is_not_written_if_it_is_too_full() {
    let place = Place::new();
    place.write("many", lines(0..30_000));
    for (keys, fpr) in [("10000", "1%"), ("10000", "1e-4"), ("900", "20%")] {
        place.feed(format!("build -q -o like --keys {keys} --fpr {fpr}"), "").success();
        let build = "build -q -o f --like like many";
        let says = contains("; nothing was written (give --like a larger filter, or give --allow-overfull)");
        place.run(build).code(2).stderr(says.and(contains("requested").not()));
        assert!(!place.path("f").exists());
        place.run(format!("{build} --allow-overfull")).success();
        // One more like a filter that is as full.
        place.run("build -q -o g --like f many").success();
        place.remove("f");
    }
    // 8.316 bits per key are the fewest that k = 6 is for: 1.9 times 5,000 keys at 16 bits would need k = 9.
    place.feed("build -q -o like --keys 5000 --bits-per-key 10", "").success();
    let build = |n| place.feed("build -q -o f --like like", lines(0..n));
    build(6000).success();
    build(6800).code(2);
}

#[test]
fn files_that_grow_while_they_are_read() {
    let place = Place::new();
    place.write("log", lines(0..50_000));
    place.write("more", lines(0..1000));
    let line = "(i=0; while [ $i -lt 500 ]; do i=$((i+1)); sed s/^/$i/ more >>log; done) & \
                i=0; while [ $i -lt 5 ]; do i=$((i+1)); $b build --as-json -o f log 2>>errors >>out; \
                $b build -q --as-json --allow-overfull -o f log >>all; done; wait";
    place.sh(line).success();
    // A filter of the lines that were counted, or an error: which one depends on who is faster.
    let errors = place.text("errors");
    let remedy = "; nothing was written (the files have grown: build again, or give --allow-overfull)";
    assert!(errors.lines().all(|error| error.ends_with(remedy)), "{errors}");
    let built = |name| objects(&place.read(name));
    assert_eq!(built("out").len() + errors.lines().count(), 5);
    for built in built("out") {
        assert!(built["false_positive_rate"].as_f64().unwrap() < 0.012, "{built}");
    }
    for built in built("all") {
        assert!(built["known_keys"].as_u64().is_none_or(|known| known == built["lines"]), "{built}");
    }
}

#[test]
fn dedup_prints_each_line_once() {
    let place = Place::new();
    let mut text = String::new();
    for i in 0..50_000 {
        text += &lines(bloomline::mix(i) % 20_000..bloomline::mix(i) % 20_000 + 1);
    }
    let mut seen = HashSet::new();
    let once: String = text.split_inclusive('\n').filter(|line| seen.insert(*line)).collect();
    place.write("text", &text);
    let n_dropped = 50_000 - seen.len();
    let drops = format!("{},{:03} dropped, likely none of them new", n_dropped / 1000, n_dropped % 1000);
    for arguments in ["text", "--keys 1e5 text", "--grow text", "--grow --keys 2e3"] {
        let dedup = place.feed(format!("dedup --fpr 1e-6 {arguments}"), &text[..]).success();
        dedup.stdout(once.clone()).stderr(contains(&*drops));
    }
    place.feed("dedup -q", &text[..]).stdout(once.clone()).stderr("");
    // At a visible false-positive rate: up to half of the new lines are dropped, none is printed twice.
    let output = place.prints(format!("dedup --fpr 0.5 --keys {} text", seen.len()));
    let printed: HashSet<_> = output.lines().collect();
    assert_eq!(printed.len(), output.lines().count());
    assert!((seen.len() / 2..seen.len() - 500).contains(&printed.len()), "{}", printed.len());
}

#[test]
fn a_file_called_dash_is_not_standard_input() {
    let place = Place::new();
    place.write("-", "junk\n");
    for files in ["-", "./- -"] {
        place.feed(format!("build -q -o f {files}"), "ant\n").success();
        place.feed("check f", "ant\n").stdout("ant\n");
    }
    place.feed("dedup -q -", "ant\n").stdout("ant\n");
}

#[test]
fn plan_computes_the_third() {
    let place = Place::new();
    let plan = |arguments: &str| text(&place, &format!("plan {arguments}"));
    let words = |text: &str, row: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.trim_start().starts_with(row)).expect("a row");
        line.split_whitespace().map(str::to_owned).collect()
    };
    let by_rate = plan("--keys 1e9 --fpr 0.01");
    // As `build --keys` makes it, so that it can be folded.
    let blocks = bloomline::Sizing::for_fpr(1_000_000_000, 0.01).unwrap().rounded_to_fold().n_blocks();
    assert_eq!((blocks, blocks % 5040), (19_514_880, 0));
    assert_eq!(words(&by_rate, "bytes"), ["bytes", "1,248,952,320", "1,199,119,344"]);
    assert_eq!(words(&by_rate, "size"), ["size", "1.25", "GB", "1.2", "GB"]);
    assert_eq!(words(&by_rate, "bits per key"), ["bits", "per", "key", "9.99", "9.59"]);
    assert_eq!(words(&by_rate, "1,000,000,000 keys")[2..], ["0.976%", "1%"]);
    let by_bytes = plan("--bytes 1241679232 --fpr 1%");
    assert!(words(&by_bytes, "keys")[1].starts_with("1,000,000,4"), "{by_bytes}");
    let by_keys = plan("--bytes 1241679232 --keys 1_000_000_000");
    assert_eq!(words(&by_keys, "1,000,000,000 keys")[2], "1%");
    assert_eq!(words(&plan("--bits-per-key 10 --keys 1e6"), "1,000,000 keys")[2], "0.967%");
    place.run("plan --keys 1e6 --fpr 0.1% --plot p.svg").success();
    let plot = place.text("p.svg");
    for text in ["distinct keys", "false-positive rate", "standard filter", "bloomline", "planned", "0.1%"] {
        assert!(plot.contains(text), "{text}");
    }
    place.run("plan --keys 1 --bytes 1GB --plot q.svg").code(2).stderr(contains("q.svg: nothing to plot"));
    // Equal hashes of more keys would put the rate out of reach.
    for fpr in ["5.44e-13", "1e-12"] {
        let keys = place.json(format!("plan --as-json --bytes 1GB --fpr {fpr}"))["keys"].as_u64().unwrap();
        plan(&format!("--keys {keys} --fpr {fpr}"));
        place.run(format!("plan --keys {} --fpr {fpr}", keys + 2 + keys / 500_000)).code(2);
    }
    // 1%, as for `build`, unless both are given.
    for some in ["--keys 1e6", "--keys 1e6 --modules 2", "--bytes 1MB", "--keys 1e6 --as-json"] {
        assert_eq!(plan(some), plan(&format!("{some} --fpr 1%")));
    }
    assert_eq!(words(&plan("--keys 1e6"), "size")[3..], ["1.2", "MB"]);
    for some in ["--keys 1 --bytes 64 --fpr 0.1", "--fpr 1%", "--bits-per-key 9", "--modules 2", ""] {
        place.refuses(format!("plan {some}"), &["give --keys or --bytes, or both without"]);
    }
}

/// What a command prints that has no notes.
fn text(place: &Place, line: &str) -> String {
    stdout(&place.run(line).success().stderr(""))
}

/// The names of all commands, as the help lists them.
fn commands(place: &Place) -> Vec<String> {
    let help = text(place, "--help");
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.map_while(|line| line.split_whitespace().next());
    let commands: Vec<_> = commands.filter(|&command| command != "help").map(str::to_owned).collect();
    assert_eq!(commands.len(), 13, "{commands:?}");
    commands
}

#[test]
fn every_command_explains_itself_briefly_or_at_length() {
    let place = Place::new();
    for command in commands(&place).iter().chain([&String::new()]) {
        let short = text(&place, &format!("{command} -h"));
        let long = text(&place, &format!("{command} --help"));
        assert_eq!(text(&place, &format!("help {command}")), long);
        for line in short.lines().chain(long.lines()) {
            assert!(line.chars().count() <= 80, "{command}: {line}");
        }
        assert!(long.contains("\nExample") && long.contains(format!("bloomline {command}").trim()), "{long}");
        assert!(!short.contains("\nExample") && short.lines().count() <= 30, "{short}");
        let title = format!(".TH bloomline-{command}").trim_end_matches('-').to_owned() + " 1";
        assert!(text(&place, &format!("man {command}")).contains(&title));
    }
    assert!(text(&place, "man help").contains(".TH bloomline-help 1"));
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(text(&place, &format!("completions {shell}")).contains("dedup"));
    }
    assert!(text(&place, "--version").contains("bloomline 0."));
    place.run("").code(2).stderr(contains("Usage"));
}

#[test]
fn quiet_commands_say_nothing() {
    let place = Place::new();
    place.write("keys", lines(0..10_000));
    for command in [
        "build -q -o f --keys 1e5 keys",
        "fold -q -o g --factor 2 f",
        "fold -q -o g --fpr 1% g",
        "merge -q -o h f g",
        "dedup -q --state s --keys 10_000 keys >out",
        "grow -q s",
        "check -q f keys",
    ] {
        place.sh(format!("$b {command}")).success().stdout("").stderr("");
    }
}

/// What `man` shows of a page, if there is a formatter.
fn formatted(page: &str) -> Option<String> {
    use std::process::{Command, Stdio};
    let mut groff = Command::new("groff");
    let groff = groff
        .args(["-man", "-Tascii", "-P-cbou", "-rLL=80n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut groff = groff.spawn().ok()?;
    groff.stdin.take()?.write_all(page.as_bytes()).ok()?;
    Some(String::from_utf8(groff.wait_with_output().ok()?.stdout).unwrap())
}

#[test]
fn examples_and_tables_are_not_reflowed_in_manual_pages() {
    let place = Place::new();
    for command in &commands(&place) {
        let help = text(&place, &format!("help {command}"));
        let page = text(&place, &format!("man {command}"));
        let sections: Vec<_> = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
        let sections: Vec<_> = sections.into_iter().filter(|section| *section != "INPUT").collect();
        assert_eq!(sections, ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES"]);
        let about = page.lines().nth(4).unwrap().split_once(" \\- ").unwrap().1;
        assert_eq!(page.matches(about).count(), 1, "{about}");
        assert_eq!(page.matches("\n.nf\n").count(), page.matches("\n.fi\n").count());
        let (description, examples) = page.split_once(".SH EXAMPLES\n.nf\n").expect("examples");
        assert!(examples.starts_with("  ") && examples.trim_end().ends_with("\n.fi"), "{examples}");
        assert!(!description.contains("Example"), "{description}");
        // Indented by two blanks, or more; what options mean, by ten.
        let is_table = |line: &&str| {
            let text = line.trim_start_matches(' ');
            line.len() - text.len() >= 2
                && !line.starts_with("          ")
                && !text.starts_with(['-', '<', '['])
        };
        let tables = help.lines().skip_while(|line| !line.contains("Print help")).skip(2).filter(is_table);
        let Some(shown) = formatted(&page) else { return };
        for line in tables {
            let trimmed = line.trim_end();
            assert!(
                shown.lines().any(|shown| shown.trim_end() == format!("       {trimmed}")),
                "{line}\n{shown}"
            );
        }
    }
}
