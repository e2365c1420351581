//! A directory that lives as long as its pod: on disk, in memory, or in huge pages.

use std::io;
use std::path::Path;

use k8s_openapi::api::core::v1::EmptyDirVolumeSource;
use oarsman_core::resources::{hugepages as huge_pages, memory_volume_size};
use oarsman_host::mounts;
use rustix::io::Errno;
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
        set_up(mount, &source)
    }
}

/// Makes the directory, and mounts its medium, unless that is done.
pub(crate) fn set_up(
    mount: &VolumeToSetUp<'_>,
    source: &EmptyDirVolumeSource,
) -> Result<(), VolumeError> {
    let (path, volume) = (mount.path.as_path(), &mount.volume.name);
    let failed = |doing| {
        let (volume, path) = (volume.clone(), path.to_owned());
        move |source| VolumeError::System { volume, doing, path, source }
    };
    let medium = medium(mount, source)?;
    make_directory(path, MODE).map_err(failed("make"))?;
    let size = source.size_limit.as_ref();
    let size = memory_volume_size(mount.pod, size, mount.allocatable_memory);
    if let Some((fs_type, options)) = medium.mount_options(size)
        && !mounts::is_mount_point(path).map_err(failed("look at the mounts of"))?
    {
        mount_medium(path, fs_type, &options).map_err(failed("mount"))?;
    }
    ownership::set_volume_ownership(mount, path).map_err(failed("give to the pod's group"))
}

/// The medium, if it is known and the machine has pages of its size.
fn medium(
    mount: &VolumeToSetUp<'_>,
    source: &EmptyDirVolumeSource,
) -> Result<StorageMedium, VolumeError> {
    let (volume, text) = (mount.volume.name.clone(), source.medium.as_deref().unwrap_or_default());
    let Some(medium) = StorageMedium::parse(text) else {
        return Err(VolumeError::Medium { volume, medium: text.to_owned() });
    };
    let medium = medium.with_page_size(&huge_pages::sizes_of_pod(mount.pod));
    if let StorageMedium::HugePages(Some(wanted)) = medium {
        // Where the kernel's list cannot be read, the mount itself tells.
        let there = oarsman_host::hugepages::sizes().unwrap_or_else(|_| vec![wanted]);
        if !there.contains(&wanted) {
            let (wanted, there) = (page_name(wanted), there.into_iter().map(page_name).collect());
            return Err(VolumeError::HugePageSize { volume, wanted, there });
        }
    }
    Ok(medium)
}

/// The size of a page as the API writes it, such as `2Mi`.
fn page_name(bytes: u64) -> String {
    huge_pages::resource_of_size(bytes).trim_start_matches("hugepages-").to_owned()
}

/// What is in memory should stay there. Linux before 6.4 does not know the option, nor does any kernel within a user namespace.
fn mount_medium(path: &Path, fs_type: &str, options: &str) -> io::Result<()> {
    if fs_type != "tmpfs" {
        return mount_at(path, fs_type, options);
    }
    match mount_at(path, fs_type, &format!("{options},noswap")) {
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
            mount_at(path, fs_type, options)
        }
        mounted => mounted,
    }
}

fn mount_at(path: &Path, fs_type: &str, options: &str) -> io::Result<()> {
    let options = std::ffi::CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(mount(fs_type, path, fs_type, flags, options.as_c_str())?)
}
