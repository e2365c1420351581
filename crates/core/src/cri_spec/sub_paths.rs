//! Parts of volumes that a container mounts: `subPath` and `subPathExpr`.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use k8s_openapi::api::core::v1::VolumeMount;

use super::container::{ContainerConfigRequest, make_environment_variables};
use super::env::Environment;
use super::error::{ConfigError, SubPathFault, VolumeMountError};
use super::paths::volume_plugin;
use crate::pod::PodExt;

/// A part of a volume that is mounted where the runtime finds it, so that the runtime resolves no path that containers can change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubPathToMount {
    /// The name of the volume in the pod.
    pub volume: String,
    /// The plugin that the volume is of.
    pub plugin: String,
    /// The container that mounts it.
    pub container: String,
    /// The place of the mount in the container's list; the directory on disk is called so.
    pub index: usize,
    /// Where the volume lies.
    pub volume_path: PathBuf,
    /// Which part of it; relative, and without `..`.
    pub sub_path: PathBuf,
}

/// The parts of volumes that a container mounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerSubPaths {
    /// Those of volumes that lie on this machine.
    pub to_mount: Vec<SubPathToMount>,
    /// Those of images, by the mount's place in the container's list: the runtime finds them within the image.
    pub of_images: BTreeMap<usize, PathBuf>,
}

/// The parts of volumes that a container mounts.
pub fn sub_paths(request: &ContainerConfigRequest<'_>) -> Result<ContainerSubPaths, ConfigError> {
    let mounts = request.spec.volume_mounts.as_deref().unwrap_or_default();
    // Most containers mount whole volumes, and need no environment for that.
    let environment = match mounts.iter().any(|mount| !expression(mount).is_empty()) {
        true => make_environment_variables(request)?,
        false => Environment::default(),
    };
    let mut parts = ContainerSubPaths::default();
    for (index, mount) in mounts.iter().enumerate() {
        let Some(sub_path) = sub_path(request, mount, &environment)? else { continue };
        match request.host_paths.images.contains_key(&mount.name) {
            true => drop(parts.of_images.insert(index, sub_path)),
            false => parts.to_mount.push(part(request, index, mount, sub_path)?),
        }
    }
    Ok(parts)
}

/// Whether a mount is one of a part of its volume.
pub(super) fn is_part(mount: &VolumeMount) -> bool {
    !plain(mount).is_empty() || !expression(mount).is_empty()
}

fn plain(mount: &VolumeMount) -> &str {
    mount.sub_path.as_deref().unwrap_or_default()
}

fn expression(mount: &VolumeMount) -> &str {
    mount.sub_path_expr.as_deref().unwrap_or_default()
}

fn part(
    request: &ContainerConfigRequest<'_>,
    index: usize,
    mount: &VolumeMount,
    sub_path: PathBuf,
) -> Result<SubPathToMount, ConfigError> {
    let (volume, container) = (mount.name.clone(), request.spec.name.clone());
    let mut specs = request.pod.spec().and_then(|spec| spec.volumes.as_ref()).into_iter().flatten();
    let spec = specs.find(|spec| spec.name == volume);
    let Some((spec, place)) = spec.zip(request.host_paths.volumes.get(&volume)) else {
        return Err(VolumeMountError::NoVolume { volume, container }.into());
    };
    let (plugin, volume_path) = (volume_plugin(spec), place.path.clone());
    Ok(SubPathToMount { volume, plugin, container, index, volume_path, sub_path })
}

/// Which part of its volume a mount is of; none for one of the whole volume.
fn sub_path(
    request: &ContainerConfigRequest<'_>,
    mount: &VolumeMount,
    environment: &Environment,
) -> Result<Option<PathBuf>, ConfigError> {
    let (field, text, path) = match expression(mount) {
        "" => ("subPath", plain(mount), Ok(plain(mount).to_owned())),
        text => ("subPathExpr", text, environment.expand_path(text)),
    };
    if text.is_empty() {
        return Ok(None);
    }
    let failed = |why| VolumeMountError::SubPath {
        volume: mount.name.clone(),
        container: request.spec.name.clone(),
        field,
        text: text.to_owned(),
        why,
    };
    let path = path.map(PathBuf::from).map_err(failed)?;
    match fault(&path) {
        None => Ok(Some(path)),
        Some(why) => Err(failed(why).into()),
    }
}

/// The API server has checked a subPath, and the text of a subPathExpr, but not what variables make of it.
fn fault(path: &Path) -> Option<SubPathFault> {
    if path.as_os_str().is_empty() {
        return Some(SubPathFault::Empty);
    }
    if path.is_absolute() {
        return Some(SubPathFault::Absolute);
    }
    path.components().any(|part| part == Component::ParentDir).then_some(SubPathFault::Backsteps)
}
