//! What a pod refers to besides itself.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use oarsman_cluster::ClusterError;
use oarsman_core::config::Lookup;

use super::room::Room;

impl Room {
    /// Asks for what the pod refers to. While nobody answers, what was known before counts: a container that ends meanwhile may
    /// start again.
    pub(super) async fn look_up(&self, pod: &Pod) -> Result<Arc<Lookup>, ClusterError> {
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

    /// What was found last.
    pub(super) fn known_objects(&self) -> Arc<Lookup> {
        self.memory().lookup.clone().unwrap_or_default()
    }
}
