//! Giving a volume to the pod's group, when the pod names one.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::pod::PodExt;

/// What the group may do with a directory; what is made in it belongs to the group too.
const DIRECTORY: u32 = 0o2770;

/// The group that the pod's volumes belong to.
pub(crate) fn fs_group(pod: &Pod) -> io::Result<Option<u32>> {
    let security = pod.spec().and_then(|spec| spec.security_context.as_ref());
    let group = security.and_then(|context| context.fs_group);
    group.map(|group| u32::try_from(group).map_err(io::Error::other)).transpose()
}

/// Gives a volume's directory to the group. What containers have written below it has its group by the directory's own bit, so that
/// only the top needs to change.
pub(crate) fn set_volume_ownership(pod: &Pod, path: &Path) -> io::Result<()> {
    let Some(group) = fs_group(pod)? else { return Ok(()) };
    let there = fs::metadata(path)?;
    if there.gid() != group {
        std::os::unix::fs::lchown(path, None, Some(group))?;
    }
    let mode = there.permissions().mode() & 0o7777;
    if mode & DIRECTORY != DIRECTORY {
        fs::set_permissions(path, fs::Permissions::from_mode(mode | DIRECTORY))?;
    }
    Ok(())
}
