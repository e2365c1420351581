//! `activeDeadlineSeconds`: how long a pod may be active on the node.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodStatus};

use crate::event::PodEvent;
use crate::pod::PodExt;
use crate::time::wall_between;
use jiff::Timestamp;

/// The reason of a pod that was active for too long.
pub const REASON: &str = "DeadlineExceeded";
/// What a person is told about it.
pub const MESSAGE: &str = "Pod was active on the node longer than the specified deadline";

/// How a pod stands to its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// It has none, or has not begun.
    None,
    /// It has so long still: look again then.
    In(Duration),
    /// It has been active for too long.
    Exceeded,
}

/// How the pod stands to its deadline, counted from the start time in its status.
pub fn check(pod: &Pod, status: &PodStatus, now: Timestamp) -> Deadline {
    let limit = pod.spec().and_then(|spec| spec.active_deadline_seconds);
    let (Some(limit), Some(start)) = (limit, &status.start_time) else { return Deadline::None };
    let limit = Duration::from_secs(limit.max(0).unsigned_abs());
    match limit.saturating_sub(wall_between(start.0, now)) {
        Duration::ZERO => Deadline::Exceeded,
        left => Deadline::In(left),
    }
}

/// What is said when the deadline strikes: once, with the first status that has it.
pub fn deadline_event(published: Option<&PodStatus>, status: &PodStatus) -> Option<PodEvent> {
    let is_exceeded = |status: &PodStatus| status.reason.as_deref() == Some(REASON);
    let is_new = is_exceeded(status) && !published.is_some_and(is_exceeded);
    is_new.then(|| PodEvent::normal(REASON, MESSAGE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{at, pod};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    #[test]
    fn a_deadline_is_counted_from_the_start_time() {
        let rows = [
            (None, Some(0), 100, Deadline::None),
            (Some(10), None, 100, Deadline::None),
            (Some(10), Some(0), 4, Deadline::In(Duration::from_secs(6))),
            (Some(10), Some(0), 9, Deadline::In(Duration::from_secs(1))),
            (Some(10), Some(0), 10, Deadline::Exceeded),
            (Some(10), Some(0), 11, Deadline::Exceeded),
            (Some(10), Some(5), 0, Deadline::In(Duration::from_secs(10))),
        ];
        for (limit, start, now, expected) in rows {
            let pod = pod().spec(|spec| spec.active_deadline_seconds = limit).build();
            let start_time = start.map(|start| Time(at(start)));
            let status = PodStatus { start_time, ..PodStatus::default() };
            assert_eq!(check(&pod, &status, at(now)), expected, "{limit:?} {start:?} {now}");
        }
    }
    #[test]
    fn the_deadline_is_an_event_once() {
        let status = |reason: Option<&str>| PodStatus {
            reason: reason.map(ToOwned::to_owned),
            ..PodStatus::default()
        };
        let (calm, struck) = (status(None), status(Some("DeadlineExceeded")));
        let sentence = "Pod was active on the node longer than the specified deadline";
        let event = Some(PodEvent::normal("DeadlineExceeded", sentence));
        let rows = [
            (None, &calm, None),
            (Some(&calm), &calm, None),
            (None, &struck, event.clone()),
            (Some(&calm), &struck, event),
            (Some(&struck), &struck, None),
        ];
        for (published, status, expected) in rows {
            assert_eq!(deadline_event(published, status), expected);
        }
    }
}
