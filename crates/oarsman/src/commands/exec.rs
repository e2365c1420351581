//! `oarsman exec`: runs a command in a container.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::{AgentSelector, remote_command};
use crate::local_api::CommandRequest;
use crate::threads;

/// Where, and which command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  oarsman exec web -- ls /                what the container has
  oarsman exec -it web -- sh              a shell in it
  oarsman exec -c proxy web -- ps         in one of several containers
  oarsman exec -i db -- psql < dump.sql   with input")]
pub(crate) struct Flags {
    /// The pod: NAME, NAMESPACE/NAME or how it begins.
    pod: String,
    /// The container.
    #[arg(long, short)]
    container: Option<String>,
    /// Pass this command's input on.
    #[arg(long, short = 'i')]
    stdin: bool,
    /// Give the command a terminal.
    #[arg(long, short)]
    tty: bool,
    /// The command and its arguments, after `--`.
    #[arg(required = true, last = true)]
    command: Vec<String>,
    #[command(flatten)]
    agent: AgentSelector,
}

/// Runs the command.
pub(crate) fn run(flags: &Flags) -> Result<ExitCode> {
    threads::block_on(async {
        let container = flags.container.as_deref();
        let target = remote_command::find_target(&flags.agent, &flags.pod, container).await?;
        let command = flags.command.clone();
        let request = CommandRequest { command, stdin: flags.stdin, tty: flags.tty };
        remote_command::talk(&target, &request).await
    })
}
