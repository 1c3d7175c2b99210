//! `bloomline` on the command line. `filters` has the commands on filters of keys, `states` has `dedup` and `grow`, and
//! `indexes` has `index` and `find`. No folder imports from its neighbours. Each subcommand has a file, but `completions`
//! and `man` share `shell.rs`.
#![deny(unsafe_code)]

mod ahead;
mod compress;
mod csv;
mod decompress;
mod encoding;
mod files;
mod filter_file;
mod guard;
mod input;
mod json;
mod keys;
mod numbers;
mod output;
mod progress;
mod shell;
mod signals;
mod state;
mod streams;
mod texts;
mod words;

mod filters {
    pub mod build;
    pub mod chart;
    pub mod check;
    mod distinct;
    pub mod estimate;
    pub mod fold;
    pub mod info;
    pub mod merge;
    pub mod plan;
    mod sample;
}

mod indexes {
    pub mod find;
    pub mod index;
}

mod states {
    pub mod dedup;
    pub mod grow;
    mod insert;
    mod made;
    mod shards;
}

use std::io::{self, IsTerminal};
use std::process::{self, ExitCode};

use anyhow::{Error, Result, anyhow};
use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

use filters::{build, check, estimate, fold, info, merge, plan};
use indexes::{find, index};
use output::{Printer, is_pipe_closed};
use states::{dedup, grow};

/// Drop repeated lines; find files by their words; build and query Bloom filters
#[derive(Parser)]
#[command(
    name = "bloomline",
    version,
    max_term_width = 80,
    after_long_help = "\
`bloomline help COMMAND` describes each command. Exit status: 0 on
success; 2 on error, with one line on standard error; 1 from check if it
selected no line and from find if it found no file, as from grep.

Examples:
  bloomline dedup log.txt                  each distinct line once
  bloomline index --words -o i *.log.gz    an index over files
  bloomline find i 10.20.30.40             the files that may have it
  bloomline build -o keys.bloom keys.txt   a filter of the lines
  bloomline check keys.bloom lines.txt     lines possibly among keys.txt
  bloomline plan --keys 1e9 --fpr 1%       how large is such a filter?"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dedup(dedup::Arguments),
    Grow(grow::Arguments),
    #[command(mut_arg("output", |arg| arg.help("Index to write, or to update if it is there")))]
    #[command(mut_arg("files", |arg| arg.help("Files to index, plain or compressed, and folders of them")))]
    #[command(mut_arg("replace_state", |arg| arg.hide(true)))]
    Index(index::Arguments),
    Find(find::Arguments),
    Build(build::Arguments),
    Check(check::Arguments),
    #[command(mut_arg("files", |arg| arg.help("Files of lines as a sample, plain or compressed")))]
    #[command(mut_args(|arg| match arg.get_id().as_str() {
        "keep_empty" | "spans" => arg.hide(true),
        _ => arg,
    }))]
    Plan(plan::Arguments),
    Info(info::Arguments),
    Estimate(estimate::Arguments),
    Merge(merge::Arguments),
    Fold(fold::Arguments),
    Completions(shell::Completions),
    Man(shell::Man),
}

fn main() -> ExitCode {
    let begun = signals::let_writes_fail().map_err(Error::from);
    let code = match begun.and_then(|()| arguments()).and_then(run) {
        Ok(code) => code,
        // The status of a process that SIGPIPE ends, because shells do not report that signal.
        Err(error) if is_pipe_closed(&error) => ExitCode::from(128 + 13),
        Err(error) => {
            output::note(format_args!("{error:#}{}", remedy(&error)));
            ExitCode::from(2)
        }
    };
    signals::end_if_any();
    code
}

/// The arguments, or what is wrong with them in one line instead of clap's several.
fn arguments() -> Result<Arguments> {
    let error = match Arguments::try_parse() {
        Ok(arguments) => return Ok(arguments),
        Err(error) => error,
    };
    if !error.use_stderr() && !io::stdout().is_terminal() {
        // Help or version, printed here because clap would not report that it cannot be written.
        Printer::new().print(error.to_string())?;
        process::exit(0);
    }
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        error.exit();
    }
    let text = error.to_string();
    let lines: Vec<_> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let similar = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let similar = similar.iter().find_map(|&kind| error.get(kind));
    let suggestion = similar.map_or(String::new(), |similar| format!("did you mean {similar}? "));
    Err(anyhow!("{} ({suggestion}see --help)", lines.join(" ").trim_start_matches("error: ")))
}

/// What to do about the library's errors that do not say so.
fn remedy(error: &Error) -> &'static str {
    let is_refused = |error: &bloomline::Error| error.kind() == bloomline::ErrorKind::OutOfMemory;
    if error.downcast_ref().is_some_and(is_refused) {
        " (free some memory, or use a smaller filter)"
    } else {
        ""
    }
}

fn run(arguments: Arguments) -> Result<ExitCode> {
    match arguments.command {
        // These have exit statuses of their own.
        Command::Check(arguments) => return check::run(&arguments),
        Command::Dedup(arguments) => return dedup::run(&arguments),
        Command::Find(arguments) => return find::run(&arguments),
        Command::Index(arguments) => return index::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Build(arguments) => build::run(&arguments),
        Command::Grow(arguments) => grow::run(&arguments),
        Command::Info(arguments) => info::run(&arguments),
        Command::Estimate(arguments) => estimate::run(&arguments),
        Command::Merge(arguments) => merge::run(&arguments),
        Command::Fold(arguments) => fold::run(&arguments),
        Command::Completions(arguments) => shell::completions(&arguments, Arguments::command()),
        Command::Man(arguments) => shell::man(&arguments, Arguments::command()),
    }?;
    Ok(ExitCode::SUCCESS)
}
