//! How input is read, and what is shown meanwhile.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use std::io::Write;

use bloomline::{BloomFilter, BloomView, Sizing, hash_key};
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use lzma_rust2::{LzipOptions, LzipWriter, XzOptions, XzWriter};
use predicates::prelude::*;
use predicates::str::contains;

use common::{ON_ONE_CORE, Place, exchange, gzip, lines, stderr, stdout};

/// What `command` writes to a terminal.
#[cfg(target_os = "linux")]
fn on_a_terminal(place: &Place, command: &str) -> String {
    let mut script = place.shell(format!("TERM=xterm script -qec '{command}' /dev/null"));
    if command.ends_with("dedup -q") {
        script.write_stdin("ant\n\u{4}"); // typed, which the terminal shows too
    }
    stdout(&script.assert().success())
}

/// The lines that are left on a terminal after `written`.
fn left_on_the_screen(written: &str) -> String {
    let (mut above, mut line, mut column) = (String::new(), Vec::new(), 0);
    let mut rest = written.chars();
    while let Some(next) = rest.next() {
        match next {
            '\n' => {
                above.extend(line.drain(..).chain(['\n']));
                column = 0;
            }
            '\r' => column = 0,
            '\u{1b}' => {
                assert_eq!(rest.by_ref().take(3).collect::<String>(), "[2K", "{written:?}");
                line.clear();
            }
            letter => {
                line.resize(line.len().max(column + 1), ' ');
                line[column] = letter;
                column += 1;
            }
        }
    }
    above.extend(line);
    above
}

#[test]
#[cfg(target_os = "linux")]
fn progress_is_shown_on_a_terminal_wherever_the_output_goes() {
    let place = Place::new();
    let keys = lines(0..100_000);
    place.write("keys", &keys);
    place.write("short", "antbee");
    place.run("build -q -o f keys").success().stderr("");
    // Nothing for a command that ends soon, and nothing with -q.
    for command in
        ["build -q -o g keys", "dedup -q keys >once", "check -v f short >once", "estimate f f >once"]
    {
        assert_eq!(on_a_terminal(&place, &format!("$b {command}")), "", "{command}");
    }
    // A reader that takes its time, to a file or to the same terminal, where lines stay whole.
    let is_shown = |command: &str, parts: &[&str], others: &[&str]| {
        let shown = on_a_terminal(&place, &format!("bash -c \"{command}\""));
        assert!(parts.iter().all(|part| shown.contains(part)), "{command}: {shown:?}");
        assert!(others.iter().all(|part| !shown.contains(part)), "{command}: {shown:?}");
        left_on_the_screen(&shown)
    };
    let rate = [" % ", " lines, "];
    let left = is_shown("$b dedup keys > >(sleep 0.7; cat >once)", &rate, &["keys"]);
    assert!(left.starts_with("bloomline: 100,000 lines, 100,000 printed"), "{left}");
    assert_eq!(is_shown("$b check f keys > >(sleep 1.3; cat >once)", &[" % ", " lines, ", " ETA "], &[]), "");
    assert_eq!(is_shown("$b dedup -q keys > >(sleep 0.7; cat >once)", &[], &["%"]), "");
    let twice = keys.repeat(2);
    assert!(is_shown("(cat keys; sleep 0.7; cat keys) | $b check f", &[" lines, "], &[]) == twice);
    let left = is_shown("(sleep 0.7; cat keys) | $b build -o g", &[" lines, "], &[" ETA ", " % "]);
    assert!(left.starts_with("bloomline: g: 100,000 "), "{left}");
    // None over what is being typed, and none where the cursor stays in the last line of output.
    for command in ["$b dedup -q", "echo ant | $b dedup -q -0", "$b dedup -q --length 3 short"] {
        let shown = on_a_terminal(&place, command);
        assert!(shown.starts_with("ant") && !shown.contains('\u{1b}'), "{command}: {shown:?}");
    }
    // Nothing where standard error is not a terminal.
    assert_eq!(on_a_terminal(&place, "(sleep 0.6; cat keys) | $b build -o g 2>log"), "");
    assert!(place.text("log").starts_with("bloomline: g: "));
}

