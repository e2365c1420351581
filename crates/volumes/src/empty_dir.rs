//! A directory that lives as long as its pod: on disk, in memory, or in huge pages.

use std::io;
use std::path::Path;

use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, Pod};
use oarsman_host::mounts;
use rustix::mount::{MountFlags, mount};

use crate::plugin::{VolumePlugin, VolumeToSetUp};
use crate::storage_medium::StorageMedium;
use crate::{VolumeError, make_directory, ownership};

/// Containers of any user write into it.
const MODE: u32 = 0o777;

/// `emptyDir` volumes.
pub(crate) struct EmptyDirPlugin;

impl VolumePlugin for EmptyDirPlugin {
    fn name(&self) -> &'static str {
        "kubernetes.io/empty-dir"
    }

    fn set_up(&self, mount: &VolumeToSetUp<'_>) -> Result<(), VolumeError> {
        let source = mount.volume.empty_dir.clone().unwrap_or_default();
        set_up(mount.pod, &mount.volume.name, &source, &mount.path)
    }
}

/// Makes the directory, and mounts its medium, unless that is done.
pub(crate) fn set_up(
    pod: &Pod,
    volume: &str,
    source: &EmptyDirVolumeSource,
    path: &Path,
) -> Result<(), VolumeError> {
    let failed = |doing| {
        let (volume, path) = (volume.to_owned(), path.to_owned());
        move |source| VolumeError::System { volume, doing, path, source }
    };
    let text = source.medium.as_deref().unwrap_or_default();
    let unknown = || VolumeError::Medium { volume: volume.to_owned(), medium: text.to_owned() };
    let medium = StorageMedium::parse(text).ok_or_else(unknown)?;
    make_directory(path, MODE).map_err(failed("make"))?;
    if let Some((fs_type, options)) = medium.mount_options(pod, source)
        && !mounts::is_mount_point(path).map_err(failed("look at the mounts of"))?
    {
        mount_at(path, fs_type, &options).map_err(failed("mount"))?;
    }
    ownership::set_volume_ownership(pod, path).map_err(failed("give to the pod's group"))
}

fn mount_at(path: &Path, fs_type: &str, options: &str) -> io::Result<()> {
    let options = std::ffi::CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(mount(fs_type, path, fs_type, flags, options.as_c_str())?)
}
