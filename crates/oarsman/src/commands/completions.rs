//! `oarsman completions`: the script by which a shell completes our commands and flags.

use std::io::Write;

use anyhow::Result;
use clap::{Args, Command, ValueEnum};
use clap_complete::{generate, shells};

use super::output::print;

/// Which shell it is for.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  oarsman completions bash > /etc/bash_completion.d/oarsman
  oarsman completions zsh > \"${fpath[1]}/_oarsman\"
  oarsman completions fish > ~/.config/fish/completions/oarsman.fish")]
pub(crate) struct Flags {
    /// The shell.
    shell: Shell,
}

/// Which shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Writes the script for a shell.
pub(crate) fn run(flags: &Flags, mut program: Command) -> Result<()> {
    let mut script = Vec::new();
    write(flags.shell, &mut program, &mut script);
    print(&String::from_utf8_lossy(&script))
}

fn write(shell: Shell, program: &mut Command, script: &mut impl Write) {
    match shell {
        Shell::Bash => generate(shells::Bash, program, "oarsman", script),
        Shell::Zsh => generate(shells::Zsh, program, "oarsman", script),
        Shell::Fish => generate(shells::Fish, program, "oarsman", script),
    }
}
