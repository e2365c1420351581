//! Defaults of resources: requests follow from limits, the pod's from its containers'.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

use crate::api::validate::{is_huge_page, is_overcommittable, is_pod_level_resource};
use crate::quantity::Quantity;
use crate::resources::amounts::{ResourceList, container_limits, container_requests};

type WireAmounts = BTreeMap<String, WireQuantity>;

/// Fills in requests and limits that follow from others.
pub(super) fn set_defaults(spec: &mut PodSpec) {
    let init = spec.init_containers.iter_mut().flatten();
    for container in spec.containers.iter_mut().chain(init) {
        container.resources.as_mut().map(request_what_is_limited);
    }
    let (requests, limits) = (container_requests(spec), container_limits(spec));
    if let Some(pod) = &mut spec.resources {
        limit_huge_pages(pod, &limits);
        request_for_pod(pod, &requests);
    }
}

fn request_what_is_limited(resources: &mut ResourceRequirements) {
    let Some(limits) = &resources.limits else { return };
    let requests = resources.requests.get_or_insert_default();
    for (name, limit) in limits {
        requests.entry(name.clone()).or_insert_with(|| limit.clone());
    }
}

/// Huge pages cannot be overcommitted, so the pod is limited to what its containers are.
fn limit_huge_pages(pod: &mut ResourceRequirements, containers: &ResourceList) {
    if pod.limits.is_none() && pod.requests.is_none() {
        return;
    }
    let mut limits = pod.limits.take().unwrap_or_default();
    let requested = |name: &String| pod.requests.iter().any(|requests| requests.contains_key(name));
    for (name, amount) in containers {
        if is_huge_page(name) && !requested(name) {
            limits.entry(name.clone()).or_insert_with(|| amount.to_wire());
        }
    }
    pod.limits = (!limits.is_empty()).then_some(limits);
}

/// A limited pod requests what its containers do, or else its limit.
fn request_for_pod(pod: &mut ResourceRequirements, containers: &ResourceList) {
    let Some(limits) = &pod.limits else { return };
    let mut requests = pod.requests.take().unwrap_or_default();
    for (name, amount) in containers {
        if is_pod_level_resource(name) && is_overcommittable(name) {
            requests.entry(name.clone()).or_insert_with(|| amount.to_wire());
        }
    }
    for (name, limit) in limits.iter().filter(|(name, _)| is_pod_level_resource(name)) {
        requests.entry(name.clone()).or_insert_with(|| limit.clone());
    }
    pod.requests = (!requests.is_empty()).then_some(requests);
}

/// Rounds every amount up to thousandths, the finest grain resources have.
pub(super) fn round(spec: &mut PodSpec) {
    let init = spec.init_containers.iter_mut().flatten();
    let of_containers = spec.containers.iter_mut().chain(init).map(|c| &mut c.resources);
    let ephemeral = spec.ephemeral_containers.iter_mut().flatten().map(|c| &mut c.resources);
    let of_pod = std::iter::once(&mut spec.resources);
    for resources in of_containers.chain(ephemeral).chain(of_pod).flatten() {
        round_amounts(resources.limits.as_mut());
        round_amounts(resources.requests.as_mut());
    }
    round_amounts(spec.overhead.as_mut());
    let made = spec.volumes.iter_mut().flatten().filter_map(|volume| volume.ephemeral.as_mut());
    for template in made.filter_map(|ephemeral| ephemeral.volume_claim_template.as_mut()) {
        if let Some(resources) = &mut template.spec.resources {
            round_amounts(resources.limits.as_mut());
            round_amounts(resources.requests.as_mut());
        }
    }
}

fn round_amounts(amounts: Option<&mut WireAmounts>) {
    for amount in amounts.into_iter().flat_map(BTreeMap::values_mut) {
        if let Ok(quantity) = Quantity::try_from(&*amount) {
            *amount = quantity.rounded_to_millis().to_wire();
        }
    }
}
