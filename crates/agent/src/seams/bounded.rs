//! Deadlines around the seams that do not promise any themselves: a mount or an API server that hangs is one failed call, which
//! its caller tries again, and never a worker that waits for ever.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_cluster::{Cluster, ClusterError, NodeObject, ObjectChanges, PodSets};
use oarsman_core::config::{Lookup, Payloads};
use oarsman_core::event::PodEvent;
use oarsman_core::ids::{ContainerId, FullName, PodUid};
use oarsman_core::image::providers::Provider;
use oarsman_core::pod::PodExt;
use oarsman_core::view::ContainerView;
use tokio::time::timeout;

use super::{Disk, DiskError, Furniture, Holding, Seams};

/// Volumes may take their time.
const DISK: Duration = Duration::from_secs(120);
const CLUSTER: Duration = Duration::from_secs(30);

/// The same seams, none of whose calls lasts for ever.
pub(crate) fn bounded(seams: Seams) -> Seams {
    Seams {
        cluster: Arc::new(Bounded(seams.cluster)),
        disk: Arc::new(Bounded(seams.disk)),
        ..seams
    }
}

struct Bounded<T: ?Sized>(Arc<T>);

async fn on_disk<T>(
    doing: &'static str,
    pod: &PodUid,
    call: impl Future<Output = Result<T, DiskError>>,
) -> Result<T, DiskError> {
    timeout(DISK, call).await.unwrap_or_else(|_| {
        let (path, why) = (PathBuf::from(pod.as_str()), format!("no answer within {DISK:?}"));
        Err(DiskError { doing, path, why })
    })
}

#[async_trait]
impl Disk for Bounded<dyn Disk> {
    async fn prepare(&self, pod: &Pod, payloads: &Payloads) -> Result<(), DiskError> {
        on_disk("prepare", &pod.uid(), self.0.prepare(pod, payloads)).await
    }

    async fn has_cgroup(&self, pod: &PodUid) -> Result<bool, DiskError> {
        on_disk("look for the cgroup of", pod, self.0.has_cgroup(pod)).await
    }

    async fn release_volumes(&self, pod: &PodUid) -> Result<(), DiskError> {
        on_disk("release the volumes of", pod, self.0.release_volumes(pod)).await
    }

    async fn release_cgroup(&self, pod: &PodUid) -> Result<(), DiskError> {
        on_disk("remove the cgroup of", pod, self.0.release_cgroup(pod)).await
    }

    async fn remove(&self, pod: &PodUid) -> Result<(), DiskError> {
        on_disk("remove the directory of", pod, self.0.remove(pod)).await
    }

    async fn pods(&self) -> Result<BTreeMap<PodUid, Holding>, DiskError> {
        on_disk("list the pods in", &PodUid::from("the root directory"), self.0.pods()).await
    }

    async fn remember(
        &self,
        pod: &PodUid,
        status: &PodStatus,
        lasting: bool,
    ) -> Result<(), DiskError> {
        on_disk("remember the status of", pod, self.0.remember(pod, status, lasting)).await
    }

    async fn recall(&self, pod: &PodUid) -> Result<Option<PodStatus>, DiskError> {
        on_disk("recall the status of", pod, self.0.recall(pod)).await
    }

    async fn last_words(
        &self,
        pod: &PodUid,
        container: &ContainerView,
    ) -> Result<String, DiskError> {
        on_disk("read the last words of", pod, self.0.last_words(pod, container)).await
    }

    async fn log_names(&self, pod: &Pod, container: &str) -> Result<Vec<String>, DiskError> {
        on_disk("list the logs of", &pod.uid(), self.0.log_names(pod, container)).await
    }

    async fn credentials(&self) -> Result<Option<String>, DiskError> {
        let place = PodUid::from("the root directory");
        on_disk("read the credentials in", &place, self.0.credentials()).await
    }

    async fn ask_provider(
        &self,
        provider: &Provider,
        question: &str,
    ) -> Result<Vec<u8>, DiskError> {
        let name = PodUid::from(provider.name.as_str());
        on_disk("ask for credentials", &name, self.0.ask_provider(provider, question)).await
    }

    async fn furnish(
        &self,
        pod: &Pod,
        container: &str,
        restart_count: u32,
        hosts: Option<&str>,
    ) -> Result<Furniture, DiskError> {
        let made = self.0.furnish(pod, container, restart_count, hosts);
        on_disk("furnish a container of", &pod.uid(), made).await
    }

    async fn link_log(
        &self,
        pod: &Pod,
        container: &str,
        restart_count: u32,
        id: &ContainerId,
    ) -> Result<(), DiskError> {
        let linked = self.0.link_log(pod, container, restart_count, id);
        on_disk("link a log of", &pod.uid(), linked).await
    }

    async fn discard_log(
        &self,
        pod: &PodUid,
        name: &FullName,
        container: &ContainerView,
    ) -> Result<(), DiskError> {
        on_disk("remove a log of", pod, self.0.discard_log(pod, name, container)).await
    }
}

async fn of_cluster<T>(
    call: &'static str,
    pod: &FullName,
    answer: impl Future<Output = oarsman_cluster::Result<T>>,
) -> oarsman_cluster::Result<T> {
    timeout(CLUSTER, answer).await.unwrap_or_else(|_| {
        let why = format!("no answer within {CLUSTER:?}");
        Err(ClusterError::Unavailable { call, object: ClusterError::pod(pod), why })
    })
}

#[async_trait]
impl Cluster for Bounded<dyn Cluster> {
    fn pods(&self) -> Option<PodSets> {
        self.0.pods()
    }

    async fn lookup(&self, pod: &Pod) -> oarsman_cluster::Result<Lookup> {
        of_cluster("the objects", &pod.full_name(), self.0.lookup(pod)).await
    }

    fn forget(&self, pod: &PodUid) {
        self.0.forget(pod);
    }

    fn object_changes(&self) -> ObjectChanges {
        self.0.object_changes()
    }

    async fn publish(
        &self,
        pod: &FullName,
        uid: &PodUid,
        status: &PodStatus,
    ) -> oarsman_cluster::Result<()> {
        of_cluster("the status", pod, self.0.publish(pod, uid, status)).await
    }

    async fn reflect(&self, mirror: &Pod) -> oarsman_cluster::Result<()> {
        of_cluster("the mirror", &mirror.full_name(), self.0.reflect(mirror)).await
    }

    async fn delete(&self, pod: &FullName, uid: &PodUid) -> oarsman_cluster::Result<()> {
        of_cluster("the deletion", pod, self.0.delete(pod, uid)).await
    }

    /// Whoever looks after the node keeps deadlines of its own.
    fn node(&self) -> Option<Arc<dyn NodeObject>> {
        self.0.node()
    }

    async fn record(&self, pod: &Pod, event: &PodEvent) {
        // An event that is not taken in time is dropped like any other that nobody hears.
        timeout(CLUSTER, self.0.record(pod, event)).await.ok();
    }
}
