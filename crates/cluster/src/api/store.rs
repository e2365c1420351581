//! The pods of this node as the API server has them: from the watch and from the responses to our writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use oarsman_core::ids::PodUid;
use oarsman_core::pod::PodExt;
use oarsman_core::status::patch::patch;
use oarsman_sync::Guarded;

use super::watch::WatchUpdate;

/// The last known state of this node's pods.
#[derive(Debug, Default)]
pub(super) struct PodStore(Guarded<BTreeMap<PodUid, StoredPod>>);

#[derive(Debug)]
struct StoredPod {
    pod: Arc<Pod>,
    /// The version is from the response to our own write: its watch event is no change.
    ours: bool,
    /// A write of ours is under way or was never answered: it may hold something else by now.
    doubtful: bool,
}

impl PodStore {
    /// Applies an update of the watch, and tells whether it has to be passed on.
    pub(super) fn apply_update(&self, updates: WatchUpdate<Pod>) -> bool {
        let mut entries = self.0.lock();
        match updates {
            WatchUpdate::Listed(pods) => {
                let mut before = std::mem::take(&mut *entries);
                for pod in pods {
                    let old = before.remove(&pod.uid());
                    put(&mut entries, old, pod);
                }
                true
            }
            WatchUpdate::Changed(pod) => {
                let old = entries.remove(&pod.uid());
                put(&mut entries, old, pod)
            }
            WatchUpdate::Deleted(pod) => entries.remove(&pod.uid()).is_some(),
        }
    }

    /// All pods of the node that the watch holds.
    pub(super) fn pods(&self) -> Vec<Arc<Pod>> {
        self.0.lock().values().map(|entry| Arc::clone(&entry.pod)).collect()
    }

    /// The status that the API server has of a pod, if that is known for sure. From here on it is not, until the write that follows
    /// has been answered.
    pub(super) fn status_to_change(&self, uid: &PodUid) -> Option<PodStatus> {
        let mut entries = self.0.lock();
        let entry = entries.get_mut(uid)?;
        let sure = !std::mem::replace(&mut entry.doubtful, true);
        sure.then(|| entry.pod.status.clone().unwrap_or_default())
    }

    /// The status was not written: what was known before is certain again.
    pub(super) fn keep_status(&self, uid: &PodUid) {
        if let Some(entry) = self.0.lock().get_mut(uid) {
            entry.doubtful = false;
        }
    }

    /// This is the pod as it was asked for, because its status was in doubt and is about to be changed.
    pub(super) fn set_read_pod(&self, pod: Pod) {
        if let Some(entry) = self.0.lock().get_mut(&pod.uid()) {
            entry.doubtful = true;
            if version(&pod) > version(&entry.pod) {
                (entry.pod, entry.ours) = (without_managed_fields(pod), false);
            }
        }
    }

    /// This is the pod after a write of ours that was to give it that status.
    pub(super) fn set_written_pod(&self, pod: Pod, meant: &PodStatus) {
        let mut entries = self.0.lock();
        // Pods that the watch does not have are added and removed by the watch only.
        let Some(entry) = entries.get_mut(&pod.uid()) else { return };
        entry.doubtful = false;
        if version(&pod) > version(&entry.pod) {
            let pod = without_managed_fields(pod);
            let ours = differ_in_status_only(&entry.pod, &pod) && has_status(&pod, meant);
            (entry.pod, entry.ours) = (pod, ours);
        }
    }
}

/// Puts a pod in the place of what was known of it, unless that is newer. Whether it is news to others.
fn put(entries: &mut BTreeMap<PodUid, StoredPod>, old: Option<StoredPod>, pod: Pod) -> bool {
    let uid = pod.uid();
    let (entry, updates) = match old {
        // The response also has changes that others made before our write and that were not passed on yet.
        Some(old) if version(&old.pod) > version(&pod) => (old, true),
        Some(old) if old.ours && version(&old.pod) == version(&pod) => {
            (StoredPod { ours: false, ..old }, false)
        }
        old => {
            let doubtful = old.is_some_and(|old| old.doubtful);
            (StoredPod { pod: without_managed_fields(pod), ours: false, doubtful }, true)
        }
    };
    entries.insert(uid, entry);
    updates
}

/// Whether only the status differs, which concerns only us. A write that changed nothing is answered with the version that another
/// else made.
fn differ_in_status_only(old: &Pod, new: &Pod) -> bool {
    let but_version = |pod: &Pod| ObjectMeta { resource_version: None, ..pod.metadata.clone() };
    old.spec == new.spec && but_version(old) == but_version(new)
}

fn has_status(pod: &Pod, meant: &PodStatus) -> bool {
    let has = pod.status.clone().unwrap_or_default();
    matches!(patch(&has, meant), Ok(None))
}

/// Removes `managedFields`: they are often larger than the rest of the pod and are not used here.
fn without_managed_fields(mut pod: Pod) -> Arc<Pod> {
    pod.metadata.managed_fields = None;
    Arc::new(pod)
}

