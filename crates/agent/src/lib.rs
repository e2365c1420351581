//! The loops of the node agent and their assembly as a library.
//!
//! [`run`] is the whole agent over its [`seams`]. It owns every task it starts: dropping it ends them all, wherever they are,
//! which is how a simulated world kills an agent and how a program ends one. Pods go on.

mod active_pods;
mod autonomy;
mod book;
mod container_lifecycle;
mod decisions;
mod mailbox;
mod measures;
mod mirror_manager;
mod node;
mod node_status;
mod pod_reader;
mod pod_worker;
mod recorder;
mod runtime_events;
pub mod seams;
pub mod sources;
mod status_manager;
mod supervisor;
mod volume_manager;
mod work_queue;

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{SelectAll, pending};
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::ledger::{Gate, Rejection};
use oarsman_core::sources::Source;
use oarsman_sync::{Guarded, latest};
use tokio::sync::{Semaphore, mpsc};

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
pub use supervisor::{BoxedGate, Command};

use active_pods::{ActivePodsWriter, PodUpdates};
use autonomy::{Memory, remembering};
use mirror_manager::MirrorManager;
use node::Node;
use recorder::Recorder;
use seams::{Seams, bounded};
use status_manager::StatusManager;
use supervisor::{Ears, Supervisor};
use volume_manager::VolumeManager;

/// Messages that may lie between two loops before the one who tells has to wait.
const ROOM_BETWEEN_LOOPS: usize = 256;

/// Lets every pod in.
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
    pub sources: Vec<(Source, PodSets)>,
    /// Who may come in.
    pub gate: BoxedGate,
    /// Who decides: [`CoreDecisions`], unless it is to be tried what wrong ones do.
    pub decisions: Arc<dyn Decisions>,
    /// Where it is written down how long things take.
    pub measures: Arc<Measures>,
    /// What the agent knows, for people to read.
    pub book: Arc<Book>,
    /// The readers of its active pods.
    pub pods: ActivePodsReader,
    /// Resource managers, in the order in which they are called around the life of a container.
    pub container_lifecycle: ContainerHooks,
    /// What makes the background tasks of pods, such as probes.
    pub background: Vec<Arc<dyn BackgroundTasks>>,
    /// What is asked of it while it runs.
    pub commands: mpsc::Receiver<Command>,
}

/// Runs the agent until it is dropped.
pub async fn run(seams: Seams, config: Config, inputs: Inputs) {
    let (seams, memory) = remembering(bounded(seams));
    let Inputs { sources: local, gate, decisions, measures, book, pods, commands, .. } = inputs;
    let (container_lifecycle, background) = (inputs.container_lifecycle, inputs.background);
    let (notices, heard) = mpsc::channel(ROOM_BETWEEN_LOOPS);
    let (tell_news, news) = mpsc::channel(ROOM_BETWEEN_LOOPS);
    let statuses = StatusManager::new(Arc::clone(&seams.clock));
    let mirrors = MirrorManager::new(statuses.clone());
    let pod_updates = PodUpdates::default();
    let (recorder, events) = Recorder::new(Arc::clone(&book));
    let pulls = Semaphore::new(config.parallel_pulls.max(1));
    let (tell_identity, identity) = latest::channel(None);
    let sources = all_sources(&seams, local);
    let names: Vec<Source> = sources.iter().map(|(source, _)| *source).collect();
    let root = config.territory.root.clone().into();
    let volume_manager = VolumeManager::new(Arc::clone(&seams.volumes), root);
    let node = Arc::new(Node {
        began: seams.clock.wall(),
        seams: seams.clone(),
        config,
        decisions,
        statuses: statuses.clone(),
        mirrors: mirrors.clone(),
        pod_updates: pod_updates.clone(),
        identity,
        recorder,
        pulls,
        container_lifecycle,
        background,
        credentials: Guarded::default(),
        pulled: latest::Sender::new(0),
        volume_manager,
        measures,
        book,
        notices,
    });
    let pods = ActivePodsWriter::new(pods, pod_updates);
    let supervisor = Supervisor::new(Arc::clone(&node), &names, gate, pods);
    let objects = seams.cluster.object_changes();
    let recalled = memory.as_ref().map_or_else(|| pending().boxed(), Memory::recalled);
    let ears =
        Ears { sources: together(sources), recalled, objects, notices: heard, news, commands };
    tokio::join!(
        supervisor.run(ears),
        mirror_manager::run(mirrors, seams.clone(), node.identity.clone()),
        runtime_events::listen(Arc::clone(&node), tell_news),
        node_status::run(node, tell_identity),
        status_manager::run(statuses, seams.clone()),
        recorder::run(events, seams),
        async {
            if let Some(memory) = memory {
                memory.run().await;
            }
        },
    );
}

fn all_sources(seams: &Seams, local: Vec<(Source, PodSets)>) -> Vec<(Source, PodSets)> {
    let cluster = seams.cluster.pods().map(|sets| (Source::Api, sets));
    local.into_iter().chain(cluster).collect()
}

fn together(
    sources: Vec<(Source, PodSets)>,
) -> SelectAll<futures::stream::BoxStream<'static, (Source, Vec<Arc<Pod>>)>> {
    let named = |(source, sets): (Source, PodSets)| sets.map(move |pods| (source, pods)).boxed();
    futures::stream::select_all(sources.into_iter().map(named))
}
