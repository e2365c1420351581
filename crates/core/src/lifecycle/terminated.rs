//! A pod of which nothing runs any more, while what it held is released and its end is recorded.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::requeue::Work;

use super::effect::{Effect, Part, Standing};
use super::event::{Event, Verdict};
use super::finished::Finished;
use super::leaving::Leaving;
use super::rest::{Because, Rest};
use super::{Context, State, Step};

/// A pod of which nothing runs any more, and the task it is at.
#[derive(Clone, Debug, PartialEq)]
pub struct Terminated {
    leaving: Leaving,
    verdict: Option<Verdict>,
    task: Task,
    doing: Doing,
}

/// What is to be done, one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Task {
    /// Releasing a part.
    Release(Part),
    /// Writing the pod's end to disk.
    Record,
}

#[derive(Clone, Debug, PartialEq)]
enum Doing {
    /// The task is under way.
    Task,
    /// It failed; the timer for the next try is set.
    Rest(Rest),
}

impl Terminated {
    /// A pod of which nothing runs.
    pub(super) fn begin(leaving: Leaving, verdict: Option<Verdict>) -> Step {
        let status = leaving.publish(Standing::Stopped, verdict.as_ref());
        let (state, start) = start(leaving, verdict, Task::Release(Part::Volumes));
        (state, [Effect::Stopped].into_iter().chain(status).chain(start).collect())
    }

    /// A pod that has just been stopped.
    pub(super) fn enter(leaving: Leaving, verdict: Option<Verdict>) -> Step {
        let (state, mut effects) = Self::begin(leaving, verdict);
        effects.insert(0, Effect::StopProbes);
        (state, effects)
    }

    pub(super) fn pod(&self) -> Option<&Arc<Pod>> {
        self.leaving.pod()
    }

    pub(super) fn rest(&self) -> Option<&Rest> {
        match &self.doing {
            Doing::Rest(rest) => Some(rest),
            Doing::Task => None,
        }
    }

    pub(super) fn step(self, event: Event, cx: &Context) -> Step {
        match event {
            Event::Wanted(pod) => Self { leaving: self.leaving.wanted(pod), ..self }.stay(),
            Event::Removed => Self { leaving: self.leaving.removed(), ..self }.stay(),
            Event::Wake => self.woken(cx),
            Event::ReleaseDone(outcome) => self.released(outcome, cx),
            Event::RecordDone(outcome) => self.recorded(outcome, cx),
            Event::Kill(_)
            | Event::Hint(_)
            | Event::ReadDone(_)
            | Event::SyncDone { .. }
            | Event::KillDone(_)
            | Event::CleanupDone(_) => self.stay(),
        }
    }

    fn woken(self, cx: &Context) -> Step {
        match self.rest() {
            Some(rest) if rest.is_over(cx.now) => start(self.leaving, self.verdict, self.task),
            Some(_) | None => self.stay(),
        }
    }

    fn released(self, outcome: Result<(), String>, cx: &Context) -> Step {
        match (&self.doing, self.task, outcome) {
            (Doing::Task, Task::Release(Part::Volumes), Ok(())) => {
                start(self.leaving, self.verdict, Task::Release(Part::Cgroup))
            }
            (Doing::Task, Task::Release(Part::Cgroup), Ok(())) => self.publish_the_end(),
            (Doing::Task, Task::Release(_), Err(error)) => self.failed(error, cx),
            _ => self.stay(),
        }
    }

    /// The last status. A pod that no API server remembers is finished only when it is on disk.
    fn publish_the_end(self) -> Step {
        let status = self.leaving.publish(Standing::Released, self.verdict.as_ref());
        let (state, next) = match self.leaving.needs_record() {
            true => start(self.leaving, self.verdict, Task::Record),
            false => Finished::enter(self.leaving),
        };
        (state, status.into_iter().chain(next).collect())
    }

    fn recorded(self, outcome: Result<(), String>, cx: &Context) -> Step {
        match (&self.doing, self.task, outcome) {
            (Doing::Task, Task::Record, Ok(())) => Finished::enter(self.leaving),
            (Doing::Task, Task::Record, Err(error)) => self.failed(error, cx),
            _ => self.stay(),
        }
    }

    fn failed(self, error: String, cx: &Context) -> Step {
        let rest = Rest::after(Work::Failed, Because::Failed(error), cx);
        Self { doing: Doing::Rest(rest), ..self }.stay()
    }

    /// Nothing to do but to wait: for the work under way or for the timer, which may as well be set twice.
    fn stay(self) -> Step {
        let wake = self.rest().map(Rest::wake);
        (State::Terminated(self), wake.into_iter().collect())
    }
}

fn start(leaving: Leaving, verdict: Option<Verdict>, task: Task) -> Step {
    let effect = match task {
        Task::Release(part) => Effect::StartRelease(part),
        Task::Record => Effect::StartRecord,
    };
    let state = Terminated { leaving, verdict, task, doing: Doing::Task };
    (State::Terminated(state), vec![effect])
}
