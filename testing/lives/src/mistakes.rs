//! Wrong decisions, one at a time. An invariant that none of them breaks proves nothing.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_agent::{Decisions, Leftovers};
use oarsman_core::actions::{self, Plan, RestartCount, SandboxStep, Start, Teardown};
use oarsman_core::ids::{ContainerId, PodUid, SandboxId};
use oarsman_core::lifecycle::{self, Context, Effect, Event, KillReason, State, Step};
use oarsman_core::pod::{ContainerKind, PodExt};
use oarsman_core::status;
use oarsman_core::view::{ContainerState, PodView};

/// A mistake in the agent's decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A container that ended well is started again whatever its policy says.
    RestartsWhatSucceeded,
    /// A crashed container is started again at once.
    ForgetsBackOff,
    /// A pod that its source dropped is not brought down.
    LosesAKill,
    /// Everybody gets two seconds.
    IgnoresGrace,
    /// Regular containers do not wait for init containers.
    SwapsInitOrder,
    /// What a failed call has made after all is not looked for.
    SkipsAdoption,
    /// Sandboxes of pods that are gone stay.
    LeaksSandboxes,
    /// A pod that has ended is said to run when it is looked at again.
    TakesBackAPhase,
    /// After a restart of the agent, what runs is started once more.
    StartsTwiceAfterRestart,
    /// The end of a pod is told before it has come.
    TellsTheEndTooEarly,
}

impl Mistake {
    /// All of them.
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
    ];

    /// Decisions with this mistake in them.
    pub fn decisions(self) -> Arc<dyn Decisions> {
        Arc::new(Mistaken { mistake: self, seen: Mutex::default() })
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

struct Mistaken {
    mistake: Mistake,
    /// Pods already looked at in some life.
    seen: Mutex<BTreeSet<PodUid>>,
}

impl Mistaken {
    fn is(&self, mistake: Mistake) -> bool {
        self.mistake == mistake
    }

    fn first_time(&self, uid: PodUid) -> bool {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(uid)
    }
}

impl Decisions for Mistaken {
    fn step(&self, state: State, event: Event, cx: &Context) -> Step {
        let (state, mut effects) = lifecycle::step(state, event, cx);
        if self.is(Mistake::LosesAKill) {
            let lost = |e: &Effect| matches!(e, Effect::StartKill { why: KillReason::Removed, .. });
            effects.retain(|effect| !lost(effect));
        }
        (state, effects)
    }

    fn plan(&self, input: &actions::Input<'_>) -> Plan {
        let mut plan = actions::plan(input);
        match self.mistake {
            Mistake::RestartsWhatSucceeded => {
                again(input, &mut plan, |state| state.exit().is_some_and(|exit| exit.code == 0));
            }
            Mistake::ForgetsBackOff => {
                let waits = std::mem::take(&mut plan.wait);
                let again = waits.into_iter().map(|wait| start(input, wait.kind, wait.name));
                plan.start.extend(again);
            }
            Mistake::SwapsInitOrder => hurry_regulars(input, &mut plan),
            Mistake::StartsTwiceAfterRestart if !self.first_time(input.pod.uid()) => {}
            Mistake::StartsTwiceAfterRestart => again(input, &mut plan, ContainerState::may_run),
            _ => {}
        }
        plan
    }

    fn teardown(&self, pod: Option<&Pod>, view: &PodView, grace: Option<i64>) -> Teardown {
        let grace = if self.is(Mistake::IgnoresGrace) { Some(2) } else { grace };
        actions::teardown(pod, view, grace)
    }

    fn status(&self, input: &status::Input<'_>) -> PodStatus {
        let mut status = status::generate(input);
        let phase = status.phase.as_deref();
        let ended = matches!(phase, Some("Succeeded" | "Failed"));
        if self.is(Mistake::TakesBackAPhase) && ended && !input.view.containers.is_empty() {
            let last = input.previous.and_then(|previous| previous.phase.as_deref());
            if last == phase {
                status.phase = Some("Running".to_owned());
            }
        }
        if self.is(Mistake::TellsTheEndTooEarly) && input.standing.is_some() {
            status.phase = Some("Failed".to_owned());
        }
        status
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
        oarsman_agent::CoreDecisions.adopted_container(view, sandbox, name, attempt)
    }

    fn leftovers(&self, view: &PodView) -> Leftovers {
        let left = oarsman_agent::CoreDecisions.leftovers(view);
        if self.is(Mistake::LeaksSandboxes) {
            return Leftovers { sandboxes: Vec::new(), ..left };
        }
        left
    }
}

/// Starts once more every regular container whose newest one is in such a state.
fn again(input: &actions::Input<'_>, plan: &mut Plan, is: impl Fn(&ContainerState) -> bool) {
    let Some(sandbox) = input.view.newest_sandbox().filter(|sandbox| sandbox.ready) else { return };
    for spec in input.pod.regular() {
        let planned = plan.start.iter().any(|start| start.name == spec.name);
        let newest = input.view.newest(&spec.name);
        if !planned && newest.is_some_and(|container| is(&container.state)) {
            plan.sandbox = SandboxStep::Keep(sandbox.id.clone());
            plan.start.push(start(input, ContainerKind::Regular, spec.name.clone()));
            plan.over = None;
        }
    }
}

/// Starts regular containers together with the first init container.
fn hurry_regulars(input: &actions::Input<'_>, plan: &mut Plan) {
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

fn start(input: &actions::Input<'_>, kind: ContainerKind, name: String) -> Start {
    let newest = input.view.newest(&name).map(|container| container.label.restart_count);
    let count = newest.map_or(0, |count| count.saturating_add(1));
    Start { restart_count: RestartCount::Known(count), kind, name }
}
