//! Wrong decisions, one at a time, that the invariants must notice. An invariant that none of them violates proves nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_agent::{CoreDecisions, Decisions, Leftovers};
use oarsman_core::actions::{
    self, ContainerToStart, PodActions, RestartCount, SandboxAction, Teardown,
};
use oarsman_core::active_pods::ActivePod;
use oarsman_core::admission::{AdmitHandler, AdmitRefusal, PodAdmitAttributes};
use oarsman_core::ids::{ContainerId, PodUid, SandboxId};
use oarsman_core::lifecycle::{
    self, Context, Effect, Event, KillReason, State, TerminationStage, Transition, WorkerStart,
};
use oarsman_core::node::runtime::{NetworkState, RuntimeHealth};
use oarsman_core::pod::{ContainerKind, PodExt};
use oarsman_core::probe::{ProbeKind, ProbeResult, ProbeResults};
use oarsman_core::prober::{ProbeOutcome, ProbeWorker, WantedProbe};
use oarsman_core::time::Mono;
use oarsman_core::view::{ContainerState, PodView};
use oarsman_cri_types::v1::{Container, Image};

/// The message of a panic that is itself the mistake.
pub const ON_PURPOSE: &str = "a mistake on purpose";

/// A mistake in the agent's decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A container that succeeded is started again whatever its restart policy is.
    RestartsWhatSucceeded,
    /// A crashed container is started again at once.
    ForgetsBackOff,
    /// A pod that its source dropped is not killed.
    LosesAKill,
    /// Every grace period is two seconds.
    IgnoresGrace,
    /// Regular containers do not wait for init containers.
    SwapsInitOrder,
    /// What a failed call has made after all is not adopted.
    SkipsAdoption,
    /// Sandboxes of pods that are gone are not removed.
    LeaksSandboxes,
    /// The phase of a pod that has ended goes back to Running.
    TakesBackAPhase,
    /// After a restart of the agent, running containers are started once more.
    StartsTwiceAfterRestart,
    /// A terminal phase is published before the pod has ended.
    TellsTheEndTooEarly,
    /// Containers of a pod that is killed are stopped without their hooks.
    SkipsHooks,
    /// What is left of a pod that its source dropped is not removed.
    LosesACleanup,
    /// Containers of a pod that has ended, which run because a start took effect late, are not killed.
    LosesALeftoverKill,
    /// Sandboxes are created whether there is a network for pods or not.
    IgnoresTheNetwork,
    /// Every pod is admitted, whether there is room for it or not.
    AdmitsWithoutRoom,
    /// After a restart of the agent, running pods are asked for admission again.
    AsksRunningPodsAgain,
    /// The worker panics whenever a kill has ended, and so does the one that replaces it.
    PanicsDuringAKill,
    /// A readiness or startup probe that fails counts as one that succeeds.
    TrustsFailedProbes,
    /// A container is restarted for its first failed liveness or startup probe, whatever the threshold is.
    RestartsBelowThreshold,
    /// After a restart of the agent, all containers have to be probed before they are ready.
    ForgetsProbeResults,
    /// Liveness is probed before a container has started.
    ProbesBeforeStartup,
    /// Images of containers are garbage too.
    RemovesUsedImages,
}

impl Mistake {
    /// All mistakes.
    pub const ALL: &[Self] = &[
        Self::RestartsWhatSucceeded,
        Self::ForgetsBackOff,
        Self::LosesAKill,
        Self::IgnoresGrace,
        Self::SwapsInitOrder,
        Self::SkipsAdoption,
        Self::LeaksSandboxes,
        Self::TakesBackAPhase,
        Self::StartsTwiceAfterRestart,
        Self::TellsTheEndTooEarly,
        Self::SkipsHooks,
        Self::LosesACleanup,
        Self::LosesALeftoverKill,
        Self::IgnoresTheNetwork,
        Self::AdmitsWithoutRoom,
        Self::AsksRunningPodsAgain,
        Self::PanicsDuringAKill,
        Self::TrustsFailedProbes,
        Self::RestartsBelowThreshold,
        Self::ForgetsProbeResults,
        Self::ProbesBeforeStartup,
        Self::RemovesUsedImages,
    ];

