//! The commands that ask a running agent over its local socket: each fetches the agent's report and shows a part of it.

mod age;
mod attach;
mod completions;
mod cp;
mod describe;
mod events;
mod exec;
mod explain;
mod find_pod;
mod image;
pub(crate) mod logs;
#[cfg(test)]
mod manual;
mod output;
mod pod_summary;
mod port_forward;
mod ps;
mod raw_terminal;
mod remote_command;
mod stop;
mod table;
mod top;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use oarsman_core::report::NodeReport;

use crate::local_api::{ClientError, LocalClient};

pub(crate) use output::is_broken_pipe;

/// What may be asked.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Show this node's pods, a line each.
    Ps(ps::Flags),
    /// Show everything about one pod.
    Describe(describe::Flags),
    /// Show how much CPU time and memory pods or the node use.
    Top(top::Flags),
    /// Show what happened to pods of late.
    Events(events::Flags),
    /// Show what a pod's containers wrote.
    Logs(logs::Flags),
    /// Tell why a pod is as it is, and what to do about it.
    Explain(explain::Flags),
    /// Run a command in a container.
    Exec(exec::Flags),
    /// Talk to the process that a container runs.
    Attach(attach::Flags),
    /// Copy files to a container or from one; it needs a tar.
    Cp(cp::Flags),
    /// Make ports of a pod ports of this machine, until interrupted.
    PortForward(port_forward::Flags),
    /// Take pods of `oarsman run` down, and wait until they are gone.
    Stop(stop::Flags),
    /// Import, show and remove images of the embedded runtime.
    Image(image::Flags),
    /// Write what a shell needs to complete commands and flags.
    Completions(completions::Flags),
}

impl ClientCommand {
    /// Runs the command; `program` is the whole program with all its commands.
    pub(crate) fn run(&self, program: fn() -> clap::Command) -> Result<ExitCode> {
        match self {
            Self::Exec(flags) => return exec::run(flags),
            Self::Attach(flags) => return attach::run(flags),
            Self::Cp(flags) => cp::run(flags),
            Self::PortForward(flags) => port_forward::run(flags),
            Self::Ps(flags) => ps::run(flags),
            Self::Top(flags) => top::run(flags),
            Self::Describe(flags) => describe::run(flags),
            Self::Events(flags) => events::run(flags),
            Self::Logs(flags) => logs::run(flags),
            Self::Explain(flags) => explain::run(flags),
            Self::Stop(flags) => stop::run(flags),
            Self::Image(flags) => image::run(flags),
            Self::Completions(flags) => completions::run(flags, program()),
        }
        .map(|()| ExitCode::SUCCESS)
    }
}

/// The root directories that are tried by default: of `oarsman run`, and of a kubelet.
const DEFAULT_ROOTS: [&str; 2] = ["/var/lib/oarsman", "/var/lib/kubelet"];

/// Which agent is asked.
#[derive(Debug, Args)]
pub(crate) struct AgentSelector {
    /// The root directory of the agent; by default /var/lib/oarsman if an agent is there, else /var/lib/kubelet.
    #[arg(long, value_name = "DIRECTORY")]
    root_dir: Option<PathBuf>,
}

impl AgentSelector {
    /// The client of the selected agent, and its report.
    async fn fetch_report(&self) -> Result<(LocalClient, NodeReport)> {
        if let Some(root) = &self.root_dir {
            let client = LocalClient::new(root);
            return match client.report().await {
                Ok(report) => Ok((client, report)),
                Err(ClientError::NotRunning(_)) => {
                    bail!("no agent answers in {}: {START}", root.display())
                }
                Err(silence) => Err(silence.into()),
            };
        }
        for root in DEFAULT_ROOTS {
            let client = LocalClient::new(Path::new(root));
            match client.report().await {
                Ok(report) => return Ok((client, report)),
                Err(ClientError::NotRunning(_)) => {}
                Err(silence) => return Err(silence.into()),
            }
        }
        bail!("no agent answers in {}: {START}", DEFAULT_ROOTS.join(" or in "))
    }
}

const START: &str =
    "start one with `oarsman run FILE`, or say with --root-dir where the agent's directory is";
