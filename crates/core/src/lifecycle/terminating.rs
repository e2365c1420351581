//! A pod that is being brought down.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::event;
use crate::requeue::Work;
use crate::time::Mono;

use super::effect::{Effect, KillReason, Standing};
use super::event::{Event, KillOutcome, KillRequest, Verdict};
use super::grace::{Grace, deletion_grace};
use super::leaving::Leaving;
use super::rest::{Because, Rest};
use super::terminated::Terminated;
use super::{Context, State, Step};

/// A pod that is being brought down: why, with what grace, and how far that has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Terminating {
    leaving: Leaving,
    why: KillReason,
    grace: Grace,
    verdict: Option<Verdict>,
    /// When a requested kill is overdue, so that an event is recorded.
    overdue: Option<Mono>,
    doing: Doing,
}

#[derive(Clone, Debug, PartialEq)]
enum Doing {
    /// The sync was told to stop; the kill begins when it has.
    AwaitSync,
    /// The kill is under way.
    Kill,
    /// A kill did not succeed; the timer for the next is set.
    Rest(Rest),
}

/// What was going on when a pod began to terminate.
#[derive(Clone, Copy)]
pub(super) enum UnderWay {
    /// Nothing.
    Nothing,
    /// A sync.
    Sync,
    /// A kill, with this grace, after which the pod was to be built up again.
    Kill(Grace),
}

/// An order to bring a pod down.
pub(super) struct Order {
    why: KillReason,
    grace: Option<i64>,
    verdict: Option<Verdict>,
    /// When a component of this node asked for it.
    asked_at: Option<Mono>,
}

impl Order {
    /// One that has nothing to add to its reason.
    pub(super) fn plain(why: KillReason) -> Self {
        Self { why, grace: None, verdict: None, asked_at: None }
    }

    /// From a kill request of a component of this node.
    pub(super) fn asked(request: KillRequest, cx: &Context) -> Self {
        let KillRequest { by, grace, verdict } = request;
        Self { why: KillReason::Asked(by), grace, verdict, asked_at: Some(cx.now) }
    }

    /// For a pod that was not admitted.
    pub(super) fn rejected(verdict: Verdict) -> Self {
        Self { verdict: Some(verdict), ..Self::plain(KillReason::Rejected) }
    }
}

impl Terminating {
    /// Terminates a pod while no work on it is under way.
    pub(super) fn begin(leaving: Leaving, order: Order) -> Step {
        Self::enter(leaving, order, UnderWay::Nothing)
    }

    /// Brings down a pod, whatever is under way.
    pub(super) fn enter(leaving: Leaving, order: Order, under_way: UnderWay) -> Step {
        let Order { why, grace, verdict, asked_at } = order;
        let grace = Grace::first(leaving.pod().map(Arc::as_ref), grace);
        let overdue = asked_at.map(|at| at + grace.patience());
        let state = Self { leaving, why, grace, verdict, overdue, doing: Doing::Kill };
        match under_way {
            UnderWay::Nothing => state.kill(),
            UnderWay::Sync => {
                let state = Self { doing: Doing::AwaitSync, ..state };
                let effects = [Effect::CancelSync].into_iter().chain(state.wake()).collect();
                (State::Terminating(state), effects)
            }
            UnderWay::Kill(running) => state.take_over(running),
        }
    }

    pub(super) fn pod(&self) -> Option<&Arc<Pod>> {
        self.leaving.pod()
    }

    pub(super) fn rest(&self) -> Option<&Rest> {
        match &self.doing {
            Doing::Rest(rest) => Some(rest),
            Doing::AwaitSync | Doing::Kill => None,
        }
    }

    pub(super) fn step(self, event: Event, cx: &Context) -> Step {
        match event {
            Event::Wanted(pod) => self.wanted(pod),
            Event::Removed => self.removed(),
            Event::Kill(request) => self.asked(request, cx),
            Event::Hint(_) => self.hinted(cx),
            Event::Wake => self.woken(cx),
            Event::SyncDone { .. } => self.sync_done(),
            Event::KillDone(outcome) => self.kill_done(outcome, cx),
            Event::ReadDone(_)
            | Event::ReleaseDone(_)
            | Event::RecordDone(_)
            | Event::CleanupDone(_) => self.stay(),
        }
    }

    fn wanted(self, pod: Arc<Pod>) -> Step {
        let asked = deletion_grace(&pod);
        Self { leaving: self.leaving.wanted(pod), ..self }.shorten(asked)
    }

    fn removed(self) -> Step {
        Self { leaving: self.leaving.removed(), ..self }.stay()
    }

