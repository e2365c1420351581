//! Decisions that concern several pods: which pods are admitted and in which order, which static pod has a name, and which
//! sandboxes belong to this agent.
//!
//! Plain data that the supervisor owns and answers questions from. Nothing here outlives the pods it is about: once
//! all of them are finished and their workers gone, the ledger is empty.

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

/// What the node has to say to a pod that wants in, given the pods that are there.
pub trait Gate {
    /// Lets the pod in or says why not.
    fn check(&self, pod: &Pod, present: &[&Pod]) -> Result<(), Rejection>;
}

/// What is to be done with a pod that wants in.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    /// Begin its life.
    Admitted(Arc<Pod>),
    /// Begin its life as a rejected pod.
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
    /// Pods want in. The oldest is asked first, and each is measured against those let in before it.
    pub fn arrive(&mut self, mut pods: Vec<Arc<Pod>>, gate: &dyn Gate) -> Vec<Arrival> {
        pods.sort_by_cached_key(|pod| admission::seniority(pod));
        pods.into_iter().map(|pod| self.arrive_one(pod, gate)).collect()
    }

    fn arrive_one(&mut self, pod: Arc<Pod>, gate: &dyn Gate) -> Arrival {
        // The predecessor still takes up its room: the pod is measured only when it is gone.
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

    /// Nothing of the pod runs any more: its room is free.
    pub fn stopped(&mut self, uid: &PodUid) {
        self.admission.leave(uid);
    }

    /// The pod's worker is through with it: its name is free too. Returns the one who waited for it longest. A pod
    /// that has come back itself arrives anew, and gets in line behind those who wait.
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
