//! `bloomline` on the command line. Each subcommand is a file of its own.
#![deny(unsafe_code)]

mod bench;
mod build;
mod chart;
mod check;
mod decompress;
mod dedup;
mod estimate;
mod filter_file;
mod fold;
mod info;
mod input;
mod keys;
mod merge;
mod numbers;
mod output;
mod plan;
mod shell;
mod signals;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use output::PipeClosed;

/// Bloom filters of files of keys: build them, ask them, drop repeated lines, plan their size
#[derive(Parser)]
#[command(
    name = "bloomline",
    version,
    after_help = "Examples:
  bloomline plan --keys 1e9 --fpr 0.01              what a filter of a billion keys takes
  bloomline build -o keys.bloom keys.txt            a filter of the lines of keys.txt
  bloomline check keys.bloom lines.txt              the lines that may be among those keys
  bloomline dedup log.txt                           each line the first time that it comes

`bloomline help COMMAND` tells more of each. Exit status: 0, or 2 with one line on standard error; of check 1 where no
line was selected, as grep's."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Plan(plan::Arguments),
    Build(build::Arguments),
    Check(check::Arguments),
    Dedup(dedup::Arguments),
    Info(info::Arguments),
    Estimate(estimate::Arguments),
    Merge(merge::Arguments),
    Fold(fold::Arguments),
    Bench(bench::Arguments),
    Completions(shell::Completions),
    Man(shell::Man),
}

fn main() -> ExitCode {
    let begun = signals::let_writes_fail().map_err(anyhow::Error::from);
    match begun.and_then(|()| arguments()).and_then(run) {
        Ok(code) => code,
        // As a process that the signal ends: shells then say nothing.
        Err(error) if error.is::<PipeClosed>() => ExitCode::from(128 + 13),
        Err(error) => {
            output::note(format_args!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

/// The arguments; what is wrong with them in one line, where clap would take several.
fn arguments() -> Result<Arguments> {
    Arguments::try_parse().map_err(|error| {
        if !error.use_stderr()
            || error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        {
            error.exit(); // it is the text for --help
        }
        let text = error.to_string();
        let lines: Vec<_> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
        anyhow::anyhow!("{} (--help tells more)", lines.join(" ").trim_start_matches("error: "))
    })
}

fn run(arguments: Arguments) -> Result<ExitCode> {
    match arguments.command {
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Build(arguments) => build::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Dedup(arguments) => dedup::run(&arguments),
        Command::Info(arguments) => info::run(&arguments),
        Command::Estimate(arguments) => estimate::run(&arguments),
        Command::Merge(arguments) => merge::run(&arguments),
        Command::Fold(arguments) => fold::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Completions(arguments) => shell::completions(&arguments, Arguments::command()),
        Command::Man(arguments) => shell::man(&arguments, Arguments::command()),
    }
}
