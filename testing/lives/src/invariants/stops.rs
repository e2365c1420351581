//! Containers are asked before they are killed, given their time, and left alone otherwise.

use std::time::Duration;

use oarsman_core::pod::PodExt;

use super::Violation;
use super::starts::{is_disturbed, pod};
use super::story::Story;
use crate::{Act, Testimony};

/// Whole seconds are what runtimes count, and begun ones are free.
pub(super) const TOLERANCE: Duration = Duration::from_millis(1_100);

/// Between being asked and being killed there is at least the shortest grace that anybody allowed the pod.
pub(super) fn grace_is_respected(life: &Testimony, story: &Story) -> Vec<Violation> {
    let mut violations = Vec::new();
    if !life.plan.is_calm() {
        return violations;
    }
    for container in &story.containers {
        let Some(killed) = container.killed else { continue };
        let Some(pod) = pod(life, &container.pod) else { continue };
        let hook =
            pod.container(&container.name).is_some_and(|wanted| wanted.spec.lifecycle.is_some());
        // A hook and waiting for others are paid from the same purse; two seconds are always left.
        let sidecar_or_hook = hook || pod.init().iter().any(|spec| spec.name == container.name);
        let grace = if sidecar_or_hook {
            Duration::from_secs(2)
        } else {
            shortest_grace(life, &container.pod)
        };
        let had = container.asked.map(|asked| killed.saturating_sub(asked));
        if had.is_none_or(|had| had + TOLERANCE < grace) {
            let what = format!("{}/{} had {had:?} of {grace:?}", container.pod, container.name);
            violations.push(Violation { rule: "grace is respected", at: killed, what });
        }
    }
    violations
}

/// The shortest grace that anybody allowed a pod: its spec, a deletion, an eviction; an orphan has next to none.
pub(super) fn shortest_grace(life: &Testimony, uid: &str) -> Duration {
    let spec = pod(life, uid).and_then(|pod| pod.spec()?.termination_grace_period_seconds);
    let asked = life.acts.iter().filter(|(_, of, _)| of.as_str() == uid);
    let asked = asked.filter_map(|(_, _, act)| match act {
        Act::Delete { grace, .. } => *grace,
        Act::Evict { grace, .. } => Some(*grace),
        // A pod whose source forgets it while the agent is dead is an orphan when it comes back.
        Act::TakeAway { .. } => Some(0),
        _ => None,
    });
    // So is one that was replaced.
    let replaced = life.acts.iter().any(|(_, of, act)| {
        let name = |pod: &k8s_openapi::api::core::v1::Pod| pod.metadata.name.clone();
        matches!(act, Act::Place(other) if of.as_str() != uid
            && pod(life, uid).is_some_and(|pod| name(pod) == name(other)))
    });
    let seconds = asked.chain(spec).chain(replaced.then_some(0)).min().unwrap_or(30);
    Duration::from_secs(seconds.max(2).unsigned_abs())
}

/// A container of a pod that is wanted, unchanged and undisturbed is never asked to end: also not by an agent that has just
/// come back and has to find out what runs.
pub(super) fn nothing_is_stopped_without_a_reason(
    life: &Testimony,
    story: &Story,
) -> Vec<Violation> {
    let stopped = story.containers.iter().filter_map(|container| {
        let at = [container.asked, container.killed].into_iter().flatten().min()?;
        let uid = container.pod.as_str();
        let pod = pod(life, uid)?;
        let lasts = pod.restart_policy() == "Always"
            && pod.spec().is_some_and(|spec| spec.active_deadline_seconds.is_none());
        let ended = life.acts.iter().any(|(_, of, act)| {
            of.as_str() == uid && matches!(act, Act::Delete { .. } | Act::TakeAway { .. })
        });
        let replaced = life.acts.iter().any(|(_, of, act)| {
            matches!(act, Act::Place(other)
                if other.metadata.name == pod.metadata.name && of.as_str() != uid)
        });
        let reason = ended || replaced || is_disturbed(life, story, uid);
        (lasts && !reason).then(|| Violation {
            rule: "nothing is stopped without a reason",
            at,
            what: format!("{uid}/{}#{}", container.name, container.attempt),
        })
    });
    stopped.collect()
}
