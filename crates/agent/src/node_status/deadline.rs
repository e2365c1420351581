//! The deadline of heartbeat calls.

use k8s_openapi::api::core::v1::Node;
use oarsman_cluster::{ClusterError, Result};
use tokio::time::timeout;

use super::NodeStatusContext;

impl NodeStatusContext {
    /// The node's object as it is.
    pub(super) async fn read(&self) -> Result<Node> {
        self.with_deadline("the object", self.object.read()).await
    }

    /// Waits for an answer until the heartbeat deadline.
    pub(super) async fn with_deadline<T>(
        &self,
        call: &'static str,
        answer: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let deadline = self.node_status_config.deadline();
        timeout(deadline, answer).await.unwrap_or_else(|_| {
            let object = format!("node {}", self.node_status_config.profile.name);
            let why = format!("no answer within {deadline:?}");
            Err(ClusterError::Unavailable { call, object, why })
        })
    }
}
