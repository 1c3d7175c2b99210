//! The tests in C, with the static library of this build, for `scripts/check mutants`. `scripts/check capi` runs them in
//! more ways: as C++, with the shared library, under sanitizers and valgrind, from an installed tree.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::env;
use std::ffi::OsStr;
use std::process::Command;
use std::sync::Mutex;

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles `tests/NAME.c` with the library, and runs it.
fn run_c(name: &str, arguments: &[&OsStr]) {
    static BUILD: Mutex<()> = Mutex::new(());
    // This program is in the folder `deps` beside the library.
    let program = env::current_exe().unwrap();
    let libraries = program.ancestors().nth(2).unwrap();
    let profile = match libraries.file_name().unwrap().to_str().unwrap() {
        "debug" => "dev",
        other => other,
    };
    let build = BUILD.lock();
    // For tests, Cargo builds no library for C by itself.
    let cargo = ["build", "--quiet", "--offline", "--package", "bloomline-capi", "--profile", profile];
    run(Command::new(env!("CARGO"))
        .current_dir(FOLDER)
        .args(cargo)
        .arg("--target-dir")
        .arg(libraries.parent().unwrap()));
    drop(build);
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join(name);
    let gcc = ["-std=c99", "-Iinclude", "-pthread", "-o"];
    run(Command::new("gcc")
        .current_dir(FOLDER)
        .args(gcc)
        .arg(&program)
        .arg(format!("tests/{name}.c"))
        .arg(libraries.join("libbloomline.a"))
        .args(["-lm", "-ldl"]));
    run(Command::new(program).args(arguments));
}

#[test]
fn abi() {
    let folder = tempfile::tempdir().unwrap();
    run_c("abi", &[FOLDER.as_ref(), folder.path().join("abi.bloom").as_ref()]);
}

#[test]
fn out_of_memory() {
    run_c("out_of_memory", &[]);
}
