//! Volumes that are mounted from elsewhere and outlive their pods. Of such a volume the pod has an empty directory to mount it at, and
//! nothing in it is ever removed.

use std::fs;
use std::io;
use std::path::Path;

use oarsman_host::mounts;
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};

use crate::plugin::{failed, unmount_beneath};
use crate::{VolumeError, make_directory};

pub(crate) const LOCAL: &str = "kubernetes.io/local-volume";
pub(crate) const NFS: &str = "kubernetes.io/nfs";

/// Only the agent goes through it; what is mounted there has a mode of its own.
const MODE: u32 = 0o750;

/// Whether the volumes of a plugin are such.
pub(crate) fn is_plugin_of_mounts(plugin: &str) -> bool {
    matches!(plugin, LOCAL | NFS)
}

/// Makes the directory, and tells whether something is to be mounted there yet.
pub(crate) fn prepare(volume: &str, path: &Path) -> Result<bool, VolumeError> {
    if mounts::is_mount_point(path).map_err(failed(volume, "look at the mounts of", path))? {
        return Ok(false);
    }
    make_directory(path, MODE).map_err(failed(volume, "make", path))?;
    Ok(true)
}

/// Unmounts what is there, and removes the directory, which is empty then. One that is not empty holds data, and stays.
pub(crate) fn tear_down(volume: &str, path: &Path) -> Result<(), VolumeError> {
    // The last mounted may lie upon one mounted before.
    while mounts::is_mount_point(path).map_err(failed(volume, "look at the mounts of", path))? {
        match unmount(path, UnmountFlags::NOFOLLOW) {
            Err(Errno::BUSY) => unmount_with_beneath(volume, path)?,
            unmounted => unmounted.map_err(failed(volume, "unmount", path))?,
        }
    }
    match fs::remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            Err(VolumeError::NotEmpty { volume: volume.to_owned(), path: path.to_owned() })
        }
        removed => removed.map_err(failed(volume, "remove the directory", path)),
    }
}

/// What is mounted in the volume may be a copy of a mount of the node. Once ours receives mounts only and sends none, unmounting the copy
/// leaves the node's own alone.
fn unmount_with_beneath(volume: &str, path: &Path) -> Result<(), VolumeError> {
    let receive_only = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change(path, receive_only).map_err(failed(volume, "detach from its source", path))?;
    unmount_beneath(volume, path)
}
