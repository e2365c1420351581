//! The node context, which all pod workers share, and the agent's configuration.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use oarsman_core::admission::Ownership;
use oarsman_core::cri_spec::{NodeContext, NodeSettings};
use oarsman_core::ids::PodUid;
use oarsman_core::image::providers::{CredentialProvider, ProviderCache};
use oarsman_core::node::NodeFacts;
use oarsman_core::requeue::Requeue;
use oarsman_sync::Guarded;
use tokio::sync::mpsc;

use crate::active_pods::PodUpdates;
use crate::container_lifecycle::ContainerHooks;
use crate::decisions::Decisions;
use crate::event_recorder::EventRecorder;
use crate::metrics::AgentMetrics;
use crate::mirror_manager::MirrorManager;
use crate::node_status::NodeStatusConfig;
use crate::ordered_watch;
use crate::pod_worker::BackgroundTasks;
use crate::pull_queue::PullQueue;
use crate::report_store::ReportStore;
use crate::seams::Seams;
use crate::status_manager::StatusManager;
use crate::volume_manager::VolumeManager;

/// The agent's configuration.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// What goes into every status.
    pub facts: NodeFacts,
    /// What goes into every pod.
    pub settings: NodeSettings,
    /// The delays before a pod is synced again.
    pub requeue: Requeue,
    /// The upper bound of the crash back-off.
    pub longest_crash_backoff: Duration,
    /// Where pods' log directories lie.
    pub pod_logs: PathBuf,
    /// How often the runtime is relisted, to notice changes without an event.
    pub relist_period: Duration,
    /// How many images are pulled at once.
    pub parallel_pulls: usize,
    /// Credential provider plugins.
    pub providers: Vec<CredentialProvider>,
    /// What in the runtime is ours.
    pub ownership: Ownership,
    /// How the node registers and reports; none without a cluster.
    pub node_status_config: Option<NodeStatusConfig>,
}

impl AgentConfig {
    /// The node as pods are described for it.
    pub fn node_context(&self) -> NodeContext<'_> {
        NodeContext {
            root: &self.ownership.root,
            pod_logs: &self.pod_logs,
            facts: &self.facts,
            settings: &self.settings,
        }
    }
}

/// The node as the API server knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeIdentity {
    /// What it is called.
    pub name: String,
    /// The UID of its object.
    pub uid: String,
}

/// What workers share.
pub(crate) struct AgentContext {
    pub(crate) seams: Seams,
    pub(crate) config: AgentConfig,
    /// When this agent began, by the wall clock.
    pub(crate) began: Timestamp,
    pub(crate) decisions: Arc<dyn Decisions>,
    pub(crate) statuses: StatusManager,
    pub(crate) mirrors: MirrorManager,
    /// What workers report for the read model of active pods.
    pub(crate) pod_updates: PodUpdates,
    /// Name and UID of the node's object, once they are known.
    pub(crate) identity: ordered_watch::Receiver<Option<NodeIdentity>>,
    pub(crate) recorder: EventRecorder,
    pub(crate) volume_manager: VolumeManager,
    pub(crate) pulls: PullQueue,
    /// Resource managers around the life of containers.
    pub(crate) container_lifecycle: ContainerHooks,
    /// What makes the background tasks of pods.
    pub(crate) background: Vec<Arc<dyn BackgroundTasks>>,
    /// What credential provider plugins answered.
    pub(crate) credentials: Guarded<ProviderCache>,
    /// How many images were pulled.
    pub(crate) pulled: ordered_watch::Sender<u64>,
    pub(crate) metrics: Arc<AgentMetrics>,
    pub(crate) report_store: Arc<ReportStore>,
    pub(crate) notices: mpsc::Sender<WorkerNotice>,
}

/// What a worker sends to the supervisor.
#[derive(Debug)]
pub(crate) enum WorkerNotice {
    /// Nothing of the pod runs any more: its resources are free.
    Stopped(PodUid),
    /// Everything of the pod is released; its name is free.
    Finished(PodUid),
    /// The worker has ended, and nothing is left of the pod.
    Forgotten(PodUid),
}
