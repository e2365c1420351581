//! What waits for something else to come or to go first.

use super::case::Case;
use super::seen::Seen;
use super::{Cause, Explanation, ending, words};
use crate::pod::{ContainerKind, PodExt};
use crate::report::{Activity, PodReport, StageReport};

/// A container is started in this time on a machine that is busy.
const LONG: u64 = 5;

/// A pod that waits for one of its name, asked for by either of the two: both are called the same.
pub(super) fn waits_for_namesake(case: &Case<'_>) -> Option<Explanation> {
    let (name, uid) = (case.pod.full_name(), case.pod.uid());
    let is_other = |it: &&PodReport| it.pod.full_name() == name && it.pod.uid() != uid;
    let other = case.node.pods.iter().find(is_other);
    let before = match (case.report.stage, other) {
        (StageReport::Waiting, other) => other,
        (_, Some(other)) if other.stage == StageReport::Waiting => Some(case.report),
        _ => return None,
    };
    let ending = before.and_then(|before| ending::explain(&Case::new(case.node, before)));
    let what = ending.map(|ending| format!(" {}", ending.sentence)).unwrap_or_default();
    let sentence = format!(
        "The pod as {} has it now waits for the one of its name before it to be gone.{what}",
        case.place()
    );
    let next = "Wait: two pods of one name never run at once.".to_owned();
    Some(Explanation::new(Cause::WaitsForNamesake, sentence, next))
}

/// Init containers that still run, and sidecars that have not come up.
pub(super) fn explain(case: &Case<'_>) -> Option<Explanation> {
    edited(case).or_else(|| init_runs(case)).or_else(|| sidecar(case))
}

/// A container that is stopped in a pod that goes on.
fn edited(case: &Case<'_>) -> Option<Explanation> {
    let doing = case.report.doing.as_ref()?;
    let container = doing.container.as_deref()?;
    let Activity::Stopping(grace) = doing.what else { return None };
    let why = case.event("Killing", Some(container)).map(|event| event.message.clone());
    let sentence = format!(
        "Container {container} is being stopped ({}) and has {} for it, since {} ago; then it is started as {} says now.",
        why.unwrap_or_else(|| "its definition changed".to_owned()),
        words::lasting(std::time::Duration::from_secs(grace.max(0).unsigned_abs())),
        case.lasting(doing.since),
        case.place()
    );
    let next = format!(
        "Wait; if it takes too long, have its program end on SIGTERM: {}.",
        case.logs(container)
    );
    Some(Explanation::new(Cause::Edited, sentence, next))
}

fn init_runs(case: &Case<'_>) -> Option<Explanation> {
    let seen = case.containers.iter().find(|seen| seen.is_init() && seen.running().is_some())?;
    let since = seen.running()?.started_at.as_ref().map(|at| case.lasting(at.0));
    let waiting: Vec<String> = case
        .containers
        .iter()
        .filter(|other| other.waiting().is_some() && other.name() != seen.name())
        .map(|other| other.name().to_owned())
        .collect();
    let sentence = format!(
        "{} still runs, for {} now; {} after it.",
        seen.whose(),
        since.unwrap_or_else(|| "a while".to_owned()),
        match waiting.as_slice() {
            [] => "nothing comes".to_owned(),
            [one] => format!("container {one} comes"),
            all => format!("containers {} come", words::list(all)),
        }
    );
    let next = format!("See what it waits for: {}.", case.logs(seen.name()));
    Some(Explanation::new(Cause::InitRuns, sentence, next))
}

fn sidecar(case: &Case<'_>) -> Option<Explanation> {
    let is_slow = |seen: &&Seen<'_>| {
        seen.kind == ContainerKind::Sidecar && seen.running().is_some() && !seen.has_started()
    };
    let waits = case.containers.iter().any(|seen| seen.reason() == "PodInitializing");
    let seen = case.containers.iter().find(is_slow).filter(|_| waits)?;
    let since = seen.running()?.started_at.as_ref().map(|at| case.lasting(at.0));
    let sentence = format!(
        "{} runs, for {} now, but its startupProbe has not succeeded, and what comes after it waits: this version of the agent runs no probes.",
        seen.whose(),
        since.unwrap_or_else(|| "a while".to_owned())
    );
    let next = format!("Take {} out of {}.", seen.field("startupProbe"), case.place());
    Some(Explanation::new(Cause::SidecarNotStarted, sentence, next))
}

/// A container whose start takes long.
pub(super) fn takes_long(case: &Case<'_>, seen: &Seen<'_>) -> Option<Explanation> {
    let doing = case.doing(seen.name()).filter(|doing| doing.what == Activity::Starting)?;
    if doing.container.is_none() || case.age(doing.since).as_secs() < LONG {
        return None;
    }
    let sentence = format!(
        "The runtime is starting {}, for {} now: that should take a second.",
        seen.who(),
        case.lasting(doing.since)
    );
    let next = "See what the runtime waits for: its log tells.".to_owned();
    Some(Explanation::new(Cause::StartTakesLong, sentence, next))
}
