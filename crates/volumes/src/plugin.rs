//! Volume plugins: one for every kind of volume that can be set up here.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Volume};
use oarsman_core::cri_spec::Payload;
use oarsman_core::persistent_volume::ClaimedVolume;
use oarsman_host::mounts;
use oarsman_host::tree::{self, RemoveTreeError};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use crate::VolumeError;
use crate::empty_dir::EmptyDirPlugin;
use crate::host_path::HostPathPlugin;
use crate::local::LocalPlugin;
use crate::mount_point;
use crate::nfs::NfsPlugin;
use crate::payload::PayloadPlugin;

/// One kind of volumes.
pub(crate) trait VolumePlugin: Send + Sync {
    /// As Kubernetes calls it; directories on disk carry the name.
    fn name(&self) -> &'static str;

    /// Sets a volume up. It may be set up already.
    fn set_up(&self, mount: &VolumeToSetUp<'_>) -> Result<(), VolumeError>;
}

/// A volume to be set up, and its pod.
pub(crate) struct VolumeToSetUp<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) volume: &'a Volume,
    /// The files that it should hold, if it is made of objects and fields and they are known.
    pub(crate) payload: Option<&'a Payload>,
    /// What its claim is bound to, if it is made by one.
    pub(crate) claimed: Option<&'a ClaimedVolume>,
    pub(crate) path: PathBuf,
    pub(crate) now: Timestamp,
    /// The memory that the node has for pods, in bytes.
    pub(crate) allocatable_memory: Option<u64>,
}

/// The plugins of all kinds of volumes.
pub(crate) fn all() -> Vec<Box<dyn VolumePlugin>> {
    let payload = |plugin, in_memory| Box::new(PayloadPlugin { plugin, in_memory });
    vec![
        Box::new(EmptyDirPlugin),
        Box::new(HostPathPlugin),
        Box::new(LocalPlugin),
        Box::new(NfsPlugin::of_kernel()),
        // What is secret never gets to a disk; a ConfigMap is not.
        payload("kubernetes.io/configmap", false),
        payload("kubernetes.io/secret", true),
        payload("kubernetes.io/projected", true),
        payload("kubernetes.io/downward-api", true),
    ]
}

/// Gives back what lies at a volume's path: what is mounted there is unmounted, and what is on disk is removed unless it outlives the pod.
/// The table of mounts is read only when something is mounted below it: with many pods it is long.
pub(crate) fn tear_down(plugin: &str, volume: &str, path: &Path) -> Result<(), VolumeError> {
    if mount_point::is_plugin_of_mounts(plugin) {
        return mount_point::tear_down(volume, path);
    }
    // The last mounted may lie upon one mounted before.
    while mounts::is_mount_point(path).map_err(failed(volume, "look at the mounts of", path))? {
        match unmount(path, UnmountFlags::NOFOLLOW) {
            Err(Errno::BUSY) => break,
            unmounted => unmounted.map_err(failed(volume, "unmount", path))?,
        }
    }
    match tree::remove_tree(path) {
        Err(RemoveTreeError::Mounted { .. }) => unmount_beneath(volume, path)?,
        removed => return Ok(removed?),
    }
    Ok(tree::remove_tree(path)?)
}

pub(crate) fn unmount_beneath(volume: &str, path: &Path) -> Result<(), VolumeError> {
    let read = || Ok::<_, io::Error>((mounts::current()?, mounts::resolve_parent(path)?));
    let (all, path) = read().map_err(failed(volume, "read the mounts below", path))?;
    let beneath: Vec<_> = mounts::beneath(&all, &path).collect();
    for mount in beneath.into_iter().rev() {
        let unmounted = unmount(&mount.point, UnmountFlags::NOFOLLOW);
        unmounted.map_err(failed(volume, "unmount", &mount.point))?;
    }
    Ok(())
}

pub(crate) fn failed<E: Into<io::Error>>(
    volume: &str,
    doing: &'static str,
    path: &Path,
) -> impl FnOnce(E) -> VolumeError {
    let (volume, path) = (volume.to_owned(), path.to_owned());
    move |error| VolumeError::System { volume, doing, path, source: error.into() }
}
