//! Decisions that concern several pods: which pods are admitted and in which order, which static pod has a name, and which
//! sandboxes belong to this agent.
//!
//! Plain data that the supervisor owns and answers questions from. Nothing here outlives the pods it is about: once
//! all of them are finished and their workers gone, there is no state left.

mod admitted_pods;
mod allocation;
mod handler;
mod node;
mod node_handlers;
mod ownership;
mod pending_pods;
mod predicates;
mod preemption;
mod static_pod_names;
mod sysctls;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::ids::PodUid;
use crate::pod::PodExt;

pub use allocation::{RESIZE_INFEASIBLE, resize_event};
pub use handler::{AdmitHandler, AdmitRefusal, PodAdmitAttributes, Rejection};
pub use node::{AdmissionNode, NodeObjectState};
pub use node_handlers::NodeAdmitHandlers;
pub use ownership::{Mode, Ownership, OwnershipClaim, claim};
pub use preemption::{victim_event, victim_kill};
pub use sysctls::{SysctlAllowlist, without_namespace};

use admitted_pods::AdmittedPods;
use pending_pods::PendingPods;
use static_pod_names::StaticPodNames;

/// What is to be done with a new pod.
#[derive(Clone, Debug, PartialEq)]
pub enum PodAdmitResult {
    /// The pod may run: start its worker.
    Admitted(Arc<Pod>),
    /// Start its worker as that of a rejected pod, which publishes the rejection.
    Rejected(Arc<Pod>, Rejection),
    /// Nothing yet: another pod has its name and is not finished. It is announced when its turn has come.
    Waits(Arc<Pod>),
    /// Kill these pods. The pod is announced when they and those that are being killed already have stopped.
    Preempts(Arc<Pod>, Preemption),
    /// Read the node's object, and then ask again with [`PodAdmission::ask_again`].
    NeedsNode(Arc<Pod>),
}

/// The pods that make room for a critical one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preemption {
    /// The pods to kill; none if enough of them are being killed already.
    pub victims: Vec<Arc<Pod>>,
    /// The resource that the critical pod lacks first of all; empty without victims.
    pub resource: String,
}

/// What pods are admitted by.
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "the fields' names say what they are")]
pub struct AdmitContext<'a> {
    pub handler: &'a dyn AdmitHandler,
    pub node: &'a AdmissionNode,
    /// Whether a pod was running when this agent started. It was admitted then, and is not asked again.
    pub ran_before: &'a dyn Fn(&Pod) -> bool,
}

/// What concerns several pods.
#[derive(Clone, Debug, Default)]
pub struct PodAdmission {
    admitted: AdmittedPods,
    names: StaticPodNames,
    pending: PendingPods,
}

impl PodAdmission {
    /// Admits new pods: those that ran before, then the oldest first; each is checked against those admitted before it.
    pub fn admit(&mut self, mut pods: Vec<Arc<Pod>>, cx: &AdmitContext<'_>) -> Vec<PodAdmitResult> {
        pods.sort_by_cached_key(|pod| (!(cx.ran_before)(pod), admitted_pods::admission_order(pod)));
        pods.into_iter().flat_map(|pod| self.admit_one(pod, cx)).collect()
    }

    fn admit_one(&mut self, pod: Arc<Pod>, cx: &AdmitContext<'_>) -> Vec<PodAdmitResult> {
        // The predecessor still uses its resources: the pod is checked only when the predecessor is gone.
        if pod.is_static() && !self.names.claim(&pod) {
            return vec![PodAdmitResult::Waits(pod)];
        }
        if pod.has_terminal_phase() {
            return vec![PodAdmitResult::Admitted(pod)];
        }
        let ran_before = (cx.ran_before)(&pod);
        // A pod that is being deleted has to be terminated in any case. Until then its resources are counted.
        if pod.is_deleting() || ran_before {
            return vec![PodAdmitResult::Admitted(self.admitted.insert(&pod, true))];
        }
        match self.ask(&pod, cx) {
            Ok(has_room) => vec![self.admit_new(&pod, has_room)],
            Err(AdmitRefusal::Rejected(rejection)) => {
                vec![PodAdmitResult::Rejected(pod, rejection)]
            }
            Err(AdmitRefusal::NodeOutdated) => {
                self.pending.wait_for_node(pod.uid(), Arc::clone(&pod));
                vec![PodAdmitResult::NeedsNode(pod)]
            }
            Err(AdmitRefusal::Preempts(victims, resource)) => {
                self.preempt(&pod, &victims, resource)
            }
        }
    }

    /// Asks the handler as if the pods that are being preempted were gone; whether there is room for the pod even while they are not.
    fn ask(&self, pod: &Arc<Pod>, cx: &AdmitContext<'_>) -> Result<bool, AdmitRefusal> {
        let (uid, node) = (pod.uid(), cx.node);
        let others = self.admitted.others(&uid, self.pending.victims());
        cx.handler.admit(&PodAdmitAttributes { pod, others: &others, node })?;
        let all = self.admitted.others(&uid, &[].into());
        let is_same = all.len() == others.len();
        Ok(is_same || cx.handler.admit(&PodAdmitAttributes { pod, others: &all, node }).is_ok())
    }

