//! Where the volumes of claims are mounted, for those who measure them.

use std::collections::BTreeMap;

use oarsman_core::ids::PodUid;
use oarsman_core::persistent_volume::ClaimMount;
use oarsman_sync::Guarded;

/// The mounts of each pod's claims. Those of a pod go with it.
#[derive(Debug, Default)]
pub struct ClaimMounts(Guarded<BTreeMap<PodUid, Vec<ClaimMount>>>);

impl ClaimMounts {
    /// The volumes of a pod are mounted.
    pub(crate) fn set(&self, uid: &PodUid, mounts: Vec<ClaimMount>) {
        let mut pods = self.0.lock();
        if mounts.is_empty() {
            pods.remove(uid);
        } else {
            pods.insert(uid.clone(), mounts);
        }
    }

    /// They are about to be unmounted.
    pub(crate) fn forget(&self, uid: &PodUid) {
        self.0.lock().remove(uid);
    }

    /// The mounts of all pods.
    pub fn all(&self) -> Vec<(PodUid, ClaimMount)> {
        let pods = self.0.lock();
        let of_pod = |(uid, mounts): (&PodUid, &Vec<ClaimMount>)| {
            mounts.iter().map(|mount| (uid.clone(), mount.clone())).collect::<Vec<_>>()
        };
        pods.iter().flat_map(of_pod).collect()
    }
}
