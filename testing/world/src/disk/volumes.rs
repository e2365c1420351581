//! The seam to volumes, on the fake disk.

use std::sync::Arc;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, Pod};
use oarsman_core::cri_spec::{EnvFile, Payload, PropagatedMount, SubPathToMount};
use oarsman_core::disk_usage::{DiskUsage, EmptyDirUsage, empty_dirs, size_limit};
use oarsman_core::ids::PodUid;
use oarsman_core::pod::PodExt;
use oarsman_core::volume_manager::{MountedVolume, VolumeToMount};
use oarsman_volumes::{VolumeError, Volumes};
use tokio::time::sleep;

use super::{DiskChange, DiskViolation, FakeDisk, IN_USE, PodOnDisk, STEP};

/// One volume: its plugin and its files.
#[derive(Debug, Default, PartialEq)]
pub(super) struct StoredVolume {
    plugin: String,
    files: Option<Arc<Payload>>,
}

#[async_trait]
impl Volumes for FakeDisk {
    async fn set_up(&self, pod: &Arc<Pod>, volumes: Vec<VolumeToMount>) -> Result<(), VolumeError> {
        for volume in volumes {
            sleep(STEP).await;
            self.set_one_up(&pod.uid(), volume);
        }
        Ok(())
    }

    async fn tear_down(
        &self,
        pod: &PodUid,
        volumes: Vec<MountedVolume>,
    ) -> Result<(), VolumeError> {
        if self.has_volumes(pod) && self.runs(pod) {
            self.trace_change(pod, DiskChange::Violated(DiskViolation::VolumesInUse));
            let (doing, object) = ("tear down the volumes of", pod.to_string());
            return Err(VolumeError::Call { doing, object, why: IN_USE.to_owned() });
        }
        for volume in volumes {
            sleep(STEP).await;
            if self.has_sub_paths_of(pod, &volume.name) {
                self.trace_change(pod, DiskChange::Violated(DiskViolation::SubPathsInUse));
                let (doing, object) = ("tear down the volume", volume.name);
                return Err(VolumeError::Call { doing, object, why: IN_USE.to_owned() });
            }
            let had =
                self.lock_pods().get_mut(pod).and_then(|pod| pod.volumes.remove(&volume.name));
            if had.is_some() && !self.has_volumes(pod) {
                self.trace_change(pod, DiskChange::VolumesReleased);
            }
        }
        Ok(())
    }

    async fn set_up_sub_paths(
        &self,
        pod: &PodUid,
        sub_paths: Vec<SubPathToMount>,
    ) -> Result<(), VolumeError> {
        for part in sub_paths {
            sleep(STEP).await;
            self.mount_part(pod, part)?;
        }
        Ok(())
    }

    async fn tear_down_sub_paths(&self, pod: &PodUid) -> Result<(), VolumeError> {
        if self.has_sub_paths(pod) && self.runs(pod) {
            self.trace_change(pod, DiskChange::Violated(DiskViolation::SubPathsInUse));
            let (doing, object) = ("unmount parts of the volumes of", pod.to_string());
            return Err(VolumeError::Call { doing, object, why: IN_USE.to_owned() });
        }
        // One after the other, as the kernel does: an agent may be killed between two.
        while self.lock_pods().get_mut(pod).is_some_and(|pod| pod.sub_paths.pop_last().is_some()) {
            sleep(STEP).await;
            if !self.has_sub_paths(pod) {
                self.trace_change(pod, DiskChange::SubPathsUnmounted);
            }
        }
        Ok(())
    }

    /// Scripts write no files into volumes.
    async fn read_env_file(&self, _: &PodUid, _: &EnvFile) -> Result<Option<String>, VolumeError> {
        Ok(None)
    }

    /// Volumes hold nothing but their own directory: containers write no files here.
    async fn empty_dir_usage(&self, pod: &Arc<Pod>) -> Result<Vec<EmptyDirUsage>, VolumeError> {
        let usage = |(volume, source): (&str, &EmptyDirVolumeSource)| EmptyDirUsage {
            volume: volume.to_owned(),
            usage: DiskUsage { bytes: 0, inodes: 1 },
            size_limit: size_limit(source),
            is_on_disk: source.medium.is_none(),
        };
        Ok(empty_dirs(pod).into_iter().map(usage).collect())
    }

    /// All mounts of the machine are shared.
    async fn check_propagation(&self, _: Vec<PropagatedMount>) -> Result<(), VolumeError> {
        Ok(())
    }

    async fn mounted(&self, pod: &PodUid) -> Result<Vec<MountedVolume>, VolumeError> {
        let on_disk = self.lock_pods();
        let volumes = on_disk.get(pod).into_iter().flat_map(|pod| &pod.volumes);
        let found = volumes.map(|(name, volume)| (name.clone(), volume.plugin.clone()));
        Ok(found.map(|(name, plugin)| MountedVolume::found(name, plugin)).collect())
    }
}

impl FakeDisk {
    /// A part of a volume that is not there cannot be mounted, nor one for a pod that has no directory.
    fn mount_part(&self, uid: &PodUid, part: SubPathToMount) -> Result<(), VolumeError> {
        let mut on_disk = self.lock_pods();
        let has_volume =
            |pod: &&mut PodOnDisk| pod.directory && pod.volumes.contains_key(&part.volume);
        let there = on_disk.get_mut(uid).filter(has_volume);
        let Some(pod) = there else {
            let (doing, object) = ("mount a part of", part.volume);
            let why = "the pod has no such volume".to_owned();
            return Err(VolumeError::Call { doing, object, why });
        };
        let is_first = pod.sub_paths.is_empty();
        pod.sub_paths.insert((part.volume, part.container, part.index));
        drop(on_disk);
        if is_first {
            self.trace_change(uid, DiskChange::SubPathsMounted);
        }
        Ok(())
    }

    pub(super) fn has_sub_paths(&self, uid: &PodUid) -> bool {
        self.lock_pods().get(uid).is_some_and(|pod| !pod.sub_paths.is_empty())
    }

    fn has_sub_paths_of(&self, uid: &PodUid, volume: &str) -> bool {
        let on_disk = self.lock_pods();
        on_disk.get(uid).is_some_and(|pod| pod.sub_paths.iter().any(|(of, ..)| of == volume))
    }

    /// A volume whose files are not known keeps those it has.
    fn set_one_up(&self, uid: &PodUid, wanted: VolumeToMount) {
        let mut on_disk = self.lock_pods();
        let volumes = &mut on_disk.entry(uid.clone()).or_default().volumes;
        let is_first = volumes.is_empty();
        let volume = volumes.entry(wanted.directory_name()).or_default();
        let has_other_files = wanted.payload.is_some() && volume.files != wanted.payload;
        volume.plugin = wanted.plugin;
        volume.files = wanted.payload.or(volume.files.take());
        drop(on_disk);
        if is_first {
            self.trace_change(uid, DiskChange::VolumesMade);
        }
        if has_other_files {
            self.trace_change(uid, DiskChange::FilesReplaced);
        }
    }
}
