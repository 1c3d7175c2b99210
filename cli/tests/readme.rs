//! The sessions in README.md show what the program prints.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod common;

use std::path::Path;

use common::{Place, program};

#[test]
#[cfg_attr(debug_assertions, ignore = "takes a minute")]
fn the_sessions_in_the_readme() {
    let place = Place::new();
    let programs = Path::new(program()).parent().expect("a directory");
    let examples = programs.join("examples");
    assert!(
        examples.join("corpus").exists(),
        "first, cargo build --example lines --example archive --example corpus"
    );
    let run = |command: &str| {
        let paths = format!("PATH={}:{}:$PATH", programs.display(), examples.display());
        let output = place.shell(format!("{paths}; {{ {command}; }} 2>&1")).output().expect("a shell");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let blocks = |kind| {
        let blocks = include_str!("../README.md").split("\n```").skip(1).step_by(2);
        blocks.filter_map(move |block| block.strip_prefix(kind))
    };
    let files = blocks("sh\n").last().expect("the commands that make the files");
    files.lines().for_each(|command| assert_eq!(run(command), ""));
    let sessions: Vec<_> = blocks("console\n").flat_map(|session| session.split("$ ").skip(1)).collect();
    assert_eq!(sessions.len(), 43);
    for step in sessions {
        let (command, expected) = step.split_once('\n').unwrap_or((step, ""));
        assert_eq!(run(command).trim_end(), expected.trim_end(), "{command}");
    }
}