#[test]
fn threads_make_the_filter_of_one() {
    let place = Place::new();
    let texts = [lines(0..150_000), lines(100_000..250_000)];
    texts.iter().zip(["a", "b"]).for_each(|(text, name)| _ = place.write(name, text));
    let sizing = Sizing::for_fpr(300_000, 0.01).unwrap();
    let mut expected = BloomFilter::with_sizing(sizing.rounded_to_fold()).unwrap();
    texts.iter().flat_map(|text| text.lines()).for_each(|key| _ = expected.insert(key));
    for _ in 0..5 {
        place.run("build -o f --keys 300k a b").success().stderr(contains("f: 300,000 lines, "));
        assert!(place.read("f") == expected.to_standalone());
    }
}

#[test]
fn threads_report_the_first_error() {
    let place = Place::new();
    let good: String = (0..300_000).map(|i| format!("{i}\n")).collect();
    place.write("good", &good);
    place.write("bad", good + &"x\n".repeat(300_000));
    place.write("cut.gz", b"\x1f\x8b\x08\0");
    for _ in 0..5 {
        for more in ["--keys 9", ""] {
            let text = "bad: line 300001 is not an integer of up to 64 bits: \"x\" (remove it";
            place.refuses(format!("build --integers -o f {more} good bad cut.gz"), &[text]);
        }
    }
    // While one thread reads the last lines, another may already have met the end.
    place.write("late", (0..20_000).map(|i| format!("{i}\n")).collect::<String>() + "x");
    for _ in 0..10 {
        place.refuses(
            "build --integers -o f --keys 9 good late cut.gz",
            &["late: line 20001 is not an integer"],
        );
    }
    place.refuses("build -o f good cut.gz bad", &["cut.gz: cannot be decompressed"]);
}

#[test]
fn keys_are_read_from_a_column() {
    let place = Place::new();
    place.write("tsv", "1\tant\t\r\n2\tbee\tx\r\n3\tant\t\r\n");
    place.write("csv", "ant,1\nbee,2\n,3\nant,4");
    let dedup = |arguments: &str, output: &'static str| {
        place.run(format!("dedup -q {arguments}")).success().stdout(output);
    };
    // What is printed is the line.
    dedup("--column 2 tsv", "1\tant\t\r\n2\tbee\tx\r\n");
    dedup("--column 2 --delimiter '\\t' tsv", "1\tant\t\r\n2\tbee\tx\r\n");
    dedup("--column 1 --delimiter , csv", "ant,1\nbee,2\n,3\n");
    dedup("--column 2 --delimiter , --integers csv", "ant,1\nbee,2\n,3\nant,4\n");
    let build = "build -q -o f --keys 9";
    for column in ["--column 2 tsv", "--column=1 --delimiter=, csv"] {
        place.run(format!("{build} {column}")).success();
        for (key, is_in) in [("ant", true), ("bee", true), ("cat", false), ("1", false)] {
            let filter = place.read("f");
            assert_eq!(BloomView::from_standalone(&filter).unwrap().contains(key), is_in, "{key}");
        }
    }
    place.feed("check -v --column 2 f", "x\tant\nx\tcat\ty\n").stdout("x\tcat\ty\n");
    // The last column, with and without CR.
    place.write("f", filter_of(b""));
    for (crlf, n) in [("--crlf", "2\n"), ("", "0\n")] {
        place.run(format!("check -c f --column 3 tsv {crlf}")).stdout(n);
    }
    // A key that is missing is not an empty key, of which dedup would print one.
    place.write("short", "a\tb\n".repeat(100_000) + "only\n");
    let text = "short: line 100001 has no column 2: \"only\" (remove it, or change --column or --delimiter, or give --skip-short)\n";
    for (command, printed) in [("dedup", "a\tb\n"), ("check f", ""), ("build -o g", "")] {
        let failed = place.run(format!("{command} --column 2 short")).code(2).stdout(printed);
        failed.stderr(format!("bloomline: {text}"));
    }
    // The lines before it are done.
    place.write("late", "1\n2\nx\n3\n");
    place.run("check -v --integers f late").code(2).stdout("1\n2\n");
    for arguments in [
        "--column 0",
        "--column 1 --length 3",
        "--delimiter ,",
        "--column 1 --delimiter ::",
        "--column 1 --delimiter ''",
    ] {
        place.refuses(format!("dedup {arguments} csv"), &["--"]);
    }
}

fn filter_of(key: &[u8]) -> Vec<u8> {
    let mut filter = BloomFilter::with_fpr(9, 0.01).unwrap();
    filter.insert_hash(hash_key(key, 0));
    filter.to_standalone()
}

