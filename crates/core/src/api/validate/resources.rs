//! Resources of containers and of the pod as a whole.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

use super::claims;
use super::resource_names::{
    POD_LEVEL, check_container_name, check_name, is_huge_page, is_integer, is_overcommittable,
    is_pod_level_resource,
};
use crate::api::error::Errors;
use crate::api::path::Path;
use crate::quantity::Quantity;
use crate::resources::amounts::{self, ResourceList};

type WireAmounts = BTreeMap<String, WireQuantity>;

/// What a container may use and wants to be promised.
pub(super) fn check_container(
    at: &Path,
    requirements: &ResourceRequirements,
    claims: &BTreeSet<&str>,
    errors: &mut Errors,
) {
    check_requirements(at, requirements, check_container_name, errors);
    let taken = requirements.claims.as_deref().unwrap_or_default();
    claims::check_taken(&at.child("claims"), taken, claims, errors);
}

/// What the sandbox itself costs.
pub(super) fn check_overhead(at: &Path, overhead: &WireAmounts, errors: &mut Errors) {
    let limits = Some(overhead.clone());
    let requirements = ResourceRequirements { limits, ..ResourceRequirements::default() };
    check_requirements(at, &requirements, check_container_name, errors);
}

/// What all containers share, and whether they fit in.
pub(super) fn check_pod(at: &Path, spec: &PodSpec, errors: &mut Errors) {
    let Some(requirements) = &spec.resources else { return };
    if spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        return errors.forbidden(at, "a Windows pod has no resources of its own");
    }
    if let Some(taken) = &requirements.claims {
        errors.forbidden(&at.child("claims"), "containers take claims, pods do not");
        claims::check_taken(&at.child("claims"), taken, &claims::names(spec), errors);
    }
    check_requirements(at, requirements, check_pod_name, errors);
    check_containers_fit(at, spec, requirements, errors);
}

fn check_pod_name(at: &Path, name: &str, errors: &mut Errors) {
    let before = errors.count();
    check_name(at, name, errors);
    if errors.count() == before && !is_pod_level_resource(name) {
        errors.not_supported(at, name, &POD_LEVEL);
    }
}

fn check_requirements(
    at: &Path,
    requirements: &ResourceRequirements,
    check_name: fn(&Path, &str, &mut Errors),
    errors: &mut Errors,
) {
    let (limits_at, requests_at) = (at.child("limits"), at.child("requests"));
    check_amounts(&limits_at, requirements.limits.as_ref(), check_name, errors);
    check_amounts(&requests_at, requirements.requests.as_ref(), check_name, errors);
    let limits = amounts::read(requirements.limits.as_ref());
    let requests = amounts::read(requirements.requests.as_ref());
    for (name, request) in &requests {
        match limits.get(name) {
            Some(limit) => check_within(&requests_at, name, request, limit, errors),
            None if is_overcommittable(name) => {}
            None => {
                errors.required(&limits_at, &format!("{name} cannot be had without a limit"));
            }
        }
    }
    check_huge_pages_with_cpu_or_memory(at, &limits, &requests, errors);
}

fn check_amounts(
    at: &Path,
    amounts: Option<&WireAmounts>,
    check_name: fn(&Path, &str, &mut Errors),
    errors: &mut Errors,
) {
    for (name, wire) in amounts.into_iter().flatten() {
        let at = at.key(name);
        check_name(&at, name, errors);
        match Quantity::try_from(wire) {
            Ok(amount) => check_amount(&at, name, &amount, errors),
            Err(error) => errors.invalid(&at, wire.0.as_str(), error.to_string()),
        }
    }
}

/// An amount of a resource.
pub(super) fn check_amount(at: &Path, name: &str, amount: &Quantity, errors: &mut Errors) {
    if amount.is_negative() {
        errors.invalid(at, amount.to_string(), "must not be negative");
    }
    if is_integer(name) && !amount.clone().rounded_to_millis().is_whole() {
        errors.invalid(at, amount.to_string(), "must be a whole number");
    }
    if is_huge_page(name) && !is_whole_pages(name, amount) {
        errors.invalid(at, amount.to_string(), "must be a whole number of pages of that size");
    }
}

fn is_whole_pages(name: &str, amount: &Quantity) -> bool {
    let size = name.strip_prefix("hugepages-").map(Quantity::parse);
    let Some(Ok(size)) = size else { return false };
    let whole = Quantity::from_units(amount.units(), crate::quantity::Format::BinarySi);
    size.is_whole() && whole.is_multiple_of(&size)
}

fn check_within(at: &Path, name: &str, request: &Quantity, limit: &Quantity, errors: &mut Errors) {
    if request != limit && !is_overcommittable(name) {
        let detail = format!("must be the limit of {name}, {limit}: it cannot be overcommitted");
        errors.invalid(at, request.to_string(), detail);
    } else if request > limit {
        let detail = format!("must not be more than the limit of {name}, {limit}");
        errors.invalid(at, request.to_string(), detail);
    }
}

fn check_huge_pages_with_cpu_or_memory(
    at: &Path,
    limits: &ResourceList,
    requests: &ResourceList,
    errors: &mut Errors,
) {
    let any = |is: fn(&str) -> bool| limits.keys().chain(requests.keys()).any(|name| is(name));
    if any(is_huge_page) && !any(|name| name == "cpu" || name == "memory") {
        errors.forbidden(at, "huge pages need cpu or memory beside them");
    }
}

fn check_containers_fit(
    at: &Path,
    spec: &PodSpec,
    requirements: &ResourceRequirements,
    errors: &mut Errors,
) {
    let requests = amounts::read(requirements.requests.as_ref());
    let limits = amounts::read(requirements.limits.as_ref());
    let requests_at = at.child("requests");
    check_covers(&requests_at, &requests, &amounts::container_requests(spec), errors);
    let mut pages = amounts::container_limits(spec);
    pages.retain(|name, _| is_huge_page(name));
    check_covers(&at.child("limits"), &limits, &pages, errors);
    for (i, container) in spec.containers.iter().enumerate() {
        let own = container.resources.as_ref().and_then(|resources| resources.limits.as_ref());
        for (name, amount) in amounts::read(own) {
            if let Some(limit) = limits.get(&name).filter(|limit| amount > **limit) {
                let at = at.child("containers").index(i).key(&name).child("limits");
                let detail = format!("must not be more than the pod's limit, {limit}");
                errors.invalid(&at, amount.to_string(), detail);
            }
        }
    }
}

fn check_covers(
    at: &Path,
    of_pod: &ResourceList,
    of_containers: &ResourceList,
    errors: &mut Errors,
) {
    for (name, needed) in of_containers {
        if let Some(given) = of_pod.get(name).filter(|given| needed > *given) {
            let detail = format!("must be enough for the containers, which take {needed}");
            errors.invalid(&at.key(name), given.to_string(), detail);
        }
    }
}