    /// Decisions with this mistake in them.
    pub fn decisions(self) -> Arc<dyn Decisions> {
        Arc::new(MistakenDecisions { mistake: self, begun: Mutex::default() })
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

struct MistakenDecisions {
    mistake: Mistake,
    /// How often the worker of each pod has begun: once for every start of the agent that knew it.
    begun: Mutex<BTreeMap<PodUid, u32>>,
}

impl MistakenDecisions {
    fn loses(&self, effect: &Effect) -> bool {
        match effect {
            Effect::StartKill { why: KillReason::Removed, .. } => self.is(Mistake::LosesAKill),
            Effect::StartCleanup => self.is(Mistake::LosesACleanup),
            Effect::StartKillLeftovers { .. } => self.is(Mistake::LosesALeftoverKill),
            _ => false,
        }
    }

    fn is(&self, mistake: Mistake) -> bool {
        self.mistake == mistake
    }

    fn begun(&self) -> MutexGuard<'_, BTreeMap<PodUid, u32>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True once for every time a restarted agent picked up the pod.
    fn was_picked_up(&self, uid: &PodUid) -> bool {
        let mut begun = self.begun();
        let times = begun.entry(uid.clone()).or_default();
        let again = *times > 1;
        *times = (*times).min(1);
        again
    }
}

impl Decisions for MistakenDecisions {
    fn step(&self, state: State, event: Event, cx: &Context) -> Transition {
        let is_killed = matches!(event, Event::KillDone(_));
        assert!(!(self.is(Mistake::PanicsDuringAKill) && is_killed), "{ON_PURPOSE}");
        let (state, mut effects) = lifecycle::step(state, event, cx);
        effects.retain(|effect| !self.loses(effect));
        (state, effects)
    }

    fn network_state(&self, health: &RuntimeHealth, now: Mono) -> NetworkState {
        match self.mistake {
            Mistake::IgnoresTheNetwork => NetworkState::Ready,
            _ => health.network_state(now),
        }
    }

    fn admit(
        &self,
        handler: &dyn AdmitHandler,
        attributes: &PodAdmitAttributes<'_>,
    ) -> Result<(), AdmitRefusal> {
        if self.is(Mistake::AdmitsWithoutRoom) {
            return Ok(());
        }
        CoreDecisions.admit(handler, attributes)
    }

    fn was_admitted(&self, was_running: bool) -> bool {
        was_running && !self.is(Mistake::AsksRunningPodsAgain)
    }

    fn compute_pod_actions(&self, input: &actions::PodActionsInput<'_>) -> PodActions {
        let mut plan = actions::compute_pod_actions(input);
        match self.mistake {
            Mistake::RestartsWhatSucceeded => {
                start_again(input, &mut plan, |state| {
                    state.exit().is_some_and(|exit| exit.code == 0)
                });
            }
            Mistake::ForgetsBackOff => {
                let waits = std::mem::take(&mut plan.wait);
                let again = waits.into_iter().map(|wait| start(input, wait.kind, wait.name));
                plan.start.extend(again);
            }
            Mistake::SwapsInitOrder => start_regulars_early(input, &mut plan),
            Mistake::StartsTwiceAfterRestart if self.was_picked_up(&input.pod.uid()) => {
                start_again(input, &mut plan, ContainerState::may_run);
            }
            _ => {}
        }
        plan
    }

    fn teardown(&self, pod: Option<&Pod>, view: &PodView, grace: Option<i64>) -> Teardown {
        let grace = if self.is(Mistake::IgnoresGrace) { Some(2) } else { grace };
        let mut teardown = actions::teardown(pod, view, grace);
        if self.is(Mistake::SkipsHooks) {
            teardown.stop.iter_mut().for_each(|stop| stop.pre_stop = None);
        }
        teardown
    }

    fn wanted_probes(
        &self,
        pod: &Pod,
        view: &PodView,
        results: &ProbeResults,
        is_terminating: bool,
    ) -> Vec<WantedProbe> {
        let mut wanted = CoreDecisions.wanted_probes(pod, view, results, is_terminating);
        if self.is(Mistake::ProbesBeforeStartup) {
            let mut started = results.clone();
            for container in &view.containers {
                started.set(container.id.clone(), ProbeKind::Startup, ProbeResult::Success);
            }
            wanted.extend(CoreDecisions.wanted_probes(pod, view, &started, is_terminating));
        }
        wanted
    }

    fn record_probe(
        &self,
        worker: &mut ProbeWorker,
        outcome: &ProbeOutcome,
        began: Mono,
    ) -> Option<ProbeResult> {
        let is_liveness = worker.kind() == ProbeKind::Liveness;
        let has_failed = outcome.result() == Some(ProbeResult::Failure);
        if self.is(Mistake::TrustsFailedProbes) && !is_liveness && has_failed {
            return worker.record(&ProbeOutcome::success(""), began);
        }
        let right = worker.record(outcome, began);
        let hasty = self.is(Mistake::RestartsBelowThreshold)
            && worker.kind() != ProbeKind::Readiness
            && has_failed;
        if hasty { Some(ProbeResult::Failure) } else { right }
    }

    fn restore_probe_results(&self, status: &PodStatus, results: &mut ProbeResults) {
        if !self.is(Mistake::ForgetsProbeResults) {
            CoreDecisions.restore_probe_results(status, results);
        }
    }

    fn begin(&self, begin: WorkerStart) -> Transition {
        if let WorkerStart::Wanted(pod) = &begin {
            *self.begun().entry(pod.uid()).or_default() += 1;
        }
        lifecycle::begin(begin)
    }

    fn publishable_status(
        &self,
        before: &PodStatus,
        status: &PodStatus,
        termination: Option<TerminationStage>,
        now: Timestamp,
    ) -> PodStatus {
        let right = CoreDecisions.publishable_status(before, status, termination, now);
        let ended = matches!(before.phase.as_deref(), Some("Succeeded" | "Failed"));
        match self.mistake {
            Mistake::TakesBackAPhase if ended => {
                PodStatus { phase: Some("Running".to_owned()), ..right }
            }
            Mistake::TellsTheEndTooEarly => status.clone(),
            _ => right,
        }
    }

    fn adopted_container(
        &self,
        view: &PodView,
        sandbox: &SandboxId,
        name: &str,
        attempt: u32,
    ) -> Option<ContainerId> {
        if self.is(Mistake::SkipsAdoption) {
            return None;
        }
        CoreDecisions.adopted_container(view, sandbox, name, attempt)
    }

    fn images_in_use(
        &self,
        images: &[Image],
        containers: &[Container],
        pods: &[Arc<ActivePod>],
    ) -> BTreeSet<String> {
        match self.mistake {
            Mistake::RemovesUsedImages => BTreeSet::new(),
            _ => CoreDecisions.images_in_use(images, containers, pods),
        }
    }

    fn leftovers(&self, view: &PodView) -> Leftovers {
        let left = CoreDecisions.leftovers(view);
        if self.is(Mistake::LeaksSandboxes) {
            return Leftovers { sandboxes: Vec::new(), ..left };
        }
        left
    }
}

/// Starts once more every regular container whose newest instance is in such a state.
fn start_again(
    input: &actions::PodActionsInput<'_>,
    plan: &mut PodActions,
    is: impl Fn(&ContainerState) -> bool,
) {
    let Some(sandbox) = input.view.newest_sandbox().filter(|sandbox| sandbox.ready) else { return };
    for spec in input.pod.regular() {
        let planned = plan.start.iter().any(|start| start.name == spec.name);
        let newest = input.view.newest(&spec.name);
        if !planned && newest.is_some_and(|container| is(&container.state)) {
            plan.sandbox = SandboxAction::Keep(sandbox.id.clone());
            plan.start.push(start(input, ContainerKind::Regular, spec.name.clone()));
            plan.end_reason = None;
        }
    }
}

/// Starts regular containers together with the first init container.
fn start_regulars_early(input: &actions::PodActionsInput<'_>, plan: &mut PodActions) {
    let initialising = plan.start.iter().any(|start| start.kind == ContainerKind::Init);
    if !initialising {
        return;
    }
    for spec in input.pod.regular() {
        let new = input.view.newest(&spec.name).is_none();
        if new {
            plan.start.insert(0, start(input, ContainerKind::Regular, spec.name.clone()));
        }
    }
}

fn start(
    input: &actions::PodActionsInput<'_>,
    kind: ContainerKind,
    name: String,
) -> ContainerToStart {
    let newest = input.view.newest(&name).map(|container| container.label.restart_count);
    let count = newest.map_or(0, |count| count.saturating_add(1));
    ContainerToStart { restart_count: RestartCount::Known(count), kind, name }
}
