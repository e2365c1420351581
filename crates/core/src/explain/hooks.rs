//! Hooks after a container's start.

use super::case::Case;
use super::essence::essence;
use super::seen::Seen;
use super::{Cause, Explanation};
use crate::report::Activity;
use crate::time::wall_between;

/// The runtime's clock and ours are read one after the other, and the runtime's in whole seconds.
const MOMENT: u64 = 2;

pub(super) fn explain(case: &Case<'_>, seen: &Seen<'_>) -> Option<Explanation> {
    runs(case, seen).or_else(|| failed(case, seen))
}

fn runs(case: &Case<'_>, seen: &Seen<'_>) -> Option<Explanation> {
    let doing = case.doing(seen.name()).filter(|doing| doing.what == Activity::PostStart)?;
    let sentence = format!(
        "{} runs, and its postStart hook does too, for {} now: nothing after it is started before the hook has ended.",
        seen.whose(),
        case.lasting(doing.since)
    );
    let next = format!(
        "Wait, or see what the hook waits for: {} in {}.",
        seen.field("lifecycle.postStart"),
        case.place()
    );
    Some(Explanation::new(Cause::PostStartRuns, sentence, next))
}

fn failed(case: &Case<'_>, seen: &Seen<'_>) -> Option<Explanation> {
    let why = match seen.reason() {
        "PostStartHookError" => format!(": {}", essence(seen.message())),
        "CrashLoopBackOff" if ended_by_hook(case, seen) => String::new(),
        _ => return None,
    };
    let sentence = format!(
        "{} was started and stopped again because its postStart hook failed{why}{}.",
        seen.whose(),
        case.again()
    );
    let next = format!(
        "Mend the hook, {} in {}; {} shows what the container said meanwhile.",
        seen.field("lifecycle.postStart"),
        case.place(),
        case.logs_before(seen.name())
    );
    Some(Explanation::new(Cause::PostStartFailed, sentence, next))
}

/// Whether the hook failed in the life that ended last.
fn ended_by_hook(case: &Case<'_>, seen: &Seen<'_>) -> bool {
    let failed = case.event("FailedPostStartHook", Some(seen.name())).map(|event| event.last);
    let started = seen.last_end().and_then(|end| end.started_at.as_ref()).map(|at| at.0);
    let (Some(failed), Some(started)) = (failed, started) else { return false };
    wall_between(failed, started).as_secs() < MOMENT
}
