//! The disk as an agent reaches it: every call over its life's line, since disks are slow and fail too.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_agent::seams::{Disk, DiskError, Furniture, Holding};
use oarsman_core::config::Payloads;
use oarsman_core::ids::{ContainerId, FullName, PodUid};
use oarsman_core::image::providers::Provider;
use oarsman_core::pod::PodExt;
use oarsman_core::view::ContainerView;

use super::FakeDisk;
use crate::line::{Breakage, Line, LineError};

/// Where pods' directories would lie.
pub(super) const PODS: &str = "/var/lib/oarsman/pods";
/// A disk that is stuck fails in the end.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

pub(super) const RELEASE_VOLUMES: &str = "release volumes of";
pub(super) const RELEASE_CGROUP: &str = "release cgroup of";
pub(super) const REMOVE: &str = "remove";

/// The disk at the other end of a line.
pub fn connect(disk: FakeDisk, line: Line) -> Arc<dyn Disk> {
    Arc::new(Connection { disk, line })
}

pub(super) struct Connection {
    pub(super) disk: FakeDisk,
    pub(super) line: Line,
}

#[async_trait]
impl Disk for Connection {
    async fn prepare(&self, pod: &Pod, payloads: &Payloads) -> Result<(), DiskError> {
        let (pod, payloads) = (pod.clone(), payloads.clone());
        forward!(self, "prepare", pod.uid(), disk => {
            disk.prepare(&pod, &payloads).await;
            Ok(())
        })
    }

    async fn has_cgroup(&self, pod: &PodUid) -> Result<bool, DiskError> {
        let uid = pod.clone();
        forward!(self, "look for cgroup of", pod, disk => Ok(disk.has_cgroup(&uid)))
    }

    async fn release_volumes(&self, pod: &PodUid) -> Result<(), DiskError> {
        let uid = pod.clone();
        forward!(self, RELEASE_VOLUMES, pod, disk => disk.release_volumes(&uid))
    }

    async fn release_cgroup(&self, pod: &PodUid) -> Result<(), DiskError> {
        let uid = pod.clone();
        forward!(self, RELEASE_CGROUP, pod, disk => disk.release_cgroup(&uid))
    }

    async fn remove(&self, pod: &PodUid) -> Result<(), DiskError> {
        let uid = pod.clone();
        forward!(self, REMOVE, pod, disk => disk.remove(&uid))
    }

    async fn pods(&self) -> Result<BTreeMap<PodUid, Holding>, DiskError> {
        forward!(self, "list", "", disk => Ok(disk.holdings()))
    }

    async fn remember(
        &self,
        pod: &PodUid,
        status: &PodStatus,
        lasting: bool,
    ) -> Result<(), DiskError> {
        let (uid, status) = (pod.clone(), status.clone());
        forward!(self, "remember", pod, disk => {
            disk.remember(&uid, status, lasting);
            Ok(())
        })
    }

    async fn recall(&self, pod: &PodUid) -> Result<Option<PodStatus>, DiskError> {
        let uid = pod.clone();
        forward!(self, "recall", pod, disk => Ok(disk.recall(&uid)))
    }

    async fn last_words(
        &self,
        pod: &PodUid,
        container: &ContainerView,
    ) -> Result<String, DiskError> {
        let container = container.clone();
        forward!(self, "read last words of", pod, disk => Ok(disk.last_words(&container)))
    }

    async fn log_names(&self, pod: &Pod, container: &str) -> Result<Vec<String>, DiskError> {
        let (pod, container) = (pod.clone(), container.to_owned());
        forward!(self, "list logs of", pod.uid(), disk => Ok(disk.log_names(&pod, &container)))
    }

    async fn credentials(&self) -> Result<Option<String>, DiskError> {
        forward!(self, "read credentials", "", disk => Ok(disk.credentials()))
    }

    /// This machine has no such programs.
    async fn ask_provider(&self, provider: &Provider, _: &str) -> Result<Vec<u8>, DiskError> {
        let name = provider.name.clone();
        forward!(self, "ask for credentials", name, _disk => {
            Err(error("start", &name, "there is no such program".to_owned()))
        })
    }

    async fn furnish(
        &self,
        pod: &Pod,
        container: &str,
        restart_count: u32,
        hosts: Option<&str>,
    ) -> Result<Furniture, DiskError> {
        let (uid, container) = (pod.uid(), container.to_owned());
        let hosts = hosts.map(str::to_owned);
        forward!(self, "furnish", uid, disk => {
            disk.furnish(&uid, &container, restart_count, hosts.as_deref())
        })
    }

    /// Nobody in this world looks a log up by its container's id.
    async fn link_log(&self, pod: &Pod, _: &str, _: u32, _: &ContainerId) -> Result<(), DiskError> {
        forward!(self, "link log of", pod.uid(), _disk => Ok(()))
    }

    async fn discard_log(
        &self,
        pod: &PodUid,
        name: &FullName,
        container: &ContainerView,
    ) -> Result<(), DiskError> {
        let (uid, name, container) = (pod.clone(), name.clone(), container.clone());
        forward!(self, "remove log of", pod, disk => {
            disk.discard_log(&uid, &name, &container);
            Ok(())
        })
    }
}

/// An error about a pod's directory.
pub(super) fn error(doing: &'static str, uid: &str, why: String) -> DiskError {
    DiskError { doing, path: Path::new(PODS).join(uid), why }
}

impl LineError for DiskError {
    fn broken(call: &'static str, subject: &str, how: Breakage) -> Self {
        let why = match how {
            Breakage::TimedOut(limit) => format!("nothing happened within {limit:?}"),
            Breakage::Unavailable | Breakage::Unknown | Breakage::Refused | Breakage::Busy(_) => {
                "input/output error".to_owned()
            }
        };
        error(call, subject, why)
    }

    fn kind(&self) -> String {
        self.why.clone()
    }
}
