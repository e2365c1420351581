//! Rotation of container logs: which logs there are, when each is checked, what rotated files are called, and which of them are removed or
//! compressed.
//!
//! The log of a container's start is `N.log`. It is renamed to `N.log.<time>`, after which the runtime opens a new `N.log`; at the next
//! rotation the renamed one becomes `N.log.<time>.gz`, by way of `N.log.<time>.tmp`.

mod growth;
mod rotated;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::ContainerStatus;

use crate::active_pods::ActivePod;
use crate::ids::{ContainerId, FullName, PodUid};
use crate::pod::PodExt;

pub use growth::{LogAction, LogFileState, LogGrowth};
pub use rotated::{
    COMPRESSED_SUFFIX, RotationPlan, UNFINISHED_SUFFIX, logs_to_compress, plan_rotation,
    rotated_in_order,
};

/// How container logs are rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRotationPolicy {
    /// A log of this size, in bytes, is rotated.
    pub max_size: u64,
    /// How many files of one start are kept, the one that is written to included.
    pub max_files: usize,
    /// How many logs are moved or compressed at a time.
    pub workers: usize,
    /// How often every log is checked.
    pub interval: Duration,
}

impl Default for LogRotationPolicy {
    fn default() -> Self {
        Self { max_size: 10 << 20, max_files: 5, workers: 1, interval: Duration::from_secs(10) }
    }
}

/// The log of one start of a container.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContainerLogFile {
    /// The pod's UID.
    pub pod: PodUid,
    /// The pod's name.
    pub pod_name: FullName,
    /// The container's name.
    pub container: String,
    /// How often the container was started before.
    pub restart_count: u32,
}

impl ContainerLogFile {
    /// The directory of the container's logs, below that of all logs.
    pub fn directory(&self) -> PathBuf {
        let FullName { name, namespace } = &self.pod_name;
        PathBuf::from(format!("{namespace}_{name}_{}", self.pod)).join(&self.container)
    }

    /// The name of the file that the runtime writes to.
    pub fn file_name(&self) -> String {
        format!("{}.log", self.restart_count)
    }
}

/// The logs of a pod's running containers, each with the container that writes to it.
pub fn running_logs(pod: &ActivePod) -> Vec<(ContainerId, ContainerLogFile)> {
    let (uid, name) = (pod.pod.uid(), pod.pod.full_name());
    let lists = pod.status().into_iter().flat_map(|status| {
        let (init, ephemeral) =
            (&status.init_container_statuses, &status.ephemeral_container_statuses);
        [init, &status.container_statuses, ephemeral]
    });
    let log = |status: &ContainerStatus| {
        status.state.as_ref()?.running.as_ref()?;
        let id = status.container_id.as_deref()?;
        // The API has the runtime's name before the id: containerd://….
        let id = ContainerId::from(id.split_once("://").map_or(id, |(_, id)| id));
        let file = ContainerLogFile {
            pod: uid.clone(),
            pod_name: name.clone(),
            container: status.name.clone(),
            restart_count: u32::try_from(status.restart_count).ok()?,
        };
        Some((id, file))
    };
    lists.flatten().flatten().filter_map(log).collect()
}
