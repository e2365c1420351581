//! The mounts of a container: its volumes, its hosts file, its termination message file.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, VolumeDevice, VolumeMount};
use oarsman_cri_types::v1::{ContainerConfig, Device, ImageSpec, Mount, MountPropagation};

use super::error::{ConfigError, VolumeMountError};
use super::hosts::HOSTS_PATH;
use super::node_context::NodeContext;
use super::sub_paths::is_part;

/// Host paths that were made for one container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerHostPaths {
    /// The file for its termination message.
    pub termination_log: Option<PathBuf>,
    /// The file that is mounted as `/etc/hosts`.
    pub hosts: Option<PathBuf>,
    /// The volumes of its pod, by name.
    pub volumes: BTreeMap<String, VolumePath>,
    /// The parts of volumes that were mounted for it, by the mount's place in its list; of an image, the path within it.
    pub sub_paths: BTreeMap<usize, PathBuf>,
    /// The volumes of its pod that are images, by name.
    pub images: BTreeMap<String, ImageVolume>,
    /// The block volumes of its pod, by name.
    pub devices: BTreeMap<String, VolumePath>,
}

/// An image that is mounted as a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageVolume {
    /// What the runtime knows it as.
    pub id: String,
    /// As the spec names it.
    pub reference: String,
}

/// Where a volume lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumePath {
    /// The path on the machine, not in the container.
    pub path: PathBuf,
    /// Whether it is read-only, whatever a container asks for.
    pub read_only: bool,
    /// Whether it is ours and has not been given the pod's SELinux label.
    pub relabel: bool,
}

/// A mount of a container through which other mounts are to pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropagatedMount {
    /// Where it is in the container.
    pub container_path: String,
    /// Where it is on the machine.
    pub host_path: PathBuf,
    /// Whether mounts of the container are to reach the host, too.
    pub is_bidirectional: bool,
}

/// The mounts of a container through which other mounts are to pass. Images are the runtime's own.
pub fn propagated_mounts(config: &ContainerConfig) -> Vec<PropagatedMount> {
    let of = |mount: &Mount| {
        let is_bidirectional = match mount.propagation() {
            MountPropagation::PropagationPrivate => return None,
            MountPropagation::PropagationHostToContainer => false,
            MountPropagation::PropagationBidirectional => true,
        };
        let (container_path, host_path) = (mount.container_path.clone(), mount.host_path.as_str());
        let host_path = PathBuf::from(host_path);
        let is_of_host = !host_path.as_os_str().is_empty();
        is_of_host.then_some(PropagatedMount { container_path, host_path, is_bidirectional })
    };
    config.mounts.iter().filter_map(of).collect()
}

/// Every mount of a container.
pub(super) fn mounts(
    spec: &Container,
    host_paths: &ContainerHostPaths,
    node: &NodeContext<'_>,
) -> Result<Vec<Mount>, ConfigError> {
    let wanted = spec.volume_mounts.as_deref().unwrap_or_default();
    let mut mounts = Vec::new();
    for (index, mount) in wanted.iter().enumerate() {
        if let Some(image) = host_paths.images.get(&mount.name) {
            let sub_path = host_paths.sub_paths.get(&index).map(PathBuf::as_path);
            mounts.push(image_mount(mount, image, sub_path, node)?);
            continue;
        }
        let missing = || VolumeMountError::NoVolume {
            volume: mount.name.clone(),
            container: spec.name.clone(),
        };
        let volume = host_paths.volumes.get(&mount.name).ok_or_else(missing)?;
        let path = mounted_path(spec, index, mount, volume, host_paths)?;
        mounts.push(volume_mount(mount, path, volume, node)?);
    }
    let covered = wanted.iter().any(|mount| mount.mount_path == HOSTS_PATH);
    let hosts = host_paths.hosts.as_deref().filter(|_| !covered);
    mounts.extend(hosts.map(|file| file_mount(HOSTS_PATH, file, node)));
    let message = spec.termination_message_path.as_deref().filter(|path| !path.is_empty());
    let message = message.zip(host_paths.termination_log.as_deref());
    mounts.extend(message.map(|(path, file)| file_mount(&absolute(path), file, node)));
    Ok(mounts)
}

