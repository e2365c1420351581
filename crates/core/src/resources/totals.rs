//! What a whole pod asks for: its own amounts before those of its containers, its overhead on top.

use k8s_openapi::api::core::v1::{Pod, PodSpec, ResourceRequirements};

use crate::pod::PodExt;
use crate::quantity::Quantity;
use crate::resources::amounts::{ResourceList, container_limits, container_requests, read};

use super::hugepages;

/// What the pod requests, its overhead included.
pub fn pod_requests(pod: &Pod) -> ResourceList {
    let mut requests = requests_without_overhead(pod);
    for (name, amount) in overhead(pod) {
        let sum = requests.get(&name).map_or_else(|| amount.clone(), |own| own.plus(&amount));
        requests.insert(name, sum);
    }
    requests
}

/// What the pod may use, its overhead included; the overhead alone is no limit.
pub fn pod_limits(pod: &Pod) -> ResourceList {
    let mut limits = limits_without_overhead(pod);
    let overhead = overhead(pod);
    for (name, limit) in &mut limits {
        if let Some(more) = overhead.get(name) {
            *limit = limit.plus(more);
        }
    }
    limits
}

pub(super) fn requests_without_overhead(pod: &Pod) -> ResourceList {
    let mut requests = pod.spec().map(container_requests).unwrap_or_default();
    requests.extend(own_requests(pod));
    requests
}

pub(super) fn limits_without_overhead(pod: &Pod) -> ResourceList {
    let mut limits = pod.spec().map(container_limits).unwrap_or_default();
    limits.extend(own_limits(pod));
    limits
}

/// What running the pod costs beside its containers.
pub(super) fn overhead(pod: &Pod) -> ResourceList {
    read(pod.spec().and_then(|spec| spec.overhead.as_ref()))
}

/// The requests of the pod as a whole, of the resources that can be requested so.
pub(super) fn own_requests(pod: &Pod) -> ResourceList {
    own(pod, |resources| read(resources.requests.as_ref()))
}

/// The limits of the pod as a whole, of the resources that can be limited so.
pub(super) fn own_limits(pod: &Pod) -> ResourceList {
    own(pod, |resources| read(resources.limits.as_ref()))
}

fn own(pod: &Pod, side: impl Fn(&ResourceRequirements) -> ResourceList) -> ResourceList {
    let resources = pod.spec().and_then(|spec: &PodSpec| spec.resources.as_ref());
    let mut amounts = resources.map(side).unwrap_or_default();
    amounts.retain(|name, _| is_pod_level_resource(name));
    amounts
}

fn is_pod_level_resource(name: &str) -> bool {
    name == "cpu" || name == "memory" || hugepages::size_of_resource(name).is_some()
}

/// The amount of a resource; nothing if it is not named.
pub(super) fn amount(of: &ResourceList, name: &str) -> Quantity {
    of.get(name).cloned().unwrap_or_default()
}
