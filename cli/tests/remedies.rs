//! Every remedy that a text names works: a command is run as it is printed, and then what failed.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use std::path::Path;

use common::{Place, lines, program, stderr, stdout};

/// Names that a shell would read as something else.
const NAMES: [&str; 3] = ["s", "it's $5", "-dashed"];

struct Shell(Place);

impl Shell {
    /// Runs a line in which `NAME` is the name, and returns whether it succeeded, and what it said.
    fn run(&self, line: &str, name: &str) -> (bool, String) {
        let bin = Path::new(program()).parent().unwrap().display().to_string();
        let line = format!("PATH={bin}:$PATH; {}", line.replace("NAME", &shlex(name)));
        let run = self.0.sh(line);
        (run.get_output().status.success(), stderr(&run))
    }

    fn succeeds(&self, line: &str, name: &str) {
        let (is_good, text) = self.run(line, name);
        assert!(is_good, "{line}: {text}");
    }

    /// Fails, does what the error says, and succeeds.
    fn is_remedied(&self, line: &str, name: &str) {
        self.is_remedied_once(line, name);
        self.succeeds(line, name);
    }

    /// Fails, and the command that the error names does what was wanted.
    fn is_remedied_once(&self, line: &str, name: &str) {
        self.succeeds(suggested(&self.fails(line, name)), name);
    }

    fn fails(&self, line: &str, name: &str) -> String {
        let (is_good, text) = self.run(line, name);
        assert!(!is_good, "{line}");
        text
    }
}

/// The command in a message.
fn suggested(text: &str) -> &str {
    text.split('`').nth(1).unwrap_or_else(|| panic!("{text}"))
}

fn shlex(name: &str) -> String {
    let name = if name.starts_with('-') { format!("./{name}") } else { name.into() };
    format!("'{}'", name.replace('\'', r"'\''"))
}

fn shell(name: &str) -> Shell {
    let shell = Shell(Place::new());
    shell.0.write("few", lines(0..500));
    shell.0.write("more", lines(400..5000));
    shell.succeeds("bloomline dedup -q --state NAME --keys 1000 few", name);
    shell
}

#[test]
fn a_full_state() {
    for name in NAMES {
        // The last one because the state is of fixed size.
        for options in ["", "--keys 1000", "-q --no-wait", "--grow"] {
            shell(name).is_remedied(&format!("bloomline dedup {options} --state NAME more"), name);
        }
        let text = shell(name).fails("bloomline dedup --fpr 1e-6 --state NAME more", name);
        assert!(text.contains("then dedup again without --fpr"), "{text}");
    }
}

#[test]
fn an_overfull_state() {
    for name in NAMES {
        let shell = shell(name);
        shell.succeeds("head -n 2000 more | bloomline dedup -q --allow-overfull --state NAME", name);
        let filled = shell.0.read(name);
        for line in
            ["bloomline dedup --state NAME more", "bloomline grow NAME", "bloomline grow --fpr 1e-5 NAME"]
        {
            shell.0.write(name, &filled);
            let text = shell.fails(line, name);
            let remedy = suggested(&text);
            assert!(remedy.starts_with("bloomline grow --fpr "), "{text}");
            shell.succeeds(remedy, name);
            shell.succeeds("bloomline dedup --state NAME more", name);
        }
    }
}

#[test]
fn a_filter_as_a_state() {
    for name in NAMES {
        for build in ["--keys 600", "--fpr 20%", "--keys 1e6", "--keys 1e6 --fpr 2e-8", "--bits-per-key 5"] {
            let shell = shell(name);
            shell.succeeds(&format!("bloomline build -q -o f.bloom {build} few; mv f.bloom NAME"), name);
            let text = shell.fails("bloomline dedup --state NAME more", name);
            let remedy = suggested(&text);
            assert!(remedy.starts_with("bloomline grow -o "), "{text}");
            shell.succeeds(remedy, name);
            let state = if name == "s" { "s.state" } else { &format!("{name}.state") };
            shell.succeeds("bloomline dedup --state NAME more >out", state);
            assert!(shell.0.text("out").lines().all(|line| !lines(0..500).contains(line)), "{build}");
            // Without the rate, `grow` names it too.
            if remedy.contains("--fpr") {
                shell.0.remove(state);
                shell.is_remedied_once("bloomline grow -o new NAME", name);
            }
        }
    }
}

