//! Volume plugins: one for every kind of volume that can be set up here.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Volume};
use oarsman_core::cri_spec::Payload;
use oarsman_host::mounts::{self, Mount};
use oarsman_host::tree;
use rustix::mount::{UnmountFlags, unmount};

use crate::VolumeError;
use crate::empty_dir::EmptyDirPlugin;
use crate::host_path::HostPathPlugin;
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
    /// Its path.
    pub(crate) path: PathBuf,
    pub(crate) now: Timestamp,
}

/// All there are.
pub(crate) fn all() -> Vec<Box<dyn VolumePlugin>> {
    let payload = |plugin, in_memory| Box::new(PayloadPlugin { plugin, in_memory });
    vec![
        Box::new(EmptyDirPlugin),
        Box::new(HostPathPlugin),
        // What is secret never gets to a disk; a ConfigMap is not.
        payload("kubernetes.io/configmap", false),
        payload("kubernetes.io/secret", true),
        payload("kubernetes.io/projected", true),
        payload("kubernetes.io/downward-api", true),
    ]
}

/// Tears down a volume: what is mounted at its path is unmounted, what is on disk is removed.
pub(crate) fn tear_down(volume: &str, path: &Path, all: &[Mount]) -> Result<(), VolumeError> {
    // The last mounted may lie upon one mounted before.
    let beneath: Vec<_> = mounts::beneath(all, path).collect();
    for mount in beneath.into_iter().rev() {
        unmount(&mount.point, UnmountFlags::NOFOLLOW).map_err(|error| {
            let (volume, path) = (volume.to_owned(), mount.point.clone());
            VolumeError::System { volume, doing: "unmount", path, source: error.into() }
        })?;
    }
    Ok(tree::remove_tree(path)?)
}
