//! What an agent is to be like, whoever says so: flags, a configuration file, or a command's own needs.

use std::path::PathBuf;
use std::time::Duration;

use oarsman_agent::Membership;
use oarsman_cluster::Freshness;
use oarsman_core::image::providers::Provider;
use oarsman_core::ledger::Mode;

/// Everything that decides how an agent behaves.
#[derive(Debug, Clone)]
pub(crate) struct AgentSettings {
    pub(crate) mode: Mode,
    /// Below which everything of this agent lies.
    pub(crate) root: PathBuf,
    pub(crate) node_name: String,
    pub(crate) node_ips: Vec<String>,
    /// What the node is to its cluster, and what it has for pods.
    pub(crate) node_status: Membership,
    pub(crate) runtime_endpoint: String,
    pub(crate) image_endpoint: Option<String>,
    /// The longest an ordinary call to the runtime may take.
    pub(crate) request_timeout: Duration,
    pub(crate) sources: SourceSettings,
    /// None for a node that belongs to no cluster.
    pub(crate) cluster: Option<ClusterSettings>,
    pub(crate) pod_logs: PathBuf,
    /// Where logs are linked by container, if anywhere.
    pub(crate) container_logs: Option<PathBuf>,
    pub(crate) cgroup_root: String,
    /// Used when the runtime does not tell which one it uses.
    pub(crate) systemd_cgroups: bool,
    /// How often everything is counted.
    pub(crate) relist_period: Duration,
    pub(crate) parallel_pulls: usize,
    pub(crate) providers: CredentialProviders,
    pub(crate) longest_crash_backoff: Duration,
    pub(crate) cluster_dns: Vec<String>,
    pub(crate) cluster_domain: String,
    /// The file with the node's resolver; none to give pods nothing of it.
    pub(crate) resolv_conf: Option<PathBuf>,
    pub(crate) pod_pids_limit: Option<u64>,
    pub(crate) containers: ContainerSettings,
}

/// Programs that know credentials of registries.
#[derive(Debug, Clone, Default)]
pub(crate) struct CredentialProviders {
    pub(crate) known: Vec<Provider>,
    /// Where they lie.
    pub(crate) directory: PathBuf,
}

/// How a node belongs to a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClusterSettings {
    /// Where the API server is, and who we are to it.
    pub(crate) kubeconfig: PathBuf,
    /// The same, for those who are nobody yet.
    pub(crate) bootstrap: Option<PathBuf>,
    /// Where our certificates lie.
    pub(crate) cert_dir: PathBuf,
    /// Whether we renew our own certificate.
    pub(crate) rotates: bool,
    /// Whether pods come back when the API server is away.
    pub(crate) remembers_pods: bool,
    /// How ConfigMaps and Secrets are kept up to date.
    pub(crate) freshness: Freshness,
}

/// What holds for every container here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContainerSettings {
    /// Whether CPU limits are enforced, and over which period.
    pub(crate) cfs_quota: bool,
    pub(crate) cfs_period: Duration,
    /// Whether running out of memory kills one process and not the container.
    pub(crate) single_process_oom_kill: bool,
    /// Whether burstable ones may swap.
    pub(crate) may_swap: bool,
    /// Whether the runtime's seccomp profile confines those that do not say otherwise.
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

/// Where pods come from.
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
