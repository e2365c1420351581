//! Where containers see volumes: as directories or as devices.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, VolumeDevice, VolumeMount};

use super::context::PodValidationContext;
use super::paths;
use crate::api::error::Errors;
use crate::api::path::Path;

const NO_SUCH_VOLUME: &str = "the pod has no such volume, or a bad one";
const PROPAGATIONS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
const RECURSIVE_READ_ONLY: [&str; 3] = ["Disabled", "Enabled", "IfPossible"];

pub(super) fn check(
    at: &Path,
    container: &Container,
    around: &PodValidationContext<'_>,
    errors: &mut Errors,
) {
    check_mounts(&at.child("volumeMounts"), container, around, errors);
    check_devices(&at.child("volumeDevices"), container, around, errors);
}

fn check_mounts(
    at: &Path,
    container: &Container,
    around: &PodValidationContext<'_>,
    errors: &mut Errors,
) {
    let mut taken = BTreeSet::new();
    for (i, mount) in container.volume_mounts.iter().flatten().enumerate() {
        let item = at.index(i);
        check_mount_name(&item.child("name"), mount, container, around, errors);
        let path_at = item.child("mountPath");
        if !taken.insert(mount.mount_path.as_str()) {
            let detail = "something is mounted there already";
            errors.invalid(&path_at, mount.mount_path.as_str(), detail);
        }
        check_mount_path(&path_at, mount, container, errors);
        check_sub_paths(at, &item, mount, errors);
        check_propagation(&at.child("mountPropagation"), mount, container, errors);
        check_recursive_read_only(&at.child("recursiveReadOnly"), mount, errors);
    }
}

fn check_mount_name(
    at: &Path,
    mount: &VolumeMount,
    container: &Container,
    around: &PodValidationContext<'_>,
    errors: &mut Errors,
) {
    let name = mount.name.as_str();
    errors.check_present(at, name);
    if !around.volumes.contains_key(name) {
        errors.not_found(at, name, NO_SUCH_VOLUME);
    }
    if container.volume_devices.iter().flatten().any(|device| device.name == name) {
        errors.invalid(at, name, "it is a device of this container already");
    }
}

fn check_mount_path(at: &Path, mount: &VolumeMount, container: &Container, errors: &mut Errors) {
    let path = mount.mount_path.as_str();
    errors.check_present(at, path);
    let devices = container.volume_devices.as_deref().unwrap_or_default();
    if last_of_each(devices, |device| &device.name).any(|device| device.device_path == path) {
        errors.invalid(at, path, "a device is there already");
    }
}

/// The API server reports bad paths for the list as a whole, as it does for the two checks below.
fn check_sub_paths(list: &Path, item: &Path, mount: &VolumeMount, errors: &mut Errors) {
    if let Some(path) = &mount.sub_path {
        paths::check_descending(&list.child("subPath"), path, errors);
    }
    if let Some(path) = &mount.sub_path_expr {
        if mount.sub_path.is_some() {
            let detail = "a mount has subPath or subPathExpr, not both";
            errors.invalid(&item.child("subPathExpr"), path.as_str(), detail);
        }
        paths::check_descending(&list.child("subPathExpr"), path, errors);
    }
}

fn check_propagation(at: &Path, mount: &VolumeMount, container: &Container, errors: &mut Errors) {
    let Some(propagation) = &mount.mount_propagation else { return };
    errors.check_supported(at, propagation, &PROPAGATIONS);
    let privileged = container.security_context.iter().any(|c| c.privileged == Some(true));
    if propagation == "Bidirectional" && !privileged {
        errors.forbidden(at, "only a privileged container may mount for others");
    }
}

fn check_recursive_read_only(at: &Path, mount: &VolumeMount, errors: &mut Errors) {
    match mount.recursive_read_only.as_deref() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if mount.read_only != Some(true) {
                errors.forbidden(at, "goes with readOnly");
            }
            if mount.mount_propagation.as_ref().is_some_and(|p| p != "None") {
                errors.forbidden(at, "goes with mountPropagation None");
            }
        }
        Some(other) => errors.not_supported(at, other, &RECURSIVE_READ_ONLY),
    }
}

fn check_devices(
    at: &Path,
    container: &Container,
    around: &PodValidationContext<'_>,
    errors: &mut Errors,
) {
    let (mut names, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for (i, device) in container.volume_devices.iter().flatten().enumerate() {
        let at = at.index(i);
        check_device_name(&at.child("name"), device, container, around, errors);
        let (name, path) = (device.name.as_str(), device.device_path.as_str());
        if !name.is_empty() && !names.insert(name) {
            errors.invalid(&at.child("name"), name, "it is a device of this container already");
        }
        let path_at = at.child("devicePath");
        check_device_path(&path_at, device, container, errors);
        if taken.contains(path) {
            errors.invalid(&path_at, path, "a device is there already");
        }
        if !paths::has_dots(path) {
            taken.insert(path);
        }
    }
}

fn check_device_name(
    at: &Path,
    device: &VolumeDevice,
    container: &Container,
    around: &PodValidationContext<'_>,
    errors: &mut Errors,
) {
    let name = device.name.as_str();
    errors.check_present(at, name);
    match around.volumes.get(name) {
        None => errors.not_found(at, name, NO_SUCH_VOLUME),
        Some(volume) if volume.persistent_volume_claim.is_none() && volume.ephemeral.is_none() => {
            errors.invalid(at, name, "only a claimed volume can be a device");
        }
        Some(_) => {}
    }
    if container.volume_mounts.iter().flatten().any(|mount| mount.name == name) {
        errors.invalid(at, name, "it is mounted in this container already");
    }
}

fn check_device_path(at: &Path, device: &VolumeDevice, container: &Container, errors: &mut Errors) {
    let path = device.device_path.as_str();
    errors.check_present(at, path);
    paths::check_no_dots(at, path, errors);
    let mounts = container.volume_mounts.as_deref().unwrap_or_default();
    if last_of_each(mounts, |mount| &mount.name).any(|mount| mount.mount_path == path) {
        errors.invalid(at, path, "something is mounted there already");
    }
}

/// Of several items for one volume only the last is compared, as the API server does.
fn last_of_each<'a, T>(
    items: &'a [T],
    name: impl Fn(&'a T) -> &'a String,
) -> impl Iterator<Item = &'a T> {
    let is_last =
        move |i: usize| !items[i + 1..].iter().any(|later| name(later) == name(&items[i]));
    (0..items.len()).filter(move |i| is_last(*i)).map(|i| &items[i])
}
