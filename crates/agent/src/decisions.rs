//! What the agent asks `core`. It is handed in like the seams are, so that a simulation can hand in wrong decisions and
//! see whether its invariants notice.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_core::actions::{self, PodActions, Teardown};
use oarsman_core::active_pods::ActivePod;
use oarsman_core::admission::{AdmitHandler, AdmitRefusal, PodAdmitAttributes};
use oarsman_core::gc::images::images_in_use;
use oarsman_core::ids::{ContainerId, SandboxId};
use oarsman_core::lifecycle::{
    self, Context, Event, State, TerminationStage, Transition, WorkerStart,
};
use oarsman_core::node::runtime::{NetworkState, RuntimeHealth};
use oarsman_core::probe::{ProbeResult, ProbeResults};
use oarsman_core::prober::{self, ProbeOutcome, ProbeWorker, WantedProbe};
use oarsman_core::status;
use oarsman_core::status::merge::merge;
use oarsman_core::status::probe_recovery;
use oarsman_core::time::Mono;
use oarsman_core::view::PodView;
use oarsman_cri_types::v1::{Container, Image};

/// The decisions of `core`. A simulation overrides single ones.
pub trait Decisions: Send + Sync + 'static {
    /// The first step of a pod.
    fn begin(&self, begin: WorkerStart) -> Transition {
        lifecycle::begin(begin)
    }

    /// The step for an event.
    fn step(&self, state: State, event: Event, cx: &Context) -> Transition {
        lifecycle::step(state, event, cx)
    }

    /// Whether a sandbox with a network of its own can be created.
    fn network_state(&self, health: &RuntimeHealth, now: Mono) -> NetworkState {
        health.network_state(now)
    }

    /// Whether the node admits a pod.
    fn admit(
        &self,
        handler: &dyn AdmitHandler,
        attributes: &PodAdmitAttributes<'_>,
    ) -> Result<(), AdmitRefusal> {
        handler.admit(attributes)
    }

    /// Whether a pod that the first relist found running was admitted by an agent before this one. It is not asked again.
    fn was_admitted(&self, was_running: bool) -> bool {
        was_running
    }

    /// What to do to its containers now.
    fn compute_pod_actions(&self, input: &actions::PodActionsInput<'_>) -> PodActions {
        actions::compute_pod_actions(input)
    }

    /// How to stop all of it.
    fn teardown(&self, pod: Option<&Pod>, view: &PodView, grace: Option<i64>) -> Teardown {
        actions::teardown(pod, view, grace)
    }

    /// The probes that it has now.
    fn wanted_probes(
        &self,
        pod: &Pod,
        view: &PodView,
        results: &ProbeResults,
        is_terminating: bool,
    ) -> Vec<WantedProbe> {
        prober::wanted_probes(pod, view, results, is_terminating)
    }

    /// What the answer of a probe that began then makes of its result; none when that stays.
    fn record_probe(
        &self,
        worker: &mut ProbeWorker,
        outcome: &ProbeOutcome,
        began: Mono,
    ) -> Option<ProbeResult> {
        worker.record(outcome, began)
    }

    /// What an earlier agent's probes had found, by the status that it published.
    fn restore_probe_results(&self, status: &PodStatus, results: &mut ProbeResults) {
        probe_recovery::restore_probe_results(status, results);
    }

    /// The status that is published.
    fn status(&self, input: &status::PodStatusInput<'_>) -> PodStatus {
        status::generate_api_pod_status(input)
    }

    /// What of it may be told, given what was told before: an end only when the pod was seen to be at rest after a kill and
    /// has given back what it held. What a sync knows may be older than a start that took effect without an answer.
    fn publishable_status(
        &self,
        before: &PodStatus,
        status: &PodStatus,
        termination: Option<TerminationStage>,
        now: Timestamp,
    ) -> PodStatus {
        merge(before, status, termination == Some(TerminationStage::Released), now)
    }

    /// The sandbox that a failed call has made after all.
    fn adopted_sandbox(&self, view: &PodView, attempt: u32) -> Option<SandboxId> {
        actions::adopted_sandbox(view, attempt)
    }

    /// The container that a failed call has made after all.
    fn adopted_container(
        &self,
        view: &PodView,
        sandbox: &SandboxId,
        name: &str,
        attempt: u32,
    ) -> Option<ContainerId> {
        actions::adopted_container(view, sandbox, name, attempt)
    }

    /// The images that must not be removed.
    fn images_in_use(
        &self,
        images: &[Image],
        containers: &[Container],
        pods: &[Arc<ActivePod>],
    ) -> BTreeSet<String> {
        images_in_use(images, containers, pods.iter().map(|pod| &*pod.pod))
    }

    /// What is removed of a pod that no source has any more.
    fn leftovers(&self, view: &PodView) -> Leftovers {
        Leftovers {
            containers: view.containers.iter().map(|container| container.id.clone()).collect(),
            sandboxes: view.sandboxes.iter().map(|sandbox| sandbox.id.clone()).collect(),
        }
    }
}

/// What is left of a pod that no source has any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Containers, to be removed first.
    pub containers: Vec<ContainerId>,
    /// Sandboxes, to be removed after their containers.
    pub sandboxes: Vec<SandboxId>,
}

/// The decisions of `oarsman_core`.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoreDecisions;

impl Decisions for CoreDecisions {}
