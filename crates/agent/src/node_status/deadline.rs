//! The deadline of heartbeat calls.

use k8s_openapi::api::core::v1::Node;
use oarsman_cluster::{ClusterError, Result};
use tokio::time::timeout;

use super::Office;

impl Office {
    /// The node's object as it is.
    pub(super) async fn read(&self) -> Result<Node> {
        self.in_time("the object", self.object.read()).await
    }

    /// Waits for an answer until the heartbeat deadline.
    pub(super) async fn in_time<T>(
        &self,
        call: &'static str,
        answer: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let deadline = self.membership.deadline();
        timeout(deadline, answer).await.unwrap_or_else(|_| {
            let object = format!("node {}", self.membership.profile.name);
            let why = format!("no answer within {deadline:?}");
            Err(ClusterError::Unavailable { call, object, why })
        })
    }
}
