//! The trait by which the server reads the agent's state.

use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::active_pods::ActivePod;
use oarsman_core::ids::FullName;

use crate::stats_provider::StatsProvider;

/// The agent's state, as far as the server needs it.
pub trait HostInterface: Send + Sync + 'static {
    /// Every pod of this node, in the order of namespaces and names.
    fn pods(&self) -> Vec<Arc<ActivePod>>;

    /// The pod of that name, without a look at the others.
    fn pod(&self, name: &FullName) -> Option<Arc<ActivePod>>;

    /// Whether the sync loop runs, or why it does not.
    ///
    /// # Errors
    /// The reason, in words.
    fn sync_loop_health(&self) -> Result<(), String>;

    /// Whether the agent's own log is written, or why it is not.
    ///
    /// # Errors
    /// The reason, in words.
    fn log_health(&self) -> Result<(), String>;

    /// Changes the verbosity of the agent's own log, until the agent ends.
    fn set_log_verbosity(&self, verbosity: u32);

    /// Where the logs of a pod's container are, one file for each start.
    fn log_directory(&self, pod: &Pod, container: &str) -> LogDirectory;

    /// What measures the node.
    fn stats_provider(&self) -> Arc<dyn StatsProvider>;
}

/// A directory of log files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDirectory(pub PathBuf);
