//! A pod that has ended: kept while its source holds it, cleaned up when its source drops it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::requeue::Work;

use super::effect::Effect;
use super::event::{Event, KillOutcome};
use super::leaving::Leaving;
use super::rest::{Because, Rest};
use super::{Context, State, Step};

/// A pod that has ended. It stays on record while a source holds it, so that a completed pod is not started again. A start that was
/// given up may still take effect, so whatever is found running of it is killed.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    leaving: Leaving,
    delete_allowed: bool,
    doing: Doing,
}

#[derive(Clone, Debug, PartialEq)]
enum Doing {
    /// Nothing.
    Idle,
    /// What runs of the pod after all is being killed. A hint that came meanwhile is answered by another look.
    KillLeftovers { again: bool },
    /// Containers, sandboxes and files are being removed.
    Cleanup,
    /// The kill or the clean-up failed; the timer for the next try is set.
    Rest(Rest),
    /// Nothing is left: the worker ends.
    Over,
}

impl Finished {
    /// Everything the pod held is released.
    pub(super) fn enter(leaving: Leaving) -> Step {
        let state = Self { leaving, delete_allowed: false, doing: Doing::Idle };
        let (state, delete) = state.allow_delete();
        let (state, next) = state.clean_up_if_gone();
        (state, delete.into_iter().chain([Effect::Finished]).chain(next).collect())
    }

    pub(super) fn pod(&self) -> Option<&Arc<Pod>> {
        self.leaving.pod()
    }

    pub(super) fn rest(&self) -> Option<&Rest> {
        match &self.doing {
            Doing::Rest(rest) => Some(rest),
            Doing::Idle | Doing::KillLeftovers { .. } | Doing::Cleanup | Doing::Over => None,
        }
    }

    pub(super) fn step(self, event: Event, cx: &Context) -> Step {
        match event {
            Event::Wanted(pod) => self.told(|leaving| leaving.wanted(pod)),
            Event::Removed => self.told(Leaving::removed),
            Event::Hint(_) => self.hinted(cx),
            Event::Wake => self.woken(cx),
            Event::KillDone(outcome) => self.leftovers_killed(outcome, cx),
            Event::CleanupDone(outcome) => self.cleaned_up(outcome, cx),
            Event::Kill(_)
            | Event::ReadDone(_)
            | Event::SyncDone { .. }
            | Event::ReleaseDone(_)
            | Event::RecordDone(_) => self.stay(),
        }
    }

    /// The source says something new: the deletion of a completed pod, or that it has dropped the pod.
    fn told(self, change: impl FnOnce(Leaving) -> Leaving) -> Step {
        let was_held = self.leaving.is_held();
        let (state, delete) = Self { leaving: change(self.leaving), ..self }.allow_delete();
        let is_free = matches!(state.doing, Doing::Idle | Doing::Rest(_));
        let (state, next) =
            if was_held && is_free { state.clean_up_if_gone() } else { state.stay() };
        (state, delete.into_iter().chain(next).collect())
    }

    fn hinted(self, cx: &Context) -> Step {
        match self.doing {
            Doing::Idle => self.kill_leftovers(),
            Doing::KillLeftovers { .. } => {
                Self { doing: Doing::KillLeftovers { again: true }, ..self }.stay()
            }
            Doing::Rest(ref rest) if rest.is_calm(cx.now) => self.try_again(),
            Doing::Rest(rest) => Self { doing: Doing::Rest(rest.hurried()), ..self }.stay(),
            Doing::Cleanup | Doing::Over => self.stay(),
        }
    }

    fn woken(self, cx: &Context) -> Step {
        match self.rest() {
            Some(rest) if rest.is_over(cx.now) => self.try_again(),
            Some(_) | None => self.stay(),
        }
    }

    fn leftovers_killed(self, outcome: KillOutcome, cx: &Context) -> Step {
        let Doing::KillLeftovers { again } = self.doing else { return self.stay() };
        if !self.leaving.is_held() {
            return self.clean_up();
        }
        let because = match outcome {
            KillOutcome::Ok if again => return self.kill_leftovers(),
            KillOutcome::Ok => return Self { doing: Doing::Idle, ..self }.stay(),
            KillOutcome::StillRunning => Because::StillRunning,
            KillOutcome::Failed(error) => Because::Failed(error),
        };
        self.fail(because, cx)
    }

    fn cleaned_up(self, outcome: Result<(), String>, cx: &Context) -> Step {
        match (&self.doing, outcome) {
            (Doing::Cleanup, Ok(())) => {
                (State::Finished(Self { doing: Doing::Over, ..self }), vec![Effect::Forget])
            }
            (Doing::Cleanup, Err(error)) => self.fail(Because::Failed(error), cx),
            _ => self.stay(),
        }
    }

    fn fail(self, because: Because, cx: &Context) -> Step {
        let rest = Rest::after(Work::Failed, because, cx);
        Self { doing: Doing::Rest(rest), ..self }.stay()
    }

    fn try_again(self) -> Step {
        if self.leaving.is_held() { self.kill_leftovers() } else { self.clean_up() }
    }

    fn kill_leftovers(self) -> Step {
        let pod = self.pod().cloned();
        let state = Self { doing: Doing::KillLeftovers { again: false }, ..self };
        (State::Finished(state), vec![Effect::StartKillLeftovers { pod }])
    }

    fn clean_up_if_gone(self) -> Step {
        if self.leaving.is_held() { self.stay() } else { self.clean_up() }
    }

    fn clean_up(self) -> Step {
        (State::Finished(Self { doing: Doing::Cleanup, ..self }), vec![Effect::StartCleanup])
    }

    fn allow_delete(self) -> (Self, Option<Effect>) {
        let allow = self.leaving.awaits_delete() && !self.delete_allowed;
        let state = Self { delete_allowed: self.delete_allowed || allow, ..self };
        (state, allow.then_some(Effect::AllowDelete))
    }

    /// Nothing to do but to wait: for the work under way, for the timer, or for the source.
    fn stay(self) -> Step {
        let wake = self.rest().map(Rest::wake);
        (State::Finished(self), wake.into_iter().collect())
    }
}
