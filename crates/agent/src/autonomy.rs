//! Pod checkpoints: pods of the API server are started again while it is unreachable.
//!
//! The node's pods as the API server sent them, the objects they refer to and the statuses we published are checkpointed on disk. When
//! an agent starts and the API server does not answer for a while, the pods are restored from the checkpoints. They do not make the
//! API source ready, so nothing is cleaned up on a partial view. When the API server answers, its pods are compared with what runs, and
//! only differences are acted on.

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

/// How long we wait for the API server after a start. Pods that it has deleted meanwhile must not be started.
const FIRST_WORD: Duration = Duration::from_secs(10);
/// How long a restored pod waits for the API server to answer the lookup of its objects.
const PATIENCE: Duration = Duration::from_secs(2);
/// Changes within this time are written together.
const GATHER: Duration = Duration::from_millis(500);
/// The delay before a failed read or write is retried.
const AGAIN: Duration = Duration::from_secs(5);

/// Pods restored from checkpoints; at most one set.
pub(crate) type Recalled = BoxStream<'static, Vec<Arc<Pod>>>;

/// The same seams; where there is a checkpoint store, the cluster's answers are checkpointed, and pods can be restored from it.
pub(crate) fn remembering(seams: Seams) -> (Seams, Option<Memory>) {
    let Some(checkpoints) = seams.checkpoints.clone() else { return (seams, None) };
    let notebook = Arc::new(Notebook::default());
    let cluster = Remembered { inner: Arc::clone(&seams.cluster), notebook: Arc::clone(&notebook) };
    (Seams { cluster: Arc::new(cluster), ..seams }, Some(Memory { notebook, checkpoints }))
}

/// The checkpoints in memory and the store that they are written to.
#[derive(Clone)]
pub(crate) struct Memory {
    notebook: Arc<Notebook>,
    checkpoints: Arc<dyn CheckpointStore>,
}

impl Memory {
    /// Restores the pods if the API server has not answered after `FIRST_WORD`.
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

    /// Loads the checkpoints, then writes every change to the store; never ends.
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

/// A cluster whose answers are checkpointed.
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

    /// Until the API server has answered, checkpointed objects are used when the lookup fails or takes too long.
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
