//! What waits for something else to come or to go first.

use super::container::ContainerSnapshot;
use super::context::ExplainContext;
use super::{Explanation, ExplanationCause, ending, phrases, probes};
use crate::pod::{ContainerKind, PodExt};
use crate::probe::ProbeKind;
use crate::report::{Activity, PodReport, StageReport};

/// A container is started in this time on a machine that is busy.
const LONG: u64 = 5;

/// A pod that waits for one of its name, asked for by either of the two: both are called the same.
pub(super) fn waits_for_namesake(context: &ExplainContext<'_>) -> Option<Explanation> {
    let (name, uid) = (context.pod.full_name(), context.pod.uid());
    let is_other = |it: &&PodReport| it.pod.full_name() == name && it.pod.uid() != uid;
    let other = context.node.pods.iter().find(is_other);
    let before = match (context.report.stage, other) {
        (StageReport::Waiting, other) => other,
        (_, Some(other)) if other.stage == StageReport::Waiting => Some(context.report),
        _ => return None,
    };
    let ending =
        before.and_then(|before| ending::explain(&ExplainContext::new(context.node, before)));
    let what = ending.map(|ending| format!(" {}", ending.sentence)).unwrap_or_default();
    let sentence = format!(
        "The pod as {} has it now waits for the one of its name before it to be gone.{what}",
        context.manifest_path()
    );
    let next = "Wait: two pods of one name never run at once.".to_owned();
    Some(Explanation::new(ExplanationCause::WaitsForNamesake, sentence, next))
}

/// Init containers that still run, and sidecars that have not come up.
pub(super) fn explain(context: &ExplainContext<'_>) -> Option<Explanation> {
    edited(context).or_else(|| init_runs(context)).or_else(|| sidecar(context))
}

/// A container that is stopped in a pod that goes on.
fn edited(context: &ExplainContext<'_>) -> Option<Explanation> {
    let doing = context.report.doing.as_ref()?;
    let container = doing.container.as_deref()?;
    let Activity::Stopping(grace) = doing.what else { return None };
    let why = context.event("Killing", Some(container)).map(|event| event.message.clone());
    let sentence = format!(
        "Container {container} is being stopped ({}) and has {} for it, since {} ago; then it is started as {} says now.",
        why.unwrap_or_else(|| "its definition changed".to_owned()),
        phrases::human_duration(std::time::Duration::from_secs(grace.max(0).unsigned_abs())),
        context.human_duration(doing.since),
        context.manifest_path()
    );
    let next = format!(
        "Wait; if it takes too long, have its program end on SIGTERM: {}.",
        context.logs(container)
    );
    Some(Explanation::new(ExplanationCause::Edited, sentence, next))
}

fn init_runs(context: &ExplainContext<'_>) -> Option<Explanation> {
    let seen = context.containers.iter().find(|seen| seen.is_init() && seen.running().is_some())?;
    let since = seen.running()?.started_at.as_ref().map(|at| context.human_duration(at.0));
    let waiting: Vec<String> = context
        .containers
        .iter()
        .filter(|other| other.waiting().is_some() && other.name() != seen.name())
        .map(|other| other.name().to_owned())
        .collect();
    let sentence = format!(
        "{} still runs, for {} now; {} after it.",
        seen.capitalized_label(),
        since.unwrap_or_else(|| "a while".to_owned()),
        match waiting.as_slice() {
            [] => "nothing comes".to_owned(),
            [one] => format!("container {one} comes"),
            all => format!("containers {} come", phrases::list(all)),
        }
    );
    let next = format!("See what it waits for: {}.", context.logs(seen.name()));
    Some(Explanation::new(ExplanationCause::InitRuns, sentence, next))
}

fn sidecar(context: &ExplainContext<'_>) -> Option<Explanation> {
    let is_slow = |seen: &&ContainerSnapshot<'_>| {
        seen.kind == ContainerKind::Sidecar && seen.running().is_some() && !seen.has_started()
    };
    let waits = context.containers.iter().any(|seen| seen.reason() == "PodInitializing");
    let seen = context.containers.iter().find(is_slow).filter(|_| waits)?;
    let since = seen.running()?.started_at.as_ref().map(|at| context.human_duration(at.0));
    let sentence = format!(
        "{} runs, for {} now, but its startupProbe has not succeeded, and what comes after it waits: {}.",
        seen.capitalized_label(),
        since.unwrap_or_else(|| "a while".to_owned()),
        probes::last_answer(context, seen.name(), ProbeKind::Startup)
    );
    let next = probes::next_step(context, seen, ProbeKind::Startup);
    Some(Explanation::new(ExplanationCause::SidecarNotStarted, sentence, next))
}

/// A container whose start takes long.
pub(super) fn takes_long(
    context: &ExplainContext<'_>,
    seen: &ContainerSnapshot<'_>,
) -> Option<Explanation> {
    let doing = context.doing(seen.name()).filter(|doing| doing.what == Activity::Starting)?;
    if doing.container.is_none() || context.age(doing.since).as_secs() < LONG {
        return None;
    }
    let sentence = format!(
        "The runtime is starting {}, for {} now: that should take a second.",
        seen.label(),
        context.human_duration(doing.since)
    );
    let next = "See what the runtime waits for: its log tells.".to_owned();
    Some(Explanation::new(ExplanationCause::StartTakesLong, sentence, next))
}
