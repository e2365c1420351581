//! What a pod refers to besides itself.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use oarsman_cluster::ClusterError;
use oarsman_core::config::{self, Lookup, Payloads, VolumeFault};

use super::room::Room;
use super::sync::SyncError;

impl Room {
    /// Asks for what the pod refers to. While nobody answers, what was known before counts: a container that ends meanwhile may
    /// start again.
    async fn look_up(&self, pod: &Pod) -> Result<Arc<Lookup>, ClusterError> {
        match self.node.seams.cluster.lookup(pod).await {
            Ok(found) => {
                let found = Arc::new(found);
                self.memory().lookup = Some(Arc::clone(&found));
                Ok(found)
            }
            Err(error) => {
                let known = self.memory().lookup.clone();
                let known = known.ok_or_else(|| error.clone())?;
                tracing::debug!(pod = %self.name, %error, "what it referred to before still counts");
                Ok(known)
            }
        }
    }

    /// The files of volumes that are made of what the pod refers to. A volume that cannot be made holds a new pod up; in one that
    /// runs, its files stay as they are.
    pub(super) async fn payloads(&self, pod: &Pod) -> Result<Payloads, SyncError> {
        let lookup = self.look_up(pod).await?;
        let (payloads, faults) = config::payloads(pod, &lookup, &self.node.config.place());
        self.node.recorder.record(pod, faults.iter().map(VolumeFault::event));
        match faults.into_iter().next() {
            Some(fault) if !self.memory().has_volumes => Err(SyncError::Volume(Box::new(fault))),
            Some(_) | None => Ok(payloads),
        }
    }

    /// What was found last.
    pub(super) fn known_objects(&self) -> Arc<Lookup> {
        self.memory().lookup.clone().unwrap_or_default()
    }
}