    /// The latest failure counts; it is published at once if a status of the termination was published before.
    fn asked(self, request: KillRequest, cx: &Context) -> Step {
        let told = request.verdict.is_some() && self.doing != Doing::AwaitSync;
        let overdue = cx.now + self.grace.shrunk(request.grace).patience();
        let overdue = Some(self.overdue.map_or(overdue, |earlier| earlier.min(overdue)));
        let state = Self { verdict: request.verdict.or(self.verdict), overdue, ..self };
        let news = if told { state.publish() } else { None };
        let (state, effects) = state.shorten(request.grace);
        (state, news.into_iter().chain(effects).collect())
    }

    /// A shorter grace takes effect at once.
    fn shorten(self, asked: Option<i64>) -> Step {
        let grace = self.grace.shrunk(asked);
        if grace == self.grace {
            return self.stay();
        }
        let state = Self { grace, ..self };
        match state.doing {
            Doing::AwaitSync => state.stay(),
            Doing::Kill => {
                let effects = [Effect::ShortenKill { grace }].into_iter().chain(state.wake());
                let effects = effects.collect();
                (State::Terminating(state), effects)
            }
            Doing::Rest(_) => state.kill(),
        }
    }

    /// While containers go down one by one, the status follows. After a kill that did not succeed, a hint may mean
    /// that the next one will.
    fn hinted(self, cx: &Context) -> Step {
        match self.doing {
            Doing::AwaitSync => self.stay(),
            Doing::Kill => {
                let news = self.publish();
                (State::Terminating(self), news.into_iter().collect())
            }
            Doing::Rest(ref rest) if rest.is_calm(cx.now) => self.kill(),
            Doing::Rest(rest) => Self { doing: Doing::Rest(rest.hurried()), ..self }.stay(),
        }
    }

    fn woken(mut self, cx: &Context) -> Step {
        let complaint = self.complaint(cx);
        let (state, effects) = match self.rest() {
            Some(rest) if rest.is_over(cx.now) => self.kill(),
            Some(_) | None => self.stay(),
        };
        (state, complaint.into_iter().chain(effects).collect())
    }

    /// The event, sent once, of a requested kill that is overdue.
    fn complaint(&mut self, cx: &Context) -> Option<Effect> {
        self.overdue.take_if(|at| *at <= cx.now)?;
        let pod = self.pod()?.clone();
        Some(Effect::Record { pod, event: event::kill_overdue() })
    }

    /// Whatever the sync has to say no longer matters.
    fn sync_done(self) -> Step {
        match self.doing {
            Doing::AwaitSync => self.kill(),
            Doing::Kill | Doing::Rest(_) => self.stay(),
        }
    }

    fn kill_done(self, outcome: KillOutcome, cx: &Context) -> Step {
        if self.doing != Doing::Kill {
            return self.stay();
        }
        let because = match outcome {
            KillOutcome::Ok => return Terminated::enter(self.leaving, self.verdict),
            KillOutcome::StillRunning => Because::StillRunning,
            KillOutcome::Failed(error) => Because::Failed(error),
        };
        let rest = Rest::after(Work::Failed, because, cx);
        Self { doing: Doing::Rest(rest), ..self }.stay()
    }

    /// Every try publishes the status first.
    fn kill(self) -> Step {
        let mut effects = self.announce();
        effects.push(Effect::StartKill {
            pod: self.pod().cloned(),
            grace: self.grace,
            why: self.why,
        });
        let state = Self { doing: Doing::Kill, ..self };
        effects.extend(state.wake());
        (State::Terminating(state), effects)
    }

    /// The kill of a reset, which is under way, becomes the kill of the pod.
    fn take_over(self, running: Grace) -> Step {
        let mut effects = self.announce();
        let grace = running.min(self.grace);
        if grace < running {
            effects.push(Effect::ShortenKill { grace });
        }
        effects.extend(self.wake());
        (State::Terminating(Self { grace, ..self }), effects)
    }

    fn announce(&self) -> Vec<Effect> {
        match self.publish() {
            Some(news) => vec![news, Effect::StopLivenessProbes],
            None => Vec::new(),
        }
    }

    fn publish(&self) -> Option<Effect> {
        self.leaving.publish(Standing::Terminating, self.verdict.as_ref())
    }

    /// Nothing to do but to wait: for the work under way or for the timer, which may as well be set twice.
    fn stay(self) -> Step {
        let wake = self.wake();
        (State::Terminating(self), wake.into_iter().collect())
    }

    /// The timer for the next try or for the complaint, whichever is first.
    fn wake(&self) -> Option<Effect> {
        let next = self.rest().map(Rest::until);
        next.into_iter().chain(self.overdue).min().map(Effect::WakeAt)
    }
}
