//! Admission of new pods: which handlers are asked and when, and what is done with the answer.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use oarsman_core::active_pods::PodStage;
use oarsman_core::admission::{
    AdmissionNode, AdmitContext, AdmitHandler, AdmitRefusal, NodeObjectState, PodAdmission,
    PodAdmitAttributes, PodAdmitResult, Preemption, Rejection, resize_event, victim_event,
    victim_kill,
};
use oarsman_core::ids::PodUid;
use oarsman_core::lifecycle::WorkerStart;
use oarsman_core::pod::PodExt;
use tokio::task::JoinError;
use tokio::time::timeout;

use super::Supervisor;
use crate::decisions::Decisions;
use crate::metrics::preemption_signal;

/// The deadline of reading the node's object for a pod that only node affinity rejects.
const NODE_READ_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a critical pod waits at least for its victims.
const SHORTEST_ROOM_TIMEOUT: Duration = Duration::from_secs(10);

/// The handler, by way of the decisions that a simulation may replace.
struct DecidedHandler<'a>(&'a dyn Decisions, &'a dyn AdmitHandler);

impl AdmitHandler for DecidedHandler<'_> {
    fn admit(&self, attributes: &PodAdmitAttributes<'_>) -> Result<(), AdmitRefusal> {
        self.0.admit(self.1, attributes)
    }
}

impl Supervisor {
    /// New pods, or pods that come back. One whose earlier life is not over yet waits for the end of that:
    /// [`Self::on_worker_notice`] looks then what the sources hold.
    pub(super) fn handle_pod_additions(&mut self, pods: Vec<Arc<Pod>>) {
        let is_new = |pod: &Arc<Pod>| !self.workers.contains_key(&pod.uid());
        let new = pods.into_iter().filter(is_new).filter(|pod| self.can_be_asked(pod)).collect();
        let results = self.with_admission(|admission, cx| admission.admit(new, cx));
        self.handle_admissions(results);
    }

    /// Before the first relist no pod is admitted, and before the node's object was read none of a cluster's: what runs and what the
    /// node's labels are is not known then. Pods of checkpoints are not kept waiting for an API server that does not answer.
    fn can_be_asked(&self, pod: &Pod) -> bool {
        let knows_node =
            self.admission_node.object_state != NodeObjectState::Unread || self.recalled;
        let ran_before = self.ran_before.as_ref().is_some_and(|uids| uids.contains(&pod.uid()));
        let needs_no_node = ran_before || pod.is_static() || pod.is_deleting();
        self.ran_before.is_some() && (knows_node || needs_no_node)
    }

    /// Whether pods that are wanted have no worker because they could not be asked yet.
    pub(super) fn holds_pods(&self) -> bool {
        let is_held = |pod: &&Arc<Pod>| !self.workers.contains_key(&pod.uid());
        self.ran_before.is_none() && self.pod_config.pods().any(|pod| is_held(&pod))
    }

    /// Admits pods that could not be asked before.
    pub(super) fn admit_held_pods(&mut self) {
        let is_held = |pod: &&Arc<Pod>| !self.admission.is_pending(&pod.uid());
        let held = self.pod_config.pods().filter(is_held).cloned().collect();
        self.handle_pod_additions(held);
    }

