//! `oarsman logs`: prints containers' logs, from the files that the runtime writes.

pub(super) mod choose;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::ContainerStatus;
use oarsman_core::cri_spec::log_directory;
use oarsman_core::duration;
use oarsman_core::pod::PodExt;
use oarsman_core::report::{NodeReport, PodReport, StageReport};
use oarsman_host::inotify::AsyncInotify;
use oarsman_server::logs::{LogFollower, LogPrinter, PrintOptions, files};
use tokio::time::sleep;

use super::output::print_stderr;
use super::{AgentSelector, find_pod};
use crate::control_sequences::strip_control_sequences;
use crate::local_api::LocalClient;
use crate::threads;

use choose::ChosenContainers;

/// How often the agent is asked whether the container may still write.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Whose logs, and which part of them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  oarsman logs web                what the pod's container wrote
  oarsman logs -f web             go on with what it writes, also after a restart
  oarsman logs -c proxy web       of one of several containers
  oarsman logs --previous web     of the container before its last restart
  oarsman logs --since 5m --timestamps --all-containers web")]
pub(crate) struct Flags {
    /// The pod: NAME, NAMESPACE/NAME or how it begins.
    pod: String,
    /// Go on with what is written until the pod is gone, over rotations and restarts.
    #[arg(long, short, conflicts_with = "previous")]
    follow: bool,
    /// The container.
    #[arg(long, short, conflicts_with = "all_containers")]
    container: Option<String>,
    /// Of the container before the last restart.
    #[arg(long, short)]
    previous: bool,
    /// Only the last so many lines.
    #[arg(long, value_name = "LINES")]
    tail: Option<usize>,
    /// Only what was written in this last time, such as 5m or 1h30m.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    since: Option<Duration>,
    /// With the time before every line.
    #[arg(long)]
    timestamps: bool,
    /// Of all containers of the pod.
    #[arg(long)]
    all_containers: bool,
    /// With the name of the container before every line.
    #[arg(long)]
    prefix: bool,
    #[command(flatten)]
    agent: AgentSelector,
}

/// Shows logs.
pub(crate) fn run(flags: &Flags) -> Result<()> {
    threads::block_on(async {
        let (client, node) = flags.agent.fetch_report().await?;
        let pod = find_pod::find(&node, &flags.pod)?;
        let ChosenContainers { containers, remark: said } =
            choose::containers(&pod.pod, flags.container.as_deref(), flags.all_containers)?;
        said.iter().try_for_each(|said| print_stderr(said))?;
        let logs: Vec<ContainerLog<'_>> = containers
            .iter()
            .map(|container| ContainerLog { flags, node: &node, pod, container })
            .collect();
        if flags.follow {
            return try_join_all(logs.iter().map(|log| log.follow(&client))).await.map(drop);
        }
        logs.iter().try_for_each(ContainerLog::show)
    })
}

/// The log of one container.
struct ContainerLog<'a> {
    flags: &'a Flags,
    node: &'a NodeReport,
    pod: &'a PodReport,
    container: &'a str,
}