/// Every block device of a container.
pub(super) fn devices(
    spec: &Container,
    host_paths: &ContainerHostPaths,
) -> Result<Vec<Device>, ConfigError> {
    let device = |wanted: &VolumeDevice| {
        let missing = || VolumeMountError::NoDevice {
            volume: wanted.name.clone(),
            container: spec.name.clone(),
        };
        let volume = host_paths.devices.get(&wanted.name).ok_or_else(missing)?;
        Ok(Device {
            container_path: wanted.device_path.clone(),
            host_path: text(&volume.path),
            permissions: if volume.read_only { "r" } else { "mrw" }.to_owned(),
        })
    };
    spec.volume_devices.iter().flatten().map(device).collect()
}

/// What of the machine is mounted: the volume, or where its part was mounted.
fn mounted_path<'a>(
    spec: &Container,
    index: usize,
    mount: &VolumeMount,
    volume: &'a VolumePath,
    host_paths: &'a ContainerHostPaths,
) -> Result<&'a Path, VolumeMountError> {
    if !is_part(mount) {
        return Ok(&volume.path);
    }
    let missing =
        || VolumeMountError::NoSubPath { volume: mount.name.clone(), container: spec.name.clone() };
    host_paths.sub_paths.get(&index).map(PathBuf::as_path).ok_or_else(missing)
}

fn volume_mount(
    mount: &VolumeMount,
    path: &Path,
    volume: &VolumePath,
    node: &NodeContext<'_>,
) -> Result<Mount, ConfigError> {
    let recursive = recursive_read_only(mount, node.facts.recursive_read_only)?;
    Ok(Mount {
        container_path: absolute(&mount.mount_path),
        host_path: text(path),
        readonly: mount.read_only.unwrap_or_default() || volume.read_only,
        recursive_read_only: recursive,
        selinux_relabel: volume.relabel && node.settings.selinux,
        propagation: propagation(mount)?.into(),
        ..Mount::default()
    })
}

/// An image, which the runtime mounts; nothing can be written to it.
fn image_mount(
    mount: &VolumeMount,
    image: &ImageVolume,
    sub_path: Option<&Path>,
    node: &NodeContext<'_>,
) -> Result<Mount, ConfigError> {
    Ok(Mount {
        container_path: absolute(&mount.mount_path),
        readonly: true,
        recursive_read_only: recursive_read_only(mount, node.facts.recursive_read_only)?,
        selinux_relabel: node.settings.selinux,
        propagation: propagation(mount)?.into(),
        image: Some(ImageSpec {
            image: image.id.clone(),
            user_specified_image: image.reference.clone(),
            ..ImageSpec::default()
        }),
        image_sub_path: sub_path.map(text).unwrap_or_default(),
        ..Mount::default()
    })
}

/// A file that we made: the container may write to it.
fn file_mount(container_path: &str, file: &Path, node: &NodeContext<'_>) -> Mount {
    Mount {
        container_path: container_path.to_owned(),
        host_path: text(file),
        selinux_relabel: node.settings.selinux,
        ..Mount::default()
    }
}

fn propagation(mount: &VolumeMount) -> Result<MountPropagation, ConfigError> {
    match mount.mount_propagation.as_deref() {
        None | Some("" | "None") => Ok(MountPropagation::PropagationPrivate),
        Some("HostToContainer") => Ok(MountPropagation::PropagationHostToContainer),
        Some("Bidirectional") => Ok(MountPropagation::PropagationBidirectional),
        Some(other) => {
            Err(ConfigError::Unknown { field: "mountPropagation", value: other.to_owned() })
        }
    }
}

fn recursive_read_only(mount: &VolumeMount, supported: bool) -> Result<bool, ConfigError> {
    let wanted = mount.recursive_read_only.as_deref().unwrap_or_default();
    if matches!(wanted, "" | "Disabled") {
        return Ok(false);
    }
    let volume = mount.name.clone();
    if mount.read_only != Some(true) {
        return Err(VolumeMountError::NotReadOnly(volume).into());
    }
    let propagation = mount.mount_propagation.clone().unwrap_or_default();
    if !matches!(propagation.as_str(), "" | "None") {
        return Err(VolumeMountError::Propagated { volume, propagation }.into());
    }
    match wanted {
        "IfPossible" => Ok(supported),
        "Enabled" if supported => Ok(true),
        "Enabled" => Err(VolumeMountError::NoRecursiveReadOnly(volume).into()),
        other => Err(ConfigError::Unknown { field: "recursiveReadOnly", value: other.to_owned() }),
    }
}

fn absolute(path: &str) -> String {
    text(&Path::new("/").join(path))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