#[test]
fn what_is_not_lines_is_refused_and_named() {
    let place = Place::new();
    place.write("f", filter_of(b"ant"));
    place.feed("dedup -q --state s", "ant\n").success();
    let little: Vec<_> = "\u{feff}ant\nbee\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<_> = "\u{feff}ant\nbee\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let wide =
        |text: &str, of: fn(u32) -> [u8; 4]| text.chars().flat_map(|it| of(it.into())).collect::<Vec<_>>();
    let (little_32, big_32) =
        (wide("\u{feff}ant\n", u32::to_le_bytes), wide("\u{feff}ant\n", u32::to_be_bytes));
    let utf_16 = "is UTF-16 (convert its text with `iconv -f UTF-16 -t UTF-8`)\n";
    let utf_32 = "is UTF-32 (convert its text with `iconv -f UTF-32 -t UTF-8`)\n";
    for (bytes, text) in [
        (&place.read("f")[..], "a filter, not lines (name a file of lines, or give --raw"),
        (&place.read("s"), "a state of dedup, not lines (name a file of lines, or give --raw"),
        (&gzip(&big), utf_16),
        (&big, utf_16),
        (&little, utf_16),
        (&little_32, utf_32),
        (&gzip(&big_32), utf_32),
        (b"\x02\x21\x4c\x18\x05", "is compressed by lz4 -l (decompress it with `lz4 -dc`)\n"),
        (
            b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff",
            "is compressed by lzma (decompress it with `xz -dc`)\n",
        ),
        (b"\x1f\x9d\x90", "is compressed by compress (decompress it with `gzip -dc`)\n"),
        (b"PK\x03\x04\x14", "is a zip archive (decompress it with `unzip -p`)\n"),
        (b"7z\xbc\xaf\x27\x1c\0", "is a 7z archive (decompress it with `7z x -so`)\n"),
        (b"Rar!\x1a\x07\0", "is a rar archive (decompress it with `unrar p -inul`)\n"),
        (b"Rar!\x1a\x07\x01\0", "is a rar archive (decompress it with `unrar p -inul`)\n"),
    ] {
        place.write("any-name", bytes);
        for command in ["dedup", "check f", "build -o g", "build --keys 1 -o g", "index -o i"] {
            if command != "index -o i" || text != utf_16 {
                place.refuses(format!("{command} any-name"), &[&format!("any-name: {text}")]);
            }
        }
        // Only a file's end says that it is a filter.
        if !text.contains("not lines") {
            place.feed("dedup", bytes).code(2).stderr(contains(text));
        }
        let raw = place.run("dedup -q --raw any-name").success();
        assert!(
            raw.get_output().stdout.starts_with(bytes)
                || text.contains("not lines")
                || text == utf_16
                || text == utf_32
        );
    }
    for options in ["--length 2", "-0"] {
        place.feed(format!("dedup -q {options}"), little.clone()).success();
    }
    // Lines that begin almost like it.
    for text in [
        "BZh",
        "BZh9",
        "BZh91AY&SX",
        "BZh01AY&SY",
        "P*M",
        "\u{4}\"M",
        "\u{2}!",
        "\u{1f}",
        "]\0\0\u{1}\0\0\0\0\0\0\0\0\0", // integers
        "Rar!\u{1a}",
        "\0",
        "\0\0",
    ] {
        let line = format!("{text}\n");
        place.feed("dedup -q", text).success().stdout(line);
    }
}

#[test]
fn one_note_about_carriage_returns() {
    let place = Place::new();
    place.write("unix", "ant\n\rbee\r \n");
    place.write("a", "ant\r\nbee\r\n".repeat(100_000));
    place.write("b", "ant\r\n");
    let notes = |line: &str| {
        let notes = stderr(&place.run(line).success());
        notes.lines().filter(|line| line.contains("CR")).map(str::to_owned).collect::<Vec<_>>()
    };
    let text =
        "bloomline: a: 200,001 lines end with CR LF, and the CR is part of the key (exclude it with --crlf)";
    for command in ["build -o f", "build -o f --keys 9", "dedup", "check f"] {
        assert_eq!(notes(&format!("{command} unix a b")), [text]);
        assert_eq!(notes(&format!("{command} --crlf unix a b")), [""; 0]);
        assert_eq!(notes(&format!("{command} unix")), [""; 0]);
        if command != "check f" {
            assert_eq!(notes(&format!("{command} -0 unix a b")), [""; 0]);
            assert_eq!(notes(&format!("{command} -q unix a b")), [""; 0]);
        }
    }
    let text =
        "bloomline: b: 1 line ends with CR LF, and the CR is part of the last field (exclude it with --crlf)";
    assert_eq!(notes("dedup --column 1 b"), [text]);
}

