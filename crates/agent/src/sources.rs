//! Where pods come from besides the cluster: files on this machine, and a URL.
//!
//! What is found is put on a shelf (`shelf`), which is pure: it keeps the last good pod of every manifest and says what
//! there is to log. Around it stand thin loops that look and wait. A manifest that breaks costs nobody their pod: only one
//! that is gone takes its pod with it.

mod adopt;
pub mod bundle;
mod files;
mod line;
mod page;
mod read;
mod scan;
mod shelf;
mod url;
mod watch;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use oarsman_cluster::PodSets;
use oarsman_core::sources::Source;

pub use adopt::adopting;
pub use files::files;
pub use line::Remark;
pub use url::{ManifestUrl, UrlError};

/// A source of pods, opened when the agent starts, and again after a panic of the task that follows it.
pub struct PodSource {
    pub(crate) source: Source,
    pub(crate) open: Box<dyn Fn() -> PodSets + Send + Sync>,
}

impl PodSource {
    /// One that is opened by that.
    pub fn new(source: Source, open: impl Fn() -> PodSets + Send + Sync + 'static) -> Self {
        Self { source, open: Box::new(open) }
    }

    /// The same source, its sets changed by that.
    #[must_use]
    pub fn map(self, change: impl Fn(Source, PodSets) -> PodSets + Send + Sync + 'static) -> Self {
        let Self { source, open } = self;
        Self::new(source, move || change(source, open()))
    }
}

/// Pods of a set that others will hold on to.
fn shared(pods: Vec<Pod>) -> Vec<Arc<Pod>> {
    pods.into_iter().map(Arc::new).collect()
}
