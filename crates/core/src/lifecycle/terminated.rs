//! A pod of which nothing runs any more, while what it held is given back.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::requeue::Work;

use super::effect::{Effect, Part, Standing};
use super::event::{Event, ReleaseOutcome, Verdict};
use super::finished::Finished;
use super::leaving::Leaving;
use super::rest::{Because, Rest};
use super::{Context, State, Step};

/// A pod of which nothing runs any more: what it gives back now.
#[derive(Clone, Debug, PartialEq)]
pub struct Terminated {
    leaving: Leaving,
    verdict: Option<Verdict>,
    part: Part,
    doing: Doing,
}

#[derive(Clone, Debug, PartialEq)]
enum Doing {
    /// The release of the part is under way.
    Release,
    /// It failed; the timer for the next try is set.
    Rest(Rest),
}

impl Terminated {
    /// A pod that was over before we first saw it.
    pub(super) fn begin(leaving: Leaving, verdict: Option<Verdict>) -> Step {
        let news = leaving.publish(Standing::Stopped, verdict.as_ref());
        let (state, release) = release(leaving, verdict, Part::Volumes);
        (state, news.into_iter().chain(release).collect())
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
            Doing::Release => None,
        }
    }

    pub(super) fn step(self, event: Event, cx: &Context) -> Step {
        match event {
            Event::Wanted(pod) => Self { leaving: self.leaving.wanted(pod), ..self }.stay(),
            Event::Removed => Self { leaving: self.leaving.removed(), ..self }.stay(),
            Event::Wake => self.woken(cx),
            Event::ReleaseDone(outcome) => self.released(outcome, cx),
            Event::Kill(_) | Event::Hint(_) => self.stay(),
            Event::SyncDone { .. } | Event::KillDone(_) => self.stay(),
        }
    }

    fn woken(self, cx: &Context) -> Step {
        match self.rest() {
            Some(rest) if rest.is_over(cx.now) => release(self.leaving, self.verdict, self.part),
            Some(_) | None => self.stay(),
        }
    }

    fn released(self, outcome: ReleaseOutcome, cx: &Context) -> Step {
        if self.doing != Doing::Release {
            return self.stay();
        }
        match (outcome, self.part) {
            (ReleaseOutcome::Ok, Part::Volumes) => {
                release(self.leaving, self.verdict, Part::Cgroup)
            }
            (ReleaseOutcome::Ok, Part::Cgroup) => {
                Finished::enter(self.leaving, self.verdict.as_ref())
            }
            (ReleaseOutcome::Failed(error), _) => self.failed(error, cx),
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

fn release(leaving: Leaving, verdict: Option<Verdict>, part: Part) -> Step {
    let state = Terminated { leaving, verdict, part, doing: Doing::Release };
    (State::Terminated(state), vec![Effect::StartRelease(part)])
}
