//! A directory that lives as long as its pod: on disk, in memory, or in huge pages.

use std::io;
use std::path::Path;

use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, Pod};
use oarsman_core::quantity::Quantity;
use oarsman_core::resources::pod_limits;
use oarsman_host::mounts;
use rustix::mount::{MountFlags, mount};

use crate::plugin::{VolumePlugin, VolumeToSetUp};
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
    make_directory(path, MODE).map_err(failed("make"))?;
    if let Some((fs_type, options)) = medium(pod, source)
        && !mounts::is_mount_point(path).map_err(failed("look at the mounts of"))?
    {
        mount_at(path, fs_type, &options).map_err(failed("mount"))?;
    }
    ownership::set_volume_ownership(pod, path).map_err(failed("give to the pod's group"))
}

/// The file system for a medium, and its options; none for the disk.
fn medium(pod: &Pod, source: &EmptyDirVolumeSource) -> Option<(&'static str, String)> {
    match source.medium.as_deref().unwrap_or_default() {
        "" => None,
        "Memory" => {
            let size = size(pod, source).map(|bytes| format!(",size={bytes}"));
            Some(("tmpfs", format!("mode=0777{}", size.unwrap_or_default())))
        }
        huge => {
            let page = huge.strip_prefix("HugePages-").map(|size| size.trim_end_matches('i'));
            let page = page.map(|size| format!(",pagesize={size}"));
            Some(("hugetlbfs", format!("mode=0777{}", page.unwrap_or_default())))
        }
    }
}

/// No more than the volume's own limit, and no more than the pod may use.
fn size(pod: &Pod, source: &EmptyDirVolumeSource) -> Option<i64> {
    let own = source.size_limit.as_ref().and_then(|limit| Quantity::try_from(limit).ok());
    let of_pod = pod_limits(pod).get("memory").map(Quantity::units);
    let limits = [own.map(|limit| limit.units()), of_pod];
    limits.into_iter().flatten().filter(|bytes| *bytes > 0).min()
}

fn mount_at(path: &Path, fs_type: &str, options: &str) -> io::Result<()> {
    let options = std::ffi::CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(mount(fs_type, path, fs_type, flags, options.as_c_str())?)
}
