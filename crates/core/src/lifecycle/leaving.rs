//! A pod on its way out, and what its source says of it meanwhile.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::pod::PodExt;

use super::effect::{Effect, Standing};
use super::event::Verdict;

/// A pod on its way out.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Leaving {
    /// Its source still holds it, as deleted, ended or killed pods are held.
    Held(Arc<Pod>),
    /// Its source has dropped it; this is the last that was seen of it. Nothing was ever seen of an orphan.
    Gone(Option<Arc<Pod>>),
    /// Its source had dropped it and then brought it back. It gets a life of its own once this one is over.
    Back { last: Option<Arc<Pod>>, again: Arc<Pod> },
}

impl Leaving {
    /// The source says: this is the pod.
    pub(super) fn wanted(self, pod: Arc<Pod>) -> Self {
        match self {
            Self::Held(_) => Self::Held(pod),
            Self::Gone(last) | Self::Back { last, .. } => Self::Back { last, again: pod },
        }
    }

    /// The source says: no such pod.
    pub(super) fn removed(self) -> Self {
        match self {
            Self::Held(last) => Self::Gone(Some(last)),
            Self::Gone(last) | Self::Back { last, .. } => Self::Gone(last),
        }
    }

    /// The pod that leaves.
    pub(super) fn pod(&self) -> Option<&Arc<Pod>> {
        match self {
            Self::Held(pod) => Some(pod),
            Self::Gone(last) | Self::Back { last, .. } => last.as_ref(),
        }
    }

    /// What to tell the supervisor once all is over: nothing while the source holds the pod.
    pub(super) fn farewell(&self) -> Option<Effect> {
        match self {
            Self::Held(_) => None,
            Self::Gone(_) => Some(Effect::Forget { restart: None }),
            Self::Back { again, .. } => Some(Effect::Forget { restart: Some(again.clone()) }),
        }
    }

    /// Whether an API object waits for its deletion. Static pods have none, and mirrors are not ours to end.
    pub(super) fn awaits_delete(&self) -> bool {
        match self {
            Self::Held(pod) => pod.is_deleting() && !pod.is_static() && !pod.is_mirror(),
            Self::Gone(_) | Self::Back { .. } => false,
        }
    }

    /// The status to write down; an orphan has none.
    pub(super) fn publish(&self, standing: Standing, verdict: Option<&Verdict>) -> Option<Effect> {
        let pod = self.pod()?.clone();
        Some(Effect::Publish { pod, standing, verdict: verdict.cloned() })
    }
}
