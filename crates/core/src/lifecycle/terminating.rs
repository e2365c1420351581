//! A pod that is being brought down.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::event;
use crate::requeue::WorkResult;
use crate::time::Mono;

use super::effect::{Effect, KillReason, TerminationStage};
use super::ending_pod::EndingPod;
use super::event::{Event, KillOutcome, KillRequest, PodFailure};
use super::grace::{Grace, deletion_grace};
use super::terminated::Terminated;
use super::waiting::{WaitReason, Waiting};
use super::{Context, State, Transition};

/// A pod that is being brought down: why, with what grace, and how far that has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Terminating {
    ending: EndingPod,
    why: KillReason,
    grace: Grace,
    failure: Option<PodFailure>,
    /// When a requested kill is overdue, so that an event is recorded.
    overdue: Option<Mono>,
    progress: TerminatingProgress,
}

#[derive(Clone, Debug, PartialEq)]
enum TerminatingProgress {
    /// The sync was told to stop; the kill begins when it has.
    AwaitSync,
    /// The kill is under way.
    Kill,
    /// A kill did not succeed; the timer for the next is set.
    Waiting(Waiting),
}

/// What was going on when a pod began to terminate.
#[derive(Clone, Copy)]
pub(super) enum OngoingWork {
    Nothing,
    Sync,
    /// A kill, with this grace, after which the pod was to be built up again.
    Kill(Grace),
}

/// An order to bring a pod down.
pub(super) struct TerminationRequest {
    why: KillReason,
    grace: Option<i64>,
    failure: Option<PodFailure>,
    /// When a component of this node asked for it.
    asked_at: Option<Mono>,
}

impl TerminationRequest {
    /// One that has nothing to add to its reason.
    pub(super) fn plain(why: KillReason) -> Self {
        Self { why, grace: None, failure: None, asked_at: None }
    }

    /// From a kill request of a component of this node.
    pub(super) fn from_kill_request(request: KillRequest, cx: &Context) -> Self {
        let KillRequest { by, grace, failure } = request;
        Self { why: KillReason::Asked(by), grace, failure, asked_at: Some(cx.now) }
    }

    /// For a pod that was not admitted.
    pub(super) fn rejected(failure: PodFailure) -> Self {
        Self { failure: Some(failure), ..Self::plain(KillReason::Rejected) }
    }
}

impl Terminating {
    /// Terminates a pod while no work on it is under way.
    pub(super) fn begin(ending: EndingPod, order: TerminationRequest) -> Transition {
        Self::enter(ending, order, OngoingWork::Nothing)
    }

    /// Brings down a pod, whatever is under way.
    pub(super) fn enter(
        ending: EndingPod,
        order: TerminationRequest,
        ongoing_work: OngoingWork,
    ) -> Transition {
        let TerminationRequest { why, grace, failure, asked_at } = order;
        let grace = Grace::initial(ending.pod().map(Arc::as_ref), grace);
        let overdue = asked_at.map(|at| at + grace.overdue_after());
        let state =
            Self { ending, why, grace, failure, overdue, progress: TerminatingProgress::Kill };
        match ongoing_work {
            OngoingWork::Nothing => state.kill(),
            OngoingWork::Sync => {
                let state = Self { progress: TerminatingProgress::AwaitSync, ..state };
                let effects = [Effect::CancelSync].into_iter().chain(state.wake()).collect();
                (State::Terminating(state), effects)
            }
            OngoingWork::Kill(running) => state.take_over(running),
        }
    }

    pub(super) fn pod(&self) -> Option<&Arc<Pod>> {
        self.ending.pod()
    }

    pub(super) fn waiting(&self) -> Option<&Waiting> {
        match &self.progress {
            TerminatingProgress::Waiting(waiting) => Some(waiting),
            TerminatingProgress::AwaitSync | TerminatingProgress::Kill => None,
        }
    }

    pub(super) fn step(self, event: Event, cx: &Context) -> Transition {
        match event {
            Event::Wanted(pod) => self.wanted(pod),
            Event::Removed => self.removed(),
            Event::Kill(request) => self.kill_requested(request, cx),
            Event::Hint(_) => self.hinted(cx),
            Event::Wake => self.woken(cx),
            Event::SyncDone { .. } => self.sync_done(),
            Event::KillDone(outcome) => self.kill_done(outcome, cx),
            Event::ReadDone(_)
            | Event::ReleaseDone(_)
            | Event::RecordDone(_)
            | Event::CleanupDone(_) => self.keep_state(),
        }
    }

    fn wanted(self, pod: Arc<Pod>) -> Transition {
        let asked = deletion_grace(&pod);
        Self { ending: self.ending.wanted(pod), ..self }.shorten(asked)
    }

    fn removed(self) -> Transition {
        Self { ending: self.ending.removed(), ..self }.keep_state()
    }

