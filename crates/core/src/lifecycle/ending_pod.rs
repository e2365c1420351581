//! A pod that ends, and whether its source still holds it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::pod::PodExt;

use super::effect::{Effect, TerminationStage};
use super::event::PodFailure;

/// A pod that ends: it is deleted, killed or removed from its source.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum EndingPod {
    /// Its source still holds it, as deleted, ended or killed pods are held.
    Held(Arc<Pod>),
    /// Its source has dropped it; this is the last that was seen of it. Nothing was ever seen of an orphan. A pod that comes
    /// back is not this worker's: the supervisor knows what the sources hold, and starts a new worker once this one has ended.
    Gone(Option<Arc<Pod>>),
}

impl EndingPod {
    /// The source holds this pod.
    pub(super) fn wanted(self, pod: Arc<Pod>) -> Self {
        match self {
            Self::Held(_) => Self::Held(pod),
            gone @ Self::Gone(_) => gone,
        }
    }

    /// The source has dropped the pod.
    pub(super) fn removed(self) -> Self {
        match self {
            Self::Held(last) => Self::Gone(Some(last)),
            gone @ Self::Gone(_) => gone,
        }
    }

    /// Whether the source still holds the pod.
    pub(super) fn is_held(&self) -> bool {
        matches!(self, Self::Held(_))
    }

    /// The pod that ends.
    pub(super) fn pod(&self) -> Option<&Arc<Pod>> {
        match self {
            Self::Held(pod) => Some(pod),
            Self::Gone(last) => last.as_ref(),
        }
    }

    /// Whether an API object waits for its deletion. Static pods have no API object, and mirror pods are deleted by the mirror manager.
    pub(super) fn awaits_delete(&self) -> bool {
        match self {
            Self::Held(pod) => pod.is_deleting() && !pod.is_static() && !pod.is_mirror(),
            Self::Gone(_) => false,
        }
    }

    /// Whether the end of this pod must be on disk before it counts: no API server stores it, so after a restart of the agent the pod would be
    /// started again.
    pub(super) fn needs_record(&self) -> bool {
        match self {
            Self::Held(pod) => pod.is_static(),
            Self::Gone(_) => false,
        }
    }

    /// The status to publish; an orphan has none.
    pub(super) fn publish(
        &self,
        termination: TerminationStage,
        failure: Option<&PodFailure>,
    ) -> Option<Effect> {
        let pod = self.pod()?.clone();
        Some(Effect::Publish { pod, termination, failure: failure.cloned() })
    }
}
