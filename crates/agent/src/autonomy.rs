//! Pods come back without an API server.
//!
//! What the API server says of this node's pods, what they refer to and what we told of them is kept on this machine. When an agent
//! starts and no API server answers for a while, the pods are recalled from there. They do not count as the word of the API server:
//! its source is not ready, so nothing is cleaned up on a partial view. When it answers, its word is compared with what runs, and
//! only what differs changes.

mod notebook;
mod page;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_cluster::{Cluster, ClusterLayer, PodSets, Result};
use oarsman_core::config::Lookup;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_seam::Plain;
use oarsman_state::CheckpointStore;
use tokio::time::{sleep, timeout};

use crate::seams::Seams;

use notebook::Notebook;

/// How long the API server has the first word after a start. Pods that it does not want any more must not start meanwhile.
const FIRST_WORD: Duration = Duration::from_secs(10);
/// How long an API server that is away may keep a recalled pod waiting for what it refers to.
const PATIENCE: Duration = Duration::from_secs(2);
/// What changes within this time is written down once.
const GATHER: Duration = Duration::from_millis(500);
/// When something could not be written down.
const AGAIN: Duration = Duration::from_secs(5);

/// Pods that are run on what is remembered of them, told at most once.
pub(crate) type Recalled = BoxStream<'static, Vec<Arc<Pod>>>;

/// The same seams, whose cluster is remembered where there is a store for it; and the pods that are recalled if it is away.
pub(crate) fn remembering(seams: Seams) -> (Seams, Option<Memory>) {
    let Some(checkpoints) = seams.checkpoints.clone() else { return (seams, None) };
    let notebook = Arc::new(Notebook::default());
    let cluster = Remembered { inner: Arc::clone(&seams.cluster), notebook: Arc::clone(&notebook) };
    (Seams { cluster: Arc::new(cluster), ..seams }, Some(Memory { notebook, checkpoints }))
}

/// What is remembered, and where.
#[derive(Clone)]
pub(crate) struct Memory {
    notebook: Arc<Notebook>,
    checkpoints: Arc<dyn CheckpointStore>,
}

impl Memory {
    /// Recalls the pods if the API server has not spoken after a while.
    pub(crate) fn recalled(&self) -> Recalled {
        let memory = self.clone();
        let recall = async move {
            sleep(FIRST_WORD).await;
            memory.notebook.opened().await;
            memory.notebook.recall()
        };
        let once = futures::stream::once(recall).filter_map(std::future::ready);
        once.chain(futures::stream::pending()).boxed()
    }

    /// Reads what was kept, then keeps the checkpoints as the notebook is, for ever.
    pub(crate) async fn run(self) {
        if !self.notebook.is_open() {
            self.read().await;
        }
        loop {
            self.notebook.changed().await;
            sleep(GATHER).await;
            if !self.write().await {
                sleep(AGAIN).await;
            }
        }
    }

    async fn read(&self) {
        let kept = loop {
            match self.checkpoints.read_all().await {
                Ok(kept) => break kept,
                Err(error) => {
                    let path = error.path.display();
                    tracing::warn!(%path, %error, "checkpoints not read, will retry");
                }
            }
            sleep(AGAIN).await;
        };
        self.notebook.open(kept);
    }

    async fn write(&self) -> bool {
        let mut all_written = true;
        while let Some(change) = self.notebook.take() {
            let written = match &change.page {
                Some((page, lasting)) => {
                    self.checkpoints.write(&change.name, page.clone(), *lasting).await
                }
                None => self.checkpoints.remove(&change.name).await,
            };
            if let Err(error) = written {
                tracing::warn!(object = change.name, %error, "checkpoint not written, will retry");
                self.notebook.failed(change.name);
                all_written = false;
                break;
            }
        }
        all_written
    }
}

/// A cluster whose words are remembered.
struct Remembered {
    inner: Arc<dyn Cluster>,
    notebook: Arc<Notebook>,
}

#[async_trait]
impl ClusterLayer for Remembered {
    type Middleware = Plain;

    fn inner(&self) -> &Arc<dyn Cluster> {
        &self.inner
    }

    fn middleware(&self) -> &Plain {
        &Plain
    }

    fn pods(&self) -> Option<PodSets> {
        let notebook = Arc::clone(&self.notebook);
        let sets = self.inner.pods()?;
        Some(sets.inspect(move |pods| notebook.told(pods)).boxed())
    }

    /// While the API server has not spoken yet, what was remembered is as good as any.
    async fn lookup(&self, pod: &Pod) -> Result<Lookup> {
        let uid = pod.uid();
        let found = match self.notebook.remembered(&uid) {
            None => self.inner.lookup(pod).await?,
            Some(remembered) => match timeout(PATIENCE, self.inner.lookup(pod)).await {
                Ok(Ok(found)) => found,
                Ok(Err(_)) | Err(_) => return Ok(remembered),
            },
        };
        self.notebook.found(&uid, &found);
        Ok(found)
    }

    async fn publish(&self, pod: &FullName, uid: &PodUid, status: &PodStatus) -> Result<()> {
        self.notebook.said(uid, status);
        self.inner.publish(pod, uid, status).await
    }
}
