//! What an API server does to a pod at the moment of its creation, besides defaulting.
//!
//! Without an API server the agent does this before it validates and runs the pod.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Affinity, AppArmorProfile, Container, Pod, PodAffinityTerm, PodCondition, PodSpec, PodStatus,
    WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement, OwnerReference, Time,
};

use crate::pod::PodExt;
use crate::qos;

/// Annotations that told a container's AppArmor profile before there was a field; the
/// container's name follows.
pub(crate) const APP_ARMOR_ANNOTATION_PREFIX: &str =
    "container.apparmor.security.beta.kubernetes.io/";

/// Makes a pod that has its defaults a new one: generation 1, pending, with nothing behind it.
pub fn prepare(pod: &mut Pod, now: Timestamp) {
    pod.metadata.generation = Some(1);
    pod.metadata.owner_references.iter_mut().for_each(name_owners_once);
    pod.status = None;
    pod.status = Some(PodStatus {
        phase: Some("Pending".to_owned()),
        qos_class: Some(qos::class(pod).to_string()),
        conditions: is_gated(pod).then(|| vec![gated(now)]),
        ..PodStatus::default()
    });
    if let Some(spec) = &mut pod.spec {
        let labels = pod.metadata.labels.clone().unwrap_or_default();
        spec.affinity.iter_mut().for_each(|affinity| match_affinity(affinity, &labels));
        match_topology(spec, &labels);
        let annotations = pod.metadata.annotations.clone().unwrap_or_default();
        set_app_armor_profiles(spec, &annotations);
    }
}

fn name_owners_once(owners: &mut Vec<OwnerReference>) {
    let mut once: Vec<OwnerReference> = Vec::new();
    for owner in std::mem::take(owners) {
        if !once.contains(&owner) {
            once.push(owner);
        }
    }
    *owners = once;
}

fn is_gated(pod: &Pod) -> bool {
    pod.spec.iter().any(|spec| spec.scheduling_gates.as_ref().is_some_and(|g| !g.is_empty()))
}

fn gated(now: Timestamp) -> PodCondition {
    PodCondition {
        type_: "PodScheduled".to_owned(),
        status: "False".to_owned(),
        reason: Some("SchedulingGated".to_owned()),
        message: Some("Scheduling is blocked due to non-empty scheduling gates".to_owned()),
        last_transition_time: Some(Time(now)),
        ..PodCondition::default()
    }
}

type Labels = BTreeMap<String, String>;

fn match_affinity(affinity: &mut Affinity, labels: &Labels) {
    if let Some(pod) = &mut affinity.pod_affinity {
        let preferred = &mut pod.preferred_during_scheduling_ignored_during_execution;
        match_terms(
            &mut pod.required_during_scheduling_ignored_during_execution,
            preferred,
            labels,
        );
    }
    if let Some(pod) = &mut affinity.pod_anti_affinity {
        let preferred = &mut pod.preferred_during_scheduling_ignored_during_execution;
        match_terms(
            &mut pod.required_during_scheduling_ignored_during_execution,
            preferred,
            labels,
        );
    }
}

fn match_terms(
    required: &mut Option<Vec<PodAffinityTerm>>,
    preferred: &mut Option<Vec<WeightedPodAffinityTerm>>,
    labels: &Labels,
) {
    let preferred = preferred.iter_mut().flatten().map(|weighted| &mut weighted.pod_affinity_term);
    for term in required.iter_mut().flatten().chain(preferred) {
        match_keys(&mut term.label_selector, term.match_label_keys.as_deref(), "In", labels);
        match_keys(&mut term.label_selector, term.mismatch_label_keys.as_deref(), "NotIn", labels);
    }
}

fn match_topology(spec: &mut PodSpec, labels: &Labels) {
    for constraint in spec.topology_spread_constraints.iter_mut().flatten() {
        let keys = constraint.match_label_keys.as_deref();
        match_keys(&mut constraint.label_selector, keys, "In", labels);
    }
}

/// Asks of other pods the same value of a label as this pod has, or another one. Without a
/// selector nothing is selected, whatever the keys.
fn match_keys(
    selector: &mut Option<LabelSelector>,
    keys: Option<&[String]>,
    operator: &str,
    labels: &Labels,
) {
    let Some(selector) = selector else { return };
    for (key, value) in keys.into_iter().flatten().filter_map(|key| labels.get_key_value(key)) {
        selector.match_expressions.get_or_insert_default().push(LabelSelectorRequirement {
            key: key.clone(),
            operator: operator.to_owned(),
            values: Some(vec![value.clone()]),
        });
    }
}

/// What the annotations of old say becomes a field, where it differs from the pod's own profile.
fn set_app_armor_profiles(spec: &mut PodSpec, annotations: &Labels) {
    if spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        return;
    }
    let of_pod = spec.security_context.as_ref().and_then(|c| c.app_armor_profile.clone());
    let init = spec.init_containers.iter_mut().flatten();
    for container in spec.containers.iter_mut().chain(init) {
        let annotation =
            annotations.get(&format!("{APP_ARMOR_ANNOTATION_PREFIX}{}", container.name));
        let profile_annotation = annotation.and_then(|annotation| app_armor_profile(annotation));
        if profile_annotation.is_some() && profile_annotation != of_pod {
            set_app_armor_profile(container, profile_annotation);
        }
    }
}

fn set_app_armor_profile(container: &mut Container, profile: Option<AppArmorProfile>) {
    let has_one = container.security_context.iter().any(|c| c.app_armor_profile.is_some());
    if !has_one {
        container.security_context.get_or_insert_default().app_armor_profile = profile;
    }
}

/// The AppArmor profile of a container: its own, else that of its annotation, else the pod's.
pub(crate) fn container_app_armor(pod: &Pod, spec: &Container) -> Option<AppArmorProfile> {
    let own = spec.security_context.as_ref().and_then(|c| c.app_armor_profile.clone());
    let annotated = || pod.annotation(&format!("{APP_ARMOR_ANNOTATION_PREFIX}{}", spec.name));
    let of_pod = || pod.spec()?.security_context.as_ref()?.app_armor_profile.clone();
    own.or_else(|| app_armor_profile(annotated()?)).or_else(of_pod)
}

/// The profile that such an annotation names; none when it names none that there can be.
pub(crate) fn app_armor_profile(annotation: &str) -> Option<AppArmorProfile> {
    let of_type =
        |type_: &str| AppArmorProfile { type_: type_.to_owned(), localhost_profile: None };
    match annotation {
        "unconfined" => Some(of_type("Unconfined")),
        "runtime/default" => Some(of_type("RuntimeDefault")),
        _ => {
            let name =
                annotation.strip_prefix("localhost/").filter(|name| is_profile_name(name))?;
            let localhost_profile = Some(name.to_owned());
            Some(AppArmorProfile { localhost_profile, ..of_type("Localhost") })
        }
    }
}

/// One that the field would accept.
fn is_profile_name(name: &str) -> bool {
    !name.is_empty() && name == name.trim() && name.len() <= super::validate::MAX_PROFILE_LENGTH
}
