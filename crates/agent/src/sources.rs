//! Where pods come from besides the cluster: files on this machine, and a URL.
//!
//! The state of a source is pure data: it keeps the last valid pod of every manifest and returns what is to be logged. Thin loops around
//! it read and wait. A manifest that becomes invalid keeps its pod: only one that is gone removes it.

mod adopt;
mod file_manifests;
mod files;
mod manifest_reader;
pub mod manifest_set;
mod message;
mod path_watch;
mod scan;
mod url;
mod url_manifests;

use std::panic::resume_unwind;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use oarsman_cluster::PodSets;
use oarsman_core::sources::Source;
use tokio::task::spawn_blocking;

pub use adopt::with_adopted_uids;
pub use files::pods_from_files;
pub use message::ManifestProblem;
pub use url::{ManifestUrl, UrlError};

/// A source of pods, opened when the agent starts, and again after a panic of the task that follows it.
pub struct PodSource {
    pub(crate) source: Source,
    pub(crate) open: Box<dyn Fn() -> PodSets + Send + Sync>,
}

impl PodSource {
    /// A source that `open` opens.
    pub fn new(source: Source, open: impl Fn() -> PodSets + Send + Sync + 'static) -> Self {
        Self { source, open: Box::new(open) }
    }

    /// The same source, its sets mapped by `change`.
    #[must_use]
    pub fn map(self, change: impl Fn(Source, PodSets) -> PodSets + Send + Sync + 'static) -> Self {
        let Self { source, open } = self;
        Self::new(source, move || change(source, open()))
    }
}

/// Pods of a set that others will hold on to.
fn into_shared(pods: Vec<Pod>) -> Vec<Arc<Pod>> {
    pods.into_iter().map(Arc::new).collect()
}

/// Does work that may block or take long on a thread for such work; none when the program ends. A panic of the work is the source's own: its
/// task is started again, and reads everything anew.
async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    match spawn_blocking(work).await {
        Ok(done) => Some(done),
        Err(error) => error.try_into_panic().map(|panic| resume_unwind(panic)).ok(),
    }
}
