//! A pod of which nothing runs any more, while what it held is released and its end is recorded.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::requeue::WorkResult;

use super::effect::{Effect, HeldResource, TerminationStage};
use super::ending_pod::EndingPod;
use super::event::{Event, PodFailure};
use super::finished::Finished;
use super::waiting::{WaitReason, Waiting};
use super::{Context, State, Transition};

/// A pod of which nothing runs any more, and the task it is at.
#[derive(Clone, Debug, PartialEq)]
pub struct Terminated {
    ending: EndingPod,
    failure: Option<PodFailure>,
    task: Task,
    progress: TerminatedProgress,
}

/// What is to be done, one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Task {
    /// Volumes or cgroup are being released.
    Release(HeldResource),
    /// Writing the pod's end to disk.
    Record,
}

#[derive(Clone, Debug, PartialEq)]
enum TerminatedProgress {
    /// The task is under way.
    Task,
    /// It failed; the timer for the next try is set.
    Waiting(Waiting),
}

impl Terminated {
    /// A pod of which nothing runs.
    pub(super) fn begin(ending: EndingPod, failure: Option<PodFailure>) -> Transition {
        let status = ending.publish(TerminationStage::Stopped, failure.as_ref());
        let (state, start) = start(ending, failure, Task::Release(HeldResource::Volumes));
        (state, [Effect::Stopped].into_iter().chain(status).chain(start).collect())
    }

    /// A pod that has just been stopped.
    pub(super) fn enter(ending: EndingPod, failure: Option<PodFailure>) -> Transition {
        let (state, mut effects) = Self::begin(ending, failure);
        effects.insert(0, Effect::StopProbes);
        (state, effects)
    }

    pub(super) fn pod(&self) -> Option<&Arc<Pod>> {
        self.ending.pod()
    }

    pub(super) fn waiting(&self) -> Option<&Waiting> {
        match &self.progress {
            TerminatedProgress::Waiting(waiting) => Some(waiting),
            TerminatedProgress::Task => None,
        }
    }

    pub(super) fn step(self, event: Event, cx: &Context) -> Transition {
        match event {
            Event::Wanted(pod) => Self { ending: self.ending.wanted(pod), ..self }.keep_state(),
            Event::Removed => Self { ending: self.ending.removed(), ..self }.keep_state(),
            Event::Wake => self.woken(cx),
            Event::ReleaseDone(outcome) => self.released(outcome, cx),
            Event::RecordDone(outcome) => self.recorded(outcome, cx),
            Event::Kill(_)
            | Event::Hint(_)
            | Event::ReadDone(_)
            | Event::SyncDone { .. }
            | Event::KillDone(_)
            | Event::CleanupDone(_) => self.keep_state(),
        }
    }

    fn woken(self, cx: &Context) -> Transition {
        match self.waiting() {
            Some(waiting) if waiting.is_over(cx.now) => start(self.ending, self.failure, self.task),
            Some(_) | None => self.keep_state(),
        }
    }

    fn released(self, outcome: Result<(), String>, cx: &Context) -> Transition {
        match (&self.progress, self.task, outcome) {
            (TerminatedProgress::Task, Task::Release(HeldResource::Volumes), Ok(())) => {
                start(self.ending, self.failure, Task::Release(HeldResource::Cgroup))
            }
            (TerminatedProgress::Task, Task::Release(HeldResource::Cgroup), Ok(())) => {
                self.publish_final_status()
            }
            (TerminatedProgress::Task, Task::Release(_), Err(error)) => self.failed(error, cx),
            _ => self.keep_state(),
        }
    }

    /// The last status. A pod that no API server remembers is finished only when it is on disk.
    fn publish_final_status(self) -> Transition {
        let status = self.ending.publish(TerminationStage::Released, self.failure.as_ref());
        let (state, next) = match self.ending.needs_record() {
            true => start(self.ending, self.failure, Task::Record),
            false => Finished::enter(self.ending),
        };
        (state, status.into_iter().chain(next).collect())
    }

    fn recorded(self, outcome: Result<(), String>, cx: &Context) -> Transition {
        match (&self.progress, self.task, outcome) {
            (TerminatedProgress::Task, Task::Record, Ok(())) => Finished::enter(self.ending),
            (TerminatedProgress::Task, Task::Record, Err(error)) => self.failed(error, cx),
            _ => self.keep_state(),
        }
    }

    fn failed(self, error: String, cx: &Context) -> Transition {
        let waiting = Waiting::after(WorkResult::Failed, WaitReason::Failed(error), cx);
        Self { progress: TerminatedProgress::Waiting(waiting), ..self }.keep_state()
    }

    /// Nothing to do but to wait: for the work under way or for the timer, which may as well be set twice.
    fn keep_state(self) -> Transition {
        let wake = self.waiting().map(Waiting::wake);
        (State::Terminated(self), wake.into_iter().collect())
    }
}

fn start(ending: EndingPod, failure: Option<PodFailure>, task: Task) -> Transition {
    let effect = match task {
        Task::Release(part) => Effect::StartRelease(part),
        Task::Record => Effect::StartRecord,
    };
    let state = Terminated { ending, failure, task, progress: TerminatedProgress::Task };
    (State::Terminated(state), vec![effect])
}
