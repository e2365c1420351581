//! The loops of the node agent and their assembly as a library.
//!
//! [`run`] is the whole agent over its [`seams`]. It owns every task it starts: dropping it ends them all, wherever they are,
//! which is how a simulated world kills an agent and how a program ends one. Pods go on.

mod active_pods;
mod container_lifecycle;
mod container_log_manager;
mod decisions;
mod event_recorder;
mod evented_pleg;
mod images;
mod mailbox;
mod metrics;
mod mirror_manager;
mod node;
mod node_addresses;
mod node_status;
mod pod_checkpoints;
mod pod_reader;
mod pod_worker;
mod pull_queue;
mod report_store;
mod runtime_health;
pub mod seams;
mod source_sets;
pub mod sources;
mod status_manager;
mod supervisor;
mod sync_loop_monitor;
#[cfg(test)]
mod testing;
mod traced_runtime;
mod user_namespaces;
mod volume_manager;
mod work_queue;

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::pending;
use oarsman_core::admission::{
    AdmissionNode, AdmitHandler, AdmitRefusal, NodeObjectState, PodAdmitAttributes,
};
use oarsman_core::sources::Source;
use oarsman_spans::Tracer;
use oarsman_sync::{Guarded, RESTART_AFTER, TaskName, Tasks, ordered_watch};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

pub use active_pods::ActivePodsReader;
pub use container_lifecycle::{ContainerHooks, ContainerLifecycle, ContainerRef, ContainerRefused};
pub use decisions::{CoreDecisions, Decisions, Leftovers};
pub use images::ImageManagerConfig;
pub use metrics::{
    AgentMetrics, ClaimMounts, ProbeMetrics, ProbeSeries, measured_cgroups, measured_runtime,
    write_pod_counts,
};
pub use node::{AgentConfig, NodeIdentity};
pub use node_addresses::NodeAddresses;
pub use node_status::NodeStatusConfig;
pub use oarsman_cluster::PodSets;
pub use oarsman_manifest as manifest;
pub use report_store::{ReportStore, SourceReport};
pub use supervisor::{AgentCommand, SharedAdmitHandler};
pub use sync_loop_monitor::SyncLoopMonitor;
pub use traced_runtime::traced_runtime;

use active_pods::{ActivePodsWriter, PodUpdates};
use event_recorder::EventRecorder;
use images::image_uses::ImageUses;
use images::pull_manager::PullManager;
use mirror_manager::MirrorManager;
use node::{AgentContext, PendingResizes};
use node_status::{NodeEventSender, NodePublishers};
use pod_checkpoints::{PodCheckpoints, with_checkpoints};
use pod_worker::Prober;
use pull_queue::PullQueue;
use runtime_health::RuntimeHealthCache;
use seams::{Seams, with_deadlines};
use source_sets::SourceSets;
use sources::PodSource;
use status_manager::StatusManager;
use supervisor::{Supervisor, SyncLoopInputs};
use user_namespaces::UserNamespaceManager;
use volume_manager::VolumeManager;

/// The capacity of channels between loops.
const CHANNEL_CAPACITY: usize = 256;

/// Admits every pod.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmitAll;

impl AdmitHandler for AdmitAll {
    fn admit(&self, _: &PodAdmitAttributes<'_>) -> Result<(), AdmitRefusal> {
        Ok(())
    }
}

/// What the agent is given besides its seams.
pub struct Inputs {
    /// The sources of pods besides the cluster.
    pub sources: Vec<PodSource>,
    /// The handler that admits new pods.
    pub admit_handler: SharedAdmitHandler,
    /// The decisions: [`CoreDecisions`], except in simulations of wrong ones.
    pub decisions: Arc<dyn Decisions>,
    /// The metrics that the agent writes and the endpoints read.
    pub metrics: Arc<AgentMetrics>,
    /// What begins the spans of its work; none unless traces are configured.
    pub tracer: Option<Arc<Tracer>>,
    /// The node report for people.
    pub report_store: Arc<ReportStore>,
    /// The readers of its active pods.
    pub pods: ActivePodsReader,
    /// The readers of the node's addresses.
    pub node_addresses: NodeAddresses,
    /// The readers of the sync loop's last turn.
    pub sync_loop_monitor: SyncLoopMonitor,
    /// Resource managers, in the order in which they are called around the life of a container.
    pub container_lifecycle: ContainerHooks,
    /// Commands to the running agent.
    pub commands: mpsc::Receiver<AgentCommand>,
}

