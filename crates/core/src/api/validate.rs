//! Whether a pod may be created, and every reason why not.
//!
//! Paths and kinds of errors are those of kube-apiserver v1.36, quirks included, because people
//! and programs know them; the explanations are our own.

mod affinity;
mod annotations;
mod claims;
mod config_objects;
mod containers;
mod context;
mod env;
mod labels;
mod lifecycle;
mod metadata;
mod mounts;
mod names;
mod network;
mod paths;
mod ports;
mod probes;
mod profiles;
mod references;
mod resource_names;
mod resources;
mod restart;
mod security;
mod signers;
mod sysctls;
mod tolerations;
mod topology;
mod volumes;
mod windows;

use k8s_openapi::api::core::v1::{Pod, PodSpec};

use super::error::{Errors, FieldError};
use super::path::Path;
use context::{ContainerPosition, PodValidationContext};

pub use config_objects::{validate_config_map, validate_secret};
pub(crate) use names::qualified_name;
pub(super) use profiles::MAX_PROFILE_LENGTH;
pub(super) use resource_names::{is_huge_page, is_overcommittable, is_pod_level_resource};

const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const PREEMPTION_POLICIES: [&str; 2] = ["Never", "PreemptLowerPriority"];
const SYSTEMS: [&str; 2] = ["linux", "windows"];

/// Everything that is wrong with a pod that has its defaults; nothing when it may be created.
pub fn validate_pod(pod: &Pod) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let metadata = Path::root("metadata");
    metadata::check(&metadata, &pod.metadata, &mut errors);
    annotations::check(&metadata.child("annotations"), pod, &mut errors);
    let at = Path::root("spec");
    match &pod.spec {
        Some(spec) => check_spec(&at, pod, spec, &mut errors),
        None => errors.required(&at, "a pod is nothing without containers"),
    }
    errors.into_list()
}

fn check_spec(at: &Path, pod: &Pod, spec: &PodSpec, errors: &mut Errors) {
    let container_positions = context::container_positions(at, pod);
    let volumes = volumes::check(&at.child("volumes"), pod, spec, errors);
    let around = PodValidationContext { spec, volumes, claims: claims::names(spec) };
    claims::check(&at.child("resourceClaims"), pod, spec, errors);
    containers::check(at, &container_positions, &around, errors);
    env::check_file_volumes(&container_positions, &around, errors);
    resources::check_pod(&at.child("resources"), spec, errors);
    check_policies(at, spec, errors);
    check_names(at, spec, errors);
    network::check(at, spec, errors);
    check_security(at, spec, &container_positions, errors);
    check_scheduling(at, spec, errors);
    check_new(at, spec, errors);
    annotations::check_against_fields(at, pod, &container_positions, errors);
}

fn check_policies(at: &Path, spec: &PodSpec, errors: &mut Errors) {
    if spec.termination_grace_period_seconds.is_none() {
        errors.required(&at.child("terminationGracePeriodSeconds"), "");
    }
    let policy = spec.restart_policy.as_deref().unwrap_or_default();
    errors.check_choice(&at.child("restartPolicy"), policy, &RESTART_POLICIES);
    if let Some(policy) = &spec.preemption_policy {
        errors.check_choice(&at.child("preemptionPolicy"), policy, &PREEMPTION_POLICIES);
    }
    if let Some(seconds) = spec.active_deadline_seconds {
        for complaint in names::in_range(seconds, 1, i32::MAX.into()) {
            errors.invalid(&at.child("activeDeadlineSeconds"), seconds, complaint);
        }
    }
    if let Some(overhead) = &spec.overhead {
        resources::check_overhead(&at.child("overhead"), overhead, errors);
    }
}

/// Why a node cannot be called so; nothing if it can.
pub fn node_name_complaints(name: &str) -> Vec<String> {
    names::dns_subdomain(name)
}

