//! Recent events of pods: a bounded number, and one entry with a count for an event that repeats.

use std::collections::VecDeque;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::event::{EventKind, PodEvent};
use oarsman_core::pod::PodExt;
use oarsman_core::report::EventReport;

/// The number of events that are kept; the oldest is dropped first.
const CAPACITY: usize = 1000;
/// Longer messages are cut, in bytes.
const MAX_MESSAGE_BYTES: usize = 4096;

/// Events, ordered by when they happened last.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentEvents(VecDeque<EventReport>);

impl RecentEvents {
    pub(super) fn record_event(&mut self, pod: &Pod, event: &PodEvent, now: Timestamp) {
        let new = EventReport {
            namespace: pod.full_name().namespace,
            pod: pod.full_name().name,
            uid: pod.uid().to_string(),
            is_warning: event.kind == EventKind::Warning,
            reason: event.reason.to_string(),
            message: truncated(&event.message).to_owned(),
            field_path: event.field_path.clone(),
            count: 1,
            first: now,
            last: now,
        };
        let before = self.0.iter().rposition(|old| is_same(old, &new));
        let before = before.and_then(|place| self.0.remove(place));
        let told = match before {
            Some(old) => EventReport { count: old.count.saturating_add(1), last: now, ..old },
            None => new,
        };
        self.0.push_back(told);
        if self.0.len() > CAPACITY {
            self.0.pop_front();
        }
    }

    pub(super) fn all(&self) -> Vec<EventReport> {
        self.0.iter().cloned().collect()
    }
}

/// Whether they differ in count and time only.
fn is_same(old: &EventReport, new: &EventReport) -> bool {
    old.uid == new.uid
        && old.reason == new.reason
        && old.message == new.message
        && old.field_path == new.field_path
        && old.is_warning == new.is_warning
}

fn truncated(message: &str) -> &str {
    &message[..message.floor_char_boundary(MAX_MESSAGE_BYTES)]
}
