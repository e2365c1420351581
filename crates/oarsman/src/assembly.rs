//! Builds an agent from settings: connects the runtime and the cluster, takes the locks, and opens the sources.

mod cluster;
mod runtime;
mod sources;
mod tracing_export;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use oarsman_agent::seams::Seams;
use oarsman_agent::sources::PodSource;
use oarsman_agent::sources::manifest_set::ManifestSet;
use oarsman_agent::{
    ActivePodsReader, AgentCommand, AgentConfig, AgentMetrics, ContainerHooks, CoreDecisions,
    Inputs, NodeAddresses, NodeStatusConfig, ReportStore, SyncLoopMonitor, measured_cgroups,
    measured_runtime, traced_runtime,
};
use oarsman_clock::Clock;
use oarsman_cluster::credentials::{CertificateRecord, Connection};
use oarsman_core::admission::{AdmissionNode, Mode, NodeAdmitHandlers, Ownership, SysctlAllowlist};
use oarsman_core::cri_spec::NodeSettings as PodSettings;
use oarsman_core::cri_spec::dns::NodeDns;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::node::amounts::{allocatable, capacity};
use oarsman_core::report::{NodeReport, RuntimeReport};
use oarsman_core::requeue::Requeue;
use oarsman_core::resources::CgroupVersion;
use oarsman_core::resources::names::CgroupNames;
use oarsman_cri::Runtime;
use oarsman_host::cgroups::CgroupManager;
use oarsman_host::host_info::MachineHostInfo;
use oarsman_host::pod_cgroups::{self, HostCgroups};
use oarsman_images::HostCredentialPlugins;
use oarsman_net::SystemNetwork;
use oarsman_server::StreamingService;
use oarsman_spans::{SpanExporter, Tracer};
use oarsman_state::{self as state, HostPodFiles, PullRecordFiles, PullRecords, StatusFiles};
use oarsman_sync::{TaskName, TaskPanics, Tasks, ordered_watch, restarted};
use oarsman_volumes::HostVolumes;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::local_api::{self, LateStats, LocalApi, LocalServer, StoppedPods};
use crate::lock::FileLock;
use crate::machine;
use crate::node_stats::NodeStats;
use crate::runtime_endpoint::RuntimeEndpoint;
use crate::settings::AgentSettings;
use crate::systemd::SystemdNotifier;

pub(crate) use runtime::{AgentRuntime, reported_cgroup_driver};

use runtime::RuntimeFacts;

/// Commands that may be queued before their sender has to wait.
const COMMAND_CAPACITY: usize = 16;

/// An agent that is ready to run, with the locks, sockets and helper process that must live as long as it does.
pub(crate) struct Agent {
    seams: Seams,
    config: AgentConfig,
    inputs: Inputs,
    commands: mpsc::Sender<AgentCommand>,
    runtime: AgentRuntime,
    leave: CancellationToken,
    connection: Option<Connection>,
    stats: Arc<NodeStats>,
    /// None unless traces are configured.
    span_exporter: Option<Arc<SpanExporter>>,
    _socket: Option<LocalServer>,
    locks: Arc<Vec<FileLock>>,
}

impl Agent {
    /// Its container runtime; to be released when the agent has ended in order.
    pub(crate) fn runtime(&self) -> AgentRuntime {
        self.runtime.clone()
    }

    /// The locks on its root directory and its runtime, for what is still to be done when it has ended.
    pub(crate) fn locks(&self) -> Arc<Vec<FileLock>> {
        Arc::clone(&self.locks)
    }

    /// The agent's report on pods and node, which the commands show.
    pub(crate) fn report_store(&self) -> Arc<ReportStore> {
        Arc::clone(&self.inputs.report_store)
    }

    pub(crate) fn pods(&self) -> ActivePodsReader {
        self.inputs.pods.clone()
    }

    /// What begins spans, if traces are configured.
    pub(crate) fn tracer(&self) -> Option<Arc<Tracer>> {
        self.inputs.tracer.clone()
    }

    /// What sends spans; to be flushed when the agent has ended in order.
    pub(crate) fn span_exporter(&self) -> Option<Arc<SpanExporter>> {
        self.span_exporter.clone()
    }

    /// What measures the node and its pods.
    pub(crate) fn stats(&self) -> Arc<NodeStats> {
        Arc::clone(&self.stats)
    }

    /// exec, attach and port-forward on its pods; a connection that is idle for so long is closed, or never if it is zero.
    pub(crate) fn streaming(&self, idle_timeout: Duration) -> Arc<StreamingService> {
        streaming(&self.inputs.pods, Arc::clone(&self.seams.runtime), idle_timeout)
    }

