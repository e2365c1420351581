//! Invariants on admission: no more starts than there is room for, and what runs is not rejected.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_core::pod::{HASH_ANNOTATION, PodExt};

use super::InvariantViolation;
use super::starts::pod;
use super::timeline::Timeline;
use crate::tight_node::{ALLOCATABLE, requested};
use crate::{ExternalAction, SimulationResult};

/// The reasons of pods that were not admitted.
const REJECTED: [&str; 2] = ["OutOfcpu", "UnexpectedAdmissionError"];

fn is_rejection(status: &PodStatus) -> bool {
    status.reason.as_deref().is_some_and(|reason| REJECTED.contains(&reason))
}

/// Whether a pod has too little room, or may have to make room for a static pod.
pub(super) fn may_lack_room(result: &SimulationResult, uid: &str) -> bool {
    let Some(pod) = pod(result, uid).filter(|pod| requested(pod) > 0) else { return false };
    let written = |(_, _, action): &(_, _, ExternalAction)| {
        matches!(action, ExternalAction::WriteManifest(_))
    };
    let is_static = result.actions.iter().any(|it| written(it) && it.1.as_str() == uid);
    was_rejected(result, pod) || (!is_static && result.actions.iter().any(written))
}

fn was_rejected(result: &SimulationResult, pod: &Pod) -> bool {
    let uid = pod.uid();
    let shows = |shown: &&Pod| {
        shown.uid() == uid || shown.annotation(HASH_ANNOTATION) == Some(uid.as_str())
    };
    let shown = result.final_state.objects.iter().chain(&result.final_state.mirrors).find(shows);
    shown.and_then(|shown| shown.status.as_ref()).is_some_and(is_rejection)
}

/// Whether a source holds the pod at that moment.
fn is_held(result: &SimulationResult, uid: &str, at: Duration) -> bool {
    let name = pod(result, uid).and_then(|pod| pod.metadata.name.clone());
    let before = result.actions.iter().filter(|(when, ..)| *when <= at);
    let mut of_pod = before.filter(|(_, of, action)| match action {
        ExternalAction::Create(_)
        | ExternalAction::Delete { .. }
        | ExternalAction::RemoveManifest { .. } => of.as_str() == uid,
        ExternalAction::WriteManifest(other) => other.metadata.name == name,
        _ => false,
    });
    let makes = |(_, of, action): &(_, oarsman_core::ids::PodUid, ExternalAction)| {
        let is_new = matches!(action, ExternalAction::Create(_) | ExternalAction::WriteManifest(_));
        is_new && of.as_str() == uid
    };
    of_pod.next_back().is_some_and(makes)
}

/// When a container starts, the pods of which something runs have room together. Not so for pods that no source holds any more: what they
/// requested is unknown to an agent that was restarted. Late effects of calls that were given up are not the agent's doing.
pub(super) fn no_more_starts_than_there_is_room_for(
    result: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    if !result.plan.is_fault_free() {
        return violations;
    }
    for container in &timeline.containers {
        let Some(at) = container.started else { continue };
        let mut requests: BTreeMap<&str, i64> = BTreeMap::new();
        let running = timeline.containers.iter().filter(|other| other.runs(at));
        for other in running.chain([container]) {
            let counts = other.id == container.id || is_held(result, &other.pod, at);
            let pod = pod(result, &other.pod).filter(|_| counts);
            requests.insert(&other.pod, pod.map_or(0, requested));
        }
        let sum: i64 = requests.values().sum();
        if sum > ALLOCATABLE {
            let what = format!("{}/{} starts: {requests:?}", container.pod, container.name);
            let rule = "no more starts than there is room for";
            violations.push(InvariantViolation { rule, at, what });
        }
    }
    violations
}

/// A pod whose sandbox was there when the agent started, and did not go by itself, is not rejected.
pub(super) fn what_runs_is_not_rejected(
    result: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let late = if result.plan.is_fault_free() { Duration::ZERO } else { LATE };
    let rejected = result.statuses.iter().filter(|published| is_rejection(&published.status));
    let ran = rejected.filter(|published| {
        let starts = timeline.agent_starts.iter().filter(|start| **start <= published.at);
        let began = starts.max().copied().unwrap_or_default();
        let lasted = |ended: Option<Duration>| ended.is_none_or(|ended| ended > began + late);
        let mut sandboxes = timeline.sandboxes.iter().filter(|it| it.pod == published.uid.as_str());
        sandboxes.any(|it| it.started < began && lasted(it.ended) && !it.died)
    });
    let violation = |at: Duration, what: String| InvariantViolation {
        rule: "what runs is not rejected",
        at,
        what,
    };
    ran.map(|published| violation(published.at, published.uid.to_string())).collect()
}

/// How late a stop may take effect that an agent called before it was killed.
const LATE: Duration = Duration::from_secs(300);
