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
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::container_output::ContainerOutput;
use super::screen::Screen;
use super::{exit_code, leftover_pods, pod_lines};
use crate::assembly::{self, Agent, AgentRuntime};
use crate::runtime_endpoint::{RuntimeEndpoint, embedded_directory};
use crate::settings::AgentSettings;
use crate::signals::ShutdownSignals;

/// How long a runtime that listens may take to answer its first call.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// Faster updates could not be read.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
/// How often the rest of containers' output is read in the end: up to 10 MiB of each.
const MAX_LAST_ROUNDS: usize = 40;
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
    let mut display = Some(Display::of_stdout(quiet));
    print(&mut display, vec![opening(settings)]).await?;
    let assembling = async {
        tokio::join!(assemble(settings, manifest_set, clock), leftover_pods::find(settings))
    };
    let (agent, leftover) = tokio::select! {
        both = assembling => both,
        () = ending.received() => return Ok(ExitCode::SUCCESS),
    };
    let agent = agent?;
    let stopping = agent.stop_requested();
    let (runtime, _locks) = (agent.runtime(), agent.locks());
    let mut watcher = Foreground::of(&agent, ending, display);
    watcher.print_header(settings, leftover).await?;
    let ended = tokio::select! {
        ended = Agent::run(agent.drain_on(&stopping)) => ended.map(|()| ExitCode::SUCCESS),
        ended = watcher.watch(&stopping) => ended,
    };
    runtime.release().await;
    ended
}

async fn assemble(
    settings: &AgentSettings,
    manifest_set: ManifestSet,
    clock: &Arc<dyn Clock>,
) -> Result<Agent> {
    let assembled =
        timeout(MAX_WAIT, assembly::assemble(settings, Some(manifest_set), clock)).await;
    assembled.with_context(|| match &settings.runtime_endpoint {
        RuntimeEndpoint::Embedded => {
            format!("the embedded runtime was not opened within {MAX_WAIT:?}: see the agent's log")
        }
        RuntimeEndpoint::Socket(address) => format!(
            "the runtime at {address} does not answer: restart it, or name another with --runtime"
        ),
    })?
}

/// What is about to be done, for people who wait.
fn opening(settings: &AgentSettings) -> String {
    match &settings.runtime_endpoint {
        RuntimeEndpoint::Embedded => {
            let directory = embedded_directory(&settings.root);
            format!("opening the embedded runtime in {}", directory.display())
        }
        RuntimeEndpoint::Socket(address) => format!("connecting to the runtime at {address}"),
    }
}

/// Writes on a thread that may wait for the terminal.
async fn write<T: Send + 'static>(
    to: &mut Option<Display>,
    work: impl FnOnce(&mut Display) -> io::Result<T> + Send + 'static,
) -> Result<T> {
    let mut display = to.take().context("the output failed before")?;
    let written = spawn_blocking(move || {
        let written = work(&mut display);
        (display, written)
    });
    let (display, written) = written.await?;
    *to = Some(display);
    Ok(written?)
}

async fn print(to: &mut Option<Display>, lines: Vec<String>) -> Result<()> {
    write(to, move |display| lines.iter().try_for_each(|line| display.screen.print(line))).await
}

/// What the foreground loop reads and writes.
struct Foreground {
    runtime: AgentRuntime,
    /// How many changes of this machine were told.
    told_changes: usize,
    report_store: Arc<ReportStore>,
    changes: ordered_watch::Receiver<u64>,
    commands: mpsc::Sender<AgentCommand>,
    /// None while a thread writes.
    display: Option<Display>,
    ending: ShutdownSignals,
}

/// What is written to the terminal, which may be slow or stopped.
struct Display {
    screen: Screen<io::Stdout>,
    /// The output of containers; none with `--quiet`.
    output: Option<ContainerOutput>,
}

impl Display {
    fn of_stdout(quiet: bool) -> Self {
        let output = (!quiet).then(ContainerOutput::default);
        Self { screen: Screen::of_stdout(), output }
    }

