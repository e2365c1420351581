//! Where pods come from, and the merge of what several sources say into one stream of changes.
//!
//! A source always sends its full set; what changed is found here. A pod's mirror in the API server is a pod of its
//! own (it has another UID) and comes through as one: the supervisor starts no worker for it.

mod pod_change;
mod pod_config;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::event::PodEvent;

pub use pod_config::PodConfig;

/// A place that pods come from. Should two sources hold the same pod, the first in this order has the say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Files on this machine.
    File,
    /// A URL that is asked now and then.
    Http,
    /// The API server's pods of this node.
    Api,
}

impl Source {
    /// The source as a pod's annotation spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Http => "http",
            Self::Api => "api",
        }
    }

    /// The source that a pod's annotation names.
    pub fn from_annotation(text: &str) -> Option<Self> {
        [Self::File, Self::Http, Self::Api].into_iter().find(|source| source.as_str() == text)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What changed about a pod: `kubetypes.PodOperation` of the Go kubelet. In the order in which the changes of one merge are
/// applied: what frees resources comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodOperation {
    /// No source holds it any more.
    Remove,
    /// The source did not hold the pod before.
    Add,
    /// What is wanted of it has changed.
    Update,
    /// Its deletion is asked for.
    Delete,
    /// Nothing but the API server's copy of its status has changed.
    Reconcile,
}

/// A pod of one source, and how it differs from what the source held before.
#[derive(Clone, Debug, PartialEq)]
pub struct PodDelta {
    /// What became of it.
    pub change: PodOperation,
    /// The pod as it is now; of a removed one, as it was last.
    pub pod: Arc<Pod>,
}

/// What came of one set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MergeResult {
    /// The changes, in the order in which they are to be acted on.
    pub deltas: Vec<PodDelta>,
    /// Pods that were left out, each with the event that says why.
    pub refused: Vec<(Arc<Pod>, PodEvent)>,
}

#[cfg(test)]
mod spelling {
    use super::Source;

    #[test]
    fn sources_are_spelled_as_annotations_have_them() {
        let spelled = [Source::File, Source::Http, Source::Api].map(Source::as_str);
        assert_eq!(spelled, ["file", "http", "api"]);
    }
}
