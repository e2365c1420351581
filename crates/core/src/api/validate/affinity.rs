//! Which nodes and which company a pod prefers or needs.

use k8s_openapi::api::core::v1::{
    Affinity, NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm,
    WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::{labels, names};
use crate::api::error::Errors;
use crate::api::path::Path;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn check(at: &Path, affinity: &Affinity, errors: &mut Errors) {
    if let Some(node) = &affinity.node_affinity {
        check_node_affinity(&at.child("nodeAffinity"), node, errors);
    }
    if let Some(pod) = &affinity.pod_affinity {
        let at = at.child("podAffinity");
        let required = pod.required_during_scheduling_ignored_during_execution.as_deref();
        let preferred = pod.preferred_during_scheduling_ignored_during_execution.as_deref();
        check_pod_affinity(&at, required, preferred, errors);
    }
    if let Some(pod) = &affinity.pod_anti_affinity {
        let at = at.child("podAntiAffinity");
        let required = pod.required_during_scheduling_ignored_during_execution.as_deref();
        let preferred = pod.preferred_during_scheduling_ignored_during_execution.as_deref();
        check_pod_affinity(&at, required, preferred, errors);
    }
}

fn check_node_affinity(at: &Path, affinity: &NodeAffinity, errors: &mut Errors) {
    if let Some(required) = &affinity.required_during_scheduling_ignored_during_execution {
        let at = at.child(REQUIRED).child("nodeSelectorTerms");
        if required.node_selector_terms.is_empty() {
            errors.required(&at, "say at least one");
        }
        for (i, term) in required.node_selector_terms.iter().enumerate() {
            check_term(&at.index(i), term, labels::check_values, errors);
        }
    }
    let preferred = affinity.preferred_during_scheduling_ignored_during_execution.as_deref();
    for (i, preferred) in preferred.into_iter().flatten().enumerate() {
        let at = at.child(PREFERRED).index(i);
        check_weight(&at.child("weight"), preferred.weight, errors);
        // A preference for a value no label can have is merely never met.
        let any_value = |_: &Path, _: &[String], _: &mut Errors| {};
        check_term(&at.child("preference"), &preferred.preference, any_value, errors);
    }
}

fn check_weight(at: &Path, weight: i32, errors: &mut Errors) {
    for complaint in names::in_range(weight.into(), 1, 100) {
        errors.invalid(at, weight, complaint);
    }
}

fn check_term(
    at: &Path,
    term: &NodeSelectorTerm,
    check_values: fn(&Path, &[String], &mut Errors),
    errors: &mut Errors,
) {
    for (i, requirement) in term.match_expressions.iter().flatten().enumerate() {
        let at = at.child("matchExpressions").index(i);
        check_expression(&at, requirement, errors);
        let values = requirement.values.as_deref().unwrap_or_default();
        check_values(&at.child("values"), values, errors);
    }
    for (i, requirement) in term.match_fields.iter().flatten().enumerate() {
        check_field(&at.child("matchFields").index(i), requirement, errors);
    }
}

fn check_expression(at: &Path, requirement: &NodeSelectorRequirement, errors: &mut Errors) {
    let count = requirement.values.as_ref().map_or(0, Vec::len);
    let values_at = at.child("values");
    match requirement.operator.as_str() {
        "In" | "NotIn" if count == 0 => errors.required(&values_at, "In and NotIn need values"),
        "Exists" | "DoesNotExist" if count > 0 => {
            errors.forbidden(&values_at, "Exists and DoesNotExist take no values");
        }
        "Gt" | "Lt" if count != 1 => errors.required(&values_at, "Gt and Lt need one value"),
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        unknown => {
            let detail = "use In, NotIn, Exists, DoesNotExist, Gt or Lt";
            errors.invalid(&at.child("operator"), unknown, detail);
        }
    }
    labels::check_key(&at.child("key"), &requirement.key, errors);
}

/// The one field of a node that can be asked for is its name.
fn check_field(at: &Path, requirement: &NodeSelectorRequirement, errors: &mut Errors) {
    let values = requirement.values.as_deref().unwrap_or_default();
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.len() != 1 => {
            errors.required(&at.child("values"), "a field is compared with one value");
        }
        "In" | "NotIn" => {}
        unknown => errors.invalid(&at.child("operator"), unknown, "use In or NotIn"),
    }
    if requirement.key != "metadata.name" {
        let detail = "the only field is metadata.name";
        return errors.invalid(&at.child("key"), requirement.key.as_str(), detail);
    }
    for (i, value) in values.iter().enumerate() {
        errors.invalid_for(&at.child("values").index(i), value, names::dns_subdomain(value));
    }
}

