//! The life of a pod on this node, as one enum and one pure step.
//!
//! A pod is read ([`Loading`]), kept running ([`Syncing`]), stopped ([`Terminating`]), released ([`Terminated`]) and kept on
//! record or cleaned up ([`Finished`]), in that order and never back. The shell owns one [`State`] for each pod, feeds
//! [`Event`]s into [`step`] and carries out the [`Effect`]s in the order they come.
//!
//! What the shell promises in return:
//! - Effects named `Start…` begin a piece of work; each is answered by exactly one `…Done` event, also when it was
//!   cancelled, failed, panicked or ran into its deadline. There is never more than one such work under way, and the shell takes
//!   events while it is.
//! - [`Effect::WakeAt`] sets the pod's one timer, replacing what was set before. When it is due, [`Event::Wake`] comes.
//! - Everything else changes memory or fills a queue: it is done on the spot, waits for nothing and cannot fail.

mod effect;
mod ending_pod;
mod event;
mod finished;
mod grace;
mod loading;
mod syncing;
mod terminated;
mod terminating;
#[cfg(test)]
mod tests;
mod waiting;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::requeue::{Jitter, Requeue};
use crate::time::Mono;

pub use effect::{Effect, HeldResource, KillReason, SyncReason, TerminationStage};
pub use event::{
    Event, Hint, KillOutcome, KillRequest, KillRequester, PodFailure, PodFailureKind, SyncOutcome,
};
pub use finished::Finished;
pub use grace::Grace;
pub use loading::Loading;
pub use syncing::Syncing;
pub use terminated::Terminated;
pub use terminating::Terminating;
pub use waiting::{WaitReason, Waiting};

use ending_pod::EndingPod;
use terminating::TerminationRequest;

/// Where a pod stands in its life.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// What runs of it and what was recorded of it is being read. Goes to whichever state that calls for.
    Loading(Loading),
    /// It is made to run as its spec says. Goes to `Terminating` when its deletion is asked for, its phase becomes
    /// terminal, a component of this node asks for its kill, or its source drops it.
    Syncing(Syncing),
    /// What runs of it is being stopped. Goes to `Terminated` once nothing runs; a failed kill is tried again.
    Terminating(Terminating),
    /// Nothing runs; what it held is being released. Goes to `Finished` once all is; a failure is tried again.
    Terminated(Terminated),
    /// Nothing of it is left but its record and its dead containers. Stays until its source drops it and those are removed.
    Finished(Finished),
}

/// The states by name, in the order in which a pod goes through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// See [`State::Loading`].
    Loading,
    /// See [`State::Syncing`].
    Syncing,
    /// See [`State::Terminating`].
    Terminating,
    /// See [`State::Terminated`].
    Terminated,
    /// See [`State::Finished`].
    Finished,
}

/// What a step may know besides the state and the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The time on the clock that never jumps.
    pub now: Mono,
    /// A fresh draw, for waits that are spread.
    pub jitter: Jitter,
    /// How long to wait after what.
    pub requeue: Requeue,
}

/// How a pod's worker comes to be.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkerStart {
    /// A source holds the pod and it was admitted.
    Wanted(Arc<Pod>),
    /// A source holds the pod, but it was not admitted. It may run all the same, from before the agent started.
    Rejected(Arc<Pod>, PodFailure),
    /// Only the runtime knows of it. It is killed at once; there is no status and no API object to care for.
    Orphan,
}

/// A new state and what is to be done, in this order.
pub type Transition = (State, Vec<Effect>);

/// The first step of a pod's life.
pub fn begin(begin: WorkerStart) -> Transition {
    match begin {
        WorkerStart::Wanted(pod) => Loading::begin(pod, None),
        WorkerStart::Rejected(pod, failure) => Loading::begin(pod, Some(failure)),
        WorkerStart::Orphan => {
            Terminating::begin(EndingPod::Gone(None), TerminationRequest::plain(KillReason::Orphan))
        }
    }
}

/// One step of a pod's life. An event that means nothing in this state changes nothing.
pub fn step(state: State, event: Event, cx: &Context) -> Transition {
    match state {
        State::Loading(state) => state.step(event, cx),
        State::Syncing(state) => state.step(event, cx),
        State::Terminating(state) => state.step(event, cx),
        State::Terminated(state) => state.step(event, cx),
        State::Finished(state) => state.step(event, cx),
    }
}

impl State {
    /// The stage, without the data of the state.
    pub fn stage(&self) -> Stage {
        match self {
            Self::Loading(_) => Stage::Loading,
            Self::Syncing(_) => Stage::Syncing,
            Self::Terminating(_) => Stage::Terminating,
            Self::Terminated(_) => Stage::Terminated,
            Self::Finished(_) => Stage::Finished,
        }
    }

    /// The pod as this life knows it; none for an orphan.
    pub fn pod(&self) -> Option<&Arc<Pod>> {
        match self {
            Self::Loading(state) => state.pod(),
            Self::Syncing(state) => Some(state.pod()),
            Self::Terminating(state) => state.pod(),
            Self::Terminated(state) => state.pod(),
            Self::Finished(state) => state.pod(),
        }
    }

    /// What the pod waits for and until when; none while work is under way, or when there is none left.
    pub fn waiting(&self) -> Option<&Waiting> {
        match self {
            Self::Loading(state) => state.waiting(),
            Self::Syncing(state) => state.waiting(),
            Self::Terminating(state) => state.waiting(),
            Self::Terminated(state) => state.waiting(),
            Self::Finished(state) => state.waiting(),
        }
    }
}
