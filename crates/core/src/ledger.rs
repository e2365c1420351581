//! Decisions that concern several pods: which pods are admitted and in which order, which static pod has a name, and which
//! sandboxes belong to this agent.
//!
//! Plain data that the supervisor owns and answers questions from. Nothing here outlives the pods it is about: once
//! all of them are finished and their workers gone, there is no state left.

mod admission;
mod names;
mod ownership;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::event::PodEvent;
use crate::ids::PodUid;
use crate::lifecycle::Verdict;
use crate::pod::PodExt;

pub use ownership::{Claim, Mode, Territory, claim};

use admission::Admission;
use names::Names;

/// Why a pod may not run here. It is not asked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The one word that tools match on, such as `OutOfcpu`.
    pub reason: String,
    /// The sentence that a person reads.
    pub message: String,
}

impl Rejection {
    /// What is said about it besides the status.
    pub fn event(&self) -> PodEvent {
        PodEvent::warning(self.reason.clone(), self.message.clone())
    }
}

impl From<Rejection> for Verdict {
    fn from(rejection: Rejection) -> Self {
        Self::rejected(&rejection.reason, &rejection.message)
    }
}

/// Decides whether the node admits a pod beside those that are already admitted: `lifecycle.PodAdmitHandler` of the Go kubelet.
pub trait Gate {
    /// Admits the pod or returns why not.
    fn check(&self, pod: &Pod, present: &[&Pod]) -> Result<(), Rejection>;
}

/// What is to be done with a new pod.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    /// Start its worker.
    Admitted(Arc<Pod>),
    /// Start its worker as that of a rejected pod, which publishes the rejection.
    Rejected(Arc<Pod>, Rejection),
    /// Nothing yet: another pod has its name and is not finished. It is announced when its turn has come.
    Waits(Arc<Pod>),
}

/// What concerns several pods.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    admission: Admission,
    names: Names,
}

impl Ledger {
    /// Admits new pods, the oldest first; each is checked against those admitted before it.
    pub fn arrive(&mut self, mut pods: Vec<Arc<Pod>>, gate: &dyn Gate) -> Vec<Arrival> {
        pods.sort_by_cached_key(|pod| admission::seniority(pod));
        pods.into_iter().map(|pod| self.arrive_one(pod, gate)).collect()
    }

    fn arrive_one(&mut self, pod: Arc<Pod>, gate: &dyn Gate) -> Arrival {
        // The predecessor still uses its resources: the pod is checked only when the predecessor is gone.
        if pod.is_static() && !self.names.claim(&pod) {
            return Arrival::Waits(pod);
        }
        match self.admission.admit(&pod, gate) {
            Ok(()) => Arrival::Admitted(pod),
            Err(rejection) => Arrival::Rejected(pod, rejection),
        }
    }

    /// The pod is wanted differently now.
    pub fn updated(&mut self, pod: &Arc<Pod>) {
        self.admission.update(pod);
        self.names.update(pod);
    }

    /// No source holds the pod any more. True if it was only waiting for its name, so that there is no worker to
    /// bring it down.
    pub fn withdrawn(&mut self, uid: &PodUid) -> bool {
        self.names.withdraw(uid)
    }

    /// Nothing of the pod runs any more: its resources are free.
    pub fn stopped(&mut self, uid: &PodUid) {
        self.admission.leave(uid);
    }

    /// The pod's worker has ended: its name is free too. Admits the pod that has waited longest for the name. A pod that has come
    /// back is admitted anew, behind those that wait.
    pub fn finished(&mut self, uid: &PodUid, gate: &dyn Gate) -> Option<Arrival> {
        self.admission.leave(uid);
        let next = self.names.release(uid)?;
        Some(self.arrive_one(next, gate))
    }

    /// Whether no pod is admitted or waits.
    pub fn is_empty(&self) -> bool {
        self.admission.is_empty() && self.names.is_empty()
    }
}
