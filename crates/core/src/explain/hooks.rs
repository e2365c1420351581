//! Hooks after a container's start.

use super::container::ContainerSnapshot;
use super::context::ExplainContext;
use super::root_message::root_message;
use super::{Explanation, ExplanationCause};
use crate::report::Activity;
use crate::time::wall_between;

/// The runtime's clock and ours are read one after the other, and the runtime's in whole seconds.
const MOMENT: u64 = 2;

pub(super) fn explain(
    context: &ExplainContext<'_>,
    seen: &ContainerSnapshot<'_>,
) -> Option<Explanation> {
    runs(context, seen).or_else(|| failed(context, seen))
}

fn runs(context: &ExplainContext<'_>, seen: &ContainerSnapshot<'_>) -> Option<Explanation> {
    let doing = context.doing(seen.name()).filter(|doing| doing.what == Activity::PostStart)?;
    let sentence = format!(
        "{} runs, and its postStart hook does too, for {} now: nothing after it is started before the hook has ended.",
        seen.capitalized_label(),
        context.human_duration(doing.since)
    );
    let next = format!(
        "Wait, or see what the hook waits for: {} in {}.",
        seen.field("lifecycle.postStart"),
        context.manifest_path()
    );
    Some(Explanation::new(ExplanationCause::PostStartRuns, sentence, next))
}

fn failed(context: &ExplainContext<'_>, seen: &ContainerSnapshot<'_>) -> Option<Explanation> {
    let why = match seen.reason() {
        "PostStartHookError" => format!(": {}", root_message(seen.message())),
        "CrashLoopBackOff" if ended_by_hook(context, seen) => String::new(),
        _ => return None,
    };
    let sentence = format!(
        "{} was started and stopped again because its postStart hook failed{why}{}.",
        seen.capitalized_label(),
        context.next_try()
    );
    let next = format!(
        "Mend the hook, {} in {}; {} shows what the container said meanwhile.",
        seen.field("lifecycle.postStart"),
        context.manifest_path(),
        context.logs_before(seen.name())
    );
    Some(Explanation::new(ExplanationCause::PostStartFailed, sentence, next))
}

/// Whether the hook failed in the life that ended last.
fn ended_by_hook(context: &ExplainContext<'_>, seen: &ContainerSnapshot<'_>) -> bool {
    let failed = context.event("FailedPostStartHook", Some(seen.name())).map(|event| event.last);
    let started = seen.last_end().and_then(|end| end.started_at.as_ref()).map(|at| at.0);
    let (Some(failed), Some(started)) = (failed, started) else { return false };
    wall_between(failed, started).as_secs() < MOMENT
}
