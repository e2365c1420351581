//! What an admission handler is asked, and what it answers.

use k8s_openapi::api::core::v1::Pod;

use super::node::AdmissionNode;
use crate::event::PodEvent;
use crate::ids::PodUid;
use crate::lifecycle::PodFailure;

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
    /// It is critical, and fits once these pods are gone.
    Preempts(Vec<PodUid>),
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
