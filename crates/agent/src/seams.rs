//! The seams: everything the agent does to the world, and everything it learns of it, goes through them.
//!
//! A seam's trait is in the crate of its real implementation; here they are only collected.

mod with_deadlines;

use std::sync::Arc;

use oarsman_clock::Clock;
use oarsman_cluster::Cluster;
use oarsman_cri::Runtime;
use oarsman_host::host_info::HostInfo;
use oarsman_host::pod_cgroups::Cgroups;
use oarsman_images::CredentialPlugins;
use oarsman_net::Network;
use oarsman_state::{CheckpointStore, PodFiles, PullRecords, StatusRecords};
use oarsman_volumes::Volumes;

pub(crate) use with_deadlines::with_deadlines;

/// The world as the agent sees it.
#[derive(Clone)]
pub struct Seams {
    /// What runs containers.
    pub runtime: Arc<dyn Runtime>,
    /// The API server; a stand-in without one.
    pub cluster: Arc<dyn Cluster>,
    /// The volumes of pods.
    pub volumes: Arc<dyn Volumes>,
    /// The cgroups of pods and of their QoS classes.
    pub cgroups: Arc<dyn Cgroups>,
    /// What the machine says of itself.
    pub host_info: Arc<dyn HostInfo>,
    /// Directories, files for containers, logs and termination messages.
    pub pod_files: Arc<dyn PodFiles>,
    /// Statuses that no API server remembers.
    pub records: Arc<dyn StatusRecords>,
    /// With whose credentials images were pulled.
    pub pull_records: Arc<dyn PullRecords>,
    /// The node's own credentials for registries, and programs that know others.
    pub credential_plugins: Arc<dyn CredentialPlugins>,
    /// Wall clock, monotonic clock and random draws.
    pub clock: Arc<dyn Clock>,
    /// Servers that are asked over HTTP. A call keeps its own deadline.
    pub network: Arc<dyn Network>,
    /// Where pods of the cluster are remembered; nowhere if they are not to be.
    pub checkpoints: Option<Arc<dyn CheckpointStore>>,
}
