//! Containers of every kind, and what only one kind may have.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, EphemeralContainer, PodSpec};

use super::context::{ContainerPosition, PodValidationContext};
use super::{env, lifecycle, mounts, names, ports, probes, resources, restart, security};
use crate::api::error::Errors;
use crate::api::path::Path;
use crate::pod::ContainerKind;

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const MESSAGE_POLICIES: [&str; 2] = ["File", "FallbackToLogsOnError"];

pub(super) fn check(
    at: &Path,
    container_positions: &[ContainerPosition<'_>],
    around: &PodValidationContext<'_>,
    errors: &mut Errors,
) {
    if around.spec.containers.is_empty() {
        errors.required(&at.child("containers"), "a pod has at least one container");
    }
    for place in container_positions {
        check_common(&place.at, &place.container, around, errors);
        check_kind(place, around, errors);
    }
    check_unique_names(container_positions, errors);
    ports::check_host_ports(at, around.spec, errors);
    check_ephemeral(&at.child("ephemeralContainers"), around.spec, errors);
}

/// What every container is held to.
fn check_common(
    at: &Path,
    container: &Container,
    around: &PodValidationContext<'_>,
    errors: &mut Errors,
) {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    if container.name.is_empty() {
        errors.required(&at.child("name"), "");
    } else {
        errors.invalid_for(&at.child("name"), &container.name, names::dns_label(&container.name));
    }
    check_image(&at.child("image"), &text(&container.image), errors);
    let policy_at = at.child("terminationMessagePolicy");
    let policy = text(&container.termination_message_policy);
    errors.check_choice(&policy_at, &policy, &MESSAGE_POLICIES);
    ports::check(&at.child("ports"), container.ports.as_deref(), errors);
    env::check(&at.child("env"), container.env.as_deref(), errors);
    env::check_from(&at.child("envFrom"), container.env_from.as_deref(), errors);
    mounts::check(at, container, around, errors);
    check_pull_policy(&at.child("imagePullPolicy"), &text(&container.image_pull_policy), errors);
    if let Some(requirements) = &container.resources {
        let at = at.child("resources");
        resources::check_container(&at, requirements, &around.claims, errors);
    }
    restart::check_resize_policies(&at.child("resizePolicy"), container, around, errors);
    if let Some(context) = &container.security_context {
        security::check_container(&at.child("securityContext"), context, around, errors);
    }
}

fn check_image(at: &Path, image: &str, errors: &mut Errors) {
    errors.check_present(at, image);
    if image.trim() != image {
        errors.invalid(at, image, "must not have blanks before or after it");
    }
}

/// When to pull an image.
pub(super) fn check_pull_policy(at: &Path, policy: &str, errors: &mut Errors) {
    errors.check_choice(at, policy, &PULL_POLICIES);
}

/// What only some kinds of containers may have.
fn check_kind(
    place: &ContainerPosition<'_>,
    around: &PodValidationContext<'_>,
    errors: &mut Errors,
) {
    let (at, container) = (&place.at, place.container.as_ref());
    match place.kind {
        ContainerKind::Regular | ContainerKind::Sidecar => {
            lifecycle::check(&at.child("lifecycle"), container.lifecycle.as_ref(), around, errors);
            probes::check(at, container, around, errors);
            restart::check(at, container, errors);
        }
        ContainerKind::Init => {
            forbid_probes_and_hooks(at, container, errors);
            restart::check_init(at, container, errors);
        }
        ContainerKind::Ephemeral => {}
    }
}

fn forbid_probes_and_hooks(at: &Path, container: &Container, errors: &mut Errors) {
    let fields = [
        ("lifecycle", container.lifecycle.is_some()),
        ("livenessProbe", container.liveness_probe.is_some()),
        ("readinessProbe", container.readiness_probe.is_some()),
        ("startupProbe", container.startup_probe.is_some()),
    ];
    for (field, _) in fields.iter().filter(|(_, set)| *set) {
        let detail = "an init container has this only with restartPolicy Always";
        errors.forbidden(&at.child(field), detail);
    }
}

/// No two containers of a pod have one name; the later one is to blame.
fn check_unique_names(container_positions: &[ContainerPosition<'_>], errors: &mut Errors) {
    // The API server counts regular containers first, and init containers without a name never.
    let order = |place: &&ContainerPosition<'_>| match place.kind {
        ContainerKind::Regular => 0,
        ContainerKind::Init | ContainerKind::Sidecar => 1,
        ContainerKind::Ephemeral => 2,
    };
    let mut container_positions: Vec<&ContainerPosition<'_>> = container_positions.iter().collect();
    container_positions.sort_by_key(order);
    let mut seen = BTreeSet::new();
    for place in container_positions {
        let name = place.container.name.as_str();
        if seen.contains(name) {
            errors.duplicate(&place.at.child("name"), name);
        } else if !name.is_empty() || order(&place) != 1 {
            seen.insert(name);
        }
    }
}

/// Ephemeral containers are for debugging and serve no traffic, so many fields are forbidden.
fn check_ephemeral(at: &Path, spec: &PodSpec, errors: &mut Errors) {
    for (i, container) in spec.ephemeral_containers.iter().flatten().enumerate() {
        let at = at.index(i);
        check_target(&at.child("targetContainerName"), container, spec, errors);
        for field in forbidden_fields(container) {
            errors.forbidden(&at.child(field), "an ephemeral container has no such field");
        }
        for (j, mount) in container.volume_mounts.iter().flatten().enumerate() {
            let at = at.child("volumeMounts").index(j);
            let paths = [("subPath", &mount.sub_path), ("subPathExpr", &mount.sub_path_expr)];
            for (field, _) in paths.iter().filter(|(_, path)| path.is_some()) {
                errors.forbidden(&at.child(field), "an ephemeral container mounts whole volumes");
            }
        }
    }
}

fn check_target(at: &Path, container: &EphemeralContainer, spec: &PodSpec, errors: &mut Errors) {
    let Some(target) = &container.target_container_name else { return };
    let mut others = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    if !others.any(|other| other.name == *target) {
        errors.not_found(at, target, "there is no container of that name");
    }
}

fn forbidden_fields(container: &EphemeralContainer) -> Vec<&'static str> {
    let resources = container.resources.as_ref();
    let asks =
        resources.is_some_and(|r| r.limits.is_some() || r.requests.is_some() || r.claims.is_some());
    let fields = [
        ("ports", container.ports.is_some()),
        ("resources", asks),
        ("resizePolicy", container.resize_policy.is_some()),
        ("restartPolicy", container.restart_policy.is_some()),
        ("restartPolicyRules", container.restart_policy_rules.is_some()),
        ("livenessProbe", container.liveness_probe.is_some()),
        ("readinessProbe", container.readiness_probe.is_some()),
        ("startupProbe", container.startup_probe.is_some()),
        ("lifecycle", container.lifecycle.is_some()),
    ];
    fields.into_iter().filter(|(_, set)| *set).map(|(field, _)| field).collect()
}
