//! A pod that is kept running.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::requeue::WorkResult;
use crate::time::Mono;

use super::effect::{Effect, KillReason, SyncReason};
use super::ending_pod::EndingPod;
use super::event::{Event, Hint, KillOutcome, SyncOutcome};
use super::grace::Grace;
use super::terminating::{OngoingWork, Terminating, TerminationRequest};
use super::waiting::{WaitReason, Waiting};
use super::{Context, State, Transition};

/// A pod that is kept running: the pod as its source has it, and what is being done about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Syncing {
    pod: Arc<Pod>,
    progress: SyncingProgress,
}

#[derive(Clone, Debug, PartialEq)]
enum SyncingProgress {
    /// A sync is under way. What came since then is answered by one more sync.
    Sync { again: Option<SyncReason> },
    /// Everything is being killed because the cgroup vanished under it. A sync follows.
    Reset { grace: Grace, then: SyncReason },
    /// Nothing is under way; the timer is set.
    Waiting(Waiting),
}

impl Syncing {
    /// A pod that is new here.
    pub(super) fn begin(pod: Arc<Pod>) -> Transition {
        start(pod, SyncReason::First)
    }

    pub(super) fn pod(&self) -> &Arc<Pod> {
        &self.pod
    }

    pub(super) fn waiting(&self) -> Option<&Waiting> {
        match &self.progress {
            SyncingProgress::Waiting(waiting) => Some(waiting),
            SyncingProgress::Sync { .. } | SyncingProgress::Reset { .. } => None,
        }
    }

    pub(super) fn step(self, event: Event, cx: &Context) -> Transition {
        match event {
            Event::Wanted(pod) => Self { pod, ..self }.updated(cx),
            Event::Removed => self.removed(),
            Event::Kill(request) => {
                self.terminate(TerminationRequest::from_kill_request(request, cx))
            }
            Event::Hint(hint) => self.hinted(hint, cx),
            Event::Wake => self.woken(cx),
            Event::SyncDone { outcome, look_again } => self.synced(outcome, look_again, cx),
            Event::KillDone(outcome) => self.reset_done(outcome, cx),
            Event::ReadDone(_)
            | Event::ReleaseDone(_)
            | Event::RecordDone(_)
            | Event::CleanupDone(_) => self.keep_state(),
        }
    }

    fn updated(self, cx: &Context) -> Transition {
        match KillReason::of(&self.pod) {
            Some(why) => self.terminate(TerminationRequest::plain(why)),
            None => self.ask(SyncReason::Updated, cx),
        }
    }

    fn hinted(self, hint: Hint, cx: &Context) -> Transition {
        self.ask(SyncReason::Hinted(hint), cx)
    }

    /// A timer may fire that was set before the work that has just ended: the wait that counts is the one we are in.
    fn woken(self, cx: &Context) -> Transition {
        match self.waiting() {
            Some(waiting) if waiting.is_over(cx.now) => start(self.pod, SyncReason::Due),
            Some(_) | None => self.keep_state(),
        }
    }

    /// Sync as soon as possible. Of several reasons the most urgent counts.
    fn ask(self, why: SyncReason, cx: &Context) -> Transition {
        let Self { pod, progress } = self;
        let progress = match progress {
            SyncingProgress::Sync { again } => {
                SyncingProgress::Sync { again: again.max(Some(why)) }
            }
            SyncingProgress::Reset { grace, then } => {
                SyncingProgress::Reset { grace, then: then.max(why) }
            }
            SyncingProgress::Waiting(waiting)
                if why.can_wait() && !waiting.accepts_hints(cx.now) =>
            {
                SyncingProgress::Waiting(waiting.shortened())
            }
            SyncingProgress::Waiting(_) => return start(pod, why),
        };
        Self { pod, progress }.keep_state()
    }

    fn synced(self, outcome: SyncOutcome, look_again: Option<Mono>, cx: &Context) -> Transition {
        let SyncingProgress::Sync { again } = self.progress else {
            return self.keep_state();
        };
        let (work, reason) = match outcome {
            SyncOutcome::Terminal => return ended(self.pod),
            SyncOutcome::CgroupGone => return reset(self.pod, again),
            SyncOutcome::Ok => (WorkResult::Done, WaitReason::Synced),
            SyncOutcome::BackOff { until } => {
                (WorkResult::BackOff { until }, WaitReason::BackOff { until })
            }
            SyncOutcome::NetworkNotReady => {
                (WorkResult::NetworkNotReady, WaitReason::NetworkNotReady)
            }
            SyncOutcome::Failed(error) => (WorkResult::Failed, WaitReason::Failed(error)),
            SyncOutcome::Cancelled => (WorkResult::Failed, WaitReason::Interrupted),
        };
        let waiting = Waiting::after(work, reason, cx).ending_by(look_again, cx);
        let state = Self { pod: self.pod, progress: SyncingProgress::Waiting(waiting) };
        match again {
            Some(why) => state.ask(why, cx),
            None => state.keep_state(),
        }
    }

    /// A reset that failed is found necessary again by the next sync.
    fn reset_done(self, outcome: KillOutcome, cx: &Context) -> Transition {
        let SyncingProgress::Reset { then, .. } = self.progress else {
            return self.keep_state();
        };
        let reason = match outcome {
            KillOutcome::Ok => return start(self.pod, then),
            KillOutcome::StillRunning => WaitReason::StillRunning,
            KillOutcome::Failed(error) => WaitReason::Failed(error),
        };
        let waiting = Waiting::after(WorkResult::Failed, reason, cx);
        Self { pod: self.pod, progress: SyncingProgress::Waiting(waiting) }.keep_state()
    }

    fn removed(self) -> Transition {
        let ongoing_work = self.progress.ongoing_work();
        let ending = EndingPod::Gone(Some(self.pod));
        Terminating::enter(ending, TerminationRequest::plain(KillReason::Removed), ongoing_work)
    }

    fn terminate(self, order: TerminationRequest) -> Transition {
        let ongoing_work = self.progress.ongoing_work();
        Terminating::enter(EndingPod::Held(self.pod), order, ongoing_work)
    }

    /// Nothing to do but to wait: for the work under way or for the timer, which may as well be set twice.
    fn keep_state(self) -> Transition {
        let wake = self.waiting().map(Waiting::wake);
        (State::Syncing(self), wake.into_iter().collect())
    }
}

impl SyncingProgress {
    fn ongoing_work(&self) -> OngoingWork {
        match self {
            Self::Sync { .. } => OngoingWork::Sync,
            Self::Reset { grace, .. } => OngoingWork::Kill(*grace),
            Self::Waiting(_) => OngoingWork::Nothing,
        }
    }
}

fn start(pod: Arc<Pod>, why: SyncReason) -> Transition {
    let sync = Effect::StartSync { pod: pod.clone(), why };
    (State::Syncing(Syncing { pod, progress: SyncingProgress::Sync { again: None } }), vec![sync])
}

fn ended(pod: Arc<Pod>) -> Transition {
    Terminating::begin(EndingPod::Held(pod), TerminationRequest::plain(KillReason::Terminal))
}

fn reset(pod: Arc<Pod>, again: Option<SyncReason>) -> Transition {
    let grace = Grace::initial(Some(&pod), None);
    let then = again.map_or(SyncReason::Reset, |earlier| earlier.max(SyncReason::Reset));
    let why = KillReason::CgroupGone;
    let kill = Effect::StartKill { pod: Some(pod.clone()), grace, why };
    (State::Syncing(Syncing { pod, progress: SyncingProgress::Reset { grace, then } }), vec![kill])
}