#[test]
fn what_can_be_read_is_read() {
    let place = Place::new();
    place.write("a", "ant\n");
    place.write("b", "bee\n");
    place.write("cut.gz", b"\x1f\x8b\x08\0");
    place.write("odd", "bees");
    place.write("f", filter_of(b"bee"));
    let errors =
        || contains("no: No such file").and(contains(".: Is a directory")).and(contains("cut.gz: cannot be"));
    let files = "a no . cut.gz b";
    let run = |command: &str| place.run(format!("{command} {files}")).code(2).stderr(errors());
    let notes = stderr(&run("dedup").stdout("ant\nbee\n"));
    assert!(
        notes.lines().count() == 4 && notes.contains("\nbloomline: 2 lines, 2 printed, 0 dropped (FPR now "),
        "{notes}"
    );
    run("dedup -q --state s").stdout("ant\nbee\n");
    place.run("dedup -q --state s a b").success().stdout("");
    // Nothing was printed, so that no state binds the next run to its options.
    place.refuses("dedup --state t --keys 9 no", &["no: No such file"]);
    run("check f").stdout("bee\n");
    run("check -c f").stdout("a:0\nb:1\n");
    // The next file is read after one that ends in the middle of a line.
    let lengths = place.run("dedup -q --length 3 odd no").code(2).stdout("bee");
    lengths.stderr(contains("odd: the last line has 1 of 3 bytes").and(contains("no: No such")));
    // A filter without the keys of one file would call them absent.
    for more in ["", "--keys 9", "--like f"] {
        place.refuses(format!("build -o g {more} {files}"), &["no: No such file"]);
        place.refuses(format!("build -o g {more} cut.gz"), &["cut.gz: "]);
    }
    assert!(!place.path("g").exists());
}

/// A message is one line, and nothing in it commands a terminal.
#[test]
fn names_in_messages_are_printable() {
    let place = Place::new();
    let text = "bloomline: a\\nb\\u{1b}[31m: No such file or directory (check the path)\n";
    place.run("dedup 'a\nb\u{1b}[31m'").code(2).stderr(text);
}

#[test]
fn names_of_files_are_read_from_a_list() {
    let place = Place::new();
    place.write("two words", "ant\n");
    place.write("line\nbreak", "bee\n");
    place.write("list", "two words\0line\nbreak\0");
    place.write("unended", "two words\0line\nbreak");
    let both = "ant\nbee\n";
    place.run("dedup -q --files0-from list").success().stdout(both);
    place.run("dedup -q --files0-from unended").success().stdout(both);
    let find = "find . -name '*[wb]r*' -print0 | sort -z | $b";
    place.sh(format!("{find} dedup -q --files0-from -")).success().stdout(both.replace("ant\n", ""));
    place.sh(format!("{find} build -q -o f --files0-from -; $b check f 'two words'")).code(1);
    place.run("check -c f --files0-from list").stdout(contains("two words:0\n"));
    // No files are not standard input.
    let none = place.sh("find . -name none -print0 | $b dedup --files0-from -").success().stdout("");
    none.stderr("bloomline: 0 lines, 0 printed, 0 dropped (FPR now 0%)\n");
    place.write("empty", "\0");
    place.write("newlines", "a\nb\n");
    place.write("stdin", "-\0");
    for (arguments, text) in [
        ("--files0-from empty", "empty: name 1 is empty"),
        ("--files0-from no", "no: No such file"),
        ("--files0-from newlines", "newlines: has no NUL"),
        ("--files0-from list file", "cannot be used with"),
    ] {
        place.refuses(format!("dedup {arguments}"), &[text]);
    }
    place.feed("dedup -q --files0-from stdin", both).success().stdout(both);
    let stdin = place.sh("printf '%s\\0' - | $b dedup --files0-from -").code(2);
    stdin.stderr(contains("cannot both come from standard input"));
}

#[test]
fn names_that_are_almost_right() {
    let place = Place::new();
    for (arguments, text) in [
        ("biuld", "unrecognized subcommand 'biuld' (did you mean build? see --help)"),
        ("build --keyes 5", "unexpected argument '--keyes' found (did you mean --keys? see --help)"),
        (
            "completions fsh",
            "invalid value 'fsh' for '<SHELL>' [possible values: bash, elvish, fish, powershell, zsh] (did you mean fish? see --help)",
        ),
        ("--verison", "unexpected argument '--verison' found (did you mean --version? see --help)"),
        ("xyzzy", "unrecognized subcommand 'xyzzy' (see --help)"),
    ] {
        place.run(arguments).code(2).stderr(format!("bloomline: {text}\n"));
    }
}

