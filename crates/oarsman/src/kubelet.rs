//! `oarsman kubelet`: the node's agent, with the flags and the configuration of the Go kubelet.

mod agent_settings;
mod credential_providers;
mod files;
mod ignored_settings;
mod image_settings;
mod metrics;
mod node_endpoints;
mod node_status;
mod preflight;
mod security_settings;
mod server;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use oarsman_agent::AgentCommand;
use oarsman_clock::Clock;
use oarsman_kubelet_config::flags::{self, Flag, ParsedFlags, RequestedAction};
use oarsman_kubelet_config::{LoadedConfig, Problems};
use oarsman_sync::{TaskName, Tasks};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::logging::LogControl;
use crate::settings::AgentSettings;
use crate::signals::ShutdownSignals;
use crate::{assembly, threads};

use metrics::KubeletMetrics;
use server::{AgentHost, ServerInputs, ServingPlan};

/// The version of Kubernetes whose kubelet this one behaves like, with the version of Oarsman, in the form that tools parse.
const VERSION: &str = concat!("Kubernetes v1.36.3+oarsman.", env!("CARGO_PKG_VERSION"));

/// The version as it stands in the Node object.
fn kubernetes_version() -> &'static str {
    VERSION.trim_start_matches("Kubernetes ")
}

/// How long the last pod statuses may take to reach the API server when the kubelet ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the last spans have: a restart does not wait for a collector.
const SPANS_DEADLINE: Duration = Duration::from_millis(500);

/// The words of the command line, which the Go kubelet's rules are for.
#[derive(Debug, clap::Args)]
pub(crate) struct KubeletArguments {
    /// Flags of the kubelet; see `oarsman kubelet --help`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
    words: Vec<String>,
}

impl KubeletArguments {
    /// The arguments of a program whose own name is `kubelet`.
    pub(crate) fn new(words: Vec<String>) -> Self {
        Self { words }
    }
}

/// Runs the agent until it is told to end. Pods stay.
#[expect(clippy::print_stdout, reason = "help and version are what was asked for")]
pub(crate) fn run(words: &KubeletArguments, clock: &Arc<dyn Clock>) -> Result<ExitCode> {
    let given =
        flags::parse(&words.words).map_err(|problems| problems_error("these flags", &problems))?;
    match given.action {
        RequestedAction::Help => print!("{}", flags::help()),
        RequestedAction::Version => println!("{VERSION}"),
        RequestedAction::Run => return start(&given, clock),
    }
    Ok(ExitCode::SUCCESS)
}

/// From here on there is a log: the error that ends the kubelet is logged as a line like all others, and printed only if the log is a file.
fn start(given: &ParsedFlags, clock: &Arc<dyn Clock>) -> Result<ExitCode> {
    let loaded = files::load(given)?;
    let logging = agent_settings::logging(&loaded, &given.program);
    let is_on_stderr = logging.file.is_none();
    let log = logging.start(clock).context("cannot start the log")?;
    let Err(error) = run_agent(given, &loaded, log.control(), clock) else {
        return Ok(ExitCode::SUCCESS);
    };
    tracing::error!(task = "kubelet", error = format!("{error:#}"), "kubelet failed, exiting");
    if is_on_stderr { Ok(ExitCode::FAILURE) } else { Err(error) }
}

fn run_agent(
    given: &ParsedFlags,
    loaded: &LoadedConfig,
    log: LogControl,
    clock: &Arc<dyn Clock>,
) -> Result<()> {
    log_warnings(given, loaded);
    preflight::check(&loaded.configuration)?;
    preflight::check_addresses(&given.program)?;
    agent_settings::prepare_process(loaded);
    let settings = agent_settings::settings(loaded, &given.program)?;
    let serving = ServingPlan::new(&loaded.configuration, &given.program, &settings.node_name);
    let serving = serving.with_node_endpoints(node_endpoints::settings(
        &loaded.configuration,
        &given.program,
        clock.wall(),
    ));
    threads::block_on(run_until_signalled(&settings, serving, log, clock))
}

