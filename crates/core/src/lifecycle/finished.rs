//! A pod that is done with.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::effect::{Effect, Standing};
use super::event::{Event, Verdict};
use super::leaving::Leaving;
use super::{State, Step};

/// A pod that is done with. It stays on record while a source holds it: a completed pod is not to start again.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    leaving: Leaving,
    delete_allowed: bool,
}

impl Finished {
    /// All is given back.
    pub(super) fn enter(leaving: Leaving, verdict: Option<&Verdict>) -> Step {
        let last_word = leaving.publish(Standing::Released, verdict);
        let (state, delete) = Self { leaving, delete_allowed: false }.allow_delete();
        let farewell = state.leaving.farewell();
        let effects = last_word.into_iter().chain(delete).chain([Effect::Finished]).chain(farewell);
        let effects = effects.collect();
        (State::Finished(state), effects)
    }

    pub(super) fn pod(&self) -> Option<&Arc<Pod>> {
        self.leaving.pod()
    }

    pub(super) fn step(self, event: Event) -> Step {
        match event {
            Event::Wanted(pod) => self.told(|leaving| leaving.wanted(pod)),
            Event::Removed => self.told(Leaving::removed),
            Event::Kill(_) | Event::Hint(_) | Event::Wake => self.stay(),
            Event::SyncDone { .. } | Event::KillDone(_) | Event::ReleaseDone(_) => self.stay(),
        }
    }

    /// The source has something to say: the deletion of a completed pod, its disappearance, or its return.
    fn told(self, news: impl FnOnce(Leaving) -> Leaving) -> Step {
        let (state, delete) = Self { leaving: news(self.leaving), ..self }.allow_delete();
        let farewell = state.leaving.farewell();
        (State::Finished(state), delete.into_iter().chain(farewell).collect())
    }

    fn allow_delete(self) -> (Self, Option<Effect>) {
        let allow = self.leaving.awaits_delete() && !self.delete_allowed;
        let state = Self { delete_allowed: self.delete_allowed || allow, ..self };
        (state, allow.then_some(Effect::AllowDelete))
    }

    fn stay(self) -> Step {
        (State::Finished(self), Vec::new())
    }
}
