//! Pods that have their name and are not started yet: they wait for the room of pods that are being preempted, or for a fresh node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::ids::PodUid;

/// The pods that wait, and the pods that are preempted for some of them.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingPods {
    /// By UID of the pod: which pods must have stopped first.
    room: BTreeMap<PodUid, BTreeSet<PodUid>>,
    /// Pods that are to be asked again with a node that was just read.
    node: BTreeMap<PodUid, Arc<Pod>>,
    /// The victims that have not stopped.
    victims: BTreeSet<PodUid>,
}

impl PendingPods {
    /// The pods that are being killed to make room: their room is promised.
    pub(super) fn victims(&self) -> &BTreeSet<PodUid> {
        &self.victims
    }

    /// The pod waits until all victims have stopped, these among them.
    pub(super) fn wait_for_room(&mut self, uid: PodUid, more: impl IntoIterator<Item = PodUid>) {
        self.victims.extend(more);
        self.room.insert(uid, self.victims.clone());
    }

    pub(super) fn wait_for_node(&mut self, uid: PodUid, pod: Arc<Pod>) {
        self.node.insert(uid, pod);
    }

    pub(super) fn waits_for_room(&self, uid: &PodUid) -> bool {
        self.room.contains_key(uid)
    }

    /// Whether the pod waits for room or for the node.
    pub(super) fn contains(&self, uid: &PodUid) -> bool {
        self.waits_for_room(uid) || self.node.contains_key(uid)
    }

    /// What waits is started as it is wanted by then.
    pub(super) fn update(&mut self, uid: &PodUid, pod: &Arc<Pod>) {
        if let Some(waiting) = self.node.get_mut(uid) {
            *waiting = Arc::clone(pod);
        }
    }

    /// Takes a pod out. Whether it waited.
    pub(super) fn remove(&mut self, uid: &PodUid) -> bool {
        let waited_for_room = self.room.remove(uid).is_some();
        self.node.remove(uid).is_some() || waited_for_room
    }

    /// A pod has stopped. Those that need not wait any longer.
    pub(super) fn stopped(&mut self, uid: &PodUid) -> Vec<PodUid> {
        if !self.victims.remove(uid) {
            return Vec::new();
        }
        for awaited in self.room.values_mut() {
            awaited.remove(uid);
        }
        let free = |awaited: &BTreeSet<PodUid>| awaited.is_empty();
        let ready: Vec<PodUid> = self
            .room
            .iter()
            .filter(|(_, awaited)| free(awaited))
            .map(|(uid, _)| uid.clone())
            .collect();
        self.room.retain(|_, awaited| !free(awaited));
        ready
    }

    /// The pods that waited for the node.
    pub(super) fn take_waiting_for_node(&mut self) -> Vec<Arc<Pod>> {
        std::mem::take(&mut self.node).into_values().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.room.is_empty() && self.node.is_empty() && self.victims.is_empty()
    }
}
