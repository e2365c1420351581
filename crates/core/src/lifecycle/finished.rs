//! A pod that has ended: kept while its source holds it, cleaned up when its source drops it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::requeue::WorkResult;

use super::effect::Effect;
use super::ending_pod::EndingPod;
use super::event::{Event, KillOutcome};
use super::waiting::{WaitReason, Waiting};
use super::{Context, State, Transition};

/// A pod that has ended. It stays on record while a source holds it, so that a completed pod is not started again. A start that was
/// given up may still take effect, so whatever is found running of it is killed.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    ending: EndingPod,
    delete_allowed: bool,
    progress: FinishedProgress,
}

#[derive(Clone, Debug, PartialEq)]
enum FinishedProgress {
    /// Waits until the source drops the pod.
    Idle,
    /// What runs of the pod after all is being killed. A hint that came meanwhile is answered by another look.
    KillLeftovers { again: bool },
    /// Containers, sandboxes and files are being removed.
    Cleanup,
    /// The kill or the clean-up failed; the timer for the next try is set.
    Waiting(Waiting),
    /// Nothing is left: the worker ends.
    Over,
}

impl Finished {
    /// Everything the pod held is released.
    pub(super) fn enter(ending: EndingPod) -> Transition {
        let state = Self { ending, delete_allowed: false, progress: FinishedProgress::Idle };
        let (state, delete) = state.allow_delete();
        let (state, next) = state.clean_up_if_gone();
        (state, delete.into_iter().chain([Effect::Finished]).chain(next).collect())
    }

    pub(super) fn pod(&self) -> Option<&Arc<Pod>> {
        self.ending.pod()
    }

    pub(super) fn waiting(&self) -> Option<&Waiting> {
        match &self.progress {
            FinishedProgress::Waiting(waiting) => Some(waiting),
            FinishedProgress::Idle
            | FinishedProgress::KillLeftovers { .. }
            | FinishedProgress::Cleanup
            | FinishedProgress::Over => None,
        }
    }

    pub(super) fn step(self, event: Event, cx: &Context) -> Transition {
        match event {
            Event::Wanted(pod) => self.source_changed(|ending| ending.wanted(pod)),
            Event::Removed => self.source_changed(EndingPod::removed),
            Event::Hint(_) => self.hinted(cx),
            Event::Wake => self.woken(cx),
            Event::KillDone(outcome) => self.leftovers_killed(outcome, cx),
            Event::CleanupDone(outcome) => self.cleaned_up(outcome, cx),
            Event::Kill(_)
            | Event::ReadDone(_)
            | Event::SyncDone { .. }
            | Event::ReleaseDone(_)
            | Event::RecordDone(_) => self.keep_state(),
        }
    }

    /// The source says something new: the deletion of a completed pod, or that it has dropped the pod.
    fn source_changed(self, change: impl FnOnce(EndingPod) -> EndingPod) -> Transition {
        let was_held = self.ending.is_held();
        let (state, delete) = Self { ending: change(self.ending), ..self }.allow_delete();
        let is_free =
            matches!(state.progress, FinishedProgress::Idle | FinishedProgress::Waiting(_));
        let (state, next) =
            if was_held && is_free { state.clean_up_if_gone() } else { state.keep_state() };
        (state, delete.into_iter().chain(next).collect())
    }

    fn hinted(self, cx: &Context) -> Transition {
        match self.progress {
            FinishedProgress::Idle => self.kill_leftovers(),
            FinishedProgress::KillLeftovers { .. } => {
                Self { progress: FinishedProgress::KillLeftovers { again: true }, ..self }
                    .keep_state()
            }
            FinishedProgress::Waiting(ref waiting) if waiting.accepts_hints(cx.now) => {
                self.try_again()
            }
            FinishedProgress::Waiting(waiting) => {
                Self { progress: FinishedProgress::Waiting(waiting.shortened()), ..self }
                    .keep_state()
            }
            FinishedProgress::Cleanup | FinishedProgress::Over => self.keep_state(),
        }
    }

    fn woken(self, cx: &Context) -> Transition {
        match self.waiting() {
            Some(waiting) if waiting.is_over(cx.now) => self.try_again(),
            Some(_) | None => self.keep_state(),
        }
    }

    fn leftovers_killed(self, outcome: KillOutcome, cx: &Context) -> Transition {
        let FinishedProgress::KillLeftovers { again } = self.progress else {
            return self.keep_state();
        };
        if !self.ending.is_held() {
            return self.clean_up();
        }
        let reason = match outcome {
            KillOutcome::Ok if again => return self.kill_leftovers(),
            KillOutcome::Ok => {
                return Self { progress: FinishedProgress::Idle, ..self }.keep_state();
            }
            KillOutcome::StillRunning => WaitReason::StillRunning,
            KillOutcome::Failed(error) => WaitReason::Failed(error),
        };
        self.fail(reason, cx)
    }

    fn cleaned_up(self, outcome: Result<(), String>, cx: &Context) -> Transition {
        match (&self.progress, outcome) {
            (FinishedProgress::Cleanup, Ok(())) => (
                State::Finished(Self { progress: FinishedProgress::Over, ..self }),
                vec![Effect::Forget],
            ),
            (FinishedProgress::Cleanup, Err(error)) => self.fail(WaitReason::Failed(error), cx),
            _ => self.keep_state(),
        }
    }

    fn fail(self, reason: WaitReason, cx: &Context) -> Transition {
        let waiting = Waiting::after(WorkResult::Failed, reason, cx);
        Self { progress: FinishedProgress::Waiting(waiting), ..self }.keep_state()
    }

    fn try_again(self) -> Transition {
        if self.ending.is_held() { self.kill_leftovers() } else { self.clean_up() }
    }

    fn kill_leftovers(self) -> Transition {
        let pod = self.pod().cloned();
        let state = Self { progress: FinishedProgress::KillLeftovers { again: false }, ..self };
        (State::Finished(state), vec![Effect::StartKillLeftovers { pod }])
    }

    fn clean_up_if_gone(self) -> Transition {
        if self.ending.is_held() { self.keep_state() } else { self.clean_up() }
    }

    fn clean_up(self) -> Transition {
        (
            State::Finished(Self { progress: FinishedProgress::Cleanup, ..self }),
            vec![Effect::StartCleanup],
        )
    }

    fn allow_delete(self) -> (Self, Option<Effect>) {
        let allow = self.ending.awaits_delete() && !self.delete_allowed;
        let state = Self { delete_allowed: self.delete_allowed || allow, ..self };
        (state, allow.then_some(Effect::AllowDelete))
    }

    /// Nothing to do but to wait: for the work under way, for the timer, or for the source.
    fn keep_state(self) -> Transition {
        let wake = self.waiting().map(Waiting::wake);
        (State::Finished(self), wake.into_iter().collect())
    }
}
