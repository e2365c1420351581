//! `local` persistent volumes: a directory of the node, mounted for the pod.

use std::fs;
use std::io;
use std::path::{Component, Path};

use oarsman_core::persistent_volume::PersistentVolumePlugin;
use oarsman_host::mounts;
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::{MountFlags, mount_bind, mount_remount};

use crate::plugin::{VolumePlugin, VolumeToSetUp, failed};
use crate::{VolumeError, mount_point, ownership};

/// `local` volumes.
pub(crate) struct LocalPlugin;

impl VolumePlugin for LocalPlugin {
    fn name(&self) -> &'static str {
        PersistentVolumePlugin::Local.name()
    }

    /// The group is given the directory before it is mounted: what is mounted is ready, also after a crash.
    fn set_up(&self, mount: &VolumeToSetUp<'_>) -> Result<(), VolumeError> {
        let (volume, path) = (&mount.volume.name, &mount.path);
        let Some(claimed) = mount.claimed else { return Ok(()) };
        let local = claimed.volume.spec.as_ref().and_then(|spec| spec.local.as_ref());
        let Some(local) = local else { return Ok(()) };
        let source = Path::new(&local.path);
        if mount_point::prepare(volume, path)? {
            check_source(volume, source)?;
            if !claimed.read_only && !is_used_by_another(path) {
                let owned = ownership::set_volume_ownership(mount, source);
                owned.map_err(failed(volume, "give to the pod's group", source))?;
            }
            mount_bind(source, path).map_err(failed(volume, "mount for the pod", source))?;
        }
        match claimed.read_only {
            true => make_read_only(path).map_err(failed(volume, "make read-only", path)),
            false => Ok(()),
        }
    }
}

fn check_source(volume: &str, source: &Path) -> Result<(), VolumeError> {
    let refused = |why| {
        let (volume, path) = (volume.to_owned(), source.to_owned());
        VolumeError::LocalPath { volume, path, why }
    };
    if !source.is_absolute() || source.components().any(|part| part == Component::ParentDir) {
        return Err(refused("must be an absolute path without `..`"));
    }
    match fs::metadata(source) {
        Ok(there) if there.is_dir() => Ok(()),
        Ok(_) => Err(refused("is not a directory: devices and files cannot be mounted")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(refused("does not exist on this node"))
        }
        Err(error) => Err(failed(volume, "look at", source)(error)),
    }
}

/// Files that another pod uses keep their group. A volume lies at `pods/<uid>/volumes/<plugin>/<name>`.
fn is_used_by_another(path: &Path) -> bool {
    let Some(pods) = path.ancestors().nth(4) else { return false };
    let Ok(below) = path.strip_prefix(pods) else { return false };
    let own = below.components().next();
    let below: std::path::PathBuf = below.components().skip(1).collect();
    let others = fs::read_dir(pods).into_iter().flatten().flatten();
    let is_other = |name: &std::ffi::OsString| own != Some(Component::Normal(name));
    let is_mounted = |name: std::ffi::OsString| {
        mounts::is_mount_point(&pods.join(name).join(&below)).unwrap_or(false)
    };
    others.map(|entry| entry.file_name()).filter(is_other).any(is_mounted)
}

/// Keeps what else the mount forbids.
fn make_read_only(path: &Path) -> io::Result<()> {
    let there = statvfs(path)?.f_flag;
    let kept = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let kept = kept.into_iter().filter(|(is, _)| there.contains(*is)).map(|(_, keep)| keep);
    let flags = kept.fold(MountFlags::BIND | MountFlags::RDONLY, |flags, keep| flags | keep);
    Ok(mount_remount(path, flags, "")?)
}
