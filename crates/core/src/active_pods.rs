//! The read model of the pods of this node: what server, metrics, eviction and admission ask about pods, without copying them.
//!
//! Each pod is one immutable entry behind an [`Arc`]; a change replaces the entry of one pod and touches no other. Reports for display
//! are separate from it (`report`).

mod counts;
mod entry;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodStatus};

use crate::ids::{ContainerId, FullName, PodUid};
use crate::lifecycle::Stage;
use crate::pod::PodExt;

pub use counts::{PodConfigState, PodCounts, WorkingPods};
pub use entry::{ActivePod, PodStage};

/// What a pod worker reports of its pod. What is none has not changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodUpdate {
    /// The stage that the worker has reached.
    pub stage: Option<Stage>,
    /// The status that it made.
    pub status: Option<Arc<PodStatus>>,
}

/// All pods of this node, by UID, full name and container id.
#[derive(Clone, Debug, Default)]
pub struct ActivePods {
    pods: BTreeMap<PodUid, Arc<ActivePod>>,
    names: BTreeMap<FullName, BTreeSet<PodUid>>,
    containers: BTreeMap<ContainerId, PodUid>,
    /// The UIDs of the mirror pods that the API server has.
    mirrors: BTreeMap<FullName, PodUid>,
}

impl ActivePods {
    /// The pod of that UID.
    pub fn by_uid(&self, uid: &PodUid) -> Option<&Arc<ActivePod>> {
        self.pods.get(uid)
    }

    /// The pod of that name; of several, the one that has come least far, and one that waits for the name last.
    pub fn by_name(&self, name: &FullName) -> Option<&Arc<ActivePod>> {
        let pods = self.names.get(name)?.iter().filter_map(|uid| self.pods.get(uid));
        pods.min_by_key(|pod| pod.stage)
    }

    /// The pod of that name and UID. A static pod has the UID of its mirror pod, too: clients of the API server know no other.
    pub fn by_name_and_uid(&self, name: &FullName, uid: &PodUid) -> Option<&Arc<ActivePod>> {
        if self.mirrors.get(name) == Some(uid) {
            return self.by_name(name).filter(|pod| pod.pod.is_static());
        }
        self.by_uid(uid).filter(|pod| pod.pod.full_name() == *name)
    }

    /// The pod whose status names that container.
    pub fn by_container(&self, id: &ContainerId) -> Option<&Arc<ActivePod>> {
        self.containers.get(id).and_then(|uid| self.pods.get(uid))
    }

    /// All pods, in the order of their UIDs.
    pub fn all(&self) -> impl Iterator<Item = &Arc<ActivePod>> {
        self.pods.values()
    }

    /// The API server has these mirror pods, and no others.
    pub fn set_mirrors(&mut self, mirrors: BTreeMap<FullName, PodUid>) {
        self.mirrors = mirrors;
    }

    /// Adds a pod that has come so far. A pod that gets another worker keeps the status that the last one made.
    pub fn set_pod(&mut self, pod: &Arc<Pod>, stage: PodStage) {
        let known = self.pods.get(&pod.uid());
        let worker_status = known.and_then(|known| known.worker_status.clone());
        let pod = Arc::clone(pod);
        self.insert(ActivePod { pod, stage, is_dropped: false, worker_status });
    }

    /// Replaces what the source wants of a pod. One that is not there stays away.
    pub fn edit_pod(&mut self, pod: &Arc<Pod>) {
        if let Some(stage) = self.pods.get(&pod.uid()).map(|known| known.stage) {
            self.set_pod(pod, stage);
        }
    }

    /// The pod's source holds it no more.
    pub fn mark_dropped(&mut self, uid: &PodUid) {
        let dropped = self.pods.get(uid).filter(|known| !known.is_dropped).cloned();
        if let Some(known) = dropped {
            self.insert(ActivePod { is_dropped: true, ..Arc::unwrap_or_clone(known) });
        }
    }

    /// Applies the report of a pod's worker. One that comes after the pod was removed is ignored.
    pub fn apply(&mut self, uid: &PodUid, update: PodUpdate) {
        let Some(known) = self.pods.get(uid) else { return };
        let stage = update.stage.map_or(known.stage, PodStage::Worker);
        let worker_status = update.status.or_else(|| known.worker_status.clone());
        if (stage, &worker_status) != (known.stage, &known.worker_status) {
            let (pod, is_dropped) = (Arc::clone(&known.pod), known.is_dropped);
            self.insert(ActivePod { pod, stage, is_dropped, worker_status });
        }
    }

    /// Removes a pod of which nothing is left.
    pub fn remove(&mut self, uid: &PodUid) {
        let Some(pod) = self.pods.remove(uid) else { return };
        let name = pod.pod.full_name();
        if let Some(uids) = self.names.get_mut(&name) {
            uids.remove(uid);
            if uids.is_empty() {
                self.names.remove(&name);
            }
        }
        for id in pod.container_ids() {
            self.containers.remove(&id);
        }
    }

    fn insert(&mut self, pod: ActivePod) {
        let uid = pod.pod.uid();
        self.remove(&uid);
        self.names.entry(pod.pod.full_name()).or_default().insert(uid.clone());
        self.containers.extend(pod.container_ids().map(|id| (id, uid.clone())));
        self.pods.insert(uid, Arc::new(pod));
    }
}