    pub(crate) fn node_addresses(&self) -> NodeAddresses {
        self.inputs.node_addresses.clone()
    }

    /// The last turn of its sync loop.
    pub(crate) fn sync_loop_monitor(&self) -> SyncLoopMonitor {
        self.inputs.sync_loop_monitor.clone()
    }

    /// The queue of commands to the running agent.
    pub(crate) fn commands(&self) -> mpsc::Sender<AgentCommand> {
        self.commands.clone()
    }

    /// The client of the API server, if the node belongs to a cluster.
    pub(crate) fn client(&self) -> Option<kube::Client> {
        self.connection.as_ref().map(Connection::client)
    }

    /// Cancelled when a request over the local socket asks the agent to stop all pods and to end.
    pub(crate) fn stop_requested(&self) -> CancellationToken {
        self.leave.clone()
    }

    /// Makes all sources report an empty set of pods once `stopping` is cancelled.
    #[must_use]
    pub(crate) fn drain_on(mut self, stopping: &CancellationToken) -> Self {
        let ending = |source: PodSource| {
            let stopping = stopping.clone();
            source.map(move |_, pods| {
                let none = futures::stream::once(std::future::ready(Vec::new()));
                let pods = pods.take_until(stopping.clone().cancelled_owned());
                pods.chain(none).chain(futures::stream::pending()).boxed()
            })
        };
        self.inputs.sources = self.inputs.sources.into_iter().map(ending).collect();
        self
    }

    /// What it counts and measures.
    pub(crate) fn metrics(&self) -> Arc<AgentMetrics> {
        Arc::clone(&self.inputs.metrics)
    }

    /// The records of image pulls.
    pub(crate) fn pull_records(&self) -> Arc<dyn PullRecords> {
        Arc::clone(&self.seams.pull_records)
    }

    /// The version of the cgroup hierarchies of pods.
    pub(crate) fn cgroup_version(&self) -> CgroupVersion {
        self.config.settings.resources.cgroups
    }

    /// What is known of the client certificate, if the node belongs to a cluster.
    pub(crate) fn client_certificate(&self) -> Option<CertificateRecord> {
        self.connection.as_ref().map(Connection::certificate_record)
    }

    /// Where panics of its tasks are counted.
    pub(crate) fn panics(&self) -> TaskPanics {
        self.inputs.metrics.panics.clone()
    }

    /// Runs until it is dropped: the agent, its client certificate and the watchdog, each in a task of its own.
    ///
    /// # Errors
    /// When the API server will never accept this node, such as after its first certificate request was denied, or when the owner of
    /// the agent's tasks panicked.
    pub(crate) async fn run(self) -> Result<()> {
        tracing::info!(path = self.config.ownership.root, "agent started");
        let panics = self.panics();
        let systemd = SystemdNotifier::of_environment();
        systemd.ready();
        let _stopping = systemd.notify_stopping_on_drop();
        let mut tasks = Tasks::new(panics.clone());
        let commands = self.commands.clone();
        tasks.spawn(TaskName::SystemdWatchdog, move || {
            systemd.clone().watch_agent(commands.clone())
        });
        if let Some(exporter) = self.span_exporter {
            tasks.spawn(TaskName::SpanExporter, move || {
                let exporter = Arc::clone(&exporter);
                async move { exporter.run().await }
            });
        }
        let agent = oarsman_agent::run(self.seams, self.config, self.inputs);
        let agent = AbortOnDropHandle::new(tokio::spawn(agent));
        tokio::select! {
            ended = agent => ended.context("the agent panicked outside of its tasks"),
            denied = keep_client_certificate(self.connection, panics) => denied,
            () = tasks.restart_panicked() => Ok(()),
        }
    }
}

/// Keeps the client certificate valid in a task of its own; ends when the API server will never accept this node.
async fn keep_client_certificate(connection: Option<Connection>, panics: TaskPanics) -> Result<()> {
    let Some(connection) = connection else { return std::future::pending().await };
    let connection = Arc::new(Mutex::new(connection));
    let task = restarted(TaskName::ClientCertificate, panics, move || {
        let connection = Arc::clone(&connection);
        async move { connection.lock().await.run().await }
    });
    Err(AbortOnDropHandle::new(tokio::spawn(task)).await?.into())
}

fn streaming(
    pods: &ActivePodsReader,
    runtime: Arc<dyn Runtime>,
    idle_timeout: Duration,
) -> Arc<StreamingService> {
    let pods = pods.clone();
    let find = move |name: &FullName, uid: Option<&PodUid>| match uid {
        Some(uid) => pods.by_name_and_uid(name, uid),
        None => pods.by_name(name),
    };
    StreamingService::new(Arc::new(find), runtime, idle_timeout)
}

