//! The volume manager: makes the volumes of a pod what they should be, and waits for it.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::cri_spec::{Payloads, PodPaths};
use oarsman_core::ids::PodUid;
use oarsman_core::persistent_volume::{ClaimedVolumes, ExclusiveVolumes};
use oarsman_core::pod::PodExt;
use oarsman_core::volume_manager::{
    ActualStateOfWorld, DesiredStateOfWorld, reconcile, side_by_side,
};
use oarsman_sync::Guarded;
use oarsman_volumes::{VolumeError, Volumes};

/// The volumes of a pod are not what they should be.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} the volumes in {}: {source}", directory.display())]
pub(crate) struct MountError {
    doing: &'static str,
    directory: PathBuf,
    source: VolumeError,
}

/// The volumes of all pods.
pub(crate) struct VolumeManager {
    volumes: Arc<dyn Volumes>,
    root: PathBuf,
    /// What this agent has set up, by pod. What an earlier one did is set up again, which changes nothing.
    actual: Guarded<BTreeMap<PodUid, ActualStateOfWorld>>,
    /// Volumes that one pod uses at a time.
    exclusive: Guarded<ExclusiveVolumes>,
}

impl VolumeManager {
    /// Sets up the volumes of pods below this root directory.
    pub(crate) fn new(volumes: Arc<dyn Volumes>, root: PathBuf) -> Self {
        Self { volumes, root, actual: Guarded::default(), exclusive: Guarded::default() }
    }

    /// Sets up what the pod lacks, refreshes what has other files now, and waits until all of it is done. Volumes that may hang do
    /// not hold up each other; what was set up stays so when another failed.
    pub(crate) async fn wait_for_attach_and_mount(
        &self,
        pod: &Pod,
        payloads: Payloads,
        claimed: &ClaimedVolumes,
    ) -> Result<(), MountError> {
        let uid = pod.uid();
        let reserved = self.exclusive.lock().reserve(&uid, claimed);
        reserved.map_err(|error| self.failed("set up", &uid)(error.into()))?;
        let desired = DesiredStateOfWorld::of(pod, payloads, claimed);
        let todo = reconcile(&desired, self.actual.lock().entry(uid.clone()).or_default());
        let to_mount: Vec<_> = todo.set_up.into_iter().chain(todo.refresh).collect();
        if to_mount.is_empty() {
            return Ok(());
        }
        let pod = &Arc::new(pod.clone());
        let mounts =
            side_by_side(to_mount, |volume| &volume.plugin).into_iter().map(|volumes| async {
                self.volumes.set_up(pod, volumes.clone()).await?;
                self.actual.lock().entry(pod.uid()).or_default().mark_as_mounted(volumes);
                Ok(())
            });
        let mounted = join_all(mounts).await.into_iter().collect::<Result<(), VolumeError>>();
        mounted.map_err(self.failed("set up", &uid))
    }

    /// Tears down every volume of the pod that is found on disk, and waits until that is done.
    pub(crate) async fn wait_for_unmount(&self, uid: &PodUid) -> Result<(), MountError> {
        let unmount = async {
            let found = ActualStateOfWorld::found(self.volumes.mounted(uid).await?);
            let todo = reconcile(&DesiredStateOfWorld::default(), &found);
            let parts = side_by_side(todo.tear_down, |volume| &volume.plugin).into_iter();
            let unmounts = parts.map(|volumes| self.volumes.tear_down(uid, volumes));
            join_all(unmounts).await.into_iter().collect::<Result<(), VolumeError>>()
        };
        // Also when some of them could not be torn down, those that were are not there any more.
        self.actual.lock().remove(uid);
        unmount.await.map_err(self.failed("give back", uid))?;
        self.exclusive.lock().release(uid);
        Ok(())
    }

    fn failed(&self, doing: &'static str, uid: &PodUid) -> impl FnOnce(VolumeError) -> MountError {
        let directory = PodPaths::new(&self.root, uid).volumes();
        move |source| MountError { doing, directory, source }
    }
}