#[test]
fn states_that_do_not_merge() {
    for name in NAMES {
        let shell = shell(name);
        // Its k and its modules are others.
        shell.succeeds("bloomline dedup -q --state growing more", name);
        for line in ["bloomline merge -o both NAME growing", "bloomline merge -o both growing NAME"] {
            assert!(shell.fails(line, name).contains("cannot be merged (keep both)"), "{line}");
        }
        // One that is too full now.
        shell.succeeds("bloomline dedup -q --state a --keys 600 few; tail -n 590 more >rest", name);
        shell.succeeds("bloomline dedup -q --state b --keys 600 rest; cp a NAME", name);
        let (is_good, text) = shell.run("bloomline merge -o NAME NAME b", name);
        let remedy = suggested(&text);
        assert!(is_good);
        shell.succeeds(remedy, name);
        shell.succeeds("bloomline dedup -q --state NAME more", name);
    }
}

#[test]
fn too_low_a_rate() {
    let place = Place::new();
    for rate in ["1e-9", "1e-13", "1e-30"] {
        let text = stderr(&place.run(format!("dedup --fpr {rate}")).code(2));
        assert!(text.starts_with(&format!("bloomline: an FPR of {rate} is too low")), "{text}");
        let fixed = place.run(format!("dedup --keys 1000 --fpr {rate}"));
        assert_eq!(text.contains("with --keys)"), fixed.get_output().status.success(), "{text}");
    }
    for (dedup, before) in [("dedup", "raise --fpr to "), ("dedup --keys 9", "at least ")] {
        let text = stderr(&place.run(format!("{dedup} --fpr 1e-13")).code(2));
        let lowest = text.split(before).nth(1).unwrap().split([',', ')']).next().unwrap();
        place.run(format!("{dedup} --fpr {lowest}")).success();
    }
}

/// Only one or two modules can grow, which a rate below 1.8e-8 does not get.
#[test]
fn a_full_state_that_cannot_grow() {
    let place = Place::new();
    let dedup = "dedup -q --state s --keys 1000 --fpr 1e-9";
    let text = stderr(&place.feed(dedup, lines(0..2000)).code(2));
    assert!(text.contains("(begin another state); the lines printed are recorded"), "{text}");
    for more in ["", "--fpr 1e-5"] {
        let text = "s: has 3 modules, and only filters of one or two can grow (begin another state)";
        place.refuses(format!("grow {more} s"), &[text]);
    }
}

/// A tool that is not installed is not tried.
#[test]
fn compressed_input() {
    let place = Place::new();
    place.write("text", lines(0..1000));
    for (compress, remedy) in [
        ("zstd --long=31 --ultra -22 -c <text", "zstdcat --long=31"),
        ("xz --lzma2=dict=256MiB -c text", "xz -dc"),
        ("xz --format=lzma -c text", "xz -dc"),
        ("lz4 -l -c text", "lz4 -dc"),
        ("compress -c text", "gzip -dc"),
        ("zip -q - text", "unzip -p"),
        ("7z a -si -so text", "7z x -so"),
    ] {
        if !place.shell(format!("{compress} >compressed")).output().unwrap().status.success() {
            continue;
        }
        place.refuses("dedup -q compressed", &[&format!("(decompress it with `{remedy}`)")]);
        let tool = remedy.split(' ').next().unwrap();
        if place.shell(format!("command -v {tool}")).output().unwrap().status.success() {
            place.sh(format!("{remedy} compressed | $b dedup -q")).success().stdout(lines(0..1000));
        }
    }
}

