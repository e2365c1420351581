//! The node context, which all pod workers share, and the agent's configuration.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use oarsman_core::admission::{AdmissionNode, Ownership};
use oarsman_core::cri_spec::{NameFiles, NodeContext, NodeSettings};
use oarsman_core::features::FeatureGates;
use oarsman_core::gc::containers::ContainerGcPolicy;
use oarsman_core::ids::PodUid;
use oarsman_core::image::providers::{CredentialProvider, ProviderCache};
use oarsman_core::log_rotation::LogRotationPolicy;
use oarsman_core::node::NodeFacts;
use oarsman_core::node::addresses::AddressSettings;
use oarsman_core::requeue::Requeue;
use oarsman_core::user_namespace::UserNamespaceSettings;
use oarsman_spans::Tracer;
use oarsman_sync::Guarded;
use tokio::sync::mpsc;

use crate::active_pods::{ActivePodsReader, PodUpdates};
use crate::container_lifecycle::ContainerHooks;
use crate::decisions::Decisions;
use crate::event_recorder::EventRecorder;
use crate::images::ImageManagerConfig;
use crate::images::image_uses::ImageUses;
use crate::images::pull_manager::PullManager;
use crate::metrics::AgentMetrics;
use crate::mirror_manager::MirrorManager;
use crate::node_addresses::NodeAddresses;
use crate::node_status::{NodeEventSender, NodeStatusConfig};
use crate::ordered_watch;
use crate::pod_worker::BackgroundTasks;
use crate::pull_queue::PullQueue;
use crate::report_store::ReportStore;
use crate::runtime_health::RuntimeHealthCache;
use crate::seams::Seams;
use crate::status_manager::StatusManager;
use crate::sync_loop_monitor::SyncLoopMonitor;
use crate::user_namespaces::UserNamespaceManager;
use crate::volume_manager::VolumeManager;

/// The agent's configuration.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// The runtime's name for itself, such as `containerd`.
    pub runtime_name: String,
    /// Whether the runtime can make a mount read-only all the way down.
    pub recursive_read_only: bool,
    /// What ids user namespaces of pods have.
    pub user_namespaces: UserNamespaceSettings,
    /// How the node's addresses are found.
    pub addresses: AddressSettings,
    /// Which features are on.
    pub features: FeatureGates,
    /// What goes into every pod.
    pub settings: NodeSettings,
    /// The delays before a pod is synced again.
    pub requeue: Requeue,
    /// The upper bound of the crash back-off.
    pub longest_crash_backoff: Duration,
    /// Where pods' log directories lie.
    pub pod_logs: PathBuf,
    /// How container logs are rotated, if they are.
    pub log_rotation: Option<LogRotationPolicy>,
    /// Which dead containers are kept.
    pub container_gc: ContainerGcPolicy,
    /// How often the runtime is relisted, to notice changes without an event.
    pub relist_period: Duration,
    /// How many images are pulled at once.
    pub parallel_pulls: usize,
    /// How images are verified and removed, and how often registries are asked.
    pub images: ImageManagerConfig,
    /// Credential provider plugins.
    pub providers: Vec<CredentialProvider>,
    /// What in the runtime is ours.
    pub ownership: Ownership,
    /// The node as pods are admitted to it, by its own facts.
    pub admission_node: AdmissionNode,
    /// How the node registers and reports; none without a cluster.
    pub node_status_config: Option<NodeStatusConfig>,
}

/// The node as the API server knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeIdentity {
    /// What it is called.
    pub name: String,
    /// The UID of its object.
    pub uid: String,
    /// Whether its object is being deleted.
    pub is_deleting: bool,
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
    /// The node with what the API server knows of it.
    pub(crate) admission_node: ordered_watch::Receiver<AdmissionNode>,
    pub(crate) addresses: NodeAddresses,
    /// What the runtime last said of itself.
    pub(crate) runtime_health: RuntimeHealthCache,
    pub(crate) sync_loop_monitor: SyncLoopMonitor,
    pub(crate) recorder: EventRecorder,
    pub(crate) volume_manager: VolumeManager,
    pub(crate) user_namespaces: UserNamespaceManager,
    pub(crate) pulls: PullQueue,
    pub(crate) pull_manager: PullManager,
    /// Images that pods are about to use.
    pub(crate) image_uses: ImageUses,
    /// The pods of this node.
    pub(crate) active_pods: ActivePodsReader,
    /// Events of the node.
    pub(crate) node_events: NodeEventSender,
    /// Resource managers around the life of containers.
    pub(crate) container_lifecycle: ContainerHooks,
    /// What makes the background tasks of pods.
    pub(crate) background: Vec<Arc<dyn BackgroundTasks>>,
    /// What credential provider plugins answered.
    pub(crate) credentials: Guarded<ProviderCache>,
    /// How many images were pulled.
    pub(crate) pulled: ordered_watch::Sender<u64>,
    /// Pods whose spec asks for other resources than they were given.
    pub(crate) resizes: PendingResizes,
    pub(crate) metrics: Arc<AgentMetrics>,
    /// None unless traces are configured.
    pub(crate) tracer: Option<Arc<Tracer>>,
    pub(crate) report_store: Arc<ReportStore>,
    pub(crate) notices: mpsc::Sender<WorkerNotice>,
}

impl AgentContext {
    /// What goes into every status now.
    pub(crate) fn facts(&self) -> NodeFacts {
        NodeFacts {
            runtime_name: self.config.runtime_name.clone(),
            host_ips: self.addresses.get().iter().map(ToString::to_string).collect(),
            recursive_read_only: self.config.recursive_read_only,
            features: self.config.features,
        }
    }

    /// The primary address of the node.
    pub(crate) fn host_ip(&self) -> Option<String> {
        self.addresses.get().first().map(ToString::to_string)
    }

    /// The node as pods are described for it.
    pub(crate) fn node_context<'a>(
        &'a self,
        facts: &'a NodeFacts,
        name_files: &'a NameFiles,
    ) -> NodeContext<'a> {
        NodeContext {
            root: &self.config.ownership.root,
            pod_logs: &self.config.pod_logs,
            facts,
            settings: &self.config.settings,
            name_files,
        }
    }
}

/// The pods whose spec asks for other resources than they were given. The supervisor writes it, and workers read it for their status.
#[derive(Debug, Default)]
pub(crate) struct PendingResizes(Guarded<BTreeSet<PodUid>>);

impl PendingResizes {
    pub(crate) fn contains(&self, uid: &PodUid) -> bool {
        self.0.lock().contains(uid)
    }

    pub(crate) fn set(&self, uid: &PodUid, is_pending: bool) {
        let mut pods = self.0.lock();
        if is_pending {
            pods.insert(uid.clone());
        } else {
            pods.remove(uid);
        }
    }
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
