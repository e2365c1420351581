//! Pods that are being stopped.

use std::time::Duration;

use super::case::Case;
use super::seen::Seen;
use super::words;
use super::{Cause, Explanation};
use crate::report::{Activity, Doing, StageReport};

/// After its grace period, what is killed is gone in this time.
const MOMENT: u64 = 10;

pub(super) fn explain(case: &Case<'_>) -> Option<Explanation> {
    match case.report.stage {
        StageReport::Terminating => Some(stopping(case)),
        StageReport::Terminated | StageReport::Finished => Some(giving_back(case)),
        StageReport::Waiting | StageReport::Syncing => None,
    }
}

fn stopping(case: &Case<'_>) -> Explanation {
    match case.report.doing.as_ref() {
        Some(doing) => match doing.what {
            Activity::PreStop => pre_stop(case, doing),
            Activity::Stopping(grace) => within_grace(case, doing, grace),
            Activity::GivingBack => giving_back(case),
            _ => plain(case),
        },
        None => plain(case),
    }
}

fn who(case: &Case<'_>, doing: &Doing) -> String {
    let name = doing.container.as_deref().unwrap_or_default();
    let seen = case.containers.iter().find(|seen| seen.name() == name);
    seen.map_or_else(|| "Something of the pod".to_owned(), Seen::whose)
}

fn pre_stop(case: &Case<'_>, doing: &Doing) -> Explanation {
    let sentence = format!(
        "The pod is being stopped: the preStop hook of {} runs, for {} now, and may take all of the grace period ({}).",
        who(case, doing).to_lowercase(),
        case.lasting(doing.since),
        words::lasting(spec_grace(case))
    );
    let next = "Wait until the hook has ended, or the grace period is over.".to_owned();
    Explanation::new(Cause::PreStopRuns, sentence, next)
}

fn spec_grace(case: &Case<'_>) -> Duration {
    let seconds = case.pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    Duration::from_secs(seconds.unwrap_or(30).max(0).unsigned_abs())
}

fn within_grace(case: &Case<'_>, doing: &Doing, grace: i64) -> Explanation {
    let grace = Duration::from_secs(grace.max(0).unsigned_abs());
    let age = case.age(doing.since);
    if age > grace + Duration::from_secs(MOMENT) {
        return overdue(case, doing, grace);
    }
    let sentence = format!(
        "The pod is being stopped: {} was asked to end {} ago and has {} for it.",
        who(case, doing).to_lowercase(),
        words::lasting(age),
        words::lasting(grace)
    );
    let next = "Wait: what has not ended by then is killed.".to_owned();
    Explanation::new(Cause::Stopping, sentence, next)
}

fn overdue(case: &Case<'_>, doing: &Doing, grace: Duration) -> Explanation {
    let sentence = format!(
        "The pod should be gone: {} had {} to end and is still there after {}; the runtime does not get it killed.",
        who(case, doing).to_lowercase(),
        words::lasting(grace),
        case.lasting(doing.since)
    );
    let next = format!(
        "Look for a process that the kernel does not let die (state D: `ps -eo pid,stat,wchan,cmd | grep ' D'`), such as one on a dead NFS mount, and at what the runtime says: {}.",
        case.runtime_log()
    );
    Explanation::new(Cause::StopOverdue, sentence, next)
}

fn plain(case: &Case<'_>) -> Explanation {
    let sentence = format!("The pod is being stopped{}.", last_try(case));
    let next = format!("Wait; {} shows what happens.", case.describe());
    Explanation::new(Cause::Stopping, sentence, next)
}

/// What became of the last try, if it did not succeed, in the words of the worker's state.
fn last_try(case: &Case<'_>) -> String {
    let waits_for = case.report.waits_for.as_deref();
    waits_for.map(|why| format!("; {why}")).unwrap_or_default()
}

fn giving_back(case: &Case<'_>) -> Explanation {
    let since = case.report.doing.as_ref().map(|doing| case.lasting(doing.since));
    let since = since.map(|since| format!(", for {since} now")).unwrap_or_default();
    let sentence = format!(
        "Nothing of the pod runs any more; its volumes, directories and cgroup are given back{since}{}.",
        last_try(case)
    );
    let next =
        format!("Wait; if it takes long, something still uses them: `lsof +D {}`.", case.node.root);
    Explanation::new(Cause::GivingBack, sentence, next)
}