    fn admit_new(&mut self, pod: &Arc<Pod>, has_room: bool) -> PodAdmitResult {
        let pod = self.admitted.insert(pod, false);
        if has_room {
            return PodAdmitResult::Admitted(pod);
        }
        self.pending.wait_for_room(pod.uid(), []);
        PodAdmitResult::Preempts(pod, Preemption::default())
    }

    /// The pod has the room of its victims from now on. One of them that was itself waiting to be started is rejected.
    fn preempt(
        &mut self,
        pod: &Arc<Pod>,
        victims: &[PodUid],
        resource: String,
    ) -> Vec<PodAdmitResult> {
        let (waiting, running): (Vec<&PodUid>, Vec<&PodUid>) =
            victims.iter().partition(|uid| self.pending.waits_for_room(uid));
        let mut results = Vec::new();
        for uid in waiting {
            let rejection = Rejection::new(preemption::PREEMPTING, preemption::PREEMPTED);
            let victim = self.admitted.get(uid).cloned();
            results.extend(victim.map(|victim| PodAdmitResult::Rejected(victim, rejection)));
            self.admitted.remove(uid);
            self.pending.remove(uid);
        }
        let killed = running.iter().filter_map(|uid| self.admitted.get(uid).cloned()).collect();
        let pod = self.admitted.insert(pod, false);
        self.pending.wait_for_room(pod.uid(), running.into_iter().cloned());
        let preemption = Preemption { victims: killed, resource };
        results.push(PodAdmitResult::Preempts(pod, preemption));
        results
    }

    /// Asks again those that wait for a node that was just read.
    pub fn ask_again(&mut self, cx: &AdmitContext<'_>) -> Vec<PodAdmitResult> {
        let pods = self.pending.take_waiting_for_node();
        self.admit(pods, cx)
    }

    /// The pod is wanted differently now. The pod with the resources that it was given, which a resize does not change.
    pub fn update(&mut self, pod: &Arc<Pod>) -> Arc<Pod> {
        self.names.update(pod);
        self.pending.update(&pod.uid(), pod);
        self.admitted.update(pod)
    }

    /// The pod with the resources that it was given, if it was admitted and has not stopped.
    pub fn admitted_pod(&self, uid: &PodUid) -> Option<&Arc<Pod>> {
        self.admitted.get(uid)
    }

    /// Whether the spec of the pod asks for other resources than it was given.
    pub fn is_resize_pending(&self, uid: &PodUid) -> bool {
        self.admitted.is_resize_pending(uid)
    }

    /// No source holds the pod any more. True if it was only waiting for its name, so that there is no worker to
    /// bring it down.
    pub fn remove_waiting(&mut self, uid: &PodUid) -> bool {
        self.names.withdraw(uid)
    }

    /// Whether the pod has its name and is not started yet.
    pub fn is_pending(&self, uid: &PodUid) -> bool {
        self.pending.contains(uid)
    }

    /// No source holds the pod any more. True if it has its name and was not started yet: there is no worker to bring it down, and its name
    /// is to be released.
    pub fn remove_pending(&mut self, uid: &PodUid) -> bool {
        self.pending.remove(uid)
    }

    /// Nothing of the pod runs any more: its resources are free. Pods that waited for that are admitted.
    pub fn free_resources(&mut self, uid: &PodUid) -> Vec<PodAdmitResult> {
        self.admitted.remove(uid);
        let ready = self.pending.stopped(uid);
        let pods = ready.iter().filter_map(|uid| self.admitted.get(uid).cloned());
        pods.map(PodAdmitResult::Admitted).collect()
    }

    /// The pods that it waits for take too long to stop: it is admitted all the same, if it still waits.
    pub fn stop_waiting_for_room(&mut self, uid: &PodUid) -> Option<PodAdmitResult> {
        let waited = self.pending.waits_for_room(uid) && self.pending.remove(uid);
        let pod = self.admitted.get(uid).filter(|_| waited).cloned();
        pod.map(PodAdmitResult::Admitted)
    }

    /// The pod's worker has ended: its name is free too. Admits the pod that has waited longest for the name. A pod that has come
    /// back is admitted anew, behind those that wait.
    pub fn release_name(&mut self, uid: &PodUid, cx: &AdmitContext<'_>) -> Vec<PodAdmitResult> {
        let mut results = self.free_resources(uid);
        if let Some(next) = self.names.release(uid) {
            results.extend(self.admit_one(next, cx));
        }
        results
    }

    /// Whether no pod is admitted or waits.
    pub fn is_empty(&self) -> bool {
        self.admitted.is_empty() && self.names.is_empty() && self.pending.is_empty()
    }
}
