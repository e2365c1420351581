//! Invariants on starts: containers start only when wanted, one instance at a time, and not more often than allowed.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::pod::{ContainerKind, PodExt};

use super::InvariantViolation;
use super::hooks::fails_to_start;
use super::probes::may_restart;
use super::room::may_lack_room;
use super::timeline::{ContainerTimeline, Timeline};
use crate::{ExternalAction, SimulationResult};

/// How late a start may be that was under way when its pod ceased to be wanted: twice a call's deadline, and late effects after it.
const LATE: Duration = Duration::from_secs(300);
/// The same in a simulation without failing calls, though the agent may be killed.
const LATE_WITHOUT_FAULTS: Duration = Duration::from_secs(10);
/// The shortest wait between two restarts.
const SHORTEST_WAIT: Duration = Duration::from_millis(9_900);
/// After this long without a crash the back-off is reset.
const BACKOFF_RESET: Duration = Duration::from_secs(600);

/// The deadline of a call; a little less, since it began before its effect.
const CALL_DEADLINE: Duration = Duration::from_secs(119);

pub(super) fn never_two_of_one_name(
    _: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    for ((pod, name), same_name) in timeline.by_name() {
        for container in &same_name {
            let Some(at) = container.started else { continue };
            for other in same_name.iter().filter(|other| other.id != container.id && other.runs(at))
            {
                let what =
                    format!("{pod}/{name}#{} starts beside #{}", container.attempt, other.attempt);
                violations.push(InvariantViolation { rule: "never two of one name", at, what });
            }
        }
    }
    violations
}

pub(super) fn only_what_is_wanted_starts(
    result: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let late = if result.plan.is_fault_free() { LATE_WITHOUT_FAULTS } else { LATE };
    let started = timeline.containers.iter().filter_map(|c| Some((c, c.started?)));
    let unwanted = started.filter(|(container, at)| match wanted(result, &container.pod) {
        Some((from, to)) => *at < from || to.is_some_and(|to| *at > to + late),
        None => true,
    });
    let violation = |(container, at): (&ContainerTimeline, Duration)| InvariantViolation {
        rule: "only what is wanted starts",
        at,
        what: format!("{}/{}", container.pod, container.name),
    };
    unwanted.map(violation).collect()
}

/// The time in which a pod was wanted.
fn wanted(result: &SimulationResult, pod: &str) -> Option<(Duration, Option<Duration>)> {
    let mut window = None;
    let mut name = None;
    for (at, uid, action) in &result.actions {
        match action {
            ExternalAction::Create(new) | ExternalAction::WriteManifest(new)
                if uid.as_str() == pod =>
            {
                window = Some((*at, None));
                name = new.metadata.name.clone();
            }
            ExternalAction::WriteManifest(other)
                if name.is_some() && other.metadata.name == name =>
            {
                window = window.map(|(from, _)| (from, Some(*at)));
            }
            ExternalAction::Delete { .. } | ExternalAction::RemoveManifest { .. }
                if uid.as_str() == pod =>
            {
                window = window.map(|(from, to): (_, Option<Duration>)| (from, to.or(Some(*at))));
            }
            _ => {}
        }
    }
    window
}

/// The pod as it was created; edits change images only.
pub(super) fn pod<'a>(result: &'a SimulationResult, uid: &str) -> Option<&'a Pod> {
    result.actions.iter().find_map(|(_, of, action)| match action {
        ExternalAction::Create(pod) | ExternalAction::WriteManifest(pod) if of.as_str() == uid => {
            Some(pod)
        }
        _ => None,
    })
}

/// Whether an action or fault may have ended or restarted containers of the pod.
pub(super) fn is_disturbed(result: &SimulationResult, timeline: &Timeline, uid: &str) -> bool {
    let acted = result.actions.iter().any(|(_, of, action)| {
        let disturbs = matches!(
            action,
            ExternalAction::Edit { .. }
                | ExternalAction::Evict { .. }
                | ExternalAction::RemoveCgroup { .. }
                | ExternalAction::BreakSandbox { .. }
        );
        of.as_str() == uid && disturbs
    });
    let of_pod = |container: &&ContainerTimeline| container.pod == uid;
    let lost = timeline.containers.iter().filter(of_pod).any(|c| c.lost.is_some());
    acted
        || may_lack_room(result, uid)
        || lost
        || timeline.has_fault("restart")
        || many_sandboxes(timeline, uid)
        || fails_to_start(result, timeline, uid)
}

