//! The seam to volumes, and the machine's own volumes behind it: set up before the first container, refreshed when their files change,
//! torn down when nothing of the pod runs.
//!
//! Everything may be repeated, and nothing that is mounted is ever removed as if it were a directory.

mod atomic_writer;
#[cfg(test)]
mod crash_tests;
mod empty_dir;
mod env_file;
mod error;
mod host;
mod host_path;
mod local;
mod mount_point;
mod nfs;
mod ownership;
mod payload;
mod plugin;
mod propagation;
mod storage_medium;
mod sub_path;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::cri_spec::{EnvFile, PropagatedMount, SubPathToMount};
use oarsman_core::disk_usage::EmptyDirUsage;
use oarsman_core::ids::PodUid;
use oarsman_core::pod::PodExt;
use oarsman_core::volume_manager::{MountedVolume, VolumeToMount};
use oarsman_seam::seam;

pub use error::VolumeError;
pub use host::HostVolumes;

/// The volumes of pods. A call is one piece of work: what must not hold up each other is set up by calls side by side.
#[seam]
pub trait Volumes: Send + Sync + 'static {
    /// Sets these volumes of a pod up, and has those that are made of objects and fields hold their files. All of them are tried;
    /// the error is that of the first that could not be set up.
    #[seam(call = "set up the volumes", object = names(volumes.iter().map(|volume| &volume.name)))]
    async fn set_up(&self, pod: &Arc<Pod>, volumes: Vec<VolumeToMount>) -> Result<(), VolumeError>;

    /// Tears these volumes of a pod down: what is mounted is unmounted, what is on disk is removed. All of them are tried.
    #[seam(call = "tear down the volumes", object = names(volumes.iter().map(|volume| &volume.name)))]
    async fn tear_down(&self, pod: &PodUid, volumes: Vec<MountedVolume>)
    -> Result<(), VolumeError>;

    /// Mounts parts of a pod's volumes where the runtime finds them, below `volume-subpaths` in the pod's directory. The volumes are
    /// set up. All of them are tried; the error is that of the first that could not be mounted.
    #[seam(call = "mount parts of the volumes", object = names(sub_paths.iter().map(|part| &part.volume)))]
    async fn set_up_sub_paths(
        &self,
        pod: &PodUid,
        sub_paths: Vec<SubPathToMount>,
    ) -> Result<(), VolumeError>;

    /// Unmounts every part of a volume that is mounted for containers of the pod, also by an agent before this one. It comes before
    /// the volumes are torn down.
    #[seam(call = "unmount parts of the volumes of", object = pod)]
    async fn tear_down_sub_paths(&self, pod: &PodUid) -> Result<(), VolumeError>;

    /// The text of a file of variables in a volume of the pod; none when there is no such file.
    #[seam(call = "read the variables in", object = format!("{:?} of volume {:?}", file.path, file.volume))]
    async fn read_env_file(
        &self,
        pod: &PodUid,
        file: &EnvFile,
    ) -> Result<Option<String>, VolumeError>;

    /// What the emptyDir volumes of a pod hold, with their limits. Those that are not set up hold nothing.
    #[seam(call = "count the volumes of", object = pod.uid())]
    async fn empty_dir_usage(&self, pod: &Arc<Pod>) -> Result<Vec<EmptyDirUsage>, VolumeError>;

    /// Checks that the mounts which these paths lie on let mounts through as containers ask for.
    #[seam(call = "look at the mounts of", object = names(mounts.iter().map(|mount| &mount.container_path)))]
    async fn check_propagation(&self, mounts: Vec<PropagatedMount>) -> Result<(), VolumeError>;

    /// The volumes of a pod that are found on disk.
    #[seam(call = "look for the volumes of", object = pod)]
    async fn mounted(&self, pod: &PodUid) -> Result<Vec<MountedVolume>, VolumeError>;
}

/// As errors name volumes.
fn names<'a>(volumes: impl Iterator<Item = &'a String>) -> String {
    volumes.map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

/// Makes a directory where there is none. It gets its name after its mode is set; a container may change the mode later, so it is not set
/// again.
fn make_directory(path: &Path, mode: u32) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    if path.is_dir() {
        return Ok(false);
    }
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut fresh = OsString::from(".new-");
    fresh.push(name);
    let fresh = path.with_file_name(fresh);
    fs::create_dir_all(&fresh)?;
    fs::set_permissions(&fresh, fs::Permissions::from_mode(mode))?;
    fs::rename(&fresh, path)?;
    Ok(true)
}