async fn run_until_signalled(
    settings: &AgentSettings,
    serving: ServingPlan,
    log: LogControl,
    clock: &Arc<dyn Clock>,
) -> Result<()> {
    let mut ending = ShutdownSignals::listen().context("cannot listen to signals")?;
    let agent = tokio::select! {
        agent = assembly::assemble(settings, None, clock) => agent?,
        () = ending.received() => return Ok(()),
    };
    let (runtime, _locks, commands) = (agent.runtime(), agent.locks(), agent.commands());
    let span_exporter = agent.span_exporter();
    let end = CancellationToken::new();
    let told = async {
        ending.received().await;
        end.cancel();
        tracing::info!(task = "kubelet", "termination signal received, exiting, pods keep running");
        flush_statuses(&commands).await;
    };
    let inputs = ServerInputs {
        streaming: serving.streaming(&agent),
        plan: serving,
        host: Arc::new(AgentHost::new(&agent, settings, log, clock)),
        metrics: Arc::new(KubeletMetrics::new(&agent, settings, clock)),
        client: agent.client(),
        addresses: agent.node_addresses(),
        clock: Arc::clone(clock),
        panics: agent.panics(),
        end: end.clone(),
    };
    let mut tasks = Tasks::new(agent.panics());
    tasks.spawn(TaskName::KubeletServer, move || {
        let inputs = inputs.clone();
        async move { match server::serve(inputs).await {} }
    });
    let ended = tokio::select! {
        ended = agent.run() => ended,
        () = tasks.restart_panicked() => Ok(()),
        () = told => Ok(()),
    };
    runtime.release().await;
    if let Some(exporter) = span_exporter {
        exporter.flush(SPANS_DEADLINE).await;
    }
    ended
}

/// Sends pod statuses that are still queued, unless that takes too long.
async fn flush_statuses(commands: &mpsc::Sender<AgentCommand>) {
    let heard = async {
        let (tell, told) = oneshot::channel();
        commands.send(AgentCommand::NotifyWhenStatusesSent(tell)).await.ok()?;
        told.await.ok()
    };
    if timeout(FLUSH_TIMEOUT, heard).await.is_err() {
        tracing::warn!(
            object = "pod status",
            "pod statuses not sent before exit, the next start sends them"
        );
    }
}

/// Logs what the administrator should know of the flags and the configuration.
fn log_warnings(given: &ParsedFlags, loaded: &LoadedConfig) {
    for warning in &loaded.warnings {
        tracing::warn!(setting = %warning.field, error = %warning, "configuration field unknown or repeated");
    }
    if !given.deprecated.is_empty() {
        let flags: Vec<String> = given.deprecated.iter().map(advice).collect();
        tracing::warn!(setting = %flags.join(", "), "deprecated flags given, use the file of --config");
    }
    for (field, missing) in ignored_settings::partial(loaded) {
        tracing::warn!(
            setting = field,
            detail = missing,
            "setting has only a part of its effect yet"
        );
    }
    let idle = ignored_settings::ignored(given, loaded);
    for field in &idle {
        if let Some(consequence) = security_settings::consequence(field) {
            tracing::warn!(setting = %field, detail = consequence, "security setting has no effect yet");
        }
    }
    for (field, consequence) in security_settings::opened(&loaded.configuration) {
        tracing::warn!(setting = %field, detail = consequence, "setting opens the node to others");
    }
    if !idle.is_empty() {
        tracing::info!(setting = %idle.join(", "), "settings accepted without effect yet");
    }
    if !rustix::process::geteuid().is_root() {
        tracing::error!(
            task = "kubelet",
            "kubelet does not run as root, most operations will fail"
        );
    }
}

fn advice(flag: &Flag) -> String {
    match flag.field {
        "" => format!("--{} (nothing looks at it)", flag.name),
        field => format!("--{} ({field})", flag.name),
    }
}

fn problems_error(what: &str, problems: &Problems) -> anyhow::Error {
    anyhow::anyhow!("cannot start with {what}:\n  {}", problems.to_string().replace('\n', "\n  "))
}