#[test]
fn a_filter_like_another_can_be_merged() {
    let place = Place::new();
    place.write("monday", lines(0..1000));
    place.write("tuesday", lines(900..3000));
    let seeded = BloomFilter::with_blocks(97, 7).unwrap().with_seed(42).unwrap().to_standalone();
    place.write("seeded", seeded);
    place.run("build -q -o monday.f --keys 3000 monday").success();
    for like in ["monday.f", "seeded"] {
        place.run(format!("build -q --like {like} -o tuesday.f tuesday")).success().stderr("");
        place.run(format!("merge -o both {like} tuesday.f")).success();
        let both = place.read("both");
        let both = BloomView::from_standalone(&both).unwrap();
        assert!(lines(900..3000).lines().all(|key| both.contains(key)));
        assert_eq!(both.contains(lines(0..1).trim_end()), like == "monday.f");
    }
    for more in ["--keys 9", "--fpr 1%", "--bits-per-key 9"] {
        place.refuses(format!("build -o g --like monday.f tuesday {more}"), &["cannot be used with"]);
    }
    place.refuses("build -o g --like monday tuesday", &["monday: not a bloomline file"]);
    place.refuses("build -o g --like no tuesday", &["no: No such file"]);
}

#[test]
fn figures_of_build() {
    let place = Place::new();
    place.write("one", "ant\n");
    place.run("build -o f one").success().stderr(contains("f: 1 line, 1 distinct key; 64 B, FPR "));
    // Counted exactly, and said so.
    place.write("keys", lines(0..3000).repeat(2));
    place.run("build -o f keys").success().stderr(contains("f: 6,000 lines, 3,000 distinct keys; "));
    // The warning is not among the figures.
    let build = place.run("build --as-json -o f --keys 9 --allow-overfull keys").success();
    let build = build.stdout(contains("\"lines\": 6000"));
    build.stderr(contains("raise --keys").and(contains("distinct").not()));
}

#[test]
fn a_byte_order_mark_is_not_part_of_a_key() {
    let place = Place::new();
    let mark = "\u{feff}";
    let marked = format!("{mark}7\n8\n{mark}7\n");
    place.write("marked", &marked);
    place.write("marked.gz", gzip(&marked));
    place.write("plain", "7\n");
    let said = "bloomline: marked: 1 file begins with a byte-order mark, which is not part of the key\n";
    // What is printed has it. In later lines it is a part of them, as text that is cut and joined has it.
    place.run("dedup marked plain").success().stdout(marked.clone()).stderr(contains(said));
    place.run("dedup -q plain marked.gz").success().stdout(format!("7\n8\n{mark}7\n")).stderr("");
    place.run("dedup -q --raw plain marked").success().stdout(format!("7\n{mark}7\n8\n"));
    place.run("dedup --column 1 --integers marked").code(2).stdout(format!("{mark}7\n8\n"));
    place.sh("cat marked | $b dedup - marked.gz").stderr(contains("standard input: 2 files begin with"));
    for more in ["", "--keys 9"] {
        place.run(format!("build -o f {more} marked")).success().stderr(contains(said).count(1));
        place.run("check f plain").success().stdout("7\n").stderr("");
    }
    place.run("build -q -o f plain").success().stderr("");
    place.run("check f marked").success().stdout(format!("{mark}7\n")).stderr(said);
    // No word has it, and so no key.
    place.run("index --words -o i marked").success().stderr(contains("byte-order").not());
    // Binary keys may begin like one.
    place.run("dedup -q --length 1 marked").success().stdout("\u{feff}7\n8");
}

