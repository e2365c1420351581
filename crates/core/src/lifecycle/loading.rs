//! A pod that is new to this agent, until the runtime's state of it and its record have been read.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::event;
use crate::pod::PodExt;
use crate::requeue::WorkResult;

use super::effect::{Effect, KillReason};
use super::ending_pod::EndingPod;
use super::event::{Event, KillRequest, PodFailure};
use super::syncing::Syncing;
use super::terminated::Terminated;
use super::terminating::{Terminating, TerminationRequest};
use super::waiting::{WaitReason, Waiting};
use super::{Context, State, Transition};

/// A pod that is new to this agent. What to do with it depends on what runs of it and on what was recorded: a pod whose end is not
/// recalled would run again.
#[derive(Clone, Debug, PartialEq)]
pub struct Loading {
    ending: EndingPod,
    /// Set when the pod was not admitted.
    rejected: Option<PodFailure>,
    /// A request of this node to kill it that came meanwhile.
    kill: Option<KillRequest>,
    progress: LoadingProgress,
}

#[derive(Clone, Debug, PartialEq)]
enum LoadingProgress {
    /// The read is under way.
    Read {
        /// Whether an earlier read failed: people are told once.
        failed_before: bool,
    },
    /// It failed; the timer for the next one is set.
    Waiting(Waiting),
}

impl Loading {
    pub(super) fn begin(pod: Arc<Pod>, rejected: Option<PodFailure>) -> Transition {
        Self {
            ending: EndingPod::Held(pod),
            rejected,
            kill: None,
            progress: LoadingProgress::Read { failed_before: false },
        }
        .read(false)
    }

    pub(super) fn pod(&self) -> Option<&Arc<Pod>> {
        self.ending.pod()
    }

    pub(super) fn waiting(&self) -> Option<&Waiting> {
        match &self.progress {
            LoadingProgress::Waiting(waiting) => Some(waiting),
            LoadingProgress::Read { .. } => None,
        }
    }

    pub(super) fn step(self, event: Event, cx: &Context) -> Transition {
        match event {
            Event::Wanted(pod) => Self { ending: self.ending.wanted(pod), ..self }.keep_state(),
            Event::Removed => {
                Self { ending: self.ending.removed(), ..self }.terminate_if_resting(cx)
            }
            Event::Kill(request) => self.kill_requested(request).terminate_if_resting(cx),
            Event::Hint(_) => self.hinted(cx),
            Event::Wake => self.woken(cx),
            Event::ReadDone(Ok(quiet)) => self.loaded(quiet, cx),
            Event::ReadDone(Err(error)) => self.failed(error, cx),
            Event::SyncDone { .. }
            | Event::KillDone(_)
            | Event::ReleaseDone(_)
            | Event::RecordDone(_)
            | Event::CleanupDone(_) => self.keep_state(),
        }
    }

    fn kill_requested(self, request: KillRequest) -> Self {
        let kill = match self.kill {
            Some(first) => first.and(request),
            None => request,
        };
        Self { kill: Some(kill), ..self }
    }

    /// The kill reads the runtime's state itself, so a pod that has to go does not wait for a read that keeps failing.
    fn terminate_if_resting(self, cx: &Context) -> Transition {
        match self.progress {
            LoadingProgress::Waiting(_) => self.leave_loading(false, cx),
            LoadingProgress::Read { .. } => self.keep_state(),
        }
    }

    fn hinted(self, cx: &Context) -> Transition {
        match self.progress {
            LoadingProgress::Waiting(ref waiting) if waiting.accepts_hints(cx.now) => {
                self.read(true)
            }
            LoadingProgress::Waiting(waiting) => {
                Self { progress: LoadingProgress::Waiting(waiting.shortened()), ..self }
                    .keep_state()
            }
            LoadingProgress::Read { .. } => self.keep_state(),
        }
    }

    fn woken(self, cx: &Context) -> Transition {
        match self.waiting() {
            Some(waiting) if waiting.is_over(cx.now) => self.read(true),
            Some(_) | None => self.keep_state(),
        }
    }

    fn loaded(self, quiet: bool, cx: &Context) -> Transition {
        match self.progress {
            LoadingProgress::Read { .. } => self.leave_loading(quiet, cx),
            LoadingProgress::Waiting(_) => self.keep_state(),
        }
    }

    fn failed(self, error: String, cx: &Context) -> Transition {
        let LoadingProgress::Read { failed_before } = self.progress else {
            return self.keep_state();
        };
        if self.must_terminate() {
            return self.leave_loading(false, cx);
        }
        let pod = self.pod().filter(|_| !failed_before).cloned();
        let event_effect =
            pod.map(|pod| Effect::Record { pod, event: event::status_unknown(&error) });
        let waiting = Waiting::after(WorkResult::Unread, WaitReason::Failed(error), cx);
        let (state, wake) =
            Self { progress: LoadingProgress::Waiting(waiting), ..self }.keep_state();
        (state, event_effect.into_iter().chain(wake).collect())
    }

    fn must_terminate(&self) -> bool {
        self.kill.is_some() || matches!(self.ending, EndingPod::Gone(_))
    }

    /// Where the pod's life begins, by what runs of it and what was said of it meanwhile.
    fn leave_loading(self, quiet: bool, cx: &Context) -> Transition {
        let Self { ending, rejected, kill, .. } = self;
        let pod = match ending {
            EndingPod::Held(pod) => pod,
            gone @ EndingPod::Gone(_) => {
                return Terminating::begin(gone, TerminationRequest::plain(KillReason::Removed));
            }
        };
        if let Some(failure) = rejected {
            return match quiet {
                true => Terminated::begin(EndingPod::Held(pod), Some(failure)),
                false => {
                    Terminating::begin(EndingPod::Held(pod), TerminationRequest::rejected(failure))
                }
            };
        }
        if quiet && pod.has_terminal_phase() {
            return Terminated::begin(EndingPod::Held(pod), None);
        }
        match (KillReason::of(&pod), kill) {
            (_, Some(request)) => Terminating::begin(
                EndingPod::Held(pod),
                TerminationRequest::from_kill_request(request, cx),
            ),
            (Some(why), None) => {
                Terminating::begin(EndingPod::Held(pod), TerminationRequest::plain(why))
            }
            (None, None) => Syncing::begin(pod),
        }
    }

    fn read(self, failed_before: bool) -> Transition {
        let pod = self.pod().cloned();
        let state = Self { progress: LoadingProgress::Read { failed_before }, ..self };
        (State::Loading(state), vec![Effect::StartRead { pod }])
    }

    /// Nothing to do but to wait: for the read under way or for the timer.
    fn keep_state(self) -> Transition {
        let wake = self.waiting().map(Waiting::wake);
        (State::Loading(self), wake.into_iter().collect())
    }
}
