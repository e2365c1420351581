//! Pod checkpoints: pods of the API server are started again while it is unreachable.
//!
//! The node's pods as the API server sent them, the objects they refer to and the statuses we published are checkpointed on disk. When
//! an agent starts and the API server does not answer for a while, the pods are restored from the checkpoints. They do not make the
//! API source ready, so nothing is cleaned up on a partial view. When the API server answers, its pods are compared with what runs, and
//! only differences are acted on.

mod cache;
mod checkpoint;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_cluster::{Cluster, ClusterLayer, PodSets, Result};
use oarsman_core::cri_spec::{Lookup, check_object_bytes};
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_seam::NoMiddleware;
use oarsman_state::CheckpointStore;
use tokio::time::{sleep, timeout};

use crate::seams::Seams;

use cache::{CheckpointCache, CheckpointWrite};

/// How long we wait for the API server after a start. Pods that it has deleted meanwhile must not be started.
const API_SERVER_WAIT: Duration = Duration::from_secs(10);
/// How long a restored pod waits for the API server to answer the lookup of its objects.
const LOOKUP_WAIT: Duration = Duration::from_secs(2);
/// Changes within this time are written together.
const BATCH_DELAY: Duration = Duration::from_millis(500);
/// The delay before a failed read or write is retried.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Pods restored from checkpoints; at most one set.
pub(crate) type RestoredPods = BoxStream<'static, Vec<Arc<Pod>>>;

/// The same seams; where there is a checkpoint store, the cluster's answers are checkpointed, and pods can be restored from it.
pub(crate) fn with_checkpoints(seams: Seams) -> (Seams, Option<PodCheckpoints>) {
    let Some(store) = seams.checkpoints.clone() else { return (seams, None) };
    let cache = Arc::new(CheckpointCache::default());
    let cluster =
        CheckpointedCluster { inner: Arc::clone(&seams.cluster), cache: Arc::clone(&cache) };
    (Seams { cluster: Arc::new(cluster), ..seams }, Some(PodCheckpoints { cache, store }))
}

/// The checkpoints in memory and the store that they are written to.
#[derive(Clone)]
pub(crate) struct PodCheckpoints {
    cache: Arc<CheckpointCache>,
    store: Arc<dyn CheckpointStore>,
}

impl PodCheckpoints {
    /// Restores the pods if the API server has not answered after `API_SERVER_WAIT`.
    pub(crate) fn restored_pods(&self) -> RestoredPods {
        let checkpoints = self.clone();
        let recall = async move {
            sleep(API_SERVER_WAIT).await;
            checkpoints.cache.wait_until_loaded().await;
            checkpoints.cache.pods_to_restore()
        };
        let once = futures::stream::once(recall).filter_map(std::future::ready);
        once.chain(futures::stream::pending()).boxed()
    }

    /// Loads the checkpoints, then writes every change to the store; never ends.
    pub(crate) async fn run(self) {
        if !self.cache.is_loaded() {
            self.read().await;
        }
        loop {
            self.cache.wait_for_unwritten().await;
            sleep(BATCH_DELAY).await;
            if !self.write().await {
                sleep(RETRY_DELAY).await;
            }
        }
    }

    async fn read(&self) {
        let kept = loop {
            match self.store.read_all().await {
                Ok(kept) => break kept,
                Err(error) => {
                    let path = error.path.display();
                    tracing::warn!(%path, %error, "checkpoints not read, will retry");
                }
            }
            sleep(RETRY_DELAY).await;
        };
        self.cache.load(kept);
    }

    async fn write(&self) -> bool {
        let mut failed = Vec::new();
        while let Some(CheckpointWrite { name, checkpoint }) = self.cache.next_write() {
            let written = match checkpoint {
                Some((checkpoint, lasting)) => self.store.write(&name, checkpoint, lasting).await,
                None => self.store.remove(&name).await,
            };
            if let Err(error) = written {
                tracing::warn!(object = name, %error, "checkpoint not written, will retry");
                failed.push(name);
            }
        }
        // One that can never be written keeps no other from being written.
        let all_written = failed.is_empty();
        failed.into_iter().for_each(|name| self.cache.mark_unwritten(name));
        all_written
    }
}

/// A cluster whose answers are checkpointed.
struct CheckpointedCluster {
    inner: Arc<dyn Cluster>,
    cache: Arc<CheckpointCache>,
}

#[async_trait]
impl ClusterLayer for CheckpointedCluster {
    type Middleware = NoMiddleware;

    fn inner(&self) -> &Arc<dyn Cluster> {
        &self.inner
    }

    fn middleware(&self) -> &NoMiddleware {
        &NoMiddleware
    }

    fn pods(&self) -> Option<PodSets> {
        let cache = Arc::clone(&self.cache);
        let sets = self.inner.pods()?;
        Some(sets.inspect(move |pods| cache.set_api_pods(pods)).boxed())
    }

    /// Until the API server has answered, checkpointed objects are used when the lookup fails or takes too long.
    async fn lookup(&self, pod: &Pod) -> Result<Lookup> {
        let uid = pod.uid();
        let found = match self.cache.restored_lookup(&uid) {
            None => self.inner.lookup(pod).await?,
            Some(restored_lookup) => match timeout(LOOKUP_WAIT, self.inner.lookup(pod)).await {
                Ok(Ok(found)) => found,
                Ok(Err(_)) | Err(_) => return Ok(restored_lookup),
            },
        };
        // A pod that does not get its objects does not run, whether or not there is an API server.
        if check_object_bytes(pod, &found).is_ok() {
            self.cache.set_lookup(&uid, &found);
        }
        Ok(found)
    }

    async fn publish(&self, pod: &FullName, uid: &PodUid, status: &PodStatus) -> Result<()> {
        self.cache.set_status(uid, status);
        self.inner.publish(pod, uid, status).await
    }
}
