//! A pod that is kept running.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::requeue::Work;
use crate::time::Mono;

use super::effect::{Effect, KillReason, SyncReason};
use super::event::{Event, Hint, KillOutcome, SyncOutcome};
use super::grace::Grace;
use super::leaving::Leaving;
use super::rest::{Because, Rest};
use super::terminating::{Order, Terminating, UnderWay};
use super::{Context, State, Step};

/// A pod that is kept running: the pod as its source has it, and what is being done about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Syncing {
    pod: Arc<Pod>,
    doing: Doing,
}

#[derive(Clone, Debug, PartialEq)]
enum Doing {
    /// A sync is under way. What came since then is answered by one more sync.
    Sync { again: Option<SyncReason> },
    /// Everything is being killed because the cgroup vanished under it. A sync follows.
    Reset { grace: Grace, then: SyncReason },
    /// Nothing is under way; the timer is set.
    Rest(Rest),
}

impl Syncing {
    /// A pod that is new here.
    pub(super) fn begin(pod: Arc<Pod>) -> Step {
        start(pod, SyncReason::First)
    }

    pub(super) fn pod(&self) -> &Arc<Pod> {
        &self.pod
    }

    pub(super) fn rest(&self) -> Option<&Rest> {
        match &self.doing {
            Doing::Rest(rest) => Some(rest),
            Doing::Sync { .. } | Doing::Reset { .. } => None,
        }
    }

    pub(super) fn step(self, event: Event, cx: &Context) -> Step {
        match event {
            Event::Wanted(pod) => Self { pod, ..self }.updated(cx),
            Event::Removed => self.removed(),
            Event::Kill(request) => self.terminate(Order::asked(request, cx)),
            Event::Hint(hint) => self.hinted(hint, cx),
            Event::Wake => self.woken(cx),
            Event::SyncDone { outcome, look_again } => self.synced(outcome, look_again, cx),
            Event::KillDone(outcome) => self.reset_done(outcome, cx),
            Event::ReadDone(_)
            | Event::ReleaseDone(_)
            | Event::RecordDone(_)
            | Event::CleanupDone(_) => self.stay(),
        }
    }

    fn updated(self, cx: &Context) -> Step {
        match KillReason::of(&self.pod) {
            Some(why) => self.terminate(Order::plain(why)),
            None => self.ask(SyncReason::Updated, cx),
        }
    }

    fn hinted(self, hint: Hint, cx: &Context) -> Step {
        self.ask(SyncReason::Hinted(hint), cx)
    }

    /// A timer may fire that was set before the work that has just ended: the wait that counts is the one we are in.
    fn woken(self, cx: &Context) -> Step {
        match self.rest() {
            Some(rest) if rest.is_over(cx.now) => start(self.pod, SyncReason::Due),
            Some(_) | None => self.stay(),
        }
    }

    /// Sync as soon as possible. Of several reasons the most urgent counts.
    fn ask(self, why: SyncReason, cx: &Context) -> Step {
        let Self { pod, doing } = self;
        let doing = match doing {
            Doing::Sync { again } => Doing::Sync { again: again.max(Some(why)) },
            Doing::Reset { grace, then } => Doing::Reset { grace, then: then.max(why) },
            Doing::Rest(rest) if why.can_wait() && !rest.is_calm(cx.now) => {
                Doing::Rest(rest.hurried())
            }
            Doing::Rest(_) => return start(pod, why),
        };
        Self { pod, doing }.stay()
    }

    fn synced(self, outcome: SyncOutcome, look_again: Option<Mono>, cx: &Context) -> Step {
        let Doing::Sync { again } = self.doing else {
            return self.stay();
        };
        let (work, because) = match outcome {
            SyncOutcome::Terminal => return ended(self.pod),
            SyncOutcome::CgroupGone => return reset(self.pod, again),
            SyncOutcome::Ok => (Work::Done, Because::AllIsWell),
            SyncOutcome::BackOff { until } => (Work::BackOff { until }, Because::BackOff { until }),
            SyncOutcome::NetworkNotReady => (Work::NetworkNotReady, Because::NetworkNotReady),
            SyncOutcome::Failed(error) => (Work::Failed, Because::Failed(error)),
            SyncOutcome::Cancelled => (Work::Failed, Because::Interrupted),
        };
        let rest = Rest::after(work, because, cx).no_later_than(look_again, cx);
        let state = Self { pod: self.pod, doing: Doing::Rest(rest) };
        match again {
            Some(why) => state.ask(why, cx),
            None => state.stay(),
        }
    }

    /// A reset that failed is found necessary again by the next sync.
    fn reset_done(self, outcome: KillOutcome, cx: &Context) -> Step {
        let Doing::Reset { then, .. } = self.doing else {
            return self.stay();
        };
        let because = match outcome {
            KillOutcome::Ok => return start(self.pod, then),
            KillOutcome::StillRunning => Because::StillRunning,
            KillOutcome::Failed(error) => Because::Failed(error),
        };
        let rest = Rest::after(Work::Failed, because, cx);
        Self { pod: self.pod, doing: Doing::Rest(rest) }.stay()
    }

    fn removed(self) -> Step {
        let under_way = self.doing.under_way();
        let leaving = Leaving::Gone(Some(self.pod));
        Terminating::enter(leaving, Order::plain(KillReason::Removed), under_way)
    }

    fn terminate(self, order: Order) -> Step {
        let under_way = self.doing.under_way();
        Terminating::enter(Leaving::Held(self.pod), order, under_way)
    }

    /// Nothing to do but to wait: for the work under way or for the timer, which may as well be set twice.
    fn stay(self) -> Step {
        let wake = self.rest().map(Rest::wake);
        (State::Syncing(self), wake.into_iter().collect())
    }
}

impl Doing {
    fn under_way(&self) -> UnderWay {
        match self {
            Self::Sync { .. } => UnderWay::Sync,
            Self::Reset { grace, .. } => UnderWay::Kill(*grace),
            Self::Rest(_) => UnderWay::Nothing,
        }
    }
}

fn start(pod: Arc<Pod>, why: SyncReason) -> Step {
    let sync = Effect::StartSync { pod: pod.clone(), why };
    (State::Syncing(Syncing { pod, doing: Doing::Sync { again: None } }), vec![sync])
}

fn ended(pod: Arc<Pod>) -> Step {
    Terminating::begin(Leaving::Held(pod), Order::plain(KillReason::Terminal))
}

fn reset(pod: Arc<Pod>, again: Option<SyncReason>) -> Step {
    let grace = Grace::first(Some(&pod), None);
    let then = again.map_or(SyncReason::Reset, |earlier| earlier.max(SyncReason::Reset));
    let why = KillReason::CgroupGone;
    let kill = Effect::StartKill { pod: Some(pod.clone()), grace, why };
    (State::Syncing(Syncing { pod, doing: Doing::Reset { grace, then } }), vec![kill])
}
