//! Invariants on the order of containers: init containers first, one after the other; sidecars end last.

use std::time::Duration;

use oarsman_core::pod::{ContainerKind, PodExt, init_kind};

use super::InvariantViolation;
use super::probes;
use super::starts::pod;
use super::stops::{TOLERANCE, shortest_grace};
use super::timeline::{ContainerTimeline, Timeline};
use crate::SimulationResult;

/// Before a container starts, every init container before it has succeeded, and every sidecar has been started, in the same
/// sandbox.
pub(super) fn init_containers_come_first_and_in_turn(
    result: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    // A start that takes effect long after its call timed out may be out of order.
    if timeline.has_fault("late effect") || timeline.has_fault("restart") {
        return violations;
    }
    for container in &timeline.containers {
        let (Some(at), Some(pod)) = (container.started, pod(result, &container.pod)) else {
            continue;
        };
        let Some(wanted) = pod.container(&container.name) else { continue };
        let before = pod.init().iter().take_while(|spec| spec.name != container.name);
        let since = sandbox_start(timeline, &container.pod, at);
        for spec in before {
            let of_name =
                |other: &&ContainerTimeline| other.pod == container.pod && other.name == spec.name;
            let mut others = timeline.containers.iter().filter(of_name);
            let done = others.any(|other| match init_kind(spec) {
                ContainerKind::Sidecar => other.started.is_some_and(|t| since <= t && t <= at),
                _ => other.exited.is_some_and(|(t, code)| code == 0 && since <= t && t <= at),
            });
            if !done && wanted.kind != ContainerKind::Ephemeral {
                let what = format!("{}/{} before {}", container.pod, container.name, spec.name);
                let rule = "init containers come first and in turn";
                violations.push(InvariantViolation { rule, at, what });
            }
        }
    }
    violations
}

/// When the pod's sandbox at that moment was made.
fn sandbox_start(timeline: &Timeline, pod: &str, at: Duration) -> Duration {
    let before = timeline.sandboxes.iter().filter(|s| s.pod == pod && s.started <= at);
    before.map(|sandbox| sandbox.started).max().unwrap_or_default()
}

/// A sidecar is not stopped while a regular container of its pod is being stopped and has time left.
pub(super) fn sidecars_end_last(
    result: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    if !result.plan.is_fault_free() {
        return violations;
    }
    for sidecar in &timeline.containers {
        let (Some(at), Some(pod)) = (sidecar.asked, pod(result, &sidecar.pod)) else { continue };
        let kind = |name: &str| pod.container(name).map(|wanted| wanted.kind);
        // One that its probe restarts is stopped by itself.
        let is_restarted = probes::explain_stop(result, timeline, sidecar, at);
        if kind(&sidecar.name) != Some(ContainerKind::Sidecar) || is_restarted {
            continue;
        }
        let grace = pod.spec().and_then(|spec| spec.termination_grace_period_seconds);
        let grace = Duration::from_secs(grace.unwrap_or_default().unsigned_abs());
        let regular = timeline
            .running(&sidecar.pod, at)
            .filter(|other| kind(&other.name) == Some(ContainerKind::Regular));
        // A shorter grace period may have been asked for; then there is no wait.
        let shortened = shortest_grace(result, &sidecar.pod) < grace;
        // A hook takes from the grace period before its container is stopped, by an amount that the trace does not show.
        let hooked = |name: &str| {
            let hooks = pod.container(name).and_then(|wanted| wanted.spec.lifecycle.clone());
            hooks.is_some_and(|hooks| hooks.pre_stop.is_some())
        };
        let has_time = |other: &&ContainerTimeline| {
            let asked = other.asked.filter(|_| !hooked(&other.name));
            asked.is_some_and(|asked| at + TOLERANCE < asked + grace)
        };
        for other in regular.filter(has_time).filter(|_| !shortened) {
            let what = format!("{}/{} before {}", sidecar.pod, sidecar.name, other.name);
            violations.push(InvariantViolation { rule: "sidecars end last", at, what });
        }
    }
    violations
}
