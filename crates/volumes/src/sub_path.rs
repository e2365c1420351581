//! Parts of volumes (subPath): mounted for one container below the pod's directory, where the runtime finds them.

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io;
use std::path::Path;

use oarsman_core::cri_spec::{PodPaths, SubPathToMount};
use oarsman_core::volume_manager::is_local;
use oarsman_host::beneath::RootDirectory;
use oarsman_host::files::is_plain_name;
use oarsman_host::volume_part::{AbsoluteLinks, VolumePart};

use crate::VolumeError;

/// Nothing of it is for other users: the runtime mounts what lies below it.
const MODE: u32 = 0o750;

/// Mounts a part of a volume, unless that is done.
pub(crate) fn set_up(paths: &PodPaths, part: &SubPathToMount) -> Result<(), VolumeError> {
    let mounted = || {
        // First what may hang: when it ends late, the pod may be gone, and then nothing is mounted.
        let opened = VolumePart::open(&part.volume_path, &part.sub_path, links(part))?;
        let directory = mount_directory(paths, part)?;
        opened.mount_at(&directory, &OsString::from(part.index.to_string()))
    };
    mounted().map_err(|source| VolumeError::SubPath {
        volume: part.volume.clone(),
        container: part.container.clone(),
        path: part.volume_path.join(&part.sub_path),
        source,
    })
}

/// In a volume that is ours, only containers make links. Those of another may be the administrator's, and mean paths of the host.
fn links(part: &SubPathToMount) -> AbsoluteLinks {
    match is_local(&part.plugin) {
        true => AbsoluteLinks::Refused,
        false => AbsoluteLinks::Followed,
    }
}

/// Names are validated by the API server; one that is none could lead anywhere.
fn mount_directory(paths: &PodPaths, part: &SubPathToMount) -> io::Result<RootDirectory> {
    if !is_plain_name(&part.volume) || !is_plain_name(&part.container) {
        return Err(io::Error::other("the names of volume and container are no plain names"));
    }
    let pod = RootDirectory::open(paths.directory())?;
    let subpaths = paths.subpaths();
    let below = subpaths.strip_prefix(paths.directory()).unwrap_or(Path::new("."));
    pod.make_directory(&below.join(&part.volume).join(&part.container), MODE)
}
