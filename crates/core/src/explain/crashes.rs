//! Containers that end again and again.

use std::time::Duration;

use k8s_openapi::api::core::v1::ContainerStateTerminated;

use super::container::ContainerSnapshot;
use super::context::ExplainContext;
use super::root_message::root_message;
use super::{Explanation, ExplanationCause};
use super::{phrases, start_error};
use crate::restart::{AfterExit, after_exit};
use crate::status::context::exit_of;
use crate::time::wall_between;

/// A container that was started again and runs for less than this may well end the same way.
const FRESH: u64 = 10;
/// A container that we told to end is dead a moment after its grace period is over, as seen by clocks of whole seconds.
const MOMENT: u64 = 3;

/// A container that ended and is, or was just, started again.
pub(super) fn explain(
    context: &ExplainContext<'_>,
    seen: &ContainerSnapshot<'_>,
) -> Option<Explanation> {
    let end = seen.last_end()?;
    let fresh = seen.running().is_some_and(|running| {
        let since = running.started_at.as_ref().map(|at| at.0);
        since.is_some_and(|since| context.age(since).as_secs() < FRESH)
    });
    let loops = seen.reason() == "CrashLoopBackOff"
        || (seen.ended().is_some() && is_started_again(context, seen, end))
        || (fresh && seen.restarts() > 0);
    // One that ended as we asked it to is no crash.
    if !loops || (end.exit_code != 137 && was_stopped_by_us(context, seen, end)) {
        return None;
    }
    let message = end.message.as_deref().unwrap_or_default();
    // The runtime's last step, in the container's own name, is the program itself.
    let foreign = message.starts_with("exec ") && message.contains("exec format error");
    let unstarted = matches!(end.reason.as_deref(), Some("StartError" | "ContainerCannotRun"));
    Some(if unstarted || foreign {
        start_error::explain(context, seen, message, context.next_try())
    } else {
        by_end(context, seen, end)
    })
}

fn is_started_again(
    context: &ExplainContext<'_>,
    seen: &ContainerSnapshot<'_>,
    end: &ContainerStateTerminated,
) -> bool {
    after_exit(context.pod, seen.kind, &seen.spec, &exit_of(end)) != AfterExit::Leave
}

/// How a container ended, as what it did.
pub(super) fn describe_end(seen: &ContainerSnapshot<'_>, end: &ContainerStateTerminated) -> String {
    match end.reason.as_deref() {
        Some("OOMKilled") => {
            let limit = seen.memory_limit().map(|limit| format!("its limit of {limit}"));
            let limit = limit.unwrap_or_else(|| "there was".to_owned());
            format!("used more memory than {limit} and was killed (OOMKilled, exit code 137)")
        }
        Some("StartError" | "ContainerCannotRun") => {
            format!(
                "could not be started: {}",
                root_message(end.message.as_deref().unwrap_or_default())
            )
        }
        _ => format!("ended with {}", phrases::exit(end.exit_code)),
    }
}

/// How often it ended, and when it is started again.
fn tail(context: &ExplainContext<'_>, seen: &ContainerSnapshot<'_>) -> String {
    format!("{}{}", so_far(seen), outlook(context, seen))
}

/// How often it ended; the one that runs now has not yet.
fn so_far(seen: &ContainerSnapshot<'_>) -> String {
    let running = seen.running().is_some();
    let ends = seen.restarts().saturating_add(i32::from(!running));
    format!(", {} so far", phrases::count(ends.max(1)))
}

fn outlook(context: &ExplainContext<'_>, seen: &ContainerSnapshot<'_>) -> String {
    match seen.running() {
        Some(_) => "; it was just started again".to_owned(),
        None => context.next_try(),
    }
}

