//! Names of resources and what follows from them.

use super::names;
use crate::api::error::Errors;
use crate::api::path::Path;

const HUGE_PAGES: &str = "hugepages-";
const REQUESTS: &str = "requests.";
/// Resources a pod as a whole may have, besides huge pages of every size.
pub(super) const POD_LEVEL: [&str; 3] = ["cpu", "hugepages-", "memory"];
const OF_CONTAINERS: [&str; 3] = ["cpu", "ephemeral-storage", "memory"];
/// Counted in whole numbers, for quotas.
const COUNTED: [&str; 9] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];
/// Measured, for quotas and for containers.
const MEASURED: [&str; 11] = [
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "storage",
];

/// Memory in pages of a size of its own, such as `hugepages-2Mi`.
pub(in crate::api) fn is_huge_page(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

/// Whether more may be limited than is there: not so for huge pages and devices.
pub(in crate::api) fn is_overcommittable(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// Whether a pod as a whole may have it.
pub(in crate::api) fn is_pod_level_resource(name: &str) -> bool {
    name == "cpu" || name == "memory" || is_huge_page(name)
}

/// Whether it comes in whole numbers only.
pub(super) fn is_integer(name: &str) -> bool {
    COUNTED.contains(&name) || is_extended(name)
}

/// Names without a domain are Kubernetes' own.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// A name with a domain is an extended resource, if it is also valid with the `requests.` prefix of quotas.
fn is_extended(name: &str) -> bool {
    let in_quota = || names::qualified_name(&format!("{REQUESTS}{name}")).is_empty();
    !is_native(name) && !name.starts_with(REQUESTS) && in_quota()
}

/// The name of any resource.
pub(super) fn check_name(at: &Path, name: &str, errors: &mut Errors) {
    let complaints = names::qualified_name(name);
    let plain = complaints.is_empty() && !name.contains('/');
    errors.invalid_for(at, name, complaints);
    if plain && !is_standard(name) {
        errors.invalid(at, name, "is no known resource; one of your own needs a domain before it");
    }
}

fn is_standard(name: &str) -> bool {
    let page = name.strip_prefix(REQUESTS).unwrap_or(name);
    COUNTED.contains(&name) || MEASURED.contains(&name) || is_huge_page(page)
}

/// The name of a resource of a container.
pub(super) fn check_container_name(at: &Path, name: &str, errors: &mut Errors) {
    check_name(at, name, errors);
    if !name.contains('/') {
        if !OF_CONTAINERS.contains(&name) && !is_huge_page(name) {
            errors.invalid(at, name, "is no resource of containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.invalid(at, name, "cannot be the name of a resource of your own");
    }
}