/// The text in each format that is read.
fn compressed(text: &[u8]) -> [(&'static str, Vec<u8>); 7] {
    fn written<W: Write>(mut encoder: W, text: &[u8], end: impl FnOnce(W) -> Vec<u8>) -> Vec<u8> {
        encoder.write_all(text).unwrap();
        end(encoder)
    }
    let mut zstd = zstd::Encoder::new(Vec::new(), 1).unwrap();
    zstd.include_checksum(true).unwrap();
    let bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    let xz = XzWriter::new(Vec::new(), XzOptions::default()).unwrap();
    let lzip = LzipWriter::new(Vec::new(), LzipOptions::default());
    let lz4 = |mode| {
        let frame = FrameInfo::new().content_checksum(true).block_mode(mode).block_size(BlockSize::Max64KB);
        let lz4 = FrameEncoder::with_frame_info(frame, Vec::new());
        written(lz4, text, |lz4| lz4.finish().unwrap())
    };
    [
        ("gz", gzip(text)),
        ("zst", written(zstd, text, |zstd| zstd.finish().unwrap())),
        ("bz2", written(bzip2, text, |bzip2| bzip2.finish().unwrap())),
        ("xz", written(xz, text, |xz| xz.finish().unwrap())),
        ("lz", written(lzip, text, |lzip| lzip.finish().unwrap())),
        ("lz4", lz4(BlockMode::Independent)),
        ("linked.lz4", lz4(BlockMode::Linked)),
    ]
}

#[test]
fn compressed_files_are_read() {
    let place = Place::new();
    let (text, more) = (lines(0..10_000), lines(10_000..10_100));
    place.run("build -q -o none").code(0);
    for ((format, one), (_, two)) in compressed(text.as_bytes()).into_iter().zip(compressed(more.as_bytes()))
    {
        place.write("one", &one);
        // Also with a part of no lines between them, as `cat` joins them.
        let (_, empty) = compressed(b"").into_iter().find(|(it, _)| *it == format).unwrap();
        place.write("two", [&one[..], &empty, &two].concat());
        place.feed("dedup -q", one).success().stdout(text.clone());
        place.run("dedup -q two").success().stdout([&text[..], &more].concat());
        place.run("check -c -v none two").success().stdout("10100\n");
        place.run("index -q -o i one two").success();
        place.run(format!("find i -- {}", more.lines().last().unwrap())).success().stdout("two\n");
        place.run("build -o f two").success().stderr(contains("f: 10,100 lines"));
    }
}

#[test]
fn files_of_a_folder_are_compressed_as_their_inputs() {
    let place = Place::new();
    for text in [lines(0..45_000), String::new()] {
        let plain = ("plain", text.clone().into());
        for (format, bytes) in compressed(text.as_bytes()).into_iter().chain([plain]) {
            place.write("in", &bytes);
            place.sh("rm -rf out; $b dedup -q --output-dir out in").success().stdout("");
            let out = place.read("out/in");
            assert!(out.get(..2) == bytes.get(..2) && (out.len() > 4) == (bytes.len() > 4), "{format}");
            place.run("dedup -q out/in").success().stdout(text.clone());
        }
    }
    place.write("in", gzip("ant\n"));
    place.sh("$b dedup -q --raw --output-dir raw in; head -c $(wc -c <in) raw/in | cmp - in").success();
    // Lines that are longer than what is read at a time, on one core and on all.
    let words = |i: u64| if i % 400 == 399 { bloomline::mix(i) % 90_000 } else { 40 };
    let line = |i: u64| {
        (0..words(i)).map(|j| format!("{:x} ", bloomline::mix(i << 32 | j))).collect::<String>() + "\n"
    };
    place.write("in", gzip((0..4000).map(line).collect::<String>()));
    place
        .sh(format!(
            "$b dedup --output-dir all in; {ON_ONE_CORE} dedup --output-dir one in; cmp all/in one/in"
        ))
        .success();
}

#[test]
fn bzip2_has_nine_sizes_of_blocks() {
    let place = Place::new();
    for level in 1..=9 {
        let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(level));
        bzip2.write_all(b"ant\n").unwrap();
        place.feed("dedup -q", bzip2.finish().unwrap()).success().stdout("ant\n");
        let empty = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(level));
        place.feed("dedup -q", empty.finish().unwrap()).success().stdout("");
    }
}

/// Wherever the file ends, and whichever byte is another, of one in three.
#[test]
fn damaged_files_are_errors() {
    let place = Place::new();
    let text = "ant bee\ncat dog\n".repeat(9);
    let build = |bytes: &[u8]| {
        place.write("x", bytes);
        let built = place.run("build -q -o f --keys 9 x");
        let (code, said) = (built.get_output().status.code(), stderr(&built));
        assert!(
            code == Some(0) || code == Some(2) && said.starts_with("bloomline: x: ") && said.ends_with(")\n"),
            "{said}"
        );
        (code == Some(0)).then(|| place.read("f"))
    };
    let expected = build(text.as_bytes());
    assert!(expected.is_some());
    for (format, whole) in compressed(text.as_bytes()) {
        // With fewer bytes, this is another format or none.
        let first = if format == "bz2" { 10 } else { 6 };
        let twice = whole.repeat(2);
        assert!(build(&whole) == expected && build(&twice) == expected, "{format}");
        for end in (first..whole.len()).chain(whole.len() + 1..twice.len()).step_by(3) {
            assert!(build(&twice[..end]).is_none(), "{format}: {end} of 2 * {}", whole.len());
        }
        for at in (first..whole.len()).step_by(3) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            // Some bytes do not count, such as the time in gzip's header.
            assert!(build(&damaged).is_none_or(|built| Some(built) == expected), "{format}: {at}");
        }
        assert!(build(&[&whole[..], b"ant\n"].concat()).is_none(), "{format}");
    }
}