fn by_end(
    context: &ExplainContext<'_>,
    seen: &ContainerSnapshot<'_>,
    end: &ContainerStateTerminated,
) -> Explanation {
    let (describe_end, tail) = (describe_end(seen, end), tail(context, seen));
    let capitalized_label = format!("{} (image {})", seen.capitalized_label(), seen.image());
    let read = format!("Read why: {}.", context.logs_before(seen.name()));
    let plain = |cause, next: String| {
        Explanation::new(cause, format!("{capitalized_label} {describe_end}{tail}."), next)
    };
    match (end.reason.as_deref(), end.exit_code) {
        (Some("OOMKilled"), _) => {
            let field = seen.field("resources.limits.memory");
            let next =
                format!("Raise {field} in {}, or have it use less.", context.manifest_path());
            plain(ExplanationCause::OutOfMemory, next)
        }
        (_, 0) => ends_by_itself(context, seen, &tail),
        (_, 126) => plain(ExplanationCause::CommandNotExecutable, read),
        (_, 127) => plain(ExplanationCause::CommandNotFound, read),
        (_, 137) => {
            after_grace(context, seen, end, &tail).unwrap_or_else(|| killed(context, seen, &tail))
        }
        (_, code) if phrases::signal_of(code).is_some() => {
            plain(ExplanationCause::CrashesBySignal, read)
        }
        _ if seen.is_init() => {
            let (so_far, outlook) = (so_far(seen), outlook(context, seen));
            let held = "so that no other container is started";
            let sentence = format!("{capitalized_label} {describe_end}{so_far}, {held}{outlook}.");
            Explanation::new(ExplanationCause::InitFails, sentence, read)
        }
        _ => plain(ExplanationCause::Crashes, read),
    }
}

fn ends_by_itself(
    context: &ExplainContext<'_>,
    seen: &ContainerSnapshot<'_>,
    tail: &str,
) -> Explanation {
    let sentence = format!(
        "{} ends by itself with exit code 0 (success), and its restart policy Always starts it again{tail}.",
        seen.capitalized_label()
    );
    let next = format!(
        "If it is to run once, set spec.restartPolicy to Never or OnFailure in {}; if it is to stay, keep its program in the foreground.",
        context.manifest_path()
    );
    Explanation::new(ExplanationCause::EndsByItself, sentence, next)
}

/// Whether we had asked it to end just before it did.
fn was_stopped_by_us(
    context: &ExplainContext<'_>,
    seen: &ContainerSnapshot<'_>,
    end: &ContainerStateTerminated,
) -> bool {
    let Some(asked) = context.event("Killing", Some(seen.name())) else { return false };
    let Some(ended) = end.finished_at.as_ref().map(|at| at.0) else { return false };
    let grace = grace(context).saturating_add(MOMENT);
    wall_between(asked.last, ended).as_secs() <= grace
        && wall_between(ended, asked.last).as_secs() <= 1
}

fn grace(context: &ExplainContext<'_>) -> u64 {
    let spec = context.pod.spec.as_ref();
    let seconds = spec.and_then(|spec| spec.termination_grace_period_seconds).unwrap_or(30);
    seconds.max(0).unsigned_abs()
}

/// A container that did not heed our asking, with what became of it since.
pub(super) fn after_grace(
    context: &ExplainContext<'_>,
    seen: &ContainerSnapshot<'_>,
    end: &ContainerStateTerminated,
    tail: &str,
) -> Option<Explanation> {
    if end.exit_code != 137 || !was_stopped_by_us(context, seen, end) {
        return None;
    }
    let why = context.event("Killing", Some(seen.name()))?.message.as_str();
    let grace = phrases::human_duration(Duration::from_secs(grace(context)));
    let sentence = format!(
        "{} was asked to end ({why}), did not within its grace period of {grace}, and was killed{tail}.",
        seen.capitalized_label()
    );
    let next = format!(
        "Have its program end on SIGTERM, or raise spec.terminationGracePeriodSeconds in {}.",
        context.manifest_path()
    );
    Some(Explanation::new(ExplanationCause::KilledAfterGrace, sentence, next))
}

fn killed(context: &ExplainContext<'_>, seen: &ContainerSnapshot<'_>, tail: &str) -> Explanation {
    let sentence = format!(
        "{} was killed (SIGKILL, exit code 137), and not for its own memory limit: by somebody on this machine, or by the kernel because the whole machine ran out of memory{tail}.",
        seen.capitalized_label()
    );
    let next = format!(
        "Look for its end with `dmesg | grep -i -e oom -e killed`, and at what it said: {}.",
        context.logs_before(seen.name())
    );
    Explanation::new(ExplanationCause::Killed, sentence, next)
}
