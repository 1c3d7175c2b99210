//! `bloomline completions` and `bloomline man`
#![forbid(unsafe_code)]

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::{Args, Command};
use clap_complete::Shell;

use crate::output::Printer;

/// Print completions for a shell
#[derive(Args)]
#[command(after_help = "\
Examples:
  bloomline completions bash >~/.local/share/bash-completion/completions/bloomline
  bloomline completions fish >~/.config/fish/completions/bloomline.fish")]
pub struct Completions {
    /// Shell to print completions for
    shell: Shell,
}

/// Print the manual page of bloomline or of one of its commands
#[derive(Args)]
#[command(after_help = "\
Examples:
  mkdir -p ~/.local/share/man/man1
  bloomline man >~/.local/share/man/man1/bloomline.1
  bloomline man dedup >~/.local/share/man/man1/bloomline-dedup.1
  bloomline man dedup | man -l -")]
pub struct Man {
    /// Command to describe; bloomline itself if omitted
    command: Option<String>,
}

pub fn completions(arguments: &Completions, mut command: Command) -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "bloomline", &mut text);
    Printer::new().print(text)?;
    Ok(ExitCode::SUCCESS)
}

pub fn man(arguments: &Man, mut command: Command) -> Result<ExitCode> {
    command.build();
    if let Some(name) = &arguments.command {
        let found = command.find_subcommand(name).cloned();
        command = found.ok_or_else(|| anyhow!("{name}: not a command of bloomline (see --help)"))?;
    }
    // One description: clap_mangen would repeat the line under NAME, and put this under EXTRA.
    if let Some(description) = command.get_after_help().cloned() {
        command = command.long_about(description).after_help(None::<&str>);
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    Printer::new().print(text)?;
    Ok(ExitCode::SUCCESS)
}
