//! `oarsman attach`: talks to the process that a container runs.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::{AgentSelector, remote_command};
use crate::local_api::CommandRequest;
use crate::threads;

/// To which container.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  oarsman attach web           what the container writes from now on
  oarsman attach -i shell      with input, if the container takes one (stdin: true)")]
pub(crate) struct Flags {
    /// The pod: NAME, NAMESPACE/NAME or how it begins.
    pod: String,
    /// The container.
    #[arg(long, short)]
    container: Option<String>,
    /// Pass this command's input on.
    #[arg(long, short = 'i')]
    stdin: bool,
    #[command(flatten)]
    agent: AgentSelector,
}

/// Attaches. Whether there is a terminal was decided when the container was made.
pub(crate) fn run(flags: &Flags) -> Result<ExitCode> {
    threads::block_on(async {
        let container = flags.container.as_deref();
        let target = remote_command::find_target(&flags.agent, &flags.pod, container).await?;
        let request = CommandRequest { stdin: flags.stdin, tty: target.tty, ..Default::default() };
        remote_command::talk(&target, &request).await
    })
}