impl ContainerLog<'_> {
    fn directory(&self) -> PathBuf {
        log_directory(self.node.pod_logs.as_ref(), &self.pod.pod).join(self.container)
    }

    fn printer(&self) -> LogPrinter {
        let since = self.flags.since.and_then(|since| self.node.now.checked_sub(since).ok());
        let prefix = self.flags.prefix.then(|| format!("[{}] ", self.container));
        LogPrinter::new(PrintOptions { since, prefix, timestamps: self.flags.timestamps })
    }

    /// Prints the log as it is now.
    fn show(&self) -> Result<()> {
        let directory = self.directory();
        let attempts = files::attempts(&directory)
            .with_context(|| format!("cannot read the logs in {}", directory.display()))?;
        let back = usize::from(self.flags.previous && !self.is_waiting_for_restart());
        let Some(attempt) = attempts.iter().rev().nth(back) else {
            bail!(self.missing_log_message())
        };
        let mut printer = self.printer();
        let mut log = LogFollower::at(&directory, *attempt, self.flags.tail)?;
        log.read_one(&mut |line| print(&mut printer, line))?;
        Ok(flush()?)
    }

    fn status(&self) -> Option<ContainerStatus> {
        let status = self.pod.pod.status.clone().unwrap_or_default();
        let all = [status.init_container_statuses, status.container_statuses];
        all.into_iter().flatten().flatten().find(|it| it.name == self.container)
    }

    /// Whether the last log is that of the previous start, since the container waits to be restarted.
    fn is_waiting_for_restart(&self) -> bool {
        let state = self.status().and_then(|it| it.state);
        state.is_some_and(|state| state.waiting.is_some())
    }

    /// Why there is no log to print.
    fn missing_log_message(&self) -> String {
        let (container, pod) = (self.container, find_pod::display_name(self.pod));
        if self.flags.previous {
            return format!(
                "container {container} of pod {pod} has no log before its last restart"
            );
        }
        let reason = self.status().and_then(|it| it.state?.waiting?.reason);
        let why = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        format!(
            "container {container} of pod {pod} has written nothing yet{why}: see `oarsman explain {pod}`"
        )
    }

    /// Prints the log and what is appended, until the container can write no more.
    async fn follow(&self, client: &LocalClient) -> Result<()> {
        let directory = self.directory();
        let mut printer = self.printer();
        let mut listener = AsyncInotify::watching_writes().ok();
        let (mut log, mut over) = (None, self.has_ended(client).await);
        loop {
            if let Some(listener) = &mut listener {
                // A directory that does not exist yet is looked for every second.
                listener.watch(&directory, None).ok();
            }
            if log.is_none() {
                log = LogFollower::at_last(&directory, self.flags.tail)?;
            }
            if let Some(log) = &mut log {
                log.read(&mut |line| print(&mut printer, line))?;
                flush()?;
            }
            if over {
                return Ok(());
            }
            tokio::select! {
                () = AsyncInotify::changed_or_never(&mut listener) => {}
                // A container that writes is alive: the agent need not be asked.
                () = sleep(POLL_INTERVAL) => over = self.has_ended(client).await,
            }
        }
    }

    /// Whether nothing more will be written to the log.
    async fn has_ended(&self, client: &LocalClient) -> bool {
        let uid = self.pod.pod.uid();
        match client.report().await {
            Ok(node) => {
                let pod = node.pods.iter().find(|pod| pod.pod.uid() == uid);
                pod.is_none_or(|pod| container_has_ended(pod, self.container))
            }
            // Pods outlive a kubelet; those of `oarsman run` are removed before it ends.
            Err(_) => !self.directory().exists(),
        }
    }
}

/// Whether a container will not be started again.
fn container_has_ended(pod: &PodReport, container: &str) -> bool {
    let status = pod.pod.status.clone().unwrap_or_default();
    let ended = |it: &ContainerStatus| {
        let ended = it.state.as_ref().and_then(|state| state.terminated.as_ref());
        it.name == container && ended.is_some_and(|ended| ended.exit_code == 0)
    };
    let nothing_runs = matches!(pod.stage, StageReport::Terminated | StageReport::Finished);
    nothing_runs || status.init_container_statuses.iter().flatten().any(ended)
}

fn print(printer: &mut LogPrinter, line: &[u8]) -> io::Result<()> {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    printer.print(line, &mut out, &mut err)?;
    write_shown(&mut io::stdout().lock(), &out)?;
    write_shown(&mut io::stderr().lock(), &err)
}

/// Programs get what the container has written, a terminal what does not control it.
fn write_shown(to: &mut (impl Write + IsTerminal), bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() || !to.is_terminal() {
        return to.write_all(bytes);
    }
    to.write_all(strip_control_sequences(&String::from_utf8_lossy(bytes)).as_bytes())
}

fn flush() -> io::Result<()> {
    io::stdout().lock().flush()
}
