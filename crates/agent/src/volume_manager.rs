//! The volume manager: makes the volumes of a pod what they should be, and waits for it.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::cri_spec::{Payloads, PodPaths, SubPathToMount};
use oarsman_core::event::PodEvent;
use oarsman_core::ids::PodUid;
use oarsman_core::persistent_volume::{ClaimedVolumes, ExclusiveVolumes, claim_mounts};
use oarsman_core::pod::PodExt;
use oarsman_core::volume_manager::{
    ActualStateOfWorld, DesiredStateOfWorld, VolumeToMount, reconcile, side_by_side,
};
use oarsman_sync::Guarded;
use oarsman_volumes::{VolumeError, Volumes};

use crate::metrics::SharedMetrics;

/// The volumes of a pod are not what they should be.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} the volumes in {}: {source}", directory.display())]
pub(crate) struct MountError {
    doing: &'static str,
    directory: PathBuf,
    source: Box<VolumeError>,
    /// What else failed at the same time.
    others: Vec<VolumeError>,
}

impl MountError {
    /// One for each volume that was not set up.
    pub(crate) fn events(&self) -> impl Iterator<Item = PodEvent> {
        std::iter::once(&*self.source).chain(&self.others).map(VolumeError::event)
    }
}

/// The volumes of all pods.
pub(crate) struct VolumeManager {
    volumes: Arc<dyn Volumes>,
    root: PathBuf,
    /// What this agent has set up, by pod. What an earlier one did is set up again, which changes nothing.
    actual: Guarded<BTreeMap<PodUid, ActualStateOfWorld>>,
    /// Volumes that one pod uses at a time.
    exclusive: Guarded<ExclusiveVolumes>,
    metrics: SharedMetrics,
}

impl VolumeManager {
    /// Sets up the volumes of pods below this root directory.
    pub(crate) fn new(volumes: Arc<dyn Volumes>, root: PathBuf, metrics: SharedMetrics) -> Self {
        Self { volumes, root, actual: Guarded::default(), exclusive: Guarded::default(), metrics }
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
        self.all_or_errors("set up", &uid, vec![reserved.map_err(VolumeError::from)])?;
        let desired = DesiredStateOfWorld::of(pod, payloads, claimed);
        self.metrics.volumes.set_desired(&uid, desired.plugins());
        self.mount_all(pod, &desired).await?;
        let paths = PodPaths::new(&self.root, &uid);
        self.metrics.claims.set(&uid, claim_mounts(pod, claimed, &paths));
        Ok(())
    }

    async fn mount_all(&self, pod: &Pod, desired: &DesiredStateOfWorld) -> Result<(), MountError> {
        let uid = pod.uid();
        let todo = reconcile(desired, self.actual.lock().entry(uid.clone()).or_default());
        let to_mount: Vec<_> = todo.set_up.into_iter().chain(todo.refresh).collect();
        if to_mount.is_empty() {
            return Ok(());
        }
        let pod = &Arc::new(pod.clone());
        let mounts =
            side_by_side(to_mount, |volume| &volume.plugin).into_iter().map(|volumes| async {
                self.volumes.set_up(pod, volumes.clone()).await?;
                self.mark_as_mounted(&pod.uid(), volumes);
                Ok(())
            });
        self.all_or_errors("set up", &uid, join_all(mounts).await)
    }

    fn mark_as_mounted(&self, uid: &PodUid, volumes: Vec<VolumeToMount>) {
        let mut pods = self.actual.lock();
        let actual = pods.entry(uid.clone()).or_default();
        actual.mark_as_mounted(volumes);
        self.metrics.volumes.set_actual(uid, actual.plugins());
    }

    /// Mounts the parts of volumes that a container of the pod mounts, and gives where they are, by the mount's place in the
    /// container's list.
    pub(crate) async fn set_up_sub_paths(
        &self,
        uid: &PodUid,
        parts: Vec<SubPathToMount>,
    ) -> Result<BTreeMap<usize, PathBuf>, VolumeError> {
        if parts.is_empty() {
            return Ok(BTreeMap::new());
        }
        let paths = PodPaths::new(&self.root, uid);
        let place = |part: &SubPathToMount| {
            (part.index, paths.subpath(&part.volume, &part.container, part.index))
        };
        let places = parts.iter().map(place).collect();
        self.volumes.set_up_sub_paths(uid, parts).await?;
        Ok(places)
    }

    /// Tears down every volume of the pod that is found on disk, and waits until that is done.
    pub(crate) async fn wait_for_unmount(&self, uid: &PodUid) -> Result<(), MountError> {
        let unmount = async {
            // They are parts of the volumes.
            self.volumes.tear_down_sub_paths(uid).await?;
            let found = ActualStateOfWorld::found(self.volumes.mounted(uid).await?);
            let todo = reconcile(&DesiredStateOfWorld::default(), &found);
            let parts = side_by_side(todo.tear_down, |volume| &volume.plugin).into_iter();
            let unmounts = parts.map(|volumes| self.volumes.tear_down(uid, volumes));
            Ok(join_all(unmounts).await)
        };
        // Also when some of them could not be torn down, those that were are not there any more.
        self.actual.lock().remove(uid);
        self.metrics.volumes.forget(uid);
        self.metrics.claims.forget(uid);
        let results = unmount.await.unwrap_or_else(|error: VolumeError| vec![Err(error)]);
        self.all_or_errors("give back", uid, results)?;
        self.exclusive.lock().release(uid);
        Ok(())
    }

    /// The first error, and those that came with it.
    fn all_or_errors(
        &self,
        doing: &'static str,
        uid: &PodUid,
        results: Vec<Result<(), VolumeError>>,
    ) -> Result<(), MountError> {
        let mut errors = results.into_iter().filter_map(Result::err);
        let Some(source) = errors.next().map(Box::new) else { return Ok(()) };
        let directory = PodPaths::new(&self.root, uid).volumes();
        Err(MountError { doing, directory, source, others: errors.collect() })
    }
}
