//! Invariants on hooks.

use k8s_openapi::api::core::v1::{Container, LifecycleHandler};
use oarsman_core::pod::PodExt;

use super::InvariantViolation;
use super::starts::pod;
use super::timeline::Timeline;
use crate::SimulationResult;
use crate::random_pods::post_start_always_fails;

/// Before a running container is stopped, its preStop command was begun, by the same incarnation of the agent. The world does not see sleeps.
pub(super) fn hooks_come_before_stops(
    result: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let skipped = timeline.stop_calls.iter().filter_map(|(at, of_agent, id)| {
        let container = timeline.containers.iter().find(|container| container.id == *id)?;
        let wanted = pod(result, &container.pod)?.container(&container.name)?;
        let hook = wanted.spec.lifecycle.as_ref()?.pre_stop.as_ref()?;
        let expected = format!("{id} {:?}", hook.exec.as_ref()?.command.clone()?);
        let begun = timeline.commands.iter().any(|command| {
            command.incarnation == *of_agent && command.at <= *at && command.subject == expected
        });
        (container.runs(*at) && !begun).then(|| InvariantViolation {
            rule: "hooks come before stops",
            at: *at,
            what: format!("{}/{} was not heard before its end", container.pod, container.name),
        })
    });
    skipped.collect()
}

/// Whether a postStart hook of the pod failed, or always fails: that ends containers which would go on.
pub(super) fn fails_to_start(result: &SimulationResult, timeline: &Timeline, uid: &str) -> bool {
    let Some(pod) = pod(result, uid) else { return false };
    pod.all_containers().iter().any(|wanted| {
        post_start_always_fails(&wanted.spec) || {
            let same_name = timeline.containers.iter();
            let mut same_name = same_name.filter(|c| c.pod == uid && c.name == wanted.spec.name);
            same_name.any(|container| has_failed(timeline, &container.id, &wanted.spec))
        }
    })
}

fn has_failed(timeline: &Timeline, id: &str, spec: &Container) -> bool {
    let hook = spec.lifecycle.as_ref().and_then(|hooks| hooks.post_start.as_ref());
    let command = |hook: &LifecycleHandler| hook.exec.as_ref()?.command.clone();
    let Some(command) = hook.and_then(command) else { return false };
    let expected = format!("{id} {command:?}");
    timeline.commands.iter().any(|command| command.failed && command.subject == expected)
}
