//! A pod that is new to this agent, until the runtime's state of it and its record have been read.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::event;
use crate::pod::PodExt;
use crate::requeue::Work;

use super::effect::{Effect, KillReason};
use super::event::{Event, KillRequest, Verdict};
use super::leaving::Leaving;
use super::rest::{Because, Rest};
use super::syncing::Syncing;
use super::terminated::Terminated;
use super::terminating::{Order, Terminating};
use super::{Context, State, Step};

/// A pod that is new to this agent. What to do with it depends on what runs of it and on what was recorded: a pod whose end is not
/// recalled would run again.
#[derive(Clone, Debug, PartialEq)]
pub struct Loading {
    leaving: Leaving,
    /// Set when the pod was not admitted.
    rejected: Option<Verdict>,
    /// A request of this node to kill it that came meanwhile.
    kill: Option<KillRequest>,
    doing: Doing,
}

#[derive(Clone, Debug, PartialEq)]
enum Doing {
    /// The read is under way.
    Read {
        /// Whether an earlier read failed: people are told once.
        failed_before: bool,
    },
    /// It failed; the timer for the next one is set.
    Rest(Rest),
}

impl Loading {
    pub(super) fn begin(pod: Arc<Pod>, rejected: Option<Verdict>) -> Step {
        Self {
            leaving: Leaving::Held(pod),
            rejected,
            kill: None,
            doing: Doing::Read { failed_before: false },
        }
        .read(false)
    }

    pub(super) fn pod(&self) -> Option<&Arc<Pod>> {
        self.leaving.pod()
    }

    pub(super) fn rest(&self) -> Option<&Rest> {
        match &self.doing {
            Doing::Rest(rest) => Some(rest),
            Doing::Read { .. } => None,
        }
    }

    pub(super) fn step(self, event: Event, cx: &Context) -> Step {
        match event {
            Event::Wanted(pod) => Self { leaving: self.leaving.wanted(pod), ..self }.stay(),
            Event::Removed => {
                Self { leaving: self.leaving.removed(), ..self }.terminate_if_resting(cx)
            }
            Event::Kill(request) => self.asked(request).terminate_if_resting(cx),
            Event::Hint(_) => self.hinted(cx),
            Event::Wake => self.woken(cx),
            Event::ReadDone(Ok(quiet)) => self.loaded(quiet, cx),
            Event::ReadDone(Err(error)) => self.failed(error, cx),
            Event::SyncDone { .. }
            | Event::KillDone(_)
            | Event::ReleaseDone(_)
            | Event::RecordDone(_)
            | Event::CleanupDone(_) => self.stay(),
        }
    }

    fn asked(self, request: KillRequest) -> Self {
        let kill = match self.kill {
            Some(first) => first.and(request),
            None => request,
        };
        Self { kill: Some(kill), ..self }
    }

    /// The kill reads the runtime's state itself, so a pod that has to go does not wait for a read that keeps failing.
    fn terminate_if_resting(self, cx: &Context) -> Step {
        match self.doing {
            Doing::Rest(_) => self.begin_life(false, cx),
            Doing::Read { .. } => self.stay(),
        }
    }

    fn hinted(self, cx: &Context) -> Step {
        match self.doing {
            Doing::Rest(ref rest) if rest.is_calm(cx.now) => self.read(true),
            Doing::Rest(rest) => Self { doing: Doing::Rest(rest.hurried()), ..self }.stay(),
            Doing::Read { .. } => self.stay(),
        }
    }

    fn woken(self, cx: &Context) -> Step {
        match self.rest() {
            Some(rest) if rest.is_over(cx.now) => self.read(true),
            Some(_) | None => self.stay(),
        }
    }

    fn loaded(self, quiet: bool, cx: &Context) -> Step {
        match self.doing {
            Doing::Read { .. } => self.begin_life(quiet, cx),
            Doing::Rest(_) => self.stay(),
        }
    }

    fn failed(self, error: String, cx: &Context) -> Step {
        let Doing::Read { failed_before } = self.doing else { return self.stay() };
        if self.must_go() {
            return self.begin_life(false, cx);
        }
        let pod = self.pod().filter(|_| !failed_before).cloned();
        let told = pod.map(|pod| Effect::Record { pod, event: event::status_unknown(&error) });
        let rest = Rest::after(Work::Unread, Because::Failed(error), cx);
        let (state, wake) = Self { doing: Doing::Rest(rest), ..self }.stay();
        (state, told.into_iter().chain(wake).collect())
    }

    fn must_go(&self) -> bool {
        self.kill.is_some() || matches!(self.leaving, Leaving::Gone(_))
    }

    /// Where the pod's life begins, by what runs of it and what was said of it meanwhile.
    fn begin_life(self, quiet: bool, cx: &Context) -> Step {
        let Self { leaving, rejected, kill, .. } = self;
        let pod = match leaving {
            Leaving::Held(pod) => pod,
            gone @ Leaving::Gone(_) => {
                return Terminating::begin(gone, Order::plain(KillReason::Removed));
            }
        };
        if let Some(verdict) = rejected {
            return match quiet {
                true => Terminated::begin(Leaving::Held(pod), Some(verdict)),
                false => Terminating::begin(Leaving::Held(pod), Order::rejected(verdict)),
            };
        }
        if quiet && pod.has_terminal_phase() {
            return Terminated::begin(Leaving::Held(pod), None);
        }
        match (KillReason::of(&pod), kill) {
            (_, Some(request)) => Terminating::begin(Leaving::Held(pod), Order::asked(request, cx)),
            (Some(why), None) => Terminating::begin(Leaving::Held(pod), Order::plain(why)),
            (None, None) => Syncing::begin(pod),
        }
    }

    fn read(self, failed_before: bool) -> Step {
        let pod = self.pod().cloned();
        let state = Self { doing: Doing::Read { failed_before }, ..self };
        (State::Loading(state), vec![Effect::StartRead { pod }])
    }

    /// Nothing to do but to wait: for the read under way or for the timer.
    fn stay(self) -> Step {
        let wake = self.rest().map(Rest::wake);
        (State::Loading(self), wake.into_iter().collect())
    }
}
