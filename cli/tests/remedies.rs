//! Every command that an error suggests works: it is run as it is printed, and then what failed.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use std::path::Path;

use common::{Place, lines, program, stderr};

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
    for (dedup, before) in [("dedup", "raise --fpr to "), ("dedup --keys 9", "at least ")] {
        let text = stderr(&place.run(format!("{dedup} --fpr 1e-13")).code(2));
        let lowest = text.split(before).nth(1).unwrap().split(',').next().unwrap();
        place.run(format!("{dedup} --fpr {lowest}")).success();
    }
}

/// Only one or two modules can grow, which a rate below 1.8e-8 does not get.
#[test]
fn a_full_state_that_cannot_grow() {
    let place = Place::new();
    let dedup = "dedup -q --state s --keys 1000 --fpr 1e-9";
    let text = stderr(&place.feed(dedup, lines(0..2000)).code(2));
    assert!(text.ends_with("are recorded (begin another state)\n"), "{text}");
    for more in ["", "--fpr 1e-5"] {
        let text = "s: has 3 modules, and only filters of one or two can grow (begin another state)";
        place.refuses(format!("grow {more} s"), &[text]);
    }
}

#[test]
fn compressed_input() {
    let place = Place::new();
    place.write("text", lines(0..1000));
    for (tool, remedy) in
        [("xz", "xz -dc"), ("bzip2", "bzip2 -dc"), ("lz4", "lz4 -dc"), ("zstd", "zstdcat --long=31")]
    {
        let compress = if tool == "zstd" { "zstd --long=31 --ultra -22 -c" } else { &format!("{tool} -c") };
        if !place.shell(format!("{compress} <text >compressed")).output().unwrap().status.success() {
            continue; // not installed
        }
        if tool != "zstd" {
            place.refuses("dedup -q compressed", &[&format!("`{remedy}`")]);
        }
        place.sh(format!("{remedy} <compressed | $b dedup -q")).success().stdout(lines(0..1000));
    }
}

/// A new error that suggests a command needs a test above.
#[test]
fn no_other_commands_are_suggested() {
    let line = "grep -ro 'grow_command(' $src | cut -d: -f1 | xargs -n1 basename | sort | uniq -c | xargs";
    let place = Place::new();
    let mut grep = place.shell(line);
    grep.env("src", concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    grep.assert().stdout("2 dedup.rs 2 grow.rs 1 merge.rs 1 state.rs\n");
}
