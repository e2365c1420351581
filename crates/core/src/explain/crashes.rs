//! Containers that end again and again.

use std::time::Duration;

use k8s_openapi::api::core::v1::ContainerStateTerminated;

use super::case::Case;
use super::essence::essence;
use super::seen::Seen;
use super::{Cause, Explanation};
use super::{start_error, words};
use crate::restart::{AfterExit, after_exit};
use crate::status::scene::exit_of;
use crate::time::wall_between;

/// A container that was started again and runs for less than this may well end the same way.
const FRESH: u64 = 10;
/// A container that we told to end is dead a moment after its grace period is over, as seen by clocks of whole seconds.
const MOMENT: u64 = 3;

/// A container that ended and is, or was just, started again.
pub(super) fn explain(case: &Case<'_>, seen: &Seen<'_>) -> Option<Explanation> {
    let end = seen.last_end()?;
    let fresh = seen.running().is_some_and(|running| {
        let since = running.started_at.as_ref().map(|at| at.0);
        since.is_some_and(|since| case.age(since).as_secs() < FRESH)
    });
    let loops = seen.reason() == "CrashLoopBackOff"
        || (seen.ended().is_some() && is_started_again(case, seen, end))
        || (fresh && seen.restarts() > 0);
    // One that ended as we asked it to is no crash.
    if !loops || (end.exit_code != 137 && was_stopped_by_us(case, seen, end)) {
        return None;
    }
    let message = end.message.as_deref().unwrap_or_default();
    // The runtime's last step, in the container's own name, is the program itself.
    let foreign = message.starts_with("exec ") && message.contains("exec format error");
    let unstarted = matches!(end.reason.as_deref(), Some("StartError" | "ContainerCannotRun"));
    Some(if unstarted || foreign {
        start_error::explain(case, seen, message, case.again())
    } else {
        by_end(case, seen, end)
    })
}

fn is_started_again(case: &Case<'_>, seen: &Seen<'_>, end: &ContainerStateTerminated) -> bool {
    after_exit(case.pod, seen.kind, &seen.spec, &exit_of(end)) != AfterExit::Leave
}

/// How a container ended, as what it did.
pub(super) fn how(seen: &Seen<'_>, end: &ContainerStateTerminated) -> String {
    match end.reason.as_deref() {
        Some("OOMKilled") => {
            let limit = seen.memory_limit().map(|limit| format!("its limit of {limit}"));
            let limit = limit.unwrap_or_else(|| "there was".to_owned());
            format!("used more memory than {limit} and was killed (OOMKilled, exit code 137)")
        }
        Some("StartError" | "ContainerCannotRun") => {
            format!("could not be started: {}", essence(end.message.as_deref().unwrap_or_default()))
        }
        _ => format!("ended with {}", words::exit(end.exit_code)),
    }
}

/// How often it ended, and when it is started again.
fn tail(case: &Case<'_>, seen: &Seen<'_>) -> String {
    format!("{}{}", so_far(seen), outlook(case, seen))
}

/// How often it ended; the one that runs now has not yet.
fn so_far(seen: &Seen<'_>) -> String {
    let running = seen.running().is_some();
    let ends = seen.restarts().saturating_add(i32::from(!running));
    format!(", {} so far", words::times(ends.max(1)))
}

fn outlook(case: &Case<'_>, seen: &Seen<'_>) -> String {
    match seen.running() {
        Some(_) => "; it was just started again".to_owned(),
        None => case.again(),
    }
}

fn by_end(case: &Case<'_>, seen: &Seen<'_>, end: &ContainerStateTerminated) -> Explanation {
    let (how, tail) = (how(seen, end), tail(case, seen));
    let whose = format!("{} (image {})", seen.whose(), seen.image());
    let read = format!("Read why: {}.", case.logs_before(seen.name()));
    let plain =
        |cause, next: String| Explanation::new(cause, format!("{whose} {how}{tail}."), next);
    match (end.reason.as_deref(), end.exit_code) {
        (Some("OOMKilled"), _) => {
            let field = seen.field("resources.limits.memory");
            let next = format!("Raise {field} in {}, or have it use less.", case.place());
            plain(Cause::OutOfMemory, next)
        }
        (_, 0) => ends_by_itself(case, seen, &tail),
        (_, 126) => plain(Cause::CommandNotExecutable, read),
        (_, 127) => plain(Cause::CommandNotFound, read),
        (_, 137) => {
            after_grace(case, seen, end, &tail).unwrap_or_else(|| killed(case, seen, &tail))
        }
        (_, code) if words::signal_of(code).is_some() => plain(Cause::CrashesBySignal, read),
        _ if seen.is_init() => {
            let (so_far, outlook) = (so_far(seen), outlook(case, seen));
            let held = "so that no other container is started";
            let sentence = format!("{whose} {how}{so_far}, {held}{outlook}.");
            Explanation::new(Cause::InitFails, sentence, read)
        }
        _ => plain(Cause::Crashes, read),
    }
}

fn ends_by_itself(case: &Case<'_>, seen: &Seen<'_>, tail: &str) -> Explanation {
    let sentence = format!(
        "{} ends by itself with exit code 0 (success), and its restart policy Always starts it again{tail}.",
        seen.whose()
    );
    let next = format!(
        "If it is to run once, set spec.restartPolicy to Never or OnFailure in {}; if it is to stay, keep its program in the foreground.",
        case.place()
    );
    Explanation::new(Cause::EndsByItself, sentence, next)
}

/// Whether we had asked it to end just before it did.
fn was_stopped_by_us(case: &Case<'_>, seen: &Seen<'_>, end: &ContainerStateTerminated) -> bool {
    let Some(asked) = case.event("Killing", Some(seen.name())) else { return false };
    let Some(ended) = end.finished_at.as_ref().map(|at| at.0) else { return false };
    let grace = grace(case).saturating_add(MOMENT);
    wall_between(asked.last, ended).as_secs() <= grace
        && wall_between(ended, asked.last).as_secs() <= 1
}

fn grace(case: &Case<'_>) -> u64 {
    let spec = case.pod.spec.as_ref();
    let seconds = spec.and_then(|spec| spec.termination_grace_period_seconds).unwrap_or(30);
    seconds.max(0).unsigned_abs()
}

/// A container that did not heed our asking, with what became of it since.
pub(super) fn after_grace(
    case: &Case<'_>,
    seen: &Seen<'_>,
    end: &ContainerStateTerminated,
    tail: &str,
) -> Option<Explanation> {
    if end.exit_code != 137 || !was_stopped_by_us(case, seen, end) {
        return None;
    }
    let why = case.event("Killing", Some(seen.name()))?.message.as_str();
    let grace = words::lasting(Duration::from_secs(grace(case)));
    let sentence = format!(
        "{} was asked to end ({why}), did not within its grace period of {grace}, and was killed{tail}.",
        seen.whose()
    );
    let next = format!(
        "Have its program end on SIGTERM, or raise spec.terminationGracePeriodSeconds in {}.",
        case.place()
    );
    Some(Explanation::new(Cause::KilledAfterGrace, sentence, next))
}

fn killed(case: &Case<'_>, seen: &Seen<'_>, tail: &str) -> Explanation {
    let sentence = format!(
        "{} was killed (SIGKILL, exit code 137), and not for its own memory limit: by somebody on this machine, or by the kernel because the whole machine ran out of memory{tail}.",
        seen.whose()
    );
    let next = format!(
        "Look for its end with `dmesg | grep -i -e oom -e killed`, and at what it said: {}.",
        case.logs_before(seen.name())
    );
    Explanation::new(Cause::Killed, sentence, next)
}
