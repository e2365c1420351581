//! Pods that have ended for good.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, PodStatus};

use super::container::ContainerSnapshot;
use super::context::ExplainContext;
use super::crashes;
use super::phrases;
use super::root_message::root_message;
use super::{Explanation, ExplanationCause};
use crate::report::StageReport;
use crate::status::deadline;
use crate::status::phase::Phase;

pub(super) fn explain(context: &ExplainContext<'_>) -> Option<Explanation> {
    let status = context.status()?;
    // A pod that is being removed is explained by `ending`; one that the node killed and that stays has a reason in its status.
    let was_killed = context.report.stage == StageReport::Finished && status.reason.is_some();
    if context.report.leaving && !was_killed {
        return None;
    }
    match Phase::of(status)? {
        Phase::Succeeded => Some(succeeded(context)),
        Phase::Failed => Some(failed(context, status)),
        Phase::Pending | Phase::Running => None,
    }
}

fn succeeded(context: &ExplainContext<'_>) -> Explanation {
    let when = last_end(context).and_then(|end| ago(context, end)).unwrap_or_default();
    let sentence = format!("The pod did what it was for and ended{when}, as it should.");
    Explanation::new(
        ExplanationCause::Succeeded,
        sentence,
        format!("Nothing to do. {}", run_again(context)),
    )
}

fn failed(context: &ExplainContext<'_>, status: &PodStatus) -> Explanation {
    match status.reason.as_deref().filter(|reason| !reason.is_empty()) {
        Some(deadline::REASON) => overdue(context),
        Some(reason) => verdict(context, reason, status.message.as_deref().unwrap_or_default()),
        None => by_container(context),
    }
}

fn overdue(context: &ExplainContext<'_>) -> Explanation {
    let limit = context.pod.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
    let limit = limit.map(|limit| format!(" ({limit})")).unwrap_or_default();
    let sentence = format!(
        "The pod was stopped because it was active for longer than its spec.activeDeadlineSeconds{limit} allows."
    );
    let next = format!(
        "Raise spec.activeDeadlineSeconds in {}. {}",
        context.manifest_path(),
        run_again(context)
    );
    Explanation::new(ExplanationCause::DeadlineExceeded, sentence, next)
}

/// The node itself put an end to it.
fn verdict(context: &ExplainContext<'_>, reason: &str, message: &str) -> Explanation {
    let sentence = format!("The node put an end to the pod ({reason}): {}.", root_message(message));
    let next =
        format!("Make room for it, or change what it asks for in {}.", context.manifest_path());
    Explanation::new(ExplanationCause::Rejected, sentence, next)
}

fn by_container(context: &ExplainContext<'_>) -> Explanation {
    let broken = context.containers.iter().find(|seen| seen.ended().is_some_and(is_failure));
    let Some((seen, end)) = broken.and_then(|seen| Some((seen, seen.ended()?))) else {
        let next = format!("See what happened to it: {}.", context.describe());
        return Explanation::new(ExplanationCause::Failed, "The pod has failed.", next);
    };
    let describe_end = crashes::describe_end(seen, end);
    let when = ago(context, end).unwrap_or_default();
    let phrases = termination_message(end);
    let (cause, after) = match seen.is_init() {
        true => (ExplanationCause::InitFailed, ", so that no other container was started"),
        false => (ExplanationCause::Failed, ""),
    };
    let sentence =
        format!("The pod failed{when}: {} {describe_end}{phrases}{after}.", seen.label());
    let next = format!("Read why: {}. {}", context.logs(seen.name()), run_again(context));
    Explanation::new(cause, sentence, next)
}

fn is_failure(end: &ContainerStateTerminated) -> bool {
    end.exit_code != 0 || end.reason.as_deref() == Some("OOMKilled")
}

/// Where the output of the ended container is found.
fn termination_message(end: &ContainerStateTerminated) -> String {
    match end.message.as_deref().map(root_message).filter(|said| !said.is_empty()) {
        Some(said) if end.reason.as_deref() != Some("StartError") => format!(" and said: {said}"),
        _ => String::new(),
    }
}

fn last_end<'a>(context: &ExplainContext<'a>) -> Option<&'a ContainerStateTerminated> {
    let ends = context.containers.iter().filter_map(ContainerSnapshot::ended);
    ends.max_by_key(|end| end.finished_at.as_ref().map(|at| at.0))
}

fn ago(context: &ExplainContext<'_>, end: &ContainerStateTerminated) -> Option<String> {
    let at = end.finished_at.as_ref()?.0;
    Some(format!(" {} ago", phrases::human_duration(context.age(at))))
}

/// A pod that has ended is never started again; one that is not the same is.
fn run_again(context: &ExplainContext<'_>) -> String {
    match &context.report.place {
        Some(place) => format!("To run it again, change {place}: any change makes it a new pod."),
        None => "To run it again, make a new pod of it.".to_owned(),
    }
}