/// Builds an agent; waits for the runtime if it does not answer yet.
/// `manifest_set` holds the manifests that were named on the command line.
pub(crate) async fn assemble(
    settings: &AgentSettings,
    manifest_set: Option<ManifestSet>,
    clock: &Arc<dyn Clock>,
) -> Result<Agent> {
    let locks = locks(settings)?;
    let report_store = ReportStore::new(Arc::clone(clock), initial_report(settings));
    let (stopped, stopped_pods) = ordered_watch::channel(StoppedPods::new());
    let leave = CancellationToken::new();
    let metrics = Arc::<AgentMetrics>::default();
    metrics.node_startup.lock().begin(clock.mono());
    let agent_runtime = AgentRuntime::open(settings, clock, &metrics.panics).await?;
    let tracing = tracing_export::start(settings, clock)?;
    let (tracer, span_exporter) = tracing.unzip();
    let runtime = measured_runtime(agent_runtime.seam(), Arc::clone(clock), &metrics);
    let runtime = match &tracer {
        Some(tracer) => traced_runtime(runtime, tracer),
        None => runtime,
    };
    let (pods, late_stats) = (ActivePodsReader::default(), LateStats::default());
    let api = LocalApi {
        report_store: Arc::clone(&report_store),
        stopped,
        leave: leave.clone(),
        streaming: streaming(&pods, Arc::clone(&runtime), Duration::ZERO),
        stats: Arc::clone(&late_stats),
    };
    let socket = serve_local_api(settings, api, &metrics);
    let facts = runtime::wait_for_runtime(&*agent_runtime.seam(), settings, &report_store).await;
    let pod_settings = pod_settings(settings, &facts)?;
    let cgroups = HostCgroups::open(pod_cgroups::CgroupSettings {
        names: pod_settings.cgroups.clone(),
        resources: pod_settings.resources.clone(),
        is_run_mode: settings.mode == Mode::Run,
    })?;
    let pod_files = HostPodFiles::open(state::PodFileSettings {
        root: settings.root.clone(),
        pod_logs: settings.pod_logs.clone(),
        container_logs: settings.container_logs.clone(),
    })?;
    let records = StatusFiles::open(&settings.root)?;
    let pull_records = PullRecordFiles::open(&settings.root);
    let joined = cluster::join(settings, manifest_set.as_ref(), clock, &metrics).await?;
    let seams = Seams {
        runtime,
        cluster: joined.cluster,
        volumes: Arc::new(HostVolumes::on_node(
            settings.root.clone(),
            Arc::clone(clock),
            allocatable_memory(&pod_settings),
        )),
        cgroups: measured_cgroups(Arc::new(cgroups), Arc::clone(clock), &metrics),
        host_info: Arc::new(MachineHostInfo::new(settings.resolv_conf.clone())),
        pod_files: Arc::new(pod_files),
        records: Arc::new(records),
        pull_records: Arc::new(pull_records),
        credential_plugins: Arc::new(HostCredentialPlugins::new(
            settings.root.clone(),
            settings.providers.directory.clone(),
        )),
        clock: Arc::clone(clock),
        network: Arc::new(SystemNetwork),
        checkpoints: joined.checkpoints,
    };
    let stats =
        Arc::new(NodeStats::open(settings, &pod_settings.cgroups, &pods, &metrics, &seams)?);
    late_stats.get_or_init(|| Arc::clone(&stats));
    let (commands, receiver) = mpsc::channel(COMMAND_CAPACITY);
    let inputs = Inputs {
        sources: without_stopped_pods(
            &stopped_pods,
            sources::all(settings, &seams, &report_store, manifest_set)?,
        ),
        admit_handler: Arc::new(admit_handlers(settings)),
        decisions: Arc::new(CoreDecisions),
        metrics,
        tracer,
        report_store,
        pods,
        node_addresses: NodeAddresses::default(),
        sync_loop_monitor: SyncLoopMonitor::default(),
        container_lifecycle: ContainerHooks::default(),
        commands: receiver,
    };
    let config = config(settings, facts, pod_settings);
    Ok(Agent {
        seams,
        config,
        inputs,
        commands,
        runtime: agent_runtime,
        leave,
        connection: joined.connection,
        stats,
        span_exporter,
        _socket: socket,
        locks: Arc::new(locks),
    })
}

