//! What the server needs to know of the agent.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::Pod;

/// The agent, as far as the server needs it.
pub trait Source: Send + Sync + 'static {
    /// Every pod of this node with its status as it is.
    fn pods(&self) -> Vec<Pod>;

    /// One of them by namespace and name.
    fn pod(&self, namespace: &str, name: &str) -> Option<Pod> {
        let is_it = |pod: &Pod| {
            pod.metadata.name.as_deref() == Some(name)
                && pod.metadata.namespace.as_deref().unwrap_or("default") == namespace
        };
        self.pods().into_iter().find(is_it)
    }

    /// Where the logs of a pod's container are, one file for each start.
    fn logs(&self, pod: &Pod, container: &str) -> LogPlace;
}

/// A directory of log files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPlace(pub PathBuf);
