//! `oarsman run` in the foreground: shows the pods until they have ended or the command is interrupted, and then until they are removed.

use std::io;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use oarsman_agent::sources::manifest_set::ManifestSet;
use oarsman_agent::{AgentCommand, ReportStore};
use oarsman_clock::Clock;
use oarsman_core::report::NodeReport;
use oarsman_sync::ordered_watch;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::container_output::ContainerOutput;
use super::screen::Screen;
use super::{exit_code, pod_lines};
use crate::assembly::{self, Agent};
use crate::settings::AgentSettings;
use crate::signals::ShutdownSignals;

/// How long a runtime that listens may take to answer its first call.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// Faster updates could not be read.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
/// The display of elapsed seconds is redrawn each second.
const SECOND: Duration = Duration::from_secs(1);

/// Runs the pods of a bundle until they have ended, or the command is interrupted.
pub(super) async fn run_in_foreground(
    settings: &AgentSettings,
    manifest_set: ManifestSet,
    quiet: bool,
    clock: &Arc<dyn Clock>,
) -> Result<ExitCode> {
    let mut ending = ShutdownSignals::listen().context("cannot listen to signals")?;
    let agent = tokio::select! {
        agent = assemble(settings, manifest_set, clock) => agent?,
        () = ending.received() => return Ok(ExitCode::SUCCESS),
    };
    let leaving = agent.stop_requested();
    let connection_holder = agent.connection_holder();
    let mut watcher = Foreground::of(&agent, ending, quiet);
    watcher.print_header(settings)?;
    let ended = tokio::select! {
        ended = Agent::run(agent.drain_on(&leaving)) => ended.map(|()| ExitCode::SUCCESS),
        ended = watcher.watch(&leaving) => ended,
    };
    connection_holder.iter().for_each(|connection_holder| connection_holder.release());
    ended
}

async fn assemble(
    settings: &AgentSettings,
    manifest_set: ManifestSet,
    clock: &Arc<dyn Clock>,
) -> Result<Agent> {
    let assembled =
        timeout(MAX_WAIT, assembly::assemble(settings, Some(manifest_set), clock)).await;
    assembled.with_context(|| {
        let endpoint = &settings.runtime_endpoint;
        format!(
            "the runtime at {endpoint} does not answer: restart it, or name another with --runtime"
        )
    })?
}

/// What the foreground loop reads and writes.
struct Foreground {
    report_store: Arc<ReportStore>,
    changes: ordered_watch::Receiver<u64>,
    commands: mpsc::Sender<AgentCommand>,
    screen: Screen<io::Stdout>,
    /// The output of containers; none with `--quiet`.
    output: Option<ContainerOutput>,
    ending: ShutdownSignals,
}

impl Foreground {
    fn of(agent: &Agent, ending: ShutdownSignals, quiet: bool) -> Self {
        let report_store = agent.report_store();
        let (changes, screen) = (report_store.changes(), Screen::of_stdout());
        let output = (!quiet).then(ContainerOutput::default);
        Self { changes, commands: agent.commands(), screen, output, ending, report_store }
    }

    fn print_header(&mut self, settings: &AgentSettings) -> io::Result<()> {
        let runtime = self.report_store.report().runtime;
        let (name, version) = (runtime.name, runtime.version);
        self.screen.print(&format!("on {name} {version} at {}", settings.runtime_endpoint))
    }

    /// Shows the pods until they have ended or the command is interrupted; and then until they are removed.
    async fn watch(&mut self, leaving: &CancellationToken) -> Result<ExitCode> {
        let code = loop {
            let report = self.show()?;
            if let Some(code) = exit_code::exit_code(&report) {
                break code;
            }
            let pause = self.pause();
            tokio::select! {
                () = self.ending.received() => break 0,
                () = leaving.cancelled() => break 0,
                () = wait_for_change(&mut self.changes, pause) => {}
            }
        };
        leaving.cancel();
        self.wait_until_gone().await?;
        Ok(ExitCode::from(code))
    }

    /// After how long to redraw without a change of the report, for containers' output and elapsed seconds.
    fn pause(&self) -> Option<Duration> {
        match &self.output {
            Some(_) => Some(REDRAW_INTERVAL),
            None => self.screen.is_live().then_some(SECOND - REDRAW_INTERVAL),
        }
    }

    fn show(&mut self) -> io::Result<NodeReport> {
        let report = self.report_store.report();
        if let Some(output) = &mut self.output {
            output.read(&report)?.iter().try_for_each(|line| self.screen.print(line))?;
        }
        self.screen.show(&pod_lines::lines(&report))?;
        Ok(report)
    }

    async fn wait_until_gone(&mut self) -> Result<()> {
        self.screen.print("taking the pods down; interrupt again to leave them")?;
        let (tell, empty) = oneshot::channel();
        self.commands
            .send(AgentCommand::NotifyWhenEmpty(tell))
            .await
            .context("the agent has ended")?;
        let mut empty = pin!(empty);
        let begun = Instant::now();
        loop {
            let (report, pause) = (self.show()?, self.pause());
            tokio::select! {
                gone = &mut empty => {
                    self.show()?;
                    return gone.context("the agent has ended");
                }
                // One press of Ctrl-C may arrive as several signals.
                () = self.ending.received() => if begun.elapsed() > SECOND {
                    bail!("interrupted: {} pods are left as they are", report.pods.len());
                },
                () = wait_for_change(&mut self.changes, pause) => {}
            }
        }
    }
}

/// Waits until the report has changed, or the pause is over.
async fn wait_for_change(changes: &mut ordered_watch::Receiver<u64>, pause: Option<Duration>) {
    sleep(REDRAW_INTERVAL).await;
    let pause = async {
        match pause {
            Some(pause) => sleep(pause).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        changed = changes.changed() => if changed.is_err() {
            // The agent has ended, and this future is about to be dropped.
            std::future::pending::<()>().await;
        },
        () = pause => {}
    }
}
