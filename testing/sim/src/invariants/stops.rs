//! Invariants on stops: containers get SIGTERM and their grace period before they are killed, and are not stopped without a reason.

use std::time::Duration;

use oarsman_core::pod::PodExt;

use super::InvariantViolation;
use super::probes;
use super::starts::{is_disturbed, pod};
use super::timeline::Timeline;
use crate::{ExternalAction, SimulationResult};

/// Runtimes count whole seconds, and the last one may be short.
pub(super) const TOLERANCE: Duration = Duration::from_millis(1_100);

/// Between SIGTERM and SIGKILL there is at least the shortest grace period that was given for the pod.
pub(super) fn grace_is_respected(
    result: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    if !result.plan.is_fault_free() {
        return violations;
    }
    for container in &timeline.containers {
        let Some(killed) = container.killed else { continue };
        let Some(pod) = pod(result, &container.pod) else { continue };
        let hook =
            pod.container(&container.name).is_some_and(|wanted| wanted.spec.lifecycle.is_some());
        // A hook and the wait for other containers take from the same grace period; two seconds are always left.
        let sidecar_or_hook = hook || pod.init().iter().any(|spec| spec.name == container.name);
        let grace = if sidecar_or_hook {
            Duration::from_secs(2)
        } else {
            shortest_grace(result, &container.pod)
        };
        let had = container.asked.map(|asked| killed.saturating_sub(asked));
        if had.is_none_or(|had| had + TOLERANCE < grace) {
            let what = format!("{}/{} had {had:?} of {grace:?}", container.pod, container.name);
            violations.push(InvariantViolation { rule: "grace is respected", at: killed, what });
        }
    }
    violations
}

/// The shortest grace period of a pod: of its spec, a deletion, or an eviction; that of an orphan is next to none.
pub(super) fn shortest_grace(result: &SimulationResult, uid: &str) -> Duration {
    let spec = pod(result, uid).and_then(|pod| pod.spec()?.termination_grace_period_seconds);
    let asked = result.actions.iter().filter(|(_, of, _)| of.as_str() == uid);
    let asked = asked.filter_map(|(_, _, action)| match action {
        ExternalAction::Delete { grace, .. } => *grace,
        ExternalAction::Evict { grace, .. } => Some(*grace),
        // A pod whose manifest is removed while the agent is dead is an orphan when it comes back.
        ExternalAction::RemoveManifest { .. } => Some(0),
        _ => None,
    });
    // So is a pod that was replaced.
    let replaced = result.actions.iter().any(|(_, of, action)| {
        let name = |pod: &k8s_openapi::api::core::v1::Pod| pod.metadata.name.clone();
        matches!(action, ExternalAction::WriteManifest(other) if of.as_str() != uid
            && pod(result, uid).is_some_and(|pod| name(pod) == name(other)))
    });
    let seconds = asked.chain(spec).chain(replaced.then_some(0)).min().unwrap_or(30);
    Duration::from_secs(seconds.max(2).unsigned_abs())
}

/// A container of a pod that is wanted, unchanged and undisturbed is never stopped: also not by an agent that has just been restarted.
pub(super) fn nothing_is_stopped_without_a_reason(
    result: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let stopped = timeline.containers.iter().filter_map(|container| {
        let at = [container.asked, container.killed].into_iter().flatten().min()?;
        let uid = container.pod.as_str();
        let pod = pod(result, uid)?;
        let lasts = pod.restart_policy() == "Always"
            && pod.spec().is_some_and(|spec| spec.active_deadline_seconds.is_none());
        let ended = result.actions.iter().any(|(_, of, action)| {
            of.as_str() == uid
                && matches!(
                    action,
                    ExternalAction::Delete { .. } | ExternalAction::RemoveManifest { .. }
                )
        });
        let replaced = result.actions.iter().any(|(_, of, action)| {
            matches!(action, ExternalAction::WriteManifest(other)
                if other.metadata.name == pod.metadata.name && of.as_str() != uid)
        });
        let reason = ended
            || replaced
            || is_disturbed(result, timeline, uid)
            || probes::explain_stop(result, timeline, container, at);
        (lasts && !reason).then(|| InvariantViolation {
            rule: "nothing is stopped without a reason",
            at,
            what: format!("{uid}/{}#{}", container.name, container.attempt),
        })
    });
    stopped.collect()
}