#[test]
fn what_is_compressed_twice_is_an_error() {
    let place = Place::new();
    let text = "x: is compressed twice (decompress it once)\n";
    for (_, inner) in compressed(b"ant\n") {
        for (_, outer) in compressed(&inner) {
            place.write("x", outer);
            place.refuses("dedup x", &[text]);
            place.refuses("index --words -o i x", &[text]);
        }
    }
    place.write("x", gzip("PK\x03\x04 and more"));
    place.refuses("dedup x", &[text]);
    place.run("dedup -q --raw x").success();
}

/// A header of a few bytes cannot ask for 4 GiB, but a large dictionary that `xz -9` makes is read.
#[test]
fn a_dictionary_of_xz_has_a_limit() {
    let place = Place::new();
    let (_, whole) = compressed(b"ant\n").into_iter().find(|(format, _)| *format == "xz").unwrap();
    // The header of its block is 12 bytes after 12 of the file: sizes, the filter LZMA2, its dictionary and a checksum.
    for (dictionary, is_read) in [(28, true), (30, true), (31, false), (40, false)] {
        let mut bytes = whole.clone();
        assert_eq!(bytes[14..16], [0x21, 1], "the filter");
        bytes[16] = dictionary;
        let mut sum = flate2::Crc::new();
        sum.update(&bytes[12..20]);
        bytes[20..24].copy_from_slice(&sum.sum().to_le_bytes());
        place.write("x", bytes);
        if is_read {
            place.run("dedup -q x").success().stdout("ant\n");
        } else {
            place.refuses(
                "dedup x",
                &["x: its dictionary is larger than 128 MiB (decompress it with `xz -dc`)\n"],
            );
        }
    }
}

fn utf_16(text: &str, of: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(of).collect()
}

#[test]
fn an_index_decodes_utf_16() {
    let place = Place::new();
    // More than is read at a time. The long line is of letters outside ASCII.
    let long = "\u{444}\u{1f600}".repeat(100_000);
    let text = format!("id,user\n1,ant {long}\n2,Zo\u{eb}\r\n{}3,last", "4,bee\n".repeat(100));
    for (name, of) in [("LE", u16::to_le_bytes as fn(u16) -> [u8; 2]), ("BE", u16::to_be_bytes)] {
        let plain = format!("\u{eb}\u{20ac}{}{text}", "5,bee\n".repeat(20));
        place.write("marked", utf_16(&format!("\u{feff}{text}"), of));
        place.write("plain.gz", gzip(utf_16(&plain, of)));
        place.write("raw", utf_16(&text, of));
        place.run("index -q --words --fpr 1e-7 -o words marked plain.gz").success().stderr("");
        place.run("find words ant 'Zo\u{eb}' last user").success().stdout("marked\nplain.gz\n");
        place.run("find words cat").code(1);
        place.run("index -q --csv --column 2 --fpr 1e-7 -o rows marked plain.gz").success();
        place.run("find rows bee last 'Zo\u{eb}'").success().stdout("marked\nplain.gz\n");
        place.run("index -q --csv --column user --fpr 1e-7 -o rows2 marked").success();
        place.run("find rows2 bee").success().stdout("marked\n");
        // As it is.
        place.run("index -q --raw --words --fpr 1e-7 -o raws marked").success();
        place.run("find raws ant").code(1);
        // Lines that are printed stay as they are.
        let remedy = format!("is UTF-16{name} (convert its text with `iconv -f UTF-16{name} -t UTF-8`)\n");
        place.run("build -q -o f").success();
        for command in ["dedup", "check f", "build -o g", "build -o g --keys 9"] {
            place.refuses(format!("{command} plain.gz"), &[&format!("plain.gz: {remedy}")]);
        }
        for options in ["--raw", "--length 2", "-0"] {
            place.feed(format!("dedup -q {options}"), utf_16(&plain, of)).success();
        }
    }
}

