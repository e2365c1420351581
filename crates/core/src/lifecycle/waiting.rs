//! The time between two pieces of work on a pod: how long it lasts and why.

use std::fmt;

use crate::requeue::WorkResult;
use crate::time::Mono;

use super::{Context, Effect};

/// A wait, with its end and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    until: Mono,
    reason: WaitReason,
    hints_from: Mono,
}

/// Why a pod waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// All is well; it is looked at now and then all the same.
    Synced,
    /// The runtime's network is not up.
    NetworkNotReady,
    /// A container or an image is held back.
    BackOff {
        /// When the first back-off ends.
        until: Mono,
    },
    /// The work was told to stop and has to be done again.
    Interrupted,
    /// Something still runs although every call to stop it went well.
    StillRunning,
    /// The last try failed.
    Failed(String),
}

impl Waiting {
    /// When the next try is due.
    pub fn until(&self) -> Mono {
        self.until
    }

    /// What it waits for.
    pub fn reason(&self) -> &WaitReason {
        &self.reason
    }

    /// When something that did not succeed is tried again, as people are told: the look at the end of a back-off is spread, the
    /// back-off is not. None when all is well.
    pub fn next_try(&self) -> Option<Mono> {
        match self.reason {
            WaitReason::Synced => None,
            WaitReason::BackOff { until } => Some(until),
            WaitReason::NetworkNotReady
            | WaitReason::Interrupted
            | WaitReason::StillRunning
            | WaitReason::Failed(_) => Some(self.until),
        }
    }

    /// The wait after some work.
    pub(super) fn after(work: WorkResult, reason: WaitReason, cx: &Context) -> Self {
        let until = cx.requeue.next(work, cx.now, cx.jitter);
        let hints_from = cx.requeue.hints_from(work, cx.now);
        Self { until, reason, hints_from }
    }

    /// The same wait, ending at `moment` at the latest. A moment that has passed must not make us spin.
    pub(super) fn ending_by(self, moment: Option<Mono>, cx: &Context) -> Self {
        let moment = moment.map(|m| m.max(cx.now + cx.requeue.spacing));
        let until = moment.map_or(self.until, |m| self.until.min(m));
        Self { until, ..self }
    }

    /// The same wait, but no longer than hints have to wait.
    pub(super) fn shortened(self) -> Self {
        let until = self.until.min(self.hints_from);
        Self { until, ..self }
    }

    /// Whether a hint need not wait.
    pub(super) fn accepts_hints(&self, now: Mono) -> bool {
        self.hints_from <= now
    }

    /// Whether the wait is over.
    pub(super) fn is_over(&self, now: Mono) -> bool {
        self.until <= now
    }

    /// The timer that ends it.
    pub(super) fn wake(&self) -> Effect {
        Effect::WakeAt(self.until)
    }
}

impl WaitReason {
    /// The error of the last try, if that is the reason.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Failed(error) => Some(error),
            Self::Synced
            | Self::NetworkNotReady
            | Self::BackOff { .. }
            | Self::Interrupted
            | Self::StillRunning => None,
        }
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Synced => f.write_str("all is well"),
            Self::NetworkNotReady => f.write_str("the runtime's network is not ready"),
            Self::BackOff { .. } => f.write_str("a container or an image is backed off"),
            Self::Interrupted => f.write_str("the last try was interrupted"),
            Self::StillRunning => f.write_str("something still runs after it was stopped"),
            Self::Failed(error) => write!(f, "the last try failed: {error}"),
        }
    }
}
