//! References of a pod to its own fields and resources.

use k8s_openapi::api::core::v1::{ObjectFieldSelector, ResourceFieldSelector};

use super::{labels, names};
use crate::api::error::Errors;
use crate::api::path::Path;
use crate::quantity::Quantity;

/// Fields a variable may hold.
pub(super) const IN_ENV: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields a file may hold.
pub(super) const IN_FILES: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
/// Fields that exist, wherever they may be used, besides `spec.host`, the node's old name.
const KNOWN: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.phase",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const HUGE_PAGES: [&str; 2] = ["limits.hugepages-", "requests.hugepages-"];
const CPU_DIVISORS: [&str; 2] = ["1", "1m"];
const BYTE_DIVISORS: [&str; 13] =
    ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// A field of the pod, which must be one of the supported here.
pub(super) fn check_field(
    at: &Path,
    reference: &ObjectFieldSelector,
    supported: &[&str],
    errors: &mut Errors,
) {
    let version = reference.api_version.as_deref().unwrap_or_default();
    let path = reference.field_path.as_str();
    if version.is_empty() {
        errors.required(&at.child("apiVersion"), "");
    } else if path.is_empty() {
        errors.required(&at.child("fieldPath"), "");
    } else if version != "v1" {
        errors.invalid(&at.child("fieldPath"), path, "a pod has fields of apiVersion v1 only");
    } else {
        check_field_path(at, path, supported, errors);
    }
}

fn check_field_path(at: &Path, path: &str, supported: &[&str], errors: &mut Errors) {
    let path_at = at.child("fieldPath");
    match subscripted(path) {
        Some(("metadata.labels", key)) => labels::check_key(at, key, errors),
        Some(("metadata.annotations", key)) => {
            errors.invalid_for(at, key, names::qualified_name(&key.to_lowercase()));
        }
        None if path == "spec.host" => {
            errors.check_supported(&path_at, "spec.nodeName", supported);
        }
        None if KNOWN.contains(&path) => errors.check_supported(&path_at, path, supported),
        Some(_) | None => errors.invalid(&path_at, path, "there is no such field to refer to"),
    }
}

/// The two parts of `metadata.labels['key']`.
fn subscripted(path: &str) -> Option<(&str, &str)> {
    let (field, key) = path.strip_suffix("']")?.split_once("['")?;
    (!field.is_empty()).then_some((field, key))
}

/// A resource of the container itself.
pub(super) fn check_resource(at: &Path, reference: &ResourceFieldSelector, errors: &mut Errors) {
    let resource = reference.resource.as_str();
    if resource.is_empty() {
        errors.required(&at.child("resource"), "");
    } else if !is_resource(resource) {
        errors.not_supported(&at.child("resource"), resource, &RESOURCES);
    }
    check_divisor(&at.child("divisor"), reference, errors);
}

/// A resource of a container that has to be named.
pub(super) fn check_resource_of(at: &Path, reference: &ResourceFieldSelector, errors: &mut Errors) {
    if reference.container_name.is_some() {
        return check_resource(at, reference, errors);
    }
    errors.required(&at.child("containerName"), "");
    check_divisor(&at.child("divisor"), reference, errors);
}

fn is_resource(name: &str) -> bool {
    RESOURCES.contains(&name) || is_huge_page(name)
}

fn is_huge_page(name: &str) -> bool {
    HUGE_PAGES.iter().any(|prefix| name.starts_with(prefix))
}

fn check_divisor(at: &Path, reference: &ResourceFieldSelector, errors: &mut Errors) {
    let divisor = reference.divisor.as_ref().and_then(|wire| Quantity::try_from(wire).ok());
    let Some(divisor) = divisor.filter(|divisor| !divisor.is_zero()) else { return };
    let resource = reference.resource.as_str();
    let allowed: &[&str] = match resource.split_once('.') {
        Some(("limits" | "requests", "cpu")) => &CPU_DIVISORS,
        Some(("limits" | "requests", "memory" | "ephemeral-storage")) => &BYTE_DIVISORS,
        _ if is_huge_page(resource) => &BYTE_DIVISORS,
        _ => return,
    };
    if !allowed.contains(&divisor.to_string().as_str()) {
        errors.invalid(at, resource, format!("its divisor is one of {}", allowed.join(", ")));
    }
}