/// What a text names, a command that prints it, and one that does what it says.
const REMEDIES: &str = r#"
omit --keys => bloomline dedup --state s --keys 5 few => bloomline dedup --state s few
omit --fpr => bloomline dedup --state s --fpr 1% few => bloomline dedup --state s few
omit --fpr => bloomline grow --fpr 1% g => bloomline grow g
distinct keys with --keys => bloomline dedup --fpr 1e-9 few => bloomline dedup --fpr 1e-9 --keys 1000 few
raise --keys => bloomline dedup --keys 100 more => bloomline dedup --keys 5000 more
add --grow => bloomline dedup --keys 100 more => bloomline dedup --keys 100 --grow more
raise --keys => bloomline build -o n --keys 100 more => bloomline build -o n --keys 5000 more
give --allow-overfull => bloomline build -o n --keys 9 few => bloomline build -qo n --allow-overfull --keys 9 few
give --like a larger => bloomline build -o n --like f more => bloomline build -o n --like large more
with the same --keys and --fpr => bloomline merge -o n f h => bloomline merge -o n h same
again with --like => bloomline merge -o n f h => bloomline build -q -o f --like h few; bloomline merge -o n f h
give --replace-state => bloomline build -o s few => bloomline build -o s --replace-state few
with -o => bloomline grow f => bloomline grow -o n --fpr 5% f
with -o => cat s | bloomline grow /dev/stdin => cat s | bloomline grow -o n /dev/stdin
with --modules 2 => bloomline grow -o n three => bloomline build -qo n --fpr 1e-9 --modules 2 few; bloomline grow -o m n
give dedup --fpr => bloomline grow --fpr 2% s => bloomline dedup --state s --fpr 2% more
omit --integers => bloomline dedup --integers few => bloomline dedup few
omit --integers => bloomline check --integers s few => bloomline check s few
add --integers => bloomline check i ten => bloomline check --integers i ten
change --column or --delimiter => bloomline dedup --column 2 few => bloomline dedup --column 2 --delimiter / few
give --skip-short => bloomline dedup --column 2 few => bloomline dedup --column 2 --skip-short few
change --column or --delimiter => printf 'a\n1\n' | bloomline dedup --csv --column b => printf 'a\n1\n' | bloomline dedup --csv --column a
add --csv => printf 'a\n1\n' | bloomline dedup --column a => printf 'a\n1\n' | bloomline dedup --csv --column a
give the number of one => printf 'a,a\n1,2\n' | bloomline dedup --csv --column a => printf 'a,a\n1,2\n' | bloomline dedup --csv --column 1
omit --csv => printf 'a,"1\n' | bloomline dedup --csv --column 1 => printf 'a,"1\n' | bloomline dedup --delimiter , --column 1
give --csv => printf 'a,"1"\n' | bloomline dedup --delimiter , --column 2 => printf 'a,"1"\n' | bloomline dedup --csv --column 2
change --json => printf '{"a":1}\n' | bloomline dedup --json t => printf '{"a":1}\n' | bloomline dedup --json a
an --output-dir of its own => mkdir d; cp few d; bloomline dedup --output-dir o few d/few => bloomline dedup --output-dir o few; bloomline dedup --output-dir p d/few
name another --output-dir => bloomline dedup --output-dir . few => bloomline dedup --output-dir o few
omit --state or --output-dir => printf '{"t":1}\n' >j; bloomline dedup --json t --spans --state u --output-dir o j => bloomline dedup --json t --spans --output-dir o j
all other numbers and --plot => bloomline plan --keys 9 few => bloomline plan few
no --state tells that it was made => bloomline dedup -q --output-dir o few; bloomline dedup --output-dir o few => bloomline dedup --output-dir p few
add --column or --json => bloomline dedup --skip-short few => bloomline dedup --skip-short --column 1 few
with --crlf => printf 'ant\r\n' | bloomline dedup => printf 'ant\r\n' | bloomline dedup --crlf
check the file and --length => bloomline dedup --length 4 ten => bloomline dedup --length 3 ten
give --raw => bloomline dedup f => bloomline dedup --raw f
use --raw => bloomline dedup gzip => bloomline dedup --raw gzip
`iconv -f => bloomline dedup utf16 => iconv -f UTF-16 -t UTF-8 utf16 | bloomline dedup | grep -qx ant
`iconv -f => bloomline dedup be => iconv -f UTF-16BE -t UTF-8 be | bloomline dedup | grep -qx user=ant
`iconv -f => bloomline index -o n utf32 => iconv -f UTF-32 -t UTF-8 utf32 >8; bloomline index -q -o n 8; bloomline find n ant
decompress it once => bloomline index -o n twice => zcat twice | zcat >once; bloomline index -q -o n once
`find -print0` => ls few more >l; bloomline dedup --files0-from l => find few -print0 | bloomline dedup --files0-from -
`bloomline build` => bloomline info few => bloomline build -q -o n few; bloomline info n
that `bloomline build` made => bloomline fold -o n --factor 1 g => bloomline fold -o n --factor 1 f
as `bloomline build` makes it => bloomline check bank few => bloomline check f few
with `bloomline find` => bloomline check index few => bloomline find index 10
with `bloomline index` => bloomline find f 10 => bloomline index -q -o n ten; bloomline find n 10
see `bloomline help index` => bloomline find index ' ' => bloomline help index; bloomline find index 10
`bloomline info --files` => bloomline index -q -o n ten gzip; bloomline find n 10 => bloomline index -q -o n ten gzip; bloomline info --files n | grep -q 'not read .*gzip'
--parts => echo a-b.c >w; bloomline index -q --words -o n w; bloomline find n a-b => echo a-b.c >w; bloomline index -q --words -o n w; bloomline find --parts n a-b
give --or-changed => mkdir d; cp ten d; bloomline index -q --words -o n d; echo ant >d/new; bloomline find n ant => mkdir d; cp ten d; bloomline index -q --words -o n d; echo ant >d/new; bloomline find --or-changed n ant
give --add or --drop => bloomline index -q --words -o index few => bloomline index -q --words -o index few --add && bloomline index -q --words -o index few --drop
give -0 => bloomline find newline 10 => bloomline find -0 newline 10
omit --fpr => bloomline index --words --fpr 1% -o index ten => bloomline index --words -o index ten
omit --plot => bloomline info --plot p.svg g => bloomline info g
omit --plot => bloomline plan --keys 1 --bytes 1GB --plot p.svg => bloomline plan --keys 1 --bytes 1GB
give --fpr => bloomline fold -o n f => bloomline fold -o n --fpr 50% f
--factor => bloomline fold -o n f => bloomline fold -o n --factor 2 f
`build --keys` => bloomline fold -o n --factor 5 prime => bloomline fold -o n --factor 5 folds
give --bytes => bloomline plan --bytes 64 --fpr 1e-12 => bloomline plan --bytes 256 --fpr 1e-12
give --bytes 64 => bloomline plan --bytes 9 => bloomline plan --bytes 64
give --keys or --bytes => bloomline plan --fpr 1% => bloomline plan --keys 9; bloomline plan --bytes 1kB
both without --fpr => bloomline plan --fpr 1% --keys 9 --bytes 64 => bloomline plan --keys 9 --bytes 64
see --help => bloomline plan --fpr 1% => bloomline plan --help
see --help => bloomline --kyes 1 => bloomline --help
see --help => bloomline man kyes => bloomline man --help
"#;

/// The rows of the table.
fn remedies() -> impl Iterator<Item = [&'static str; 3]> {
    let row = |row: &'static str| row.splitn(3, " => ").collect::<Vec<_>>().try_into().expect(row);
    REMEDIES.trim().lines().map(row)
}

#[test]
fn what_a_text_names_helps() {
    let prepared = shell("s");
    prepared.succeeds(PREPARED, "s");
    let golden_bank = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/bank-3-slots.bin");
    prepared.0.write("bank", std::fs::read(golden_bank).unwrap());
    for [remedy, wrong, right] in remedies() {
        let shell = Shell(Place::new());
        shell.succeeds(&format!("cp {}/* .", prepared.0.directory().display()), "s");
        let (_, text) = shell.run(wrong, "s");
        assert!(text.contains(remedy), "{wrong}: {text}");
        let (is_good, text) = shell.run(right, "s");
        assert!(is_good && !text.contains(remedy), "{right}: {text}");
    }
}

/// States of text, of integers and of any number of lines, filters, and lines that are not plain text.
const PREPARED: &str = "seq 10 99 >ten; bloomline dedup -q --state g few; bloomline dedup -q --integers --state i ten; \
    build='bloomline build -q -o'; $build f few; $build h --keys 900 few; $build same --keys 900 few; \
    $build large --keys 9000 few; $build three --fpr 1e-9 few; $build prime --bits-per-key 9.2 more; \
    $build folds --keys 2000 few; bloomline index -q --words -o index ten; cp ten 'ten\n'; \
    bloomline index -q -o newline 'ten\n'; \
    printf '\\037\\213\\010ant' >gzip; gzip -c few | gzip >twice; \
    printf '\\377\\376a\\0n\\0t\\0\\n\\0' >utf16; printf '\\377\\376\\0\\0a\\0\\0\\0n\\0\\0\\0t\\0\\0\\0' >utf32; \
    yes user=ant | head -n 9 | sed 's/./\\x0&/g;s/$/\\x0/' >be";

/// These have a test of their own.
const OTHERS: [&str; 11] = [
    "`{}`",                        // above
    "raise --fpr to {",            // above
    "`{command}`",                 // above
    "`xz -dc`",                    // above
    "`zstdcat --long=31`",         // above
    "again without --fpr",         // above
    "{remedy} --integers",         // above
    " --delimiter '",              // after --csv
    "omit --no-wait",              // dedup.rs
    "for --dropped and --summary", // names two files
    "```",                         // words.rs, of docs/format.md
];

