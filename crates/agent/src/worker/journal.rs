//! What the worker writes into the book for people: where its pod stands, what is being done to it, and when it is tried again.

use oarsman_core::lifecycle::{
    Event, KillOutcome, KillReason, ReleaseOutcome, Stage, State, SyncOutcome,
};
use oarsman_core::report::{Activity, StageReport};
use oarsman_core::time::Mono;

use super::Worker;
use super::room::Room;
use crate::book::Busy;

/// When a pod is tried again, by how the last work on it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// All went well: nothing needs to be.
    No,
    /// Then.
    At(Mono),
    /// When the worker wakes.
    OnWaking,
}

impl Again {
    /// None when the event tells nothing of it.
    pub(super) fn after(event: &Event) -> Option<Self> {
        match event {
            Event::SyncDone { outcome: SyncOutcome::BackOff { until }, .. } => {
                Some(Self::At(*until))
            }
            Event::SyncDone {
                outcome: SyncOutcome::Failed(_) | SyncOutcome::NetworkNotReady,
                ..
            }
            | Event::KillDone(KillOutcome::Failed(_) | KillOutcome::StillRunning)
            | Event::ReleaseDone(ReleaseOutcome::Failed(_)) => Some(Self::OnWaking),
            Event::SyncDone { .. } | Event::KillDone(_) | Event::ReleaseDone(_) => Some(Self::No),
            Event::Wanted(_) | Event::Removed | Event::Kill(_) | Event::Hint(_) | Event::Wake => {
                None
            }
        }
    }
}

impl Worker {
    /// Where the pod stands.
    pub(super) fn note_stage(&self, state: &State) {
        let stage = match state.stage() {
            Stage::Syncing => StageReport::Syncing,
            Stage::Terminating => StageReport::Terminating,
            Stage::Terminated => StageReport::Terminated,
            Stage::Finished => StageReport::Finished,
        };
        self.room.node.book.stage(&self.room.uid, stage);
    }

    /// When the pod is tried again.
    pub(super) fn note_next_try(&self, again: Again) {
        let at = match again {
            Again::No => None,
            Again::At(at) => Some(at),
            Again::OnWaking => self.wake,
        };
        self.room.node.book.next_try(&self.room.uid, at);
    }
}

impl Room {
    /// Something that takes its time is done to the pod, until what this returns is dropped.
    #[must_use]
    pub(super) fn busy(&self, what: Activity) -> Busy {
        self.node.book.begin(&self.uid, what, None)
    }

    /// The same to one of its containers.
    #[must_use]
    pub(super) fn busy_with(&self, container: &str, what: Activity) -> Busy {
        self.node.book.begin(&self.uid, what, Some(container))
    }

    /// Whoever is killed for another reason than its own end is taken away.
    pub(super) fn note_kill(&self, why: KillReason) {
        match why {
            KillReason::Terminal | KillReason::CgroupGone | KillReason::Rejected => {}
            KillReason::Deleted
            | KillReason::Removed
            | KillReason::Orphan
            | KillReason::Asked(_) => self.node.book.leaving(&self.uid),
        }
    }
}
