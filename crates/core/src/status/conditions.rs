//! The conditions of a pod: questions with a yes or a no, and since when.

mod ready;

use k8s_openapi::api::core::v1::{ContainerStatus, PodCondition, PodStatus};

use super::phase::Phase;
use super::scene::Scene;
use crate::actions::sandbox_change;
use crate::lifecycle::VerdictKind;
use ready::{containers_ready, initialised, pod_ready};

/// All containers are being removed, to begin anew.
pub(super) const ALL_CONTAINERS_RESTARTING: &str = "AllContainersRestarting";
/// Something other than its own containers ends the pod. Others may say so too.
pub(super) const DISRUPTION_TARGET: &str = "DisruptionTarget";
/// All containers can take traffic.
pub(super) const CONTAINERS_READY: &str = "ContainersReady";
/// The pod can take traffic.
pub(super) const READY: &str = "Ready";

/// The conditions only we set: what the API server has of them is what we said earlier.
const OURS: [&str; 8] = [
    "PodScheduled",
    READY,
    "Initialized",
    CONTAINERS_READY,
    "PodReadyToStartContainers",
    "PodResizePending",
    "PodResizeInProgress",
    ALL_CONTAINERS_RESTARTING,
];

/// Whether only we set this condition.
pub(super) fn is_ours(condition: &PodCondition) -> bool {
    OURS.contains(&condition.type_.as_str())
}

/// An answer to one question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Answer {
    yes: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl Answer {
    const YES: Self = Self { yes: true, reason: None, message: None };
    const NO: Self = Self { yes: false, reason: None, message: None };

    fn because(self, reason: &'static str) -> Self {
        Self { reason: Some(reason), ..self }
    }

    fn saying(self, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..self }
    }
}

/// All conditions: those of others first, then ours in their usual order.
pub(super) fn all(scene: &Scene<'_>, status: &PodStatus) -> Vec<PodCondition> {
    let phase = Phase::of(status).unwrap_or(Phase::Pending);
    let containers = all_containers(status);
    let mut conditions = foreign(scene);
    put_disruption(scene, &mut conditions);
    let containers_ready = containers_ready(scene.pod, &containers, phase);
    let answers = [
        ("PodReadyToStartContainers", Some(ready_to_start(scene))),
        ("Initialized", Some(initialised(scene.pod, &containers, phase))),
        (READY, Some(pod_ready(scene.pod, &containers_ready, &conditions))),
        (CONTAINERS_READY, Some(containers_ready)),
        ("PodScheduled", Some(Answer::YES)),
        (ALL_CONTAINERS_RESTARTING, restarting(scene, phase)),
    ];
    let ours =
        answers.into_iter().filter_map(|(kind, answer)| Some(condition(scene, kind, answer?)));
    conditions.extend(ours);
    conditions
}

fn all_containers(status: &PodStatus) -> Vec<&ContainerStatus> {
    let lists = [&status.init_container_statuses, &status.container_statuses];
    lists.into_iter().flatten().flatten().collect()
}

fn foreign(scene: &Scene<'_>) -> Vec<PodCondition> {
    let api = scene.pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    api.filter(|condition| !is_ours(condition)).cloned().collect()
}

/// What we said once about the pod's end we go on saying: it comes from an event, not from a state.
fn put_disruption(scene: &Scene<'_>, conditions: &mut Vec<PodCondition>) {
    let verdict = scene.input.verdict.filter(|verdict| verdict.kind == VerdictKind::Disrupted);
    let said = scene.previous.conditions.iter().flatten().find(|c| c.type_ == DISRUPTION_TARGET);
    let new = verdict.map(|verdict| {
        let answer = Answer::YES.because("TerminationByKubelet").saying(&verdict.message);
        condition(scene, DISRUPTION_TARGET, answer)
    });
    if let Some(condition) = said.cloned().or(new) {
        conditions.retain(|other| other.type_ != DISRUPTION_TARGET);
        conditions.push(condition);
    }
}

/// There is a sandbox, and it has its network.
fn ready_to_start(scene: &Scene<'_>) -> Answer {
    Answer { yes: sandbox_change(scene.pod, scene.view).is_none(), ..Answer::NO }
}

/// Said only of pods that have a rule to that effect.
fn restarting(scene: &Scene<'_>, phase: Phase) -> Option<Answer> {
    let answer = match phase {
        Phase::Succeeded => Answer::NO.because(ready::POD_COMPLETED),
        Phase::Failed => Answer::NO.because(ready::POD_FAILED),
        Phase::Pending | Phase::Running if scene.is_restarting_all() => Answer::YES
            .because("RestartAllContainersStarted")
            .saying("a container exited, and its rule restarts all"),
        Phase::Pending | Phase::Running => Answer::NO,
    };
    scene.may_restart_all().then_some(answer)
}

/// The condition, with the time of its last change: now, unless it was the same before.
fn condition(scene: &Scene<'_>, kind: &str, answer: Answer) -> PodCondition {
    let status = if answer.yes { "True" } else { "False" };
    let said = scene.previous.conditions.iter().flatten().find(|said| said.type_ == kind);
    let since =
        said.filter(|said| said.status == status).and_then(|s| s.last_transition_time.clone());
    PodCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: answer.reason.map(ToOwned::to_owned),
        message: answer.message,
        last_transition_time: Some(since.unwrap_or_else(|| scene.now())),
        observed_generation: scene.pod.metadata.generation,
        ..PodCondition::default()
    }
}
