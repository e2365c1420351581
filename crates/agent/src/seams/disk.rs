//! The agent's own ground on the machine: what a pod holds besides its containers, and what must not be forgotten.

use std::collections::BTreeMap;
use std::path::PathBuf;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_core::config::Payloads;
use oarsman_core::ids::{ContainerId, FullName, PodUid};
use oarsman_core::image::providers::Provider;
use oarsman_core::view::ContainerView;

/// Pod directories, cgroups (directories too, to the kernel) and remembered statuses. Every call may be
/// repeated: making what is there and removing what is gone succeed.
#[async_trait]
pub trait Disk: Send + Sync + 'static {
    /// Makes the pod's directories, its cgroup and its volumes, of which some hold these files. A volume that should have files and
    /// has none in `payloads` stays as it is.
    async fn prepare(&self, pod: &Pod, payloads: &Payloads) -> Result<(), DiskError>;

    /// Whether the pod's cgroup is there.
    async fn has_cgroup(&self, pod: &PodUid) -> Result<bool, DiskError>;

    /// Gives the pod's volumes back.
    async fn release_volumes(&self, pod: &PodUid) -> Result<(), DiskError>;

    /// Removes the pod's cgroup.
    async fn release_cgroup(&self, pod: &PodUid) -> Result<(), DiskError>;

    /// Removes the pod's directory and what is remembered of it.
    async fn remove(&self, pod: &PodUid) -> Result<(), DiskError>;

    /// Every pod that has a directory, a record, a cgroup or logs.
    async fn pods(&self) -> Result<BTreeMap<PodUid, Holding>, DiskError>;

    /// Remembers a pod's status over a restart of the agent, and when `lasting` over one of the machine.
    async fn remember(
        &self,
        pod: &PodUid,
        status: &PodStatus,
        lasting: bool,
    ) -> Result<(), DiskError>;

    /// What was remembered last.
    async fn recall(&self, pod: &PodUid) -> Result<Option<PodStatus>, DiskError>;

    /// What a container wrote as its last words, cut to the last bytes that count.
    async fn last_words(
        &self,
        pod: &PodUid,
        container: &ContainerView,
    ) -> Result<String, DiskError>;

    /// Makes what one container needs besides its pod's things: a directory for its log, a file for its last words, and
    /// the hosts file with this content.
    async fn furnish(
        &self,
        pod: &Pod,
        container: &str,
        restart_count: u32,
        hosts: Option<&str>,
    ) -> Result<Furniture, DiskError>;

    /// The node's file of credentials for registries, as it is now; none when there is none.
    async fn credentials(&self) -> Result<Option<String>, DiskError>;

    /// What a program of this machine answers that knows credentials of registries.
    async fn ask_provider(&self, provider: &Provider, question: &str)
    -> Result<Vec<u8>, DiskError>;

    /// The names of the files in a container's log directory.
    async fn log_names(&self, pod: &Pod, container: &str) -> Result<Vec<String>, DiskError>;

    /// Has the log of a started container found by the container's id, too.
    async fn link_log(
        &self,
        pod: &Pod,
        container: &str,
        restart_count: u32,
        id: &ContainerId,
    ) -> Result<(), DiskError>;

    /// Removes the log of a container that is removed.
    async fn discard_log(
        &self,
        pod: &PodUid,
        name: &FullName,
        container: &ContainerView,
    ) -> Result<(), DiskError>;
}

/// What of a pod there is on the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Whether its cgroup is there.
    pub cgroup: bool,
    /// Whether there is anything that only this agent can have made. Logs lie where those of other agents may lie, too.
    pub own: bool,
}

/// What was made for one container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Furniture {
    /// The empty file in which it leaves its last words.
    pub message_file: PathBuf,
    /// Its hosts file, when there was content for it.
    pub hosts: Option<PathBuf>,
}

/// Something on the machine did not work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {doing} {}: {why}", path.display())]
pub struct DiskError {
    /// What was tried.
    pub doing: &'static str,
    /// On what.
    pub path: PathBuf,
    /// What the system said.
    pub why: String,
}
