//! The settings of an agent, as `kubelet` makes them from configuration and flags, and `run` from its own flags.

use std::path::PathBuf;
use std::time::Duration;

use oarsman_agent::{ImageManagerConfig, NodeStatusConfig};
use oarsman_cluster::{Freshness, ProjectionGates, RequestLimits};
use oarsman_core::admission::Mode;
use oarsman_core::features::FeatureGates;
use oarsman_core::gc::containers::ContainerGcPolicy;
use oarsman_core::image::providers::CredentialProvider;
use oarsman_core::log_rotation::LogRotationPolicy;
use oarsman_core::node::addresses::AddressSettings;
use oarsman_core::user_namespace::UserNamespaceSettings;
use oarsman_runtime::PodNetworkChoice;
use oarsman_spans::TracingSettings;
use oarsman_state::CheckpointKeys;

use crate::runtime_endpoint::RuntimeEndpoint;

/// Everything that decides how an agent behaves.
#[derive(Debug, Clone)]
pub(crate) struct AgentSettings {
    pub(crate) mode: Mode,
    /// The directory that holds all of this agent's files.
    pub(crate) root: PathBuf,
    pub(crate) node_name: String,
    /// How the node's addresses are found.
    pub(crate) addresses: AddressSettings,
    /// Which features are on.
    pub(crate) features: FeatureGates,
    /// What the Node object says, and the values that pods read of their node.
    pub(crate) node_status: NodeStatusConfig,
    pub(crate) runtime_endpoint: RuntimeEndpoint,
    pub(crate) image_endpoint: Option<String>,
    /// What connects pods of the embedded runtime.
    pub(crate) pod_networks: PodNetworkChoice,
    /// Where spans are sent, if any is sampled.
    pub(crate) tracing: Option<TracingSettings>,
    /// The longest an ordinary call to the runtime may take.
    pub(crate) request_timeout: Duration,
    pub(crate) sources: SourceSettings,
    /// None for a node that belongs to no cluster.
    pub(crate) cluster: Option<ClusterSettings>,
    pub(crate) pod_logs: PathBuf,
    /// The directory with a link to each container's log, if there is one.
    pub(crate) container_logs: Option<PathBuf>,
    /// How container logs are rotated, if they are.
    pub(crate) log_rotation: Option<LogRotationPolicy>,
    /// Which dead containers are kept.
    pub(crate) container_gc: ContainerGcPolicy,
    pub(crate) cgroup_root: String,
    /// The cgroup driver for a runtime that does not report its own.
    pub(crate) systemd_cgroups: bool,
    /// How often all pods of the runtime are listed.
    pub(crate) relist_period: Duration,
    pub(crate) parallel_pulls: usize,
    pub(crate) images: ImageManagerConfig,
    pub(crate) providers: CredentialProviders,
    pub(crate) longest_crash_backoff: Duration,
    pub(crate) cluster_dns: Vec<String>,
    pub(crate) cluster_domain: String,
    /// The node's resolv.conf; none to give pods nothing of it.
    pub(crate) resolv_conf: Option<PathBuf>,
    pub(crate) pod_pids_limit: Option<u64>,
    pub(crate) containers: ContainerSettings,
    /// Sysctls that pods may set besides those that are safe, as names or patterns that end in `*`.
    pub(crate) allowed_unsafe_sysctls: Vec<String>,
    /// What ids user namespaces of pods have.
    pub(crate) user_namespaces: UserNamespaceSettings,
}

/// The credential provider plugins for image registries.
#[derive(Debug, Clone, Default)]
pub(crate) struct CredentialProviders {
    pub(crate) known: Vec<CredentialProvider>,
    /// The directory of the plugins' programs.
    pub(crate) directory: PathBuf,
    /// Of the files that they were read from; none without any.
    pub(crate) hash: Option<String>,
}

/// How a node belongs to a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClusterSettings {
    /// The kubeconfig with the API server's address and our credentials.
    pub(crate) kubeconfig: PathBuf,
    /// The kubeconfig with the credentials of a node that has no certificate yet.
    pub(crate) bootstrap: Option<PathBuf>,
    /// The directory of our certificates.
    pub(crate) cert_dir: PathBuf,
    /// Whether we renew our client certificate.
    pub(crate) rotates: bool,
    /// Whether pods are checkpointed, and started again while the API server cannot be reached.
    pub(crate) remembers_pods: bool,
    /// Where the key is that such pods are sealed with.
    pub(crate) checkpoint_keys: CheckpointKeys,
    /// How ConfigMaps and Secrets are kept up to date.
    pub(crate) freshness: Freshness,
    /// Which sources of projected volumes are on.
    pub(crate) projections: ProjectionGates,
    /// How often the API server is asked.
    pub(crate) request_limits: RequestLimits,
}

/// Settings that hold for every container of this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContainerSettings {
    /// Whether CPU limits are enforced, and over which period.
    pub(crate) cfs_quota: bool,
    pub(crate) cfs_period: Duration,
    /// Whether running out of memory kills one process and not the container.
    pub(crate) single_process_oom_kill: bool,
    /// Whether Burstable containers may swap.
    pub(crate) may_swap: bool,
    /// Whether the runtime's default seccomp profile is used for containers that name none.
    pub(crate) seccomp_default: bool,
}

impl Default for ContainerSettings {
    fn default() -> Self {
        Self {
            cfs_quota: true,
            cfs_period: Duration::from_millis(100),
            single_process_oom_kill: false,
            may_swap: false,
            seccomp_default: false,
        }
    }
}

/// The sources of static pods.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceSettings {
    /// A directory or file of manifests.
    pub(crate) files: Option<PathBuf>,
    pub(crate) rescan: Duration,
    /// A URL of manifests.
    pub(crate) url: Option<String>,
    pub(crate) url_headers: Vec<(String, String)>,
    pub(crate) fetch: Duration,
}
