//! Pods that have ended for good.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, PodStatus};

use super::case::Case;
use super::crashes;
use super::essence::essence;
use super::seen::Seen;
use super::words;
use super::{Cause, Explanation};
use crate::status::deadline;
use crate::status::phase::Phase;

pub(super) fn explain(case: &Case<'_>) -> Option<Explanation> {
    // A pod that is being removed is explained by `ending`.
    let status = case.status().filter(|_| !case.report.leaving)?;
    match Phase::of(status)? {
        Phase::Succeeded => Some(succeeded(case)),
        Phase::Failed => Some(failed(case, status)),
        Phase::Pending | Phase::Running => None,
    }
}

fn succeeded(case: &Case<'_>) -> Explanation {
    let when = last_end(case).and_then(|end| ago(case, end)).unwrap_or_default();
    let sentence = format!("The pod did what it was for and ended{when}, as it should.");
    Explanation::new(Cause::Succeeded, sentence, format!("Nothing to do. {}", run_again(case)))
}

fn failed(case: &Case<'_>, status: &PodStatus) -> Explanation {
    match status.reason.as_deref().filter(|reason| !reason.is_empty()) {
        Some(deadline::REASON) => overdue(case),
        Some(reason) => verdict(case, reason, status.message.as_deref().unwrap_or_default()),
        None => by_container(case),
    }
}

fn overdue(case: &Case<'_>) -> Explanation {
    let limit = case.pod.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
    let limit = limit.map(|limit| format!(" ({limit})")).unwrap_or_default();
    let sentence = format!(
        "The pod was stopped because it was active for longer than its spec.activeDeadlineSeconds{limit} allows."
    );
    let next = format!("Raise spec.activeDeadlineSeconds in {}. {}", case.place(), run_again(case));
    Explanation::new(Cause::DeadlineExceeded, sentence, next)
}

/// The node itself put an end to it.
fn verdict(case: &Case<'_>, reason: &str, message: &str) -> Explanation {
    let sentence = format!("The node put an end to the pod ({reason}): {}.", essence(message));
    let next = format!("Make room for it, or change what it asks for in {}.", case.place());
    Explanation::new(Cause::Rejected, sentence, next)
}

fn by_container(case: &Case<'_>) -> Explanation {
    let broken = case.containers.iter().find(|seen| seen.ended().is_some_and(is_failure));
    let Some((seen, end)) = broken.and_then(|seen| Some((seen, seen.ended()?))) else {
        let next = format!("See what happened to it: {}.", case.describe());
        return Explanation::new(Cause::Failed, "The pod has failed.", next);
    };
    let how = crashes::how(seen, end);
    let when = ago(case, end).unwrap_or_default();
    let words = last_words(end);
    let (cause, after) = match seen.is_init() {
        true => (Cause::InitFailed, ", so that no other container was started"),
        false => (Cause::Failed, ""),
    };
    let sentence = format!("The pod failed{when}: {} {how}{words}{after}.", seen.who());
    let next = format!("Read why: {}. {}", case.logs(seen.name()), run_again(case));
    Explanation::new(cause, sentence, next)
}

fn is_failure(end: &ContainerStateTerminated) -> bool {
    end.exit_code != 0 || end.reason.as_deref() == Some("OOMKilled")
}

/// What it left behind for those who ask.
fn last_words(end: &ContainerStateTerminated) -> String {
    match end.message.as_deref().map(essence).filter(|said| !said.is_empty()) {
        Some(said) if end.reason.as_deref() != Some("StartError") => format!(" and said: {said}"),
        _ => String::new(),
    }
}

fn last_end<'a>(case: &Case<'a>) -> Option<&'a ContainerStateTerminated> {
    let ends = case.containers.iter().filter_map(Seen::ended);
    ends.max_by_key(|end| end.finished_at.as_ref().map(|at| at.0))
}

fn ago(case: &Case<'_>, end: &ContainerStateTerminated) -> Option<String> {
    let at = end.finished_at.as_ref()?.0;
    Some(format!(" {} ago", words::lasting(case.age(at))))
}

/// A pod that has ended is never started again; one that is not the same is.
fn run_again(case: &Case<'_>) -> String {
    match &case.report.place {
        Some(place) => format!("To run it again, change {place}: any change makes it a new pod."),
        None => "To run it again, make a new pod of it.".to_owned(),
    }
}
