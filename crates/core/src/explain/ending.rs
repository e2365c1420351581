//! Pods that are being stopped.

use std::time::Duration;

use super::container::ContainerSnapshot;
use super::context::ExplainContext;
use super::phrases;
use super::{Explanation, ExplanationCause};
use crate::report::{Activity, PodActivity, StageReport};

/// After its grace period, what is killed is gone in this time.
const MOMENT: u64 = 10;

pub(super) fn explain(context: &ExplainContext<'_>) -> Option<Explanation> {
    match context.report.stage {
        StageReport::Terminating => Some(stopping(context)),
        StageReport::Terminated | StageReport::Finished => Some(giving_back(context)),
        StageReport::Waiting | StageReport::Syncing => None,
    }
}

fn stopping(context: &ExplainContext<'_>) -> Explanation {
    match context.report.doing.as_ref() {
        Some(doing) => match doing.what {
            Activity::PreStop => pre_stop(context, doing),
            Activity::Stopping(grace) => within_grace(context, doing, grace),
            Activity::GivingBack => giving_back(context),
            _ => plain(context),
        },
        None => plain(context),
    }
}

fn label(context: &ExplainContext<'_>, doing: &PodActivity) -> String {
    let name = doing.container.as_deref().unwrap_or_default();
    let seen = context.containers.iter().find(|seen| seen.name() == name);
    seen.map_or_else(|| "Something of the pod".to_owned(), ContainerSnapshot::capitalized_label)
}

fn pre_stop(context: &ExplainContext<'_>, doing: &PodActivity) -> Explanation {
    let sentence = format!(
        "The pod is being stopped: the preStop hook of {} runs, for {} now, and may take all of the grace period ({}).",
        label(context, doing).to_lowercase(),
        context.human_duration(doing.since),
        phrases::human_duration(spec_grace(context))
    );
    let next = "Wait until the hook has ended, or the grace period is over.".to_owned();
    Explanation::new(ExplanationCause::PreStopRuns, sentence, next)
}

fn spec_grace(context: &ExplainContext<'_>) -> Duration {
    let seconds = context.pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    Duration::from_secs(seconds.unwrap_or(30).max(0).unsigned_abs())
}

fn within_grace(context: &ExplainContext<'_>, doing: &PodActivity, grace: i64) -> Explanation {
    let grace = Duration::from_secs(grace.max(0).unsigned_abs());
    let age = context.age(doing.since);
    if age > grace + Duration::from_secs(MOMENT) {
        return overdue(context, doing, grace);
    }
    let sentence = format!(
        "The pod is being stopped: {} was asked to end {} ago and has {} for it.",
        label(context, doing).to_lowercase(),
        phrases::human_duration(age),
        phrases::human_duration(grace)
    );
    let next = "Wait: what has not ended by then is killed.".to_owned();
    Explanation::new(ExplanationCause::Stopping, sentence, next)
}

fn overdue(context: &ExplainContext<'_>, doing: &PodActivity, grace: Duration) -> Explanation {
    let sentence = format!(
        "The pod should be gone: {} had {} to end and is still there after {}; the runtime does not get it killed.",
        label(context, doing).to_lowercase(),
        phrases::human_duration(grace),
        context.human_duration(doing.since)
    );
    let next = format!(
        "Look for a process that the kernel does not let die (state D: `ps -eo pid,stat,wchan,cmd | grep ' D'`), such as one on a dead NFS mount, and at what the runtime says: {}.",
        context.runtime_log()
    );
    Explanation::new(ExplanationCause::StopOverdue, sentence, next)
}

fn plain(context: &ExplainContext<'_>) -> Explanation {
    let sentence = format!("The pod is being stopped{}.", last_try(context));
    let next = format!("Wait; {} shows what happens.", context.describe());
    Explanation::new(ExplanationCause::Stopping, sentence, next)
}

/// What became of the last try, if it did not succeed, in the words of the worker's state.
fn last_try(context: &ExplainContext<'_>) -> String {
    let waits_for = context.report.waits_for.as_deref();
    waits_for.map(|why| format!("; {why}")).unwrap_or_default()
}

fn giving_back(context: &ExplainContext<'_>) -> Explanation {
    let since = context.report.doing.as_ref().map(|doing| context.human_duration(doing.since));
    let since = since.map(|since| format!(", for {since} now")).unwrap_or_default();
    let sentence = format!(
        "Nothing of the pod runs any more; its volumes, directories and cgroup are given back{since}{}.",
        last_try(context)
    );
    let next = format!(
        "Wait; if it takes long, something still uses them: `lsof +D {}`.",
        context.node.root
    );
    Explanation::new(ExplanationCause::GivingBack, sentence, next)
}