    fn show(&mut self, report: &NodeReport) -> io::Result<()> {
        if let Some(output) = &mut self.output {
            output.read(report).iter().try_for_each(|line| self.screen.print(line))?;
        }
        self.screen.show(&pod_lines::lines(report))
    }

    fn is_behind(&self) -> bool {
        self.output.as_ref().is_some_and(ContainerOutput::is_behind)
    }

    /// After how long to redraw without a change of the report, for containers' output and elapsed seconds.
    fn pause(&self) -> Option<Duration> {
        match &self.output {
            Some(output) if output.is_behind() => Some(Duration::ZERO),
            Some(_) => Some(REDRAW_INTERVAL),
            None => self.screen.is_live().then_some(SECOND - REDRAW_INTERVAL),
        }
    }
}

impl Foreground {
    fn of(agent: &Agent, ending: ShutdownSignals, display: Option<Display>) -> Self {
        let report_store = agent.report_store();
        Self {
            runtime: agent.runtime(),
            told_changes: 0,
            changes: report_store.changes(),
            commands: agent.commands(),
            display,
            ending,
            report_store,
        }
    }

    async fn print_header(
        &mut self,
        settings: &AgentSettings,
        leftover: Vec<String>,
    ) -> Result<()> {
        let runtime = self.report_store.report().runtime;
        let (name, version) = (runtime.name, runtime.version);
        let header = match &settings.runtime_endpoint {
            RuntimeEndpoint::Embedded => format!("on the embedded runtime of {name} {version}"),
            RuntimeEndpoint::Socket(address) => format!("on {name} {version} at {address}"),
        };
        print(&mut self.display, leftover.into_iter().chain([header]).collect()).await
    }

    /// Shows the pods until they have ended or the command is interrupted; and then until they are removed.
    async fn watch(&mut self, stopping: &CancellationToken) -> Result<ExitCode> {
        let code = loop {
            let report = self.show().await?;
            if let Some(code) = exit_code::exit_code(&report) {
                break code;
            }
            let pause = self.pause();
            tokio::select! {
                () = self.ending.received() => break 0,
                () = stopping.cancelled() => break 0,
                () = wait_for_change(&mut self.changes, pause) => {}
            }
        };
        stopping.cancel();
        self.wait_until_gone().await?;
        Ok(ExitCode::from(code))
    }

    fn pause(&self) -> Option<Duration> {
        self.display.as_ref().and_then(Display::pause)
    }

    async fn show(&mut self) -> Result<NodeReport> {
        let changes = self.runtime.host_changes().split_off(self.told_changes);
        if !changes.is_empty() {
            self.told_changes += changes.len();
            print(&mut self.display, changes).await?;
        }
        let report = self.report_store.report();
        write(&mut self.display, move |display| display.show(&report).map(|()| report)).await
    }

    /// What containers have written until now, as far as it is not too much.
    async fn show_rest(&mut self) -> Result<()> {
        for _ in 0..MAX_LAST_ROUNDS {
            self.show().await?;
            if !self.display.as_ref().is_some_and(Display::is_behind) {
                break;
            }
        }
        Ok(())
    }

    async fn wait_until_gone(&mut self) -> Result<()> {
        let said = "taking the pods down; interrupt again to leave them";
        print(&mut self.display, vec![said.to_owned()]).await?;
        let (tell, empty) = oneshot::channel();
        self.commands
            .send(AgentCommand::NotifyWhenEmpty(tell))
            .await
            .context("the agent has ended")?;
        let mut empty = pin!(empty);
        let begun = Instant::now();
        loop {
            let report = self.show().await?;
            let pause = self.pause();
            tokio::select! {
                gone = &mut empty => {
                    self.show_rest().await?;
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
    // Not before the pause is over: what is behind reads on at once.
    sleep(pause.map_or(REDRAW_INTERVAL, |pause| pause.min(REDRAW_INTERVAL))).await;
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