/// What survives when the agent is built again after a panic of the supervisor.
struct AgentParts {
    seams: Seams,
    config: AgentConfig,
    admit_handler: SharedAdmitHandler,
    decisions: Arc<dyn Decisions>,
    metrics: Arc<AgentMetrics>,
    tracer: Option<Arc<Tracer>>,
    report_store: Arc<ReportStore>,
    pods: ActivePodsReader,
    node_addresses: NodeAddresses,
    sync_loop_monitor: SyncLoopMonitor,
    container_lifecycle: ContainerHooks,
    commands: Arc<tokio::sync::Mutex<mpsc::Receiver<AgentCommand>>>,
    checkpoints: Option<PodCheckpoints>,
    sources: SourceSets,
    recorder: EventRecorder,
}

/// Runs the agent until it is dropped. When the supervisor panics, everything but the sources and the event recorder is built again, as
/// after a kill: what runs is found and goes on.
pub async fn run(seams: Seams, config: AgentConfig, inputs: Inputs) {
    let (seams, checkpoints) = with_checkpoints(with_deadlines(seams));
    let metrics = Arc::clone(&inputs.metrics);
    let mut lasting_tasks = Tasks::new(metrics.panics.clone());
    let sources = SourceSets::follow(all_sources(&seams, inputs.sources), &mut lasting_tasks);
    let recorder = EventRecorder::new(Arc::clone(&inputs.report_store), Arc::clone(&seams.clock));
    let (of, to) = (recorder.clone(), seams.clone());
    lasting_tasks
        .spawn(TaskName::EventRecorder, move || event_recorder::run(of.clone(), to.clone()));
    let (addresses, settings) = (inputs.node_addresses.clone(), config.addresses.clone());
    // The first statuses and environments of pods name them.
    addresses.find(&*seams.host_info, &settings).await;
    let host_info = Arc::clone(&seams.host_info);
    lasting_tasks.spawn(TaskName::NodeAddresses, move || {
        addresses.clone().run(Arc::clone(&host_info), settings.clone())
    });
    if let Some(checkpoints) = checkpoints.clone() {
        lasting_tasks.spawn(TaskName::PodCheckpoints, move || checkpoints.clone().run());
    }
    let parts = AgentParts {
        seams,
        config,
        admit_handler: inputs.admit_handler,
        decisions: inputs.decisions,
        metrics: inputs.metrics,
        tracer: inputs.tracer,
        report_store: inputs.report_store,
        pods: inputs.pods,
        node_addresses: inputs.node_addresses,
        sync_loop_monitor: inputs.sync_loop_monitor,
        container_lifecycle: inputs.container_lifecycle,
        commands: Arc::new(tokio::sync::Mutex::new(inputs.commands)),
        checkpoints,
        sources,
        recorder,
    };
    let build_again = async {
        loop {
            run_until_supervisor_ends(&parts).await;
            metrics.panics.record(TaskName::Supervisor);
            tokio::time::sleep(RESTART_AFTER).await;
        }
    };
    tokio::select! {
        () = lasting_tasks.restart_panicked() => {}
        () = build_again => {}
    }
}