    fn with_admission<T>(
        &mut self,
        ask: impl FnOnce(&mut PodAdmission, &AdmitContext<'_>) -> T,
    ) -> T {
        let (decisions, uids) = (&self.node.decisions, &self.ran_before);
        let ran = |uid: &PodUid| uids.as_ref().is_some_and(|uids| uids.contains(uid));
        let handler = DecidedHandler(decisions.as_ref(), self.admit_handler.as_ref());
        let cx = AdmitContext {
            handler: &handler,
            node: &self.admission_node,
            ran_before: &|pod| decisions.was_admitted(ran(&pod.uid())),
        };
        ask(&mut self.admission, &cx)
    }

    pub(super) fn handle_admissions(&mut self, results: Vec<PodAdmitResult>) {
        results.into_iter().for_each(|result| self.handle_admission(result));
    }

    fn handle_admission(&mut self, result: PodAdmitResult) {
        match result {
            PodAdmitResult::Admitted(pod) => {
                self.measure_admission(&pod);
                self.set_resize(&pod, false);
                self.spawn_worker(pod.uid(), pod.full_name(), WorkerStart::Wanted(pod));
            }
            PodAdmitResult::Rejected(pod, rejection) => self.handle_rejection(&pod, rejection),
            PodAdmitResult::Waits(pod) => {
                self.show_waiting(&pod);
                tracing::info!(pod = %pod.full_name(), uid = %pod.uid(), "pod waits for the end of the previous pod of its name");
            }
            PodAdmitResult::Preempts(pod, preemption) => self.preempt(&pod, &preemption),
            PodAdmitResult::NeedsNode(pod) => {
                self.show_waiting(&pod);
                self.read_node();
            }
        }
    }

    fn measure_admission(&self, pod: &Pod) {
        let metrics = &self.node.metrics;
        let containers = u32::try_from(pod.all_containers().len()).unwrap_or(u32::MAX);
        metrics.containers_per_pod.observe(f64::from(containers));
        metrics.startup.begin(pod);
    }

    fn handle_rejection(&mut self, pod: &Arc<Pod>, rejection: Rejection) {
        self.node.recorder.record(pod, [rejection.event()]);
        self.node.metrics.rejections.increment(rejection.counted_as());
        let begin = WorkerStart::Rejected(Arc::clone(pod), rejection.into());
        self.spawn_worker(pod.uid(), pod.full_name(), begin);
    }

    fn show_waiting(&self, pod: &Arc<Pod>) {
        self.node.report_store.set_pod(pod, true);
        self.pods.update(|pods| pods.set_pod(pod, PodStage::Waiting));
    }

    /// Has the victims killed. The pod is started when they have stopped, or when that takes too long.
    fn preempt(&mut self, pod: &Arc<Pod>, Preemption { victims, resource }: &Preemption) {
        self.show_waiting(pod);
        for victim in victims {
            self.node.metrics.preemptions.increment(preemption_signal(resource));
            tracing::info!(pod = %victim.full_name(), uid = %victim.uid(), object = %pod.full_name(), "pod preempted, a critical pod needs its room");
            self.node.recorder.record(victim, [victim_event()]);
            self.kill(&victim.uid(), victim_kill());
        }
        let (uid, wait) = (pod.uid(), room_timeout(victims));
        self.room_timeouts.spawn(async move {
            tokio::time::sleep(wait).await;
            uid
        });
    }

    /// The Go kubelet does not wait any longer for a victim, either.
    pub(super) fn on_room_timeout(&mut self, uid: &PodUid) {
        let Some(result) = self.admission.stop_waiting_for_room(uid) else { return };
        tracing::warn!(%uid, "critical pod started before the pods that make room for it have stopped");
        self.handle_admission(result);
    }

    fn read_node(&mut self) {
        let object = self.node.seams.cluster.node();
        self.node_reads.spawn(async move {
            let answer = timeout(NODE_READ_TIMEOUT, object?.read()).await;
            let told = |error: &oarsman_cluster::ClusterError| {
                tracing::debug!(%error, "node not read for admission");
            };
            answer.ok()?.inspect_err(told).ok()
        });
    }

    /// Asks again pods that only the node's labels were against; by what is known already if the node could not be read.
    pub(super) fn on_node_read(&mut self, read: Result<Option<Node>, JoinError>) {
        let own = &self.node.config.admission_node;
        let mut fresh = match read {
            Ok(Some(node)) => own.with_object(&node, NodeObjectState::Fresh),
            Ok(None) | Err(_) => self.admission_node.clone(),
        };
        // A read that began before a pod came may be older than the pod: the last one counts.
        if !self.node_reads.is_empty() {
            return;
        }
        let watched = self.admission_node.object_state;
        fresh.object_state = NodeObjectState::Fresh;
        self.admission_node = fresh;
        let results = self.with_admission(PodAdmission::ask_again);
        self.admission_node.object_state = watched;
        self.handle_admissions(results);
    }

    /// The node is known, or known to be different.
    pub(super) fn on_admission_node(&mut self, node: AdmissionNode) {
        let was_unread = self.admission_node.object_state == NodeObjectState::Unread;
        self.admission_node = node;
        if was_unread && self.admission_node.object_state != NodeObjectState::Unread {
            self.admit_held_pods();
        }
    }

    /// The pod as it is wanted now, with the resources that it was given.
    pub(super) fn apply_update(&mut self, pod: &Arc<Pod>) -> Arc<Pod> {
        let was_pending = self.admission.is_resize_pending(&pod.uid());
        let pod = self.admission.update(pod);
        self.set_resize(&pod, was_pending);
        pod
    }

    /// Has the pod's status say whether a resize is pending, and tells people of a new one.
    fn set_resize(&self, pod: &Pod, was_pending: bool) {
        let is_pending = self.admission.is_resize_pending(&pod.uid());
        self.node.resizes.set(&pod.uid(), is_pending);
        if is_pending && !was_pending {
            self.node.recorder.record(pod, resize_event(pod));
        }
    }

    /// No source holds a pod that was not started yet.
    pub(super) fn remove_pending(&mut self, uid: &PodUid) {
        if self.admission.remove_pending(uid) {
            self.release_name(uid);
        }
    }

    /// The name of a pod is free: the next of that name is admitted.
    pub(super) fn release_name(&mut self, uid: &PodUid) {
        let results = self.with_admission(|admission, cx| admission.release_name(uid, cx));
        self.handle_admissions(results);
    }
}

/// Half as long again as the victims may take to stop by themselves.
fn room_timeout(victims: &[Arc<Pod>]) -> Duration {
    let grace = |pod: &Arc<Pod>| pod.spec()?.termination_grace_period_seconds;
    let longest = victims.iter().filter_map(grace).max().unwrap_or_default();
    let longest = Duration::from_secs(longest.max(0).unsigned_abs());
    (longest + longest / 2).max(SHORTEST_ROOM_TIMEOUT)
}
