//! The general predicates: whether the node has what a pod needs, in the order of the Go kubelet.

mod host_ports;
pub(super) mod node_affinity;
mod resources;
mod taints;

use super::handler::{AdmitRefusal, OUT_OF, PodAdmitAttributes, Rejection};
use super::node::NodeObjectState;
use super::preemption;
use crate::node::OS;
use crate::node::object::OS_LABEL;
use crate::pod::PodExt;

pub(super) use resources::{InsufficientResource, request_of};
pub(super) use taints::tolerates;

/// Why a predicate failed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PredicateFailure {
    /// There is not enough of a resource.
    Resource(InsufficientResource),
    /// The predicate of that name is not met.
    Predicate { name: &'static str, detail: &'static str },
}

impl PredicateFailure {
    fn rejection(&self) -> Rejection {
        match self {
            Self::Resource(missing) => {
                let reason = format!("{OUT_OF}{}", missing.resource);
                Rejection::new(reason, missing.message())
            }
            Self::Predicate { name, detail } => {
                Rejection::new(*name, format!("Predicate {name} failed: {detail}"))
            }
        }
    }
}

const NODE_AFFINITY: PredicateFailure = PredicateFailure::Predicate {
    name: "NodeAffinity",
    detail: "node(s) didn't match Pod's node affinity/selector",
};
const NODE_NAME: PredicateFailure = PredicateFailure::Predicate {
    name: "NodeName",
    detail: "node(s) didn't match the requested node name",
};
const NODE_PORTS: PredicateFailure = PredicateFailure::Predicate {
    name: "NodePorts",
    detail: "node(s) didn't have free ports for the requested pod ports",
};
const TAINT_TOLERATION: PredicateFailure = PredicateFailure::Predicate {
    name: "TaintToleration",
    detail: "node(s) had taints that the pod didn't tolerate",
};

/// Admits a pod that the node has everything for. What no preemption can help with comes first, so that no pod is killed in vain.
pub(super) fn admit(attributes: &PodAdmitAttributes<'_>) -> Result<(), AdmitRefusal> {
    check_os(attributes)?;
    check_supplemental_groups(attributes)?;
    let failures = failures(attributes);
    let Some(first) = failures.first() else { return Ok(()) };
    if failures == [NODE_AFFINITY] && attributes.node.object_state == NodeObjectState::Watched {
        return Err(AdmitRefusal::NodeOutdated);
    }
    if !attributes.pod.is_critical() {
        return Err(first.rejection().into());
    }
    // A critical pod fails for lack of resources only when no pods can make room for it.
    let others =
        failures.iter().find(|failure| matches!(failure, PredicateFailure::Predicate { .. }));
    if let Some(other) = others {
        return Err(other.rejection().into());
    }
    let missing: Vec<InsufficientResource> = failures
        .into_iter()
        .filter_map(|failure| match failure {
            PredicateFailure::Resource(missing) => Some(missing),
            PredicateFailure::Predicate { .. } => None,
        })
        .collect();
    preempt(attributes, &missing)
}

fn preempt(
    attributes: &PodAdmitAttributes<'_>,
    missing: &[InsufficientResource],
) -> Result<(), AdmitRefusal> {
    match preemption::victims(attributes.pod, attributes.others, missing) {
        Ok(victims) => {
            let resource = missing.first().map(|it| it.resource.clone()).unwrap_or_default();
            Err(AdmitRefusal::Preempts(victims.iter().map(|pod| pod.uid()).collect(), resource))
        }
        Err(error) => {
            let message = format!(
                "Unexpected error while attempting to recover from admission failure: {error}"
            );
            Err(Rejection::new("UnexpectedAdmissionError", message).into())
        }
    }
}

/// The predicates that fail, in the order in which the first one becomes the reason.
fn failures(attributes: &PodAdmitAttributes<'_>) -> Vec<PredicateFailure> {
    let PodAdmitAttributes { pod, others, node } = attributes;
    let resources = resources::insufficient(pod, others, node).into_iter();
    let named = pod.spec().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
    // Labels and taints of a node that was never read are unknown, not absent.
    let is_read = node.object_state != NodeObjectState::Unread;
    let rows = [
        (NODE_AFFINITY, is_read && !node_affinity::matches(pod, node)),
        (NODE_NAME, !named.is_empty() && named != node.name),
        (NODE_PORTS, host_ports::conflict(pod, others)),
        (TAINT_TOLERATION, is_read && !pod.is_static() && !taints::are_tolerated(pod, node)),
    ];
    let predicates = rows.into_iter().filter(|(_, fails)| *fails).map(|(failure, _)| failure);
    resources.map(PredicateFailure::Resource).chain(predicates).collect()
}

/// The pod's own label for the operating system, and the field of its spec.
fn check_os(attributes: &PodAdmitAttributes<'_>) -> Result<(), Rejection> {
    let pod = attributes.pod;
    let label = pod.metadata.labels.as_ref().and_then(|labels| labels.get(OS_LABEL));
    if label.is_some_and(|label| label != OS) {
        let message =
            format!("Failed to admit pod as the `{OS_LABEL}` label doesn't match node label");
        return Err(Rejection::new("PodOSSelectorNodeLabelDoesNotMatch", message));
    }
    let field = pod.spec().and_then(|spec| spec.os.as_ref());
    if field.is_some_and(|field| field.name != OS) {
        let message = "Failed to admit pod as the OS field doesn't match node OS";
        return Err(Rejection::new("PodOSNotSupported", message));
    }
    Ok(())
}

fn check_supplemental_groups(attributes: &PodAdmitAttributes<'_>) -> Result<(), Rejection> {
    let context = attributes.pod.spec().and_then(|spec| spec.security_context.as_ref());
    let policy = context.and_then(|context| context.supplemental_groups_policy.as_deref());
    let is_merged = matches!(policy, None | Some("" | "Merge"));
    if is_merged || attributes.node.supplemental_groups_policy != Some(false) {
        return Ok(());
    }
    let policy = policy.unwrap_or_default();
    let message = format!("SupplementalGroupsPolicy={policy} is not supported in this node");
    Err(Rejection::new("SupplementalGroupsPolicyNotSupported", message))
}