/// Builds the agent and runs it; ends only when the supervisor has panicked.
async fn run_until_supervisor_ends(parts: &AgentParts) {
    let AgentParts { seams, config, .. } = parts;
    let (notices, worker_notices) = mpsc::channel(CHANNEL_CAPACITY);
    let (send_pleg_events, pleg_events) = mpsc::channel(CHANNEL_CAPACITY);
    let statuses = StatusManager::new(Arc::clone(&seams.clock), Arc::clone(&parts.metrics));
    let mirrors = MirrorManager::new(statuses.clone());
    let pod_updates = PodUpdates::default();
    let (send_identity, identity) = ordered_watch::channel(None);
    let (send_node, admission_node) = ordered_watch::channel(first_admission_node(config, seams));
    let root = config.ownership.root.clone().into();
    let (pull_records, clock) = (Arc::clone(&seams.pull_records), Arc::clone(&seams.clock));
    let node = Arc::new(AgentContext {
        began: seams.clock.wall(),
        seams: seams.clone(),
        config: config.clone(),
        decisions: Arc::clone(&parts.decisions),
        statuses: statuses.clone(),
        mirrors: mirrors.clone(),
        pod_updates: pod_updates.clone(),
        identity,
        admission_node: admission_node.clone(),
        addresses: parts.node_addresses.clone(),
        runtime_health: RuntimeHealthCache::default(),
        sync_loop_monitor: parts.sync_loop_monitor.clone(),
        recorder: parts.recorder.clone(),
        pulls: PullQueue::new(config.parallel_pulls),
        pull_manager: PullManager::new(pull_records, clock, &config.images),
        image_uses: ImageUses::default(),
        active_pods: parts.pods.clone(),
        node_events: NodeEventSender::new(config, Arc::clone(&seams.clock)),
        container_lifecycle: parts.container_lifecycle.clone(),
        background: vec![Arc::new(Prober::default())],
        credentials: Guarded::default(),
        pulled: ordered_watch::Sender::new(0),
        volume_manager: VolumeManager::new(
            Arc::clone(&seams.volumes),
            root,
            Arc::clone(&parts.metrics),
        ),
        user_namespaces: UserNamespaceManager::new(
            Arc::clone(&seams.pod_files),
            config.user_namespaces,
        ),
        resizes: PendingResizes::default(),
        metrics: Arc::clone(&parts.metrics),
        tracer: parts.tracer.clone(),
        report_store: Arc::clone(&parts.report_store),
        notices,
    });
    let pods = ActivePodsWriter::new(parts.pods.clone(), pod_updates);
    let admit_handler = Arc::clone(&parts.admit_handler);
    let supervisor =
        Supervisor::new(Arc::clone(&node), &parts.sources.names(), admit_handler, pods);
    let restored_pods =
        parts.checkpoints.as_ref().map_or_else(|| pending().boxed(), PodCheckpoints::restored_pods);
    let inputs = SyncLoopInputs {
        sources: parts.sources.subscribe(),
        restored_pods,
        objects: seams.cluster.object_changes(),
        notices: worker_notices,
        pleg_events,
        commands: Arc::clone(&parts.commands).lock_owned().await,
        admission_node,
    };
    let mut tasks = Tasks::new(parts.metrics.panics.clone());
    spawn_loops(&mut tasks, &node, parts.pods.clone(), send_pleg_events);
    let published = NodePublishers { identity: send_identity, admission_node: send_node };
    node_status::spawn(&mut tasks, &node, published);
    let mut supervising = JoinSet::new();
    supervising.spawn(supervisor.sync_loop(inputs));
    tokio::select! {
        _ = supervising.join_next() => {}
        () = tasks.restart_panicked() => {}
    }
}

/// The node as pods are admitted to it before its object was read.
fn first_admission_node(config: &AgentConfig, seams: &Seams) -> AdmissionNode {
    let has_object = config.node_status_config.is_some() && seams.cluster.node().is_some();
    let object_state =
        if has_object { NodeObjectState::Unread } else { NodeObjectState::Standalone };
    AdmissionNode { object_state, ..config.admission_node.clone() }
}

fn spawn_loops(
    tasks: &mut Tasks,
    node: &Arc<AgentContext>,
    pods: ActivePodsReader,
    pleg_events: mpsc::Sender<evented_pleg::PlegEvent>,
) {
    let (statuses, seams) = (node.statuses.clone(), node.seams.clone());
    tasks.spawn(TaskName::StatusManager, move || {
        status_manager::sync_batch(statuses.clone(), seams.clone())
    });
    let (mirrors, seams, identity) =
        (node.mirrors.clone(), node.seams.clone(), node.identity.clone());
    tasks.spawn(TaskName::MirrorManager, move || {
        mirror_manager::run(mirrors.clone(), seams.clone(), identity.clone())
    });
    let collecting = Arc::clone(node);
    tasks.spawn(TaskName::ImageGc, move || images::image_gc::run(Arc::clone(&collecting)));
    let listening = Arc::clone(node);
    tasks.spawn(TaskName::RuntimeEvents, move || {
        evented_pleg::listen(Arc::clone(&listening), pleg_events.clone())
    });
    if node.config.log_rotation.is_some() {
        let node = Arc::clone(node);
        tasks.spawn(TaskName::ContainerLogManager, move || {
            container_log_manager::run(Arc::clone(&node), pods.clone())
        });
    }
}

/// The sources that were given, and the API server of a cluster.
fn all_sources(seams: &Seams, mut sources: Vec<PodSource>) -> Vec<PodSource> {
    if seams.cluster.pods().is_some() {
        let cluster = Arc::clone(&seams.cluster);
        let open = move || cluster.pods().unwrap_or_else(|| pending().boxed());
        sources.push(PodSource::new(Source::Api, open));
    }
    sources
}
