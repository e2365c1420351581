//! When the node status is reported: at once after a change, and periodically without one.

use std::time::Duration;

use crate::requeue::{Jitter, jittered_around};
use crate::time::Mono;

/// The reports of a node so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportSchedule {
    every: Duration,
    /// When the next is due though nothing changed; none before the first.
    next: Option<Mono>,
}

impl ReportSchedule {
    /// None yet; afterwards so often.
    pub fn every(every: Duration) -> Self {
        Self { every, next: None }
    }

    /// Whether it is time to tell a status that did not change.
    pub fn are_due(&self, now: Mono) -> bool {
        self.next.is_none_or(|next| now >= next)
    }

    /// The status was reported. After a change the next one is moved by up to half of the time, so that nodes which changed together do not
    /// all report together for ever.
    pub fn reported(&mut self, changed: bool, now: Mono, jitter: Jitter) {
        let is_first = self.next.is_none();
        let wait =
            if changed || is_first { jittered_around(self.every, jitter) } else { self.every };
        self.next = Some(now + wait);
    }
}