/// Integers and text with some zeros, however they are read, and a line that is all that a pipe has.
#[test]
fn what_is_not_utf_16_is_read_as_it_is() {
    let place = Place::new();
    let numbers = |n: u16| (0..n).flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    let wide = (0..1000_u32).flat_map(u32::to_le_bytes).collect();
    let words = b"a\0bc\0d\0".repeat(50);
    let short = utf_16("ant\n", u16::to_le_bytes);
    for bytes in [numbers(100), numbers(1000), wide, words, short, vec![b'\n'; 999], vec![0; 999]] {
        let ended = [&bytes[..], b"\n"].concat();
        place.write("x", &ended);
        place.run("build -q -o none").success();
        place.run("check -v none x").success().stdout(ended);
    }
    let mut child = place.start("dedup -q");
    for line in ["\n", "a\n", "bc\n"] {
        exchange(&mut child, line, line);
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// As gzip reads them: zeros may follow the last member, and other bytes may not.
#[test]
fn gzip_ends_with_zeros_or_with_a_member() {
    let place = Place::new();
    let zeros = |n: usize| vec![0; n];
    let (one, two) = (gzip("1\n2\n"), gzip("3"));
    for end in [zeros(0), zeros(1), zeros(3 << 20)] {
        place.write("padded", [&one[..], &two, &end].concat());
        place.run("dedup -q padded").success().stdout("1\n2\n3\n").stderr("");
        place.run("build -q -o f padded").success();
    }
    let wrong = [
        [&zeros(9)[..], &two].concat(),
        [&zeros(512)[..], b"x"].concat(),
        b"x".to_vec(),
        b"junk that is long".to_vec(),
        two[..12].to_vec(),
        [&two[..two.len() - 4], &zeros(9)[..]].concat(), // for the length in its end
    ];
    for end in wrong {
        place.write("wrong", [&one[..], &end].concat());
        place
            .refuses("build -o f wrong", &["wrong: cannot be decompressed: ", "(compress or fetch it again"]);
    }
    // zstd itself refuses zeros.
    let zstd = zstd::encode_all(&b"1\n"[..], 1).unwrap();
    place.write("padded", [&zstd[..], &zeros(512)[..]].concat());
    place.refuses("build -o f padded", &["padded: cannot be decompressed: "]);
}

#[test]
fn standard_input_is_read_once() {
    let place = Place::new();
    place.write("f", filter_of(b"ant"));
    place.write("k", "ant\n");
    let twice = "standard input: is named twice, and can be read only once (name the file of one)";
    let both = "the filter and the lines cannot both come from standard input (name the file of one)";
    for (arguments, text) in [
        ("estimate - -", twice),
        ("estimate /dev/stdin -", twice),
        ("merge -o m - -", twice),
        ("merge -o m f - -", twice),
        ("check - -", both),
        ("check /dev/stdin", both),
        ("build -o m --like -", both),
        ("build -o m --like - k -", both),
        ("dedup --state /dev/stdin k", "/dev/stdin: a state is read and then replaced (name a file)"),
        ("grow /dev/stdin", "/dev/stdin: cannot be replaced (name a state to write with -o)"),
    ] {
        place.refuses_in_shell(format!("cat f | $b {arguments}"), &[text]);
    }
    place.sh("cat f | $b info - -").code(2).stdout(contains("blocked")).stderr(contains(twice));
    for arguments in [
        "estimate - f",
        "merge -o m /dev/stdin f",
        "build -q -o m --like - k",
        "check - k",
        "info -",
        "fold --factor 1 -o m -",
    ] {
        place.sh(format!("cat f | $b {arguments}")).success();
    }
    place.refuses_in_shell("printf 'k\\0' | $b check - --files0-from -", &[both]);
    // A file that is redirected is opened again.
    place.sh("$b estimate /dev/stdin /dev/stdin <f").success();
}

/// The limit at which memory is short only for the reader depends on the build.
#[test]
#[cfg(target_os = "linux")]
fn a_reader_without_memory_ends() {
    let place = Place::new();
    place.write("keys", lines(0..9));
    let refused = (6 << 10..28 << 10).step_by(128).filter(|limit| {
        let dedup = format!("(ulimit -v {limit}; exec timeout 5 $b dedup -q keys) 2>&1 >out");
        let found = place.shell(format!("{dedup} | grep -c 'no memory for a line'")).output().unwrap();
        let found = String::from_utf8(found.stdout).unwrap();
        assert!(["0\n", "1\n"].contains(&&found[..]), "{limit}: {found}");
        found == "1\n"
    });
    assert!(refused.count() > 0);
}
