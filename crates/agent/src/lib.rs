//! The loops of the node agent and their assembly as a library.
//!
//! [`run`] is the whole agent over its [`seams`]. It owns every task it starts: dropping it ends them all, wherever they are,
//! which is how a simulated world kills an agent and how a program ends one. Pods go on.

mod active_pods;
mod autonomy;
mod book;
mod container_lifecycle;
mod decisions;
mod event_recorder;
mod mailbox;
mod measures;
mod mirror_manager;
mod node;
mod node_status;
mod pod_reader;
mod pod_worker;
mod runtime_events;
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
use oarsman_core::ledger::{Gate, Rejection};
use oarsman_core::sources::Source;
use oarsman_sync::{Guarded, latest};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

pub use active_pods::ActivePodsReader;
pub use book::{Book, Found};
pub use container_lifecycle::{ContainerHooks, ContainerLifecycle, ContainerRef, ContainerRefused};
pub use decisions::{CoreDecisions, Decisions, Leftovers};
pub use measures::{Histogram, Latency, Measures, Reading};
pub use node::{Config, NodeIdentity};
pub use node_status::Membership;
pub use oarsman_cluster::PodSets;
pub use oarsman_manifest as manifest;
pub use pod_worker::{BackgroundTasks, TaskKey};
pub use supervisor::{Command, SharedGate};

use active_pods::{ActivePodsWriter, PodUpdates};
use autonomy::{Memory, remembering};
use event_recorder::EventRecorder;
use mirror_manager::MirrorManager;
use node::Node;
use seams::{Seams, bounded};
use source_sets::SourceSets;
use sources::PodSource;
use status_manager::StatusManager;
use supervisor::{Ears, Supervisor};
use tasks::{RESTART_AFTER, Tasks};
use volume_manager::VolumeManager;

/// The capacity of channels between loops.
const ROOM_BETWEEN_LOOPS: usize = 256;

/// Admits every pod.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenGate;

impl Gate for OpenGate {
    fn check(&self, _: &Pod, _: &[&Pod]) -> Result<(), Rejection> {
        Ok(())
    }
}

/// What the agent is given besides its seams.
pub struct Inputs {
    /// The sources of pods besides the cluster.
    pub sources: Vec<PodSource>,
    /// Admission.
    pub gate: SharedGate,
    /// The decisions: [`CoreDecisions`], except in simulations of wrong ones.
    pub decisions: Arc<dyn Decisions>,
    /// Metrics.
    pub measures: Arc<Measures>,
    /// The node report for people.
    pub book: Arc<Book>,
    /// The readers of its active pods.
    pub pods: ActivePodsReader,
    /// Resource managers, in the order in which they are called around the life of a container.
    pub container_lifecycle: ContainerHooks,
    /// What makes the background tasks of pods, such as probes.
    pub background: Vec<Arc<dyn BackgroundTasks>>,
    /// Commands to the running agent.
    pub commands: mpsc::Receiver<Command>,
}

/// What survives when the agent is built again after a panic of the supervisor.
struct Parts {
    seams: Seams,
    config: Config,
    gate: SharedGate,
    decisions: Arc<dyn Decisions>,
    measures: Arc<Measures>,
    book: Arc<Book>,
    pods: ActivePodsReader,
    container_lifecycle: ContainerHooks,
    background: Vec<Arc<dyn BackgroundTasks>>,
    commands: Arc<tokio::sync::Mutex<mpsc::Receiver<Command>>>,
    memory: Option<Memory>,
    sources: SourceSets,
    recorder: EventRecorder,
}

