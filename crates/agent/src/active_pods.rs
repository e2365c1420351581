//! Access to the read model of the pods of this node: pod workers report, the supervisor alone writes, everything else reads.

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_core::active_pods::{ActivePod, ActivePods, PodUpdate};
use oarsman_core::ids::{ContainerId, FullName, PodUid};
use oarsman_core::lifecycle::Stage;
use oarsman_core::pod::PodExt;
use oarsman_sync::Guarded;

#[cfg(test)]
mod tests;

/// Queries on the pods of this node; clones read the same pods. An answer is an entry that is shared, not copied.
#[derive(Clone, Debug, Default)]
pub struct ActivePodsReader(Arc<Guarded<ActivePods>>);

impl ActivePodsReader {
    /// The pod of that UID.
    pub fn by_uid(&self, uid: &PodUid) -> Option<Arc<ActivePod>> {
        self.0.lock().by_uid(uid).cloned()
    }

    /// The pod of that name; of several, the one that has come least far, and one that waits for the name last.
    pub fn by_name(&self, name: &FullName) -> Option<Arc<ActivePod>> {
        self.0.lock().by_name(name).cloned()
    }

    /// The pod of that name and UID, which may be that of its mirror pod.
    pub fn by_name_and_uid(&self, name: &FullName, uid: &PodUid) -> Option<Arc<ActivePod>> {
        self.0.lock().by_name_and_uid(name, uid).cloned()
    }

    /// The pod whose status names that container.
    pub fn by_container(&self, id: &ContainerId) -> Option<Arc<ActivePod>> {
        self.0.lock().by_container(id).cloned()
    }

    /// All pods, in the order of their UIDs.
    pub fn all(&self) -> Vec<Arc<ActivePod>> {
        self.0.lock().all().cloned().collect()
    }

    /// Waits for a change since the last call of this. One task at most may wait: the container log manager.
    pub(crate) async fn changed(&self) {
        self.0.changed().await;
    }
}

/// What workers reported and the supervisor has not applied yet: for each pod the latest, so that no worker has to wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodUpdates(Arc<Guarded<BTreeMap<PodUid, PodUpdate>>>);

impl PodUpdates {
    /// The pod's worker has reached this stage.
    pub(crate) fn set_stage(&self, uid: &PodUid, stage: Stage) {
        self.update(uid, |update| update.stage = Some(stage));
    }

    /// The pod's worker made this status.
    pub(crate) fn set_status(&self, uid: &PodUid, status: PodStatus) {
        self.update(uid, |update| update.status = Some(Arc::new(status)));
    }

    fn update(&self, uid: &PodUid, change: impl FnOnce(&mut PodUpdate)) {
        self.0.update(|updates| change(updates.entry(uid.clone()).or_default()));
    }
}

/// The only way to change the read model; the supervisor has it.
#[derive(Debug)]
pub(crate) struct ActivePodsWriter {
    pods: ActivePodsReader,
    updates: PodUpdates,
}

impl ActivePodsWriter {
    /// Writes for these readers. What a supervisor before this one wrote is removed.
    pub(crate) fn new(pods: ActivePodsReader, updates: PodUpdates) -> Self {
        *pods.0.lock() = ActivePods::default();
        Self { pods, updates }
    }

    /// The pods as readers see them.
    pub(crate) fn reader(&self) -> &ActivePodsReader {
        &self.pods
    }

    /// Waits for reports of workers.
    pub(crate) async fn reported(&self) {
        self.updates.0.changed().await;
    }

    /// Changes the read model. What workers reported before comes first: the report of an earlier worker must not end up in the entry
    /// of its successor.
    pub(crate) fn update(&self, change: impl FnOnce(&mut ActivePods)) {
        let updates = take(&mut *self.updates.0.lock());
        self.pods.0.update(|pods| {
            for (uid, update) in updates {
                pods.apply(&uid, update);
            }
            change(pods);
        });
    }

    /// The API server has these mirror pods. Nothing waits for a change of them.
    pub(crate) fn set_mirrors(&self, mirrors: &[Arc<Pod>]) {
        let mirrors = mirrors.iter().map(|mirror| (mirror.full_name(), mirror.uid())).collect();
        self.pods.0.lock().set_mirrors(mirrors);
    }

    /// Applies what workers reported.
    pub(crate) fn apply_reports(&self) {
        self.update(|_| {});
    }
}
