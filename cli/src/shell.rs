//! `bloomline completions` and `bloomline man`
#![forbid(unsafe_code)]

use anyhow::{Result, anyhow};
use clap::{Args, Command};
use clap_complete::Shell;

use crate::output::Printer;

/// Print completions for a shell
#[derive(Args)]
#[command(after_long_help = "\
Write them to a file that your shell reads, and start a new shell.

Examples:
  cd ~/.local/share/bash-completion/completions
  bloomline completions bash >bloomline
  bloomline completions fish >~/.config/fish/completions/bloomline.fish")]
pub struct Completions {
    /// Shell to print completions for
    shell: Shell,
}

/// Print the manual page of bloomline or of one of its commands
#[derive(Args)]
#[command(after_long_help = "\
The page has the text of `bloomline help COMMAND`.

Examples:
  mkdir -p ~/.local/share/man/man1
  bloomline man dedup >~/.local/share/man/man1/bloomline-dedup.1
  bloomline man dedup | man -l -")]
pub struct Man {
    /// Command to describe; bloomline itself if omitted
    command: Option<String>,
}

pub fn completions(arguments: &Completions, mut command: Command) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "bloomline", &mut text);
    Printer::new().print(text)
}

pub fn man(arguments: &Man, mut command: Command) -> Result<()> {
    command.build();
    if let Some(name) = &arguments.command {
        let found = command.find_subcommand(name).cloned();
        command = found.ok_or_else(|| anyhow!("{name}: not a command of bloomline (see --help)"))?;
    }
    // clap_mangen would repeat the line under NAME, and put all of this under EXTRA.
    let help = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    if let Some((description, examples)) = help.as_ref().and_then(|help| help.split_once("\n\nExample")) {
        let examples = examples.split_once('\n').map_or(String::new(), |(_, examples)| examples.into());
        let description = description.to_owned();
        command = command.long_about(description).after_help(None::<&str>).after_long_help(examples);
    }
    let mut page = Vec::new();
    let source = concat!("bloomline ", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command).source(source).render(&mut page)?;
    Printer::new().print(with_tables(&String::from_utf8(page)?))
}

/// Keeps indented lines, which are examples and tables, and does not hyphenate words.
fn with_tables(page: &str) -> String {
    let (mut text, mut is_table) = (String::new(), false);
    let page = page.replace(".SH EXTRA", ".SH EXAMPLES").replace(".SH SYNOPSIS", ".nh\n.SH SYNOPSIS");
    for line in page.lines() {
        let is_indented = line.starts_with(' ');
        if is_indented != is_table {
            text += if is_indented { ".nf\n" } else { ".fi\n" };
            is_table = is_indented;
        }
        text += line;
        text.push('\n');
    }
    text + if is_table { ".fi\n" } else { "" }
}
