//! Every command that an error suggests works: it is run as it is printed, and then what failed.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use std::fs;
use std::path::Path;

use common::{Place, lines, program};

/// Names that a shell would read as something else.
const NAMES: [&str; 3] = ["s", "it's $5", "-dashed"];

struct Shell(Place);

impl Shell {
    /// Runs a line in which `NAME` is the name, and returns whether it succeeded, and what it said.
    fn run(&self, line: &str, name: &str) -> (bool, String) {
        let bin = Path::new(program()).parent().unwrap().display().to_string();
        let line = format!("PATH={bin}:$PATH; {}", line.replace("NAME", &shlex(name)));
        let output = self.0.shell(&line).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
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
        let (is_good, text) = self.run(line, name);
        assert!(!is_good, "{line}");
        self.succeeds(suggested(&text), name);
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
        for options in ["", "--keys 1000", "-q --no-wait"] {
            shell(name).is_remedied(&format!("bloomline dedup {options} --state NAME more"), name);
        }
        let (_, text) = shell(name).run("bloomline dedup --fpr 1e-6 --state NAME more", name);
        assert!(text.contains("then dedup again without --fpr"), "{text}");
    }
}

#[test]
fn a_state_of_fixed_size() {
    for name in NAMES {
        shell(name).is_remedied("bloomline dedup --grow --state NAME more", name);
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
            let (is_good, text) = shell.run(line, name);
            let remedy = suggested(&text);
            assert!(!is_good && remedy.starts_with("bloomline grow --fpr "), "{text}");
            shell.succeeds(remedy, name);
            shell.succeeds("bloomline dedup --state NAME more", name);
        }
    }
}

#[test]
fn a_filter_as_a_state() {
    for name in NAMES {
        let low = "--keys 1e6 --fpr 2e-8 --modules 1";
        for build in ["--keys 600", "--fpr 20%", "--keys 1e6", low, "--bits-per-key 5"] {
            let shell = shell(name);
            shell.succeeds(&format!("bloomline build -q -o f.bloom {build} few; mv f.bloom NAME"), name);
            let (is_good, text) = shell.run("bloomline dedup --state NAME more", name);
            let remedy = suggested(&text);
            assert!(!is_good && remedy.starts_with("bloomline grow -o "), "{text}");
            shell.succeeds(remedy, name);
            let state = if name == "s" { "s.state" } else { &format!("{name}.state") };
            shell.succeeds("bloomline dedup --state NAME more >out", state);
            let printed = String::from_utf8(shell.0.read("out")).unwrap();
            assert!(printed.lines().all(|line| !lines(0..500).contains(line)), "{build}");
            // Without the rate, `grow` names it too.
            if remedy.contains("--fpr") {
                fs::remove_file(shell.0.path(state)).unwrap();
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
            let (is_good, text) = shell.run(line, name);
            assert!(!is_good && text.contains("cannot be merged (keep both)"), "{text}");
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
    let error = |fpr: &str| {
        let refused = place.bloomline(&["dedup", "--fpr", fpr]).write_stdin("").assert().code(2);
        String::from_utf8(refused.get_output().stderr.clone()).unwrap()
    };
    let text = error("1e-9");
    let lowest = text.split("raise --fpr to ").nth(1).unwrap().split(',').next().unwrap();
    place.bloomline(&["dedup", "--fpr", lowest]).write_stdin("").assert().success();
    let fixed = ["dedup", "--keys", "9", "--fpr"];
    let text = place.bloomline(&[&fixed[..], &["1e-9"]].concat()).write_stdin("").assert().code(2);
    let text = String::from_utf8(text.get_output().stderr.clone()).unwrap();
    let lowest = text.split("at least ").nth(1).unwrap().split(',').next().unwrap();
    place.bloomline(&[&fixed[..], &[lowest]].concat()).write_stdin("").assert().success();
}

#[test]
fn compressed_input() {
    let place = Place::new();
    place.write("text", lines(0..1000));
    for (tool, remedy) in
        [("xz", "xz -dc"), ("bzip2", "bzip2 -dc"), ("lz4", "lz4 -dc"), ("zstd", "zstdcat --long=31")]
    {
        let compress = if tool == "zstd" { "zstd --long=31 --ultra -22 -c" } else { &format!("{tool} -c") };
        if !place.shell(&format!("{compress} <text >compressed")).output().unwrap().status.success() {
            continue; // not installed
        }
        let output = place.bloomline(&["dedup", "-q", "compressed"]).output().unwrap();
        if tool != "zstd" {
            assert!(String::from_utf8(output.stderr).unwrap().contains(&format!("`{remedy}`")), "{tool}");
        }
        place.shell(&format!("{remedy} <compressed | $b dedup -q")).assert().success().stdout(lines(0..1000));
    }
}

/// A new error that suggests a command needs a test above.
#[test]
fn no_other_commands_are_suggested() {
    let mut found = Vec::new();
    for folder in ["src", "src/filters", "src/states"] {
        for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let text = fs::read_to_string(&path).unwrap();
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                found.extend(text.matches("grow_command(").map(|_| name.clone()));
            }
        }
    }
    found.sort();
    let expected = ["dedup.rs"; 3].iter().chain(&["grow.rs"; 2]).chain(&["merge.rs"]).chain(&["state.rs"]);
    assert!(found.iter().eq(expected.copied()), "{found:?}");
}
