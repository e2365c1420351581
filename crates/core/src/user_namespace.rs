//! User namespaces of pods: which ids of the node each pod has, and the file that tells so after a restart.

mod file;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use oarsman_cri_types::v1::{IdMapping, NamespaceMode, UserNamespace};

pub use file::{UserNamespaceFileError, mappings_file, parse_mappings_file};

use crate::hash::fnv32a;
use crate::ids::PodUid;

/// Ids below are those of the node itself.
pub const FIRST_ID: u32 = 1 << 16;
/// The last 65536 ids are not used: the highest is none.
const LAST_PLACE: u32 = u32::MAX >> 16;
/// Below are those of kubelets, from the lowest on.
const FIRST_PLACE_OF_ROOTS: u32 = 1 << 10;

/// What ids pods may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserNamespaceSettings {
    /// The first that a pod may have.
    first: u32,
    /// How many each pod has (`userNamespaces.idsPerPod`), a multiple of 65536.
    ids_per_pod: u32,
    /// So many pods have some at a time (`maxPods`).
    max_pods: u32,
}

impl UserNamespaceSettings {
    /// Those of a kubelet, which is alone on its machine.
    pub fn new(ids_per_pod: u32, max_pods: u32) -> Self {
        let ids_per_pod = ids_per_pod.max(FIRST_ID);
        Self { first: ids_per_pod, ids_per_pod, max_pods }
    }

    /// Those of an agent beside others: agents with other root directories, and a kubelet, most likely have other ids.
    pub fn of_root(root: &str, max_pods: u32) -> Self {
        let places = LAST_PLACE - FIRST_PLACE_OF_ROOTS - max_pods.min(1 << 10);
        let place = FIRST_PLACE_OF_ROOTS + fnv32a(root.as_bytes()) % places;
        Self { first: place * FIRST_ID, ids_per_pod: FIRST_ID, max_pods }
    }
}

/// Ids of the node, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostIds {
    /// The first, which is 0 in the pod.
    pub first: u32,
    /// How many.
    pub length: u32,
}

/// Which pod has which ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocatedIds {
    settings: UserNamespaceSettings,
    by_pod: BTreeMap<PodUid, HostIds>,
}

/// No ids are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "spec.hostUsers is false, and no ids are left for another user namespace: {pods} pods have {ids_per_pod} each"
)]
pub struct NoIdsLeft {
    /// How many pods have some.
    pub pods: usize,
    /// How many each has.
    pub ids_per_pod: u32,
}

impl HostIds {
    /// As the runtime gets them.
    pub fn user_namespace(self) -> UserNamespace {
        let Self { first, length } = self;
        let ids = vec![IdMapping { host_id: first, container_id: 0, length }];
        UserNamespace { mode: NamespaceMode::Pod.into(), uids: ids.clone(), gids: ids }
    }

    fn overlaps(self, other: Self) -> bool {
        let end = |ids: Self| u64::from(ids.first) + u64::from(ids.length);
        u64::from(self.first) < end(other) && u64::from(other.first) < end(self)
    }
}

impl AllocatedIds {
    /// None yet.
    pub fn new(settings: UserNamespaceSettings) -> Self {
        Self { settings, by_pod: BTreeMap::new() }
    }

    /// The ids of a pod.
    pub fn get(&self, pod: &PodUid) -> Option<HostIds> {
        self.by_pod.get(pod).copied()
    }

    /// The ids of a pod; the lowest that no other has, if it has none.
    ///
    /// # Errors
    /// When none are left.
    pub fn get_or_allocate(&mut self, pod: &PodUid) -> Result<HostIds, NoIdsLeft> {
        if let Some(ids) = self.get(pod) {
            return Ok(ids);
        }
        let UserNamespaceSettings { ids_per_pod, max_pods, .. } = self.settings;
        let pods = self.by_pod.len();
        let is_room = u32::try_from(pods).is_ok_and(|pods| pods < max_pods);
        let free = self.places().find(|ids| !self.is_taken(*ids)).filter(|_| is_room);
        let ids = free.ok_or(NoIdsLeft { pods, ids_per_pod })?;
        self.by_pod.insert(pod.clone(), ids);
        Ok(ids)
    }

    /// A pod has these since before a restart.
    pub fn record(&mut self, pod: PodUid, ids: HostIds) {
        self.by_pod.insert(pod, ids);
    }

    /// The pod is over.
    pub fn release(&mut self, pod: &PodUid) {
        self.by_pod.remove(pod);
    }

    /// All that a pod could have, lowest first: multiples of their length, as the Go kubelet wants them.
    fn places(&self) -> impl Iterator<Item = HostIds> + use<> {
        let UserNamespaceSettings { first, ids_per_pod: length, .. } = self.settings;
        let places = first / length..u32::MAX / length;
        places.map(move |place| HostIds { first: place * length, length })
    }

    fn is_taken(&self, ids: HostIds) -> bool {
        self.by_pod.values().any(|taken| taken.overlaps(ids))
    }
}