/// A new error that suggests `grow` needs a test above.
#[test]
fn no_other_commands_are_suggested() {
    let line = "grep -ro 'grow_command(' $src | cut -d: -f1 | xargs -n1 basename | sort | uniq -c | xargs";
    let place = Place::new();
    let mut grep = place.shell(line);
    grep.env("src", concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    grep.assert().stdout("2 dedup.rs 2 grow.rs 1 merge.rs 1 state.rs\n");
}

/// A text that names an option or a command needs a test above.
#[test]
fn no_other_options_or_commands_are_named() {
    let place = Place::new();
    let mut cat = place.shell("find $src -name '*.rs' -exec cat {} +");
    let source = stdout(&cat.env("src", concat!(env!("CARGO_MANIFEST_DIR"), "/src")).assert().success());
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//")).map(str::trim_start);
    let code =
        code.collect::<Vec<_>>().join("\n").replace("\\\n", "").replace("\\\"", "").replace("'\"'", "");
    // Help has examples, and no remedies. A text of options only is a part of a command.
    let texts = code.split('"').skip(1).step_by(2);
    let texts = texts.filter(|text| !text.contains("\nExample") && !text.starts_with("--"));
    let known: Vec<_> = remedies().map(|[remedy, ..]| remedy).chain(OTHERS).collect();
    let mut n_found = 0;
    for part in texts.flat_map(|text| text.split(['(', ')'])).flat_map(|text| text.split(", or ")) {
        let mut options = part.split("--").skip(1);
        if part.contains('`') || options.any(|option| option.starts_with(|it: char| it.is_ascii_lowercase()))
        {
            assert!(known.iter().any(|known| part.contains(known)), "{part}");
            n_found += 1;
        }
    }
    assert!(n_found > 40, "{n_found}");
}