/// Runs the agent until it is dropped. When the supervisor panics, everything but the sources and the event recorder is built again, as
/// after a kill: what runs is found and goes on.
pub async fn run(seams: Seams, config: Config, inputs: Inputs) {
    let (seams, memory) = remembering(bounded(seams));
    let measures = Arc::clone(&inputs.measures);
    let mut lasting = Tasks::new(Arc::clone(&measures));
    let sources = SourceSets::follow(all_sources(&seams, inputs.sources), &mut lasting);
    let recorder = EventRecorder::new(Arc::clone(&inputs.book), Arc::clone(&seams.clock));
    let (of, to) = (recorder.clone(), seams.clone());
    lasting.spawn("event recorder", move || event_recorder::run(of.clone(), to.clone()));
    if let Some(memory) = memory.clone() {
        lasting.spawn("pod checkpoints", move || memory.clone().run());
    }
    let parts = Parts {
        seams,
        config,
        gate: inputs.gate,
        decisions: inputs.decisions,
        measures: inputs.measures,
        book: inputs.book,
        pods: inputs.pods,
        container_lifecycle: inputs.container_lifecycle,
        background: inputs.background,
        commands: Arc::new(tokio::sync::Mutex::new(inputs.commands)),
        memory,
        sources,
        recorder,
    };
    let build_again = async {
        loop {
            run_until_supervisor_ends(&parts).await;
            measures.task_panicked("supervisor");
            tokio::time::sleep(RESTART_AFTER).await;
        }
    };
    tokio::select! {
        () = lasting.heal() => {}
        () = build_again => {}
    }
}

/// Builds the agent and runs it; ends only when the supervisor has panicked.
async fn run_until_supervisor_ends(parts: &Parts) {
    let Parts { seams, config, .. } = parts;
    let (notices, heard) = mpsc::channel(ROOM_BETWEEN_LOOPS);
    let (tell_news, news) = mpsc::channel(ROOM_BETWEEN_LOOPS);
    let statuses = StatusManager::new(Arc::clone(&seams.clock));
    let mirrors = MirrorManager::new(statuses.clone());
    let pod_updates = PodUpdates::default();
    let (tell_identity, identity) = latest::channel(None);
    let root = config.territory.root.clone().into();
    let node = Arc::new(Node {
        began: seams.clock.wall(),
        seams: seams.clone(),
        config: config.clone(),
        decisions: Arc::clone(&parts.decisions),
        statuses: statuses.clone(),
        mirrors: mirrors.clone(),
        pod_updates: pod_updates.clone(),
        identity,
        recorder: parts.recorder.clone(),
        pulls: Semaphore::new(config.parallel_pulls.max(1)),
        container_lifecycle: parts.container_lifecycle.clone(),
        background: parts.background.clone(),
        credentials: Guarded::default(),
        pulled: latest::Sender::new(0),
        volume_manager: VolumeManager::new(Arc::clone(&seams.volumes), root),
        measures: Arc::clone(&parts.measures),
        book: Arc::clone(&parts.book),
        notices,
    });
    let pods = ActivePodsWriter::new(parts.pods.clone(), pod_updates);
    let gate = Arc::clone(&parts.gate);
    let supervisor = Supervisor::new(Arc::clone(&node), &parts.sources.names(), gate, pods);
    let recalled = parts.memory.as_ref().map_or_else(|| pending().boxed(), Memory::recalled);
    let ears = Ears {
        sources: parts.sources.subscribe(),
        recalled,
        objects: seams.cluster.object_changes(),
        notices: heard,
        news,
        commands: Arc::clone(&parts.commands).lock_owned().await,
    };
    let mut tasks = Tasks::new(Arc::clone(&parts.measures));
    spawn_loops(&mut tasks, &node, tell_news);
    node_status::spawn(&mut tasks, &node, tell_identity);
    let mut supervising = JoinSet::new();
    supervising.spawn(supervisor.run(ears));
    tokio::select! {
        _ = supervising.join_next() => {}
        () = tasks.heal() => {}
    }
}

fn spawn_loops(tasks: &mut Tasks, node: &Arc<Node>, news: mpsc::Sender<runtime_events::News>) {
    let (statuses, seams) = (node.statuses.clone(), node.seams.clone());
    tasks.spawn("status manager", move || status_manager::run(statuses.clone(), seams.clone()));
    let (mirrors, seams, identity) =
        (node.mirrors.clone(), node.seams.clone(), node.identity.clone());
    tasks.spawn("mirror manager", move || {
        mirror_manager::run(mirrors.clone(), seams.clone(), identity.clone())
    });
    let listening = Arc::clone(node);
    tasks.spawn("runtime events", move || {
        runtime_events::listen(Arc::clone(&listening), news.clone())
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