/// The report before the agent has read anything.
fn initial_report(settings: &AgentSettings) -> NodeReport {
    NodeReport {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        node: settings.node_name.clone(),
        root: settings.root.display().to_string(),
        pod_logs: settings.pod_logs.display().to_string(),
        pid: std::process::id(),
        is_run_mode: settings.mode == Mode::Run,
        runtime: RuntimeReport {
            endpoint: settings.runtime_endpoint.to_string(),
            ..RuntimeReport::default()
        },
        ..NodeReport::default()
    }
}

/// Serves the local socket. Its failure is logged and no reason not to run: only the commands need it.
fn serve_local_api(
    settings: &AgentSettings,
    api: LocalApi,
    metrics: &AgentMetrics,
) -> Option<LocalServer> {
    let told = |error: &anyhow::Error| {
        let (path, error) = (settings.root.display(), format!("{error:#}"));
        tracing::error!(%path, error, "local API not served, oarsman commands do not reach this agent");
    };
    local_api::serve(&settings.root, api, metrics.panics.clone()).inspect_err(told).ok()
}

/// The sources, filtered by the pods that were stopped over the local socket.
fn without_stopped_pods(
    stopped_pods: &ordered_watch::Receiver<StoppedPods>,
    sources: Vec<PodSource>,
) -> Vec<PodSource> {
    let filter = |source: PodSource| {
        let stopped_pods = stopped_pods.clone();
        source.map(move |_, pods| local_api::without_stopped_pods(pods, stopped_pods.clone()))
    };
    sources.into_iter().map(filter).collect()
}

/// The locks. Only the one kubelet of a runtime may remove pods that no source knows, so a kubelet also locks a runtime that others may use.
fn locks(settings: &AgentSettings) -> Result<Vec<FileLock>> {
    let mut locks = vec![FileLock::of_root(&settings.root)?];
    if let (Mode::Kubelet, RuntimeEndpoint::Socket(address)) =
        (settings.mode, &settings.runtime_endpoint)
    {
        locks.push(FileLock::of_runtime(address)?);
    }
    Ok(locks)
}

fn allocatable_memory(settings: &PodSettings) -> Option<u64> {
    let memory = settings.allocatable.get("memory")?;
    u64::try_from(memory.units()).ok()
}

fn pod_settings(settings: &AgentSettings, facts: &RuntimeFacts) -> Result<PodSettings> {
    let root = PathBuf::from(&settings.cgroup_root);
    let cgroups =
        CgroupManager::discover(&root).context("this machine's cgroups cannot be used")?;
    let resources = machine::resources(&cgroups, settings)?;
    let NodeStatusConfig { profile, machine: facts_of_machine, .. } = &settings.node_status;
    let pod_settings = PodSettings {
        cgroups: CgroupNames::new(facts.cgroup_driver, &settings.cgroup_root),
        dns: NodeDns {
            servers: settings.cluster_dns.clone(),
            domain: settings.cluster_domain.clone(),
            has_cluster: settings.cluster.is_some(),
        },
        seccomp_default: settings.containers.seccomp_default,
        masked_paths: machine::masked_paths(),
        allocatable: allocatable(&profile.reserved, &capacity(profile, facts_of_machine)),
        ..PodSettings::of_memory(resources.machine_memory)
    };
    Ok(PodSettings { resources, ..pod_settings })
}

fn admit_handlers(settings: &AgentSettings) -> NodeAdmitHandlers {
    let kernel = &settings.node_status.machine.kernel;
    NodeAdmitHandlers {
        sysctls: SysctlAllowlist::new(kernel, &settings.allowed_unsafe_sysctls),
        app_armor: machine::has_app_armor(),
    }
}

fn config(settings: &AgentSettings, facts: RuntimeFacts, pod_settings: PodSettings) -> AgentConfig {
    let NodeStatusConfig { profile, machine, .. } = &settings.node_status;
    AgentConfig {
        admission_node: AdmissionNode {
            supplemental_groups_policy: Some(facts.supplemental_groups_policy),
            ..AdmissionNode::of_machine(profile, machine)
        },
        runtime_name: facts.runtime_name,
        recursive_read_only: facts.recursive_read_only,
        user_namespaces: settings.user_namespaces,
        addresses: settings.addresses.clone(),
        features: settings.features,
        settings: pod_settings,
        requeue: Requeue::default(),
        longest_crash_backoff: settings.longest_crash_backoff,
        pod_logs: settings.pod_logs.clone(),
        log_rotation: settings.log_rotation,
        container_gc: settings.container_gc,
        relist_period: settings.relist_period,
        parallel_pulls: settings.parallel_pulls,
        images: settings.images.clone(),
        providers: settings.providers.known.clone(),
        ownership: Ownership { mode: settings.mode, root: settings.root.display().to_string() },
        node_status_config: settings.cluster.as_ref().map(|_| settings.node_status.clone()),
    }
}
