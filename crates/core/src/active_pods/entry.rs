//! One pod of the read model, and what can be asked about it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodStatus};

use crate::ids::ContainerId;
use crate::lifecycle::Stage;
use crate::pod::{PodExt, SOURCE_ANNOTATION};
use crate::qos::{self, QosClass};
use crate::resources::amounts::ResourceList;
use crate::resources::pod_requests;
use crate::sources::Source;

/// How far a pod has come on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodStage {
    /// Has a worker, which is at this stage.
    Worker(Stage),
    /// Has none: waits until another pod of its name is gone.
    Waiting,
}

/// One pod at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivePod {
    /// The pod as its source wants it.
    pub pod: Arc<Pod>,
    /// How far it has come.
    pub stage: PodStage,
    /// Whether its source holds it no more: what is left of it is taken down.
    pub is_dropped: bool,
    /// The status that its worker made last.
    pub(super) worker_status: Option<Arc<PodStatus>>,
}

impl ActivePod {
    /// The status that its worker made last; before the first one, the status that its source has.
    pub fn status(&self) -> Option<&PodStatus> {
        self.worker_status.as_deref().or(self.pod.status.as_ref())
    }

    /// What it requests, its overhead included.
    pub fn requests(&self) -> ResourceList {
        pod_requests(&self.pod)
    }

    /// Its priority; pods of a higher one are evicted later.
    pub fn priority(&self) -> i32 {
        self.pod.spec().and_then(|spec| spec.priority).unwrap_or_default()
    }

    /// The QoS class, by which eviction ranks pods.
    pub fn qos(&self) -> QosClass {
        qos::class(&self.pod)
    }

    /// Where it comes from; none of a pod that only the runtime or the disk knows.
    pub fn source(&self) -> Option<Source> {
        self.pod.annotation(SOURCE_ANNOTATION).and_then(Source::from_annotation)
    }

    /// The containers that its status names.
    pub(super) fn container_ids(&self) -> impl Iterator<Item = ContainerId> {
        let lists = self.status().into_iter().flat_map(|status| {
            [
                &status.init_container_statuses,
                &status.container_statuses,
                &status.ephemeral_container_statuses,
            ]
        });
        let ids = lists.flatten().flatten().filter_map(|it| it.container_id.as_deref());
        // The API has the runtime's name before the id: containerd://….
        ids.map(|id| ContainerId::from(id.split_once("://").map_or(id, |(_, id)| id)))
    }
}
