//! Decisions that concern several pods: which pods are admitted and in which order, which static pod has a name, and which
//! sandboxes belong to this agent.
//!
//! Plain data that the supervisor owns and answers questions from. Nothing here outlives the pods it is about: once
//! all of them are finished and their workers gone, there is no state left.

mod admitted_pods;
mod ownership;
mod static_pod_names;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::event::PodEvent;
use crate::ids::PodUid;
use crate::lifecycle::PodFailure;
use crate::pod::PodExt;

pub use ownership::{Mode, Ownership, OwnershipClaim, claim};

use admitted_pods::AdmittedPods;
use static_pod_names::StaticPodNames;

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

impl From<Rejection> for PodFailure {
    fn from(rejection: Rejection) -> Self {
        Self::rejected(&rejection.reason, &rejection.message)
    }
}

/// Decides whether the node admits a pod beside those that are already admitted: `lifecycle.PodAdmitHandler` of the Go kubelet.
pub trait AdmitHandler {
    /// Admits the pod or returns why not.
    fn check(&self, pod: &Pod, present: &[&Pod]) -> Result<(), Rejection>;
}

/// What is to be done with a new pod.
#[derive(Clone, Debug, PartialEq)]
pub enum PodAdmitResult {
    /// Start its worker.
    Admitted(Arc<Pod>),
    /// Start its worker as that of a rejected pod, which publishes the rejection.
    Rejected(Arc<Pod>, Rejection),
    /// Nothing yet: another pod has its name and is not finished. It is announced when its turn has come.
    Waits(Arc<Pod>),
}

/// What concerns several pods.
#[derive(Clone, Debug, Default)]
pub struct PodAdmission {
    admitted: AdmittedPods,
    names: StaticPodNames,
}

impl PodAdmission {
    /// Admits new pods, the oldest first; each is checked against those admitted before it.
    pub fn admit(
        &mut self,
        mut pods: Vec<Arc<Pod>>,
        handler: &dyn AdmitHandler,
    ) -> Vec<PodAdmitResult> {
        pods.sort_by_cached_key(|pod| admitted_pods::admission_order(pod));
        pods.into_iter().map(|pod| self.admit_one(pod, handler)).collect()
    }

    fn admit_one(&mut self, pod: Arc<Pod>, handler: &dyn AdmitHandler) -> PodAdmitResult {
        // The predecessor still uses its resources: the pod is checked only when the predecessor is gone.
        if pod.is_static() && !self.names.claim(&pod) {
            return PodAdmitResult::Waits(pod);
        }
        match self.admitted.admit(&pod, handler) {
            Ok(()) => PodAdmitResult::Admitted(pod),
            Err(rejection) => PodAdmitResult::Rejected(pod, rejection),
        }
    }

    /// The pod is wanted differently now.
    pub fn update(&mut self, pod: &Arc<Pod>) {
        self.admitted.update(pod);
        self.names.update(pod);
    }

    /// No source holds the pod any more. True if it was only waiting for its name, so that there is no worker to
    /// bring it down.
    pub fn remove_waiting(&mut self, uid: &PodUid) -> bool {
        self.names.withdraw(uid)
    }

    /// Nothing of the pod runs any more: its resources are free.
    pub fn free_resources(&mut self, uid: &PodUid) {
        self.admitted.remove(uid);
    }

    /// The pod's worker has ended: its name is free too. Admits the pod that has waited longest for the name. A pod that has come
    /// back is admitted anew, behind those that wait.
    pub fn release_name(
        &mut self,
        uid: &PodUid,
        handler: &dyn AdmitHandler,
    ) -> Option<PodAdmitResult> {
        self.admitted.remove(uid);
        let next = self.names.release(uid)?;
        Some(self.admit_one(next, handler))
    }

    /// Whether no pod is admitted or waits.
    pub fn is_empty(&self) -> bool {
        self.admitted.is_empty() && self.names.is_empty()
    }
}
