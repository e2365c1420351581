//! Volumes that one pod uses at a time (ReadWriteOncePod).

use std::collections::BTreeMap;

use super::ClaimedVolumes;
use crate::ids::PodUid;

/// Which pod has which of them, by the name of the persistent volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExclusiveVolumes(BTreeMap<String, PodUid>);

/// Another pod has the volume.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "volume {volume:?} uses the ReadWriteOncePod access mode and is already in use by another pod, {pod}"
)]
pub struct VolumeInUse {
    /// Its name in the pod that wants it.
    pub volume: String,
    /// The pod that has it.
    pub pod: PodUid,
}

impl ExclusiveVolumes {
    /// Gives a pod those of its volumes that one pod uses at a time; none of them if another pod has one.
    ///
    /// # Errors
    /// When another pod has one of them.
    pub fn reserve(&mut self, pod: &PodUid, volumes: &ClaimedVolumes) -> Result<(), VolumeInUse> {
        let exclusive = || volumes.iter().filter(|(_, claimed)| claimed.is_exclusive());
        for (volume, claimed) in exclusive() {
            if let Some(user) = self.0.get(&claimed.name()).filter(|user| *user != pod) {
                return Err(VolumeInUse { volume: volume.clone(), pod: user.clone() });
            }
        }
        self.0.extend(exclusive().map(|(_, claimed)| (claimed.name(), pod.clone())));
        Ok(())
    }

    /// The pod needs none of them any more.
    pub fn release(&mut self, pod: &PodUid) {
        self.0.retain(|_, user| user != pod);
    }
}