/// Names of other objects, and conditions.
fn check_names(at: &Path, spec: &PodSpec, errors: &mut Errors) {
    let references = [
        ("serviceAccountName", &spec.service_account_name),
        ("nodeName", &spec.node_name),
        ("priorityClassName", &spec.priority_class_name),
        ("runtimeClassName", &spec.runtime_class_name),
    ];
    for (field, name) in references {
        if let Some(name) = name {
            errors.invalid_for(&at.child(field), name, names::dns_subdomain(name));
        }
    }
    for (i, gate) in spec.readiness_gates.iter().flatten().enumerate() {
        let at = at.child("readinessGates").index(i).child("conditionType");
        let complaints = qualified_name(&gate.condition_type);
        errors.invalid_for(&at, &gate.condition_type, complaints);
    }
    if let Some(group) = &spec.scheduling_group {
        let at = at.child("schedulingGroup").child("podGroupName");
        match &group.pod_group_name {
            Some(name) => errors.invalid_for(&at, name, names::dns_subdomain(name)),
            None => errors.invalid(&at, "", "say which group"),
        }
    }
}

fn check_security(
    at: &Path,
    spec: &PodSpec,
    container_positions: &[ContainerPosition<'_>],
    errors: &mut Errors,
) {
    if let Some(context) = &spec.security_context {
        security::check_pod(&at.child("securityContext"), context, spec, errors);
    }
    security::check_host_users(at, spec, container_positions, errors);
    windows::check_host_process(at, spec, container_positions, errors);
    match spec.os.as_ref().map(|os| os.name.as_str()) {
        None => {}
        Some("linux") => windows::check_linux_pod(at, spec, container_positions, errors),
        Some("windows") => windows::check_windows_pod(at, spec, container_positions, errors),
        Some("") => errors.required(&at.child("os").child("name"), ""),
        Some(other) => errors.not_supported(&at.child("os"), other, &SYSTEMS),
    }
}

fn check_scheduling(at: &Path, spec: &PodSpec, errors: &mut Errors) {
    labels::check_labels(&at.child("nodeSelector"), spec.node_selector.as_ref(), errors);
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    tolerations::check(&at.child("tolerations"), tolerations, errors);
    if let Some(affinity) = &spec.affinity {
        affinity::check(&at.child("affinity"), affinity, errors);
    }
    let constraints = spec.topology_spread_constraints.as_deref().unwrap_or_default();
    topology::check(&at.child("topologySpreadConstraints"), constraints, errors);
    let gates = spec.scheduling_gates.as_deref().unwrap_or_default();
    for (i, gate) in gates.iter().enumerate() {
        let at = at.child("schedulingGates").index(i);
        errors.invalid_for(&at, &gate.name, qualified_name(&gate.name));
        if gates[..i].iter().any(|earlier| earlier.name == gate.name) {
            errors.duplicate(&at, &gate.name);
        }
    }
}

/// What a new pod cannot have yet.
fn check_new(at: &Path, spec: &PodSpec, errors: &mut Errors) {
    if spec.ephemeral_containers.as_ref().is_some_and(|containers| !containers.is_empty()) {
        let detail = "ephemeral containers are added to a pod that runs";
        errors.forbidden(&at.child("ephemeralContainers"), detail);
    }
    let gated = spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
    if spec.node_name.is_some() && gated {
        errors.forbidden(&at.child("nodeName"), "the scheduling gates are still closed");
    }
    if spec.service_account_name.is_none() {
        forbid_tokens(&at.child("volumes"), spec, errors);
    }
}

/// A projected token needs the name of a service account.
fn forbid_tokens(at: &Path, spec: &PodSpec, errors: &mut Errors) {
    for (i, volume) in spec.volumes.iter().flatten().enumerate() {
        let sources = volume.projected.as_ref().and_then(|projected| projected.sources.as_deref());
        for (j, source) in sources.into_iter().flatten().enumerate() {
            if source.service_account_token.is_some() {
                let at = at.index(i).child("projected").child("sources").index(j);
                let detail = "set serviceAccountName: a token speaks for somebody";
                errors.forbidden(&at.child("serviceAccountToken"), detail);
            }
        }
    }
}
