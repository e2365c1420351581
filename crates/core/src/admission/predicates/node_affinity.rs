//! Whether a node is one that a pod selects.

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod};

use crate::admission::node::AdmissionNode;
use crate::pod::PodExt;

/// The one field of a node that can be selected by.
const NAME_FIELD: &str = "metadata.name";

/// Whether the node has the labels of the pod's selector and meets one of its required terms.
pub(in crate::admission) fn matches(pod: &Pod, node: &AdmissionNode) -> bool {
    let Some(spec) = pod.spec() else { return true };
    let mut selector = spec.node_selector.iter().flatten();
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required =
        affinity.and_then(|node| node.required_during_scheduling_ignored_during_execution.as_ref());
    selector.all(|(key, value)| node.labels.get(key) == Some(value))
        && required.is_none_or(|required| is_selected(node, required))
}

/// Whether the node meets one of the terms.
pub(in crate::admission) fn is_selected(node: &AdmissionNode, selector: &NodeSelector) -> bool {
    selector.node_selector_terms.iter().any(|term| meets(node, term))
}

/// A term without any requirement selects no node.
fn meets(node: &AdmissionNode, term: &NodeSelectorTerm) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    let label = |key: &str| node.labels.get(key).map(String::as_str);
    let field = |key: &str| (key == NAME_FIELD).then_some(node.name.as_str());
    (!expressions.is_empty() || !fields.is_empty())
        && expressions.iter().all(|wanted| is_met(wanted, label(&wanted.key)))
        && fields.iter().all(|wanted| is_met(wanted, field(&wanted.key)))
}

fn is_met(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let is_listed = value.is_some_and(|value| values.iter().any(|listed| listed == value));
    match requirement.operator.as_str() {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compare(value, values).is_some_and(|(has, bound)| has > bound),
        "Lt" => compare(value, values).is_some_and(|(has, bound)| has < bound),
        _ => false,
    }
}

/// Both as numbers; none unless there is one bound and both are numbers.
fn compare(value: Option<&str>, values: &[String]) -> Option<(i64, i64)> {
    let [bound] = values else { return None };
    Some((value?.parse().ok()?, bound.parse().ok()?))
}