    /// The latest failure counts; it is published at once if a status of the termination was published before.
    fn kill_requested(self, request: KillRequest, cx: &Context) -> Transition {
        let publishes =
            request.failure.is_some() && self.progress != TerminatingProgress::AwaitSync;
        let overdue = cx.now + self.grace.shortened_to(request.grace).overdue_after();
        let overdue = Some(self.overdue.map_or(overdue, |earlier| earlier.min(overdue)));
        let state = Self { failure: request.failure.or(self.failure), overdue, ..self };
        let status_effect = if publishes { state.publish() } else { None };
        let (state, effects) = state.shorten(request.grace);
        (state, status_effect.into_iter().chain(effects).collect())
    }

    /// A shorter grace takes effect at once.
    fn shorten(self, asked: Option<i64>) -> Transition {
        let grace = self.grace.shortened_to(asked);
        if grace == self.grace {
            return self.keep_state();
        }
        let state = Self { grace, ..self };
        match state.progress {
            TerminatingProgress::AwaitSync => state.keep_state(),
            TerminatingProgress::Kill => {
                let effects = [Effect::ShortenKill { grace }].into_iter().chain(state.wake());
                let effects = effects.collect();
                (State::Terminating(state), effects)
            }
            TerminatingProgress::Waiting(_) => state.kill(),
        }
    }

    /// While containers go down one by one, the status follows. After a kill that did not succeed, a hint may mean
    /// that the next one will.
    fn hinted(self, cx: &Context) -> Transition {
        match self.progress {
            TerminatingProgress::AwaitSync => self.keep_state(),
            TerminatingProgress::Kill => {
                let status_effect = self.publish();
                (State::Terminating(self), status_effect.into_iter().collect())
            }
            TerminatingProgress::Waiting(ref waiting) if waiting.accepts_hints(cx.now) => {
                self.kill()
            }
            TerminatingProgress::Waiting(waiting) => {
                Self { progress: TerminatingProgress::Waiting(waiting.shortened()), ..self }
                    .keep_state()
            }
        }
    }

    fn woken(mut self, cx: &Context) -> Transition {
        let overdue_event = self.overdue_event(cx);
        let (state, effects) = match self.waiting() {
            Some(waiting) if waiting.is_over(cx.now) => self.kill(),
            Some(_) | None => self.keep_state(),
        };
        (state, overdue_event.into_iter().chain(effects).collect())
    }

    /// The event, sent once, of a requested kill that is overdue.
    fn overdue_event(&mut self, cx: &Context) -> Option<Effect> {
        self.overdue.take_if(|at| *at <= cx.now)?;
        let pod = self.pod()?.clone();
        Some(Effect::Record { pod, event: event::kill_overdue() })
    }

    /// Whatever the sync has to say no longer matters.
    fn sync_done(self) -> Transition {
        match self.progress {
            TerminatingProgress::AwaitSync => self.kill(),
            TerminatingProgress::Kill | TerminatingProgress::Waiting(_) => self.keep_state(),
        }
    }

    fn kill_done(self, outcome: KillOutcome, cx: &Context) -> Transition {
        if self.progress != TerminatingProgress::Kill {
            return self.keep_state();
        }
        let reason = match outcome {
            KillOutcome::Ok => return Terminated::enter(self.ending, self.failure),
            KillOutcome::StillRunning => WaitReason::StillRunning,
            KillOutcome::Failed(error) => WaitReason::Failed(error),
        };
        let waiting = Waiting::after(WorkResult::Failed, reason, cx);
        Self { progress: TerminatingProgress::Waiting(waiting), ..self }.keep_state()
    }

    /// Every try publishes the status first.
    fn kill(self) -> Transition {
        let mut effects = self.publish_termination();
        effects.push(Effect::StartKill {
            pod: self.pod().cloned(),
            grace: self.grace,
            why: self.why,
        });
        let state = Self { progress: TerminatingProgress::Kill, ..self };
        effects.extend(state.wake());
        (State::Terminating(state), effects)
    }

    /// The kill of a reset, which is under way, becomes the kill of the pod.
    fn take_over(self, running: Grace) -> Transition {
        let mut effects = self.publish_termination();
        let grace = running.min(self.grace);
        if grace < running {
            effects.push(Effect::ShortenKill { grace });
        }
        effects.extend(self.wake());
        (State::Terminating(Self { grace, ..self }), effects)
    }

    fn publish_termination(&self) -> Vec<Effect> {
        match self.publish() {
            Some(status_effect) => vec![status_effect, Effect::StopLivenessProbes],
            None => Vec::new(),
        }
    }

    fn publish(&self) -> Option<Effect> {
        self.ending.publish(TerminationStage::Terminating, self.failure.as_ref())
    }

    /// Nothing to do but to wait: for the work under way or for the timer, which may as well be set twice.
    fn keep_state(self) -> Transition {
        let wake = self.wake();
        (State::Terminating(self), wake.into_iter().collect())
    }

    /// The timer for the next try or for the complaint, whichever is first.
    fn wake(&self) -> Option<Effect> {
        let next = self.waiting().map(Waiting::until);
        next.into_iter().chain(self.overdue).min().map(Effect::WakeAt)
    }
}
