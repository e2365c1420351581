//! What an admission handler is asked, and what it answers.

use k8s_openapi::api::core::v1::Pod;

use super::node::AdmissionNode;
use crate::event::PodEvent;
use crate::ids::PodUid;
use crate::lifecycle::PodFailure;

/// What a reason begins with that names a resource.
pub(super) const OUT_OF: &str = "OutOf";

/// The reasons that are counted under their own names.
const COUNTED_REASONS: [&str; 17] = [
    "AppArmor",
    "Evicted",
    "NodeAffinity",
    "NodeName",
    "NodePorts",
    "OutOfcpu",
    "OutOfephemeral-storage",
    "OutOfmemory",
    "OutOfpods",
    "PodFeatureUnsupported",
    "PodOSNotSupported",
    "PodOSSelectorNodeLabelDoesNotMatch",
    "Preempting",
    "SupplementalGroupsPolicyNotSupported",
    "SysctlForbidden",
    "TaintToleration",
    "UnexpectedAdmissionError",
];

/// Why a pod may not run here. It is not asked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The one word that tools match on, such as `OutOfcpu`.
    pub reason: String,
    /// The sentence that a person reads.
    pub message: String,
}

impl Rejection {
    /// A rejection with the reason and message of the status.
    pub fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into() }
    }

    /// What it is counted under: the reason, unless that names something of the pod, as an extended resource.
    pub fn counted_as(&self) -> &'static str {
        let known = COUNTED_REASONS.iter().find(|known| **known == self.reason);
        let is_resource = self.reason.starts_with(OUT_OF);
        known.copied().unwrap_or(if is_resource { "OutOfExtendedResources" } else { "Other" })
    }

    /// What is said about it besides the status.
    pub fn event(&self) -> PodEvent {
        PodEvent::warning(self.reason.clone(), self.message.clone())
    }
}

impl From<Rejection> for PodFailure {
    fn from(rejection: Rejection) -> Self {
        Self::rejected(&rejection.reason, &rejection.message)
    }
}

/// What a handler decides by: `lifecycle.PodAdmitAttributes` of the Go kubelet, and the node.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the fields' names say what they are")]
pub struct PodAdmitAttributes<'a> {
    pub pod: &'a Pod,
    /// The pods that are admitted already and have not stopped.
    pub others: &'a [&'a Pod],
    pub node: &'a AdmissionNode,
}

/// Why a handler does not admit a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmitRefusal {
    /// It may not run here.
    Rejected(Rejection),
    /// Only the node's labels are against it, and they may be out of date: it is to be asked again with a node that was just read.
    NodeOutdated,
    /// It is critical, and fits once these pods are gone, for lack of this resource first of all.
    Preempts(Vec<PodUid>, String),
}

impl From<Rejection> for AdmitRefusal {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

/// Decides whether the node admits a pod beside those that are already admitted: `lifecycle.PodAdmitHandler` of the Go kubelet.
pub trait AdmitHandler {
    /// Admits the pod or returns why not.
    fn admit(&self, attributes: &PodAdmitAttributes<'_>) -> Result<(), AdmitRefusal>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_names_something_of_the_pod_is_not_counted_by_it() {
        let rows = [
            ("OutOfcpu", "OutOfcpu"),
            ("NodeAffinity", "NodeAffinity"),
            ("OutOfexample.com/gpu", "OutOfExtendedResources"),
            ("Tenant17", "Other"),
            ("", "Other"),
        ];
        for (reason, want) in rows {
            assert_eq!(Rejection::new(reason, "").counted_as(), want, "{reason}");
        }
    }
}
