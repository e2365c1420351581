//! Annotations that mean something to a node, and fields that say the same.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{AppArmorProfile, Pod, SeccompProfile, Toleration};

use super::context::ContainerPosition;
use super::{paths, tolerations};
use crate::api::create::APP_ARMOR_ANNOTATION_PREFIX;
use crate::api::error::Errors;
use crate::api::path::Path;
use crate::pod::{MIRROR_ANNOTATION, PodExt};

const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER_PREFIX: &str = "container.seccomp.security.alpha.kubernetes.io/";

type Annotations = BTreeMap<String, String>;

/// What the annotations say by themselves.
pub(super) fn check(at: &Path, pod: &Pod, errors: &mut Errors) {
    let Some(annotations) = &pod.metadata.annotations else { return };
    let on_a_node = pod.spec().is_some_and(|spec| spec.node_name.is_some());
    if let Some(hash) = annotations.get(MIRROR_ANNOTATION).filter(|_| !on_a_node) {
        let detail = "a mirror pod is on a node: set spec.nodeName";
        errors.invalid(&at.key(MIRROR_ANNOTATION), hash.as_str(), detail);
    }
    check_tolerations(at, annotations, errors);
    if let Some(cost) = annotations.get(DELETION_COST).filter(|cost| !is_deletion_cost(cost)) {
        errors.invalid(&at.key(DELETION_COST), cost.as_str(), "must be a whole number of 32 bits");
    }
    check_seccomp(at, annotations, errors);
    check_app_armor(at, pod, annotations, errors);
}

fn check_tolerations(at: &Path, annotations: &Annotations, errors: &mut Errors) {
    let text = annotations.get(TOLERATIONS).map(String::as_str).unwrap_or_default();
    if text.is_empty() {
        return;
    }
    match serde_json::from_str::<Vec<Toleration>>(text) {
        Ok(tolerations) => tolerations::check(&at.child(TOLERATIONS), &tolerations, errors),
        Err(error) => errors.invalid(at, TOLERATIONS, error.to_string()),
    }
}

/// A number with neither a plus sign nor a leading zero.
fn is_deletion_cost(text: &str) -> bool {
    let plain = text == "0" || text.starts_with(['-', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    plain && text.parse::<i32>().is_ok()
}

fn check_seccomp(at: &Path, annotations: &Annotations, errors: &mut Errors) {
    let is_profile = |key: &str| key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER_PREFIX);
    for (key, profile) in annotations.iter().filter(|(key, _)| is_profile(key)) {
        let at = at.child(key);
        match profile.as_str() {
            "runtime/default" | "docker/default" | "unconfined" => {}
            profile => match profile.strip_prefix("localhost/") {
                Some(file) => paths::check_descending(&at, file, errors),
                None => errors.invalid(&at, profile, "there is no such seccomp profile"),
            },
        }
    }
}

fn check_app_armor(at: &Path, pod: &Pod, annotations: &Annotations, errors: &mut Errors) {
    for (key, profile) in annotations {
        let Some(name) = key.strip_prefix(APP_ARMOR_ANNOTATION_PREFIX) else { continue };
        if pod.container(name).is_none() {
            errors.invalid(&at.key(key), name, "there is no container of that name");
        }
        let is_profile = matches!(profile.as_str(), "" | "runtime/default" | "unconfined")
            || profile.starts_with("localhost/");
        if !is_profile {
            errors.invalid(&at.key(key), profile.as_str(), "there is no such AppArmor profile");
        }
    }
}

/// Where an annotation and a field say the same thing, they must say it alike.
pub(super) fn check_against_fields(
    at: &Path,
    pod: &Pod,
    container_positions: &[ContainerPosition<'_>],
    errors: &mut Errors,
) {
    let context = pod.spec().and_then(|spec| spec.security_context.as_ref());
    let context_at = at.child("securityContext");
    if let (Some(annotated), Some(profile)) =
        (pod.annotation(SECCOMP_POD), context.and_then(|c| c.seccomp_profile.as_ref()))
    {
        compare_seccomp(&context_at, annotated, profile, errors);
    }
    let pod_app_armor = context.and_then(|c| c.app_armor_profile.as_ref());
    for place in container_positions {
        compare_container(pod, place, pod_app_armor, errors);
    }
}

fn compare_container(
    pod: &Pod,
    place: &ContainerPosition<'_>,
    pod_app_armor: Option<&AppArmorProfile>,
    errors: &mut Errors,
) {
    let (at, container) = (place.at.child("securityContext"), &place.container);
    let context = container.security_context.as_ref();
    let seccomp = pod.annotation(&format!("{SECCOMP_CONTAINER_PREFIX}{}", container.name));
    if let (Some(annotated), Some(profile)) =
        (seccomp, context.and_then(|c| c.seccomp_profile.as_ref()))
    {
        compare_seccomp(&at, annotated, profile, errors);
    }
    let is_windows = pod.spec().and_then(|s| s.os.as_ref()).is_some_and(|os| os.name == "windows");
    let app_armor = pod.annotation(&format!("{APP_ARMOR_ANNOTATION_PREFIX}{}", container.name));
    let own = context.and_then(|c| c.app_armor_profile.as_ref());
    if let (Some(annotated), Some(profile), false) = (app_armor, own.or(pod_app_armor), is_windows)
    {
        compare_app_armor(&at, annotated, profile, errors);
    }
}

fn compare_seccomp(at: &Path, annotated: &str, profile: &SeccompProfile, errors: &mut Errors) {
    let at = at.child("seccompProfile");
    let defaults = ["runtime/default", "docker/default"];
    compare(
        &at,
        annotated,
        &profile.type_,
        profile.localhost_profile.as_deref(),
        &defaults,
        errors,
    );
}

fn compare_app_armor(at: &Path, annotated: &str, profile: &AppArmorProfile, errors: &mut Errors) {
    let at = at.child("appArmorProfile");
    let defaults = ["runtime/default"];
    compare(
        &at,
        annotated,
        &profile.type_,
        profile.localhost_profile.as_deref(),
        &defaults,
        errors,
    );
}

fn compare(
    at: &Path,
    annotated: &str,
    kind: &str,
    file: Option<&str>,
    defaults: &[&str],
    errors: &mut Errors,
) {
    let local = annotated.strip_prefix("localhost/");
    let same_kind = match kind {
        "Unconfined" => annotated == "unconfined",
        "RuntimeDefault" => defaults.contains(&annotated),
        "Localhost" => local.is_some(),
        _ => true,
    };
    if !same_kind {
        errors.forbidden(&at.child("type"), "an annotation names another profile");
    } else if kind == "Localhost" && local != file {
        errors.forbidden(&at.child("localhostProfile"), "an annotation names another profile");
    }
}
