//! Claims of devices: of the pod, and what its containers take of them.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Pod, PodResourceClaim, PodSpec, ResourceClaim};

use super::names;
use crate::api::error::Errors;
use crate::api::path::Path;
use crate::pod::PodExt;

/// Names of the pod's claims.
pub(super) fn names(spec: &PodSpec) -> BTreeSet<&str> {
    let all = spec.resource_claims.iter().flatten().map(|claim| claim.name.as_str());
    all.filter(|name| !name.is_empty()).collect()
}

/// Claims of the pod.
pub(super) fn check(at: &Path, pod: &Pod, spec: &PodSpec, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (i, claim) in spec.resource_claims.iter().flatten().enumerate() {
        if pod.is_mirror() {
            // The API server names no field here, and this is how it writes that.
            errors.forbidden(&Path::root("[]"), "a static pod cannot claim anything");
            continue;
        }
        let at = at.index(i);
        check_name(&at.child("name"), &claim.name, &mut seen, errors);
        check_source(&at, claim, errors);
    }
}

fn check_name<'a>(at: &Path, name: &'a str, seen: &mut BTreeSet<&'a str>, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(at, "");
    } else if !seen.insert(name) {
        errors.duplicate(at, name);
    } else {
        errors.invalid_for(at, name, names::dns_label(name));
    }
}

fn check_source(at: &Path, claim: &PodResourceClaim, errors: &mut Errors) {
    let sources = [
        ("resourceClaimName", &claim.resource_claim_name),
        ("resourceClaimTemplateName", &claim.resource_claim_template_name),
    ];
    if sources.iter().filter(|(_, name)| name.is_some()).count() != 1 {
        let detail = "say one of resourceClaimName and resourceClaimTemplateName";
        errors.invalid(at, claim.name.as_str(), detail);
    }
    for (field, name) in sources {
        if let Some(name) = name {
            errors.invalid_for(&at.child(field), name, names::dns_subdomain(name));
        }
    }
}

/// Claims a container takes, whole or one request of them.
pub(super) fn check_taken(
    at: &Path,
    taken: &[ResourceClaim],
    claims: &BTreeSet<&str>,
    errors: &mut Errors,
) {
    let mut seen = BTreeSet::new();
    for (i, claim) in taken.iter().enumerate() {
        let at = at.index(i);
        if claim.name.is_empty() {
            errors.required(&at, "");
            continue;
        }
        check_taken_once(&at, claim, &mut seen, errors);
        if !claims.contains(claim.name.as_str()) {
            errors.not_found(&at, &claim.name, "spec.resourceClaims has no claim of that name");
        }
    }
}

/// A claim is taken whole, or by different requests, once each.
fn check_taken_once<'a>(
    at: &Path,
    claim: &'a ResourceClaim,
    seen: &mut BTreeSet<(&'a str, Option<&'a str>)>,
    errors: &mut Errors,
) {
    let (name, request) = (claim.name.as_str(), claim.request.as_deref());
    if seen.contains(&(name, None)) {
        return errors.duplicate(at, name);
    }
    if let Some(request) = request {
        errors.invalid_for(&at.child("request"), request, names::dns_label(request));
    }
    let overlaps = |(other, other_request): &&(&str, Option<&str>)| {
        *other == name && (request.is_none() || *other_request == request)
    };
    for _ in seen.iter().filter(overlaps) {
        errors.duplicate(at, name);
    }
    seen.insert((name, request));
}
