//! The conditions of a pod: questions with a yes or a no, and since when.

mod ready;

use k8s_openapi::api::core::v1::{ContainerStatus, PodCondition, PodStatus};

use super::context::StatusContext;
use super::phase::Phase;
use crate::actions::pod_sandbox_changed;
use crate::admission::RESIZE_INFEASIBLE;
use crate::lifecycle::PodFailureKind;
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
struct ConditionValue {
    yes: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl ConditionValue {
    const TRUE: Self = Self { yes: true, reason: None, message: None };
    const FALSE: Self = Self { yes: false, reason: None, message: None };

    fn with_reason(self, reason: &'static str) -> Self {
        Self { reason: Some(reason), ..self }
    }

    fn with_message(self, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..self }
    }
}

/// All conditions: those of others first, then ours in their usual order.
pub(super) fn all(context: &StatusContext<'_>, status: &PodStatus) -> Vec<PodCondition> {
    let phase = Phase::of(status).unwrap_or(Phase::Pending);
    let containers = all_containers(status);
    let mut conditions = conditions_of_others(context);
    let resize = context.input.resize_infeasible.then(resize_infeasible);
    conditions.extend(resize.map(|answer| condition(context, "PodResizePending", answer)));
    put_disruption(context, &mut conditions);
    let containers_ready = containers_ready(context.pod, &containers, phase);
    let has_ready_to_start = context.input.node.features.ready_to_start_condition;
    let answers = [
        ("PodReadyToStartContainers", has_ready_to_start.then(|| ready_to_start(context))),
        ("Initialized", Some(initialised(context, &containers, phase))),
        (READY, Some(pod_ready(context.pod, &containers_ready, &conditions))),
        (CONTAINERS_READY, Some(containers_ready)),
        ("PodScheduled", Some(ConditionValue::TRUE)),
        (ALL_CONTAINERS_RESTARTING, restarting(context, phase)),
    ];
    let ours =
        answers.into_iter().filter_map(|(kind, answer)| Some(condition(context, kind, answer?)));
    conditions.extend(ours);
    conditions
}

fn all_containers(status: &PodStatus) -> Vec<&ContainerStatus> {
    let lists = [&status.init_container_statuses, &status.container_statuses];
    lists.into_iter().flatten().flatten().collect()
}

fn conditions_of_others(context: &StatusContext<'_>) -> Vec<PodCondition> {
    let api = context.pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    api.filter(|condition| !is_ours(condition)).cloned().collect()
}

/// What we said once about the pod's end we go on saying: it comes from an event, not from a state.
fn put_disruption(context: &StatusContext<'_>, conditions: &mut Vec<PodCondition>) {
    let failure = context.input.failure.filter(|failure| failure.kind == PodFailureKind::Disrupted);
    let published =
        context.previous.conditions.iter().flatten().find(|c| c.type_ == DISRUPTION_TARGET);
    let new = failure.map(|failure| {
        let answer =
            ConditionValue::TRUE.with_reason("TerminationByKubelet").with_message(&failure.message);
        condition(context, DISRUPTION_TARGET, answer)
    });
    if let Some(condition) = published.cloned().or(new) {
        conditions.retain(|other| other.type_ != DISRUPTION_TARGET);
        conditions.push(condition);
    }
}

/// There is a sandbox, and it has its network.
fn ready_to_start(context: &StatusContext<'_>) -> ConditionValue {
    ConditionValue {
        yes: pod_sandbox_changed(context.pod, context.view).is_none(),
        ..ConditionValue::FALSE
    }
}

fn resize_infeasible() -> ConditionValue {
    ConditionValue::TRUE.with_reason("Infeasible").with_message(RESIZE_INFEASIBLE)
}

/// Said only of pods that have a rule to that effect.
fn restarting(context: &StatusContext<'_>, phase: Phase) -> Option<ConditionValue> {
    let answer = match phase {
        Phase::Succeeded => ConditionValue::FALSE.with_reason(ready::POD_COMPLETED),
        Phase::Failed => ConditionValue::FALSE.with_reason(ready::POD_FAILED),
        Phase::Pending | Phase::Running if context.is_restarting_all() => ConditionValue::TRUE
            .with_reason("RestartAllContainersStarted")
            .with_message("a container exited, and its rule restarts all"),
        Phase::Pending | Phase::Running => ConditionValue::FALSE,
    };
    context.may_restart_all().then_some(answer)
}

/// The condition, with the time of its last change: now, unless it was the same before.
fn condition(context: &StatusContext<'_>, kind: &str, answer: ConditionValue) -> PodCondition {
    let status = if answer.yes { "True" } else { "False" };
    let published =
        context.previous.conditions.iter().flatten().find(|published| published.type_ == kind);
    let since = published
        .filter(|published| published.status == status)
        .and_then(|s| s.last_transition_time.clone());
    PodCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: answer.reason.map(ToOwned::to_owned),
        message: answer.message,
        last_transition_time: Some(since.unwrap_or_else(|| context.now())),
        observed_generation: context.pod.metadata.generation,
        ..PodCondition::default()
    }
}
