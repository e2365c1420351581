//! What exec and attach have in common: the container that is meant, and its streams on this terminal.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;

use anyhow::{Result, bail};
use oarsman_core::ids::FullName;
use oarsman_core::pod::PodExt;
use oarsman_core::report::{NodeReport, PodReport};
use oarsman_streaming::command_client::{self, CommandStreams};

use super::logs::choose;
use super::output::print_stderr;
use super::raw_terminal::{self, RawTerminal};
use super::{AgentSelector, find_pod};
use crate::local_api::{CommandRequest, LocalClient};

/// A container of a pod, and the agent that has it.
pub(super) struct CommandTarget {
    pub(super) client: LocalClient,
    pub(super) pod: FullName,
    pub(super) container: String,
    /// Whether the container was made with a terminal.
    pub(super) tty: bool,
}

/// Finds the container: the named one, or the default one of the pod.
pub(super) async fn find_target(
    agent: &AgentSelector,
    pod: &str,
    container: Option<&str>,
) -> Result<CommandTarget> {
    let (client, node): (LocalClient, NodeReport) = agent.fetch_report().await?;
    let pod: &PodReport = find_pod::find(&node, pod)?;
    let chosen = choose::containers(&pod.pod, container, false)?;
    let Some(container) = chosen.containers.into_iter().next() else {
        bail!("pod {} has no container", find_pod::display_name(pod))
    };
    let tty = oarsman_core::streaming_request::has_terminal(&pod.pod, &container);
    Ok(CommandTarget { client, pod: pod.pod.full_name(), container, tty })
}

/// Talks to the command over this process's own streams, and ends with its exit code.
pub(super) async fn talk(target: &CommandTarget, request: &CommandRequest) -> Result<ExitCode> {
    // Entered before the command runs, for without a terminal it must not; dropped before anything is printed.
    let terminal = (request.tty && request.stdin).then(RawTerminal::enter).transpose()?;
    let connection = target.client.command(&target.pod, &target.container, request).await?;
    let sizes = terminal.is_some().then(raw_terminal::sizes).transpose()?;
    let streams = CommandStreams {
        stdin: request.stdin.then(|| shared(&io::stdin())).transpose()?,
        stdout: shared(&io::stdout())?,
        stderr: shared(&io::stderr())?,
        sizes,
    };
    let ended = command_client::run(connection.stream, streams).await;
    drop(terminal);
    match ended? {
        0 => Ok(ExitCode::SUCCESS),
        code => {
            print_stderr(&format!("command terminated with exit code {code}"))?;
            Ok(ExitCode::from(code))
        }
    }
}

/// A stream of this process for a task; what blocks is done on a thread of its own.
fn shared(stream: &impl AsFd) -> io::Result<tokio::fs::File> {
    let file = File::from(stream.as_fd().try_clone_to_owned()?);
    Ok(tokio::fs::File::from_std(file))
}
