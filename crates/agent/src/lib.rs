//! The loops of the node agent and their assembly as a library.
//!
//! [`run`] is the whole agent over its [`seams`]. It owns every task it starts: dropping it ends them all, wherever they are,
//! which is how a simulated world kills an agent and how a program ends one. Pods go on.

mod active_pods;
mod container_lifecycle;
mod decisions;
mod event_recorder;
mod evented_pleg;
mod mailbox;
mod metrics;
mod mirror_manager;
mod node;
mod node_status;
mod pod_checkpoints;
mod pod_reader;
mod pod_worker;
mod pull_queue;
mod report_store;
pub mod seams;
mod source_sets;
pub mod sources;
mod status_manager;
mod supervisor;
mod tasks;
#[cfg(test)]
mod testing;
mod volume_manager;
mod work_queue;

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::pending;
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::admission::{AdmitHandler, Rejection};
use oarsman_core::sources::Source;
use oarsman_sync::{Guarded, ordered_watch};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

pub use active_pods::ActivePodsReader;
pub use container_lifecycle::{ContainerHooks, ContainerLifecycle, ContainerRef, ContainerRefused};
pub use decisions::{CoreDecisions, Decisions, Leftovers};
pub use metrics::{AgentMetrics, Histogram, HistogramSnapshot, Latency};
pub use node::{AgentConfig, NodeIdentity};
pub use node_status::NodeStatusConfig;
pub use oarsman_cluster::PodSets;
pub use oarsman_manifest as manifest;
pub use pod_worker::{BackgroundTasks, TaskKey};
pub use report_store::{ReportStore, SourceReport};
pub use supervisor::{AgentCommand, SharedAdmitHandler};

use active_pods::{ActivePodsWriter, PodUpdates};
use event_recorder::EventRecorder;
use mirror_manager::MirrorManager;
use node::AgentContext;
use pod_checkpoints::{PodCheckpoints, with_checkpoints};
use pull_queue::PullQueue;
use seams::{Seams, with_deadlines};
use source_sets::SourceSets;
use sources::PodSource;
use status_manager::StatusManager;
use supervisor::{Supervisor, SyncLoopInputs};
use tasks::{RESTART_AFTER, Tasks};
use volume_manager::VolumeManager;

/// The capacity of channels between loops.
const CHANNEL_CAPACITY: usize = 256;

/// Admits every pod.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmitAll;

impl AdmitHandler for AdmitAll {
    fn check(&self, _: &Pod, _: &[&Pod]) -> Result<(), Rejection> {
        Ok(())
    }
}

/// What the agent is given besides its seams.
pub struct Inputs {
    /// The sources of pods besides the cluster.
    pub sources: Vec<PodSource>,
    /// Admission.
    pub admit_handler: SharedAdmitHandler,
    /// The decisions: [`CoreDecisions`], except in simulations of wrong ones.
    pub decisions: Arc<dyn Decisions>,
    /// Metrics.
    pub metrics: Arc<AgentMetrics>,
    /// The node report for people.
    pub report_store: Arc<ReportStore>,
    /// The readers of its active pods.
    pub pods: ActivePodsReader,
    /// Resource managers, in the order in which they are called around the life of a container.
    pub container_lifecycle: ContainerHooks,
    /// What makes the background tasks of pods, such as probes.
    pub background: Vec<Arc<dyn BackgroundTasks>>,
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
    report_store: Arc<ReportStore>,
    pods: ActivePodsReader,
    container_lifecycle: ContainerHooks,
    background: Vec<Arc<dyn BackgroundTasks>>,
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
    let mut lasting_tasks = Tasks::new(Arc::clone(&metrics));
    let sources = SourceSets::follow(all_sources(&seams, inputs.sources), &mut lasting_tasks);
    let recorder = EventRecorder::new(Arc::clone(&inputs.report_store), Arc::clone(&seams.clock));
    let (of, to) = (recorder.clone(), seams.clone());
    lasting_tasks.spawn("event recorder", move || event_recorder::run(of.clone(), to.clone()));
    if let Some(checkpoints) = checkpoints.clone() {
        lasting_tasks.spawn("pod checkpoints", move || checkpoints.clone().run());
    }
    let parts = AgentParts {
        seams,
        config,
        admit_handler: inputs.admit_handler,
        decisions: inputs.decisions,
        metrics: inputs.metrics,
        report_store: inputs.report_store,
        pods: inputs.pods,
        container_lifecycle: inputs.container_lifecycle,
        background: inputs.background,
        commands: Arc::new(tokio::sync::Mutex::new(inputs.commands)),
        checkpoints,
        sources,
        recorder,
    };
    let build_again = async {
        loop {
            run_until_supervisor_ends(&parts).await;
            metrics.task_panicked("supervisor");
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
    let statuses = StatusManager::new(Arc::clone(&seams.clock));
    let mirrors = MirrorManager::new(statuses.clone());
    let pod_updates = PodUpdates::default();
    let (send_identity, identity) = ordered_watch::channel(None);
    let root = config.ownership.root.clone().into();
    let node = Arc::new(AgentContext {
        began: seams.clock.wall(),
        seams: seams.clone(),
        config: config.clone(),
        decisions: Arc::clone(&parts.decisions),
        statuses: statuses.clone(),
        mirrors: mirrors.clone(),
        pod_updates: pod_updates.clone(),
        identity,
        recorder: parts.recorder.clone(),
        pulls: PullQueue::new(config.parallel_pulls),
        container_lifecycle: parts.container_lifecycle.clone(),
        background: parts.background.clone(),
        credentials: Guarded::default(),
        pulled: ordered_watch::Sender::new(0),
        volume_manager: VolumeManager::new(Arc::clone(&seams.volumes), root),
        metrics: Arc::clone(&parts.metrics),
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
    };
    let mut tasks = Tasks::new(Arc::clone(&parts.metrics));
    spawn_loops(&mut tasks, &node, send_pleg_events);
    node_status::spawn(&mut tasks, &node, send_identity);
    let mut supervising = JoinSet::new();
    supervising.spawn(supervisor.sync_loop(inputs));
    tokio::select! {
        _ = supervising.join_next() => {}
        () = tasks.restart_panicked() => {}
    }
}

fn spawn_loops(
    tasks: &mut Tasks,
    node: &Arc<AgentContext>,
    pleg_events: mpsc::Sender<evented_pleg::PlegEvent>,
) {
    let (statuses, seams) = (node.statuses.clone(), node.seams.clone());
    tasks.spawn("status manager", move || {
        status_manager::sync_batch(statuses.clone(), seams.clone())
    });
    let (mirrors, seams, identity) =
        (node.mirrors.clone(), node.seams.clone(), node.identity.clone());
    tasks.spawn("mirror manager", move || {
        mirror_manager::run(mirrors.clone(), seams.clone(), identity.clone())
    });
    let listening = Arc::clone(node);
    tasks.spawn("runtime events", move || {
        evented_pleg::listen(Arc::clone(&listening), pleg_events.clone())
    });
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