/// Versions are numbers that grow. Should one not be a number, what comes later counts as newer.
fn version(pod: &Pod) -> u64 {
    pod.metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;

    use super::*;
    use crate::api::testing::pod;

    fn phases(store: &PodStore) -> Vec<String> {
        store.pods().iter().filter_map(|pod| pod.status.clone()?.phase).collect()
    }

    fn uid() -> PodUid {
        PodUid::from("1")
    }

    #[test]
    fn watch_updates_are_stored_and_reported() {
        let store = PodStore::default();
        assert!(store.apply_update(WatchUpdate::Listed(vec![
            pod("1", 5, "Pending"),
            pod("2", 6, "Running")
        ])));
        assert_eq!(phases(&store), ["Pending", "Running"]);
        let before = store.pods();
        assert!(store.apply_update(WatchUpdate::Changed(pod("1", 7, "Running"))));
        assert_eq!(phases(&store), ["Running", "Running"]);
        assert!(Arc::ptr_eq(&before[1], &store.pods()[1]), "who has not changed is not copied");
        assert!(store.apply_update(WatchUpdate::Deleted(pod("2", 8, "Running"))));
        assert!(!store.apply_update(WatchUpdate::Deleted(pod("2", 8, "Running"))), "it was gone");
        assert!(store.apply_update(WatchUpdate::Listed(Vec::new())));
        assert_eq!(phases(&store), [""; 0]);
    }

    fn write(store: &PodStore, pod: Pod) {
        let meant = pod.status.clone().unwrap();
        store.set_written_pod(pod, &meant);
    }

    #[test]
    fn the_watch_event_of_our_own_write_is_no_change() {
        let store = PodStore::default();
        store.apply_update(WatchUpdate::Listed(vec![pod("1", 5, "Pending")]));
        write(&store, pod("1", 7, "Running"));
        assert!(
            store.apply_update(WatchUpdate::Changed(pod("1", 6, "Pending"))),
            "others wrote before us"
        );
        assert_eq!(phases(&store), ["Running"], "which takes nothing back");
        assert!(!store.apply_update(WatchUpdate::Changed(pod("1", 7, "Running"))));
        assert!(
            store.apply_update(WatchUpdate::Changed(pod("1", 8, "Running"))),
            "others wrote after us"
        );
        assert!(store.apply_update(WatchUpdate::Changed(pod("1", 8, "Running"))), "and told twice");
    }

    #[test]
    fn changes_by_others_are_reported_although_our_response_had_them_first() {
        let gated = |version| {
            let mut pod = pod("1", version, "Running");
            pod.metadata.labels = Some(BTreeMap::from([("a".to_owned(), "b".to_owned())]));
            pod
        };
        let store = PodStore::default();
        store.apply_update(WatchUpdate::Listed(vec![pod("1", 5, "Running")]));
        write(&store, gated(6));
        assert!(
            store.apply_update(WatchUpdate::Changed(gated(6))),
            "our write changed nothing, theirs a label"
        );
        store.set_read_pod(pod("1", 7, "Running"));
        assert!(store.apply_update(WatchUpdate::Changed(pod("1", 7, "Running"))), "we only asked");
        store.set_written_pod(pod("1", 8, "Failed"), &PodStatus::default());
        assert!(
            store.apply_update(WatchUpdate::Changed(pod("1", 8, "Failed"))),
            "it is not what we wrote"
        );
    }

    #[test]
    fn a_response_older_than_the_watch_is_ignored() {
        let store = PodStore::default();
        store.apply_update(WatchUpdate::Listed(vec![pod("1", 5, "Pending")]));
        store.apply_update(WatchUpdate::Changed(pod("1", 8, "Failed")));
        write(&store, pod("1", 7, "Running"));
        assert_eq!(phases(&store), ["Failed"]);
        store.apply_update(WatchUpdate::Deleted(pod("1", 9, "Failed")));
        write(&store, pod("1", 10, "Running"));
        assert_eq!(phases(&store), [""; 0], "a removed pod does not come back that way");
    }

    #[test]
    fn a_status_is_certain_unless_a_write_got_no_response() {
        let store = PodStore::default();
        let phase = |status: Option<PodStatus>| status.and_then(|status| status.phase);
        assert_eq!(store.status_to_change(&uid()), None, "it was not reported");
        store.apply_update(WatchUpdate::Listed(vec![pod("1", 5, "Pending")]));
        assert_eq!(phase(store.status_to_change(&uid())).as_deref(), Some("Pending"));
        assert_eq!(store.status_to_change(&uid()), None, "no answer came");
        store.apply_update(WatchUpdate::Changed(pod("1", 6, "Pending")));
        assert_eq!(store.status_to_change(&uid()), None, "it may still come to pass");
        write(&store, pod("1", 7, "Running"));
        assert_eq!(phase(store.status_to_change(&uid())).as_deref(), Some("Running"));
        store.keep_status(&uid());
        assert_eq!(phase(store.status_to_change(&uid())).as_deref(), Some("Running"));
    }

    #[test]
    fn managed_fields_are_not_kept() {
        let store = PodStore::default();
        let mut fat = pod("1", 5, "Pending");
        fat.metadata.managed_fields = Some(vec![ManagedFieldsEntry::default()]);
        store.apply_update(WatchUpdate::Listed(vec![fat]));
        assert_eq!(store.pods()[0].metadata.managed_fields, None);
    }
}