fn check_pod_affinity(
    at: &Path,
    required: Option<&[PodAffinityTerm]>,
    preferred: Option<&[WeightedPodAffinityTerm]>,
    errors: &mut Errors,
) {
    for (i, term) in required.into_iter().flatten().enumerate() {
        check_pod_term(&at.child(REQUIRED).index(i), term, errors);
    }
    for (i, preferred) in preferred.into_iter().flatten().enumerate() {
        let at = at.child(PREFERRED).index(i);
        check_weight(&at.child("weight"), preferred.weight, errors);
        check_pod_term(&at.child("podAffinityTerm"), &preferred.pod_affinity_term, errors);
    }
}

fn check_pod_term(at: &Path, term: &PodAffinityTerm, errors: &mut Errors) {
    labels::check_selector(&at.child("labelSelector"), term.label_selector.as_ref(), errors);
    labels::check_selector(
        &at.child("namespaceSelector"),
        term.namespace_selector.as_ref(),
        errors,
    );
    for namespace in term.namespaces.iter().flatten() {
        errors.invalid_for(&at.child("namespace"), namespace, names::dns_label(namespace));
    }
    let matching = term.match_label_keys.as_deref().unwrap_or_default();
    let mismatching = term.mismatch_label_keys.as_deref().unwrap_or_default();
    check_label_keys(at, matching, mismatching, term.label_selector.as_ref(), errors);
    let topology_at = at.child("topologyKey");
    errors.check_present(&topology_at, &term.topology_key);
    labels::check_key(&topology_at, &term.topology_key, errors);
}

/// Keys whose values are taken from the pod's own labels. By now they are part of the selector,
/// so a key that is in there twice was asked for twice.
pub(super) fn check_label_keys(
    at: &Path,
    matching: &[String],
    mismatching: &[String],
    selector: Option<&LabelSelector>,
    errors: &mut Errors,
) {
    check_keys(&at.child("matchLabelKeys"), matching, selector, errors);
    check_keys(&at.child("mismatchLabelKeys"), mismatching, selector, errors);
    if let Some(selector) = selector {
        check_asked_once(at, matching, selector, errors);
    }
    for (i, key) in matching.iter().enumerate() {
        if mismatching.contains(key) {
            let detail = "must not both match and mismatch";
            errors.invalid(&at.child("matchLabelKeys").index(i), key.as_str(), detail);
        }
    }
}

fn check_keys(at: &Path, keys: &[String], selector: Option<&LabelSelector>, errors: &mut Errors) {
    if !keys.is_empty() && selector.is_none() {
        return errors.forbidden(at, "goes with a labelSelector");
    }
    for (i, key) in keys.iter().enumerate() {
        labels::check_key(&at.index(i), key, errors);
    }
}

fn check_asked_once(at: &Path, matching: &[String], selector: &LabelSelector, errors: &mut Errors) {
    let mut asked: Vec<&String> =
        selector.match_labels.iter().flatten().map(|(key, _)| key).collect();
    for expression in selector.match_expressions.iter().flatten() {
        let key = &expression.key;
        if let Some(i) = matching.iter().rposition(|other| other == key)
            && asked.contains(&key)
        {
            errors.invalid(&at.index(i), key.as_str(), "the labelSelector asks for it already");
        }
        asked.push(key);
    }
}
