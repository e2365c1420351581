//! The pods that were admitted, what they were given, and the order in which pods are admitted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use crate::ids::{FullName, PodUid};
use crate::pod::PodExt;

use super::allocation::Allocation;

/// The pods whose resources are counted.
#[derive(Clone, Debug, Default)]
pub(super) struct AdmittedPods {
    present: BTreeMap<PodUid, AdmittedPod>,
}

/// A pod, with the resources that it was given.
#[derive(Clone, Debug)]
struct AdmittedPod {
    pod: Arc<Pod>,
    allocation: Allocation,
    /// Whether its spec asks for others.
    resize_pending: bool,
}

impl AdmittedPods {
    /// Counts the pod from now on. Of one that ran before, what its status says that it was given counts. The pod with what it was given.
    pub(super) fn insert(&mut self, pod: &Arc<Pod>, ran_before: bool) -> Arc<Pod> {
        let allocation = match ran_before {
            true => Allocation::of_status(pod),
            false => Allocation::of_spec(pod),
        };
        let resized = allocation.applied_to(pod);
        let resize_pending = resized.is_some();
        let pod = resized.unwrap_or_else(|| Arc::clone(pod));
        let admitted = AdmittedPod { pod: Arc::clone(&pod), allocation, resize_pending };
        self.present.insert(pod.uid(), admitted);
        pod
    }

    /// All but one and those that leave, in the order of their UIDs.
    pub(super) fn others(&self, uid: &PodUid, leaving: &BTreeSet<PodUid>) -> Vec<&Pod> {
        let present = self.present.iter();
        let others = present.filter(|(other, _)| *other != uid && !leaving.contains(*other));
        others.map(|(_, admitted)| admitted.pod.as_ref()).collect()
    }

    pub(super) fn get(&self, uid: &PodUid) -> Option<&Arc<Pod>> {
        self.present.get(uid).map(|admitted| &admitted.pod)
    }

    pub(super) fn is_resize_pending(&self, uid: &PodUid) -> bool {
        self.present.get(uid).is_some_and(|admitted| admitted.resize_pending)
    }

    /// The pod as it is wanted now, with the resources that it was given.
    pub(super) fn update(&mut self, pod: &Arc<Pod>) -> Arc<Pod> {
        let Some(known) = self.present.get_mut(&pod.uid()) else { return Arc::clone(pod) };
        let resized = known.allocation.applied_to(pod);
        known.resize_pending = resized.is_some();
        known.pod = resized.unwrap_or_else(|| Arc::clone(pod));
        Arc::clone(&known.pod)
    }

    pub(super) fn remove(&mut self, uid: &PodUid) {
        self.present.remove(uid);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.present.is_empty()
    }
}

/// The oldest first. Static pods have no date and come before all others.
pub(super) fn admission_order(pod: &Pod) -> (Option<Timestamp>, FullName, PodUid) {
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (created, pod.full_name(), pod.uid())
}