fn many_sandboxes(timeline: &Timeline, uid: &str) -> bool {
    timeline.sandboxes.iter().filter(|sandbox| sandbox.pod == uid).count() > 1
}

pub(super) fn the_restart_policy_is_obeyed(
    result: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    for ((uid, name), same_name) in timeline.by_name() {
        let Some(pod) = pod(result, uid) else { continue };
        let Some(wanted) = pod.container(name) else { continue };
        let is_excused = is_disturbed(result, timeline, uid) || may_restart(result, &wanted.spec);
        if is_excused || wanted.kind == ContainerKind::Sidecar {
            continue;
        }
        for pair in same_name.windows(2) {
            let (Some((_, code)), Some(at)) = (pair[0].exited, pair[1].started) else { continue };
            let may = match (pod.restart_policy(), wanted.kind) {
                ("Never", _) => false,
                ("OnFailure", _) | (_, ContainerKind::Init) => code != 0,
                _ => true,
            };
            if !may && pair[0].started.is_some() {
                let what = format!("{uid}/{name} starts again after exit code {code}");
                violations.push(InvariantViolation {
                    rule: "the restart policy is obeyed",
                    at,
                    what,
                });
            }
        }
    }
    violations
}

pub(super) fn crashes_are_followed_by_a_wait(
    result: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let mut violations = Vec::new();
    // A wall clock that jumps forward ends a back-off early.
    if result.actions.iter().any(|(_, _, action)| matches!(action, ExternalAction::ClockJump(_))) {
        return violations;
    }
    for ((uid, name), same_name) in timeline.by_name() {
        let mut quick: Option<Duration> = None;
        if is_disturbed(result, timeline, uid) {
            continue;
        }
        for pair in same_name.windows(2) {
            let (Some((ended, _)), Some(at)) = (pair[0].exited, pair[1].started) else { continue };
            let is_quick = at.saturating_sub(ended) < SHORTEST_WAIT && pair[0].ended_by_itself();
            // A restarted agent does not know of earlier crashes.
            let remembered = quick.is_some_and(|before| {
                at.saturating_sub(before) < BACKOFF_RESET && !timeline.agent_died_within(before, at)
            });
            if is_quick && remembered {
                let what = format!("{uid}/{name}#{} starts at once", pair[1].attempt);
                violations.push(InvariantViolation {
                    rule: "crashes are followed by a wait",
                    at,
                    what,
                });
            }
            if is_quick {
                quick = Some(at);
            }
        }
    }
    violations
}

/// A container that a failed call has made after all is adopted and started, not made once more: unless reading it failed too, or the agent was
/// killed in between.
pub(super) fn what_was_made_is_used(
    result: &SimulationResult,
    timeline: &Timeline,
) -> Vec<InvariantViolation> {
    let unused = timeline.containers.iter().filter(|container| {
        container.started.is_none() && !timeline.start_calls.contains(&container.id)
    });
    let wasted = unused.filter_map(|container| {
        let at = container.removed?;
        let still_wanted = wanted(result, &container.pod).is_some_and(|(_, to)| to.is_none());
        // The read follows when the call that made it has run into its deadline.
        let looked_for = container.created + CALL_DEADLINE;
        let mut later = timeline.failed_reads.iter().filter(|t| looked_for <= **t && **t <= at);
        let excused = at < looked_for
            || timeline.has_fault("late effect")
            || later.next().is_some()
            || timeline.agent_died_within(container.created, at)
            || is_disturbed(result, timeline, &container.pod);
        (still_wanted && !excused).then(|| InvariantViolation {
            rule: "what was made is used",
            at,
            what: format!("{}/{}#{}", container.pod, container.name, container.attempt),
        })
    });
    wasted.collect()
}
