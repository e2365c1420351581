//! Containers start when they should, once at a time, and no more often than they may.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::pod::{ContainerKind, PodExt};

use super::Violation;
use super::hooks::fails_to_start;
use super::story::{Life, Story};
use crate::{Act, Testimony};

/// How late a start may be that was under way when its pod ceased to be wanted: a call's deadline, twice over, and
/// what comes late after it.
const LATE: Duration = Duration::from_secs(300);
/// The same in a life in which every call does what it says, though the agent may die.
const LATE_IN_CALM: Duration = Duration::from_secs(10);
/// The shortest wait between two restarts.
const SHORTEST_WAIT: Duration = Duration::from_millis(9_900);
/// After this long without a crash the count begins anew.
const FORGIVEN: Duration = Duration::from_secs(600);

/// When a call is given up; a little less, for it began before its effect.
const CALL_DEADLINE: Duration = Duration::from_secs(119);

pub(super) fn never_two_of_one_name(_: &Testimony, story: &Story) -> Vec<Violation> {
    let mut violations = Vec::new();
    for ((pod, name), lives) in story.of_name() {
        for life in &lives {
            let Some(at) = life.started else { continue };
            for other in lives.iter().filter(|other| other.id != life.id && other.runs(at)) {
                let what =
                    format!("{pod}/{name}#{} starts beside #{}", life.attempt, other.attempt);
                violations.push(Violation { rule: "never two of one name", at, what });
            }
        }
    }
    violations
}

pub(super) fn only_what_is_wanted_starts(life: &Testimony, story: &Story) -> Vec<Violation> {
    let late = if life.plan.is_calm() { LATE_IN_CALM } else { LATE };
    let started = story.containers.iter().filter_map(|c| Some((c, c.started?)));
    let unwanted = started.filter(|(container, at)| match wanted(life, &container.pod) {
        Some((from, to)) => *at < from || to.is_some_and(|to| *at > to + late),
        None => true,
    });
    let violation = |(container, at): (&Life, Duration)| Violation {
        rule: "only what is wanted starts",
        at,
        what: format!("{}/{}", container.pod, container.name),
    };
    unwanted.map(violation).collect()
}

/// From when to when a pod was wanted.
fn wanted(life: &Testimony, pod: &str) -> Option<(Duration, Option<Duration>)> {
    let mut window = None;
    let mut name = None;
    for (at, uid, act) in &life.acts {
        match act {
            Act::Create(new) | Act::Place(new) if uid.as_str() == pod => {
                window = Some((*at, None));
                name = new.metadata.name.clone();
            }
            Act::Place(other) if name.is_some() && other.metadata.name == name => {
                window = window.map(|(from, _)| (from, Some(*at)));
            }
            Act::Delete { .. } | Act::TakeAway { .. } if uid.as_str() == pod => {
                window = window.map(|(from, to): (_, Option<Duration>)| (from, to.or(Some(*at))));
            }
            _ => {}
        }
    }
    window
}

/// The pod as it was made; edits change images only.
pub(super) fn pod<'a>(life: &'a Testimony, uid: &str) -> Option<&'a Pod> {
    life.acts.iter().find_map(|(_, of, act)| match act {
        Act::Create(pod) | Act::Place(pod) if of.as_str() == uid => Some(pod),
        _ => None,
    })
}

/// Whether anything happened to the pod that may end or restart its containers for reasons of its own.
pub(super) fn is_disturbed(life: &Testimony, story: &Story, uid: &str) -> bool {
    let acted = life.acts.iter().any(|(_, of, act)| {
        let disturbs = matches!(
            act,
            Act::Edit { .. }
                | Act::Evict { .. }
                | Act::RemoveCgroup { .. }
                | Act::BreakSandbox { .. }
        );
        of.as_str() == uid && disturbs
    });
    let of_pod = |container: &&Life| container.pod == uid;
    let lost = story.containers.iter().filter(of_pod).any(|c| c.lost.is_some());
    acted
        || lost
        || story.has_mishap("restart")
        || many_sandboxes(story, uid)
        || fails_to_start(life, story, uid)
}

fn many_sandboxes(story: &Story, uid: &str) -> bool {
    story.sandboxes.iter().filter(|sandbox| sandbox.pod == uid).count() > 1
}

pub(super) fn the_restart_policy_is_obeyed(life: &Testimony, story: &Story) -> Vec<Violation> {
    let mut violations = Vec::new();
    for ((uid, name), lives) in story.of_name() {
        let Some(pod) = pod(life, uid) else { continue };
        let Some(wanted) = pod.container(name) else { continue };
        if is_disturbed(life, story, uid) || wanted.kind == ContainerKind::Sidecar {
            continue;
        }
        for pair in lives.windows(2) {
            let (Some((_, code)), Some(at)) = (pair[0].exited, pair[1].started) else { continue };
            let may = match (pod.restart_policy(), wanted.kind) {
                ("Never", _) => false,
                ("OnFailure", _) | (_, ContainerKind::Init) => code != 0,
                _ => true,
            };
            if !may && pair[0].started.is_some() {
                let what = format!("{uid}/{name} starts again after exit code {code}");
                violations.push(Violation { rule: "the restart policy is obeyed", at, what });
            }
        }
    }
    violations
}

pub(super) fn crashes_are_followed_by_a_wait(life: &Testimony, story: &Story) -> Vec<Violation> {
    let mut violations = Vec::new();
    // A wall clock that jumps forward makes a wait look over.
    if life.acts.iter().any(|(_, _, act)| matches!(act, Act::Jump(_))) {
        return violations;
    }
    for ((uid, name), lives) in story.of_name() {
        let mut quick: Option<Duration> = None;
        if is_disturbed(life, story, uid) {
            continue;
        }
        for pair in lives.windows(2) {
            let (Some((ended, _)), Some(at)) = (pair[0].exited, pair[1].started) else { continue };
            let is_quick = at.saturating_sub(ended) < SHORTEST_WAIT && pair[0].ended_by_itself();
            // A new agent knows nothing of crashes before it.
            let remembered = quick.is_some_and(|before| {
                at.saturating_sub(before) < FORGIVEN && !story.agent_died_within(before, at)
            });
            if is_quick && remembered {
                let what = format!("{uid}/{name}#{} starts at once", pair[1].attempt);
                violations.push(Violation { rule: "crashes are followed by a wait", at, what });
            }
            if is_quick {
                quick = Some(at);
            }
        }
    }
    violations
}

/// A container that a call has made without our hearing of it is found and started, not made once more: unless looking for
/// it failed too, or the agent died in between.
pub(super) fn what_was_made_is_used(life: &Testimony, story: &Story) -> Vec<Violation> {
    let unused = story.containers.iter().filter(|container| {
        container.started.is_none() && !story.start_calls.contains(&container.id)
    });
    let wasted = unused.filter_map(|container| {
        let at = container.removed?;
        let still_wanted = wanted(life, &container.pod).is_some_and(|(_, to)| to.is_none());
        // The look for it comes when the call that made it has run into its deadline.
        let looked_for = container.created + CALL_DEADLINE;
        let mut later = story.failed_looks.iter().filter(|t| looked_for <= **t && **t <= at);
        let excused = at < looked_for
            || story.has_mishap("late effect")
            || later.next().is_some()
            || story.agent_died_within(container.created, at)
            || is_disturbed(life, story, &container.pod);
        (still_wanted && !excused).then(|| Violation {
            rule: "what was made is used",
            at,
            what: format!("{}/{}#{}", container.pod, container.name, container.attempt),
        })
    });
    wasted.collect()
}
